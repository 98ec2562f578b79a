/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds profiles together, one after the other, so that no more than the sum and the one at hand are
 * in memory. What comes out does not depend on the order in which they were added:
 *
 *  - Equal stacks with equal labels are one, and their values are added, held at the ends of the
 *    range. Mappings, functions and locations are equal by what is in them, inlined lines and all;
 *    of two processes with equal mappings nothing tells them apart but labels.
 *  - The time is that of the earliest. The duration is from there to the latest end, gaps and all:
 *    windows that follow each other add up to it, and those of several groups of processes lie over
 *    the same time, so that a sum would be several times what it took. A profile without a time has
 *    a duration alone, and the result's is at least as long.
 *  - The period is the largest, as pprof has it.
 *  - Each comment is there once, where it was in the profile that had it nearest to its beginning:
 *    MERGE_MAX_COMMENTS at most, the first ones, and of MERGE_MAX_COMMENT bytes. That others were
 *    left out is said in one more. What is said of a single run (facts.h) is not said of several.
 *  - The value that readers show first is the one that all name, else the last.
 *  - What readers are to hide stays where all agree on it, else nothing is hidden (machinery_hide).
 *  - The first mapping, which readers take for the program's, is the one at the lowest address of
 *    those that are first in any of them.
 */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include <stddef.h>

struct profile;
struct profile_merge;

#define MERGE_MAX_COMMENTS 32
#define MERGE_MAX_COMMENT 1024

struct profile_merge_label {
	const char *key, *value;
};

/* NULL with errno. */
struct profile_merge *profile_merge__new(void);
void profile_merge__free(struct profile_merge *m);

/*
 * Adds a profile, finished or not, which stays the caller's. Each of its samples gets these labels,
 * but for those whose key it has already. 0; -EINVAL: its value types, their units or its period type
 * are others than those of the first, and nothing was added; -ENOMEM: it is in some part, and m can
 * only be freed.
 */
int profile_merge__add(struct profile_merge *m, const struct profile *p,
		       const struct profile_merge_label *labels, size_t label_cnt);

/* What there is so far, to be looked at and to be fitted (fit.h); NULL: nothing was added. */
struct profile *profile_merge__so_far(struct profile_merge *m);

/* The sum, which is the caller's, and not finished; m is empty then. NULL with errno: ENOMEM; ENODATA:
 * nothing was added. */
struct profile *profile_merge__take(struct profile_merge *m);

#endif
