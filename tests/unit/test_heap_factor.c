// SPDX-License-Identifier: BSD-2-Clause
/* What hits cost, learnt from slices of simulated programs. */
#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "heap/heap_factor.h"

#define HIT_NS 500.0 /* as was measured */

static double even(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*seed >> 11) * 0x1p-53;
}

/* Slices of 20 ms, each in one of two phases of a program that does so much between two calls, and
 * up to a part of that more or less. In every second one calls take two hits. */
static void run(struct heap_factor *f, size_t slices, double factor, const double work_ns[2],
		double varies, uint64_t seed)
{
	for (size_t i = 0; i < slices; i++) {
		double work = work_ns[even(&seed) < 0.5], hits = HIT_NS * (1 + i % 2);

		work *= 1 + varies * (2 * even(&seed) - 1);
		heap_factor__add(f, &(struct heap_factor_slice){
					    .cpu_ns = 2e7,
					    .hits_ns = hits * 2e7 / (work + factor * hits),
					    .calls = 2e7 / (work + factor * hits) });
	}
}

static void test_nothing_known(void **state)
{
	struct heap_factor f = { 0 };
	double error;

	(void)state;
	assert_true(heap_factor__get(&f, &error) == 1);
	assert_true(error == HEAP_FACTOR_PRIOR);
	assert_true(heap_factor__settled(&f, 0.03));
	assert_false(heap_factor__settled(&f, 0.25));
	/* one slice has nothing beside it */
	run(&f, 1, 2, (double[]){ 1000, 1000 }, 0, 1);
	assert_true(heap_factor__get(&f, &error) == 1);
}

/* The mean of what is learnt is right, or between that and what was measured. */
static void test_learns(void **state)
{
	static const struct {
		double factor, work[2], varies, least, most;
	} rows[] = {
		{ 1, { 1500, 1500 }, 0.05, 0.97, 1.03 },
		{ 0.5, { 1500, 1500 }, 0.05, 0.48, 0.54 },
		{ 2, { 1500, 1500 }, 0.05, 1.95, 2.02 },
		{ 3, { 300, 300 }, 0.05, 2.95, 3.02 },
		/* phases: neighbours differ by far more than what hits cost, or hardly */
		{ 0.5, { 1500, 15000 }, 0.05, 0.5, 0.95 },
		{ 2, { 1500, 15000 }, 0.05, 1.1, 2 },
		/* calls are too far apart */
		{ 0.5, { 100000, 100000 }, 0.2, 0.9, 1.1 },
		{ 2, { 100000, 100000 }, 0.2, 0.9, 1.1 },
	};
	const int runs = 50;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double mean = 0, error;

		for (int seed = 1; seed <= runs; seed++) {
			struct heap_factor f = { 0 };

			run(&f, 64, rows[i].factor, rows[i].work, rows[i].varies, seed);
			mean += heap_factor__get(&f, &error) / runs;
			assert_true(heap_factor__settled(&f, 0.9));
		}
		if (mean < rows[i].least || mean > rows[i].most)
			fail_msg("row %zu: %.3f, not %.3f", i, mean, rows[i].factor);
	}
}

/* Its error is what it is wrong by, as a rule. */
static void test_error(void **state)
{
	const int runs = 400;
	int within = 0;

	(void)state;
	for (int i = 0; i < runs; i++) {
		struct heap_factor f = { 0 };
		double got, error;

		run(&f, 9, 1.2, (double[]){ 1500, 1500 }, 0.1, i + 1);
		got = heap_factor__get(&f, &error);
		within += fabs(got - 1.2) < 2 * error;
	}
	assert_true(within > 0.9 * runs);
}

static void test_tells_nothing(void **state)
{
	struct heap_factor f = { 0 }, costless = { 0 };
	double error;

	(void)state;
	/* the same hits in all */
	for (int i = 0; i < 10; i++)
		heap_factor__add(&f, &(struct heap_factor_slice){ 2e7 + i * 1e6, 5e6, 10000 });
	/* that cost nothing, as far as can be measured */
	for (int i = 0; i < 10; i++)
		heap_factor__add(&costless, &(struct heap_factor_slice){ 2e7 + i * 1e6, 0, 10000 });
	/* hardly any calls */
	run(&f, 10, 2, (double[]){ 1e6, 1e6 }, 0, 1);
	assert_int_equal(f.pair_cnt, 0);
	assert_int_equal(costless.pair_cnt, 0);
	assert_true(heap_factor__get(&f, &error) == 1);
}

static void test_limits(void **state)
{
	struct heap_factor f = { 0 };
	double error;

	(void)state;
	run(&f, 64, 100, (double[]){ 1000, 1000 }, 0, 1);
	assert_true(heap_factor__get(&f, &error) == HEAP_FACTOR_MAX);
	/* the newest count */
	run(&f, HEAP_FACTOR_PAIRS + 1, 0.01, (double[]){ 1000, 1000 }, 0, 1);
	assert_true(heap_factor__get(&f, &error) == 1 / HEAP_FACTOR_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_known), cmocka_unit_test(test_learns),
		cmocka_unit_test(test_error),	      cmocka_unit_test(test_tells_nothing),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
