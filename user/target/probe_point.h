/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 code of a foreign file, as far as it matters for a probe at a function's entry: which
 * instruction to put it on, where the code may go from there. Decoded by capstone; the work is
 * bounded whatever the bytes are.
 */
#ifndef TARGET_PROBE_POINT_H
#define TARGET_PROBE_POINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

#define PROBE_MAX_INSNS 4096 /* instructions read of one function at most */
#define PROBE_MAX_CALLEES 64 /* functions that are remembered of those that it calls */

/* Registers that have to be as they were at the function's start. */
#define PROBE_RDI 1U
#define PROBE_RSI 2U
#define PROBE_RDX 4U
#define PROBE_RSP 8U
#define PROBE_MAY_MOVE 16U /* what was in rdi may be in rsi instead */
#define PROBE_RCX 32U
#define PROBE_R8 64U
#define PROBE_R9 128U

struct probe_point {
	uint32_t skew; /* bytes from the function's start */
	bool emulated; /* by all kernels with BPF uprobes; else it may be single-stepped */
	bool moved;    /* what was in rdi is in rsi */
	char insn[40]; /* "push r12" */
};

enum probe_target {
	PROBE_ELSEWHERE,
	PROBE_ENTRY, /* one of those that are looked for */
	PROBE_END,   /* no way leads on from there */
};

/* Where code leads: what is known of the function at addr or, if got is set, of the one whose
 * address the dynamic linker puts there. */
struct probe_targets {
	enum probe_target (*classify)(void *ctx, uint64_t addr, bool got);
	void *ctx;
	bool ignore_null; /* a first argument of 0 is not of interest */
};

/* What a function does, as far as its direct branches show. */
struct probe_body {
	bool enters;	       /* it may call or jump to an entry (itself, by a call, included) */
	bool returns;	       /* it may return without having done so, for all we know */
	uint64_t entry;	       /* one that it enters in this file, or 0 */
	uint64_t first_target; /* the first address from its start on that it jumps to */
	uint64_t callees[PROBE_MAX_CALLEES];
	size_t callee_cnt;
};

struct probe_decoder;

/* Borrows elf. NULL with errno. */
struct probe_decoder *probe_decoder__new(const struct elf_file *elf);
void probe_decoder__free(struct probe_decoder *d);

/* Follows the code from vaddr on, through at most *left instructions, which it lowers; bytes of the
 * size that the function is said to have (0: unknown) are searched for jumps, too. */
void probe_decoder__scan(struct probe_decoder *d, uint64_t vaddr, uint64_t size,
			 const struct probe_targets *targets, size_t *left, struct probe_body *ret);

/*
 * Chooses the instruction to probe, so that it is hit once by every call, with the registers `keep`
 * unchanged. before: no instruction from there on (struct probe_body.first_target). 0, or -ENOENT
 * if there is none.
 */
int probe_decoder__choose(struct probe_decoder *d, uint64_t vaddr, uint64_t before,
			  unsigned int keep, struct probe_point *ret);

/*
 * Of a function that looks for room on its stack before all else, and begins anew once the stack has
 * grown, as Go's do: the instruction behind that, which every call comes to once. 0, or -ENOENT if it is
 * none.
 */
int probe_decoder__past_growth(struct probe_decoder *d, uint64_t vaddr, struct probe_point *ret);

/* The instruction at vaddr, for a probe that is to be put right there: 0; -ENOENT if it is not one
 * that does nothing and can safely be probed. */
int probe_decoder__nop(struct probe_decoder *d, uint64_t vaddr, struct probe_point *ret);

#endif
