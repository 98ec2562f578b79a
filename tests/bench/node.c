// SPDX-License-Identifier: BSD-2-Clause
/*
 * What runs on a node: node FOLDER IDLE BUSY STARTS. IDLE processes that wake five times a second,
 * BUSY ones that compute for half of the time that two CPUs have between them, and STARTS programs a
 * second that end at once. Each is an exec of one of 30 copies of this program, which are made in
 * FOLDER. Ends, with all of them, when it is killed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COPIES 30
#define NS 1000000000LL
#define BUSY_NS 5000000 /* at a time */
#define DEPTH 20

static volatile uint64_t sink;

static uint64_t __attribute__((noinline)) compute(int depth, uint64_t x)
{
	if (depth) {
		x = compute(depth - 1, x + depth);
		/* no tail call */
		__asm__ volatile("" : "+r"(x));
		return x + 1;
	}
	for (uint64_t i = 0; i < 4000; i++)
		x = x * 6364136223846793005ULL + i;
	return x;
}

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS + ts.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NS, .tv_nsec = ns % NS };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static void be_idle(void)
{
	for (;;) {
		sink += compute(DEPTH, 1);
		sleep_until(now() + NS / 5);
	}
}

/* One of `cnt`: together half of what two CPUs have. */
static void be_busy(int cnt)
{
	for (;;) {
		int64_t from = now();

		while (now() < from + BUSY_NS)
			sink += compute(DEPTH, 3);
		sleep_until(from + (int64_t)BUSY_NS * cnt);
	}
}

static void copy_self(const char *to)
{
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), out;
	struct stat st;

	/* processes of an earlier run may not have ended yet, and one that runs cannot be written */
	(void)unlink(to);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (in < 0 || out < 0 || fstat(in, &st) ||
	    sendfile(out, in, NULL, st.st_size) != st.st_size) {
		perror(to);
		exit(1);
	}
	close(in);
	close(out);
}

static pid_t start(const char *path, const char *name, const char *what, const char *cnt)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(path, name, what, cnt, (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	char paths[COPIES][256];
	int idle, busy, starts;

	if (argc == 3 && !strcmp(argv[1], "idle"))
		be_idle();
	if (argc == 3 && !strcmp(argv[1], "busy"))
		be_busy(atoi(argv[2]));
	if (argc == 3) {
		prctl(PR_SET_NAME, "short");
		sink += compute(DEPTH, 7);
		return 0;
	}
	if (argc != 5)
		return 2;
	idle = atoi(argv[2]);
	busy = atoi(argv[3]);
	starts = atoi(argv[4]);
	for (int i = 0; i < COPIES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/node-%d", argv[1], i);
		copy_self(paths[i]);
	}
	for (int i = 0; i < idle + busy; i++)
		start(paths[i % COPIES], "node", i < idle ? "idle" : "busy", argv[3]);
	puts("ready");
	fflush(stdout);
	for (int64_t i = 0, from = now(); starts; i++) {
		sleep_until(from + i * NS / starts);
		waitpid(start(paths[i % COPIES], "node", "short", "1"), NULL, 0);
	}
	pause();
	return 0;
}
