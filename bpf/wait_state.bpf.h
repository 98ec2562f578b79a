/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What wait_machine.h asks of its includer: states in maps (common.bpf.h), threads as the kernel
 * has them, records of the CPUs. */
#ifndef WAIT_STATE_BPF_H
#define WAIT_STATE_BPF_H

#include "common.bpf.h"
#include "futex.bpf.h"
#include "sched_cpu.bpf.h"
#include "wait_watch.bpf.h"

#define WAIT_HAVE_SLOTS bp_config.wait_slots
#define WAIT_SWITCH_IN_ONLY bp_config.switch_in_only
#define WAIT_OVERFLOWED bp_state.slot_overflow
#define WAIT_STATELESS bp_state.stateless

/* A switch on this CPU, seen by the successor, next. */
struct wait_switch {
	struct sched_cpu *c;
	const struct rq *rq;
	struct task_struct *next;
};

#include "wait_machine.h"

/* ---- threads ---- */

/* Stable id: the distance of the task_struct from &bp_control. The verifier forbids to make a
 * trusted pointer a number, but not to subtract two. */
static __always_inline __u64 wait_number(struct task_struct *task)
{
	return (const char *)task - (const char *)&bp_control;
}

/* What a task with these flags is in if that is no system call, though its registers may name one;
 * else BPFPROF_NO_SYSCALL. */
static __always_inline __u32 no_syscall(__u32 flags)
{
	if (flags & compat_workers())
		return BPFPROF_OF_KERNEL;
	return flags & COMPAT_PF_EXITING ? BPFPROF_EXITING : BPFPROF_NO_SYSCALL;
}

static __always_inline bool wait_on_cpu(struct task_struct *task)
{
	return compat_on_cpu(task);
}

/* It may have been woken since: what is left of its state then is whether it counted for the
 * load. */
static __always_inline enum bpfprof_thread_state wait_left_state(struct task_struct *task,
								 bool slept)
{
	__u32 state = task->__state;

	if (slept && !state)
		state = BPF_CORE_READ_BITFIELD(task, sched_contributes_to_load) ?
				TASK_UNINTERRUPTIBLE :
				TASK_INTERRUPTIBLE;
	return task_state(task, !slept, state);
}

static __always_inline void wait_lose(struct task_struct *task, const struct wait_arrival *a)
{
	if (lacks_state(task) && passes(task))
		lose_wait(task, wait_left_state(task, task->nvcsw != a->sleeps));
}

/* ---- slots and the overflow ---- */

static __always_inline struct wait_slot *wait_slot_at(__u32 at)
{
	return bpf_map_lookup_elem(&bp_wait_slots, &at);
}

static __always_inline bool wait_owner_insert(__u32 at, __u64 number)
{
	return !bpf_map_update_elem(&bp_wait_owners, &at, &number, BPF_NOEXIST);
}

static __always_inline __u64 wait_owner(__u32 at)
{
	__u64 *owner = bpf_map_lookup_elem(&bp_wait_owners, &at);

	return owner ? *owner : 0;
}

static __always_inline void wait_owner_remove(__u32 at)
{
	bpf_map_delete_elem(&bp_wait_owners, &at);
}

static __always_inline struct wait_task *wait_overflow_of(struct task_struct *task)
{
	return state_of(&bp_waits, &bp_wait_hash, task);
}

static __always_inline struct wait_task *wait_overflow_make(struct task_struct *task)
{
	return state_make(&bp_waits, &bp_wait_hash, task);
}

/* ---- records of the CPUs ---- */

/* CONFIG_NR_CPUS at most, arch/x86/Kconfig */
#define MAX_CPUS 8192

static __always_inline bool wait_find_arrival(__u64 number, __u64 switch_outs,
					      struct wait_arrival *ret)
{
	struct bpf_iter_num cpus;
	struct sched_cpu *c;
	bool found = false;
	__u32 zero = 0;
	int *cpu;

	bpf_iter_num_new(&cpus, 0, MAX_CPUS);
	while (!found && (cpu = bpf_iter_num_next(&cpus)) &&
	       (c = bpf_map_lookup_percpu_elem(&bp_sched_cpus, &zero, *cpu)))
		found = wait_arrival_read(&c->here, number, switch_outs, ret);
	bpf_iter_num_destroy(&cpus);
	return found;
}

static __always_inline struct task_struct *wait_arrived(const struct wait_arrival *a)
{
	return compat_as_task(a->addr);
}

static __always_inline struct task_struct *wait_task_get(const struct wait_arrival *a)
{
	return bpf_task_from_pid(a->tid);
}

static __always_inline void wait_task_put(struct task_struct *task)
{
	bpf_task_release(task);
}

/* It may have been charged since, by a tick that came before the program, which the kernel calls with
 * interrupts on. The fair class keeps what it had run before (set_next_entity in kernel/sched/fair.c); others
 * leave there what it was when the task was last a fair one: then it seems to have run for longer than it is
 * here, and what it has run by now counts. */
static __always_inline __u64 wait_ran_ns(struct task_struct *task)
{
	__u64 now = task->se.sum_exec_runtime, before = task->se.prev_sum_exec_runtime;

	return now - before <= run_queue(task)->clock - task->sched_info.last_arrival ? before :
											now;
}

/* When it had run as long as it has since, which leaves out what interrupts and other virtual
 * machines took. */
static __always_inline __u64 wait_left_clock(const struct wait_arrival *a, struct task_struct *task)
{
	return a->clock + wait_ran_since(a, task);
}

/* When the successor arrived, unless others have been here since, or that is of a time when the CPU
 * was idle before. */
static __always_inline __u64 wait_left_ns(const struct wait_switch *s, const struct wait_arrival *a,
					  struct task_struct *task)
{
	__u64 clock = arrival_clock(s->rq, s->next);

	if (clock < a->clock || s->rq->nr_switches != a->switches + 1)
		clock = wait_left_clock(a, task);
	return clock + s->c->off;
}

static __always_inline bool wait_clock_off(__s64 *ret)
{
	struct sched_cpu *c = sched_cpu();

	if (!c || !c->measured)
		return false;
	*ret = c->off;
	return true;
}

/* ---- futexes ---- */

static __always_inline bool wait_may_futex(struct task_struct *task)
{
	return bp_config.record[BPFPROF_BLOCK] &&
	       (!bp_config.record[BPFPROF_OFFCPU] || may_be_futex(task));
}

static __always_inline void wait_futex_enter(struct task_struct *task, struct wait_task *w,
					     __u64 ns)
{
	note_futex(task, w, ns);
}

static __always_inline void wait_futex_leave(struct task_struct *task, struct wait_task *w)
{
	leave_futex(task, w);
}

/* ---- interrupts of this CPU ---- */

static __always_inline void wait_irq_off(unsigned long *flags)
{
	bpf_local_irq_save(flags);
}

static __always_inline void wait_irq_on(unsigned long *flags)
{
	bpf_local_irq_restore(flags);
}

#endif
