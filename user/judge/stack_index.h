/* SPDX-License-Identifier: BSD-2-Clause */
/* Which stacks have a function: what runs say of each stack, the other way round. */
#ifndef JUDGE_STACK_INDEX_H
#define JUDGE_STACK_INDEX_H

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
};

/* 0 or -ENOMEM; to be done with in either case. */
int stack_index__fill(struct stack_index *x, const struct runs *r);
void stack_index__done(struct stack_index *x);

/* The stacks that have the function, and those whose leaf it is. They are the index's. */
struct stack_set stack_index__with(const struct stack_index *x, uint32_t function);
struct stack_set stack_index__leaves(const struct stack_index *x, uint32_t function);

#endif
