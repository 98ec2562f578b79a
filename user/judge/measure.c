// SPDX-License-Identifier: BSD-2-Clause
/* What is looked at: costs of functions in all runs, those that are large enough, and of chains of
 * callers with the same cost the deepest. Nothing here knows the side of a run. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/parts.h"

#define MIN_SAMPLES 10 /* in a run, on average */
#define SAME 0.01      /* of the total: costs that differ by less in every run are the same */
#define CUM_SHARE 2    /* times --min-share */

struct edge {
	uint32_t caller, callee;
	double weight;
};

const struct runs_column *measure_column(const struct measure *ms, size_t run)
{
	return &ms->runs->runs[ms->m->runs[run]].columns[ms->m->metric];
}

double measure_cost(const struct measure *ms, size_t run, double value)
{
	/* half a sample more makes what is not there finite */
	return (value + ms->halves[run]) / (ms->sums[run] + 2 * ms->halves[run]) * ms->totals[run];
}

void measure_done(struct measure *ms)
{
	free(ms->totals);
	free(ms->sums);
	free(ms->halves);
	free(ms->self);
	free(ms->cum);
	free(ms->self_samples);
	free(ms->cum_samples);
	free(ms->scratch);
	free(ms->common);
	free(ms->weights);
	free(ms->self_ids);
	free(ms->self_shares);
	free(ms->deviations);
	free(ms->sorted);
	free(ms->leaves);
	free(ms->leaves_in);
}

/* ---- runs ---- */

/* Blocks, if each has both sides. */
static int find_blocks(struct measure *ms)
{
	struct judge_metric *m = ms->m;
	const struct runs *r = ms->runs;
	bool whole = true;

	m->starts = calloc(m->run_cnt + 1, sizeof(*m->starts));
	if (!m->starts)
		return -ENOMEM;
	for (size_t i = 0; i < m->run_cnt; i++) {
		uint64_t block = r->runs[m->runs[i]].facts.block;

		whole &= block != FACTS_NONE;
		if (i && block == r->runs[m->runs[i - 1]].facts.block)
			continue;
		m->starts[m->block_cnt++] = i;
	}
	m->starts[m->block_cnt] = m->run_cnt;
	for (size_t b = 0; b < m->block_cnt; b++) {
		size_t news = 0;

		for (size_t i = m->starts[b]; i < m->starts[b + 1]; i++)
			news += m->news[i];
		whole &= news && news < m->starts[b + 1] - m->starts[b];
	}
	if (whole)
		return 0;
	m->block_cnt = 1;
	m->starts[0] = 0;
	m->starts[1] = m->run_cnt;
	return 0;
}

static int find_runs(struct measure *ms)
{
	struct judge_metric *m = ms->m;
	const struct runs *r = ms->runs;

	m->runs = calloc(r->run_cnt, sizeof(*m->runs));
	m->news = calloc(r->run_cnt, sizeof(*m->news));
	if (!m->runs || !m->news)
		return -ENOMEM;
	for (size_t i = 0; i < r->run_cnt; i++) {
		if (!r->runs[i].columns[m->metric].there)
			continue;
		m->runs[m->run_cnt] = i;
		m->news[m->run_cnt++] = r->runs[i].side == RUNS_NEW;
		m->cnt[r->runs[i].side]++;
	}
	m->one_run = m->cnt[0] < 2 || m->cnt[1] < 2;
	return find_blocks(ms);
}

static int read_totals(struct measure *ms, char *err, size_t err_sz)
{
	struct judge_metric *m = ms->m;
	const struct runs_metric *metric = &ms->runs->metrics[m->metric];

	m->exact_totals = !strcmp(metric->name, "cpu") && !strcmp(metric->unit, "nanoseconds");
	for (size_t i = 0; i < m->run_cnt; i++)
		m->exact_totals &= ms->runs->runs[m->runs[i]].facts.cpu_ns != FACTS_NONE;
	for (size_t i = 0; i < m->run_cnt; i++) {
		const struct runs_run *run = &ms->runs->runs[m->runs[i]];
		const struct runs_column *c = measure_column(ms, i);

		if (!(c->value > 0))
			return util_fail(-EINVAL, err, err_sz, "'%s' has no samples of '%s'",
					 run->path, metric->name);
		ms->sums[i] = c->value;
		ms->halves[i] = c->count > 0 ? c->value / c->count / 2 : c->value / 2;
		ms->totals[i] = m->exact_totals ? (double)run->facts.cpu_ns : c->value;
		if (run->facts.ops != FACTS_NONE)
			ms->totals[i] /= (double)run->facts.ops;
	}
	return 0;
}

/* ---- functions ---- */

static void add_costs(struct measure *ms, size_t run)
{
	const struct runs *r = ms->runs;
	const struct runs_column *c = measure_column(ms, run);
	size_t n = ms->m->run_cnt;

	for (size_t i = 0; i < c->cnt; i++) {
		const struct runs_cost *cost = &c->costs[i];
		const struct runs_stack *s = &r->stacks[cost->stack];

		ms->self[r->frames[s->at] * n + run] += cost->value;
		ms->self_samples[r->frames[s->at]] += cost->count / (double)n;
		ms->weights[cost->stack] += cost->value / ms->sums[run];
		ms->leaves[r->frames[s->at]] += cost->value / ms->sums[run];
		for (uint32_t k = 0; k < s->cnt; k++) {
			ms->cum[r->frames[s->at + k] * n + run] += cost->value;
			ms->cum_samples[r->frames[s->at + k]] += cost->count / (double)n;
		}
	}
}

static bool is_large(const struct measure *ms, const double *costs, double samples, double share)
{
	double sum = 0;

	for (size_t i = 0; i < ms->m->run_cnt; i++)
		sum += costs[i] / ms->sums[i];
	return samples >= MIN_SAMPLES && sum / (double)ms->m->run_cnt >= share;
}

/* b NULL: the whole. */
static bool is_same(const struct measure *ms, const double *a, const double *b)
{
	for (size_t i = 0; i < ms->m->run_cnt; i++)
		if (fabs(a[i] - (b ? b[i] : ms->sums[i])) >= SAME * ms->sums[i])
			return false;
	return true;
}

/* The callee through which most of a function's cost goes, of each function. */
static int heaviest_callees(const struct measure *ms, uint32_t *callees)
{
	const struct runs *r = ms->runs;
	double *best = calloc(r->function_cnt, sizeof(*best));
	struct hash edges;
	int err = best ? 0 : -ENOMEM;

	hash__init(&edges, sizeof(struct edge), 2 * sizeof(uint32_t), HASH_MAX);
	for (size_t f = 0; f < r->function_cnt; f++)
		callees[f] = UINT32_MAX;
	for (size_t run = 0; !err && run < ms->m->run_cnt; run++) {
		const struct runs_column *c = measure_column(ms, run);

		for (size_t i = 0; !err && i < c->cnt; i++) {
			const struct runs_stack *s = &r->stacks[c->costs[i].stack];

			for (uint32_t k = 0; !err && k + 1 < s->cnt; k++) {
				const uint32_t key[2] = { r->frames[s->at + k + 1],
							  r->frames[s->at + k] };
				bool is_new;
				struct edge *e = hash__insert(&edges, key, &is_new);

				if (!e) {
					err = -ENOMEM;
					break;
				}
				e->weight += c->costs[i].value / ms->sums[run];
				/* it only grows: the one that is ahead at the end is the heaviest */
				if (e->weight > best[e->caller]) {
					best[e->caller] = e->weight;
					callees[e->caller] = e->callee;
				}
			}
		}
	}
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

		row->costs[i] = what == JUDGE_TOTAL ? ms->totals[i] :
						      measure_cost(ms, i, of[function * n + i]);
		row->samples += what == JUDGE_TOTAL ? measure_column(ms, i)->count / (double)n : 0;
	}
	if (what != JUDGE_TOTAL)
		row->samples = (what == JUDGE_SELF ? ms->self_samples : ms->cum_samples)[function];
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

static int add_rows(struct measure *ms)
{
	const struct runs *r = ms->runs;
	size_t n = ms->m->run_cnt;
	double share = ms->options->min_share;
	uint32_t *callees = calloc(r->function_cnt + 1, sizeof(*callees));
	int err = callees ? heaviest_callees(ms, callees) : -ENOMEM;

	ms->m->rows = calloc(2 * r->function_cnt + 1 + JUDGE_GATES_MAX, sizeof(*ms->m->rows));
	if (!ms->m->rows)
		err = -ENOMEM;
	err = err ?: add_row(ms, JUDGE_TOTAL, 0);
	for (uint32_t f = 0; !err && f < r->function_cnt; f++)
		if (is_large(ms, ms->self + f * n, ms->self_samples[f], share))
			err = add_row(ms, JUDGE_SELF, f);
	for (uint32_t f = 0; !err && f < r->function_cnt; f++)
		if (is_large(ms, ms->cum + f * n, ms->cum_samples[f], CUM_SHARE * share))
			err = add_cum(ms, callees, f);
	free(callees);
	return err ?: add_named(ms);
}

int measure_fill(struct measure *ms, char *err, size_t err_sz)
{
	size_t functions = ms->runs->function_cnt, n;
	int ret = find_runs(ms);

	if (ret)
		return ret;
	n = ms->m->run_cnt;
	ms->design = (struct design){ n, ms->m->block_cnt, ms->m->news, ms->m->starts };
	ms->totals = calloc(n, sizeof(double));
	ms->sums = calloc(n, sizeof(double));
	ms->halves = calloc(n, sizeof(double));
	ms->scratch = calloc(n, sizeof(double));
	ms->common = calloc(n, sizeof(double));
	ms->weights = calloc(ms->runs->stack_cnt + 1, sizeof(double));
	ms->leaves = calloc(functions + 1, sizeof(double));
	ms->leaves_in = calloc(functions + 1, sizeof(double));
	ms->self = calloc(functions * n + 1, sizeof(double));
	ms->cum = calloc(functions * n + 1, sizeof(double));
	ms->self_samples = calloc(functions + 1, sizeof(double));
	ms->cum_samples = calloc(functions + 1, sizeof(double));
	if (!ms->totals || !ms->sums || !ms->halves || !ms->scratch || !ms->self || !ms->cum ||
	    !ms->self_samples || !ms->cum_samples || !ms->common || !ms->weights || !ms->leaves ||
	    !ms->leaves_in)
		return -ENOMEM;
	ret = read_totals(ms, err, err_sz);
	for (size_t i = 0; !ret && i < n; i++)
		add_costs(ms, i);
	return ret ?: add_rows(ms);
}
