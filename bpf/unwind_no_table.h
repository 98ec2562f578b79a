/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * A step where no table helps: code that is made at run time, hand-written assembly, code that could
 * not be followed. Part of unwind.h, which includes it.
 *
 * There is no rule to go by, so that a caller has to be proved: a call stands before its return
 * address, and that call can have led to the frame it is the caller of. Registers and words of the
 * stack hold anything, and most of what looks like an address of code was never called.
 */
#ifndef BPFPROF_UNWIND_NO_TABLE_H
#define BPFPROF_UNWIND_NO_TABLE_H

/* A frame pointer may point this far above the stack pointer, in bytes. */
#define UNW_FP_REACH (1U << 20)
/* Functions are mostly shorter, in bytes; those that keep no frame by far. */
#define UNW_FUNC_REACH (1U << 20)
#define UNW_LEAF_REACH (1U << 16)

/* What a walk may take to look for calls in code, by reads. One that fails takes as long as some ten, and a stack
 * can be made of which all fail, up to 16 for each frame. Those that succeed are fewer than this in any walk. */
#define UNW_LOOKS 16384
#define UNW_FAILED_LOOK 16

/* A result beside those of a step: the caller has to be guessed. */
#define UNW_GUESS 0x102

/* ---- what code says ---- */

/* What may stand before a return address, a bit each. */
#define UNW_INDIRECT_CALL 1
#define UNW_DIRECT_CALL 2 /* of u->target */
#define UNW_NOT_READ 4	  /* the code could not be read: it has not been run of late */

/* Has the code that was to be read just now gone with the process that has made it? Then a call may
 * have been there. */
#ifndef UNW_CODE_IS_GONE
#define UNW_CODE_IS_GONE(u) 0
#endif

/* Is m the ModRM byte of an indirect call (ff /2) that has n bytes in all? Intel SDM, volume 2,
 * table 2-2. */
static __always_inline int unw_is_call(__u8 m, __u32 n)
{
	if (n == 2)
		return (m & 0xf8) == 0xd0 || ((m & 0xf8) == 0x10 && m != 0x14 && m != 0x15);
	if (n == 3)
		return m == 0x14 || ((m & 0xf8) == 0x50 && m != 0x54);
	if (n == 4)
		return m == 0x54;
	if (n == 6)
		return m == 0x15 || ((m & 0xf8) == 0x90 && m != 0x94);
	return m == 0x14 || m == 0x94;
}

/* Which calls may the bytes before addr be? e8 rel32 and ff /2 can both be in them. */
static __always_inline int unw_call_before(struct unw *u, __u64 addr)
{
	int calls = 0;
	__u8 b[8];

	if (u->looks >= UNW_LOOKS)
		return UNW_NOT_READ;
	u->looks++;
	if (unw_read_user(u, b, sizeof(b), addr - sizeof(b))) {
		u->looks += UNW_FAILED_LOOK;
		return UNW_CODE_IS_GONE(u) ? UNW_INDIRECT_CALL : UNW_NOT_READ;
	}
	if (b[3] == 0xe8) {
		__u32 rel = b[4] | b[5] << 8 | b[6] << 16 | (__u32)b[7] << 24;

		u->target = addr + (__s64)(__s32)rel;
		calls = UNW_DIRECT_CALL;
	}
	if ((b[6] == 0xff && unw_is_call(b[7], 2)) || (b[5] == 0xff && unw_is_call(b[6], 3)) ||
	    (b[4] == 0xff && unw_is_call(b[5], 4)) || (b[2] == 0xff && unw_is_call(b[3], 6)) ||
	    (b[1] == 0xff && unw_is_call(b[2], 7)))
		calls |= UNW_INDIRECT_CALL;
	return calls;
}

#define UNW_ENDBR 0xfa1e0ff3U

/* Does it begin with push %rbp; mov %rsp, %rbp, in one of the encodings? Without branches: the
 * verifier follows every way through them. */
static __always_inline __u64 unw_is_frame(__u64 code)
{
	__u64 a = (__u32)code ^ 0xe5894855U, b = (__u32)code ^ 0xec8b4855U;

	UNW_OPAQUE(a);
	UNW_OPAQUE(b);
	/* the highest bit is set of what was 0 */
	return ((a - 1) | (b - 1)) >> 63;
}

/* The bytes at addr, behind an endbr64; 0 if they cannot be read. */
static __always_inline __u64 unw_first_code(struct unw *u, __u64 addr)
{
	__u64 code = 0;

	if (unw_read_user(u, &code, sizeof(code), addr))
		return 0;
	return (__u32)code == UNW_ENDBR ? code >> 32 : code;
}

/* Does the function at addr make a frame, perhaps behind an instruction or two? Returns 0, or
 * UNW_FRAME and the two bytes behind that. */
#define UNW_FRAME 0x10000
static __always_inline __u32 unw_sets_frame(struct unw *u, __u64 addr)
{
	__u64 lo = 0, hi = 0, sets = 0;

	if (unw_read_user(u, &lo, sizeof(lo), addr) || unw_read_user(u, &hi, sizeof(hi), addr + 8))
		return 0;
#pragma GCC unroll 10
	for (int i = 0; i < 10; i++) {
		sets |= -unw_is_frame(lo) & ((lo >> 32 & 0xffff) | UNW_FRAME);
		lo = lo >> 8 | hi << 56;
		hi >>= 8;
	}
	return (__u32)sets;
}

/*
 * May rbp be the frame of the function at addr? Not if that goes on with a push of a constant (6a)
 * which is not there. One that makes no frame at its beginning may do so later: V8's own functions,
 * which do, mark their frames with small constants, where those of others have an address.
 */
static __always_inline int unw_has_frame(struct unw *u, __u64 addr)
{
	__u32 sets = unw_sets_frame(u, addr);
	__u64 mark;

	if (unw_read_user(u, &mark, sizeof(mark), u->fp - 8))
		return 1;
	if ((sets & 0xff) == 0x6a)
		return mark == (__u64)(__s64)(__s8)(sets >> 8);
	return sets || mark < 256;
}

/* What a signal handler returns to: mov $__NR_rt_sigreturn, %eax or %rax; syscall. */
static __always_inline int unw_is_sigreturn(struct unw *u, __u64 addr)
{
	__u64 code = 0;

	if (unw_read_user(u, &code, sizeof(code), addr))
		return 0;
	if ((code & 0xffffffffffffffULL) == 0x050f0000000fb8ULL)
		return 1;
	return code == 0x0f0000000fc0c748ULL && !unw_read_user(u, &code, sizeof(code), addr + 1) &&
	       code == 0x050f0000000fc0c7ULL;
}

/* Where a function returns to that makecontext has begun: mov %rbx, %rsp (glibc's
 * __start_context). */
static __always_inline int unw_starts_context(struct unw *u, __u64 ra)
{
	return (unw_first_code(u, ra) & 0xffffff) == 0xdc8948;
}

/*
 * Does the code at ra take rsp from its frame, mov disp8(%rbp), %rsp, or mov disp8(%rbp), %rcx; lea
 * (%rbp,%rcx,8), %rsp? So does HotSpot's interpreter where a method returns to that it has not
 * called but jumped to; no call stands before that.
 */
static __always_inline int unw_is_return_entry(struct unw *u, __u64 ra)
{
	__u64 code = unw_first_code(u, ra);

	return (code & 0xffffff) == 0x658b48 ||
	       (code & 0xffffffff00ffffffULL) == 0xcd648d48004d8b48ULL;
}

/* ---- callers that may be ---- */

/*
 * Up to 6.12 all functions that are active share 512 bytes of stack, of which the search for a
 * mapping takes an eighth: so what is found lies in struct unw, and the parts of a step are called
 * one after the other.
 */
#define UNW_BY_FP 0 /* numbers in u->guess: the caller that rbp leads to */
#define UNW_AT_SP 1 /* the one whose return address is on top of the stack */

/* The frame pointer, if it lies above the stack pointer. Returns whether there is a guess. */
static __always_inline int unw_guess_by_fp(struct unw *u)
{
	struct unw_guess *g = &u->guess[UNW_BY_FP];

	if (u->fp - u->sp >= UNW_FP_REACH || u->fp & 7 || unw_read8(u, u->fp, &g->fp) ||
	    unw_read_ra(u, u->fp + 8, &g->ra))
		return 0;
	g->sp = u->fp + 16;
	return 1;
}

#define UNW_RA_NOT_SAID 1
/*
 * Where the return address of an interrupted function is that has no frame yet, or no more: its next
 * instruction is push %rbp or the mov %rsp, %rbp behind it, or the pop or ret at its end. HotSpot
 * pushes behind mov %eax, disp32(%rsp), which looks whether there is enough stack. Bytes above rsp,
 * or UNW_RA_NOT_SAID.
 */
static __always_inline __u32 unw_ra_by_insn(struct unw *u)
{
	__u64 code = unw_first_code(u, u->pc);
	__u8 before = 0;

	if ((__u8)code == 0x55 || (code & 0xff00000000ffffffULL) == 0x5500000000248489ULL ||
	    (code & 0xfe) == 0xc2 || (__u16)code == 0xc3f3 || (__u16)code == 0xc3f2)
		return 0;
	if ((__u8)code == 0x5d)
		return 8;
	if (unw_is_frame(code << 8 | 0x55) &&
	    !unw_read_user(u, &before, sizeof(before), u->pc - 1) && before == 0x55)
		return 8;
	return UNW_RA_NOT_SAID;
}

/* Of an interrupted function. Returns 0: there is no guess; 1: there is one; 2: its next instruction
 * says the same. */
static __always_inline int unw_guess_at_sp(struct unw *u)
{
	struct unw_guess *g = &u->guess[UNW_AT_SP];
	__u32 at = unw_ra_by_insn(u);
	int said = at != UNW_RA_NOT_SAID;

	at = said ? at : 0;
	g->fp = u->fp;
	if ((at && unw_read8(u, u->sp, &g->fp)) || unw_read_ra(u, u->sp + at, &g->ra))
		return 0;
	g->sp = u->sp + at + 8;
	return 1 + said;
}

/* ---- what a call can have led to ---- */

/* Is there a rule for addr that a compiler, or whoever wrote the code, has stated? */
static __always_inline int unw_is_stated(struct unw *u, __u64 addr)
{
	if (unw_find_map(u, addr) || u->map.chunk >= BPFPROF_MAX_CHUNKS)
		return 0;
	unw_find_rule(u, addr, &u->rule);
	return u->rule.cfa != BPFPROF_CFA_NONE && u->rule.ra != BPFPROF_RA_CALL;
}

/* Is there what may be the beginning of the current function? */
static __always_inline int unw_may_begin(const struct unw *u, __u64 target)
{
	return target - u->code_start < u->code_size && u->pc - target < UNW_FUNC_REACH;
}

#define UNW_UNLESS_STATED 2
/* Is rbp what it was when the thread was interrupted? Then the current function may have no frame yet:
 * it was interrupted, or what it has called leaves rbp alone, as the way out of line does by which V8's
 * baseline code makes its frame. */
static __always_inline int unw_may_lack_frame(const struct unw *u)
{
	return u->have_regs || (!u->regs_at && u->fp == u->regs[UNW_REG_FP]);
}

/*
 * May a call of `target`, which is no beginning of the callee, have led to it all the same? By a jump
 * there: at once, as the stubs of the PLT do, or later on. What a compiler made for C returns to its
 * caller: 2 is returned for yes, if there is no such rule. What makes a frame of its own mostly keeps
 * it: where the current function may have none, and rbp is that frame, a caller in between is missing.
 */
static __always_inline int unw_may_jump(struct unw *u, __u64 target)
{
	__u64 code = unw_first_code(u, target);

	/* jmp rel32, rel8, *disp(%rip), bnd jmp *disp(%rip), jmp *%reg */
	if ((__u8)code == 0xe9 || (__u8)code == 0xeb || (__u16)code == 0x25ff ||
	    (code & 0xffffff) == 0x25fff2 || (code & 0xf8ff) == 0xe0ff ||
	    (code & 0xf8ffff) == 0xe0ff41)
		return 1;
	return code && !(unw_may_lack_frame(u) && unw_has_frame(u, target)) ? UNW_UNLESS_STATED : 0;
}

/* May what stands before the return address that was guessed have led to the current frame? 0, 1 or
 * UNW_UNLESS_STATED. */
static __always_inline int unw_may_lead(struct unw *u, __u32 which)
{
	struct unw_guess *g = &u->guess[which & 1];
	int calls, may;

	g->target = 0;
	calls = unw_call_before(u, g->ra);
	if (calls & UNW_DIRECT_CALL) {
		may = unw_may_begin(u, u->target) ? 1 : unw_may_jump(u, u->target);
		g->target = may ? u->target : 0;
		if (may && !(may == UNW_UNLESS_STATED && calls & UNW_INDIRECT_CALL))
			return may;
	}
	return calls & UNW_INDIRECT_CALL || (!calls && unw_is_return_entry(u, g->ra));
}

/* Is the guess possible? */
static __always_inline int unw_is_led(struct unw *u, __u32 which)
{
	int may = UNW_CALL(unw_may_lead, u, which);

	return may == UNW_UNLESS_STATED ? !UNW_CALL(unw_is_stated, u, u->guess[which].target) : may;
}

/* Is ra, which a rule led to, what a call has left, or the way back of a signal handler? 0, 1 or
 * UNW_NOT_READ. */
static __always_inline int unw_was_called(struct unw *u, __u64 ra)
{
	int calls = unw_call_before(u, ra);

	return calls == UNW_NOT_READ ? calls : calls || unw_is_sigreturn(u, ra);
}

/* The same, of a rule that was worked out: 0 or 1. The code of an object stays what it was when its
 * table was made; what has gone out of memory is believed, for this is but a check. */
static __always_inline int unw_check_call(struct unw *u, __u64 ra)
{
	int called = unw_was_called(u, ra), mapped = !unw_find_map(u, ra - 1);

	if (!mapped || u->map.chunk >= BPFPROF_MAX_CHUNKS)
		u->other = 1;
	return called == UNW_NOT_READ ? mapped : called;
}

/* ---- which guess is right ---- */

/* Of the stack between rsp and rbp, what is looked at: words, and words that may be return addresses
 * of the same mapping. */
#define UNW_SKIP_WORDS 64
#define UNW_EQUAL_WORDS 16 /* at a time: the verifier follows each */
#define UNW_SKIP_CALLS 16

/* Of the words between rsp and rbp, at most UNW_EQUAL_WORDS from number `from` on: notes which are
 * what rbp is. */
static __always_inline int unw_equal_words(struct unw *u, __u32 from)
{
	__u32 at = u->below_at, cnt = u->below_cnt;
	__u64 v, found = 0;

	for (__u32 i = 0; i < UNW_EQUAL_WORDS && from + i < cnt; i++) {
		v = UNW_WORD(u->win + ((at + (from + i) * 8) & (UNW_WINDOW - 1))) ^ u->fp;
		/* without a branch, which the verifier would follow */
		v |= -v;
		UNW_OPAQUE(v);
		found |= ((v >> 63) ^ 1) << i;
	}
	u->below_equal |= found << from;
	return 0;
}

/* The number of the lowest bit that is set. */
static __always_inline __u32 unw_lowest(__u64 bits)
{
	__u32 n = 0, shift;

#pragma GCC unroll 8
	for (shift = 32; shift; shift /= 2) {
		/* all ones if the lower half has none */
		__u64 none = ((bits & ((1ULL << shift) - 1)) - 1) >> 63;

		UNW_OPAQUE(none);
		n += shift & (__u32)-none;
		bits >>= shift & (__u32)-none;
	}
	return n;
}

/*
 * Does a call before ra lead to code near before the pc, and not before `from`, if that is no more
 * than the pc? Not to a function that makes a frame first of all and has called another one since:
 * its return address is in that frame, and ra is what an earlier call has left.
 */
static __always_inline int unw_leads_to(struct unw *u, __u64 ra, __u64 from)
{
	return unw_call_before(u, ra) & UNW_DIRECT_CALL && u->pc - u->target < UNW_LEAF_REACH &&
	       (from > u->pc || u->target >= from) &&
	       (u->have_regs || !unw_is_frame(unw_first_code(u, u->target)));
}

/* Notes where in the window the words between rsp and rbp are. Returns 0, or 1 if they cannot be
 * read. */
static __always_inline int unw_find_below(struct unw *u)
{
	__u32 at, cnt;
	__u64 v;

	if (unw_peek8(u, u->sp, &v))
		return 1;
	if (u->sp - u->win_addr > UNW_WINDOW / 2 && UNW_CALL(unw_fill, u, u->sp))
		return 1;
	at = (__u32)(u->sp - u->win_addr);
	cnt = u->win_sz > at ? (u->win_sz - at) / 8 : 0;
	if (cnt > (u->fp - u->sp) / 8)
		cnt = (__u32)((u->fp - u->sp) / 8);
	u->below_at = at;
	u->below_cnt = cnt;
	u->below_equal = 0;
	return 0;
}

/* Is the word there in the window a return address of the same mapping, whose call leads nearer to the
 * pc than target? */
static __always_inline int unw_skips_at(struct unw *u, __u32 at, __u64 target)
{
	__u64 v = UNW_WORD(u->win + (at & (UNW_WINDOW - 1)));

	return v - u->code_start < u->code_size && unw_leads_to(u, v, target + 1);
}

/*
 * Does rbp belong to a caller of the current function, which has no frame? Then the stack below has
 * what the function has saved: rbp itself, before it made use of it, right below its return
 * address; or a return address whose call leads nearer to the pc than `target`, which the call of
 * the frame at rbp leads to. A return entry of HotSpot's interpreter takes its stack from rbp, so
 * that this is its own.
 */
static __always_inline int unw_skips(struct unw *u)
{
	__u64 target = u->guess[UNW_BY_FP].target, v;
	__u32 at, cnt;

	if ((!u->exact && unw_is_return_entry(u, u->pc)) || unw_find_below(u))
		return 0;
	for (__u32 i = 0; i < UNW_SKIP_WORDS; i += UNW_EQUAL_WORDS)
		UNW_CALL(unw_equal_words, u, i);
	/* read back: the verifier would follow the rest for each way in which they are found */
	UNW_FORGET();
	at = u->below_at;
	cnt = u->below_cnt;
	v = u->below_equal;
	if (v) {
		v = UNW_WORD(u->win + ((at + (unw_lowest(v) + 1) * 8) & (UNW_WINDOW - 1)));
		if (UNW_CALL(unw_leads_to, u, v, target) || unw_is_return_entry(u, v))
			return 1;
	}
	for (__u32 i = 0; i < UNW_SKIP_CALLS && i < cnt && target; i++)
		if (UNW_CALL(unw_skips_at, u, at + i * 8, target))
			return 1;
	return 0;
}

#define UNW_UNCLEAR 2 /* neither guess is proved */
/*
 * Of an interrupted function with two callers that may be: has it pushed nothing, so that the one
 * whose return address is on top of the stack is right, and rbp is its caller's? What is left of
 * earlier calls looks the same, so that there has to be a call which leads nearer to the pc, or rbp
 * has to belong to the function in which that stands.
 */
static __always_inline int unw_choose(struct unw *u)
{
	__u64 ra = u->guess[UNW_AT_SP].ra, direct = u->guess[UNW_AT_SP].target;
	__u64 target = u->guess[UNW_BY_FP].target;

	if (target && !unw_may_begin(u, target))
		return ra - target < UNW_LEAF_REACH ? UNW_AT_SP : UNW_BY_FP;
	if (!direct)
		return target && ra - target < UNW_LEAF_REACH ? UNW_UNCLEAR : UNW_BY_FP;
	if (u->pc - direct >= UNW_LEAF_REACH || (target > direct && target <= u->pc))
		return UNW_BY_FP;
	return direct == u->pc || !unw_sets_frame(u, direct) ? UNW_AT_SP : UNW_BY_FP;
}

/* Something is missing behind the current frame, which has been added: it is taken back, since whoever records the stack
 * without what is missing adds it (leave_off in record.bpf.c). */
static __always_inline int unw_miss_behind(struct unw *u)
{
	u->nr--;
	return UNW_MISS;
}

/* A step to what is guessed. */
static __always_inline int unw_step_guess(struct unw *u)
{
	int said = u->have_regs ? UNW_CALL(unw_guess_at_sp, u) : 0;
	int leaf = said && unw_is_led(u, UNW_AT_SP) && !unw_find_map(u, u->guess[UNW_AT_SP].ra - 1);
	int which = UNW_AT_SP;
	struct unw_guess *g;

	if (!leaf || said == 1) {
		which = UNW_CALL(unw_guess_by_fp, u) && unw_is_led(u, UNW_BY_FP) ?
				(leaf ? UNW_CALL(unw_choose, u) : UNW_BY_FP) :
			leaf ? UNW_AT_SP :
			       UNW_UNCLEAR;
	}
	if (which == UNW_UNCLEAR || (which == UNW_BY_FP && UNW_CALL(unw_skips, u)))
		return BPFPROF_STACK_no_table;
	g = &u->guess[which & 1];
	/* what a JIT compiler has mapped since the list was made */
	if (unw_find_map(u, g->ra - 1))
		return u->proc.flags & BPFPROF_PROC_NO_RAW ? BPFPROF_STACK_no_table :
							     unw_miss_behind(u);
	unw_caller(u, g->ra, g->sp, g->fp);
	return UNW_CONTINUE;
}

/* ---- first functions ---- */

/* Of strings and pointers to them that execve takes: 3/4 of _STK_LIM (bprm_stack_limits in
 * fs/exec.c). */
#define UNW_MAX_ARG_SZ 0x600000ULL

/*
 * Is this what execve has left, so that nothing has called the current function? psABI, 3.4.1: rbp
 * is 0, rsp a multiple of 16 and points to argc, argv[], a null pointer, envp[] (figure 3.9), and
 * above them are the strings, in the same order.
 */
static __always_inline int unw_process_entry(struct unw *u)
{
	__u64 argc, argv0, null, env0;

	return !u->fp && !(u->sp & 15) && !unw_read8(u, u->sp, &argc) &&
	       argc - 1 < UNW_MAX_ARG_SZ / 8 && !unw_read8(u, u->sp + 8, &argv0) &&
	       argv0 - u->sp < UNW_MAX_ARG_SZ * 2 && !unw_read8(u, u->sp + 8 + argc * 8, &null) &&
	       !null && !unw_read8(u, u->sp + 16 + argc * 8, &env0) &&
	       (!env0 || env0 - argv0 - 1 < UNW_MAX_ARG_SZ);
}

/*
 * A step where no table helps.
 *   - A signal handler's way back is known by its instructions.
 *   - The outermost frame is that of a process's first code, right below what execve has left; and
 *     that of a context of makecontext, which no call has led to.
 *   - Otherwise the frame pointer, if it lies above the stack pointer and leads to a call that can
 *     have led here.
 *   - Otherwise, in the interrupted frame only: a function that has pushed nothing has its return
 *     address at sp.
 * What a table leads to is no frame if it follows no call. A frame pointer of 0 proves nothing, nor
 * does a return address of 0 that a frame pointer leads to: code keeps numbers in rbp.
 */
static __always_inline int unw_begin_no_table(struct unw *u)
{
	int called = u->have_regs || !u->trusted ? 1 : unw_was_called(u, u->pc);

	/* what is in a file, user space can read */
	if (called == UNW_NOT_READ && u->map.chunk < BPFPROF_MAX_CHUNKS &&
	    !(u->proc.flags & BPFPROF_PROC_NO_RAW))
		return unw_miss_behind(u);
	if (!called && !unw_starts_context(u, u->pc)) {
		u->nr--;
		return BPFPROF_STACK_bad_frame;
	}
	if (unw_is_sigreturn(u, u->pc))
		return unw_step_signal(u);
	if (!called || unw_process_entry(u))
		return BPFPROF_STACK_complete;
	u->code_start = u->map_start;
	u->code_size = u->map.size;
	u->trusted = 0;
	u->bx_at = UNW_REG_UNKNOWN;
	u->r12_at = UNW_REG_UNKNOWN;
	return UNW_GUESS;
}

#endif
