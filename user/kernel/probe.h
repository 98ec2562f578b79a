/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a profile kind does in the kernel: one row for each kind. The session, its statistics and
 * the run walk the rows and know no kind by name. A new kind is a file probe_KIND.c with its row,
 * which probes.c puts into the table.
 *
 *     session__open    configure, load, attach
 *     session__arm     arm, again and again
 *     session__disarm  disarm
 *
 * Kinds whose programs go to points of a target (heap), or that have states to be made and ended
 * (waits), are started by functions of their own, in probe_heap.h and probe_waits.h.
 */
#ifndef KERNEL_PROBE_H
#define KERNEL_PROBE_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct session;

/* Of a kind that is recorded; NULL: there is nothing to be done. */
struct probe {
	/*
	 * Turns on the kind's programs and maps, which are off, sets its part of bp_config, and says
	 * what it needs (session__need). Kinds that share programs have one such function, which is
	 * called for each of them.
	 */
	void (*configure)(struct session *s);
	/* Attaches what has to be there as soon as it is loaded. 0 or -errno, and err says in a
	 * sentence what cannot be done, without the cause. */
	int (*attach)(struct session *s, char *err, size_t err_sz);
	/*
	 * Begins to record, and follows CPUs that come and go when it is called again. *armed is the
	 * probe's own, NULL at first. 0 or -errno, and err says in a sentence what failed and why.
	 */
	int (*arm)(struct session *s, void **armed, char *err, size_t err_sz);
	/* Ends that, and frees it. */
	void (*disarm)(void *armed);
	/* How many samples the kernel has kept from the programs so far. */
	uint64_t (*missed)(struct session *s);
};

extern const struct probe *const probes[BPFPROF_NR_KINDS]; /* by enum bpfprof_kind */

#endif
