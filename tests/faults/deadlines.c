/* SPDX-License-Identifier: BSD-2-Clause */
/* Two threads that wait with deadlines by CLOCK_REALTIME: one always meets them, the other is
 * always woken before. They begin upon SIGUSR1. */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "prog.h"

static sem_t never, soon;

static struct timespec in_ns(long ns)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += (t.tv_nsec + ns) / 1000000000;
	t.tv_nsec = (t.tv_nsec + ns) % 1000000000;
	return t;
}

static NOIPA void too_late(void)
{
	struct timespec t = in_ns(20000000);

	sem_timedwait(&never, &t);
	NO_TAIL_CALL();
}

static NOIPA void in_time(void)
{
	struct timespec t = in_ns(20000000000);

	sem_timedwait(&soon, &t);
	NO_TAIL_CALL();
}

static void *wait_in_vain(void *arg)
{
	for (;;)
		too_late();
	return arg;
}

static void *wait_for_post(void *arg)
{
	for (;;)
		in_time();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	sigset_t set;
	int sig;

	prog_start(argc, argv);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sem_init(&never, 0, 0);
	sem_init(&soon, 0, 0);
	prog_ready();
	sigwait(&set, &sig);
	if (pthread_create(&threads[0], NULL, wait_in_vain, NULL) ||
	    pthread_create(&threads[1], NULL, wait_for_post, NULL))
		return 1;
	for (;;) {
		usleep(20000);
		sem_post(&soon);
	}
}
