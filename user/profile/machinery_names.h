/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of machinery, as tables: objects and functions in which a thread sleeps, memory is
 * handed out, or a program is carried out, and which say nothing of the program itself.
 */
#ifndef PROFILE_MACHINERY_NAMES_H
#define PROFILE_MACHINERY_NAMES_H

#include <stddef.h>

#include "profile/machinery_match.h"

/* How the names of a set are compared, and where they count. */
enum machinery_form {
	ANYWHERE,
	/* As C libraries decorate them: "__GI___libc_read", "___pthread_cond_timedwait64",
	 * "__read_nocancel", "malloc.part.0". */
	DECORATED,
	/* The same; in an executable only of stacks without a frame of a C library's file: with one,
	 * the executable has no C library inside, and its read() is its own. */
	LIBC,
	MANGLED,      /* by system_name, as Itanium's C++ ABI has it (5.1) */
	FILENAME,     /* by the path of the source */
	RUST,	      /* only what rustc has mangled: C++ may have namespaces of these names */
	GO,	      /* not what GCC has split off a function of C: "sort.part.0" */
	GO_PACKAGE,   /* the same: its package's path begins with this name, and no host's */
	IN_RUNTIME,   /* only in an object that is a runtime's: they are words that anybody uses */
	IN_ANONYMOUS, /* only in code that a compiler has made at run time and named in a perf map */
};

struct machinery_set {
	const char *list; /* of names, a '|' between them; a '*' stands for any bytes */
	enum machinery_form form;
	enum machinery_rank rank;
	unsigned int drop; /* enum machinery_drop */
};

/* Of the sets that a function is in the first that counts there gives its rank. At most 64. */
extern const struct machinery_set machinery_sets[];
extern const size_t machinery_set_cnt;

/* Names of files without their folders; folders. */
extern const char *const machinery_libc_objects,
	*const machinery_allocator_objects, *const machinery_runtime_objects,
						    *const machinery_interpreters,
							    *const machinery_system_folders;

/* Functions that are not dropped, whatever the sets say. */
extern const char *const machinery_go_keeps;

#endif
