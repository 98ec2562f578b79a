// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Processes: the scan of those that exist, and the filter that follows children. */
#include "common.bpf.h"

/* Pointers are copied, not followed: see task_regs. */

/* Writes a struct bpfprof_task for each thread group that runs. Run once, when a read of the
 * iterator asks for it. A main thread that has ended before others has no mm any more: so kthread
 * goes by the flag, not by mm. */
SEC("?iter/task")
int proc_scan(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct bpfprof_task out = {};

	if (!task || task->pid != task->tgid || !BPF_CORE_READ(task, signal, live.counter))
		return 0;
	out.key.tgid = task->tgid;
	out.key.exec_id = (__u32)task->self_exec_id;
	out.key.start_ns = task->start_boottime;
	out.ppid = BPF_CORE_READ(task, real_parent, tgid);
	out.kthread = (task->flags & compat_workers()) != 0;
	out.cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	bpf_probe_read_kernel_str(out.comm, sizeof(out.comm), task->comm);
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

/* A child of a process that is profiled is profiled too (--follow, and for commands). */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(proc_follow, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = parent->tgid, pid = child->pid;
	__u64 *start, child_start = child->start_boottime;

	if (child->tgid != child->pid)
		return 0;
	start = bpf_map_lookup_elem(&bp_tgids, &tgid);
	if (!start || *start != BPF_CORE_READ(parent, group_leader, start_boottime))
		return 0;
	if (bpf_map_update_elem(&bp_tgids, &pid, &child_start, BPF_ANY))
		__sync_fetch_and_add(&bp_state.not_followed, 1);
	/* the parent's breakpoints lead to no program there, until it is probed itself; a perf
	 * event has told of it by now */
	if (bp_config.wake_at_fork)
		ring_wake();
	return 0;
}
