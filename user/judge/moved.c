// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cost that is only somewhere else: a domain that holds the function did not grow by half of what the
 * function did, with 95 % confidence, and the rest of it lost at least as much. Domains are what costs
 * move within: a rename, a caller, a class, a file, a program or library.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/names.h"
#include "judge/parts.h"
#include "judge/stats.h"

#define CONFIDENCE 0.05
#define LARGEST 20  /* times the function's cost: what is larger is too noisy to acquit */
#define CALLER 0.5  /* of the function's cost that a caller holds */
#define HALF 0.5    /* of the growth */
#define ALIKE 0.8   /* of names */
#define OVERLAP 0.7 /* of callers, of callees; and of the logarithm of costs */
#define RENAME_SIGNS 2

struct search {
	const struct measure *ms;
	struct judge_row *row;
	double grown;		      /* per operation */
	bool *in;		      /* of each stack: it is in the domain */
	double *costs, *z, *w, *sums; /* of each run */
	double *joint;		      /* of each function */
	double *fallen;		      /* of each function: in itself, in the domain */
	bool *member;		      /* of each function */
};

static const uint32_t *frames_of(const struct search *s, size_t stack)
{
	return s->ms->runs->frames + s->ms->runs->stacks[stack].at;
}

/* Costs below or at a function are its own: has the stack one of the members? */
static void take_members(struct search *s, bool leaf)
{
	const struct runs *r = s->ms->runs;

	for (size_t i = 0; i < r->stack_cnt; i++) {
		uint32_t cnt = leaf ? 1 : r->stacks[i].cnt;

		s->in[i] = false;
		for (uint32_t k = 0; k < cnt && !s->in[i]; k++)
			s->in[i] = s->member[frames_of(s, i)[k]];
	}
}

/* The function that lost most. */
static uint32_t donor(struct search *s)
{
	const struct measure *ms = s->ms;
	const struct judge_metric *m = ms->m;
	uint32_t best = UINT32_MAX;

	memset(s->fallen, 0, ms->runs->function_cnt * sizeof(*s->fallen));
	for (size_t run = 0; run < m->run_cnt; run++) {
		const struct runs_column *c = measure_column(ms, run);
		double each = ms->totals[run] / ms->sums[run] / (double)m->cnt[m->news[run]];

		/* on the scale of the domain */
		each *= exp(s->z[run]) / s->costs[run];
		for (size_t i = 0; i < c->cnt; i++)
			if (s->in[c->costs[i].stack])
				s->fallen[*frames_of(s, c->costs[i].stack)] +=
					(m->news[run] ? -1 : 1) * each * c->costs[i].value;
	}
	for (uint32_t f = 0; f < ms->runs->function_cnt; f++)
		if (f != s->row->function && s->fallen[f] > 0 &&
		    (best == UINT32_MAX || s->fallen[f] > s->fallen[best]))
			best = f;
	return best;
}

/* Is the cost within the stacks that are marked no more than it was? */
static bool acquits(struct search *s, const char *why, uint32_t within)
{
	const struct measure *ms = s->ms;
	const struct judge_metric *m = ms->m;
	double at_most, largest = fmax(s->row->level[0], s->row->level[1]);
	struct estimate e;

	memset(s->sums, 0, m->run_cnt * sizeof(*s->sums));
	for (size_t run = 0; run < m->run_cnt; run++) {
		const struct runs_column *c = measure_column(ms, run);

		for (size_t i = 0; i < c->cnt; i++)
			s->sums[run] += s->in[c->costs[i].stack] ? c->costs[i].value : 0;
		s->costs[run] = measure_cost(ms, run, s->sums[run]);
	}
	scale_logs(ms, s->costs, s->in, s->z);
	e = scale_estimate(ms, s->z, s->w);
	if (e.level[0] > LARGEST * largest)
		return false;
	at_most = e.change;
	if (e.df > 0)
		at_most += stats_t_quantile(CONFIDENCE, e.df) *
			   sqrt(e.variance / design_weight(&ms->design));
	if (e.level[0] * expm1(at_most) >= HALF * s->grown ||
	    e.level[1] - e.level[0] - s->grown > -HALF * s->grown)
		return false;
	s->row->moved_why = why;
	s->row->moved_within = within;
	s->row->moved_from = donor(s);
	return true;
}

/* ---- callers ---- */

static double weight_of(const struct search *s, size_t run, const struct runs_cost *c)
{
	return c->value / s->ms->sums[run];
}

/* Of each function: how much of the row's cost it calls. Returns the whole. */
static double join_callers(struct search *s)
{
	const struct measure *ms = s->ms;
	double whole = 0;

	memset(s->joint, 0, ms->runs->function_cnt * sizeof(*s->joint));
	for (size_t run = 0; run < ms->m->run_cnt; run++) {
		const struct runs_column *c = measure_column(ms, run);

		for (size_t i = 0; i < c->cnt; i++) {
			const struct runs_stack *st = &ms->runs->stacks[c->costs[i].stack];
			const uint32_t *f = frames_of(s, c->costs[i].stack);
			uint32_t limit = s->row->what == JUDGE_SELF ? 1 : st->cnt, k = 0;
			double weight = weight_of(s, run, &c->costs[i]);

			while (k < limit && f[k] != s->row->function)
				k++;
			if (k == limit)
				continue;
			whole += weight;
			for (k++; k < st->cnt; k++)
				s->joint[f[k]] += weight;
		}
	}
	return whole;
}

static void take_one(struct search *s, uint32_t f, bool leaf)
{
	memset(s->member, 0, s->ms->runs->function_cnt * sizeof(*s->member));
	s->member[f] = true;
	take_members(s, leaf);
}

/* The nearest ones first: they have the least other cost. */
static bool try_callers(struct search *s)
{
	const struct measure *ms = s->ms;
	size_t n = ms->m->run_cnt;
	double whole = join_callers(s), last = 0;
	const double *joint = s->joint;

	while (true) {
		uint32_t best = UINT32_MAX;
		double least = INFINITY;

		for (uint32_t f = 0; f < ms->runs->function_cnt; f++) {
			double cost = 0;

			if (joint[f] < CALLER * whole || !(joint[f] > 0))
				continue;
			for (size_t i = 0; i < n; i++)
				cost += ms->cum[f * n + i] / ms->sums[i];
			if (cost > last && cost < least) {
				least = cost;
				best = f;
			}
		}
		if (best == UINT32_MAX)
			return false;
		last = least;
		take_one(s, best, false);
		if (acquits(s, "a caller", best))
			return true;
	}
}

/* ---- names ---- */

static const char *name_of(const struct search *s, uint32_t f)
{
	return runs__name(s->ms->runs, f);
}

/* A side's cost of a function without what it calls, as a mean. */
static void sides_of(const struct search *s, uint32_t f, double ret[2])
{
	const struct measure *ms = s->ms;
	const double *of = s->row->what == JUDGE_SELF ? ms->self : ms->cum;
	const struct judge_metric *m = ms->m;

	ret[0] = ret[1] = 0;
	for (size_t i = 0; i < m->run_cnt; i++)
		ret[m->news[i]] += of[f * m->run_cnt + i] / ms->sums[i] * ms->totals[i] /
				   (double)m->cnt[m->news[i]];
}

/* Weighted overlap of the functions above (step 1) or below (-1) two functions: min / max, summed up.
 * NAN: neither has any. */
static double overlap(struct search *s, uint32_t a, uint32_t b, int step)
{
	const struct measure *ms = s->ms;
	size_t functions = ms->runs->function_cnt;
	double *of[2] = { s->joint, s->fallen }, sums[2] = { 0 }, both = 0, either = 0;

	memset(s->joint, 0, functions * sizeof(*s->joint));
	memset(s->fallen, 0, functions * sizeof(*s->fallen));
	for (size_t run = 0; run < ms->m->run_cnt; run++) {
		const struct runs_column *c = measure_column(ms, run);

		for (size_t i = 0; i < c->cnt; i++) {
			const struct runs_stack *st = &ms->runs->stacks[c->costs[i].stack];
			const uint32_t *f = frames_of(s, c->costs[i].stack);

			for (uint32_t k = step < 0; k + (step > 0) < st->cnt; k++)
				for (int which = 0; which < 2; which++)
					if (f[k] == (which ? b : a)) {
						double weight = weight_of(s, run, &c->costs[i]);

						of[which][f[(int)k + step]] += weight;
						sums[which] += weight;
					}
		}
	}
	if (!(sums[0] > 0) || !(sums[1] > 0))
		return NAN;
	for (size_t f = 0; f < functions; f++) {
		both += fmin(of[0][f] / sums[0], of[1][f] / sums[1]);
		either += fmax(of[0][f] / sums[0], of[1][f] / sums[1]);
	}
	return both / either;
}

static bool is_renamed(struct search *s, uint32_t gone)
{
	const struct runs *r = s->ms->runs;
	const struct runs_function *a = &r->functions[gone], *b = &r->functions[s->row->function];
	int signs = 0;

	signs += a->file && a->file == b->file;
	signs += names_similarity(name_of(s, gone), name_of(s, s->row->function)) >= ALIKE;
	signs += overlap(s, gone, s->row->function, 1) >= OVERLAP;
	signs += overlap(s, gone, s->row->function, -1) >= OVERLAP;
	return signs >= RENAME_SIGNS;
}

/* A function of about this cost that is no longer there, where this one was not. */
static bool try_renames(struct search *s)
{
	const struct measure *ms = s->ms;
	double mine[2], theirs[2];

	sides_of(s, s->row->function, mine);
	for (uint32_t f = 0; s->row->appeared && f < ms->runs->function_cnt; f++) {
		sides_of(s, f, theirs);
		if (f == s->row->function || !(theirs[0] > 0) || theirs[1] > theirs[0] / 100 ||
		    fabs(log(mine[1] / theirs[0])) >= OVERLAP || !is_renamed(s, f))
			continue;
		take_one(s, f, s->row->what == JUDGE_SELF);
		s->member[s->row->function] = true;
		take_members(s, s->row->what == JUDGE_SELF);
		if (acquits(s, "renamed", UINT32_MAX))
			return true;
	}
	return false;
}

static bool same_scope(const struct search *s, uint32_t f)
{
	const char *mine = name_of(s, s->row->function), *theirs = name_of(s, f);
	size_t sz = names_scope(mine);

	return sz && names_scope(theirs) == sz && !strncmp(mine, theirs, sz);
}

static bool same_file(const struct search *s, uint32_t f)
{
	const struct runs_function *of = s->ms->runs->functions;
	uint32_t file = of[s->row->function].file;

	return file && of[f].file == file;
}

static bool same_object(const struct search *s, uint32_t f)
{
	const struct runs_function *of = s->ms->runs->functions;
	uint32_t object = of[s->row->function].object;

	return object && of[f].object == object;
}

static bool try_groups(struct search *s)
{
	static const struct {
		bool (*of)(const struct search *s, uint32_t f);
		const char *why;
	} groups[] = {
		{ same_scope, "the same class or package" },
		{ same_file, "the same file" },
		{ same_object, "the same program or library" },
	};

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		for (uint32_t f = 0; f < s->ms->runs->function_cnt; f++)
			s->member[f] = groups[g].of(s, f) || f == s->row->function;
		take_members(s, s->row->what == JUDGE_SELF);
		if (acquits(s, groups[g].why, UINT32_MAX))
			return true;
	}
	return false;
}

static bool find(struct search *s)
{
	if (try_renames(s))
		return true;
	if (s->row->what == JUDGE_SELF) {
		take_one(s, s->row->function, false);
		if (acquits(s, "its callees", s->row->function))
			return true;
	}
	if (try_callers(s) || try_groups(s))
		return true;
	memset(s->in, true, s->ms->runs->stack_cnt);
	return acquits(s, "the program", UINT32_MAX);
}

int moved_find(const struct measure *ms, struct judge_row *row)
{
	size_t n = ms->m->run_cnt, functions = ms->runs->function_cnt;
	struct search s = { .ms = ms, .row = row, .grown = row->level[1] - row->level[0] };
	int ret = -ENOMEM;

	if (row->what == JUDGE_TOTAL)
		return 0;
	s.in = calloc(ms->runs->stack_cnt + 1, sizeof(*s.in));
	s.costs = calloc(4 * n, sizeof(double));
	s.joint = calloc(functions, sizeof(double));
	s.fallen = calloc(functions, sizeof(double));
	s.member = calloc(functions, sizeof(*s.member));
	if (s.in && s.costs && s.joint && s.fallen && s.member) {
		s.z = s.costs + n;
		s.w = s.z + n;
		s.sums = s.w + n;
		ret = find(&s);
	}
	free(s.in);
	free(s.costs);
	free(s.joint);
	free(s.fallen);
	free(s.member);
	return ret;
}
