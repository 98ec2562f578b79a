/* SPDX-License-Identifier: BSD-2-Clause */
#include "courier/queue.h"

#include <stddef.h>
#include <string.h>

#include "base/random.h"
#include "base/util.h"

#define BASE_NS NSEC_PER_SEC
#define CAP_NS (300 * NSEC_PER_SEC)
#define RIGHTS_NS (30 * NSEC_PER_SEC)	   /* the least, where we are not believed */
#define MAX_ASKED_NS (3600 * NSEC_PER_SEC) /* the most that a store may ask for */
#define MAX_SUSPECT 20			   /* failures that may be a record's own fault */
#define MAX_UNANSWERED 20		   /* times that a record may have been stored */
/* A failure is held against a record whose store says that it is in trouble itself, if it has taken so many others
 * since the record's last one, at least, and more than so many for each that it has not. */
#define OTHERS 8
#define TIMES_FAILED 2
/* So many of these a record may have; fewer where so many are kept. */
#define MAX_ALONE 8
#define CROWDED (QUEUE_KEPT / 2)
#define MAX_ALONE_CROWDED 4
#define ROOM_NS \
	(3600 * NSEC_PER_SEC) /* between two that are given up for a place, if nothing is taken */
#define SMOOTHING 16	      /* news that the average rate goes by */

void queue__init(struct queue *q, uint64_t seed)
{
	*q = (struct queue){ .random = seed, .drained = true };
}

void queue__news(struct queue *q, uint64_t bytes)
{
	q->rate = q->rate ? q->rate + ((double)bytes - q->rate) / SMOOTHING : (double)bytes;
	/* twice the mean, not twice the larger one of the two: windows differ, and what waits is to have half of it */
	q->credit = MIN(q->credit, 0) + (int64_t)MAX(2 * q->rate, (double)bytes);
	q->drained = false;
}

/* After so many failures: from nothing to a bound that doubles ("full jitter"). */
static uint64_t delay_ns(struct queue *q, uint32_t failures)
{
	uint64_t bound = failures > 9 ? CAP_NS : MIN(BASE_NS << failures, CAP_NS);

	return random_next(&q->random) % bound;
}

/* ---- what is next ---- */

static int free_slot(const struct queue *q)
{
	for (int i = 0; i < QUEUE_SLOTS; i++)
		if (!(q->busy & 1U << i))
			return i;
	return -1;
}

/* Of those set aside the one that has waited longest; NULL: there is none. */
static struct queue_record *first_due(struct queue *q)
{
	struct queue_record *first = NULL;

	for (uint32_t i = 0; i < q->kept_cnt; i++)
		if (!first || q->kept[i].due_ns < first->due_ns)
			first = &q->kept[i];
	return first;
}

static int occupy(struct queue *q, const struct queue_record *r)
{
	int slot = free_slot(q);

	q->busy |= 1U << slot;
	q->slots[slot] = r ? *r : (struct queue_record){ 0 };
	q->slots[slot].failures = q->failures;
	return slot;
}

static int take_kept(struct queue *q, struct queue_record *r)
{
	int slot = occupy(q, r);

	*r = q->kept[--q->kept_cnt];
	return slot;
}

/* Is the store left alone, or tried out by one record? */
static bool may_send(const struct queue *q, uint64_t now_ns, uint64_t *ret_at_ns)
{
	if (free_slot(q) < 0 || (q->failures && q->busy) || q->credit <= 0)
		return false;
	if (now_ns >= q->open_ns)
		return true;
	*ret_at_ns = q->open_ns;
	return false;
}

int queue__ask(struct queue *q, uint64_t now_ns, uint64_t *ret_at_ns)
{
	struct queue_record *first = first_due(q);
	/* each that is under way may have to be set aside */
	uint32_t under_way = q->kept_cnt + (uint32_t)__builtin_popcount(q->busy);
	bool more = !q->drained && under_way < QUEUE_KEPT;

	*ret_at_ns = UINT64_MAX;
	if (!may_send(q, now_ns, ret_at_ns))
		return -1;
	/* a store is tried out with new ones while there are any: it may be just those kept that it
	 * cannot take */
	if (first && (q->failures ? !more : first->due_ns <= now_ns))
		return take_kept(q, first);
	if (more)
		return occupy(q, NULL);
	if (first)
		*ret_at_ns = first->due_ns;
	return -1;
}

static void vacate(struct queue *q, int slot)
{
	q->busy &= ~(1U << slot);
}

void queue__nothing(struct queue *q, int slot, bool more)
{
	/* one that was set aside has gone meanwhile */
	if (!q->slots[slot].number && !more)
		q->drained = true;
	vacate(q, slot);
}

void queue__begin(struct queue *q, int slot, uint64_t number, uint64_t bytes)
{
	q->slots[slot].number = number;
	q->credit -= (int64_t)bytes;
}

/* ---- how it ended ---- */

/* known: it is no other failure of the store's than the last one, or none. */
static void leave_alone(struct queue *q, bool known, uint64_t at_least_ns, uint64_t now_ns)
{
	uint64_t ns = known ? 0 : delay_ns(q, q->failures);

	ns = MAX(ns, MIN(at_least_ns, MAX_ASKED_NS));
	q->open_ns = MAX(q->open_ns, now_ns + ns);
	q->failures += !known;
}

static void keep(struct queue *q, const struct queue_record *r, uint64_t now_ns)
{
	struct queue_record *to = &q->kept[q->kept_cnt++];

	*to = *r;
	to->due_ns = now_ns + delay_ns(q, r->tries);
	to->tries++;
	to->delivered = q->delivered;
	to->taken = q->taken;
	to->failed = q->failed;
}

/* Has the store taken most of those others since it failed last that it was given for the first time? Of those that
 * are kept none says much: they may be what it does not take. */
static bool is_alone(const struct queue *q, const struct queue_record *r)
{
	uint64_t taken = q->taken - r->taken;

	return r->tries && taken >= OTHERS && taken > TIMES_FAILED * (q->failed - r->failed);
}

/* Where there is no place for a new one, which might be taken, it may be the records that are kept, and not the store:
 * does this one go? */
static bool makes_room(struct queue *q, const struct queue_record *r, uint64_t now_ns)
{
	uint32_t under_way = q->kept_cnt + 1 + (uint32_t)__builtin_popcount(q->busy);

	if (!r->alone || under_way < QUEUE_KEPT ||
	    (q->taken == q->room_taken && now_ns < q->room_ns + ROOM_NS))
		return false;
	q->room_taken = q->taken;
	q->room_ns = now_ns;
	return true;
}

/* Is this failure one too many for the record? */
static bool is_enough(struct queue *q, struct queue_record *r, const struct retry *why, bool alone,
		      uint64_t now_ns, enum wire_outcome *ret)
{
	r->alone += alone;
	*ret = WIRE_FAILED;
	switch (why->verdict) {
	case VERDICT_REFUSED:
		*ret = WIRE_REFUSED;
		return true;
	case VERDICT_UNKNOWN:
		*ret = WIRE_UNANSWERED;
		/* a store that answers nobody says nothing of the record */
		return (r->unanswered && q->delivered > r->delivered) ||
		       r->unanswered + 1 >= MAX_UNANSWERED;
	case VERDICT_SUSPECT:
		/* the first is, whoever's trouble it is */
		r->against += !r->suspect || q->delivered > r->delivered;
		r->suspect++;
		return r->against >= why->tries || r->suspect >= MAX_SUSPECT;
	default:
		return r->alone >= (q->kept_cnt < CROWDED ? MAX_ALONE : MAX_ALONE_CROWDED) ||
		       makes_room(q, r, now_ns);
	}
}

bool queue__end(struct queue *q, int slot, const struct retry *why, uint64_t retry_after_ns,
		uint64_t now_ns, enum wire_outcome *ret)
{
	struct queue_record r = q->slots[slot];
	/* what began before the store failed says nothing of how it is since */
	bool told = r.failures < q->failures;
	bool alone = is_alone(q, &r);
	uint64_t at_least_ns = retry_after_ns;
	bool settled;

	vacate(q, slot);
	if (why->verdict == VERDICT_DELIVERED) {
		*ret = r.unanswered ? WIRE_MAYBE_DUPLICATE : WIRE_DELIVERED;
		q->taken += !r.tries;
		if (told)
			return true;
		q->delivered++;
		q->failures = 0;
		q->open_ns = 0;
		return true;
	}
	settled = is_enough(q, &r, why, alone, now_ns, ret);
	r.unanswered += why->verdict == VERDICT_UNKNOWN;
	/* where the last one was taken, we are believed */
	if (why->verdict == VERDICT_RIGHTS && (r.failures || !q->delivered))
		at_least_ns = MAX(at_least_ns, RIGHTS_NS);
	if (why->verdict != VERDICT_REFUSED) {
		/* one that alone is not taken says nothing of the store */
		leave_alone(q, told || (alone && !q->failures), at_least_ns, now_ns);
		q->failed += !r.tries;
	} else if (!told) { /* it has answered, and others may do better */
		q->failures = 0;
	}
	if (!settled)
		keep(q, &r, now_ns);
	return settled;
}

void queue__give_up(struct queue *q, int slot)
{
	vacate(q, slot);
}
