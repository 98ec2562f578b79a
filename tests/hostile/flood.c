/* SPDX-License-Identifier: BSD-2-Clause */
/* Hardly ever the same stack twice, and a deep one: each of NR_THREADS goes down by ways that it
 * picks at random, works a little, and comes back. */
#include <pthread.h>

#include "prog.h"

#define NR_THREADS 4
#define DEPTH 200

static void step(unsigned long way, int depth);

static NOIPA void left(unsigned long way, int depth)
{
	step(way, depth);
	NO_TAIL_CALL();
}

static NOIPA void right(unsigned long way, int depth)
{
	step(way, depth);
	NO_TAIL_CALL();
}

static NOIPA void step(unsigned long way, int depth)
{
	if (depth == DEPTH)
		for (volatile int i = 0; i < 100000; i = i + 1)
			;
	else
		(way >> 33 & 1 ? left : right)(way * 6364136223846793005 + 1, depth + 1);
	NO_TAIL_CALL();
}

static void *flood_thread(void *arg)
{
	unsigned long way = (unsigned long)arg;

	for (;;)
		step(way++ * 2654435761, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	prog_start(argc, argv);
	for (unsigned long i = 0; i < NR_THREADS; i++)
		if (pthread_create(&thread, NULL, flood_thread, (void *)(i << 32)))
			return 1;
	prog_ready();
	pause();
	return 0;
}
