/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A window of a capture: what was sampled in it, by stack. It becomes a profile at its end.
 */
#ifndef CAPTURE_WINDOW_H
#define CAPTURE_WINDOW_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct count_key_stack;
struct profile;
struct stack_store;
struct symbolize_source;
struct window;

/* What became of the samples of one kind. */
struct window_account {
	struct bpfprof_stats stats;	      /* what the BPF programs have counted */
	uint64_t total;			      /* samples that are in the window */
	uint64_t results[BPFPROF_NR_RESULTS]; /* how their stacks ended; sums to total */
	uint64_t no_memory;		      /* samples that were lost here, for want of it */
	uint64_t raw;			      /* stacks that were copied and unwound here */
};

/* Borrows store, whose stacks it refers to. NULL with errno. */
struct window *window__new(struct stack_store *store);
void window__free(struct window *w);

/* Of a kind, to be added to. */
struct window_account *window__account(struct window *w, enum bpfprof_kind kind);
/* What the BPF programs have counted in an epoch. */
void window__add_stats(struct window *w, enum bpfprof_kind kind, const struct bpfprof_stats *stats);

/*
 * Samples of a stack: what count says; without units, they stand for stack->unit each. 0, or
 * -ENOMEM: then they are counted as lost.
 */
int window__add(struct window *w, const struct count_key_stack *stack,
		const struct bpfprof_count *count);

/* Adds all that `from` has. 0, or -ENOMEM: then nothing was added. */
int window__merge(struct window *w, const struct window *from);
/* Empties it. */
void window__clear(struct window *w);

/* What the samples of this kind since the last call stand for: `scale` times as many of them. */
void window__commit(struct window *w, enum bpfprof_kind kind, double scale);
/* What was committed stands for so many times as much. */
void window__revise(struct window *w, enum bpfprof_kind kind, double times);
/* What it holds is of what came since then, CLOCK_MONOTONIC; 0, as at first: of all. */
void window__set_since(struct window *w, uint64_t since_ns);
uint64_t window__since_ns(const struct window *w);
/* So many of the samples are still held; below 0: they were held before it began. 0 or -ENOMEM. */
int window__hold(struct window *w, const struct count_key_stack *stack, int times);

/*
 * Stacks with numbers below cnt are others from now on: moved[stack], and what was sampled of equal
 * ones is added up. STACK_NONE, or no memory: it stays.
 */
void window__move(struct window *w, const uint32_t *moved, size_t cnt);

/* Processes whose samples are in no profile. */
struct window_left_out {
	bool (*is)(void *ctx, int64_t pid, const char *comm);
	void *ctx;
	uint64_t cnt; /* what these samples count, of the first value */
};

/* What the profile of a window is to have. */
struct window_profile_opts {
	int64_t period;
	size_t value_cnt; /* of the kind's values, the first ones */
	size_t folded_value;
	bool only_held;			  /* leaves out what holds nothing */
	uint64_t size;			  /* only stacks of this size; 0: all */
	struct window_left_out *left_out; /* NULL: all processes are in it */
};

/*
 * A profile of what was committed. ret_sources: what its mappings map, by index; the caller frees
 * it. NULL with errno.
 */
struct profile *window__profile(const struct window *w, enum bpfprof_kind kind,
				const struct window_profile_opts *opts,
				struct symbolize_source **ret_sources);

#endif
