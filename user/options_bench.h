/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `bench` that neither `record` nor `diff` has, and those of `diff` that it has. */
#ifndef OPTIONS_BENCH_H
#define OPTIONS_BENCH_H

#include <stdbool.h>
#include <stddef.h>

struct options;

void options_bench_defaults(struct options *o);
/* Is it for options_bench_apply? Else it is one of `record`. */
bool options_bench_takes(int val);
/* 0 or -EINVAL with a sentence in err. */
int options_bench_apply(struct options *o, int val, const char *arg, char *err, size_t err_sz);
/* What is wrong with the whole, and the defaults that depend on it. As above. */
int options_bench_check(struct options *o, char *err, size_t err_sz);

#endif
