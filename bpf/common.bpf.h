/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What the .bpf.c files share: helpers, the maps and globals that maps.bpf.c defines, functions
 * that cross files. */
#ifndef COMMON_BPF_H
#define COMMON_BPF_H

/* Here for what is built of libbpf in user/, too: this is compiled first. 0.5 has no such header. */
#if __has_include(<bpf/libbpf_version.h>)
#include <bpf/libbpf_version.h>
#endif
#if !defined(LIBBPF_MAJOR_VERSION) || \
	(LIBBPF_MAJOR_VERSION < 2 && (LIBBPF_MAJOR_VERSION < 1 || LIBBPF_MINOR_VERSION < 1))
#error "bpfprof needs libbpf 1.1 or later, which Debian 12 and Ubuntu 24.04 have"
#endif

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpfprof.h"

extern const volatile struct bpfprof_config bp_config;

#include "compat.bpf.h"
#include "sample.h"
#include "wait_types.h"

/* stack.bpf.c: parts of the unwinder as global functions, which the verifier follows once; slot: of
 * bp_scratch */
int stack_unw_run(__u32 slot);
int stack_unw_run_fill(__u32 slot);
int stack_unw_learn(__u32 slot, __u64 addr);
int stack_unw_search_map(__u32 slot, __u64 addr);
int stack_unw_fill(__u32 slot, __u64 addr);
int stack_unw_begin_no_table(__u32 slot);
int stack_unw_guess_by_fp(__u32 slot);
int stack_unw_guess_at_sp(__u32 slot);
int stack_unw_may_lead(__u32 slot, __u32 which);
int stack_unw_is_stated(__u32 slot, __u64 addr);
int stack_unw_check_call(__u32 slot, __u64 ra);
int stack_unw_choose(__u32 slot);
int stack_unw_leads_to(__u32 slot, __u64 ra, __u64 from);
int stack_unw_equal_words(__u32 slot, __u32 from);
int stack_unw_skips_at(__u32 slot, __u32 at, __u64 target);
int stack_unw_skips(__u32 slot);
int stack_unw_step_go(__u32 slot);
int stack_unw_replaced(__u32 slot, __u64 at);
int stack_undo_uprobes(__u32 slot, int returned);
int stack_undo_breakpoint(__u32 slot);
/*
 * The same: the current task's user stack, by the mappings of the process u.rec.proc, which may
 * become that of a process whose memory it borrows. stack_begin comes first, then, where the stack
 * is walked or sent, stack_start, and stack_walk; how: RECORD_…. The first and the last return
 * UNW_CONTINUE, or else how it has ended: enum bpfprof_stack_result, or UNW_MISS if user space has
 * to do it. The walk puts frames into u.frames and hashes them into u.hash.
 */
int stack_begin(__u32 slot, int returned);
int stack_start(__u32 slot);
int stack_walk(__u32 slot, __u32 how);
/* The same, behind stack_begin: does the cache have the walk that would come now? Then it would be
 * complete. USTACK_CACHE_HIT: u.nr and u.hash are what it would give; the frames are not there.
 * USTACK_CACHE_CHECK: it has to be made all the same, and compared by ustack_cache_check. */
#define USTACK_CACHE_HIT 1
#define USTACK_CACHE_CHECK 2
int ustack_cache_lookup(__u32 slot);
int ustack_cache_check(__u32 slot, int result);
/* The same: puts a complete walk into the cache, if it can be. */
int ustack_cache_insert(__u32 slot);
/* The same: of what `cached` says of a walk and of the stack words that it depended on; 0: one of them
 * is not there. */
__u64 ustack_checksum(__u32 slot);
/* kstack.bpf.c: the same */
__u64 kstack_key(__u32 slot);
__u64 kstack_checksum(__u32 slot);
__u32 kstack_find(__u32 slot, __u64 addr);
int kstack_trim(__u32 slot, __u32 first);
__u64 kstack_hash(__u32 slot);
int kstack_places(__u32 slot);
/* The same: a slot of bp_scratch for a program that can be preempted, which owns it until it gives
 * it back. -1: there is none. */
int stack_take_slot(void);
int stack_give_slot(__u32 slot);
/* heap.bpf.c: the same, for the same reason */
__u64 heap_distance(__u32 random);
int heap_record(struct pt_regs *ctx, __u64 ptr, __u64 size, __u64 weight, int returned);
/* custom.bpf.c: the same */
int custom_record(struct pt_regs *ctx, __u64 value, __u32 set, int returned);
/* fds.bpf.c: the same; slot: of bp_scratch */
int fds_take_stack(__u32 slot, int asked);
int fds_put(__u32 slot, __u32 fd, __u64 file);
int fds_put_at(__u32 slot, __u64 at, __u32 fd);
int fds_put_given(__u32 slot, __u64 at, __u32 cnt, __u32 fd);
#define UNW_CALL(f, u, ...) stack_##f((u)->slot, ##__VA_ARGS__)
/* arch_prctl and clone write it (arch/x86/kernel/process_64.c) */
#define UNW_THREAD_POINTER(u) \
	BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), thread.fsbase)
#include "unwind_run.h"

/* include/uapi/linux/sched.h */
#define CLONE_THREAD 0x00010000

/* An entry of the cache of user stacks: see stack.bpf.c. */
struct cached_ustack {
	__u64 start;   /* hash of what the walk began with */
	__u64 from;    /* sp, then */
	__u64 sz;      /* bytes from there that the words lie in */
	__u64 sum;     /* of that, of what it found, and of the words that have decided it */
	__u64 hash;    /* unw.hash behind it */
	__u64 fp_mask; /* of unw */
	__u32 nr;      /* frames */
	__u32 cnt;     /* of words */
	__u64 words[UNW_MAX_WORDS]; /* where they are */
};

#define MAX_KSTACK_PLACES 32 /* a power of two */
/* An entry of the cache of kernel stacks: see kstack.bpf.c. */
struct cached_kstack {
	__u64 key;  /* what it is looked for by; 0: none */
	__u64 sum;  /* of all below, and of the words in these places */
	__u64 hash; /* of its frames */
	__u32 cnt;  /* frames */
	__u32 pad;
	__u16 places[MAX_KSTACK_PLACES]; /* of return addresses, in words from the first on */
};

/* Where the walk of a user stack finds the rules of its frames. */
#define WALK_TABLES 0 /* in the tables */
#define WALK_LEARN 1  /* there, and they are remembered */
#define WALK_RUN 2    /* where they are remembered, or else there, and they are remembered */

/*
 * Memory to take a stack in. The sampler has one for each CPU: it runs in interrupts and is
 * interrupted by itself only where the clock is an NMI (hardware events); `busy` turns that away.
 * Programs that run in tasks can be preempted by others of their kind: they take one of the slots
 * behind these, from bp_config.first_slot on, and own it until they give it back.
 */
struct scratch {
	struct bpfprof_fd opened; /* of the fds kind: what is opened here */
	__u64 taken;		  /* by a program that can be preempted: see stack_take_slot */
	__u32 busy;
	__u32 kernel_left; /* the kernel's frames are counted, but not there: see kstack_slept */
	struct cached_ustack cached; /* the one that is looked at */
	__u64 begun;		     /* unw.hash before the walk that was looked up */
	__u64 timed_from; /* when recording began, 0: it is not timed; then how long it took */
	__u64 words[512]; /* of a kernel's stack, or of a user's */
	__u64 slept;	  /* where the stack that it has slept with begins: see kstack.bpf.c */
	__u64 slept_cnt;  /* words of it */
	__u64 slept_ra;	  /* the first of them; 0: not known */
	__u64 kstack_key; /* of what was looked for */
	struct cached_kstack kstack;	     /* the one that is looked at */
	__u32 way;			     /* WALK_… */
	__u32 walks;			     /* in which rules are remembered */
	int result;			     /* of the last step */
	struct bpfprof_cache_stats by_rules; /* of this walk */
	struct unw_rules rules;
	struct unw u;
};

/* A raw record is put together here; the slack lets the last page be read before its end is known.
 */
#define RAW_HEAD (sizeof(struct bpfprof_rec) + sizeof(struct bpfprof_raw))
#define RAW_MAX (RAW_HEAD + BPFPROF_MAX_KFRAMES * 8 + BPFPROF_RAW_STACK_SZ)
struct raw_buf {
	struct bpfprof_rec rec;
	struct bpfprof_raw raw;
	__u8 data[BPFPROF_MAX_KFRAMES * 8 + BPFPROF_RAW_STACK_SZ + 4096];
};

/* ---- maps and globals, see maps.bpf.c ---- */
extern volatile struct bpfprof_control bp_control;
extern volatile struct bpfprof_state bp_state;

extern struct bp_chunks_map bp_chunks SEC(".maps");
extern struct bp_procs_map bp_procs SEC(".maps");
extern struct bp_ring_map bp_ring SEC(".maps");
extern struct bp_counts_map bp_counts0 SEC(".maps");
extern struct bp_counts_map bp_counts1 SEC(".maps");
extern struct bp_stats_map bp_stats SEC(".maps");
extern struct bp_scratch_map bp_scratch SEC(".maps");
extern struct bp_raw_map bp_raw SEC(".maps");
extern struct bp_filter_map bp_tgids SEC(".maps");
extern struct bp_filter_map bp_tids SEC(".maps");
extern struct bp_chosen_map bp_chosen SEC(".maps");
extern struct bp_cgroup_map bp_cgroup SEC(".maps");
extern struct bp_cpus_gone_map bp_cpus_gone SEC(".maps");
extern struct bp_ksyms_map bp_ksyms SEC(".maps");
extern struct bp_live_map bp_live SEC(".maps");
extern struct bp_live_map bp_added SEC(".maps");
extern struct bp_fds_map bp_fds SEC(".maps");
extern struct bp_heap_tasks_map bp_heap_tasks SEC(".maps");
extern struct bp_heap_hash_map bp_heap_hash SEC(".maps");
extern struct bp_waits_map bp_waits SEC(".maps");
extern struct bp_wait_hash_map bp_wait_hash SEC(".maps");
extern struct bp_wait_slots_map bp_wait_slots SEC(".maps");
extern struct bp_wait_owners_map bp_wait_owners SEC(".maps");
extern struct bp_futexes_map bp_futexes SEC(".maps");
extern struct bp_sched_cpus_map bp_sched_cpus SEC(".maps");
extern struct bp_kstacks_map bp_kstacks SEC(".maps");
extern struct bp_ustacks_map bp_ustacks SEC(".maps");
extern struct bp_thread_map bp_thread SEC(".maps");
extern struct bp_threads_due_map bp_threads_due SEC(".maps");

struct bp_chunk_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, BPFPROF_CHUNK_SZ);
};

/* Table memory: chunks are put in as they are needed. */
struct bp_chunks_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, BPFPROF_MAX_CHUNKS);
	__type(key, __u32);
	__array(values, struct bp_chunk_inner);
};

struct bp_procs_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BPFPROF_MAX_PROCS);
	__type(key, struct bpfprof_proc_key);
	__type(value, struct bpfprof_proc);
};

struct bp_ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* by the number of CPUs, when loaded */
};

/* Wakes user space, and leaves nothing to be read. */
static __always_inline void ring_wake(void)
{
	void *none = bpf_ringbuf_reserve(&bp_ring, sizeof(__u64), 0);

	if (none)
		bpf_ringbuf_discard(none, BPF_RB_FORCE_WAKEUP);
}

/* Of each side. */
struct bp_counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BPFPROF_MAX_COUNTS); /* fewer for a clock alone, when loaded */
	__type(key, struct bpfprof_count_key);
	__type(value, struct bpfprof_count);
};

struct bp_stats_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BPFPROF_SIDES *BPFPROF_NR_KINDS); /* see BPFPROF_STATS_KEY */
	__type(key, __u32);
	__type(value, struct bpfprof_stats);
};

/* Value: start_boottime of the process that is meant, so that a later owner of the number is not.
 */
struct bp_filter_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BPFPROF_MAX_FILTERED);
	__type(key, __u32);
	__type(value, __u64);
};

/* By process. */
struct bp_chosen_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BPFPROF_MAX_CHOSEN);
	__type(key, __u32);
	__type(value, struct bpfprof_chosen);
};

/* By slot: one a CPU, then those that are taken; sized when loaded. A per-CPU map's values may not
 * exceed 32 KiB. */
struct bp_scratch_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
};

struct bp_raw_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct raw_buf);
};

struct bp_cgroup_map {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};

/* By CPU: differs from what it was if the CPU has gone since. */
struct bp_cpus_gone_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU there can be, when loaded */
	__type(key, __u32);
	__type(value, __u32);
};

/* bp_live: sampled allocations that were not freed yet; bp_added: values of custom profiles that
 * were not removed yet. Sized when loaded. */
struct bp_live_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct bpfprof_live_key);
	__type(value, struct bpfprof_live);
};

/* Sized when loaded. */
struct bp_fds_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct bpfprof_fd_key);
	__type(value, struct bpfprof_fd);
};

/* What a thread is doing in its allocator. */
struct heap_task {
	__u64 left;   /* bytes until its next sample; 0: not drawn yet */
	__u64 at;     /* where the return address of the call lies that is waited for; 0: none is */
	__u64 size;   /* that it asks for, in bytes */
	__u64 ptr;    /* its first argument */
	__u64 change; /* of links, the last one that it has made: BPFPROF_CHANGE */
	__u8 op;      /* enum bpfprof_alloc_op */
	__u8 sampled;
	__u8 have_old; /* it resizes a sampled allocation: */
	__u8 pad;
	__u32 draws; /* where they follow from a seed: how often it has drawn */
	struct bpfprof_live_key old_key;
	struct bpfprof_live old;
};

struct bp_heap_tasks_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct heap_task);
};

/* By thread id, where the kernel has no task storage; sized when loaded. */
struct bp_heap_hash_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct heap_task);
};

struct futex_id {
	__u64 addr;
	__u32 tgid;
	__u32 pad;
};

/* Who waits for a futex: see charge in futex.bpf.h. */
struct futex_waiters {
	__u64 sum;
	__u64 woken_ns;	 /* when somebody was woken there last */
	__u64 create_ns; /* of this entry */
};

/* Only for the mutex profile. An entry that was dropped does no harm: a waiter that was counted in it
 * is charged by its own wait alone. */
struct bp_futexes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct futex_id);
	__type(value, struct futex_waiters);
};

/* Of a CPU: its clock of the scheduler beside CLOCK_MONOTONIC, see sched_cpu.bpf.h, and the thread
 * that came last. */
struct sched_cpu {
	__u64 measured; /* when, on the scheduler's clock; 0: not yet */
	__s64 off;	/* from that one to CLOCK_MONOTONIC, ns */
	struct wait_arrival here;
};

struct bp_sched_cpus_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sched_cpu);
};

#define USTACK_CACHE_SZ 2048 /* a power of two */
#define USTACK_WAYS 4	     /* of them, in which one may be */
struct bp_ustacks_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, USTACK_CACHE_SZ);
	__type(key, __u32);
	__type(value, struct cached_ustack);
};

#define KSTACK_CACHE_SZ 1024 /* a power of two */
struct bp_kstacks_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KSTACK_CACHE_SZ);
	__type(key, __u32);
	__type(value, struct cached_kstack);
};

struct bp_waits_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wait_task);
};

/* As bp_heap_hash. */
struct bp_wait_hash_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_task);
};

/* Direct-mapped cache of the states of waits, for where every switch is looked at: see
 * wait_machine.h. */
struct bp_wait_slots_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* from the beginning of a page on */
	__uint(max_entries, WAIT_SLOTS);
	__type(key, __u32);
	__type(value, struct wait_slot);
};

/* wait_number of each slot's owner: inserting fails where there is one. */
struct bp_wait_owners_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WAIT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
};

/* ---- states of threads ---- */

/* In task storage or, where programs have none (4cf1bc1f1045, 5.11; a10787e6d58c, 5.12), in a hash
 * by thread id. Who keeps states in a hash deletes them when their threads end. */
static __always_inline void *state_of(void *storage, void *hash, struct task_struct *task)
{
	__u32 tid;

	if (!bp_config.hash_states)
		return bpf_task_storage_get(storage, task, NULL, 0);
	tid = COMPAT_TASK(task, pid);
	return bpf_map_lookup_elem(hash, &tid);
}

union any_state {
	struct heap_task heap;
	struct wait_task wait;
};

/* The state of a thread, made of zeros if it has none. NULL: there is no memory, or no room. */
static __always_inline void *state_make(void *storage, void *hash, struct task_struct *task)
{
	void *state;

	if (!bp_config.hash_states)
		return bpf_task_storage_get(storage, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	state = state_of(storage, hash, task);
	if (!state) {
		__u32 tid = COMPAT_TASK(task, pid);
		union any_state none = {};

		bpf_map_update_elem(hash, &tid, &none, BPF_NOEXIST);
		state = bpf_map_lookup_elem(hash, &tid);
	}
	return state;
}

/* The record of the threads' iterator is put together here: it runs once at a time. Frames: one
 * more than are recorded, a power of two, so that their size is seen to be bounded. */
struct thread_buf {
	struct bpfprof_thread head;
	__u64 kernel[BPFPROF_MAX_KFRAMES + 1];
};

struct bp_thread_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread_buf);
};

/* Threads, by id, that are to be sampled as soon as they are met on a CPU: the program that removes
 * one samples it. */
struct bp_threads_due_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BPFPROF_MAX_DUE);
	__type(key, __u32);
	__type(value, __u8);
};

/* Discards the range and the known bits that comparisons have given the verifier of a number, so that its
 * states behind them are pruned; by: another number, of which it knows nothing. (Of what byte swaps
 * leave it knew nothing either until some time before 6.18.) */
#define VERIFIER_FORGET(x, by) __asm__ volatile("%0 ^= %1\n%0 ^= %1" : "+r"(x) : "r"(by))

/* ---- what unwind.h asks of its includer ---- */
static __always_inline int unw_read_user(struct unw *u, void *dst, __u32 sz, __u64 addr)
{
	return bpf_probe_read_user(dst, sz, (const void *)addr);
}

static __always_inline const __u8 *unw_chunk(const struct unw *u, __u32 idx)
{
	__u32 zero = 0;
	void *chunk = bpf_map_lookup_elem(&bp_chunks, &idx);

	return chunk ? bpf_map_lookup_elem(chunk, &zero) : NULL;
}

static __always_inline void unw_mark_used(const __u8 *chunk, __u32 pos)
{
	__u32 at = pos + (__u32)offsetof(struct bpfprof_part, used);

	*(__u32 *)(chunk + (at & (BPFPROF_CHUNK_SZ - 4))) = 1;
}

struct bp_ksyms_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BPFPROF_KSYM_BATCH);
	__type(key, __u32);
	__type(value, struct bpfprof_ksym);
};

static __always_inline __u32 current_side(void)
{
	return BPFPROF_SIDE(bp_control.epoch);
}

static __always_inline struct bpfprof_stats *stats_in(__u32 side, __u32 kind)
{
	__u32 key = BPFPROF_STATS_KEY(side, kind);

	return bpf_map_lookup_elem(&bp_stats, &key);
}

/* Of an event of which nothing else is kept. */
static __always_inline struct bpfprof_stats *stats_of(__u32 kind)
{
	return stats_in(current_side(), kind);
}

/* The counters are a CPU's own, but a program in a task may be preempted between reading and
 * writing one. */
#define STATS_ADD(counter, n) __sync_fetch_and_add(&(counter), n)

/* Is a kind not recorded for now? Then nothing is counted of it either. */
static __always_inline bool is_off(__u32 kind)
{
	return bp_control.kinds_off & 1U << kind;
}

static __always_inline void lose(__u32 kind, enum bpfprof_lost why)
{
	struct bpfprof_stats *stats = stats_of(kind);

	if (!stats || is_off(kind))
		return;
	STATS_ADD(stats->seen, 1);
	STATS_ADD(stats->lost[why], 1);
}

/* A stack is remembered. Has it to be walked all the same, to check the cache? */
static __always_inline bool check_is_due(struct bpfprof_cache_stats *cache)
{
	__u64 before = cache->cached;

	STATS_ADD(cache->cached, 1);
	return before % BPFPROF_CHECKED == 0;
}

/* It was walked. Returns whether the walk has found what was remembered. */
static __always_inline bool check_same(struct bpfprof_cache_stats *cache, bool same)
{
	STATS_ADD(cache->checked, 1);
	if (!same)
		STATS_ADD(cache->mismatched, 1);
	return same;
}

/* ---- filters ---- */

/* Is the number in the set, and still the process's that was meant? */
static __always_inline bool in_set(void *set, __u32 id, __u64 start_ns)
{
	__u64 *start = bpf_map_lookup_elem(set, &id);

	return start && *start == start_ns;
}

/* Is the kind recorded of the task's process, and now? To be asked for before what costs more. */
static __always_inline bool is_chosen(__u32 kind, struct task_struct *task)
{
	struct bpfprof_chosen *chosen;
	__u32 tgid;

	if (!bp_config.chosen[kind])
		return !is_off(kind);
	tgid = COMPAT_TASK(task, tgid);
	chosen = bpf_map_lookup_elem(&bp_chosen, &tgid);
	return chosen && chosen->kinds & (1U << kind) && !is_off(kind) &&
	       chosen->start_ns == BPF_CORE_READ(task, group_leader, start_boottime);
}

/* Does a thread's name match the pattern? See bpfprof_config. */
static __always_inline bool comm_matches(const char comm[BPFPROF_COMM_SZ])
{
	__u64 state = 1;

	for (int i = 0; i < BPFPROF_COMM_SZ; i++) {
		__u8 c = comm[i];

		if (!c)
			break;
		state = ((state & bp_config.comm_match[c]) << 1) | (state & bp_config.comm_loop);
	}
	return state & bp_config.comm_accept;
}

#define MAX_CGROUP_DEPTH 64

/*
 * Is a task below it? There is a helper for the current task alone. The cgroup is what the map
 * holds, a bpf_array; as a pointer to a map may not be followed, it is read from the stack as a
 * number.
 */
static __always_inline bool in_cgroup(struct task_struct *task)
{
	void *volatile map = &bp_cgroup;
	struct cgroup *want = NULL, *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	struct bpf_array *array = NULL;

	bpf_probe_read_kernel(&array, sizeof(array), (const void *)&map);
	bpf_core_read(&want, sizeof(want), &array->ptrs);

	for (int i = 0; i < MAX_CGROUP_DEPTH && cgroup && want; i++) {
		if (cgroup == want)
			return true;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return false;
}

/* ---- the current task ---- */
struct task_facts {
	struct bpfprof_proc_key key;
	__u32 tid;
	bool has_user; /* a user stack: it is no kernel thread, nor in the middle of an exec */
};

static __always_inline void task_facts(struct task_facts *ret)
{
	__u64 id = bpf_get_current_pid_tgid();

	ret->key.tgid = id >> 32;
	ret->tid = (__u32)id;
	if (compat_have_task_btf()) {
		struct task_struct *task = bpf_get_current_task_btf();

		ret->key.exec_id = (__u32)task->self_exec_id;
		/* pointers are copied, not followed: see task_regs */
		ret->key.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
		ret->has_user = BPF_CORE_READ(task, mm) != NULL &&
				!(task->flags & compat_workers()) &&
				!(bpf_core_field_exists(task->in_execve) &&
				  BPF_CORE_READ_BITFIELD(task, in_execve));
	} else {
		struct task_struct *task = (void *)bpf_get_current_task();

		ret->key.exec_id = (__u32)BPF_CORE_READ(task, self_exec_id);
		ret->key.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
		ret->has_user = BPF_CORE_READ(task, mm) != NULL &&
				!(BPF_CORE_READ(task, flags) & compat_workers()) &&
				!(bpf_core_field_exists(task->in_execve) &&
				  BPF_CORE_READ_BITFIELD_PROBED(task, in_execve));
	}
}

/*
 * A child of vfork or posix_spawn runs in its parent's memory until it execs, often too shortly to
 * be known: it is taken for its parent, whose code it runs. Makes *key the parent's and returns
 * true if that is so.
 */
static __always_inline bool task_borrowed_memory(struct bpfprof_proc_key *key)
{
	struct task_struct *task, *parent;

	/* copied, not followed: see task_regs */
	task = (void *)bpf_get_current_task();
	parent = BPF_CORE_READ(task, real_parent);
	if (BPF_CORE_READ(parent, mm) != BPF_CORE_READ(task, mm) ||
	    BPF_CORE_READ(parent, tgid) == BPF_CORE_READ(task, tgid))
		return false;
	key->tgid = BPF_CORE_READ(parent, tgid);
	key->exec_id = (__u32)BPF_CORE_READ(parent, self_exec_id);
	key->start_ns = BPF_CORE_READ(parent, group_leader, start_boottime);
	return true;
}

/* The registers with which a task entered the kernel, or was interrupted in user mode: the top of
 * its kernel stack. task: one that may be dereferenced, if there are such. 0 or not. */
static __always_inline int task_regs(struct task_struct *task, struct pt_regs *ret)
{
	const void *at;

	if (compat_have_task_pt_regs())
		at = (const void *)bpf_task_pt_regs(task);
	else
		at = BPF_CORE_READ(task, stack) + COMPAT_THREAD_SIZE - sizeof(*ret);
	/* copied whole: the verifier looks every pointer read through a BTF pointer up in all of
	 * the kernel's BTF, a ms or two for each */
	return bpf_probe_read_kernel(ret, sizeof(*ret), at);
}

/* USER32_CS, arch/x86/include/asm/segment.h */
#define CS_USER32 0x23

/* The number of the system call that a task with these registers is in, or BPFPROF_CALL32, or
 * BPFPROF_NO_SYSCALL. */
static __always_inline __u32 regs_syscall(const struct pt_regs *regs)
{
	/* Interrupts and exceptions set orig_ax to -1. What the kernel has started, and has not called exec yet,
	 * has registers of zeros: its selectors are not those of user mode. */
	if ((long)regs->orig_ax < 0 || !(regs->cs & 3))
		return BPFPROF_NO_SYSCALL;
	if (regs->cs == CS_USER32)
		return BPFPROF_CALL32;
	return regs->orig_ax < BPFPROF_CALL32 ? regs->orig_ax : BPFPROF_NO_SYSCALL;
}

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define NR_FUTEX 202
#define NR_RESTART_SYSCALL 219
/* include/uapi/linux/futex.h */
#define FUTEX_CMD_MASK 0x7f

/*
 * Is what a thread has been made to restart (restart_syscall(2)) a wait for a futex with a
 * time-out? Its registers are still those of the call; that it was this one, and no poll or sleep,
 * shows by what the kernel has kept to restart it. Returns when the time is out, in ns, or 0: it is
 * not.
 */
static __always_inline __u64 restarted_until(struct task_struct *task, const struct pt_regs *regs)
{
	__u32 cmd = regs->si & FUTEX_CMD_MASK, bitset = cmd ? regs->r9 : ~0U;

	if (!bpf_core_field_exists(task->restart_block.futex.bitset) || !regs->di ||
	    (__u64)BPF_CORE_READ(task, restart_block.futex.uaddr) != regs->di ||
	    BPF_CORE_READ(task, restart_block.futex.val) != (__u32)regs->dx ||
	    BPF_CORE_READ(task, restart_block.futex.bitset) != bitset)
		return 0;
	return BPF_CORE_READ(task, restart_block.futex.time);
}

/* The number of the system call that a task with these registers is in; a wait for a futex that was
 * restarted as what it is. */
static __always_inline __u32 task_syscall(struct task_struct *task, const struct pt_regs *regs)
{
	__u32 nr = regs_syscall(regs);

	return nr == NR_RESTART_SYSCALL && restarted_until(task, regs) ? NR_FUTEX : nr;
}

/*
 * The same of a task. Not inlined, for the sake of the stack: until 6.13 gave each function one of
 * its own, all that are active together have 512 bytes. The registers are a third of that, and the
 * walk of a user stack needs it.
 */
static __noinline __attribute__((unused)) __u32 syscall_of(struct task_struct *task)
{
	struct pt_regs regs;

	return task_regs(task, &regs) ? BPFPROF_NO_SYSCALL : task_syscall(task, &regs);
}

/*
 * Is this an interrupt, hard or soft? The count that tells (include/linux/preempt.h) is a per-CPU
 * variable, which a kernel without CONFIG_KALLSYMS_ALL lets nobody name. It is as far from the
 * run queue, which the current task leads to, as the two are apart in the kernel's image.
 */
static __always_inline bool in_interrupt(void)
{
	struct task_struct *task = compat_current();
	__u32 count = 0;
	const void *rq;

	if (!bp_config.preempt_count_off)
		return false;
	rq = compat_have_task_btf() ? (void *)task->se.cfs_rq->rq :
				      (void *)BPF_CORE_READ(task, se.cfs_rq, rq);
	if (bpf_probe_read_kernel(&count, sizeof(count), rq + bp_config.preempt_count_off))
		return false;
	return count & bp_config.interrupt_mask;
}

/* include/linux/sched.h */
#define TASK_INTERRUPTIBLE 0x01
#define TASK_UNINTERRUPTIBLE 0x02
#define TASK_STOPPED 0x04
#define TASK_TRACED 0x08
#define EXIT_STATES 0x30
#define TASK_DEAD 0x80
#define TASK_NOLOAD 0x400 /* sleeps like one that cannot be interrupted, but has nothing to do */

/* Why a task that may be dereferenced is not on a CPU; state: its own, preempted: it lost the CPU,
 * whatever its state says. */
static __always_inline enum bpfprof_thread_state task_state(struct task_struct *task,
							    bool preempted, __u32 state)
{
	if (state & (TASK_DEAD | EXIT_STATES))
		return BPFPROF_STATE_dead;
	if (preempted || !state)
		return BPFPROF_STATE_runnable;
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		return BPFPROF_STATE_io;
	if (state & TASK_TRACED)
		return BPFPROF_STATE_traced;
	if (state & TASK_STOPPED)
		return BPFPROF_STATE_stopped;
	return state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD) ? BPFPROF_STATE_disk_sleep :
									BPFPROF_STATE_sleeping;
}

/* ---- functions that cross files ---- */

/* record.bpf.c: does the current task pass the filters? */
__hidden bool record_wanted(const struct task_facts *task);
struct record_what {
	__u32 kind;
	bool returned; /* it has just returned from a function: rip is a return address */
	__u8 ret_side; /* of the epoch that it belongs to */
	/* see struct bpfprof_rec; samples that differ in them are counted apart */
	__u64 size, weight;
	__u32 wait;
	/* Of a kind of waits, in place of the above: of the sample, and of a second one of the same
	 * stack, if it has units. Not on the stack: the verifier would follow each choice that made
	 * them through all of the unwinder. */
	const struct record_wait *waits;
	struct bpfprof_count_key ret_key; /* that it was counted under */
};

/* record.bpf.c: the part of record_wanted that is not about the task's identity. */
__hidden bool record_wanted_more(void);

/* How a sample is taken. Not in struct record_what: of a number in a register the verifier knows
 * what it is, and leaves out what is not done with it. */
#define RECORD_USER_MODE 1 /* the task was not in the kernel: there are no kernel frames */
#define RECORD_USER_ONLY 2 /* none are wanted */
#define RECORD_SLEPT 4	   /* it has slept, in the frames it is in */
#define RECORD_JOINED 8	   /* it is joined to its stack later, by ret_key, raw or not */
#define RECORD_CACHED 16   /* look in the cache of user stacks first */

/*
 * record.bpf.c: takes the current stack as a sample, counts it and sends it if it is new. task has
 * passed record_wanted; slot is the caller's own. ctx is the program's. how: RECORD_… Returns 0 if
 * it was recorded, above 0 if it was lost; both have been counted.
 */
__hidden int record_sample(void *ctx, __u32 slot, const struct task_facts *task,
			   struct record_what *what, __u32 how);

/* kstack.bpf.c: takes the frames in the kernel, behind the user frames that are in s->u.rec; how:
 * RECORD_…. Returns a hash of them. */
__hidden __u64 kstack_walk(void *ctx, struct scratch *s, __u32 how);
/* kstack.bpf.c: the same of a task that has slept in them; may leave the frames out, and says so in
 * s->kernel_left. */
__hidden __u64 kstack_slept(void *ctx, struct scratch *s);
/* stack.bpf.c: sends registers and stack instead of frames. Returns 0, or 1 if the ring is full. */
__hidden int stack_send_raw(void *ctx, struct scratch *s, bool with_kernel);

#endif
