/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds names in the tables of machinery (machinery_names.h): objects and functions in which a thread
 * sleeps, memory is handed out, or a program is carried out. machinery.h decides by them.
 */
#ifndef PROFILE_MACHINERY_MATCH_H
#define PROFILE_MACHINERY_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a frame is to the question what of the program itself waits or holds memory. In rising order:
 * of what its object and its name say, the larger holds. */
enum machinery_rank {
	MACHINERY_OWN, /* the program's own, or of a library that no distribution has put there */
	MACHINERY_NAMELESS, /* the program's own as well: code of a compiler at run time, unnamed */
	MACHINERY_RUNTIME,  /* a library's or a runtime's: what for may be read from its name */
	MACHINERY_SYSTEM,   /* only how: sleeps, allocates, calls, interprets */
};

/* What a profile may have hidden by its reader: bits. */
enum machinery_drop {
	MACHINERY_DROP_WAITS = 1,  /* what sleeps or wakes */
	MACHINERY_DROP_ALLOCS = 2, /* what allocates */
	MACHINERY_DROP_KERNEL = 4, /* the way into the kernel */
};

/* The rank of all of an object by its file's name, of which *ret_libc is what a C library is made of:
 * what sleeps for others. */
enum machinery_rank machinery_object(const char *filename, bool *ret_libc);

struct machinery_function {
	const char *name, *system_name, *filename; /* as in a profile; none is NULL */
};

/* The sets of names that a function is in, a bit for each. */
uint64_t machinery_sets_of(const struct machinery_function *f);

/* What a frame's place says beside its name. */
struct machinery_place {
	enum machinery_rank object;
	bool anonymous;	     /* no file: code of a compiler at run time */
	bool libc_elsewhere; /* a frame of the stack is in the file of a C library */
};

/* The rank of a function that is in these sets at a place. */
enum machinery_rank machinery_rank(uint64_t in, const struct machinery_place *place);

/* Is the name, simplified as below, one that `what` (bits of enum machinery_drop) hides? */
bool machinery_drops(unsigned int what, const char *s, size_t len);

/* Writes the same as regular expressions of whole names, in what RE2 and POSIX (extended) have in
 * common: what is hidden, and what is not in spite of it, which may be nothing. */
void machinery_write_drops(unsigned int what, FILE *f);
void machinery_write_keeps(unsigned int what, FILE *f);

/* Writes bytes so that a regular expression takes them as they are. */
void machinery_quote(const char *s, size_t len, FILE *f);

/*
 * What pprof matches in the place of a name (profile/prune.go, simplifyFunc): without the '.' that
 * it begins with, and up to the first '(' that does not begin "(anonymous namespace)" or end
 * "operator()". Returns the length, and where it begins.
 */
size_t machinery_simplified(const char *name, const char **ret_begin);

#endif
