/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Unwinding of x86-64 user stacks: the search for the rule of an address and one step from a frame
 * to its caller. Pure C without maps or programs: stack.bpf.c includes it in the kernel,
 * user/target/unwind.c on the host, for the stacks that were copied at first sight, and tests/bpf
 * for the tests.
 *
 * How a step works. A frame is (pc, sp, fp). Its pc lies in one executable mapping of the process;
 * the mapping names the part of an unwind table that covers it; the part gives the rule that holds
 * at the pc; the rule says where the caller's frame begins (the CFA, which is the caller's sp),
 * where the caller's fp was saved and where the return address is. Of rbx, which the dynamic
 * linker's lazy binding bases its frame on, and of r12, where Go leaves rsp while the functions of
 * its race detector run, only the place where it was saved is kept, and read if it is asked for.
 * Other registers are not followed from frame to frame: only in a frame that was interrupted, by the
 * sample or by a signal, are they known, and only hand-written leaf code asks for them.
 *
 * What makes it cheap: the stack is read in windows of 2 KiB, because a read costs the same for 8
 * bytes; the mapping and the part of the last frame are kept; both searches are branchless, which
 * the verifier follows in one path and the processor does not mispredict.
 *
 * The includer defines before including:
 *
 *   __always_inline, __noinline
 *   static int unw_read_user(struct unw *u, void *dst, __u32 sz, __u64 addr);
 *           copies memory of the target; returns 0, or else if it could not
 *   static const __u8 *unw_chunk(const struct unw *u, __u32 idx);
 *           returns a chunk of table memory, or NULL
 *   static void unw_mark_used(const __u8 *chunk, __u32 pos);
 *           notes that the part at pos was needed
 *
 * and may define:
 *
 *   UNW_CALL(f, u, ...)     calls a part of the unwinder: unw_… itself, if it does not
 *   UNW_WORD(p)             reads a __u64 that may not be aligned
 *   UNW_THREAD_POINTER(u)   the thread's fs base; 0 if it, and what it leads to, cannot be had
 */
#ifndef BPFPROF_UNWIND_H
#define BPFPROF_UNWIND_H

#define UNW_WINDOW 2048 /* bytes; 4 KiB gains nothing more on stacks of 40 frames */
#define UNW_PAGE 4096
#define UNW_MAX_WORDS 64  /* a power of two */
#define UNW_REG_UNKNOWN 1 /* of bx_at, r12_at */
/* A word at any address: stacks need not be aligned. */
#ifndef UNW_WORD
#define UNW_WORD(p) (*(const __u64 *)(p))
#endif

#ifndef UNW_THREAD_POINTER
#define UNW_THREAD_POINTER(u) 0ULL
#endif

#ifndef UNW_CALL
#define UNW_CALL(f, u, ...) f(u, ##__VA_ARGS__)
#endif

/* Results of a step beside enum bpfprof_stack_result. */
#define UNW_CONTINUE 0x100
#define UNW_MISS 0x101 /* needs a mapping or a table that is not loaded */

/* DWARF numbers of x86-64 registers (psABI, figure 3.36) */
#define UNW_REG_BX 3
#define UNW_REG_FP 6
#define UNW_REG_SP 7
#define UNW_REG_R12 12
#define UNW_REG_PC 16
/* of the saved registers, struct sigcontext_64, within a ucontext */
#define UNW_UC_GREGS 40
/* A thread's cs in 64-bit mode: __USER_CS, or under Xen FLAT_USER_CS64 (asm/segment.h,
 * xen/interface/xen.h) */
#define UNW_CS_MASK 0xfff
#define UNW_CS_USER 0x33

/* A caller that may be: see unwind_no_table.h. */
struct unw_guess {
	__u64 ra, sp, fp;
	__u64 target; /* of the direct call before ra; 0: there is none that has led here */
};

struct unw {
	__u64 pc, sp, fp;
	__u64 regs[BPFPROF_NR_REGS]; /* of the sampled frame, by DWARF number */
	__u64 bx_at;   /* where the current frame's rbx was saved; 0: nowhere, it is in regs */
	__u64 r12_at;  /* the same of r12 */
	__u64 regs_at; /* where a signal saved the current frame's registers; 0: they are in regs */
	__u8 exact;    /* pc is where the frame was interrupted, not a return address */
	__u8 have_regs;	  /* the current frame was interrupted: all its registers are known */
	__u8 trusted;	  /* pc comes from the processor or a table, no guess by frame pointer */
	__u8 ra;	  /* the sampled pc was a return address: as unw_start was told */
	__u32 nr;	  /* frames found */
	__u32 max;	  /* frames wanted at most */
	__u32 slot;	  /* the includer's own */
	__u32 probed;	  /* the same: the task has met a uprobe before */
	__u32 go_execute; /* a frame was Go's execute: m.curg is a goroutine that has not run yet */
	__u64 hash;	  /* of the frames so far */

	struct bpfprof_proc proc;
	__u64 owner[2]; /* struct bpfprof_proc_key of the process, as two words */

	/* the mapping that the last search found, and the head of its part */
	__u64 map_start;
	struct bpfprof_map map;
	__u32 blk_cnt, off_pos, rule_pos, rules_pos;

	/* return addresses that return probes have replaced: see struct bpfprof_raw */
	__u64 uret_pc, uret_ra;
	struct bpfprof_uret uret[BPFPROF_MAX_URETS];

	/* of the current frame; on the BPF stack there is no room: up to 6.12 all functions that
	 * are active share 512 bytes */
	struct bpfprof_rule rule;
	struct unw_guess guess[2];
	__u64 target;	  /* of the direct call that was last seen */
	__u64 code_start; /* of the mapping that pc lies in */
	__u32 code_size;
	__u32 looks; /* for calls, in this walk: see UNW_LOOKS */
	/* the words of the stack between rsp and rbp, and which are what rbp is: see unw_skips */
	__u32 below_at, below_cnt;
	__u64 below_equal;

	/* addresses of the words of the stack that have decided where the walk goes, beside the
	 * sampled frame's pc and sp */
	__u64 words[UNW_MAX_WORDS];
	__u64 fp_at;	/* where fp was saved, if it has not decided yet; UNW_FP_… */
	__u64 fp_mask;	/* all ones: the sampled frame's fp has decided, too; else 0 */
	__u32 word_cnt; /* of them; of more, the last ones are kept */
	__u32 other;	/* 1: something else has, too */

	/* a page that could not be read with the one before, in this walk or in a former one */
	__u64 hole;
	/* what was last read of the stack */
	__u64 win_addr;
	/* of a run, see unwind_run.h: where the window of the next one has to begin, how it ended */
	__u64 win_want, run;
	__u32 win_sz; /* bytes valid, 0: nothing */
	__u8 win[UNW_WINDOW + 8];

	/* user frames, then kernel frames, behind the head of their record: it leaves without being
	 * put together. One more, for a number of a kernel frame that is masked */
	struct bpfprof_rec rec;
	__u64 frames[BPFPROF_MAX_UFRAMES + BPFPROF_MAX_KFRAMES + 1];
};

static __always_inline int unw_read_user(struct unw *u, void *dst, __u32 sz, __u64 addr);
static __always_inline const __u8 *unw_chunk(const struct unw *u, __u32 idx);
static __always_inline void unw_mark_used(const __u8 *chunk, __u32 pos);

/* Keeps the compiler from turning mask arithmetic back into branches (BPF has no conditional
 * move). */
#define UNW_OPAQUE(x) __asm__ volatile("" : "+r"(x))

/* Keeps the compiler from holding what it has stored, for want of registers on the stack. */
#define UNW_FORGET() __asm__ volatile("" : : : "memory")

static __always_inline __u64 unw_mix(__u64 hash, __u64 v)
{
	hash = (hash ^ v) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

/* Loads from a chunk: every position is masked into it, whatever the table says. */
static __always_inline __u64 unw_load64(const __u8 *chunk, __u32 pos)
{
	return *(const __u64 *)(chunk + (pos & (BPFPROF_CHUNK_SZ - 8)));
}

static __always_inline __u32 unw_load32(const __u8 *chunk, __u32 pos)
{
	return *(const __u32 *)(chunk + (pos & (BPFPROF_CHUNK_SZ - 4)));
}

static __always_inline __u32 unw_load16(const __u8 *chunk, __u32 pos)
{
	return *(const __u16 *)(chunk + (pos & (BPFPROF_CHUNK_SZ - 2)));
}

/* How many of the n ascending 8-byte values at pos are <= v; n < 2 * top, top a power of two. */
static __always_inline __u32 unw_count64(const __u8 *chunk, __u32 pos, __u32 n, __u64 v, __u32 top)
{
	__u32 k = 0, step;

#pragma GCC unroll 16
	for (step = top; step; step >>= 1) {
		__u64 c = (__u64)k + step;
		__u64 take = (c - n - 1) & (unw_load64(chunk, pos + (__u32)(c - 1) * 8) - v - 1);

		UNW_OPAQUE(take);
		k += step & (__u32) - (take >> 63);
	}
	return k;
}

/* The same for the n ascending bytes at pos. */
static __always_inline __u32 unw_count8(const __u8 *chunk, __u32 pos, __u32 n, __u64 v, __u32 top)
{
	__u32 k = 0, step;

#pragma GCC unroll 16
	for (step = top; step; step >>= 1) {
		__u64 c = (__u64)k + step;
		__u64 off = chunk[(pos + (__u32)c - 1) & (BPFPROF_CHUNK_SZ - 1)];
		__u64 take = (c - n - 1) & (off - v - 1);

		UNW_OPAQUE(take);
		k += step & (__u32) - (take >> 63);
	}
	return k;
}

/* Makes the mapping that holds addr the current one. Returns 0, or 1 if there is none. */
static __always_inline int unw_search_map(struct unw *u, __u64 addr)
{
	__u32 n = u->proc.map_cnt, pos = u->proc.pos, maps, k;
	const __u8 *chunk;
	__u64 start, size_skew, chunk_pos;

	chunk = unw_chunk(u, u->proc.chunk);
	if (!chunk || !n || n >= BPFPROF_MAX_MAPS)
		return 1;
	/* a list that was replaced and its memory reused while it was being read */
	if (unw_load64(chunk, pos) != u->owner[0] || unw_load64(chunk, pos + 8) != u->owner[1])
		return 1;
	pos += (__u32)sizeof(struct bpfprof_proc_key);
	if (n < 64)
		k = unw_count64(chunk, pos, n, addr, 32);
	else
		k = unw_count64(chunk, pos, n, addr, BPFPROF_MAX_MAPS / 2);
	if (!k)
		return 1;
	k--;
	start = unw_load64(chunk, pos + k * 8);
	maps = pos + ((n * 8 + 15) & ~15U) + k * (__u32)sizeof(struct bpfprof_map);
	size_skew = unw_load64(chunk, maps);
	chunk_pos = unw_load64(chunk, maps + 8);
	if (addr - start >= (__u32)size_skew)
		return 1;
	u->map_start = start;
	u->map.size = (__u32)size_skew;
	u->map.skew = size_skew >> 32;
	u->map.chunk = (__u32)chunk_pos;
	u->map.pos = chunk_pos >> 32;
	u->blk_cnt = 0;
	if (u->map.chunk >= BPFPROF_MAX_CHUNKS)
		return 0;
	chunk = unw_chunk(u, u->map.chunk);
	if (!chunk)
		return 0;
	pos = u->map.pos;
	u->blk_cnt = unw_load32(chunk, pos);
	u->off_pos = unw_load32(chunk, pos + 8);
	u->rule_pos = unw_load32(chunk, pos + 12);
	u->rules_pos = unw_load32(chunk, pos + 16);
	unw_mark_used(chunk, pos);
	return 0;
}

static __always_inline int unw_find_map(struct unw *u, __u64 addr)
{
	return addr - u->map_start < u->map.size ? 0 : UNW_CALL(unw_search_map, u, addr);
}

/* The rule for addr, which is u->pc or the byte before it and lies in the current mapping; cfa ==
 * BPFPROF_CFA_NONE if there is none.
 */
static __always_inline void unw_find_rule(struct unw *u, __u64 addr, struct bpfprof_rule *ret)
{
	__u32 rel = (__u32)(addr - u->map_start) + u->map.skew;
	__u32 blk = rel >> BPFPROF_BLOCK_SHIFT, t = rel & ((1U << BPFPROF_BLOCK_SHIFT) - 1);
	__u32 blk_pos = u->map.pos + (__u32)sizeof(struct bpfprof_part) + blk * 2;
	const __u8 *chunk;
	__u32 lo, n, row, rule;
	__u64 a = 0, b = 0;
	if (blk < u->blk_cnt && (chunk = unw_chunk(u, u->map.chunk))) {
		lo = unw_load16(chunk, blk_pos);
		n = unw_load16(chunk, blk_pos + 2) - lo;
		if (n < 16)
			row = lo + unw_count8(chunk, u->off_pos + lo, n, t, 8);
		else
			row = lo + unw_count8(chunk, u->off_pos + lo, n, t, 256);
		if (row) {
			rule = unw_load16(chunk, u->rule_pos + (row - 1) * 2);
			a = unw_load64(chunk, u->rules_pos + rule * 16);
			b = unw_load64(chunk, u->rules_pos + rule * 16 + 8);
		}
	}
	ret->cfa = (__u8)a;
	ret->fp = (__u8)(a >> 8);
	ret->ra = (__u8)(a >> 16);
	ret->reg = (__u8)(a >> 24);
	ret->cfa_off = (__s32)(a >> 32);
	ret->fp_off = (__s32)b;
	ret->aux = (__s16)(b >> 32);
	ret->bx_off = (__s16)(b >> 48);
}

/*
 * Reads a window of the stack that begins at addr. A read fails as a whole, so one that would run
 * past the end of the stack, or into a page that is not resident, is tried again up to the end of
 * its first page. To fail takes as long as ten reads: where it has ended so before, a window ends
 * there at once.
 */
static __always_inline int unw_fill(struct unw *u, __u64 addr)
{
	__u32 rest = UNW_PAGE - ((__u32)addr & (UNW_PAGE - 1));
	int over = rest < UNW_WINDOW && rest >= 8;

	u->win_addr = addr;
	if (!(over && addr + rest == u->hole) && !unw_read_user(u, u->win, UNW_WINDOW, addr)) {
		u->win_sz = UNW_WINDOW;
		return 0;
	}
	u->win_sz = 0;
	if (!over)
		return 1;
	u->hole = addr + rest;
	rest &= UNW_WINDOW - 1;
	if (unw_read_user(u, u->win, rest, addr))
		return 1;
	u->win_sz = rest;
	return 0;
}

static __always_inline void unw_note(struct unw *u, __u64 addr)
{
	u->words[u->word_cnt++ & (UNW_MAX_WORDS - 1)] = addr;
}

/* Reads 8 bytes of the stack that may never matter. Returns 0, or 1 if they cannot be read. */
static __always_inline int unw_peek8(struct unw *u, __u64 addr, __u64 *ret)
{
	__u64 off = addr - u->win_addr;

	if (off + 8 > u->win_sz || off >= UNW_WINDOW) {
		if (UNW_CALL(unw_fill, u, addr) || u->win_sz < 8)
			return 1;
		off = 0;
	}
	*ret = UNW_WORD(u->win + (off & (UNW_WINDOW - 1)));
	return 0;
}

/* The same of some that decide where the walk goes. */
static __always_inline int unw_read8(struct unw *u, __u64 addr, __u64 *ret)
{
	if (unw_peek8(u, addr, ret))
		return 1;
	unw_note(u, addr);
	return 0;
}

/* Where the current frame's fp comes from. */
#define UNW_FP_SAMPLED 0ULL /* it is that of the sampled frame */
#define UNW_FP_NOTED 1ULL   /* that is noted, or does not matter */

/* The frame pointer, which decides where the walk goes. Most code keeps other things in that
 * register, so that what is saved of it means nothing before that. */
static __always_inline __u64 unw_use_fp(struct unw *u)
{
	if (u->fp_at == UNW_FP_SAMPLED)
		u->fp_mask = ~0ULL;
	else if (u->fp_at != UNW_FP_NOTED)
		unw_note(u, u->fp_at);
	u->fp_at = UNW_FP_NOTED;
	return u->fp;
}

/* What stood at `at` before a return probe replaced it, into u->uret_ra. */
static __always_inline int unw_replaced(struct unw *u, __u64 at)
{
	u->uret_ra = u->uret_pc;
	for (int i = 0; i < BPFPROF_MAX_URETS; i++)
		if (u->uret[i].at == at)
			u->uret_ra = u->uret[i].ra;
	return 0;
}

/* Reads the return address that stands at `at`. Returns 0, or 1 if it cannot be read. */
static __always_inline int unw_read_ra(struct unw *u, __u64 at, __u64 *ret)
{
	if (unw_read8(u, at, ret))
		return 1;
	if (u->uret_pc && *ret == u->uret_pc) {
		UNW_CALL(unw_replaced, u, at);
		*ret = u->uret_ra;
	}
	return 0;
}

static __always_inline void unw_caller(struct unw *u, __u64 pc, __u64 sp, __u64 fp)
{
	u->pc = pc;
	u->sp = sp;
	u->fp = fp;
	u->exact = 0;
	u->have_regs = 0;
}

/*
 * A signal handler returned to: the frame that the kernel built for it. sp points to its ucontext
 * (struct rt_sigframe in arch/x86/include/asm/sigframe.h, struct sigcontext_64 in the uapi header
 * of that name).
 */
static __always_inline int unw_step_signal(struct unw *u)
{
	__u64 gregs = u->sp + UNW_UC_GREGS, pc, sp, fp, cs;

	/* what the handler returns to is the first instruction: no call stands before it */
	if (!u->have_regs)
		u->frames[(u->nr - 1) & (BPFPROF_MAX_UFRAMES - 1)] = u->pc;
	if (unw_peek8(u, gregs + 80, &fp) || unw_read8(u, gregs + 120, &sp) ||
	    unw_read8(u, gregs + 128, &pc) || unw_read8(u, gregs + 144, &cs))
		return BPFPROF_STACK_read_fault;
	/* The kernel was interrupted on its way back from the handler: rsp is restored already, and
	 * rip not yet (restore_sigcontext). What rsp leads to is a stack like any other. */
	if ((cs & UNW_CS_MASK) != UNW_CS_USER)
		return BPFPROF_STACK_bad_frame;
	/* The kernel was interrupted on its way to the handler: rsp was the handler's already, and
	 * rip not yet (setup_rt_frame). Nothing has been called, so that these are no frames. */
	if (u->nr == 2 && pc - u->frames[0] <= 1)
		u->nr = 0;
	u->regs_at = gregs;
	u->bx_at = gregs + 88;
	u->r12_at = gregs + 32;
	u->fp_at = gregs + 80;
	u->pc = pc;
	u->sp = sp;
	u->fp = fp;
	u->exact = 1;
	u->have_regs = 1;
	u->trusted = 1;
	return UNW_CONTINUE;
}

#include "unwind_no_table.h"

/*
 * Place of registers 0 to 15 in struct sigcontext_64, in words, four bits each; 16, the pc, is
 * word 16. (As an array it would be data, which bpftool's linker lays over that of other objects.)
 */
#define UNW_GREG_WORDS 0x76543210fa89becdULL

/* A register of the current frame, by DWARF number. Returns 0, or 1 if it is not known. */
static __always_inline int unw_reg(struct unw *u, __u32 reg, __u64 *ret)
{
	__u64 at = reg == UNW_REG_BX  ? u->bx_at :
		   reg == UNW_REG_R12 ? u->r12_at :
		   u->have_regs	      ? 0 :
					UNW_REG_UNKNOWN;

	if (at)
		return at == UNW_REG_UNKNOWN || unw_read8(u, at, ret);
	if (reg >= BPFPROF_NR_REGS)
		return 1;
	/* what the compiler knows and the verifier does not */
	UNW_OPAQUE(reg);
	reg &= 31;
	if (u->regs_at) {
		__u64 word = reg == UNW_REG_PC ? reg : UNW_GREG_WORDS >> (reg * 4) & 15;

		return unw_read8(u, u->regs_at + word * 8, ret);
	}
	u->other = 1;
	*ret = u->regs[reg];
	return 0;
}

/* Makes fp that of the caller. Returns 0, or 1 if it cannot be read. */
static __always_inline int unw_restore_fp(struct unw *u, const struct bpfprof_rule *rule, __u64 cfa)
{
	switch (rule->fp) {
	case BPFPROF_FP_SAME:
		return 0;
	case BPFPROF_FP_UNDEF:
		/* an odd value is neither the end mark 0 nor a frame pointer */
		u->fp = 1;
		u->fp_at = UNW_FP_NOTED;
		return 0;
	default:
		u->fp_at = (rule->fp == BPFPROF_FP_CFA ? cfa :
			    rule->fp == BPFPROF_FP_FP  ? unw_use_fp(u) :
							 u->sp) +
			   rule->fp_off;
		return unw_peek8(u, u->fp_at, &u->fp);
	}
}

/*
 * The goroutine that the thread works for (m.curg), by the rule of a function that switches stacks,
 * and the bounds of its stack. *ret_g is 0 if there is none: the thread is in the scheduler.
 * Returns 0, or 1 if the words cannot be read or contradict each other.
 */
static __always_inline int unw_go_curg(struct unw *u, __u64 *ret_g, __u64 stack[2])
{
	__u64 tp = UNW_THREAD_POINTER(u), off = (__u64)(__s64)u->rule.cfa_off, g, m, back;
	__u32 g_m = BPFPROF_GO_G_M(u->rule.fp_off);

	if (!tp)
		return 1;
	if (u->rule.reg && unw_read_user(u, &off, sizeof(off),
					 u->map_start - u->map.skew + (__u32)u->rule.cfa_off))
		return 1;
	if (unw_read_user(u, &g, sizeof(g), tp + off) || !g ||
	    unw_read_user(u, &m, sizeof(m), g + g_m) || !m ||
	    unw_read_user(u, ret_g, sizeof(*ret_g), m + BPFPROF_GO_M_CURG(u->rule.fp_off)))
		return 1;
	if (!*ret_g)
		return 0;
	return unw_read_user(u, &back, sizeof(back), *ret_g + g_m) || back != m ||
	       unw_read_user(u, stack, 2 * sizeof(*stack), *ret_g);
}

/* Moves on to the caller, whose return address stands at sp. */
static __always_inline int unw_go_return(struct unw *u, __u64 sp)
{
	__u64 pc;

	if (sp & 7 || unw_read_ra(u, sp, &pc))
		return BPFPROF_STACK_read_fault;
	unw_caller(u, pc, sp + 8, u->fp);
	u->trusted = 1;
	return UNW_CONTINUE;
}

/*
 * asmcgocall, behind a call of C: its frame is on g0's stack, and says where the goroutine's was
 * left.
 */
static __always_inline int unw_go_asmcgocall(struct unw *u)
{
	__u64 depth, g, hi;

	if (unw_read8(u, u->sp + (__s64)u->rule.aux, &depth) ||
	    unw_read8(u, u->sp + (__s64)u->rule.bx_off, &g))
		return BPFPROF_STACK_read_fault;
	if (!g)
		return unw_go_return(u, depth);
	if (unw_read_user(u, &hi, sizeof(hi), g + BPFPROF_GO_STACK_HI))
		return BPFPROF_STACK_no_goroutine;
	return unw_go_return(u, hi - depth);
}

/*
 * A function of Go's runtime that switches stacks: u->rule says where its structures are. Until it
 * has switched, it is a function without a frame.
 */
static __always_inline int unw_step_go(struct unw *u)
{
	__u64 g, stack[2] = {}, at, sp, pc, fp;

	/* what decides is not on the stack */
	u->other = 1;
	u->bx_at = UNW_REG_UNKNOWN;
	u->r12_at = UNW_REG_UNKNOWN;
	if (u->rule.cfa == BPFPROF_CFA_GO_ASMCGOCALL && !u->exact)
		return unw_go_asmcgocall(u);
	if (unw_go_curg(u, &g, stack))
		return BPFPROF_STACK_no_goroutine;
	if (g && u->sp - stack[0] < stack[1] - stack[0])
		return unw_go_return(u, u->sp);
	if (u->rule.cfa == BPFPROF_CFA_GO_MORESTACK && (!g || u->go_execute))
		/* the goroutine was preempted and let go: it may run on another thread by now */
		return BPFPROF_STACK_complete;
	if (!g || u->rule.cfa == BPFPROF_CFA_GO_ASMCGOCALL)
		return BPFPROF_STACK_no_goroutine;
	at = g + (__s64)u->rule.aux;
	if (unw_read_user(u, &sp, sizeof(sp), at) || sp - stack[0] >= stack[1] - stack[0])
		return BPFPROF_STACK_no_goroutine;
	if (u->rule.cfa == BPFPROF_CFA_GO_SYSTEMSTACK)
		return unw_go_return(u, sp);
	/* morestack never returns: the function that called it is begun anew */
	if (unw_read_user(u, &pc, sizeof(pc), at + 8) ||
	    unw_read_user(u, &fp, sizeof(fp), g + (__s64)u->rule.bx_off))
		return BPFPROF_STACK_no_goroutine;
	unw_caller(u, pc, sp, fp);
	u->fp_at = UNW_FP_NOTED;
	u->trusted = 1;
	return UNW_CONTINUE;
}

/* Where the caller's r12 was saved. */
static __always_inline __u64 unw_r12_at(const struct unw *u, const struct bpfprof_rule *rule,
					__u64 cfa)
{
	if (rule->reg == BPFPROF_R12_UNKNOWN || rule->cfa == BPFPROF_CFA_REG ||
	    rule->cfa == BPFPROF_CFA_SP_INDEX)
		return UNW_REG_UNKNOWN;
	return rule->reg == BPFPROF_R12_SAME ? u->r12_at : cfa - rule->reg * 8;
}

/* A step by a rule. */
static __always_inline int unw_step_rule(struct unw *u, const struct bpfprof_rule *rule)
{
	__u64 cfa, pc;
	__s64 cfa_off = rule->cfa_off, aux = rule->aux;

	switch (rule->cfa) {
	case BPFPROF_CFA_SP:
		cfa = u->sp + cfa_off;
		break;
	case BPFPROF_CFA_FP:
		cfa = unw_use_fp(u) + cfa_off;
		break;
	case BPFPROF_CFA_REG:
	case BPFPROF_CFA_SP_INDEX:
		if (unw_reg(u, rule->reg, &cfa))
			return BPFPROF_STACK_unsupported;
		if (rule->cfa == BPFPROF_CFA_REG) {
			cfa += cfa_off;
			break;
		}
		if (unw_read8(u, u->sp + cfa_off + cfa * 8, &cfa))
			return BPFPROF_STACK_read_fault;
		cfa += aux;
		break;
	case BPFPROF_CFA_SP_DEREF:
	case BPFPROF_CFA_FP_DEREF:
		if (unw_read8(u,
			      (rule->cfa == BPFPROF_CFA_SP_DEREF ? u->sp : unw_use_fp(u)) + cfa_off,
			      &cfa))
			return BPFPROF_STACK_read_fault;
		cfa += aux;
		break;
	case BPFPROF_CFA_PLT:
		cfa = u->sp + cfa_off + ((u->pc & 15) >= (__u64)aux ? 8 : 0);
		break;
	case BPFPROF_CFA_SIGNAL:
		return unw_step_signal(u);
	case BPFPROF_CFA_GO_SYSTEMSTACK:
	case BPFPROF_CFA_GO_MORESTACK:
	case BPFPROF_CFA_GO_ASMCGOCALL:
		return UNW_CALL(unw_step_go, u);
	default:
		return BPFPROF_STACK_unsupported;
	}

	/* fp first: it was saved below the return address, so that one window serves both */
	if (unw_restore_fp(u, rule, cfa))
		return BPFPROF_STACK_read_fault;

	switch (rule->ra) {
	case BPFPROF_RA_CFA:
	case BPFPROF_RA_INTERRUPTED:
	case BPFPROF_RA_GO_EXECUTE:
		if (unw_read_ra(u, cfa - 8, &pc))
			return BPFPROF_STACK_read_fault;
		break;
	case BPFPROF_RA_OFF:
		if (unw_read_ra(u, cfa + aux, &pc))
			return BPFPROF_STACK_read_fault;
		break;
	case BPFPROF_RA_CALL:
		if (unw_read_ra(u, cfa - 8, &pc))
			return BPFPROF_STACK_read_fault;
		if (!UNW_CALL(unw_check_call, u, pc))
			return BPFPROF_STACK_bad_frame;
		break;
	case BPFPROF_RA_REG:
		if (unw_reg(u, (__u32)rule->aux, &pc))
			return BPFPROF_STACK_unsupported;
		break;
	default:
		return BPFPROF_STACK_complete;
	}
	/* a return address of 0 was put there to end the stack */
	if (!pc)
		return BPFPROF_STACK_complete;
	if (pc == u->pc && cfa == u->sp)
		return BPFPROF_STACK_bad_frame;
	if (rule->bx_off)
		u->bx_at =
			rule->bx_off == BPFPROF_BX_UNKNOWN ? UNW_REG_UNKNOWN : cfa + rule->bx_off;
	u->r12_at = unw_r12_at(u, rule, cfa);
	unw_caller(u, pc, cfa, u->fp);
	u->exact = rule->ra == BPFPROF_RA_INTERRUPTED;
	u->go_execute |= rule->ra == BPFPROF_RA_GO_EXECUTE;
	u->trusted = 1;
	return UNW_CONTINUE;
}

/* There is room for it: u->nr is below u->max. */
static __always_inline void unw_add_frame(struct unw *u, __u64 addr)
{
	u->frames[u->nr & (BPFPROF_MAX_UFRAMES - 1)] = addr;
	u->nr++;
	u->hash = unw_mix(u->hash, addr);
}

/* The same as unw_step, but for UNW_GUESS: unw_step_guess has to do the rest. */
static __always_inline int unw_step_known(struct unw *u)
{
	__u64 addr = u->pc - !u->exact;
	/* the kernel's half holds no user code: such a pc is wild (and would upset the search's
	 * signed differences) */
	int wild = (addr >> 63) != 0, miss = wild || unw_find_map(u, addr);

	if (miss || u->map.chunk == BPFPROF_CHUNK_NOT_LOADED) {
		/* a frame pointer may lead anywhere, and be asked for again and again; a table is
		 * asked for until it is there, or known not to be */
		if (!miss ? !(u->proc.flags & BPFPROF_PROC_NO_LOAD) :
			    !wild && u->trusted && !(u->proc.flags & BPFPROF_PROC_NO_RAW))
			return UNW_MISS;
		/* where a wild pc leads is nobody's frame; but the interrupted pc is a fact */
		if (miss && !u->have_regs)
			return BPFPROF_STACK_no_mapping;
	}
	if (u->nr >= u->max)
		return BPFPROF_STACK_too_deep;
	unw_add_frame(u, addr);
	if (miss)
		return BPFPROF_STACK_no_mapping;

	u->rule.cfa = BPFPROF_CFA_NONE;
	if (u->map.chunk < BPFPROF_MAX_CHUNKS)
		unw_find_rule(u, addr, &u->rule);
	UNW_FORGET();
	if (u->rule.cfa == BPFPROF_CFA_NONE) {
		/* code is read */
		u->other = 1;
		return UNW_CALL(unw_begin_no_table, u);
	}
	return unw_step_rule(u, &u->rule);
}

/*
 * Records the current frame and moves on to its caller.
 * Returns UNW_CONTINUE; UNW_MISS if a mapping or table has to be loaded first; otherwise how the
 * stack ended.
 */
static __always_inline int unw_step(struct unw *u)
{
	int result = unw_step_known(u);

	return result == UNW_GUESS ? unw_step_guess(u) : result;
}

/*
 * Starts at an interrupted frame: u->regs, proc, max, uret_pc and uret are set. ra: rip is a return
 * address after all.
 */
static __always_inline void unw_start(struct unw *u, __u64 hash, int ra)
{
	u->pc = u->regs[UNW_REG_PC];
	u->sp = u->regs[UNW_REG_SP];
	u->fp = u->regs[UNW_REG_FP];
	u->exact = !ra;
	u->ra = ra != 0;
	u->have_regs = 1;
	u->regs_at = 0;
	u->bx_at = 0;
	u->r12_at = 0;
	u->trusted = 1;
	u->nr = 0;
	u->hash = hash;
	u->map_start = 0;
	u->map.size = 0;
	u->win_addr = 0;
	u->win_sz = 0;
	u->word_cnt = 0;
	u->fp_at = UNW_FP_SAMPLED;
	u->fp_mask = 0;
	u->other = 0;
	u->go_execute = 0;
	u->looks = 0;
}

#endif
