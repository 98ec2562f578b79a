// SPDX-License-Identifier: BSD-2-Clause
/* Costs in all runs: the totals, and those of functions and stacks. Nothing here knows the side of a run. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/parts.h"

const struct runs_column *measure_column(const struct measure *ms, size_t run)
{
	return &ms->runs->runs[ms->m->runs[run]].columns[ms->m->metric];
}

double measure_cost(const struct measure *ms, size_t run, double value)
{
	/* half a sample more makes what is not there finite */
	return (value + ms->halves[run]) / (ms->sums[run] + 2 * ms->halves[run]) * ms->totals[run];
}

static void free_samples(struct measure *ms)
{
	free(ms->self_samples);
	free(ms->cum_samples);
	ms->self_samples = ms->cum_samples = NULL;
}

void measure_done(struct measure *ms)
{
	free_samples(ms);
	free(ms->totals);
	free(ms->sums);
	free(ms->halves);
	free(ms->self);
	free(ms->cum);
	free(ms->scratch);
	free(ms->common);
	free(ms->weights);
	free(ms->starts);
	free(ms->costs);
	free(ms->self_ids);
	free(ms->self_shares);
	free(ms->deviations);
	free(ms->sorted);
	free(ms->leaves);
	free(ms->leaves_in);
}

struct stack_set measure_stacks(const struct measure *ms, const struct judge_row *row)
{
	return (row->what == JUDGE_SELF ? stack_index__leaves : stack_index__with)(ms->index,
										   row->function);
}

/* ---- runs ---- */

/* Does the run belong to the block of the one before it? Those of two sets may have the same number. */
static bool is_same_block(const struct run_facts *before, const struct run_facts *f)
{
	return before->block == f->block && before->seed == f->seed;
}

/* Has one of the blocks both sides? One that was interrupted may have one: it tells how much runs differ, and not
 * how much sides do. */
static bool have_both(const struct judge_metric *m)
{
	for (size_t b = 0; b < m->block_cnt; b++) {
		size_t news = 0;

		for (size_t i = m->starts[b]; i < m->starts[b + 1]; i++)
			news += m->news[i];
		if (news && news < m->starts[b + 1] - m->starts[b])
			return true;
	}
	return false;
}

/* Blocks, if all runs have one and they leave something to compare. */
static int find_blocks(struct measure *ms)
{
	struct judge_metric *m = ms->m;
	const struct runs *r = ms->runs;
	bool all = true;

	m->starts = calloc(m->run_cnt + 1, sizeof(*m->starts));
	if (!m->starts)
		return -ENOMEM;
	for (size_t i = 0; i < m->run_cnt; i++) {
		const struct run_facts *f = &r->runs[m->runs[i]].facts;

		all &= f->block != FACTS_NONE;
		if (i && is_same_block(&r->runs[m->runs[i - 1]].facts, f))
			continue;
		m->starts[m->block_cnt++] = i;
	}
	m->starts[m->block_cnt] = m->run_cnt;
	/* each takes a degree of freedom, and the difference of the sides another one */
	if (all && have_both(m) && m->run_cnt > m->block_cnt + 1)
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

	m->counted = strcmp(metric->unit, "nanoseconds") != 0;
	m->exact_totals = !strcmp(metric->name, "cpu") && !strcmp(metric->unit, "nanoseconds");
	m->exact_totals |= metric->whole;
	m->cross_machine = ms->runs->machines_differ;
	for (size_t i = 0; i < m->run_cnt; i++) {
		m->exact_totals &=
			metric->whole || ms->runs->runs[m->runs[i]].facts.cpu_ns != FACTS_NONE;
		m->counted &= measure_column(ms, i)->exact;
	}
	for (size_t i = 0; i < m->run_cnt; i++) {
		const struct runs_run *run = &ms->runs->runs[m->runs[i]];
		const struct runs_column *c = measure_column(ms, i);

		if (!(c->value > 0))
			return util_fail(-EINVAL, err, err_sz, "'%s' has no samples of '%s'",
					 run->path, metric->name);
		ms->sums[i] = c->value;
		ms->halves[i] = c->count > 0 ? c->value / c->count / 2 : c->value / 2;
		ms->totals[i] =
			m->exact_totals && !metric->whole ? (double)run->facts.cpu_ns : c->value;
		if (run->facts.ops != FACTS_NONE)
			ms->totals[i] /= (double)run->facts.ops;
	}
	return 0;
}

/* ---- functions ---- */

/* Of a function in a run, with all that it calls. */
struct sum {
	double cost, samples;
};

static void add_stacks(struct measure *ms, size_t run, struct sum *sums)
{
	const struct runs *r = ms->runs;
	const struct runs_column *c = measure_column(ms, run);
	size_t n = ms->m->run_cnt;

	for (size_t i = 0; i < c->cnt; i++) {
		const struct runs_cost *cost = &c->costs[i];
		const struct runs_stack *s = &r->stacks[cost->stack];
		const uint32_t *frames = r->frames + s->at;

		ms->weights[cost->stack] += cost->value / ms->sums[run];
		ms->leaves[*frames] += cost->value / ms->sums[run];
		ms->self[*frames * n + run] += cost->value;
		ms->self_samples[*frames * n + run] += cost->count;
		for (uint32_t k = 0; k < s->cnt; k++) {
			sums[frames[k]].cost += cost->value;
			sums[frames[k]].samples += cost->count;
		}
	}
}

static int add_costs(struct measure *ms)
{
	size_t functions = ms->runs->function_cnt, n = ms->m->run_cnt;
	struct sum *sums = calloc(functions + 1, sizeof(*sums));

	for (size_t run = 0; sums && run < n; run++) {
		memset(sums, 0, functions * sizeof(*sums));
		add_stacks(ms, run, sums);
		for (size_t f = 0; f < functions; f++) {
			ms->cum[f * n + run] = sums[f].cost;
			ms->cum_samples[f * n + run] = sums[f].samples;
		}
	}
	free(sums);
	return sums ? 0 : -ENOMEM;
}

/* The costs of all runs once more, by stack. */
static int turn_costs(struct measure *ms)
{
	size_t cnt = 0, n = ms->m->run_cnt;

	for (size_t run = 0; run < n; run++)
		cnt += measure_column(ms, run)->cnt;
	ms->starts = calloc(ms->runs->stack_cnt + 2, sizeof(*ms->starts));
	ms->costs = calloc(cnt + 1, sizeof(*ms->costs));
	if (!ms->starts || !ms->costs)
		return -ENOMEM;
	for (size_t run = 0; run < n; run++)
		for (size_t i = 0; i < measure_column(ms, run)->cnt; i++)
			ms->starts[measure_column(ms, run)->costs[i].stack + 2]++;
	for (size_t s = 2; s < ms->runs->stack_cnt + 2; s++)
		ms->starts[s] += ms->starts[s - 1];
	for (size_t run = 0; run < n; run++)
		for (size_t i = 0; i < measure_column(ms, run)->cnt; i++) {
			const struct runs_cost *c = &measure_column(ms, run)->costs[i];

			ms->costs[ms->starts[c->stack + 1]++] =
				(struct stack_cost){ (uint32_t)run, c->value, c->count };
		}
	return 0;
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
	ms->self_samples = calloc(functions * n + 1, sizeof(double));
	ms->cum_samples = calloc(functions * n + 1, sizeof(double));
	if (!ms->totals || !ms->sums || !ms->halves || !ms->scratch || !ms->self || !ms->cum ||
	    !ms->self_samples || !ms->cum_samples || !ms->common || !ms->weights || !ms->leaves ||
	    !ms->leaves_in)
		return -ENOMEM;
	ret = read_totals(ms, err, err_sz);
	ret = ret ?: add_costs(ms) ?: turn_costs(ms) ?: measure_rows(ms);
	/* as large as the costs: what rows need of them they have */
	free_samples(ms);
	return ret;
}
