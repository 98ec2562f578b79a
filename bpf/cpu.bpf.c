// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* CPU profile: one program on the clock (or cycle counter) of every CPU. */
#include "perf_event.bpf.h"

SEC("?perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	struct record_what what = { .kind = BPFPROF_CPU };
	__u32 every = bp_control.cpu_every;

	/* what is taken stands for the others: by chance, so that no rhythm of a program's is missed */
	if (every > 1 && bpf_get_prandom_u32() % every)
		return 0;
	what.weight = every > 1 ? every : 0;
	perf_event_sample(ctx, &what);
	return 0;
}
