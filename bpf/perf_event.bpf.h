/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What programs that a perf event calls share: cpu.bpf.c and others of its kind. */
#ifndef PERF_EVENT_BPF_H
#define PERF_EVENT_BPF_H

#include "common.bpf.h"

/* Was the task in user mode when the event met it? */
static __always_inline bool perf_event_in_user(struct bpf_perf_event_data *ctx)
{
	/* as one whole load: the context allows no narrower one */
	return (*(const volatile __u64 *)&ctx->regs.cs & 3) == 3;
}

/* Samples the task that the event has met, if it is wanted. */
static __always_inline void perf_event_sample(struct bpf_perf_event_data *ctx,
					      struct record_what *what)
{
	bool user_mode = perf_event_in_user(ctx);
	__u32 only = bp_control.only_tgid;
	struct task_facts task;

	if (!bp_control.sampling_on)
		return;
	/* cheaper than to look for what is watched */
	if (only && bpf_get_current_pid_tgid() >> 32 != only)
		return;
	task_facts(&task);
	if (!record_wanted(&task))
		return;
	if ((bp_config.kernel_only && user_mode) || (bp_config.user_only && !task.has_user))
		return;
	/* the kernel runs one such program at a time on a CPU (bpf_prog_active): its slot is free */
	record_sample(ctx, bpf_get_smp_processor_id(), &task, what,
		      user_mode ? RECORD_USER_MODE : 0);
}

#endif
