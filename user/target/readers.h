/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The readers that there are, by whose files they read: one that was taken over by a file can lie about
 * all that it reads from then on (target/reader.h). All but the system's start with their first use.
 */
#ifndef TARGET_READERS_H
#define TARGET_READERS_H

#include <stdint.h>

#include "target/reader.h"

enum readers_whose {
	READERS_SYSTEM,	 /* what only root, or we ourselves, can have written */
	READERS_FOREIGN, /* everything else */
	READERS_MEMORY,	 /* of processes */
	READERS_FETCHED, /* the system's files whose debug information was fetched */
	READERS_NR,
};

struct readers {
	struct reader *all[READERS_NR]; /* NULL: it was not asked for yet */
	void (*meanwhile)(void *ctx);
	void *meanwhile_ctx;
};

/* 0 or -errno. */
int readers__init(struct readers *r);
void readers__done(struct readers *r);

/* It stays until readers__done. NULL: out of memory, which READERS_SYSTEM never is. */
struct reader *readers__get(struct readers *r, enum readers_whose whose);

/* As reader__meanwhile and reader__stats, of all of them. */
void readers__meanwhile(struct readers *r, void (*call)(void *ctx), void *ctx);
void readers__stats(const struct readers *r, struct reader_stats *ret);
/* As reader__peak_rss: their sum. */
uint64_t readers__peak_rss(const struct readers *r);

#endif
