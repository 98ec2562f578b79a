/* SPDX-License-Identifier: BSD-2-Clause */
/* The last thing that is done to a profile before it is written. */
#ifndef REPORT_FINISH_PROFILE_H
#define REPORT_FINISH_PROFILE_H

#include <linux/types.h>

#include "bpfprof.h"

struct format;
struct profile;

/* What is in it by its kind and its format: once all has names. Nothing may be added afterwards. 0 or
 * -errno. */
int finish_profile(const struct format *format, enum bpfprof_kind kind, struct profile *p);

#endif
