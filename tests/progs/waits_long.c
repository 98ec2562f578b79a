// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program whose waits begin before somebody looks, or go on after it. Threads, by name:
 *   forever   waits for a futex, all the time
 *   early     the same, until SIGUSR1, upon which the thread `waker` wakes it
 *   late      from a while (gap=MS) after SIGUSR1 on
 *   sleeper   sleeps, all the time
 * Prints {"early_end":[NS,NS],"late_begin":[NS,NS]}, between which that was, by CLOCK_MONOTONIC.
 */
#include "waits.h"

static uint32_t forever_word, early_word, late_word;
static int early_tid, late_tid, late_may, named;
static long late_sleeps;
static uint64_t early_end[2], late_begin[2];

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
	early_end[0] = now_ns();
	early_word = 1;
	futex(&early_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	early_end[1] = now_ns();
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
	late_sleeps = times_slept();
	late_begin[0] = now_ns();
	waits_set(&late_tid, gettid());
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
	while (!waits_get(&late_tid) || !has_slept(late_tid, late_sleeps))
		pause_us(1000);
	late_begin[1] = now_ns();
	waits_say("{\"early_end\":[%ld,%ld],\"late_begin\":[%ld,%ld]}\n", (long)early_end[0],
		  (long)early_end[1], (long)late_begin[0], (long)late_begin[1]);
	waits_end();
	return 0;
}
