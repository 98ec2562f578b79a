/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the BPF programs count, by epoch (see BPFPROF_SIDE in bpfprof.h), and the wait that makes an
 * epoch's end exact.
 */
#ifndef KERNEL_EPOCHS_H
#define KERNEL_EPOCHS_H

#include <linux/types.h>
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
 * Ends the epoch and begins the next one. On return, no program adds to the ended one any more, and
 * its records are in the ring. ret: what was counted in it, by kind. Returns the side of the ended
 * epoch, or -errno: then its end is not known, and the recording cannot go on.
 */
int epochs__next(struct session *s, struct bpfprof_stats ret[static BPFPROF_NR_KINDS]);

/* Returns once every program that was running has ended: from then on, all of them see what was
 * changed before. Takes some 10 to 40 ms. 0 or -errno. */
int epochs__wait(struct session *s);

#endif
