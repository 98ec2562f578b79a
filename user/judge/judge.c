// SPDX-License-Identifier: BSD-2-Clause
#include "judge/judge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/parts.h"
#include "judge/stats.h"

#define DEFAULT_EFFECT 0.05
/* Runs that last equally long and keep the processor equally busy do as much work as they can in a given
 * time: what they cost tells nothing. Coefficients of variation. */
#define BOXED_WALL 0.005
#define BOXED_BUSY 0.02
#define BOXED_RUNS 4

const char *judge_verdict_name(enum judge_verdict v)
{
	static const char *const names[] = {
		[JUDGE_OK] = "OK",
		[JUDGE_IMPROVED] = "IMPROVED",
		[JUDGE_MOVED] = "MOVED",
		[JUDGE_CANNOT_TELL] = "CANNOT TELL",
		[JUDGE_REGRESSED] = "REGRESSED",
	};

	return names[v];
}

void judge_free(struct judge_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->metric_cnt; i++) {
		struct judge_metric *m = &r->metrics[i];

		for (size_t k = 0; k < m->row_cnt; k++) {
			free(m->rows[k].chain);
			free(m->rows[k].costs);
			free(m->rows[k].z);
			free(m->rows[k].w);
		}
		free(m->rows);
		free(m->runs);
		free(m->news);
		free(m->starts);
	}
	free(r->metrics);
	free(r);
}

/* ---- what is to be judged ---- */

static bool is_common(const struct runs *r, size_t metric)
{
	bool there[2] = { false };

	for (size_t i = 0; i < r->run_cnt; i++)
		there[r->runs[i].side] |= r->runs[i].columns[metric].there;
	return there[RUNS_BASE] && there[RUNS_NEW];
}

/* What people call the files. Several kinds have a "delay": what it is of is told by the counts beside it. */
static const struct judge_alias aliases[] = {
	{ "heap", "alloc_space", "alloc_space" },
	{ "block", "delay", "contentions" },
	{ "mutex", "delay", "contentions" },
	{ "offcpu", "delay", "events" },
};

const struct judge_alias *judge_find_alias(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (!strcmp(name, aliases[i].name))
			return &aliases[i];
	return NULL;
}

/* -1: it is not there on both sides. */
static int find_common(const struct runs *r, const char *name)
{
	int ret = runs__find_metric(r, name);

	return ret >= 0 && is_common(r, (size_t)ret) ? ret : -1;
}

static int find_metric(const struct runs *r, const char *name)
{
	const struct judge_alias *alias = judge_find_alias(name);
	int ret = find_common(r, name);

	if (ret < 0 && alias && find_common(r, alias->beside) >= 0)
		ret = find_common(r, alias->type);
	return ret;
}

int judge_gate_metric(const struct runs *r, const struct judge_gate *g)
{
	int ret;

	if (*g->metric)
		return find_metric(r, g->metric);
	ret = find_metric(r, "cpu");
	if (ret < 0)
		ret = find_metric(r, "heap");
	for (size_t i = 0; ret < 0 && i < r->metric_cnt; i++)
		if (is_common(r, i))
			ret = (int)i;
	return ret;
}

static bool has_function(const struct runs *r, const char *name)
{
	for (uint32_t f = 0; f < r->function_cnt; f++)
		if (!strcmp(runs__name(r, f), name))
			return true;
	return false;
}

int judge_check_functions(const struct runs *r, const struct judge_options *options, char *err,
			  size_t err_sz)
{
	for (size_t i = 0; i < options->gate_cnt; i++)
		if (*options->gates[i].function && !has_function(r, options->gates[i].function))
			return util_fail(-EINVAL, err, err_sz,
					 "--fail-on: there is no function '%s' on either side",
					 options->gates[i].function);
	return 0;
}

/* Do files of both runs have a metric in common? */
static bool have_common(const struct runs *r, const struct runs_run *a, const struct runs_run *b)
{
	for (size_t i = 0; i < r->metric_cnt; i++)
		if (!r->metrics[i].whole && a->columns[i].there && b->columns[i].there)
			return true;
	return false;
}

/* Runs of bench are recorded alike. */
static bool is_of_bench(const struct runs_run *run)
{
	return *run->facts.run && run->facts.block != FACTS_NONE;
}

/*
 * A run of bench that lacks the metric, though another one with files of the same kind has it: a file of it
 * was lost, and too few runs would be left to fail. NULL: there is none. A side may have several such sets, of
 * different kinds; and recordings need not be of the same kinds.
 */
static const struct runs_run *find_lacking(const struct runs *r, int metric)
{
	for (size_t i = 0; i < r->run_cnt; i++) {
		const struct runs_run *run = &r->runs[i];

		if (!is_of_bench(run) || run->columns[metric].there)
			continue;
		for (size_t k = 0; k < r->run_cnt; k++)
			if (is_of_bench(&r->runs[k]) && r->runs[k].columns[metric].there &&
			    have_common(r, run, &r->runs[k]))
				return run;
	}
	return NULL;
}

/* "cpu, wall": what both sides have. What does not fit is cut. */
static void common_names(const struct runs *r, char *buf, size_t buf_sz)
{
	*buf = '\0';
	for (size_t i = 0; i < r->metric_cnt; i++) {
		size_t len = strlen(buf);

		if (is_common(r, i))
			snprintf(buf + len, buf_sz - len, "%s%s", len ? ", " : "",
				 r->metrics[i].name);
	}
}

static int check_gates(const struct judge_result *res, char *err, size_t err_sz)
{
	for (size_t i = 0; i < res->options.gate_cnt; i++) {
		const struct judge_gate *g = &res->options.gates[i];
		int metric = judge_gate_metric(res->runs, g);
		const struct runs_run *lacking;
		char names[512];

		if (metric < 0) {
			common_names(res->runs, names, sizeof(names));
			return util_fail(
				-EINVAL, err, err_sz,
				"--fail-on: there is no '%s' on both sides: choose from %s",
				g->metric, names);
		}
		if (*g->function && res->runs->metrics[metric].whole)
			return util_fail(-EINVAL, err, err_sz,
					 "--fail-on: '%s' is of whole runs and not of functions: "
					 "leave '%s' out",
					 res->runs->metrics[metric].name, g->function);
		lacking = find_lacking(res->runs, metric);
		if (lacking)
			return util_fail(
				-EINVAL, err, err_sz,
				"the run of '%s' has no '%s', which others have: a file of "
				"it is missing",
				lacking->path, res->runs->metrics[metric].name);
	}
	return judge_check_functions(res->runs, &res->options, err, err_sz);
}

bool judge_may_be_boxed(const struct runs *r, bool busy_too)
{
	bool boxed = r->run_cnt >= BOXED_RUNS;
	double *wall, *busy;

	for (size_t i = 0; i < r->run_cnt; i++)
		boxed &= r->runs[i].facts.ops == FACTS_NONE &&
			 r->runs[i].facts.wall_ns != FACTS_NONE &&
			 r->runs[i].facts.cpu_ns != FACTS_NONE;
	wall = boxed ? calloc(2 * r->run_cnt, sizeof(*wall)) : NULL;
	if (!wall)
		return boxed;
	busy = wall + r->run_cnt;
	for (size_t i = 0; i < r->run_cnt; i++) {
		wall[i] = (double)r->runs[i].facts.wall_ns;
		busy[i] = (double)r->runs[i].facts.cpu_ns / wall[i];
	}
	boxed = stats_variation(wall, r->run_cnt) < BOXED_WALL &&
		(!busy_too || stats_variation(busy, r->run_cnt) < BOXED_BUSY);
	free(wall);
	return boxed;
}

static int check_work(const struct runs *r, char *err, size_t err_sz)
{
	if (!judge_may_be_boxed(r, true))
		return 0;
	return util_fail(
		-EINVAL, err, err_sz,
		"all runs take the same time and keep the processor equally busy: they do "
		"what they can in a given time, and their cost says nothing unless they say "
		"how much they did (comment " FACTS_OPS "=)");
}

/* ---- a metric ---- */

static void set_targets(const struct judge_result *res, struct judge_metric *m)
{
	for (size_t i = 0; i < m->row_cnt; i++) {
		struct judge_row *row = &m->rows[i];

		for (size_t g = 0; g < res->options.gate_cnt; g++) {
			const struct judge_gate *gate = &res->options.gates[g];
			bool named = *gate->function && row->what != JUDGE_TOTAL &&
				     !strcmp(runs__name(res->runs, row->function), gate->function);

			if (judge_gate_metric(res->runs, gate) != m->metric ||
			    (*gate->function && !named))
				continue;
			/* what names it counts more than what is for all */
			if (row->target > 0 && row->named >= named)
				row->target = fmin(row->target, gate->effect);
			else
				row->target = gate->effect;
			row->named |= named;
		}
	}
}

static int judge_metric(struct judge_result *res, struct stack_index *index, struct judge_metric *m,
			char *err, size_t err_sz)
{
	struct measure ms = { .runs = res->runs, .index = index, .options = &res->options, .m = m };
	int ret = measure_fill(&ms, err, err_sz);

	ret = ret ?: stack_index__wait(index);
	if (!ret) {
		set_targets(res, m);
		ret = scale_choose(&ms) ?: as_is_add(&ms);
	}
	ret = ret ?: compare_rows(&ms, res->seed);
	ret = ret ?: health_check(&ms);
	ret = ret ?: verdict_rows(&ms);
	measure_done(&ms);
	return ret;
}

/* Runs may have nothing of what nobody asks for, such as memory that is in use in the end. */
static bool all_have_some(const struct runs *r, size_t metric)
{
	for (size_t i = 0; i < r->run_cnt; i++) {
		const struct runs_column *c = &r->runs[i].columns[metric];

		if (c->there && !(c->value > 0))
			return false;
	}
	return true;
}

static int add_metrics(struct judge_result *res)
{
	const struct runs *r = res->runs;
	size_t gated = 0;

	res->metrics = calloc(r->metric_cnt + 1, sizeof(*res->metrics));
	if (!res->metrics)
		return -ENOMEM;
	for (size_t i = 0; i < r->metric_cnt; i++) {
		struct judge_metric *m = &res->metrics[res->metric_cnt];

		if (!is_common(r, i))
			continue;
		m->metric = (int)i;
		for (size_t g = 0; g < res->options.gate_cnt; g++)
			m->gated |= judge_gate_metric(r, &res->options.gates[g]) == (int)i;
		if (!m->gated && !all_have_some(r, i))
			continue;
		gated += m->gated;
		res->metric_cnt++;
	}
	/* --alpha is for the whole verdict */
	for (size_t i = 0; i < res->metric_cnt; i++)
		res->metrics[i].alpha =
			res->options.alpha / (double)(res->metrics[i].gated ? gated : 1);
	return 0;
}

int judge(const struct runs *runs, const struct judge_options *options, struct judge_result **ret,
	  char *err, size_t err_sz)
{
	struct judge_result *res = calloc(1, sizeof(*res));
	struct stack_index index = { 0 };
	int bad;

	*err = '\0';
	*ret = NULL;
	if (!res) {
		util_fail(-ENOMEM, err, err_sz, "out of memory");
		return -ENOMEM;
	}
	res->runs = runs;
	res->options = *options;
	res->seed = options->seed ?: runs->digest;
	if (!options->gate_cnt) {
		res->options.gates[0] = (struct judge_gate){ .effect = DEFAULT_EFFECT };
		res->options.gate_cnt = 1;
	}
	bad = check_gates(res, err, err_sz) ?: check_work(runs, err, err_sz) ?: add_metrics(res);
	if (!bad)
		stack_index__begin(&index, runs);
	for (size_t i = 0; !bad && i < res->metric_cnt; i++) {
		bad = judge_metric(res, &index, &res->metrics[i], err, err_sz);
		if (!bad && res->metrics[i].gated)
			res->verdict = MAX(res->verdict, res->metrics[i].verdict);
	}
	stack_index__done(&index);
	if (bad) {
		if (!*err)
			util_fail(bad, err, err_sz, "out of memory");
		judge_free(res);
		return bad;
	}
	*ret = res;
	return 0;
}
