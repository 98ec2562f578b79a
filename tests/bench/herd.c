// SPDX-License-Identifier: BSD-2-Clause
/*
 * N live processes that share about one CPU between them: each computes for a millisecond and
 * sleeps for N. herd N; ends, with all of them, when it is killed.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void __attribute__((noinline)) compute(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 1000000);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10;

	for (int i = 0; i < n; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			compute();
			usleep(n * 1000);
		}
	}
	pause();
	return 0;
}
