// SPDX-License-Identifier: BSD-2-Clause
/*
 * What people measure: it does some work, says how much, and ends. Prints a line of JSON.
 *     cpu HOT OTHER     so many rounds in hot() and in other(); "ops":HOT
 *     burn SECONDS      of CPU time, and as much in a child that nobody waits for; "cpu_ns": of both, as they
 *                       know it themselves, so that their begin and end are left out; "switches": how often
 *                       meanwhile another was switched to
 *     clock SECONDS     until they are over
 *     naps COUNT MS     so many, one after the other
 *     allocs COUNT      of 1,000 bytes each, in allocate()
 *     obtains COUNT     the same, in obtain()
 *     calls COUNT       so many of called(), half as many in another thread, and a third in a child, which
 *                       starts the program anew for a quarter; "ops": all of them. Each passes the USDT
 *                       probe workload:called, which has two sites, once
 *     children COUNT    so many, one after the other, that call called() once; "ops":COUNT
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
WORKER(other)

static NOIPA void work(long a, long b)
{
	hot(a);
	other(b);
	NO_TAIL_CALL();
	printf("{\"ops\":%ld}\n", a);
}

struct burnt {
	uint64_t ns, switches;
};

static uint64_t switches(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (uint64_t)(used.ru_nvcsw + used.ru_nivcsw);
}

/* Sets what it took. What came before is not all of the program's: it counts from the fork on. */
static void burn(uint64_t ns, struct burnt *ret)
{
	uint64_t begin = now(CLOCK_PROCESS_CPUTIME_ID), before = switches(), at;

	do {
		at = now(CLOCK_PROCESS_CPUTIME_ID);
	} while (at - begin < ns);
	*ret = (struct burnt){ at - begin, switches() - before };
}

static void burn_both(double seconds)
{
	uint64_t ns = (uint64_t)(seconds * 1e9);
	struct burnt *childs =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct burnt own;

	signal(SIGCHLD, SIG_IGN);
	if (!fork()) {
		burn(ns, childs);
		_exit(0);
	}
	burn(ns, &own);
	/* until it has ended: there is none any more that could be waited for */
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("{\"cpu_ns\":%" PRIu64 ",\"switches\":%" PRIu64 "}\n", own.ns + childs->ns,
	       own.switches + childs->switches);
}

/* Some ms: what is too short has no samples. */
#define SHORT_WORK 2000

static void until(double seconds)
{
	uint64_t end = now(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	struct timespec at = { (time_t)(end / 1000000000), (long)(end % 1000000000) };

	hot(SHORT_WORK);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
	printf("{\"ops\":%d}\n", SHORT_WORK);
}

static void nap(long cnt, long ms)
{
	hot(SHORT_WORK);
	for (long i = 0; i < cnt; i++)
		usleep((useconds_t)ms * 1000);
	printf("{\"ops\":%d}\n", SHORT_WORK);
}

#define ALLOCATOR(name)                                   \
	static NOIPA void name(long cnt)                  \
	{                                                 \
		for (long i = 0; i < cnt; i++) {          \
			char *p = malloc(1000);           \
                                                          \
			p[0] = 1;                         \
			prog_sink += (unsigned long)p[0]; \
			free(p);                          \
		}                                         \
	}

ALLOCATOR(allocate)
ALLOCATOR(obtain)

/* A site of a USDT probe as sys/sdt.h makes it, with the semaphore that whoever listens raises. Sites of
 * different numbers are not made one. */
#define SITE(number)                                                                               \
	__asm__ volatile("990: nop /* " number                                                     \
			 " */\n"                                                                   \
			 ".pushsection .note.stapsdt,\"\",\"note\"; .balign 4; .4byte 992f-991f, " \
			 "994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"                 \
			 "993: .8byte 990b, _.stapsdt.base, workload_semaphore\n"                  \
			 ".asciz \"workload\"; .asciz \"called\"; .asciz \"\"\n"                   \
			 "994: .balign 4; .popsection")
__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	".weak _.stapsdt.base; .hidden _.stapsdt.base; _.stapsdt.base: .space 1\n.popsection");
__attribute__((section(".probes"), used)) volatile unsigned short workload_semaphore;

static NOIPA void called(long i)
{
	prog_sink += (unsigned long)i;
	if (!workload_semaphore)
		return;
	if (i % 3)
		SITE("1");
	else
		SITE("2");
}

static NOIPA void call(long cnt)
{
	for (long i = 0; i < cnt; i++)
		called(i);
}

static void *call_in_thread(void *cnt)
{
	call((long)(intptr_t)cnt);
	return NULL;
}

static void wait_for(pid_t pid)
{
	if (waitpid(pid, NULL, 0) != pid)
		_exit(1);
}

static void call_everywhere(long cnt)
{
	char again[32];
	pthread_t thread;
	pid_t pid;

	pthread_create(&thread, NULL, call_in_thread, (void *)(intptr_t)(cnt / 2));
	pid = fork();
	if (!pid) {
		call(cnt / 3);
		snprintf(again, sizeof(again), "%ld", cnt / 4);
		prog_exec("called", again);
	}
	call(cnt);
	wait_for(pid);
	pthread_join(thread, NULL);
	printf("{\"ops\":%ld}\n", cnt + cnt / 2 + cnt / 3 + cnt / 4);
}

static void call_in_children(long cnt)
{
	for (long i = 0; i < cnt; i++) {
		pid_t pid = fork();

		if (!pid) {
			called(i);
			_exit(0);
		}
		wait_for(pid);
	}
	printf("{\"ops\":%ld}\n", cnt);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	double number = argc > 2 ? atof(argv[2]) : 0, second = argc > 3 ? atof(argv[3]) : 0;

	alarm(120);
	if (!strcmp(mode, "cpu"))
		work((long)number, (long)second);
	else if (!strcmp(mode, "burn"))
		burn_both(number);
	else if (!strcmp(mode, "clock"))
		until(number);
	else if (!strcmp(mode, "naps"))
		nap((long)number, (long)second);
	else if (!strcmp(mode, "allocs"))
		allocate((long)number);
	else if (!strcmp(mode, "obtains"))
		obtain((long)number);
	else if (!strcmp(mode, "calls"))
		call_everywhere((long)number);
	else if (!strcmp(mode, "called"))
		call((long)number);
	else if (!strcmp(mode, "children"))
		call_in_children((long)number);
	else
		return 2;
	return 0;
}
