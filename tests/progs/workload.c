// SPDX-License-Identifier: BSD-2-Clause
/*
 * What people measure: it does some work, says how much, and ends. Prints a line of JSON.
 *     cpu HOT OTHER     so many rounds in hot() and in other(); "ops":HOT
 *     renamed HOT OTHER the same, in warm() instead of hot()
 *     burn SECONDS      of CPU time, and as much in a child that nobody waits for; "cpu_ns": of both, as they
 *                       know it themselves, so that their begin and end are left out
 *     clock SECONDS     until they are over
 *     naps COUNT MS     so many, one after the other
 *     allocs COUNT      of 1,000 bytes each
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "prog.h"

#define ROUNDS 20000 /* of the loop, in a round: some ten us */

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#define WORKER(name)                                       \
	static NOIPA void name(long rounds)                \
	{                                                  \
		for (long i = 0; i < rounds * ROUNDS; i++) \
			prog_sink += (unsigned long)i;     \
	}

WORKER(hot)
WORKER(warm)
WORKER(other)

static NOIPA void work(void (*first)(long), long a, long b)
{
	first(a);
	other(b);
	NO_TAIL_CALL();
	printf("{\"ops\":%ld}\n", a);
}

/* Returns what it took. What came before is not all of the program's: it counts from the fork on. */
static uint64_t burn(uint64_t ns)
{
	uint64_t begin = now(CLOCK_PROCESS_CPUTIME_ID), at;

	do {
		at = now(CLOCK_PROCESS_CPUTIME_ID);
	} while (at - begin < ns);
	return at - begin;
}

static void burn_both(double seconds)
{
	uint64_t ns = (uint64_t)(seconds * 1e9);
	volatile uint64_t *childs =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	signal(SIGCHLD, SIG_IGN);
	if (!fork()) {
		*childs = burn(ns);
		_exit(0);
	}
	ns = burn(ns);
	/* until it has ended: there is none any more that could be waited for */
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("{\"cpu_ns\":%" PRIu64 "}\n", ns + *childs);
}

static void until(double seconds)
{
	uint64_t end = now(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	struct timespec at = { (time_t)(end / 1000000000), (long)(end % 1000000000) };

	hot(200);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
	printf("{\"ops\":200}\n");
}

static void nap(long cnt, long ms)
{
	hot(200);
	for (long i = 0; i < cnt; i++)
		usleep((useconds_t)ms * 1000);
	printf("{\"ops\":200}\n");
}

static NOIPA void allocate(long cnt)
{
	for (long i = 0; i < cnt; i++) {
		char *p = malloc(1000);

		p[0] = 1;
		prog_sink += (unsigned long)p[0];
		free(p);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	double number = argc > 2 ? atof(argv[2]) : 0, second = argc > 3 ? atof(argv[3]) : 0;

	alarm(120);
	if (!strcmp(mode, "cpu"))
		work(hot, (long)number, (long)second);
	else if (!strcmp(mode, "renamed"))
		work(warm, (long)number, (long)second);
	else if (!strcmp(mode, "burn"))
		burn_both(number);
	else if (!strcmp(mode, "clock"))
		until(number);
	else if (!strcmp(mode, "naps"))
		nap((long)number, (long)second);
	else if (!strcmp(mode, "allocs"))
		allocate((long)number);
	else
		return 2;
	return 0;
}
