/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our half in the kernel: opens, configures, loads, arms and removes the BPF programs. All that it
 * makes hangs on file descriptors of this process (no pins, no tracefs entries), so that the kernel
 * removes it whatever becomes of us.
 */
#ifndef KERNEL_SESSION_H
#define KERNEL_SESSION_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"
#include "kernel/probe_fds.h"
#include "kernel/uprobes.h"
#include "kernel/waits_how.h"

struct bpf_link;
struct bpf_map;
struct bpf_program;
struct bpfprof_bpf;
struct bpfprof_config;
struct epochs;
struct grace;
struct session;

struct session_opts {
	bool kinds[BPFPROF_NR_KINDS];
	bool chosen[BPFPROF_NR_KINDS]; /* of these: of processes of session__choose alone */
	uint32_t frequency;	       /* samples per second and CPU */
	bool hw_cycles;		       /* sample on the cycle counter instead of the clock */
	bool user_only, kernel_only;
	bool thread_names;
	bool cgroups;		      /* tell control groups apart (v2) */
	bool filter_tgid, filter_tid; /* by session__add_tgid, session__add_tid */
	bool kthreads;		      /* watch threads of the kernel for waits, too */
	bool follow;		      /* take in children of filtered processes */
	const char *cgroup;	      /* directory of a cgroup v2, or NULL */
	const char *comm;	      /* pattern with * and ?, or NULL */
	uint64_t heap_rate;	      /* mean bytes between heap samples; 1: every allocation */
	bool heap_slices;  /* the heap's probes may come to be attached in slices of time only */
	bool wake_at_fork; /* of a process that is followed */
	bool ops;	   /* hits of probes will be counted, see probe_ops.h */
	enum uprobe_method uprobes;		/* by which the heap's and these will be attached */
	uint64_t min_wait_ns[BPFPROF_NR_KINDS]; /* shorter waits are left out, and counted */
	struct waits_how waits;			/* how waits will be watched */
	enum fds_how fds;			/* where openings of descriptors will be */
	bool usdt;	     /* listen to programs that sample their heap by themselves */
	bool run_time_stats; /* let the kernel measure the programs' run time */
	bool tight_maps;     /* tests: hash tables of 16 entries */
	bool tight_ring;     /* tests: a ring of one page */
};

/*
 * Loads everything, arms nothing. NULL with errno; err then says in one sentence what failed and
 * why, without full stop.
 */
struct session *session__open(const struct session_opts *opts, char *err, size_t err_sz);
/* Detaches and unloads. NULL is allowed. */
void session__free(struct session *s);

/* All processes that exist, as the kernel identifies them; the caller frees *ret. 0 or -errno. */
int session__scan(struct session *s, struct bpfprof_task **ret, size_t *ret_cnt);

/* Takes a process, or a thread of one, into the filter. start_ns: of the process, see
 * bpfprof_proc_key. 0; -E2BIG: there is no room; -errno. */
int session__add_tgid(struct session *s, uint32_t tgid, uint64_t start_ns);
int session__add_tid(struct session *s, uint32_t tid, uint64_t start_ns);
/* The start of the process that is meant by this number; 0: none is. */
uint64_t session__tgid_start(struct session *s, uint32_t tgid);
/* Takes the process that has begun then out of the filter. One that has been given its number since stays. */
void session__remove_tgid(struct session *s, uint32_t tgid, uint64_t start_ns);
/* Of which of the kinds that only chosen processes are recorded of a process is recorded from now on:
 * bit i: kind i; 0: of none, unless another is chosen by its number now. 0 or -errno. */
int session__choose(struct session *s, uint32_t tgid, uint64_t start_ns, uint32_t kinds);
/* Records less, to cost less: of so many CPU samples one; none of these kinds (bit i: kind i), which
 * may be offcpu, block and mutex. */
void session__limit(struct session *s, uint32_t cpu_every, uint32_t kinds_off);
/* Removes those that no process has any more. */
void session__prune_tgids(struct session *s);

/*
 * Starts the kinds that only need to be turned on (struct probe), of those that are wanted; CPUs
 * that are online get theirs. To be called again while running, to follow hotplug. 0; -errno if one
 * of them can be had on no CPU, and err says why.
 */
int session__arm(struct session *s, char *err, size_t err_sz);
/* From here on what perf events meet is recorded, or no longer: they are opened and closed one CPU after the
 * other, and a window begins and ends for all at once. Off at first. */
void session__set_sampling(struct session *s, bool on);
/* May a CPU have come or gone since the last call? Always, where the kernel does not tell. */
bool session__cpus_changed(struct session *s);
/* By CPU, as many as cpus_possible: differs from what it was if the CPU has gone since, as the last
 * session__cpus_changed has seen it. The session's own. */
const uint32_t *session__cpus_gone(const struct session *s);
/* Stops these; what was recorded stays to be drained. */
void session__disarm(struct session *s);

/* Distinct stacks that there is room for between two drains. One for which there is none is no loss: its samples are sent one by
 * one. */
uint32_t session__counts_max(const struct session *s);

/* Nanoseconds of CPU time that the programs took whose names begin so, 0 if it is not measured
 * (run_time_stats); runs: how often they ran. */
void session__run_time(struct session *s, const char *begin, uint64_t *ret_ns, uint64_t *ret_runs);

/* Children of filtered processes that there was no room for. One that session__add_tgid had none for is counted by
 * the caller. */
uint64_t session__not_followed(const struct session *s);
void session__count_not_followed(struct session *s);

/* For the rest of kernel/. */
struct bpfprof_bpf *session__skel(struct session *s);
struct epochs *session__epochs(struct session *s);
struct grace *session__grace(struct session *s);
/*
 * A program for a probe with this cookie: the one that was loaded, or, where the kernel gives
 * probes no cookies (UPROBES_EVENT) and prog asks for it, a copy, made when it is first wanted. A
 * descriptor, the session's own, or -errno.
 */
int session__program(struct session *s, const struct bpf_program *prog, uint64_t cookie);
/* uprobes__attach of such a program: each point's cookie has its copy where that is needed. */
struct uprobes *session__attach_points(struct session *s, enum uprobe_method m,
				       enum uprobe_side side, const struct bpf_program *prog,
				       int file_fd, pid_t pid, const struct uprobe_point *points,
				       size_t cnt);
/* Attaches a program that the kernel calls by itself, if it was loaded; else *ret is NULL. 0 or
 * -errno. */
int session__attach(struct bpf_program *prog, struct bpf_link **ret);
/*
 * How often the kernel has not run a program since it was at it on the same CPU, in a task that had
 * been preempted there: functions may be, and by 7.3 tracepoints. Whose events these would have
 * been is not known.
 */
uint64_t session__missed(const struct bpf_program *prog);

/* For struct probe's configure. */
const struct session_opts *session__opts(const struct session *s);
struct bpfprof_config *session__config(struct session *s);
enum {
	SESSION_TRACE_SLOTS = 1, /* its programs take stacks where the CPU's clock may interrupt */
	SESSION_SLOTS = 2,	 /* they do it where they can be preempted */
	SESSION_DENSE = 4,	 /* samples come so fast that the ring has to be large */
	SESSION_STATES = 8,	 /* session__keep_states */
	SESSION_FDS_SLOTS = 16,	 /* the fds kind has some of its own */
};
void session__need(struct session *s, unsigned int needs);
/* Threads have states of the kind, in task storage, else in the hash: true. */
bool session__keep_states(struct session *s, struct bpf_map *storage, struct bpf_map *hash);

#endif
