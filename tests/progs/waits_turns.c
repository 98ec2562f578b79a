/* SPDX-License-Identifier: BSD-2-Clause */
/* Two threads that wake each other, MODE times each, and wait for each other in between: every now and
 * then one wakes the other just as that leaves its CPU. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "prog.h"

static sem_t here, there;
static int turns;

static void *answer(void *arg)
{
	for (int i = 0; i < turns; i++) {
		sem_wait(&there);
		sem_post(&here);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t peer;

	turns = atoi(prog_start(argc, argv));
	sem_init(&here, 0, 0);
	sem_init(&there, 0, 0);
	if (pthread_create(&peer, NULL, answer, NULL))
		return 1;
	for (int i = 0; i < turns; i++) {
		sem_post(&there);
		sem_wait(&here);
	}
	return pthread_join(peer, NULL);
}
