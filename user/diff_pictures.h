/* SPDX-License-Identifier: BSD-2-Clause */
/* Forms of `bpfprof diff` that are pictures of both sides, or files for programs that draw them. */
#ifndef DIFF_PICTURES_H
#define DIFF_PICTURES_H

#include <stdio.h>

#include "judge/write.h"

/* Of a shape that is not JUDGE_WORDS. 0 or -errno. */
int diff_picture_write(const struct judge_result *r, enum judge_shape shape, FILE *f);

#endif
