/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads with names, each in its own function, whose stacks end in clone3. Mode "leaderless":
 * the main thread exits, /proc/PID/maps of the process reads empty, the threads go on. Mode
 * "names": a thread renames itself to what breaks line-based formats.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#include "prog.h"

static NOIPA void red(void)
{
	spin();
	NO_TAIL_CALL();
}

static NOIPA void blue(void)
{
	spin();
	NO_TAIL_CALL();
}

static void *red_thread(void *name)
{
	prctl(PR_SET_NAME, name);
	red();
	NO_TAIL_CALL();
	return NULL;
}

static void *blue_thread(void *name)
{
	prctl(PR_SET_NAME, name);
	blue();
	NO_TAIL_CALL();
	return NULL;
}

/* Until it has had 2 ms of CPU time, at whose beginning it takes its name. */
static void wait_worked(pthread_t thread)
{
	struct timespec t = { 0, 0 };
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock))
		_exit(1);
	while (!t.tv_sec && t.tv_nsec < 2000000) {
		usleep(1000);
		clock_gettime(clock, &t);
	}
}

/* Bound when the program is loaded: at its first call, the dynamic linker would be what main is in. */
extern int pthread_join(pthread_t thread, void **value) __attribute__((noplt));

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	int odd = !strcmp(mode, "names");
	pthread_t threads[2];

	if (pthread_create(&threads[0], NULL, red_thread, odd ? "a;b\nc \033[31m" : "red") ||
	    pthread_create(&threads[1], NULL, blue_thread, odd ? "\xff) 1 2 (" : "blue"))
		return 1;
	wait_worked(threads[0]);
	wait_worked(threads[1]);
	prog_ready();
	if (!strcmp(mode, "leaderless"))
		pthread_exit(NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
