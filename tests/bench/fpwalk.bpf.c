// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* The kernel's own walk by frame pointers, as a program of its own: what bpfprof's walk is measured
 * against. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 target;
__u64 frames, runs;
__u64 stacks[64][512];

SEC("perf_event")
int fpwalk(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id() & 63;
	long sz;

	if ((bpf_get_current_pid_tgid() >> 32) != target)
		return 0;
	sz = bpf_get_stack(ctx, stacks[cpu], sizeof(stacks[cpu]), BPF_F_USER_STACK);
	if (sz > 0) {
		__sync_fetch_and_add(&frames, (__u64)sz / 8);
		__sync_fetch_and_add(&runs, 1);
	}
	return 0;
}
