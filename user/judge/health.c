// SPDX-License-Identifier: BSD-2-Clause
/* Whether the runs of a metric are as runs should be: see struct judge_health. Verdicts do not depend on it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/parts.h"
#include "judge/stats.h"

#define SIGNIFICANT 0.01
#define MIN_DF 3
#define HUMPS_RUNS 8
/* Of runs that are normally distributed, 8 to 40, one set in a hundred has such a gap. */
#define HUMPS_GAP 12
#define HUMPS_SHARE 0.2 /* of the runs, at either side of it */

static double product(const double *a, const double *b, size_t cnt)
{
	double sum = 0;

	for (size_t i = 0; i < cnt; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Takes from the values what follows from block and side. `side`: the labels, centred. */
static void without_side(const struct design *d, const double *side, double *values)
{
	double share;

	design_centre(d, values);
	share = product(values, side, d->cnt) / product(side, side, d->cnt);
	for (size_t i = 0; i < d->cnt; i++)
		values[i] -= share * side[i];
}

/* By how much z grows with x, by least squares, apart from block and side. scratch: 2 * cnt. False: by no more
 * than chance, or there are too few runs. */
static bool grows(const struct design *d, const double *z, double *x, double *scratch, double *ret)
{
	double df = (double)d->cnt - (double)d->block_cnt - 2, rest, error, varies;
	double *side = scratch, *y = scratch + d->cnt;

	if (df < MIN_DF)
		return false;
	for (size_t i = 0; i < d->cnt; i++)
		side[i] = d->news[i];
	design_centre(d, side);
	memcpy(y, z, d->cnt * sizeof(*y));
	without_side(d, side, y);
	without_side(d, side, x);
	varies = product(x, x, d->cnt);
	/* sides and blocks leave nothing of it */
	if (!(varies > 1e-9))
		return false;
	*ret = product(x, y, d->cnt) / varies;
	rest = product(y, y, d->cnt) - *ret * *ret * varies;
	error = sqrt(fmax(rest, 0) / df / varies);
	return error > 0 && 2 * stats_t_upper(fabs(*ret) / error, df) < SIGNIFICANT;
}

/* The first run of a block finds caches and clocks as nobody left them. */
static bool find_first(const struct measure *ms, const double *z, double *x, double *scratch,
		       double *ret)
{
	const struct design *d = &ms->design;

	for (size_t i = 0; i < d->cnt; i++)
		if (ms->runs->runs[ms->m->runs[i]].facts.slot == FACTS_NONE)
			return false;
	memset(x, 0, d->cnt * sizeof(*x));
	/* runs of a block are in the order of their slots */
	for (size_t b = 0; b < d->block_cnt; b++)
		x[d->starts[b]] = 1;
	return d->block_cnt > 1 && grows(d, z, x, scratch, ret);
}

static bool has_order(const struct measure *ms)
{
	for (size_t i = 0; i < ms->m->run_cnt; i++) {
		const struct runs_run *run = &ms->runs->runs[ms->m->runs[i]];

		if (run->facts.slot == FACTS_NONE && !run->time_ns)
			return false;
	}
	return true;
}

/* From the first run to the last. */
static bool find_trend(const struct measure *ms, const double *z, double *x, double *scratch,
		       double *ret)
{
	const size_t starts[2] = { 0, ms->design.cnt };
	struct design whole = ms->design;

	whole.block_cnt = 1;
	whole.starts = starts;
	for (size_t i = 0; i < whole.cnt; i++)
		x[i] = (double)i / (double)(whole.cnt - 1);
	return has_order(ms) && grows(&whole, z, x, scratch, ret);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Do the runs fall into two groups? *ret: the distance of their means. */
static bool find_humps(const struct measure *ms, const double *z, double *sorted, double *gaps,
		       double *ret)
{
	const struct judge_metric *m = ms->m;
	size_t cnt = m->run_cnt, at = 0, least = MAX((size_t)(HUMPS_SHARE * (double)cnt), 2U);
	double means[2] = { 0 }, sums[2] = { 0 }, widest = 0;

	if (cnt < HUMPS_RUNS)
		return false;
	for (size_t i = 0; i < cnt; i++)
		means[m->news[i]] += z[i] / (double)m->cnt[m->news[i]];
	for (size_t i = 0; i < cnt; i++)
		sorted[i] = z[i] - means[m->news[i]];
	qsort(sorted, cnt, sizeof(*sorted), compare);
	for (size_t i = 1; i < cnt; i++) {
		gaps[i - 1] = sorted[i] - sorted[i - 1];
		if (i < least || cnt - i < least || gaps[i - 1] <= widest)
			continue;
		widest = gaps[i - 1];
		at = i;
	}
	if (!(widest > HUMPS_GAP * stats_median(gaps, cnt - 1)))
		return false;
	for (size_t i = 0; i < cnt; i++)
		sums[i >= at] += sorted[i];
	*ret = sums[1] / (double)(cnt - at) - sums[0] / (double)at;
	return true;
}

int health_check(struct measure *ms)
{
	struct judge_health *h = &ms->m->health;
	const struct judge_row *total = &ms->m->rows[0];
	double *x;

	*h = (struct judge_health){ NAN, NAN, NAN };
	if (ms->m->one_run || total->exact)
		return 0;
	x = calloc(3 * ms->m->run_cnt, sizeof(*x));
	if (!x)
		return -ENOMEM;
	/* each of them may look like those behind it */
	if (find_trend(ms, total->z, x, x + ms->m->run_cnt, &h->trend))
		goto out;
	h->trend = NAN;
	if (find_first(ms, total->z, x, x + ms->m->run_cnt, &h->first))
		goto out;
	h->first = NAN;
	if (!find_humps(ms, total->z, x, x + ms->m->run_cnt, &h->humps))
		h->humps = NAN;
out:
	free(x);
	return 0;
}
