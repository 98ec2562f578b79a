/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows code from where its functions begin.
 *
 * A way is a place in the code and what is known of the frame there. Ways are followed one after the
 * other, up to where they end, or come to where the same is known already; where less than that
 * agrees, they go on with what both have in common. So an instruction is looked at a few times at
 * most.
 *
 * Behind a call the way goes on once the called function is known to return: it has a ret, or jumps
 * to code that returns or is not known. Calls of those that never do are the ends of their ways;
 * what stands behind is another function, or another part of this one.
 */
#include "target/flow.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "base/sorted.h"
#include "base/util.h"
#include "bpfprof.h"
#include "target/elf_file.h"
#include "target/flow_parts.h"
#include "target/insn.h"
#include "target/unwind_table.h"

#define STEPS_PER_BYTE 4 /* in one round; more than one a byte is seldom */
#define MAX_ROUNDS 4
#define MAX_TABLES 65536 /* entries of jump tables in all */

/* Of places. */
static size_t page_cnt(const struct flow *f)
{
	return f->code.sz / FLOW_PLACES + 1;
}

/* ---- all ways ---- */

/* Does the address lie within a function whose symbol says how long it is? */
static bool is_inside(const struct flow *f, size_t sorted, uint64_t addr)
{
	size_t i = SORTED_LOWER_BOUND(f->entries.v, sorted, addr, addr);
	uint32_t sized = i ? f->entries.v[i - 1].sized : 0;

	return sized && addr - f->entries.v[sized - 1].addr < f->entries.v[sized - 1].size;
}

/* There may be hundreds of thousands in a row that have none. */
static void find_sized(struct flow_entries *e)
{
	uint32_t sized = 0;

	for (size_t i = 0; i < e->cnt; i++) {
		if (e->v[i].size)
			sized = (uint32_t)i + 1;
		e->v[i].sized = sized;
	}
}

/* Does padding end right before the position, which is aligned as functions are? */
static bool is_behind_padding(const struct flow *f, const struct flow_run *r, uint32_t at)
{
	uint32_t n, most = MIN(at - r->at, 15U);

	for (n = 1; n <= most && !((r->start + (at - r->at)) & 15); n++) {
		if (flow_code__is_padding(f->code.bytes + at - n, n))
			return true;
	}
	return false;
}

/* Does an instruction that a way has come to end right before the position? */
static bool is_behind_code(const struct flow *f, const struct flow_run *r, uint32_t at)
{
	struct insn in;
	uint32_t n;

	for (n = 1; n <= INSN_MAX && n <= at - r->at; n++) {
		if (PLACE_STATE(flow__place(f, at - n)))
			return flow_code__decode(&f->code, r, at - n, &in) && in.len == n;
	}
	return at == r->at;
}

/* Does an indirect jump end right before the position, but for padding? Then it may lead there. */
static bool is_behind_jump(const struct flow *f, const struct flow_run *r, uint32_t at)
{
	const uint8_t *p = f->code.bytes + at;
	uint32_t n;

	for (n = 0; n <= 15 && at - r->at >= n + 7; n++) {
		if (n && !flow_code__is_padding(p - n, n))
			continue;
		/* jmp *%reg, *(base,index,scale), *disp32(,index,scale) */
		if ((p[-2 - (int)n] == 0xff && (p[-1 - (int)n] & 0xf8) == 0xe0) ||
		    (p[-3 - (int)n] == 0xff && p[-2 - (int)n] == 0x24) ||
		    (p[-7 - (int)n] == 0xff && p[-6 - (int)n] == 0x24))
			return true;
	}
	return false;
}

/* Does a function look as if it ended right before the position: by a return, or by a jump or call of
 * other code, which does not come back? */
static bool is_behind_end(const struct flow *f, const struct flow_run *r, uint32_t at)
{
	const uint8_t *p = f->code.bytes + at;
	uint64_t addr = r->start + (at - r->at), to;
	int32_t rel;

	if (at - r->at >= 1 && p[-1] == 0xc3) /* ret */
		return true;
	if (at - r->at < 5 || (p[-5] != 0xe9 && p[-5] != 0xe8)) /* jmp, call rel32 */
		return false;
	memcpy(&rel, p - 4, sizeof(rel));
	to = addr + (uint64_t)(int64_t)rel;
	return to >= f->text.start && to < f->text.end;
}

/* Does a jump lead there? */
static bool is_target(const struct flow *f, uint32_t at)
{
	return f->targets[at / 8] >> at % 8 & 1;
}

/* Was it taken for a function's, and is none? */
static bool is_dubious(const struct flow *f, uint32_t at)
{
	uint32_t func = flow__func_of(f, at);

	return func != FLOW_NONE && f->funcs[func].dubious;
}

/* Does it take room on the stack, as the first instruction of most functions and of hardly any label
 * does: push, sub imm, %rsp? */
static bool takes_stack(const struct flow *f, const struct flow_run *r, uint32_t at)
{
	struct insn in;

	if (!flow_code__decode(&f->code, r, at, &in) || in.map != INSN_ONE)
		return false;
	return (in.op >= 0x50 && in.op <= 0x57) ||
	       ((in.op == 0x81 || in.op == 0x83) && in.modrm == 0xec);
}

/* The function that has led to the last place before the position that a way has come to; FLOW_NONE. */
static uint32_t func_before(struct flow *f, const struct flow_run *r, uint32_t at)
{
	while (at > r->at && f->steps_left) {
		f->steps_left--;
		if (PLACE_STATE(flow__place(f, --at)))
			return PLACE_FUNC(flow__place(f, at));
	}
	return FLOW_NONE;
}

/*
 * Is what nothing has led to, but an address that something has, the beginning of a function? What
 * data has may be a label of the function before it, if that jumps to where it is not known; a word
 * that may be an address tells of a function only if what is there and before it looks so, too. What
 * a way has come to is one if it looks as if it had run out of its function.
 */
static bool may_begin(struct flow *f, size_t sorted, uint64_t addr, uint32_t at,
		      enum flow_hint hint)
{
	const struct flow_run *r = flow_code__run_at(&f->code, at);
	uint32_t before;

	if (flow__place(f, at) & PLACE_ENTRY || is_dubious(f, at) || is_inside(f, sorted, addr))
		return false;
	/* a way that came by may have run out of a function */
	if (flow__place(f, at) && !is_behind_padding(f, r, at) &&
	    (hint != FLOW_WORD || is_target(f, at)))
		return false;
	if (hint == FLOW_TAKEN)
		return true;
	if (hint == FLOW_WORD)
		return takes_stack(f, r, at) &&
		       (is_behind_padding(f, r, at) || is_behind_end(f, r, at));
	if (is_behind_jump(f, r, at) || !(is_behind_padding(f, r, at) || is_behind_code(f, r, at)))
		return false;
	before = func_before(f, r, at);
	return before == FLOW_NONE || !f->funcs[before].open;
}

static void take_entries(struct flow *f, size_t sorted, enum flow_hint hint)
{
	size_t i;

	/* more are found on the way */
	for (i = 0; i < f->entries.cnt && !f->err; i++) {
		struct flow_entry e = f->entries.v[i];
		uint32_t at, func;

		if (e.hint != hint || !flow_code__at(&f->code, e.addr, &at) ||
		    (hint != FLOW_SURE && !may_begin(f, sorted, e.addr, at, hint)))
			continue;
		func = flow__func_at(f, at, hint);
		if (func != FLOW_NONE)
			f->funcs[func].never |= e.never;
		if (hint != FLOW_SURE)
			flow__walk_all(f);
	}
	flow__walk_all(f);
}

static void begin_round(struct flow *f)
{
	f->steps_left = STEPS_PER_BYTE * f->code.sz;
	f->table_left = MAX_TABLES;
}

static void first_round(struct flow *f, size_t sorted)
{
	begin_round(f);
	take_entries(f, sorted, FLOW_SURE);
	take_entries(f, sorted, FLOW_TAKEN);
	take_entries(f, sorted, FLOW_TABLE);
	take_entries(f, sorted, FLOW_WORD);
	/* what is pointed to may take more */
	take_entries(f, sorted, FLOW_TAKEN);
	take_entries(f, sorted, FLOW_LABEL);
}

/* Once more, with all functions that were found known from the start, but those that are none. */
static void another_round(struct flow *f, size_t sorted)
{
	size_t i, k;

	begin_round(f);
	f->again = false;
	f->wait_cnt = f->run_on_cnt = 0;
	memset(f->targets, 0, f->code.sz / 8 + 1);
	for (i = 0; i < page_cnt(f); i++)
		for (k = 0; f->places[i] && k < FLOW_PLACES; k++)
			f->places[i][k] &= PLACE_ENTRY;
	for (i = f->func_cnt; i-- > 0;) {
		struct func *func = &f->funcs[i];

		func->waits = FLOW_NONE;
		func->returns = func->open = func->not_first = func->odd = false;
		if (func->dubious)
			flow__set_place(f, func->at, 0);
		else
			flow__add_way(f, func->at, (uint32_t)i, func->state, 0);
	}
	flow__walk_all(f);
	/* ways ran into them as long as it was not known which calls do not return */
	take_entries(f, sorted, FLOW_TABLE);
	take_entries(f, sorted, FLOW_WORD);
}

/* Are most functions not aligned, as those of gcc -Os? */
static bool are_packed(const struct flow *f)
{
	size_t unaligned = 0;

	for (size_t i = 0; i < f->func_cnt; i++) {
		uint32_t at = f->funcs[i].at;
		const struct flow_run *r = flow_code__run_at(&f->code, at);

		unaligned += ((r->start + (at - r->at)) & 15) != 0;
	}
	return unaligned > f->func_cnt / 2;
}

/* Makes something of what the round has found wrong. False if there is nothing. */
static bool learn(struct flow *f)
{
	bool learnt;
	size_t i;

	for (i = 0; i < f->run_on_cnt; i++) {
		uint32_t at = f->run_ons[i];

		if (PLACE_STATE(flow__place(f, at)) && !is_target(f, at))
			flow__func_at(f, at, FLOW_TAKEN);
	}
	learnt = f->again;
	f->packed = are_packed(f);
	for (i = 0; i < f->func_cnt; i++) {
		struct func *func = &f->funcs[i];

		if (func->odd && !func->strict)
			func->strict = learnt = true;
		else if (func->odd)
			func->dubious = learnt = true;
		else if (func->dubious && flow__place(f, func->at))
			learnt = true;
	}
	return learnt;
}

static bool is_fixed(const struct elf_file *elf)
{
	Elf64_Ehdr eh;

	return !elf_file__read(elf, 0, &eh, sizeof(eh)) && eh.e_type == ET_EXEC;
}

/* From the first to the last byte of code, covered or not. */
static struct flow_range text_of(const struct flow_code *c, const struct flow_range *covered,
				 size_t covered_cnt)
{
	struct flow_range ret = { c->runs[0].start, c->runs[c->run_cnt - 1].end };

	if (covered_cnt) {
		ret.start = MIN(ret.start, covered[0].start);
		ret.end = MAX(ret.end, covered[covered_cnt - 1].end);
	}
	return ret;
}

static int run(struct flow *f)
{
	struct frame_state lost = frame_state__of_kind(FRAME_LOST);
	size_t sorted = f->entries.cnt;
	int round;

	f->places = calloc(page_cnt(f), sizeof(*f->places));
	f->targets = calloc(f->code.sz / 8 + 1, 1);
	f->err = f->places && f->targets ?
			 util_reserve(&f->states, &f->state_cap, 2, sizeof(*f->states)) :
			 -ENOMEM;
	if (f->err)
		return f->err;
	memset(f->states, 0, sizeof(*f->states));
	f->state_cnt = 1;
	flow__state_number(f, &lost); /* number 1 */
	find_sized(&f->entries);
	first_round(f, sorted);
	for (round = 1; round < MAX_ROUNDS && learn(f) && !f->err; round++)
		another_round(f, sorted);
	(void)learn(f);
	/* what has not been followed to its end may be known to be more than is true */
	if (!f->err && !f->steps_left)
		f->err = -E2BIG;
	return f->err;
}

int flow_build(const struct elf_file *elf, const struct flow_range *covered, size_t covered_cnt,
	       bool follow_r12, struct flow **ret)
{
	struct flow *f = calloc(1, sizeof(*f));
	int err;

	*ret = NULL;
	if (!f)
		return -ENOMEM;
	f->elf = elf;
	f->fixed = is_fixed(elf);
	f->follow_r12 = follow_r12;
	hash__init(&f->by_addr, sizeof(struct func_at), sizeof(uint32_t), FLOW_MAX_FUNCS);
	hash__init(&f->by_state, sizeof(uint16_t), 0, FLOW_MAX_STATES);
	err = flow_code__find(&f->code, elf, covered, covered_cnt);
	if (!err && f->code.sz)
		err = flow_entries__find(&f->entries, elf, f->fixed, &f->code, covered,
					 covered_cnt);
	if (!err && f->entries.cnt)
		err = flow_code__read(&f->code, elf);
	if (!err && f->entries.cnt && f->code.sz) {
		f->text = text_of(&f->code, covered, covered_cnt);
		err = flow_extern__find(&f->never_return, elf);
		err = err ?: run(f);
	}
	if (err || !f->func_cnt)
		flow__free(f);
	else
		*ret = f;
	return err == -E2BIG ? 0 : err;
}

void flow__free(struct flow *f)
{
	if (!f)
		return;
	for (size_t i = 0; f->places && i < page_cnt(f); i++)
		free(f->places[i]);
	free(f->places);
	flow_code__done(&f->code);
	flow_entries__done(&f->entries);
	flow_extern__done(&f->never_return);
	free(f->targets);
	free(f->run_ons);
	free(f->funcs);
	hash__done(&f->by_addr);
	hash__done(&f->by_state);
	free(f->states);
	free(f->ways);
	free(f->waits);
	free(f);
}

/* ---- rows ---- */

static void range(const void *ctx, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct flow *f = ctx;

	*ret_start = f->code.runs[i].start;
	*ret_end = f->code.runs[i].end;
}

static struct bpfprof_rule rule_at(const struct flow *f, uint32_t place)
{
	const struct func *func = &f->funcs[PLACE_FUNC(place)];
	struct frame_state s = f->states[PLACE_STATE(place)];

	if (func->dubious || (s.kind == FRAME_FIRST && func->not_first))
		s = frame_state__of_kind(FRAME_LOST);
	return frame_state__rule(&s);
}

/* The position of the next instruction that a way has led to, from `at` on; `end` if there is none.
 */
static uint32_t next_place(const struct flow *f, uint32_t at, uint32_t end)
{
	while (at < end && !PLACE_STATE(flow__place(f, at)))
		at++;
	return at;
}

/* Where the instruction ends: at its last byte, or where another one that was led to begins. */
static uint32_t end_of(const struct flow *f, const struct flow_run *r, uint32_t at, uint32_t end)
{
	struct insn in;

	if (flow_code__decode(&f->code, r, at, &in))
		end = MIN(at + in.len, end);
	return next_place(f, at + 1, end);
}

/* Rows of a run, as they go out: none repeats the one before. */
struct row_writer {
	struct unwind_packer *out;
	uint64_t skew; /* of addresses from positions */
	struct bpfprof_rule last;
	bool begun;
};

static void write_row(struct row_writer *w, uint32_t at, const struct bpfprof_rule *rule)
{
	if (w->begun && !memcmp(&w->last, rule, sizeof(*rule)))
		return;
	unwind_packer__row(w->out, w->skew + at, *rule);
	w->last = *rule;
	w->begun = true;
}

static void rows(void *ctx, size_t i, uint64_t end, struct unwind_packer *out)
{
	static const struct bpfprof_rule none;
	const struct flow *f = ctx;
	const struct flow_run *r = &f->code.runs[i];
	uint32_t last = r->at + (uint32_t)(MIN(end, r->end) - r->start), at, from = r->at;
	struct row_writer w = { .out = out, .skew = r->start - r->at };

	for (at = next_place(f, from, last); at < last; at = next_place(f, from, last)) {
		struct bpfprof_rule rule = rule_at(f, flow__place(f, at));
		/* a handler returns to the first instruction, for which the byte before it is
		 * looked up */
		uint32_t first = at - (rule.cfa == BPFPROF_CFA_SIGNAL && at > from);

		/* padding is never run: a row more would cost whoever looks for those around it */
		if (first > from &&
		    (!w.begun || !flow_code__is_padding(f->code.bytes + from, first - from)))
			write_row(&w, from, &none);
		write_row(&w, first, &rule);
		from = end_of(f, r, at, last);
	}
	if (from < last)
		write_row(&w, from, &none);
}

struct unwind_source flow__source(struct flow *f)
{
	return (struct unwind_source){
		.ctx = f, .cnt = f->code.run_cnt, .range = range, .rows = rows
	};
}
