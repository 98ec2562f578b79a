// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Where threads are created. */
#include "common.bpf.h"
#include "wait_record.bpf.h"

SEC("?tp_btf/task_newtask")
int BPF_PROG(threadcreate, struct task_struct *task, __u64 clone_flags)
{
	struct record_what what = { .kind = BPFPROF_THREADCREATE };

	if (bp_control.waits_on && !bp_control.stop_ns && clone_flags & CLONE_THREAD)
		record(ctx, &what, RECORD_USER_ONLY);
	return 0;
}
