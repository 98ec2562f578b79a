// SPDX-License-Identifier: BSD-2-Clause
/* All numbers, so that another judge can do it again. Keys are only added. */
#include <math.h>

#include "base/json.h"
#include "judge/judge.h"
#include "judge/write.h"

#define SCHEMA 1

static void write_fact(struct json *j, const char *key, uint64_t value)
{
	if (value != FACTS_NONE)
		json__u64(j, key, value);
}

static void write_runs(struct json *j, const struct judge_result *r)
{
	json__begin_array(j, "runs");
	for (size_t i = 0; i < r->runs->run_cnt; i++) {
		const struct runs_run *run = &r->runs->runs[i];

		json__begin_object(j, NULL);
		json__string(j, "side", run->side == RUNS_BASE ? "base" : "new");
		json__string(j, "file", run->path);
		if (*run->facts.run)
			json__string(j, "run", run->facts.run);
		if (*run->facts.machine)
			json__string(j, "machine", run->facts.machine);
		write_fact(j, "build", run->facts.build);
		if (r->runs->are_builds)
			json__u64(j, "runs", run->parts);
		write_fact(j, "block", run->facts.block);
		write_fact(j, "slot", run->facts.slot);
		write_fact(j, "seed", run->facts.seed);
		write_fact(j, "ops", run->facts.ops);
		write_fact(j, "cpu_ns", run->facts.cpu_ns);
		write_fact(j, "wall_ns", run->facts.wall_ns);
		json__end_object(j);
	}
	json__end_array(j);
}

static void write_row(struct json *j, const struct judge_result *r, const struct judge_metric *m,
		      const struct judge_row *row)
{
	static const char *const whats[] = { "total", "self", "cum" };
	char text[WRITE_SZ];

	json__begin_object(j, NULL);
	json__string(j, "what", whats[row->what]);
	if (row->what != JUDGE_TOTAL)
		json__string(j, "function", runs__name(r->runs, row->function));
	json__string(j, "verdict", judge_verdict_name(row->verdict));
	json__string(j, "text", write_verdict(r, m, row, text, sizeof(text)));
	json__double(j, "base", row->base);
	json__double(j, "new", row->now);
	json__string(j, "scale", row->relative ? "relative" : "absolute");
	json__double(j, "change", expm1(row->change));
	json__double(j, "change_low", expm1(row->low));
	json__double(j, "change_high", expm1(row->high));
	json__double(j, "change_absolute", expm1(row->absolute));
	json__double(j, "of_program", row->of_program);
	json__double(j, "p", row->p);
	json__double(j, "p_better", row->p_better);
	json__double(j, "standard_error", row->error);
	json__double(j, "df", row->df);
	json__double(j, "detectable", expm1(row->detectable));
	json__double(j, "samples", row->samples);
	json__double(j, "gate", row->target);
	json__bool(j, "exact", row->exact);
	if (row->verdict == JUDGE_CANNOT_TELL)
		json__u64(j, "more_runs", row->more);
	if (row->verdict == JUDGE_MOVED && row->moved_from != UINT32_MAX)
		json__string(j, "moved_from", runs__name(r->runs, row->moved_from));
	if (row->because != JUDGE_NONE)
		json__u64(j, "because", row->because);
	json__begin_array(j, "callers");
	for (size_t i = 0; i < row->chain_cnt; i++)
		json__string(j, NULL, runs__name(r->runs, row->chain[i]));
	json__end_array(j);
	json__begin_array(j, "costs");
	for (size_t i = 0; i < m->run_cnt; i++)
		json__double(j, NULL, row->costs[i]);
	json__end_array(j);
	json__end_object(j);
}

static void write_metric(struct json *j, const struct judge_result *r, const struct judge_metric *m)
{
	char text[WRITE_SZ];

	json__begin_object(j, NULL);
	json__string(j, "metric", r->runs->metrics[m->metric].name);
	json__string(j, "unit", r->runs->metrics[m->metric].unit);
	json__bool(j, "gated", m->gated);
	json__string(j, "verdict", judge_verdict_name(m->verdict));
	json__string(j, "scale", m->relative ? "relative" : "absolute");
	json__double(j, "common_change", expm1(m->common_shift));
	json__bool(j, "exact_totals", m->exact_totals);
	json__bool(j, "confounded", m->confounded);
	json__bool(j, "cross_machine", m->cross_machine);
	json__string(j, "test",
		     m->binomial ? "binomial" :
		     m->one_run	 ? "none" :
		     m->model	 ? "model" :
		     m->listed	 ? "permutations listed" :
				   "permutations drawn");
	json__u64(j, "blocks", m->block_cnt);
	json__u64(j, "arrangements", m->arrangements);
	json__double(j, "alpha", m->alpha);
	json__double(j, "least_p", m->least_p);
	json__double(j, "critical", m->critical);
	json__double(j, "prior_df", m->prior_df);
	json__double(j, "tau", m->tau);
	json__double(j, "first_of_block", expm1(m->health.first));
	json__double(j, "trend", expm1(m->health.trend));
	json__double(j, "two_groups", expm1(m->health.humps));
	json__begin_array(j, "notes");
	for (int i = 0; write_remark(r, m, i, text, sizeof(text)); i++)
		json__string(j, NULL, text);
	json__end_array(j);
	json__begin_array(j, "run");
	for (size_t i = 0; i < m->run_cnt; i++)
		json__u64(j, NULL, m->runs[i]);
	json__end_array(j);
	json__begin_array(j, "rows");
	for (size_t i = 0; i < m->row_cnt; i++)
		write_row(j, r, m, &m->rows[i]);
	json__end_array(j);
	json__end_object(j);
}

void judge_write_json(const struct judge_result *r, FILE *f)
{
	struct json j = { .f = f };
	char text[WRITE_SZ];

	json__begin_object(&j, NULL);
	json__u64(&j, "schema", SCHEMA);
	json__string(&j, "verdict", judge_verdict_name(r->verdict));
	json__string(&j, "text", write_headline(r, text, sizeof(text)));
	json__u64(&j, "seed", r->seed);
	json__double(&j, "alpha", r->options.alpha);
	json__double(&j, "min_share", r->options.min_share);
	json__double(&j, "min_effect", r->options.min_effect);
	write_runs(&j, r);
	json__begin_array(&j, "metrics");
	for (size_t i = 0; i < r->metric_cnt; i++)
		write_metric(&j, r, &r->metrics[i]);
	json__end_array(&j);
	json__end_object(&j);
	fputc('\n', f);
}
