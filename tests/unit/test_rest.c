// SPDX-License-Identifier: BSD-2-Clause
/* What is left alone: for how long, and of how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rest.h"

static uint64_t now = 1000 * NSEC_PER_SEC;

uint64_t __wrap_util_monotonic_ns(void);

uint64_t __wrap_util_monotonic_ns(void)
{
	return now;
}

static struct rest_key key(uint64_t n)
{
	return (struct rest_key){ { n, 1 } };
}

/* A minute, then two, up to 64. */
static void test_doubles(void **state)
{
	uint64_t ns = 60 * NSEC_PER_SEC;
	struct rests r = { 0 };

	(void)state;
	assert_false(rests__has(&r, key(7)));
	for (int i = 0; i < 9; i++) {
		rests__begin(&r, key(7));
		assert_int_equal(rests__cnt(&r), 1);
		assert_false(rests__has(&r, key(8)));
		now += ns - 1;
		assert_true(rests__has(&r, key(7)));
		now += 1;
		assert_false(rests__has(&r, key(7)));
		assert_int_equal(rests__cnt(&r), 0);
		ns = MIN(2 * ns, 64 * 60 * NSEC_PER_SEC);
	}
}

/* The one that would have been let go first is forgotten. */
static void test_many(void **state)
{
	struct rests r = { 0 };

	(void)state;
	for (uint64_t i = 0; i < RESTS_MAX; i++) {
		rests__begin(&r, key(i));
		now++;
	}
	assert_int_equal(rests__cnt(&r), RESTS_MAX);
	rests__begin(&r, key(0));
	rests__begin(&r, key(RESTS_MAX));
	assert_int_equal(rests__cnt(&r), RESTS_MAX);
	for (uint64_t i = 0; i <= RESTS_MAX; i++)
		assert_int_equal(rests__has(&r, key(i)), i != 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
