/* SPDX-License-Identifier: BSD-2-Clause */
/* The Go programs of tests/progs, for unit tests. */
#ifndef TESTS_UNIT_GO_PROGS_H
#define TESTS_UNIT_GO_PROGS_H

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline const char *go_progs__path(const char *name, char path[PATH_MAX])
{
	const char *progs = getenv("PROGS");

	snprintf(path, PATH_MAX, "%s/%s", progs ? progs : "build/tests/progs", name);
	return path;
}

/* Leaves the test where no compiler of Go was there to make them. */
static inline void go_progs__need(void)
{
	char path[PATH_MAX];

	if (access(go_progs__path("go_frames", path), X_OK)) {
		print_message("the Go programs were not built (there is no compiler of Go)\n");
		skip();
	}
}

static inline int go_progs__open(const char *name)
{
	char path[PATH_MAX];
	int fd = open(go_progs__path(name, path), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

#endif
