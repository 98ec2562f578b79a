// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The kernel's part of a stack. The kernel's own unwinder is the dearest part of a sample, 0.2 us a
 * frame. A thread that has slept is still in the frames that it slept in, and which these are
 * follows from the return addresses there and where they lie: the ORC tables have one frame size
 * for each. So a stack whose words look like one that was walked before is not walked again, unless
 * it has to be sent.
 *
 * What a system call has called lies at a random distance from the top, with what others have left
 * in between (CONFIG_RANDOMIZE_KSTACK_OFFSET). So the words that count end with the return address
 * into the function that called it, the base: there is one such function, and it is learnt. A stack
 * is remembered only if that address is there once: it may be left in what is not initialized, too.
 */
#include "common.bpf.h"

/* What __switch_to_asm keeps at the top of a stack, struct inactive_task_frame: gone meanwhile. */
#define SWITCH_FRAME_SZ 56
/* Where the kernel's code and its modules are: Documentation/arch/x86/x86_64/mm.rst */
#define TEXT_START 0xffffffff80000000ULL
#define TEXT_SZ 0x7f000000ULL

/* Behind the user frames. */
static __always_inline __u64 *kernel_frames(struct unw *u)
{
	__u32 at = u->rec.user_cnt;

	if (at > BPFPROF_MAX_UFRAMES)
		at = BPFPROF_MAX_UFRAMES;
	return &u->frames[at];
}

/* The hash of the kernel frames in a slot; keeps the outermost but one. A function of its own, so
 * that the verifier follows the loop once and not for each that comes here. */
__noinline __u64 kstack_hash(__u32 slot, __u32 cnt)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u64 *frames, hash = bp_config.seed;

	/* more there are not; said so that the verifier follows the loop for one case only */
	if (!s || s->u.rec.user_cnt > BPFPROF_MAX_UFRAMES)
		return 0;
	frames = &s->u.frames[s->u.rec.user_cnt];
	for (__u32 i = 0; i < BPFPROF_MAX_KFRAMES && i < cnt; i++)
		hash = unw_mix(hash, frames[i]);
	if (cnt >= 2 && cnt <= BPFPROF_MAX_KFRAMES)
		s->kernel_outer = frames[cnt - 2];
	return hash;
}

__hidden __u64 kstack_walk(void *ctx, struct scratch *s)
{
	long sz = bpf_get_stack(ctx, kernel_frames(&s->u), BPFPROF_MAX_KFRAMES * 8, 0);
	__u32 cnt = sz > 0 ? (__u32)sz / 8 : 0;

	s->u.rec.kernel_cnt = cnt;
	s->kernel_left = 0;
	return kstack_hash(s->u.slot, cnt);
}

/* Words of a stack that are looked at at first: what comes before the base, mostly. */
#define FEW_WORDS 128
#define MAX_WORDS (sizeof(((struct scratch *)0)->words) / 8)

/* Reads the stack that the current task has slept with into s->words, as far as max goes. Returns
 * how many words there are. */
static __always_inline __u64 read_words(struct scratch *s, __u64 max)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 sp = BPF_CORE_READ(task, thread.sp) + SWITCH_FRAME_SZ;
	__u64 cnt = ((__u64)BPF_CORE_READ(task, stack) + COMPAT_THREAD_SIZE -
		     sizeof(struct pt_regs) - sp) /
		    8,
	      sz = cnt * 8;

	if (sz > max * 8)
		sz = max * 8;
	return bpf_probe_read_kernel(s->words, sz, (const void *)sp) ? 0 : cnt;
}

/* What the stack looks like that the current task has slept with, up to the base, or all; 0: it is
 * too deep, or cannot be read. */
__noinline __u64 kstack_look(__u32 slot, __u64 base)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u64 key = bp_config.seed, cnt;

	if (!s)
		return 0;
	cnt = read_words(s, FEW_WORDS);
	if (!cnt)
		return 0;
	for (__u32 i = 0; i < FEW_WORDS && i < cnt; i++) {
		if (s->words[i] - TEXT_START >= TEXT_SZ)
			continue;
		key = unw_mix(key, s->words[i] << 32 | i);
		if (s->words[i] == base)
			return key;
	}
	return cnt <= FEW_WORDS ? key : 0;
}

/* How often is the base on it? Without a branch: the verifier would follow each. */
__noinline int kstack_count(__u32 slot, __u64 base)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u64 cnt, other, negative;
	int ret = 0;

	if (!s)
		return 0;
	cnt = read_words(s, MAX_WORDS);
	for (__u32 i = 0; i < MAX_WORDS && i < cnt; i++) {
		other = s->words[i] ^ base;
		negative = -other;
		UNW_OPAQUE(negative);
		other = (other | negative) >> 63;
		UNW_OPAQUE(other);
		ret += other ^ 1;
	}
	return cnt <= MAX_WORDS ? ret : 2;
}

/* outer: of a walked stack, who was called first but one. Who loses the CPU may have lost it on the
 * way out of the system call. */
static __always_inline void learn_base(__u32 wait, __u64 outer)
{
	if (BPFPROF_WAIT_SYSCALL(wait) != BPFPROF_NO_SYSCALL &&
	    BPFPROF_WAIT_STATE(wait) != BPFPROF_STATE_runnable)
		bp_control.kstack_base = outer;
}

__hidden __u64 kstack_slept(void *ctx, struct scratch *s)
{
	__u64 base = bp_control.kstack_base, key = kstack_look(s->u.slot, base), outer;
	struct known_kstack *known, new = {};
	int bases;

	known = bpf_map_lookup_elem(&bp_kstacks, &key);
	if (known) {
		s->u.rec.kernel_cnt = known->cnt;
		s->kernel_left = 1;
		return known->hash;
	}
	new.hash = kstack_walk(ctx, s);
	new.cnt = s->u.rec.kernel_cnt;
	outer = s->kernel_outer;
	/* of a walk that has failed there is nothing to remember */
	if (new.cnt < 2)
		return new.hash;
	if (!base) {
		learn_base(s->u.rec.wait, outer);
		return new.hash;
	}
	bases = kstack_count(s->u.slot, base);
	if (key && (!bases || (bases == 1 && outer == base)))
		bpf_map_update_elem(&bp_kstacks, &key, &new, BPF_ANY);
	return new.hash;
}
