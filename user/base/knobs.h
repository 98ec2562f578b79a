/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests force: read from the environment, once. Nothing of it is for users. */
#ifndef KNOBS_H
#define KNOBS_H

#include <stdbool.h>

struct knobs {
	/* BPFPROF_TIGHT, a list of words: there is too little of this */
	bool tight_maps, tight_ring;
	bool tight_time; /* the rings are read late */
	/* BPFPROF_UPROBES: the best method to attach uprobes by, "session", "multi", "perf" or
	 * "event"; NULL: any */
	const char *uprobes;
	/* BPFPROF_RESUME: futexes are not probed, context switches are: by the program on "kprobe",
	 * at "both" ends of a switch, or as the kernel allows, "any"; NULL: nothing is forced */
	const char *resume;
	/* BPFPROF_STATES=hash: as if the kernel had no task storage */
	bool hash_states;
};

/* All zero until knobs_read was called, which main does first. */
extern struct knobs knobs;

void knobs_read(void);

#endif
