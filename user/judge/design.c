// SPDX-License-Identifier: BSD-2-Clause
#include "judge/design.h"

#include <string.h>

#include "base/random.h"
#include "base/util.h"

/* of those that are new among cnt runs */
static size_t count_new(const uint8_t *news, size_t cnt)
{
	size_t ret = 0;

	for (size_t i = 0; i < cnt; i++)
		ret += news[i];
	return ret;
}

/* n over k; UINT64_MAX: too large */
static uint64_t choose(uint64_t n, uint64_t k)
{
	unsigned __int128 ret = 1;

	k = MIN(k, n - k);
	for (uint64_t i = 1; i <= k; i++) {
		ret = ret * (n - k + i) / i;
		if (ret > UINT64_MAX)
			return UINT64_MAX;
	}
	return (uint64_t)ret;
}

uint64_t design_arrangements(const struct design *d)
{
	uint64_t ret = 1;

	for (size_t b = 0; b < d->block_cnt; b++) {
		size_t sz = d->starts[b + 1] - d->starts[b];

		if (__builtin_mul_overflow(ret, choose(sz, count_new(d->news + d->starts[b], sz)),
					   &ret))
			return UINT64_MAX;
	}
	return ret;
}

double design_weight(const struct design *d)
{
	double ret = 0;

	for (size_t b = 0; b < d->block_cnt; b++) {
		size_t sz = d->starts[b + 1] - d->starts[b];
		size_t news = count_new(d->news + d->starts[b], sz);

		ret += (double)news * (double)(sz - news) / (double)sz;
	}
	return ret;
}

void design_means(const struct design *d, const double *values, double ret[2])
{
	size_t cnt[2] = { 0 };

	ret[0] = ret[1] = 0;
	for (size_t b = 0; b < d->block_cnt; b++) {
		size_t sz = d->starts[b + 1] - d->starts[b];
		size_t news = count_new(d->news + d->starts[b], sz);

		for (size_t i = d->starts[b]; news && news < sz && i < d->starts[b + 1]; i++) {
			ret[d->news[i]] += values[i];
			cnt[d->news[i]]++;
		}
	}
	for (int side = 0; side < 2; side++)
		ret[side] /= (double)cnt[side];
}

void design_centre(const struct design *d, double *values)
{
	for (size_t b = 0; b < d->block_cnt; b++) {
		double mean = 0;

		for (size_t i = d->starts[b]; i < d->starts[b + 1]; i++)
			mean += values[i];
		mean /= (double)(d->starts[b + 1] - d->starts[b]);
		for (size_t i = d->starts[b]; i < d->starts[b + 1]; i++)
			values[i] -= mean;
	}
}

double design_difference(const struct design *d, const double *centred)
{
	double sum = 0;

	for (size_t i = 0; i < d->cnt; i++)
		sum += d->news[i] * centred[i];
	return sum / design_weight(d);
}

/* ---- arrangements ---- */

/* Fisher and Yates; the bias of the multiplication is below cnt / 2^64. */
static void shuffle(uint8_t *news, size_t cnt, uint64_t *state)
{
	for (size_t i = cnt; i > 1; i--) {
		size_t j = (size_t)random_below(state, i);
		uint8_t t = news[i - 1];

		news[i - 1] = news[j];
		news[j] = t;
	}
}

static void swap(uint8_t *a, uint8_t *b)
{
	uint8_t t = *a;

	*a = *b;
	*b = t;
}

/* The next one in lexical order; false behind the last one, and it is the first one again. */
static bool next_order(uint8_t *news, size_t cnt)
{
	size_t i = cnt - 1, j = cnt - 1;
	bool ret;

	while (i > 0 && news[i - 1] >= news[i])
		i--;
	ret = i > 0;
	if (ret) {
		while (news[j] <= news[i - 1])
			j--;
		swap(&news[i - 1], &news[j]);
	}
	for (j = cnt - 1; i < j; i++, j--)
		swap(&news[i], &news[j]);
	return ret;
}

void design_walk__begin(struct design_walk *w, const struct design *d, uint64_t seed, uint8_t *news)
{
	uint64_t all = design_arrangements(d);

	*w = (struct design_walk){ .d = d, .news = news, .random = seed };
	w->exact = all <= DESIGN_ENUMERATED;
	w->left = w->exact ? all : DESIGN_DRAWN;
	memcpy(news, d->news, d->cnt);
}

bool design_walk__next(struct design_walk *w)
{
	const struct design *d = w->d;

	if (!w->left)
		return false;
	w->left--;
	/* from the observed one on, around to it */
	for (size_t b = 0; b < d->block_cnt; b++) {
		uint8_t *news = w->news + d->starts[b];
		size_t sz = d->starts[b + 1] - d->starts[b];

		if (!w->exact)
			shuffle(news, sz, &w->random);
		else if (w->begun && next_order(news, sz))
			break;
		else if (!w->begun)
			break;
	}
	w->begun = true;
	return true;
}
