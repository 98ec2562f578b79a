// SPDX-License-Identifier: BSD-2-Clause
/* How often clocks may sample: together no more than their share of a CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel/sample_rate.h"

static void test_left(void **state)
{
	(void)state;
	/* a fourth of a second is 13,888 samples of 18 us, and 2,500 of 100 us */
	assert_int_equal(sample_rate_left(100000, 0, 18000, 25), 13000);
	assert_int_equal(sample_rate_left(13000, 0, 18000, 25), 13000);
	assert_int_equal(sample_rate_left(997, 0, 18000, 25), 997);
	assert_int_equal(sample_rate_left(4999, 0, 100000, 25), 2500);
	assert_int_equal(sample_rate_left(20000, 0, 20000, 1), 500);
	/* others have some of it, or all */
	assert_int_equal(sample_rate_left(5000, 9000, 18000, 25), 4000);
	assert_int_equal(sample_rate_left(5000, 13000, 18000, 25), SAMPLE_RATE_LEAST);
	assert_int_equal(sample_rate_left(5000, 20000, 18000, 25), SAMPLE_RATE_LEAST);
	assert_int_equal(sample_rate_left(19, 20000, 18000, 25), 19);
	/* which even one clock does not leave */
	assert_int_equal(sample_rate_left(5000, 0, 500000000, 25), SAMPLE_RATE_LEAST);
}

/* So few that it does not matter what a sample takes: nothing is measured. */
static void test_few(void **state)
{
	double percent = 1;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sample_rate__take(19, &percent), 19);
		assert_true(percent == 0);
		assert_int_equal(sample_rate__take(99, &percent), 99);
		assert_true(percent == 0);
		sample_rate__give(19);
		sample_rate__give(99);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
