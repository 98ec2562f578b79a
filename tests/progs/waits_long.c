// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program whose waits begin before somebody looks, or go on after it. Threads, by name:
 *   forever   waits for a futex, all the time
 *   early     the same, until SIGUSR1, upon which the thread `waker` wakes it
 *   late      from a while (gap=MS) after SIGUSR1 on
 *   sleeper   sleeps, all the time
 * Prints {"early_end":NS,"late_begin":NS}, by CLOCK_MONOTONIC.
 */
#include "waits.h"

static uint32_t forever_word, early_word, late_word;
static int early_tid, late_may, named;
static uint64_t early_end, late_begin;

static NOIPA void wait_forever(void)
{
	futex(&forever_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	NO_TAIL_CALL();
}

static NOIPA void wait_early(void)
{
	futex(&early_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	NO_TAIL_CALL();
}

static NOIPA void wait_late(void)
{
	futex(&late_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	NO_TAIL_CALL();
}

static NOIPA void sleep_forever(void)
{
	pause_us(1000000000);
	NO_TAIL_CALL();
}

static NOIPA void holder_early(void)
{
	early_end = now_ns();
	early_word = 1;
	futex(&early_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	NO_TAIL_CALL();
}

static void name_it(const char *name)
{
	prctl(PR_SET_NAME, name);
	__atomic_add_fetch(&named, 1, __ATOMIC_ACQ_REL);
}

static void *forever(void *arg)
{
	name_it("forever");
	wait_forever();
	return arg;
}

static void *early(void *arg)
{
	name_it("early");
	waits_set(&early_tid, gettid());
	wait_early();
	pause();
	return arg;
}

static void *late(void *arg)
{
	name_it("late");
	waits_until(&late_may, 1);
	pause_us(waits_number("gap", 300) * 1000);
	__atomic_store_n(&late_begin, now_ns(), __ATOMIC_RELEASE);
	wait_late();
	return arg;
}

static void *sleeper(void *arg)
{
	name_it("sleeper");
	sleep_forever();
	return arg;
}

static void *waker(void *arg)
{
	prctl(PR_SET_NAME, "waker");
	holder_early();
	waits_set(&late_may, 1);
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	waits_begin(argc, argv);
	waits_thread(&t, forever, NULL);
	waits_thread(&t, early, NULL);
	waits_thread(&t, late, NULL);
	waits_thread(&t, sleeper, NULL);
	waits_until(&named, 4);
	while (!waits_get(&early_tid) || !is_asleep(early_tid))
		pause_us(1000);
	waits_go();
	waits_thread(&t, waker, NULL);
	while (!__atomic_load_n(&late_begin, __ATOMIC_ACQUIRE))
		pause_us(1000);
	waits_say("{\"early_end\":%ld,\"late_begin\":%ld}\n", (long)early_end, (long)late_begin);
	waits_end();
	return 0;
}
