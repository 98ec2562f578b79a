/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs DWARF line number programs, versions 2 to 5 (DWARF 5, section 6.2), row by row and without
 * keeping the rows. */
#include "target/dwarf_read.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define MAX_LINE_FILES (1U << 20) /* of a unit; directories as well */
#define MAX_FORMATS 32

/* ---- the header ---- */

static int add_dir(struct dwarf_lines *l, const char *name)
{
	if (l->dir_cnt >= MAX_LINE_FILES)
		return -EBADMSG;
	if (util_reserve(&l->dirs, &l->dir_cap, l->dir_cnt + 1, sizeof(*l->dirs)))
		return -ENOMEM;
	l->dirs[l->dir_cnt++] = name;
	return 0;
}

static int add_file(struct dwarf_lines *l, const char *name, uint64_t dir)
{
	if (l->file_cnt >= MAX_LINE_FILES)
		return -EBADMSG;
	if (util_reserve(&l->files, &l->file_cap, l->file_cnt + 1, sizeof(*l->files)))
		return -ENOMEM;
	l->files[l->file_cnt++] = (struct dwarf_line_file){ name, dir };
	return 0;
}

/* Up to version 4: entries count from 1; directory 0 is the unit's own, file 0 is none. */
static int read_old_tables(struct dwarf_lines *l, struct rd *r)
{
	int err = add_dir(l, NULL);
	const char *name;
	uint64_t dir;

	while (!err) {
		name = rd_string(r);
		if (!name || !*name)
			break;
		err = add_dir(l, name);
	}
	if (!err)
		err = add_file(l, NULL, 0);
	while (!err) {
		name = rd_string(r);
		if (!name || !*name)
			break;
		dir = rd_uleb(r);
		rd_uleb(r); /* time */
		rd_uleb(r); /* size */
		err = add_file(l, name, dir);
	}
	return err ? err : r->bad ? -EBADMSG : 0;
}

/* Version 5: one table, of directories or files, described by pairs of content and form. */
static int read_table(struct dwarf_lines *l, const struct dwarf_file *f, const struct dwarf_unit *u,
		      struct rd *r, bool files)
{
	struct dwarf_spec formats[MAX_FORMATS];
	uint64_t format_cnt = rd_uint(r, 1), cnt, i, k;
	int err = 0;

	if (format_cnt > MAX_FORMATS)
		return -EBADMSG;
	for (i = 0; i < format_cnt; i++) {
		formats[i].attr = rd_uleb16(r);
		formats[i].form = rd_uleb16(r);
		formats[i].implicit = 0;
	}
	cnt = rd_uleb(r);
	/* an entry has at least a byte */
	if (r->bad || cnt > (uint64_t)(r->end - r->p))
		return -EBADMSG;
	for (i = 0; i < cnt && !err; i++) {
		const char *name = NULL;
		uint64_t dir = 0;

		for (k = 0; k < format_cnt; k++) {
			struct dwarf_value v = dwarf_read_value(r, u, &formats[k]);

			if (formats[k].attr == DW_LNCT_path)
				name = dwarf_value_string(f, u, &v);
			else if (formats[k].attr == DW_LNCT_directory_index)
				dir = v.u;
		}
		if (r->bad)
			return -EBADMSG;
		err = files ? add_file(l, name, dir) : add_dir(l, name);
	}
	return err;
}

int dwarf_lines__open(struct dwarf_lines *l, const struct dwarf_file *f, const struct dwarf_unit *u)
{
	struct rd r = dwarf_file__rd(f, DWARF_SEC_LINE, u->line_off), h;
	struct dwarf_unit forms = *u; /* whose sizes are those of this table */
	uint64_t header_len;
	int err;

	memset(l, 0, sizeof(*l));
	l->comp_dir = u->comp_dir;
	if (!u->has_lines || r.bad)
		return -ENOENT;
	forms.offset_sz = rd_unit_length(&r);
	l->version = forms.version = rd_uint(&r, 2);
	if (r.bad || l->version < 2 || l->version > 5)
		return -EBADMSG;
	if (l->version >= 5)
		rd_skip(&r, 2); /* sizes of addresses and of segment selectors */
	header_len = rd_uint(&r, forms.offset_sz);
	h = r;
	rd_skip(&r, header_len);
	l->program = r;
	h.end = r.p;
	l->min_inst = rd_uint(&h, 1);
	if (l->version >= 4)
		rd_skip(&h, 1); /* operations per instruction: 1 but for VLIW */
	rd_skip(&h, 1);		/* default of is_stmt */
	l->line_base = (int8_t)rd_uint(&h, 1);
	l->line_range = rd_uint(&h, 1);
	l->opcode_base = rd_uint(&h, 1);
	l->opcode_args = h.p;
	rd_skip(&h, l->opcode_base ? l->opcode_base - 1 : 0);
	if (r.bad || h.bad || !l->line_range || !l->opcode_base)
		return -EBADMSG;
	if (l->version < 5)
		return read_old_tables(l, &h);
	err = read_table(l, f, &forms, &h, false);
	return err ? err : read_table(l, f, &forms, &h, true);
}

void dwarf_lines__done(struct dwarf_lines *l)
{
	free(l->dirs);
	free(l->files);
	memset(l, 0, sizeof(*l));
}

/* ---- the program ---- */

struct machine {
	uint64_t addr, file, line;
	/* the row before, which holds up to the next one */
	bool have_prev, dead;
	uint64_t prev_addr, prev_file, prev_line;
	void (*row)(void *ctx, uint64_t lo, uint64_t hi, uint64_t file, uint64_t line);
	void *ctx;
};

static void machine__reset(struct machine *m)
{
	m->addr = 0;
	m->file = m->line = 1;
	m->have_prev = m->dead = false;
}

static void machine__emit(struct machine *m)
{
	if (m->have_prev && !m->dead && m->prev_addr < m->addr)
		m->row(m->ctx, m->prev_addr, m->addr, m->prev_file, m->prev_line);
	m->have_prev = true;
	m->prev_addr = m->addr;
	m->prev_file = m->file;
	m->prev_line = m->line;
}

static void run_extended(struct machine *m, struct rd *r)
{
	uint64_t len = rd_uleb(r);
	struct rd op = *r;

	rd_skip(r, len);
	if (r->bad || !len)
		return;
	op.end = r->p;
	switch (rd_uint(&op, 1)) {
	case DW_LNE_end_sequence:
		machine__emit(m);
		machine__reset(m);
		break;
	case DW_LNE_set_address:
		m->addr = rd_uint(&op, 8);
		/* discarded code, as in range lists */
		m->dead = op.bad || !m->addr || m->addr >= (uint64_t)-2;
		break;
	}
}

static void run_standard(struct machine *m, struct rd *r, const struct dwarf_lines *l, uint8_t op)
{
	uint8_t i;

	switch (op) {
	case DW_LNS_copy:
		machine__emit(m);
		break;
	case DW_LNS_advance_pc:
		m->addr += rd_uleb(r) * l->min_inst;
		break;
	case DW_LNS_advance_line:
		m->line += (uint64_t)rd_sleb(r);
		break;
	case DW_LNS_set_file:
		m->file = rd_uleb(r);
		break;
	case DW_LNS_const_add_pc:
		m->addr += (uint64_t)((255 - l->opcode_base) / l->line_range) * l->min_inst;
		break;
	case DW_LNS_fixed_advance_pc:
		m->addr += rd_uint(r, 2);
		break;
	default: /* says nothing about file, line or address */
		for (i = 0; i < l->opcode_args[op - 1]; i++)
			rd_uleb(r);
	}
}

void dwarf_lines__run(struct dwarf_lines *l, struct dwarf_file *f,
		      void (*row)(void *ctx, uint64_t lo, uint64_t hi, uint64_t file,
				  uint64_t line),
		      void *ctx)
{
	struct machine m = { .row = row, .ctx = ctx };
	struct rd *r = &l->program;

	if (!dwarf_file__spend(f, r->end - r->p))
		return;
	machine__reset(&m);
	while (r->p < r->end) {
		uint8_t op = *r->p++;

		if (op >= l->opcode_base) {
			op -= l->opcode_base;
			m.addr += (uint64_t)(op / l->line_range) * l->min_inst;
			m.line += (uint64_t)(int64_t)(l->line_base + op % l->line_range);
			machine__emit(&m);
		} else if (op) {
			run_standard(&m, r, l, op);
		} else {
			run_extended(&m, r);
		}
	}
}

/* ---- paths ---- */

const char *dwarf_lines__path(const struct dwarf_lines *l, uint64_t file, char *buf, size_t sz)
{
	const char *name, *dir = NULL, *comp = NULL;
	int n;

	buf[0] = '\0';
	if (file >= l->file_cnt || !l->files[file].name)
		return buf;
	name = l->files[file].name;
	if (name[0] != '/') {
		if (l->files[file].dir < l->dir_cnt)
			dir = l->dirs[l->files[file].dir];
		if (!dir || dir[0] != '/')
			comp = l->comp_dir;
	}
	/* DWARF 5 lists the unit's directory as number 0, which need not be absolute */
	if (comp && dir && !strcmp(comp, dir))
		dir = NULL;
	n = snprintf(buf, sz, "%s%s%s%s%s", comp ? comp : "", comp ? "/" : "", dir ? dir : "",
		     dir ? "/" : "", name);
	if (n < 0 || (size_t)n >= sz)
		buf[0] = '\0';
	return buf;
}
