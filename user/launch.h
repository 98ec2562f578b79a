/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the command to be profiled, held back until the samplers are armed. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

struct launch {
	pid_t pid;
	int go_fd;    /* closing it without a byte ends the child */
	int error_fd; /* errno of a failed exec */
	bool reaped;
	int status; /* as wait(2) gives it */
};

/*
 * Forks. The child waits, then runs argv[0] as the user behind sudo does not matter: with our own
 * rights, as perf does. 0 or -errno.
 */
int launch_prepare(char *const argv[], struct launch *ret);
/* Lets it go. 0, or -errno of its exec. */
int launch_go(struct launch *l);
/* Has it ended? Never blocks. */
bool launch_ended(struct launch *l);
/* Ends it if it still waits or runs, and reaps it. */
void launch_done(struct launch *l);
/* What a shell would make of its end: its exit status, or 128 + signal. */
int launch_exit_status(const struct launch *l);

#endif
