/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More stacks than small tables hold: 24 threads, each of which takes one of 8^5 ways from
 * storm_thread through f0 … f7 to leaf, at random, again and again. What it does there is the mode:
 *   cpu      20 us of work, without end
 *   rest     the same, with 5 ms of sleep
 *   heap     a malloc and a free
 *   locks    a mutex that all the others want
 *   create   a thread that ends at once
 *   park     a wait that does not end
 * It begins upon SIGUSR1, and prints how often it has been at leaf when all threads are done (of
 * `park`, when all are there). Threads do not end: another SIGUSR1 lets the same ones begin anew.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "prog.h"

#define NR_THREADS 24
#define DEPTH 5

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void work(long us)
{
	struct timespec t0, t;

	clock_gettime(CLOCK_MONOTONIC, &t0);
	do {
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while ((t.tv_sec - t0.tv_sec) * 1000000 + (t.tv_nsec - t0.tv_nsec) / 1000 < us);
}

static void leaf_cpu(void)
{
	work(20);
}

static void leaf_rest(void)
{
	work(20);
	usleep(5000);
}

static void leaf_heap(void)
{
	void *volatile p = malloc(100);

	free(p);
}

static void leaf_locks(void)
{
	pthread_mutex_lock(&mutex);
	work(50);
	pthread_mutex_unlock(&mutex);
}

static void *nothing(void *arg)
{
	return arg;
}

static void leaf_create(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL))
		abort();
	pthread_join(thread, NULL);
}

static void leaf_park(void)
{
	pthread_barrier_wait(&barrier);
	pause();
}

static const struct mode {
	const char *name;
	void (*leaf)(void);
	long rounds; /* of each thread */
} modes[] = {
	{ "cpu", leaf_cpu, -1 },      { "rest", leaf_rest, -1 },     { "heap", leaf_heap, 600 },
	{ "locks", leaf_locks, 100 }, { "create", leaf_create, 30 }, { "park", leaf_park, 1 },
};
static const struct mode *mode;

static NOIPA void leaf(void)
{
	mode->leaf();
	NO_TAIL_CALL();
}

static void step(unsigned way, int depth);

#define F(n)                                            \
	static NOIPA void f##n(unsigned way, int depth) \
	{                                               \
		step(way, depth);                       \
		NO_TAIL_CALL();                         \
	}

F(0)
F(1)
F(2)
F(3)
F(4)
F(5)
F(6)
F(7)

static NOIPA void step(unsigned way, int depth)
{
	static void (*const next[])(unsigned, int) = { f0, f1, f2, f3, f4, f5, f6, f7 };

	if (depth == DEPTH)
		leaf();
	else
		next[way & 7](way >> 3, depth + 1);
	NO_TAIL_CALL();
}

static NOIPA void *storm_thread(void *arg)
{
	unsigned way = (unsigned)(unsigned long)arg;

	for (;;) {
		pthread_barrier_wait(&barrier);
		for (long i = 0; i != mode->rounds; i++) {
			way = way * 1664525 + 1013904223;
			step(way >> 8, 0);
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = prog_start(argc, argv);
	pthread_t thread;
	char line[32];
	sigset_t set;
	int sig, n;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, name))
			mode = &modes[i];
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_init(&barrier, NULL, NR_THREADS + 1);
	if (!mode)
		return 2;
	prog_ready();
	sigwait(&set, &sig);
	for (unsigned long i = 0; i < NR_THREADS; i++)
		if (pthread_create(&thread, NULL, storm_thread, (void *)(i + 1)))
			abort();
	/* without a buffer, which would be allocated */
	n = snprintf(line, sizeof(line), "%ld\n", NR_THREADS * mode->rounds);
	for (;;) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		if (write(STDOUT_FILENO, line, n) != n)
			return 1;
		sigwait(&set, &sig);
	}
}
