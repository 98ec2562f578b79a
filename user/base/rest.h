/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Of what could not be had in time: whoever asks again may wait again, but on a busy machine, or a slow disk, it may
 * not be to blame. So it is left alone for a minute, then for two, up to 64, and asked for again.
 */
#ifndef BASE_REST_H
#define BASE_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

#define REST_NS (60 * NSEC_PER_SEC)
#define REST_MAX_DOUBLINGS 6

struct rest {
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: it is not left alone */
	unsigned int cnt;  /* how often it was */
};

static inline void rest__begin(struct rest *r)
{
	r->until_ns = util_monotonic_ns() + (REST_NS << MIN(r->cnt, REST_MAX_DOUBLINGS));
	r->cnt++;
}

/* Is it over? True once. */
static inline bool rest__ends(struct rest *r)
{
	if (!r->until_ns || util_monotonic_ns() < r->until_ns)
		return false;
	r->until_ns = 0;
	return true;
}

/* Of many things, told apart by a key, RESTS_MAX that are remembered. Begins with zeros. */
#define RESTS_MAX 64

struct rest_key {
	uint64_t v[2]; /* not both 0 */
};

struct rests {
	struct {
		struct rest_key key;
		struct rest rest;
	} of[RESTS_MAX];
};

/* What is not remembered takes the place of whatever is left alone for the shortest time. */
void rests__begin(struct rests *r, struct rest_key key);
/* Is it left alone? */
bool rests__has(struct rests *r, struct rest_key key);
/* How many are. */
unsigned int rests__cnt(const struct rests *r);

#endif
