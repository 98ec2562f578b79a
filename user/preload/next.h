/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions behind those that the library has put itself before, and what it calls in children. */
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

/*
 * pthread_atfork of glibc is this. Weak, since musl has no such name, and the library must not keep
 * a child that happens to be linked with musl from starting.
 */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *dso) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/* In children of fork(2), that is: those of vfork(2) share their parent's memory. */
static inline void call_in_children(void (*func)(void))
{
	if (__register_atfork)
		__register_atfork(NULL, NULL, func, __dso_handle);
}

#endif
