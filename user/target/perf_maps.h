/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The perf maps of the profiled processes (perf_map.h): which file a process's is, whether it can
 * be believed, and the names in it.
 *
 * A process that runs code without a file is held by its root folder from then on, so that what it
 * has written can be read after it has ended. Its map is /tmp/perf-PID.map there, PID being its own
 * in its innermost pid namespace; neither it nor /tmp may be a symbolic link.
 *
 * It is believed if it is a regular file of the process's effective user or of root that not
 * everybody may write, and has no second name: who puts a hard link to another's file into /tmp
 * gains nothing. And if it was last written while the process ran this program: not by one that had
 * the same number before or after it, nor by the program that was there before an exec. This goes
 * by the clock of files, and is as good as that.
 *
 * Maps that are not believed are counted; their addresses have no names.
 */
#ifndef TARGET_PERF_MAPS_H
#define TARGET_PERF_MAPS_H

#include <stddef.h>
#include <stdint.h>

#define PERF_MAPS_NONE UINT32_MAX
#define PERF_MAPS_MAX_FDS 256 /* processes that are held during a run, and maps of ended ones */

struct objects;
struct perf_maps;
struct procs;
struct symbols;

struct perf_maps_stats {
	uint64_t read;	  /* maps */
	uint64_t refused; /* that are not believed */
	uint64_t lost; /* processes that were gone before they could be held, or were too many, or
			  whose turn did not come within 30 s of reading in a minute */
	uint64_t cut;  /* maps of which only the end was read: see PERF_MAP_MAX_READ */
	uint64_t ignored; /* lines of those that were read, each time */
};

/* Borrows both. NULL with errno. */
struct perf_maps *perf_maps__new(struct procs *procs, struct objects *objects);
void perf_maps__free(struct perf_maps *pm);

/*
 * The number of a process's map, whether it has one or not: not that of another process, also where
 * the process's number in procs is used again, until the process has been removed from procs and
 * nobody refers to the map any more. The process's start is known. PERF_MAPS_NONE: out of memory.
 */
uint32_t perf_maps__of(struct perf_maps *pm, uint32_t proc);

void perf_maps__ref(struct perf_maps *pm, uint32_t map);
void perf_maps__unref(struct perf_maps *pm, uint32_t map);
/* Maps that there are. */
size_t perf_maps__cnt(const struct perf_maps *pm);

/* The process has ended and is about to be removed from procs: its map, if it has one, is kept for
 * as long as somebody refers to it. */
void perf_maps__end(struct perf_maps *pm, uint32_t proc);

/* Names cnt ascending addresses, by what the map of a living process has now. 0 or -errno, -ENOENT if
 * there is no map; *ret is the caller's after 0 only. */
int perf_maps__symbolize(struct perf_maps *pm, uint32_t map, const uint64_t *addrs, size_t cnt,
			 struct symbols *ret);

void perf_maps__stats(const struct perf_maps *pm, struct perf_maps_stats *ret);

#endif
