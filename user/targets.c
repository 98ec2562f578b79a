// SPDX-License-Identifier: BSD-2-Clause
/* The processes that are collected, by scans and events. */
#include <linux/types.h>

#include "targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bpfprof.h"
#include "code.h"
#include "kernel/events.h"
#include "kernel/session.h"
#include "target/procs.h"

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
	uint64_t events_lost;
	uint64_t forks;		 /* of processes that are no targets */
	uint64_t next_rescan_ns; /* not before */
	bool rescan_wanted;
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
	return t;
}

void targets__free(struct targets *t)
{
	if (!t)
		return;
	free(t->notes);
	free(t);
}

struct target_note *targets__note(struct targets *t, uint32_t proc)
{
	if (util_reserve_zeroed(&t->notes, &t->note_cap, proc, sizeof(*t->notes)))
		return NULL;
	return &t->notes[proc];
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

uint32_t targets__find(struct targets *t, const struct bpfprof_rec *rec)
{
	const struct bpfprof_proc_key *key = &rec->proc;
	uint32_t proc = procs__find(t->procs, key->tgid, key->exec_id, key->start_ns, rec->time_ns);

	/* events were lost, or fell into the gap before the first scan: ask the kernel anew */
	if (proc == PROCS_NONE && rescan(t) == 0)
		proc = procs__find(t->procs, key->tgid, key->exec_id, key->start_ns, rec->time_ns);
	return proc;
}

/* ---- events ---- */

static void mark_dirty(struct targets *t, uint32_t tgid)
{
	uint32_t proc = procs__find_live(t->procs, tgid);
	struct target_note *note = proc == PROCS_NONE ? NULL : targets__note(t, proc);

	if (note) {
		note->dirty = true;
		note->fruitless = 0;
	}
}

static int apply(struct targets *t, const struct event *ev)
{
	struct proc_file file;
	int err;

	if (t->opts.only_added && ev->type != EVENT_LOST &&
	    procs__find_live(t->procs, ev->type == EVENT_FORK ? ev->ppid : ev->pid) == PROCS_NONE)
		return 0;
	switch (ev->type) {
	case EVENT_MMAP:
		file = (struct proc_file){ .path = (char *)ev->path,
					   .maj = ev->maj,
					   .min = ev->min,
					   .ino = ev->ino,
					   .build_id_sz = ev->build_id_sz };
		memcpy(file.build_id, ev->build_id, sizeof(file.build_id));
		if (ev->build_id_sz || ev->ino || ev->maj || ev->min)
			file.kind = PROC_FILE_REGULAR;
		else
			file.kind = strcmp(ev->path, "[vdso]") ? PROC_FILE_ANON : PROC_FILE_VDSO;
		err = procs__on_mmap(t->procs, ev->pid, ev->time_ns, ev->addr, ev->len, ev->pgoff,
				     &file);
		mark_dirty(t, ev->pid);
		return err;
	case EVENT_FORK:
		if (t->opts.only_added && !t->opts.follow) {
			t->forks += ev->pid != ev->ppid;
			return 0;
		}
		return procs__on_fork(t->procs, ev->pid, ev->ppid, ev->time_ns);
	case EVENT_EXEC:
		return procs__on_exec(t->procs, ev->pid, ev->time_ns, ev->comm);
	case EVENT_COMM:
		procs__on_comm(t->procs, ev->pid, ev->tid, ev->comm);
		return 0;
	case EVENT_EXIT:
		procs__on_exit(t->procs, ev->pid, ev->tid, ev->time_ns);
		return 0;
	case EVENT_LOST:
		t->events_lost++;
		return 0;
	}
	return 0;
}

int targets__read_events(struct targets *t, uint64_t until_ns)
{
	const struct event *events;
	size_t cnt;
	int err = events__read(t->events, until_ns, &events, &cnt);

	for (size_t i = 0; !err && i < cnt; i++) {
		t->rescan_wanted |= events[i].type == EVENT_LOST;
		err = apply(t, &events[i]);
	}
	if (!err && t->rescan_wanted)
		err = rescan(t);
	return err == -EAGAIN ? 0 : err;
}

void targets__tend(struct targets *t, bool keep_dead)
{
	uint64_t now = util_monotonic_ns();

	for (size_t i = 0; i < procs__cnt(t->procs); i++) {
		const struct proc *p = procs__get(t->procs, i);
		struct target_note *note;
		struct bpfprof_proc value;

		if (!p->tgid || !(note = targets__note(t, i)))
			continue;
		if (note->dirty && code__published(t->code, i, &value))
			(void)code__publish(t->code, i);
		note->dirty = false;
		/* of what has ended since, records may still wait */
		if (keep_dead)
			continue;
		if (p->retired_cnt)
			procs__drop_retired(t->procs, i, now - RETIRED_NS);
		/* its exit was told before it had left /proc */
		if (p->to_ns == UINT64_MAX && p->leader_exited)
			procs__on_exit(t->procs, p->tgid, p->tgid, now);
		if (p->to_ns == UINT64_MAX || ++note->dead_polls < 3)
			continue;
		if (t->opts.follow && procs__find_live(t->procs, p->tgid) == PROCS_NONE)
			session__remove_tgid(t->session, p->tgid);
		code__forget(t->code, i);
		procs__remove(t->procs, i);
		memset(note, 0, sizeof(*note));
	}
}

/* Is the task one of tgids, or a descendant of one? Tasks are in the order of their numbers, which
 * wrap. */
static bool in_tree(const struct bpfprof_task *tasks, size_t cnt, const struct bpfprof_task *task,
		    const uint32_t *tgids, size_t tgid_cnt, bool follow)
{
	for (int depth = 0; depth < 64; depth++) {
		const struct bpfprof_task *parent = NULL;

		for (size_t i = 0; i < tgid_cnt; i++)
			if (task->key.tgid == tgids[i])
				return true;
		for (size_t i = 0; follow && i < cnt && !parent; i++)
			if (tasks[i].key.tgid == task->ppid)
				parent = &tasks[i];
		if (!parent)
			return false;
		task = parent;
	}
	return false;
}

static int scan_task(struct targets *t, const struct bpfprof_task *task, uint64_t time_ns)
{
	char comm[BPFPROF_COMM_SZ];
	uint32_t proc;
	int err;

	memcpy(comm, task->comm, sizeof(comm));
	comm[sizeof(comm) - 1] = '\0';
	proc = procs__add(t->procs, task->key.tgid, task->key.exec_id, task->key.start_ns, comm,
			  task->kthread, time_ns);
	if (proc == PROCS_NONE)
		return -ENOMEM;
	if (t->opts.only_added) {
		err = session__add_tgid(t->session, task->key.tgid, task->key.start_ns);
		if (err)
			return err;
	}
	/* it may have ended by now: then its samples, if any, say so */
	if (!task->kthread)
		(void)procs__read_maps(t->procs, proc, 0);
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

int targets__scan(struct targets *t, const uint32_t *tgids, size_t tgid_cnt)
{
	uint64_t time_ns = util_monotonic_ns();
	struct bpfprof_task *tasks = NULL;
	uint32_t *roots = NULL;
	size_t cnt = 0, root_cnt = 0, root_cap = 0;
	int err = session__scan(t->session, &tasks, &cnt);

	/* children of whose start and end no event told */
	if (t->opts.follow)
		session__prune_tgids(t->session);
	/* later scans start from what is known */
	for (size_t i = 0; !err && t->opts.only_added && i < cnt + tgid_cnt; i++) {
		if (i < cnt && !known(t, &tasks[i]))
			continue;
		err = util_reserve(&roots, &root_cap, root_cnt + 1, sizeof(*roots));
		if (!err)
			roots[root_cnt++] = i < cnt ? tasks[i].key.tgid : tgids[i - cnt];
	}
	for (size_t i = 0; !err && i < cnt; i++)
		if (!t->opts.only_added ||
		    in_tree(tasks, cnt, &tasks[i], roots, root_cnt, t->opts.follow))
			err = scan_task(t, &tasks[i], time_ns);
	if (!err)
		end_unseen(t, time_ns);
	free(roots);
	free(tasks);
	return err;
}

uint64_t targets__forks(const struct targets *t)
{
	return t->forks;
}

uint64_t targets__events_lost(const struct targets *t)
{
	return t->events_lost;
}
