/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The state machine of waits: where a thread's state is, which of its switch-outs the state
 * describes, and what the thread finds at its switch-in. Pure C without maps or programs: the BPF
 * side includes it by wait_state.bpf.h, tests/bpf/test_wait_machine.c on the host, where it runs in
 * every interleaving.
 *
 * Switch-outs of a thread are numbered: the Nth is the one after which the kernel has counted N.
 *
 *             switch-out N
 *   running ----------------> off, not published --- publish N ---> off, published
 *      ^                         |                                       |
 *      |                         | look-up at switch-in                  | look-up
 *      |                         v                                       v
 *      |<-- missed ------- a CPU's record has it? --- publish N ---> current: taken, charged
 *      |                                                                 |
 *      +<----------------------------------------------------------------+
 *
 * From 6.15 on one program at switch-in sees both ends of a wait. Each CPU has a record of the
 * thread that came last, with what the kernel had counted of it then. Three may publish:
 *   - the successor on the CPU that the thread has left, by the record of that CPU, before it
 *     overwrites the record with its own arrival (wait_publish_prev);
 *   - the thread itself, if it is back on another CPU before the successor got to it: an interrupt
 *     may keep the successor's program for as long as a whole wait (wait_look_up);
 *   - the waker, for the mutex profile, if neither has yet (wait_ends_sleep).
 * Before 6.15 the thread publishes its own switch-out in sched_switch, and nobody else does.
 *
 * A state lies in the slot that a hash of the thread's address gives, one cache line and no call;
 * task storage takes a call, and three loads that wait for each other. Of two threads with the same
 * slot the second overflows into task storage.
 *
 *   free --- wait_slot_take: owner inserted, then number set ---> owned
 *     ^                                                             |
 *     +--- wait_slot_release: number cleared, state zeroed, owner removed
 *
 * Invariants, which the test asserts for every interleaving:
 *   1. A wait is charged once, or counted as missed once.
 *   2. It is charged to the thread that waited, with the fields of that switch-out.
 *   3. An earlier switch-out's note never overwrites a later one's.
 *   4. A slot has one owner, and two threads never have the same state.
 *   5. A thread that is counted among the waiters of a futex is counted out once, by itself or by
 *      its waker.
 *   6. A wake that was seen after the switch-out was counted is known at the switch-in: as the
 *      one that ended the wait, or as one that came before it (wait_note_early).
 *
 * What it relies on:
 *   - Stores become visible in program order, loads are done in program order (x86: Intel SDM
 *     volume 3, "Memory Ordering"), and WAIT_GET and WAIT_PUT keep the compiler from reordering. No
 *     load has to come behind a store to another place.
 *   - The kernel counts a switch-out before the thread can run elsewhere (__schedule, on_cpu).
 *   - A program at sched_exit_tp is not preempted, but it is interrupted: what the successor has
 *     checked may be two switch-outs ago when it writes. So it checks once more with interrupts off
 *     (bpf_local_irq_save, 6.14), and from there to its last store takes less time than the thread
 *     takes from its look-up to its next switch-out. Where a hypervisor stops the CPU right there
 *     for that long, the thread's next wait is missed.
 *   - sched_process_free comes one RCU grace period after the last switch-out, and programs are
 *     read sections: the owner of a slot is not freed while a program looks at it.
 *   - One waker at a time has a sleeper's pi_lock, also in sched_waking.
 *
 * The includer defines __always_inline, __noinline, bool, struct task_struct with the fields that
 * are read, struct wait_switch (its own, for wait_left_ns), the functions that are declared below,
 * and
 *   WAIT_HAVE_SLOTS      an expression: states are in slots; else all are in the overflow
 *   WAIT_SWITCH_IN_ONLY  an expression: switches are seen at switch-in alone
 *   WAIT_OVERFLOWED      a variable: not 0: a state is in the overflow
 *   WAIT_STATELESS       a variable: not 0: there was no memory for a state
 * and may define how memory is accessed: the macros in wait_types.h.
 */
#ifndef WAIT_MACHINE_H
#define WAIT_MACHINE_H

#include "wait_types.h"

struct task_struct;
struct wait_switch;

/* ---- what the includer defines ---- */

/* A number that identifies a thread, from its address. */
static __always_inline __u64 wait_number(struct task_struct *task);
static __always_inline bool wait_on_cpu(struct task_struct *task);
/* That the task which has just arrived on this CPU had run in all its life when it did. */
static __always_inline __u64 wait_ran_ns(struct task_struct *task);

static __always_inline struct wait_slot *wait_slot_at(__u32 at);
/* The owner of a slot, beside it. wait_owner_insert is atomic, and false if there is one. */
static __always_inline bool wait_owner_insert(__u32 at, __u64 number);
static __always_inline __u64 wait_owner(__u32 at);
static __always_inline void wait_owner_remove(__u32 at);
/* The state in the overflow; NULL: there is none, or no memory to make it. */
static __always_inline struct wait_task *wait_overflow_of(struct task_struct *task);
static __always_inline struct wait_task *wait_overflow_make(struct task_struct *task);

/* wait_arrival_read of each CPU's record, until one returns true. */
static __always_inline bool wait_find_arrival(__u64 number, __u64 switch_outs,
					      struct wait_arrival *ret);
/* A pointer to read the thread by that a record names. */
static __always_inline struct task_struct *wait_arrived(const struct wait_arrival *a);
/* The same, referenced; NULL: there is none with that tid any more. */
static __always_inline struct task_struct *wait_task_get(const struct wait_arrival *a);
static __always_inline void wait_task_put(struct task_struct *task);

/* Why a thread has switched out; slept: voluntarily. */
static __always_inline enum bpfprof_thread_state wait_left_state(struct task_struct *task,
								 bool slept);
/* When the thread of that record has switched out, as its successor knows by the switch s; as the
 * record alone tells, on the scheduler's clock. */
static __always_inline __u64 wait_left_ns(const struct wait_switch *s, const struct wait_arrival *a,
					  struct task_struct *task);
static __always_inline __u64 wait_left_clock(const struct wait_arrival *a,
					     struct task_struct *task);
/* From the scheduler's clock to CLOCK_MONOTONIC; false: not known on this CPU. */
static __always_inline bool wait_clock_off(__s64 *ret);
/* The thread has switched out and has no state. */
static __always_inline void wait_lose(struct task_struct *task, const struct wait_arrival *a);

/* May the thread be in a futex? */
static __always_inline bool wait_may_futex(struct task_struct *task);
/* Counts the thread among the waiters of its futex, since ns; no longer. */
static __always_inline void wait_futex_enter(struct task_struct *task, struct wait_task *w,
					     __u64 ns);
static __always_inline void wait_futex_leave(struct task_struct *task, struct wait_task *w);

/* Stores flags; the functions are called in pairs. */
static __always_inline void wait_irq_off(unsigned long *flags);
static __always_inline void wait_irq_on(unsigned long *flags);

/* ---- publishing ---- */

/* How often a thread has switched out. */
static __always_inline __u64 wait_switch_outs(struct task_struct *task)
{
	return WAIT_TASK(task, nvcsw) + WAIT_TASK(task, nivcsw);
}

/* The other fields describe the thread's switch-out of that number, and have been written. */
static __always_inline void wait_publish(struct wait_task *w, __u64 switch_outs)
{
	WAIT_PUT(w->switch_outs, switch_outs);
}

/* Has it been published? Then the other fields describe it. */
static __always_inline bool wait_is_current(const struct wait_task *w, __u64 switch_outs)
{
	return WAIT_GET(w->switch_outs) == switch_outs;
}

/* Describes a switch-out and publishes it. queued_ns: see struct wait_task. counts: the thread is
 * counted among the waiters of its futex. */
static __always_inline void wait_note(struct task_struct *task, struct wait_task *w,
				      enum bpfprof_thread_state state, __u64 switch_outs,
				      __u64 queued_ns, __u64 ns, bool counts)
{
	WAIT_PUT(w->state, state);
	WAIT_PUT(w->may_futex, wait_may_futex(task));
	WAIT_PUT(w->queued_ns, queued_ns);
	WAIT_PUT(w->off_ns, ns);
	if (counts)
		wait_futex_enter(task, w, ns);
	wait_publish(w, switch_outs);
}

/* The thread takes its wait, to be charged with it or because it is over. Returns when it began;
 * 0: there is none. */
static __always_inline __u64 wait_take(struct task_struct *task, struct wait_task *w)
{
	__u64 ns = WAIT_GET(w->off_ns);

	wait_futex_leave(task, w);
	WAIT_PUT(w->off_ns, 0);
	WAIT_PUT(w->early, false);
	return ns;
}

/* ---- where a state is ---- */

/* Fibonacci hashing; tasks are aligned to 64 bytes. */
static __always_inline __u32 wait_slot_hash(__u64 number)
{
	return (__u32)(number >> 6) * 0x9e3779b1U / (__u32)(0x100000000ULL / WAIT_SLOTS);
}

static __always_inline struct wait_slot *wait_slot_of(__u64 number)
{
	return wait_slot_at(wait_slot_hash(number));
}

/* The state of a watched thread; NULL: it is not watched, or has none. Makes none, since inside the
 * scheduler there is no telling whether memory may be asked for. */
static __always_inline struct wait_task *wait_state_of(struct task_struct *task)
{
	struct wait_slot *slot;
	__u64 number;

	if (WAIT_HAVE_SLOTS) {
		number = wait_number(task);
		slot = wait_slot_of(number);
		if (slot && WAIT_GET(slot->number) == number)
			return &slot->w;
		if (!WAIT_GET(WAIT_OVERFLOWED))
			return NULL;
	}
	return wait_overflow_of(task);
}

/* NULL: the slot is another thread's. */
static __always_inline struct wait_task *wait_slot_take(__u64 number)
{
	struct wait_slot *slot = wait_slot_of(number);
	__u32 at = wait_slot_hash(number);

	/* its own already, if wait_slot_release could not remove it: a map may be busy */
	if (!slot || (!wait_owner_insert(at, number) && wait_owner(at) != number))
		return NULL;
	WAIT_PUT(slot->number, number);
	return &slot->w;
}

/* The state of a thread, made of zeros if it has none. NULL: there is no memory. */
static __always_inline struct wait_task *wait_state_make(struct task_struct *task)
{
	struct wait_task *w;

	if (WAIT_HAVE_SLOTS) {
		w = wait_state_of(task) ?: wait_slot_take(wait_number(task));
		if (w)
			return w;
		WAIT_PUT(WAIT_OVERFLOWED, 1);
	}
	w = wait_overflow_make(task);
	if (!w)
		WAIT_PUT(WAIT_STATELESS, 1);
	return w;
}

/* The thread is freed: its number may be another one's from now on. The owner goes last, so that
 * the next one finds zeros. */
static __always_inline void wait_slot_release(struct task_struct *task)
{
	__u64 number = wait_number(task);
	struct wait_slot *slot = wait_slot_of(number);

	if (!slot || WAIT_GET(slot->number) != number)
		return;
	WAIT_PUT(slot->number, 0);
	/* counted by a successor that was late, after the thread had taken the wait */
	wait_futex_leave(task, &slot->w);
	WAIT_ZERO(slot->w);
	wait_owner_remove(wait_slot_hash(number));
}

/* ---- the record of a CPU ---- */

/* task has switched in, by that switch of the CPU; watched: it may be. What identifies the thread
 * comes first: see wait_arrival_read. */
static __always_inline void wait_arrive(struct wait_arrival *a, struct task_struct *task,
					__u64 switches, bool watched)
{
	WAIT_PUT(a->switches, switches);
	if (!watched) {
		WAIT_PUT(a->stack, 0);
		return;
	}
	/* stored as it is, not made a number */
	WAIT_PUT(a->addr, (__u64)task);
	WAIT_PUT(a->number, wait_number(task));
	WAIT_PUT(a->clock, WAIT_TASK(task, sched_info.last_arrival));
	WAIT_PUT(a->ran_ns, wait_ran_ns(task));
	WAIT_PUT(a->queued_ns, WAIT_TASK(task, sched_info.run_delay));
	WAIT_PUT(a->tid, WAIT_TASK(task, pid));
	WAIT_PUT(a->sleeps, WAIT_TASK(task, nvcsw));
	WAIT_PUT(a->preempts, WAIT_TASK(task, nivcsw));
	WAIT_PUT(a->stack, (__u64)WAIT_TASK(task, stack));
}

/* The number of the switch-out by which the thread of that record leaves that CPU. */
static __always_inline __u64 wait_arrival_switch_outs(const struct wait_arrival *a)
{
	return WAIT_GET(a->sleeps) + WAIT_GET(a->preempts) + 1;
}

static __always_inline bool wait_arrival_is(const struct wait_arrival *a, __u64 number,
					    __u64 switch_outs)
{
	return WAIT_GET(a->stack) && WAIT_GET(a->number) == number &&
	       wait_arrival_switch_outs(a) == switch_outs;
}

/*
 * Copies what publishing wants of a record, if it is of that thread and switch-out, and still is
 * when it has been copied: the next arrival there overwrites what identifies the thread before what
 * is copied. The same thread's own next arrival cannot come, as that is the one that looks, or one
 * that is not on a CPU.
 */
static __always_inline bool wait_arrival_read(const struct wait_arrival *a, __u64 number,
					      __u64 switch_outs, struct wait_arrival *ret)
{
	if (!wait_arrival_is(a, number, switch_outs))
		return false;
	ret->clock = WAIT_GET(a->clock);
	ret->ran_ns = WAIT_GET(a->ran_ns);
	ret->queued_ns = WAIT_GET(a->queued_ns);
	ret->sleeps = WAIT_GET(a->sleeps);
	return wait_arrival_is(a, number, switch_outs);
}

/* How long the thread of a record ran on that CPU; a: a copy, or this CPU's. If it has arrived elsewhere by
 * now, what it had run then is more than it had here, and what it has been charged there is left out. */
static __always_inline __u64 wait_ran_since(const struct wait_arrival *a, struct task_struct *task)
{
	__u64 now = WAIT_TASK(task, se.sum_exec_runtime);
	__u64 before = WAIT_TASK(task, se.prev_sum_exec_runtime);

	return (before > a->ran_ns ? before : now) - a->ran_ns;
}

/* ---- switch-in: the predecessor's switch-out ---- */

/* Publishes prev's switch-out on its behalf; a: the record of the CPU. prev may have been woken
 * since, run elsewhere, and have published by itself. That both do so at the same moment is no
 * harm. */
static __always_inline void wait_publish_for(struct task_struct *prev, struct wait_task *w,
					     const struct wait_arrival *a, __u64 ns)
{
	__u64 switch_outs = wait_arrival_switch_outs(a);
	enum bpfprof_thread_state state;
	unsigned long flags;

	if (wait_switch_outs(prev) != switch_outs || wait_is_current(w, switch_outs))
		return;
	state = wait_left_state(prev, WAIT_TASK(prev, nvcsw) != WAIT_GET(a->sleeps));
	if (state == BPFPROF_STATE_dead)
		return;
	wait_irq_off(&flags);
	if (wait_switch_outs(prev) == switch_outs && !wait_is_current(w, switch_outs))
		wait_note(prev, w, state, switch_outs, WAIT_GET(a->queued_ns), ns, true);
	wait_irq_on(&flags);
}

/* The same of a predecessor without a slot. Only one that owns a slot is certainly not freed yet,
 * so this one is referenced by its tid. */
static __noinline void wait_publish_overflowed(const struct wait_arrival *a, __u64 ns)
{
	struct task_struct *prev = wait_task_get(a);
	struct wait_task *w;

	if (!prev)
		return;
	w = wait_number(prev) == WAIT_GET(a->number) ? wait_state_of(prev) : NULL;
	if (w)
		wait_publish_for(prev, w, a, ns);
	else
		wait_lose(prev, a);
	wait_task_put(prev);
}

/* The thread of the CPU's record a has switched out when s switched in. */
static __always_inline void wait_publish_prev(const struct wait_switch *s,
					      const struct wait_arrival *a)
{
	__u64 number = WAIT_GET(a->number);
	struct wait_slot *slot = wait_slot_of(number);
	bool owned = slot && WAIT_GET(slot->number) == number;
	struct task_struct *prev;
	__u64 ns;

	if (!owned && !WAIT_GET(WAIT_OVERFLOWED) && !WAIT_GET(WAIT_STATELESS))
		return;
	prev = wait_arrived(a);
	ns = wait_left_ns(s, a, prev);
	if (owned)
		wait_publish_for(prev, &slot->w, a, ns);
	else
		wait_publish_overflowed(a, ns);
}

/* ---- switch-in: the thread's own switch-out ---- */

/* Looks a switch-out that nobody has published up in the CPUs' records, and publishes it; while it
 * looks, the successor may. Not counted among the waiters of a futex: the wait is over, or about
 * to be. */
static __noinline void wait_publish_own(struct task_struct *task, struct wait_task *w, __s64 off)
{
	__u64 switch_outs = wait_switch_outs(task);
	struct wait_arrival a;

	if (wait_is_current(w, switch_outs) ||
	    !wait_find_arrival(wait_number(task), switch_outs, &a) ||
	    wait_is_current(w, switch_outs))
		return;
	wait_note(task, w, wait_left_state(task, WAIT_TASK(task, nvcsw) != a.sleeps), switch_outs,
		  a.queued_ns, wait_left_clock(&a, task) + off, false);
}

/* Has the wait of that switch-out been published, and not been taken? */
static __always_inline bool wait_is_known(const struct wait_task *w, __u64 switch_outs)
{
	return wait_is_current(w, switch_outs) && WAIT_GET(w->off_ns);
}

/* The thread's last switch-out was not published when it switched in. False: it was missed. */
static __always_inline bool wait_look_up(struct task_struct *task, struct wait_task *w, __s64 off)
{
	wait_publish_own(task, w, off);
	if (wait_is_known(w, wait_switch_outs(task)))
		return true;
	wait_take(task, w);
	return false;
}

/* ---- the waker ---- */

/* Has a waker been noted for the wait? By the number of its switch-out: the successor's program may
 * be late, and publish the same switch-out once more after the waker has. */
static __always_inline bool wait_is_woken(const struct wait_task *w)
{
	return WAIT_GET(w->wake_of) == (__u32)WAIT_GET(w->switch_outs);
}

/* Is the wait that the waker ends published? If nobody has, the waker does it. */
static __always_inline bool wait_is_published(struct task_struct *sleeper, struct wait_task *w)
{
	__u64 switch_outs = wait_switch_outs(sleeper);
	__s64 off;

	if (!wait_is_current(w, switch_outs) && !wait_on_cpu(sleeper) && wait_clock_off(&off))
		wait_publish_own(sleeper, w, off);
	return wait_is_current(w, switch_outs);
}

/* Does the wake end a wait that w describes? One that the sleeper still is on its CPU for has not
 * begun, and w describes an earlier one. */
static __always_inline bool wait_ends_sleep(struct task_struct *sleeper, struct wait_task *w)
{
	if (WAIT_SWITCH_IN_ONLY && !wait_is_published(sleeper, w))
		return false;
	return WAIT_GET(w->off_ns) && !wait_is_woken(w) &&
	       WAIT_GET(w->state) == BPFPROF_STATE_sleeping;
}

/* The waker has ended the wait at ns. */
static __always_inline void wait_note_wake(struct wait_task *w, enum bpfprof_wake woken, __u64 ns)
{
	WAIT_PUT(w->wake_ns, ns);
	WAIT_PUT(w->woken, woken);
	WAIT_PUT(w->wake_of, (__u32)WAIT_GET(w->switch_outs));
}

/*
 * The waker has come before the sleeper's wait has begun. As a rule there is none then: the sleeper
 * sees that it may go on. If it is about to leave its CPU by that time it does so all the same, for
 * as long as the waker takes to put it back on a run queue. The waker cannot know which.
 */
static __always_inline void wait_note_early(struct wait_task *w)
{
	WAIT_PUT(w->early, true);
}

/* Was the wait over before it began, as far as others were waited for? A waker that comes in time is
 * noted, so that what an earlier one has left does not matter. */
static __always_inline bool wait_was_early(const struct wait_task *w)
{
	return WAIT_GET(w->early) && !wait_is_woken(w);
}

#endif
