// SPDX-License-Identifier: BSD-2-Clause
/* Changes of all rows, their errors, and the chance that they are none. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/maxt.h"
#include "judge/moderate.h"
#include "judge/parts.h"
#include "judge/stats.h"

#define CONFIDENCE 0.05	    /* outside, at either end */
#define MIN_ARRANGEMENTS 20 /* fewer allow no p-value of 5 % */
#define ONE_RUN_CV 0.05	    /* between runs, where there is one alone */
#define ONE_RUN_BURSTS 4    /* times the variance of samples that come one by one */

/* What a run counted of the row, per operation. */
static double counted(const struct measure *ms, const struct judge_row *row, size_t i)
{
	const struct runs_run *run = &ms->runs->runs[ms->m->runs[i]];
	const double *of = row->what == JUDGE_SELF ? ms->self : ms->cum;
	double ops = run->facts.ops == FACTS_NONE ? 1 : (double)run->facts.ops;

	return (row->what == JUDGE_TOTAL ? ms->sums[i] : of[row->function * ms->m->run_cnt + i]) /
	       ops;
}

/* Do all runs of a side agree, and do the sides? One run agrees with itself, which says nothing of others. */
static void look_for_exact(const struct measure *ms, struct judge_row *row)
{
	const struct judge_metric *m = ms->m;
	double values[2] = { NAN, NAN };
	bool agree = m->counted;

	for (size_t i = 0; agree && i < m->run_cnt; i++) {
		double *of = &values[m->news[i]], v = counted(ms, row, i);

		*of = isnan(*of) ? v : *of;
		agree = v == *of;
	}
	/* events come and go from run to run, as waits do: few runs may agree by chance */
	if (values[0] != values[1] && ms->runs->metrics[m->metric].events &&
	    m->arrangements < MIN_ARRANGEMENTS)
		agree = m->one_run;
	if (!agree)
		return;
	row->exact = !m->one_run;
	row->exact_differs = values[0] != values[1];
	row->base = values[0];
	row->now = values[1];
	row->change = row->absolute = values[0] > 0 ? log(values[1] / values[0]) : INFINITY;
	row->low = row->high = row->at_most = row->change;
	row->level[0] = values[0];
	row->level[1] = values[1];
	for (size_t i = 0; row->exact && i < m->run_cnt; i++)
		row->costs[i] = values[m->news[i]];
}

static void median_of(const struct measure *ms, const struct judge_row *row, int side, double *ret)
{
	size_t cnt = 0;

	for (size_t i = 0; i < ms->m->run_cnt; i++)
		if (ms->m->news[i] == side)
			ms->scratch[cnt++] = row->costs[i];
	*ret = stats_median(ms->scratch, cnt);
}

/* Without variance between runs there is only a guess of it. */
static void guess_error(const struct measure *ms, struct judge_row *row)
{
	double n = row->samples / ONE_RUN_BURSTS, runs = 1 / design_weight(&ms->design);

	row->df = INFINITY;
	row->error = sqrt(runs * (ONE_RUN_CV * ONE_RUN_CV + 1 / fmax(n, 0.25)));
	row->low = row->high = row->at_most = row->p = row->p_better = NAN;
}

/* Fills the rest of what does not need the other rows. variance: of the row, label-blind in *ret_blind. */
static void estimate(struct measure *ms, struct judge_row *row, double *ret_variance,
		     double *ret_blind)
{
	bool total = row->what == JUDGE_TOTAL;
	struct stack_set in = { 0 };
	struct estimate e;
	double sq = 0;

	median_of(ms, row, 0, &row->base);
	median_of(ms, row, 1, &row->now);
	scale_logs(ms, row->costs, NULL, row->z);
	row->absolute = scale_estimate(ms, row->z, row->w).change;
	if (!total)
		in = measure_stacks(ms, row);
	row->relative = scale_logs(ms, row->costs, total || row->as_is ? NULL : &in, row->z);
	e = scale_estimate(ms, row->z, row->w);
	row->change = e.change;
	memcpy(row->level, e.level, sizeof(row->level));
	for (size_t i = 0; i < ms->m->run_cnt; i++)
		sq += row->w[i] * row->w[i];
	*ret_variance = e.variance;
	*ret_blind = sq / (double)(ms->design.cnt - ms->design.block_cnt);
	row->p = row->p_better = NAN;
	row->df = e.df;
}

/* ---- the family of tests ---- */

struct family {
	size_t cnt;
	size_t *rows;
	const double **w;
	double *variances, *blind, *samples, *scale, *p;
};

static void family_done(struct family *f)
{
	free(f->rows);
	free(f->w);
	free(f->variances);
	free(f->blind);
	free(f->samples);
	free(f->scale);
	free(f->p);
}

static int family_new(struct family *f, size_t max)
{
	f->rows = calloc(max, sizeof(*f->rows));
	f->w = calloc(max, sizeof(*f->w));
	f->variances = calloc(max, sizeof(double));
	f->blind = calloc(max, sizeof(double));
	f->samples = calloc(max, sizeof(double));
	f->scale = calloc(max, sizeof(double));
	f->p = calloc(max, sizeof(double));
	return f->rows && f->w && f->variances && f->blind && f->samples && f->scale && f->p ?
		       0 :
		       -ENOMEM;
}

/* What the machine does to a whole run is in it. */
static bool is_whole(const struct judge_row *row)
{
	return row->what == JUDGE_TOTAL || row->as_is;
}

/* The total and what is judged as it is are the first rows: they borrow nothing, and nothing is borrowed from
 * them. */
static int moderate_family(struct measure *ms, struct family *f)
{
	size_t first = 0;
	double df = (double)ms->design.cnt - (double)ms->design.block_cnt - 1;
	struct moderated m;
	int err;

	while (first < f->cnt && is_whole(&ms->m->rows[f->rows[first]]))
		first++;
	err = moderate(f->variances + first, f->samples + first, f->cnt - first, df, &m);
	ms->m->prior_df = m.prior_df;
	ms->m->tau = m.tau;
	for (size_t i = 0; !err && i < f->cnt; i++)
		ms->m->rows[f->rows[i]].df = df + (i < first ? 0 : m.prior_df);
	return err ?: moderate(f->blind + first, f->samples + first, f->cnt - first, df + 1, &m);
}

static void set_intervals(struct measure *ms, const struct family *f)
{
	double weight = design_weight(&ms->design);

	for (size_t i = 0; i < f->cnt; i++) {
		struct judge_row *row = &ms->m->rows[f->rows[i]];
		double t = stats_t_quantile(CONFIDENCE, row->df);
		double most = stats_t_quantile(CONFIDENCE * ms->options->ok_share, row->df);

		row->error = sqrt(f->variances[i] / weight);
		row->low = row->change - t * row->error;
		row->high = row->change + t * row->error;
		row->at_most = row->change + most * row->error;
	}
}

/* One side of the test. */
static int test(struct measure *ms, struct family *f, double sign, uint64_t seed, double *critical)
{
	struct judge_metric *m = ms->m;
	const struct maxt t = { &ms->design, f->cnt, f->w, f->scale, sign, seed };

	if (!m->model)
		return maxt_test(&t, m->alpha, f->p, critical, &m->listed);
	*critical = INFINITY;
	for (size_t i = 0; i < f->cnt; i++) {
		const struct judge_row *row = &m->rows[f->rows[i]];

		f->p[i] = stats_t_upper(sign * row->change / row->error, row->df);
	}
	return maxt_holm(f->p, f->cnt);
}

static int test_family(struct measure *ms, struct family *f, uint64_t seed)
{
	struct judge_metric *m = ms->m;
	double unused;
	int err;

	if (!f->cnt)
		return 0;
	err = moderate_family(ms, f);
	if (err)
		return err;
	set_intervals(ms, f);
	for (size_t i = 0; i < f->cnt; i++)
		f->scale[i] = sqrt(fmax(f->blind[i], 1e-300));
	/* layouts cost one thing or another, and are not normally distributed: that two of them agree on each side,
	 * and the sides do not, is no more than their few arrangements say */
	m->model = m->arrangements < MIN_ARRANGEMENTS && !ms->runs->are_builds;
	m->least_p = m->model ?
			     0 :
			     1 / (double)(m->arrangements > DESIGN_ENUMERATED ? DESIGN_DRAWN + 1 :
										m->arrangements);
	err = test(ms, f, 1, seed, &m->critical);
	for (size_t i = 0; !err && i < f->cnt; i++)
		m->rows[f->rows[i]].p = f->p[i];
	err = err ?: test(ms, f, -1, seed, &unused);
	for (size_t i = 0; !err && i < f->cnt; i++)
		m->rows[f->rows[i]].p_better = f->p[i];
	return err;
}

int compare_rows(struct measure *ms, uint64_t seed)
{
	struct judge_metric *m = ms->m;
	double total = 0, df = (double)ms->design.cnt - (double)ms->design.block_cnt - 1;
	struct family f = { 0 };
	int err = family_new(&f, m->row_cnt);

	m->arrangements = design_arrangements(&ms->design);
	for (size_t i = 0; !err && i < m->row_cnt; i++) {
		struct judge_row *row = &m->rows[i];

		estimate(ms, row, &f.variances[f.cnt], &f.blind[f.cnt]);
		look_for_exact(ms, row);
		if (row->exact)
			continue;
		if (m->one_run || !(df > 0)) {
			guess_error(ms, row);
			continue;
		}
		f.rows[f.cnt] = i;
		f.w[f.cnt] = row->w;
		/* what a gate names may have none: see measure_cost() */
		f.samples[f.cnt++] = fmax(row->samples, 0.5);
	}
	err = err ?: test_family(ms, &f, seed);
	err = err ?: by_chance_test(ms);
	family_done(&f);
	for (size_t i = 0; !err && i < m->row_cnt; i++) {
		struct judge_row *row = &m->rows[i];
		double half = 0;

		if (!i)
			total = row->level[0];
		row->of_program = (row->level[1] - row->level[0]) / total;
		/* less than a sample in a run */
		for (size_t k = 0; k < m->run_cnt; k++)
			half += measure_cost(ms, k, 2 * ms->halves[k]) / (double)m->run_cnt;
		row->appeared = row->what != JUDGE_TOTAL && row->base < half;
		row->gone = row->what != JUDGE_TOTAL && row->now < half;
	}
	return err;
}
