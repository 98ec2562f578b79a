/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Who the current task is, where it runs the code of its program or ends a system call of it. */
#ifndef USER_TASK_BPF_H
#define USER_TASK_BPF_H

#include "common.bpf.h"

/*
 * As task_facts, for less: such a task has a user stack, and the main thread of a process, which is
 * its group's leader, began when the process did. Each copy that is left out is some 30 ns.
 */
static __always_inline void user_task_facts(struct task_facts *ret)
{
	struct task_struct *task = compat_current();
	__u64 id = bpf_get_current_pid_tgid();

	ret->key.tgid = id >> 32;
	ret->tid = (__u32)id;
	ret->key.exec_id = (__u32)COMPAT_TASK(task, self_exec_id);
	if (ret->tid == ret->key.tgid)
		ret->key.start_ns = COMPAT_TASK(task, start_boottime);
	else
		/* a pointer is copied, not followed: see task_regs */
		ret->key.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	ret->has_user = true;
}

#endif
