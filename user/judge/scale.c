// SPDX-License-Identifier: BSD-2-Clause
/*
 * What all functions of a run have in common is mostly the machine's: its clock, its neighbours. Without
 * it small changes of one function show. M. D. Robinson, A. Oshlack, A scaling normalization method for
 * differential expression analysis of RNA-seq data (2010), with runs for samples and functions for genes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/parts.h"
#include "judge/stats.h"

#define MIN_FUNCTIONS 10
#define MIN_SHARE 0.25	 /* that the others have to have, of all */
#define TRIM 0.2	 /* of the functions, at either end */
#define HEAVIEST 2	 /* times the mean weight: a large function that changed is not all */
#define CONFIDENCE 0.025 /* outside, at either end */
#define MOSTLY 0.5	 /* of a function's cost */

struct deviation {
	double d, weight;
	size_t index;
};

static int compare(const void *a, const void *b)
{
	const struct deviation *x = a, *y = b;

	if (x->d != y->d)
		return x->d < y->d ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

struct estimate scale_estimate(const struct measure *ms, const double *z, double *w)
{
	const struct design *d = &ms->design;
	double weight = design_weight(d), sq = 0;
	struct estimate e = { 0 };

	for (size_t i = 0; i < d->cnt; i++) {
		e.level[d->news[i]] += z[i] / (double)ms->m->cnt[d->news[i]];
		w[i] = z[i];
	}
	design_centre(d, w);
	for (size_t i = 0; i < d->cnt; i++)
		sq += w[i] * w[i];
	e.change = design_difference(d, w);
	e.df = (double)d->cnt - (double)d->block_cnt - 1;
	for (int side = 0; side < 2; side++)
		e.level[side] = exp(e.level[side]);
	if (e.df > 0)
		e.variance = fmax(0, sq - e.change * e.change * weight) / e.df;
	return e;
}

/* Trimmed mean of deviations, which it sorts. */
static double common_of(struct deviation *d, size_t cnt)
{
	size_t cut = (size_t)(TRIM * (double)cnt);
	double sum = 0, weight = 0;

	qsort(d, cnt, sizeof(*d), compare);
	for (size_t k = cut; k < cnt - cut; k++) {
		sum += d[k].weight * d[k].d;
		weight += d[k].weight;
	}
	return sum / weight;
}

static bool is_other(const struct measure *ms, size_t i, bool all)
{
	uint32_t f = ms->self_ids[i];

	return all || ms->leaves_in[f] < MOSTLY * ms->leaves[f];
}

/* Fills ms->common from the functions that are not mostly in what is marked. */
static bool find_common(const struct measure *ms, const bool *in)
{
	const struct runs *r = ms->runs;
	size_t n = ms->m->run_cnt, cnt = 0;
	double share = 0, heaviest;

	if (in) {
		memset(ms->leaves_in, 0, r->function_cnt * sizeof(*ms->leaves_in));
		for (size_t s = 0; s < r->stack_cnt; s++)
			if (in[s])
				ms->leaves_in[r->frames[r->stacks[s].at]] += ms->weights[s];
	}
	for (size_t i = 0; i < ms->self_cnt; i++)
		if (is_other(ms, i, !in)) {
			share += ms->self_shares[i];
			cnt++;
		}
	if (cnt < MIN_FUNCTIONS - 1 || share < MIN_SHARE)
		return false;
	heaviest = HEAVIEST * share / (double)cnt;
	for (size_t run = 0; run < n; run++) {
		size_t k = 0;

		for (size_t i = 0; i < ms->self_cnt; i++)
			if (is_other(ms, i, !in))
				ms->sorted[k++] =
					(struct deviation){ ms->deviations[i * n + run],
							    fmin(ms->self_shares[i], heaviest), i };
		ms->common[run] = common_of(ms->sorted, k);
	}
	return true;
}

void scale_mark(const struct measure *ms, uint32_t function, bool leaf, bool *in)
{
	const struct runs *r = ms->runs;

	for (size_t s = 0; s < r->stack_cnt; s++) {
		uint32_t cnt = leaf ? 1 : r->stacks[s].cnt;

		in[s] = false;
		for (uint32_t k = 0; k < cnt && !in[s]; k++)
			in[s] = r->frames[r->stacks[s].at + k] == function;
	}
}

bool scale_logs(const struct measure *ms, const double *costs, const bool *in, double *z)
{
	bool relative = in && ms->m->relative && find_common(ms, in);

	for (size_t i = 0; i < ms->m->run_cnt; i++)
		z[i] = log(costs[i]) - (relative ? ms->common[i] : 0);
	return relative;
}

/* ---- which scale ---- */

static int fill_deviations(struct measure *ms)
{
	const struct judge_metric *m = ms->m;
	size_t n = m->run_cnt;

	ms->self_ids = calloc(m->row_cnt, sizeof(*ms->self_ids));
	ms->self_shares = calloc(m->row_cnt, sizeof(double));
	ms->deviations = calloc(m->row_cnt * n, sizeof(double));
	ms->sorted = calloc(m->row_cnt, sizeof(*ms->sorted));
	if (!ms->self_ids || !ms->self_shares || !ms->deviations || !ms->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < m->row_cnt; i++) {
		const struct judge_row *row = &m->rows[i];
		double mean = 0;
		size_t at = ms->self_cnt;

		if (row->what != JUDGE_SELF)
			continue;
		ms->self_ids[at] = row->function;
		for (size_t k = 0; k < n; k++) {
			mean += log(row->costs[k]) / (double)n;
			ms->self_shares[at] += row->costs[k] / ms->totals[k] / (double)n;
		}
		for (size_t k = 0; k < n; k++)
			ms->deviations[at * n + k] = log(row->costs[k]) - mean;
		ms->self_cnt++;
	}
	return 0;
}

/* The median over the functions of how much a run varies. */
static double variation(struct measure *ms, bool *in, double *scratch)
{
	struct judge_metric *m = ms->m;
	size_t cnt = 0;

	for (size_t i = 0; i < m->row_cnt; i++) {
		double sq = 0;

		if (m->rows[i].what != JUDGE_SELF)
			continue;
		scale_mark(ms, m->rows[i].function, true, in);
		scale_logs(ms, m->rows[i].costs, in, ms->scratch);
		design_centre(&ms->design, ms->scratch);
		for (size_t k = 0; k < m->run_cnt; k++)
			sq += ms->scratch[k] * ms->scratch[k];
		scratch[cnt++] = sq;
	}
	return stats_median(scratch, cnt);
}

/* Goes by no label, so that the test stays exact. */
int scale_choose(struct measure *ms)
{
	struct judge_metric *m = ms->m;
	bool *in = calloc(ms->runs->stack_cnt + 1, sizeof(*in));
	double *scratch = calloc(m->row_cnt, sizeof(*scratch)), with, without;
	struct estimate e;
	int err = in && scratch ? fill_deviations(ms) : -ENOMEM;

	if (!err && find_common(ms, NULL)) {
		e = scale_estimate(ms, ms->common, ms->scratch);
		m->common_shift = e.change;
		m->common_changed =
			e.df > 0 &&
			fabs(e.change) > stats_t_quantile(CONFIDENCE, e.df) *
						 sqrt(e.variance / design_weight(&ms->design));
		with = variation(ms, in, scratch);
		m->relative = true;
		without = variation(ms, in, scratch);
		m->relative = without < with;
	}
	free(in);
	free(scratch);
	return err;
}
