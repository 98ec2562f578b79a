// SPDX-License-Identifier: BSD-2-Clause
/* The processes that are collected, by scans and events. */
#include <linux/types.h>

#include "capture/targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bpfprof.h"
#include "capture/code.h"
#include "capture/short_lived.h"
#include "kernel/events.h"
#include "kernel/session.h"
#include "target/procs.h"

/* Records of what has ended may still arrive: it is kept for so many calls of targets__let_go, which can follow each other
 * at once, and for so long from the first of them on. */
#define DEAD_LOOKS 3
#define DEAD_NS (NSEC_PER_SEC / 10)
/* When a process has gone, its last thread runs on for some us. */
#define GONE_NS (NSEC_PER_SEC / 50)
#define READ_ROUNDS 4		/* of reading events, where these have maps read */
#define RESCAN_NS NSEC_PER_SEC	/* between two scans of all processes */
#define RETIRED_NS NSEC_PER_SEC /* what was replaced longer ago is no longer sampled */

struct targets {
	struct targets_opts opts;
	struct session *session;
	struct events *events;
	struct procs *procs;
	struct code *code;
	struct target_note *notes; /* by number of a process */
	size_t note_cap;
	uint32_t *dirty; /* processes whose notes say so */
	size_t dirty_cnt, dirty_cap;
	struct short_lived *short_lived;
	uint32_t *leaderless; /* tgids whose main thread ended, when others may have run on */
	size_t leaderless_cnt, leaderless_cap;
	uint64_t applied_ns; /* events up to then were applied */
	uint64_t events_lost;
	struct target_forks forks;
	uint64_t next_rescan_ns; /* not before */
	bool rescan_wanted;
	bool begun; /* the recording */
};

struct targets *targets__new(const struct targets_opts *opts, struct session *session,
			     struct events *events, struct procs *procs, struct code *code)
{
	struct targets *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->opts = *opts;
	t->session = session;
	t->events = events;
	t->procs = procs;
	t->code = code;
	t->short_lived = short_lived__new();
	if (t->short_lived)
		return t;
	targets__free(t);
	errno = ENOMEM;
	return NULL;
}

void targets__free(struct targets *t)
{
	if (!t)
		return;
	short_lived__free(t->short_lived);
	free(t->notes);
	free(t->dirty);
	free(t->leaderless);
	free(t);
}

struct target_note *targets__note(struct targets *t, uint32_t proc)
{
	if (util_reserve_zeroed(&t->notes, &t->note_cap, proc, sizeof(*t->notes)))
		return NULL;
	return &t->notes[proc];
}

uint32_t targets__chosen(const struct targets *t, uint32_t proc)
{
	return proc < t->note_cap ? t->notes[proc].chosen : 0;
}

/* Of a process that has ended, or runs another program: unless that one was chosen, too. */
static int unchoose(struct targets *t, uint32_t proc)
{
	const struct proc *p = procs__get(t->procs, proc);

	t->notes[proc].chosen = 0;
	return targets__chosen(t, procs__find_live(t->procs, p->tgid)) ?
		       0 :
		       session__choose(t->session, p->tgid, p->start_ns, 0);
}

static int rescan(struct targets *t)
{
	uint64_t now = util_monotonic_ns();

	if (now < t->next_rescan_ns)
		return -EAGAIN;
	t->next_rescan_ns = now + RESCAN_NS;
	t->rescan_wanted = false;
	return targets__scan(t, NULL, 0);
}

/* Are mappings read as soon as a process is met? Else when it is first sampled. */
static bool wants_all_maps(const struct targets *t)
{
	return t->opts.only_added || t->opts.all_maps;
}

uint32_t targets__find(struct targets *t, const struct bpfprof_rec *rec)
{
	const struct bpfprof_proc_key *key = &rec->proc;
	uint32_t proc = procs__find(t->procs, key->tgid, key->exec_id, key->start_ns, rec->time_ns);

	/* events were lost, or fell into the gap before the first scan: ask the kernel anew */
	if (proc == PROCS_NONE && rescan(t) == 0)
		proc = procs__find(t->procs, key->tgid, key->exec_id, key->start_ns, rec->time_ns);
	if (proc == PROCS_NONE || procs__peek(t->procs, proc)->known ||
	    (rec->type != BPFPROF_REC_RAW && !rec->user_cnt))
		return proc;
	/* it may have ended by now: then the sample says so */
	if (!procs__read_maps(t->procs, proc, rec->tid == key->tgid ? 0 : rec->tid))
		(void)targets__read_events(t, procs__read_ns(t->procs), NULL);
	return proc;
}

/* ---- events ---- */

/* Its mappings changed then. */
static void mark_dirty(struct targets *t, uint32_t proc, uint64_t time_ns)
{
	struct target_note *note = proc == PROCS_NONE ? NULL : targets__note(t, proc);
	struct bpfprof_proc value;

	if (!note)
		return;
	note->fruitless = 0;
	note->changed_ns = MAX(note->changed_ns, time_ns);
	if (note->dirty || !code__published(t->code, proc, &value) ||
	    util_reserve(&t->dirty, &t->dirty_cap, t->dirty_cnt + 1, sizeof(*t->dirty)))
		return;
	note->dirty = true;
	t->dirty[t->dirty_cnt++] = proc;
}

static int take_mmap(struct targets *t, const struct event *ev)
{
	struct proc_file file = { .path = (char *)ev->path,
				  .maj = ev->maj,
				  .min = ev->min,
				  .ino = ev->ino,
				  .build_id_sz = ev->build_id_sz };
	int err;

	memcpy(file.build_id, ev->build_id, sizeof(file.build_id));
	if (ev->build_id_sz || ev->ino || ev->maj || ev->min)
		file.kind = PROC_FILE_REGULAR;
	else
		file.kind = strcmp(ev->path, "[vdso]") ? PROC_FILE_ANON : PROC_FILE_VDSO;
	err = procs__on_mmap(t->procs, ev->pid, ev->time_ns, ev->addr, ev->len, ev->pgoff, &file);
	if (!err)
		mark_dirty(t, procs__find_live(t->procs, ev->pid), ev->time_ns);
	return err;
}

static int take_exit(struct targets *t, const struct event *ev)
{
	uint32_t proc;
	int err;

	procs__on_exit(t->procs, ev->pid, ev->tid, ev->time_ns);
	proc = procs__find_live(t->procs, ev->pid);
	if (proc == PROCS_NONE || ev->pid != ev->tid || procs__get(t->procs, proc)->thread_cnt)
		return 0;
	/* told before it had left /proc, or others of its threads run on */
	err = util_reserve(&t->leaderless, &t->leaderless_cap, t->leaderless_cnt + 1,
			   sizeof(*t->leaderless));
	if (!err)
		t->leaderless[t->leaderless_cnt++] = ev->pid;
	return err;
}

/* What is chosen is a program, not a process. */
static int take_exec(struct targets *t, const struct event *ev)
{
	uint32_t old = procs__find_live(t->procs, ev->pid);
	int err = procs__on_exec(t->procs, ev->pid, ev->time_ns, ev->comm);

	if (!err && targets__chosen(t, old) && procs__find_live(t->procs, ev->pid) != old)
		err = unchoose(t, old);
	return err;
}

static void note_fork(struct targets *t, uint32_t forker)
{
	t->forks.forkers[t->forks.cnt++ % TARGET_FORKS] = forker;
}

/* The process that an event is of, if it is known; of a fork the parent. */
static uint32_t find_concerned(struct targets *t, const struct event *ev)
{
	if (ev->type == EVENT_MMAP)
		return procs__find_mapping(t->procs, ev->pid);
	return procs__find_live(t->procs, ev->type == EVENT_FORK ? ev->ppid : ev->pid);
}

static int apply(struct targets *t, const struct event *ev)
{
	if (t->opts.only_added && ev->type != EVENT_LOST && find_concerned(t, ev) == PROCS_NONE)
		return 0;
	switch (ev->type) {
	case EVENT_MMAP:
		return take_mmap(t, ev);
	case EVENT_FORK:
		if (t->opts.only_added && !t->opts.follow && ev->pid != ev->ppid) {
			note_fork(t, ev->ppid);
			return 0;
		}
		/* what is chosen is not its children */
		if (ev->pid != ev->ppid && targets__chosen(t, procs__find_live(t->procs, ev->ppid)))
			note_fork(t, ev->ppid);
		return procs__on_fork(t->procs, ev->pid, ev->ppid, ev->time_ns);
	case EVENT_EXEC:
		return take_exec(t, ev);
	case EVENT_COMM:
		procs__on_comm(t->procs, ev->pid, ev->tid, ev->comm);
		return 0;
	case EVENT_EXIT:
		return take_exit(t, ev);
	case EVENT_LOST:
		procs__on_lost(t->procs);
		t->events_lost++;
		t->rescan_wanted = true;
		return 0;
	}
	return 0;
}

static void note_sampled(void *ctx, const struct bpfprof_rec *rec)
{
	short_lived__sampled(ctx, rec->proc.tgid);
}

/* May there be more of it to come, or does anybody else want to know of it? */
static bool is_wanted(void *ctx, const struct short_lived_proc *p)
{
	const struct targets *t = ctx;

	return p->ended_ns + GONE_NS > util_monotonic_ns() ||
	       procs__find_live(t->procs, p->pid) != PROCS_NONE ||
	       targets__chosen(t, procs__find_live(t->procs, p->parent)) ||
	       procs__has_number(t->procs, p->pid);
}

/* Which events need not be applied. Records are asked for when the processes have gone: what was sampled of
 * them has been sent. */
static void find_short_lived(struct targets *t, const struct event *events, size_t cnt,
			     const struct targets_records *records)
{
	short_lived__find(t->short_lived, events, cnt);
	if (!short_lived__keep(t->short_lived, is_wanted, t))
		return;
	if (!records->each(records->ctx, note_sampled, t->short_lived))
		short_lived__clear(t->short_lived);
}

/* records: NULL: all events are applied. */
static int read_events(struct targets *t, uint64_t until_ns, const struct targets_records *records)
{
	uint64_t now = util_monotonic_ns();
	const struct event *events;
	size_t cnt;
	int err = events__read(t->events, until_ns, &events, &cnt);

	if (!err && records)
		find_short_lived(t, events, cnt, records);
	for (size_t i = 0; !err && i < cnt; i++)
		if (!records || !short_lived__has(t->short_lived, i))
			err = apply(t, &events[i]);
	t->applied_ns = MAX(t->applied_ns, MIN(until_ns, now));
	if (!err && t->rescan_wanted)
		err = rescan(t);
	return err == -EAGAIN ? 0 : err;
}

int targets__read_events(struct targets *t, uint64_t until_ns,
			 const struct targets_records *records)
{
	int err = read_events(t, until_ns, wants_all_maps(t) ? NULL : records);

	/* what was read from /proc meanwhile holds with the events up to then */
	for (int i = 1; !err && i < READ_ROUNDS && procs__read_ns(t->procs) > t->applied_ns; i++)
		err = read_events(t, procs__read_ns(t->procs), NULL);
	return err;
}

int targets__begin(struct targets *t)
{
	int err;

	/* what the kernel says was lost, it says late: each time all processes are looked at, and not once a second */
	for (int i = 0; i < READ_ROUNDS; i++) {
		t->next_rescan_ns = 0;
		err = targets__read_events(t, util_monotonic_ns(), NULL);
		if (err || !t->rescan_wanted)
			break;
	}
	t->begun = true;
	/* what was lost before a scan that is later than it is known, and nothing was recorded yet */
	if (!err && !t->rescan_wanted)
		t->events_lost = 0;
	return err;
}

static void publish_dirty(struct targets *t)
{
	struct bpfprof_proc value;

	for (size_t i = 0; i < t->dirty_cnt; i++) {
		uint32_t proc = t->dirty[i];

		if (t->notes[proc].dirty && code__published(t->code, proc, &value)) {
			code__want_raw(t->code, proc, true);
			(void)code__publish(t->code, proc);
		}
		t->notes[proc].dirty = false;
	}
	t->dirty_cnt = 0;
}

/* Processes whose threads nobody has counted: have all of them ended? */
static void look_after_leaderless(struct targets *t, uint64_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->leaderless_cnt; i++) {
		uint32_t tgid = t->leaderless[i], proc = procs__find_live(t->procs, tgid);

		if (proc == PROCS_NONE || !procs__get(t->procs, proc)->leader_exited ||
		    procs__get(t->procs, proc)->thread_cnt)
			continue;
		procs__on_exit(t->procs, tgid, tgid, now);
		if (procs__find_live(t->procs, tgid) == proc)
			t->leaderless[kept++] = tgid;
	}
	t->leaderless_cnt = kept;
}

/*
 * May the process of an entry that has ended still be sampled? A thread runs on when its end has been
 * told: for 20 us; in newer kernels, as 6.18, for as long as it gives its memory back (do_exit in
 * kernel/exit.c).
 */
static bool ends_still(const struct targets *t, uint32_t proc)
{
	uint32_t tgid = procs__get(t->procs, proc)->tgid;

	return !t->notes[proc].removed && procs__find_live(t->procs, tgid) == PROCS_NONE &&
	       !procs__is_gone(t->procs, proc);
}

/* Takes what has ended out of the filter, but not a child that has got its number, and of which no event was read yet. */
static void unfollow(struct targets *t, uint32_t proc)
{
	const struct proc *p = procs__get(t->procs, proc);
	uint64_t start_ns = p->start_ns;

	/* nothing was sampled of it, nor has a scan met it: whoever is in the filter is meant, if nobody has the number */
	if (!start_ns) {
		start_ns = session__tgid_start(t->session, p->tgid);
		if (!procs__is_gone(t->procs, proc))
			return;
	}
	session__remove_tgid(t->session, p->tgid, start_ns);
}

static void let_go(struct targets *t, uint32_t proc)
{
	uint32_t tgid = procs__get(t->procs, proc)->tgid;

	if (t->opts.follow && procs__find_live(t->procs, tgid) == PROCS_NONE)
		unfollow(t, proc);
	if (targets__chosen(t, proc))
		(void)unchoose(t, proc);
	code__forget(t->code, proc);
	procs__remove(t->procs, proc);
	memset(&t->notes[proc], 0, sizeof(*t->notes));
}

void targets__tend(struct targets *t, bool behind)
{
	uint64_t now = util_monotonic_ns();

	publish_dirty(t);
	/* records may still wait */
	if (behind)
		return;
	procs__drop_retired(t->procs, now - RETIRED_NS);
	look_after_leaderless(t, now);
}

void targets__let_go(struct targets *t)
{
	uint64_t now = util_monotonic_ns();
	size_t cnt;
	const uint32_t *ended = procs__ended(t->procs, &cnt);

	/* backwards, since the last one takes the place of what is removed */
	while (cnt--) {
		struct target_note *note = targets__note(t, ended[cnt]);

		/* they count from when it has gone: what was sampled until then comes next */
		if (!note || (!note->dead_looks && ends_still(t, ended[cnt])))
			continue;
		if (!note->dead_looks)
			note->dead_ns = now;
		note->dead_looks += note->dead_looks < DEAD_LOOKS;
		if (note->dead_looks == DEAD_LOOKS && now - note->dead_ns >= DEAD_NS)
			let_go(t, ended[cnt]);
	}
}

static int by_tgid(const void *a, const void *b)
{
	const struct bpfprof_task *x = a, *y = b;

	return x->key.tgid < y->key.tgid ? -1 : x->key.tgid > y->key.tgid;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct tree {
	/* both sorted */
	const struct bpfprof_task *tasks;
	size_t cnt;
	const uint32_t *roots;
	size_t root_cnt;
};

static bool is_root(const struct tree *t, const struct bpfprof_task *task)
{
	return t->root_cnt &&
	       bsearch(&task->key.tgid, t->roots, t->root_cnt, sizeof(*t->roots), by_number);
}

static bool is_descendant(const struct tree *t, const struct bpfprof_task *task)
{
	for (int depth = 0; task && depth < 64; depth++) {
		struct bpfprof_task parent = { .key.tgid = task->ppid };

		if (depth && is_root(t, task))
			return true;
		task = bsearch(&parent, t->tasks, t->cnt, sizeof(*t->tasks), by_tgid);
	}
	return false;
}

/* Its number, or PROCS_NONE. */
static uint32_t add_task(struct targets *t, const struct bpfprof_task *task, uint64_t time_ns)
{
	char comm[BPFPROF_COMM_SZ];

	memcpy(comm, task->comm, sizeof(comm));
	comm[sizeof(comm) - 1] = '\0';
	return procs__add(t->procs, task->key.tgid, task->key.exec_id, task->key.start_ns, comm,
			  task->kthread, time_ns);
}

/* Has it recorded. A child for which there is no room is not followed: the kernel side counts those that are forked
 * while it records. */
static int add_to_filter(struct targets *t, uint32_t proc, const struct bpfprof_task *task)
{
	int err = session__add_tgid(t->session, task->key.tgid, task->key.start_ns);
	struct target_note *note;

	if (err != -E2BIG || !t->opts.follow)
		return err;
	note = targets__note(t, proc);
	if (!note)
		return -ENOMEM;
	if (!t->begun && !note->not_followed)
		session__count_not_followed(t->session);
	note->not_followed = true;
	return 0;
}

static int scan_task(struct targets *t, const struct bpfprof_task *task, uint64_t time_ns)
{
	uint32_t proc = add_task(t, task, time_ns);
	struct bpfprof_proc value;
	int err;

	if (proc == PROCS_NONE)
		return -ENOMEM;
	if (t->opts.only_added) {
		err = add_to_filter(t, proc, task);
		if (err)
			return err;
	}
	if (procs__peek(t->procs, proc)->known ||
	    (!wants_all_maps(t) && !code__published(t->code, proc, &value)))
		return 0;
	/* it may have ended by now: then its samples, if any, say so */
	(void)procs__read_maps(t->procs, proc, 0);
	mark_dirty(t, proc, util_monotonic_ns());
	return 0;
}

/* Is the task a process that we know to live, with the same start? */
static bool known(const struct targets *t, const struct bpfprof_task *task)
{
	uint32_t proc = procs__find_live(t->procs, task->key.tgid);
	const struct proc *p = proc == PROCS_NONE ? NULL : procs__get(t->procs, proc);

	return p && (!p->start_ns || p->start_ns == task->key.start_ns);
}

/* Ends the entries of processes that a scan which began at time_ns did not meet. */
static void end_unseen(struct targets *t, uint64_t time_ns)
{
	for (size_t i = 0; i < procs__cnt(t->procs); i++) {
		const struct proc *p = procs__get(t->procs, i);

		if (p->tgid && p->to_ns == UINT64_MAX && p->from_ns < time_ns &&
		    p->scanned_ns < time_ns)
			procs__end(t->procs, i);
	}
}

/* The roots, and what descends from them: there may not be room for all. 0 or -errno. */
static int scan_tree(struct targets *t, const struct tree *tree, uint64_t time_ns)
{
	int err = 0;

	for (size_t i = 0; !err && i < tree->cnt; i++)
		if (is_root(tree, &tree->tasks[i]))
			err = scan_task(t, &tree->tasks[i], time_ns);
	for (size_t i = 0; !err && t->opts.follow && i < tree->cnt; i++)
		if (!is_root(tree, &tree->tasks[i]) && is_descendant(tree, &tree->tasks[i]))
			err = scan_task(t, &tree->tasks[i], time_ns);
	return err;
}

/* Later scans start from what is known. 0 or -errno. */
static int scan_added(struct targets *t, struct bpfprof_task *tasks, size_t cnt,
		      const uint32_t *tgids, size_t tgid_cnt, uint64_t time_ns)
{
	uint32_t *roots = malloc((cnt + tgid_cnt + 1) * sizeof(*roots));
	struct tree tree = { .tasks = tasks, .cnt = cnt, .roots = roots };
	int err;

	if (!roots)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		if (known(t, &tasks[i]))
			roots[tree.root_cnt++] = tasks[i].key.tgid;
	for (size_t i = 0; i < tgid_cnt; i++)
		roots[tree.root_cnt++] = tgids[i];
	qsort(roots, tree.root_cnt, sizeof(*roots), by_number);
	qsort(tasks, cnt, sizeof(*tasks), by_tgid);
	err = scan_tree(t, &tree, time_ns);
	free(roots);
	return err;
}

int targets__scan(struct targets *t, const uint32_t *tgids, size_t tgid_cnt)
{
	uint64_t time_ns = util_monotonic_ns();
	struct bpfprof_task *tasks = NULL;
	size_t cnt = 0;
	int err = session__scan(t->session, &tasks, &cnt);

	/* children of whose start and end no event told */
	if (t->opts.follow)
		session__prune_tgids(t->session);
	if (!err && t->opts.only_added && cnt)
		err = scan_added(t, tasks, cnt, tgids, tgid_cnt, time_ns);
	for (size_t i = 0; !err && !t->opts.only_added && i < cnt; i++)
		err = scan_task(t, &tasks[i], time_ns);
	if (!err)
		end_unseen(t, time_ns);
	free(tasks);
	return err;
}

int targets__choose(struct targets *t, const struct bpfprof_task *task, uint64_t scanned_ns,
		    uint32_t chosen)
{
	uint32_t proc = add_task(t, task, scanned_ns);
	struct target_note *note = proc == PROCS_NONE ? NULL : targets__note(t, proc);
	int err;

	if (!note)
		return -ENOMEM;
	if (chosen & 1U << BPFPROF_HEAP & ~note->chosen) {
		/* it may have ended by now: then there is nothing to be read, and nothing to be probed */
		if (!procs__peek(t->procs, proc)->known && !procs__read_maps(t->procs, proc, 0))
			mark_dirty(t, proc, util_monotonic_ns());
		/* allocations are many from the first moment on; else stacks are copied */
		err = code__load_all(t->code, proc);
		if (err == -ENOMEM)
			return err;
	}
	err = session__choose(t->session, task->key.tgid, task->key.start_ns, chosen);
	if (!err)
		note->chosen = chosen;
	return err;
}

int targets__remove(struct targets *t, uint32_t tgid)
{
	uint32_t proc = procs__find_live(t->procs, tgid);
	struct target_note *note;

	if (proc == PROCS_NONE)
		return -ESRCH;
	note = targets__note(t, proc);
	if (!note)
		return -ENOMEM;
	note->removed = true;
	session__remove_tgid(t->session, tgid,
			     procs__get(t->procs, proc)->start_ns ?:
				     session__tgid_start(t->session, tgid));
	procs__end(t->procs, proc);
	return 0;
}

bool targets__is_leaving(const struct targets *t, uint32_t tgid)
{
	size_t cnt;
	const uint32_t *ended = procs__ended(t->procs, &cnt);

	for (size_t i = 0; i < cnt; i++)
		if (procs__get(t->procs, ended[i])->tgid == tgid && ended[i] < t->note_cap &&
		    t->notes[ended[i]].removed)
			return true;
	return false;
}

const struct target_forks *targets__forks(const struct targets *t)
{
	return &t->forks;
}

uint64_t targets__events_lost(const struct targets *t)
{
	return t->events_lost;
}
