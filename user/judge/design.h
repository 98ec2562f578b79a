/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which run is of which side and block, and the ways in which the labels of the sides could have been
 * dealt out within the blocks: all of them where they are few, else drawn.
 */
#ifndef JUDGE_DESIGN_H
#define JUDGE_DESIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DESIGN_ENUMERATED 200000 /* arrangements, at most, that are all looked at */
#define DESIGN_DRAWN 20000	 /* else so many are drawn */

struct design {
	size_t cnt;	      /* runs */
	size_t block_cnt;     /* 1: there are no blocks; one of them, at least, has both sides */
	const uint8_t *news;  /* of each run: 1 new, 0 base; runs of a block adjoin */
	const size_t *starts; /* of each block its first run; block_cnt + 1 of them */
};

/* Of arrangements; UINT64_MAX: as many or more. */
uint64_t design_arrangements(const struct design *d);

/* sum of n0 n1 / (n0 + n1) over the blocks: the variance of the difference of the sides is that of a
 * run divided by it. Half of the runs a side, where they are as many. */
double design_weight(const struct design *d);

/* The mean of the values of base and new, over the blocks that have both. */
void design_means(const struct design *d, const double *values, double ret[2]);

/* Subtracts from each of the cnt values the mean of its block. */
void design_centre(const struct design *d, double *values);

/* The difference new less base of centred values, by least squares. */
double design_difference(const struct design *d, const double *centred);

/*
 * Walks over arrangements. `news` is what design_walk__begin was given: room for cnt bytes, which hold
 * an arrangement after each call.
 *
 *	design_walk__begin(&w, d, seed, news);
 *	while (design_walk__next(&w))
 *		use(news);
 */
struct design_walk {
	const struct design *d;
	uint8_t *news;
	uint64_t left; /* arrangements */
	bool exact;    /* each comes once, the one that was observed among them */
	uint64_t random;
	bool begun;
};

void design_walk__begin(struct design_walk *w, const struct design *d, uint64_t seed,
			uint8_t *news);
bool design_walk__next(struct design_walk *w);

#endif
