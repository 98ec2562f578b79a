/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How a wait begins: a thread leaves its CPU. */
#ifndef WAIT_LEAVE_BPF_H
#define WAIT_LEAVE_BPF_H

#include "common.bpf.h"
#include "futex.bpf.h"
#include "sched_cpu.bpf.h"
#include "wait_state.bpf.h"
#include "wait_watch.bpf.h"

/* Its next wait begins at now, as its leaves-th switch, when it had waited for CPUs for queued ns.
 * counts: among those who wait for a futex. */
static __always_inline void note_leave(struct task_struct *task, struct wait_task *w,
				       enum bpfprof_thread_state state, __u64 leaves, __u64 queued,
				       __u64 now, bool counts)
{
	w->state = state;
	w->may_futex = bp_config.record[BPFPROF_BLOCK] &&
		       (!bp_config.record[BPFPROF_OFFCPU] || may_be_futex(task));
	w->wake_ns = 0;
	w->woken = BPFPROF_WAKE_PEER;
	w->queued_ns = queued;
	w->off_ns = now;
	if (counts)
		note_futex(task, w, now);
	tell(w, leaves);
}

/* ---- as who comes there next sees it ---- */

/*
 * From 6.15 on one program sees a switch from both sides, since each costs every switch the same
 * again: who comes back, in its own context, and who was there before it, by what had been noted of
 * that one when it came.
 */

/* Why a task has left its CPU; slept: by itself. It may have been woken since: what is left of its
 * state then is whether it counted for the load. */
static __always_inline enum bpfprof_thread_state left_state(struct task_struct *task, bool slept)
{
	__u32 state = task->__state;

	if (slept && !state)
		state = BPF_CORE_READ_BITFIELD(task, sched_contributes_to_load) ?
				TASK_UNINTERRUPTIBLE :
				TASK_INTERRUPTIBLE;
	return task_state(task, !slept, state);
}

/*
 * task has left the CPU that it had come to as noted there, at ns; who follows it there tells. It
 * may have been woken meanwhile, be back elsewhere, and have told by itself (find_leave): so it is
 * asked for once more where no interrupt can come between that and the telling, in which it might
 * go on to its next wait. That both tell the same at the same moment is no harm.
 */
static __always_inline void left(struct task_struct *task, struct wait_task *w,
				 const struct sched_here *here, __u64 ns)
{
	__u64 leaves = here->sleeps + here->preempts + 1;
	enum bpfprof_thread_state state;
	unsigned long flags;

	if (leaves_of(task) != leaves || is_told(w, leaves))
		return;
	state = left_state(task, task->nvcsw != here->sleeps);
	if (state == BPFPROF_STATE_dead)
		return;
	bpf_local_irq_save(&flags);
	if (leaves_of(task) == leaves && !is_told(w, leaves)) {
		leave_futex(task, w);
		note_leave(task, w, state, leaves, here->queued_ns, ns, true);
	}
	bpf_local_irq_restore(&flags);
}

/* Who was here before has left, and its state is not at its place. */
static __noinline void leave_displaced(struct sched_cpu *c, __u64 ns)
{
	struct task_struct *prev = bpf_task_from_pid(c->here.tid);
	struct wait_task *w;

	if (!prev)
		return;
	w = task_number(prev) == c->here.task ? wait_state_of(prev) : NULL;
	if (w)
		left(prev, w, &c->here, ns);
	else if (lacks_state(prev) && passes(prev))
		lose_wait(prev, left_state(prev, prev->nvcsw != c->here.sleeps));
	bpf_task_release(prev);
}

/* Who was here before has left when task came, unless others have been here since, or that is of a
 * time when the CPU was idle before. */
static __always_inline void leave_for(struct sched_cpu *c, const struct rq *rq,
				      struct task_struct *task)
{
	struct wait_place *place = place_of(c->here.task);
	bool placed = place && place->task == c->here.task;
	struct task_struct *prev;
	__u64 clock;

	if (!placed && !bp_control.displaced && !bp_control.stateless)
		return;
	/* who has a place is there; who may not be is only read */
	prev = compat_as_task(c->here.addr);
	clock = arrival_clock(rq, task);
	if (clock < c->here.clock || rq->nr_switches != c->here.switches + 1)
		clock = left_clock(prev, &c->here);
	if (placed)
		left(prev, &place->w, &c->here, clock + c->off);
	else
		leave_displaced(c, clock + c->off);
}

/* A task has left its CPU and was woken, is perhaps on another one already, before who followed it
 * has come to tell: so it is still noted there. off: from the scheduler's clock to CLOCK_MONOTONIC.
 * It counts among nobody who waits for a futex, as its wait is over. */
static __noinline void find_leave(struct task_struct *task, struct wait_task *w, __s64 off)
{
	__u64 leaves = leaves_of(task);
	struct sched_here here;

	if (is_told(w, leaves) || !find_here(task_number(task), leaves, &here) ||
	    is_told(w, leaves))
		return;
	note_leave(task, w, left_state(task, task->nvcsw != here.sleeps), leaves, here.queued_ns,
		   left_clock(task, &here) + off, false);
}

/* The same on any CPU, where the clocks may not have been compared for long. */
static __always_inline void find_leave_of_sleeper(struct task_struct *task, struct wait_task *w)
{
	struct sched_cpu *c = sched_cpu();

	if (c && c->measured)
		find_leave(task, w, c->off);
}

#endif
