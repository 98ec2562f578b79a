/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/frame_state.h"

#include <string.h>

#define WORD 8
/* A frame larger than this is none. */
#define MAX_DISTANCE (1 << 24)

const struct frame_state frame_entry = { .sp = WORD,
					 .fp = FRAME_NO_DISTANCE,
					 .r12 = FRAME_NO_DISTANCE,
					 .kind = FRAME_KNOWN,
					 .ra = INSN_NO_REG,
					 .kept = true };

struct frame_state frame_state__of_kind(enum frame_kind kind)
{
	struct frame_state s = frame_entry;

	s.kind = kind;
	return s;
}

static void lose(struct frame_state *s)
{
	*s = frame_state__of_kind(FRAME_LOST);
}

static int32_t distance(int64_t from, int64_t less)
{
	int64_t d = from - less;

	return from == FRAME_NO_DISTANCE || d < -MAX_DISTANCE || d > MAX_DISTANCE ?
		       FRAME_NO_DISTANCE :
		       (int32_t)d;
}

/* rsp := rsp - n. What rbp and r12 were saved to is given up with the stack that it lies on. */
static void grow(struct frame_state *s, int64_t n)
{
	s->sp = distance(s->sp, -n);
	if (n < 0 && s->sp != FRAME_NO_DISTANCE && s->r12 > s->sp)
		s->r12 = FRAME_NO_DISTANCE;
	if (n < 0 && s->kept && s->sp != FRAME_NO_DISTANCE && s->saved > s->sp)
		s->saved = 0;
}

/* ---- rbp ---- */

/* Something else is in rbp now. */
static void overwrite_fp(struct frame_state *s)
{
	s->kept = false;
	s->fp = FRAME_NO_DISTANCE;
}

/* rbp was put at CFA - at. */
static void save_fp(struct frame_state *s, int32_t at)
{
	if (!s->kept || s->saved)
		return;
	if (at > WORD && at != FRAME_NO_DISTANCE)
		s->saved = at;
	else
		s->copied = true;
}

/* rbp was taken from CFA - at. */
static void load_fp(struct frame_state *s, int32_t at)
{
	bool restored = s->saved && s->saved == at;

	overwrite_fp(s);
	if (restored) {
		s->kept = true;
		s->saved = 0;
	}
}

/* CFA less the address of a memory operand. */
static int32_t operand_at(const struct frame_state *s, const struct insn *in)
{
	switch (insn__base(in)) {
	case INSN_SP:
		return distance(s->sp, in->disp);
	case INSN_BP:
		return distance(s->fp, in->disp);
	default:
		return FRAME_NO_DISTANCE;
	}
}

/*
 * Zeroing rbp although the caller's was not saved: what is so called never returns. It is how the
 * outermost frame is marked (psABI, 3.4.1), and how the starts of processes and threads do it.
 */
static bool ends_the_chain(const struct frame_state *s)
{
	return s->kept && !s->saved && !s->copied;
}

static void zero_fp(struct frame_state *s)
{
	if (ends_the_chain(s))
		*s = frame_state__of_kind(FRAME_FIRST);
	else
		overwrite_fp(s);
}

/* ---- r12 ---- */

/* The caller's, or another value, is put at CFA - at. */
static void save_r12(struct frame_state *s, int32_t at)
{
	if (s->r12 == FRAME_IN_R12 && at > WORD)
		s->r12 = at;
}

/* r12 is taken from CFA - at, or from elsewhere. */
static void load_r12(struct frame_state *s, int32_t at)
{
	if (s->r12 == at)
		s->r12 = FRAME_IN_R12;
	else if (s->r12 == FRAME_IN_R12)
		s->r12 = FRAME_NO_DISTANCE;
}

/* What an instruction does to it; s is the state before that. */
static void step_r12(struct frame_state *s, const struct insn *in)
{
	bool one = in->map == INSN_ONE && in->wide, memory = in->has_modrm && insn__mod(in) != 3;

	if (in->map == INSN_ONE && in->op >= 0x50 && in->op <= 0x5f) {
		if (insn__opreg(in) != INSN_R12)
			return;
		if (in->op < 0x58)
			save_r12(s, distance(s->sp, -WORD));
		else
			load_r12(s, s->sp);
	} else if (one && memory && in->op == 0x89 && insn__reg(in) == INSN_R12) {
		save_r12(s, operand_at(s, in));
	} else if (one && memory && in->op == 0x8b && insn__reg(in) == INSN_R12) {
		load_r12(s, operand_at(s, in));
	} else if (insn__writes(in, INSN_R12)) {
		load_r12(s, FRAME_NO_DISTANCE);
	}
}

/* ---- instructions ---- */

static void push_reg(struct frame_state *s, unsigned int reg)
{
	grow(s, WORD);
	if (reg == INSN_BP)
		save_fp(s, s->sp);
	if (reg != s->ra || reg == INSN_NO_REG)
		return;
	/* elsewhere, behind arguments: V8's builtins go on by rbp, and so does who walks them */
	if (s->sp == WORD)
		s->ra = INSN_NO_REG;
	else
		lose(s);
}

void frame_state__push(struct frame_state *s)
{
	push_reg(s, INSN_NO_REG);
}

static void pop_reg(struct frame_state *s, unsigned int reg)
{
	int32_t at = s->sp;

	if (reg == s->ra) {
		lose(s);
		return;
	}
	if (reg == INSN_BP)
		load_fp(s, at);
	grow(s, -WORD);
	if (reg == INSN_SP)
		s->sp = FRAME_NO_DISTANCE;
	if (at == WORD)
		s->ra = (uint8_t)reg;
}

/* The return address must not be where it can be overwritten, unless a register has it. */
static void check(struct frame_state *s)
{
	if (s->kind != FRAME_KNOWN)
		return;
	if (s->sp == FRAME_NO_DISTANCE && s->fp == FRAME_NO_DISTANCE)
		lose(s);
	else if (s->sp != FRAME_NO_DISTANCE && s->sp < WORD && (s->sp || s->ra == INSN_NO_REG))
		lose(s);
}

static void step_lea(struct frame_state *s, const struct insn *in)
{
	int32_t at = operand_at(s, in);

	if (insn__reg(in) == INSN_SP) {
		s->sp = in->wide ? at : FRAME_NO_DISTANCE;
	} else if (insn__reg(in) == INSN_BP) {
		overwrite_fp(s);
		s->fp = in->wide ? at : FRAME_NO_DISTANCE;
	}
}

/* mov, of either direction, between registers. */
static void step_move(struct frame_state *s, unsigned int from, unsigned int to, bool wide)
{
	if (from == INSN_BP && to != INSN_BP)
		s->copied |= s->kept;
	if (to == INSN_SP) {
		s->sp = wide && from == INSN_BP ? s->fp : FRAME_NO_DISTANCE;
	} else if (to == INSN_BP && from != INSN_BP) {
		overwrite_fp(s);
		if (wide && from == INSN_SP)
			s->fp = s->sp;
	}
}

/* 88 to 8b have been told apart by the direction: store means that memory or rm is written. */
static void step_mov(struct frame_state *s, const struct insn *in, bool store)
{
	unsigned int reg = insn__reg(in), rm = insn__rm(in);

	if (insn__mod(in) == 3)
		step_move(s, store ? reg : rm, store ? rm : reg, in->wide);
	else if (store && reg == INSN_BP && in->wide)
		save_fp(s, operand_at(s, in));
	else if (!store && reg == INSN_BP)
		load_fp(s, in->wide ? operand_at(s, in) : FRAME_NO_DISTANCE);
	else if (!store && reg == INSN_SP)
		s->sp = FRAME_NO_DISTANCE;
}

/* Operations with a constant on rsp. */
static bool step_constant(struct frame_state *s, const struct insn *in)
{
	if ((in->op != 0x81 && in->op != 0x83) || insn__mod(in) != 3 || insn__rm(in) != INSN_SP ||
	    !in->wide)
		return false;
	if (insn__ext(in) == 0)
		grow(s, -in->imm);
	else if (insn__ext(in) == 5)
		grow(s, in->imm);
	else
		return false;
	return true;
}

/* Is it xor of rbp with itself? */
static bool zeroes_fp(const struct insn *in)
{
	return (in->op == 0x31 || in->op == 0x33) && insn__mod(in) == 3 &&
	       insn__reg(in) == INSN_BP && insn__rm(in) == INSN_BP && !in->half;
}

/* Instructions with one byte of opcode that are more than their operands tell. False for all
 * others. */
static bool step_special(struct frame_state *s, const struct insn *in)
{
	uint8_t op = in->op;

	if (op >= 0x50 && op <= 0x57) {
		push_reg(s, insn__opreg(in));
	} else if (op >= 0x58 && op <= 0x5f) {
		pop_reg(s, insn__opreg(in));
	} else if (op == 0x68 || op == 0x6a || op == 0x9c || (op == 0xff && insn__ext(in) == 6)) {
		push_reg(s, INSN_NO_REG);
	} else if (op == 0x9d || op == 0x8f) {
		pop_reg(s, INSN_NO_REG);
	} else if (op == 0xc9) { /* leave */
		s->sp = s->fp;
		pop_reg(s, INSN_BP);
	} else if (op == 0xc8) { /* enter: nobody uses it */
		lose(s);
	} else if (op == 0x89 || op == 0x8b) {
		step_mov(s, in, op == 0x89);
	} else if (op == 0x8d) {
		step_lea(s, in);
	} else if (zeroes_fp(in)) {
		zero_fp(s);
	} else {
		return step_constant(s, in);
	}
	return true;
}

/* A register that is read as an operand of a vector instruction: movq %rbp, %xmm0. */
static bool copies_fp(const struct insn *in)
{
	return in->map == INSN_0F && in->op == 0x6e && insn__mod(in) == 3 &&
	       insn__rm(in) == INSN_BP;
}

void frame_state__step(struct frame_state *s, const struct insn *in)
{
	bool call = (in->map == INSN_ONE && in->op == 0xe8) ||
		    (in->map == INSN_ONE && in->op == 0xff && insn__ext(in) == 2);
	bool one = in->map == INSN_ONE;
	uint32_t written;

	if (s->kind != FRAME_KNOWN)
		return;
	if (one && in->half && in->op >= 0x50 && in->op <= 0x5f) { /* of 2 bytes */
		lose(s);
		return;
	}
	if (s->r12 != FRAME_NO_DISTANCE)
		step_r12(s, in);
	if (!one || !step_special(s, in)) {
		s->copied |= s->kept && copies_fp(in);
		if (in->map == INSN_0F && (in->op == 0xa0 || in->op == 0xa8)) /* push %fs, %gs */
			push_reg(s, INSN_NO_REG);
		else if (in->map == INSN_0F && (in->op == 0xa1 || in->op == 0xa9))
			pop_reg(s, INSN_NO_REG);
		written = insn__written(in);
		if (written & 1U << INSN_SP)
			s->sp = FRAME_NO_DISTANCE;
		if (written & 1U << INSN_BP)
			overwrite_fp(s);
	}
	/* a call keeps rsp, rbp and what lies above it, and no more that matters */
	if (s->kind == FRAME_KNOWN && s->ra != INSN_NO_REG && (call || insn__writes(in, s->ra)) &&
	    !(one && in->op >= 0x50 && in->op <= 0x5f))
		lose(s);
	check(s);
}

/* ---- states ---- */

struct frame_state frame_state__meet(const struct frame_state *a, const struct frame_state *b)
{
	struct frame_state s = *a;

	if (a->kind != b->kind || a->ra != b->ra)
		return frame_state__of_kind(FRAME_LOST);
	if (a->sp != b->sp)
		s.sp = FRAME_NO_DISTANCE;
	if (a->fp != b->fp)
		s.fp = FRAME_NO_DISTANCE;
	if (a->r12 != b->r12)
		s.r12 = FRAME_NO_DISTANCE;
	/* where it is saved on one way only it is in rbp on the other, if anywhere */
	if (a->saved != b->saved) {
		s.saved = 0;
		s.kept = a->kept && b->kept;
		s.copied = true;
	} else {
		s.kept = a->kept && b->kept;
		s.copied = a->copied || b->copied;
	}
	check(&s);
	return s;
}

bool frame_state__may_return(const struct frame_state *s)
{
	return s->kind != FRAME_KNOWN || s->sp == WORD || s->sp == FRAME_NO_DISTANCE;
}

/* psABI, figure 3.36. */
static int16_t dwarf_number(unsigned int reg)
{
	static const uint8_t low[] = { 0, 2, 1, 3, 7, 6, 4, 5 };

	return reg < 8 ? low[reg] : (int16_t)reg;
}

struct bpfprof_rule frame_state__rule(const struct frame_state *s)
{
	struct bpfprof_rule rule;
	bool by_fp;

	memset(&rule, 0, sizeof(rule));
	switch (s->kind) {
	case FRAME_LOST:
		return rule;
	case FRAME_SIGNAL:
		rule.cfa = BPFPROF_CFA_SIGNAL;
		return rule;
	case FRAME_FIRST:
		rule.cfa = BPFPROF_CFA_SP;
		rule.cfa_off = WORD;
		rule.ra = BPFPROF_RA_END;
		return rule;
	default:
		break;
	}
	/* a frame pointer that is one holds also where calls take arguments off the stack */
	by_fp = s->fp != FRAME_NO_DISTANCE &&
		(s->sp == FRAME_NO_DISTANCE || (s->fp == 2 * WORD && s->saved == 2 * WORD));
	rule.cfa = by_fp ? BPFPROF_CFA_FP : BPFPROF_CFA_SP;
	rule.cfa_off = by_fp ? s->fp : s->sp;
	rule.fp = s->saved ? BPFPROF_FP_CFA : s->kept ? BPFPROF_FP_SAME : BPFPROF_FP_UNDEF;
	rule.fp_off = -s->saved;
	rule.ra = BPFPROF_RA_CALL;
	if (s->ra != INSN_NO_REG) {
		rule.ra = BPFPROF_RA_REG;
		rule.aux = dwarf_number(s->ra);
	}
	rule.bx_off = BPFPROF_BX_UNKNOWN;
	if (s->r12 == FRAME_IN_R12)
		rule.reg = BPFPROF_R12_SAME;
	else if (s->r12 != FRAME_NO_DISTANCE && s->r12 % WORD == 0 && s->r12 / WORD <= UINT8_MAX)
		rule.reg = (uint8_t)(s->r12 / WORD);
	return rule;
}
