// SPDX-License-Identifier: BSD-2-Clause
/* Which code is mapped where in a process. */
#include "target/proc_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/util.h"
#include "target/beside.h"
#include "target/copy.h"
#include "target/proc_maps.h"

/* ---- spaces ---- */

struct proc_space *proc_space__new(void)
{
	struct proc_space *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->refs = 1;
	s->gen = 1;
	s->since_ns = UINT64_MAX;
	return s;
}

struct proc_space *proc_space__share(struct proc_space *s)
{
	s->refs++;
	return s;
}

static void clear_unread(struct proc_spaces *all, struct proc_space *s)
{
	all->unread_sz -= s->unread.sz;
	map_log__clear(&s->unread);
}

void proc_space__put(struct proc_spaces *all, struct proc_space *s)
{
	if (!s || --s->refs)
		return;
	clear_unread(all, s);
	all->retired_cnt -= s->retired_cnt;
	free(s->maps);
	free(s->retired);
	free(s->beside);
	free(s);
}

/* Makes *to, which is NULL, a copy of cnt elements. */
static int copy_array(void *to, size_t *to_cap, const void *from, size_t cnt, size_t elem_sz)
{
	void *copy;

	if (!cnt)
		return 0;
	copy = malloc(cnt * elem_sz);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, cnt * elem_sz);
	memcpy(to, &copy, sizeof(copy));
	*to_cap = cnt;
	return 0;
}

int proc_space__own(struct proc_spaces *all, struct proc_space **s)
{
	struct proc_space *from = *s, *copy;
	int err;

	if (from->refs == 1)
		return 0;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *from;
	copy->refs = 1;
	copy->maps = copy->beside = NULL;
	copy->retired = NULL;
	copy->map_cap = copy->beside_cap = copy->retired_cap = 0;
	copy->unread = (struct map_log){};
	err = copy_array(&copy->maps, &copy->map_cap, from->maps, from->map_cnt,
			 sizeof(*from->maps));
	if (!err)
		err = copy_array(&copy->beside, &copy->beside_cap, from->beside, from->beside_cnt,
				 sizeof(*from->beside));
	if (!err)
		err = copy_array(&copy->retired, &copy->retired_cap, from->retired,
				 from->retired_cnt, sizeof(*from->retired));
	if (!err)
		err = map_log__copy(&copy->unread, &from->unread);
	all->unread_sz += copy->unread.sz;
	all->retired_cnt += copy->retired_cnt;
	if (err) {
		proc_space__put(all, copy);
		return err;
	}
	proc_space__put(all, from);
	*s = copy;
	return 0;
}

void proc_space__doubt(struct proc_space *s)
{
	s->known = false;
}

void proc_space__forget(struct proc_spaces *all, struct proc_space *s)
{
	clear_unread(all, s);
	s->map_cnt = 0;
	s->known = false;
	s->since_ns = UINT64_MAX;
}

/* ---- ranges ---- */

/* Index of the first range that ends behind addr. */
static size_t map_index(const struct proc_space *s, uint64_t addr)
{
	return SORTED_UPPER_BOUND(s->maps, s->map_cnt, end, addr);
}

const struct proc_map *proc_space__at(const struct proc_space *s, uint64_t addr)
{
	size_t i = map_index(s, addr);

	return i < s->map_cnt && s->maps[i].start <= addr ? &s->maps[i] : NULL;
}

const struct proc_map *proc_space__from(const struct proc_space *s, uint64_t addr)
{
	size_t i = map_index(s, addr);

	return i < s->map_cnt ? &s->maps[i] : NULL;
}

const struct proc_map *proc_space__at_time(const struct proc_space *s, uint64_t addr,
					   uint64_t time_ns)
{
	/* what has gone first since then */
	size_t i = SORTED_UPPER_BOUND(s->retired, s->retired_cnt, to_ns, time_ns);

	for (; i < s->retired_cnt; i++) {
		const struct proc_map *m = &s->retired[i].map;

		if (addr >= m->start && addr < m->end)
			return m->file == PROC_FILE_NONE ? NULL : m;
	}
	return proc_space__at(s, addr);
}

void proc_space__drop_retired(struct proc_spaces *all, struct proc_space *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->retired_cnt; i++)
		if (s->retired[i].to_ns >= all->before_ns)
			s->retired[n++] = s->retired[i];
	all->retired_cnt -= s->retired_cnt - n;
	s->retired_cnt = n;
}

void proc_space__mark_files(const struct proc_space *s, bool *mapped)
{
	for (size_t i = 0; i < s->map_cnt; i++)
		mapped[s->maps[i].file] = true;
	for (size_t i = 0; i < s->beside_cnt; i++)
		mapped[s->beside[i].file] = true;
	for (size_t i = 0; i < s->retired_cnt; i++)
		if (s->retired[i].map.file != PROC_FILE_NONE)
			mapped[s->retired[i].map.file] = true;
}

static bool same_meaning(const struct proc_map *a, const struct proc_map *b)
{
	return a->file == b->file && a->start - a->offset == b->start - b->offset;
}

/* Takes [start, end) out of the ranges, splitting those at its edges. Leaves room for one more. */
static int cut_range(struct proc_space *s, uint64_t start, uint64_t end)
{
	size_t i = map_index(s, start), j;
	struct proc_map tail;
	int err = util_reserve(&s->maps, &s->map_cap, s->map_cnt + 3, sizeof(*s->maps));

	if (err)
		return err;
	if (i < s->map_cnt && s->maps[i].start < start) {
		tail = s->maps[i];
		s->maps[i].end = start;
		i++;
		/* at the limit the rest is forgotten: no name is better than a wrong one */
		if (tail.end > end && s->map_cnt >= PROCS_MAX_MAPS) {
			s->cut_cnt++;
			return 0;
		}
		if (tail.end > end) {
			tail.offset += end - tail.start;
			tail.start = end;
			memmove(&s->maps[i + 1], &s->maps[i], (s->map_cnt - i) * sizeof(*s->maps));
			s->maps[i] = tail;
			s->map_cnt++;
			return 0;
		}
	}
	for (j = i; j < s->map_cnt && s->maps[j].end <= end; j++)
		;
	if (j < s->map_cnt && s->maps[j].start < end) {
		s->maps[j].offset += end - s->maps[j].start;
		s->maps[j].start = end;
	}
	memmove(&s->maps[i], &s->maps[j], (s->map_cnt - j) * sizeof(*s->maps));
	s->map_cnt -= j - i;
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
static int forget_copy(struct proc_spaces *all, struct proc_map *m)
{
	struct proc_file f;

	make_anon(m, &f);
	m->file = proc_files__add(all->files, &f);
	return m->file == PROC_FILE_NONE ? -ENOMEM : 0;
}

/* What m says was so until time_ns. */
static int retire(struct proc_spaces *all, struct proc_space *s, const struct proc_map *m,
		  uint64_t time_ns)
{
	struct proc_retired r = { .map = *m, .to_ns = time_ns };
	size_t i;
	int err;

	if (time_ns < all->before_ns)
		return 0;
	err = util_reserve(&s->retired, &s->retired_cap, s->retired_cnt + 1, sizeof(*s->retired));
	if (!err && m->copy == PROC_MAP_COPY)
		err = forget_copy(all, &r.map);
	if (err)
		return err;
	r.map.copy = PROC_MAP_AS_IS;
	/* nearly all come in order */
	for (i = s->retired_cnt; i && s->retired[i - 1].to_ns > time_ns; i--)
		s->retired[i] = s->retired[i - 1];
	s->retired[i] = r;
	s->retired_cnt++;
	all->retired_cnt++;
	return 0;
}

/* time_ns: when the range came to be, 0 if that does not matter because nothing was known before.
 */
static int add_range(struct proc_spaces *all, struct proc_space *s, const struct proc_map *m,
		     uint64_t time_ns)
{
	bool changed = false;
	size_t i;
	int err = 0;

	for (i = map_index(s, m->start); i < s->map_cnt && s->maps[i].start < m->end; i++) {
		if (same_meaning(&s->maps[i], m) && s->maps[i].start <= m->start &&
		    s->maps[i].end >= m->end)
			return 0;
		if (same_meaning(&s->maps[i], m) || !time_ns)
			continue;
		changed = true;
		err = retire(all, s, &s->maps[i], time_ns);
		if (err)
			return err;
	}
	s->gen += changed;
	err = cut_range(s, m->start, m->end);
	if (err)
		return err;
	if (s->map_cnt >= PROCS_MAX_MAPS) {
		s->cut_cnt++;
		return 0;
	}
	i = map_index(s, m->start);
	memmove(&s->maps[i + 1], &s->maps[i], (s->map_cnt - i) * sizeof(*s->maps));
	s->maps[i] = *m;
	s->map_cnt++;
	return 0;
}

/* ---- copies of code ---- */

/* Remembers what maps a file; what is too much is left out. */
static int add_beside(struct proc_space *s, const struct proc_map *m)
{
	struct proc_map file = *m;

	file.copy = PROC_MAP_AS_IS;
	for (size_t i = 0; i < s->beside_cnt; i++)
		if (!memcmp(&s->beside[i], &file, sizeof(file)))
			return 0;
	if (s->beside_cnt >= PROCS_MAX_BESIDE)
		return 0;
	if (util_reserve(&s->beside, &s->beside_cap, s->beside_cnt + 1, sizeof(*s->beside)))
		return -ENOMEM;
	s->beside[s->beside_cnt++] = file;
	return 0;
}

/*
 * A record tells of a range: doubts whether it is a copy of the files' code that was there, and
 * whether what is no copy still is none. Where there may be copies, memory that is large enough may
 * be another one.
 */
static int doubt_copies(struct proc_spaces *all, struct proc_space *s, struct proc_map *m)
{
	int err = 0;

	for (size_t i = map_index(s, m->start); i < s->map_cnt && s->maps[i].start < m->end; i++) {
		struct proc_map *was = &s->maps[i];
		const struct proc_file *f = proc_files__get(all->files, was->file);

		if (was->copy == PROC_MAP_NO_COPY || was->copy == PROC_MAP_UNREAD) {
			was->copy = m->copy = PROC_MAP_MAYBE_COPY;
		} else if (!err && f->kind == PROC_FILE_REGULAR && !proc_file_is_memory(f) &&
			   !same_meaning(was, m)) {
			m->copy = PROC_MAP_MAYBE_COPY;
			err = add_beside(s, was);
		}
	}
	if (s->beside_cnt && proc_file_is_memory(proc_files__get(all->files, m->file)) &&
	    m->end - m->start >= COPY_MIN_MOVED)
		m->copy = PROC_MAP_MAYBE_COPY;
	return err;
}

/* Memory as maps tells of it, which does not tell that parts of it were found to be copies: these
 * stay. */
static int add_around_copies(struct proc_spaces *all, struct proc_space *s, struct proc_map m,
			     uint64_t time_ns)
{
	int err = 0;

	while (!err && m.start < m.end) {
		struct proc_map part = m;
		uint64_t next = m.end;

		for (size_t i = map_index(s, m.start); i < s->map_cnt && s->maps[i].start < m.end;
		     i++) {
			if (s->maps[i].copy != PROC_MAP_COPY)
				continue;
			part.end = MAX(s->maps[i].start, m.start);
			next = s->maps[i].end;
			break;
		}
		if (part.start < part.end)
			err = add_range(all, s, &part, time_ns);
		m.offset += next - m.start;
		m.start = next;
	}
	return err;
}

int proc_space__add_copy(struct proc_spaces *all, struct proc_space **s,
			 const struct proc_map *piece)
{
	struct proc_map m = *piece;
	int err = proc_space__own(all, s);

	if (err)
		return err;
	m.copy = PROC_MAP_COPY;
	(*s)->has_copies = true;
	(*s)->gen++;
	return add_range(all, *s, &m, 0);
}

int proc_space__judge(struct proc_spaces *all, struct proc_space **s, uint64_t start, uint64_t end,
		      enum proc_map_copy copy)
{
	int err = proc_space__own(all, s);

	if (err)
		return err;
	for (size_t i = map_index(*s, start); i < (*s)->map_cnt && (*s)->maps[i].start < end; i++)
		if ((*s)->maps[i].copy != PROC_MAP_COPY)
			(*s)->maps[i].copy = copy;
	return 0;
}

int proc_space__drop_copy(struct proc_spaces *all, struct proc_space **s, uint64_t start,
			  uint64_t end, enum proc_map_copy copy)
{
	struct proc_map m = { .start = start, .end = end, .copy = copy };
	int err = proc_space__own(all, s);

	if (!err)
		err = forget_copy(all, &m);
	if (err)
		return err;
	(*s)->gen++;
	return add_range(all, *s, &m, 0);
}

/* ---- records ---- */

/* What was at [start, end) until the time of the record, nobody knows. */
static int retire_unknown(struct proc_spaces *all, struct proc_space *s, uint64_t start,
			  uint64_t end, const struct map_record *r)
{
	struct proc_map m = { .start = start, .end = end, .file = PROC_FILE_NONE };

	return start < end ? retire(all, s, &m, r->time_ns) : 0;
}

/* Nothing was read from /proc so far: what was in the range is known from earlier records only. */
static int retire_gaps(struct proc_spaces *all, struct proc_space *s, const struct proc_map *m,
		       const struct map_record *r)
{
	uint64_t at = m->start;
	int err = 0;

	for (size_t i = map_index(s, at); !err && i < s->map_cnt && s->maps[i].start < m->end;
	     i++) {
		err = retire_unknown(all, s, at, s->maps[i].start, r);
		at = s->maps[i].end;
	}
	return err ? err : retire_unknown(all, s, at, m->end, r);
}

static int take_in(struct proc_spaces *all, struct proc_space *s, struct map_record *r)
{
	struct proc_map m = { .start = r->start, .end = r->start + r->len, .offset = r->offset };
	bool late = r->time_ns < s->since_ns && s->since_ns != UINT64_MAX;
	int err = 0;

	if (m.end <= m.start)
		return 0;
	if (r->file.kind == PROC_FILE_ANON)
		make_anon(&m, &r->file);
	m.file = proc_files__add(all->files, &r->file);
	if (m.file == PROC_FILE_NONE)
		return -ENOMEM;
	if (late)
		err = retire_unknown(all, s, m.start, m.end, r);
	else if (r->time_ns < s->since_ns)
		err = retire_gaps(all, s, &m, r);
	if (!err)
		err = doubt_copies(all, s, &m);
	/* what was read stands there since later: it is not what this replaced */
	s->gen += late;
	return err ? err : add_range(all, s, &m, late ? 0 : r->time_ns);
}

void proc_space__apply(struct proc_spaces *all, struct proc_space *s)
{
	struct map_record r;
	size_t pos = 0;

	if (!s->unread.sz)
		return;
	while (map_log__next(&s->unread, &pos, &r))
		if (take_in(all, s, &r))
			s->known = false;
	clear_unread(all, s);
}

/*
 * A process has mapped something after others were forked from it, which had the space with it until
 * now. If it was read from /proc later still, then it is not known what the others have there.
 */
static int forget_range(struct proc_spaces *all, struct proc_space *others,
			const struct map_record *r)
{
	if (r->start + r->len <= r->start)
		return 0;
	proc_space__apply(all, others);
	return cut_range(others, r->start, r->start + r->len);
}

int proc_space__on_record(struct proc_spaces *all, struct proc_space **s,
			  const struct map_record *r, bool read_later)
{
	struct proc_space *shared = *s, *own;
	size_t before;
	int err = proc_space__own(all, s);

	own = *s;
	if (!err && read_later && own != shared)
		err = forget_range(all, shared, r);
	if (err)
		return err;
	if (all->unread_sz >= PROC_SPACES_MAX_UNREAD || own->unread.sz >= PROC_SPACE_MAX_UNREAD)
		proc_space__apply(all, own);
	before = own->unread.sz;
	err = map_log__put(&own->unread, r);
	all->unread_sz += own->unread.sz - before;
	if (all->unread_sz >= PROC_SPACES_MAX_UNREAD)
		proc_space__apply(all, own);
	return err;
}

/* ---- maps ---- */

/* What a line of maps, and those before it, say of copies. */
static int note_beside(struct proc_spaces *all, struct proc_space *s, struct beside *beside,
		       const struct proc_maps_line *line)
{
	struct beside_found found;
	struct proc_map m = {};

	beside__take(beside, line, &found);
	if (found.doubtful) {
		size_t i = map_index(s, found.doubtful);

		if (i < s->map_cnt)
			s->maps[i].copy = PROC_MAP_MAYBE_COPY;
	}
	if (!found.file)
		return 0;
	m.start = found.file->start;
	m.end = found.file->end;
	m.offset = found.file->offset;
	m.file = proc_files__add(all->files, &found.file->file);
	return m.file == PROC_FILE_NONE ? -ENOMEM : add_beside(s, &m);
}

int proc_space__add_line(struct proc_spaces *all, struct proc_space *s, struct beside *beside,
			 struct proc_maps_line *line)
{
	struct proc_map m = { .start = line->start, .end = line->end, .offset = line->offset };
	int err = 0;

	if (line->exec) {
		if (proc_file_is_memory(&line->file))
			m.copy = PROC_MAP_MAYBE_COPY;
		if (line->file.kind == PROC_FILE_ANON)
			make_anon(&m, &line->file);
		m.file = proc_files__add(all->files, &line->file);
		err = m.file == PROC_FILE_NONE ? -ENOMEM : add_range(all, s, &m, 0);
	}
	return err ? err : note_beside(all, s, beside, line);
}

int proc_space__merge(struct proc_spaces *all, struct proc_space **s, struct proc_space *fresh,
		      uint64_t now_ns)
{
	int err = proc_space__own(all, s);
	struct proc_space *to = *s;

	if (err)
		return err;
	proc_space__apply(all, to);
	to->cut_cnt = fresh->cut_cnt;
	for (size_t i = 0; i < fresh->map_cnt && !err; i++)
		err = fresh->maps[i].copy ? add_around_copies(all, to, fresh->maps[i], now_ns) :
					    add_range(all, to, &fresh->maps[i], now_ns);
	to->known = true;
	to->since_ns = MIN(to->since_ns, now_ns);
	free(to->beside);
	to->beside = fresh->beside;
	to->beside_cnt = fresh->beside_cnt;
	to->beside_cap = fresh->beside_cap;
	fresh->beside = NULL;
	fresh->beside_cnt = fresh->beside_cap = 0;
	return err;
}
