/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which stack the BPF programs mean by a key: that of the counts that they keep in an epoch, and of
 * live allocations, which may have been made in any epoch.
 */
#ifndef CAPTURE_COUNT_KEYS_H
#define CAPTURE_COUNT_KEYS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

/*
 * Epochs that may be open at a time: one goes on, the others have ended and wait to be added up. An
 * epoch has the slot number % CAPTURE_EPOCHS.
 */
#define CAPTURE_EPOCHS 8

struct count_keys;
struct stack_store;

/* What a key stands for. */
struct count_key_stack {
	uint32_t stack; /* a reference is held as long as the key is known */
	double unit;	/* what each sample stands for, where the counts do not say */
};

/* Borrows store. NULL with errno. */
struct count_keys *count_keys__new(struct stack_store *store);
void count_keys__free(struct count_keys *k);

/* The key of a stack, in the epoch of a slot; live: and of allocations. One that was known means
 * this stack from now on. 0, or -ENOMEM. */
int count_keys__set(struct count_keys *k, uint32_t slot, bool live,
		    const struct bpfprof_count_key *key, const struct count_key_stack *stack);

/* NULL if it is not known. Borrowed until a key is set. */
const struct count_key_stack *count_keys__find(const struct count_keys *k, uint32_t slot,
					       const struct bpfprof_count_key *key);
/* The same of what may be held. It counts as used: see count_keys__drop_unused. */
const struct count_key_stack *count_keys__find_live(struct count_keys *k,
						    const struct bpfprof_count_key *key);

/* Keys of an epoch that are known. */
size_t count_keys__cnt(const struct count_keys *k, uint32_t slot);

/* An epoch has ended, and its counts were added up: forgets its keys, but for those of live
 * allocations. */
void count_keys__end(struct count_keys *k, uint32_t slot);

/* Forgets the keys of this kind, of epochs that were added up, which were not found since the last
 * call. */
void count_keys__drop_unused(struct count_keys *k, enum bpfprof_kind kind);

/* The stacks of counts with numbers below cnt are others from now on: moved[stack]; STACK_NONE: it
 * stays. */
void count_keys__move(struct count_keys *k, const uint32_t *moved, size_t cnt);

#endif
