/* SPDX-License-Identifier: BSD-2-Clause */
/* What was compared, as a profile. */
#ifndef JUDGE_PICTURE_H
#define JUDGE_PICTURE_H

#include <stddef.h>

#include "judge/runs.h"

struct judge_metric;
struct judge_result;
struct profile;

/* The first of the metrics that can fail. */
const struct judge_metric *judge_picture_metric(const struct judge_result *r);

/*
 * The difference (profile/difference.h) of the mean runs of both sides, in stacks of the functions that were
 * compared, of that metric and of at most `others` more. Where runs say how many operations they did, each
 * counts as if it had done as many as the mean of all. Values are rounded. *ret is finished, and the caller's. 0 or
 * -ENOMEM.
 */
int judge_picture(const struct judge_result *r, size_t others, struct profile **ret);

/* "new: 10 runs", and of how many operations. Cut to sz. */
const char *judge_picture_side(const struct judge_result *r, enum runs_side side, char *text,
			       size_t sz);

#endif
