// SPDX-License-Identifier: BSD-2-Clause
/*
 * Custom profiles of known content. Once told to go on, or at once with the mode "now":
 *
 *   conn                  10 added by add_ten, of which 3 are removed again; 5 by add_five; 2 of the
 *                         former added once more; 4 removed that were never added
 *   example.org/net.buf   6 added by add_buffers, in a thread each; none removed
 *   done                  8 added by add_done, and all removed
 *
 * The same values are in several of them. Functions that say nothing do the like: thing_open returns
 * what thing_close is given, of 7 things 2 are closed, and fails 3 times; thing_lend is given as its
 * third argument what thing_return returns, of 5 things 1 is returned.
 *
 * Then it says what conn holds.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bpfprof/profile.h"
#include "prog.h"

static char things[16];

static NOIPA void add_ten(void)
{
	for (int i = 0; i < 10; i++)
		BPFPROF_ADD("conn", &things[i]);
}

static NOIPA void add_five(void)
{
	for (int i = 10; i < 15; i++)
		BPFPROF_ADD("conn", &things[i]);
}

static NOIPA void add_twice(void)
{
	BPFPROF_ADD("conn", &things[0]);
	BPFPROF_ADD("conn", &things[1]);
}

static NOIPA void remove_some(void)
{
	for (int i = 7; i < 10; i++)
		BPFPROF_REMOVE("conn", &things[i]);
	for (long i = -4; i < 0; i++)
		BPFPROF_REMOVE("conn", i);
}

static NOIPA void *add_buffers(void *buffer)
{
	BPFPROF_ADD("example.org/net.buf", buffer);
	return NULL;
}

static NOIPA void add_done(void)
{
	for (int i = 0; i < 8; i++)
		BPFPROF_ADD("done", i);
}

static NOIPA void remove_done(void)
{
	for (int i = 0; i < 8; i++)
		BPFPROF_REMOVE("done", i);
}

static NOIPA void *thing_open(int i)
{
	return i < 0 ? NULL : &things[i];
}

static NOIPA void thing_close(void *thing)
{
	__asm__ volatile("" : : "r"(thing));
}

static NOIPA void thing_lend(int to, long until, void *thing)
{
	__asm__ volatile("" : : "r"(thing), "r"(until), "r"(to));
}

static NOIPA void *thing_return(int i)
{
	return &things[i];
}

static NOIPA void open_things(void)
{
	for (int i = -3; i < 7; i++)
		(void)thing_open(i);
	NO_TAIL_CALL();
}

static NOIPA void lend_things(void)
{
	for (int i = 0; i < 5; i++)
		thing_lend(1, 2, &things[i]);
	NO_TAIL_CALL();
}

static NOIPA void do_all(void)
{
	pthread_t thread;

	add_ten();
	add_five();
	add_twice();
	remove_some();
	for (int i = 0; i < 6; i++) {
		pthread_create(&thread, NULL, add_buffers, &things[i]);
		pthread_join(thread, NULL);
	}
	add_done();
	remove_done();
	open_things();
	thing_close(&things[2]);
	thing_close(&things[3]);
	thing_close(NULL);
	lend_things();
	(void)thing_return(4);
}

/* What an ADD and a REMOVE take, in ns; 0 rounds: so long as it takes to count without them. */
static NOIPA void time_them(long rounds)
{
	struct timespec from, to;

	for (int with = 0; with < 2; with++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
		for (long i = 0; i < rounds; i++) {
			__asm__ volatile("" : "+r"(i));
			if (!with)
				continue;
			BPFPROF_ADD("timed", i);
			BPFPROF_REMOVE("timed", i);
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
		printf("%s %.3f\n", with ? "with" : "without",
		       ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / rounds);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);

	if (!strncmp(mode, "time", 4)) {
		prog_ready_to_go();
		time_them(atol(mode + 4));
		return 0;
	}
	if (strcmp(mode, "now"))
		prog_ready_to_go();
	do_all();
	if (!strcmp(mode, "now"))
		return 0;
	puts("{\"add_ten\": 7, \"add_five\": 5}");
	fflush(stdout);
	pause();
	return 0;
}
