/* SPDX-License-Identifier: BSD-2-Clause */
/* How the heap of a command that is about to be started is sampled: inside it, by a library that is
 * preloaded, or by probes where that cannot be. */
#ifndef LAUNCH_HEAP_H
#define LAUNCH_HEAP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAUNCH_HEAP_LIBRARY "libbpfprof-heap.so"

struct objects;

struct launch_heap {
	int file_fd;		/* the program, or -1 if it cannot be read, or probed */
	bool missing;		/* since it is not there */
	char preload[PATH_MAX]; /* the library; "": it cannot be used, because */
	const char *why;	/* half a sentence: "it is statically linked" */
	bool samples_itself;	/* so there is something to listen to, and nothing is preloaded */
	char preload_env[2 * PATH_MAX]; /* for the command's environment */
	char rate_env[64];
};

/* The library: beside this program, as it is built, or where it was installed. NULL, or why it cannot be
 * preloaded, half a sentence. */
const char *launch_heap_library(char *path, size_t path_sz);

/* argv0 as exec takes it: looked for in PATH unless it has a '/'. rate: bytes between samples. */
void launch_heap(const char *argv0, uint64_t rate, struct objects *objects,
		 struct launch_heap *ret);
void launch_heap__done(struct launch_heap *l);

#endif
