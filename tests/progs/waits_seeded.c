// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program whose waits come in a known order: one thread, `seeded`, waits for a futex that nobody
 * wakes until a time-out, as often and for as many us as us=N,N,... says, the i-th time in function
 * seeded_0 to seeded_7 of i % 8, the last time in seeded_8. Mode "all" or none. Prints, in that
 * order, how many ns each wait has lasted at least, and at most:
 *     {"waits":[[480123,512345],...]}
 * The upper bound is what the call took, the lower one the time-out less the CPU time that the call
 * took, or 0 if the thread was preempted. Calls whose time was over before the thread could sleep
 * are made again.
 */

#include "waits.h"

#define MAX_WAITS 2000

#define SEEDED(nr)                                               \
	static NOIPA void seeded_##nr(const struct timespec *t)  \
	{                                                        \
		static uint32_t word;                            \
                                                                 \
		futex(&word, FUTEX_WAIT_PRIVATE, 0, t, NULL, 0); \
		NO_TAIL_CALL();                                  \
	}
SEEDED(0)
SEEDED(1)
SEEDED(2)
SEEDED(3)
SEEDED(4)
SEEDED(5)
SEEDED(6)
SEEDED(7)
SEEDED(8)

static void (*const seeded[])(const struct timespec *t) = {
	seeded_0, seeded_1, seeded_2, seeded_3, seeded_4, seeded_5, seeded_6, seeded_7, seeded_8,
};

static struct {
	long us;
	uint64_t least, most;
} waits[MAX_WAITS];
static int wait_cnt, over;

static long times_preempted(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

static NOIPA void *seeded_thread(void *arg)
{
	prctl(PR_SET_NAME, "seeded");
	prctl(PR_SET_TIMERSLACK, 1);
	for (int i = 0; i < wait_cnt; i++) {
		struct timespec t = { waits[i].us / 1000000, waits[i].us % 1000000 * 1000 };
		uint64_t from, cpu, ns = waits[i].us * 1000;
		long slept, preempted;

		do {
			preempted = times_preempted();
			slept = times_slept();
			cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
			from = now_ns();
			seeded[i < wait_cnt - 1 ? i % 8 : 8](&t);
			waits[i].most = now_ns() - from;
			cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		} while (times_slept() == slept);
		if (times_preempted() == preempted && cpu < ns)
			waits[i].least = ns - cpu;
	}
	waits_set(&over, 1);
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	const char *us = NULL;
	char *end;

	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "us=", 3))
			us = argv[i] + 3;
	for (; us && *us && wait_cnt < MAX_WAITS; us = *end ? end + 1 : end)
		waits[wait_cnt++].us = strtol(us, &end, 10);
	waits_begin(argc, argv);
	waits_go();
	waits_thread(&thread, seeded_thread, NULL);
	while (!waits_get(&over))
		pause_us(1000);
	waits_say("{\"waits\":[");
	for (int i = 0; i < wait_cnt; i++)
		waits_say("%s[%lu,%lu]", i ? "," : "", waits[i].least, waits[i].most);
	waits_say("]}\n");
	waits_end();
	return 0;
}
