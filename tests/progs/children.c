/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that come from this one, after SIGUSR1.
 *   fork        two children: main child_one spin, main child_two spin; the parent waits
 *   vfork       a child that has the parent's memory and spins: main vfork_child spin
 *   vforkloop   vfork and _exit again and again, so that samples land in vfork itself, which keeps
 *               its return address in a register meanwhile
 *   exec        main before work for 0.2 s of CPU time, then this program again under the same pid:
 *               main after spin
 *   threadexec  the same, the exec by a thread that is not the first one: before_thread before work
 */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "prog.h"

static NOIPA void work(void)
{
	struct timespec t;

	do {
		int n;

		for (n = 0; n < 100000; n++)
			prog_sink++;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (!t.tv_sec && t.tv_nsec < 200000000);
}

static NOIPA void child_one(void)
{
	spin();
	NO_TAIL_CALL();
}

static NOIPA void child_two(void)
{
	spin();
	NO_TAIL_CALL();
}

static NOIPA void vfork_child(void)
{
	spin();
	NO_TAIL_CALL();
}

static NOIPA void after(void)
{
	spin();
	NO_TAIL_CALL();
}

static NOIPA void before(void)
{
	work();
	prog_exec("60", "after");
}

static void *before_thread(void *arg)
{
	before();
	return arg;
}

static NOIPA void vfork_loop(void)
{
	while (!prog_stop) {
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static void fork_two(void)
{
	static void (*const work[])(void) = { child_one, child_two };
	int k;

	for (k = 0; k < 2; k++) {
		if (!fork()) {
			alarm(60);
			work[k]();
			_exit(0);
		}
	}
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	pthread_t thread;

	if (!strcmp(mode, "after")) {
		after();
		return 0;
	}
	prog_ready_to_go();
	if (!strcmp(mode, "fork")) {
		fork_two();
		while (wait(NULL) > 0)
			;
	} else if (!strcmp(mode, "vfork")) {
		if (!vfork()) {
			alarm(60);
			vfork_child();
			_exit(0);
		}
	} else if (!strcmp(mode, "vforkloop")) {
		vfork_loop();
	} else if (!strcmp(mode, "exec")) {
		before();
	} else if (!strcmp(mode, "threadexec")) {
		if (!pthread_create(&thread, NULL, before_thread, NULL))
			pthread_join(thread, NULL);
	}
	return 0;
}
