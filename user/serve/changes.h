/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of what is of one moment: a profile, and so many seconds later another one, less the first. What
 * was asked for stays here from the first one on, until it is answered.
 */
#ifndef SERVE_CHANGES_H
#define SERVE_CHANGES_H

#include <linux/types.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "courier/serve_wire.h"
#include "serve/asked.h"

struct change {
	struct asked asked; /* asked.before is our own */
	uint64_t due_ns;    /* CLOCK_MONOTONIC, of the second one; UINT64_MAX: it is on its way */
	int pidfd; /* of the process, whose id may be another one's by then; -1: this kernel has none */
};

struct changes {
	struct change all[SERVE_MAX_ASKED];
	size_t cnt;
};

/* The first one has been made, and is taken over. 0; -EBUSY: there is no room for it; or as pidfd_open(2):
 * -ESRCH: the process has ended. */
int changes__add(struct changes *c, const struct asked *a, struct profile *before);
/* One whose second profile is due, which has asked.before: it may be used until changes__drop. False: there
 * is none. */
bool changes__take(struct changes *c, uint64_t now_ns, struct asked *ret);
/* One that waits for its second profile, whose process has ended: to be answered, and dropped. */
bool changes__ended(const struct changes *c, struct asked *ret);
/* Readable when there is such a one. ret has room for SERVE_MAX_ASKED; returns how many. */
size_t changes__fds(const struct changes *c, struct pollfd *ret);
/* When there will be one that is due; UINT64_MAX: none. */
uint64_t changes__next_ns(const struct changes *c);
/* It is answered, or nobody waits for it any more; or none of them. */
void changes__drop(struct changes *c, uint64_t number);
void changes__drop_all(struct changes *c);

#endif
