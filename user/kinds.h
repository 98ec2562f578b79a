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
	size_t folded_value;  /* of value_types: what formats with one value show */
	const char *quantity; /* what the last value is, in a sentence: "of CPU" */
	const char *nothing;  /* what it means if there are no samples */
	/*
	 * How many of what is measured a sample stands for; NULL: one. size, weight: struct
	 * bpfprof_rec's. period: the profile's.
	 */
	double (*unit)(uint64_t size, uint64_t weight, int64_t period);
	/* The values of a sample that stands for total of them, of size bytes, of which held are
	 * still held. */
	void (*values)(double total, double held, uint64_t size, int64_t period, int64_t *ret);
	const char
		*size_label;   /* key of the label that tells samples of different sizes, or NULL */
	bool by_default;       /* recorded where -P is not given */
	bool in_kernel;	       /* what it measures happens in the kernel as well */
	bool default_with_all; /* and --all is */
	const char *description; /* what a sample means */
	const char *cost;	 /* to the profiled program */
};

extern const struct kind kinds[BPFPROF_NR_KINDS]; /* by enum bpfprof_kind */

/* The kind of this name (name_sz bytes), or -1. */
int kinds_find(const char *name, size_t name_sz);

/* What `bpfprof list` prints. */
void kinds_print(FILE *f);

#endif
