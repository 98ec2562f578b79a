// SPDX-License-Identifier: BSD-2-Clause
/* From changes and their p-values to verdicts. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/parts.h"
#include "judge/stats.h"

#define OF_PROGRAM 0.002 /* a function's change that is less of the total is none */
#define FUNCTION 2	 /* times --min-effect */
#define GATE 0.5	 /* of the gate: a true change of it is estimated above that */
#define CONFOUNDED 3	 /* times --min-effect, where time may be the reason */
#define ALLOCATIONS 100	 /* fewer more in a run, exactly counted, are none */
#define POWER 0.1	 /* chance to miss the gate's change with the runs that are asked for */
#define EXPLAINS 0.8	 /* of a change */
#define CONFIDENCE 0.05

static bool is_enough(const struct measure *ms, const struct judge_row *row, double sign)
{
	bool function = row->what != JUDGE_TOTAL;
	double least =
		sign > 0 ? row->least : log1p(ms->options->min_effect * (function ? FUNCTION : 1));

	if (sign * row->change < least)
		return false;
	if (!function)
		return true;
	/* a share that grew since the others shrank is none */
	return sign * row->of_program >= OF_PROGRAM &&
	       (!ms->m->common_changed || ms->m->cross_machine ||
		sign * row->absolute >= least / 2);
}

/* Do both halves of the sides, by time, say the same? */
static bool halves_agree(const struct measure *ms, const struct judge_row *row)
{
	const struct judge_metric *m = ms->m;
	double mean[2][2] = { { 0 } };
	size_t seen[2] = { 0 }, cnt[2][2] = { { 0 } };

	for (size_t i = 0; i < m->run_cnt; i++) {
		int side = m->news[i];
		int half = seen[side]++ >= m->cnt[side] / 2;

		mean[side][half] += row->z[i];
		cnt[side][half]++;
	}
	for (int half = 0; half < 2; half++)
		if (mean[1][half] / (double)cnt[1][half] - mean[0][half] / (double)cnt[0][half] <
		    log1p(ms->options->min_effect))
			return false;
	return true;
}

/*
 * A side that was recorded before the other one differs in whatever has changed meanwhile. In a block the order was drawn, which
 * may put one side first; in no two blocks of a set.
 */
static bool is_confounded(const struct measure *ms)
{
	const struct judge_metric *m = ms->m;
	const struct run_facts *drawn = &ms->runs->runs[m->runs[0]].facts;
	int64_t first[2] = { INT64_MAX, INT64_MAX }, last[2] = { INT64_MIN, INT64_MIN };
	bool one_block = drawn->block != FACTS_NONE;

	for (size_t i = 0; i < m->run_cnt; i++) {
		const struct runs_run *run = &ms->runs->runs[m->runs[i]];

		one_block &= run->facts.block == drawn->block && run->facts.seed == drawn->seed;
		if (!run->time_ns)
			continue;
		first[m->news[i]] = MIN(first[m->news[i]], run->time_ns);
		last[m->news[i]] = MAX(last[m->news[i]], run->time_ns);
	}
	/* of a side without a time nothing is known */
	if (first[0] > last[0] || first[1] > last[1])
		return false;
	return !one_block && (last[0] < first[1] || last[1] < first[0]);
}

/* Machines differ in what the whole costs. */
static bool says_nothing(const struct judge_metric *m, const struct judge_row *row)
{
	return m->cross_machine && !row->relative;
}

/* So many events more, at least, a run has: costs are per operation where runs count these. */
static double more_in_a_run(const struct measure *ms, const struct judge_row *row)
{
	const struct judge_metric *m = ms->m;
	uint64_t ops = FACTS_NONE;

	for (size_t i = 0; i < m->run_cnt; i++) {
		const struct runs_run *run = &ms->runs->runs[m->runs[i]];

		/* a build is several, and has what all of them did */
		if (run->facts.ops != FACTS_NONE)
			ops = MIN(ops, run->facts.ops / run->parts);
	}
	return (row->now - row->base) * (ops == FACTS_NONE ? 1 : (double)ops);
}

static bool is_worse(const struct measure *ms, const struct judge_row *row)
{
	const struct judge_metric *m = ms->m;
	const struct runs_metric *metric = &ms->runs->metrics[m->metric];

	if (row->exact)
		return row->exact_differs && is_enough(ms, row, 1) &&
		       (strcmp(metric->unit, "count") != 0 || metric->events ||
			more_in_a_run(ms, row) >= ALLOCATIONS);
	if (m->one_run || says_nothing(m, row))
		return false;
	if (!(row->p <= m->alpha * (1 + 1e-9)) || !is_enough(ms, row, 1))
		return false;
	if (!m->confounded)
		return true;
	return row->relative && row->change >= log1p(CONFOUNDED * ms->options->min_effect) &&
	       halves_agree(ms, row);
}

static bool is_better(const struct measure *ms, const struct judge_row *row)
{
	if (row->exact)
		return row->exact_differs && is_enough(ms, row, -1);
	return !ms->m->one_run && !says_nothing(ms->m, row) && !ms->m->confounded &&
	       row->p_better <= ms->m->alpha * (1 + 1e-9) && is_enough(ms, row, -1);
}

/* The gate's change, or what is no regression of a row that has none. */
static double target_of(const struct measure *ms, const struct judge_row *row)
{
	if (row->target > 0)
		return row->target;
	return fmax(ms->options->min_effect, 0.05);
}

static bool is_ok(const struct measure *ms, const struct judge_row *row)
{
	if (row->exact)
		return true;
	/* what is counted one by one and the same on both sides is so in all runs */
	if (ms->m->one_run)
		return ms->m->counted && row->base == row->now;
	return !ms->m->confounded && !says_nothing(ms->m, row) &&
	       row->at_most < log1p(target_of(ms, row));
}

/* How many standard errors a change has to be, to be seen: as strict as the test of all rows together, which
 * is no stricter than Bonferroni's. */
static double threshold(const struct measure *ms, double df)
{
	const struct judge_metric *m = ms->m;
	double z = stats_t_quantile(m->alpha / (double)m->row_cnt, df);

	if (isfinite(m->critical))
		z = fmin(z, m->critical * sqrt(design_weight(&ms->design)));
	return fmax(z, stats_t_quantile(m->alpha, df));
}

/* Runs a side that find a change of the gate's size, and show that there is none. */
static uint64_t missing(const struct measure *ms, const struct judge_row *row)
{
	double weight = design_weight(&ms->design), variance = row->error * row->error * weight;
	double target = log1p(target_of(ms, row)), z, n;

	/* two runs that agree show that its number does not vary */
	if (ms->m->one_run && ms->m->counted && !ms->runs->metrics[ms->m->metric].events)
		return 1;
	z = threshold(ms, INFINITY) + stats_t_quantile(POWER, INFINITY);
	n = ceil(2 * variance * z * z / (target * target)) - 2 * weight;
	if (!(n < JUDGE_MANY))
		return JUDGE_MANY;
	return (uint64_t)fmax(2, n);
}

/* The smallest change that these runs show nine times out of ten: sure enough, and estimated large enough. */
static double detectable(const struct measure *ms, const struct judge_row *row)
{
	const struct judge_metric *m = ms->m;

	if (row->exact)
		return row->least;
	if (m->one_run || m->confounded || !(row->error > 0) || !(row->df > 0) ||
	    m->least_p > m->alpha || says_nothing(m, row))
		return NAN;
	return fmax(threshold(ms, row->df) * row->error, row->least) +
	       stats_t_quantile(POWER, row->df) * row->error;
}

/* Of an estimated change: smaller ones are no regression. */
static double least_change(const struct measure *ms, const struct judge_row *row)
{
	double least = ms->options->min_effect * (row->what == JUDGE_TOTAL ? 1 : FUNCTION);

	return log1p(row->target > 0 ? fmax(least, GATE * row->target) : least);
}

static int decide(const struct measure *ms, struct judge_row *row)
{
	int moved;

	row->least = least_change(ms, row);
	row->detectable = detectable(ms, row);
	row->moved_from = row->moved_within = UINT32_MAX;
	if (is_worse(ms, row)) {
		moved = moved_find(ms, row);
		row->verdict = moved > 0 ? JUDGE_MOVED : JUDGE_REGRESSED;
		return MIN(moved, 0);
	}
	if (is_better(ms, row))
		row->verdict = JUDGE_IMPROVED;
	else if (is_ok(ms, row))
		row->verdict = JUDGE_OK;
	else
		row->verdict = JUDGE_CANNOT_TELL;
	row->more = row->verdict == JUDGE_CANNOT_TELL ? missing(ms, row) : 0;
	return 0;
}

/* ---- what is because of what ---- */

/* Of each function how much of its cost goes through the row, as a share of the row's. */
static void go_through(const struct measure *ms, const struct judge_row *row, double *shares)
{
	const struct runs *r = ms->runs;
	struct stack_set of = measure_stacks(ms, row);
	double all = 0;

	memset(shares, 0, r->function_cnt * sizeof(*shares));
	for (size_t i = 0; i < of.cnt; i++)
		all += ms->weights[of.ids[i]];
	for (size_t i = 0; i < of.cnt; i++) {
		const struct runs_stack *s = &r->stacks[of.ids[i]];
		uint32_t k = 0;

		while (r->frames[s->at + k] != row->function)
			k++;
		for (; k < s->cnt; k++)
			shares[r->frames[s->at + k]] += ms->weights[of.ids[i]] / all;
	}
}

static double grown(const struct judge_row *row)
{
	return row->level[1] - row->level[0];
}

/* One regression is one row: the deepest that holds most of what those above it have more. What no gate is on
 * explains nothing that one is on: that would be said nowhere. */
static int explain(struct measure *ms)
{
	struct judge_metric *m = ms->m;
	double *shares = calloc(ms->runs->function_cnt + 1, sizeof(*shares));

	for (size_t k = 0; shares && k < m->row_cnt; k++) {
		const struct judge_row *b = &m->rows[k];

		if (b->verdict != JUDGE_REGRESSED || b->what == JUDGE_TOTAL)
			continue;
		go_through(ms, b, shares);
		for (size_t i = 0; i < m->row_cnt; i++) {
			struct judge_row *a = &m->rows[i];

			if (i == k || a->verdict != JUDGE_REGRESSED || a->what == JUDGE_SELF ||
			    grown(b) < EXPLAINS * grown(a) || (a->target > 0 && !(b->target > 0)))
				continue;
			if ((a->what == JUDGE_TOTAL || shares[a->function] > EXPLAINS) &&
			    (a->because == JUDGE_NONE ||
			     m->rows[a->because].level[1] > b->level[1]))
				a->because = k;
		}
	}
	free(shares);
	return shares ? 0 : -ENOMEM;
}

static int rank_of(const struct judge_row *row)
{
	static const int ranks[] = {
		[JUDGE_REGRESSED] = 0, [JUDGE_MOVED] = 1,	[JUDGE_IMPROVED] = 2,
		[JUDGE_OK] = 3,	       [JUDGE_CANNOT_TELL] = 3,
	};

	return row->what == JUDGE_TOTAL ? -1 : ranks[row->verdict];
}

static int by_impact(const void *a, const void *b)
{
	const struct judge_row *x = a, *y = b;
	double dx = fabs(x->of_program), dy = fabs(y->of_program);

	if (rank_of(x) != rank_of(y))
		return rank_of(x) - rank_of(y);
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return (int)x->what - (int)y->what ?:
		       (x->function > y->function) - (x->function < y->function);
}

/* The gravest of what counts: a small function of which nothing can be told does not, unless a gate names
 * it. */
static enum judge_verdict verdict_of(const struct judge_metric *m)
{
	enum judge_verdict ret = JUDGE_OK;

	for (size_t i = 0; i < m->row_cnt; i++) {
		const struct judge_row *row = &m->rows[i];
		bool total = row->what == JUDGE_TOTAL, counts = row->target > 0;

		if (row->verdict == JUDGE_IMPROVED)
			counts = total;
		if (row->verdict == JUDGE_CANNOT_TELL)
			counts &= total || row->named;
		if (counts)
			ret = MAX(ret, row->verdict);
	}
	return ret;
}

int verdict_rows(struct measure *ms)
{
	struct judge_metric *m = ms->m;
	int err = 0;

	m->confounded = is_confounded(ms);
	for (size_t i = 0; !err && i < m->row_cnt; i++)
		err = decide(ms, &m->rows[i]);
	as_is_merge(m);
	qsort(m->rows, m->row_cnt, sizeof(*m->rows), by_impact);
	err = err ?: explain(ms);
	if (!err)
		m->verdict = verdict_of(m);
	return err;
}
