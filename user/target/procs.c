// SPDX-License-Identifier: BSD-2-Clause
/* The processes that are profiled and what code they have mapped, kept up to date by events. */
#include "target/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/util.h"
#include "target/beside.h"
#include "target/file_stat.h"
#include "target/objects.h"
#include "target/proc_maps.h"

#define BUCKETS 4096 /* a power of two */

struct entry {
	struct proc p;
	struct proc_space *space;
	uint64_t read_ns;  /* when its maps were last read from /proc; 0: never */
	uint32_t next;	   /* in the bucket of its tgid, youngest first */
	uint32_t ended_at; /* in procs.ended, where it has ended */
};

struct procs {
	char *proc_dir;
	struct entry *entries;
	size_t entry_cnt, entry_cap;
	uint32_t *unused;
	size_t unused_cnt, unused_cap;
	uint32_t *ended;
	size_t ended_cnt, ended_cap;
	uint32_t by_tgid[BUCKETS];
	struct proc_spaces spaces;
	uint64_t read_ns;
};

struct procs *procs__new(const char *proc_dir)
{
	struct procs *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->proc_dir = strdup(proc_dir);
	ps->spaces.files = proc_files__new();
	if (!ps->proc_dir || !ps->spaces.files) {
		procs__free(ps);
		errno = ENOMEM;
		return NULL;
	}
	memset(ps->by_tgid, 0xff, sizeof(ps->by_tgid));
	return ps;
}

void procs__free(struct procs *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->entry_cnt; i++)
		proc_space__put(&ps->spaces, ps->entries[i].space);
	proc_files__free(ps->spaces.files);
	free(ps->entries);
	free(ps->unused);
	free(ps->ended);
	free(ps->proc_dir);
	free(ps);
}

size_t procs__cnt(const struct procs *ps)
{
	return ps->entry_cnt;
}

const struct proc *procs__get(const struct procs *ps, uint32_t idx)
{
	return &ps->entries[idx].p;
}

const struct proc_file *procs__file(const struct procs *ps, uint32_t file)
{
	return proc_files__get(ps->spaces.files, file);
}

bool procs__lives(const struct procs *ps, uint32_t idx)
{
	const struct proc *p = &ps->entries[idx].p;

	return p->tgid && !p->kthread && p->to_ns == UINT64_MAX;
}

uint64_t procs__thread_cnt(const struct procs *ps)
{
	char path[4200], *buf, *s;
	uint64_t cnt = 0;
	size_t sz;

	for (size_t i = 0; i < ps->entry_cnt; i++) {
		const struct proc *p = &ps->entries[i].p;

		if (!procs__lives(ps, i))
			continue;
		snprintf(path, sizeof(path), "%s/%u/stat", ps->proc_dir, p->tgid);
		if (util_read_file(path, 4096, &buf, &sz))
			continue;
		s = strrchr(buf, ')');
		/* num_threads, proc(5) */
		for (int field = 2; s && field < 20; field++)
			s = strchr(s + 1, ' ');
		cnt += s ? strtoull(s, NULL, 10) : 0;
		free(buf);
	}
	return cnt;
}

/* ---- entries ---- */

static uint32_t *bucket_of(struct procs *ps, uint32_t tgid)
{
	return &ps->by_tgid[(tgid * 2654435761U) % BUCKETS];
}

/* Room for one more entry, and to note every one of them as unused or ended, so that this cannot
 * fail. 0 or -ENOMEM. */
static int reserve_entry(struct procs *ps)
{
	size_t need = ps->entry_cnt + 1;
	int err = util_reserve(&ps->entries, &ps->entry_cap, need, sizeof(*ps->entries));

	if (!err)
		err = util_reserve(&ps->unused, &ps->unused_cap, need, sizeof(*ps->unused));
	if (!err)
		err = util_reserve(&ps->ended, &ps->ended_cap, need, sizeof(*ps->ended));
	return err;
}

/* A new, living entry, with a space of which nothing is known or, if not NULL, that of another
 * one. PROCS_NONE with errno. */
static uint32_t make_entry(struct procs *ps, uint32_t tgid, uint64_t from_ns,
			   struct proc_space *shared)
{
	struct proc_space *space = shared ? proc_space__share(shared) : proc_space__new();
	uint32_t idx, *bucket = bucket_of(ps, tgid);
	struct proc *p;

	if (!space || (!ps->unused_cnt && reserve_entry(ps))) {
		proc_space__put(&ps->spaces, space);
		errno = ENOMEM;
		return PROCS_NONE;
	}
	idx = ps->unused_cnt ? ps->unused[--ps->unused_cnt] : ps->entry_cnt++;
	p = &ps->entries[idx].p;
	memset(p, 0, sizeof(*p));
	p->tgid = tgid;
	p->from_ns = from_ns;
	p->to_ns = UINT64_MAX;
	ps->entries[idx].space = space;
	ps->entries[idx].read_ns = 0;
	ps->entries[idx].next = *bucket;
	*bucket = idx;
	return idx;
}

static void end_entry(struct procs *ps, uint32_t idx, uint64_t time_ns)
{
	struct entry *e = &ps->entries[idx];

	if (e->p.to_ns == UINT64_MAX) {
		e->ended_at = ps->ended_cnt;
		ps->ended[ps->ended_cnt++] = idx;
	}
	e->p.to_ns = time_ns;
}

const uint32_t *procs__ended(const struct procs *ps, size_t *ret_cnt)
{
	*ret_cnt = ps->ended_cnt;
	return ps->ended;
}

void procs__remove(struct procs *ps, uint32_t idx)
{
	struct entry *e = &ps->entries[idx];
	uint32_t *at = bucket_of(ps, e->p.tgid), last;

	if (!e->p.tgid)
		return;
	while (*at != PROCS_NONE && *at != idx)
		at = &ps->entries[*at].next;
	if (*at == idx)
		*at = e->next;
	if (e->p.to_ns != UINT64_MAX) {
		last = ps->ended[--ps->ended_cnt];
		ps->ended[e->ended_at] = last;
		ps->entries[last].ended_at = e->ended_at;
	}
	proc_space__put(&ps->spaces, e->space);
	memset(e, 0, sizeof(*e));
	ps->unused[ps->unused_cnt++] = idx;
}

uint32_t procs__add(struct procs *ps, uint32_t tgid, uint32_t exec_id, uint64_t start_ns,
		    const char *comm, bool kthread, uint64_t time_ns)
{
	uint32_t idx = procs__find_live(ps, tgid);
	struct proc *p;

	if (idx != PROCS_NONE) {
		p = &ps->entries[idx].p;
		if ((p->start_ns && p->start_ns != start_ns) ||
		    (p->exec_known && p->exec_id != exec_id)) {
			end_entry(ps, idx, util_monotonic_ns());
			idx = PROCS_NONE;
		}
	}
	if (idx == PROCS_NONE)
		idx = make_entry(ps, tgid, 0, NULL);
	if (idx == PROCS_NONE)
		return PROCS_NONE;
	p = &ps->entries[idx].p;
	p->exec_id = exec_id;
	p->exec_known = true;
	p->start_ns = start_ns;
	p->kthread = kthread;
	p->scanned_ns = time_ns;
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	/* there is nothing to be read */
	if (kthread)
		ps->entries[idx].space->known = true;
	return idx;
}

void procs__end(struct procs *ps, uint32_t idx)
{
	end_entry(ps, idx, util_monotonic_ns());
}

uint32_t procs__find_live(const struct procs *ps, uint32_t tgid)
{
	uint32_t i = *bucket_of((struct procs *)ps, tgid);

	for (; i != PROCS_NONE; i = ps->entries[i].next)
		if (ps->entries[i].p.tgid == tgid && ps->entries[i].p.to_ns == UINT64_MAX)
			return i;
	return PROCS_NONE;
}

uint32_t procs__find(struct procs *ps, uint32_t tgid, uint32_t exec_id, uint64_t start_ns,
		     uint64_t time_ns)
{
	uint32_t i = *bucket_of(ps, tgid);
	bool replaced = false; /* by then another one had begun */

	for (; i != PROCS_NONE; i = ps->entries[i].next) {
		struct proc *p = &ps->entries[i].p;
		bool ended = replaced && time_ns >= p->to_ns;

		if (p->tgid != tgid)
			continue;
		replaced |= time_ns >= p->from_ns;
		if (p->start_ns && p->start_ns != start_ns)
			continue;
		if (p->exec_known && p->exec_id != exec_id)
			continue;
		/* a thread may still be sampled on its way out, when its end has been told */
		if ((!p->start_ns || !p->exec_known) && (time_ns < p->from_ns || ended))
			continue;
		p->start_ns = start_ns;
		p->exec_id = exec_id;
		p->exec_known = true;
		return i;
	}
	return PROCS_NONE;
}

bool procs__is_gone(const struct procs *ps, uint32_t idx)
{
	const struct proc *p = &ps->entries[idx].p;
	uint64_t start_ns;

	return proc_stat_start(ps->proc_dir, p->tgid, &start_ns) ||
	       (p->start_ns && start_ns / 10000000 != p->start_ns / 10000000);
}

/* ---- spaces ---- */

const struct proc_space *procs__peek(const struct procs *ps, uint32_t idx)
{
	static const struct proc_space none; /* of an entry that is free */
	const struct proc_space *s = ps->entries[idx].space;

	return s ? s : &none;
}

const struct proc_space *procs__space(const struct procs *ps, uint32_t idx)
{
	struct proc_space *s = ps->entries[idx].space;

	/* what lies unread is no change to whoever asks */
	if (s)
		proc_space__apply(&((struct procs *)ps)->spaces, s);
	return procs__peek(ps, idx);
}

const struct proc_map *procs__map_at(const struct procs *ps, uint32_t idx, uint64_t addr)
{
	return proc_space__at(procs__space(ps, idx), addr);
}

const struct proc_map *procs__map_from(const struct procs *ps, uint32_t idx, uint64_t addr)
{
	return proc_space__from(procs__space(ps, idx), addr);
}

const struct proc_map *procs__map_at_time(const struct procs *ps, uint32_t idx, uint64_t addr,
					  uint64_t time_ns)
{
	return proc_space__at_time(procs__space(ps, idx), addr, time_ns);
}

void procs__drop_retired(struct procs *ps, uint64_t before_ns)
{
	ps->spaces.before_ns = MAX(ps->spaces.before_ns, before_ns);
	for (size_t i = 0; ps->spaces.retired_cnt && i < ps->entry_cnt; i++)
		if (ps->entries[i].space)
			proc_space__drop_retired(&ps->spaces, ps->entries[i].space);
}

int procs__add_copy(struct procs *ps, uint32_t idx, const struct proc_map *piece)
{
	(void)procs__space(ps, idx);
	return proc_space__add_copy(&ps->spaces, &ps->entries[idx].space, piece);
}

void procs__judge_memory(struct procs *ps, uint32_t idx, uint64_t start, uint64_t end,
			 enum proc_map_copy copy)
{
	(void)procs__space(ps, idx);
	(void)proc_space__judge(&ps->spaces, &ps->entries[idx].space, start, end, copy);
}

int procs__drop_copy(struct procs *ps, uint32_t idx, uint64_t start, uint64_t end,
		     enum proc_map_copy copy)
{
	(void)procs__space(ps, idx);
	return proc_space__drop_copy(&ps->spaces, &ps->entries[idx].space, start, end, copy);
}

/* ---- reading maps ---- */

/* All lines, into a space that is empty. 0 or -errno. */
static int read_lines(struct procs *ps, uint32_t tgid, uint32_t tid, struct proc_space *s)
{
	struct beside beside;
	struct proc_maps_reader r;
	struct proc_maps_line line;
	int err = proc_maps_open(&r, ps->proc_dir, tgid, tid);

	if (err)
		return err;
	beside__init(&beside);
	while ((err = proc_maps_next(&r, &line)) > 0) {
		err = proc_space__add_line(&ps->spaces, s, &beside, &line);
		if (err)
			break;
	}
	proc_maps_close(&r);
	return err;
}

int procs__read_maps(struct procs *ps, uint32_t idx, uint32_t tid)
{
	const struct proc *p = &ps->entries[idx].p;
	struct proc_space *fresh;
	uint64_t now;
	int err;

	/* an entry that has ended by an exec: what /proc shows now is its successor's */
	if (p->to_ns != UINT64_MAX)
		return -ESRCH;
	fresh = proc_space__new();
	if (!fresh)
		return -ENOMEM;
	err = read_lines(ps, p->tgid, tid, fresh);
	now = util_monotonic_ns();
	/* asked afterwards: what was read belongs to the process if it is the same now */
	if (!err && procs__is_gone(ps, idx))
		err = -ESRCH;
	if (!err) {
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

/* ---- opening ---- */

/* Gets hold of a path that somebody else controls: nothing but a regular file, and without opening
 * it. */
static int open_regular(struct objects *o, const char *path, bool foreign, struct file_stat *ret_st)
{
	int fd = objects__open(o, path, foreign), err;

	if (fd < 0)
		return fd;
	err = file_stat_regular(fd, ret_st);
	if (err)
		close(fd);
	return err ? err : fd;
}

int procs__open(const struct procs *ps, struct objects *o, uint32_t idx, const struct proc_map *map)
{
	const struct proc *p = &ps->entries[idx].p;
	const struct proc_file *f = procs__file(ps, map->file);
	char path[PATH_MAX];
	struct file_stat st;
	int fd = -ENOENT;

	if (f->kind != PROC_FILE_REGULAR)
		return -ENOTSUP;
	/* the mapping itself: right whatever the path says, also for files that were deleted or
	 * replaced */
	snprintf(path, sizeof(path), "%s/%u/map_files/%" PRIx64 "-%" PRIx64, ps->proc_dir, p->tgid,
		 map->start, map->end);
	fd = open_regular(o, path, false, &st);
	if (fd == -ETIMEDOUT || (fd >= 0 && (!f->ino || st.ino == f->ino)))
		return fd;
	if (fd >= 0)
		close(fd);
	for (int root = 1; root >= 0; root--) {
		int n = root ? snprintf(path, sizeof(path), "%s/%u/root%s", ps->proc_dir, p->tgid,
					f->path) :
			       snprintf(path, sizeof(path), "%s", f->path);

		if (n < 0 || (size_t)n >= sizeof(path) || f->path[0] != '/')
			continue;
		fd = open_regular(o, path, true, &st);
		if (fd == -ETIMEDOUT)
			return fd;
		if (fd < 0)
			continue;
		if (f->build_id_sz || (st.ino == f->ino && st.dev == makedev(f->maj, f->min)))
			return fd;
		close(fd);
		fd = -ESTALE;
	}
	return fd;
}

int procs__open_memory(const struct procs *ps, uint32_t idx)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%u/mem", ps->proc_dir, ps->entries[idx].p.tgid);
	/* no file is opened, and the way there is the kernel's: nobody can keep us waiting */
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int procs__open_root(const struct procs *ps, struct objects *o, uint32_t idx)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%u/root", ps->proc_dir, ps->entries[idx].p.tgid);
	fd = objects__open(o, path, true);
	/* asked afterwards: what was opened belongs to the process if it is the same now */
	if (fd < 0 || !procs__is_gone(ps, idx))
		return fd == -ENOENT ? -ESRCH : fd;
	close(fd);
	return -ESRCH;
}

int procs__ids(const struct procs *ps, uint32_t idx, struct proc_ids *ret)
{
	return proc_status_ids(ps->proc_dir, ps->entries[idx].p.tgid, ret);
}

/* ---- events ---- */

/* The living entry of a process that an event names, made if it was not known. */
static uint32_t live(struct procs *ps, uint32_t tgid, uint64_t time_ns)
{
	uint32_t idx = procs__find_live(ps, tgid);

	return idx == PROCS_NONE ? make_entry(ps, tgid, time_ns, NULL) : idx;
}

int procs__on_mmap(struct procs *ps, uint32_t tgid, uint64_t time_ns, uint64_t start, uint64_t len,
		   uint64_t offset, const struct proc_file *file)
{
	struct map_record r = {
		.time_ns = time_ns, .start = start, .len = len, .offset = offset, .file = *file
	};
	uint32_t idx = live(ps, tgid, time_ns);
	struct entry *e;

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
		end_entry(ps, child_idx, time_ns);
	child_idx = make_entry(ps, tgid, time_ns, space);
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
		end_entry(ps, old_idx, time_ns);
		/* read when the exec had happened already: they are the new program's */
		if (time_ns < old->read_ns)
			proc_space__forget(&ps->spaces, old->space);
	}
	idx = make_entry(ps, tgid, time_ns, space);
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
	p->start_ns = old->p.start_ns;
	p->exec_id = old->p.exec_id + 1;
	p->exec_known = old->p.exec_known;
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
	p = &ps->entries[idx].p;
	p->leader_exited |= tid == tgid;
	if (p->thread_cnt ? !--p->thread_cnt : p->leader_exited && procs__is_gone(ps, idx))
		end_entry(ps, idx, time_ns);
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
