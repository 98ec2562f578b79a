/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a perf map twice: first the ranges of all lines, to find the last one that holds each
 * address, then the names of these lines. So memory depends on the addresses and not on the file,
 * and the time a line takes on their logarithm, however large its range is.
 */
#include "target/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sorted.h"
#include "base/strtab.h"
#include "base/util.h"
#include "target/demangle.h"

#define CHUNK (256U << 10)
#define MOST_LINES 512 /* bytes that nearly all lines have less than */

struct range {
	uint64_t start, end; /* end exclusive */
};

struct search {
	int fd;
	uint64_t begin, end; /* of the part of the file that is read */
	const uint64_t *addrs;
	size_t cnt;
	/*
	 * A segment tree without its lazy half: node i covers nodes 2i and 2i + 1, address k is
	 * node cnt + k. A line marks the few nodes that make up its addresses with its number, 1 +
	 * its offset in the file; the largest on the way from an address to the root is its last
	 * line's.
	 */
	uint64_t *last;
	uint64_t ignored;
};

/* ---- lines ---- */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A number at *s, which is followed by a space before `end`; both are passed over. */
static bool number(const char **s, const char *end, uint64_t *ret)
{
	const char *at = *s;
	uint64_t n = 0;
	int d;

	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (*s = at; at < end && (d = digit(*at)) >= 0; at++) {
		if (n >> 60)
			return false;
		n = n << 4 | (unsigned int)d;
	}
	if (at == *s || at == end || *at != ' ')
		return false;
	*ret = n;
	*s = at + 1;
	return true;
}

/* The range at the beginning of a line; *line is moved on to the name. */
static bool parse_range(const char **line, const char *end, struct range *ret)
{
	uint64_t size;

	return number(line, end, &ret->start) && number(line, end, &size) && size &&
	       !__builtin_add_overflow(ret->start, size, &ret->end);
}

/* ---- the last line that holds an address ---- */

static void take_line(struct search *s, uint64_t offset, const char *line, size_t len)
{
	struct range r;
	size_t from, to;

	if (!parse_range(&line, line + len, &r)) {
		s->ignored++;
		return;
	}
	if (r.end <= s->addrs[0] || r.start > s->addrs[s->cnt - 1])
		return;
	from = sorted_lower_bound(s->addrs, s->cnt, r.start) + s->cnt;
	to = sorted_lower_bound(s->addrs, s->cnt, r.end) + s->cnt;
	for (; from < to; from /= 2, to /= 2) {
		if (from & 1)
			s->last[from++] = offset + 1;
		if (to & 1)
			s->last[--to] = offset + 1;
	}
}

static uint64_t last_line(const struct search *s, size_t i)
{
	uint64_t last = 0;

	for (i += s->cnt; i; i /= 2)
		last = MAX(last, s->last[i]);
	return last;
}

/* A line that goes on behind a chunk is read again, in the next one; if the chunk is not larger
 * than the line, its beginning is enough. */
static int read_lines(struct search *s, char *chunk)
{
	/* in the middle of a line */
	bool within = s->begin > 0;
	uint64_t at = s->begin;
	size_t used;

	for (; at < s->end; at += used) {
		ssize_t n = pread(s->fd, chunk, MIN(CHUNK, s->end - at), (off_t)at);

		if (n <= 0)
			return n ? -errno : 0;
		for (used = 0; used < (size_t)n;) {
			const char *line = chunk + used, *nl = memchr(line, '\n', n - used);
			size_t len = nl ? (size_t)(nl - line) : n - used;

			if (!nl && used && at + n < s->end)
				break;
			if (!within)
				take_line(s, at + used, line, len);
			within = !nl;
			used += len + (nl ? 1 : 0);
		}
	}
	return 0;
}

/* ---- names ---- */

/*
 * Reads the line at an offset again. Returns its name, which ends with a NUL, or NULL if it has
 * none or does not hold addr (the file may be written to). A line without end may be one that is
 * being written.
 */
static char *read_name(const struct search *s, uint64_t offset, uint64_t addr, char *buf,
		       uint64_t *ret_start)
{
	size_t left = MIN(PERF_MAP_MAX_LINE, s->end - offset);
	const char *name = buf;
	char *nl = NULL;
	struct range r;

	for (size_t want = MOST_LINES; !nl; want = left) {
		ssize_t n = pread(s->fd, buf, MIN(want, left), (off_t)offset);

		if (n <= 0)
			return NULL;
		nl = memchr(buf, '\n', n);
		if (!nl && want >= left)
			return NULL;
	}
	if (!parse_range(&name, nl, &r) || addr < r.start || addr >= r.end || name == nl ||
	    memchr(name, '\0', nl - name))
		return NULL;
	*nl = '\0';
	*ret_start = r.start;
	return buf + (name - buf);
}

/* Counts the bytes of the names. 0 or -ENOMEM. */
static int make_frame(struct strtab *strings, const char *name, struct symbol_frame *ret,
		      size_t *names_sz)
{
	char *demangled = demangle(name);

	*names_sz += strlen(name) + (demangled ? strlen(demangled) : 0);
	*ret = (struct symbol_frame){ .system_name = strtab__add(strings, name) };
	ret->name = demangled ? strtab__add(strings, demangled) : ret->system_name;
	free(demangled);
	return ret->name == UINT32_MAX || ret->system_name == UINT32_MAX ? -ENOMEM : 0;
}

static int read_names(const struct search *s, struct strtab *strings, char *buf,
		      struct symbols *ret)
{
	uint64_t before = 0, start = 0, last;
	bool named = false;
	size_t names_sz = 0;
	int err = 0;

	for (size_t i = 0; i < s->cnt && !err; i++, ret->first[i] = ret->frame_cnt) {
		char *name = NULL;

		last = last_line(s, i);
		/* neighbours have the same line, and so the same frame */
		if (last && last == before && named) {
			ret->frames[ret->frame_cnt] = ret->frames[ret->frame_cnt - 1];
			ret->frames[ret->frame_cnt++].from_entry =
				symbol_from_entry(s->addrs[i], start);
			continue;
		}
		if (last && last != before && names_sz < PERF_MAP_MAX_NAMES)
			name = read_name(s, last - 1, s->addrs[i], buf, &start);
		before = last;
		named = name != NULL;
		if (!name)
			continue;
		err = make_frame(strings, name, &ret->frames[ret->frame_cnt], &names_sz);
		ret->frames[ret->frame_cnt++].from_entry = symbol_from_entry(s->addrs[i], start);
	}
	return err;
}

/* ---- all of it ---- */

static int find(struct search *s, struct strtab *strings, char *chunk, struct symbols *ret)
{
	int err = s->cnt ? read_lines(s, chunk) : 0;

	if (!err)
		err = read_names(s, strings, chunk, ret);
	return err ? err : symbols__set_strings(ret, strings);
}

int perf_map_find(int fd, const uint64_t *addrs, size_t cnt, struct perf_map_names *ret)
{
	struct search s = { .fd = fd, .addrs = addrs, .cnt = cnt };
	struct strtab *strings;
	char *chunk;
	struct stat st;
	int err = -ENOMEM;

	*ret = (struct perf_map_names){ .symbols.cnt = cnt };
	if (fstat(fd, &st))
		return -errno;
	s.end = (uint64_t)MAX(st.st_size, 0);
	s.begin = s.end - MIN(s.end, PERF_MAP_MAX_READ);
	ret->unread = s.begin;
	strings = strtab__new();
	chunk = malloc(CHUNK);
	s.last = calloc(cnt + 1, 2 * sizeof(*s.last));
	ret->symbols.first = calloc(cnt + 1, sizeof(*ret->symbols.first));
	ret->symbols.frames = calloc(cnt + 1, sizeof(*ret->symbols.frames));
	if (strings && chunk && s.last && ret->symbols.first && ret->symbols.frames)
		err = find(&s, strings, chunk, &ret->symbols);
	ret->ignored = s.ignored;
	if (err)
		symbols__done(&ret->symbols);
	free(s.last);
	free(chunk);
	strtab__free(strings);
	return err;
}
