// SPDX-License-Identifier: BSD-2-Clause
/* What is looked at: functions that are large enough, and of chains of callers with the same cost the
 * deepest. Nothing here knows the side of a run. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "judge/parts.h"

#define MIN_SAMPLES 10 /* in a run: see most_samples() */
#define SAME 0.01      /* of the total: costs that differ by less in every run are the same */
#define CUM_SHARE 2    /* times --min-share */

struct edge {
	uint32_t caller, callee;
	double weight;
};

static int most_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* The mean of as many runs as the smaller side has, of those that have the most: what is new or gone is in one
 * side's alone, whichever that is. */
static double most_samples(const struct measure *ms, const double *samples)
{
	size_t cnt = MIN(ms->m->cnt[0], ms->m->cnt[1]);
	double sum = 0;

	memcpy(ms->scratch, samples, ms->m->run_cnt * sizeof(*samples));
	qsort(ms->scratch, ms->m->run_cnt, sizeof(*samples), most_first);
	for (size_t i = 0; i < cnt; i++)
		sum += ms->scratch[i];
	return sum / (double)cnt;
}

static bool is_large(const struct measure *ms, const double *costs, const double *samples,
		     double share)
{
	double sum = 0;

	for (size_t i = 0; i < ms->m->run_cnt; i++)
		sum += costs[i] / ms->sums[i];
	return sum / (double)ms->m->run_cnt >= share && most_samples(ms, samples) >= MIN_SAMPLES;
}

/* b NULL: the whole. */
static bool is_same(const struct measure *ms, const double *a, const double *b)
{
	for (size_t i = 0; i < ms->m->run_cnt; i++)
		if (fabs(a[i] - (b ? b[i] : ms->sums[i])) >= SAME * ms->sums[i])
			return false;
	return true;
}

static bool is_large_cum(const struct measure *ms, uint32_t f)
{
	size_t at = f * ms->m->run_cnt;

	return is_large(ms, ms->cum + at, ms->cum_samples + at, CUM_SHARE * ms->options->min_share);
}

/* Adds what a stack says of who calls whom. */
static int add_edges(const struct measure *ms, size_t stack, struct hash *edges, const bool *large,
		     double *best, uint32_t *callees)
{
	const struct runs_stack *s = &ms->runs->stacks[stack];
	const uint32_t *frames = ms->runs->frames + s->at;

	for (uint32_t k = 0; k + 1 < s->cnt; k++) {
		const uint32_t key[2] = { frames[k + 1], frames[k] };
		bool is_new;
		struct edge *e;

		if (!large[key[0]] || !large[key[1]])
			continue;
		e = hash__insert(edges, key, &is_new);
		if (!e)
			return -ENOMEM;
		e->weight += ms->weights[stack];
		/* it only grows: the one that is ahead at the end is the heaviest */
		if (e->weight > best[e->caller]) {
			best[e->caller] = e->weight;
			callees[e->caller] = e->callee;
		}
	}
	return 0;
}

/* The large callee through which most of a function's cost goes, of each function that is large. */
static int heaviest_callees(const struct measure *ms, const bool *large, uint32_t *callees)
{
	const struct runs *r = ms->runs;
	double *best = calloc(r->function_cnt, sizeof(*best));
	struct hash edges;
	int err = best ? 0 : -ENOMEM;

	hash__init(&edges, sizeof(struct edge), 2 * sizeof(uint32_t), HASH_MAX);
	for (size_t f = 0; f < r->function_cnt; f++)
		callees[f] = UINT32_MAX;
	for (size_t s = 0; !err && s < r->stack_cnt; s++)
		err = add_edges(ms, s, &edges, large, best, callees);
	hash__done(&edges);
	free(best);
	return err;
}

static int add_row(struct measure *ms, enum judge_what what, uint32_t function)
{
	struct judge_metric *m = ms->m;
	struct judge_row *row = &m->rows[m->row_cnt];
	size_t n = m->run_cnt;

	*row = (struct judge_row){ .what = what, .function = function, .because = JUDGE_NONE };
	row->costs = calloc(n, sizeof(double));
	row->z = calloc(n, sizeof(double));
	row->w = calloc(n, sizeof(double));
	m->row_cnt++;
	if (!row->costs || !row->z || !row->w)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const double *of = what == JUDGE_SELF ? ms->self : ms->cum;
		const double *samples = what == JUDGE_SELF ? ms->self_samples : ms->cum_samples;
		size_t at = function * n + i;

		row->costs[i] = what == JUDGE_TOTAL ? ms->totals[i] : measure_cost(ms, i, of[at]);
		row->samples += what == JUDGE_TOTAL ? measure_column(ms, i)->count : samples[at];
	}
	row->samples /= (double)n;
	return 0;
}

static int add_to_chain(struct judge_row *row, uint32_t function)
{
	uint32_t *chain = reallocarray(row->chain, row->chain_cnt + 1, sizeof(*chain));

	if (!chain)
		return -ENOMEM;
	row->chain = chain;
	chain[row->chain_cnt++] = function;
	return 0;
}

/* Goes from a function to its heaviest callee as long as that costs the same. *ret_self: the end of the
 * chain does all of it itself. */
static uint32_t end_of_chain(const struct measure *ms, const uint32_t *callees, uint32_t f,
			     bool *ret_self)
{
	size_t n = ms->m->run_cnt;
	uint32_t start = f;

	/* a circle has no end: no chain is longer than there are functions */
	for (size_t steps = 0; steps < ms->runs->function_cnt; steps++) {
		uint32_t next = callees[f];

		if (next == UINT32_MAX || !is_same(ms, ms->cum + f * n, ms->cum + next * n)) {
			*ret_self = is_same(ms, ms->cum + f * n, ms->self + f * n);
			return f;
		}
		f = next;
	}
	*ret_self = false;
	return start;
}

static struct judge_row *find_row(const struct judge_metric *m, enum judge_what what, uint32_t f)
{
	for (size_t i = 0; i < m->row_cnt; i++)
		if (m->rows[i].what == what && m->rows[i].function == f)
			return &m->rows[i];
	return NULL;
}

static int add_cum(struct measure *ms, const uint32_t *callees, uint32_t f)
{
	size_t n = ms->m->run_cnt;
	struct judge_row *row;
	bool self;
	uint32_t end;

	/* it is the total */
	if (is_same(ms, ms->cum + f * n, NULL))
		return add_to_chain(&ms->m->rows[0], f);
	end = end_of_chain(ms, callees, f, &self);
	row = find_row(ms->m, self ? JUDGE_SELF : JUDGE_CUM, end);
	if (self && !row)
		row = find_row(ms->m, JUDGE_CUM, end);
	if (!row) {
		int err = add_row(ms, JUDGE_CUM, end);

		if (err)
			return err;
		row = &ms->m->rows[ms->m->row_cnt - 1];
	}
	return f == end ? 0 : add_to_chain(row, f);
}

/* What a gate names is looked at however small it is. */
static int add_named(struct measure *ms)
{
	const struct runs *r = ms->runs;
	int err = 0;

	for (size_t g = 0; g < ms->options->gate_cnt; g++) {
		const struct judge_gate *gate = &ms->options->gates[g];

		if (!*gate->function || judge_gate_metric(r, gate) != ms->m->metric)
			continue;
		for (uint32_t f = 0; !err && f < r->function_cnt; f++)
			if (!strcmp(runs__name(r, f), gate->function) &&
			    !find_row(ms->m, JUDGE_CUM, f))
				err = add_row(ms, JUDGE_CUM, f);
	}
	return err;
}

int measure_rows(struct measure *ms)
{
	const struct runs *r = ms->runs;
	size_t n = ms->m->run_cnt;
	uint32_t *callees = calloc(r->function_cnt + 1, sizeof(*callees));
	bool *large = calloc(r->function_cnt + 1, sizeof(*large));
	int err = callees && large ? 0 : -ENOMEM;

	ms->m->rows = calloc(2 * r->function_cnt + 1 + JUDGE_GATES_MAX, sizeof(*ms->m->rows));
	if (!ms->m->rows)
		err = -ENOMEM;
	for (uint32_t f = 0; !err && f < r->function_cnt; f++)
		large[f] = is_large_cum(ms, f);
	err = err ?: heaviest_callees(ms, large, callees);
	err = err ?: add_row(ms, JUDGE_TOTAL, 0);
	for (uint32_t f = 0; !err && f < r->function_cnt; f++)
		if (is_large(ms, ms->self + f * n, ms->self_samples + f * n,
			     ms->options->min_share))
			err = add_row(ms, JUDGE_SELF, f);
	for (uint32_t f = 0; !err && f < r->function_cnt; f++)
		if (large[f])
			err = add_cum(ms, callees, f);
	free(callees);
	free(large);
	return err ?: add_named(ms);
}
