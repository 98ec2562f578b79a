/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what the tests force from the environment. */
#include "base/knobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct knobs knobs;

void knobs_read(void)
{
	const char *tight = getenv("BPFPROF_TIGHT"), *states = getenv("BPFPROF_STATES");
	const char *seed = getenv("BPFPROF_SAMPLE_SEED"), *fds = getenv("BPFPROF_FDS");

	knobs.tight_maps = tight && strstr(tight, "maps");
	knobs.tight_ring = tight && strstr(tight, "ring");
	knobs.tight_time = tight && strstr(tight, "time");
	knobs.tight_patience = tight && strstr(tight, "patience");
	knobs.tight_filters = tight && strstr(tight, "filters");
	knobs.uprobes = getenv("BPFPROF_UPROBES");
	knobs.resume = getenv("BPFPROF_RESUME");
	knobs.fds_syscalls = fds && !strcmp(fds, "syscalls");
	knobs.hash_states = states && !strcmp(states, "hash");
	if (!seed || util_parse_u64(seed, 1, UINT32_MAX, &knobs.sample_seed))
		knobs.sample_seed = 0;
}
