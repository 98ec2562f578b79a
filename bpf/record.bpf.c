// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * From a sample to map updates. A stack is sent to user space once, when it is first met, and
 * counted from then on; so user space works per distinct stack, not per sample, and needs no second
 * map to look a stack up in. Nothing is lost when a count map is full: the sample is then sent
 * instead of counted. Only a full ring loses samples; copies of stacks leave a part of it to those
 * that are not copied.
 */
#include "common.bpf.h"

__hidden bool record_wanted_more(void)
{
	char comm[BPFPROF_COMM_SZ];

	if (bp_config.filter_cgroup && bpf_current_task_under_cgroup(&bp_cgroup, 0) != 1)
		return false;
	if (!bp_config.filter_comm)
		return true;
	bpf_get_current_comm(comm, sizeof(comm));
	return comm_matches(comm);
}

__hidden bool record_wanted(const struct task_facts *task)
{
	if (!task->tid)
		return false; /* idle */
	if (bp_config.filter_tgid && !in_set(&bp_tgids, task->key.tgid, task->key.start_ns))
		return false;
	if (bp_config.filter_tid && !in_set(&bp_tids, task->tid, task->key.start_ns))
		return false;
	return record_wanted_more();
}

/* Sends the record that stands in u. Returns 0, or 1 if the ring is full. */
static __always_inline int send_sample(struct unw *u)
{
	__u64 sz = sizeof(u->rec) + ((__u64)u->rec.user_cnt + u->rec.kernel_cnt) * 8;
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (sz > sizeof(u->rec) + sizeof(u->frames))
		return 1;
	/* user space comes by itself several times a second; wake it only when that might be too
	 * late */
	if (bpf_ringbuf_query(&bp_ring, BPF_RB_AVAIL_DATA) >
	    bpf_ringbuf_query(&bp_ring, BPF_RB_RING_SIZE) / 2)
		flags = BPF_RB_FORCE_WAKEUP;
	return bpf_ringbuf_output(&bp_ring, &u->rec, sz, flags) != 0;
}

/* What is counted of the sample in u, whose kernel frames have the hash kernel; NULL: its stack has
 * not been sent yet. */
static __always_inline struct bpfprof_count *count_of(struct unw *u, __u64 kernel,
						      struct bpfprof_count_key *key)
{
	key->tgid = u->rec.proc.tgid;
	key->user_cnt = u->rec.user_cnt;
	key->kernel_cnt = u->rec.kernel_cnt;
	key->hash = u->rec.hash = unw_mix(unw_mix(u->hash, kernel), u->rec.wait);
	return u->rec.side ? bpf_map_lookup_elem(&bp_counts1, key) :
			     bpf_map_lookup_elem(&bp_counts0, key);
}

static __always_inline void add_to(struct bpfprof_count *count, __u64 units, __u64 amount)
{
	__sync_fetch_and_add(&count->count, 1);
	if (units) {
		__sync_fetch_and_add(&count->units, units);
		__sync_fetch_and_add(&count->amount, amount);
	}
}

static __always_inline void set_wait(struct bpfprof_rec *rec, const struct record_wait *wait)
{
	rec->wait = wait->wait;
	rec->units = wait->units;
	rec->amount = wait->amount;
}

static __always_inline bool is_two(const struct record_what *what)
{
	return what->waits && what->waits[1].units;
}

static __always_inline __u64 take_kernel(void *ctx, struct scratch *s, bool with_kernel, __u32 how)
{
	s->kernel_left = 0;
	s->slept_ra = 0;
	if (!with_kernel)
		return 0;
	return bp_config.record[BPFPROF_OFFCPU] && how & RECORD_SLEPT ? kstack_slept(ctx, s) :
									kstack_walk(ctx, s, how);
}

/*
 * A hit in the cache of user stacks: counts the sample, or both, if its stack is known to user space;
 * else restores the state for a full walk, which has to be made.
 */
static __noinline bool record_cached(void *ctx, struct scratch *s, struct record_what *what,
				     __u32 how, bool with_kernel)
{
	struct bpfprof_count_key *key = &what->ret_key;
	struct bpfprof_count *first, *second = NULL;
	struct unw *u = &s->u;
	__u64 kernel;

	u->rec.result = BPFPROF_STACK_complete;
	u->rec.user_cnt = u->nr;
	u->hash = unw_mix(u->hash, BPFPROF_STACK_complete);
	kernel = take_kernel(ctx, s, with_kernel, how);
	first = count_of(u, kernel, key);
	if (first && is_two(what)) {
		set_wait(&u->rec, &what->waits[1]);
		second = count_of(u, kernel, key);
		set_wait(&u->rec, &what->waits[0]);
	}
	if (first && (second || !is_two(what))) {
		add_to(first, u->rec.units, u->rec.amount);
		if (second)
			add_to(second, what->waits[1].units, what->waits[1].amount);
		return true;
	}
	u->hash = s->begun;
	u->nr = 0;
	u->rec.hash = 0;
	u->rec.kernel_cnt = 0;
	key->user_cnt = 0;
	key->kernel_cnt = 0;
	return false;
}

/*
 * Records the sample in s, whose user frames have the hash u->hash and whose kernel frames kernel.
 * Returns 0, or 1 if it was lost.
 */
static __noinline int record_stack(void *ctx, struct scratch *s, __u64 kernel,
				   struct bpfprof_count_key *key, __u32 how)
{
	struct bpfprof_count none = {}, *known = count_of(&s->u, kernel, key);
	struct unw *u = &s->u;

	if (known) {
		add_to(known, u->rec.units, u->rec.amount);
		return 0;
	}
	if (how & RECORD_SLEPT && s->kernel_left) {
		kernel = kstack_walk(ctx, s, how);
		key->kernel_cnt = u->rec.kernel_cnt;
		key->hash = u->rec.hash = unw_mix(unw_mix(u->hash, kernel), u->rec.wait);
	}
	if (send_sample(u))
		return 1;
	if (u->rec.side)
		bpf_map_update_elem(&bp_counts1, key, &none, BPF_NOEXIST);
	else
		bpf_map_update_elem(&bp_counts0, key, &none, BPF_NOEXIST);
	return 0;
}

static __always_inline int send_raw(void *ctx, struct scratch *s, struct record_what *what,
				    __u32 how, bool with_kernel)
{
	struct unw *u = &s->u;
	int lost;

	if (how & RECORD_JOINED)
		u->rec.hash = unw_mix(unw_mix(bp_config.seed, u->rec.time_ns), u->rec.tid);
	what->ret_key.hash = u->rec.hash;
	what->ret_key.tgid = u->rec.proc.tgid;
	lost = stack_send_raw(ctx, s, with_kernel);
	if (is_two(what)) {
		set_wait(&u->rec, &what->waits[1]);
		lost += stack_send_raw(ctx, s, with_kernel);
	}
	return lost;
}

/* A copy is some fifty times as long as a stack of which the frames are known: it is made only
 * where it leaves a sixteenth of the ring free for those. */
static __always_inline bool may_copy(void)
{
	return bpf_ringbuf_query(&bp_ring, BPF_RB_AVAIL_DATA) + RAW_MAX <=
	       bpf_ringbuf_query(&bp_ring, BPF_RB_RING_SIZE) / 16 * 15;
}

/* The walk has come to an address of which only a copy could tell what called it: the stack ends
 * there. */
static __always_inline int leave_off(struct unw *u)
{
	if (u->nr < u->max)
		unw_add_frame(u, u->pc - !u->exact);
	return BPFPROF_STACK_no_room;
}

/* Who and what is sampled, into the record in u. Returns a hash of what tells it from others. Apart,
 * since there is little room on the stack of record_sample: 512 bytes for all that call each other. */
static __noinline __u64 describe(struct unw *u, const struct task_facts *task,
				 const struct record_what *what, __u32 how)
{
	__u64 hash = bp_config.seed;

	u->rec.type = BPFPROF_REC_SAMPLE;
	u->rec.kind = what->kind;
	u->rec.kernel_cnt = 0;
	u->rec.tid = task->tid;
	u->rec.hash = 0;
	u->rec.size = what->size;
	u->rec.weight = what->weight;
	u->rec.wait = what->wait;
	u->rec.units = 0;
	u->rec.amount = 0;
	if (what->waits)
		set_wait(&u->rec, &what->waits[0]);
	u->rec.proc = task->key;
	if (bp_config.cgroups)
		u->rec.cgroup = bpf_get_current_cgroup_id();
	__builtin_memset(u->rec.comm, 0, sizeof(u->rec.comm));
	if (bp_config.thread_names)
		bpf_get_current_comm(u->rec.comm, sizeof(u->rec.comm));
	hash = unw_mix(hash, u->rec.cgroup);
	hash = unw_mix(hash, *(__u64 *)&u->rec.comm[0]);
	hash = unw_mix(hash, *(__u64 *)&u->rec.comm[8]);
	hash = unw_mix(hash, task->key.start_ns);
	hash = unw_mix(hash, (__u64)task->key.exec_id << 8 | what->kind);
	if (how & RECORD_JOINED)
		hash = unw_mix(hash, what->size);
	return unw_mix(hash, what->weight);
}

/* Takes the stack of task, and records it as one sample, or as two. Returns how many were lost. */
static __always_inline int take_sample(void *ctx, struct scratch *s, const struct task_facts *task,
				       struct record_what *what, __u32 how,
				       struct bpfprof_stats *stats)
{
	bool with_kernel = !(how & (RECORD_USER_MODE | RECORD_USER_ONLY)) && !bp_config.user_only;
	bool with_user = task->has_user && !bp_config.kernel_only;
	struct unw *u = &s->u;
	__u64 kernel;
	int result = BPFPROF_STACK_complete, cached = 0, lost;
	__u32 user_cnt = 0;

	u->hash = describe(u, task, what, how);
	what->ret_key.kernel_cnt = 0;
	what->ret_key.user_cnt = 0;

	if (with_user) {
		result = stack_begin(u->slot, what->returned);
		if (result == UNW_CONTINUE && how & RECORD_CACHED)
			cached = ustack_cache_lookup(u->slot);
		if (cached == USTACK_CACHE_HIT && record_cached(ctx, s, what, how, with_kernel))
			return 0;
	}
	u->rec.time_ns = bpf_ktime_get_ns();
	if (with_user) {
		stack_start(u->slot);
		if (result == UNW_CONTINUE) {
			result = stack_walk(u->slot, how);
			if (cached == USTACK_CACHE_CHECK)
				ustack_cache_check(u->slot, result);
			if (how & RECORD_CACHED && result == BPFPROF_STACK_complete)
				ustack_cache_insert(u->slot);
		}
		if (result == UNW_MISS && may_copy())
			return send_raw(ctx, s, what, how, with_kernel);
		if (result == UNW_MISS)
			result = leave_off(u);
		user_cnt = u->nr;
		if (user_cnt > BPFPROF_MAX_UFRAMES)
			user_cnt = BPFPROF_MAX_UFRAMES;
		STATS_ADD(stats->unwinds, 1);
		STATS_ADD(stats->frames, user_cnt);
	}
	u->rec.result = result;
	u->rec.user_cnt = user_cnt;
	u->hash = unw_mix(u->hash, result);
	kernel = take_kernel(ctx, s, with_kernel, how);
	lost = record_stack(ctx, s, kernel, &what->ret_key, how);
	if (is_two(what)) {
		set_wait(&u->rec, &what->waits[1]);
		lost += record_stack(ctx, s, kernel, &what->ret_key, how);
	}
	return lost;
}

static __always_inline int samples_of(const struct record_what *what)
{
	return is_two(what) ? 2 : 1;
}

__hidden int record_sample(void *ctx, __u32 slot, const struct task_facts *task,
			   struct record_what *what, __u32 how)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	__u32 side = current_side();
	struct bpfprof_stats *stats = stats_in(side, what->kind);
	int lost, cnt = samples_of(what);

	what->ret_side = side;
	if (!s || !stats)
		return 1;
	STATS_ADD(stats->seen, cnt);
	if (s->busy) {
		STATS_ADD(stats->lost[BPFPROF_LOST_nested], cnt);
		return 1;
	}
	s->busy = 1;
	s->u.slot = slot;
	s->u.rec.side = side;
	/* not the first one, which has all to itself to fetch */
	s->timed_from =
		stats->recorded % BPFPROF_TIMED == BPFPROF_TIMED / 2 ? bpf_ktime_get_ns() : 0;
	lost = take_sample(ctx, s, task, what, how, stats);
	if (s->timed_from) {
		s->timed_from = bpf_ktime_get_ns() - s->timed_from;
		if (s->timed_from > BPFPROF_TIMED_MAX_NS)
			s->timed_from = BPFPROF_TIMED_MAX_NS;
		STATS_ADD(stats->timed, samples_of(what));
		STATS_ADD(stats->timed_ns, s->timed_from);
	}
	s->busy = 0;
	STATS_ADD(stats->lost[BPFPROF_LOST_ring_full], lost);
	/* not kept meanwhile: the stack is short */
	STATS_ADD(stats->recorded, samples_of(what) - lost);
	return lost;
}
