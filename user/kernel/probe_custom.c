// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "kernel/probe_custom.h"

#include <bpf/libbpf.h>

#include "base/util.h"
#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "kernel/live.h"
#include "kernel/probes.h"
#include "kernel/session.h"

/* A kernel with sessions has multi links, which do where each side is wanted alone. */
static enum uprobe_method method_of(enum uprobe_method m)
{
	return MAX(m, UPROBES_MULTI);
}

struct uprobes *probe_custom__attach(struct session *s, enum uprobe_method m,
				     enum probe_custom_group group, int file_fd, pid_t pid,
				     const struct uprobe_point *points, size_t cnt)
{
	struct bpfprof_bpf *skel = session__skel(s);
	bool adds = group == PROBE_CUSTOM_ADD || group == PROBE_CUSTOM_ADD_RETURN;
	bool returned = group == PROBE_CUSTOM_REMOVE_RETURN || group == PROBE_CUSTOM_ADD_RETURN;

	return session__attach_points(s, method_of(m), returned ? UPROBES_RETURN : UPROBES_ENTRY,
				      adds ? skel->progs.custom_add : skel->progs.custom_remove,
				      file_fd, pid, points, cnt);
}

void probe_custom__enable(struct session *s, bool on)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.custom_on, on, __ATOMIC_SEQ_CST);
}

int probe_custom__live(struct session *s, struct live_entry **ret, size_t *ret_cnt)
{
	return live_read(session__skel(s)->maps.bp_added, ret, ret_cnt);
}

static void configure(struct session *s)
{
	const struct session_opts *o = session__opts(s);
	struct bpfprof_bpf *skel = session__skel(s);
	struct bpf_program *const progs[] = { skel->progs.custom_add, skel->progs.custom_remove };

	session__need(s, SESSION_SLOTS | SESSION_DENSE);
	bpf_map__set_autocreate(skel->maps.bp_added, true);
	bpf_map__set_max_entries(skel->maps.bp_added, PROBE_CUSTOM_MAX_LIVE);
	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		/* without cookies there will be copies */
		bpf_program__set_autoload(progs[i], o->uprobes != UPROBES_EVENT);
		bpf_program__set_expected_attach_type(progs[i],
						      uprobes_attach_type(method_of(o->uprobes)));
	}
}

const struct probe probe_custom = { .configure = configure };
