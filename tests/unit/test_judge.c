/* SPDX-License-Identifier: BSD-2-Clause */
/* seconds: 12 */
/*
 * Tests of the judge on simulated runs: how often it raises a false alarm, and how often it finds what is
 * planted; names of functions; what profiles say of their runs. FIGURES=1: as many sets as tell the rates.
 */
#include "judge/judge.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "judge/names.h"
#include "profile/profile.h"
#include "written.h"

#define FUNCTIONS 50
#define CALLERS 20
#define RUNS 20
#define PLANTED 0.2 /* share of the first function */
#define PERIOD 1000000.0

/* ---- runs that are drawn ---- */

static uint64_t state;

static double uniform(void)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Of Poisson's distribution; normal where that is the same. */
static double poisson(double mean)
{
	double limit = exp(-mean), product = 1;
	int n = -1;

	if (mean > 100)
		return fmax(0, floor(mean + sqrt(mean) * normal() + 0.5));
	while (product > limit) {
		product *= uniform();
		n++;
	}
	return n;
}

struct simulation {
	struct runs *runs;
	int k;		    /* runs a side */
	double samples;	    /* a run */
	double common, own; /* noise of the machine, of a function */
	double planted;	    /* the first function costs so much more */
	double drift;	    /* the second half of the runs costs so much more */
	double share;	    /* of the first function */
	double slower;	    /* all functions of the new side cost so much more */
	const char *named;  /* the function that is gated; NULL: all, and the total */
};

static double share_of(const struct simulation *s, int f)
{
	double sum = 0;

	for (int i = 1; i < FUNCTIONS; i++)
		sum += 1.0 / (i + 2);
	return f ? (1 - s->share) / (f + 2) / sum : s->share;
}

static uint32_t function(struct profile *p, const char *prefix, int i)
{
	struct profile_function f = { 0 };
	char name[32];

	snprintf(name, sizeof(name), "%s%d", prefix, i);
	f.name = f.system_name = profile__string(p, name);
	return profile__add_function(p, &f);
}

/* main calls the callers, these the functions. Each has a sample. */
static struct bytes template(int block)
{
	struct profile_value_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
	struct profile *p = profile__new(types, 2, types[1], (int64_t)PERIOD);
	uint32_t locs[FUNCTIONS + CALLERS + 1];
	int64_t values[] = { 1, (int64_t)PERIOD };
	char comment[64];
	struct bytes b;

	assert_non_null(p);
	for (int i = 0; i < FUNCTIONS + CALLERS + 1; i++) {
		struct profile_line l = { .line = 1 };

		l.function = i < FUNCTIONS	     ? function(p, "f", i) :
			     i < FUNCTIONS + CALLERS ? function(p, "caller", i - FUNCTIONS) :
						       function(p, "main", 0);
		locs[i] = profile__add_location(p, PROFILE_NONE, (uint64_t)i + 1);
		assert_int_equal(profile__set_lines(p, locs[i], &l, 1), 0);
	}
	for (int i = 0; i < FUNCTIONS; i++) {
		uint32_t stack[] = { locs[i], locs[FUNCTIONS + i % CALLERS],
				     locs[FUNCTIONS + CALLERS] };

		assert_int_not_equal(profile__add_sample(p, stack, 3, NULL, 0, values),
				     PROFILE_NONE);
	}
	snprintf(comment, sizeof(comment), "%s=%d", FACTS_BLOCK, block);
	assert_int_equal(profile__add_comment(p, comment), 0);
	assert_int_equal(profile__add_comment(p, FACTS_CPU "=1"), 0);
	assert_int_equal(profile__finish(p), 0);
	b = written(p);
	profile__free(p);
	return b;
}

static void open_simulation(struct simulation *s)
{
	char err[256];

	s->share = s->share > 0 ? s->share : PLANTED;
	s->runs = runs__new();
	assert_non_null(s->runs);
	for (int i = 0; i < 2 * s->k; i++) {
		struct bytes b = template(i / 4);

		assert_int_equal(runs__add(s->runs, i % 2 ? RUNS_NEW : RUNS_BASE, "x", b.data, b.sz,
					   err, sizeof(err)),
				 0);
		free(b.data);
	}
	assert_int_equal(runs__finish(s->runs, err, sizeof(err)), 0);
}

/* Two and two in a block, in random order. */
static void deal(struct runs *r)
{
	for (size_t i = 0; i < r->run_cnt; i++)
		r->runs[i].side = i % 2 ? RUNS_NEW : RUNS_BASE;
	for (size_t block = 0; block < r->run_cnt; block += 4)
		for (size_t i = MIN(r->run_cnt - block, (size_t)4); i > 1; i--) {
			struct runs_run *a = &r->runs[block + i - 1];
			struct runs_run *b = &r->runs[block + (size_t)(uniform() * (double)i)];
			enum runs_side side = a->side;

			a->side = b->side;
			b->side = side;
		}
}

/* Draws what each run costs. */
static void draw(struct simulation *s)
{
	struct runs *r = s->runs;

	deal(r);
	for (size_t i = 0; i < r->run_cnt; i++) {
		struct runs_run *run = &r->runs[i];
		struct runs_column *c = &run->columns[0];
		double costs[FUNCTIONS], total = 0, common = s->common * normal();

		if (i >= r->run_cnt / 2)
			common += log1p(s->drift);
		if (run->side == RUNS_NEW)
			common += log1p(s->slower);
		for (int f = 0; f < FUNCTIONS; f++) {
			costs[f] = share_of(s, f) * exp(common + s->own * normal());
			if (!f && run->side == RUNS_NEW)
				costs[f] *= 1 + s->planted;
			total += costs[f];
		}
		c->value = c->count = 0;
		for (size_t k = 0; k < c->cnt; k++) {
			const char *name =
				runs__name(r, r->frames[r->stacks[c->costs[k].stack].at]);
			double n = poisson(costs[atoi(name + 1)] / total * s->samples);

			c->costs[k].count = n;
			c->costs[k].value = n * PERIOD;
			c->count += n;
			c->value += n * PERIOD;
		}
		run->facts.cpu_ns = (uint64_t)(total * s->samples * PERIOD);
	}
}

static struct judge_options options_of(const struct simulation *s)
{
	struct judge_options o = JUDGE_DEFAULTS;

	if (s->named) {
		o.gate_cnt = 1;
		o.gates[0] = (struct judge_gate){ .metric = "cpu", .effect = 0.05 };
		strcpy(o.gates[0].function, s->named);
	}
	return o;
}

/* How many of `sets` sets have this verdict; in *ret_found: of how many the first function has. */
static int count_verdicts(struct simulation *s, int sets, enum judge_verdict verdict,
			  int *ret_found)
{
	const struct judge_options options = options_of(s);
	int ret = 0;

	*ret_found = 0;
	open_simulation(s);
	for (int i = 0; i < sets; i++) {
		struct judge_result *res;
		char err[256];
		bool found = false;

		draw(s);
		assert_int_equal(judge(s->runs, &options, &res, err, sizeof(err)), 0);
		ret += res->verdict == verdict;
		for (size_t k = 0; k < res->metrics[0].row_cnt; k++) {
			const struct judge_row *row = &res->metrics[0].rows[k];

			found |= row->verdict == verdict && row->what == JUDGE_SELF &&
				 !strcmp(runs__name(s->runs, row->function), "f0");
		}
		*ret_found += found;
		judge_free(res);
	}
	runs__free(s->runs);
	return ret;
}

/* How many of `sets` sets regress. */
static int count(struct simulation *s, int sets, int *ret_found)
{
	return count_verdicts(s, sets, JUDGE_REGRESSED, ret_found);
}

static int how_many(int gate, int figures)
{
	return getenv("FIGURES") ? figures : gate;
}

static void figure(const char *what, int n, int sets, double aim, bool at_most)
{
	double percent = 100.0 * n / sets;

	print_message("figure: %s: %.2f %% of %d sets (aim: %s %g): %s\n", what, percent, sets,
		      at_most ? "at most" : "at least", aim,
		      (at_most ? percent <= aim : percent >= aim) ? "reached" : "MISSED");
}

/*
 * At most 5 % of sets in which nothing changed. The bounds are 4 standard deviations of that above it,
 * so that a judge that keeps it does not fail.
 */
static void false_alarms(void **unused)
{
	static const struct {
		const char *what;
		struct simulation s;
	} cases[] = {
		{ "10 against 10, noise 5 %/1 %",
		  { .k = 10, .samples = 20000, .common = .05, .own = .01 } },
		{ "6 against 6, noise 2 %/1 %",
		  { .k = 6, .samples = 10000, .common = .02, .own = .01 } },
		{ "6 against 6 with a step of 5 %",
		  { .k = 6, .samples = 20000, .common = .02, .own = .01, .drift = .05 } },
		{ "4 against 4, noise 2 %/1 %",
		  { .k = 4, .samples = 10000, .common = .02, .own = .01 } },
		{ "6 against 6, noise 5 %/1 %, one function gated",
		  { .k = 6, .samples = 10000, .common = .05, .own = .01, .named = "f0" } },
	};

	(void)unused;
	state = 20261126;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct simulation s = cases[i].s;
		int sets = how_many(s.k == 10 ? 40 : 120, 2000), found;
		int n = count(&s, sets, &found);
		char what[128];

		snprintf(what, sizeof(what), "false alarms, %s", cases[i].what);
		figure(what, n, sets, 5 + 200 * sqrt(0.05 * 0.95 / sets), true);
		assert_true(n <= sets * 0.05 + 4 * sqrt(sets * 0.05 * 0.95));
	}
}

static void power(void **unused)
{
	static const struct {
		const char *what;
		struct simulation s;
		double aim; /* percent */
	} cases[] = {
		{ "5 % in a function of 20 %",
		  { .k = 10, .samples = 20000, .common = .05, .own = .01, .planted = .05 },
		  95 },
		{ "20 % in a function of 2 %",
		  { .k = 10,
		    .samples = 20000,
		    .common = .02,
		    .own = .01,
		    .planted = .2,
		    .share = .02 },
		  90 },
		{ "10 % in a function of 20 %, 4 against 4",
		  { .k = 4, .samples = 20000, .common = .02, .own = .01, .planted = .1 },
		  75 },
		{ "5 % in a function of 20 % that is gated",
		  { .k = 10,
		    .samples = 20000,
		    .common = .05,
		    .own = .01,
		    .planted = .05,
		    .named = "f0" },
		  95 },
		{ "10 % in all functions, of which one is gated",
		  { .k = 10,
		    .samples = 20000,
		    .common = .02,
		    .own = .01,
		    .slower = .1,
		    .named = "f0" },
		  95 },
	};

	(void)unused;
	state = 25;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct simulation s = cases[i].s;
		int sets = how_many(30, 1000), found;
		char what[128];

		count(&s, sets, &found);
		snprintf(what, sizeof(what), "found, %s", cases[i].what);
		figure(what, found, sets, cases[i].aim, false);
		/* so few sets are off by chance */
		assert_true(found >= cases[i].aim / 100 * sets - 0.1 * sets);
	}
}

/* At most 5 % of sets in which all functions cost as much more as is to be caught. The bound is as above. */
static void false_ok(void **unused)
{
	static const char *const named[] = { NULL, "f0" };

	(void)unused;
	state = 6;
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		struct simulation s = { .k = 6,
					.samples = 10000,
					.common = .05,
					.own = .01,
					.slower = .05,
					.named = named[i] };
		int sets = how_many(60, 2000), found;
		int n = count_verdicts(&s, sets, JUDGE_OK, &found);
		char what[128];

		snprintf(what, sizeof(what), "5 %% in all functions are OK, gated: %s",
			 named[i] ? named[i] : "the total");
		figure(what, n, sets, 5 + 200 * sqrt(0.05 * 0.95 / sets), true);
		assert_true(n <= sets * 0.05 + 4 * sqrt(sets * 0.05 * 0.95));
	}
}

/* A look spends a share of alpha: nothing is kept from one to the next, and a stricter one asks for more. */
static void looks(void **unused)
{
	struct simulation s = { .k = 6, .samples = 10000, .common = .2, .own = .01 };
	const double alphas[] = { 0.05, 0.005, 0.05 };
	double p[3][2 * FUNCTIONS + CALLERS];
	struct judge_result *res[3];
	char err[256];

	(void)unused;
	/* a draw whose sides differ by less than it varies */
	state = 8;
	open_simulation(&s);
	draw(&s);
	for (size_t i = 0; i < ARRAY_SIZE(alphas); i++) {
		struct judge_options options = JUDGE_DEFAULTS;

		options.alpha = alphas[i];
		assert_int_equal(judge(s.runs, &options, &res[i], err, sizeof(err)), 0);
		for (size_t k = 0; k < res[i]->metrics[0].row_cnt; k++)
			p[i][k] = res[i]->metrics[0].rows[k].p;
	}
	assert_memory_equal(p[0], p[2], res[0]->metrics[0].row_cnt * sizeof(**p));
	assert_int_equal(res[0]->verdict, JUDGE_CANNOT_TELL);
	assert_int_equal(res[0]->metrics[0].rows[0].more, res[2]->metrics[0].rows[0].more);
	assert_true(res[1]->metrics[0].rows[0].more > res[0]->metrics[0].rows[0].more);
	assert_true(res[0]->metrics[0].critical == res[2]->metrics[0].critical);
	assert_true(res[1]->metrics[0].critical > res[0]->metrics[0].critical);
	for (size_t i = 0; i < ARRAY_SIZE(alphas); i++)
		judge_free(res[i]);
	runs__free(s.runs);
}

/* ---- names ---- */

static void canonical_names(void **unused)
{
	static const char *const names[][2] = {
		{ "main", "main" },
		{ "foo.isra.0", "foo" },
		{ "foo.constprop.0.isra.1", "foo" },
		{ "foo.part.0.cold", "foo" },
		{ "foo.llvm.1234567890", "foo" },
		{ "foo.lto_priv.0", "foo" },
		{ "foo.123", "foo" },
		{ "foo [clone .isra.0]", "foo" },
		{ "foo2", "foo2" },
		{ "memcpy@@GLIBC_2.14", "memcpy" },
		{ "core::fmt::write::h0123456789abcdef", "core::fmt::write" },
		{ "core::fmt::h0123", "core::fmt::h0123" },
		{ "main.main.func1", "main.main.func" },
		{ "main.(*T).run.func2.1", "main.(*T).run.func" },
		{ "main.function1", "main.function1" },
		{ "f::{lambda(int)#2}::operator()", "f::{lambda(int)}::operator()" },
		{ "crate::run::{{closure}}", "crate::run::{{closure}}" },
		{ "std::vector<int, std::allocator<int> >::push_back",
		  "std::vector<int, std::allocator<int> >::push_back" },
		{ "7", "7" },
		{ ".5", ".5" },
	};
	char name[NAMES_SZ], small[8];

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(names_canonical(names[i][0], name, sizeof(name)));
		assert_string_equal(name, names[i][1]);
	}
	assert_false(names_canonical("", name, sizeof(name)));
	assert_false(names_canonical("0x4005d0", name, sizeof(name)));
	assert_true(names_canonical("0x4005d0g", name, sizeof(name)));
	assert_true(names_canonical("longer than it", small, sizeof(small)));
	assert_string_equal(small, "longer ");
}

static void scopes(void **unused)
{
	static const struct {
		const char *name, *scope;
	} names[] = {
		{ "main", "" },
		{ "ns::C::f", "ns::C" },
		{ "ns::C::f(a::b)", "ns::C" },
		{ "v<a::b>::f", "" },
		{ "github.com/x/y.(*T).f", "github.com/x/y" },
		{ "encoding/json.Marshal", "encoding/json" },
		{ "pkg.mod.f", "pkg.mod" },
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t sz = names_scope(names[i].name);

		assert_int_equal(sz, strlen(names[i].scope));
		assert_memory_equal(names[i].name, names[i].scope, sz);
	}
}

static void similarities(void **unused)
{
	(void)unused;
	assert_true(names_similarity("", "") == 1);
	assert_true(names_similarity("abc", "abc") == 1);
	assert_true(names_similarity("abc", "xyz") == 0);
	assert_true(names_similarity("kitten", "sitting") == 1 - 3.0 / 7);
	assert_true(names_similarity("abcd", "abce") == 0.75);
}

/* ---- facts ---- */

static int read_facts(const char *a, const char *b, struct run_facts *f)
{
	struct profile_value_type t = { "samples", "count" };
	struct profile *p = profile__new(&t, 1, t, 1);
	const char *key = NULL;
	int err;

	assert_non_null(p);
	assert_int_equal(profile__add_comment(p, a), 0);
	assert_int_equal(profile__add_comment(p, b), 0);
	err = facts_read(p, f, &key);
	profile__free(p);
	return err;
}

static void what_profiles_say(void **unused)
{
	char line[FACTS_TEXT_SZ + 32];
	struct run_facts f;

	(void)unused;
	assert_int_equal(read_facts("bpfprof.block=3", "bpfprof.machine=m 1", &f), 0);
	assert_int_equal(f.block, 3);
	assert_string_equal(f.machine, "m 1");
	assert_true(f.ops == FACTS_NONE && !*f.run);
	assert_int_equal(read_facts("bpfprof.blocks=3", "block=3", &f), 0);
	assert_true(f.block == FACTS_NONE);
	assert_int_equal(read_facts("bpfprof.ops=0", "", &f), -EBADMSG);
	assert_int_equal(read_facts("bpfprof.block=-1", "", &f), -EBADMSG);
	assert_int_equal(read_facts("bpfprof.block=18446744073709551615", "", &f), -EBADMSG);
	assert_int_equal(read_facts("bpfprof.run=a", "bpfprof.run=b", &f), -EBADMSG);
	assert_int_equal(read_facts("bpfprof.slot=1", "bpfprof.slot=1", &f), -EBADMSG);
	memset(line, 'x', sizeof(line));
	memcpy(line, FACTS_RUN "=", sizeof(FACTS_RUN "=") - 1);
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(read_facts(line, "", &f), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(canonical_names), cmocka_unit_test(scopes),
		cmocka_unit_test(similarities),	   cmocka_unit_test(what_profiles_say),
		cmocka_unit_test(false_alarms),	   cmocka_unit_test(power),
		cmocka_unit_test(looks),	   cmocka_unit_test(false_ok),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
