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
#define MIN_SHARE 0.25 /* that the others have to have, of all */
#define TRIM 0.2       /* of the functions, at either end */
#define HEAVIEST 2     /* times the mean weight: a large function that changed is not all */
#define CONFIDENCE \
	0.005	   /* outside, at either end: a guard that chance sets off hides what got worse */
#define MOSTLY 0.5 /* of a function's cost */

struct deviation {
	double d;
	uint32_t index;
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

	design_means(d, z, e.level);
	memcpy(w, z, d->cnt * sizeof(*w));
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

static bool is_other(const struct measure *ms, size_t i)
{
	uint32_t f = ms->self_ids[i];

	return ms->leaves_in[f] < MOSTLY * ms->leaves[f];
}

/* Trimmed mean of the deviations in a run of the cnt functions that are others. */
static double common_of(const struct measure *ms, size_t run, size_t cnt, double heaviest)
{
	const double *deviations = ms->deviations + run * ms->self_cnt;
	const uint32_t *sorted = ms->sorted + run * ms->self_cnt;
	size_t cut = (size_t)(TRIM * (double)cnt), k = 0;
	double sum = 0, weight = 0;

	for (size_t i = 0; i < ms->self_cnt; i++) {
		double share = fmin(ms->self_shares[sorted[i]], heaviest);

		if (!is_other(ms, sorted[i]))
			continue;
		if (k >= cut && k < cnt - cut) {
			weight += share;
			sum += share * deviations[sorted[i]];
		}
		k++;
	}
	return sum / weight;
}

/* Of each function how much of it, as a leaf, is in these stacks: added, or nothing again. */
static void mark_leaves(const struct measure *ms, const struct stack_set *in, bool set)
{
	const struct runs *r = ms->runs;

	for (size_t i = 0; in && i < in->cnt; i++) {
		double *of = &ms->leaves_in[r->frames[r->stacks[in->ids[i]].at]];

		*of = set ? *of + ms->weights[in->ids[i]] : 0;
	}
}

/* Fills ms->common from the functions that are not mostly in these stacks. */
static bool find_common(const struct measure *ms, const struct stack_set *in)
{
	size_t cnt = 0;
	double share = 0;
	bool enough;

	mark_leaves(ms, in, true);
	for (size_t i = 0; i < ms->self_cnt; i++)
		if (is_other(ms, i)) {
			share += ms->self_shares[i];
			cnt++;
		}
	enough = cnt >= MIN_FUNCTIONS - 1 && share >= MIN_SHARE;
	for (size_t run = 0; enough && run < ms->m->run_cnt; run++)
		ms->common[run] = common_of(ms, run, cnt, HEAVIEST * share / (double)cnt);
	mark_leaves(ms, in, false);
	return enough;
}

bool scale_logs(const struct measure *ms, const double *costs, const struct stack_set *in,
		double *z)
{
	bool relative = in && ms->m->relative && find_common(ms, in);

	for (size_t i = 0; i < ms->m->run_cnt; i++)
		z[i] = log(costs[i]) - (relative ? ms->common[i] : 0);
	return relative;
}

/* ---- which scale ---- */

/* Of each run the order of the functions, so that it is found once and not for each row. */
static int sort_deviations(struct measure *ms)
{
	struct deviation *scratch = calloc(ms->self_cnt + 1, sizeof(*scratch));

	if (!scratch)
		return -ENOMEM;
	for (size_t run = 0; run < ms->m->run_cnt; run++) {
		size_t at = run * ms->self_cnt;

		for (size_t i = 0; i < ms->self_cnt; i++)
			scratch[i] = (struct deviation){ ms->deviations[at + i], (uint32_t)i };
		qsort(scratch, ms->self_cnt, sizeof(*scratch), compare);
		for (size_t i = 0; i < ms->self_cnt; i++)
			ms->sorted[at + i] = scratch[i].index;
	}
	free(scratch);
	return 0;
}

static int fill_deviations(struct measure *ms)
{
	const struct judge_metric *m = ms->m;
	size_t n = m->run_cnt, cnt = 0, at = 0;

	for (size_t i = 0; i < m->row_cnt; i++)
		cnt += m->rows[i].what == JUDGE_SELF;
	ms->self_cnt = cnt;
	ms->self_ids = calloc(cnt + 1, sizeof(*ms->self_ids));
	ms->self_shares = calloc(cnt + 1, sizeof(double));
	ms->deviations = calloc(cnt * n + 1, sizeof(double));
	ms->sorted = calloc(cnt * n + 1, sizeof(*ms->sorted));
	if (!ms->self_ids || !ms->self_shares || !ms->deviations || !ms->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < m->row_cnt; i++) {
		const struct judge_row *row = &m->rows[i];
		double mean = 0;

		if (row->what != JUDGE_SELF)
			continue;
		ms->self_ids[at] = row->function;
		for (size_t k = 0; k < n; k++) {
			mean += log(row->costs[k]) / (double)n;
			ms->self_shares[at] += row->costs[k] / ms->totals[k] / (double)n;
		}
		for (size_t k = 0; k < n; k++)
			ms->deviations[k * cnt + at] = log(row->costs[k]) - mean;
		at++;
	}
	return sort_deviations(ms);
}

/* The median over the functions of how much a run varies. */
static double variation(struct measure *ms, double *scratch)
{
	struct judge_metric *m = ms->m;
	size_t cnt = 0;

	for (size_t i = 0; i < m->row_cnt; i++) {
		struct stack_set in;
		double sq = 0;

		if (m->rows[i].what != JUDGE_SELF)
			continue;
		in = measure_stacks(ms, &m->rows[i]);
		scale_logs(ms, m->rows[i].costs, &in, ms->scratch);
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
	double *scratch = calloc(m->row_cnt, sizeof(*scratch)), with, without;
	struct estimate e;
	int err = scratch ? fill_deviations(ms) : -ENOMEM;

	if (!err && find_common(ms, NULL)) {
		e = scale_estimate(ms, ms->common, ms->scratch);
		m->common_shift = e.change;
		m->common_changed =
			e.df > 0 &&
			fabs(e.change) > stats_t_quantile(CONFIDENCE, e.df) *
						 sqrt(e.variance / design_weight(&ms->design));
		with = variation(ms, scratch);
		m->relative = true;
		without = variation(ms, scratch);
		m->relative = without < with || m->cross_machine;
	}
	free(scratch);
	return err;
}
