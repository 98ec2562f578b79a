/* SPDX-License-Identifier: BSD-2-Clause */
/* The probes of a heap profile: which functions of a file are probed, and in which processes. */
#ifndef HEAP_PROBES_H
#define HEAP_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/uprobes.h"

struct heap_probes;
struct objects;
struct session;
struct target_forks;

/* What there is in a file. */
enum heap_probes_has {
	HEAP_PROBES_NOTHING,
	HEAP_PROBES_UNKNOWN, /* it has not answered: objects__unanswered */
	HEAP_PROBES_ALLOCATOR,
	/* One whose functions have names of its own, before which no library can stand. */
	HEAP_PROBES_APART,
	HEAP_PROBES_USDT, /* it samples by itself, and says so */
};

/* What is probed. */
enum heap_probes_mode {
	HEAP_PROBES_ALWAYS, /* what allocates and what frees */
	/* In slices, after which frees are of no use: they are not probed, and calls that allocate
	 * are recorded as they begin, where that is all that there is to know. */
	HEAP_PROBES_SLICE,
	/* The same with those that free: so that what a program does takes more hits. */
	HEAP_PROBES_SLICE_FREES,
	HEAP_PROBES_NR_MODES,
};

/* method, usdt: what the session was opened for. Borrows session and objects. NULL with errno. */
struct heap_probes *heap_probes__new(enum uprobe_method method, bool usdt, struct session *session,
				     struct objects *objects);
void heap_probes__free(struct heap_probes *hp);

/* Looks into an object when it is first asked for, until it answers. */
enum heap_probes_has heap_probes__look(struct heap_probes *hp, uint32_t object);

/* Adds an object that has something, open at fd, in one process (pid 0: in all) to the files that
 * are probed, unless it is there already. Takes fd. 0 or -errno. */
int heap_probes__add(struct heap_probes *hp, pid_t pid, int fd, uint32_t object);
/* attachments__relink. */
void heap_probes__relink(struct heap_probes *hp, pid_t pid);
/* Sets the probes of what was added; a file that many processes have is probed in all processes of
 * the machine (see capture/attachments.h). What cannot be probed is said. */
void heap_probes__settle(struct heap_probes *hp);

/* Sets the probes of all files that were added, and of those that will be; what fails is said. At
 * first they are set as by HEAP_PROBES_ALWAYS. */
void heap_probes__attach(struct heap_probes *hp, enum heap_probes_mode mode);
/* Takes them off, once calls that are under way have had time to return to them. 0 or -errno. */
int heap_probes__detach(struct heap_probes *hp);

/* Forgets what processes have that probed(ctx, pid) says no of. Returns how many files. */
size_t heap_probes__drop(struct heap_probes *hp, bool (*probed)(void *ctx, pid_t pid), void *ctx);
/* See attachments__clean_children. */
void heap_probes__clean_children(struct heap_probes *hp, const struct target_forks *forks);

/* Since when an object has been probed in all processes of the machine, CLOCK_MONOTONIC; UINT64_MAX:
 * it is not. */
uint64_t heap_probes__shared_ns(const struct heap_probes *hp, uint32_t object);
/* Is an object probed in a process, or in all? */
bool heap_probes__in(const struct heap_probes *hp, pid_t pid, uint32_t object);
/* How many links has the file, each for one process, that has the most? Each costs all of them. */
size_t heap_probes__most(const struct heap_probes *hp);
/* How often has a file come to be probed in all processes of the machine? */
size_t heap_probes__shared(const struct heap_probes *hp);
/* Does one of the files sample by itself? */
bool heap_probes__listens(struct heap_probes *hp);
/* How many files have the allocator of a sanitizer, whose calls are recorded as they begin? */
size_t heap_probes__sanitizers(const struct heap_probes *hp);
/* How often an allocator could not be probed, which was said. */
size_t heap_probes__failed(const struct heap_probes *hp);
/* How many there have been. */
size_t heap_probes__cnt(const struct heap_probes *hp);

#endif
