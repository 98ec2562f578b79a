/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of debug information of other machines, by build ids: from the cache, else asked for by the fetcher,
 * a process that has no rights but the network (courier/fetch_wire.h). Nothing here waits for it.
 *
 *   fetch__ask        this file is wanted
 *   fetch__handle     when fetch__fd is readable
 *   fetch__next       a file that is there by now, which the caller looks into, and says by
 *   fetch__settle     whether it is what was asked for: it is kept then, also for other runs
 *
 * A fetcher that has died is not started again: what it had not brought is missing.
 */
#ifndef DEBUGINFOD_FETCH_H
#define DEBUGINFOD_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_MAX_FILES 256	    /* that are asked for in a run */
#define FETCH_CACHE_SZ (2ULL << 30) /* bytes that the folder holds */
#define FETCH_MIN_ID 8		    /* bytes of a build id: a shorter one is none */
#define FETCH_MAX_ID 64

struct fetch;

struct fetch_opts {
	const char *servers; /* as servers_parse gives them */
	const char *folder;  /* the cache's: see cache__open */
	/* seconds in which a server has to give something; where others are behind it, a third of that, and
	 * 3 at most */
	unsigned int patience;
};

struct fetch_stats {
	uint64_t asked;	  /* files that were wanted */
	uint64_t cached;  /* of these, from the cache */
	uint64_t fetched; /* from a server */
	uint64_t bytes;	  /* of the latter */
	uint64_t missing; /* not to be had */
	uint64_t late;	  /* not there yet */
	uint64_t refused; /* not asked for: FETCH_MAX_FILES */
};

/* 0; -errno with a sentence in text. */
int fetch__new(const struct fetch_opts *opts, struct fetch **ret, char *text, size_t text_sz);
void fetch__free(struct fetch *f);

/* Each build id is asked for once. name: for people, what it is the debug information of. */
void fetch__ask(struct fetch *f, const uint8_t *id, size_t sz, const char *name);

/* -1: the fetcher has ended. */
int fetch__fd(const struct fetch *f);
void fetch__handle(struct fetch *f);
/* Files that may still come. */
size_t fetch__pending(const struct fetch *f);

struct fetch_arrived {
	size_t number;
	uint8_t id[FETCH_MAX_ID];
	size_t id_sz;
	int fd; /* O_PATH; the caller's */
};
bool fetch__next(struct fetch *f, struct fetch_arrived *ret);
/* why: NULL: it is right; else what is wrong with it, static. */
void fetch__settle(struct fetch *f, size_t number, const char *why);

/* Removes what is kept and still_good does not think so of any more. */
void fetch__forget(struct fetch *f, bool (*still_good)(void *ctx, const uint8_t *id, size_t sz),
		   void *ctx);

void fetch__stats(const struct fetch *f, struct fetch_stats *ret);
/* "libfoo.so (HTTP 503), libbar.so": of those that are missing, as far as there is room. */
void fetch__missing(const struct fetch *f, char *ret, size_t ret_sz);

#endif
