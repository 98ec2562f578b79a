// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* CPU profile: one program on the clock (or cycle counter) of every CPU. */
#include "common.bpf.h"

SEC("?perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	struct record_what what = { .kind = BPFPROF_CPU };
	struct task_facts task;
	/* as one whole load: the context allows no narrower one */
	__u64 cs = *(const volatile __u64 *)&ctx->regs.cs;
	bool user_mode = (cs & 3) == 3;
	__u32 only = bp_control.only_tgid;

	/* cheaper than to look for what is watched */
	if (only && bpf_get_current_pid_tgid() >> 32 != only)
		return 0;
	task_facts(&task);
	if (!record_wanted(&task))
		return 0;
	if ((bp_config.kernel_only && user_mode) || (bp_config.user_only && !task.has_user))
		return 0;
	record_sample(ctx, bpf_get_smp_processor_id(), &task, &what,
		      user_mode ? RECORD_USER_MODE : 0);
	return 0;
}
