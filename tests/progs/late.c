/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that comes while the profiler runs, from a library built of late_lib.c in two versions.
 *   (none)  after SIGUSR1: main run alpha_entry alpha_spin
 *   swap    one library, then the other where the first one was, 0.3 s of CPU time each, again and
 *           again: main run alpha_entry alpha_spin, main run beta_entry beta_spin
 *   over    the same once, both without a build id and in one file, the second written over the first;
 *           the other one for ever
 * The first argument behind the mode is the folder of the libraries, the second such a file.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "prog.h"

static const char *path_of(const char *dir, const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/lib%s.so", dir, name);
	return path;
}

/* As cp(1) does. */
static const char *write_over(const char *path, const char *from)
{
	int in = open(from, O_RDONLY), out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st) ||
	    sendfile(out, in, NULL, (size_t)st.st_size) != st.st_size)
		_exit(1);
	close(in);
	close(out);
	return path;
}

static NOIPA void *run(const char *path, const char *name, double seconds)
{
	char symbol[64];
	void (*entry)(double);
	void *lib;

	snprintf(symbol, sizeof(symbol), "%s_entry", name);
	lib = dlopen(path, RTLD_NOW);
	entry = lib ? (void (*)(double))dlsym(lib, symbol) : NULL;
	if (!entry)
		_exit(1);
	entry(seconds);
	dlclose(lib);
	return entry;
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	const char *dir = argc > 3 ? argv[3] : ".";

	if (argc > 4) {
		prog_ready_to_go();
		run(write_over(argv[4], path_of(dir, "alpha-noid")), "alpha", 0.3);
		run(write_over(argv[4], path_of(dir, "beta-noid")), "beta", 1e9);
	}
	if (strcmp(mode, "swap")) {
		prog_ready_to_go();
		run(path_of(dir, "alpha"), "alpha", 1e9);
	}
	prog_ready();
	while (run(path_of(dir, "alpha"), "alpha", 0.3) == run(path_of(dir, "beta"), "beta", 0.3))
		;
	/* the loader chose other addresses: not the case that is to be tested */
	return 3;
}
