/* SPDX-License-Identifier: BSD-2-Clause */
/* Which stacks have a function: what runs say of each stack, the other way round. */
#ifndef JUDGE_STACK_INDEX_H
#define JUDGE_STACK_INDEX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runs;

/* Some stacks, each once. */
struct stack_set {
	const uint32_t *ids;
	size_t cnt;
};

struct stack_index {
	/* private: of each function where its stacks begin, and where the last one's end */
	size_t *starts, *leaf_starts;
	uint32_t *stacks, *leaves;
	const struct runs *runs;
	pthread_t thread;
	bool in_thread; /* that fills it */
	int err;
};

/* Begins to fill it, in a thread: the runs stay as they are until it is done with. */
void stack_index__begin(struct stack_index *x, const struct runs *r);
/* To be called before it is asked. 0 or -ENOMEM. */
int stack_index__wait(struct stack_index *x);
/* Also if it was not begun, and is all 0. */
void stack_index__done(struct stack_index *x);

/* The stacks that have the function, and those whose leaf it is. They are the index's. */
struct stack_set stack_index__with(const struct stack_index *x, uint32_t function);
struct stack_set stack_index__leaves(const struct stack_index *x, uint32_t function);

#endif
