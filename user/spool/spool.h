/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder that takes records, each a file of its own, and holds so many bytes at most: the oldest go
 * where there is no more room.
 *
 *   NUMBER.TIME.NAME      16 digits, from 1 on; 20261126T105404Z; what the caller calls it
 *   .NUMBER.tmp           one that is being written
 *   .lock                 held by whoever has the folder open
 *
 * A record is there whole or not at all, also when its writer is killed: it is written beside its
 * name, and renamed. It is not synced to the disk, so the machine's own end may lose or empty the last
 * ones. Numbers go on from run to run. Files of other names are left alone, and not counted.
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SPOOL_MIN_SZ (1U << 20) /* bytes that a folder may be given at least */
#define SPOOL_MAX_RECORDS (1U << 20)

struct spool;

/* Bytes as the file system has them. */
struct spool_stats {
	uint64_t records, bytes;	 /* that are there */
	uint64_t dropped, dropped_bytes; /* the oldest, for want of room, since it was opened */
};

/*
 * Makes the folder if it is not there, and holds max_sz bytes of it from then on. It has to be the
 * caller's own, no link, and nobody else may write in it. What an earlier run has left half written
 * is removed. 0, or -errno with a sentence in err: -EBUSY, another one has it.
 */
int spool__open(const char *path, uint64_t max_sz, struct spool **ret, char *err, size_t err_sz);
void spool__close(struct spool *s);

/*
 * Adds a record of time_ns (CLOCK_REALTIME). name: without '/', at most SPOOL_NAME_SZ - 1 bytes.
 * write returns 0 or -errno; where the disk is full it is called again. 0; or -errno, and there is no
 * record: -EFBIG, it is larger than the folder may be.
 */
#define SPOOL_NAME_SZ 160
int spool__add(struct spool *s, uint64_t time_ns, const char *name,
	       int (*write)(void *ctx, FILE *f), void *ctx);

void spool__stats(const struct spool *s, struct spool_stats *ret);

#endif
