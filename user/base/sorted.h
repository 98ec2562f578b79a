/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary search for a bound, as C++ has it: bsearch(3) finds only what is equal. */
#ifndef BASE_SORTED_H
#define BASE_SORTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* cnt keys, ascending, each elem_sz bytes behind the one before it. How many of them are below key; with_equal: or
 * equal to it. */
static inline size_t sorted_count(const void *first_key, size_t cnt, size_t elem_sz, uint64_t key,
				  bool with_equal)
{
	size_t lo = 0;
	uint64_t at;
	bool below;

	/* in [lo, lo + cnt] is what is looked for */
	while (cnt) {
		size_t half = cnt / 2;

		memcpy(&at, (const char *)first_key + (lo + half) * elem_sz, sizeof(at));
		below = at < key || (with_equal && at == key);
		/* no branches: half of them would be predicted wrongly */
		lo += below ? half + 1 : 0;
		cnt = below ? cnt - half - 1 : half;
	}
	return lo;
}

#define SORTED_COUNT(v, cnt, member, key, with_equal)                                       \
	({                                                                                  \
		_Static_assert(sizeof((v)->member) == sizeof(uint64_t), "key");             \
		(cnt) ? sorted_count(&(v)->member, cnt, sizeof(*(v)), key, with_equal) : 0; \
	})

/* v: cnt structures, ascending by member, 64 bits without a sign. The index of the first one whose member is at or
 * above key; above key. cnt: there is none. */
#define SORTED_LOWER_BOUND(v, cnt, member, key) SORTED_COUNT(v, cnt, member, key, false)
#define SORTED_UPPER_BOUND(v, cnt, member, key) SORTED_COUNT(v, cnt, member, key, true)

/* The same of plain numbers. */
static inline size_t sorted_lower_bound(const uint64_t *v, size_t cnt, uint64_t key)
{
	return sorted_count(v, cnt, sizeof(*v), key, false);
}

#endif
