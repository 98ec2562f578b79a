/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the test programs share: a start that announces itself, and a leaf that spends the time.
 *
 * Each program takes `[SECONDS [MODE]]`, prints "ready" once its stack is the one that stacks.txt
 * documents, and ends by itself after SECONDS (120 unless told), so that none outlives a broken
 * test.
 */
#ifndef PROG_H
#define PROG_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Not inlined, cloned, specialised, nor analysed: gcc would find that spin never returns and drop
 * what follows. */
#define NOIPA __attribute__((noipa))

/* Behind a call: keeps it from becoming a jump, which would take the caller off the stack. */
#define NO_TAIL_CALL() __asm__ volatile("")

static volatile int prog_stop;
static volatile unsigned long prog_sink;

static void prog_end(int sig)
{
	(void)sig;
	_exit(0);
}

/* Returns the mode, "" without one. */
static inline const char *prog_start(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0;

	signal(SIGALRM, prog_end);
	alarm(seconds > 0 ? seconds : 120);
	return argc > 2 ? argv[2] : "";
}

/* Becomes this program anew, by the path that gave the process its name. */
static inline void prog_exec(const char *seconds, const char *mode)
{
	const char *path = (const char *)getauxval(AT_EXECFN);

	execl(path, path, seconds, mode, (char *)NULL);
	_exit(1);
}

static inline void prog_ready(void)
{
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		_exit(1);
}

/* Ready, and goes on at SIGUSR1: blocked before, so that none comes too early. */
static inline void prog_ready_to_go(void)
{
	sigset_t go;
	int sig;

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	prog_ready();
	sigwait(&go, &sig);
}

static NOIPA __attribute__((unused)) void spin(void)
{
#ifdef KEEP_FRAME_POINTER
	/* gcc leaves it out of a leaf that has nothing on the stack, whatever
	 * -mno-omit-leaf-frame-pointer says */
	__asm__ volatile("" : : "r"(__builtin_frame_address(0)));
#endif
	while (!prog_stop)
		prog_sink++;
}

#endif
