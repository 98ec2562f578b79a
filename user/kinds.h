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
#include "profile/legacy.h"
#include "profile/machinery.h"
#include "profile/profile.h"

#define KIND_MAX_LABELS 4
#define KIND_MAX_VALUES 4

/* What the samples of one stack and labels stand for, together. */
struct kind_sums {
	double total;  /* how many of what is measured */
	double held;   /* heap, custom, fds: of these, still held */
	double amount; /* ns that they took */
	uint64_t size; /* heap: bytes of each */
};

/* A label of a sample. */
struct kind_label {
	const char *key;
	const char *str; /* NULL: it is a number */
	int64_t num;
	const char *unit; /* of the number */
};

struct kind {
	const char *name; /* as -P takes it and as it stands in file names: [a-z]+ */
	struct profile_value_type value_types[KIND_MAX_VALUES];
	size_t value_cnt;
	struct profile_value_type period_type;
	/* A unit of the period: 1 if NULL. */
	int64_t (*period)(uint32_t frequency, uint64_t heap_rate);
	size_t folded_value; /* of value_types: what formats with one value show */
	/* What a value is, in a sentence behind the figure: "of CPU". NULL: it is left out. */
	const char *quantities[KIND_MAX_VALUES];
	const char *nothing; /* what it means if there are no samples */
	/*
	 * What the summary's table counts at the first function of the program itself, as a word of a
	 * sentence: "Waits". NULL: it counts at the leaf.
	 */
	const char *at_own;
	unsigned int drops; /* enum machinery_drop: what readers of the profile are to hide */
	/*
	 * How many of what is measured a sample stands for, where its record does not say (units);
	 * NULL: one. size, weight: struct bpfprof_rec's. period: the profile's.
	 */
	double (*unit)(uint64_t size, uint64_t weight, int64_t period);
	/* The values of a sample. */
	void (*values)(const struct kind_sums *sums, int64_t period, int64_t *ret);
	/* Labels that tell samples apart beside those of every kind; returns how many, at most
	 * KIND_MAX_LABELS. NULL: none. */
	size_t (*labels)(const struct bpfprof_rec *rec, struct kind_label *ret);
	/* Once there are names: takes leaves out of a profile that say nothing. NULL: there are
	 * none. */
	void (*hide)(struct profile *p);
	enum legacy_form legacy; /* what it is in the formats of Go's first releases */
	/* In place of text_write. NULL: that one. */
	int (*write_text)(const struct profile *p, FILE *f);
	bool by_default;	  /* recorded where -P is not given */
	bool default_with_all;	  /* and --all is */
	bool by_default_in_agent; /* where the agent is not given -P */
	bool holds;		  /* what was sampled may be held, in any window: windows__hold */
	bool only_held;		  /* its profiles leave out stacks that hold nothing */
	/* Bit i: value i is what there is at the end of a window. Those of two windows do not add up. */
	unsigned int levels;
	bool of_processes; /* it can be recorded of processes alone, not of all */
	bool of_chosen;	   /* it can be recorded of chosen processes (capture__choose) */
	bool in_kernel;	   /* what it measures happens in the kernel as well */
	bool waits; /* it measures waits: --min-wait, --wait-rate and --wait-budget are for it */
	/* Shorter waits are left out where --min-wait is not given; with --all. */
	uint64_t min_wait_ns, min_wait_all_ns;
	const char *description; /* what a sample means */
	const char *cost;	 /* to the profiled program */
};

extern const struct kind kinds[BPFPROF_NR_KINDS]; /* by enum bpfprof_kind */

/* The kind of this name (name_sz bytes), or -1. */
int kinds_find(const char *name, size_t name_sz);

/* The names of all kinds, in a sentence: "cpu, heap, block". What does not fit is cut. */
#define KINDS_NAMES_SZ 256
void kinds_names(char *buf, size_t buf_sz);

/* What `bpfprof list` prints of a kind. */
void kinds_print(FILE *f, enum bpfprof_kind kind);

#endif
