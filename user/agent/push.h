/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Has the records of a spool delivered to stores by the courier, a process that has no rights but
 * the network (courier/wire.h). It is started anew when it dies or hangs; what it had under way goes
 * out again then.
 *
 * A record arrives once, but for cuts in which it may arrive twice: when a store has taken all of it
 * and its answer is lost, as often as that happens, when the courier or we end after the answer and before it is noted
 * (spool/cursor.h), when its destination becomes another one meanwhile, and when the machine ends
 * before the note is on its disk.
 */
#ifndef AGENT_PUSH_H
#define AGENT_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "courier/wire.h"

struct destination;
struct push;
struct spool;

/* Records, of one destination. */
struct push_stats {
	uint64_t outcome[WIRE_NR_OUTCOMES];
	uint64_t too_old, dropped; /* not sent: by the destination's limit, by the spool's size */
	uint64_t failures[WIRE_NR_REASONS]; /* attempts */
	uint64_t bytes;			    /* of requests, without their heads */
	uint64_t pending;
};

/*
 * destinations: WIRE_MAX_DESTINATIONS at most, of different names; they and the spool have to
 * outlive it. node: this machine's name. listening: a socket at which the courier answers how the
 * agent is, which is push's then; -1: none. 0; -errno with a sentence in text.
 */
int push__new(struct spool *spool, const struct destination *destinations, size_t cnt,
	      const char *node, int listening, struct push **ret, char *text, size_t text_sz);
void push__free(struct push *p);

/*
 * Others from now on, with the same terms; those of an equal name and equal settings go on as they
 * are. 0; -errno with a sentence: all is as it was.
 */
int push__change(struct push *p, const struct destination *destinations, size_t cnt, char *text,
		 size_t text_sz);

/* Readable when there is something to be done; push__handle may leave some of it for the next time. */
int push__fd(const struct push *p);
void push__handle(struct push *p);

/* A window's records are there, of so many bytes. */
void push__news(struct push *p, uint64_t bytes);

/*
 * What is answered from now on: WIRE_MAX_TEXT bytes at most. To be called every 10 s or so: a courier
 * that has not been heard of for a minute is killed here, and another one started.
 */
void push__status(struct push *p, const char *text, size_t sz);

/* Are all records settled, for all destinations? */
bool push__is_done(const struct push *p);
/* So many records are settled since the start, for whatever destination. */
uint64_t push__settled(const struct push *p);

/* From now on no record is handed out; what is under way goes on. */
void push__stop(struct push *p);
/* Records that the courier may be sending, or waits for an answer to. */
size_t push__under_way(const struct push *p);

/* The courier; 0: there is none just now. *ret_cpu_ns: CPU time of all that there were. */
pid_t push__courier(const struct push *p, uint64_t *ret_cpu_ns);

/* Of a destination; false: there is none of that name. */
bool push__stats(const struct push *p, const char *name, struct push_stats *ret);

#endif
