/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recording consists of: run_open.c puts it together, run.c lets it run, run_waits.c its
 * waits; run_windows.c ends windows, run_write.c makes files of them. For these alone. */
#ifndef RUN_PARTS_H
#define RUN_PARTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"
#include "capture/count_keys.h"
#include "heap/heap.h"
#include "kernel/cpus.h"
#include "kernel/uprobes.h"
#include "kernel/waits_how.h"
#include "record/launch.h"
#include "heap/launch_heap.h"
#include "capture/snapshot.h"
#include "record/wait_budget.h"

struct options;
struct probe_waits;

/* What recording the waits of a kind has cost the programs: so far, by samples that were timed. */
struct wait_cost {
	uint64_t samples, timed, timed_ns; /* so far */
	double mean_ns;			   /* of a sample, of late */
	double ns;
};

/* What looking at context switches takes. */
struct switch_cost {
	uint64_t next_ns;      /* when to look again */
	bool known;	       /* the following is of an earlier look */
	struct cpus_work work; /* so far */
	double share;	       /* of what CPUs are busy, 0..1 */
};

struct run {
	const struct options *opts;
	bool kinds[BPFPROF_NR_KINDS]; /* that are recorded */
	uint32_t frequency;
	enum uprobe_method uprobes;
	struct waits_how waits_how;
	bool only_threads;     /* no kind takes time */
	bool usdt;	       /* some program may sample its heap by itself */
	char target[256];      /* for people and --stats */
	char file_target[256]; /* as it stands in file names */
	struct launch launch;
	struct launch_heap launch_heap;
	struct session *session;
	struct events *events;
	struct procs *procs;
	struct objects *objects;
	struct tables *tables;
	struct code *code;
	struct samples *samples;
	struct names_cache *names;
	struct ksyms *ksyms; /* NULL where the kernel cannot be asked: symbolize reads kallsyms */
	struct collect *collect;
	struct cpu_time *cpu_time; /* of the targets */
	struct heap *heap;	   /* NULL: not recorded */
	struct probe_waits *waits; /* NULL: neither waits nor new threads are recorded */
	struct wait_budget wait_budget;
	struct wait_cost wait_costs[BPFPROF_NR_KINDS];
	struct switch_cost switch_cost;
	struct snapshot_result snapshot;
	uint64_t threads_at_start; /* of the targets; 0: not counted */
	int64_t periods[BPFPROF_NR_KINDS];
	/* the first window that is not written: its number, 0 where there is only this one, and
	 * since when */
	struct window *window;
	unsigned int window_number;
	uint64_t window_from_ns;
	/* the window that goes on: those before it may wait, or be on their way to their files */
	unsigned int current_number;
	uint64_t boundary_ns; /* when the last one has ended */
	/* by number of the window: of those that are not written yet */
	struct heap_part heap_parts[CAPTURE_EPOCHS];
	struct profile *profiles[BPFPROF_NR_KINDS]; /* of a window that has ended */
	uint64_t events_lost, not_followed;	    /* that former windows have told of */
	bool failed;				    /* the files of a window are not all right */
	int64_t start_ns; /* CLOCK_REALTIME at armed_ns: profiles of a window have the same start */
	int *pidfds;	  /* of the processes named, -1: ended */
	size_t alive;
	int epoll_fd, signal_fd, timer_fd;
	uint64_t armed_ns, stopped_ns, startup_ns, next_progress_ns;
	uint64_t tick_ns; /* when the next tick is due */
	uint64_t late_ns; /* the longest time that one came too late, since a window was written */
	bool progress_shown;
	int stops; /* signals that asked to stop */
};

/* What is waited for, by the number that epoll gives back. */
enum {
	WATCH_SIGNAL,
	WATCH_TIMER,
	WATCH_RING,
	WATCH_EVENTS,
	WATCH_PID
};

/*
 * From the options to where everything records. 0 or -errno, and what is wrong has been said; what
 * is there by then is run_close's to end, either way.
 */
int run_open(struct run *r);
void run_close(struct run *r);

/* Waits are recorded from now on, armed_ns. 0 or -errno. */
int run_waits_start(struct run *r);
/* To be called some ten times a second, and at the end: sees to it that waits cost no more than
 * they may. */
void run_waits_tick(struct run *r);
/* Ticks begin. 0 or -errno. */
int run_start_ticks(struct run *r);
/* Counts those that ask to stop. */
void run_read_signals(struct run *r);

/* Can all files be written? To be asked before a long run. 0 or -errno, said. */
int run_check_outputs(const struct run *r);
/* The paths of a window's files, number 0: of the whole run's. Its account is wanted. */
void run_output_path(const struct run *r, int kind, unsigned int number, char path[PATH_MAX]);
void run_stats_path(const struct run *r, unsigned int number, char path[PATH_MAX]);
/* Removes a file if it is there. 0 or -errno, said. */
int run_remove_file(const char *path);

/* When the window that goes on is to end, CLOCK_MONOTONIC. */
uint64_t run_next_window_ns(const struct run *r);
/* Ends it. 0; -EAGAIN: not now; -errno: the run cannot go on. */
int run_end_window(struct run *r);
/*
 * The loop's duties but for those that may have to wait themselves: to be called every few ms by
 * whatever takes its time. Makes room in the rings, does what a tick does, ends a slice of the
 * heap's probes and a window when it is time. Asks nobody.
 */
void run_meanwhile(struct run *r);
/* Writes the files of the windows that have ended, and begins the next ones. A window that cannot be
 * written is said to be missing. 0; -errno: the run cannot go on, -EINTR: as its user wants. */
int run_write_windows(struct run *r);
/* After the run, the same of the last window. 0; -errno, said, also if a former one is missing. */
int run_write(struct run *r);

/* Puts the profiles of the window that goes on, whose epochs are added up, together, and writes its
 * files. 0 or -errno, said. */
int run_write_window(struct run *r, const struct heap_part *part, uint64_t to_ns);

#endif
