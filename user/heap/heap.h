/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heap profile of a recording: finds the allocators in what the processes map, keeps probes on
 * them, sees to it that they cost no more than they may, and puts the profile together.
 *
 * The budget. Every hit of a probe costs the program some 0.5 to 3 us, whether it is sampled or
 * not. While that is more than the budget allows, probes are attached in short slices of time at
 * random distances only, and most calls recorded as they begin. What a slice has seen then stands
 * for itself and for half of the time without probes on either side, measured in the program's own
 * CPU time, so that what was allocated stays unbiased; what is in use cannot be known any more,
 * since frees were missed, and is left out. What of a slice's CPU time is the program's own depends
 * on what hits cost in it: in some slices frees are probed as well, by which it is learnt. Where many
 * processes share a file, its probes are hit by processes that are not profiled, too, and what that
 * costs these is within the budget as well.
 */
#ifndef HEAP_H
#define HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heap/budget.h"
#include "kernel/uprobes.h"

struct code;
struct collect;
struct cpu_time;
struct heap;
struct objects;
struct live_entry;
struct procs;
struct session;
struct window;
struct window_profile_opts;

struct heap_opts {
	enum uprobe_method method; /* that the session was opened for */
	bool usdt;		   /* the session was opened to listen to USDT probes */
	bool all;	     /* every process: probes are attached to files, not to processes */
	bool chosen;	     /* with all: of those only that are chosen (collect__chosen), to which
				probes are attached */
	bool one;	     /* process, and no others later */
	double budget;	     /* share of the targets' CPU time that probes may cost; 1: any */
	uint64_t min_age_ns; /* count as in use only what has been held so long; 0: all */
};

struct heap_report {
	const char *method;   /* "session", "multi", "perf", or "usdt": the programs sample by
				 themselves */
	uint64_t hits;	      /* of probes */
	uint64_t cost_ns;     /* of all hits, as measured, and of recording what was sampled */
	uint64_t bpf_ns;      /* of that, in BPF programs, if it is measured */
	uint64_t cpu_ns;      /* CPU time of the targets while it was watched */
	uint64_t attach_ns;   /* how long it took to find and probe the allocators at first */
	uint64_t attached_ns; /* how long probes were attached */
	double slowdown;      /* of a program while it is probed, in times; of what was seen */
	bool sliced;	      /* not all the time: in use is left out */
	bool listens;	      /* to a program that samples by itself */
	bool rounded;	      /* sizes, to 6 bits: there were too many different ones */
	uint64_t untracked;   /* sampled allocations whose frees could not be followed */
	uint64_t unseen;      /* libraries that were loaded out of the preload library's sight */
	size_t late;	      /* processes that began meanwhile, and ran without probes at first */
	uint64_t late_ns;     /* that they did, all together */
	size_t unreached;     /* processes that could not be probed: their main thread had ended */
	size_t unprobed; /* that have no allocator that is known, or one that cannot be probed */
	size_t shared; /* how often a file of many processes came to be probed in all of the machine */
	uint64_t other_hits; /* of these, in processes that are not profiled, */
	uint64_t other_ns;   /* and what that has cost those */
	size_t sanitizers;   /* whose allocators' calls are recorded as they begin: nothing of
				them is known to be in use */
	size_t points;	     /* probes */
};

/* Does one of the processes sample its heap by itself, so that there is something to listen to? */
bool heap_finds_usdt(struct objects *objects, const uint32_t *pids, size_t pid_cnt);

/* Borrows all; cpu: of the targets. NULL with errno. */
struct heap *heap__new(const struct heap_opts *opts, struct session *session, struct procs *procs,
		       struct objects *objects, struct code *code, struct collect *collect,
		       struct cpu_time *cpu);
void heap__free(struct heap *h);

/* What probes cost here has been measured since heap__new: waits for the figures. To be called once,
 * before the first update. */
void heap__measure(struct heap *h);

/*
 * A command about to be started. preload: the library that samples inside it, or NULL: probes are
 * put on the program itself, file_fd, as far as it holds an allocator. Our own image, which process
 * pid still is, is left alone. 0 or -errno.
 */
int heap__prepare_command(struct heap *h, pid_t pid, int file_fd, const char *preload);

/* Attaches to what has been mapped since the last call. To be called after each poll. 0 or -errno.
 */
int heap__update(struct heap *h);

/* A process that goes on is no target any more, or not chosen any more: its probes go with the next update, and what it
 * holds is not in use any more. Both take long, and no longer for many than for one. 0 or -errno. */
int heap__remove(struct heap *h, uint32_t tgid);

/* Says, if it is so, which processes have no allocator that is known, and what was looked for. */
void heap__complain(struct heap *h);

/* Begins to record: what was attached until now has recorded nothing. */
void heap__start(struct heap *h);

/* Keeps the budget. To be called when heap__next_ns has come, and more often. 0 or -errno. */
int heap__tick(struct heap *h);
/* Of that, what must not be late: probes that are attached for too long cost too much. Asks nobody,
 * see below. 0 or -errno. */
int heap__end_slice(struct heap *h);
uint64_t heap__next_ns(const struct heap *h); /* CLOCK_MONOTONIC; UINT64_MAX: nothing is due */

/* Detaches everything for now. 0 or -errno. Windows that end meanwhile have too little. */
int heap__pause(struct heap *h);
/* Attaches it again. What is in use is left out from then on. */
void heap__resume(struct heap *h);

/* What is known of the heap when a window ends. */
struct heap_part {
	double weight;		 /* of what was recorded last: for windows__commit */
	struct budget_mark mark; /* its end, for the window that begins there */
	/* what is in use, since when it was read, CLOCK_MONOTONIC; err: -errno, it could not be */
	struct live_entry *live;
	size_t live_cnt;
	uint64_t read_ns;
	int err;
};

/*
 * A window is about to end, and the run goes on: before the end of its epoch, and behind it. Asks
 * nobody, so that both can be called while others wait (objects__meanwhile).
 */
void heap__end_part(struct heap *h, struct heap_part *ret);
void heap__read_live(struct heap *h, struct heap_part *part);
/*
 * Its epochs are added up, up to its end, and no window begins there yet. What processes that had ended by then
 * still held counts in the windows that are open, which have begun before, and in none that begins later.
 */
void heap__settle_part(struct heap *h, struct heap_part *part, uint64_t end_ns);

/* The run ends, in place of heap__end_part: detaches everything; what was recorded stays. */
void heap__stop(struct heap *h, struct heap_part *ret);
/* Behind that, once all that was recorded is known: what there is to tell of processes that have ended
 * since the last update. 0 or -errno. */
int heap__look_back(struct heap *h);

/* A window begins where that part ends: what it has in use is counted from there on, so that it is below
 * 0 where more has been freed since than was allocated. */
void heap__begin_change(struct heap *h, struct window *w, const struct heap_part *part);

/* A window has ended, its epochs are added up and committed: what all of it stands for, and what is
 * in use, of what was allocated since since_ns, CLOCK_MONOTONIC. from: of the part at whose end it began; ret: what
 * its profile has. 0 or -errno. */
int heap__finish(struct heap *h, struct window *w, const struct budget_mark *from,
		 const struct heap_part *part, uint64_t since_ns, struct window_profile_opts *ret);
void heap_part__done(struct heap_part *part);

void heap__report(struct heap *h, struct heap_report *ret);

#endif
