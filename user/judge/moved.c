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
	struct stack_set in;	      /* the domain */
	uint32_t *scratch;	      /* room for all stacks */
	double *costs, *z, *w, *sums; /* of each run */
	double *joint;		      /* of each function */
	double *fallen;		      /* of each function: in itself, in the domain */
	bool *member;		      /* of each function */
};

static const uint32_t *frames_of(const struct search *s, size_t stack)
{
	return s->ms->runs->frames + s->ms->runs->stacks[stack].at;
}

/* The domain is what has one of the members, as the leaf or anywhere. */
static void take_members(struct search *s, bool leaf)
{
	const struct runs *r = s->ms->runs;
	size_t taken = 0;

	for (size_t i = 0; i < r->stack_cnt; i++) {
		uint32_t cnt = leaf ? 1 : r->stacks[i].cnt, k = 0;

		while (k < cnt && !s->member[frames_of(s, i)[k]])
			k++;
		if (k < cnt)
			s->scratch[taken++] = (uint32_t)i;
	}
	s->in = (struct stack_set){ s->scratch, taken };
}

static void take_all(struct search *s)
{
	for (size_t i = 0; i < s->ms->runs->stack_cnt; i++)
		s->scratch[i] = (uint32_t)i;
	s->in = (struct stack_set){ s->scratch, s->ms->runs->stack_cnt };
}

static struct stack_set own_stacks(const struct search *s)
{
	return measure_stacks(s->ms, s->row);
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

/* What is no longer there, by what sides_of() says. */
static bool is_gone(const double sides[2])
{
	return sides[0] > 0 && sides[1] <= sides[0] / 100;
}

/* The function that lost most. One that is gone comes first, if that can be most of it: what the others lost may
 * be chance. */
static uint32_t donor(struct search *s)
{
	const struct measure *ms = s->ms;
	const struct judge_metric *m = ms->m;
	uint32_t best = UINT32_MAX;
	bool best_gone = false;
	double *each = s->sums;

	memset(s->fallen, 0, ms->runs->function_cnt * sizeof(*s->fallen));
	/* on the scale of the domain */
	for (size_t run = 0; run < m->run_cnt; run++)
		each[run] = (m->news[run] ? -1 : 1) * ms->totals[run] / ms->sums[run] /
			    (double)m->cnt[m->news[run]] * exp(s->z[run]) / s->costs[run];
	for (size_t i = 0; i < s->in.cnt; i++) {
		uint32_t stack = s->in.ids[i];

		for (size_t k = ms->starts[stack]; k < ms->starts[stack + 1]; k++)
			s->fallen[*frames_of(s, stack)] +=
				each[ms->costs[k].run] * ms->costs[k].value;
	}
	for (uint32_t f = 0; f < ms->runs->function_cnt; f++) {
		double sides[2];
		bool gone;

		if (f == s->row->function || !(s->fallen[f] > 0))
			continue;
		sides_of(s, f, sides);
		gone = s->fallen[f] >= HALF * s->grown && is_gone(sides);
		if (best == UINT32_MAX || gone > best_gone ||
		    (gone == best_gone && s->fallen[f] > s->fallen[best])) {
			best = f;
			best_gone = gone;
		}
	}
	return best;
}

/* Is the cost within the domain no more than it was? */
static bool acquits(struct search *s, const char *why, uint32_t within)
{
	const struct measure *ms = s->ms;
	const struct judge_metric *m = ms->m;
	double at_most, largest = fmax(s->row->level[0], s->row->level[1]);
	struct stack_set own;
	struct estimate e;

	memset(s->sums, 0, m->run_cnt * sizeof(*s->sums));
	for (size_t i = 0; i < s->in.cnt; i++) {
		uint32_t stack = s->in.ids[i];

		for (size_t k = ms->starts[stack]; k < ms->starts[stack + 1]; k++)
			s->sums[ms->costs[k].run] += ms->costs[k].value;
	}
	for (size_t run = 0; run < m->run_cnt; run++)
		s->costs[run] = measure_cost(ms, run, s->sums[run]);
	own = own_stacks(s);
	if (s->row->as_is)
		scale_logs(ms, s->costs, NULL, s->z);
	/* where the domain leaves too little, both are compared with what the row was: what the machine did
	 * to all of the program acquits nobody */
	else if (!scale_logs(ms, s->costs, &s->in, s->z) && s->row->relative)
		scale_logs(ms, s->costs, &own, s->z);
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

/* Where the function stands in a stack that has it. */
static uint32_t find_frame(const struct search *s, uint32_t stack, uint32_t function)
{
	uint32_t k = 0;

	while (frames_of(s, stack)[k] != function)
		k++;
	return k;
}

/* Of each function: how much of the row's cost it calls. Returns the whole. */
static double join_callers(struct search *s)
{
	const struct measure *ms = s->ms;
	struct stack_set of = own_stacks(s);
	double whole = 0;

	memset(s->joint, 0, ms->runs->function_cnt * sizeof(*s->joint));
	for (size_t i = 0; i < of.cnt; i++) {
		uint32_t stack = of.ids[i], k = find_frame(s, stack, s->row->function);

		whole += ms->weights[stack];
		for (k++; k < ms->runs->stacks[stack].cnt; k++)
			s->joint[frames_of(s, stack)[k]] += ms->weights[stack];
	}
	return whole;
}

/* The domain is what has the function. */
static void take_one(struct search *s, uint32_t f)
{
	s->in = stack_index__with(s->ms->index, f);
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
		take_one(s, best);
		if (acquits(s, "a caller", best))
			return true;
	}
}

/* ---- names ---- */

static const char *name_of(const struct search *s, uint32_t f)
{
	return runs__name(s->ms->runs, f);
}

/* Adds what stands beside the function in its stacks, on one side (see overlap). Returns the sum. */
static double add_neighbours(const struct search *s, uint32_t function, int step, double *of)
{
	const struct measure *ms = s->ms;
	struct stack_set set = stack_index__with(ms->index, function);
	double sum = 0;

	memset(of, 0, ms->runs->function_cnt * sizeof(*of));
	for (size_t i = 0; i < set.cnt; i++) {
		uint32_t stack = set.ids[i], k = find_frame(s, stack, function);

		if (step < 0 ? !k : k + 1 == ms->runs->stacks[stack].cnt)
			continue;
		of[frames_of(s, stack)[(int64_t)k + step]] += ms->weights[stack];
		sum += ms->weights[stack];
	}
	return sum;
}

/* Weighted overlap of the functions above (step 1) or below (-1) two functions: min / max, summed up.
 * NAN: one of them has none. */
static double overlap(struct search *s, uint32_t a, uint32_t b, int step)
{
	double of_a = add_neighbours(s, a, step, s->joint), both = 0, either = 0;
	double of_b = add_neighbours(s, b, step, s->fallen);

	if (!(of_a > 0) || !(of_b > 0))
		return NAN;
	for (size_t f = 0; f < s->ms->runs->function_cnt; f++) {
		both += fmin(s->joint[f] / of_a, s->fallen[f] / of_b);
		either += fmax(s->joint[f] / of_a, s->fallen[f] / of_b);
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
		if (f == s->row->function || !is_gone(theirs) ||
		    fabs(log(mine[1] / theirs[0])) >= OVERLAP || !is_renamed(s, f))
			continue;
		memset(s->member, 0, ms->runs->function_cnt * sizeof(*s->member));
		s->member[f] = s->member[s->row->function] = true;
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
		take_one(s, s->row->function);
		if (acquits(s, "its callees", s->row->function))
			return true;
	}
	if (try_callers(s) || try_groups(s))
		return true;
	take_all(s);
	return acquits(s, "the program", UINT32_MAX);
}

int moved_find(const struct measure *ms, struct judge_row *row)
{
	size_t n = ms->m->run_cnt, functions = ms->runs->function_cnt;
	struct search s = { .ms = ms, .row = row, .grown = row->level[1] - row->level[0] };
	int ret = -ENOMEM;

	if (row->what == JUDGE_TOTAL)
		return 0;
	s.scratch = calloc(ms->runs->stack_cnt + 1, sizeof(*s.scratch));
	s.costs = calloc(4 * n, sizeof(double));
	s.joint = calloc(functions, sizeof(double));
	s.fallen = calloc(functions, sizeof(double));
	s.member = calloc(functions, sizeof(*s.member));
	if (s.scratch && s.costs && s.joint && s.fallen && s.member) {
		s.z = s.costs + n;
		s.w = s.z + n;
		s.sums = s.w + n;
		ret = find(&s);
	}
	free(s.scratch);
	free(s.costs);
	free(s.joint);
	free(s.fallen);
	free(s.member);
	return ret;
}
