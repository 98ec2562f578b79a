// SPDX-License-Identifier: BSD-2-Clause
/* How processes change: by what the kernel tells of them, and by what /proc shows. */
#include "target/procs_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "target/beside.h"
#include "target/proc_maps.h"

/* ---- reading maps ---- */

/* All lines, or as many as are read of a process, into a space that is empty. 0 or -errno. */
static int read_lines(struct procs *ps, uint32_t tgid, uint32_t tid, struct proc_space *s,
		      bool *ret_cut)
{
	struct beside beside;
	struct proc_maps_reader r;
	struct proc_maps_line line;
	int err = proc_maps_open(&r, ps->proc_dir, tgid, tid, PROC_MAPS_MAX);

	if (err)
		return err;
	beside__init(&beside);
	while (!err && proc_maps_next(&r, &line))
		err = proc_space__add_line(&ps->spaces, s, &beside, &line);
	*ret_cut = r.cut;
	proc_maps_close(&r);
	return err;
}

int procs__read_maps(struct procs *ps, uint32_t idx, uint32_t tid)
{
	const struct proc *p = &ps->entries[idx].p;
	const struct rest_key program = { { p->tgid, p->start_ns } };
	struct proc_space *fresh;
	bool cut = false;
	uint64_t now;
	int err;

	/* an entry that has ended by an exec: what /proc shows now is its successor's */
	if (p->to_ns != UINT64_MAX)
		return -ESRCH;
	if (rests__has(&ps->large, program))
		return -ETIMEDOUT;
	fresh = proc_space__new();
	if (!fresh)
		return -ENOMEM;
	err = read_lines(ps, p->tgid, tid, fresh, &cut);
	fresh->cut_cnt += cut;
	now = util_monotonic_ns();
	/* asked afterwards: what was read belongs to the process if it is the same now */
	if (!err && procs__is_gone(ps, idx))
		err = -ESRCH;
	if (!err) {
		/* it takes a while, and will be as much the next time */
		if (cut)
			rests__begin(&ps->large, program);
		ps->read_ns = ps->entries[idx].read_ns = now;
		err = proc_space__merge(&ps->spaces, &ps->entries[idx].space, fresh, now);
	}
	proc_space__put(&ps->spaces, fresh);
	return err;
}

uint64_t procs__read_ns(const struct procs *ps)
{
	return ps->read_ns;
}

/* ---- events ---- */

static bool maps_nothing(const struct proc_space *s)
{
	return s->known && !s->map_cnt && !s->unread.sz;
}

uint32_t procs__find_mapping(struct procs *ps, uint32_t tgid)
{
	uint32_t idx = procs__newest(ps, tgid);
	struct proc *p = idx == PROCS_NONE ? NULL : &ps->entries[idx].p;

	if (!p || p->to_ns == UINT64_MAX)
		return idx;
	/* see procs__on_exit: that was not the end */
	if (p->kthread || !maps_nothing(ps->entries[idx].space))
		return PROCS_NONE;
	procs__revive(ps, idx);
	p->thread_cnt = 1;
	p->leader_exited = false;
	return idx;
}

int procs__on_mmap(struct procs *ps, uint32_t tgid, uint64_t time_ns, uint64_t start, uint64_t len,
		   uint64_t offset, const struct proc_file *file)
{
	struct map_record r = {
		.time_ns = time_ns, .start = start, .len = len, .offset = offset, .file = *file
	};
	uint32_t idx = procs__find_mapping(ps, tgid);
	struct entry *e;

	if (idx == PROCS_NONE)
		idx = procs__make(ps, tgid, time_ns, NULL);
	if (idx == PROCS_NONE)
		return -ENOMEM;
	e = &ps->entries[idx];
	return proc_space__on_record(&ps->spaces, &e->space, &r, time_ns < e->read_ns);
}

static int on_new_thread(struct procs *ps, uint32_t tgid)
{
	uint32_t idx = procs__find_live(ps, tgid);

	if (idx != PROCS_NONE && ps->entries[idx].p.thread_cnt)
		ps->entries[idx].p.thread_cnt++;
	return 0;
}

/* A scan has met the process after that: its space, known from an event, is this one. */
static void set_space(struct procs *ps, uint32_t idx, struct proc_space *space)
{
	proc_space__put(&ps->spaces, ps->entries[idx].space);
	ps->entries[idx].space = space;
}

/* The space that a child of the process begins with, NULL if that is not known. */
static struct proc_space *to_inherit(struct procs *ps, uint32_t parent_idx)
{
	if (parent_idx == PROCS_NONE)
		return NULL;
	/* the child may have ended when it is to be read */
	if (!ps->entries[parent_idx].space->known)
		(void)procs__read_maps(ps, parent_idx, 0);
	return ps->entries[parent_idx].space;
}

int procs__on_fork(struct procs *ps, uint32_t tgid, uint32_t parent, uint64_t time_ns)
{
	uint32_t child_idx, parent_idx;
	struct proc *child, *from;
	struct proc_space *space;

	if (tgid == parent)
		return on_new_thread(ps, tgid);
	child_idx = procs__find_live(ps, tgid);
	parent_idx = procs__find_live(ps, parent);
	space = to_inherit(ps, parent_idx);
	if (child_idx != PROCS_NONE && time_ns < ps->entries[child_idx].p.scanned_ns) {
		if (space && !ps->entries[child_idx].space->known)
			set_space(ps, child_idx, proc_space__share(space));
		ps->entries[child_idx].p.thread_cnt = 1;
		return 0;
	}
	/* whoever had the number before is gone */
	if (child_idx != PROCS_NONE)
		procs__end_at(ps, child_idx, time_ns);
	child_idx = procs__make(ps, tgid, time_ns, space);
	if (child_idx == PROCS_NONE)
		return -ENOMEM;
	child = &ps->entries[child_idx].p;
	child->thread_cnt = 1;
	if (parent_idx == PROCS_NONE)
		return 0;
	from = &ps->entries[parent_idx].p;
	memcpy(child->comm, from->comm, sizeof(child->comm));
	child->exec_id = from->exec_id;
	child->exec_known = from->exec_known;
	return 0;
}

/* Of a program that begins: everything that it maps arrives as an event. NULL: out of memory. */
static struct proc_space *new_program(void)
{
	struct proc_space *s = proc_space__new();

	if (!s)
		return NULL;
	s->known = true;
	s->since_ns = 0;
	return s;
}

int procs__on_exec(struct procs *ps, uint32_t tgid, uint64_t time_ns, const char *comm)
{
	uint32_t old_idx = procs__find_live(ps, tgid), idx;
	struct entry *old = old_idx == PROCS_NONE ? NULL : &ps->entries[old_idx];
	struct proc_space *space = new_program();
	struct proc *p;

	if (!space)
		return -ENOMEM;
	if (old && time_ns < old->p.scanned_ns) {
		if (time_ns >= old->read_ns)
			set_space(ps, old_idx, proc_space__share(space));
		proc_space__put(&ps->spaces, space);
		old->p.thread_cnt = 1;
		return 0;
	}
	if (old) {
		procs__end_at(ps, old_idx, time_ns);
		/* read when the exec had happened already: they are the new program's */
		if (time_ns < old->read_ns)
			proc_space__forget(&ps->spaces, old->space);
	}
	idx = procs__make(ps, tgid, time_ns, space);
	proc_space__put(&ps->spaces, space);
	if (idx == PROCS_NONE)
		return -ENOMEM;
	p = &ps->entries[idx].p;
	/* its other threads have ended */
	p->thread_cnt = 1;
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	if (old_idx == PROCS_NONE)
		return 0;
	old = &ps->entries[old_idx];
	p->by_exec = true;
	p->start_ns = old->p.start_ns;
	/* the end of the one before was told first (de_thread in fs/exec.c) */
	p->by_thread = old->p.leader_exited;
	p->exec_id = old->p.exec_id + 1;
	/* a scan that was under way may have counted this exec */
	p->exec_known = old->p.exec_known && !(old->p.scanned_ns && time_ns < old->p.met_ns);
	return 0;
}

void procs__on_comm(struct procs *ps, uint32_t tgid, uint32_t tid, const char *comm)
{
	uint32_t idx = procs__find_live(ps, tgid);

	if (idx != PROCS_NONE && tid == tgid)
		snprintf(ps->entries[idx].p.comm, sizeof(ps->entries[idx].p.comm), "%s", comm);
}

void procs__on_exit(struct procs *ps, uint32_t tgid, uint32_t tid, uint64_t time_ns)
{
	uint32_t idx = procs__find_live(ps, tgid);
	struct proc *p;

	if (idx == PROCS_NONE)
		return;
	/* an exec that changes the credentials tells of an exit as well, before anything is mapped
	 * (begin_new_exec in fs/exec.c). If the process has ended by now, only what follows tells the two
	 * apart: see procs__find_mapping */
	if (maps_nothing(ps->entries[idx].space) && !procs__is_gone(ps, idx))
		return;
	p = &ps->entries[idx].p;
	p->leader_exited |= tid == tgid;
	if (p->thread_cnt ? !--p->thread_cnt : p->leader_exited && procs__is_gone(ps, idx))
		procs__end_at(ps, idx, time_ns);
}

void procs__on_lost(struct procs *ps)
{
	for (size_t i = 0; i < ps->entry_cnt; i++) {
		struct proc *p = &ps->entries[i].p;

		if (!p->tgid || p->to_ns != UINT64_MAX || p->kthread)
			continue;
		p->thread_cnt = 0;
		proc_space__doubt(ps->entries[i].space);
	}
}
