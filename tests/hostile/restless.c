/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that sleep for 8 ms at a time, each with more of a stack than is copied of one: all together more than is
 * copied at once, and none rests for as long as that takes. */
#include <pthread.h>
#include <string.h>

#include "prog.h"

#define THREADS 1400
#define DEEP (80U << 10)

static void *sleep_deep(void *arg)
{
	volatile char stack[DEEP];

	(void)arg;
	memset((char *)stack, 1, sizeof(stack));
	for (;;) {
		usleep(8000);
		stack[0]++;
	}
	return NULL;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 4 * DEEP);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, &attr, sleep_deep, NULL))
			return 1;
	alarm(120);
	prog_ready();
	for (;;)
		pause();
}
