/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwinds a stack that was copied because the kernel side did not know its code yet: by the same
 * bpf/unwind.h. */
#ifndef TARGET_RAW_UNWIND_H
#define TARGET_RAW_UNWIND_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

#define RAW_UNWIND_MISS 0x101 /* code at *ret_miss has to be made known first */

struct raw_unwind {
	struct bpfprof_proc_key key;
	struct bpfprof_proc proc; /* its list lies in table memory */
	struct bpfprof_raw regs;
	const uint8_t *stack; /* regs.stack_sz bytes, from regs.stack_addr on */
	void *ctx;
	const uint8_t *(*chunk)(void *ctx, uint32_t idx); /* of table memory */
	/* 0; -ESRCH if it was the process's own, and is not there any more; -errno */
	int (*read_code)(void *ctx, uint64_t addr, void *buf, size_t sz);
};

/* The sz bytes of code at addr as they were when the stack was copied; NULL: nobody has noted them. */
const uint8_t *raw_code_then(const struct bpfprof_raw *raw, uint64_t addr, size_t sz);

/*
 * Returns enum bpfprof_stack_result with at most BPFPROF_MAX_UFRAMES addresses, leaf first, as a
 * record has them; or RAW_UNWIND_MISS.
 */
int raw_unwind(const struct raw_unwind *in, uint64_t frames[BPFPROF_MAX_UFRAMES], size_t *ret_cnt,
	       uint64_t *ret_miss);

#endif
