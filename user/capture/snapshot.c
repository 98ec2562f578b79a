// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stacks of threads at one moment.
 *
 * A thread that does not run has its registers on its kernel stack and its frames in its memory:
 * both can be read while it waits. What is read belongs together if the thread has left a CPU as
 * often before as after, and was on none. So all threads are listed, the stacks copied, and all
 * listed again: most wait, and are done with. The others, few as a rule, are gone after one by one,
 * where less time lies between the two looks, some 100 us since another process reads the stack, and at
 * the same time the sampler waits for them on the CPUs.
 */
#include <linux/types.h>

#include "capture/snapshot.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "capture/collect.h"
#include "capture/stack_copies.h"
#include "kernel/probe_waits.h"
#include "kernel/threads.h"

/* For those that rest, where there is not room for the stacks of all at once. */
#define TAKE_NS (2 * NSEC_PER_SEC)
#define DEADLINE_NS 100000000ULL /* for those that do not come to rest */
#define PAUSE_NS 500000L	 /* between two looks at them */
#define MAX_PARTS 3

/* Kinds of which waits in progress are recorded, as in snapshot_opts.min_wait_ns. */
static const enum bpfprof_kind wait_kinds[] = { BPFPROF_BLOCK, BPFPROF_OFFCPU };

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define NR_FUTEX 202
#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAIT 455

/* A part of a wait that is in progress, to be recorded. */
struct part {
	uint8_t kind; /* enum bpfprof_kind */
	uint32_t wait;
	uint64_t amount;
};

/* Parts of it that are not, because they are too short. */
struct below {
	uint32_t cnt;
	uint64_t ns;
};

struct target {
	uint32_t tid;
	struct bpfprof_proc_key key;
	bool thread; /* to be recorded as a thread */
	bool due;    /* the sampler knows of it */
	uint8_t part_cnt;
	struct part parts[MAX_PARTS]; /* to be recorded, unless it has run since the first look */
	struct below below[ARRAY_SIZE(wait_kinds)]; /* to be counted, if it is still in that wait */
	uint64_t switches;			    /* at the first look */
	uint64_t off_ns;			    /* when the wait began that they are of */
	bool waits;				    /* still in that wait */
	/* at the last look, which it belongs to; NULL: there is none that counts */
	const struct bpfprof_thread *now, *next;
	const uint64_t *kernel, *next_kernel;
	struct stack_copy copy; /* its stack, then */
};

struct record {
	struct bpfprof_rec rec;
	uint8_t data[sizeof(struct bpfprof_raw) + BPFPROF_MAX_KFRAMES * 8 + BPFPROF_RAW_STACK_SZ];
};

struct snapshot {
	const struct snapshot_opts *opts;
	struct session *session;
	struct collect *collect;
	struct target *targets; /* ascending by tid */
	size_t target_cnt, target_cap;
	struct stack_copy **copies; /* room for one of each target */
	struct record *record;
	bool waits_off;			 /* waits that end are recorded no more */
	struct threads_sampler *sampler; /* NULL: there is none */
};

static bool is_todo(const struct target *t)
{
	return t->thread || t->part_cnt;
}

static bool has_below(const struct target *t)
{
	return t->below[0].cnt || t->below[1].cnt;
}

/* ---- waits in progress ---- */

static bool is_futex_wait(const struct bpfprof_thread *t)
{
	const uint32_t waits = 1U << FUTEX_WAIT | 1U << FUTEX_LOCK_PI | 1U << FUTEX_WAIT_BITSET |
			       1U << FUTEX_WAIT_REQUEUE_PI | 1U << 13 /* FUTEX_LOCK_PI2, 5.14 */;

	if (!t->same || t->off_state != BPFPROF_STATE_sleeping)
		return false;
	switch (BPFPROF_WAIT_SYSCALL(t->wait)) {
	case NR_FUTEX: /* (address, operation, ...) */
		return waits >> (t->regs[4] & FUTEX_CMD_MASK & 31) & 1;
	case NR_FUTEX_WAITV:
	case NR_FUTEX_WAIT:
		return true;
	}
	return false;
}

/* nr: of the kind. A part of 0 ns has not begun. */
static void add_part(const struct snapshot_opts *o, struct target *t, int nr, uint32_t wait,
		     uint64_t ns)
{
	if (ns && ns >= o->min_wait_ns[nr]) {
		t->parts[t->part_cnt++] =
			(struct part){ .kind = wait_kinds[nr], .wait = wait, .amount = ns };
	} else if (ns) {
		t->below[nr].cnt++;
		t->below[nr].ns += ns;
	}
}

/* The wait that it was in when the run ended, as the kernel side would have recorded it. */
static void find_parts(const struct snapshot_opts *o, const struct bpfprof_thread *t,
		       struct target *target)
{
	uint32_t syscall = BPFPROF_WAIT_SYSCALL(t->wait);
	bool queued = t->off_state == BPFPROF_STATE_runnable, woken;
	uint64_t until;

	if (!t->off_ns || t->off_ns >= o->stopped_ns)
		return;
	woken = t->wake_ns > t->off_ns && t->wake_ns < o->stopped_ns;
	until = queued ? t->off_ns : woken ? t->wake_ns : o->stopped_ns;
	if (o->block && t->block && is_futex_wait(t))
		add_part(o, target, 0,
			 BPFPROF_WAIT_PACK(syscall, t->off_state,
					   woken ? t->woken : BPFPROF_WAKE_NOT_YET),
			 until - t->off_ns);
	if (!o->offcpu)
		return;
	add_part(o, target, 1, BPFPROF_WAIT_PACK(syscall, t->off_state, 0), until - t->off_ns);
	add_part(o, target, 1, BPFPROF_WAIT_PACK(syscall, BPFPROF_STATE_runnable, 0),
		 o->stopped_ns - until);
}

/* They need no stack: nor that it does not run on. */
static void count_below(struct snapshot *s, struct target *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(t->below); i++) {
		if (t->below[i].cnt)
			collect__leave_out(s->collect, wait_kinds[i], t->below[i].cnt,
					   t->below[i].ns);
		t->below[i] = (struct below){ 0 };
	}
}

/* A wait whose end was not seen, of a thread that has not gone into another one since. */
static void lose_ended(struct snapshot *s, const struct bpfprof_thread *t)
{
	if (!t->ended || t->off_ns >= s->opts->stopped_ns)
		return;
	if (s->opts->offcpu)
		collect__lose(s->collect, BPFPROF_OFFCPU, BPFPROF_LOST_ran_on);
	if (s->opts->block && t->block && t->may_futex && t->off_state == BPFPROF_STATE_sleeping)
		collect__lose(s->collect, BPFPROF_BLOCK, BPFPROF_LOST_ran_on);
}

static void lose_parts(struct snapshot *s, struct target *t)
{
	for (int i = 0; i < t->part_cnt; i++)
		collect__lose(s->collect, t->parts[i].kind, BPFPROF_LOST_ran_on);
	t->part_cnt = 0;
}

/* ---- records ---- */

static void inject(struct snapshot *s, const struct target *t, const struct part *part)
{
	const struct bpfprof_thread *now = t->now;
	struct bpfprof_rec *rec = &s->record->rec;
	bool kernel = part->kind != BPFPROF_BLOCK && !s->opts->user_only;
	bool waits = part->kind != BPFPROF_THREADS;
	uint8_t *at = s->record->data;
	struct bpfprof_raw raw = { .stack_addr = now->regs[7] - BPFPROF_RED_ZONE,
				   .stack_sz = t->copy.sz,
				   .ra = now->ra,
				   .uret_pc = now->uret_pc };

	*rec = (struct bpfprof_rec){
		.type = t->copy.made ? BPFPROF_REC_RAW : BPFPROF_REC_SAMPLE,
		.kind = part->kind,
		.result = now->compat32 && !s->opts->kernel_only ? BPFPROF_STACK_compat32 :
								   BPFPROF_STACK_complete,
		.kernel_cnt = kernel ? MIN(now->kernel_cnt, BPFPROF_MAX_KFRAMES) : 0,
		.tid = t->tid,
		.wait = part->wait,
		.time_ns = util_monotonic_ns(),
		.units = waits ? BPFPROF_UNIT : 0,
		.amount = part->amount,
		.cgroup = now->cgroup,
		.proc = t->key,
	};
	memcpy(rec->comm, now->comm, sizeof(rec->comm));
	if (t->copy.made) {
		memcpy(raw.regs, now->regs, sizeof(raw.regs));
		memcpy(raw.uret, now->uret, sizeof(raw.uret));
		at = mempcpy(at, &raw, sizeof(raw));
	}
	at = mempcpy(at, t->kernel, rec->kernel_cnt * 8UL);
	if (t->copy.made)
		at = mempcpy(at, stack_copies__data(s->opts->stacks) + t->copy.at, t->copy.sz);
	/* what there is no memory for is counted there */
	(void)collect__inject(s->collect, rec, at - (uint8_t *)s->record);
}

static void record(struct snapshot *s, struct target *t)
{
	struct part thread = { .kind = BPFPROF_THREADS,
			       .wait = t->now->wait & 0xffffff,
			       .amount = t->now->since_ns };

	for (int i = 0; i < t->part_cnt; i++)
		inject(s, t, &t->parts[i]);
	t->part_cnt = 0;
	/* the sampler may just have met it */
	if (t->thread && (!t->due || threads_sampler__remove(s->sampler, t->tid)))
		inject(s, t, &thread);
	t->thread = false;
}

/* ---- stacks ---- */

static bool needs_stack(const struct snapshot *s, const struct bpfprof_thread *t)
{
	return t->has_user && !t->compat32 && !s->opts->kernel_only;
}

/*
 * The stack as it is now. Unlike in stack.bpf.c there are no holes: a page that was never touched reads
 * as zeros, and so does the guard of the next stack.
 */
static struct stack_copy *to_copy(struct target *t)
{
	t->copy = (struct stack_copy){ .proc = t->key,
				       .tid = t->tid,
				       .addr = t->now->regs[7] - BPFPROF_RED_ZONE };
	return &t->copy;
}

/* ---- looks at the threads ---- */

static int compare_tids(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int add_target(struct snapshot *s, const struct bpfprof_thread *t, const uint64_t *kernel)
{
	struct target new = { .tid = t->tid,
			      .key = t->key,
			      .thread = s->opts->threads,
			      .switches = t->switches,
			      .off_ns = t->off_ns,
			      .now = t,
			      .kernel = kernel };
	int err;

	/* a wait that has just ended is recorded where it ends, for as long as that is done */
	if (t->same || s->waits_off)
		find_parts(s->opts, t, &new);
	if (!t->same)
		lose_parts(s, &new);
	if (s->waits_off)
		count_below(s, &new);
	if (!is_todo(&new) && !has_below(&new))
		return 0;
	err = util_reserve(&s->targets, &s->target_cap, s->target_cnt + 1, sizeof(*s->targets));
	if (!err)
		s->targets[s->target_cnt++] = new;
	return err;
}

static int first_look(struct snapshot *s, struct threads *ret)
{
	const struct bpfprof_thread *t;
	const uint64_t *kernel;
	uint32_t self = getpid();
	size_t pos = 0;
	int err = threads__read(s->session, 0, ret);

	while (!err && (t = threads__next(ret, &pos, &kernel)))
		/* its own threads are not what is asked for, and run */
		if (t->key.tgid != self)
			err = add_target(s, t, kernel);
	if (!err && s->target_cnt)
		qsort(s->targets, s->target_cnt, sizeof(*s->targets), compare_tids);
	return err;
}

/* Has not run between the two looks. */
static bool at_rest(const struct bpfprof_thread *a, const struct bpfprof_thread *b)
{
	return !a->on_cpu && !b->on_cpu && a->switches == b->switches;
}

/* Takes in the second of two looks, t->next: its copy is good, or has to be made again. */
static void settle(struct snapshot *s, struct target *t)
{
	if (!t->next) {
		/* it has ended: then it was no thread of this moment, but its wait was one */
		if (t->due)
			(void)threads_sampler__remove(s->sampler, t->tid);
		t->thread = t->due = false;
		lose_parts(s, t);
	} else if (t->now && (t->copy.made || !needs_stack(s, t->now)) &&
		   at_rest(t->now, t->next)) {
		record(s, t);
	} else if (t->next->on_cpu || t->next->switches != t->switches) {
		lose_parts(s, t);
	}
	t->copy.made = false;
	t->now = t->next;
	t->kernel = t->next_kernel;
	t->next = NULL;
}

static struct target *find_target(struct snapshot *s, const struct bpfprof_thread *thread)
{
	struct target key = { .tid = thread->tid }, *t = NULL;

	if (s->target_cnt)
		t = bsearch(&key, s->targets, s->target_cnt, sizeof(key), compare_tids);

	return t && !memcmp(&t->key, &thread->key, sizeof(t->key)) ? t : NULL;
}

/* only: that one of the targets; NULL: all. */
static void match(struct snapshot *s, const struct threads *threads, const struct target *only)
{
	const struct bpfprof_thread *thread;
	const uint64_t *kernel;
	struct target *t;
	size_t pos = 0;

	while ((thread = threads__next(threads, &pos, &kernel))) {
		t = find_target(s, thread);
		if (!t || (only && t != only))
			continue;
		t->next = thread;
		t->next_kernel = kernel;
	}
}

/*
 * From here on, waits that end are recorded no more where they end. Those that have, meanwhile, are
 * not ours; the others are, and their stacks have been read twice by now.
 */
static int end_waits(struct snapshot *s)
{
	const struct bpfprof_thread *thread;
	struct threads threads;
	const uint64_t *kernel;
	struct target *t;
	size_t pos = 0;
	int err;

	if (s->waits_off)
		return 0;
	s->waits_off = true;
	probe_waits__off(s->opts->waits);
	err = threads__read(s->session, 0, &threads);
	if (err)
		return err;
	while ((thread = threads__next(&threads, &pos, &kernel))) {
		t = find_target(s, thread);
		if (t)
			t->waits = thread->off_ns == t->off_ns;
		if (!t || (!t->part_cnt && !(t->waits && has_below(t))))
			lose_ended(s, thread);
	}
	threads__done(&threads);
	for (size_t i = 0; i < s->target_cnt; i++) {
		if (s->targets[i].waits)
			count_below(s, &s->targets[i]);
		else
			s->targets[i].part_cnt = 0;
	}
	return 0;
}

/* Copies the stacks of all that do not run. Is it worth while to do so once more? Not all had room, or some took
 * so long that the others' are old; and something was made all the same. */
static bool copy_all(struct snapshot *s)
{
	size_t cnt = 0, made = 0;
	bool late;

	for (struct target *t = s->targets; t < s->targets + s->target_cnt; t++)
		if (is_todo(t) && !t->now->on_cpu && needs_stack(s, t->now))
			s->copies[cnt++] = to_copy(t);
	late = stack_copies__make(s->opts->stacks, s->copies, cnt);
	for (size_t i = 0; i < cnt; i++)
		made += s->copies[i]->made;
	return made && (late || made < cnt);
}

/* All at once, and again as long as that leads on, or until TAKE_NS: the copy of a thread that has run meanwhile is
 * worth nothing, and is made again. *pass is the first look. */
static int take_all(struct snapshot *s, struct threads *pass)
{
	uint64_t end_ns = util_monotonic_ns() + TAKE_NS;
	struct threads next;
	bool again = true;
	int err;

	while (again) {
		again = copy_all(s) && util_monotonic_ns() < end_ns;
		err = threads__read(s->session, 0, &next);
		if (err)
			return err;
		match(s, &next, NULL);
		err = end_waits(s);
		if (err) {
			threads__done(&next);
			return err;
		}
		for (struct target *t = s->targets; t < s->targets + s->target_cnt; t++)
			if (is_todo(t))
				settle(s, t);
		threads__done(pass);
		*pass = next;
	}
	return 0;
}

/* ---- those that run ---- */

/* Looks twice at one. Kernels before 6.1 show all threads, and what is seen of others is gone with these looks. 0 or
 * -errno. */
static int look(struct snapshot *s, struct target *t)
{
	struct threads one[2] = { 0 };
	int err = threads__read(s->session, t->tid, &one[0]);

	if (!err) {
		match(s, &one[0], t);
		t->now = NULL;
		t->copy.made = false;
		settle(s, t);
	}
	if (!err && is_todo(t) && !t->now->on_cpu) {
		if (!needs_stack(s, t->now)) {
			record(s, t);
		} else {
			s->copies[0] = to_copy(t);
			(void)stack_copies__make(s->opts->stacks, s->copies, 1);
			err = t->copy.made ? 0 : -ENOMEM;
			if (!err)
				err = threads__read(s->session, t->tid, &one[1]);
			if (!err) {
				match(s, &one[1], t);
				settle(s, t);
			}
		}
	}
	threads__done(&one[0]);
	threads__done(&one[1]);
	return err;
}

static size_t count_todo(const struct snapshot *s)
{
	size_t cnt = 0;

	for (size_t i = 0; i < s->target_cnt; i++)
		cnt += is_todo(&s->targets[i]);
	return cnt;
}

static int chase(struct snapshot *s)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t deadline_ns = util_monotonic_ns() + DEADLINE_NS;
	int err = 0;

	while (!err && count_todo(s) && util_monotonic_ns() < deadline_ns) {
		for (size_t i = 0; i < s->target_cnt && !err; i++) {
			struct target *t = &s->targets[i];

			if (t->due && threads_sampler__has(s->sampler, t->tid)) {
				t->thread = t->due = false;
				lose_parts(s, t);
			}
			if (is_todo(t) && util_monotonic_ns() < deadline_ns)
				err = look(s, t);
		}
		nanosleep(&pause, NULL);
	}
	return err;
}

static void start_sampler(struct snapshot *s)
{
	s->sampler = threads_sampler__new(s->session);
	/* without it, or where it has no room, only what comes to rest is caught */
	for (size_t i = 0; s->sampler && i < s->target_cnt; i++) {
		struct target *t = &s->targets[i];

		t->due = t->thread && !threads_sampler__add(s->sampler, t->tid);
	}
}

/* Whoever is left did not come to rest, nor was met on a CPU. */
static void give_up(struct snapshot *s)
{
	for (size_t i = 0; i < s->target_cnt; i++) {
		struct target *t = &s->targets[i];

		lose_parts(s, t);
		if (t->thread && (!t->due || threads_sampler__remove(s->sampler, t->tid)))
			collect__lose(s->collect, BPFPROF_THREADS, BPFPROF_LOST_ran_on);
	}
}

int snapshot_take(const struct snapshot_opts *opts, struct session *session,
		  struct collect *collect, struct snapshot_result *ret)
{
	uint64_t start_ns = util_monotonic_ns();
	struct snapshot s = {
		.opts = opts, .session = session, .collect = collect, .waits_off = !opts->waits
	};
	struct threads pass = { 0 };
	int err = -ENOMEM;

	stack_copies__begin(opts->stacks);
	s.record = malloc(sizeof(*s.record));
	if (s.record)
		err = first_look(&s, &pass);
	if (!err) {
		s.copies = calloc(s.target_cnt + 1, sizeof(*s.copies));
		err = s.copies ? 0 : -ENOMEM;
	}
	ret->threads = s.target_cnt;
	if (!err && s.target_cnt)
		err = take_all(&s, &pass);
	if (!err)
		err = end_waits(&s);
	if (!err && opts->threads && count_todo(&s))
		start_sampler(&s);
	if (!err)
		err = chase(&s);
	give_up(&s);
	threads_sampler__free(s.sampler);
	threads__done(&pass);
	free(s.targets);
	free(s.copies);
	stack_copies__end(opts->stacks);
	free(s.record);
	ret->ns = util_monotonic_ns() - start_ns;
	return err;
}
