/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture: one set of probes, and any number of windows in which is what they have seen.
 *
 *   capture__open          chooses what the kernel has, loads the programs, learns the processes
 *   capture__open_window   before the start: has everything
 *   capture__start         samples are taken from here on
 *   capture__poll          when capture__fd is readable, or when capture__next_ns has come
 *   capture__stop          they are taken no more
 *   capture__close
 *
 * Windows begin and end at boundaries: moments at which an epoch ends (kernel/epochs.h). They are
 * made every window_ns, and by capture__cut. A boundary is passed at once, whatever else is going
 * on; that all windows have what was sampled before it, and nothing else, takes longer, and is
 * waited for by capture__settle. Until then further boundaries may be passed, and wait:
 *
 *   while (capture__has_boundary(c)) {
 *           capture__settle(c, &boundary);
 *           for each kind of a window that ends: capture__profile, capture__name, profile__free
 *           capture__close_window; capture__open_window(c, &boundary) for those that begin
 *           capture_boundary__done(&boundary);
 *   }
 *
 * Everything in it is one thread's. What fails at the start is said (base/log.h) where it fails.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpfprof.h"
#include "capture/code.h"
#include "capture/collect.h"
#include "capture/symbolize.h"
#include "capture/fds.h"
#include "custom/custom.h"
#include "heap/heap.h"
#include "target/objects.h"
#include "target/perf_maps.h"

struct capture;
struct capture_window;
struct profile;

/* What is recorded, of whom. Strings and arrays are borrowed for as long as there is a capture. */
struct capture_opts {
	/* Of whom: all; or processes; or a command, argv[0] of what capture__add_command is given
	 * then. */
	bool all;
	const uint32_t *pids;
	size_t pid_cnt;
	const char *command;
	/* Its operations are counted, in all of its processes: as ops_probe_parse takes it; NULL: not. */
	const char *ops_probe;
	bool follow; /* children, too */
	/* What narrows it: threads, a control group's path, a pattern of thread names (glob.h). */
	const uint32_t *tids;
	size_t tid_cnt;
	const char *cgroup, *comm;
	bool user_only, kernel_only; /* not both */

	bool kinds[BPFPROF_NR_KINDS];  /* at least one */
	bool chosen[BPFPROF_NR_KINDS]; /* of these, heap, block, mutex: see capture__choose */
	bool kinds_given;   /* by name: one that cannot be had is an error, else left out */
	uint32_t frequency; /* per second and CPU; no more than the kernel allows */
	bool hw_cycles;	    /* by the processor's cycle counter, not by a timer */
	uint64_t heap_rate; /* mean bytes between samples */
	double heap_budget; /* share of the targets' CPU time, above 0; 1: any */
	const struct custom_wanted *custom;	/* which custom profiles */
	uint64_t min_age_ns;			/* heap: only what has been held so long; 0: all */
	uint64_t min_wait_ns[BPFPROF_NR_KINDS]; /* shorter waits are left out */
	double wait_budget; /* share of the targets' CPU time or of one CPU, above 0; 1: any */
	uint64_t
		wait_rate_ns; /* a shorter wait is recorded with probability length / rate; 0: all */
	/* Processes of which nothing is in a profile; NULL: none. */
	bool (*leave_out)(void *ctx, int64_t pid, const char *comm);
	void *leave_out_ctx;
	bool thread_labels;  /* threads of different names are kept apart */
	bool service_labels; /* processes are asked which service they are of: target/services.h */

	uint64_t max_memory; /* that all of it is to take, about; 0: what is usual */

	uint64_t window_ns; /* from boundary to boundary; 0: none are made but by capture__cut */
	/* The first one is shorter: boundaries lie at multiples of window_ns since the epoch, by
	 * the clock as it is at the boundary before, plus window_offset_ns. Else window_ns apart since the start. */
	bool windows_by_clock;
	uint64_t window_offset_ns;
	uint64_t duration_ns; /* since the start, after which none are made; 0: no end */
	bool run_time_stats;  /* of the BPF programs: struct capture_stats' bpf_ns */
};

/* A boundary that was passed. */
struct capture_boundary {
	uint64_t ns;		   /* CLOCK_MONOTONIC */
	int64_t realtime_shift_ns; /* how far CLOCK_REALTIME was ahead of it */
	/* since the start: see struct collect_account */
	uint64_t events_lost, not_followed;
	struct heap_part heap;
	struct custom_part custom;
	struct fds_part fds;
};

/* A profile, and what goes with it. */
struct capture_profile {
	struct profile *profile;	  /* the caller's; without names, not finished yet */
	struct symbolize_source *sources; /* of capture__name, which frees it */
	struct collect_account account;	  /* with those of processes that are left out */
	uint64_t left_out;		  /* what these count, of the first value */
};

/* What is known of all of it so far. */
struct capture_stats {
	uint32_t frequency; /* as it is */
	uint64_t
		late_ns; /* the longest time that a tick came too late since they were last asked for */
	uint64_t snapshot_ns;	   /* that the last snapshot of threads took */
	uint64_t threads_at_start; /* of the targets, for threadcreate; 0: not counted */
	uint64_t wait_rate_ns;	   /* mean of what there was; 0: all waits were recorded */
	uint64_t limited_ns;	   /* how long there was one because of the budget */
	uint64_t wait_cost_ns[BPFPROF_NR_KINDS]; /* of recording them, to the programs */
	uint64_t bpf_ns, bpf_runs;
	/* At the end of a run: CPU time of all that was sampled, and how many samples should stand for
	 * it. 0: not known, as where threads are left out. */
	uint64_t target_cpu_ns, cpu_samples;
	struct heap_report heap;
};

/* And of the files that it has read. */
struct capture_files_stats {
	struct code_stats code;
	struct objects_stats objects;
	struct perf_maps_stats perf_maps;
};

/*
 * Processes that are named are looked at here; those that are not there are no error
 * (capture__has_process). 0 or -errno, said. *ret: NULL on failure.
 */
int capture__open(const struct capture_opts *opts, struct capture **ret);
void capture__close(struct capture *c);

/* What is recorded: without what cannot be had. */
const bool *capture__kinds(const struct capture *c);
/* Does it know a process that runs? */
bool capture__has_process(const struct capture *c, uint32_t pid);
/* Will probes of processes that come be perf events, which take rights of their own? */
bool capture__adds_perf_probes(const struct capture *c);

/* What the command's environment is to have for its heap to be sampled inside, as launch_prepare takes
 * it; NULL: nothing. */
char *const *capture__command_env(struct capture *c);
/* The command, which has been forked and waits to be started. 0 or -errno, said. */
int capture__add_command(struct capture *c, pid_t pid);

/* How many operations the command has done so far. 0; -ENODATA: not all of its processes could be
 * followed. */
int capture__ops(const struct capture *c, uint64_t *ret);

/* 0 or -errno, said. */
int capture__start(struct capture *c);

/*
 * Processes that come and go, where they are named: what one does from then on is recorded, or no
 * more; what is in use has nothing of one that was removed. Where a single process was named at the
 * start, the heap's account leaves out by how much a hit costs more once a second one is probed in the same
 * file. 0; -ESRCH: there is none; -EAGAIN: it was removed just now, and can be added a little later;
 * -errno, said.
 */
int capture__add(struct capture *c, uint32_t pid);
int capture__remove(struct capture *c, uint32_t pid);

/*
 * Kinds that are recorded of chosen processes alone, where all processes are recorded: of one that
 * runs, bit i: kind i, from now on and until it runs another program. capture__processes lists those
 * that there are, kernel threads among them; the caller frees *ret. *ret_ns, CLOCK_MONOTONIC: when that
 * began, as capture__choose wants it. 0 or -errno.
 */
int capture__processes(struct capture *c, struct bpfprof_task **ret, size_t *ret_cnt,
		       uint64_t *ret_ns);
int capture__choose(struct capture *c, const struct bpfprof_task *process, uint64_t listed_ns,
		    uint32_t chosen);
/* Of a process, by now. */
uint32_t capture__chosen(const struct capture *c, uint32_t pid);

/* What it does without from now on, to cost less; all 0: nothing. */
struct capture_limits {
	uint32_t
		cpu_every; /* of so many CPU samples one is taken, and stands for all; 0, 1: each */
	bool plain_names; /* no inlined functions, no lines: capture__name reads no debug information */
	uint32_t kinds_off; /* bit i: kind i is not recorded: offcpu, block, mutex, heap */
};
void capture__limit(struct capture *c, const struct capture_limits *limits);

/* CLOCK_MONOTONIC; 0: it was not started. */
uint64_t capture__start_ns(const struct capture *c);

/* What it reads files with; they stay its own. */
struct objects *capture__objects(const struct capture *c);

/* A descriptor to be waited for, epoll(7), with others. */
int capture__fd(const struct capture *c);
/* When capture__poll is to be called, CLOCK_MONOTONIC; UINT64_MAX: when there is something to read. */
uint64_t capture__next_ns(const struct capture *c);
/* Takes in what has arrived, keeps the budgets, makes the boundary that is due. 0 or -errno: the
 * capture cannot go on. */
int capture__poll(struct capture *c);
/*
 * Of that, what must not be late, and waits for nobody: makes room in the rings, does what is due ten
 * times a second, ends a slice of the heap's probes, makes the boundary that is due. To be called
 * every few ms by whatever takes its time.
 */
void capture__meanwhile(struct capture *c);

/* Passes a boundary. 0; -EAGAIN: too much waits already; -errno: the capture cannot go on. */
int capture__cut(struct capture *c);
bool capture__has_boundary(const struct capture *c);
/* A boundary whose epoch is still ending is none for capture__has_boundary: waits until it is one, 10
 * to 60 ms. 0 or -errno: the capture cannot go on. */
int capture__complete(struct capture *c);
/* The first boundary that waits; there is one. 0 or -errno: the capture cannot go on. */
int capture__settle(struct capture *c, struct capture_boundary *ret);
void capture_boundary__done(struct capture_boundary *b);

/*
 * Detaches everything. No boundary waits, which capture__complete and capture__has_boundary have
 * told. threads are read, and waits that are in progress are taken in. *ret: the end of all windows.
 * 0 or -errno; the caller releases *ret in either case.
 */
int capture__stop(struct capture *c, struct capture_boundary *ret);

/* A window since a boundary that was settled just now; NULL: since the start, before it. Of the heap in use, of custom
 * profiles and of descriptors it has all that is held at its end. NULL with errno. */
struct capture_window *capture__open_window(struct capture *c, const struct capture_boundary *from);
/* The same, where it has of these what has come since then. */
struct capture_window *capture__open_new(struct capture *c, const struct capture_boundary *from);
/* The same, where it has of these the change since then, also below 0. */
struct capture_window *capture__open_change(struct capture *c, const struct capture_boundary *from);
void capture__close_window(struct capture *c, struct capture_window *w);
/* When it began, CLOCK_MONOTONIC. */
uint64_t capture__window_start_ns(const struct capture *c, const struct capture_window *w);

/* What a window has of a kind, up to the boundary that was settled last, once; so_far: of one that goes
 * on, which can be asked for it again. 0 or -errno. */
int capture__profile(struct capture *c, struct capture_window *w, const struct capture_boundary *to,
		     enum bpfprof_kind kind, struct capture_profile *ret);
int capture__profile_so_far(struct capture *c, struct capture_window *w,
			    const struct capture_boundary *to, enum bpfprof_kind kind,
			    struct capture_profile *ret);
/* What a window has of a custom profile, as capture__profile, by its number from 1 on; there may be more of them by the next
 * boundary. BPFPROF_CUSTOM itself has no profile. */
int capture__custom_profile(struct capture *c, struct capture_window *w,
			    const struct capture_boundary *to, uint32_t number,
			    struct capture_profile *ret);
/* The same of a window that goes on, as capture__profile_so_far. */
int capture__custom_profile_so_far(struct capture *c, struct capture_window *w,
				   const struct capture_boundary *to, uint32_t number,
				   struct capture_profile *ret);
size_t capture__custom_cnt(const struct capture *c);
const char *capture__custom_name(const struct capture *c, uint32_t number);
/* How many values each holds by now, by number, of cnt numbers from 0 on. 0 or -errno. */
int capture__custom_held(struct capture *c, uint64_t *ret, size_t cnt);
/* A profile with a sample for each of these addresses, which are code of a process that is recorded. 0;
 * -ESRCH: it is not there; -errno. */
int capture__locate(struct capture *c, uint32_t pid, const uint64_t *addresses, size_t cnt,
		    struct capture_profile *ret);
/* Names all of it, which may take long. 0 or -ENOMEM. */
int capture__name(struct capture *c, struct capture_profile *p, struct symbolize_stats *ret);

/*
 * Files of debug information that are not here, of objects in whose code stacks have frames, by build
 * ids: want is called for each such object, whose path it is given, once, and once more for another file
 * that the first one tells of. max: objects that are looked at, each at some questions to its reader.
 * True: there are more.
 */
typedef void (*capture_lacking)(void *ctx, const char *path, const uint8_t *build_id, size_t sz);
bool capture__lacking(struct capture *c, size_t max, capture_lacking want, void *ctx);
/* Such a file, as objects__give. */
int capture__give_debug(struct capture *c, const uint8_t *build_id, size_t sz, int fd);
/* Is it still of use? One that did harm is not. */
bool capture__has_debug(const struct capture *c, const uint8_t *build_id, size_t sz);

/* How many samples of a kind were recorded so far. */
uint64_t capture__recorded(const struct capture *c, enum bpfprof_kind kind);
void capture__stats(struct capture *c, struct capture_stats *ret);
void capture__files_stats(const struct capture *c, struct capture_files_stats *ret);
/* Bytes, of those that have read the files: see reader__peak_rss. */
uint64_t capture__readers_peak_rss(const struct capture *c);

#endif
