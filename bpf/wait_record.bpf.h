/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What is recorded of a wait: whether, with what weight, and as which samples. */
#ifndef WAIT_RECORD_BPF_H
#define WAIT_RECORD_BPF_H

#include "common.bpf.h"
#include "futex.bpf.h"
#include "wait_state.bpf.h"

static __always_inline void count_below(__u32 kind, __u32 cnt, __u64 ns)
{
	struct bpfprof_stats *stats = stats_of(kind);

	if (!stats || is_off(kind))
		return;
	if (bp_config.futex_probes) {
		STATS_ADD(stats->below, cnt);
		STATS_ADD(stats->below_ns, ns);
		return;
	}
	/* inside the scheduler nothing that runs in between counts in the same kind */
	stats->below += cnt;
	stats->below_ns += ns;
}

/* By the sign of a difference, which tells the verifier nothing of ns: it would follow what comes next
 * for each range that it may be in. */
static __always_inline bool is_below(__u32 kind, __u64 ns)
{
	__u64 least = bp_config.min_wait_ns[kind], sign = ns - (least ? least : 1);

	UNW_OPAQUE(sign);
	return sign >> 63;
}

/* Is a wait of ns, which is not below, to be recorded? How much it stands for goes to ret. */
static __always_inline bool weigh(__u64 ns, struct record_wait *ret)
{
	__u64 rate = bp_control.wait_rate_ns, seed = bp_config.sample_seed;
	__u32 random;

	ret->units = BPFPROF_UNIT;
	ret->amount = ns;
	if (ns >= rate)
		return true;
	random = seed ? sample_random(seed, ret->draws++) : bpf_get_prandom_u32();
	if (!sample_wait(random, ns, rate))
		return false;
	ret->units = sample_wait_units(ns, rate, BPFPROF_UNIT);
	ret->amount = rate;
	return true;
}

/* The same of any wait; one that is below is counted. */
static __always_inline bool weigh_any(__u32 kind, __u64 ns, struct record_wait *ret)
{
	if (!is_below(kind, ns))
		return weigh(ns, ret);
	count_below(kind, 1, ns);
	return false;
}

static __always_inline void record(void *ctx, struct record_what *what, __u32 how)
{
	__u32 slot = bp_config.trace_slot + bpf_get_smp_processor_id();
	struct task_facts task;

	task_facts(&task);
	if (record_wanted(&task))
		record_sample(ctx, slot, &task, what, how);
}

/* record, from a program that can be preempted. */
static __always_inline void record_preemptible(void *ctx, struct record_what *what, __u32 how)
{
	struct task_facts task;
	int taken;
	__u32 slot;

	task_facts(&task);
	if (!record_wanted(&task))
		return;
	taken = stack_take_slot();
	if (taken < 0) {
		lose(what->kind, BPFPROF_LOST_no_slot);
		return;
	}
	slot = taken;
	record_sample(ctx, slot, &task, what, how);
	stack_give_slot(slot);
}

/* How long a task has been on run queues in all its life. A kernel without CONFIG_SCHED_INFO does
 * not know: there, being runnable counts as blocked. */
static __always_inline __u64 queued_ns(struct task_struct *task)
{
	if (!bpf_core_field_exists(struct sched_info, run_delay))
		return 0;
	return COMPAT_TASK(task, sched_info.run_delay);
}

static __always_inline void record_block(void *ctx, struct task_struct *task, struct wait_task *w,
					 __u64 off_ns, __u64 blocked_ns)
{
	/* its entry in the futex's queue */
	const struct futex_q *q = bp_config.futex_probes ? (void *)((__u64 *)ctx)[0] : NULL;
	struct record_what what = { .kind = BPFPROF_BLOCK };
	struct futex wait;
	bool below;

	if (!is_chosen(BPFPROF_BLOCK, task))
		return;
	VERIFIER_FORGET(blocked_ns, off_ns);
	below = is_below(BPFPROF_BLOCK, blocked_ns);
	/* of many waits most are not recorded: drawn before what costs more */
	if (!below && !weigh(blocked_ns, &w->waits[0]))
		return;
	read_futex(task, &wait);
	if (!wait.waits)
		return;
	if (below) {
		count_below(BPFPROF_BLOCK, 1, blocked_ns);
		return;
	}
	if (!w->wake_ns && w->woken != BPFPROF_WAKE_NOT_YET)
		w->woken = q ? woken_from(q, task, &wait, off_ns, off_ns + blocked_ns) :
			       woken_how(task, &wait, off_ns, off_ns + blocked_ns);
	w->waits[0].wait = BPFPROF_WAIT_PACK(wait.syscall, w->state, w->woken);
	w->waits[1].units = 0;
	what.waits = w->waits;
	if (bp_config.futex_probes)
		record_preemptible(ctx, &what, RECORD_USER_ONLY | RECORD_CACHED);
	else
		record(ctx, &what, RECORD_USER_ONLY | RECORD_CACHED);
}

/* Until the wake the thread was blocked, and from then on it was on a run queue. */
static __always_inline void record_offcpu(void *ctx, struct task_struct *task, struct wait_task *w,
					  __u64 blocked_ns, __u64 runq_ns)
{
	struct record_what what = { .kind = BPFPROF_OFFCPU, .waits = w->waits };
	__u32 syscall, cnt = 0;

	if (is_off(BPFPROF_OFFCPU))
		return;
	w->waits[1].units = 0;
	if (w->state != BPFPROF_STATE_runnable &&
	    weigh_any(BPFPROF_OFFCPU, blocked_ns, &w->waits[0])) {
		w->waits[0].wait = w->state;
		cnt = 1;
	}
	if (weigh_any(BPFPROF_OFFCPU, runq_ns, &w->waits[cnt])) {
		w->waits[cnt].wait = BPFPROF_STATE_runnable;
		cnt++;
	}
	if (!cnt)
		return;
	syscall = no_syscall(COMPAT_TASK(task, flags));
	if (syscall == BPFPROF_NO_SYSCALL)
		syscall = syscall_of(task);
	w->waits[0].wait = BPFPROF_WAIT_PACK(syscall, w->waits[0].wait, 0);
	w->waits[1].wait = BPFPROF_WAIT_PACK(syscall, w->waits[1].wait, 0);
	/* a thread that was preempted may be anywhere */
	record(ctx, &what, RECORD_SLEPT | (w->state == BPFPROF_STATE_runnable ? 0 : RECORD_CACHED));
}

/* A thread that has slept has done so for a moment at least, also where the clocks of two CPUs say that
 * it was none: the wait is counted. */
static __always_inline __u64 slept_ns(const struct wait_task *w, __u64 ns)
{
	return ns || w->state == BPFPROF_STATE_runnable ? ns : 1;
}

/* The wait that w describes has ended at now. */
static __always_inline void resumed_at(void *ctx, struct task_struct *task, struct wait_task *w,
				       __u64 now)
{
	bool early = wait_was_early(w);
	__u64 off_ns = wait_take(task, w), wake_ns, blocked_ns, runq_ns, stop_ns;

	if (!wait_is_woken(w)) {
		w->wake_ns = 0;
		w->woken = BPFPROF_WAKE_PEER;
	}
	stop_ns = bp_control.stop_ns;
	if (now < off_ns)
		now = off_ns;
	/* as the waker saw it, so that block and mutex agree; else by the scheduler's count */
	wake_ns = w->wake_ns ?: now - (queued_ns(task) - w->queued_ns);
	if (wake_ns < off_ns || w->state == BPFPROF_STATE_runnable)
		wake_ns = off_ns;
	/* by another clock: see switch_ns */
	if (wake_ns > now)
		wake_ns = now;
	if (stop_ns) {
		if (off_ns >= stop_ns)
			return;
		now = stop_ns;
		if (wake_ns > stop_ns) {
			wake_ns = stop_ns;
			w->woken = BPFPROF_WAKE_NOT_YET;
		}
	}
	blocked_ns = slept_ns(w, wake_ns - off_ns);
	runq_ns = now - wake_ns;
	VERIFIER_FORGET(off_ns, now);
	VERIFIER_FORGET(blocked_ns, now);
	VERIFIER_FORGET(runq_ns, now);
	if (bp_config.filter_cgroup || bp_config.filter_comm)
		if (!record_wanted_more())
			return;
	if (bp_config.record[BPFPROF_BLOCK] && w->state == BPFPROF_STATE_sleeping && w->may_futex)
		/* its waker could not record it for the mutex profile */
		record_block(ctx, task, w, off_ns, early ? 0 : blocked_ns);
	if (bp_config.record[BPFPROF_OFFCPU])
		record_offcpu(ctx, task, w, blocked_ns, runq_ns);
}

/* Is the wait below the threshold whatever it consists of? Then it is counted and over. */
static __always_inline bool was_short(struct wait_task *w, __u64 now)
{
	__u64 ns = slept_ns(w, now > w->off_ns ? now - w->off_ns : 0);

	if (w->may_futex || w->futex || bp_control.stop_ns || bp_config.filter_cgroup ||
	    bp_config.filter_comm || !is_below(BPFPROF_OFFCPU, ns))
		return false;
	count_below(BPFPROF_OFFCPU, w->state == BPFPROF_STATE_runnable ? 1 : 2, ns);
	w->off_ns = 0;
	return true;
}

#endif
