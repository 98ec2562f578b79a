// SPDX-License-Identifier: BSD-2-Clause
/*
 * Builds of a side that differ in their layout alone: a build runs as its layout lets it, however often it runs.
 * So it is builds that are drawn, and not runs, and what a test may deal out anew: all runs of a build are one.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "judge/runs_parts.h"

/* The unit that a run belongs to, among the first cnt; NULL: it is the first one of its build. */
static struct runs_run *find_unit(struct runs *r, size_t cnt, const struct runs_run *run)
{
	for (size_t i = 0; i < cnt; i++)
		if (r->runs[i].side == run->side && r->runs[i].facts.build == run->facts.build)
			return &r->runs[i];
	return NULL;
}

static void add_number(uint64_t *to, uint64_t number)
{
	*to = *to == FACTS_NONE || number == FACTS_NONE ? FACTS_NONE : *to + number;
}

static void add_facts(struct run_facts *to, const struct run_facts *f)
{
	/* runs of a build are in several blocks, of which the first one tells which builds ran together */
	to->block = MIN(to->block, f->block);
	to->slot = FACTS_NONE;
	add_number(&to->ops, f->ops);
	add_number(&to->cpu_ns, f->cpu_ns);
	add_number(&to->wall_ns, f->wall_ns);
	add_number(&to->other_ns, f->other_ns);
	add_number(&to->seen, f->seen);
	add_number(&to->lost, f->lost);
}

static int add_column(struct runs_column *to, const struct runs_column *c)
{
	/* what only some runs have is not known of the build */
	to->there &= c->there;
	to->exact &= c->exact;
	to->by_chance &= c->by_chance;
	if (util_reserve(&to->costs, &to->cap, to->cnt + c->cnt, sizeof(*to->costs)))
		return -ENOMEM;
	for (size_t i = 0; i < c->cnt; i++)
		to->costs[to->cnt++] = c->costs[i];
	to->value += c->value;
	to->count += c->count;
	return 0;
}

static int add_run(struct runs_run *to, const struct runs_run *run)
{
	int err = 0;

	for (size_t m = 0; !err && m < RUNS_METRICS_MAX; m++)
		err = add_column(&to->columns[m], &run->columns[m]);
	add_facts(&to->facts, &run->facts);
	if (!to->time_ns || (run->time_ns && run->time_ns < to->time_ns))
		to->time_ns = run->time_ns;
	to->parts++;
	return err;
}

static void divide_number(uint64_t *number, uint64_t by)
{
	if (*number != FACTS_NONE)
		*number = (*number + by / 2) / by;
}

/* From sums to what a run costs. Operations divide them anyway; how much was sampled stays what it is. */
static void make_mean(struct runs_run *unit)
{
	if (unit->facts.ops != FACTS_NONE)
		return;
	for (size_t m = 0; m < RUNS_METRICS_MAX; m++) {
		struct runs_column *c = &unit->columns[m];

		for (size_t i = 0; i < c->cnt; i++)
			c->costs[i].value /= unit->parts;
		c->value /= unit->parts;
	}
	divide_number(&unit->facts.cpu_ns, unit->parts);
	divide_number(&unit->facts.wall_ns, unit->parts);
	divide_number(&unit->facts.other_ns, unit->parts);
}

int runs__join_builds(struct runs *r)
{
	size_t cnt = 0;
	int err = 0;

	if (!r->run_cnt || r->runs[0].facts.build == FACTS_NONE)
		return 0;
	r->are_builds = true;
	for (size_t i = 0; i < r->run_cnt; i++) {
		struct runs_run run = r->runs[i], *unit = find_unit(r, cnt, &run);

		if (!unit || err) {
			r->runs[cnt++] = run;
			continue;
		}
		err = add_run(unit, &run);
		runs__free_run(&run);
	}
	r->run_cnt = cnt;
	for (size_t i = 0; i < cnt; i++)
		make_mean(&r->runs[i]);
	return err;
}
