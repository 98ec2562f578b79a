/* SPDX-License-Identifier: BSD-2-Clause */
/* seconds: 11 */
/*
 * bpf/wait_machine.h in every interleaving of a few actors on two CPUs.
 *
 * An actor is a function that runs pieces of the kernel (a switch, a wake, the end of a thread) and
 * the programs that the kernel runs there. It stops before each access to memory that others use:
 * a step. Which actor does the next step is tried in every way that is possible, depth first;
 * memory is put back in between, and an actor gets to where it was by being run once more with the
 * results of its earlier steps. Two schedules that lead to the same memory, with the same results
 * behind each actor, go on the same way: that is followed once, and counted for both.
 *
 * The memory is that of x86: each CPU's stores wait in a queue until they become visible, in their
 * order, at any later step; its own loads see them at once. Then everything that wait_machine.h
 * relies on is taken away in turn, and each time a schedule has to be found that breaks an
 * invariant.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "tests/bpf/wait_model.h"

/* ---- every schedule ---- */

#define KEYS (1 << 22) /* a power of two */
struct key {
	uint64_t a, b;
	long double schedules; /* from there on; negative: none is known */
};
static struct key *keys, *known[KEYS / 4 * 3];
static size_t key_cnt;
static uint64_t step_cnt;

static struct {
	int actor; /* -1 - CPU: its stores */
	struct op op;
} path[ACTORS * MAX_STEPS];
static size_t path_len, broken_len;
static struct world saved[ACTORS * MAX_STEPS];

/* Runs an actor through its log, and one step further if that is granted. */
static __attribute__((noinline)) void run(struct actor *a, bool grant)
{
	stopped_frame = __builtin_frame_address(0);
	me = a;
	a->pos = a->piece = a->hash = 0;
	granted = grant;
	if (!__builtin_setjmp(stopped)) {
		a->run();
		a->done = true;
	}
}

static bool has_begun(const struct actor *a)
{
	return a->len && !a->done;
}

static bool is_interrupted(const struct actor *a)
{
	for (struct actor *i = actors; i < actors + actor_cnt; i++)
		if (i != a && i->cpu == a->cpu && i->interrupt && has_begun(i))
			return true;
	return false;
}

static bool is_ready(struct actor *a)
{
	me = a;
	if (a->done || is_interrupted(a) ||
	    (a->interrupt && !a->len && (world.irq_off[a->cpu] || world.switching[a->cpu])))
		return false;
	return !a->op.ready || a->op.ready(&a->op);
}

static __attribute__((no_sanitize("address", "undefined"))) struct key *find_key(void)
{
	const uint64_t *words = (const uint64_t *)&world;
	uint64_t h[4] = { 1, 2, 3, 4 }, a = 1, b = 2;
	struct key *k;

	_Static_assert(sizeof(world) % sizeof(h) == 0, "a word is left");
	/* four at a time: none waits for the last one's multiplication */
	for (size_t i = 0; i < sizeof(world) / 8; i += ARRAY_SIZE(h))
		for (size_t j = 0; j < ARRAY_SIZE(h); j++)
			h[j] = mix(h[j], words[i + j]);
	for (size_t j = 0; j < ARRAY_SIZE(h); j++) {
		a = mix(a, h[j]);
		b = (b ^ h[j]) * 0xff51afd7ed558ccdULL;
		b ^= b >> 33;
	}
	for (size_t i = 0; i < actor_cnt; i++) {
		a = mix(a, actors[i].hash + actors[i].done);
		b = mix(b, actors[i].hash ^ a);
	}
	for (k = &keys[a % KEYS]; k->a; k = k + 1 < keys + KEYS ? k + 1 : keys)
		if (k->a == a && k->b == b)
			return k;
	assert_in_range(key_cnt, 0, ARRAY_SIZE(known) - 1);
	known[key_cnt++] = k;
	k->a = a;
	k->b = b;
	k->schedules = -1;
	return k;
}

static void check_end(void)
{
	uint64_t counted = 0;

	for (size_t i = 0; i < actor_cnt; i++)
		if (!actors[i].done)
			violate("a thread waits for ever");
	for (size_t i = 0; i < TASKS; i++)
		for (int life = 0; life < 2; life++)
			for (int n = 0; n < MAX_SWITCH_OUTS; n++) {
				const struct truth *t = &world.truth[i][life][n];

				if (t->switched_in != t->charged + t->missed)
					violate("a wait is neither charged nor missed");
				if (t->missed)
					violate("a wait is missed");
			}
	for (size_t i = 0; i < TASKS; i++) {
		const struct wait_task *w[] = { &world.slots[i].w, &world.overflow[i] };

		for (size_t j = 0; j < ARRAY_SIZE(w); j++)
			counted += w[j]->futex ? ONE_WAITER + w[j]->futex_ns : 0;
	}
	if (counted != world.waiters)
		violate("a waiter is counted that is none");
}

static long double explore(void);

/* In their order; one that is not ordered only keeps behind those to the same place. */
static bool may_flush(const struct store *q, uint32_t nth)
{
	for (uint32_t i = 0; i < nth; i++)
		if (relies.ordered_stores || q[i].at == q[nth].at)
			return false;
	return q[nth].overtaken || !relies.ordered_stores;
}

static long double explore_flush(int cpu, uint32_t nth)
{
	long double ret;
	size_t depth = path_len++;

	path[depth].actor = -1 - cpu;
	saved[depth] = world;
	flush(cpu, nth);
	ret = explore();
	world = saved[depth];
	path_len = depth;
	return ret;
}

/* May the store that an actor does next be visible at once? Not before those that are delayed. */
static bool may_be_seen(const struct actor *a)
{
	const struct store *q = world.queue[a->cpu];

	for (uint32_t i = 0; i < world.queue_cnt[a->cpu]; i++)
		if (relies.ordered_stores || q[i].at == offset_of(a->op.at))
			return false;
	return true;
}

/* The last store of an actor is delayed: does that make a difference? Only if a load comes next, or
 * another store that is delayed. */
static bool is_worth_it(const struct actor *a)
{
	if (!relies.ordered_stores)
		return true;
	return !a->done && (a->op.act == act_load ||
			    (a->op.act == act_store && world.queue_cnt[a->cpu] < QUEUE));
}

static long double explore_step(struct actor *a, bool delay)
{
	size_t depth = path_len++, len = a->len;
	uint64_t hash = a->hash;
	struct op op = a->op;
	long double ret = 0;

	path[depth].actor = (int)(a - actors);
	path[depth].op = op;
	saved[depth] = world;
	step_cnt++;
	delays = delay;
	run(a, true);
	if (!delay || is_worth_it(a))
		ret = explore();
	world = saved[depth];
	path_len = depth;
	a->len = len;
	a->hash = hash;
	a->op = op;
	a->done = false;
	return ret;
}

/* An invariant is broken; or actors meet where they were thought not to, and all begins anew. */
static bool is_over(void)
{
	return violation || found_shared;
}

/* Returns the number of schedules from here to the end. */
static long double explore(void)
{
	struct key *k = find_key();
	long double sum = 0;
	bool ended = true;

	if (k->schedules >= 0)
		return k->schedules;
	for (size_t i = 0; i < actor_cnt && !is_over(); i++) {
		struct actor *a = &actors[i];
		bool stores = a->op.act == act_store;

		if (!is_ready(a))
			continue;
		ended = false;
		if (!stores || may_be_seen(a))
			sum += explore_step(a, false);
		if (stores && world.queue_cnt[a->cpu] < QUEUE && !is_over())
			sum += explore_step(a, true);
	}
	for (int cpu = 0; cpu < CPUS; cpu++)
		for (uint32_t i = 0; i < world.queue_cnt[cpu] && !is_over(); i++)
			if (may_flush(world.queue[cpu], i)) {
				ended = false;
				sum += explore_flush(cpu, i);
			}
	/* a store that no load has overtaken: the same as if it had been seen at once */
	if (ended && !is_over() && !world.queue_cnt[0] && !world.queue_cnt[1]) {
		check_end();
		sum = 1;
	}
	if (violation && !broken_len)
		broken_len = path_len;
	k->schedules = sum;
	return sum;
}

/* ---- scenarios ---- */

#define T1 (&world.tasks[0])
#define T2 (&world.tasks[1])
#define T3 (&world.tasks[2])

enum slots {
	OWN,   /* T1, T2 and T3 have a slot each */
	TAKEN, /* T1's slot is T3's, and its state in the overflow */
	NEW,   /* T1's and T3's slot is T2's, and they have no state yet */
};

struct scenario {
	const char *name;
	enum slots slots;
	struct {
		void (*run)(void);
		int cpu;
		bool interrupt;
	} actors[ACTORS];
};

static void set_up_thread(struct task_struct *task)
{
	task->pid = 100 + index_of(task);
	task->stack = task;
}

/* Another number than the threads' by now, and the slot of another thread. */
static void set_up_number(struct task_struct *task, const struct task_struct *sharer)
{
	__u64 *number = &numbers[index_of(task)];

	for (*number = 64 * (TASKS + 1);
	     wait_slot_hash(*number) != wait_slot_hash(numbers[index_of(sharer)]);)
		*number += 64;
}

static void set_up_slot(struct task_struct *task)
{
	struct wait_slot *slot = wait_slot_of(numbers[index_of(task)]);

	slot->number = world.owners[slot - world.slots] = numbers[index_of(task)];
}

/* The slots that the hashes lead to are those of the first thread with that hash. */
static void set_up_slots(enum slots slots)
{
	for (size_t i = 0; i < TASKS; i++) {
		numbers[i] = 64 * (i + 1);
		set_up_thread(&world.tasks[i]);
	}
	switch (slots) {
	case OWN:
		set_up_slot(T1);
		set_up_slot(T3);
		break;
	case TAKEN:
		set_up_number(T1, T3);
		set_up_slot(T3);
		world.has_overflow[0] = world.overflowed = 1;
		break;
	case NEW:
		set_up_number(T1, T2);
		numbers[2] = numbers[0];
		do
			numbers[2] += 64;
		while (wait_slot_hash(numbers[2]) != wait_slot_hash(numbers[1]));
		break;
	}
	set_up_slot(T2);
}

static void set_up_running(struct task_struct *task, int cpu)
{
	struct wait_arrival *here = &world.here[cpu];

	arrive(task);
	*here = (struct wait_arrival){
		.switches = 1,
		.stack = (uint64_t)task->stack,
		.addr = (uint64_t)task,
		.number = numbers[index_of(task)],
		.clock = task->sched_info.last_arrival,
		.queued_ns = task->sched_info.run_delay,
		.tid = task->pid,
	};
}

/* T1 runs on the first CPU, T3 on the second; T2 has slept, is published and woken. */
static void set_up(const struct scenario *s)
{
	struct wait_task *w;

	memset(&world, 0, sizeof(world));
	memset(actors, 0, sizeof(actors));
	me = actors;
	set_up_slots(s->slots);
	set_up_running(T1, 0);
	set_up_running(T3, 1);
	arrive(T2);
	T2->on_cpu = 0;
	T2->state = BPFPROF_STATE_disk_sleep;
	count_out(T2);
	T2->state = T2->asleep = 0;
	T2->runnable = 1;
	w = &wait_slot_of(numbers[1])->w;
	w->off_ns = truth_of(T2, 1)->ns;
	w->queued_ns = truth_of(T2, 1)->queued_ns;
	w->state = truth_of(T2, 1)->state;
	w->switch_outs = 1;
	for (actor_cnt = 0; actor_cnt < ACTORS && s->actors[actor_cnt].run; actor_cnt++) {
		actors[actor_cnt].run = s->actors[actor_cnt].run;
		actors[actor_cnt].cpu = s->actors[actor_cnt].cpu;
		actors[actor_cnt].interrupt = s->actors[actor_cnt].interrupt;
	}
	memset(readers, 0, sizeof(readers));
	memset(writers, 0, sizeof(writers));
	for (size_t i = 0; i < actor_cnt; i++)
		run(&actors[i], false);
}

/* Returns the number of schedules. One that violates an invariant ends it: violation. */
static long double every_schedule(const struct scenario *s)
{
	long double ret;
	int turns = 0;

	memset(shared, 0, sizeof(shared));
	do {
		found_shared = false;
		while (key_cnt)
			known[--key_cnt]->a = 0;
		step_cnt = path_len = broken_len = 0;
		violation = NULL;
		set_up(s);
		ret = explore();
		turns++;
	} while (found_shared);
	print_message("%s: %.3Lg schedules, %zu states, %" PRIu64 " steps, %d turns%s%s\n", s->name,
		      ret, key_cnt, step_cnt, turns, violation ? ": " : "",
		      violation ? violation : "");
	return ret;
}

static void print_path(void)
{
	for (size_t i = 0; i < broken_len; i++)
		if (path[i].actor < 0)
			print_message("  CPU %d: a store becomes visible\n", -1 - path[i].actor);
		else
			print_message("  actor %d: %s %" PRIx64 "\n", path[i].actor,
				      path[i].op.name, path[i].op.value);
}

/* T1 sleeps on the first CPU, where T2 succeeds it, and comes back on the second. */
static void t1_sleeps(void)
{
	switch_to(T1, T2, BPFPROF_STATE_sleeping);
}

static void t1_is_preempted(void)
{
	switch_to(T1, T2, BPFPROF_STATE_running);
}

static void t1_comes_and_sleeps_again(void)
{
	switch_to(T3, T1, BPFPROF_STATE_running);
	switch_to(T1, T3, BPFPROF_STATE_sleeping);
	switch_to(T3, T1, BPFPROF_STATE_running);
}

static void t1_comes_and_ends(void)
{
	switch_to(T3, T1, BPFPROF_STATE_running);
	switch_to(T1, T3, BPFPROF_STATE_dead);
	fork_task(T1);
	switch_to(T3, T1, BPFPROF_STATE_running);
	switch_to(T1, T3, BPFPROF_STATE_disk_sleep);
	wake(T1, 1, false);
	switch_to(T3, T1, BPFPROF_STATE_running);
}

static void free_t1(void)
{
	free_task(T1);
}

static void make_t1(void)
{
	make_state(T1);
}

static void make_t3(void)
{
	make_state(T3);
}

/* Its slot is T1's and T3's as well. */
static void release_t2(void)
{
	wait_slot_release(T2);
}

static void wake_t1(void)
{
	wake(T1, 1, false);
}

static void watch_wake_t1(void)
{
	wake(T1, 1, true);
}

static void wake_t1_again(void)
{
	wake(T1, 2, false);
}

static void watch_wake_t1_again(void)
{
	wake(T1, 2, true);
}

enum scenario_nr {
	UNWATCHED_WAKES,
	WAKER_WHERE_IT_LEFT,
	WAKER_WHERE_IT_COMES,
	SECOND_WAKER,
	SECOND_WAKER_ELSEWHERE,
	PREEMPTED,
	OVERFLOWED,
	TWO_WAKERS,
	REUSED,
	NEW_THREADS,
};

static const struct scenario scenarios[] = {
	[UNWATCHED_WAKES] = { "nobody looks at wakes",
			      OWN,
			      { { t1_sleeps, 0, false },
				{ t1_comes_and_sleeps_again, 1, false },
				{ wake_t1, 0, true },
				{ wake_t1_again, 1, true } } },
	[WAKER_WHERE_IT_LEFT] = { "a waker on the CPU that T1 left",
				  OWN,
				  { { t1_sleeps, 0, false },
				    { t1_comes_and_sleeps_again, 1, false },
				    { watch_wake_t1, 0, true },
				    { wake_t1_again, 1, true } } },
	[WAKER_WHERE_IT_COMES] = { "a waker on the CPU that T1 comes to",
				   OWN,
				   { { t1_sleeps, 0, false },
				     { t1_comes_and_sleeps_again, 1, false },
				     { watch_wake_t1, 1, true },
				     { wake_t1_again, 1, true } } },
	[SECOND_WAKER] = { "a waker of the second sleep",
			   OWN,
			   { { t1_sleeps, 0, false },
			     { t1_comes_and_sleeps_again, 1, false },
			     { wake_t1, 0, true },
			     { watch_wake_t1_again, 1, true } } },
	[SECOND_WAKER_ELSEWHERE] = { "the same on the other CPU",
				     OWN,
				     { { t1_sleeps, 0, false },
				       { t1_comes_and_sleeps_again, 1, false },
				       { wake_t1, 0, true },
				       { watch_wake_t1_again, 0, true } } },
	[PREEMPTED] = { "T1 is preempted",
			OWN,
			{ { t1_is_preempted, 0, false },
			  { t1_comes_and_sleeps_again, 1, false },
			  { wake_t1_again, 1, true } } },
	[OVERFLOWED] = { "T1's state is in the overflow",
			 TAKEN,
			 { { t1_sleeps, 0, false },
			   { t1_comes_and_sleeps_again, 1, false },
			   { wake_t1, 0, true },
			   { wake_t1_again, 1, true } } },
	[TWO_WAKERS] = { "two wakers",
			 OWN,
			 { { t1_sleeps, 0, false },
			   { t1_comes_and_sleeps_again, 1, false },
			   { watch_wake_t1, 0, true },
			   { watch_wake_t1, 1, true },
			   { wake_t1_again, 1, true } } },
	[REUSED] = { "T1 ends, and its address is another one's",
		     OWN,
		     { { t1_sleeps, 0, false },
		       { t1_comes_and_ends, 1, false },
		       { wake_t1, 0, true },
		       { free_t1, 1, true } } },
	[NEW_THREADS] = { "two threads are new, and the owner of their slot is freed",
			  NEW,
			  { { make_t1, 0, false },
			    { make_t3, 1, false },
			    { release_t2, 1, true } } },
};

#define AT_LEAST 10000 /* schedules of each scenario; most have many more */

static void every_schedule_holds(void **state)
{
	(void)state;
	relies = RELIES_ON_ALL;
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
		long double schedules = every_schedule(&scenarios[i]);

		if (violation)
			print_path();
		assert_null(violation);
		assert_true(schedules > AT_LEAST);
	}
}

/* Each thing that is relied on is needed: without it, this invariant does not hold there. */
static void breaks(bool *what, enum scenario_nr nr, const char *which)
{
	relies = RELIES_ON_ALL;
	*what = false;
	every_schedule(&scenarios[nr]);
	assert_non_null(violation);
	assert_string_equal(violation, which);
}

static void breaks_if_stores_are_unordered(void **state)
{
	(void)state;
	breaks(&relies.ordered_stores, PREEMPTED, "a wait is missed");
}

static void breaks_if_interrupts_stay_on(void **state)
{
	(void)state;
	breaks(&relies.irq_off, UNWATCHED_WAKES, "a wait is missed");
}

static void breaks_if_a_thread_is_freed_at_once(void **state)
{
	(void)state;
	breaks(&relies.grace_period, REUSED, "a wait is charged from another time on");
}

static void breaks_if_wakers_take_no_lock(void **state)
{
	(void)state;
	breaks(&relies.pi_lock, TWO_WAKERS, "a waker charges another wait");
}

static void breaks_if_counted_late(void **state)
{
	(void)state;
	breaks(&relies.counted_first, UNWATCHED_WAKES, "a wait is missed");
}

static void breaks_if_a_slot_has_two_owners(void **state)
{
	(void)state;
	breaks(&relies.atomic_insert, NEW_THREADS, "a thread's state is another one than it was");
}

static int make_keys(void **state)
{
	(void)state;
	keys = calloc(KEYS, sizeof(*keys));
	return !keys;
}

static int free_keys(void **state)
{
	(void)state;
	free(keys);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_schedule_holds),
		cmocka_unit_test(breaks_if_stores_are_unordered),
		cmocka_unit_test(breaks_if_interrupts_stay_on),
		cmocka_unit_test(breaks_if_a_thread_is_freed_at_once),
		cmocka_unit_test(breaks_if_wakers_take_no_lock),
		cmocka_unit_test(breaks_if_counted_late),
		cmocka_unit_test(breaks_if_a_slot_has_two_owners),
	};

	return cmocka_run_group_tests(tests, make_keys, free_keys);
}
