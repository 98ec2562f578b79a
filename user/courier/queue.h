/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is to be done for one destination, and when. It knows no network and no clock: times are
 * CLOCK_MONOTONIC, in nanoseconds, and the caller's.
 *
 *   asked ──> begun ──> settled                 delivered, or given up
 *     │         └─────> kept ──> asked again    after a while that doubles with each failure
 *     └──> nothing there: until there is news
 *
 * A record that fails is set aside, and others go on: none can hold the rest up. A store that fails
 * is left alone for a random time up to a bound that doubles, from 1 s to 5 minutes, or for as long
 * as it asks for; then one record tries whether it is back, a new one as long as there is a place for
 * it. What was under way together and fails is one failure of the store's, and what of it is taken
 * says nothing of how the store is since then. What is sent is at most twice as much as comes in: the
 * machines of a fleet that all have a store's outage to make up for leave it room.
 *
 * A failure is only held against a record if the store has taken others since its last one; where it says that it
 * is in trouble itself, if it has taken most, and not a few. So a store may fail for days, come back for a
 * moment, or fail by chance, and nothing is lost. Only a record that may be there already, since the store had all of
 * it and gave no answer, or that may be to blame itself (429, 500), is given up after 20 attempts in any case, which
 * take about a day: it might be just those kept that the store does not take.
 */
#ifndef COURIER_QUEUE_H
#define COURIER_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "courier/retry.h"
#include "courier/wire.h"

#define QUEUE_SLOTS 8 /* attempts at once */
#define QUEUE_KEPT 32 /* records that may be set aside */

struct queue_record {
	uint64_t number; /* 0: any that has not been handed out */
	uint64_t due_ns;
	uint32_t tries;			   /* that have failed */
	uint32_t suspect;		   /* of these, how many may have been its own fault */
	uint32_t against;		   /* of these, how many are held against it */
	uint32_t alone;			   /* of all, how many while the store took others */
	uint32_t unanswered;		   /* of all, after how many it may have been stored */
	uint64_t delivered, taken, failed; /* as the queue had it at its last failure */
	uint32_t failures;		   /* of the store's in a row, when this attempt began */
};

struct queue {
	struct queue_record slots[QUEUE_SLOTS];
	uint32_t busy; /* bits of slots */
	struct queue_record kept[QUEUE_KEPT];
	uint32_t kept_cnt;
	bool drained;		/* there were no more, and no news */
	uint32_t failures;	/* in a row */
	uint64_t open_ns;	/* not before */
	int64_t credit;		/* bytes that may be sent until there is news */
	double rate;		/* bytes that come in with each news, on average */
	uint64_t delivered;	/* records, by attempts that began after it had failed last */
	uint64_t taken, failed; /* of first attempts at a record */
	uint64_t room_taken,
		room_ns; /* when a record was given up to make a place: taken, and the time */
	uint64_t random; /* state */
};

void queue__init(struct queue *q, uint64_t seed);

/* Records of so many bytes have come in. */
void queue__news(struct queue *q, uint64_t bytes);

/*
 * A slot whose record is to be fetched: slots[].number, 0 for any. -1: nothing now; *ret_at_ns: ask
 * again then, UINT64_MAX: when something has happened.
 */
int queue__ask(struct queue *q, uint64_t now_ns, uint64_t *ret_at_ns);

/* The answer: there is none; more: until it is asked again. */
void queue__nothing(struct queue *q, int slot, bool more);
/* Or there is, a record of so many bytes. */
void queue__begin(struct queue *q, int slot, uint64_t number, uint64_t bytes);

/*
 * How that ended. retry_after_ns: the least time that the store wants to be left alone; 0: it has
 * not said. True: the record is settled, as *ret; false: it is kept.
 */
bool queue__end(struct queue *q, int slot, const struct retry *r, uint64_t retry_after_ns,
		uint64_t now_ns, enum wire_outcome *ret);

/* It cannot be sent at all. */
void queue__give_up(struct queue *q, int slot);

#endif
