/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of the stacks of threads that do not run. Where a stack should be there may be a file instead, whose server
 * does not answer: so another process reads them (target/reader.h), those of a process at a time. A process that
 * keeps it waiting is left alone for a while (base/rest.h), and so are all others at this moment once there have been
 * STACK_COPIES_MAX_SILENT of them.
 */
#ifndef CAPTURE_STACK_COPIES_H
#define CAPTURE_STACK_COPIES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

#define STACK_COPIES_MAX_BYTES (64U << 20) /* of copies at a time */
#define STACK_COPIES_MAX_SILENT 8

struct objects;
struct stack_copies;

struct stack_copy {
	struct bpfprof_proc_key proc;
	uint32_t tid;
	uint64_t addr; /* from here on, up to where it ends; BPFPROF_RAW_STACK_SZ bytes at most */
	bool made;     /* it was tried, and there was room */
	size_t at;     /* in stack_copies__data */
	uint32_t sz;   /* 0: it could not be read */
};

/* Borrows objects. NULL: there is no memory. */
struct stack_copies *stack_copies__new(struct objects *objects);
void stack_copies__free(struct stack_copies *c);

/* Of another moment: what takes time beforehand is done. */
void stack_copies__begin(struct stack_copies *c);

/*
 * Makes as many of these copies as there is room for, in place of those that were made before, and puts the pointers
 * into another order. True: a process did not answer in time, and the others' copies may be as old as that by now.
 */
bool stack_copies__make(struct stack_copies *c, struct stack_copy **copies, size_t cnt);
/* Until the next ones are made. */
const uint8_t *stack_copies__data(const struct stack_copies *c);

/* All copies go. */
void stack_copies__end(struct stack_copies *c);

#endif
