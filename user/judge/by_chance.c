// SPDX-License-Identifier: BSD-2-Clause
/*
 * One run a side of samples that come one by one, as those of allocations do: given how many both sides have
 * together, those of the new side are binomial. J. Przyborowski, H. Wilenski, Homogeneity of Results in
 * Testing Samples from Poisson Series (1940). What runs differ by otherwise is not in it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "judge/maxt.h"
#include "judge/parts.h"
#include "judge/stats.h"

/* Operations of a side; runs of the same work without their number count as one each. */
static void add_operations(const struct measure *ms, double ret[2])
{
	for (size_t i = 0; i < ms->m->run_cnt; i++) {
		const struct run_facts *f = &ms->runs->runs[ms->m->runs[i]].facts;

		ret[ms->m->news[i]] += f->ops == FACTS_NONE ? 1 : (double)f->ops;
	}
}

/* Samples of a side. */
static void count_samples(const struct measure *ms, const struct judge_row *row, double ret[2])
{
	struct stack_set in;

	ret[0] = ret[1] = 0;
	if (row->what == JUDGE_TOTAL) {
		for (size_t i = 0; i < ms->m->run_cnt; i++)
			ret[ms->m->news[i]] += measure_column(ms, i)->count;
		return;
	}
	in = measure_stacks(ms, row);
	for (size_t i = 0; i < in.cnt; i++)
		for (size_t k = ms->starts[in.ids[i]]; k < ms->starts[in.ids[i] + 1]; k++)
			ret[ms->m->news[ms->costs[k].run]] += ms->costs[k].count;
}

static bool applies(const struct measure *ms)
{
	for (size_t i = 0; i < ms->m->run_cnt; i++)
		if (!measure_column(ms, i)->by_chance)
			return false;
	return ms->m->one_run;
}

int by_chance_test(struct measure *ms)
{
	struct judge_metric *m = ms->m;
	double operations[2] = { 0 }, samples[2], share, *p;
	int err;

	if (!applies(ms))
		return 0;
	p = calloc(2 * m->row_cnt, sizeof(*p));
	if (!p)
		return -ENOMEM;
	add_operations(ms, operations);
	share = operations[1] / (operations[0] + operations[1]);
	for (size_t i = 0; i < m->row_cnt; i++) {
		uint64_t base, now;

		count_samples(ms, &m->rows[i], samples);
		base = (uint64_t)llround(samples[0]);
		now = (uint64_t)llround(samples[1]);
		p[i] = stats_binomial_upper(now, base + now, share);
		p[m->row_cnt + i] = stats_binomial_upper(base, base + now, 1 - share);
	}
	err = maxt_holm(p, m->row_cnt) ?: maxt_holm(p + m->row_cnt, m->row_cnt);
	for (size_t i = 0; !err && i < m->row_cnt; i++) {
		m->rows[i].p = p[i];
		m->rows[i].p_better = p[m->row_cnt + i];
	}
	m->binomial = !err;
	free(p);
	return err;
}
