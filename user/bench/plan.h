/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which order the sides run, and when it is looked at the outcome. Blocks of two runs a side in random
 * order: what changes on the machine meanwhile meets both sides alike, and it is the draw that makes the
 * test of the sides exact.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_BLOCK 2	      /* runs a side of a block */
#define PLAN_MAX_PADDING 4096 /* bytes: a page, the period that stacks are aligned in */
#define PLAN_MAX_LOOKS 16

struct plan_run {
	bool is_new;
	uint32_t slot;	  /* place in the block, from 0 on */
	uint32_t nth;	  /* of the side's runs of the block, in a random order, from 0 on */
	uint32_t padding; /* bytes that the environment is to be longer, below PLAN_MAX_PADDING */
};

/* Draws a block with so many runs a side, 1 to PLAN_BLOCK: twice as many in ret. */
void plan_block(uint64_t seed, uint64_t block, size_t a_side, struct plan_run ret[2 * PLAN_BLOCK]);

/*
 * How many runs a side there are at each look: `first`, then twice as many as before, until `last`. Returns
 * the number of looks. 1 <= first <= last.
 */
size_t plan_looks(uint64_t first, uint64_t last, uint64_t ret[PLAN_MAX_LOOKS]);

/*
 * Disturbed blocks. others: of each block the CPU time that others had meanwhile, as a share of its own
 * time. Marks those that stand out, the most disturbed ones first, `most` at most: above 2 %, and above
 * the median by five times the median distance from it. Goes by no side and no outcome. Returns how
 * many.
 */
size_t plan_disturbed(const double *others, size_t cnt, size_t most, bool *ret);

#endif
