/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `serve`: a part of options.c. */
#ifndef OPTIONS_SERVE_H
#define OPTIONS_SERVE_H

#include <stdbool.h>
#include <stddef.h>

struct options;

void options_serve_defaults(struct options *o);
/* Is it one of those that other commands do not have? */
bool options_serve_takes(int val);
/* Takes one of these. 0 or -EINVAL, with a sentence. */
int options_serve_apply(struct options *o, int val, const char *arg, char *err, size_t err_sz);
/* What is wrong with the whole, and the defaults that depend on it. The same. */
int options_serve_check(struct options *o, char *err, size_t err_sz);

#endif
