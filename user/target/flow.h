/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind rules for code without call frame information: musl's libc, hand-written assembly. The
 * flow of control is followed from where functions begin, and with it what each instruction does to
 * rsp and rbp. Code that nothing known leads to, and code where ways meet that do not agree, has no
 * rule.
 *
 * What comes out is worked out, not stated by a compiler: its return addresses are BPFPROF_RA_CALL,
 * which are looked at once more when a stack is walked.
 */
#ifndef TARGET_FLOW_H
#define TARGET_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/unwind_build.h"

struct elf_file;

/* Limits of an object. Of more code, what lies behind is left out. */
#define FLOW_MAX_CODE (8U << 20) /* bytes without call frame information */
#define FLOW_MAX_FUNCS (1U << 17)

struct flow_range {
	uint64_t start, end;
};

/*
 * Follows the code that `covered` leaves out: address ranges, ascending, without overlap. Returns
 * 0, with *ret NULL if there is nothing worth it or it takes too long, or -ENOMEM. What cannot be read
 * is left out. follow_r12: the rules say where r12 is, which few ask for.
 */
struct flow;
int flow_build(const struct elf_file *elf, const struct flow_range *covered, size_t covered_cnt,
	       bool follow_r12, struct flow **ret);
void flow__free(struct flow *f);

/* Its functions are the ranges that nothing covers. Borrows f. */
struct unwind_source flow__source(struct flow *f);

#endif
