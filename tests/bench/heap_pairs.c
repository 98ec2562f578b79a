// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an allocation costs: ns per malloc+free pair, to be run bare and under a heap profiler.
 *
 *   heap_pairs pairs|mixed|realloc [COUNT [THREADS]]
 *
 * pairs: 64 bytes, freed at once. mixed: 16 to 1024 bytes, 10,000 blocks alive in each thread.
 * realloc: a block that grows and shrinks between 16 and 1024 bytes. Prints the median of seven
 * rounds of COUNT operations, of the slowest thread, as "MODE NS". One thread is measured by its
 * CPU time, which others on the machine hardly disturb; several by the clock, since they may wait.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 7
#define LIVE 10000
#define MAX_THREADS 64

static const char *mode;
static long count = 2000000;
static int threads = 1;
static pthread_barrier_t barrier;
static double ns[MAX_THREADS][ROUNDS];

static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

/* Keeps the compiler from leaving out an allocation that nobody reads. */
static void *used(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static void pairs(void)
{
	for (long i = 0; i < count; i++)
		free(used(malloc(64)));
}

static void mixed(void **live, uint32_t *x)
{
	for (long i = 0; i < count; i++) {
		uint32_t r = next_random(x);
		void **at = &live[r % LIVE];

		free(*at);
		*at = used(malloc(16 + (r >> 16) % 1009));
	}
}

static void reallocs(uint32_t *x)
{
	void *p = NULL;

	for (long i = 0; i < count; i++) {
		p = used(realloc(p, 16 + next_random(x) % 1009));
		if (!p)
			abort();
	}
	free(p);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *run(void *arg)
{
	int id = (int)(intptr_t)arg;
	void **live = calloc(LIVE, sizeof(*live));
	uint32_t x = 2463534242u + id;

	if (!live)
		abort();
	for (int r = -1; r < ROUNDS; r++) { /* the first one warms up */
		double start;

		pthread_barrier_wait(&barrier);
		start = now_ns();
		if (!strcmp(mode, "mixed"))
			mixed(live, &x);
		else if (!strcmp(mode, "realloc"))
			reallocs(&x);
		else
			pairs();
		if (r >= 0)
			ns[id][r] = (now_ns() - start) / count;
	}
	for (int i = 0; i < LIVE; i++)
		free(live[i]);
	free(live);
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	pthread_t ids[MAX_THREADS];
	double slowest[ROUNDS] = { 0 };

	mode = argc > 1 ? argv[1] : "pairs";
	if (argc > 2)
		count = atol(argv[2]);
	if (argc > 3)
		threads = atoi(argv[3]);
	if (threads < 1 || threads > MAX_THREADS || count < 1)
		return 2;
	pthread_barrier_init(&barrier, NULL, threads);
	for (int i = 0; i < threads; i++) {
		if (pthread_create(&ids[i], NULL, run, (void *)(intptr_t)i))
			return 1;
	}
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < threads; i++)
			slowest[r] = ns[i][r] > slowest[r] ? ns[i][r] : slowest[r];
	}
	qsort(slowest, ROUNDS, sizeof(slowest[0]), by_value);
	printf("%s %.2f\n", mode, slowest[ROUNDS / 2]);
	return 0;
}
