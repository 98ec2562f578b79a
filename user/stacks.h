/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stacks of a recording: makes samples of the profiles from stacks of addresses while their
 * process is known, remembers under which key the kernel side goes on counting each of them, and
 * adds up what it counted. Names come later (symbolize.h).
 */
#ifndef STACKS_H
#define STACKS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct code;
struct procs;
struct profile;
struct stacks;
struct symbolize_source;

struct stacks_opts {
	bool label_process; /* pid and comm on every sample: profiles of several processes */
	bool label_thread;
};

/* Borrows everything. profiles: by kind, NULL where it is not collected. NULL with errno. */
struct stacks *stacks__new(const struct stacks_opts *opts, struct procs *procs, struct code *code,
			   struct profile *const profiles[BPFPROF_NR_KINDS]);
void stacks__free(struct stacks *s);

/*
 * Adds the sample that rec is, with the stack that it describes: kernel frames, then user frames,
 * then, if it is not whole, its marker. proc: number of its process, or PROCS_NONE. Samples counted
 * under its key belong to it from now on. A sample for which there is no memory is counted as such.
 */
void stacks__add(struct stacks *s, uint32_t proc, const struct bpfprof_rec *rec,
		 const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
		 enum bpfprof_stack_result result);
/* A sample that could not even be looked at. */
void stacks__lose(struct stacks *s, enum bpfprof_kind kind);

/* More samples of a stack that was added; nothing if it was not. */
void stacks__count(struct stacks *s, const struct bpfprof_count_key *key,
		   const struct bpfprof_count *count);

/* What the samples of this kind since the last call stand for: `scale` times as many of them. */
void stacks__commit(struct stacks *s, enum bpfprof_kind kind, double scale);
/* What was committed stands for so many times as much. */
void stacks__revise(struct stacks *s, enum bpfprof_kind kind, double times);

/*
 * Keeps memory within bounds where processes come and go: in a profile that has become large, the
 * samples of processes that have ended lose their label pid, and equal ones become one. To be
 * called when all that the kernel side has counted of these was taken in.
 */
void stacks__compact(struct stacks *s);

/* One of the samples counted under the key is still held. False if the stack is not known. */
bool stacks__hold(struct stacks *s, const struct bpfprof_count_key *key);

/* Stacks that were added and may be counted in the kernel, so far. */
uint64_t stacks__cnt(const struct stacks *s);

/*
 * Puts what was committed into the profile as its values. only_held: leaves out what holds nothing.
 * 0 or -ENOMEM.
 */
int stacks__finish(struct stacks *s, enum bpfprof_kind kind, bool only_held);

struct stacks_account {
	uint64_t total;			      /* samples in the profile */
	uint64_t results[BPFPROF_NR_RESULTS]; /* how their stacks ended; sums to total */
	uint64_t no_memory;		      /* samples lost for want of it */
};
void stacks__account(const struct stacks *s, enum bpfprof_kind kind, struct stacks_account *ret);

/* What the mappings of a kind's profile map, by index; borrowed. */
const struct symbolize_source *stacks__sources(const struct stacks *s, enum bpfprof_kind kind);

#endif
