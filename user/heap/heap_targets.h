/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of a heap profile: finds the allocators in what they map, keeps probes on these, and says of which processes
 * there is no profile, and why. */
#ifndef HEAP_TARGETS_H
#define HEAP_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heap/heap.h"

struct heap_probes;
struct heap_targets;

/* Borrows all but opts. NULL with errno. */
struct heap_targets *heap_targets__new(const struct heap_opts *opts, struct procs *procs,
				       struct objects *objects, struct code *code,
				       struct collect *collect, struct heap_probes *probes);
void heap_targets__free(struct heap_targets *t);

/* heap__prepare_command. */
int heap_targets__add_command(struct heap_targets *t, pid_t pid, int file_fd, const char *preload);
/* Is a library preloaded into the command, which samples inside it? */
bool heap_targets__have_library(const struct heap_targets *t);

/* Recording begins: what processes that begin later have run without probes counts as late. */
void heap_targets__begin(struct heap_targets *t, uint64_t now_ns);

/* Adds to the probes what processes have mapped since the last call. 0 or -errno. */
int heap_targets__update(struct heap_targets *t);
/* Takes the probes off whoever is no target any more. Returns of how many files. */
size_t heap_targets__drop(struct heap_targets *t);
/* heap__remove: one that goes on is none any more. */
void heap_targets__forget(struct heap_targets *t, uint32_t tgid);

/* heap__look_back, heap__complain. */
int heap_targets__look_back(struct heap_targets *t);
void heap_targets__complain(struct heap_targets *t);

/* What was not recorded; see struct heap_report. */
struct heap_targets_missed {
	size_t unreached, unprobed, late;
	uint64_t late_ns;
};

const struct heap_targets_missed *heap_targets__missed(const struct heap_targets *t);

#endif
