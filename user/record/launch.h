/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the command to be profiled, held back until the samplers are armed. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#define LAUNCH_PATIENCE_MS 2000 /* between asking a command to end and killing it */

struct launch {
	pid_t pid;
	int go_fd;    /* closing it without a byte ends the child */
	int error_fd; /* errno of a failed exec */
	bool reaped;
	bool ended_by_us; /* by launch_done, while it was running */
	int status;	  /* as wait(2) gives it */
};

/*
 * Forks. The child waits, then runs argv[0] as the user behind sudo does not matter: with our own
 * rights, as perf does. env: "NAME=value", NULL-terminated, in addition to ours; or NULL. 0 or
 * -errno.
 */
int launch_prepare(char *const argv[], char *const env[], struct launch *ret);
/* Lets it go. 0, or -errno of its exec. */
int launch_go(struct launch *l);
/* Has it ended? Never blocks. */
bool launch_ended(struct launch *l);
/* Gives a command that was asked to end by somebody else, such as the terminal, the time to do so.
 */
void launch_wait(struct launch *l);
/* Ends it if it still waits or runs: asks first, then kills. Reaps it. */
void launch_done(struct launch *l);
/* What a shell would make of its end: its exit status, or 128 + signal; 0 if it was we who ended
 * it. */
int launch_exit_status(const struct launch *l);

#endif
