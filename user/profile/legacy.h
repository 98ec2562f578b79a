/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats that were there before profile.proto, and Go's text form debug=1, which has them with
 * names. They are of one process: what is at an address, readers find by its mappings. The profile is
 * finished. Names and paths are made harmless; equal profiles give equal bytes.
 */
#ifndef PROFILE_LEGACY_H
#define PROFILE_LEGACY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct profile;

/* What a profile's values are. */
enum legacy_form {
	LEGACY_COUNT, /* one value: how many */
	LEGACY_CPU,   /* samples, and what they took */
	LEGACY_HEAP, /* alloc_objects, alloc_space, and inuse_objects, inuse_space if that is known */
	LEGACY_CONTENTION, /* how many, and ns: of who waited */
	LEGACY_MUTEX,	   /* the same, of who held */
};

struct legacy {
	enum legacy_form form;
	const char *name; /* what is counted, a word, where it is a mere number */
	const char
		*memory; /* of a heap profile: lines that are to stand below the samples; or NULL */
};

/*
 * Stacks as return addresses in the running process, which are the profile's addresses plus 1, then
 * the mappings, in lines as /proc/PID/maps has them. By the form:
 *
 *   LEGACY_COUNT       "threadcreate profile: total 5", then "5 @ 0x…" for each stack
 *   LEGACY_CPU         gperftools' binary words of 64 bits, the mappings behind MAPPED_LIBRARIES
 *   LEGACY_HEAP        "heap profile: 1: 64 [2: 128] @ heap_v2/524288": in use, and allocated, as it
 *                      was sampled, and the mean distance of the samples, by which readers scale it
 *                      up. Where samples stand for something else, so that there are no such whole
 *                      numbers, it is "heapprofile", and the values are as the profile has them.
 *                      Where what is in use is not known, what was allocated stands in its place, and
 *                      a comment behind the samples says so.
 *   LEGACY_CONTENTION  "--- contention:", then "1200000 3 @ 0x…" for each: ns and how many
 *   LEGACY_MUTEX       "--- mutex:", the same
 *
 * The stack with most comes first. Labels are left out, but that a size has lines of its own. Where
 * ranges of two mappings overlap, since the process has run two programs, one of them is moved.
 * 0 or -errno.
 */
int legacy_write(const struct profile *p, const struct legacy *what, FILE *f);

/*
 * The same without the mappings and with the frames of each stack: "#", the address, the function and
 * how far the address is in it, file and line; or the object and where it is in its file. Columns are
 * as wide as Go's text/tabwriter makes them. LEGACY_CPU has the text of a count, and counts have the
 * labels that are no numbers. LEGACY_HEAP has "heap/1048576", twice the distance, or "heap/2", by which
 * nothing is scaled. The functions of Go's runtime that are leaves are left out, but for CPU time and
 * contention.
 */
int debug1_write(const struct profile *p, const struct legacy *what, FILE *f);

#endif
