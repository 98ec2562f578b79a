/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hits of the heap's probes cost a program, measured where it will be: on functions of our
 * own, in a process made for it, with the programs that run where nothing is sampled.
 *
 * How much depends on what the program does in between. In a loop of calls the way through the
 * kernel's breakpoint handler stays in the caches; where other code runs for 50 us before the next
 * one, a hit takes two or three times as long. So calls are measured behind code and data of
 * several sizes, up to those of the second level cache, and what hits cost is read off by the CPU
 * time between them.
 *
 * That is one program's way. How many times as much hits cost in the programs at hand is learnt
 * where it matters (heap_factor.h).
 *
 * A kernel that has links for several processes on one file asks each of them at each hit,
 * whichever process it is of (handler_chain in kernel/events/uprobes.c).
 */
#ifndef KERNEL_HEAP_COST_H
#define KERNEL_HEAP_COST_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"
#include "kernel/uprobes.h"

struct session;

/* In ns, by what is hit. */
struct heap_cost_point {
	double after_ns;	      /* of other code since the last hit */
	double hit[BPFPROF_NR_HITS];  /* where one process is probed */
	double link[BPFPROF_NR_HITS]; /* more, for each further one that is probed in the file */
};

#define HEAP_COST_POINTS 5

struct heap_cost {
	struct heap_cost_point points[HEAP_COST_POINTS]; /* by after_ns, which grows */
};

/*
 * Begins to measure, which takes some 30 ms of CPU time, and longer than that since probes are attached
 * and detached; meanwhile the caller can do something else. Of one: no further process will be
 * probed, so that half of it is not measured: links are 0. The session was opened for method m, and
 * until the end nothing else that is attached may be hit: the hits of the measuring are in its counters.
 * Returns a descriptor for heap_cost__end; closing it ends the measuring, too. -errno.
 */
int heap_cost__begin(struct session *s, enum uprobe_method m, bool one);
/* Waits for the figures. 0 or -errno, with nothing in *ret. */
int heap_cost__end(struct session *s, int fd, struct heap_cost *ret);

/* Behind so much other code; below and above what was measured: as there. */
void heap_cost__after(const struct heap_cost *c, double gap_ns, struct heap_cost_point *ret);

/* Of how many calls so many hits are: returns go with their entries, and as a rule frees with
 * allocations. */
uint64_t heap_cost__calls(const uint64_t hits[BPFPROF_NR_HITS]);

/*
 * What so many hits cost, where calls are gap_ns of CPU time apart, with what they cost themselves,
 * of processes of which `processes` are probed in a file. Up to Linux 6.18 a session link that is
 * not for the process waits for the return all the same (uprobe_multi_link_handler), which is a hit
 * that nobody counts.
 */
double heap_cost__ns(const struct heap_cost *c, enum uprobe_method m,
		     const uint64_t hits[BPFPROF_NR_HITS], size_t processes, double gap_ns);

#endif
