/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Which threads are watched for their waits. */
#ifndef WAIT_WATCH_BPF_H
#define WAIT_WATCH_BPF_H

#include "common.bpf.h"
#include "futex.bpf.h"

/* ---- threads that are not watched ---- */

/* Flags of threads whose waits nobody wants. */
static __always_inline __u32 unwanted_flags(void)
{
	return bp_config.kthreads ? compat_user_workers() : compat_workers();
}

/* Is a thread certainly not watched? Cheaper than to look for its state. On a server that is not
 * busy every second switch is one from a CPU's idle task, which is the kernel's, too. */
static __always_inline bool is_other(struct task_struct *task)
{
	__u32 only = bp_control.only_tgid;

	return only ? (__u32)COMPAT_TASK(task, tgid) != only :
		      COMPAT_TASK(task, flags) & unwanted_flags();
}

/* Is a thread's wait certainly of no kind that is recorded? Cheaper than to look for its state,
 * too. */
static __always_inline bool is_no_matter(struct task_struct *task)
{
	return !bp_config.record[BPFPROF_OFFCPU] && !may_be_futex(task);
}

static __always_inline bool watchable(struct task_struct *task)
{
	__u32 tgid = task->tgid, tid = task->pid;
	__u64 start_ns;

	if (!tid || task->flags & unwanted_flags() || tgid == bp_config.self_tgid)
		return false;
	/* most are not: this is called at every thread's futex waits */
	if (bp_config.filter_tgid && !bpf_map_lookup_elem(&bp_tgids, &tgid))
		return false;
	/* copied, not followed: see task_regs */
	start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	if (bp_config.filter_tgid && !in_set(&bp_tgids, tgid, start_ns))
		return false;
	return !bp_config.filter_tid || in_set(&bp_tids, tid, start_ns);
}

/* ---- threads without a state that should have one ---- */

/*
 * There was no memory for a thread's state. Its waits are lost, and counted at their start, since
 * their length is unknown; those of the mutex profile at the wake.
 */
static __always_inline bool lacks_state(struct task_struct *task)
{
	return bp_state.stateless && !bp_control.stop_ns && watchable(task);
}

static __noinline void lose_wait(struct task_struct *task, enum bpfprof_thread_state state)
{
	struct futex wait;

	if (state == BPFPROF_STATE_dead)
		return;
	if (bp_config.record[BPFPROF_OFFCPU])
		lose(BPFPROF_OFFCPU, BPFPROF_LOST_no_state);
	if (!bp_config.record[BPFPROF_BLOCK] || state != BPFPROF_STATE_sleeping ||
	    !may_be_futex(task) || !is_chosen(BPFPROF_BLOCK, task))
		return;
	read_futex(task, &wait);
	if (wait.waits)
		lose(BPFPROF_BLOCK, BPFPROF_LOST_no_state);
}

/* Does another task pass the filters that watchable leaves out? */
static __always_inline bool passes(struct task_struct *task)
{
	char comm[BPFPROF_COMM_SZ] = {};

	if (bp_config.filter_cgroup && !in_cgroup(task))
		return false;
	if (!bp_config.filter_comm)
		return true;
	bpf_probe_read_kernel_str(comm, sizeof(comm), task->comm);
	return comm_matches(comm);
}

#endif
