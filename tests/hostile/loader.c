/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes its mode for its name. Loads the library that each line of standard input names, says so,
 * and calls all of them in turn, for as long as the input is open: main call_all outer inner.
 * -DLIBRARY: such a library, whose inner function can be renamed in the file.
 */
#include <stdbool.h>

#include "prog.h"

#ifdef LIBRARY

__attribute__((noinline, used)) static int inner_000(int n)
{
	for (volatile int i = 0; i < n; i++)
		;
	return n + 1;
}

NOIPA int outer(int n);
NOIPA int outer(int n)
{
	return inner_000(n) * 3;
}

#else

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>

#define MAX_LIBRARIES 256

static int (*outers[MAX_LIBRARIES])(int n);
static int cnt;

static NOIPA int call_all(void)
{
	int sum = 0;

	for (int i = 0; i < cnt; i++)
		sum += outers[i](200000);
	return sum;
}

/* One line, if there is one. False at the end of the input. */
static bool load_next(char *path, size_t sz)
{
	ssize_t n = read(STDIN_FILENO, path, sz - 1);
	void *library;

	if (n <= 0)
		return n;
	path[n - 1] = '\0';
	library = dlopen(path, RTLD_NOW);
	if (!library || cnt == MAX_LIBRARIES)
		_exit(1);
	outers[cnt++] = (int (*)(int))dlsym(library, "outer");
	printf("loaded\n");
	fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	char path[4096];

	prctl(PR_SET_NAME, prog_start(argc, argv));
	prog_ready();
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	while (load_next(path, sizeof(path)))
		prog_sink += call_all();
	return 0;
}

#endif
