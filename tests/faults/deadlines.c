/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads that wait with deadlines by CLOCK_REALTIME, ROUNDS times each: one always meets them,
 * the other is always woken before. They begin upon SIGUSR1; a line of JSON says in the end how
 * many of these were waits, which gave the CPU to somebody else, and how many ns they took at most.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "prog.h"

#define ROUNDS 20

static sem_t never, soon;
static atomic_int beginning; /* of the rounds of in_time */

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

struct waits {
	void (*wait)(void);
	long cnt, ns;
};

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* How often this thread gave up its CPU. */
static long left_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

static void *wait_often(void *arg)
{
	struct waits *w = arg;

	for (int i = 0; i < ROUNDS; i++) {
		long begin = now_ns(), before = left_cpu();

		if (w->wait == in_time)
			beginning = i + 1;
		w->wait();
		if (left_cpu() == before)
			continue;
		w->cnt++;
		w->ns += now_ns() - begin;
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct waits late = { .wait = too_late }, in = { .wait = in_time };
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
	if (pthread_create(&threads[0], NULL, wait_often, &late) ||
	    pthread_create(&threads[1], NULL, wait_often, &in))
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		while (beginning <= i)
			usleep(1000);
		/* so that it waits by then, mostly */
		usleep(20000);
		sem_post(&soon);
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("{\"too_late\": [%ld, %ld], \"in_time\": [%ld, %ld]}\n", late.cnt, late.ns, in.cnt,
	       in.ns);
	fflush(stdout);
	pause();
	return 0;
}
