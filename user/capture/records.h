/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the kernel side that wait: first in, first out. In blocks, since a rush of raw stacks
 * takes 100 MB within a second: what is there already is not moved to make room for more.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

/* Bytes that a record may have, with what follows it. */
#define RECORDS_MAX_SZ (128U << 10)

struct records_block;

/* Starts as {}. */
struct records {
	struct records_block *first, *last, *spare;
	size_t sz; /* bytes that wait */
};

void records__free(struct records *r);

/* Copies a record of sz bytes with what follows it, and keeps a number with it. 0; -ENOMEM;
 * -E2BIG. */
int records__put(struct records *r, const struct bpfprof_rec *rec, size_t sz, uint32_t number);

/* Returns the one that has waited longest, until that is dropped, NULL if there is none. */
const struct bpfprof_rec *records__first(const struct records *r, size_t *ret_sz,
					 uint32_t *ret_number);
/* There is one. */
void records__drop(struct records *r);

/* Calls f for each that waits. */
void records__each(const struct records *r, void (*f)(void *ctx, const struct bpfprof_rec *rec),
		   void *ctx);

/* Moves those of another behind its own; what that one keeps for later stays there. */
void records__join(struct records *r, struct records *from);

#endif
