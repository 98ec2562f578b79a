/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that look random and follow from a seed: splitmix64, see G. L. Steele, D. Lea, C. H. Flood, Fast
 * Splittable Pseudorandom Number Generators (2014). Nobody's secrets are made of them. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* In 0..cnt - 1; cnt above 0. */
static inline uint64_t random_below(uint64_t *state, uint64_t cnt)
{
	return (uint64_t)((unsigned __int128)random_next(state) * cnt >> 64);
}

#endif
