/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many short lives: children that each work a fifth of a ms in brief(). Mode "fork": forks, which
 * are gone after 50 ms. Mode "exec": they become this program anew, and are gone at once.
 *
 * churn SECONDS MODE RATE COUNT: begins upon SIGUSR1, and prints "done" when COUNT children have
 * been and all are gone; another SIGUSR1 lets it begin anew. RATE: children a second; 0: AT_ONCE at
 * a time, as fast as it goes.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "prog.h"

#define AT_ONCE 16

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

/* Nobody asks how they ended: this fails once there is none. */
static void wait_for_all(void)
{
	while (wait(NULL) > 0)
		;
}

static void child(const char *mode)
{
	if (!strcmp(mode, "exec"))
		prog_exec("10", "brief");
	brief();
	usleep(50000);
	_exit(0);
}

static void churn(const char *mode, long rate, long cnt)
{
	long long begin = now_ns(CLOCK_MONOTONIC);

	for (long n = 0; n < cnt; n++) {
		long long wait_ns =
			rate ? begin + n * 1000000000LL / rate - now_ns(CLOCK_MONOTONIC) : 0;
		pid_t pid;

		if (wait_ns > 0)
			usleep(wait_ns / 1000);
		pid = fork();
		if (pid < 0)
			exit(1);
		if (!pid)
			child(mode);
		if (!rate && n % AT_ONCE == AT_ONCE - 1)
			wait_for_all();
	}
	wait_for_all();
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	sigset_t set;
	int sig;

	if (!strcmp(mode, "brief")) {
		brief();
		return 0;
	}
	if (argc < 5)
		return 2;
	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prog_ready();
	for (;;) {
		sigwait(&set, &sig);
		churn(mode, atol(argv[3]), atol(argv[4]));
		if (write(STDOUT_FILENO, "done\n", 5) != 5)
			return 1;
	}
}
