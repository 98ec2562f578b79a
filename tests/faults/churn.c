/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many short lives: RATE children a second, each of which works a fifth of a ms in brief() and is
 * gone after 50 ms. Mode "fork": they are forks. Mode "exec": they become this program anew, and
 * are gone at once.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "prog.h"

static long long now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static NOIPA void brief(void)
{
	long long end = now_ns(CLOCK_MONOTONIC) + 200000;

	while (now_ns(CLOCK_MONOTONIC) < end)
		prog_sink++;
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	long rate = argc > 3 ? atol(argv[3]) : 100;
	long long begin = now_ns(CLOCK_MONOTONIC);

	if (!strcmp(mode, "brief")) {
		brief();
		return 0;
	}
	signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
	prog_ready();
	for (long n = 0;; n++) {
		long long wait = begin + n * 1000000000LL / rate - now_ns(CLOCK_MONOTONIC);
		pid_t pid;

		if (wait > 0)
			usleep(wait / 1000);
		pid = fork();
		if (pid < 0)
			return 1;
		if (pid)
			continue;
		if (!strcmp(mode, "exec"))
			prog_exec("10", "brief");
		brief();
		usleep(50000);
		_exit(0);
	}
}
