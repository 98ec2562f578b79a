/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that were forked and ended between two readings of the events, and of which nothing was
 * sampled: nearly all, on a machine that starts many. Nobody will ask what they were, and what their
 * events tell need not be kept.
 */
#ifndef SHORT_LIVED_H
#define SHORT_LIVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct short_lived;

struct short_lived_proc {
	uint32_t pid, parent;
	uint64_t ended_ns; /* CLOCK_MONOTONIC: when its last thread told of its end */
};

/* NULL with errno. */
struct short_lived *short_lived__new(void);
void short_lived__free(struct short_lived *s);

/* Those of one reading, whose events are in the order of time, in place of those of the last one: their
 * fork and, behind all else, their end are among them, once, and no child's fork. There are none where events
 * were lost, or where there is no memory. */
void short_lived__find(struct short_lived *s, const struct event *events, size_t cnt);
/* This one is none, if it was one: it was sampled. */
void short_lived__sampled(struct short_lived *s, uint32_t pid);
/* Those are none of which keep says so. Are there others? */
bool short_lived__keep(struct short_lived *s,
		       bool (*keep)(void *ctx, const struct short_lived_proc *p), void *ctx);
/* There are none. */
void short_lived__clear(struct short_lived *s);
/* Is the event, by its number, one of such a process? */
bool short_lived__has(const struct short_lived *s, size_t event);

#endif
