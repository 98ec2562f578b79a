/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows one way through the code, instruction by instruction, up to where it ends. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/flow_parts.h"
#include "target/insn.h"

#define MAX_TABLE 4096 /* entries of a jump table */

/* ---- one way ---- */

struct walk {
	struct flow *f;
	const struct flow_run *run;
	uint32_t func, at;
	struct frame_state state;
	uint16_t number;   /* of the state */
	uint32_t bound;	   /* see struct way */
	uint32_t compared; /* the constant of the last comparison, plus one; 0: of none */
	uint32_t ax;	   /* constant in eax */
	bool ax_known;
	uint64_t table; /* of jumps, whose entry was loaded last; 0: not known */
};

static uint64_t addr_of(const struct walk *w)
{
	return w->run->start + (w->at - w->run->at);
}

/* The number of the state; most instructions do not change it. */
static uint16_t state_number(const struct walk *w)
{
	if (!memcmp(&w->state, &w->f->states[w->number], sizeof(w->state)))
		return w->number;
	return flow__state_number(w->f, &w->state);
}

/* flow_code__at; most addresses are in the same run. */
static bool find_at(const struct walk *w, uint64_t addr, uint32_t *ret_at)
{
	if (addr < w->run->start || addr >= w->run->end)
		return flow_code__at(&w->f->code, addr, ret_at);
	*ret_at = w->run->at + (uint32_t)(addr - w->run->start);
	return true;
}

/* The way leads to addr, with the state behind the current instruction. */
static void go_to(struct walk *w, uint64_t addr, uint32_t bound)
{
	struct flow *f = w->f;
	uint32_t at;

	if (find_at(w, addr, &at)) {
		f->targets[at / 8] |= (uint8_t)(1 << at % 8);
		flow__add_way(f, at, w->func, state_number(w), bound);
	} else { /* described elsewhere, or not there */
		flow__set_returns(f, w->func);
	}
}

/* An address of code that is put somewhere: a function's, mostly. */
static void take_address(struct walk *w, uint64_t addr)
{
	struct flow *f = w->f;
	uint32_t at;

	if (find_at(w, addr, &at) && !(flow__place(f, at) & PLACE_ENTRY))
		f->err = f->err ?:
				  flow_entries__add(
					  &f->entries,
					  (struct flow_entry){ .addr = addr, .hint = FLOW_TAKEN });
}

/* ---- jump tables ---- */

static struct lea *lea_slot(struct flow *f, uint32_t func, unsigned int reg)
{
	return &f->leas[(func * 16 + reg) % FLOW_LEAS];
}

static void note_lea(struct walk *w, unsigned int reg, uint64_t to)
{
	*lea_slot(w->f, w->func, reg) = (struct lea){ w->func, (uint8_t)reg, to };
}

/* movslq (%table,%index,4), %reg, before reg is added to table and jumped to. */
static void note_table(struct walk *w, const struct insn *in)
{
	unsigned int base = (in->sib & 7) | (in->rex & 1) << 3;
	const struct lea *lea = lea_slot(w->f, w->func, base);

	w->table = lea->func == w->func && lea->reg == base ? lea->to : 0;
}

/* Jumps by a table of cnt entries: distances from it (4 bytes), or addresses (8). False if it is
 * none, for then some do not lead into this code. */
static bool follow_table(struct walk *w, uint64_t table, uint32_t cnt, unsigned int sz)
{
	uint8_t entries[MAX_TABLE * 8];
	struct flow *f = w->f;
	uint64_t to;
	int32_t rel;
	uint32_t i;

	if (!table || !cnt || cnt > MAX_TABLE || cnt > f->table_left ||
	    elf_file__read_vaddr(f->elf, table, entries, cnt * sz))
		return false;
	for (i = 0; i < 2 * cnt; i++) {
		if (sz == 8) {
			memcpy(&to, entries + i % cnt * 8, 8);
		} else {
			memcpy(&rel, entries + i % cnt * 4, 4);
			to = table + (uint64_t)(int64_t)rel;
		}
		/* all of them are looked at before one is followed */
		if (i >= cnt)
			go_to(w, to, 0);
		else if (to < w->run->start || to >= w->run->end)
			return false;
	}
	f->table_left -= cnt;
	return true;
}

/* Does it go through the GOT to a function that never returns? */
static bool is_never(const struct walk *w, const struct insn *in)
{
	return insn__rip_relative(in) &&
	       flow_extern__has(&w->f->never_return,
				addr_of(w) + in->len + (uint64_t)(int64_t)in->disp);
}

/* jmp *%reg, jmp *table(,%reg,8) and others: a switch, or a call in the place of a return. */
static void follow_indirect_jump(struct walk *w, const struct insn *in)
{
	bool absolute = insn__mod(in) == 0 && (in->modrm & 7) == 4 && (in->sib & 0xc7) == 0xc5;
	uint64_t table = absolute ? (uint64_t)(int64_t)in->disp : w->table;

	if (is_never(w, in))
		return;
	if (w->state.kind == FRAME_KNOWN &&
	    ((absolute && follow_table(w, table, w->bound, 8)) ||
	     (insn__mod(in) == 3 && follow_table(w, table, w->bound, 4))))
		return;
	flow__set_returns(w->f, w->func);
	if (!insn__rip_relative(in))
		w->f->funcs[w->func].open = true;
}

/* ---- instructions ---- */

/* What may matter to an instruction that follows soon. */
static void note(struct walk *w, const struct insn *in)
{
	unsigned int ext = insn__ext(in);
	bool compares = in->map == INSN_ONE && ext == 7 &&
			(in->op == 0x81 || in->op == 0x83 || in->op == 0x80);
	uint64_t to = addr_of(w) + in->len + (uint64_t)(int64_t)in->disp;

	if (in->map == INSN_ONE && in->op == 0x8d && insn__rip_relative(in)) {
		note_lea(w, insn__reg(in), to);
		take_address(w, to);
	} else if (in->map == INSN_ONE && in->op == 0x63 && in->wide && insn__mod(in) == 0 &&
		   (in->modrm & 7) == 4 && in->sib >> 6 == 2) {
		note_table(w, in);
	} else if (compares) {
		w->compared = in->imm >= 0 && in->imm < MAX_TABLE ? (uint32_t)in->imm + 1 : 0;
	} else if (in->map == INSN_ONE && in->op == 0x3c) { /* cmp $imm, %al */
		w->compared = (uint8_t)in->imm + 1;
	} else if (in->map == INSN_ONE && in->op == 0x3d) { /* cmp $imm, %eax */
		w->compared = in->imm >= 0 && in->imm < MAX_TABLE ? (uint32_t)in->imm + 1 : 0;
	}
	if (w->f->fixed && insn__puts_constant(in))
		take_address(w, (uint64_t)in->imm);
}

/* The number of a system call is put into eax as a constant. */
static void note_ax(struct walk *w, const struct insn *in)
{
	bool one = in->map == INSN_ONE;

	if (one && in->op == 0xb8) {
		w->ax = (uint32_t)in->imm;
		w->ax_known = true;
	} else if (one && in->op == 0xb0 && w->ax_known) {
		w->ax = (w->ax & ~0xffU) | (uint8_t)in->imm;
	} else if (one && in->op == 0x31 && in->modrm == 0xc0 && !in->rex) {
		w->ax = 0;
		w->ax_known = true;
	} else if (w->ax_known && insn__writes(in, INSN_AX)) {
		w->ax_known = false;
	}
}

/* exit and exit_group */
static bool is_exit(const struct walk *w, const struct insn *in)
{
	return in->map == INSN_0F && in->op == 0x05 && w->ax_known && (w->ax == 60 || w->ax == 231);
}

/* The same of a stub of the PLT that is described, and so none of this code: [endbr64] [bnd] jmp
 * *disp(%rip). */
static bool is_never_stub(const struct flow *f, uint64_t addr)
{
	uint8_t code[16], *p = code;
	struct insn in;

	if (!f->never_return.cnt || elf_file__read_vaddr(f->elf, addr, code, sizeof(code)))
		return false;
	if (!memcmp(p, "\xf3\x0f\x1e\xfa", 4))
		p += 4;
	return insn_decode(p, sizeof(code) - (size_t)(p - code), &in) && in.map == INSN_ONE &&
	       in.op == 0xff && insn__ext(&in) == 4 && insn__rip_relative(&in) &&
	       flow_extern__has(&f->never_return,
				addr + (uint64_t)(p - code) + in.len + (uint64_t)(int64_t)in.disp);
}

/* Is what follows the call aligned as a function is, perhaps by padding? Returns its position, else
 * FLOW_NONE. */
static uint32_t aligned_behind(const struct walk *w, uint32_t at)
{
	uint64_t addr = w->run->start + (at - w->run->at), next = (addr + 15) & ~15ULL;

	if (next >= w->run->end || !flow_code__is_padding(w->f->code.bytes + at, next - addr))
		return FLOW_NONE;
	return at + (uint32_t)(next - addr);
}

/*
 * Padding behind a call aligns what is jumped to, or the next function, because the call does not
 * return: learn() sees which. In a function that does not add up it is taken to be the latter, and so
 * is a known function there. Where functions are packed, an address that is aligned says nothing.
 */
static bool runs_on(struct walk *w, uint32_t at)
{
	struct flow *f = w->f;
	uint32_t next = aligned_behind(w, at);

	if (next == FLOW_NONE || (next == at && f->packed))
		return at < f->code.sz && flow__place(f, at) & PLACE_ENTRY &&
		       f->funcs[w->func].strict;
	if (next > at && f->run_on_cnt < FLOW_MAX_WAYS) {
		f->err = f->err ?:
				  util_reserve(&f->run_ons, &f->run_on_cap, f->run_on_cnt + 1,
					       sizeof(*f->run_ons));
		if (!f->err)
			f->run_ons[f->run_on_cnt++] = next;
	}
	return f->funcs[w->func].strict;
}

/* A call. False if the way ends here, for now at least. */
static bool follow_call(struct walk *w, const struct insn *in)
{
	uint64_t next = addr_of(w) + in->len, to = next + (uint64_t)in->imm;
	struct flow *f = w->f;
	enum flow_hint hint = f->funcs[w->func].hint;
	uint32_t at, func;

	w->ax_known = false;
	if (runs_on(w, w->at + in->len))
		return false;
	if (in->op != 0xe8)
		return !is_never(w, in);
	if (to == next) {
		frame_state__push(&w->state);
		return true;
	}
	if (!find_at(w, to, &at))
		return !is_never_stub(f, to);
	/* what may be no code calls into the middle of anything */
	if (hint != FLOW_SURE && flow__place(f, at) && !(flow__place(f, at) & PLACE_ENTRY))
		return true;
	func = flow__func_at(f, at, hint);
	if (func == FLOW_NONE || f->funcs[func].returns)
		return true;
	if (next >= w->run->end) /* what comes behind the run is not known */
		flow__returns_with(f, w->func, func);
	else
		flow__add_wait(f, func, w->at + in->len, state_number(w), w->func);
	return false;
}

/* A jump, conditional or not. False if the way does not go on behind it. */
static bool follow_jump(struct walk *w, const struct insn *in)
{
	uint64_t to = addr_of(w) + in->len + (uint64_t)in->imm;
	bool always = in->map == INSN_ONE && (in->op == 0xe9 || in->op == 0xeb);
	unsigned int condition = in->op & 15, bound = 0;
	bool jcc = (in->map == INSN_ONE && in->op >> 4 == 7) || in->map == INSN_0F;

	if (jcc && w->compared && (condition == 6 || condition == 2)) /* jbe, jb */
		bound = w->compared - (condition == 2);
	go_to(w, to, always ? w->bound : bound);
	if (jcc && w->compared && (condition == 7 || condition == 3)) /* ja, jae */
		w->bound = w->compared - (condition == 3);
	return !always;
}

static void follow_return(struct walk *w)
{
	struct func *func = &w->f->funcs[w->func];

	if (w->state.kind == FRAME_FIRST)
		func->not_first = true;
	func->odd |= !frame_state__may_return(&w->state);
	flow__set_returns(w->f, w->func);
}

/* Where control goes behind the instruction. False if the way ends. */
static bool follow(struct walk *w, const struct insn *in)
{
	unsigned int ext = insn__ext(in);
	uint8_t op = in->op;

	if (in->map == INSN_0F) {
		if (op >= 0x80 && op <= 0x8f)
			return follow_jump(w, in);
		return op != 0x0b && op != 0xb9 && op != 0xff &&
		       !is_exit(w, in); /* ud2, ud1, ud0 */
	}
	if (in->map != INSN_ONE)
		return true;
	if (op >> 4 == 7 || (op >= 0xe0 && op <= 0xe3) || op == 0xe9 || op == 0xeb)
		return follow_jump(w, in);
	if (op == 0xe8 || (op == 0xff && ext == 2))
		return follow_call(w, in);
	if (op == 0xff && ext == 4)
		follow_indirect_jump(w, in);
	else if (op == 0xc3 || op == 0xc2)
		follow_return(w);
	else
		/* hlt, int3, far jumps and returns */
		return op != 0xf4 && op != 0xcc && (op < 0xca || op > 0xcf || op == 0xcd) &&
		       (op != 0xff || ext != 5);
	return false;
}

/* Comes to a place. False if nothing new is known there. */
static bool arrive(struct walk *w, bool begin)
{
	struct flow *f = w->f;
	uint32_t place = flow__place(f, w->at), func = PLACE_FUNC(place);
	uint16_t known = PLACE_STATE(place);
	struct frame_state met;

	if (place & PLACE_ENTRY) {
		uint32_t entry = flow__func_of(f, w->at);

		/* into another function: as its caller would, or not at all */
		if (entry != w->func) {
			if (w->number == f->funcs[entry].state)
				flow__returns_with(f, w->func, entry);
			return false;
		}
		/* a loop to its first instruction */
		if (known && (!begin || known == w->number)) {
			flow__returns_with(f, w->func, func);
			return false;
		}
		flow__set_place(f, w->at, PLACE_ENTRY | PLACE(w->func, w->number));
		return true;
	}
	if (!known) {
		flow__set_place(f, w->at, PLACE(w->func, w->number));
		return true;
	}
	flow__returns_with(f, w->func, func);
	met = frame_state__meet(&f->states[known], &w->state);
	w->state = met;
	w->number = flow__state_number(f, &met);
	if (w->number == known)
		return false;
	flow__set_place(f, w->at, PLACE(func, w->number));
	return true;
}

static void walk(struct flow *f, struct way way)
{
	struct walk w = { .f = f,
			  .run = flow_code__run_at(&f->code, way.at),
			  .func = way.func,
			  .at = way.at,
			  .state = f->states[way.state],
			  .number = way.state,
			  .bound = way.bound };
	uint32_t end = w.run->at + (uint32_t)(w.run->end - w.run->start);
	bool begin = f->funcs[way.func].at == way.at;
	struct insn in;

	for (; arrive(&w, begin); begin = false) {
		if (!f->steps_left || f->err)
			return;
		f->steps_left--;
		if (!flow_code__decode(&f->code, w.run, w.at, &in)) {
			f->funcs[w.func].dubious |= f->funcs[w.func].hint != FLOW_SURE;
			flow__set_returns(f, w.func);
			return;
		}
		note(&w, &in);
		frame_state__step(&w.state, &in);
		if (!follow(&w, &in))
			return;
		note_ax(&w, &in);
		w.number = state_number(&w);
		w.at += in.len;
		if (w.at >= end) {
			flow__set_returns(f, w.func);
			return;
		}
	}
}

void flow__walk_all(struct flow *f)
{
	while (f->way_cnt && !f->err)
		walk(f, f->ways[--f->way_cnt]);
}
