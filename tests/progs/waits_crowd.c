// SPDX-License-Identifier: BSD-2-Clause
/*
 * A crowd that comes and goes: idle=N threads (600) that do nothing are there before; after SIGUSR1
 * come rounds=N (4) times n=N (400) threads, all at once, each of which sleeps twice in `nap` and
 * ends. Mode "all" or none. Prints how often these slept there, and how many ns that took:
 *     {"naps":{"count":3200,"ns":9600000000}}
 */

#include "waits.h"

static long count;
static uint64_t sum_ns;
static int over;

static NOIPA void nap(void)
{
	pause_us(3000);
	NO_TAIL_CALL();
}

static NOIPA void *nap_thread(void *arg)
{
	int i;

	prctl(PR_SET_TIMERSLACK, 1);
	for (i = 0; i < 2; i++) {
		long before = times_slept();
		uint64_t from = now_ns();

		nap();
		__atomic_add_fetch(&sum_ns, now_ns() - from, __ATOMIC_RELAXED);
		__atomic_add_fetch(&count, times_slept() > before, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(&over, 1, __ATOMIC_RELEASE);
	return arg;
}

static NOIPA void *idle_thread(void *arg)
{
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	long i, round, idle, rounds, n;

	waits_begin(argc, argv);
	idle = waits_number("idle", 600);
	rounds = waits_number("rounds", 4);
	n = waits_number("n", 400);
	for (i = 0; i < idle; i++)
		waits_thread(&thread, idle_thread, NULL);
	waits_go();
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < n; i++)
			waits_thread(&thread, nap_thread, NULL);
		waits_until(&over, (round + 1) * n);
	}
	waits_say("{\"naps\":{\"count\":%ld,\"ns\":%lu}}\n", count, sum_ns);
	waits_end();
	return 0;
}
