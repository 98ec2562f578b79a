// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Operations of a command, counted where it does them: at probes that somebody has named. */
#include "common.bpf.h"

SEC("?uprobe")
int ops_hit(struct pt_regs *ctx)
{
	struct task_facts task;

	task_facts(&task);
	/* what was forked and has not executed the command's program yet runs our own code */
	if (task.key.exec_id != bp_control.ops_not_exec_id && record_wanted(&task))
		__sync_fetch_and_add(&bp_state.ops, 1);
	return 0;
}
