// SPDX-License-Identifier: BSD-2-Clause
/* A command's operations: what counts them is found before the programs are loaded, and attached once the
 * command has been forked. */
#include <linux/types.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "capture/capture_parts.h"
#include "kernel/probe_ops.h"
#include "kernel/uprobes.h"
#include "kernel/session.h"
#include "target/procs.h"

int capture_ops_choose(struct capture *c)
{
	const struct capture_opts *o = &c->opts;
	char text[2 * PATH_MAX];
	int err;

	if (!o->ops_probe)
		return 0;
	err = ops_sites__find(&c->ops_sites, c->objects, o->ops_probe, o->command, text,
			      sizeof(text));
	if (err)
		log_error("cannot count operations: %s", text);
	return err;
}

int capture_ops_open(struct capture *c, pid_t pid)
{
	const struct ops_sites *s = &c->ops_sites;
	uint32_t proc = procs__find_live(c->procs, pid);
	struct uprobe_point *points = calloc(s->sites.cnt, sizeof(*points));
	int err = points ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < s->sites.cnt; i++)
		points[i] = (struct uprobe_point){ .offset = s->sites.sites[i].offset,
						   .ref_ctr = s->sites.sites[i].ref_ctr };
	if (!err && proc == PROCS_NONE)
		err = -ESRCH;
	if (!err) {
		c->ops = probe_ops__attach(c->session, c->uprobes, s->fd, points, s->sites.cnt,
					   procs__get(c->procs, proc)->exec_id);
		err = c->ops ? 0 : -errno;
	}
	free(points);
	if (err)
		log_error("cannot probe '%s': %s", s->path, uprobes_failure(err));
	return err;
}

int capture__ops(const struct capture *c, uint64_t *ret)
{
	*ret = probe_ops__count(c->session);
	return session__not_followed(c->session) ? -ENODATA : 0;
}

void capture_ops_close(struct capture *c)
{
	uprobes__detach(&c->ops, 1);
	ops_sites__done(&c->ops_sites);
}
