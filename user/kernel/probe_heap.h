/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heap profile's probes: the programs of bpf/heap.bpf.c at the points of allocators that the
 * caller has found, what they cost, and the sampled allocations that are still in use.
 */
#ifndef KERNEL_PROBE_HEAP_H
#define KERNEL_PROBE_HEAP_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpfprof.h"
#include "kernel/uprobes.h"

struct live_entry;
struct session;

enum probe_heap_group {
	PROBE_HEAP_ALLOC, /* functions that allocate: entry and return */
	PROBE_HEAP_BEGIN, /* in their place, those that are recorded at their entry */
	PROBE_HEAP_FREE,
	PROBE_HEAP_USDT_ALLOC,
	PROBE_HEAP_USDT_FREE,
	PROBE_HEAP_NR_GROUPS,
};

/* The points of one file. */
struct probe_heap_points {
	const struct uprobe_point *points[PROBE_HEAP_NR_GROUPS];
	size_t cnt[PROBE_HEAP_NR_GROUPS];
};

/* Can a function that allocates, with that cookie, be in PROBE_HEAP_BEGIN? Not if it has to be
 * known how long it runs, or what it has returned. */
bool probe_heap__can_begin(uint64_t cookie);

/* Attachments of one file to one process, or to all. All 0: none. */
struct probe_heap {
	struct uprobes
		*sets[PROBE_HEAP_NR_GROUPS + 1]; /* the last one: returns, where they are apart */
};

/*
 * The frees first, so that nothing is recorded whose free would be missed. Arguments as for
 * uprobes__attach; the session was opened for the same method. 0 or -errno with nothing attached.
 */
int probe_heap__attach(struct session *s, enum uprobe_method m, int file_fd, pid_t pid,
		       const struct probe_heap_points *points, struct probe_heap *ret);
/* Detaches them all at the same time and clears them. */
void probe_heap__detach(struct probe_heap *heaps, size_t cnt);

/* Whether hits are recorded at all; attached probes cost the same. They are not when the session is
 * opened. */
void probe_heap__enable(struct session *s, bool on);

/* Of the file of that number (BPFPROF_COOKIE_OF_FILE) the hits of the link in all processes count
 * from now on, or (!shared, and at first) those of the others. */
void probe_heap__share(struct session *s, uint32_t file, bool shared);
/* The links that do not count any more are gone. */
void probe_heap__share_done(struct session *s);

/* Rounds sizes from now on, so that there are fewer different ones. */
void probe_heap__round_sizes(struct session *s);
/* From now on nothing is said to be in use: frees need no probes. */
void probe_heap__stop_tracking(struct session *s);

/* The sampled allocations that have not been freed; the caller frees *ret. 0 or -errno. */
int probe_heap__live(struct session *s, struct live_entry **ret, size_t *ret_cnt);
/* Forgets one. Was it there? */
bool probe_heap__forget(struct session *s, const struct bpfprof_live_key *key);
/* How many there is room for. */
uint32_t probe_heap__live_max(struct session *s);

#endif
