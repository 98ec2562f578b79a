// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program with more waits than one wants to record: threads=N (8) `many`, each of which waits
 * n=N (15000) times for a futex that nobody wakes, until a time-out, nine times for 20 us and then
 * for 300. Mode "all" or none. Prints how many of these slept, and the ns that their calls took:
 *     {"lengths":{"many_20":[108000,7344000000],"many_300":[12000,4416000000]}}
 */

#include "waits.h"

#define MAX_THREADS 64

struct sum {
	long cnt, ns;
};

static struct sum sums[MAX_THREADS][2];
static int started, over, may_go;

#define MANY(us)                                                 \
	static NOIPA void many_##us(uint32_t *word)              \
	{                                                        \
		struct timespec t = { 0, (us)*1000 };            \
                                                                 \
		futex(word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0); \
		NO_TAIL_CALL();                                  \
	}
MANY(20)
MANY(300)

/* What is used between two waits is in memory, and nobody maps any: a thread that sleeps for that would count
 * as one that has slept for its futex. */
static NOIPA void start_together(struct sum *mine)
{
	volatile char stack[4 * 4096];

	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 1;
	mine[0].cnt = mine[1].cnt = 0;
	(void)now_ns();
	(void)times_slept();
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	waits_until(&may_go, 1);
}

static NOIPA void *many_thread(void *arg)
{
	struct sum *mine = arg;
	long i, n = waits_number("n", 15000);
	uint32_t word = 0;

	prctl(PR_SET_NAME, "many");
	prctl(PR_SET_TIMERSLACK, 1);
	start_together(mine);
	for (i = 0; i < n; i++) {
		struct sum *s = &mine[i % 10 == 9];
		long before = times_slept();
		uint64_t from = now_ns();

		if (i % 10 == 9)
			many_300(&word);
		else
			many_20(&word);
		if (times_slept() == before)
			continue;
		s->cnt++;
		s->ns += (long)(now_ns() - from);
	}
	__atomic_add_fetch(&over, 1, __ATOMIC_SEQ_CST);
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	struct sum all[2] = { { 0, 0 }, { 0, 0 } };
	pthread_t thread;
	long i, n;

	waits_begin(argc, argv);
	n = waits_number("threads", 8);
	waits_go();
	for (i = 0; i < n && i < MAX_THREADS; i++)
		waits_thread(&thread, many_thread, sums[i]);
	while (waits_get(&started) < i)
		pause_us(1000);
	waits_set(&may_go, 1);
	while (waits_get(&over) < i)
		pause_us(1000);
	for (i = 0; i < n && i < MAX_THREADS; i++) {
		all[0].cnt += sums[i][0].cnt;
		all[0].ns += sums[i][0].ns;
		all[1].cnt += sums[i][1].cnt;
		all[1].ns += sums[i][1].ns;
	}
	waits_say("{\"lengths\":{\"many_20\":[%ld,%ld],\"many_300\":[%ld,%ld]}}\n", all[0].cnt,
		  all[0].ns, all[1].cnt, all[1].ns);
	waits_end();
	return 0;
}
