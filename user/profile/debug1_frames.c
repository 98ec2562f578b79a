/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the frames of a stack as runtime/pprof does, in columns as text/tabwriter makes them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/frames.h"
#include "profile/legacy_parts.h"

#define TAB 8
#define CUT 8192 /* bytes of a name: go tool pprof reads no line of 65536 */

/* A frame. What stands behind the last tab of a line is in no column. */
struct line {
	uint64_t address;
	const char *name;    /* NULL: nothing but the address is known */
	char offset[24];     /* in the function: "+0x1f", or "" */
	const char *file;    /* of the source, or of the object; NULL: neither is known */
	int64_t source_line; /* 0: unknown */
	uint64_t in_object;  /* place in the file, plus 1; 0: none is shown */
};

/* ---- frames ---- */

/* "object+0xoffset" is no function's name: see symbolize.c. */
static const char *function_name(const struct profile *p, const struct frames *fr, uint32_t loc,
				 uint32_t i)
{
	const struct profile_location *l = &p->locations[loc];
	const struct profile_function *fn;

	if (i >= l->line_cnt)
		return NULL;
	fn = &p->functions[p->lines[l->line + i].function];
	return fn->name && fn->system_name ? strtab__get(fr->names, frames__name(fr, loc, i)) :
					     NULL;
}

static void set_place(const struct profile *p, const struct profile_location *l, uint32_t i,
		      struct line *line)
{
	const struct profile_line *source = &p->lines[l->line + i];
	const struct profile_mapping *m;

	if (p->functions[source->function].filename) {
		line->file = strtab__get(p->strings, p->functions[source->function].filename);
		line->source_line = source->line;
		return;
	}
	if (l->mapping == PROFILE_NONE)
		return;
	m = &p->mappings[l->mapping];
	line->file = strtab__get(p->strings, m->filename);
	/* "[kernel.kallsyms]" is no file */
	if (*line->file == '/' && l->address >= m->start && l->address < m->limit)
		line->in_object = l->address - m->start + m->offset + 1;
}

static struct line make_line(const struct legacy_maps *m, const struct frames *fr, uint32_t loc,
			     uint32_t i)
{
	const struct profile_location *l = &m->p->locations[loc];
	struct line ret = { .address = legacy_maps__address(m, loc),
			    .name = function_name(m->p, fr, loc, i) };

	if (!ret.name)
		return ret;
	if (l->from_entry)
		snprintf(ret.offset, sizeof(ret.offset), "+0x%" PRIx32, l->from_entry - 1);
	set_place(m->p, l, i, &ret);
	return ret;
}

/* Those that are shown. Returns how many. */
static size_t make_lines(const struct legacy_maps *m, const struct frames *fr,
			 const struct profile_sample *s, bool all, struct line *ret)
{
	size_t cnt = 0;

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t loc = m->p->loc_ids[s->loc + i];

		for (uint32_t j = 0; j < frames__cnt(fr, loc); j++) {
			ret[cnt] = make_line(m, fr, loc, j);
			if (!ret[cnt].name ||
			    (strcmp(ret[cnt].name, "runtime.goexit") != 0 &&
			     (all || cnt || strncmp(ret[cnt].name, "runtime.", 8))))
				cnt++;
		}
	}
	return cnt;
}

static size_t count_frames(const struct legacy_maps *m, const struct frames *fr,
			   const struct profile_sample *s)
{
	size_t cnt = 0;

	for (uint32_t i = 0; i < s->loc_cnt; i++)
		cnt += frames__cnt(fr, m->p->loc_ids[s->loc + i]);
	return cnt;
}

/* ---- columns ---- */

/* Bytes of a name that are shown. */
static size_t shown(const char *name)
{
	size_t len = strlen(name);

	if (len <= CUT)
		return len;
	for (len = CUT; ((unsigned char)name[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

/* Cells that belong to columns: "#", the address, the function. */
static size_t cells(const struct line *l)
{
	return !l->name ? 1 : !l->file ? 2 : 3;
}

/* In characters: what follows the first byte of one does not count. */
static size_t width(const struct line *l, size_t cell)
{
	size_t ret = 0, sz;

	if (cell == 1)
		return (size_t)snprintf(NULL, 0, "0x%" PRIx64, l->address);
	sz = shown(l->name);
	for (size_t i = 0; i < sz; i++)
		ret += ((unsigned char)l->name[i] & 0xc0) != 0x80;
	return ret + strlen(l->offset);
}

/* A column is as wide as its widest cell in the neighbouring lines that have one there, and a blank
 * more, up to the next tab stop. */
static size_t column_width(const struct line *lines, size_t cnt, size_t at, size_t cell)
{
	size_t first = at, max = 0;

	while (first && cells(&lines[first - 1]) > cell)
		first--;
	for (size_t i = first; i < cnt && cells(&lines[i]) > cell; i++)
		max = MAX(max, width(&lines[i], cell));
	return (max + 1 + TAB - 1) / TAB * TAB;
}

static void end_cell(const struct line *l, size_t cell, size_t column, FILE *f)
{
	for (size_t tabs = (column - width(l, cell) + TAB - 1) / TAB; tabs; tabs--)
		fputc('\t', f);
}

/* ---- all of it ---- */

static int print_place(const struct line *l, FILE *f)
{
	size_t sz = strlen(l->file) * 3 + 1;
	char *clean = malloc(sz);

	if (!clean)
		return -ENOMEM;
	fputs(util_printable(clean, sz, l->file), f);
	free(clean);
	if (l->source_line)
		fprintf(f, ":%" PRId64, l->source_line);
	if (l->in_object)
		fprintf(f, "+0x%" PRIx64, l->in_object - 1);
	return 0;
}

static int print_lines(const struct line *lines, size_t cnt, FILE *f)
{
	size_t column[3] = { 0 };
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		const struct line *l = &lines[i];

		/* the width is that of the run that the line before began */
		for (size_t cell = 1; cell < cells(l); cell++)
			if (!i || cells(&lines[i - 1]) <= cell)
				column[cell] = column_width(lines, cnt, i, cell);
		fprintf(f, "#\t0x%" PRIx64, l->address);
		if (l->name) {
			end_cell(l, 1, column[1], f);
			fprintf(f, "%.*s%s", (int)shown(l->name), l->name, l->offset);
		}
		if (l->file) {
			end_cell(l, 2, column[2], f);
			err = print_place(l, f);
		}
		fputc('\n', f);
	}
	fputc('\n', f);
	return err;
}

int debug1_print_frames(const struct legacy_maps *m, const struct frames *fr,
			const struct profile_sample *s, bool all, FILE *f)
{
	struct line *lines = calloc(count_frames(m, fr, s) + 1, sizeof(*lines));
	size_t cnt;
	int err;

	if (!lines)
		return -ENOMEM;
	cnt = make_lines(m, fr, s, all, lines);
	if (!cnt)
		cnt = make_lines(m, fr, s, true, lines);
	err = print_lines(lines, cnt, f);
	free(lines);
	return err;
}
