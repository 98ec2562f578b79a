/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of a spool that a dump takes, and what they come to together. */
#ifndef DUMP_RECORDS_H
#define DUMP_RECORDS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct profile;
struct spool;

/* The bytes of a sum (profile__bytes) from which on no more records are added, or a quarter of what
 * all processes here may have together, if that is less: to write it takes some as well. */
#define DUMP_MAX_SUM (1ULL << 30)

/* When the windows end that are wanted, as profiles bear it: CLOCK_REALTIME. Both ends belong to it. */
struct dump_time {
	uint64_t from_ns, to_ns;
};

/* What became of records. */
struct dump_account {
	size_t added;
	size_t broken;		   /* no record of that kind, whatever it is */
	size_t gone;		   /* removed meanwhile */
	size_t others;		   /* of other values than the newest one */
	size_t no_room;		   /* the sum had grown too large */
	uint64_t begin_ns, end_ns; /* of the windows that were added */
	char values
		[128]; /* names of values that were left out, since some do not have them; "": none */
};

struct dump_records {
	uint64_t *numbers; /* newest first */
	uint8_t *kinds;	   /* of each, as its header says: enum bpfprof_kind */
	size_t cnt;
	struct dump_account unknown; /* those whose kind is not known */
};

/*
 * Those of the spool's list that may have such a window, by their names: a window ends where the next
 * one begins. 0 or -ENOMEM; *ret is the caller's to release.
 */
int dump_records__find(const struct spool *s, const struct dump_time *when,
		       struct dump_records *ret);
void dump_records__done(struct dump_records *r);

/*
 * Adds up those of a kind whose window ends in that time, the newest first, one after the other. What there was at
 * the end of a window (kinds.h, levels) is taken from those of the newest. Each sample has the labels of its record: service_name, and what all samples of its group have. *ret:
 * the caller's, finished; NULL: there was none. aborted() ends it: -EINTR. 0 or -errno.
 */
int dump_records__sum(const struct spool *s, const struct dump_records *r, enum bpfprof_kind kind,
		      const struct dump_time *when, bool (*aborted)(void), struct profile **ret,
		      struct dump_account *ret_account);

/* Those that were not added, and why, for people: "2 that are broken, 1 …"; "": there are none. */
void dump_account_text(const struct dump_account *a, char *ret, size_t ret_sz);

#endif
