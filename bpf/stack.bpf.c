// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Takes the user stack of the current task: by tables in the kernel where its code is known, and
 * otherwise as a copy of registers and stack, from which user space makes the same frames once it
 * has the tables. No sample waits for a table, and none is dropped for the want of one.
 */
#include "common.bpf.h"

/* UPROBE_XOL_SLOT_BYTES, arch/x86/include/asm/uprobes.h: what return probes run lies in the first
 */
#define XOL_SLOT_SIZE 128

#define SLOT_TRIES 8

/*
 * A slot is taken by an exchange. Kernels before 5.12 (5ffa25502b5a) refuse the instruction, even
 * where it is never run: this file is compiled twice, see walk. There, a key in a hash is the lock,
 * since inserting fails where it is.
 */
#ifdef WITHOUT_LOOP
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* slot_cnt, when loaded */
	__type(key, __u32);
	__type(value, __u32);
} bp_slots SEC(".maps");

static __always_inline bool try_slot(__u32 slot)
{
	return !bpf_map_update_elem(&bp_slots, &slot, &slot, BPF_NOEXIST);
}

__noinline int stack_give_slot(__u32 slot)
{
	/* without slots there is no such map */
	return bp_config.slot_cnt ? bpf_map_delete_elem(&bp_slots, &slot) : 0;
}
#else
static __always_inline bool try_slot(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s && !__sync_val_compare_and_swap(&s->taken, 0, 1);
}

__noinline int stack_give_slot(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	/* behind all that was done with it: x86-64 keeps the order of stores */
	UNW_FORGET();
	if (s)
		s->taken = 0;
	return 0;
}
#endif

__noinline int stack_take_slot(void)
{
	__u32 slot, cnt = bp_config.slot_cnt, at = bpf_get_smp_processor_id();

	for (__u32 i = 0; i < SLOT_TRIES && i < cnt; i++) {
		slot = bp_config.first_slot + (at + i) % cnt;
		if (try_slot(slot))
			return slot;
	}
	return -1;
}

/* The parts of the unwinder that UNW_CALL names. */
__noinline int stack_unw_search_map(__u32 slot, __u64 addr)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_search_map(&s->u, addr) : 1;
}

__noinline int stack_unw_fill(__u32 slot, __u64 addr)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_fill(&s->u, addr) : 1;
}

__noinline int stack_unw_begin_no_table(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_begin_no_table(&s->u) : BPFPROF_STACK_bad_frame;
}

__noinline int stack_unw_guess_by_fp(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_guess_by_fp(&s->u) : 0;
}

__noinline int stack_unw_guess_at_sp(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_guess_at_sp(&s->u) : 0;
}

__noinline int stack_unw_may_lead(__u32 slot, __u32 which)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_may_lead(&s->u, which) : 0;
}

__noinline int stack_unw_is_stated(__u32 slot, __u64 addr)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_is_stated(&s->u, addr) : 1;
}

__noinline int stack_unw_check_call(__u32 slot, __u64 ra)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_check_call(&s->u, ra) : 0;
}

__noinline int stack_unw_choose(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_choose(&s->u) : 0;
}

__noinline int stack_unw_leads_to(__u32 slot, __u64 ra, __u64 from)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_leads_to(&s->u, ra, from) : 0;
}

__noinline int stack_unw_equal_words(__u32 slot, __u32 from)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_equal_words(&s->u, from) : 0;
}

__noinline int stack_unw_skips_at(__u32 slot, __u32 at, __u64 target)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_skips_at(&s->u, at, target) : 0;
}

__noinline int stack_unw_skips(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_skips(&s->u) : 1;
}

__noinline int stack_unw_step_go(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_step_go(&s->u) : BPFPROF_STACK_bad_frame;
}

__noinline int stack_unw_replaced(__u32 slot, __u64 at)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_replaced(&s->u, at) : 1;
}

__noinline int stack_unw_run(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_run(&s->u, &s->rules) : UNW_RUN_OVER;
}

__noinline int stack_unw_run_fill(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_run_fill(&s->u) : UNW_RUN_OVER;
}

__noinline int stack_unw_learn(__u32 slot, __u64 addr)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_learn(&s->u, &s->rules, addr) : 0;
}

/* One frame or more. As unw_step_known. */
static __always_inline int walk_on(struct scratch *s)
{
	int result, known, run;
	__u64 addr;

	if (s->way == WALK_RUN) {
		s->by_rules.cached -= s->u.nr;
		run = stack_unw_run(s->u.slot);
		if (run == UNW_RUN_FILL)
			run = stack_unw_run_fill(s->u.slot);
		s->by_rules.cached += s->u.nr;
		if (run == UNW_RUN_MORE)
			return UNW_CONTINUE;
		if (run == UNW_RUN_END)
			return BPFPROF_STACK_complete;
	}
	addr = s->u.pc - !s->u.exact;
	result = unw_step_known(&s->u);
	if (s->way == WALK_TABLES || (result != UNW_CONTINUE && result != BPFPROF_STACK_complete))
		return result;
	known = stack_unw_learn(s->u.slot, addr);
	s->by_rules.checked += known != 0;
	s->by_rules.mismatched += known < 0;
	return result;
}

/*
 * All frames. This file is compiled twice: kernels before 5.17 (e6f2dd0f8067) have no bpf_loop, and
 * those before 5.13 (69c087ba6225) refuse a program that takes the address of a function, even
 * where it is never run.
 */
#ifdef WITHOUT_LOOP
__noinline int stack_unw_step(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? walk_on(s) : BPFPROF_STACK_bad_frame;
}

__noinline int stack_unw_step_guess(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? unw_step_guess(&s->u) : BPFPROF_STACK_bad_frame;
}

/* In two functions, for the stack that they take: see unwind_no_table.h. */
static __always_inline int walk(struct scratch *s)
{
	for (int i = 0; i < BPFPROF_MIN_UFRAMES; i++) {
		int result = stack_unw_step(s->u.slot);

		if (result == UNW_GUESS)
			result = stack_unw_step_guess(s->u.slot);
		if (result != UNW_CONTINUE)
			return result;
	}
	return BPFPROF_STACK_too_deep;
}
#else
struct step_ctx {
	struct scratch *s;
};

static long step(__u32 i, struct step_ctx *c)
{
	struct scratch *s = c->s;

	/* in memory of which the verifier knows nothing: it would follow the rest for each result */
	s->result = walk_on(s);
	UNW_FORGET();
	if (s->result == UNW_GUESS) {
		s->result = unw_step_guess(&s->u);
		UNW_FORGET();
	}
	return s->result != UNW_CONTINUE;
}

static __always_inline int walk(struct scratch *s)
{
	struct step_ctx c = { .s = s };

	bpf_loop(BPFPROF_MAX_UFRAMES + 1, step, &c, 0);
	return s->result == UNW_CONTINUE ? BPFPROF_STACK_too_deep : s->result;
}
#endif

/*
 * Is rip a return address, behind the syscall instruction? Interrupts and exceptions set orig_ax to
 * -1. The instruction has left rip in rcx as well, unless execve or a signal's delivery has set rip
 * to the first instruction of something else since; under FRED it leaves rcx alone.
 */
static __always_inline bool behind_syscall(struct unw *u, const struct pt_regs *regs)
{
	__u16 code = 0;

	if ((long)regs->orig_ax < 0)
		return false;
	return regs->cx == regs->ip ||
	       (!unw_read_user(u, &code, sizeof(code), regs->ip - sizeof(code)) &&
		code == 0x050f); /* syscall */
}

static __always_inline int user_regs(struct unw *u, bool *ret_ra, bool *ret_compat32)
{
	/* not on the stack, of which this is a third: until 6.13 gave each function one of its own,
	 * all that are active together have 512 bytes */
	struct pt_regs *regs = (struct pt_regs *)u->win;
	struct task_struct *task = compat_have_task_pt_regs() ? bpf_get_current_task_btf() :
								(void *)bpf_get_current_task();

	if (task_regs(task, regs))
		return 1;
	u->regs[0] = regs->ax;
	u->regs[1] = regs->dx;
	u->regs[2] = regs->cx;
	u->regs[3] = regs->bx;
	u->regs[4] = regs->si;
	u->regs[5] = regs->di;
	u->regs[6] = regs->bp;
	u->regs[7] = regs->sp;
	u->regs[8] = regs->r8;
	u->regs[9] = regs->r9;
	u->regs[10] = regs->r10;
	u->regs[11] = regs->r11;
	u->regs[12] = regs->r12;
	u->regs[13] = regs->r13;
	u->regs[14] = regs->r14;
	u->regs[15] = regs->r15;
	u->regs[16] = regs->ip;
	*ret_ra = behind_syscall(u, regs);
	*ret_compat32 = regs->cs == CS_USER32;
	return 0;
}

/*
 * A task that runs what a return probe has put in the place of a return, or is in its system call:
 * makes it one that has returned. The code is that of the kernel (arch_uprobe_trampoline): up to
 * three pushes, a system call (or a breakpoint), and the pops and the return to the place that the
 * system call has written to the stack.
 */
static __always_inline bool finish_return(struct unw *u)
{
	__u64 sp = u->regs[UNW_REG_SP], ra = 0;
	__u32 code = 0, pops;

	if (u->uret[0].at - sp + 8 <= 4 * 8) {
		u->regs[UNW_REG_PC] = u->uret[0].ra;
		u->regs[UNW_REG_SP] = u->uret[0].at + 8;
		return true;
	}
	if (bpf_probe_read_user(&code, sizeof(code), (void *)u->regs[UNW_REG_PC]))
		return false;
	if (code == 0xc3595b41) /* pop %r11; pop %rcx; ret */
		pops = 2;
	else if ((code & 0xffff) == 0xc359)
		pops = 1;
	else if ((code & 0xff) == 0xc3)
		pops = 0;
	else
		return false;
	sp += pops * 8;
	/* what the first push saved stands there until the system call has written the address */
	if (bpf_probe_read_user(&ra, sizeof(ra), (void *)sp) || ra == u->regs[0])
		return false;
	u->regs[UNW_REG_PC] = ra;
	u->regs[UNW_REG_SP] = sp + 8;
	return true;
}

/*
 * What return probes, ours or another tool's, have changed in what the current task seems to do:
 * return addresses that were replaced, a return under way.
 * Returns whether rip is a return address.
 */
static __always_inline int undo_uprobes(struct unw *u, int returned)
{
	struct task_struct *task;
	struct return_instance *ri;
	struct uprobe_task *utask;
	struct xol_area *area;

	u->uret_pc = 0;
	u->probed = 0;
	if (!bpf_core_field_exists(struct task_struct, utask))
		return returned;
	/* copied, not followed: see task_regs */
	task = (void *)bpf_get_current_task();
	utask = BPF_CORE_READ(task, utask);
	if (!utask)
		return returned;
	u->probed = 1;
	area = BPF_CORE_READ(task, mm, uprobes_state.xol_area);
	if (!area)
		return returned;
	u->uret_pc = BPF_CORE_READ(area, vaddr);
	ri = BPF_CORE_READ(utask, return_instances);
	for (int i = 0; i < BPFPROF_MAX_URETS; i++) {
		u->uret[i].at = 0;
		if (!ri)
			continue;
		u->uret[i].at = BPF_CORE_READ(ri, stack);
		u->uret[i].ra = BPF_CORE_READ(ri, orig_ret_vaddr);
		ri = BPF_CORE_READ(ri, next);
	}
	if (u->regs[UNW_REG_PC] - u->uret_pc < XOL_SLOT_SIZE && finish_return(u))
		return 1;
	return returned;
}

/*
 * A task that the kernel has stopped at a breakpoint has not reached the instruction behind it. A
 * byte of that value may also be padding in front of a function, which no rule covers, or nothing
 * to do with it where the task is not in the kernel for a trap. Where there are no rules, padding is
 * told by what it is for: it aligns what follows.
 */
__noinline int stack_undo_breakpoint(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	struct bpfprof_rule rule;
	__u64 addr;
	__u8 insn = 0;

	if (!s)
		return 1;
	addr = s->u.pc - 1;
	if (bpf_probe_read_user(&insn, 1, (void *)addr) || insn != 0xcc ||
	    stack_unw_search_map(slot, addr))
		return 1;
	if (s->u.map.chunk < BPFPROF_MAX_CHUNKS) {
		unw_find_rule(&s->u, addr, &rule);
		if (rule.cfa == BPFPROF_CFA_NONE)
			return 1;
	} else if (!(s->u.pc & 15)) {
		return 1;
	}
	s->u.pc = addr;
	s->u.regs[UNW_REG_PC] = addr;
	return 0;
}

__noinline int stack_undo_uprobes(__u32 slot, int returned)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	return s ? undo_uprobes(&s->u, returned) : returned;
}

/*
 * The cache of user stacks. A thread that waits mostly waits where it did before, and most of a walk
 * is to wait for memory, for tables that were not used since. What a walk finds follows from the
 * registers that it begins with, the tables, and the stack words that it depended on: return
 * addresses, and frame pointers by which a frame was found. So the key is a hash of the registers,
 * the process and the generation of its tables, the kind and the thread's name; and an entry is
 * valid if the checksum of those stack words is what it was.
 */

#define WORDS_AT_ONCE 16 /* the verifier follows each */

/* `sum`, and of the words of s->cached those from number `from` on, at most WORDS_AT_ONCE; 0: one of
 * them was not read. */
__noinline __u64 ustack_checksum_part(__u32 slot, __u32 from, __u64 sum)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u64 off, other = 0;
	struct cached_ustack *k;

	if (!s)
		return 0;
	k = &s->cached;
	for (__u32 i = 0; i < WORDS_AT_ONCE && from + i < k->cnt; i++) {
		off = k->words[(from + i) % UNW_MAX_WORDS] - k->from;
		/* one that was not read: without a branch, which the verifier would follow */
		other |= (off & ~(sizeof(s->words) - 8)) | (k->sz - 8 - off) >> 63;
		sum = unw_mix(sum, off);
		sum = unw_mix(sum, s->words[off / 8 % (sizeof(s->words) / 8)]);
	}
	return other ? 0 : sum;
}

/* Of s->cached, and of the stack words that it depends on; 0: they cannot be read. */
__noinline __u64 ustack_checksum(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	struct cached_ustack *k;
	__u64 sum, sz;

	if (!s)
		return 0;
	k = &s->cached;
	sz = k->sz;
	if (sz > sizeof(s->words) || bpf_probe_read_user(s->words, sz, (const void *)k->from))
		return 0;
	sum = unw_mix(unw_mix(k->start, k->hash), (__u64)k->nr << 32 | k->cnt);
	sum = unw_mix(unw_mix(sum, k->fp_mask), s->u.regs[UNW_REG_FP] & k->fp_mask);
	for (__u32 from = 0; from < UNW_MAX_WORDS && from < k->cnt && sum; from += WORDS_AT_ONCE)
		sum = ustack_checksum_part(slot, from, sum);
	return sum;
}

/* Two functions may have called the one that waits with the same sp: so there are several ways. */
static __always_inline struct cached_ustack *entry_at(__u64 start, __u32 way)
{
	__u32 at = (__u32)(start >> 32) * USTACK_WAYS + way % USTACK_WAYS;

	at %= USTACK_CACHE_SZ;
	return bpf_map_lookup_elem(&bp_ustacks, &at);
}

/* Is that what is looked for by s->cached.start? Then s->cached is what a walk would find. */
static __always_inline bool is_hit(struct scratch *s, const struct cached_ustack *entry)
{
	__u64 start = s->cached.start, from = s->cached.from;

	if (!entry || entry->start != start)
		return false;
	/* a copy: another CPU may be writing it, and the sum is of all that is used */
	s->cached = *entry;
	s->cached.from = from;
	if (s->cached.start == start && s->cached.nr <= BPFPROF_MAX_UFRAMES && s->cached.sum &&
	    ustack_checksum(s->u.slot) == s->cached.sum)
		return true;
	s->cached.start = start;
	return false;
}

__noinline int ustack_cache_lookup(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	struct bpfprof_stats *stats;
	bool hit = false;
	struct unw *u;
	__u64 start;

	if (!s)
		return 0;
	u = &s->u;
	start = unw_mix(unw_mix(u->hash, u->regs[UNW_REG_PC]), u->regs[UNW_REG_SP]);
	start = unw_mix(start, u->ra);
	s->cached.start = start;
	s->cached.from = u->regs[UNW_REG_SP];
	for (__u32 way = 0; way < USTACK_WAYS && !hit; way++)
		hit = is_hit(s, entry_at(start, way));
	if (!hit)
		return 0;
	stats = stats_in(u->rec.side, u->rec.kind);
	if (stats && check_is_due(&stats->user_stacks))
		return USTACK_CACHE_CHECK;
	s->begun = u->hash;
	u->nr = s->cached.nr;
	u->hash = s->cached.hash;
	return USTACK_CACHE_HIT;
}

/* A walk that the cache has, s->cached, was made again and has ended so. */
__noinline int ustack_cache_check(__u32 slot, int result)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	struct bpfprof_stats *stats;
	struct cached_ustack *entry;

	/* a table has gone meanwhile: user space will tell */
	if (!s || result == UNW_MISS)
		return 0;
	stats = stats_in(s->u.rec.side, s->u.rec.kind);
	if (!stats || check_same(&stats->user_stacks, result == BPFPROF_STACK_complete &&
							      s->u.nr == s->cached.nr &&
							      s->u.hash == s->cached.hash))
		return 0;
	for (__u32 way = 0; way < USTACK_WAYS; way++) {
		entry = entry_at(s->cached.start, way);
		if (entry && entry->start == s->cached.start)
			entry->sum = 0;
	}
	return 0;
}

__noinline int ustack_cache_insert(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	struct cached_ustack *entry;
	struct unw *u;

	if (!s)
		return 0;
	u = &s->u;
	if (u->other || u->word_cnt > UNW_MAX_WORDS)
		return 0;
	s->cached.hash = u->hash;
	s->cached.nr = u->nr;
	s->cached.fp_mask = u->fp_mask;
	s->cached.cnt = u->word_cnt;
	/* the last one is the highest, or that is none to remember */
	s->cached.sz = u->words[(u->word_cnt - 1) & (UNW_MAX_WORDS - 1)] - s->cached.from + 8;
	__builtin_memcpy(s->cached.words, u->words, sizeof(u->words));
	s->cached.sum = ustack_checksum(slot);
	entry = entry_at(s->cached.start, bpf_get_prandom_u32());
	if (entry && s->cached.sum)
		*entry = s->cached;
	return 0;
}

/* Has a return probe replaced a return address? */
static __always_inline bool has_replaced(const struct unw *u)
{
	return u->uret_pc && u->uret[0].at;
}

__noinline int stack_begin(__u32 slot, int returned)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	bool ra = false, compat32 = false;
	struct bpfprof_proc *proc;
	struct unw *u;

	if (!s)
		return BPFPROF_STACK_read_fault;
	u = &s->u;
	u->nr = 0;
	u->max = bp_config.max_uframes;
	if (user_regs(u, &ra, &compat32))
		return BPFPROF_STACK_read_fault;
	u->ra = returned || ra;
	if (compat32)
		return BPFPROF_STACK_compat32;
	proc = bpf_map_lookup_elem(&bp_procs, &u->rec.proc);
	if (!proc && task_borrowed_memory(&u->rec.proc))
		proc = bpf_map_lookup_elem(&bp_procs, &u->rec.proc);
	if (!proc)
		return UNW_MISS;
	u->proc = *proc;
	u->owner[0] = u->rec.proc.tgid | (__u64)u->rec.proc.exec_id << 32;
	u->owner[1] = u->rec.proc.start_ns;
	u->hash = unw_mix(u->hash, u->proc.gen);
	return UNW_CONTINUE;
}

__noinline int stack_start(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	struct unw *u;
	__u64 pc;

	if (!s)
		return 0;
	u = &s->u;
	pc = u->regs[UNW_REG_PC];
	unw_start(u, u->hash, stack_undo_uprobes(slot, u->ra));
	/* more than the stack has decided then */
	u->other = u->pc != pc || has_replaced(u);
	return 0;
}

__noinline int stack_walk(__u32 slot, __u32 how)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	struct bpfprof_stats *stats;
	__u64 whose;
	int result;

	if (!s)
		return BPFPROF_STACK_read_fault;
	if (!(how & RECORD_USER_MODE) && s->u.exact && s->u.probed && !stack_undo_breakpoint(slot))
		s->u.other = 1;
	/* a walk that is to be remembered notes the words that decide it, which unw_run does not;
	 * and tables that are in use have to be searched now and then: user space evicts others */
	if (how & RECORD_CACHED)
		s->way = WALK_TABLES;
	else
		s->way = s->walks++ % BPFPROF_CHECKED ? WALK_RUN : WALK_LEARN;
	whose = unw_mix(unw_mix(bp_config.seed, s->u.owner[0]), s->u.owner[1]);
	whose = unw_mix(whose, (__u64)s->u.proc.gen << 32 | s->u.proc.chunk);
	s->rules.whose = unw_mix(whose, s->u.proc.pos);
	__builtin_memset(&s->by_rules, 0, sizeof(s->by_rules));
	result = walk(s);
	stats = stats_in(s->u.rec.side, s->u.rec.kind);
	if (!stats || s->way == WALK_TABLES)
		return result;
	STATS_ADD(stats->rules.cached, s->by_rules.cached + s->by_rules.checked);
	if (s->way == WALK_LEARN || s->by_rules.mismatched) {
		STATS_ADD(stats->rules.checked, s->by_rules.checked);
		STATS_ADD(stats->rules.mismatched, s->by_rules.mismatched);
	}
	return result;
}

/* Copies sz bytes, at most a page, to pos in the slot's raw_buf. Returns 0, or all ones if it failed:
 * without a branch, so that the verifier has one path to follow. */
__noinline __u64 stack_copy_page(__u32 slot, __u64 pos, __u64 sz, __u64 addr)
{
	struct raw_buf *b = bpf_map_lookup_elem(&bp_raw, &slot);

	/* what is compared is what is added: clang 16 and later compare a copy, which tells the
	 * verifier nothing */
	UNW_OPAQUE(pos);
	UNW_OPAQUE(sz);
	if (!b || pos > sizeof(b->data) - UNW_PAGE || sz > UNW_PAGE)
		return -1ULL;
	return bpf_probe_read_user(b->data + pos, sz, (const void *)addr) >> 63;
}

/*
 * Copies the stack from sp up, page by page, to the place in the slot's raw_buf. Pages that cannot
 * be read, such as the untouched middle of a large frame, are noted; those behind the last one that
 * could are left out. Returns how many bytes.
 */
__noinline __u64 stack_copy(__u32 slot, __u32 at, __u64 sp)
{
	__u32 sz = 0, want = UNW_PAGE - ((__u32)sp & (UNW_PAGE - 1));
	struct raw_buf *b = bpf_map_lookup_elem(&bp_raw, &slot);
	__u64 failed, before = 0, good = 0, holes = 0;

	if (!b)
		return 0;
	for (int i = 0; i < BPFPROF_RAW_STACK_SZ / UNW_PAGE; i++) {
		if (at + sz > sizeof(b->data) - UNW_PAGE)
			break;
		failed = stack_copy_page(slot, at + sz, want, sp + sz);
		sz += want;
		good = (good & failed) | (sz & ~failed);
		holes |= (failed & 1) << i;
		/* a failing read costs a fault; two in a row are the end of the stack */
		if (failed & before)
			break;
		before = failed;
		want = UNW_PAGE;
	}
	b->raw.holes = holes;
	return good;
}

static __always_inline void copy_code(struct raw_buf *b, __u32 i, __u64 addr)
{
	struct bpfprof_raw_code *c = &b->raw.codes[i & (BPFPROF_RAW_CODES - 1)];
	/* all ones if it failed: see stack_copy */
	__u64 failed = bpf_probe_read_user(c->bytes, sizeof(c->bytes), (const void *)addr) >> 63;

	UNW_OPAQUE(failed);
	c->addr = addr & ~failed;
}

/* Notes the code that the walk of the copy asks for most, as far as its addresses are known without
 * unwind tables: see struct bpfprof_raw. */
__noinline int stack_copy_codes(__u32 slot, __u64 pc, __u64 sp, __u64 fp)
{
	struct raw_buf *b = bpf_map_lookup_elem(&bp_raw, &slot);
	__u64 frame[2], low = sp;
	int i;

	if (!b)
		return 0;
	__builtin_memset(b->raw.codes, 0, sizeof(b->raw.codes));
	copy_code(b, 0, pc);
	if (!bpf_probe_read_user(frame, 8, (const void *)sp))
		copy_code(b, 1, frame[0] - 8);
	for (i = 2; i < BPFPROF_RAW_CODES; i++) {
		if (fp - low >= UNW_FP_REACH || fp & 7 ||
		    bpf_probe_read_user(frame, sizeof(frame), (const void *)fp))
			break;
		copy_code(b, i, frame[1] - 8);
		low = fp + 16;
		fp = frame[0];
	}
	return 0;
}

__hidden int stack_send_raw(void *ctx, struct scratch *s, bool with_kernel)
{
	__u32 slot = s->u.slot, at = 0;
	struct raw_buf *b = bpf_map_lookup_elem(&bp_raw, &slot);
	struct unw *u = &s->u;
	__u64 sz;

	if (!b)
		return 1;
	b->rec = u->rec;
	b->rec.type = BPFPROF_REC_RAW;
	b->rec.user_cnt = 0;
	b->rec.kernel_cnt = 0;
	__builtin_memcpy(b->raw.regs, u->regs, sizeof(b->raw.regs));
	b->raw.ra = u->ra;
	b->raw.uret_pc = u->uret_pc;
	__builtin_memcpy(b->raw.uret, u->uret, sizeof(b->raw.uret));
	if (with_kernel) {
		long n = bpf_get_stack(ctx, b->data, BPFPROF_MAX_KFRAMES * 8, 0);

		if (n > 0 && n <= BPFPROF_MAX_KFRAMES * 8) {
			at = n;
			b->rec.kernel_cnt = at / 8;
		}
	}
	b->raw.stack_addr = u->regs[UNW_REG_SP] - BPFPROF_RED_ZONE;
	b->raw.stack_sz = stack_copy(slot, at, b->raw.stack_addr);
	stack_copy_codes(slot, u->regs[UNW_REG_PC], u->regs[UNW_REG_SP], u->regs[UNW_REG_FP]);
	sz = RAW_HEAD + at + b->raw.stack_sz;
	if (sz > RAW_MAX)
		return 1;
	return bpf_ringbuf_output(&bp_ring, b, sz, BPF_RB_FORCE_WAKEUP) != 0;
}
