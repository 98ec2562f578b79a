/* SPDX-License-Identifier: BSD-2-Clause */
/* The recordings that go on. */
#ifndef SERVE_RECORDINGS_H
#define SERVE_RECORDINGS_H

#include <linux/types.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"
#include "serve/recording.h"

#define RECORDINGS_MAX 8U /* each costs some 30 MB */

struct recordings {
	struct recording *all[RECORDINGS_MAX];
	/* what all have of struct recording_opts */
	const struct options *opts;
	recording_answer answer;
	void (*first)(void *ctx, const struct asked *a, struct profile *p);
	void *ctx;
	/* one was opened, or files were looked at, since the caller has set it to false */
	bool took_long;
};

/* Ends all of them. */
void recordings__done(struct recordings *r);

/* One of this kind of the process; any of the process. NULL: there is none. */
struct recording *recordings__find(const struct recordings *r, uint32_t pid, enum bpfprof_kind kind,
				   uint32_t hz);
struct recording *recordings__of(const struct recordings *r, uint32_t pid);
/* A new one, by its pid, kinds, frequency and whether it goes on all the time. 0; -EBUSY: there are too
 * many; -ESRCH: no such process; -errno, said. */
int recordings__open(struct recordings *r, const struct recording_opts *what,
		     struct recording **ret);

/* As of one recording, for all. */
void recordings__poll(struct recordings *r);
void recordings__meanwhile(struct recordings *r);
void recordings__drop(struct recordings *r, uint64_t number);
void recordings__drop_all(struct recordings *r);
uint64_t recordings__next_ns(const struct recordings *r);
/* What recordings__poll is to be called for; ret: room for two for each. Returns how many. */
size_t recordings__fds(const struct recordings *r, struct pollfd *ret);

#endif
