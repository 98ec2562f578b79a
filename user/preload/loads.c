// SPDX-License-Identifier: BSD-2-Clause
/*
 * Libraries that a program loads in a way by which they do not find the functions of heap.c: with
 * RTLD_DEEPBIND they look into what they need first, and by dlmopen they have a C library of their
 * own. What they allocate is not sampled, and what they free of others is not seen. That cannot be
 * helped without a change of what the program has asked for, so it is told.
 *
 * The dynamic linker asks where it was called from: that decides where a library is looked for, and
 * what it sees. So these functions do not call, but jump, and leave the return address as it is;
 * test_preload looks.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "next.h"
#include "probes.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
	void *(*dlopen)(const char *, int);
	void *(*dlmopen)(Lmid_t, const char *, int);
} real;

__attribute__((constructor)) static void start(void)
{
	next_function("dlopen", &real.dlopen);
	next_function("dlmopen", &real.dlmopen);
}

/* NULL, file: the program itself. */
EXPORT void *dlopen(const char *file, int mode)
{
	if (!real.dlopen)
		start();
	if (file && mode & RTLD_DEEPBIND)
		probe_free(NULL);
	return real.dlopen(file, mode);
}

EXPORT void *dlmopen(Lmid_t space, const char *file, int mode)
{
	if (!real.dlmopen)
		start();
	if (file && (space != LM_ID_BASE || mode & RTLD_DEEPBIND))
		probe_free(NULL);
	return real.dlmopen(space, file, mode);
}
