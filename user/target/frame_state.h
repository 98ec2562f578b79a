/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of a function's frame at one of its instructions, and how an instruction changes
 * that: where the CFA (the caller's stack pointer, psABI 3.2.2), the return address and the
 * caller's rbp are, and its r12, if that is followed. Distances are in bytes.
 */
#ifndef TARGET_FRAME_STATE_H
#define TARGET_FRAME_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/types.h>

#include "bpfprof.h"
#include "target/insn.h"

enum frame_kind {
	FRAME_KNOWN,
	FRAME_LOST,   /* nothing leads to the caller */
	FRAME_FIRST,  /* there is no caller */
	FRAME_SIGNAL, /* rsp points to what the kernel has saved for a signal handler */
};

#define FRAME_NO_DISTANCE INT32_MIN
#define FRAME_IN_R12 0

struct frame_state {
	int32_t sp;    /* CFA less rsp, or FRAME_NO_DISTANCE */
	int32_t fp;    /* CFA less rbp, or FRAME_NO_DISTANCE */
	int32_t saved; /* CFA less the address where the caller's rbp was saved; 0: nowhere */
	int32_t r12;   /* the same of r12, or FRAME_IN_R12; FRAME_NO_DISTANCE: not known */
	uint8_t kind;  /* enum frame_kind; of the others all else is as in frame_entry */
	uint8_t ra;    /* the register that the return address was popped to, or INSN_NO_REG */
	bool kept;     /* rbp is still the caller's */
	bool copied;   /* the caller's rbp was put where it is not followed */
};
_Static_assert(sizeof(struct frame_state) == 20, "no padding: states are compared as bytes");

/* At the first instruction of a function that was called, where r12 is not followed. */
extern const struct frame_state frame_entry;

/* Nothing known but the kind. */
struct frame_state frame_state__of_kind(enum frame_kind kind);

/* The state behind the instruction; a call counts as done and returned from. */
void frame_state__step(struct frame_state *s, const struct insn *in);

/* A call that nothing returns from, because its target is what follows it: a push of the pc. */
void frame_state__push(struct frame_state *s);

/* What is known wherever either of the two may be true. */
struct frame_state frame_state__meet(const struct frame_state *a, const struct frame_state *b);

/* May a ret stand there: does rsp point to the return address, as far as that is known? */
bool frame_state__may_return(const struct frame_state *s);

/* .cfa is BPFPROF_CFA_NONE if there is no rule. */
struct bpfprof_rule frame_state__rule(const struct frame_state *s);

#endif
