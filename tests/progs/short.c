/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts itself anew MODE times a second (200 unless told); each of these processes works for some
 * milliseconds in brief(), and is gone 50 ms after its start.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "prog.h"

#define LIFE_NS 50000000L
#define WORK_NS 4000000L

static long long now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static NOIPA void brief(void)
{
	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < WORK_NS) {
		int n;

		for (n = 0; n < 100000; n++)
			prog_sink++;
	}
}

int main(int argc, char **argv)
{
	long long born = now_ns(CLOCK_MONOTONIC);
	const char *mode = prog_start(argc, argv);
	long gap_ns = 1000000000L / (atoi(mode) > 0 ? atoi(mode) : 200);
	long long rest;

	if (!strcmp(mode, "child")) {
		brief();
		rest = born + LIFE_NS - now_ns(CLOCK_MONOTONIC);
		if (rest > 0)
			usleep(rest / 1000);
		return 0;
	}
	prog_ready();
	for (;;) {
		struct timespec t = { 0, gap_ns };
		pid_t pid = fork();

		if (!pid)
			prog_exec("5", "child");
		nanosleep(&t, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}
