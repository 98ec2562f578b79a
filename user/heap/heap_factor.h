/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many times as much as in a program of our own, where it was measured, hits of the heap's
 * probes cost in the programs at hand: caches, branches, memory and machine are different ones.
 * Pure.
 *
 * It is learnt from slices in which frees are probed, so that what a program does takes more hits,
 * beside others in which they are not. By how much the CPU time from one allocation to the next is
 * longer then is what the further hits cost, whatever else the program does. Of two slices beside
 * each other the one may just as well have come upon calls that are farther apart; but that goes in
 * either direction alike, so of many pairs the median is right. As far as it is uncertain, it
 * counts less than that hits cost what was measured.
 */
#ifndef HEAP_FACTOR_H
#define HEAP_FACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_FACTOR_PAIRS 64 /* the newest ones */
#define HEAP_FACTOR_MAX 4.0  /* and its inverse: the limits */
/* Standard deviations: of what was measured, before anything is known; and of the CPU time from
 * call to call in a slice, as a part of it, until pairs have shown it. */
#define HEAP_FACTOR_PRIOR 0.5
#define HEAP_FACTOR_NOISE 0.1
#define HEAP_FACTOR_SETTLED 0.02 /* error of the programs' own CPU time that is good enough */
#define HEAP_FACTOR_MAX_PAIRS 16 /* after which it will not get much better */
#define HEAP_FACTOR_CALLS 100	 /* of a slice that tells something */
/* By so many times more is what the hits of a call cost in the one slice, at least. */
#define HEAP_FACTOR_MORE 0.2

/* A slice: the programs' CPU time, without recording, what the hits in it cost by what was
 * measured, and how many calls of allocators there were. ns */
struct heap_factor_slice {
	double cpu_ns, hits_ns, calls;
};

/* What two slices beside each other say; what the CPU time from call to call is, in times of what
 * the further hit costs. */
struct heap_factor_pair {
	double factor, scale;
};

/* All 0: nothing is known. */
struct heap_factor {
	struct heap_factor_slice last;
	struct heap_factor_pair pairs[HEAP_FACTOR_PAIRS];
	size_t pair_cnt; /* that there have been */
};

void heap_factor__add(struct heap_factor *f, const struct heap_factor_slice *slice);

/* The factor, 1 as long as nothing is known, and its standard error. */
double heap_factor__get(const struct heap_factor *f, double *ret_error);
/* Is it known well enough, where hits take that share (0..1) of the CPU time? Or as well as it will
 * be. */
bool heap_factor__settled(const struct heap_factor *f, double hit_share);

#endif
