/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the code of Go's functions says of their frames where its tables do not: where rbp is saved,
 * and the rows of functions that set rsp.
 */
#ifndef TARGET_GOCODE_H
#define TARGET_GOCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>

#include "bpfprof.h"
#include "target/gopclntab.h"

struct elf_file;
struct unwind_packer;

/* Code of an object. */
struct gocode {
	const struct elf_file *elf;
	uint64_t window_vaddr; /* read last */
	size_t window_sz;
	uint8_t *window;
};

/* 0 or -ENOMEM. Borrows elf. */
int gocode__init(struct gocode *c, const struct elf_file *elf);
void gocode__done(struct gocode *c);

/* sz bytes of code, or NULL; good until the next call. */
const uint8_t *gocode__at(struct gocode *c, uint64_t vaddr, size_t sz);

/* Where a function keeps the caller's rbp. */
struct gocode_prologue {
	uint64_t saved; /* from this address on at the CFA - 16; UINT64_MAX: never */
	uint64_t set;	/* from this one on rbp points to it */
	int32_t frame;	/* bytes below the return address at that time */
};

struct gocode_prologue gocode__prologue(struct gocode *c, const struct gopclntab *table,
					const struct gopclntab_func *f);

/* Go's functions save no register but rbp: at the CFA - 16, if it is saved. */
struct bpfprof_rule gocode_rule(uint8_t cfa, int32_t cfa_off, bool saved);

/*
 * Rows of a function that sets rsp, from where it has set rbp: the frame pointer leads from any stack
 * to the goroutine's. Only where rbp is restored already, which Go's assembler does last, rsp counts:
 * it is right again, while pcsp is not. What makes something else of rbp has no rules from there on,
 * but for a frame of the author's own (push %rbp; mov %rsp, %rbp) within that of the assembler. ra: of
 * the rules.
 */
void gocode__rows_by_rbp(struct gocode *c, const struct gocode_prologue *p, uint64_t end,
			 uint8_t ra, struct unwind_packer *out);

/* Where a function without a frame has left rsp in r12, and from where on rsp is that again. */
struct gocode_r12 {
	uint64_t from, to;
};

/* False if the function is none that does so. */
bool gocode__find_r12(struct gocode *c, uint64_t start, uint64_t end, struct gocode_r12 *ret);

/*
 * Its rows: of racecall, which calls the race detector, and its like for other sanitizers. C preserves
 * r12, and what that leads to follows a call.
 */
void gocode_rows_by_r12(uint64_t start, const struct gocode_r12 *left, struct unwind_packer *out);

#endif
