/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The open windows of a capture. Samples arrive by epoch: first the record of a stack, then, at the
 * end of the epoch, how often it was counted. What was sampled in an epoch is added to all windows
 * that are open when it is added up, so that a window has whole epochs.
 */
#ifndef CAPTURE_WINDOWS_H
#define CAPTURE_WINDOWS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"
#include "capture/count_keys.h"
#include "capture/stack_store.h"

struct code;
struct procs;
struct window;
struct window_account;
struct windows;

struct windows_opts {
	struct stack_store_opts stacks;
	int64_t periods[BPFPROF_NR_KINDS]; /* of the profiles: see kinds.h */
};

/* Borrows procs and code. NULL with errno. */
struct windows *windows__new(const struct windows_opts *opts, struct procs *procs,
			     struct code *code);
void windows__free(struct windows *w);

/* A window that begins with the epochs that go on. Any number may be open. NULL with errno. */
struct window *windows__open(struct windows *w);
/* Another one with all that it has so far, committed: what is added to one of them afterwards is not in
 * the other. NULL with errno. */
struct window *windows__copy(struct windows *w, const struct window *window);
/* One in which a thread of the process stands at each of these addresses. The same. */
struct window *windows__of_addresses(struct windows *w, uint32_t proc, const uint64_t *addresses,
				     size_t cnt);
/* The stacks of all of them; borrowed. */
const struct stack_store *windows__store(const struct windows *w);
/* Frees it. */
void windows__close(struct windows *w, struct window *window);

/* What becomes of samples in the epoch of a slot (see CAPTURE_EPOCHS), to be added to. */
struct window_account *windows__account(struct windows *w, uint32_t slot, enum bpfprof_kind kind);

/*
 * A sample with the stack that rec describes: see stack_store__add. Those counted under its key in
 * its epoch have that stack. One for which there is no memory is counted as lost.
 */
void windows__add(struct windows *w, uint32_t slot, uint32_t proc, const struct bpfprof_rec *rec,
		  const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
		  enum bpfprof_stack_result result);
/* More samples of a stack, in the epoch of a slot; nothing if it was not added. */
void windows__count(struct windows *w, uint32_t slot, const struct bpfprof_count_key *key,
		    const struct bpfprof_count *count);

/* Stacks whose samples are counted in the epoch of a slot. */
size_t windows__keys(const struct windows *w, uint32_t slot);
/* Stacks of a kind that are known. */
size_t windows__stacks(const struct windows *w, enum bpfprof_kind kind);

/*
 * The epoch of a slot has ended, all of it was added, and the BPF programs have counted stats in it:
 * it goes into all open windows. 0 or -ENOMEM.
 */
int windows__end_epoch(struct windows *w, uint32_t slot,
		       const struct bpfprof_stats stats[static BPFPROF_NR_KINDS]);

/* window__commit of all open windows. */
void windows__commit(struct windows *w, enum bpfprof_kind kind, double scale);
/* One of the allocations recorded under the key is still held in a window. False if its stack is not
 * known. */
bool windows__hold(struct windows *w, struct window *window, const struct bpfprof_count_key *key);
/* One that was made then was held by a process when it ended: in all windows that are open, and that hold what came
 * then (window__set_since). The same. */
bool windows__hold_ended(struct windows *w, const struct bpfprof_count_key *key, uint64_t time_ns);
/* One of them was held when the window began: what it holds is what has come since, less what has gone. */
void windows__unhold(struct windows *w, struct window *window, const struct bpfprof_count_key *key);
/* Neither, but it is still held. */
void windows__note_live(struct windows *w, const struct bpfprof_count_key *key);
/* All of a kind that are still held, of epochs that were added up, were named since the last call: the
 * others are known no more. */
void windows__drop_freed(struct windows *w, enum bpfprof_kind kind);

#endif
