/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The probes of custom profiles: the programs of bpf/custom.bpf.c at the points that the caller has
 * found, and what was added and not removed.
 */
#ifndef KERNEL_PROBE_CUSTOM_H
#define KERNEL_PROBE_CUSTOM_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/uprobes.h"

struct live_entry;
struct session;

/* In the order in which they are attached: so nothing is recorded whose removal would be missed. */
enum probe_custom_group {
	PROBE_CUSTOM_REMOVE,
	PROBE_CUSTOM_REMOVE_RETURN, /* what a function returns is removed */
	PROBE_CUSTOM_ADD_RETURN,
	PROBE_CUSTOM_ADD,
	PROBE_CUSTOM_NR_GROUPS,
};

/* Points of one file, of one group: as for uprobes__attach, which says what becomes of them; the
 * session was opened for the same method. NULL with errno. */
struct uprobes *probe_custom__attach(struct session *s, enum uprobe_method m,
				     enum probe_custom_group group, int file_fd, pid_t pid,
				     const struct uprobe_point *points, size_t cnt);

/* Whether hits are recorded. They are not when the session is opened. */
void probe_custom__enable(struct session *s, bool on);

/* What was added and not removed; the caller frees *ret. 0 or -errno. */
int probe_custom__live(struct session *s, struct live_entry **ret, size_t *ret_cnt);

/* Values that there is room for. */
#define PROBE_CUSTOM_MAX_LIVE (1U << 17)

#endif
