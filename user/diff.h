/* SPDX-License-Identifier: BSD-2-Clause */
/* The command `diff`. */
#ifndef DIFF_H
#define DIFF_H

struct judge_result;
struct options;

/* Exit statuses. */
enum {
	DIFF_FINE = 0,
	DIFF_WORSE = 1,
	DIFF_WRONG = 2, /* whatever has failed: no error looks like a verdict */
	DIFF_OPEN = 3,	/* with --strict */
};

int diff_sides(const struct options *opts);

/* Could a result be written to this path? Before there is one. 0; or -errno, after the reason was said. */
int diff_check_output(const struct options *opts, const char *path);

/* Writes a result as the options want it to a path, "-": standard output. Returns the exit status that it
 * stands for. */
int diff_write_result(const struct options *opts, const char *path,
		      const struct judge_result *result);

#endif
