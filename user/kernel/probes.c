// SPDX-License-Identifier: BSD-2-Clause
/* The table of probes. */
#include <linux/types.h>

#include "kernel/probes.h"

const struct probe *const probes[BPFPROF_NR_KINDS] = {
	[BPFPROF_CPU] = &probe_cpu,	    [BPFPROF_HEAP] = &probe_heap,
	[BPFPROF_BLOCK] = &probe_block,	    [BPFPROF_MUTEX] = &probe_mutex,
	[BPFPROF_OFFCPU] = &probe_offcpu,   [BPFPROF_THREADCREATE] = &probe_threadcreate,
	[BPFPROF_THREADS] = &probe_threads, [BPFPROF_FAULTS] = &probe_faults,
	[BPFPROF_CUSTOM] = &probe_custom,   [BPFPROF_FDS] = &probe_fds,
};
