// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that creates 1,000 threads from three known places, after SIGUSR1:
 *     main;spawn_all;create_red                   500
 *     maker_thread;create_green                   300, by a thread of its own, `maker`
 *     main;spawn_all;deeper;deeper;create_blue    200
 * Mode "fork": a child creates 50 more, main;family;create_child. idle=N threads are there before.
 * Prints
 *     {"created":{"create_red":500,...},"idle":N}
 */
#include <sys/wait.h>

#include "waits.h"

#define NR_RED 500
#define NR_GREEN 300
#define NR_BLUE 200
#define NR_CHILD 50

static NOIPA void *nothing(void *arg)
{
	return arg;
}

#define CREATE(name)                                         \
	static NOIPA void name(void)                         \
	{                                                    \
		pthread_t t;                                 \
                                                             \
		if (pthread_create(&t, NULL, nothing, NULL)) \
			_exit(3);                            \
		pthread_join(t, NULL);                       \
		NO_TAIL_CALL();                              \
	}
CREATE(create_red)
CREATE(create_green)
CREATE(create_blue)
CREATE(create_child)

static int maker_over;

static NOIPA void *maker_thread(void *arg)
{
	int i;

	prctl(PR_SET_NAME, "maker");
	pause_us(waits_number("rest", 0) * 1000);
	for (i = 0; i < NR_GREEN; i++)
		create_green();
	waits_set(&maker_over, 1);
	pause();
	return arg;
}

static NOIPA void create_maker(void)
{
	pthread_t t;

	waits_thread(&t, maker_thread, NULL);
	NO_TAIL_CALL();
}

static NOIPA void deeper(int n)
{
	if (n)
		deeper(n - 1);
	else
		create_blue();
	NO_TAIL_CALL();
}

static NOIPA void spawn_all(void)
{
	int i;

	for (i = 0; i < NR_RED; i++)
		create_red();
	for (i = 0; i < NR_BLUE; i++)
		deeper(1);
}

static NOIPA void family(void)
{
	pid_t pid = fork();
	int i;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause_us(waits_number("pause", 0) * 1000);
		for (i = 0; i < NR_CHILD; i++)
			create_child();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void *idle_thread(void *arg)
{
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	const char *mode = waits_begin(argc, argv);
	long idle = waits_number("idle", 0), i;
	pthread_t t;

	for (i = 0; i < idle; i++)
		waits_thread(&t, idle_thread, NULL);
	waits_go();
	create_maker();
	pause_us(waits_number("rest", 0) * 1000);
	spawn_all();
	waits_until(&maker_over, 1);
	if (!strcmp(mode, "fork"))
		family();
	waits_say(
		"{\"created\":{\"create_red\":%d,\"create_green\":%d,\"create_blue\":%d,\"create_"
		"maker\":1",
		NR_RED, NR_GREEN, NR_BLUE);
	waits_say("%s},\"idle\":%ld}\n", strcmp(mode, "fork") ? "" : ",\"create_child\":50", idle);
	waits_end();
	return 0;
}
