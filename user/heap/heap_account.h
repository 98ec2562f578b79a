/* SPDX-License-Identifier: BSD-2-Clause */
/* What a heap profile costs: the hits of its probes, by what one was measured to cost, and what it costs in the programs at
 * hand. */
#ifndef HEAP_ACCOUNT_H
#define HEAP_ACCOUNT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/budget.h"
#include "heap/heap_factor.h"
#include "kernel/heap_cost.h"

struct session;

struct heap_account {
	struct session *session;
	enum uprobe_method method;
	int cost_fd; /* of heap_cost__begin; -1: none */
	struct heap_cost cost;
	uint64_t hits[BPFPROF_NR_HITS]; /* that are accounted for, and those of measuring */
	uint64_t hit_cnt;		/* without the latter */
	struct budget_time so_far;	/* when they were last accounted for */
	struct heap_factor factor;
	double gap_ns;	     /* CPU time from call to call */
	uint64_t gap_calls;  /* that are to tell the next one, */
	double gap_cpu_ns;   /* and their CPU time */
	uint64_t other_hits; /* in processes that are not profiled */
};

/* Begins to measure what hits cost, see heap_cost__begin. Borrows the session. */
void heap_account__begin(struct heap_account *a, struct session *session, enum uprobe_method method,
			 bool one);
/* Waits for the figures. To be called once, before anything is probed. */
void heap_account__measure(struct heap_account *a);
void heap_account__end(struct heap_account *a);

/* Of the time since the last call. */
enum heap_account_of {
	HEAP_ACCOUNT_DETACHED, /* nothing was probed */
	HEAP_ACCOUNT_ATTACHED,
	HEAP_ACCOUNT_SLICE, /* and it was a whole slice */
};

/* Accounts for what hits and recording have cost until cpu_ns, CPU time of the targets; most: processes that are probed in
 * one file (heap_probes__most), by now, which is what each hit is taken for. */
void heap_account__add(struct heap_account *a, enum heap_account_of of, double cpu_ns, size_t most);

/* What hits cost, in times of what was measured. */
double heap_account__factor(const struct heap_account *a);
/* Is that known well enough, as far as it matters? */
bool heap_account__is_settled(const struct heap_account *a, const struct budget *b);

#endif
