// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* CPU profile: one program on the clock (or cycle counter) of every CPU. */
#include "perf_event.bpf.h"

SEC("?perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	struct record_what what = { .kind = BPFPROF_CPU };

	perf_event_sample(ctx, &what);
	return 0;
}
