// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* CPUs that come and go: perf events of one that has gone are dead, also when it is back before user
 * space has looked. */
#include "common.bpf.h"

/* The state in which a CPU ends that goes: CPUHP_OFFLINE, include/linux/cpuhotplug.h. */
#define OFFLINE 0

/* Called before each step of a CPU that comes or goes, those behind perf's own among them. */
SEC("?raw_tp/cpuhp_enter")
int BPF_PROG(cpu_changes, unsigned int cpu, int target)
{
	__u32 key = cpu, *gone = bpf_map_lookup_elem(&bp_cpus_gone, &key);

	if (gone && target == OFFLINE)
		__sync_fetch_and_add(gone, 1);
	__sync_fetch_and_add(&bp_state.cpu_changes, 1);
	ring_wake();
	return 0;
}
