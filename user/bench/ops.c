// SPDX-License-Identifier: BSD-2-Clause
/* Operations that a probe counts: is there one on both sides, and was it hit? */
#include <linux/types.h>

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "bench/parts.h"
#include "capture/ops.h"
#include "kernel/uprobes.h"
#include "options.h"
#include "target/objects.h"

static int check_side(const struct bench *b, enum runs_side side, struct objects *objects)
{
	char text[2 * PATH_MAX];
	struct bench_run run = { .side = side };
	struct ops_sites sites;
	int err = ops_sites__find(&sites, objects, b->opts->bench.ops_probe,
				  *bench_command(b, &run), text, sizeof(text));

	if (err)
		log_error("--ops-probe: the %s side: %s", bench_side_names[side], text);
	else
		ops_sites__done(&sites);
	return err;
}

int bench_ops_check(const struct bench *b)
{
	struct objects *objects;
	int err = 0;

	/* what comes before each run may be what makes the programs */
	if (!b->opts->bench.ops_probe || b->opts->bench.prepare)
		return 0;
	if (uprobes_probe(UPROBES_SESSION) == UPROBES_NONE) {
		log_error("--ops-probe: %s", uprobes_refused());
		return -ENOTSUP;
	}
	objects = objects__new();
	if (!objects) {
		log_error("cannot read files: %s", strerror(errno));
		return -errno;
	}
	for (int side = 0; !err && side < 2; side++)
		err = check_side(b, side, objects);
	objects__free(objects);
	return err;
}

int bench_ops_take(const struct bench *b, enum runs_side side, uint64_t counted,
		   struct run_facts *ret)
{
	const char *probe = b->opts->bench.ops_probe, *command = b->commands[side][0][0];

	if (!probe)
		return 0;
	ret->ops = counted;
	if (counted != FACTS_NONE)
		return 0;
	log_error(
		"a run of the %s side, '%s', never hit '%s': name a function that it calls and "
		"that is not inlined, or a probe that it passes, and the file that has it",
		bench_side_names[side], command, probe);
	return -EINVAL;
}
