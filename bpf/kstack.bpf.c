// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The kernel's part of a stack. The kernel's own unwinder is the most expensive part of a sample, 0.2 us
 * a frame. A thread that has slept is still in the frames that it slept in, and a walk through these
 * follows from their return addresses: where the next one lies is told by the last one, since the
 * ORC tables have one frame size for each. So where those of a walk that is remembered stand in the
 * same places, a walk now would find the same. A remembered stack that has to be sent is walked.
 *
 * The walk does not say where the return addresses lie; a stack is remembered when each of them is
 * on it once only, for what is not initialized may have others in it, left from calls before. What
 * a system call has called lies at a random distance from the top, with such words in between
 * (CONFIG_RANDOMIZE_KSTACK_OFFSET): places are counted from where the thread slept, but for that of
 * the outermost frame, which is at the top. Of an exception or an interrupt that distance is always the
 * same, and counts: one in the kernel may have the frames of one in user space, and be within such a one.
 *
 * Should all of this be wrong somewhere, a sample would have another's stack, and nobody would see
 * it. So one in BPFPROF_CHECKED is walked all the same; what does not agree is counted.
 */
#include "common.bpf.h"

/* Where a thread that has slept had the return address of __switch_to_asm, from thread.sp on:
 * struct inactive_task_frame. In the same place is now that of what __schedule has called next,
 * and through which this program is reached: the first return address of what it slept in. */
#define SWITCH_RA_OFF 48
/* Where the kernel's code and its modules are: Documentation/arch/x86/x86_64/mm.rst */
#define TEXT_START 0xffffffff80000000ULL
#define TEXT_SZ 0x7f000000ULL
#define MAX_WORDS (sizeof(((struct scratch *)0)->words) / 8)
/* That are read at first: mostly all that are looked at. */
#define FEW_WORDS 80

/* Behind the user frames. */
static __always_inline __u64 *kernel_frames(struct unw *u)
{
	__u32 at = u->rec.user_cnt;

	if (at > BPFPROF_MAX_UFRAMES)
		at = BPFPROF_MAX_UFRAMES;
	return &u->frames[at];
}

/*
 * Loops are functions of their own, each for a part of what there is: the verifier follows every turn
 * of a loop, but a function once only, however often it is called.
 */
#define FRAMES_AT_ONCE 16
#define WORDS_AT_ONCE 16

/* The kernel frames of a slot, and how many; NULL: there is no such slot. */
static __always_inline __u64 *frames_in(__u32 slot, __u32 *cnt)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);

	if (!s)
		return NULL;
	*cnt = s->u.rec.kernel_cnt;
	return kernel_frames(&s->u);
}

static __always_inline __u64 *frame(__u64 *frames, __u32 nr)
{
	/* what the compiler knows of it the verifier does not */
	UNW_OPAQUE(nr);
	return &frames[nr % (BPFPROF_MAX_KFRAMES + 1)];
}

/* Which of a part of the kernel frames in a slot has that address; none: the number of the first one
 * behind the part, or of all. */
__noinline __u32 kstack_find_in_part(__u32 slot, __u64 addr, __u32 from)
{
	__u32 cnt, nr = from;
	__u64 *frames = frames_in(slot, &cnt);

	if (!frames)
		return from;
	for (__u32 i = 0; i < FRAMES_AT_ONCE && nr < cnt && *frame(frames, nr) != addr; i++)
		nr++;
	return nr;
}

/* Which of the kernel frames in a slot has that address; none: their number. */
static __always_inline __u32 find(__u32 slot, __u64 addr)
{
	__u32 found = 0, next;

	for (__u32 from = 0; from < BPFPROF_MAX_KFRAMES; from += FRAMES_AT_ONCE) {
		found = kstack_find_in_part(slot, addr, from);
		/* the compiler would count by what is found, of which the verifier knows nothing */
		next = from + FRAMES_AT_ONCE;
		UNW_OPAQUE(next);
		if (found != next)
			break;
	}
	return found;
}

/* Moves a part of the kernel frames in a slot `by` to the front. */
__noinline int kstack_move_part(__u32 slot, __u32 from, __u32 by)
{
	__u32 cnt;
	__u64 *frames = frames_in(slot, &cnt);

	if (!frames)
		return 0;
	for (__u32 i = 0; i < FRAMES_AT_ONCE && from + by + i < cnt; i++)
		*frame(frames, from + i) = *frame(frames, from + by + i);
	return 0;
}

/* Leaves the kernel frames in a slot out that stand before the one with that address. */
__noinline int kstack_begin_at(__u32 slot, __u64 addr)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u32 first = find(slot, addr);

	if (!s || !first || first >= s->u.rec.kernel_cnt)
		return 0;
	for (__u32 from = 0; from < BPFPROF_MAX_KFRAMES; from += FRAMES_AT_ONCE)
		kstack_move_part(slot, from, first);
	s->u.rec.kernel_cnt -= first;
	return 0;
}

/* `hash`, and a part of the kernel frames in a slot. */
__noinline __u64 kstack_hash_part(__u32 slot, __u32 from, __u64 hash)
{
	__u32 cnt;
	__u64 *frames = frames_in(slot, &cnt);

	if (!frames)
		return hash;
	for (__u32 i = 0; i < FRAMES_AT_ONCE && from + i < cnt; i++)
		hash = unw_mix(hash, *frame(frames, from + i));
	return hash;
}

/* Of the kernel frames in a slot. */
__noinline __u64 kstack_hash(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u64 hash = bp_config.seed;

	if (!s)
		return 0;
	for (__u32 from = 0; from < BPFPROF_MAX_KFRAMES && from < s->u.rec.kernel_cnt;
	     from += FRAMES_AT_ONCE)
		hash = kstack_hash_part(slot, from, hash);
	return hash;
}

__hidden __u64 kstack_walk(void *ctx, struct scratch *s, __u32 how)
{
	long sz = bpf_get_stack(ctx, kernel_frames(&s->u), BPFPROF_MAX_KFRAMES * 8, 0);

	s->u.rec.kernel_cnt = sz > 0 ? (__u32)sz / 8 : 0;
	s->kernel_left = 0;
	/* what this program is reached through is not always the same: its own parts are in it */
	if (how & RECORD_SLEPT && s->slept_ra)
		kstack_begin_at(s->u.slot, s->slept_ra);
	return kstack_hash(s->u.slot);
}

/* ---- the stack that the current task has slept with ---- */

/* Finds where it is: from s->slept on, s->slept_cnt words up to the registers of user space. */
static __always_inline void find_slept(struct scratch *s)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 top = (__u64)BPF_CORE_READ(task, stack) +
		    (bp_config.rdonly_cast ? bp_state.regs_off :
					     COMPAT_THREAD_SIZE - sizeof(struct pt_regs));

	s->slept = BPF_CORE_READ(task, thread.sp) + SWITCH_RA_OFF;
	s->slept_cnt = (top - s->slept) / 8;
}

/* Reads the first of its words into s->words. Returns 0 if it has. */
static __always_inline long read_slept(struct scratch *s, __u64 cnt)
{
	__u64 sz = cnt * 8;

	/* it is this that is compared, not cnt: not all kernels conclude from one to the other */
	UNW_OPAQUE(sz);
	if (sz > sizeof(s->words))
		return -1;
	return bpf_probe_read_kernel(s->words, sz, (const void *)s->slept);
}

/* ---- a stack that was walked before ---- */

static __always_inline __u16 *place(struct cached_kstack *k, __u32 nr)
{
	/* what the compiler knows of it the verifier does not */
	UNW_OPAQUE(nr);
	return &k->places[nr % MAX_KSTACK_PLACES];
}

/* The key of a kernel stack: the system call, and the function that called schedule(). Threads with
 * equal keys are expected to have slept in the same frames. 0: the stack cannot be read. */
__noinline __u64 kstack_key(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u64 caller = bp_state.kstack_caller, word;

	if (!s)
		return 0;
	find_slept(s);
	if (read_slept(s, s->slept_cnt < FEW_WORDS ? s->slept_cnt : FEW_WORDS))
		return 0;
	s->slept_ra = s->words[0];
	word = s->words[caller % MAX_WORDS];
	if (caller >= FEW_WORDS || caller >= s->slept_cnt || word - TEXT_START >= TEXT_SZ)
		word = 0;
	return unw_mix(unw_mix(bp_config.seed, word), s->u.rec.wait) | 1;
}

/* Of what s->kstack says, and of the words in its places; 0: there are none. */
__noinline __u64 kstack_checksum(__u32 slot)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u64 sum, at, cnt, outer;
	struct cached_kstack *k;

	if (!s)
		return 0;
	k = &s->kstack;
	if (k->cnt < 2 || k->cnt > MAX_KSTACK_PLACES)
		return 0;
	cnt = *place(k, k->cnt - 2) + 1;
	if (cnt >= s->slept_cnt || (cnt > FEW_WORDS && read_slept(s, cnt)) ||
	    bpf_probe_read_kernel(&outer, 8, (const void *)(s->slept + (s->slept_cnt - 1) * 8)))
		return 0;
	sum = unw_mix(unw_mix(k->key, k->hash), k->cnt);
	if (!BPFPROF_WAIT_IN_SYSCALL(s->u.rec.wait))
		sum = unw_mix(sum, s->slept_cnt);
	for (__u32 i = 0; i < MAX_KSTACK_PLACES && i + 1 < k->cnt; i++) {
		at = k->places[i];
		sum = unw_mix(unw_mix(sum, at), s->words[at % MAX_WORDS]);
	}
	return unw_mix(sum, outer) | 1;
}

/* Finds the places of kernel frames in a part of s->words, and counts them in s->kstack: memory that the
 * verifier does not follow. Returns 0, or 1: one of them is not the next one. */
__noinline int kstack_places_in_part(__u32 slot, __u32 from)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u32 found, at;
	__u64 word;

	if (!s)
		return 1;
	for (__u32 i = 0; i < WORDS_AT_ONCE; i++) {
		at = from + i;
		UNW_OPAQUE(at);
		if (at >= s->slept_cnt)
			break;
		word = s->words[at % MAX_WORDS];
		if (word - TEXT_START >= TEXT_SZ)
			continue;
		found = find(slot, word);
		if (found == s->u.rec.kernel_cnt)
			continue;
		if (found != s->kstack.cnt || found >= MAX_KSTACK_PLACES)
			return 1;
		*place(&s->kstack, found) = at;
		s->kstack.cnt++;
	}
	return 0;
}

/* Finds the places of what was walked for s->kstack. Returns 0, or 1: one of them is there more than
 * once, or not at all. */
static __always_inline int find_places(struct scratch *s)
{
	struct cached_kstack *k = &s->kstack;

	if (read_slept(s, s->slept_cnt))
		return 1;
	k->cnt = 0;
	for (__u32 from = 0; from < MAX_WORDS && from < s->slept_cnt; from += WORDS_AT_ONCE)
		if (kstack_places_in_part(s->u.slot, from))
			return 1;
	/* all are there, from the first word on, the outermost at the top */
	return k->cnt < 2 || k->cnt != s->u.rec.kernel_cnt || k->places[0] ||
	       *place(k, k->cnt - 1) + 1 != s->slept_cnt;
}

static __always_inline struct cached_kstack *entry_at(__u64 key)
{
	__u32 at = (key >> 32) % KSTACK_CACHE_SZ;

	return bpf_map_lookup_elem(&bp_kstacks, &at);
}

/* Is what s->kstack_key stands for where it was? Then s->kstack is what a walk would find. */
static __always_inline bool is_hit(struct scratch *s, const struct cached_kstack *entry)
{
	if (entry->key != s->kstack_key)
		return false;
	/* a copy: another CPU may be writing it, and the sum is of all that is used */
	s->kstack = *entry;
	return s->kstack.sum && kstack_checksum(s->u.slot) == s->kstack.sum;
}

/* Learns where the return address into the caller of schedule() lies, from a thread that sleeps in a
 * system call. */
static __always_inline void learn_caller(const struct scratch *s)
{
	__u32 wait = s->u.rec.wait;

	if (s->kstack.cnt > 3 && BPFPROF_WAIT_IN_SYSCALL(wait) &&
	    BPFPROF_WAIT_STATE(wait) != BPFPROF_STATE_runnable)
		bp_state.kstack_caller = s->kstack.places[2];
}

/* That has just been walked. */
static __always_inline void insert(struct scratch *s, struct cached_kstack *entry, __u64 hash)
{
	struct cached_kstack *k = &s->kstack;

	if (find_places(s))
		return;
	if (!bp_state.kstack_caller) {
		learn_caller(s);
		return;
	}
	k->key = s->kstack_key;
	k->hash = hash;
	k->sum = kstack_checksum(s->u.slot);
	if (k->sum)
		*entry = *k;
}

__hidden __u64 kstack_slept(void *ctx, struct scratch *s)
{
	struct bpfprof_stats *stats;
	struct cached_kstack *entry;
	__u64 hash;

	s->kstack_key = kstack_key(s->u.slot);
	entry = entry_at(s->kstack_key);
	if (!entry || !s->kstack_key)
		return kstack_walk(ctx, s, RECORD_SLEPT);
	if (is_hit(s, entry)) {
		stats = stats_in(s->u.rec.side, s->u.rec.kind);
		if (stats && check_is_due(&stats->kernel_stacks)) {
			hash = kstack_walk(ctx, s, RECORD_SLEPT);
			if (!check_same(&stats->kernel_stacks,
					hash == s->kstack.hash &&
						s->u.rec.kernel_cnt == s->kstack.cnt))
				entry->key = 0;
			return hash;
		}
		s->u.rec.kernel_cnt = s->kstack.cnt;
		s->kernel_left = 1;
		return s->kstack.hash;
	}
	hash = kstack_walk(ctx, s, RECORD_SLEPT);
	/* not each time where several take turns */
	if (!entry->key || !(bpf_get_prandom_u32() % 4))
		insert(s, entry, hash);
	return hash;
}
