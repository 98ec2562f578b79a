/* SPDX-License-Identifier: BSD-2-Clause */
/* What `view` and `merge` take on the command line. For options.c alone. */
#ifndef OPTIONS_VIEW_H
#define OPTIONS_VIEW_H

#include <stddef.h>

#include "options.h"

/* An option of their tables. 0, or -EINVAL with one sentence in err. */
int options_view_apply(struct options *o, int val, const char *arg, char *err, size_t err_sz);

/* The operands, NULL-terminated, and what is wrong with the whole. The same. */
int options_view_finish(struct options *o, char **files, char *err, size_t err_sz);

#endif
