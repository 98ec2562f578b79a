// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program whose threads do the same all the time: `busy` spins, `asleep` sleeps, `half` does both
 * in turns of 20 ms, `third` spins for 10 ms and sleeps for 20, `napper` sleeps for a ms again and
 * again; `gives` and `takes` hand a lock to each other.
 */
#include "waits.h"

static void spin_ms(long ms)
{
	uint64_t end = now_ns() + ms * 1000000;

	while (now_ns() < end)
		prog_sink++;
}

static void *run(void *arg)
{
	const char *name = arg;

	prctl(PR_SET_NAME, name);
	for (;;) {
		switch (name[0]) {
		case 'b':
			spin_ms(1000);
			break;
		case 'a':
			pause_us(100000000);
			break;
		case 'h':
			spin_ms(20);
			pause_us(20000);
			break;
		case 't':
			spin_ms(10);
			pause_us(20000);
			break;
		default:
			pause_us(1000);
		}
	}
	return NULL;
}

static uint32_t turn;

/* Each waits until the word is its own, 0 or 1. */
static void *hand_over(void *arg)
{
	uint32_t mine = arg != NULL;

	prctl(PR_SET_NAME, mine ? "takes" : "gives");
	for (;;) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != mine)
			futex(&turn, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
		pause_us(2000);
		__atomic_store_n(&turn, !mine, __ATOMIC_RELEASE);
		futex(&turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "busy", "asleep", "half", "third", "napper" };
	pthread_t t;
	size_t i;

	waits_begin(argc, argv);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		waits_thread(&t, run, (void *)names[i]);
	waits_thread(&t, hand_over, NULL);
	waits_thread(&t, hand_over, &turn);
	pause_us(50000);
	prog_ready();
	while (!prog_stop)
		pause();
	return 0;
}
