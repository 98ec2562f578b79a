/* SPDX-License-Identifier: BSD-2-Clause */
#include "helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/memory_max.h"
#include "base/util.h"

/* argv: the kind's name, the descriptors, the parent's id, the bytes that both may have together */
#define ARGS 5
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

/* What a child runs, and with what. */
struct start {
	int (*run)(const struct start *s);
	enum sandbox kind;
	const char *program;
	int in, out;
	char *const *argv;
	char *env[MAX_ENV + 1];
};

/* In the child, which shares the parent's memory, but has descriptors, signals held back and
 * capabilities of its own. Both return an errno. */
static int run_helper(const struct start *s)
{
	/* without them it serves all the same, as far as it can */
	(void)caps_hand_on(sandbox_rights(s->kind));
	if (fcntl(s->in, F_SETFD, 0) || fcntl(s->out, F_SETFD, 0))
		return errno;
	execve(s->program, s->argv, s->env);
	return errno;
}

static int run_self(const struct start *s)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	sigemptyset(&none);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    close_range(STDERR_FILENO + 1, UINT_MAX, 0) || sigprocmask(SIG_SETMASK, &none, NULL) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return errno;
	if (caps_set(0, 0))
		return EPERM;
	execve(s->program, s->argv, s->env);
	return errno;
}

static pid_t start(const struct start *s)
{
	volatile int err = 0;
	/* a fork would take the time to copy the page tables of a collector that has grown */
	pid_t pid = vfork();

	if (!pid) {
		err = s->run(s);
		_exit(127);
	}
	if (pid < 0)
		return -errno;
	if (!err)
		return pid;
	(void)waitpid(pid, NULL, 0);
	return -err;
}

pid_t helper_start(enum sandbox kind, const char *program, const char *const *env_names, int in,
		   int out)
{
	char in_text[16], out_text[16], parent[16], memory[32];
	char *argv[ARGS + 1] = { (char *)sandbox_name(kind), in_text, out_text, parent, memory };
	struct start s = { .run = run_helper,
			   .kind = kind,
			   .program = program,
			   .in = in,
			   .out = out,
			   .argv = argv };

	take_env(env_names, s.env);
	snprintf(in_text, sizeof(in_text), "%d", in);
	snprintf(out_text, sizeof(out_text), "%d", out);
	snprintf(parent, sizeof(parent), "%d", getpid());
	snprintf(memory, sizeof(memory), "%" PRIu64, memory_max());
	return start(&s);
}

pid_t helper_start_self(const char *const *argv)
{
	struct start s = { .run = run_self, .program = HELPER_SELF, .argv = (char *const *)argv };

	take_env(NULL, s.env);
	return start(&s);
}

int helper_enter(enum sandbox kind, int argc, char **argv)
{
	int err;

	if (argc != ARGS || strcmp(argv[0], sandbox_name(kind)))
		return 0;
	err = sandbox_enter(kind, atoi(argv[1]), atoi(argv[2]), atoi(argv[3]),
			    strtoull(argv[4], NULL, 10));
	return err ? err : 1;
}
