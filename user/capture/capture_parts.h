/* SPDX-License-Identifier: BSD-2-Clause */
/* What a capture consists of: capture_open.c puts it together, capture.c lets it run,
 * capture_waits.c keeps the budget of waits, capture_ops.c counts operations, capture_debug.c finds what
 * debug information is missing. For these alone. */
#ifndef CAPTURE_PARTS_H
#define CAPTURE_PARTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"
#include "capture/capture.h"
#include "capture/count_keys.h"
#include "capture/ops.h"
#include "capture/snapshot.h"
#include "capture/wait_budget.h"
#include "heap/launch_heap.h"
#include "kernel/cpus.h"
#include "kernel/probe_fds.h"
#include "kernel/uprobes.h"
#include "kernel/waits_how.h"
#include "target/elf_file.h"

struct probe_waits;
struct stack_copies;

/* What recording the waits of a kind has cost the programs: so far, by samples that were timed. */
struct wait_cost {
	uint64_t samples, timed, timed_ns; /* so far */
	double mean_ns;			   /* of a sample, of late */
	double ns;
};

/* What the whole machine does, by a look at /proc/stat now and then, and as it goes on in between. */
struct machine_work {
	uint64_t look_ns, next_ns; /* of the last look, 0: there was none; and of the next one */
	struct cpus_work work;	   /* by the last look */
	double cpus;		   /* that are busy */
	double switch_share;	   /* of what they are busy: programs at context switches; 0..1 */
	uint64_t busy_ns;	   /* so far, as it was told last */
};

/* Of an object: the file of debug information that it lacks. */
struct capture_lack {
	uint64_t serial; /* of the object; 0: none */
	bool looked;
	uint8_t id[ELF_FILE_MAX_BUILD_ID];
	size_t id_sz; /* 0: it lacks none, or has not got an id */
};

struct capture {
	struct capture_opts opts;
	bool kinds[BPFPROF_NR_KINDS]; /* that are recorded */
	uint32_t frequency;
	/* of what clocks of this process may have, see sample_rate__take; 0: nothing was taken */
	uint32_t clock_hz;
	enum uprobe_method uprobes;
	struct waits_how waits_how;
	enum fds_how fds_how;
	bool usdt; /* some program may sample its heap by itself */
	struct launch_heap launch_heap;
	char *command_env[3];
	struct session *session;
	struct events *events;
	struct procs *procs;
	struct objects *objects;
	struct tables *tables;
	struct code *code;
	struct samples *samples;
	struct names_cache *names;
	struct capture_lack *lacks; /* by number of an object */
	size_t lack_cap;
	struct ksyms *ksyms; /* NULL where the kernel cannot be asked: symbolize reads kallsyms */
	struct collect *collect;
	struct cpu_time *cpu_time; /* of the targets */
	struct cpu_time *heap_cpu; /* of those whose heap is chosen; NULL: all are */
	struct heap *heap;	   /* NULL: not recorded */
	struct custom *custom;	   /* NULL: not recorded */
	int fds_err;		   /* -errno: why the kind was given up at the start */
	uint64_t fds_prune_ns;	   /* when what ended processes have opened goes */
	struct ops_sites ops_sites;
	struct uprobes *ops;	   /* NULL: operations are not counted */
	struct probe_waits *waits; /* NULL: neither waits nor new threads are recorded */
	struct wait_budget wait_budget;
	struct wait_cost wait_costs[BPFPROF_NR_KINDS];
	struct machine_work machine;
	struct stack_copies *stack_copies; /* for snapshots */
	struct snapshot_result snapshot;
	uint64_t threads_at_start;
	struct capture_limits limits;
	int64_t periods[BPFPROF_NR_KINDS];
	uint64_t cpu_from_ns,
		cpu_ns; /* CPU time of the targets: at the start, and in the whole run */
	int epoll_fd, timer_fd;
	uint64_t armed_ns, stopped_ns; /* 0: not yet */
	int64_t start_shift_ns;	       /* how far CLOCK_REALTIME was ahead then */
	int64_t shift_ns;	       /* the same at the last boundary */
	uint64_t tick_ns;	       /* when the next tick is due; 0: none are */
	uint64_t late_ns;	       /* the longest time that one came too late */
	uint64_t next_arm_ns;	       /* when to try again to watch what could not be */
	uint64_t boundary_ns;	       /* the last one */
	/* those that wait, the first one at first; as many as collect can keep */
	struct capture_boundary boundaries[CAPTURE_EPOCHS];
	size_t boundary_first, boundary_cnt;
	bool boundary_ending; /* one more, whose epoch is ending */
	bool epoch_watched;   /* what ends an epoch makes epoll_fd readable */
	int err;	      /* the capture cannot go on */
};

/* Takes out what cannot be had of what was asked for, unless it was named. 0 or -errno, said. */
int capture_choose(struct capture *c);
/* Finds where operations are counted, if they are. 0 or -errno, said. */
int capture_ops_choose(struct capture *c);
/* They count as soon as the command, which has been forked, runs its program. 0 or -errno, said. */
int capture_ops_open(struct capture *c, pid_t pid);
void capture_ops_close(struct capture *c);
/* Bytes that a part may take which has `usual` where nothing is said of all of it (max_memory is 0). */
uint64_t capture_share(uint64_t max_memory, uint64_t usual);
/* Ticks begin. 0 or -errno. */
int capture_start_ticks(struct capture *c);
/* Waits are recorded from now on, armed_ns. 0 or -errno. */
int capture_waits_start(struct capture *c);
/* CPU samples are taken by now, and still: see capture_rate.c. */
void capture_rate_start(struct capture *c);
void capture_rate_stop(struct capture *c);
void capture_rate_stats(struct capture *c, struct capture_stats *ret);
/* To be called some ten times a second, and at the end: sees to it that waits cost no more than
 * they may. */
void capture_waits_tick(struct capture *c);

#endif
