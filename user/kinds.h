/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of profile kinds: what each one measures. A new kind is a row here and a probe in
 * kernel/. */
#ifndef KINDS_H
#define KINDS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bpfprof.h"
#include "profile/profile.h"

struct kind {
	const char *name; /* as -P takes it and as it stands in file names: [a-z]+ */
	struct profile_value_type value_types[PROFILE_MAX_VALUES];
	size_t value_cnt;
	struct profile_value_type period_type;
	bool by_default;	 /* recorded where -P is not given */
	const char *description; /* what a sample means */
	const char *cost;	 /* to the profiled program */
};

extern const struct kind kinds[BPFPROF_NR_KINDS]; /* by enum bpfprof_kind */

/* The kind of this name (name_sz bytes), or -1. */
int kinds_find(const char *name, size_t name_sz);

/* What `bpfprof list` prints. */
void kinds_print(FILE *f);

#endif
