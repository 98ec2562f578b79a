/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the kernel to the windows (capture/windows.h): reads records, counts and process events,
 * brings them into the order of time, and keeps the kernel side informed about the code of the
 * processes.
 */
#ifndef COLLECT_H
#define COLLECT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct code;
struct collect;
struct events;
struct procs;
struct samples;
struct session;
struct window;
struct windows;

#define COLLECT_SPILL_MAX (128U << 20)

struct collect_opts {
	bool label_process; /* pid and comm on every sample: profiles of several processes */
	bool label_thread;
	/* what processes say of their service: they are asked */
	bool label_service;
	bool follow;	  /* children of a process that is collected are collected too */
	bool only_added;  /* nothing but what collect__scan was given, and children where they are
			     followed */
	bool all_maps;	  /* mappings are asked for before there are samples */
	uint64_t poll_ns; /* how long collect__poll may work, about; 0: until all is done */
	/* bytes of records that wait here; those beyond wait in the ring. 0: COLLECT_SPILL_MAX */
	size_t spill_max;
	/* Called every 5 ms while collect is at work. It may call collect__spill, and what ends
	 * epochs: collect__can_end, collect__end_epoch, collect__tend_epoch. NULL: collect__spill */
	void (*meanwhile)(void *ctx);
	void *ctx;
	int64_t periods[BPFPROF_NR_KINDS]; /* of the profiles: see kinds.h */
};

/* What became of one kind's samples, in samples. seen == recorded + sum(lost). */
struct collect_account {
	uint64_t seen, recorded;
	uint64_t lost[BPFPROF_NR_LOST];
	uint64_t stacks[BPFPROF_NR_RESULTS]; /* of the recorded ones, how they ended; sums to
						recorded */
	uint64_t unwinds, frames; /* walks in the kernel, and user frames that they found */
	uint64_t raw;		  /* stacks that were copied and unwound here */
	uint64_t below, below_ns; /* waits that were left out as too short; not in seen */
	struct bpfprof_cache_stats kernel_stacks, user_stacks, rules;
	/* custom: values that were removed, see struct bpfprof_stats; not in seen */
	uint64_t removed, duplicates, unknown, untracked;
	/* fds: what is open besides, see struct fds_part: capture__profile sets them */
	uint64_t open_before, open_unknown;
	/* times that process events were lost and everything was read anew, and children that should
	 * have been followed, of whom is not known what they have made: capture__profile sets them */
	uint64_t events_lost, not_followed;
};

/* Borrows everything. NULL with errno. */
struct collect *collect__new(const struct collect_opts *opts, struct session *session,
			     struct samples *samples, struct events *events, struct procs *procs,
			     struct code *code);
void collect__free(struct collect *c);

/*
 * Learns the processes that exist and what they map: all; with only_added those of tgids, and their
 * descendants where children are followed. 0 or -errno.
 */
int collect__scan(struct collect *c, const uint32_t *tgids, size_t tgid_cnt);

/* One that collect__scan was given, while it goes on: see targets__remove. */
int collect__remove(struct collect *c, uint32_t tgid);
bool collect__is_leaving(const struct collect *c, uint32_t tgid);

/* See targets__choose. */
int collect__choose(struct collect *c, const struct bpfprof_task *task, uint64_t scanned_ns,
		    uint32_t chosen);
/* Of a number of procs: bit i: kind i. */
uint32_t collect__chosen(const struct collect *c, uint32_t proc);

/*
 * Makes the scanned processes known to the kernel side with the tables of all that they map, before
 * they are sampled. Without it, tables are loaded as stacks ask for them. 0 or -errno.
 */
int collect__prepare(struct collect *c);

/*
 * Copies what is in the rings to memory, as far as it may be used for that, and processes nothing:
 * the next collect__poll does. For when that is itself at work, and waits (objects__meanwhile).
 */
void collect__spill(struct collect *c);

/* Takes in what has arrived. Where poll_ns is not enough for that, the rest is left for the next
 * time, lest a run does not end. To be called several times a second. 0 or -errno. */
int collect__poll(struct collect *c);

/* Whoever looks at the processes has done so since the last poll: those that ended long enough ago are forgotten. To be
 * called behind polls; else all are kept. */
void collect__let_go(struct collect *c);

/* Has the last one left anything? */
bool collect__is_behind(const struct collect *c);

/* Had the kernel side all tables by the last one: no stack was copied, and nothing waits? */
bool collect__is_calm(const struct collect *c);

/*
 * A record that was made here and not by the kernel side: as if it had come through the ring. rec
 * has sz bytes with what follows it; counted as seen. 0 or -ENOMEM, and then it is counted as lost.
 */
int collect__inject(struct collect *c, const struct bpfprof_rec *rec, size_t sz);
/* One that could not be made: seen and lost. */
void collect__lose(struct collect *c, enum bpfprof_kind kind, enum bpfprof_lost why);
/* Waits that are shorter than the limit, of ns together. */
void collect__leave_out(struct collect *c, enum bpfprof_kind kind, uint32_t cnt, uint64_t ns);

/*
 * Ends the epoch that goes on. boundary: a window ends with it. Programs that run may still add to it,
 * for 10 to 60 ms (epochs.h): so long it is ending, and no other one may end. 0; -EAGAIN if
 * collect__may_end says no: one is ending, or as many as can be kept have ended.
 */
int collect__end_epoch(struct collect *c, bool boundary);
bool collect__may_end(const struct collect *c);
/* May it end, and do so few records wait that it should? What was put in since by collect__inject, for a
 * boundary, is no reason to do without that boundary. */
bool collect__can_end(const struct collect *c);
bool collect__is_ending(const struct collect *c);
/* Keeps what was counted in the epoch that is ending, if no program adds to it any more; wait: as soon
 * as none does. To be called now and then. 0 or -errno: the recording cannot go on. */
int collect__tend_epoch(struct collect *c, bool wait);

/* Adds up, in all open windows, what has ended before the first boundary. 0 or -errno. */
int collect__settle(struct collect *c);
/* Is there nothing that has ended, or is ending, and is not added up? */
bool collect__has_settled(const struct collect *c);

/*
 * Ends the epoch and waits for that: all that was sampled in it, and nothing else, is in all open
 * windows then, unless a boundary waits that collect__settle_boundary has to take in first. 0 or
 * -errno.
 */
int collect__cut(struct collect *c);

/* Adds up what has ended by the first boundary, in all open windows. There is one. *ret_ns: when it
 * was, CLOCK_MONOTONIC. 0 or -errno. */
int collect__settle_boundary(struct collect *c, uint64_t *ret_ns);

/* Should the epoch end soon, to make room? */
bool collect__wants_cut(const struct collect *c);

/* Of an open window, after a cut. */
void collect__account(struct window *w, enum bpfprof_kind kind, struct collect_account *ret);

/* Recording is about to begin: see targets__begin(). 0 or -errno. */
int collect__begin(struct collect *c);
/* How often process events have been lost since. */
uint64_t collect__events_lost(const struct collect *c);

/* The windows that are open. */
struct windows *collect__windows(struct collect *c);

/* Processes that were forked by a collected one and are not collected themselves. */
const struct target_forks *collect__forks(const struct collect *c);

#endif
