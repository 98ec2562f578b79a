/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaches what watches threads for their waits, and those that are created. */
#ifndef KERNEL_PROBE_WAITS_H
#define KERNEL_PROBE_WAITS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct session;
struct probe_waits;

/*
 * Attaches the programs and makes the states of the threads that are in the filter by now; nothing
 * is recorded yet. NULL with errno; ENOTSUP: this kernel has no place where a thread's waits can be
 * seen to end. Borrows s.
 */
struct probe_waits *probe_waits__new(struct session *s);
/* Records from start_ns (CLOCK_MONOTONIC) on; waits that are in progress count from there. 0 or
 * -errno. */
int probe_waits__start(struct probe_waits *w, uint64_t start_ns);
/* To be called again and again: the clock that deadlines go by may be set. */
void probe_waits__sync_clock(struct probe_waits *w);
/* Records a wait shorter than ns with probability length / ns only, to stand for so many more; 0:
 * every wait; below 2^32. */
void probe_waits__set_rate(struct probe_waits *w, uint64_t ns);
/* How many of the programs are run at every context switch, or wake. */
int probe_waits__switch_programs(const struct probe_waits *w);
/* Ends the run at stop_ns. Waits in progress are recorded when they end, up to stop_ns, until
 * probe_waits__off; from then on nothing is, and the states stay as they are. */
void probe_waits__stop(struct probe_waits *w, uint64_t stop_ns);
void probe_waits__off(struct probe_waits *w);
/* Detaches. NULL is allowed. */
void probe_waits__free(struct probe_waits *w);

#endif
