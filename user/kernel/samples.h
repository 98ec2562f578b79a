/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what the programs recorded: records from the ring, counts of the stacks that were sent
 * before. */
#ifndef KERNEL_SAMPLES_H
#define KERNEL_SAMPLES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct samples;
struct session;

struct samples_count {
	struct bpfprof_count_key key;
	struct bpfprof_count count;
};

struct samples *samples__new(struct session *s);
void samples__free(struct samples *s);

/* Readable when records wait that should not wait for long. */
int samples__fd(const struct samples *s);

/* Is the ring more than half full? */
bool samples__is_half_full(const struct samples *s);

/*
 * The records that have arrived by now, in the order of each CPU's sending:
 * calls `take` for each; rec points to the record with what follows it, sz bytes, valid during the
 * call. Records whose lengths do not add up are left out. Returns above 0 if there were any, 0, or
 * -errno.
 */
int samples__read(struct samples *s,
		  void (*take)(void *ctx, const struct bpfprof_rec *rec, size_t sz), void *ctx);

/* Did that take all that had been sent when it began? One that is still being written keeps back what was sent
 * after it. */
bool samples__took_all(const struct samples *s);

/*
 * Empties the count map of the side of an epoch that session__next_epoch has ended: each count is
 * returned exactly once. Every stack counted was sent before: call samples__read between that and
 * using the counts. The caller frees *ret. 0 or -errno.
 */
int samples__drain_counts(struct samples *s, uint32_t side, struct samples_count **ret,
			  size_t *ret_cnt);

#endif
