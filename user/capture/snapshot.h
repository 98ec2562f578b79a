/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stacks of threads at one moment, read from outside: none of them is stopped or even told. A
 * thread's registers, its stack and its registers again are read; if it has not run in between they
 * belong together. Threads that ran are tried again; threads on a CPU are sampled there.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

struct collect;
struct probe_waits;
struct samples;
struct session;
struct stack_copies;

struct snapshot_opts {
	struct stack_copies *stacks;
	bool threads;	    /* every thread, as a record of kind BPFPROF_THREADS */
	bool block, offcpu; /* the waits that are in progress, as records of these kinds */
	bool user_only, kernel_only;
	uint64_t min_wait_ns[2];   /* of block, offcpu */
	struct probe_waits *waits; /* where they are recorded when they end; NULL: nowhere */
	uint64_t stopped_ns;	   /* CLOCK_MONOTONIC: waits count up to here */
};

struct snapshot_result {
	uint64_t threads; /* seen */
	uint64_t ns;	  /* that it took */
};

/* Hands what it finds to collect__inject. 0 or -errno. */
int snapshot_take(const struct snapshot_opts *opts, struct session *session,
		  struct collect *collect, struct snapshot_result *ret);

#endif
