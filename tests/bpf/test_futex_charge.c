// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpf/futex_charge.h in every interleaving of what a few CPUs do at one futex at a time. An actor
 * stops before each access to the word; to go on it is run once more, with the results of its
 * earlier accesses.
 */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"

#define MAX_ACTORS 3
#define MAX_STEPS 8
#define MAX_WAITS 8
#define YEARS_10 ((__s64)10 * 365 * 86400 * (1000000000 / 64)) /* units of 64 ns */

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define FUTEX_ADD(sum, by) ((void)step(sum, by))
#define FUTEX_READ(sum) step(sum, 0)

static __u64 step(__u64 *sum, __u64 by);
#include "futex_charge.h"

/* ---- actors ---- */

struct actor {
	__s64 since, now; /* now 0: a waiter comes; else it is woken */
	__s64 charged;
	bool done;
	int len;
	__u64 log[MAX_STEPS];
};

static struct world {
	__u64 sum;
	struct actor actors[MAX_ACTORS];
} world;
static struct actor *me;
static int pos;
static bool granted;
static jmp_buf stopped;

/* Adds to the word, and returns what it was before. */
static __u64 step(__u64 *sum, __u64 by)
{
	if (pos < me->len)
		return me->log[pos++];
	if (!granted)
		longjmp(stopped, 1);
	granted = false;
	assert_true(me->len < MAX_STEPS);
	me->log[me->len++] = *sum;
	*sum += by;
	return me->log[pos++];
}

static void run(void)
{
	if (me->now)
		me->charged = futex_charge(&world.sum, me->since, me->now);
	else
		futex_come(&world.sum, me->since);
	me->done = true;
}

/* Its next step, and what it does behind it without the word. */
static void go_on(struct actor *a)
{
	me = a;
	pos = 0;
	granted = true;
	if (!setjmp(stopped))
		run();
}

/* Returns what is charged. */
static __s64 alone(__s64 since, __s64 now)
{
	struct actor a = { .since = since, .now = now };

	while (!a.done)
		go_on(&a);
	return a.charged;
}

/* ---- cases ---- */

struct wait {
	__s64 since, until;
};

static const struct wait *later; /* those that end after the actors are done, one by one */
static size_t later_cnt;
static __s64 waited; /* by all */
static int interleavings;

/* Everything is charged, and nothing twice. */
static void end(void)
{
	__s64 charged = 0;

	for (int i = 0; i < MAX_ACTORS; i++) {
		assert_true(world.actors[i].charged >= 0);
		charged += world.actors[i].charged;
	}
	for (size_t i = 0; i < later_cnt; i++)
		charged += alone(later[i].since, later[i].until);
	if (charged != waited || world.sum)
		fail_msg("charged for %lld, waited for %lld; left %llx", charged, waited,
			 world.sum);
	interleavings++;
}

/* Every interleaving from here on. */
static void try_all(void)
{
	struct world before = world;
	bool left = false;

	for (size_t i = 0; i < MAX_ACTORS; i++) {
		if (world.actors[i].done)
			continue;
		left = true;
		go_on(&world.actors[i]);
		try_all();
		world = before;
	}
	if (!left)
		end();
}

/* The first two waits are ended at once; with comes, while another waiter comes: the last one that ends
 * later. */
static void check_from(__s64 start, const struct wait *after, size_t cnt, bool comes)
{
	struct wait waits[MAX_WAITS];

	for (size_t i = 0; i < cnt; i++)
		waits[i] = (struct wait){ start + after[i].since, start + after[i].until };
	world = (struct world){ .actors[2].done = true };
	waited = interleavings = 0;
	for (size_t i = 0; i < cnt; i++) {
		const struct wait *w = &waits[i];

		waited += w->until > w->since ? w->until - w->since : 0;
		if (!comes || i < cnt - 1)
			(void)alone(w->since, 0);
		if (i < 2)
			world.actors[i] = (struct actor){ .since = w->since, .now = w->until };
	}
	if (comes)
		world.actors[2] = (struct actor){ .since = waits[cnt - 1].since };
	later = waits + 2;
	later_cnt = cnt - 2;
	try_all();
	assert_true(interleavings >= 20);
}

static void check(const struct wait *waits, size_t cnt, bool comes)
{
	check_from(0, waits, cnt, comes);
	check_from(YEARS_10, waits, cnt, comes);
}

static void two_wakes_at_once(void **state)
{
	const struct wait waits[] = { { 100, 1000 }, { 200, 1000 }, { 300, 1500 }, { 1200, 9000 } };

	(void)state;
	check(waits, ARRAY_SIZE(waits), false);
	check(waits, ARRAY_SIZE(waits) - 1, false);
}

/* By the clocks of their CPUs; either may be the first at the word. */
static void one_wake_before_the_other(void **state)
{
	const struct wait waits[] = { { 100, 1000 }, { 200, 1010 }, { 300, 5000 }, { 300, 5000 } };

	(void)state;
	check(waits, ARRAY_SIZE(waits), false);
}

static void a_waiter_comes(void **state)
{
	const struct wait waits[] = { { 100, 1000 }, { 100, 1001 }, { 300, 5000 }, { 1000, 9000 } };

	(void)state;
	check(waits, ARRAY_SIZE(waits), true);
}

/* The clock of the waker is behind that of the waiter: the wait is none, and takes nothing from others. */
static void a_wake_before_the_wait(void **state)
{
	const struct wait waits[] = { { 1010, 1000 }, { 100, 1000 }, { 300, 5000 } };

	(void)state;
	check(waits, ARRAY_SIZE(waits), false);
}

/* A pool of threads that waits for work for ten minutes and more, long after the start. */
static void many_waiters(void **state)
{
	enum {
		WAITERS = 1000
	};
	const __s64 second = 1000000000 / 64, first = 600 * second;
	__s64 charged = 0, all = 0;

	(void)state;
	world = (struct world){ 0 };
	for (int i = 0; i < WAITERS; i++)
		(void)alone(YEARS_10 + i, 0);
	for (int i = 0; i < WAITERS; i++) {
		__s64 until = YEARS_10 + first + i * second;

		charged += alone(YEARS_10 + i, until);
		all += until - (YEARS_10 + i);
		assert_true(charged >= all && charged <= WAITERS * (first + WAITERS * second));
	}
	assert_int_equal(charged, all);
	assert_int_equal(world.sum, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_wakes_at_once), cmocka_unit_test(one_wake_before_the_other),
		cmocka_unit_test(a_waiter_comes),    cmocka_unit_test(a_wake_before_the_wait),
		cmocka_unit_test(many_waiters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
