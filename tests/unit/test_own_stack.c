// SPDX-License-Identifier: BSD-2-Clause
/* A stack that is large enough under a low limit, and only there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "base/own_stack.h"

#define LOW (128U << 10)

static void set_limit(rlim_t to)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_STACK, &l), 0);
	l.rlim_cur = to;
	assert_int_equal(setrlimit(RLIMIT_STACK, &l), 0);
}

/* Takes at least so many bytes of stack; how many pages it did. */
static size_t __attribute__((noinline)) descend(size_t left)
{
	char page[4096];
	size_t deeper = 0;

	asm volatile("" : : "r"(page) : "memory");
	if (left > sizeof(page))
		deeper = descend(left - sizeof(page));
	/* the page is still needed */
	asm volatile("" : : "r"(page) : "memory");
	return deeper + 1;
}

struct seen {
	const char *here;
	size_t pages;
	int calls;
};

static void look(void *arg)
{
	struct seen *s = arg;

	s->here = __builtin_frame_address(0);
	s->calls++;
}

static void look_and_descend(void *arg)
{
	struct seen *s = arg;

	look(arg);
	s->pages = descend(6U << 20);
}

static bool is_near(const char *a, const char *b)
{
	return a > b ? a - b < (64 << 10) : b - a < (64 << 10);
}

static void test_enough(void **state)
{
	struct seen s = {};

	(void)state;
	set_limit(OWN_STACK_SZ);
	own_stack_run(look, &s);
	assert_int_equal(s.calls, 1);
	assert_true(is_near(s.here, __builtin_frame_address(0)));
}

static void test_low(void **state)
{
	struct seen s = {};

	(void)state;
	set_limit(LOW);
	for (int i = 0; i < 3; i++)
		own_stack_run(look_and_descend, &s);
	set_limit(OWN_STACK_SZ);
	assert_int_equal(s.calls, 3);
	assert_int_equal(s.pages, (6U << 20) / 4096);
	assert_false(is_near(s.here, __builtin_frame_address(0)));
}

static void *thread_body(void *arg)
{
	look_and_descend(arg);
	return NULL;
}

static void start_thread(void *arg)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, thread_body, arg), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
}

static void test_threads(void **state)
{
	struct seen s = {};
	pthread_attr_t old, low;

	(void)state;
	assert_int_equal(pthread_getattr_default_np(&old), 0);
	assert_int_equal(pthread_attr_init(&low), 0);
	assert_int_equal(pthread_attr_setstacksize(&low, LOW), 0);
	assert_int_equal(pthread_setattr_default_np(&low), 0);
	set_limit(LOW);
	own_stack_run(start_thread, &s);
	set_limit(OWN_STACK_SZ);
	assert_int_equal(s.pages, (6U << 20) / 4096);
	assert_int_equal(pthread_setattr_default_np(&old), 0);
	pthread_attr_destroy(&old);
	pthread_attr_destroy(&low);
}

/* No room for a stack: what was asked for is done all the same. */
static void test_no_room(void **state)
{
	struct seen s = {};
	struct rlimit old, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	none = (struct rlimit){ .rlim_cur = 1U << 20, .rlim_max = old.rlim_max };
	set_limit(LOW);
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	own_stack_run(look, &s);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	set_limit(OWN_STACK_SZ);
	assert_int_equal(s.calls, 1);
	assert_true(is_near(s.here, __builtin_frame_address(0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_enough),
		cmocka_unit_test(test_low),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
