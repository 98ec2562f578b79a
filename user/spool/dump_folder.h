/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder of files within a spool's, that is there whole or not at all: what was begun and not
 * ended, since its writer was killed, is removed by the next one. Nothing of it counts as the
 * spool's.
 *
 *   dump-TIME, dump-TIME-2 …   20261126T105404Z; mode 0700, its files 0600
 *   .dump-N.tmp                one that is being written; its writer holds a lock on it, flock(2)
 */
#ifndef SPOOL_DUMP_FOLDER_H
#define SPOOL_DUMP_FOLDER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct dump_folder;

#define DUMP_FOLDER_NAME_SZ 48

/* spool: its descriptor, which has to outlive it. 0 or -errno. */
int dump_folder__new(int spool, struct dump_folder **ret);
/* Removes it, unless it is in its place. */
void dump_folder__free(struct dump_folder *d);

/* Adds a file, on the disk. write returns 0 or -errno. 0 or -errno. */
int dump_folder__add(struct dump_folder *d, const char *name, int (*write)(void *ctx, FILE *f),
		     void *ctx);

/* Puts it in its place, under the name of a time, CLOCK_REALTIME. 0 or -errno. */
int dump_folder__commit(struct dump_folder *d, uint64_t time_ns,
			char ret_name[static DUMP_FOLDER_NAME_SZ]);

#endif
