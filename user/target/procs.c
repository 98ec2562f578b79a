// SPDX-License-Identifier: BSD-2-Clause
/* The processes that are profiled and what code they have mapped, kept up to date by events. */
#include "target/procs_parts.h"

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
#include "target/file_stat.h"
#include "target/objects.h"
#include "target/proc_maps.h"
#include "target/proc_text.h"

/* It may be another namespace's, or made up. */
static bool has_own_numbers(const char *proc_dir)
{
	char path[PATH_MAX], own[32], text[32];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/self", proc_dir);
	n = readlink(path, text, sizeof(text));
	return n == snprintf(own, sizeof(own), "%d", (int)getpid()) && !memcmp(text, own, n);
}

struct procs *procs__new(const char *proc_dir)
{
	struct procs *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->own_numbers = has_own_numbers(proc_dir);
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

void procs__ref_file(struct procs *ps, uint32_t file)
{
	proc_files__ref(ps->spaces.files, file);
}

void procs__unref_file(struct procs *ps, uint32_t file)
{
	proc_files__unref(ps->spaces.files, file);
}

void procs__on_rewritten(struct procs *ps, proc_files_rewritten_fn *ask, void *ctx)
{
	proc_files__on_rewritten(ps->spaces.files, ask, ctx);
}

size_t procs__file_cnt(const struct procs *ps)
{
	return proc_files__cnt(ps->spaces.files);
}

int procs__release_files(struct procs *ps, bool (*let_go)(void *ctx, uint32_t file), void *ctx)
{
	struct proc_files *files = ps->spaces.files;
	size_t end = proc_files__end(files);
	bool *mapped = calloc(end + 1, sizeof(*mapped));

	if (!mapped)
		return -ENOMEM;
	for (size_t i = 0; i < ps->entry_cnt; i++)
		if (ps->entries[i].space)
			proc_space__mark_files(ps->entries[i].space, mapped);
	for (size_t i = 0; i < end; i++) {
		if (!mapped[i] && proc_files__is_free_of_refs(files, (uint32_t)i) &&
		    let_go(ctx, (uint32_t)i))
			proc_files__remove(files, (uint32_t)i);
	}
	free(mapped);
	return 0;
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
		if (proc_text_read(path, 4096, &buf, &sz))
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
	return &ps->by_tgid[(tgid * 2654435761U) % PROCS_BUCKETS];
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

uint32_t procs__make(struct procs *ps, uint32_t tgid, uint64_t from_ns, struct proc_space *shared)
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

void procs__end_at(struct procs *ps, uint32_t idx, uint64_t time_ns)
{
	struct entry *e = &ps->entries[idx];

	if (e->p.to_ns == UINT64_MAX) {
		e->ended_at = ps->ended_cnt;
		ps->ended[ps->ended_cnt++] = idx;
	}
	e->p.to_ns = time_ns;
}

void procs__revive(struct procs *ps, uint32_t idx)
{
	struct entry *e = &ps->entries[idx];
	uint32_t last = ps->ended[--ps->ended_cnt];

	ps->ended[e->ended_at] = last;
	ps->entries[last].ended_at = e->ended_at;
	e->p.to_ns = UINT64_MAX;
}

const uint32_t *procs__ended(const struct procs *ps, size_t *ret_cnt)
{
	*ret_cnt = ps->ended_cnt;
	return ps->ended;
}

void procs__remove(struct procs *ps, uint32_t idx)
{
	struct entry *e = &ps->entries[idx];
	uint32_t *at = bucket_of(ps, e->p.tgid);

	if (!e->p.tgid)
		return;
	while (*at != PROCS_NONE && *at != idx)
		at = &ps->entries[*at].next;
	if (*at == idx)
		*at = e->next;
	if (e->p.to_ns != UINT64_MAX)
		procs__revive(ps, idx);
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
			procs__end_at(ps, idx, util_monotonic_ns());
			idx = PROCS_NONE;
		}
	}
	if (idx == PROCS_NONE)
		idx = procs__make(ps, tgid, 0, NULL);
	if (idx == PROCS_NONE)
		return PROCS_NONE;
	p = &ps->entries[idx].p;
	p->exec_id = exec_id;
	p->exec_known = true;
	p->start_ns = start_ns;
	p->kthread = kthread;
	p->scanned_ns = time_ns;
	p->met_ns = util_monotonic_ns();
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	/* there is nothing to be read */
	if (kthread)
		ps->entries[idx].space->known = true;
	return idx;
}

void procs__end(struct procs *ps, uint32_t idx)
{
	procs__end_at(ps, idx, util_monotonic_ns());
}

uint32_t procs__find_live(const struct procs *ps, uint32_t tgid)
{
	uint32_t i = *bucket_of((struct procs *)ps, tgid);

	for (; i != PROCS_NONE; i = ps->entries[i].next)
		if (ps->entries[i].p.tgid == tgid && ps->entries[i].p.to_ns == UINT64_MAX)
			return i;
	return PROCS_NONE;
}

uint32_t procs__newest(const struct procs *ps, uint32_t tgid)
{
	uint32_t i = *bucket_of((struct procs *)ps, tgid);

	while (i != PROCS_NONE && ps->entries[i].p.tgid != tgid)
		i = ps->entries[i].next;
	return i;
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
		/* the kernel tells of an exec before it counts it (begin_new_exec in fs/exec.c):
		 * what is sampled in between is the former program's */
		replaced |= time_ns >= p->from_ns &&
			    !(p->by_exec && p->exec_known && p->exec_id == exec_id + 1);
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

bool procs__has_number(const struct procs *ps, uint32_t tgid)
{
	uint64_t start_ns;

	if (ps->own_numbers)
		return getpgid((pid_t)tgid) >= 0 || errno != ESRCH;
	return proc_stat_start(ps->proc_dir, tgid, &start_ns) != -ESRCH;
}

bool procs__is_gone(const struct procs *ps, uint32_t idx)
{
	const struct proc *p = &ps->entries[idx].p;
	uint64_t start_ns;
	int err;

	/* most have gone when they are asked for, and /proc takes 20 times as long to say so */
	if (ps->own_numbers && getpgid((pid_t)p->tgid) < 0 && errno == ESRCH)
		return true;
	err = proc_stat_start(ps->proc_dir, p->tgid, &start_ns);
	/* it may be there and keep others waiting, or we lack what it takes to ask */
	if (err)
		return err == -ESRCH;
	return p->start_ns && start_ns / 10000000 != p->start_ns / 10000000;
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

/* ---- opening ---- */

/* Gets hold of a path that somebody else controls: nothing but a regular file, and without opening
 * it. */
static int open_regular(struct objects *o, const char *path, struct file_stat *ret_st)
{
	int fd = objects__open(o, path), err;

	if (fd < 0)
		return fd;
	err = file_stat_regular(fd, ret_st);
	if (err)
		close(fd);
	return err ? err : fd;
}

/*
 * The mapping itself: right whatever the path says, also for files that were deleted or replaced. To look for it
 * waits for the process's map of memory, which it can hold for as long as it likes, be it for this file or another:
 * -EAGAIN where it did so a moment ago.
 */
static int open_mapped(struct procs *ps, struct objects *o, const struct proc *p,
		       const struct proc_map *map, struct file_stat *ret_st)
{
	const struct rest_key program = { { p->tgid, p->start_ns } };
	char path[PATH_MAX];
	int fd;

	if (rests__has(&ps->silent, program))
		return -EAGAIN;
	snprintf(path, sizeof(path), "%s/%u/map_files/%" PRIx64 "-%" PRIx64, ps->proc_dir, p->tgid,
		 map->start, map->end);
	fd = open_regular(o, path, ret_st);
	if (fd != -ETIMEDOUT)
		return fd;
	rests__begin(&ps->silent, program);
	return -EAGAIN;
}

int procs__open(struct procs *ps, struct objects *o, uint32_t idx, const struct proc_map *map)
{
	const struct proc *p = &ps->entries[idx].p;
	const struct proc_file *f = procs__file(ps, map->file);
	char path[PATH_MAX];
	struct file_stat st;
	int fd = -ENOENT;
	bool unasked;

	if (f->kind != PROC_FILE_REGULAR)
		return -ENOTSUP;
	fd = open_mapped(ps, o, p, map, &st);
	if (fd >= 0 && (!f->ino || st.ino == f->ino))
		return fd;
	unasked = fd == -EAGAIN;
	if (fd >= 0)
		close(fd);
	for (int root = 1; root >= 0; root--) {
		int n = root ? snprintf(path, sizeof(path), "%s/%u/root%s", ps->proc_dir, p->tgid,
					f->path) :
			       snprintf(path, sizeof(path), "%s", f->path);

		if (n < 0 || (size_t)n >= sizeof(path) || f->path[0] != '/')
			continue;
		fd = open_regular(o, path, &st);
		if (fd == -ETIMEDOUT)
			return fd;
		if (fd < 0)
			continue;
		/* a file may be written over in its place once nobody maps it any more */
		if (f->build_id_sz ||
		    (st.ino == f->ino && st.dev == makedev(f->maj, f->min) &&
		     !(p->to_ns != UINT64_MAX && file_stat_written_since(&st, p->to_ns))))
			return fd;
		close(fd);
		fd = -ESTALE;
	}
	return unasked ? -EAGAIN : fd;
}

static int open_own(const struct procs *ps, uint32_t idx, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%u/%s", ps->proc_dir, ps->entries[idx].p.tgid, name);
	/* no file is opened, and the way there is the kernel's: nobody can keep us waiting. To open it waits for the
	 * end of an exec of that process, which a file system's server may withhold */
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int procs__open_memory(const struct procs *ps, uint32_t idx)
{
	return open_own(ps, idx, "mem");
}

int procs__open_environ(const struct procs *ps, uint32_t idx)
{
	return open_own(ps, idx, "environ");
}

int procs__find_contexts(const struct procs *ps, uint32_t idx,
			 uint64_t ret[static PROCESS_CONTEXT_PLACES], size_t *ret_sz)
{
	return process_context_find(ps->proc_dir, ps->entries[idx].p.tgid, ret, ret_sz);
}

int procs__open_root(const struct procs *ps, struct objects *o, uint32_t idx)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%u/root", ps->proc_dir, ps->entries[idx].p.tgid);
	fd = objects__open(o, path);
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
