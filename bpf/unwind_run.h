/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Steps over frames whose rules are remembered. To find a rule takes a search in a block of a table
 * and loads from six places, each of which may have to be waited for. But most rules say the same:
 * the caller's frame begins so far above rsp or rbp, its rbp was saved there or is still the same,
 * the return address lies below. Such a rule is remembered by the frame's address, in 32 bytes that
 * are all a step reads beside the stack.
 *
 * unw_step decides all the rest: addresses that are not remembered, other rules, words that cannot
 * be read, stacks that end in another way than at a first function. A run of remembered frames
 * leaves in struct unw what as many calls of unw_step would leave there, but for the mapping that
 * the last search found, for where the window lies, and for what unw_step notes of the words that
 * have decided the walk.
 *
 * Pure C, and of its includer it wants what unwind.h wants.
 */
#ifndef BPFPROF_UNWIND_RUN_H
#define BPFPROF_UNWIND_RUN_H

#include "unwind.h"

#define UNW_RULES_BITS 9 /* more gains nothing for python3 or node, whose stacks vary */
#define UNW_RULES (1U << UNW_RULES_BITS)
#define UNW_RUN_MAX 8 /* frames of a run: the verifier follows each */

/* The rule that holds at an address of a process. */
struct unw_known {
	__u64 key;	/* of both; 0: none is remembered */
	__s64 cfa_off;	/* from rsp, or rbp, to the caller's frame */
	__s32 saved_at; /* from there to the word that is saved: rbp, else the return address */
	__s32 bx_off;	/* from there to the caller's rbx */
	__u64 how;	/* UNW_KNOWN_… */
};
_Static_assert(sizeof(struct unw_known) == 32, "unw_known");
#define UNW_KNOWN_FP 1ULL	/* cfa_off counts from rbp */
#define UNW_KNOWN_SAVED_FP 2ULL /* rbp is saved */
#define UNW_KNOWN_SAVED_BX 4ULL /* rbx is saved */
#define UNW_KNOWN_LOST_BX 8ULL	/* rbx is not known: no function of Go preserves it */
#define UNW_KNOWN_END 16ULL	/* a first function: it has no caller, and cfa_off is UNW_NOWHERE */

/* From any rsp to outside of the window: so that a frame with a caller takes no test for one
 * without. */
#define UNW_NOWHERE (1LL << 62)

/* Results of a run. */
#define UNW_RUN_OVER 0 /* unw_step has to go on */
#define UNW_RUN_MORE 1 /* another run may */
#define UNW_RUN_END 2  /* the stack is complete; one below the next */
#define UNW_RUN_FILL 3 /* another run may, in a window that begins at u->win_want */

/* A cache, in which a rule has two places, the latest in the first. With a single one, of 40
 * addresses of a stack two share it in three processes of four, and each walk takes the tables for
 * both; of two, three share them in one of seven. */
struct unw_rules {
	/* hash of the process whose rules are looked for, and of its list of mappings: with another
	 * list, which may lead to other tables, nothing is remembered */
	__u64 whose;
	struct unw_known known[UNW_RULES];
};

/* The first of its two places; the other is the next. */
static __always_inline __u32 unw_known_at(__u64 key)
{
	return (key * 0x9e3779b97f4a7c15ULL >> (64 - UNW_RULES_BITS)) & (UNW_RULES - 2);
}

/* Which of them may have it: the second if it is not in the first; without a branch, which the
 * verifier would follow twice for each frame. */
static __always_inline __u32 unw_known_in(const struct unw_rules *rules, __u64 key)
{
	__u32 at = unw_known_at(key);
	__u64 other = rules->known[at].key ^ key;

	other = (other | -other) >> 63;
	UNW_OPAQUE(other);
	return at + (other & 1);
}

/* Does the rule say what most do? */
static __always_inline int unw_is_common(const struct bpfprof_rule *rule)
{
	if ((rule->cfa != BPFPROF_CFA_SP && rule->cfa != BPFPROF_CFA_FP) ||
	    rule->reg != BPFPROF_R12_UNKNOWN)
		return 0;
	if (rule->ra == BPFPROF_RA_END)
		return rule->fp == BPFPROF_FP_SAME;
	return rule->ra == BPFPROF_RA_CFA &&
	       (rule->fp == BPFPROF_FP_SAME || rule->fp == BPFPROF_FP_CFA);
}

/* Of a common rule: how is UNW_KNOWN_… */
static __always_inline __u64 unw_how(const struct bpfprof_rule *rule)
{
	__u64 how = 0;

	if (rule->ra == BPFPROF_RA_END)
		return UNW_KNOWN_END;
	if (rule->fp == BPFPROF_FP_CFA)
		how |= UNW_KNOWN_SAVED_FP;
	if (rule->cfa == BPFPROF_CFA_FP)
		how |= UNW_KNOWN_FP;
	if (rule->bx_off == BPFPROF_BX_UNKNOWN)
		how |= UNW_KNOWN_LOST_BX;
	else if (rule->bx_off)
		how |= UNW_KNOWN_SAVED_BX;
	return how;
}

/*
 * Remembers the rule u->rule, by which unw_step has gone on from the frame at addr or found it to be
 * the first, if it says what most do. Returns 0 if none was remembered, 1 if this one was, -1 if it
 * was another.
 */
static __always_inline int unw_learn(const struct unw *u, struct unw_rules *rules, __u64 addr)
{
	const struct bpfprof_rule *rule = &u->rule;
	__u64 key = rules->whose ^ addr, how;
	struct unw_known *k = &rules->known[unw_known_in(rules, key)], *first;
	int known = k->key != key ? 0 : -1;
	__s32 saved_at, bx_off = rule->bx_off;
	__s64 cfa_off;

	if (!unw_is_common(rule))
		return known;
	how = unw_how(rule);
	saved_at = how & UNW_KNOWN_SAVED_FP ? rule->fp_off : -8;
	cfa_off = how & UNW_KNOWN_END ? UNW_NOWHERE : rule->cfa_off;
	if (known && k->cfa_off == cfa_off && k->saved_at == saved_at && k->bx_off == bx_off &&
	    k->how == how)
		return 1;
	if (!known) {
		first = &rules->known[unw_known_at(key)];
		first[1] = first[0];
		k = first;
	}
	k->key = key;
	k->cfa_off = cfa_off;
	k->saved_at = saved_at;
	k->bx_off = bx_off;
	k->how = how;
	return known;
}

/* v if the bit of `how` is set, else old: without a branch, since the processor would mispredict
 * it. */
static __always_inline __u64 unw_pick(__u64 how, __u64 bit, __u64 v, __u64 old)
{
	__u64 mask = -((how & bit) / bit);

	UNW_OPAQUE(mask);
	return old ^ ((old ^ v) & mask);
}

/* Records the current frame and those behind it, as long as their rules are remembered and the window
 * has their words. Returns UNW_RUN_… */
static __always_inline int unw_run(struct unw *u, const struct unw_rules *rules)
{
	__u64 addr = u->pc - !u->exact, sp = u->sp, fp = u->fp, bx_at = u->bx_at, pc = 0;
	__u64 begin, last;
	__u32 i;

	u->win_want = sp;
	if (u->win_sz < 8)
		return UNW_RUN_FILL;
	u->run = UNW_RUN_OVER;
	/* the window, and how far from there its last word is */
	begin = u->win_addr;
	last = (__u64)u->win_sz - 8;
	u->win_want = 0;
#pragma GCC unroll 1
	for (i = 0; i < UNW_RUN_MAX; i++) {
		__u64 key = rules->whose ^ addr, how, cfa, saved_at, ra_at, ra;
		const struct unw_known *k = &rules->known[unw_known_in(rules, key)];

		if (k->key != key || u->nr >= u->max)
			break;
		how = k->how;
		cfa = unw_pick(how, UNW_KNOWN_FP, fp, sp) + k->cfa_off;
		saved_at = cfa + k->saved_at - begin;
		ra_at = cfa - 8 - begin;
		if (saved_at > last || ra_at > last) {
			__u64 lower = (__u64)k->saved_at + 8;

			/* the lower of the two, and which result: without a branch */
			u->win_want = cfa - 8 + (lower & -(lower >> 63));
			u->run = UNW_RUN_FILL - (how & UNW_KNOWN_END) / UNW_KNOWN_END;
			break;
		}
		ra = UNW_WORD(u->win + (ra_at & (UNW_WINDOW - 1)));
		/* the end; or what a return probe has put there; or a frame that may be its own
		 * caller */
		if (!ra || ra == u->uret_pc || cfa == sp)
			break;
		unw_add_frame(u, addr);
		fp = unw_pick(how, UNW_KNOWN_SAVED_FP,
			      UNW_WORD(u->win + (saved_at & (UNW_WINDOW - 1))), fp);
		bx_at = unw_pick(how, UNW_KNOWN_SAVED_BX, cfa + k->bx_off, bx_at);
		bx_at = unw_pick(how, UNW_KNOWN_LOST_BX, UNW_REG_UNKNOWN, bx_at);
		pc = ra;
		addr = ra - 1;
		sp = cfa;
	}
	if (i == UNW_RUN_MAX)
		u->run = UNW_RUN_MORE;
	if (pc) {
		u->bx_at = bx_at;
		u->r12_at = UNW_REG_UNKNOWN;
		u->trusted = 1;
		unw_caller(u, pc, sp, fp);
	}
	/* read back: the verifier would follow the rest for each way out of the loop */
	UNW_FORGET();
	if (u->run == UNW_RUN_END)
		unw_add_frame(u, addr);
	return u->run;
}

/* What a run asks for by UNW_RUN_FILL. Returns MORE or OVER. Not called by unw_run, since up to 6.12
 * all functions that are active share 512 bytes of stack. */
static __always_inline int unw_run_fill(struct unw *u)
{
	/* a window that begins there has been tried */
	if (u->win_sz >= 8 && u->win_addr == u->win_want)
		return UNW_RUN_OVER;
	return UNW_CALL(unw_fill, u, u->win_want) || u->win_sz < 8 ? UNW_RUN_OVER : UNW_RUN_MORE;
}

/* Both. Returns MORE, OVER or END. */
static __always_inline int unw_run_on(struct unw *u, const struct unw_rules *rules)
{
	int run = unw_run(u, rules);

	return run == UNW_RUN_FILL ? unw_run_fill(u) : run;
}

#endif
