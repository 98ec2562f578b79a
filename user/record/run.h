/* SPDX-License-Identifier: BSD-2-Clause */
/* One recording, from the options to the files: owns the clock and the loop. */
#ifndef RUN_H
#define RUN_H

struct options;

/* Returns the exit status of the program: 0 written, 1 not; a command's own once the profile is
 * written. */
int run_record(const struct options *opts);

#endif
