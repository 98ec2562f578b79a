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
#include "target/copy.h"
#include "target/file_stat.h"
#include "target/objects.h"
#include "target/proc_maps.h"

#define BUCKETS 4096 /* a power of two */

struct entry {
	struct proc p;
	uint32_t next; /* in the bucket of its tgid, youngest first */
};

struct file_entry {
	struct proc_file f;
	uint32_t next;
};

struct procs {
	char *proc_dir;
	struct entry *entries;
	size_t entry_cnt, entry_cap;
	uint32_t *unused;
	size_t unused_cnt, unused_cap;
	uint32_t by_tgid[BUCKETS];
	struct file_entry *files;
	size_t file_cnt, file_cap;
	uint32_t by_file[BUCKETS];
};

struct procs *procs__new(const char *proc_dir)
{
	struct procs *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->proc_dir = strdup(proc_dir);
	if (!ps->proc_dir) {
		free(ps);
		return NULL;
	}
	memset(ps->by_tgid, 0xff, sizeof(ps->by_tgid));
	memset(ps->by_file, 0xff, sizeof(ps->by_file));
	return ps;
}

void procs__free(struct procs *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->entry_cnt; i++) {
		free(ps->entries[i].p.maps);
		free(ps->entries[i].p.retired);
		free(ps->entries[i].p.beside);
	}
	for (size_t i = 0; i < ps->file_cnt; i++)
		free(ps->files[i].f.path);
	free(ps->entries);
	free(ps->unused);
	free(ps->files);
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
	return &ps->files[file].f;
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

/* A new, living entry. PROCS_NONE with errno. */
static uint32_t make_entry(struct procs *ps, uint32_t tgid, uint64_t from_ns)
{
	uint32_t idx, *bucket = bucket_of(ps, tgid);
	struct proc *p;
	int err;

	if (ps->unused_cnt) {
		idx = ps->unused[--ps->unused_cnt];
	} else {
		err = util_reserve(&ps->entries, &ps->entry_cap, ps->entry_cnt + 1,
				   sizeof(*ps->entries));
		/* room to note every entry as unused, so that removing one cannot fail */
		if (!err)
			err = util_reserve(&ps->unused, &ps->unused_cap, ps->entry_cnt + 1,
					   sizeof(*ps->unused));
		if (err) {
			errno = -err;
			return PROCS_NONE;
		}
		idx = ps->entry_cnt++;
	}
	p = &ps->entries[idx].p;
	memset(p, 0, sizeof(*p));
	p->tgid = tgid;
	p->from_ns = from_ns;
	p->to_ns = UINT64_MAX;
	p->gen = 1;
	ps->entries[idx].next = *bucket;
	*bucket = idx;
	return idx;
}

void procs__remove(struct procs *ps, uint32_t idx)
{
	struct proc *p = &ps->entries[idx].p;
	uint32_t *at = bucket_of(ps, p->tgid);

	if (!p->tgid)
		return;
	while (*at != PROCS_NONE && *at != idx)
		at = &ps->entries[*at].next;
	if (*at == idx)
		*at = ps->entries[idx].next;
	free(p->maps);
	free(p->retired);
	free(p->beside);
	memset(p, 0, sizeof(*p));
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
			p->to_ns = util_monotonic_ns();
			idx = PROCS_NONE;
		}
	}
	if (idx == PROCS_NONE)
		idx = make_entry(ps, tgid, 0);
	if (idx == PROCS_NONE)
		return PROCS_NONE;
	p = &ps->entries[idx].p;
	p->exec_id = exec_id;
	p->exec_known = true;
	p->start_ns = start_ns;
	p->kthread = kthread;
	p->scanned_ns = time_ns;
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	return idx;
}

void procs__end(struct procs *ps, uint32_t idx)
{
	ps->entries[idx].p.to_ns = util_monotonic_ns();
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

	for (; i != PROCS_NONE; i = ps->entries[i].next) {
		struct proc *p = &ps->entries[i].p;

		if (p->tgid != tgid)
			continue;
		if (p->start_ns && p->start_ns != start_ns)
			continue;
		if (p->exec_known && p->exec_id != exec_id)
			continue;
		if ((!p->start_ns || !p->exec_known) &&
		    (time_ns < p->from_ns || time_ns >= p->to_ns))
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

/* ---- files ---- */

bool proc_file_is_memory(const struct proc_file *f)
{
	static const char *const begins[] = { "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV" };

	if (f->kind != PROC_FILE_REGULAR)
		return f->kind == PROC_FILE_ANON;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(f->path, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static uint32_t intern_file(struct procs *ps, const struct proc_file *f)
{
	uint64_t hash = util_hash(f->path, strlen(f->path), f->ino ^ f->build_id_sz);
	uint32_t *bucket = &ps->by_file[hash % BUCKETS], i;
	struct proc_file *copy;
	int err;

	for (i = *bucket; i != PROCS_NONE; i = ps->files[i].next) {
		const struct proc_file *o = &ps->files[i].f;

		if (o->kind == f->kind && o->ino == f->ino && o->maj == f->maj &&
		    o->min == f->min && o->build_id_sz == f->build_id_sz &&
		    !memcmp(o->build_id, f->build_id, f->build_id_sz) && !strcmp(o->path, f->path))
			return i;
	}
	err = util_reserve(&ps->files, &ps->file_cap, ps->file_cnt + 1, sizeof(*ps->files));
	if (err)
		return PROCS_NONE;
	copy = &ps->files[ps->file_cnt].f;
	*copy = *f;
	copy->path = strdup(f->path);
	if (!copy->path)
		return PROCS_NONE;
	ps->files[ps->file_cnt].next = *bucket;
	*bucket = ps->file_cnt;
	return ps->file_cnt++;
}

/* ---- mappings ---- */

/* Index of the first range that ends behind addr. */
static size_t map_index(const struct proc *p, uint64_t addr)
{
	size_t lo = 0, hi = p->map_cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->maps[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct proc_map *procs__map_at(const struct procs *ps, uint32_t idx, uint64_t addr)
{
	const struct proc *p = &ps->entries[idx].p;
	size_t i = map_index(p, addr);

	return i < p->map_cnt && p->maps[i].start <= addr ? &p->maps[i] : NULL;
}

const struct proc_map *procs__map_from(const struct procs *ps, uint32_t idx, uint64_t addr)
{
	const struct proc *p = &ps->entries[idx].p;
	size_t i = map_index(p, addr);

	return i < p->map_cnt ? &p->maps[i] : NULL;
}

const struct proc_map *procs__map_at_time(const struct procs *ps, uint32_t idx, uint64_t addr,
					  uint64_t time_ns)
{
	const struct proc *p = &ps->entries[idx].p;
	const struct proc_retired *best = NULL;

	for (size_t i = 0; i < p->retired_cnt; i++) {
		const struct proc_retired *r = &p->retired[i];

		if (time_ns < r->to_ns && addr >= r->map.start && addr < r->map.end &&
		    (!best || r->to_ns < best->to_ns))
			best = r;
	}
	return best ? &best->map : procs__map_at(ps, idx, addr);
}

void procs__drop_retired(struct procs *ps, uint32_t idx, uint64_t before_ns)
{
	struct proc *p = &ps->entries[idx].p;
	size_t n = 0;

	for (size_t i = 0; i < p->retired_cnt; i++)
		if (p->retired[i].to_ns >= before_ns)
			p->retired[n++] = p->retired[i];
	p->retired_cnt = n;
}

static bool same_meaning(const struct proc_map *a, const struct proc_map *b)
{
	return a->file == b->file && a->start - a->offset == b->start - b->offset;
}

/* Takes [start, end) out of the ranges, splitting those at its edges. Leaves room for one more. */
static int cut_range(struct proc *p, uint64_t start, uint64_t end)
{
	size_t i = map_index(p, start), j;
	struct proc_map tail;
	int err = util_reserve(&p->maps, &p->map_cap, p->map_cnt + 3, sizeof(*p->maps));

	if (err)
		return err;
	if (i < p->map_cnt && p->maps[i].start < start) {
		tail = p->maps[i];
		p->maps[i].end = start;
		i++;
		/* at the limit the rest is forgotten: no name is better than a wrong one */
		if (tail.end > end && p->map_cnt >= PROCS_MAX_MAPS) {
			p->cut_cnt++;
			return 0;
		}
		if (tail.end > end) {
			tail.offset += end - tail.start;
			tail.start = end;
			memmove(&p->maps[i + 1], &p->maps[i], (p->map_cnt - i) * sizeof(*p->maps));
			p->maps[i] = tail;
			p->map_cnt++;
			return 0;
		}
	}
	for (j = i; j < p->map_cnt && p->maps[j].end <= end; j++)
		;
	if (j < p->map_cnt && p->maps[j].start < end) {
		p->maps[j].offset += end - p->maps[j].start;
		p->maps[j].start = end;
	}
	memmove(&p->maps[i], &p->maps[j], (p->map_cnt - j) * sizeof(*p->maps));
	p->map_cnt -= j - i;
	return 0;
}

/* Memory without a file: /proc and the events describe it differently, and it means the same
 * wherever it lies. */
static void make_anon(struct proc_map *m, struct proc_file *f)
{
	m->offset = m->start;
	*f = (struct proc_file){ .kind = PROC_FILE_ANON, .path = (char *)"" };
}

/* What was a copy is memory: what is left of it to be compared is no more. */
static int forget_copy(struct procs *ps, struct proc_map *m)
{
	struct proc_file f;

	make_anon(m, &f);
	m->file = intern_file(ps, &f);
	return m->file == PROCS_NONE ? -ENOMEM : 0;
}

static int retire(struct procs *ps, struct proc *p, const struct proc_map *m, uint64_t time_ns)
{
	struct proc_retired r = { .map = *m, .to_ns = time_ns };
	int err =
		util_reserve(&p->retired, &p->retired_cap, p->retired_cnt + 1, sizeof(*p->retired));

	if (!err && m->copy == PROC_MAP_COPY)
		err = forget_copy(ps, &r.map);
	r.map.copy = PROC_MAP_AS_IS;
	if (!err)
		p->retired[p->retired_cnt++] = r;
	return err;
}

/* time_ns: when the range came to be, 0 if that does not matter because nothing was known before.
 */
static int add_range(struct procs *ps, struct proc *p, const struct proc_map *m, uint64_t time_ns)
{
	bool changed = false;
	size_t i;
	int err = 0;

	for (i = map_index(p, m->start); i < p->map_cnt && p->maps[i].start < m->end; i++) {
		if (same_meaning(&p->maps[i], m) && p->maps[i].start <= m->start &&
		    p->maps[i].end >= m->end)
			return 0;
		if (same_meaning(&p->maps[i], m) || !time_ns)
			continue;
		changed = true;
		err = retire(ps, p, &p->maps[i], time_ns);
		if (err)
			return err;
	}
	p->gen += changed;
	err = cut_range(p, m->start, m->end);
	if (err)
		return err;
	if (p->map_cnt >= PROCS_MAX_MAPS) {
		p->cut_cnt++;
		return 0;
	}
	i = map_index(p, m->start);
	memmove(&p->maps[i + 1], &p->maps[i], (p->map_cnt - i) * sizeof(*p->maps));
	p->maps[i] = *m;
	p->map_cnt++;
	return 0;
}

/* ---- copies of code ---- */

/* Remembers what maps a file; what is too much is left out. */
static int add_beside(struct proc *p, const struct proc_map *m)
{
	struct proc_map file = *m;

	file.copy = PROC_MAP_AS_IS;
	for (size_t i = 0; i < p->beside_cnt; i++)
		if (!memcmp(&p->beside[i], &file, sizeof(file)))
			return 0;
	if (p->beside_cnt >= PROCS_MAX_BESIDE)
		return 0;
	if (util_reserve(&p->beside, &p->beside_cap, p->beside_cnt + 1, sizeof(*p->beside)))
		return -ENOMEM;
	p->beside[p->beside_cnt++] = file;
	return 0;
}

/*
 * An event tells of a range: doubts whether it is a copy of the files' code that was there, and
 * whether what is no copy still is none. Where there may be copies, memory that is large enough may
 * be another one.
 */
static int doubt(struct procs *ps, struct proc *p, struct proc_map *m)
{
	int err = 0;

	for (size_t i = map_index(p, m->start); i < p->map_cnt && p->maps[i].start < m->end; i++) {
		struct proc_map *was = &p->maps[i];
		const struct proc_file *f = &ps->files[was->file].f;

		if (was->copy == PROC_MAP_NO_COPY || was->copy == PROC_MAP_UNREAD) {
			was->copy = m->copy = PROC_MAP_MAYBE_COPY;
		} else if (!err && f->kind == PROC_FILE_REGULAR && !proc_file_is_memory(f) &&
			   !same_meaning(was, m)) {
			m->copy = PROC_MAP_MAYBE_COPY;
			err = add_beside(p, was);
		}
	}
	if (p->beside_cnt && proc_file_is_memory(&ps->files[m->file].f) &&
	    m->end - m->start >= COPY_MIN_MOVED)
		m->copy = PROC_MAP_MAYBE_COPY;
	return err;
}

/* Memory as maps tells of it, which does not tell that parts of it were found to be copies: these
 * stay. */
static int add_around_copies(struct procs *ps, struct proc *p, struct proc_map m, uint64_t time_ns)
{
	int err = 0;

	while (!err && m.start < m.end) {
		struct proc_map part = m;
		uint64_t next = m.end;

		for (size_t i = map_index(p, m.start); i < p->map_cnt && p->maps[i].start < m.end;
		     i++) {
			if (p->maps[i].copy != PROC_MAP_COPY)
				continue;
			part.end = MAX(p->maps[i].start, m.start);
			next = p->maps[i].end;
			break;
		}
		if (part.start < part.end)
			err = add_range(ps, p, &part, time_ns);
		m.offset += next - m.start;
		m.start = next;
	}
	return err;
}

int procs__add_copy(struct procs *ps, uint32_t idx, const struct proc_map *piece)
{
	struct proc *p = &ps->entries[idx].p;
	struct proc_map m = *piece;

	m.copy = PROC_MAP_COPY;
	p->has_copies = true;
	p->gen++;
	return add_range(ps, p, &m, 0);
}

void procs__judge_memory(struct procs *ps, uint32_t idx, uint64_t start, uint64_t end,
			 enum proc_map_copy copy)
{
	struct proc *p = &ps->entries[idx].p;

	for (size_t i = map_index(p, start); i < p->map_cnt && p->maps[i].start < end; i++)
		if (p->maps[i].copy != PROC_MAP_COPY)
			p->maps[i].copy = copy;
}

int procs__drop_copy(struct procs *ps, uint32_t idx, uint64_t start, uint64_t end,
		     enum proc_map_copy copy)
{
	struct proc *p = &ps->entries[idx].p;
	struct proc_map m = { .start = start, .end = end, .copy = copy };

	p->gen++;
	return forget_copy(ps, &m) ? -ENOMEM : add_range(ps, p, &m, 0);
}

/* ---- reading maps ---- */

/* What a line of maps, and those before it, say of copies. */
static int note_beside(struct procs *ps, struct proc *p, struct beside *beside,
		       const struct proc_maps_line *line)
{
	struct beside_found found;
	struct proc_map m = {};

	beside__take(beside, line, &found);
	if (found.doubtful) {
		size_t i = map_index(p, found.doubtful);

		if (i < p->map_cnt)
			p->maps[i].copy = PROC_MAP_MAYBE_COPY;
	}
	if (!found.file)
		return 0;
	m.start = found.file->start;
	m.end = found.file->end;
	m.offset = found.file->offset;
	m.file = intern_file(ps, &found.file->file);
	return m.file == PROCS_NONE ? -ENOMEM : add_beside(p, &m);
}

/* A line of maps, as a range of the process if it is code. */
static int add_line(struct procs *ps, struct proc *p, struct proc_maps_line *line)
{
	struct proc_map m = { .start = line->start, .end = line->end, .offset = line->offset };

	if (!line->exec)
		return 0;
	if (proc_file_is_memory(&line->file))
		m.copy = PROC_MAP_MAYBE_COPY;
	if (line->file.kind == PROC_FILE_ANON)
		make_anon(&m, &line->file);
	m.file = intern_file(ps, &line->file);
	return m.file == PROCS_NONE ? -ENOMEM : add_range(ps, p, &m, 0);
}

/* All lines. 0 or -errno. */
static int read_lines(struct procs *ps, struct proc *p, uint32_t tid)
{
	struct beside beside;
	struct proc_maps_reader r;
	struct proc_maps_line line;
	int err = proc_maps_open(&r, ps->proc_dir, p->tgid, tid);

	if (err)
		return err;
	beside__init(&beside);
	while ((err = proc_maps_next(&r, &line)) > 0) {
		err = add_line(ps, p, &line);
		if (!err)
			err = note_beside(ps, p, &beside, &line);
		if (err)
			break;
	}
	proc_maps_close(&r);
	return err;
}

int procs__read_maps(struct procs *ps, uint32_t idx, uint32_t tid)
{
	struct proc fresh = ps->entries[idx].p, *p;
	uint64_t now;
	int err;

	/* an entry that has ended by an exec: what /proc shows now is its successor's */
	if (fresh.to_ns != UINT64_MAX)
		return -ESRCH;
	fresh.maps = fresh.beside = NULL;
	fresh.map_cnt = fresh.map_cap = fresh.cut_cnt = 0;
	fresh.beside_cnt = fresh.beside_cap = 0;
	fresh.retired = NULL;
	fresh.retired_cnt = fresh.retired_cap = 0;
	err = read_lines(ps, &fresh, tid);
	now = util_monotonic_ns();
	/* asked afterwards: what was read belongs to the process if it is the same now */
	if (!err && procs__is_gone(ps, idx))
		err = -ESRCH;
	if (err) {
		free(fresh.maps);
		free(fresh.beside);
		return err;
	}
	/* ranges that vanished since are kept: samples from them may still arrive, and their
	 * addresses mean nothing else */
	p = &ps->entries[idx].p;
	p->cut_cnt = fresh.cut_cnt;
	for (size_t i = 0; i < fresh.map_cnt && !err; i++)
		err = fresh.maps[i].copy ? add_around_copies(ps, p, fresh.maps[i], now) :
					   add_range(ps, p, &fresh.maps[i], now);
	p->maps_known = true;
	p->read_ns = now;
	free(fresh.maps);
	free(p->beside);
	p->beside = fresh.beside;
	p->beside_cnt = fresh.beside_cnt;
	p->beside_cap = fresh.beside_cap;
	return err;
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
	const struct proc_file *f = &ps->files[map->file].f;
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
static struct proc *live(struct procs *ps, uint32_t tgid, uint64_t time_ns)
{
	uint32_t idx = procs__find_live(ps, tgid);

	if (idx == PROCS_NONE)
		idx = make_entry(ps, tgid, time_ns);
	return idx == PROCS_NONE ? NULL : &ps->entries[idx].p;
}

int procs__on_mmap(struct procs *ps, uint32_t tgid, uint64_t time_ns, uint64_t start, uint64_t len,
		   uint64_t offset, const struct proc_file *file)
{
	struct proc *p = live(ps, tgid, time_ns);
	struct proc_map m = { .start = start, .end = start + len, .offset = offset };
	struct proc_file f = *file;
	int err;

	if (!p)
		return -ENOMEM;
	if (m.end <= m.start)
		return 0;
	if (file->kind == PROC_FILE_ANON)
		make_anon(&m, &f);
	m.file = intern_file(ps, &f);
	err = m.file == PROCS_NONE ? -ENOMEM : doubt(ps, p, &m);
	return err ? err : add_range(ps, p, &m, time_ns);
}

int procs__on_fork(struct procs *ps, uint32_t tgid, uint32_t parent, uint64_t time_ns)
{
	uint32_t child_idx, parent_idx;
	struct proc *child, *from;

	if (tgid == parent)
		return 0;
	/* whoever had the number before is gone */
	child_idx = procs__find_live(ps, tgid);
	if (child_idx != PROCS_NONE && time_ns < ps->entries[child_idx].p.scanned_ns)
		return 0;
	if (child_idx != PROCS_NONE)
		ps->entries[child_idx].p.to_ns = time_ns;
	parent_idx = procs__find_live(ps, parent);
	child_idx = make_entry(ps, tgid, time_ns);
	if (child_idx == PROCS_NONE)
		return -ENOMEM;
	if (parent_idx == PROCS_NONE)
		return 0;
	child = &ps->entries[child_idx].p;
	from = &ps->entries[parent_idx].p;
	memcpy(child->comm, from->comm, sizeof(child->comm));
	child->exec_id = from->exec_id;
	child->exec_known = from->exec_known;
	if (util_reserve(&child->maps, &child->map_cap, from->map_cnt, sizeof(*child->maps)))
		return -ENOMEM;
	if (from->map_cnt)
		memcpy(child->maps, from->maps, from->map_cnt * sizeof(*child->maps));
	child->map_cnt = from->map_cnt;
	child->cut_cnt = from->cut_cnt;
	child->maps_known = from->maps_known;
	child->has_copies = from->has_copies;
	if (util_reserve(&child->beside, &child->beside_cap, from->beside_cnt,
			 sizeof(*child->beside)))
		return -ENOMEM;
	if (from->beside_cnt)
		memcpy(child->beside, from->beside, from->beside_cnt * sizeof(*child->beside));
	child->beside_cnt = from->beside_cnt;
	return 0;
}

int procs__on_exec(struct procs *ps, uint32_t tgid, uint64_t time_ns, const char *comm)
{
	uint32_t old = procs__find_live(ps, tgid), idx;
	struct proc *p;

	if (old != PROCS_NONE && time_ns < ps->entries[old].p.scanned_ns)
		return 0;
	if (old != PROCS_NONE) {
		p = &ps->entries[old].p;
		p->to_ns = time_ns;
		/* read when the exec had happened already: they are the new program's */
		if (time_ns < p->read_ns) {
			p->map_cnt = 0;
			p->maps_known = false;
		}
	}
	idx = make_entry(ps, tgid, time_ns);
	if (idx == PROCS_NONE)
		return -ENOMEM;
	p = &ps->entries[idx].p;
	if (old != PROCS_NONE) {
		p->start_ns = ps->entries[old].p.start_ns;
		p->exec_id = ps->entries[old].p.exec_id + 1;
		p->exec_known = ps->entries[old].p.exec_known;
	}
	/* everything it maps from here on arrives as an event */
	p->maps_known = true;
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
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

	if (idx == PROCS_NONE)
		return;
	if (tid == tgid)
		ps->entries[idx].p.leader_exited = true;
	if (ps->entries[idx].p.leader_exited && procs__is_gone(ps, idx))
		ps->entries[idx].p.to_ns = time_ns;
}
