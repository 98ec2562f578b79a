/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the command to be profiled, held back until the samplers are armed. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#define LAUNCH_PATIENCE_MS 2000 /* between asking a command to end and killing it */

/* How a command is started, beside what it is. All of it may be left out. */
struct launch_settings {
	/* "NAME=value", NULL-terminated lists, in addition to our environment; or NULL */
	char *const *env, *const *more_env;
	const struct launch_user *user; /* NULL: us, with our rights, as perf does */
	bool own_group;			/* a process group of its own, whose id is the command's */
	bool own_session;		/* the same, and a session, without a terminal */
	int tell_fd; /* above 0: its id, a pid_t, is to be written there once it has been started */
};

/* Who a command is run as. */
struct launch_user {
	uid_t uid;
	gid_t gid;
	char name[64];	/* its other groups are those that it has by this name; "": none */
	char home[256]; /* "": not known */
};

/* The user behind sudo(8). False: there is none, or it is root. */
bool launch_sudo_user(struct launch_user *ret);

struct launch {
	pid_t pid;
	int go_fd;    /* closing it without a byte ends the child */
	int error_fd; /* errno of a failed exec */
	bool reaped;
	bool ended_by_us; /* we have asked it to, while it was running */
	int status;	  /* as wait(2) gives it */
};

/* Forks. The child waits, then runs argv[0]. Settings are borrowed until it runs; NULL: none. 0 or
 * -errno. */
int launch_prepare(char *const argv[], const struct launch_settings *settings, struct launch *ret);
/* Lets it go. 0, or -errno of its exec, or of becoming the user. */
int launch_go(struct launch *l);
/* Has it ended? Never blocks. */
bool launch_ended(struct launch *l);
/* Gives a command that was asked to end by somebody else, such as the terminal, the time to do so. Has
 * it? */
bool launch_wait(struct launch *l);
/* Asks it to end, by SIGTERM. */
void launch_ask(struct launch *l);
/* Ends it if it still waits or runs: asks first, then kills. Reaps it. */
void launch_done(struct launch *l);
/* What a shell would make of its end: its exit status, or 128 + signal; 0 if it was we who ended
 * it. */
int launch_exit_status(const struct launch *l);

#endif
