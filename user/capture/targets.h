/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that are collected: learns of them by scans and by events, keeps procs (procs.h) up
 * to date, tells the kernel side what changed in those that it knows, and lets go of the dead.
 */
#ifndef TARGETS_H
#define TARGETS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpfprof_rec;
struct bpfprof_task;
struct code;
struct events;
struct procs;
struct session;
struct targets;

struct targets_opts {
	bool follow;	 /* children of a target are targets too */
	bool only_added; /* nothing but what targets__scan was given, and descendants where they are
			    followed */
	bool all_maps;	 /* mappings are asked for before there are samples */
};

/* What is remembered of a process for the stacks that are copied from it; zero at first, and again
 * when its number is given to another. */
struct target_note {
	uint8_t fruitless;     /* stacks that led to unknown code; 0 again when mappings change */
	uint64_t fruitless_ns; /* when the first of them was taken */
	uint64_t changed_ns;   /* when mappings changed, the last time that is known */
	bool known;	       /* the kernel side has what a copied stack asked for */
	uint8_t dead_looks;
	uint64_t dead_ns;  /* the time of the first of them */
	uint32_t chosen;   /* kinds: see targets__choose */
	bool dirty;	   /* mappings changed since it was published */
	bool removed;	   /* by targets__remove; it may go on without us */
	bool not_followed; /* for want of room, and counted */
};

/* Processes that were forked by a target, or by one that is chosen, and are none themselves. */
#define TARGET_FORKS 256
struct target_forks {
	uint64_t cnt; /* so far */
	uint32_t forkers
		[TARGET_FORKS]; /* their parents' ids, that of fork n at n modulo TARGET_FORKS */
};

/* Borrows everything. NULL with errno. */
struct targets *targets__new(const struct targets_opts *opts, struct session *session,
			     struct events *events, struct procs *procs, struct code *code);
void targets__free(struct targets *t);

/*
 * Learns the processes that exist: all; with only_added those of tgids, and their descendants where
 * children are followed. With only_added or all_maps also what they map, else that is read when one
 * is sampled, or has a child that is not passed over. 0 or -errno.
 */
int targets__scan(struct targets *t, const uint32_t *tgids, size_t tgid_cnt);

/*
 * A process that goes on is no target any more: as if it had ended. What was sampled of it before may
 * still arrive, for 100 ms or a little longer; until then targets__is_leaving, and it cannot become one
 * again. 0, -ESRCH if it was none, or -ENOMEM.
 */
int targets__remove(struct targets *t, uint32_t tgid);
bool targets__is_leaving(const struct targets *t, uint32_t tgid);

/*
 * Of which of the kinds that are recorded of chosen processes alone one is recorded from now on; bit i:
 * kind i. task: as a scan that began at scanned_ns, CLOCK_MONOTONIC, has met it. It holds until the
 * process runs another program. 0 or -errno.
 */
int targets__choose(struct targets *t, const struct bpfprof_task *task, uint64_t scanned_ns,
		    uint32_t chosen);
/* The same, of a number of procs. */
uint32_t targets__chosen(const struct targets *t, uint32_t proc);

/* All records that have been sent by now and wait: calls f for each. False: there may be more. */
struct targets_records {
	bool (*each)(void *ctx, void (*f)(void *f_ctx, const struct bpfprof_rec *rec), void *f_ctx);
	void *ctx;
};

/* Applies the events up to until_ns that have arrived; but those of processes that have come and gone, and
 * have none of these records, are passed over. NULL: all are applied. 0 or -errno. */
int targets__read_events(struct targets *t, uint64_t until_ns,
			 const struct targets_records *records);

/* The process that the record's sample belongs to, or PROCS_NONE. Reads its mappings if they are not
 * known and the sample has user frames; space->known is false if it had ended before that. */
uint32_t targets__find(struct targets *t, const struct bpfprof_rec *rec);

/* Tells the kernel side what changed in the processes that it knows. behind: records still wait. Takes time for what
 * happened, not for what there is. */
void targets__tend(struct targets *t, bool behind);

/*
 * Nobody else has to look at a process that has ended by now, and no record waits: it goes when the last ones from it have
 * arrived, with the third call after its end, and not before 100 ms.
 */
void targets__let_go(struct targets *t);

/* NULL if there is no memory. Valid until the next call. */
struct target_note *targets__note(struct targets *t, uint32_t proc);

const struct target_forks *targets__forks(const struct targets *t);
/* Takes what events told while everything was prepared: recording begins. 0 or -errno. */
int targets__begin(struct targets *t);
/* Times that events were lost since recording began, and everything was read anew. */
uint64_t targets__events_lost(const struct targets *t);

#endif
