/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions behind those that the library has put itself before. */
#ifndef PRELOAD_NEXT_H
#define PRELOAD_NEXT_H

#include <dlfcn.h>
#include <string.h>

/* Sets *ret, a pointer to a function, to what comes next under this name; NULL: nothing. dlsym(3) returns a
 * void pointer also for functions, and POSIX wants that to be enough. */
static inline void next_function(const char *name, void *ret)
{
	void *func = dlsym(RTLD_NEXT, name);

	memcpy(ret, &func, sizeof(func));
}

#endif
