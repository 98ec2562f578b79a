// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program with waits of known lengths: one thread, `lengths`, waits for a futex that nobody
 * wakes, until a time-out, in a function for each length, in an order that depends on seed=N. Mode
 * "all" or none; scale=PERCENT says how often. Prints
 *     {"lengths":{"length_20":[20871,...], ...}}
 * the ns that each call took, which is somewhat longer than the wait in it. Calls whose time was
 * over before the thread could sleep do not count.
 */

#include "waits.h"

#define MAX_TIMES 3000

struct length {
	const char *name;
	void (*wait)(const struct timespec *t);
	long us, times, done;
	uint64_t took[MAX_TIMES];
};

#define LENGTH(us)                                               \
	static NOIPA void length_##us(const struct timespec *t)  \
	{                                                        \
		static uint32_t word;                            \
                                                                 \
		futex(&word, FUTEX_WAIT_PRIVATE, 0, t, NULL, 0); \
		NO_TAIL_CALL();                                  \
	}
LENGTH(20)
LENGTH(50)
LENGTH(100)
LENGTH(200)
LENGTH(500)
LENGTH(1000)
LENGTH(2000)
LENGTH(5000)

static struct length lengths[] = {
	{ .name = "length_20", .wait = length_20, .us = 20, .times = 1000 },
	{ .name = "length_50", .wait = length_50, .us = 50, .times = 800 },
	{ .name = "length_100", .wait = length_100, .us = 100, .times = 600 },
	{ .name = "length_200", .wait = length_200, .us = 200, .times = 400 },
	{ .name = "length_500", .wait = length_500, .us = 500, .times = 200 },
	{ .name = "length_1000", .wait = length_1000, .us = 1000, .times = 100 },
	{ .name = "length_2000", .wait = length_2000, .us = 2000, .times = 50 },
	{ .name = "length_5000", .wait = length_5000, .us = 5000, .times = 20 },
};
#define NR_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static int over;

static NOIPA void *lengths_thread(void *arg)
{
	uint64_t random = waits_number("seed", 1) * 77 + 1;
	long left = 0, before;
	size_t i;

	prctl(PR_SET_NAME, "lengths");
	prctl(PR_SET_TIMERSLACK, 1);
	for (i = 0; i < NR_LENGTHS; i++)
		left += lengths[i].times;
	while (left-- > 0) {
		struct length *l = lengths;
		struct timespec t = { 0, 0 };
		uint64_t from;
		long pick;

		random =
			random * 6364136223846793005ULL + 1442695040888963407ULL; /* Knuth's MMIX */
		pick = (random >> 33) % (left + 1);
		while (pick >= l->times - l->done)
			pick -= l->times - l->done, l++;
		t.tv_nsec = l->us * 1000;
		do {
			before = times_slept();
			from = now_ns();
			l->wait(&t);
			l->took[l->done] = now_ns() - from;
		} while (times_slept() == before);
		l->done++;
	}
	waits_set(&over, 1);
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	long scale;
	pthread_t thread;
	size_t i;
	long k;

	waits_begin(argc, argv);
	scale = waits_number("scale", 100);
	for (i = 0; i < NR_LENGTHS; i++)
		lengths[i].times = lengths[i].times * scale / 100;
	waits_go();
	waits_thread(&thread, lengths_thread, NULL);
	while (!waits_get(&over))
		pause_us(1000);
	waits_say("{\"lengths\":{");
	for (i = 0; i < NR_LENGTHS; i++) {
		waits_say("%s\"%s\":[", i ? "," : "", lengths[i].name);
		for (k = 0; k < lengths[i].times; k++)
			waits_say("%s%ld", k ? "," : "", (long)lengths[i].took[k]);
		waits_say("]");
	}
	waits_say("}}\n");
	waits_end();
	return 0;
}
