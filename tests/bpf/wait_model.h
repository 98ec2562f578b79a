/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What test_wait_machine.c explores: the memory of the kernel and of the programs, actors that do
 * one step at a time, bpf/wait_machine.h, and pieces of the kernel with the programs that it runs
 * there.
 */
#ifndef TESTS_WAIT_MODEL_H
#define TESTS_WAIT_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <linux/types.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "bpf/bpfprof.h"

#define WAIT_GET(x) ((__typeof__(x))load("load " #x, &(x), sizeof(x)))
#define WAIT_PUT(x, v) store("store " #x, &(x), sizeof(x), (uint64_t)(v))
#define WAIT_ZERO(x) zero(&(x))
#define WAIT_TASK(task, field) ((__typeof__((task)->field))load("load " #field, &(task)->field, 8))
#include "bpf/wait_types.h"

#define CPUS 2
#define TASKS 3
#define ACTORS 5
#define MAX_SWITCH_OUTS 3
#define MAX_STEPS 512
#define QUEUE 2 /* stores of a CPU that are not visible yet, at most */
#define ONE_WAITER (1ULL << 48)

/* ---- the kernel's memory, and the programs' ---- */

struct task_struct {
	__u64 nvcsw, nivcsw;
	struct {
		__u64 last_arrival, run_delay;
	} sched_info;
	struct {
		__u64 sum_exec_runtime, prev_sum_exec_runtime;
	} se;
	__u32 pid;
	__u32 state;	/* enum bpfprof_thread_state of its next switch-out; 0: it runs */
	__u32 slept_as; /* of its last one: sched_contributes_to_load */
	const void *stack;
	/* the model's own */
	__u32 on_cpu, runnable, asleep, waking, freed;
	__u32 life;	 /* which thread at this address: the first, or the second */
	__u32 in_flight; /* bit per actor: in a program since before the thread's end */
};

/* What is true of a switch-out, and what has been made of it. */
struct truth {
	__u64 ns, queued_ns;
	__u32 state;
	__u8 switched_in, charged, missed, charged_by_waker, wake_seen;
};

struct store {
	__u32 at; /* in the world */
	__u16 sz;
	__u16 overtaken; /* by a load of its CPU */
	__u64 value;
};

static struct world {
	struct task_struct tasks[TASKS];
	struct wait_slot slots[TASKS];
	__u64 owners[TASKS];
	struct wait_task overflow[TASKS];
	__u32 has_overflow[TASKS];
	__u32 overflowed, stateless;
	struct wait_arrival here[CPUS];
	__u32 irq_off[CPUS]; /* by a program */
	__u32 switching[CPUS];
	__u32 in_program; /* bit per actor */
	__u64 waiters;	  /* of the futex that all sleep at: see count_waiter */
	struct truth truth[TASKS][2][MAX_SWITCH_OUTS];
	struct store queue[CPUS][QUEUE];
	__u32 queue_cnt[CPUS];
} world;

/* What wait_machine.h relies on: the tests take it away. */
static struct reliance {
	bool ordered_stores, irq_off, grace_period, pi_lock, counted_first, atomic_insert;
} relies;
static const struct reliance RELIES_ON_ALL = { true, true, true, true, true, true };

/* ---- actors and steps ---- */

struct op {
	const char *name;
	bool alone; /* no other actor takes part: not a step of its own */
	uint64_t (*act)(const struct op *);
	bool (*ready)(const struct op *); /* NULL: always */
	void *at;
	uint64_t sz, value;
	struct task_struct *task, *next;
};

static struct actor {
	void (*run)(void);
	int cpu;
	bool interrupt; /* of that CPU: nothing else runs there from its first step to its last */
	bool done;
	size_t len, pos;
	uint64_t hash; /* of where it is, and of the results that it may remember */
	uint64_t piece;
	struct op op; /* the next one */
	uint64_t log[MAX_STEPS];
} actors[ACTORS];
static size_t actor_cnt;

/* Who has read and written each byte of the world, bit per actor, and those in which actors meet.
 */
static uint8_t readers[sizeof(struct world)], writers[sizeof(struct world)];
static bool shared[sizeof(struct world)], found_shared;

static struct actor *me;
static bool granted;
static void *stopped[5], *stopped_frame; /* where run() goes on */
static const char *violation;

static void violate(const char *what)
{
	if (!violation)
		violation = what;
}

static int my_bit(void)
{
	return 1 << (me - actors);
}

static uint64_t mix(uint64_t hash, uint64_t v)
{
	hash = (hash ^ v) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

/* Has the actor done its next step before? */
static bool is_done(void)
{
	return me->pos < me->len;
}

/* What came of it then. */
static uint64_t done_before(void)
{
	uint64_t ret = me->log[me->pos++];

	me->hash = mix(me->hash, ret);
	return ret;
}

/* Back to run(). longjmp() would have the sanitizer forget all of the stack, which is deep here, and
 * make a system call for it, each time: only the frames that end are forgotten. */
static __attribute__((noipa, no_sanitize("address"))) void stop(void)
{
#ifdef __SANITIZE_ADDRESS__
	char *here = __builtin_frame_address(0);

	__asan_unpoison_memory_region(here, (char *)stopped_frame - here);
#endif
	__builtin_longjmp(stopped, 1);
}

static uint64_t step(struct op op)
{
	uint64_t ret;

	if (is_done())
		return done_before();
	if (!op.alone && !granted) {
		me->op = op;
		stop();
	}
	if (!op.alone)
		granted = false;
	assert_true(me->len < MAX_STEPS);
	ret = op.act(&op);
	me->log[me->len++] = ret;
	me->pos++;
	me->hash = mix(me->hash, ret);
	return ret;
}

/* Between two pieces of what an actor does: the next one knows no results of the last. */
static void forget(void)
{
	me->hash = ++me->piece;
}

/* ---- memory ---- */

static size_t offset_of(const void *at)
{
	return (const char *)at - (const char *)&world;
}

/* Notes an access. Returns whether another actor has none to the same memory, unless all read. */
static bool is_alone(const void *at, size_t sz, bool writes)
{
	bool ret = true;

	if (is_done())
		return true;
	for (size_t i = offset_of(at); i < offset_of(at) + sz; i++) {
		readers[i] |= my_bit();
		writers[i] |= writes ? my_bit() : 0;
		if (!shared[i] && writers[i] && (readers[i] & (readers[i] - 1)))
			shared[i] = found_shared = true;
		ret = ret && !shared[i];
	}
	return ret;
}

/* What the kernel writes, within a step. */
#define PUT(x, value) (is_alone(&(x), sizeof(x), true), (x) = (value))

static uint64_t act_load(const struct op *op)
{
	uint64_t ret = 0;

	memcpy(&ret, op->at, op->sz);
	for (uint32_t i = 0; i < world.queue_cnt[me->cpu]; i++) {
		struct store *s = &world.queue[me->cpu][i];

		if (s->at == offset_of(op->at))
			ret = s->value;
		s->overtaken |= !op->alone;
	}
	return ret;
}

static bool delays; /* the store that is done now is not visible at once */

static uint64_t act_store(const struct op *op)
{
	uint32_t cpu = me->cpu;

	if (op->alone || !delays)
		memcpy(op->at, &op->value, op->sz);
	else
		world.queue[cpu][world.queue_cnt[cpu]++] =
			(struct store){ .at = offset_of(op->at), .sz = op->sz, .value = op->value };
	return 0;
}

/* Makes the nth of a CPU's stores visible. */
static void flush(int cpu, uint32_t nth)
{
	struct store *q = world.queue[cpu], s = q[nth];

	memcpy((char *)&world + s.at, &s.value, s.sz);
	world.queue_cnt[cpu]--;
	memmove(&q[nth], &q[nth + 1], (world.queue_cnt[cpu] - nth) * sizeof(*q));
	memset(&q[world.queue_cnt[cpu]], 0, sizeof(*q));
}

/* Nearly all that is run are steps that were done before: nothing is made for these. */
static uint64_t load(const char *name, const void *at, size_t sz)
{
	if (is_done())
		return done_before();
	return step((struct op){ .name = name,
				 .alone = is_alone(at, sz, false),
				 .act = act_load,
				 .at = (void *)at,
				 .sz = sz });
}

static void store(const char *name, void *at, size_t sz, uint64_t value)
{
	if (is_done()) {
		done_before();
		return;
	}
	step((struct op){ .name = name,
			  .alone = is_alone(at, sz, true),
			  .act = act_store,
			  .at = at,
			  .sz = sz,
			  .value = value });
}

/* What takes a lock or serializes: all stores before are visible. */
static bool is_drained(const struct op *op)
{
	(void)op;
	return !world.queue_cnt[me->cpu];
}

/* ---- what wait_machine.h asks of its includer ---- */

#undef __always_inline
#undef __noinline
#define __always_inline inline __attribute__((unused))
#define __noinline __attribute__((noinline, unused))

#define WAIT_HAVE_SLOTS 1
#define WAIT_SWITCH_IN_ONLY 1
#define WAIT_OVERFLOWED world.overflowed
#define WAIT_STATELESS world.stateless

struct wait_switch {
	int cpu;
};

static void zero(struct wait_task *w)
{
	WAIT_PUT(w->off_ns, 0);
	WAIT_PUT(w->wake_ns, 0);
	WAIT_PUT(w->queued_ns, 0);
	WAIT_PUT(w->switch_outs, 0);
	WAIT_PUT(w->state, 0);
	WAIT_PUT(w->woken, 0);
	WAIT_PUT(w->may_futex, 0);
	WAIT_PUT(w->early, 0);
	WAIT_PUT(w->wake_of, 0);
	WAIT_PUT(w->futex, 0);
	WAIT_PUT(w->futex_ns, 0);
}

#include "bpf/wait_machine.h"

static size_t index_of(const struct task_struct *task)
{
	return task - world.tasks;
}

static __u64 numbers[TASKS];

static __u64 wait_number(struct task_struct *task)
{
	return numbers[index_of(task)];
}

static bool wait_on_cpu(struct task_struct *task)
{
	return load("load on_cpu", &task->on_cpu, sizeof(task->on_cpu));
}

static struct wait_slot *wait_slot_at(__u32 at)
{
	for (size_t i = 0; i < TASKS; i++)
		if (at == wait_slot_hash(numbers[i]))
			return &world.slots[i];
	fail();
	return NULL;
}

static uint64_t act_insert(const struct op *op)
{
	__u64 *owner = op->at;

	if (*owner)
		return false;
	PUT(*owner, op->value);
	return true;
}

static uint64_t act_remove(const struct op *op)
{
	PUT(*(__u64 *)op->at, 0);
	return 0;
}

static __u64 *owner_at(__u32 at)
{
	return &world.owners[wait_slot_at(at) - world.slots];
}

static bool wait_owner_insert(__u32 at, __u64 number)
{
	__u64 *owner = owner_at(at);

	if (!relies.atomic_insert && !load("load owner", owner, sizeof(*owner))) {
		store("store owner", owner, sizeof(*owner), number);
		return true;
	}
	return step((struct op){ .name = "insert owner",
				 .act = act_insert,
				 .ready = is_drained,
				 .at = owner,
				 .value = number });
}

static __u64 wait_owner(__u32 at)
{
	return load("load owner", owner_at(at), sizeof(__u64));
}

static void wait_owner_remove(__u32 at)
{
	step((struct op){ .name = "remove owner",
			  .act = act_remove,
			  .ready = is_drained,
			  .at = owner_at(at) });
}

static struct wait_task *wait_overflow_of(struct task_struct *task)
{
	size_t i = index_of(task);

	return load("load overflow", &world.has_overflow[i], 4) ? &world.overflow[i] : NULL;
}

static uint64_t act_make(const struct op *op)
{
	PUT(*(__u32 *)op->at, 1);
	return 0;
}

static struct wait_task *wait_overflow_make(struct task_struct *task)
{
	size_t i = index_of(task);

	step((struct op){ .name = "make overflow",
			  .act = act_make,
			  .ready = is_drained,
			  .at = &world.has_overflow[i] });
	return &world.overflow[i];
}

static bool wait_find_arrival(__u64 number, __u64 switch_outs, struct wait_arrival *ret)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		if (wait_arrival_read(&world.here[cpu], number, switch_outs, ret))
			return true;
	return false;
}

static struct task_struct *wait_arrived(const struct wait_arrival *a)
{
	return (struct task_struct *)WAIT_GET(a->addr);
}

static uint64_t act_find_tid(const struct op *op)
{
	for (size_t i = 0; i < TASKS; i++)
		if (world.tasks[i].pid == op->value && !world.tasks[i].freed)
			return (uint64_t)&world.tasks[i];
	return 0;
}

static struct task_struct *wait_task_get(const struct wait_arrival *a)
{
	return (struct task_struct *)step(
		(struct op){ .name = "find tid", .act = act_find_tid, .value = WAIT_GET(a->tid) });
}

static void wait_task_put(struct task_struct *task)
{
	(void)task;
}

static enum bpfprof_thread_state wait_left_state(struct task_struct *task, bool slept)
{
	__u32 state = load("load state", &task->state, sizeof(task->state));

	if (slept && !state)
		state = load("load slept_as", &task->slept_as, sizeof(task->slept_as));
	return slept || state == BPFPROF_STATE_dead ? state : BPFPROF_STATE_runnable;
}

static __u64 wait_ran_ns(struct task_struct *task)
{
	return WAIT_TASK(task, se.prev_sum_exec_runtime);
}

/* a: a copy */
static __u64 wait_left_clock(const struct wait_arrival *a, struct task_struct *task)
{
	return a->clock + wait_ran_since(a, task);
}

/* The model's clock stands still from a switch-out to the successor's switch-in. */
static __u64 wait_left_ns(const struct wait_switch *s, const struct wait_arrival *a,
			  struct task_struct *task)
{
	struct wait_arrival copy = { .clock = WAIT_GET(a->clock), .ran_ns = WAIT_GET(a->ran_ns) };

	(void)s;
	return wait_left_clock(&copy, task);
}

static bool wait_clock_off(__s64 *ret)
{
	*ret = 0;
	return true;
}

static void wait_lose(struct task_struct *task, const struct wait_arrival *a)
{
	(void)task;
	(void)a;
	violate("a thread has no state");
}

static bool wait_may_futex(struct task_struct *task)
{
	(void)task;
	return true;
}

static uint64_t act_count_waiter(const struct op *op)
{
	world.waiters += op->value;
	return 0;
}

/* In one word, as bp_futexes has it: how many wait, and the sum of since when. */
static void count_waiter(uint64_t by)
{
	step((struct op){
		.name = "count waiter", .alone = true, .act = act_count_waiter, .value = by });
}

/* As note_waiter in futex.bpf.h. */
static void wait_futex_enter(struct task_struct *task, struct wait_task *w, __u64 ns)
{
	(void)task;
	if (WAIT_GET(w->state) != BPFPROF_STATE_sleeping || WAIT_GET(w->futex))
		return;
	WAIT_PUT(w->futex_ns, ns);
	WAIT_PUT(w->futex, 1);
	count_waiter(ONE_WAITER + ns);
}

/* As charge. */
static void wait_futex_leave(struct task_struct *task, struct wait_task *w)
{
	uint64_t since;

	(void)task;
	if (!WAIT_GET(w->futex))
		return;
	since = WAIT_GET(w->futex_ns);
	WAIT_PUT(w->futex, 0);
	count_waiter(-(ONE_WAITER + since));
}

static uint64_t act_irq(const struct op *op)
{
	world.irq_off[me->cpu] = op->value;
	return 0;
}

static void wait_irq_off(unsigned long *flags)
{
	*flags = 0;
	if (relies.irq_off)
		step((struct op){ .name = "interrupts off", .act = act_irq, .value = 1 });
}

static void wait_irq_on(unsigned long *flags)
{
	(void)flags;
	if (relies.irq_off)
		step((struct op){ .name = "interrupts on", .act = act_irq, .ready = is_drained });
}

/* ---- what the kernel does ---- */

static uint64_t outs_of(const struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

static struct truth *truth_of(const struct task_struct *task, uint64_t switch_outs)
{
	assert_in_range(switch_outs, 1, MAX_SWITCH_OUTS);
	return &world.truth[index_of(task)][task->life][switch_outs - 1];
}

#define RUN_NS 3  /* of each stay on a CPU */
#define TICK_NS 1 /* of these, charged by a tick before the program that sees the arrival */

static void count_out(struct task_struct *task)
{
	bool preempted = !task->state;
	struct truth *t;

	if (preempted)
		PUT(task->nivcsw, task->nivcsw + 1);
	else
		PUT(task->nvcsw, task->nvcsw + 1);
	PUT(task->se.sum_exec_runtime, task->se.sum_exec_runtime + RUN_NS - TICK_NS);
	t = truth_of(task, outs_of(task));
	t->ns = task->sched_info.last_arrival + RUN_NS;
	t->queued_ns = task->sched_info.run_delay;
	t->state = preempted ? BPFPROF_STATE_runnable : task->state;
	PUT(task->slept_as, task->state);
	task->runnable = preempted;
	task->asleep = !preempted;
}

static void arrive(struct task_struct *task)
{
	uint64_t outs = outs_of(task);

	PUT(task->on_cpu, 1);
	task->runnable = 0;
	/* another time for each stay of each thread */
	PUT(task->sched_info.last_arrival,
	    1000 * (index_of(task) + 1) + 300 * task->life + 10 * outs);
	PUT(task->sched_info.run_delay, 7 * task->sched_info.last_arrival);
	PUT(task->se.prev_sum_exec_runtime, task->se.sum_exec_runtime);
	PUT(task->se.sum_exec_runtime, task->se.sum_exec_runtime + TICK_NS);
	if (outs)
		truth_of(task, outs)->switched_in = 1;
}

/* A section with interrupts off takes less time than a thread takes to its next switch-out. */
static bool may_switch(const struct op *op)
{
	return is_drained(op) && !world.irq_off[!me->cpu] && op->next->runnable &&
	       !op->next->on_cpu;
}

static uint64_t act_switch(const struct op *op)
{
	if (relies.counted_first)
		count_out(op->task);
	else
		op->task->runnable = !op->task->state;
	arrive(op->next);
	world.switching[me->cpu] = 1;
	world.in_program |= my_bit();
	return 0;
}

/* From here on prev may run elsewhere; or be freed, a grace period later. */
static uint64_t act_off_cpu(const struct op *op)
{
	PUT(op->task->on_cpu, 0);
	world.switching[me->cpu] = 0;
	if (op->task->state == BPFPROF_STATE_dead)
		op->task->in_flight = world.in_program;
	return 0;
}

static uint64_t act_count_out(const struct op *op)
{
	count_out(op->task);
	return 0;
}

static uint64_t act_program_ends(const struct op *op)
{
	(void)op;
	world.in_program &= ~my_bit();
	for (size_t i = 0; i < TASKS; i++)
		world.tasks[i].in_flight &= ~my_bit();
	return 0;
}

static void program_ends(void)
{
	step((struct op){ .name = "program ends", .act = act_program_ends, .ready = is_drained });
	forget();
}

/* The programs find out about a wait: op->value, its ns; op->sz: what else they know of it. */
static uint64_t act_charge(const struct op *op)
{
	struct truth *t = truth_of(op->task, outs_of(op->task));

	if (t->charged++ || t->missed)
		violate("a wait is charged twice");
	if (t->ns != op->value)
		violate("a wait is charged from another time on");
	if (t->queued_ns != op->sz)
		violate("a wait has another time on the run queue");
	return 0;
}

static uint64_t act_charge_state(const struct op *op)
{
	if (truth_of(op->task, outs_of(op->task))->state != op->value)
		violate("a wait has another one's state");
	return 0;
}

/* op->value: the wait has been charged to the waker, or is known to have been over before. */
static uint64_t act_charge_wake(const struct op *op)
{
	if (truth_of(op->task, outs_of(op->task))->wake_seen && !op->value)
		violate("a wake is forgotten");
	return 0;
}

static uint64_t act_miss(const struct op *op)
{
	struct truth *t = truth_of(op->task, outs_of(op->task));

	if (t->missed++ || t->charged)
		violate("a wait is missed and charged");
	return 0;
}

/* As resumed in waits.bpf.c, and resumed_at in wait_record.bpf.h. */
static void resumed(struct task_struct *task)
{
	struct wait_task *w = wait_state_of(task);
	__u64 switch_outs = wait_switch_outs(task), ns;
	bool woken;

	if (!w || !switch_outs)
		return;
	if (!wait_is_known(w, switch_outs) && !wait_look_up(task, w, 0)) {
		step((struct op){ .name = "missed", .alone = true, .act = act_miss, .task = task });
		return;
	}
	woken = wait_was_early(w) || wait_is_woken(w);
	ns = wait_take(task, w);
	step((struct op){ .name = "charge: wake",
			  .alone = true,
			  .act = act_charge_wake,
			  .task = task,
			  .value = woken });
	step((struct op){ .name = "charge",
			  .alone = true,
			  .act = act_charge,
			  .task = task,
			  .value = ns,
			  .sz = WAIT_GET(w->queued_ns) });
	step((struct op){ .name = "charge: state",
			  .alone = true,
			  .act = act_charge_state,
			  .task = task,
			  .value = WAIT_GET(w->state) });
}

static uint64_t act_set_state(const struct op *op)
{
	PUT(op->task->state, op->value);
	return 0;
}

/* prev switches out, in favour of next: preempted if the state is BPFPROF_STATE_running, else
 * because it has given itself that state. Then the program, as wait_switched_any in waits.bpf.c. */
static void switch_to(struct task_struct *prev, struct task_struct *next,
		      enum bpfprof_thread_state state)
{
	struct wait_arrival *here = &world.here[me->cpu];
	struct wait_switch s = { .cpu = me->cpu };

	if (state != BPFPROF_STATE_running)
		step((struct op){
			.name = "set state", .act = act_set_state, .task = prev, .value = state });
	step((struct op){ .name = "switch",
			  .act = act_switch,
			  .ready = may_switch,
			  .task = prev,
			  .next = next });
	step((struct op){
		.name = "off cpu", .act = act_off_cpu, .ready = is_drained, .task = prev });
	if (!relies.counted_first)
		step((struct op){ .name = "count", .act = act_count_out, .task = prev });
	if (WAIT_GET(here->stack))
		wait_publish_prev(&s, here);
	forget();
	resumed(next);
	forget();
	wait_arrive(here, next, 1, true);
	program_ends();
}

/* op->value: the switch-out by which the thread is to be asleep. */
static bool may_wake(const struct op *op)
{
	return is_drained(op) && outs_of(op->task) >= op->value &&
	       (!relies.pi_lock || !op->task->waking);
}

static uint64_t act_wake(const struct op *op)
{
	if (!op->task->asleep || outs_of(op->task) != op->value)
		return false;
	op->task->waking++;
	world.in_program |= my_bit();
	return true;
}

static uint64_t act_charge_waker(const struct op *op)
{
	struct truth *t = truth_of(op->task, op->sz);

	if (t->charged_by_waker++)
		violate("a waker charges a wait once more");
	if (t->ns != op->value)
		violate("a waker charges another wait");
	return 0;
}

static uint64_t act_see_wake(const struct op *op)
{
	truth_of(op->task, op->value)->wake_seen = 1;
	return 0;
}

static bool may_run(const struct op *op)
{
	return is_drained(op) && (!op->task->on_cpu || !op->task->asleep);
}

static uint64_t act_runnable(const struct op *op)
{
	op->task->waking--;
	if (!op->task->asleep)
		return 0;
	op->task->asleep = 0;
	PUT(op->task->state, 0);
	op->task->runnable = 1;
	return 0;
}

/* A thread is woken from its sleep by that switch-out. watched: with the program, as wait_waking in
 * waits.bpf.c. */
static void wake(struct task_struct *task, uint64_t switch_out, bool watched)
{
	struct wait_task *w;

	if (!step((struct op){ .name = "wake",
			       .act = act_wake,
			       .ready = may_wake,
			       .task = task,
			       .value = switch_out }))
		return;
	w = watched ? wait_state_of(task) : NULL;
	if (w && wait_ends_sleep(task, w)) {
		wait_note_wake(w, BPFPROF_WAKE_PEER, 1);
		wait_futex_leave(task, w);
		step((struct op){ .name = "charge the waker",
				  .alone = true,
				  .act = act_charge_waker,
				  .task = task,
				  .value = WAIT_GET(w->off_ns),
				  .sz = switch_out });
	} else if (w) {
		wait_note_early(w);
	}
	if (w)
		step((struct op){ .name = "see the wake",
				  .alone = true,
				  .act = act_see_wake,
				  .task = task,
				  .value = switch_out });
	program_ends();
	step((struct op){
		.name = "runnable", .act = act_runnable, .ready = may_run, .task = task });
}

static bool may_free(const struct op *op)
{
	const struct task_struct *task = op->task;

	return is_drained(op) && task->state == BPFPROF_STATE_dead && !task->on_cpu &&
	       outs_of(task) && (!relies.grace_period || !task->in_flight);
}

static uint64_t act_free(const struct op *op)
{
	(void)op;
	world.in_program |= my_bit();
	return 0;
}

static uint64_t act_freed(const struct op *op)
{
	op->task->freed = 1;
	return 0;
}

/* A thread that has ended is freed, with the program wait_free. */
static void free_task(struct task_struct *task)
{
	step((struct op){ .name = "free", .act = act_free, .ready = may_free, .task = task });
	wait_slot_release(task);
	program_ends();
	step((struct op){ .name = "freed", .act = act_freed, .ready = is_drained, .task = task });
}

static bool may_fork(const struct op *op)
{
	return is_drained(op) && op->task->freed;
}

static uint64_t act_fork(const struct op *op)
{
	struct task_struct *task = op->task;

	task->freed = 0;
	task->life++;
	PUT(task->nvcsw, 0);
	PUT(task->nivcsw, 0);
	PUT(task->se.sum_exec_runtime, 0);
	PUT(task->se.prev_sum_exec_runtime, 0);
	PUT(task->state, 0);
	world.in_program |= my_bit();
	return 0;
}

static uint64_t act_new(const struct op *op)
{
	op->task->runnable = 1;
	return 0;
}

/* Another thread begins at the same address, with the program wait_newtask. */
static void fork_task(struct task_struct *task)
{
	step((struct op){ .name = "fork", .act = act_fork, .ready = may_fork, .task = task });
	wait_slot_release(task);
	wait_state_make(task);
	program_ends();
	step((struct op){ .name = "new", .act = act_new, .ready = is_drained, .task = task });
}

static uint64_t act_made(const struct op *op)
{
	if (op->at != op->next)
		violate("a thread's state is another one than it was");
	if (op->value != numbers[index_of(op->task)])
		violate("a thread has another one's state");
	return 0;
}

/* A new thread gets a state, and finds it and what it has written there. */
static void make_state(struct task_struct *task)
{
	struct wait_task *w = wait_state_make(task);

	if (!w) {
		violate("a thread has no state");
		return;
	}
	wait_note(task, w, BPFPROF_STATE_sleeping, 1, 0, wait_number(task), false);
	step((struct op){ .name = "made",
			  .alone = true,
			  .act = act_made,
			  .task = task,
			  .at = w,
			  .next = (void *)wait_state_of(task),
			  .value = WAIT_GET(w->off_ns) });
}

#endif
