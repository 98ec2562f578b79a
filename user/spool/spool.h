/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder that takes records, each a file of its own, and holds so many bytes at most: the oldest go
 * where there is no more room.
 *
 *   NUMBER.TIME.NAME      16 digits, from 1 on; 20261126T105404Z; what the caller calls it
 *   .NUMBER.tmp           one that is being written
 *   .lock                 locked by whoever has the folder open; in it, how far that has got
 *   .NAME.cursor          how far a destination has got: spool/cursor.h
 *
 * A record is there whole or not at all, also when its writer is killed: it is written beside its
 * name, and renamed. It is not synced to the disk, so the machine's own end may lose or empty the last
 * ones. Numbers go on from run to run. Files of other names are left alone, and not counted.
 *
 * One process has it open (spool__open), and any number may look at it (spool__look).
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SPOOL_MIN_SZ (1U << 20) /* bytes that a folder may be given at least */
#define SPOOL_MAX_RECORDS (1U << 20)

struct spool;

/* Bytes as the file system has them. */
struct spool_stats {
	uint64_t records, bytes; /* that are there */
	uint64_t added,
		added_bytes; /* since it was opened; bytes of the files, not of what they take */
	uint64_t dropped, dropped_bytes; /* the oldest, for want of room, since it was opened */
};

/*
 * Makes the folder if it is not there, and holds max_sz bytes of it from then on. It has to be the
 * caller's own, no link, and nobody else may write in it. What an earlier run has left half written
 * is removed. Where the disk has no room for a small record, the oldest make it; if that is not enough it
 * is refused. 0, or -errno with a sentence in err: -EBUSY, another one has it.
 */
int spool__open(const char *path, uint64_t max_sz, struct spool **ret, char *err, size_t err_sz);
void spool__close(struct spool *s);

/*
 * To look at one that is there, whoever has it open: nothing is made, locked, removed or added. It is
 * the caller's own as above. Records are there from spool__list on, as they are then; they may go
 * meanwhile. 0, or -errno with a sentence in err.
 */
int spool__look(const char *path, struct spool **ret, char *err, size_t err_sz);
/* 0 or -errno. */
int spool__list(struct spool *s);

/*
 * Adds a record of time_ns (CLOCK_REALTIME; later than 2106 counts as that). name: without '/', at most SPOOL_NAME_SZ - 1 bytes.
 * write returns 0 or -errno; where the disk is full it is called again. 0; or -errno, and there is no
 * record: -EFBIG, it is larger than the folder may be.
 */
#define SPOOL_NAME_SZ 160
int spool__add(struct spool *s, uint64_t time_ns, const char *name,
	       int (*write)(void *ctx, FILE *f), void *ctx);

/* The number that the next record gets. */
uint64_t spool__end(const struct spool *s);

/* The first record whose number is not below `number`, and when its profile begins, to the second.
 * False: there is none. */
bool spool__find(const struct spool *s, uint64_t number, uint64_t *ret_number,
		 uint64_t *ret_time_ns);

/* Opens a record that is there for reading: a descriptor, or -errno. */
int spool__open_record(const struct spool *s, uint64_t number);

/* Where err says that the disk, or a quota, is full: removes the oldest record. True: there is room for
 * another attempt. */
bool spool__make_room(struct spool *s, int err);

/* Opens a file of another kind in the folder, whose name begins with a dot, and makes it if it is
 * not there, for which the oldest make room. A descriptor, or -errno. */
int spool__open_file(struct spool *s, const char *name);

void spool__stats(const struct spool *s, struct spool_stats *ret);

/* Its descriptor, which stays s's. */
int spool__folder(const struct spool *s);

/* The process that has the folder open; 0: none, or none that says so; -1: one that this process
 * cannot see, in another pid namespace. Not to be asked by that process itself. */
pid_t spool__holder(const struct spool *s);

/*
 * Tells those who look at it that a window has ended, at this time by both clocks, and that all of its
 * records are there. If that cannot be written they do not learn it. spool__last_window: of the one
 * who has it open, or had it last; false: there was none.
 */
struct spool_window {
	uint64_t end_monotonic_ns, end_realtime_ns;
};
void spool__tell_window(struct spool *s, const struct spool_window *w);
bool spool__last_window(const struct spool *s, struct spool_window *ret);

#endif
