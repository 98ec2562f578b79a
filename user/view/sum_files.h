/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads files of profiles and adds them up (profile/merge.h), where their values can be made the same
 * (profile/fit.h); what was left out for that is said on standard error, and in the sum. What comes out does not depend on the order in which they are named. Other than in
 * a sum of windows,
 *  - the duration is that of all together, as pprof has it: runs lie apart, and a rate is one of the
 *    time that was recorded;
 *  - the period is there only if all have the same.
 */
#ifndef SUM_FILES_H
#define SUM_FILES_H

struct profile;

#define SUM_FILES_MAX (1ULL << 30) /* bytes (profile__bytes) from which on nothing more is added */

/* files: NULL-terminated, at least one. *ret is finished, and the caller's. 0; or -errno, and one line
 * on standard error has said which file it was, and why. */
int sum_files(char *const *files, struct profile **ret);

#endif
