/* SPDX-License-Identifier: BSD-2-Clause */
/* The states, functions and ways of target/flow.h, by number, and which functions return. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/flow_parts.h"
#include "target/insn.h"

/* ---- states, functions, ways ---- */

uint16_t flow__state_number(struct flow *f, const struct frame_state *s)
{
	uint64_t hash = util_hash(s, sizeof(*s), f->by_state.seed);
	uint16_t *number;

	for (number = hash__first(&f->by_state, hash); number;
	     number = hash__next(&f->by_state, number))
		if (!memcmp(&f->states[*number], s, sizeof(*s)))
			return *number;
	/* as many different ones as no program has: what comes now is not known */
	if (f->state_cnt == FLOW_MAX_STATES)
		return 1;
	f->err = f->err ?: util_reserve(&f->states, &f->state_cap, f->state_cnt + 1, sizeof(*s));
	number = f->err ? NULL : hash__add(&f->by_state, hash);
	if (!number) {
		f->err = f->err ?: -ENOMEM;
		return 1;
	}
	f->states[f->state_cnt] = *s;
	*number = (uint16_t)f->state_cnt++;
	return *number;
}

void flow__set_place(struct flow *f, uint32_t at, uint32_t place)
{
	uint32_t **page = &f->places[at / FLOW_PLACES];

	if (!*page)
		*page = calloc(FLOW_PLACES, sizeof(**page));
	if (*page)
		(*page)[at % FLOW_PLACES] = place;
	else
		f->err = f->err ?: -ENOMEM;
}

void flow__add_way(struct flow *f, uint32_t at, uint32_t func, uint16_t state, uint32_t bound)
{
	if (f->way_cnt >= FLOW_MAX_WAYS)
		f->err = f->err ?: -E2BIG;
	f->err = f->err ?: util_reserve(&f->ways, &f->way_cap, f->way_cnt + 1, sizeof(*f->ways));
	if (!f->err)
		f->ways[f->way_cnt++] = (struct way){ at, func, state, (uint16_t)bound };
}

uint32_t flow__func_of(const struct flow *f, uint32_t at)
{
	const struct func_at *found = hash__lookup(&f->by_addr, &at);

	return found ? found->func : FLOW_NONE;
}

/* The signal handlers' way back: mov $__NR_rt_sigreturn, %eax or %rax; syscall. */
static bool is_sigreturn(const struct flow *f, uint32_t at)
{
	static const uint8_t code[2][9] = { { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 },
					    { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 } };
	size_t left = f->code.sz - at;

	return (left >= 9 && !memcmp(f->code.bytes + at, code[0], 9)) ||
	       (left >= 7 && !memcmp(f->code.bytes + at, code[1], 7));
}

/* Is rbp zeroed first of all? */
static bool is_first(const struct flow *f, uint32_t at)
{
	const struct flow_run *r = flow_code__run_at(&f->code, at);
	struct frame_state s = frame_entry;
	struct insn in;

	if (!flow_code__decode(&f->code, r, at, &in))
		return false;
	if (in.map == INSN_0F && in.op == 0x1e && /* endbr64 */
	    !flow_code__decode(&f->code, r, at + in.len, &in))
		return false;
	frame_state__step(&s, &in);
	return s.kind == FRAME_FIRST;
}

static uint16_t first_state(struct flow *f, uint32_t at)
{
	struct frame_state s = frame_entry;

	if (is_sigreturn(f, at))
		s = frame_state__of_kind(FRAME_SIGNAL);
	else if (is_first(f, at))
		s = frame_state__of_kind(FRAME_FIRST);
	else if (f->follow_r12)
		s.r12 = FRAME_IN_R12;
	return flow__state_number(f, &s);
}

uint32_t flow__func_at(struct flow *f, uint32_t at, enum flow_hint hint)
{
	uint32_t found = flow__place(f, at) & PLACE_ENTRY ? flow__func_of(f, at) : FLOW_NONE;
	struct func_at *entry;
	bool new;

	if (found != FLOW_NONE) {
		f->funcs[found].hint = MIN(f->funcs[found].hint, (uint8_t)hint);
		return found;
	}
	if (f->func_cnt == FLOW_MAX_FUNCS)
		return FLOW_NONE;
	f->err =
		f->err ?: util_reserve(&f->funcs, &f->func_cap, f->func_cnt + 1, sizeof(*f->funcs));
	entry = f->err ? NULL : hash__insert(&f->by_addr, &at, &new);
	if (!entry) {
		f->err = f->err ?: -ENOMEM;
		return FLOW_NONE;
	}
	found = entry->func = (uint32_t)f->func_cnt++;
	f->funcs[found] = (struct func){ .at = at, .waits = FLOW_NONE, .hint = hint };
	f->funcs[found].state = first_state(f, at);
	if (PLACE_STATE(flow__place(f, at)) &&
	    PLACE_STATE(flow__place(f, at)) != f->funcs[found].state)
		f->again = true;
	flow__set_place(f, at, flow__place(f, at) | PLACE_ENTRY);
	flow__add_way(f, at, found, f->funcs[found].state, 0);
	return found;
}

/* ---- which functions return ---- */

void flow__add_wait(struct flow *f, uint32_t func, uint32_t at, uint16_t state, uint32_t caller)
{
	if (f->wait_cnt >= FLOW_MAX_WAYS)
		f->err = f->err ?: -E2BIG;
	f->err =
		f->err ?: util_reserve(&f->waits, &f->wait_cap, f->wait_cnt + 1, sizeof(*f->waits));
	if (f->err)
		return;
	f->waits[f->wait_cnt] = (struct wait){ f->funcs[func].waits, at, state, caller };
	f->funcs[func].waits = (uint32_t)f->wait_cnt++;
}

void flow__set_returns(struct flow *f, uint32_t func)
{
	uint32_t todo = FLOW_NONE, i = FLOW_NONE, next;

	for (;;) {
		if (!f->funcs[func].returns && !f->funcs[func].never) {
			f->funcs[func].returns = true;
			i = f->funcs[func].waits;
			f->funcs[func].waits = FLOW_NONE;
			/* those that are functions are kept in a list of their own */
			for (; i != FLOW_NONE; i = next) {
				next = f->waits[i].next;
				if (f->waits[i].at == FLOW_NONE) {
					f->waits[i].next = todo;
					todo = i;
				} else {
					flow__add_way(f, f->waits[i].at, f->waits[i].func,
						      (uint16_t)f->waits[i].state, 0);
				}
			}
		}
		if (todo == FLOW_NONE)
			return;
		func = f->waits[todo].func;
		todo = f->waits[todo].next;
	}
}

void flow__returns_with(struct flow *f, uint32_t func, uint32_t other)
{
	if (func == other || f->funcs[func].returns)
		return;
	if (f->funcs[other].returns)
		flow__set_returns(f, func);
	else
		flow__add_wait(f, other, FLOW_NONE, 0, func);
}
