/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/reader_start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/util.h"
#include "target/reader_worker.h"

/* argv: the name of one of them, the descriptors, the parent's id */
#define ARGS 4

static const struct {
	const char *name;
	void (*serve)(void);
} kinds[] = {
	[SANDBOX_READER] = { "bpfprof-reader", reader_worker },
	[SANDBOX_OPENER] = { "bpfprof-opener", reader_opener },
};

/*
 * Is this process one of them? A constructor, since every program that starts readers has to take
 * them on: a main that did not ask would start all over, and again for its own readers.
 */
static void __attribute__((constructor)) serve(int argc, char **argv)
{
	for (size_t i = 0; argc == ARGS && i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(argv[0], kinds[i].name))
			continue;
		if (sandbox_enter((enum sandbox)i, atoi(argv[1]), atoi(argv[2]), atoi(argv[3])))
			_exit(1);
		kinds[i].serve();
		_exit(0);
	}
}

/* All of the environment that goes on: where the libraries are may be known by it alone. */
static char *library_path(void)
{
	static const char name[] = "LD_LIBRARY_PATH=";

	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, name, strlen(name)))
			return *e;
	return NULL;
}

/* In the child, which shares the parent's memory. Returns an errno. */
static int run(enum sandbox kind, int in, int out, char *const argv[], char *const env[])
{
	/* without them it serves all the same, as far as it can */
	(void)caps_hand_on(sandbox_rights(kind));
	if (fcntl(in, F_SETFD, 0) || fcntl(out, F_SETFD, 0))
		return errno;
	/* also if its file was replaced, or is out of reach in this mount namespace: proc(5) */
	execve("/proc/self/exe", argv, env);
	return errno;
}

pid_t reader_start(enum sandbox kind, int in, int out)
{
	char in_text[16], out_text[16], parent[16];
	char *argv[ARGS + 1] = { (char *)kinds[kind].name, in_text, out_text, parent };
	char *env[] = { library_path(), NULL };
	volatile int err = 0;
	pid_t pid;

	snprintf(in_text, sizeof(in_text), "%d", in);
	snprintf(out_text, sizeof(out_text), "%d", out);
	snprintf(parent, sizeof(parent), "%d", getpid());
	/* a fork would take the time to copy the page tables of a collector that has grown */
	pid = vfork();
	if (!pid) {
		err = run(kind, in, out, argv, env);
		_exit(127);
	}
	if (pid < 0)
		return -errno;
	if (!err)
		return pid;
	(void)waitpid(pid, NULL, 0);
	return -err;
}
