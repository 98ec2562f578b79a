// SPDX-License-Identifier: BSD-2-Clause
/*
 * Many processes of one program that allocate. Mode: so many children, which begin when told.
 * It takes orders, a byte each, and answers each with a line:
 *   g   the children begin to allocate: worker_allocates
 *   +   as many children more, which only wait
 *   -   all end but 4 of the first ones
 *   q   all end; the line has how often they have allocated, and how many blocks they held
 */
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "prog.h"

#define BLOCK 3000
#define HELD_EVERY 10
#define LEFT 4
#define MAX_CHILDREN 4096

static struct shared {
	volatile long end_from; /* number of the first one that has to end */
	long allocs, held;
} * shared;
static pid_t pids[MAX_CHILDREN];
static int go[2]; /* closed when the first ones are to begin */

static NOIPA void *worker_allocates(void)
{
	void *p = malloc(BLOCK);

	NO_TAIL_CALL();
	return p;
}

static void work(long number)
{
	long n = 0;
	char byte;

	close(go[1]);
	(void)!read(go[0], &byte, 1);
	while (number < shared->end_from) {
		void *p = worker_allocates();

		if (++n % HELD_EVERY)
			free(p);
		usleep(2000);
	}
	__atomic_fetch_add(&shared->allocs, n, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&shared->held, n / HELD_EVERY, __ATOMIC_SEQ_CST);
	_exit(0);
}

static void start(long first, long cnt, bool works)
{
	for (long i = first; i < first + cnt && i < MAX_CHILDREN; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (works)
			work(i);
		for (;;)
			pause();
	}
}

/* Waits until so many children are left; those from idle on do nothing, and need not end by themselves. */
static void end(long children, long left, long idle)
{
	shared->end_from = left;
	for (long i = idle; i < children; i++)
		kill(pids[i], SIGKILL);
	while (children-- > left)
		wait(NULL);
}

int main(int argc, char **argv)
{
	long first = atol(prog_start(argc, argv)), children = first;
	char order;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	shared->end_from = MAX_CHILDREN;
	if (pipe(go))
		return 1;
	start(0, first, true);
	prog_ready();
	while (read(STDIN_FILENO, &order, 1) == 1) {
		long left = order == '-' ? LEFT : 0;

		if (order == 'g')
			close(go[1]);
		if (order == '+') {
			start(first, first, false);
			children += first;
		}
		if (order == '-' || order == 'q') {
			end(children, left, first);
			children = left;
		}
		dprintf(STDOUT_FILENO, "%ld %ld\n", shared->allocs, shared->held);
	}
	return 0;
}
