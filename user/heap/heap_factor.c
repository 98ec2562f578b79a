// SPDX-License-Identifier: BSD-2-Clause
/* What hits of the heap's probes cost in the programs at hand. */
#include "heap/heap_factor.h"

#include <math.h>
#include <stdlib.h>

#include "base/util.h"

/* Of a normal distribution: its deviation by the median one, and a median's error by a mean's */
#define BY_MEDIAN 1.4826
#define MEDIAN_ERROR 1.2533
#define NOISE_PAIRS 2 /* that HEAP_FACTOR_NOISE counts as */

void heap_factor__add(struct heap_factor *f, const struct heap_factor_slice *slice)
{
	struct heap_factor_slice last = f->last;
	double hits, more, cpu;

	if (slice->calls < HEAP_FACTOR_CALLS)
		return;
	f->last = *slice;
	if (!last.calls)
		return;
	hits = last.hits_ns / last.calls;
	more = slice->hits_ns / slice->calls - hits;
	cpu = last.cpu_ns / last.calls;
	if (fabs(more) <= HEAP_FACTOR_MORE * MIN(hits, hits + more))
		return;
	f->pairs[f->pair_cnt++ % HEAP_FACTOR_PAIRS] = (struct heap_factor_pair){
		.factor = (slice->cpu_ns / slice->calls - cpu) / more,
		.scale = cpu / fabs(more),
	};
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), compare);
	return (values[(cnt - 1) / 2] + values[cnt / 2]) / 2;
}

static double square(double x)
{
	return x * x;
}

double heap_factor__get(const struct heap_factor *f, double *ret_error)
{
	size_t cnt = MIN(f->pair_cnt, (size_t)HEAP_FACTOR_PAIRS);
	double values[HEAP_FACTOR_PAIRS], factor, variance, noise, trust;

	*ret_error = HEAP_FACTOR_PRIOR;
	if (!cnt)
		return 1;
	for (size_t i = 0; i < cnt; i++)
		values[i] = f->pairs[i].scale;
	/* of the difference of two slices */
	noise = sqrt(2) * HEAP_FACTOR_NOISE * median(values, cnt);
	for (size_t i = 0; i < cnt; i++)
		values[i] = f->pairs[i].factor;
	factor = median(values, cnt);
	for (size_t i = 0; i < cnt; i++)
		values[i] = fabs(f->pairs[i].factor - factor);
	variance = (NOISE_PAIRS * square(noise) + cnt * square(BY_MEDIAN * median(values, cnt))) /
		   (NOISE_PAIRS + cnt);
	/* pairs that follow each other have a slice in common: they say half as much */
	variance *= 2 * square(MEDIAN_ERROR) / cnt;
	trust = square(HEAP_FACTOR_PRIOR) / (square(HEAP_FACTOR_PRIOR) + variance);
	*ret_error = sqrt(trust * variance);
	factor = 1 + trust * (factor - 1);
	return MIN(MAX(factor, 1 / HEAP_FACTOR_MAX), HEAP_FACTOR_MAX);
}

bool heap_factor__settled(const struct heap_factor *f, double hit_share)
{
	double error;

	(void)heap_factor__get(f, &error);
	return error * hit_share < HEAP_FACTOR_SETTLED * (1 - hit_share) ||
	       f->pair_cnt >= HEAP_FACTOR_MAX_PAIRS;
}
