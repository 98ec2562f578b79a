/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * courier/queue and courier/retry: hours of windows, records and a store that fails in all ways, in
 * a time that is made here. What a collector does is done here, too: it gives each record out once,
 * and again where it is asked for it.
 */
#include "courier/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/util.h"

#define S NSEC_PER_SEC
#define WINDOW (10 * S)
#define EACH 1000 /* bytes of a record */
#define MAX_RECORDS 60000
#define TAKES (S / 20) /* an attempt */

struct sim;
typedef int (*store_fn)(struct sim *sim, uint64_t number); /* a status */

static struct sim {
	struct queue q;
	store_fn store;
	uint64_t retry_after_ns;
	uint64_t now, end;
	uint64_t made, given; /* records: numbers from 1 on */
	uint32_t per_window;
	uint64_t ends[QUEUE_SLOTS]; /* of attempts; 0: none */
	/* what happened */
	uint32_t attempts[MAX_RECORDS + 1];
	enum wire_outcome outcome[MAX_RECORDS + 1];
	bool settled[MAX_RECORDS + 1];
	uint64_t settled_at[MAX_RECORDS + 1];
	uint64_t all_attempts, most_at_once, window_bytes, most_window_bytes, last_attempt,
		least_gap;
} sim;

static void start(store_fn store, uint32_t per_window)
{
	sim = (struct sim){
		.store = store, .per_window = per_window, .now = 1, .least_gap = ~0ULL
	};
	queue__init(&sim.q, 42);
}

static void window_ends(void)
{
	for (uint32_t i = 0; i < sim.per_window && sim.made < MAX_RECORDS; i++)
		sim.made++;
	queue__news(&sim.q, sim.per_window * EACH);
	sim.most_window_bytes = MAX(sim.most_window_bytes, sim.window_bytes);
	sim.window_bytes = 0;
}

static void begin(int slot)
{
	uint64_t number = sim.q.slots[slot].number;

	if (!number && sim.given == sim.made) {
		queue__nothing(&sim.q, slot, false);
		return;
	}
	if (!number)
		number = ++sim.given;
	assert_in_range(number, 1, sim.given);
	assert_false(sim.settled[number]);
	sim.attempts[number]++;
	sim.all_attempts++;
	sim.window_bytes += EACH;
	if (sim.last_attempt)
		sim.least_gap = MIN(sim.least_gap, sim.now - sim.last_attempt);
	sim.last_attempt = sim.now;
	sim.ends[slot] = sim.now + TAKES;
	queue__begin(&sim.q, slot, number, EACH);
	sim.most_at_once = MAX(sim.most_at_once, (uint64_t)__builtin_popcount(sim.q.busy));
}

static void end(int slot)
{
	uint64_t number = sim.q.slots[slot].number;
	struct retry r = retry_judge(STORE_PYROSCOPE, sim.store(&sim, number));
	enum wire_outcome outcome;

	sim.ends[slot] = 0;
	if (!queue__end(&sim.q, slot, &r, sim.retry_after_ns, sim.now, &outcome))
		return;
	sim.settled[number] = true;
	sim.outcome[number] = outcome;
	sim.settled_at[number] = sim.now;
}

/* Lets so much time pass, and windows end unless no more records are made. */
static void run(uint64_t ns, bool windows)
{
	uint64_t until = sim.now + ns, next_window = sim.now + WINDOW, at, next;
	int slot;

	while (sim.now < until) {
		while ((slot = queue__ask(&sim.q, sim.now, &at)) >= 0)
			begin(slot);
		assert_true(at > sim.now);
		next = MIN(MIN(until, at), next_window);
		for (int i = 0; i < QUEUE_SLOTS; i++)
			if (sim.ends[i])
				next = MIN(next, sim.ends[i]);
		sim.now = next;
		for (int i = 0; i < QUEUE_SLOTS; i++)
			if (sim.ends[i] && sim.ends[i] <= sim.now)
				end(i);
		if (sim.now < next_window)
			continue;
		next_window += WINDOW;
		if (windows)
			window_ends();
		else
			queue__news(&sim.q, sim.per_window * EACH);
	}
}

static uint64_t count(enum wire_outcome outcome)
{
	uint64_t n = 0;

	for (uint64_t i = 1; i <= sim.made; i++)
		n += sim.settled[i] && sim.outcome[i] == outcome;
	return n;
}

/* ---- stores ---- */

static int outage_status, outage_from_h, outage_to_h;

static int works(struct sim *s, uint64_t number)
{
	(void)s, (void)number;
	return 200;
}

static int has_outage(struct sim *s, uint64_t number)
{
	(void)number;
	return s->now >= outage_from_h * 3600 * S && s->now < outage_to_h * 3600 * S ?
		       outage_status :
		       200;
}

static int poison_status;

static int has_poison(struct sim *s, uint64_t number)
{
	(void)s;
	return number == 50 ? poison_status : 200;
}

/* ---- tests ---- */

static void all_is_well(void **state)
{
	(void)state;
	start(works, 100);
	run(600 * S, true);
	run(WINDOW, false);
	assert_true(sim.made >= 5900);
	assert_int_equal(count(WIRE_DELIVERED), sim.made);
	assert_int_equal(sim.all_attempts, sim.made);
	assert_int_equal(sim.most_at_once, QUEUE_SLOTS);
	/* nothing waits for the next window */
	assert_true(sim.most_window_bytes <= 100 * EACH);
}

/* All, and those alone that had no answer at first may be there twice. */
static void check_all_there(int status)
{
	uint64_t twice = count(WIRE_MAYBE_DUPLICATE);

	assert_int_equal(count(WIRE_DELIVERED) + twice, sim.made);
	assert_int_equal(twice > 0, status == ANSWER_NONE_SENT);
}

/* For an hour: next to nothing is sent meanwhile; then all arrives, no faster than twice the rate. */
static void check_outage(int status)
{
	uint64_t before, meanwhile;

	outage_status = status;
	outage_from_h = 1;
	outage_to_h = 2;
	start(has_outage, 20);
	run(3600 * S, true);
	before = sim.all_attempts;
	run(3600 * S, true);
	meanwhile = sim.all_attempts - before;
	assert_in_range(meanwhile, 10, 100);
	run(5 * 3600 * S, true);
	run(WINDOW, false);
	check_all_there(status);
	assert_true(sim.made > 7 * 3600 / 10 * 20 - 100);
	assert_true(sim.most_window_bytes <= (2 * 20 + QUEUE_SLOTS) * EACH);
	/* no attempt but those meanwhile has failed */
	assert_in_range(sim.all_attempts, sim.made + meanwhile - 1, sim.made + meanwhile);
}

static void outages(void **state)
{
	static const int statuses[] = {
		ANSWER_NONE, ANSWER_NONE_SENT, 502, 503, 429, 500, 408, 401
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		check_outage(statuses[i]);
}

#define BACK (48 * 3600 * S)

static int fails_when_back(struct sim *s, uint64_t number)
{
	(void)number;
	return s->now < BACK ? ANSWER_NONE : s->now < BACK + 600 * S ? 500 : 200;
}

/* What no store was there for is not held against the records that tried it out. */
static void away(void **state)
{
	uint32_t most = 0;

	(void)state;
	start(fails_when_back, 1);
	run(BACK, true);
	for (uint64_t i = 1; i <= sim.given; i++)
		most = MAX(most, sim.attempts[i]);
	/* more often than a store may answer 500 */
	assert_true(most > 20);
	run(BACK + 2 * 3600 * S, true);
	run(WINDOW, false);
	assert_int_equal(count(WIRE_FAILED), 0);
	assert_int_equal(count(WIRE_DELIVERED), sim.made);
}

/* One that refuses everything for days has all of it in the end. */
static void refused_for_long(void **state)
{
	static const struct {
		int status, hours;
	} outages[] = { { 503, 48 },
			{ 401, 48 },
			{ 407, 48 },
			{ 408, 48 },
			/* it may have each of those that it is tried out with, as often */
			{ ANSWER_NONE_SENT, 20 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(outages); i++) {
		outage_status = outages[i].status;
		outage_from_h = 1;
		outage_to_h = 1 + outages[i].hours;
		start(has_outage, 1);
		run(105 * 3600 * S, true);
		run(WINDOW, false);
		check_all_there(outage_status);
	}
}

static int picky_status;
static uint64_t picky_takes, picky_of; /* the first so many of so many records */

static bool is_liked(uint64_t number)
{
	return number % picky_of < picky_takes;
}

static int is_picky(struct sim *s, uint64_t number)
{
	(void)s;
	return is_liked(number) ? 200 : picky_status;
}

/*
 * A store that takes all records but some, and answers these as if it were in trouble itself: they
 * go, and hold no others up.
 */
static void check_picky(int status, uint64_t takes, uint64_t of, uint64_t within_ns)
{
	enum wire_outcome outcome = status == ANSWER_NONE_SENT ? WIRE_UNANSWERED : WIRE_FAILED;
	uint64_t not_taken = 0;

	picky_status = status;
	picky_takes = takes;
	picky_of = of;
	start(is_picky, 20);
	run(6 * 3600 * S, true);
	for (uint64_t i = 1; i <= sim.made; i++) {
		uint64_t made_at = 1 + ((i - 1) / 20 + 1) * WINDOW;

		not_taken += !is_liked(i);
		if (sim.settled[i] && is_liked(i)) {
			assert_int_equal(sim.outcome[i], WIRE_DELIVERED);
			assert_int_equal(sim.attempts[i], 1);
			assert_true(sim.settled_at[i] - made_at < within_ns);
		} else if (sim.settled[i]) {
			assert_int_equal(sim.outcome[i], outcome);
			assert_in_range(sim.attempts[i], 2, 20);
		} else if (is_liked(i)) {
			assert_true(sim.now - made_at < within_ns);
		}
	}
	assert_in_range(not_taken - count(outcome), 0, QUEUE_KEPT);
}

static void picky(void **state)
{
	static const int statuses[] = {
		ANSWER_NONE_SENT, 401, 403, 407, 408, 425, 499, 502, 503, 504
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		check_picky(statuses[i], 19, 20, 300 * S);
	/* of each window some, one after the other */
	check_picky(503, 17, 20, 120 * S);
	/* more in a row than are under way together */
	check_picky(504, 11990, 12000, 3600 * S);
}

static int is_picky_at_times(struct sim *s, uint64_t number)
{
	(void)s;
	return number % 20 == 19 || (number >= 6000 && number < 6024) ? 503 : 200;
}

/* As many as may be kept, nearly, which is as if it failed for good: it is tried out with others. */
static void no_place(void **state)
{
	(void)state;
	start(is_picky_at_times, 20);
	run(4 * 3600 * S, true);
	run(4 * 3600 * S, false);
	for (uint64_t i = 1; i <= sim.made; i++) {
		bool liked = is_picky_at_times(&sim, i) == 200;

		assert_true(sim.settled[i] || !liked);
		assert_true(!sim.settled[i] ||
			    sim.outcome[i] == (liked ? WIRE_DELIVERED : WIRE_FAILED));
	}
}

static int first_kill_it(struct sim *s, uint64_t number)
{
	(void)s;
	return number <= 2 * QUEUE_KEPT ? ANSWER_NONE_SENT : 200;
}

/* More than may be kept that it never answers, before all others: it is no outage, which shows in a few days. */
static void no_answer_at_first(void **state)
{
	(void)state;
	start(first_kill_it, 1);
	run(120 * 3600 * S, true);
	run(WINDOW, false);
	for (uint64_t i = 1; i <= sim.made; i++) {
		bool answers = first_kill_it(&sim, i) == 200;

		assert_true(sim.settled[i]);
		assert_int_equal(sim.outcome[i], answers ? WIRE_DELIVERED : WIRE_UNANSWERED);
		assert_in_range(sim.attempts[i], answers ? 1 : 2, answers ? 1 : 20);
	}
}

static uint64_t bad_share; /* of 100 answers */

/* One that comes back bit by bit: so many answers are none at first. */
static int is_bumpy(struct sim *s, uint64_t number)
{
	uint64_t random = number * 64 + s->attempts[number];

	return s->now < 6 * 3600 * S ||
			       (s->now < 7 * 3600 * S && random_next(&random) % 100 < bad_share) ?
		       503 :
		       200;
}

/* Is back for a moment, after two hours, and for good after fourteen. */
static int is_back_once(struct sim *s, uint64_t number)
{
	(void)number;
	return s->now < 7200 * S || (s->now > 7202 * S && s->now < 14 * 3600 * S) ? 503 : 200;
}

/* Falls again and again, and takes something each time before. */
static int falls(struct sim *s, uint64_t number)
{
	(void)number;
	return s->now < 12 * 3600 * S && s->now % (300 * S) > S ? 401 : 200;
}

/* Of a store that fails in any way, nothing is lost. */
static void bumpy(void **state)
{
	static const uint64_t shares[] = { 20, 50, 80, 95 };
	static const store_fn others[] = { is_back_once, falls };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		bad_share = shares[i];
		start(is_bumpy, 5);
		run(24 * 3600 * S, true);
		run(WINDOW, false);
		assert_int_equal(count(WIRE_DELIVERED), sim.made);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		start(others[i], 5);
		run(40 * 3600 * S, true);
		run(WINDOW, false);
		assert_int_equal(count(WIRE_DELIVERED), sim.made);
	}
}

static int first_is_poison(struct sim *s, uint64_t number)
{
	return s->now < 100 * S ? ANSWER_NONE : number == 1 ? 422 : 200;
}

/* The first answer is held against a record also if there was no store before. */
static void first_answer(void **state)
{
	(void)state;
	start(first_is_poison, 1);
	window_ends();
	run(600 * S, false);
	assert_false(sim.settled[1]);
	window_ends();
	run(1200 * S, false);
	assert_true(sim.settled[2]);
	assert_true(sim.settled[1]);
	assert_int_equal(sim.outcome[1], WIRE_FAILED);
	assert_in_range(sim.attempts[1], 3, 20);
}

/* One record that the store never takes: it goes, and holds nothing up. */
static void check_poison(int status, enum wire_outcome outcome, uint32_t least, uint32_t most)
{
	uint64_t latest = 0;

	poison_status = status;
	start(has_poison, 20);
	run(1800 * S, true);
	assert_true(sim.settled[50]);
	assert_int_equal(sim.outcome[50], outcome);
	assert_in_range(sim.attempts[50], least, most);
	for (uint64_t i = 1; i <= sim.made - 20; i++) {
		uint64_t made_at = 1 + ((i - 1) / 20 + 1) * WINDOW;

		assert_true(i == 50 || (sim.settled[i] && sim.attempts[i] == 1));
		if (i != 50)
			latest = MAX(latest, sim.settled_at[i] - made_at);
	}
	assert_true(latest < 40 * S);
}

static void poison(void **state)
{
	(void)state;
	check_poison(400, WIRE_REFUSED, 1, 1);
	check_poison(413, WIRE_REFUSED, 1, 1);
	check_poison(301, WIRE_REFUSED, 1, 1);
	/* while there is nothing else, it may be the store */
	check_poison(500, WIRE_FAILED, 5, 20);
	check_poison(429, WIRE_FAILED, 5, 20);
	check_poison(422, WIRE_FAILED, 2, 20);
	check_poison(ANSWER_NONE_SENT, WIRE_UNANSWERED, 2, 2);
}

static int unknown_once(struct sim *s, uint64_t number)
{
	return number == 50 && s->attempts[50] == 1 ? ANSWER_NONE_SENT : 200;
}

static void unknown(void **state)
{
	(void)state;
	start(unknown_once, 20);
	run(600 * S, true);
	run(WINDOW, false);
	assert_int_equal(sim.attempts[50], 2);
	assert_int_equal(count(WIRE_DELIVERED), sim.made - 1);
	assert_int_equal(sim.outcome[50], WIRE_MAYBE_DUPLICATE);
}

static int always(struct sim *s, uint64_t number)
{
	(void)s, (void)number;
	return outage_status;
}

/* A store is left alone for as long as it wants, but not for days. */
static void left_alone(void **state)
{
	(void)state;
	outage_status = 503;
	start(always, 1);
	sim.retry_after_ns = 1000 * S;
	run(20000 * S, true);
	assert_in_range(sim.all_attempts, 15, 20);
	assert_true(sim.least_gap >= 1000 * S);
	start(always, 1);
	sim.retry_after_ns = ~0ULL;
	run(20000 * S, true);
	assert_in_range(sim.all_attempts, 5, 6);
	/* a wrong token is not tried out */
	outage_status = 401;
	start(always, 1);
	run(3600 * S, true);
	assert_true(sim.least_gap >= 30 * S);
	assert_in_range(sim.all_attempts, 15, 60);
}

/* What was under way together fails together: that is one failure, and soon tried out. */
static void one_failure(void **state)
{
	uint32_t failures = 0;

	(void)state;
	outage_status = 503;
	start(always, 20);
	run(WINDOW, true);
	for (uint32_t burst = 1; burst <= 4; burst++) {
		/* as long as it takes for all that are under way to end */
		while (sim.q.failures == failures)
			run(TAKES / 5, true);
		run(TAKES / 5, true);
		failures = sim.q.failures;
		assert_int_equal(failures, burst);
		assert_true(sim.q.open_ns <= sim.now + (S << (burst - 1)));
	}
	/* eight at first, then one at a time */
	assert_int_equal(sim.all_attempts, QUEUE_SLOTS + 3);
}

/* Two machines do not come back at the same moments. */
static void by_chance(void **state)
{
	uint64_t first;

	(void)state;
	outage_status = ANSWER_NONE;
	start(always, 1);
	run(3600 * S, true);
	first = sim.last_attempt;
	start(always, 1);
	queue__init(&sim.q, 43);
	run(3600 * S, true);
	assert_true(first != sim.last_attempt);
}

static bool answered(struct queue *q, int slot, int status, uint64_t retry_after_ns, uint64_t now)
{
	struct retry r = retry_judge(STORE_PYROSCOPE, status);
	enum wire_outcome outcome;

	return queue__end(q, slot, &r, retry_after_ns, now, &outcome);
}

static int begin_all(struct queue *q, uint64_t now, uint64_t *next_number)
{
	uint64_t at;
	int n = 0, slot;

	while ((slot = queue__ask(q, now, &at)) >= 0) {
		queue__begin(q, slot, q->slots[slot].number ?: (*next_number)++, EACH);
		n++;
	}
	return n;
}

/* A store is left alone for as long as it asks for, whatever it still takes of what was under way. */
static void taken_meanwhile(void **state)
{
	static const int others[] = { 200, 400 };
	uint64_t number = 1, at;
	struct queue q;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		queue__init(&q, 42);
		queue__news(&q, 100 * EACH);
		assert_int_equal(begin_all(&q, S, &number), QUEUE_SLOTS);
		assert_false(answered(&q, 3, 429, 60 * S, 2 * S));
		for (int slot = 0; slot < QUEUE_SLOTS; slot++)
			if (slot != 3)
				assert_true(answered(&q, slot, others[i], 0, 3 * S));
		assert_int_equal(queue__ask(&q, 3 * S, &at), -1);
		assert_int_equal(at, 62 * S);
		/* one tries whether it is back, and then all go on */
		assert_int_equal(begin_all(&q, at, &number), 1);
		assert_int_equal(q.busy, 1);
		assert_true(answered(&q, 0, 200, 0, at + S));
		assert_int_equal(begin_all(&q, at + S, &number), QUEUE_SLOTS);
	}
}

/* Of windows that differ as much as this, too, twice as much as comes in is sent, and not twice of the larger ones. */
static void uneven(void **state)
{
	uint64_t number = 1, in = 0;
	struct queue q;

	(void)state;
	queue__init(&q, 42);
	for (int window = 0; window < 1000; window++) {
		uint64_t bytes = (window % 2 ? 20 : 4) * EACH,
			 now = (uint64_t)(window + 1) * WINDOW;

		in += bytes;
		queue__news(&q, bytes);
		while (begin_all(&q, now, &number))
			for (int slot = 0; slot < QUEUE_SLOTS; slot++)
				if (q.busy & 1U << slot)
					assert_true(answered(&q, slot, 200, 0, now));
	}
	/* what had gone out when the credit was used up comes off the next one */
	assert_in_range((number - 1) * EACH, in, 2 * in + 2 * QUEUE_SLOTS * EACH);
}

static void statuses(void **state)
{
	(void)state;
	for (int status = 0; status < 700; status++) {
		struct retry r = retry_judge(STORE_OTLP, status);

		assert_true(*retry_word(r.reason));
		assert_int_equal(r.verdict == VERDICT_DELIVERED, status >= 200 && status < 300);
		assert_int_equal(r.reason == WIRE_NO_REASON, r.verdict == VERDICT_DELIVERED);
		assert_int_equal(r.verdict == VERDICT_SUSPECT, r.tries > 0);
	}
	assert_int_equal(retry_judge(STORE_OTLP, 422).verdict, VERDICT_REFUSED);
	assert_int_equal(retry_judge(STORE_PYROSCOPE, 422).tries, 2);
	assert_int_equal(retry_judge(STORE_OTLP, 500).tries, 3);
	assert_int_equal(retry_judge(STORE_PARCA, 500).tries, 5);
	assert_int_equal(retry_judge(STORE_PPROF, 204).verdict, VERDICT_DELIVERED);
	assert_int_equal(retry_grpc_status(0), 200);
	assert_int_equal(retry_grpc_status(3), 400);
	assert_int_equal(retry_grpc_status(14), 503);
	assert_int_equal(retry_grpc_status(16), 401);
	assert_int_equal(retry_grpc_status(17), 0);
	assert_int_equal(retry_grpc_status(-1), 0);
	assert_int_equal(retry_connect_status("resource_exhausted"), 429);
	assert_int_equal(retry_connect_status("what"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uneven),
		cmocka_unit_test(all_is_well),
		cmocka_unit_test(outages),
		cmocka_unit_test(poison),
		cmocka_unit_test(unknown),
		cmocka_unit_test(left_alone),
		cmocka_unit_test(one_failure),
		cmocka_unit_test(by_chance),
		cmocka_unit_test(statuses),
		cmocka_unit_test(away),
		cmocka_unit_test(first_answer),
		cmocka_unit_test(picky),
		cmocka_unit_test(refused_for_long),
		cmocka_unit_test(no_place),
		cmocka_unit_test(no_answer_at_first),
		cmocka_unit_test(bumpy),
		cmocka_unit_test(taken_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
