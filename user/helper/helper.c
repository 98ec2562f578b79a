/* SPDX-License-Identifier: BSD-2-Clause */
#include "helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/util.h"

/* argv: the kind's name, the descriptors, the parent's id */
#define ARGS 4
#define MAX_ENV 16

static const char libraries[] = "LD_LIBRARY_PATH";

/* NAME=VALUE as the environment has it; NULL: it has none. */
static char *variable(const char *name)
{
	size_t len = strlen(name);

	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, name, len) && (*e)[len] == '=')
			return *e;
	return NULL;
}

static void take_env(const char *const *names, char *ret[static MAX_ENV + 1])
{
	size_t n = 0;

	ret[n] = variable(libraries);
	n += ret[n] != NULL;
	for (; names && *names && n < MAX_ENV; names++) {
		ret[n] = variable(*names);
		n += ret[n] != NULL;
	}
	ret[n] = NULL;
}

/* In the child, which shares the parent's memory. Returns an errno. */
static int run(enum sandbox kind, const char *program, int in, int out, char *const argv[],
	       char *const env[])
{
	/* without them it serves all the same, as far as it can */
	(void)caps_hand_on(sandbox_rights(kind));
	if (fcntl(in, F_SETFD, 0) || fcntl(out, F_SETFD, 0))
		return errno;
	execve(program, argv, env);
	return errno;
}

pid_t helper_start(enum sandbox kind, const char *program, const char *const *env_names, int in,
		   int out)
{
	char in_text[16], out_text[16], parent[16];
	char *argv[ARGS + 1] = { (char *)sandbox_name(kind), in_text, out_text, parent };
	char *env[MAX_ENV + 1];
	volatile int err = 0;
	pid_t pid;

	take_env(env_names, env);
	snprintf(in_text, sizeof(in_text), "%d", in);
	snprintf(out_text, sizeof(out_text), "%d", out);
	snprintf(parent, sizeof(parent), "%d", getpid());
	/* a fork would take the time to copy the page tables of a collector that has grown */
	pid = vfork();
	if (!pid) {
		err = run(kind, program, in, out, argv, env);
		_exit(127);
	}
	if (pid < 0)
		return -errno;
	if (!err)
		return pid;
	(void)waitpid(pid, NULL, 0);
	return -err;
}

int helper_enter(enum sandbox kind, int argc, char **argv)
{
	int err;

	if (argc != ARGS || strcmp(argv[0], sandbox_name(kind)))
		return 0;
	err = sandbox_enter(kind, atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
	return err ? err : 1;
}
