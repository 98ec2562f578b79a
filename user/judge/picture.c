/* SPDX-License-Identifier: BSD-2-Clause */
#include "judge/picture.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "judge/judge.h"
#include "judge/write.h"
#include "profile/difference.h"
#include "profile/profile.h"

struct picture {
	const struct judge_result *r;
	struct profile *p;
	const struct judge_metric *metrics[PROFILE_MAX_VALUES]; /* the first one is shown first */
	size_t metric_cnt;
	double *costs;	     /* of each metric, side and stack: see costs_of */
	uint32_t *locations; /* of each function; PROFILE_NONE: none yet */
	uint32_t *stack;     /* scratch, for the deepest one */
};

static bool is_whole(const struct judge_result *r, size_t metric)
{
	return r->runs->metrics[r->metrics[metric].metric].whole;
}

const struct judge_metric *judge_picture_metric(const struct judge_result *r)
{
	size_t i = 0;

	/* what fails the build may be of no stack: then it is the first one that is */
	while (i < r->metric_cnt && (!r->metrics[i].gated || is_whole(r, i)))
		i++;
	for (size_t k = 0; i == r->metric_cnt && k < r->metric_cnt; k++)
		if (!is_whole(r, k))
			i = k;
	return &r->metrics[i < r->metric_cnt ? i : 0];
}

static double *costs_of(const struct picture *pic, size_t metric, enum runs_side side)
{
	return pic->costs + (2 * metric + side) * pic->r->runs->stack_cnt;
}

/* Operations of the mean run of both sides; 1: runs do not say. */
static double mean_ops(const struct judge_result *r, const struct judge_metric *m)
{
	double sum = 0;

	for (size_t i = 0; i < m->run_cnt; i++) {
		uint64_t ops = r->runs->runs[m->runs[i]].facts.ops;

		if (ops == FACTS_NONE)
			return 1;
		sum += (double)ops / (double)m->run_cnt;
	}
	return fmax(round(sum), 1);
}

/* ---- Costs ---- */

static void choose_metrics(struct picture *pic, size_t others)
{
	const struct judge_result *r = pic->r;
	size_t most = MIN(1 + others, (size_t)PROFILE_MAX_VALUES);

	pic->metrics[pic->metric_cnt++] = judge_picture_metric(r);
	for (size_t i = 0; i < r->metric_cnt && pic->metric_cnt < most; i++)
		if (&r->metrics[i] != pic->metrics[0] && !is_whole(r, i))
			pic->metrics[pic->metric_cnt++] = &r->metrics[i];
}

/* Of each run, per operation. */
static const double *totals_of(const struct judge_metric *m)
{
	const struct judge_row *row = m->rows;

	while (row->what != JUDGE_TOTAL)
		row++;
	return row->costs;
}

/* The total of a run is known better than the sum of what was sampled: see measure.c. */
static void add_costs(struct picture *pic, size_t metric)
{
	const struct judge_metric *m = pic->metrics[metric];
	const double *totals = totals_of(m), ops = mean_ops(pic->r, m);

	for (size_t i = 0; i < m->run_cnt; i++) {
		const struct runs_run *run = &pic->r->runs->runs[m->runs[i]];
		const struct runs_column *c = &run->columns[m->metric];
		double *costs = costs_of(pic, metric, run->side);
		double factor = totals[i] / c->value * ops / (double)m->cnt[run->side];

		for (size_t k = 0; k < c->cnt; k++)
			costs[c->costs[k].stack] += c->costs[k].value * factor;
	}
}

/* ---- The profile ---- */

static struct profile *new_profile(const struct picture *pic)
{
	const struct runs *runs = pic->r->runs;
	struct profile_value_type types[PROFILE_MAX_VALUES];
	struct profile *p;

	for (size_t i = 0; i < pic->metric_cnt; i++) {
		const struct runs_metric *metric = &runs->metrics[pic->metrics[i]->metric];

		types[i] = (struct profile_value_type){ metric->name, metric->unit };
	}
	p = profile__new(types, pic->metric_cnt, types[0], 0);
	if (!p)
		return NULL;
	p->default_type = profile__string(p, types[0].type);
	if (p->default_type != PROFILE_NONE)
		return p;
	profile__free(p);
	return NULL;
}

/* Returns its location, PROFILE_NONE if there is no memory. */
static uint32_t location_of(struct picture *pic, uint32_t function)
{
	uint32_t *location = &pic->locations[function];

	if (*location == PROFILE_NONE)
		*location = profile__add_marker(pic->p, runs__name(pic->r->runs, function));
	return *location;
}

static int add_sample(struct picture *pic, const struct runs_stack *s,
		      const struct profile_label *label, const int64_t *values)
{
	for (uint32_t i = 0; i < s->cnt; i++) {
		pic->stack[i] = location_of(pic, pic->r->runs->frames[s->at + i]);
		if (pic->stack[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	if (profile__add_sample(pic->p, pic->stack, s->cnt, label, label ? 1 : 0, values) ==
	    PROFILE_NONE)
		return -ENOMEM;
	return 0;
}

static int add_side(struct picture *pic, enum runs_side side)
{
	const struct runs *runs = pic->r->runs;
	struct profile_label label = { .key = profile__string(pic->p, DIFFERENCE_KEY),
				       .str = profile__string(pic->p, DIFFERENCE_VALUE) };
	int err = 0;

	if (label.key == PROFILE_NONE || label.str == PROFILE_NONE)
		return -ENOMEM;
	for (size_t i = 0; !err && i < runs->stack_cnt; i++) {
		int64_t values[PROFILE_MAX_VALUES] = { 0 }, any = 0;

		for (size_t m = 0; m < pic->metric_cnt; m++) {
			double cost = round(costs_of(pic, m, side)[i]);

			values[m] = cost < 0x1p63 ? (int64_t)cost : INT64_MAX;
			any |= values[m];
			if (side == RUNS_BASE)
				values[m] = -values[m];
		}
		if (any)
			err = add_sample(pic, &runs->stacks[i], side == RUNS_BASE ? &label : NULL,
					 values);
	}
	return err;
}

static int add_comments(const struct picture *pic)
{
	const struct judge_metric *m = pic->metrics[0];
	char text[WRITE_SZ];
	int err = profile__add_comment(pic->p, write_headline(pic->r, text, sizeof(text)));

	if (!err)
		err = profile__add_comment(pic->p, write_design(pic->r, m, text, sizeof(text)));
	for (int i = 0; !err && write_remark(pic->r, m, i, text, sizeof(text)); i++)
		err = profile__add_comment(pic->p, text);
	return err;
}

static int allocate(struct picture *pic)
{
	const struct runs *runs = pic->r->runs;
	uint32_t deepest = 0;

	for (size_t i = 0; i < runs->stack_cnt; i++)
		deepest = MAX(deepest, runs->stacks[i].cnt);
	pic->costs = calloc(2 * pic->metric_cnt * runs->stack_cnt + 1, sizeof(*pic->costs));
	pic->locations = calloc(runs->function_cnt + 1, sizeof(*pic->locations));
	pic->stack = calloc(deepest + 1, sizeof(*pic->stack));
	if (!pic->costs || !pic->locations || !pic->stack)
		return -ENOMEM;
	for (size_t i = 0; i < runs->function_cnt; i++)
		pic->locations[i] = PROFILE_NONE;
	pic->p = new_profile(pic);
	return pic->p ? 0 : -ENOMEM;
}

int judge_picture(const struct judge_result *r, size_t others, struct profile **ret)
{
	struct picture pic = { .r = r };
	int err;

	choose_metrics(&pic, others);
	err = allocate(&pic);
	for (size_t m = 0; !err && m < pic.metric_cnt; m++)
		add_costs(&pic, m);
	if (!err)
		err = add_side(&pic, RUNS_BASE);
	if (!err)
		err = add_side(&pic, RUNS_NEW);
	if (!err)
		err = add_comments(&pic);
	if (!err)
		err = profile__finish(pic.p);
	free(pic.costs);
	free(pic.locations);
	free(pic.stack);
	if (err)
		profile__free(pic.p);
	else
		*ret = pic.p;
	return err;
}

const char *judge_picture_side(const struct judge_result *r, enum runs_side side, char *text,
			       size_t sz)
{
	const struct judge_metric *m = judge_picture_metric(r);
	const char *mean = m->cnt[side] > 1 ? "mean of " : "";
	double ops = mean_ops(r, m);
	int len = snprintf(text, sz, "%s: %s%zu %s%s", side == RUNS_BASE ? "base" : "new", mean,
			   m->cnt[side], write_unit(r), m->cnt[side] == 1 ? "" : "s");

	if (r->runs->runs[m->runs[0]].facts.ops != FACTS_NONE && (size_t)len < sz)
		snprintf(text + len, sz - (size_t)len, ", each of %.0f operations", ops);
	return text;
}
