/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPU time of what is profiled, which budgets are shares of. Of processes that end what they
 * had when they were last asked is kept: to be asked often. Children that live too shortly to be
 * asked themselves are in what their parents have reaped.
 */
#ifndef CPU_TIME_H
#define CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_time;
struct procs;

/* all: of the whole machine, in ticks of 10 ms (proc_stat(5)). follow: with reaped children.
 * Borrows procs. NULL with errno. */
struct cpu_time *cpu_time__new(struct procs *procs, bool all, bool follow);
/* Of those processes that counts(ctx, number of procs) says, while it does. */
struct cpu_time *cpu_time__new_of(struct procs *procs, bool (*counts)(void *ctx, uint32_t proc),
				  void *ctx);
void cpu_time__free(struct cpu_time *c);

/* In ns, monotonic; of two calls the difference counts. */
uint64_t cpu_time__ns(struct cpu_time *c);
/* The same, of up to a millisecond ago. */
uint64_t cpu_time__recent_ns(struct cpu_time *c);

#endif
