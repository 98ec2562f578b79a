// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "kernel/probe_ops.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "kernel/session.h"

/* A kernel with sessions has multi links, which do where no return is wanted. */
static enum uprobe_method method_of(enum uprobe_method m)
{
	return MAX(m, UPROBES_MULTI);
}

void probe_ops__configure(struct session *s)
{
	struct bpf_program *prog = session__skel(s)->progs.ops_hit;

	bpf_program__set_autoload(prog, true);
	bpf_program__set_expected_attach_type(
		prog, uprobes_attach_type(method_of(session__opts(s)->uprobes)));
}

struct uprobes *probe_ops__attach(struct session *s, enum uprobe_method m, int file_fd,
				  const struct uprobe_point *points, size_t cnt,
				  uint32_t not_exec_id)
{
	struct bpfprof_bpf *skel = session__skel(s);
	int *prog_fds = calloc(cnt, sizeof(*prog_fds)), err;
	struct uprobes *ret;

	if (!prog_fds)
		return NULL;
	for (size_t i = 0; i < cnt; i++)
		prog_fds[i] = bpf_program__fd(skel->progs.ops_hit);
	skel->bss->bp_control.ops_not_exec_id = not_exec_id;
	ret = uprobes__attach(method_of(m), UPROBES_ENTRY, prog_fds, file_fd, 0, points, cnt);
	err = errno;
	free(prog_fds);
	errno = err;
	return ret;
}

uint64_t probe_ops__count(struct session *s)
{
	return __atomic_load_n(&session__skel(s)->bss->bp_state.ops, __ATOMIC_SEQ_CST);
}
