// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program whose threads do the same all the time, from SIGUSR1 on (`now`: from before "ready"):
 * `busy` spins, `asleep` sleeps, `half` does both in turns of 20 ms, `third` spins for 10 ms and
 * sleeps for 20, `napper` sleeps for a ms again and again; `gives` and `takes` hand a lock to each
 * other. With for=MS they stop after as long, and the CPU time of each, the main thread's too, is
 * printed: {"cpu":{"busy":NS,...}}.
 */
#include "waits.h"

static uint32_t go, turn;
static int named, stopped;
static uint64_t end_ns;

static void spin_ms(long ms)
{
	uint64_t end = now_ns() + ms * 1000000;

	while (now_ns() < end)
		prog_sink++;
}

static void busy(void)
{
	spin_ms(20);
}

static void asleep(void)
{
	pause_us(waits_over(end_ns, now_ns()) / 1000);
}

static void half(void)
{
	spin_ms(20);
	pause_us(20000);
}

static void third(void)
{
	spin_ms(10);
	pause_us(20000);
}

static void napper(void)
{
	pause_us(1000);
}

/* Each waits until the word is its own, 0 or 1; who stops has made it the other's. */
static void hand_over(uint32_t mine)
{
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != mine)
		futex(&turn, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
	pause_us(2000);
	__atomic_store_n(&turn, !mine, __ATOMIC_RELEASE);
	futex(&turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void gives(void)
{
	hand_over(0);
}

static void takes(void)
{
	hand_over(1);
}

static struct worker {
	const char *name;
	void (*work)(void);
	uint64_t cpu_ns;
} workers[] = {
	{ "busy", busy, 0 },   { "asleep", asleep, 0 }, { "half", half, 0 },
	{ "third", third, 0 }, { "napper", napper, 0 }, { "gives", gives, 0 },
	{ "takes", takes, 0 },
};
#define WORKERS ((int)(sizeof(workers) / sizeof(workers[0])))

static void *run(void *arg)
{
	struct worker *w = arg;

	prctl(PR_SET_NAME, w->name);
	__atomic_add_fetch(&named, 1, __ATOMIC_RELEASE);
	w->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		futex(&go, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	do {
		w->work();
	} while (now_ns() < end_ns);
	w->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - w->cpu_ns;
	__atomic_add_fetch(&stopped, 1, __ATOMIC_RELEASE);
	pause();
	return NULL;
}

/* Whom it wakes is runnable when it returns. */
static void start(void)
{
	end_ns = now_ns() + waits_number("for", 1000000) * 1000000;
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	futex(&go, FUTEX_WAKE_PRIVATE, WORKERS, NULL, NULL, 0);
}

int main(int argc, char **argv)
{
	uint64_t cpu_ns;
	pthread_t t;
	int i;

	waits_begin(argc, argv);
	for (i = 0; i < WORKERS; i++)
		waits_thread(&t, run, &workers[i]);
	waits_until(&named, WORKERS);
	if (waits_has("now"))
		start();
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	waits_go();
	if (!waits_has("now"))
		start();
	while (waits_get(&stopped) != WORKERS)
		pause_us(10000);
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	waits_say("{\"cpu\":{\"waits_wall\":%lu", cpu_ns);
	for (i = 0; i < WORKERS; i++)
		waits_say(",\"%s\":%lu", workers[i].name, workers[i].cpu_ns);
	waits_say("}}\n");
	waits_end();
	return 0;
}
