// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Page faults: one program for each of the two events with which the kernel counts them, on every
 * CPU. The kernel counts a fault once it is done (mm_account_fault), once however often it had to
 * be tried, and by then knows whether it has read a page from a disk. An event of each fault, not of
 * some, is never throttled (perf_swevent_overflow): all are seen, but those that come while another
 * program has bpf_prog_active of this CPU (bpf_overflow_handler).
 */
#include "perf_event.bpf.h"

SEC("?perf_event")
int faults_minor(struct bpf_perf_event_data *ctx)
{
	struct record_what what = { .kind = BPFPROF_FAULTS };

	perf_event_sample(ctx, &what);
	return 0;
}

SEC("?perf_event")
int faults_major(struct bpf_perf_event_data *ctx)
{
	struct record_what what = { .kind = BPFPROF_FAULTS, .wait = BPFPROF_FAULT_MAJOR };

	perf_event_sample(ctx, &what);
	return 0;
}
