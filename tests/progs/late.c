/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that comes while the profiler runs, from a library built of late_lib.c in two versions.
 *   (none)  after SIGUSR1: main run alpha_entry alpha_spin
 *   swap    one library, then the other where the first one was, 0.3 s of CPU time each, again and
 *           again: main run alpha_entry alpha_spin, main run beta_entry beta_spin
 * The first argument behind the mode is the folder of the libraries.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "prog.h"

static NOIPA void *run(const char *dir, const char *name, double seconds)
{
	char path[4096], symbol[64];
	void (*entry)(double);
	void *lib;

	snprintf(path, sizeof(path), "%s/lib%s.so", dir, name);
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

	if (strcmp(mode, "swap")) {
		prog_ready_to_go();
		run(dir, "alpha", 1e9);
	}
	prog_ready();
	while (run(dir, "alpha", 0.3) == run(dir, "beta", 0.3))
		;
	/* the loader chose other addresses: not the case that is to be tested */
	return 3;
}
