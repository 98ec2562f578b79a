/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder of files of debug information, each under its build id. It is ours alone, and holds so many
 * bytes at most whenever a file has come: those that were not used for the longest time go to make
 * room. Several processes may have it open: a file appears whole, and stays whole for whoever has
 * opened it.
 *
 *   .part-…   what is being fetched, locked (flock(2)) for as long: one without a lock was left behind
 */
#ifndef DEBUGINFOD_CACHE_H
#define DEBUGINFOD_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct cache;

/* A file that is being fetched. */
struct cache_part {
	int fd; /* for writing */
	char name[32];
};

/* Makes the folder, mode 0700, if it is not there. One that is a link, or another's, or that others have
 * rights to is refused. 0, or -errno with a sentence in text. */
int cache__open(const char *path, uint64_t max_sz, struct cache **ret, char *text, size_t text_sz);
void cache__close(struct cache *c);

/* id: lower-case hex, in all of these. The file of a build id, O_PATH; it is in use now. -ENOENT: there is
 * none; -errno. */
int cache__find(struct cache *c, const char *id);
/* The same of one that is being fetched. */
int cache__look(struct cache *c, const struct cache_part *part);

/* Begins a file. 0 or -errno. */
int cache__begin(struct cache *c, struct cache_part *ret);
/* Ends it: it is the file of the build id from now on, or, id being NULL, it goes. *ret_sz, where there is an
 * id: its bytes. 0 or -errno: it has gone. */
int cache__end(struct cache *c, struct cache_part *part, const char *id, uint64_t *ret_sz);

/* Removes the file of a build id. */
void cache__remove(struct cache *c, const char *id);

#endif
