/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests force: read from the environment, once. Nothing of it is for users. */
#ifndef KNOBS_H
#define KNOBS_H

#include <stdbool.h>
#include <stdint.h>

struct knobs {
	/* BPFPROF_TIGHT, a list of words: there is too little of this */
	bool tight_maps, tight_ring;
	bool tight_time;     /* the rings are read late */
	bool tight_patience; /* with the kernel, where it attaches probes */
	bool tight_filters;  /* of system calls: they stop what probes of returns call */
	/* BPFPROF_UPROBES: the best method to attach uprobes by, "session", "multi", "perf" or
	 * "event"; NULL: any */
	const char *uprobes;
	/* BPFPROF_RESUME: futexes are not probed, context switches are: by the program on "kprobe",
	 * at "both" ends of a switch, or as the kernel allows, "any"; NULL: nothing is forced */
	const char *resume;
	/* BPFPROF_FDS=syscalls: as if no programs could be attached to functions of the kernel */
	bool fds_syscalls;
	/* BPFPROF_STATES=hash: as if the kernel had no task storage */
	bool hash_states;
	/* BPFPROF_SAMPLE_SEED, 1 to 2^32 - 1: which allocations and waits are sampled follows
	 * from it, see bpf/sample.h; 0: chance decides. The preload library reads it, too. */
	uint64_t sample_seed;
};

/* All zero until knobs_read was called, which main does first. */
extern struct knobs knobs;

void knobs_read(void);

#endif
