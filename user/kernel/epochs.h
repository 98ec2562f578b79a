/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the BPF programs count, by epoch (see BPFPROF_SIDE in bpfprof.h). A grace period makes an
 * epoch's end exact (grace.h).
 */
#ifndef KERNEL_EPOCHS_H
#define KERNEL_EPOCHS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpfprof.h"

struct epochs;
struct session;

/* Part of a session. NULL with errno. */
struct epochs *epochs__new(void);
void epochs__free(struct epochs *e);

/* Counters of a kind since the start, summed over the CPUs. 0 or -errno. */
int epochs__stats(struct session *s, enum bpfprof_kind kind, struct bpfprof_stats *ret);

/*
 * Ends the epoch, whose side is returned, and begins the next one. Programs that were running may
 * still add to it. None does once epochs__has_ended says so, see grace__passed: then its records are
 * in the ring, and epochs__take may be called, once, and before the next epoch ends.
 */
uint32_t epochs__end(struct session *s);
int epochs__has_ended(struct session *s, bool wait);
/* ret: what was counted in it, by kind. 0 or -errno: the recording cannot go on. */
int epochs__take(struct session *s, uint32_t side,
		 struct bpfprof_stats ret[static BPFPROF_NR_KINDS]);

#endif
