// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* The ground of an off-CPU profiler that keeps times by thread id and takes both stacks at every
 * switch. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 target; /* process; 0: all */

struct key {
	__u32 tid, tgid;
	__s32 user, kernel;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 10240);
} start SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct key);
	__type(value, __u64);
	__uint(max_entries, 10240);
} delays SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 127 * sizeof(__u64));
	__uint(max_entries, 1024);
} stacks SEC(".maps");

SEC("tp_btf/sched_switch")
int BPF_PROG(leave, bool preempt, struct task_struct *prev)
{
	__u64 id = bpf_get_current_pid_tgid(), now;
	__u32 tid = id;

	if (target && id >> 32 != target)
		return 0;
	now = bpf_ktime_get_ns();
	bpf_map_update_elem(&start, &tid, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_exit_tp")
int BPF_PROG(resume, bool is_switch)
{
	__u64 id = bpf_get_current_pid_tgid(), us, *at, *sum;
	struct key key = { .tid = (__u32)id, .tgid = id >> 32 };

	if (!is_switch || (target && key.tgid != target))
		return 0;
	at = bpf_map_lookup_elem(&start, &key.tid);
	if (!at)
		return 0;
	us = (bpf_ktime_get_ns() - *at) / 1000;
	bpf_map_delete_elem(&start, &key.tid);
	key.user = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	key.kernel = bpf_get_stackid(ctx, &stacks, 0);
	bpf_get_current_comm(key.comm, sizeof(key.comm));
	sum = bpf_map_lookup_elem(&delays, &key);
	if (sum)
		__sync_fetch_and_add(sum, us);
	else
		bpf_map_update_elem(&delays, &key, &us, BPF_ANY);
	return 0;
}
