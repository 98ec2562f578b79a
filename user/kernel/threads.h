/* SPDX-License-Identifier: BSD-2-Clause */
/* What threads are doing, as the kernel sees them: an iterator over all of them, which stops
 * nobody, and the sampler for those that are on a CPU. */
#ifndef KERNEL_THREADS_H
#define KERNEL_THREADS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct session;
struct threads_sampler;

struct threads {
	uint8_t *buf;
	size_t sz;
};

/*
 * Reads the thread tid, or all for 0, that pass the session's filters; where the kernel cannot look
 * for a single one (before 6.1), all in either case. To be freed with threads__done. 0 or -errno.
 */
int threads__read(struct session *s, uint32_t tid, struct threads *ret);
void threads__done(struct threads *t);

/* The one at *pos, which starts at 0 and is moved on; its kernel frames in *ret_kernel. NULL: that
 * was the last one. */
const struct bpfprof_thread *threads__next(const struct threads *t, size_t *pos,
					   const uint64_t **ret_kernel);

/*
 * Samples threads that are on a CPU, each one once, as records of kind BPFPROF_THREADS in the ring.
 * NULL with errno.
 */
struct threads_sampler *threads_sampler__new(struct session *s);
/* NULL is allowed. */
void threads_sampler__free(struct threads_sampler *ts);

/* A thread to be sampled. 0 or -errno. */
int threads_sampler__add(struct threads_sampler *ts, uint32_t tid);
/* It is not to be sampled any more. True if it has not been, either. */
bool threads_sampler__remove(struct threads_sampler *ts, uint32_t tid);
/* It was added, and has been sampled. */
bool threads_sampler__has(struct threads_sampler *ts, uint32_t tid);

#endif
