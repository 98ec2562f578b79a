// SPDX-License-Identifier: BSD-2-Clause
/* The budget of waits on simulated programs: what recording may cost them, and that sums stay true.
 */
#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "capture/wait_budget.h"

#define TICK_NS 100000000ULL
#define TICKS_A_SECOND 10
#define COST_NS 2000.0 /* of a wait that is recorded */

struct sim {
	double per_second; /* waits */
	double mean_ns;	   /* of their lengths, which are exponentially distributed */
	double cpus;	   /* that the program keeps busy */
	struct wait_budget_figures f;
	double cost;
	double cnt, ns;		  /* that there were */
	double got_cnt, got_ns;	  /* by what was recorded */
	double var_cnt, recorded; /* variance of got_cnt */
};

/* As weigh in bpf/wait_record.bpf.h. */
static void wait_once(struct sim *s, double rate)
{
	double ns = -log(1 - drand48()) * s->mean_ns, p = rate > ns ? ns / rate : 1;

	s->cnt++;
	s->ns += ns;
	s->var_cnt += (1 - p) / p;
	if (drand48() >= p)
		return;
	s->recorded++;
	s->cost += COST_NS;
	s->got_cnt += 1 / p;
	s->got_ns += ns / p;
}

/* Returns what recording costs in that time, as a share of it. */
static double run(struct sim *s, struct wait_budget *b, int seconds)
{
	double before = s->cost;

	for (int i = 0; i < seconds * TICKS_A_SECOND; i++) {
		for (int j = 0; j < s->per_second / TICKS_A_SECOND; j++)
			wait_once(s, b->rate_ns);
		s->f.now_ns += TICK_NS;
		s->f.cpu_ns += s->cpus * TICK_NS;
		s->f.cost_ns = (uint64_t)s->cost;
		wait_budget__check(b, &s->f);
	}
	return (s->cost - before) * 1e-9 / seconds;
}

static void start(struct sim *s, struct wait_budget *b, double share, uint64_t least_ns)
{
	srand48(1);
	wait_budget__start(b, share, least_ns, &s->f);
}

/* What costs less than it may is recorded whole: of a busy program, and of one that only waits. */
static void test_exact(void **state)
{
	struct sim sims[] = { { .per_second = 9000, .mean_ns = 1e5, .cpus = 1 },
			      { .per_second = 4500, .mean_ns = 1e6, .cpus = 0.01 },
			      { .per_second = 20, .mean_ns = 1e9 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sims); i++) {
		struct wait_budget b;

		start(&sims[i], &b, 0.02, 0);
		run(&sims[i], &b, 20);
		assert_int_equal(b.rate_ns, 0);
		assert_int_equal(b.limited_ns, 0);
		assert_int_equal(wait_budget__mean_rate(&b), 0);
		assert_true(sims[i].got_cnt == sims[i].cnt);
	}
}

/* Of many more the cost is kept, whatever their lengths, and their sums are right. */
static void test_limited(void **state)
{
	static const double mean_ns[] = { 2e3, 5e4, 2e6, 1e8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mean_ns); i++) {
		struct sim s = { .per_second = 200000, .mean_ns = mean_ns[i], .cpus = 2 };
		struct wait_budget b;
		double first, share;

		start(&s, &b, 0.02, 0);
		first = run(&s, &b, 2);
		share = run(&s, &b, 8);
		/* of two CPUs; until the rate is found more, at most 0.4 a second for 0.7 s */
		if (share > 0.041 || share < 0.02 || first > 0.2)
			fail_msg("mean %g ns: %.4f of a CPU, at first %.4f", mean_ns[i], share,
				 first);
		assert_true(b.limited_ns > 9 * NSEC_PER_SEC);
		assert_true(wait_budget__mean_rate(&b) > mean_ns[i]);
		if (fabs(s.got_cnt - s.cnt) > 4 * sqrt(s.var_cnt))
			fail_msg("mean %g ns: %.0f waits, truth %.0f, sigma %.0f", mean_ns[i],
				 s.got_cnt, s.cnt, sqrt(s.var_cnt));
		if (fabs(s.got_ns / s.ns - 1) > 0.05)
			fail_msg("mean %g ns: %g ns, truth %g", mean_ns[i], s.got_ns, s.ns);
		assert_true(s.recorded < 0.3 * s.cnt);
	}
}

/* The limit goes when it is not needed any more, and comes back. */
static void test_phases(void **state)
{
	struct sim s = { .per_second = 100000, .mean_ns = 1e5, .cpus = 1 };
	struct wait_budget b;
	uint64_t limited;

	(void)state;
	start(&s, &b, 0.02, 0);
	run(&s, &b, 5);
	assert_true(b.rate_ns > 0);
	s.per_second = 2000;
	run(&s, &b, 3);
	assert_int_equal(b.rate_ns, 0);
	limited = b.limited_ns;
	run(&s, &b, 5);
	assert_int_equal(b.limited_ns, limited);
	s.per_second = 100000;
	run(&s, &b, 2);
	assert_true(b.rate_ns > 0);
}

/* What is just affordable is recorded whole again behind a burst that was not. */
static void test_nearly_all(void **state)
{
	struct sim s = { .per_second = 100000, .mean_ns = 1e5, .cpus = 1 };
	struct wait_budget b;

	(void)state;
	start(&s, &b, 0.02, 0);
	run(&s, &b, 2);
	assert_true(b.rate_ns > 0);
	s.per_second = 9000;
	run(&s, &b, 20);
	assert_int_equal(b.rate_ns, 0);
}

/* Nobody looks for two seconds in which much is recorded: that is not paid for much longer. */
static void test_late(void **state)
{
	struct sim s = { .per_second = 20, .mean_ns = 1e5, .cpus = 1 };
	struct wait_budget b;

	(void)state;
	start(&s, &b, 0.02, 0);
	run(&s, &b, 1);
	s.f.now_ns += 2 * NSEC_PER_SEC;
	s.f.cpu_ns += 2 * NSEC_PER_SEC;
	s.cost += 1e9;
	run(&s, &b, 3);
	assert_int_equal(b.rate_ns, 0);
	assert_true(b.limited_ns > 0 && b.limited_ns < 2 * NSEC_PER_SEC);
}

/* Figures that go back by a little, since they are estimates, are no cost. */
static void test_back(void **state)
{
	struct sim s = { .f = { .cost_ns = 1000000 } };
	struct wait_budget b;

	(void)state;
	start(&s, &b, 0.02, 0);
	for (int i = 0; i < 100; i++) {
		s.f.now_ns += TICK_NS;
		s.f.cost_ns -= 7;
		assert_int_equal(wait_budget__check(&b, &s.f), 0);
	}
	assert_int_equal(b.limited_ns, 0);
}

static void test_no_limit(void **state)
{
	struct sim s = { .per_second = 100000, .mean_ns = 1e5, .cpus = 1 };
	struct wait_budget b;

	(void)state;
	start(&s, &b, 1, 0);
	run(&s, &b, 5);
	assert_int_equal(b.rate_ns, 0);
	assert_true(s.got_cnt == s.cnt);
}

/* A rate that was asked for holds, and more where it does not do. */
static void test_least(void **state)
{
	struct sim s = { .per_second = 1000, .mean_ns = 1e5, .cpus = 1 };
	struct wait_budget b;

	(void)state;
	start(&s, &b, 0.02, 50000);
	run(&s, &b, 3);
	assert_int_equal(b.rate_ns, 50000);
	assert_int_equal(b.limited_ns, 0);
	assert_int_equal(wait_budget__mean_rate(&b), 50000);
	s.per_second = 200000;
	run(&s, &b, 5);
	assert_true(b.rate_ns > 50000);
	s.per_second = 1000;
	run(&s, &b, 5);
	assert_int_equal(b.rate_ns, 50000);
}

/* What switches take is no longer there for recording, but for a quarter. */
static void test_switches(void **state)
{
	static const struct {
		double cpus, taken; /* share of that */
		double least, most; /* that recording may cost, CPUs */
	} rows[] = {
		{ 2, 0, 0.030, 0.042 },
		{ 2, 0.008, 0.018, 0.0252 },
		{ 2, 0.015, 0.0074, 0.0105 },
		{ 2, 0.5, 0.0074, 0.0105 },
		/* who uses little loses little */
		{ 0.1, 0.008, 0.0144, 0.0202 },
		{ 0.1, 0.1, 0.0075, 0.0105 },
		{ 0.1, 1, 0.0037, 0.00525 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sim s = { .per_second = 100000, .mean_ns = 1e5 };
		struct wait_budget b;
		double took;

		s.cpus = rows[i].cpus;
		s.f.switch_share = rows[i].taken;
		start(&s, &b, 0.02, 0);
		run(&s, &b, 3);
		took = run(&s, &b, 20);
		if (took < rows[i].least || took > rows[i].most)
			fail_msg("of %g CPUs switches take %g: %.5f", rows[i].cpus, rows[i].taken,
				 took);
		if (fabs(s.got_cnt - s.cnt) > 4 * sqrt(s.var_cnt))
			fail_msg("%.0f waits, truth %.0f", s.got_cnt, s.cnt);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),	 cmocka_unit_test(test_limited),
		cmocka_unit_test(test_phases),	 cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_least),	 cmocka_unit_test(test_nearly_all),
		cmocka_unit_test(test_late),	 cmocka_unit_test(test_back),
		cmocka_unit_test(test_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
