// SPDX-License-Identifier: BSD-2-Clause
#include "bench/plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/util.h"
#include "judge/stats.h"

#define LEAST_DISTURBANCE 0.02
#define DISTANCES 5

/* Of two orders of a side's runs each is as likely: PLAN_BLOCK is no more. */
static void number_sides(uint64_t *state, size_t a_side, struct plan_run *runs)
{
	uint32_t next[2];

	for (int side = 0; side < 2; side++)
		next[side] = (uint32_t)random_below(state, a_side);
	for (size_t i = 0; i < 2 * a_side; i++)
		runs[i].nth = next[runs[i].is_new]++ % (uint32_t)a_side;
}

void plan_block(uint64_t seed, uint64_t block, size_t a_side, struct plan_run ret[2 * PLAN_BLOCK])
{
	uint64_t state = seed;
	size_t cnt = 2 * a_side;

	/* blocks are drawn one from the other: the same block is the same, whatever came before */
	state = random_next(&state) ^ block;
	for (size_t i = 0; i < cnt; i++)
		ret[i].is_new = i >= a_side;
	for (size_t i = cnt; i > 1; i--) {
		size_t j = (size_t)random_below(&state, i);
		bool swap = ret[i - 1].is_new;

		ret[i - 1].is_new = ret[j].is_new;
		ret[j].is_new = swap;
	}
	for (size_t i = 0; i < cnt; i++) {
		ret[i].slot = (uint32_t)i;
		ret[i].padding = (uint32_t)random_below(&state, PLAN_MAX_PADDING);
	}
	number_sides(&state, a_side, ret);
}

size_t plan_looks(uint64_t first, uint64_t last, uint64_t ret[PLAN_MAX_LOOKS])
{
	size_t cnt = 0;

	for (uint64_t at = first; at < last && cnt < PLAN_MAX_LOOKS - 1; at *= 2)
		ret[cnt++] = at;
	ret[cnt++] = last;
	return cnt;
}

size_t plan_disturbed(const double *others, size_t cnt, size_t most, bool *ret)
{
	double *sorted = calloc(cnt, sizeof(*sorted)), median, limit;
	size_t found = 0;

	for (size_t i = 0; i < cnt; i++)
		ret[i] = false;
	/* without memory nothing is repeated, which is right as well */
	if (!sorted || !cnt) {
		free(sorted);
		return 0;
	}
	for (size_t i = 0; i < cnt; i++)
		sorted[i] = others[i];
	median = stats_median(sorted, cnt);
	for (size_t i = 0; i < cnt; i++)
		sorted[i] = fabs(others[i] - median);
	limit = fmax(LEAST_DISTURBANCE, median + DISTANCES * stats_median(sorted, cnt));
	free(sorted);
	while (found < most) {
		size_t worst = cnt;

		for (size_t i = 0; i < cnt; i++)
			if (!ret[i] && others[i] > limit &&
			    (worst == cnt || others[i] > others[worst]))
				worst = i;
		if (worst == cnt)
			break;
		ret[worst] = true;
		found++;
	}
	return found;
}
