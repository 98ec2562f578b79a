// SPDX-License-Identifier: BSD-2-Clause
/* The budget on simulated programs: what it lets probes cost, and that what it sees is unbiased. */
#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "budget.h"

#define MS 1000000ULL
#define HIT_NS 750.0
#define ATTACH_NS (2 * MS)
#define DETACH_NS (41 * MS)
#define LATE_NS (6 * MS) /* how long breakpoints stay while they are detached */

/* A program that runs all the time and allocates rate(its own seconds) times a second. */
struct sim {
	uint64_t now;
	double hits, cpu; /* so far */
	double own;	  /* seconds of its own CPU time */
	double allocs;	  /* that there were */
	double edge;	  /* CPU time of attaching and detaching so far, ns */
	double seen;	  /* what the probes say that there were */
	double slice;	  /* seen since the last commit */
	bool attached;
	double (*rate)(double seconds);
	double edge_ns;	    /* CPU time that attaching takes, and detaching */
	uint64_t learns_ns; /* until then hits are taken for half of what they cost */
};

/* A little time: the program's own work and the cost of hits share it. */
static void advance(struct sim *s, uint64_t ns)
{
	double rate = s->rate(s->own), own = ns;

	if (s->attached)
		own = ns / (1 + rate * 1e-9 * HIT_NS);
	s->allocs += rate * own * 1e-9;
	if (s->attached) {
		s->hits += rate * own * 1e-9;
		s->slice += rate * own * 1e-9;
	}
	s->cpu += ns;
	s->own += own * 1e-9;
	s->now += ns;
}

static double cost(const struct sim *s)
{
	return s->hits * HIT_NS;
}

static struct budget_figures figures(const struct sim *s)
{
	return (struct budget_figures){
		.now_ns = s->now,
		.edge_ns = (uint64_t)s->edge,
		.so_far = { .cpu = s->cpu, .hits = s->hits * HIT_NS / 2, .calls = s->hits },
		.factor = s->now >= s->learns_ns ? 2 : 1
	};
}

static void commit(struct sim *s, double weight)
{
	if (weight > 0) {
		s->seen += s->slice * weight;
		s->slice = 0;
	}
}

/* Time in which probes are attached or not, and what is seen counts or not. */
static void pass(struct sim *s, uint64_t ns, bool counts)
{
	double slice = s->slice;

	for (uint64_t end = s->now + ns; s->now < end;)
		advance(s, MS);
	if (!counts)
		s->slice = slice;
}

static void run(struct sim *s, struct budget *b, double share, uint64_t seed, uint64_t ns)
{
	struct budget_figures f = figures(s);

	s->attached = true;
	budget__start(b, share, seed, &f);
	for (uint64_t end = s->now + ns; s->now < end;) {
		enum budget_state was = b->state, now;

		advance(s, MS);
		f = figures(s);
		now = budget__check(b, &f);
		if (now == was)
			continue;
		if (now == BUDGET_ON) {
			s->attached = true;
			pass(s, ATTACH_NS, false);
			s->edge += s->edge_ns;
			f = figures(s);
			commit(s, budget__attached(b, &f));
		} else {
			pass(s, LATE_NS, false);
			s->attached = false;
			pass(s, DETACH_NS - LATE_NS, false);
			s->edge += s->edge_ns;
		}
	}
	f = figures(s);
	commit(s, budget__stop(b, &f));
	s->seen *= budget__revision(b, 2);
}

static double cheap(double t)
{
	(void)t;
	return 20000; /* 1.5 % */
}

static double dear(double t)
{
	(void)t;
	return 1e6; /* 75 % */
}

/* Quiet and busy in turn, with a rhythm that slices of a fixed distance could fall in with. */
static double waves(double t)
{
	double phase = t * 5 - (uint64_t)(t * 5);

	return phase < 0.25 ? 2e6 : 1e5;
}

static void test_within(void **state)
{
	struct sim s = { .rate = cheap };
	struct budget b;

	(void)state;
	run(&s, &b, 0.05, 7, 10000 * MS);
	assert_int_equal(b.state, BUDGET_FULL);
	assert_true(s.seen == s.allocs);
	assert_int_equal(b.on_ns, 10000 * MS);
}

static void test_no_limit(void **state)
{
	struct sim s = { .rate = dear };
	struct budget b;

	(void)state;
	run(&s, &b, 1, 7, 1000 * MS);
	assert_int_equal(b.state, BUDGET_FULL);
	assert_int_equal(b.next_ns, UINT64_MAX);
	assert_true(s.seen == s.allocs);
}

/* Above the share: the cost stays within it, but for the first burst, and nothing is biased. */
static void test_above(double (*rate)(double), uint64_t learns_ns, double within)
{
	const int runs = 200;
	double sum = 0, sq = 0, mean, sigma;

	for (int i = 0; i < runs; i++) {
		struct sim s = { .rate = rate, .own = i * 0.0137, .learns_ns = learns_ns };
		struct budget b;
		double ratio;

		run(&s, &b, 0.05, 1 + (uint64_t)i * 7919, 30000 * MS);
		assert_int_not_equal(b.state, BUDGET_FULL);
		assert_true(b.on_ns < 15000 * MS);
		if ((cost(&s) - 2 * BUDGET_CREDIT_NS) / s.cpu > 0.05 * 1.1)
			fail_msg("run %d costs %.2f %%", i, 100 * cost(&s) / s.cpu);
		ratio = s.seen / s.allocs;
		sum += ratio;
		sq += ratio * ratio;
	}
	mean = sum / runs;
	sigma = sqrt((sq / runs - mean * mean) / runs);
	if (fabs(mean - 1) > 4 * sigma + 0.002 || fabs(mean - 1) > within)
		fail_msg("sees %.4f of what there was, +- %.4f", mean, sigma);
}

static void test_dear(void **state)
{
	(void)state;
	test_above(dear, 0, 0.02);
}

static void test_waves(void **state)
{
	(void)state;
	test_above(waves, 0, 0.03);
}

/* What hits cost is known after a third of the run only. */
static void test_learns(void **state)
{
	(void)state;
	test_above(dear, 10000 * MS, 0.02);
	test_above(waves, 10000 * MS, 0.05);
}

/* Slices cost their part of the share with all that it takes to attach and detach them. */
static void test_edges(void **state)
{
	static const double edges[] = { 0, 1e6, 5e6 };
	/* of CPU time: may be used, slices are to cost */
	static const double shares[][2] = { { 0.01, 0.0075 }, { 0.05, 0.0075 }, { 0.2, 0.03 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(edges) * ARRAY_SIZE(shares); i++) {
		const double *may = shares[i / ARRAY_SIZE(edges)];
		struct sim s = { .rate = dear, .edge_ns = edges[i % ARRAY_SIZE(edges)] };
		struct budget b;
		double share;

		run(&s, &b, may[0], 7, 300000 * MS);
		share = (cost(&s) + s.edge) / s.cpu;
		if (share > may[1] * 1.1 || share < may[1] * 0.7)
			fail_msg("%.3f may be used, %.0f ns an edge: %.3f %%", may[0], s.edge_ns,
				 100 * share);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within), cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_dear),   cmocka_unit_test(test_waves),
		cmocka_unit_test(test_learns), cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
