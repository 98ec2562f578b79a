/* SPDX-License-Identifier: BSD-2-Clause */
/* What has changed between two profiles of one moment each: one profile, the second less the first. */
#ifndef PROFILE_CHANGE_H
#define PROFILE_CHANGE_H

struct profile;

/*
 * Samples are the same by stack and labels, but for those of a key which changes by itself, and is left out;
 * those that are alike in both are not there. *ret is finished, the caller's, and has the time of the second;
 * its duration lies between the two. Both must have the same values; their samples are changed. 0; -EINVAL:
 * their values are others; -ENOMEM.
 */
int change_make(struct profile *before, struct profile *after, const char *without_label,
		struct profile **ret);

#endif
