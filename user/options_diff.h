/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `diff`, whose operands are the files of two sides. */
#ifndef OPTIONS_DIFF_H
#define OPTIONS_DIFF_H

#include <stddef.h>

struct options;

/* An option that not every command takes. 0, or -EINVAL with a sentence in err. */
int options_diff_apply(struct options *o, int val, const char *arg, char *err, size_t err_sz);

/* What is left of the command line, NULL-terminated: it becomes the options'. The same. */
int options_diff_finish(struct options *o, char **operands, char *err, size_t err_sz);

#endif
