// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Heap profile. Each thread counts the bytes that it asks for down to its next sample; the distance
 * between two is drawn from the exponential distribution, which has no memory (see sample.h), so
 * that the samples of any set of threads together are a Poisson process over the bytes, and an
 * allocation of S bytes is sampled with probability 1 - exp(-S / rate), whatever was allocated
 * before it.
 *
 * Only a sampled call is followed to its return, where the address is known and the stack begins
 * with the caller. What it returned is kept in bp_live until it is freed. A free is seen before it
 * happens, an allocation recorded before its caller knows the address: so no other thread can come
 * between the two.
 *
 * Only the outermost call counts. A function that may call another probed one is followed in any
 * case (BPFPROF_COOKIE_WRAPPER); a call is inside it if its stack pointer is not above and the
 * outer call's return address is still replaced by the one of the return probe. After a longjmp or
 * an exception out of an allocator it is not, or soon is not.
 *
 * While probes are attached in slices, what is in use is not known, and a call can be recorded as
 * it begins. What the profile then has too much are calls that fail.
 */
#include "common.bpf.h"
#include "live.bpf.h"
#include "usdt.bpf.h"

/* include/uapi/asm-generic/resource.h */
#define RLIMIT_DATA 2
#define RLIMIT_AS 9
#define RLIM_INFINITY (~0UL)
#define MAX_OBJECT (1ULL << 47) /* the half of the address space that a program has */

/* ---- sampling ---- */

/* In a function of its own, so that the verifier follows it once. */
__noinline __u64 heap_distance(__u32 random)
{
	return sample_distance(random, bp_config.heap_rate);
}

static __always_inline __u64 draw(struct heap_task *t)
{
	__u64 seed = bp_config.sample_seed;

	return heap_distance(seed ? sample_random(seed, t->draws++) : bpf_get_prandom_u32());
}

static __always_inline bool sampled(struct heap_task *t, __u64 size)
{
	if (bp_config.heap_rate <= 1)
		return true;
	/* an empty block is as good as one byte: it has to have a chance */
	size = size ?: 1;
	if (!t->left)
		t->left = draw(t);
	if (size < t->left) {
		t->left -= size;
		return false;
	}
	t->left = draw(t);
	return true;
}

/* ---- recording ---- */

/* The nearest number of 6 significant bits. */
static __always_inline __u64 coarse(__u64 size)
{
	__u64 shift = sample_top_bit(size | 1 << 5) - 5;

	return (size + ((1ULL << shift) >> 1)) >> shift << shift;
}

/* What we allocate for a profile of all is nobody's business. */
static __always_inline bool is_wanted(const struct task_facts *task)
{
	return record_wanted(task) && task->key.tgid != bp_config.self_tgid &&
	       is_chosen(BPFPROF_HEAP, compat_current());
}

/* Returns 0. */
__noinline int heap_record(struct pt_regs *ctx, __u64 ptr, __u64 size, __u64 weight, int returned)
{
	struct bpfprof_stats *stats;
	struct record_what what = {
		.kind = BPFPROF_HEAP,
		.returned = returned != 0,
		.size = bp_control.coarse ? coarse(size) : size,
		.weight = weight,
	};
	struct bpfprof_live live = {};
	struct bpfprof_live_key key;
	struct task_facts task;
	int slot, lost;
	__u64 took;
	__u32 id;

	live.time_ns = bpf_ktime_get_ns();
	task_facts(&task);
	if (!is_wanted(&task))
		return 0;
	slot = stack_take_slot();
	if (slot < 0) {
		lose(BPFPROF_HEAP, BPFPROF_LOST_no_slot);
		return 0;
	}
	id = slot;
	lost = record_sample(ctx, id, &task, &what, RECORD_USER_MODE | RECORD_JOINED);
	stack_give_slot(id);
	stats = stats_in(what.ret_side, BPFPROF_HEAP);
	if (lost || !stats)
		return 0;
	live_key(&key, 0, ptr);
	live.stack = what.ret_key;
	/* what is recorded as it begins has no address yet */
	if (ptr && !bp_control.no_live && bpf_map_update_elem(&bp_live, &key, &live, BPF_ANY))
		STATS_ADD(stats->untracked, 1);
	/* the clock goes on while the thread is preempted, which costs it nothing */
	took = bpf_ktime_get_ns() - live.time_ns;
	STATS_ADD(stats->record_ns, took < BPFPROF_TIMED_MAX_NS ? took : BPFPROF_TIMED_MAX_NS);
	return 0;
}

static __always_inline void hit(enum bpfprof_hit what)
{
	struct bpfprof_stats *stats = stats_of(BPFPROF_HEAP);

	if (stats)
		STATS_ADD(stats->hits[what], 1);
}

static __always_inline void forget(__u64 ptr)
{
	struct bpfprof_live_key key;

	live_key(&key, 0, ptr);
	live_forget(&bp_live, &key);
}

/* ---- probes on allocators ---- */

/* Is the current process one of those that share a link? What filters threads is asked when one
 * allocates. */
static __noinline bool shares(void)
{
	struct task_facts task;

	task_facts(&task);
	return task.key.tgid != bp_config.self_tgid &&
	       (!bp_config.filter_tgid || in_set(&bp_tgids, task.key.tgid, task.key.start_ns)) &&
	       is_chosen(BPFPROF_HEAP, compat_current());
}

/* Apart: up to 6.12 all functions that are active share 512 bytes of stack, and where states are in
 * a hash it puts a new one together there. */
static __noinline struct heap_task *make_task(void)
{
	return state_make(&bp_heap_tasks, &bp_heap_hash, compat_current());
}

/* The links of the file are being changed. bit: by that of heap_shared the hit counts. */
static __noinline bool counts_in_change(__u64 change, bool shared, bool bit)
{
	struct heap_task *t;

	if (shared && !shares()) {
		if (bit)
			hit(BPFPROF_HIT_OTHER);
		return false;
	}
	t = make_task();
	if (!t)
		return bit;
	if (shared != BPFPROF_CHANGE_SHARED(change))
		return t->change != change;
	if (bit)
		t->change = change;
	return bit;
}

/* Does a hit count? See BPFPROF_COOKIE_SHARED. */
static __always_inline bool counts(__u64 cookie)
{
	bool shared = (cookie & BPFPROF_COOKIE_SHARED) != 0, bit;
	__u32 file = BPFPROF_COOKIE_FILE(cookie);
	__u64 change;

	if (!bp_config.heap_shares)
		return true;
	bit = (bp_control.heap_shared >> file & 1) == shared;
	change = bp_control.heap_change;
	if (change && BPFPROF_CHANGE_FILE(change) == file)
		return counts_in_change(change, shared, bit);
	if (!bit)
		return false;
	if (!shared || shares())
		return true;
	hit(BPFPROF_HIT_OTHER);
	return false;
}

/* Is the call that is waited for still under way, and the current one inside it? */
static __always_inline bool inside(const struct heap_task *t, __u64 sp)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 ra = 0;

	if (sp > t->at || bpf_probe_read_user(&ra, sizeof(ra), (void *)t->at) || !ra)
		return false;
	/* copied, not followed, since the verifier takes a ms for each field of a BTF pointer */
	return ra == BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/* What the call asks for. Returns false if it cannot succeed. */
static __always_inline bool read_args(struct pt_regs *ctx, __u32 op, __u64 *ret_size)
{
	__u64 a = PT_REGS_PARM1(ctx), b = PT_REGS_PARM2(ctx), c = PT_REGS_PARM3(ctx), n = 1, size;

	switch (op) {
	case BPFPROF_ALLOC_MALLOC:
		size = a;
		break;
	case BPFPROF_ALLOC_CALLOC:
		n = a;
		size = b;
		break;
	case BPFPROF_ALLOC_POSIX_MEMALIGN:
		size = c;
		break;
	case BPFPROF_ALLOC_REALLOCARRAY:
		n = b;
		size = c;
		break;
	default:
		size = b;
	}
	*ret_size = size * n;
	if (n == 1)
		return size < MAX_OBJECT;
	return !n || size <= MAX_OBJECT / n;
}

static __always_inline bool resizes(__u32 op)
{
	return op == BPFPROF_ALLOC_REALLOC || op == BPFPROF_ALLOC_REALLOCARRAY ||
	       op == BPFPROF_ALLOC_XALLOCX;
}

/* Takes the record of an allocation that is about to be resized out of bp_live: another thread may
 * be given its address before we see the call return. */
static __always_inline void take_old(struct heap_task *t)
{
	struct bpfprof_live *old;

	live_key(&t->old_key, 0, t->ptr);
	old = bpf_map_lookup_elem(&bp_live, &t->old_key);
	if (!old)
		return;
	t->old = *old;
	t->have_old = 1;
	bpf_map_delete_elem(&bp_live, &t->old_key);
}

/* May the allocation fail? Memory is overcommitted: what a process asks for in reason it gets,
 * unless it has a limit of its own. */
static __always_inline bool may_fail(__u64 size)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return bp_config.heap_strict || size >= bp_config.heap_cannot_fail_below ||
	       BPF_CORE_READ(task, signal, rlim[RLIMIT_AS].rlim_cur) != RLIM_INFINITY ||
	       BPF_CORE_READ(task, signal, rlim[RLIMIT_DATA].rlim_cur) != RLIM_INFINITY;
}

/* A call that would be recorded is not: it counts as lost if its process passes the filters. */
static __noinline void lose_wanted(enum bpfprof_lost why)
{
	struct task_facts task;

	task_facts(&task);
	if (is_wanted(&task))
		lose(BPFPROF_HEAP, why);
}

/* A call of a thread that there was no room for. It is sampled as all are, since drawing has no
 * memory, and lost if it is meant; one inside another, too. */
static __noinline void lose_call(struct pt_regs *ctx, __u32 op)
{
	struct task_facts task;
	struct heap_task t = {};
	__u64 size;

	task_facts(&task);
	if (is_wanted(&task) && read_args(ctx, op, &size) && sampled(&t, size))
		lose(BPFPROF_HEAP, BPFPROF_LOST_no_state);
}

/* A call begins. Returns the thread's state; NULL: it does not count. */
static __always_inline struct heap_task *begin(struct pt_regs *ctx, __u32 op, __u64 *ret_size)
{
	struct heap_task *t;

	if (bp_control.heap_off)
		return NULL;
	t = make_task();
	if (!t) {
		lose_call(ctx, op);
		return NULL;
	}
	if (t->at && inside(t, PT_REGS_SP(ctx)))
		return NULL;
	t->at = 0;
	return read_args(ctx, op, ret_size) ? t : NULL;
}

/* Returns 1 if the call's return is of no interest. */
static __always_inline int enter(struct pt_regs *ctx, __u64 cookie, bool optional)
{
	__u64 size;
	__u32 op = BPFPROF_COOKIE_OP(cookie);
	struct heap_task *t;

	if (!counts(cookie))
		return 1;
	hit(BPFPROF_HIT_ENTRY);
	t = begin(ctx, op, &size);
	if (!t)
		return 1;
	/* no longer what the choice above has left of it, which the verifier would follow one by
	 * one */
	UNW_OPAQUE(op);
	t->sampled = sampled(t, size);
	t->have_old = 0;
	t->ptr = PT_REGS_PARM1(ctx);
	/* A wrapper is else waited for unsampled as well. Calls inside it draw for themselves. */
	if (cookie & BPFPROF_COOKIE_THROWS &&
	    (t->sampled || resizes(op) || cookie & BPFPROF_COOKIE_WRAPPER) && may_fail(size)) {
		if (t->sampled)
			lose_wanted(BPFPROF_LOST_may_throw);
		return 1;
	}
	if (resizes(op) && t->ptr)
		take_old(t);
	if (optional && !t->sampled && !t->have_old && !(cookie & BPFPROF_COOKIE_WRAPPER))
		return 1;
	t->at = PT_REGS_SP(ctx);
	t->size = size;
	t->op = op;
	return 0;
}

/* The address that the call gave, or 0. */
static __always_inline __u64 result(struct pt_regs *ctx, const struct heap_task *t)
{
	__u64 ret = PT_REGS_RC(ctx), ptr = 0;

	switch (t->op) {
	case BPFPROF_ALLOC_POSIX_MEMALIGN:
		if (!(__u32)ret)
			bpf_probe_read_user(&ptr, sizeof(ptr), (void *)t->ptr);
		return ptr;
	case BPFPROF_ALLOC_XALLOCX:
		return ret >= t->size ? t->ptr : 0;
	default:
		return ret;
	}
}

static __always_inline void leave(struct pt_regs *ctx)
{
	struct heap_task *t;
	__u64 ptr;

	hit(BPFPROF_HIT_RETURN);
	t = state_of(&bp_heap_tasks, &bp_heap_hash, compat_current());
	if (!t || !t->at || t->at != PT_REGS_SP(ctx) - 8)
		return;
	t->at = 0;
	ptr = result(ctx, t);
	/* failed: the old one lives on. To resize to nothing frees. */
	if (!ptr && t->have_old && t->size)
		bpf_map_update_elem(&bp_live, &t->old_key, &t->old, BPF_ANY);
	if (ptr && t->sampled)
		heap_record(ctx, ptr, t->size, 0, true);
}

/* A call of a function that calls no other probed one, in slices: recorded at its entry. */
static __always_inline void begin_only(struct pt_regs *ctx, __u64 cookie)
{
	__u32 op = BPFPROF_COOKIE_OP(cookie);
	struct heap_task *t;
	__u64 size;

	if (!counts(cookie))
		return;
	hit(BPFPROF_HIT_BEGIN);
	t = begin(ctx, op, &size);
	UNW_OPAQUE(op);
	/* to resize to nothing frees */
	if (!t || (resizes(op) && !size && PT_REGS_PARM1(ctx)) || !sampled(t, size))
		return;
	if (size >= bp_config.heap_cannot_fail_below)
		lose_wanted(BPFPROF_LOST_may_fail);
	else
		heap_record(ctx, 0, size, 0, false);
}

/* A program that samples by itself: otel_memory:alloc(pointer, size, weight). */
static __always_inline void usdt_alloc(struct pt_regs *ctx, __u64 cookie)
{
	__u64 ptr = usdt_arg(ctx, cookie, 0);

	hit(BPFPROF_HIT_USDT);
	if (ptr && !bp_control.heap_off)
		heap_record(ctx, ptr, usdt_arg(ctx, cookie, 1), usdt_arg(ctx, cookie, 2), false);
}

/*
 * Entry and return by one link: a call's return is only waited for where it is wanted. It serves all
 * probes that record: the verifier follows the whole walk for each program that has it.
 */
SEC("?uprobe")
int heap_session(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx);

	/* what the function's address is at its entry, and never at its return */
	if (PT_REGS_IP(ctx) != bpf_get_func_ip(ctx)) {
		leave(ctx);
		return 0;
	}
	if (cookie & BPFPROF_COOKIE_USDT)
		usdt_alloc(ctx, cookie);
	else if (cookie & BPFPROF_COOKIE_BEGIN)
		begin_only(ctx, cookie);
	else
		return enter(ctx, cookie, true);
	return 1;
}

SEC("?uprobe")
int heap_entry(struct pt_regs *ctx)
{
	enter(ctx, cookie_of(ctx), false);
	return 0;
}

SEC("?uprobe")
int heap_return(struct pt_regs *ctx)
{
	leave(ctx);
	return 0;
}

SEC("?uprobe")
int heap_begin(struct pt_regs *ctx)
{
	begin_only(ctx, cookie_of(ctx));
	return 0;
}

SEC("?uprobe")
int heap_usdt_alloc(struct pt_regs *ctx)
{
	usdt_alloc(ctx, cookie_of(ctx));
	return 0;
}

SEC("?uprobe")
int heap_free(struct pt_regs *ctx)
{
	/* a kernel without shared links may have no cookies */
	if (bp_config.heap_shares && !counts(cookie_of(ctx)))
		return 0;
	hit(BPFPROF_HIT_FREE);
	if (PT_REGS_PARM1(ctx) && !bp_control.heap_off)
		forget(PT_REGS_PARM1(ctx));
	return 0;
}

/* ---- states in a hash ---- */

/* What a thread has there goes with it: its number may be given to another. */
static __always_inline void drop_state(__u32 tid)
{
	bpf_map_delete_elem(&bp_heap_hash, &tid);
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(heap_exit, struct task_struct *task)
{
	drop_state(task->pid);
	return 0;
}

/* Of several threads the one that execs goes on under the number of the first one. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(heap_exec, struct task_struct *task, pid_t old_tid)
{
	drop_state(old_tid);
	return 0;
}

/* ---- programs that sample by themselves: otel_memory:free(pointer) ---- */

/* See user/preload/loads.c. */
static __noinline void note_unseen(void)
{
	struct bpfprof_stats *stats = stats_of(BPFPROF_HEAP);
	struct task_facts task;

	task_facts(&task);
	if (stats && is_wanted(&task))
		STATS_ADD(stats->unseen, 1);
}

SEC("?uprobe")
int heap_usdt_free(struct pt_regs *ctx)
{
	__u64 ptr = usdt_arg(ctx, cookie_of(ctx), 0);

	hit(BPFPROF_HIT_USDT);
	if (!ptr)
		note_unseen();
	else if (!bp_control.heap_off)
		forget(ptr);
	return 0;
}
