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
#include "heap/budget.h"
#include "heap/heap_factor.h"

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

static double revision_of_all(const struct budget *b, double factor)
{
	return budget__revision(b, &(struct budget_mark){ 0 }, &b->all, factor);
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
	s->seen *= revision_of_all(b, 2);
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

/* ---- decisions at their edges ---- */

static struct budget_figures at(uint64_t now_ns, double cpu, double hits)
{
	return (struct budget_figures){ .now_ns = now_ns,
					.so_far = { .cpu = cpu, .hits = hits, .calls = hits / 500 },
					.factor = 1 };
}

/* A burst may cost what the credit gives, and no more; then the credit fills up with CPU time. */
static void test_burst(void **state)
{
	struct budget_figures f = at(0, 0, 0);
	struct budget b;

	(void)state;
	budget__start(&b, 0.05, 7, &f);
	/* asked too early it changes nothing */
	f = at(b.next_ns - 1, 1e9, 1e9);
	assert_int_equal(budget__check(&b, &f), BUDGET_FULL);
	f = at(b.next_ns, 20 * MS, BUDGET_CREDIT_NS + 0.05 * 20 * MS);
	assert_int_equal(budget__check(&b, &f), BUDGET_FULL);
	assert_true(fabs(b.credit) < 1);
	/* nothing is left: what one hit costs more than the share is too much, */
	f = at(b.next_ns, 40 * MS, BUDGET_CREDIT_NS + 0.05 * 40 * MS + 500);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	/* but not if there was a pause before, */
	f = at(0, 0, 0);
	budget__start(&b, 0.05, 7, &f);
	f = at(b.next_ns, 20 * MS, BUDGET_CREDIT_NS + 0.05 * 20 * MS);
	assert_int_equal(budget__check(&b, &f), BUDGET_FULL);
	f = at(b.next_ns + 980 * MS, 1020 * MS, BUDGET_CREDIT_NS + 0.05 * 20 * MS);
	assert_int_equal(budget__check(&b, &f), BUDGET_FULL);
	/* which fills it up, and no further */
	assert_true(b.credit == BUDGET_CREDIT_NS);
	f = at(b.next_ns, 1040 * MS, 2 * BUDGET_CREDIT_NS + 0.05 * 40 * MS + 500);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
}

/* What slices may cost: of the share, or of CPU time where more of the share is left. */
static void test_sliced(void **state)
{
	static const double rows[][2] = {
		{ 0.001, 0.00075 }, { 0.01, 0.0075 }, { 0.04, 0.0075 },
		{ 0.05, 0.0075 },   { 0.1, 0.015 },   { 0.9, 0.135 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct budget b = { .share = rows[i][0] };

		if (fabs(budget__sliced(&b) - rows[i][1]) > 1e-9)
			fail_msg("%.3f: %.5f", b.share, budget__sliced(&b));
	}
}

/* Two slices with a gap: what each stands for, to the nanosecond. */
static void test_weights(void **state)
{
	struct budget_figures f = at(0, 0, 0);
	struct budget b;
	uint64_t begin;

	(void)state;
	budget__start(&b, 0.05, 7, &f);
	/* 20 ms, half of which is hits */
	f = at(b.next_ns, 20 * MS, 20 * MS / 2);
	assert_int_equal(budget__check(&b, &f), BUDGET_FULL);
	f = at(b.next_ns, 40 * MS, 40 * MS / 2);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	assert_true(b.next_ns >= f.now_ns + BUDGET_MIN_GAP_NS / 2);
	assert_true(b.next_ns <= f.now_ns + BUDGET_MIN_GAP_NS * 3 / 2);
	/* 60 ms without hits */
	f = at(b.next_ns, 100 * MS, 40 * MS / 2);
	assert_int_equal(budget__check(&b, &f), BUDGET_ON);
	/* the first part was 20 ms of the program's own, and stands for 30 more */
	assert_true(fabs(budget__attached(&b, &f) - 50.0 / 20) < 1e-9);
	begin = f.now_ns;
	assert_int_equal(b.next_ns, begin + BUDGET_SLICE_NS);
	f = at(b.next_ns, 120 * MS, 60 * MS / 2);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	/* the slice was 10 ms, after 30 ms and before 5 that end with the run */
	f = at(f.now_ns + 5 * MS, 125 * MS, 60 * MS / 2);
	assert_true(fabs(budget__stop(&b, &f) - 45.0 / 10) < 1e-9);
	/* all by the same factor: nothing is to be set right */
	assert_true(fabs(revision_of_all(&b, 1) - 1) < 1e-9);
}

/* The same, in parts that end between two slices, and in one: together they stand for all of the
 * time. */
static void test_parts(void **state)
{
	struct budget_figures f = at(0, 0, 0);
	struct budget b;

	(void)state;
	budget__start(&b, 0.05, 7, &f);
	f = at(b.next_ns - MS, 20 * MS, 20 * MS / 2);
	assert_true(budget__part(&b, &f) == 1);
	f = at(b.next_ns, 40 * MS, 40 * MS / 2);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	/* 10 ms of the program's own were seen since, and it has run 15 without probes */
	f = at(f.now_ns + 15 * MS, 55 * MS, 40 * MS / 2);
	assert_true(fabs(budget__part(&b, &f) - 25.0 / 10) < 1e-9);
	/* nothing is seen in a part that ends before the next slice: its time is that slice's */
	f = at(f.now_ns + 5 * MS, 60 * MS, 40 * MS / 2);
	assert_true(budget__part(&b, &f) == 1);
	f = at(b.next_ns, 100 * MS, 40 * MS / 2);
	assert_int_equal(budget__check(&b, &f), BUDGET_ON);
	assert_true(budget__attached(&b, &f) == 0);
	/* 4 ms of it, after 45 */
	f = at(f.now_ns + 8 * MS, 108 * MS, 48 * MS / 2);
	assert_true(fabs(budget__part(&b, &f) - 49.0 / 4) < 1e-9);
	f = at(b.next_ns, 120 * MS, 60 * MS / 2);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	assert_true(fabs(budget__stop(&b, &f) - 1) < 1e-9);
}

/* What a part was weighed by is set right for that part alone, by what is known of the factor at its end: the
 * next one was weighed by that already. */
static void test_parts_revised(void **state)
{
	struct budget_figures f = at(0, 0, 0);
	struct budget_mark first, second;
	struct budget b;

	(void)state;
	budget__start(&b, 0.05, 7, &f);
	f = at(b.next_ns, 60 * MS, 20 * MS);
	f.so_far.calls = 100;
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	/* weighed as if hits had taken 20 of 60 ms, where they took 40 */
	f.now_ns += 20 * MS;
	f.so_far.cpu += 20 * MS;
	assert_true(fabs(budget__part(&b, &f) - 60.0 / 40) < 1e-9);
	first = b.all;
	for (int i = 0; i < 2; i++) {
		f.factor = 2;
		f.now_ns = b.next_ns;
		f.so_far.cpu += 60 * MS;
		assert_int_equal(budget__check(&b, &f), BUDGET_ON);
		(void)budget__attached(&b, &f);
		f.now_ns = b.next_ns;
		f.so_far.cpu += 20 * MS;
		f.so_far.hits += 20 * MS / 4;
		f.so_far.calls += 50;
		assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	}
	f.now_ns += 20 * MS;
	f.so_far.cpu += 20 * MS;
	(void)budget__part(&b, &f);
	second = b.all;
	assert_true(fabs(budget__revision(&b, &(struct budget_mark){ 0 }, &first, 2) -
			 (40.0 / 20) / (60.0 / 40)) < 1e-9);
	assert_true(fabs(budget__revision(&b, &first, &second, 2) - 1) < 1e-9);
	/* all of them: what was observed before a pause counts as well */
	assert_true(revision_of_all(&b, 2) > 1.001);
	budget__resume(&b, &f);
	assert_int_equal(b.state, BUDGET_FULL);
	assert_true(fabs(budget__revision(&b, &(struct budget_mark){ 0 }, &first, 2) -
			 (40.0 / 20) / (60.0 / 40)) < 1e-9);
	assert_true(fabs(budget__revision(&b, &second, &b.all, 2) - 1) < 1e-9);
}

/* A slice in which the program hardly ran does not stand for the time beside it; the next does. */
static void test_idle(void **state)
{
	struct budget_figures f = at(0, 0, 0);
	struct budget b;

	(void)state;
	budget__start(&b, 0.05, 7, &f);
	f = at(b.next_ns, 30 * MS, 20 * MS);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	f = at(b.next_ns, 70 * MS, 20 * MS);
	assert_int_equal(budget__check(&b, &f), BUDGET_ON);
	assert_true(fabs(budget__attached(&b, &f) - 30.0 / 10) < 1e-9);
	/* 0.5 ms in it, then 39.5 without probes */
	f = at(b.next_ns, 70.5 * MS, 20 * MS);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	f = at(b.next_ns, 110 * MS, 20 * MS);
	assert_int_equal(budget__check(&b, &f), BUDGET_ON);
	assert_true(budget__attached(&b, &f) == 0);
	/* 9.5 ms more in the next one: these 10 stand for 20 and 39.5 more */
	f = at(b.next_ns, 119.5 * MS, 20 * MS);
	assert_int_equal(budget__check(&b, &f), BUDGET_OFF);
	f = at(f.now_ns, 119.5 * MS, 20 * MS);
	assert_true(fabs(budget__stop(&b, &f) - (10 + 20 + 39.5) / 10) < 1e-9);
}

/* ---- with what hits cost learnt from the slices, as heap.c does it ---- */

#define FREES_EVERY 2 /* slices */

/*
 * A program that works a while between a malloc and the next, three times as long as a hit takes,
 * and frees in between. Hits cost so many times what was measured. Returns what is seen of what
 * there was.
 */
static double learnt(double times, uint64_t seed, double *ret_share)
{
	double own = 3 * HIT_NS * times, cpu = 0, hits = 0, calls = 0, slice_calls = 0, seen = 0;
	double allocs = 0, error, cost = 0;
	struct heap_factor factor = { 0 };
	struct budget_figures f = { .factor = 1 };
	struct budget_time begin = { 0 };
	struct budget b;
	bool attached = true;
	int per_call = 2;

	budget__start(&b, 0.1, seed, &f);
	for (uint64_t now = MS; now <= 20000 * MS; now += MS) {
		double call = own + (attached ? per_call * HIT_NS * times : 0), n = MS / call;
		enum budget_state was = b.state, state;
		double weight;

		cpu += MS;
		allocs += n;
		if (attached) {
			hits += n * per_call * HIT_NS;
			cost += n * per_call * HIT_NS * times;
			calls += n;
			slice_calls += n;
		}
		f.now_ns = now;
		f.so_far = (struct budget_time){ .cpu = cpu, .hits = hits, .calls = calls };
		if (now < b.next_ns)
			continue;
		if (was == BUDGET_ON)
			heap_factor__add(&factor, &(struct heap_factor_slice){
							  .cpu_ns = cpu - begin.cpu,
							  .hits_ns = hits - begin.hits,
							  .calls = calls - begin.calls });
		f.factor = heap_factor__get(&factor, &error);
		state = budget__check(&b, &f);
		if (state == was)
			continue;
		attached = state == BUDGET_ON;
		if (!attached)
			continue;
		per_call = b.slices % FREES_EVERY ? 1 : 2;
		begin = f.so_far;
		weight = budget__attached(&b, &f);
		if (weight > 0) {
			seen += slice_calls * weight;
			slice_calls = 0;
		}
	}
	seen += slice_calls * budget__stop(&b, &f);
	assert_int_not_equal(b.state, BUDGET_FULL);
	*ret_share = (cost - BUDGET_CREDIT_NS * times) / cpu;
	return seen * revision_of_all(&b, heap_factor__get(&factor, &error)) / allocs;
}

static void test_learnt(void **state)
{
	static const double times[] = { 0.5, 1, 2, 3 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		for (uint64_t seed = 1; seed <= 20; seed++) {
			double share, ratio = learnt(times[i], seed * 7919, &share);

			if (fabs(ratio - 1) > 0.06)
				fail_msg("hits cost %.1f times as much: sees %.4f", times[i],
					 ratio);
			if (share > 0.1)
				fail_msg("hits cost %.1f times as much: %.2f %% of the time",
					 times[i], 100 * share);
		}
	}
}

/* What hits cost programs that are not profiled counts as what they cost those that are, but is no
 * part of their time. */
static void test_others(void **state)
{
	struct budget_figures f = { .factor = 1 };
	struct budget b;

	(void)state;
	budget__start(&b, 0.05, 1, &f);
	for (int i = 0; b.state == BUDGET_FULL && i < 100; i++) {
		f.now_ns += 20 * MS;
		f.so_far.cpu += 10 * MS;
		f.so_far.others += 2 * MS;
		(void)budget__check(&b, &f);
	}
	/* 1.5 ms more each time than the 0.5 that the share allows use up the credit */
	assert_int_equal(b.state, BUDGET_OFF);
	assert_int_equal(f.now_ns / (20 * MS), 7);
	assert_true(budget__hit_share(&b, 1) == 0);
	assert_true(budget__stop(&b, &f) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within),	      cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_dear),	      cmocka_unit_test(test_waves),
		cmocka_unit_test(test_learns),	      cmocka_unit_test(test_edges),
		cmocka_unit_test(test_burst),	      cmocka_unit_test(test_sliced),
		cmocka_unit_test(test_weights),	      cmocka_unit_test(test_parts),
		cmocka_unit_test(test_parts_revised), cmocka_unit_test(test_idle),
		cmocka_unit_test(test_learnt),	      cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
