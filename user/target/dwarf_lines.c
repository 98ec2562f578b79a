/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/dwarf_lines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/util.h"
#include "target/dwarf_file.h"

#define MAX_TABLE (64U << 20) /* bytes of a unit's */
#define MAX_PATHS (1U << 20)  /* folders, and files, of a unit */

/* ---- the header ---- */

/* What standard opcodes take; those of another table would mean something else. */
static const unsigned char standard_lengths[] = {
	[DW_LNS_copy - 1] = 0,
	[DW_LNS_advance_pc - 1] = 1,
	[DW_LNS_advance_line - 1] = 1,
	[DW_LNS_set_file - 1] = 1,
	[DW_LNS_set_column - 1] = 1,
	[DW_LNS_negate_stmt - 1] = 0,
	[DW_LNS_set_basic_block - 1] = 0,
	[DW_LNS_const_add_pc - 1] = 0,
	[DW_LNS_fixed_advance_pc - 1] = 1,
	[DW_LNS_set_prologue_end - 1] = 0,
	[DW_LNS_set_epilogue_begin - 1] = 0,
	[DW_LNS_set_isa - 1] = 1,
};

static int add(struct dwarf_line_paths *p, const char *name, uint64_t folder)
{
	if (p->cnt >= MAX_PATHS)
		return -E2BIG;
	if (util_reserve(&p->v, &p->cap, p->cnt + 1, sizeof(*p->v)))
		return -ENOMEM;
	p->v[p->cnt++] = (struct dwarf_line_path){ .name = name, .folder = folder };
	return 0;
}

/* The lists up to DWARF 4 (6.2.4 there): each ends with an empty string, numbers begin with 1. */
static int read_lists(struct dwarf_lines *l, struct dwarf_bytes *b)
{
	const char *name;
	uint64_t folder;
	int err = add(&l->folders, l->comp_dir, 0);

	while (!err && (name = dwarf_bytes__string(b)) && *name)
		err = add(&l->folders, name, 0);
	if (!err)
		err = add(&l->files, NULL, 0);
	while (!err && (name = dwarf_bytes__string(b)) && *name) {
		folder = dwarf_bytes__uleb(b);
		dwarf_bytes__uleb(b); /* time */
		dwarf_bytes__uleb(b); /* size */
		err = add(&l->files, name, folder);
	}
	return err;
}

static const char *string_at(const Elf_Data *section, uint64_t off)
{
	/* whose last string ends: see dwarf_file.c */
	return section && off < section->d_size ? (const char *)section->d_buf + off : NULL;
}

/* Takes a value of one of the forms that a list may have (DWARF 5, 6.2.4.1). False: of none of them. */
static bool take_value(const struct dwarf_lines *l, struct dwarf_bytes *b, uint64_t form,
		       const char **ret_text, uint64_t *ret_number)
{
	const struct dwarf_file *f = l->file;

	*ret_text = NULL;
	*ret_number = 0;
	switch (form) {
	case DW_FORM_string:
		*ret_text = dwarf_bytes__string(b);
		return true;
	case DW_FORM_line_strp:
		*ret_text = string_at(f->line_str, dwarf_bytes__take(b, l->offset_sz));
		return true;
	case DW_FORM_strp:
		*ret_text = string_at(f->str, dwarf_bytes__take(b, l->offset_sz));
		return true;
	case DW_FORM_strp_sup:
		*ret_text =
			string_at(f->alt ? f->alt->str : NULL, dwarf_bytes__take(b, l->offset_sz));
		return true;
	case DW_FORM_udata:
		*ret_number = dwarf_bytes__uleb(b);
		return true;
	case DW_FORM_data1:
	case DW_FORM_data2:
		*ret_number = dwarf_bytes__take(b, form == DW_FORM_data1 ? 1 : 2);
		return true;
	case DW_FORM_data4:
	case DW_FORM_data8:
		*ret_number = dwarf_bytes__take(b, form == DW_FORM_data4 ? 4 : 8);
		return true;
	case DW_FORM_data16:
		*b = dwarf_bytes__from(*b, 16);
		return true;
	case DW_FORM_block:
		*ret_number = dwarf_bytes__uleb(b);
		*b = dwarf_bytes__from(*b, *ret_number);
		return true;
	}
	return false;
}

static int read_entry(struct dwarf_lines *l, struct dwarf_bytes *b, struct dwarf_bytes format,
		      uint64_t values, struct dwarf_line_paths *to)
{
	const char *name = NULL, *text;
	uint64_t folder = 0, number;

	for (; values; values--) {
		uint64_t what = dwarf_bytes__uleb(&format), form = dwarf_bytes__uleb(&format);

		if (!take_value(l, b, form, &text, &number))
			return -EBADMSG;
		if (what == DW_LNCT_path)
			name = text;
		else if (what == DW_LNCT_directory_index)
			folder = number;
	}
	return add(to, name, folder);
}

/* A list since DWARF 5: what its entries consist of, how many there are, and these. */
static int read_list(struct dwarf_lines *l, struct dwarf_bytes *b, struct dwarf_line_paths *to)
{
	uint64_t values = dwarf_bytes__take(b, 1), cnt;
	struct dwarf_bytes format = *b;
	size_t before;
	int err = 0;

	for (uint64_t i = 0; i < 2 * values; i++)
		dwarf_bytes__uleb(b);
	for (cnt = dwarf_bytes__uleb(b); cnt && !err; cnt--) {
		before = b->sz;
		err = read_entry(l, b, format, values, to);
		/* there may be any number of entries that take no bytes */
		if (!err && b->sz == before)
			err = -EBADMSG;
	}
	return err;
}

/* From the unit's table on. */
static struct dwarf_bytes find_table(const struct dwarf_file *f, Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	uint64_t off;

	if (!f->line || dwarf_formudata(dwarf_attr(unit, DW_AT_stmt_list, &attr), &off))
		return (struct dwarf_bytes){ 0 };
	return dwarf_bytes__from((struct dwarf_bytes){ f->line->d_buf, f->line->d_size }, off);
}

/* What stands before the lists; *b: the lists. */
static bool read_fields(struct dwarf_lines *l, struct dwarf_bytes *b)
{
	uint64_t sz = dwarf_bytes__take(b, 4);
	unsigned int standard;

	l->offset_sz = sz == 0xffffffff ? 8 : 4;
	if (l->offset_sz == 8)
		sz = dwarf_bytes__take(b, 8);
	if (sz > b->sz || sz > MAX_TABLE)
		return false;
	b->sz = sz;
	l->version = dwarf_bytes__take(b, 2);
	if (l->version < 2 || l->version > 5)
		return false;
	/* sizes of an address and of a segment's selector */
	if (l->version == 5)
		dwarf_bytes__take(b, 2);
	sz = dwarf_bytes__take(b, l->offset_sz);
	if (sz > b->sz)
		return false;
	l->program = dwarf_bytes__from(*b, sz);
	b->sz = sz;
	l->min_insn = dwarf_bytes__take(b, 1);
	/* an address has one instruction */
	if (l->version >= 4 && dwarf_bytes__take(b, 1) != 1)
		return false;
	dwarf_bytes__take(b, 1); /* is a row the beginning of a statement? */
	l->line_base = (int8_t)dwarf_bytes__take(b, 1);
	l->line_range = dwarf_bytes__take(b, 1);
	l->opcode_base = dwarf_bytes__take(b, 1);
	if (!l->line_range || !l->opcode_base || b->sz < l->opcode_base)
		return false;
	l->lengths = b->p;
	standard = l->opcode_base - 1;
	*b = dwarf_bytes__from(*b, standard);
	return !memcmp(l->lengths, standard_lengths,
		       MIN((size_t)standard, sizeof(standard_lengths)));
}

int dwarf_lines__open(struct dwarf_lines *l, const struct dwarf_file *f, Dwarf_Die *unit)
{
	struct dwarf_bytes b = find_table(f, unit);
	Dwarf_Attribute attr;
	int err;

	l->file = f;
	l->comp_dir = dwarf_file__string(f, dwarf_attr(unit, DW_AT_comp_dir, &attr));
	l->folders.cnt = l->files.cnt = 0;
	if (!read_fields(l, &b)) {
		l->program.sz = 0;
		return 0;
	}
	if (l->version < 5)
		err = read_lists(l, &b);
	else
		err = read_list(l, &b, &l->folders) ?: read_list(l, &b, &l->files);
	if (err == -ENOMEM)
		return err;
	/* lines without files */
	if (err)
		l->folders.cnt = l->files.cnt = 0;
	return 0;
}

void dwarf_lines__done(struct dwarf_lines *l)
{
	free(l->folders.v);
	free(l->files.v);
	*l = (struct dwarf_lines){ 0 };
}

/* ---- the program ---- */

/* The registers, and the row before the one that they make. */
struct machine {
	uint64_t address, file;
	uint32_t line;
	struct dwarf_row row;
	bool in_sequence; /* there is such a row */
	bool discarded;	  /* the sequence is of no code */
	size_t next;	  /* the first address that is not below the row */
	/* whom to tell */
	const uint64_t *addrs;
	size_t cnt;
	bool (*found)(void *ctx, size_t idx, const struct dwarf_row *row);
	void *ctx;
};

static void begin_sequence(struct machine *m)
{
	m->address = 0;
	m->file = m->line = 1;
	m->in_sequence = false;
}

/* The row before ends where this one begins. False: no more is wanted. */
static bool add_row(struct machine *m)
{
	if (!m->in_sequence)
		m->discarded = dwarf_is_discarded(m->address);
	else if (!m->discarded)
		for (; m->next < m->cnt && m->addrs[m->next] < m->address; m->next++)
			if (!m->found(m->ctx, m->next, &m->row))
				return false;
	if (!m->in_sequence || m->address < m->row.lo)
		m->next = sorted_lower_bound(m->addrs, m->cnt, m->address);
	m->row = (struct dwarf_row){ .lo = m->address,
				     .file = (uint32_t)MIN(m->file, UINT32_MAX),
				     .line = (int32_t)m->line < 0 ? 0 : m->line };
	m->in_sequence = true;
	return true;
}

/* One that begins with 0. False: no more is wanted. */
static bool run_extended(struct machine *m, struct dwarf_bytes *b)
{
	uint64_t sz = dwarf_bytes__uleb(b);
	struct dwarf_bytes in = { b->p, MIN(sz, b->sz) };

	*b = dwarf_bytes__from(*b, sz);
	switch (dwarf_bytes__take(&in, 1)) {
	case DW_LNE_end_sequence:
		if (!add_row(m))
			return false;
		begin_sequence(m);
		break;
	case DW_LNE_set_address:
		m->address = dwarf_bytes__take(&in, MIN(in.sz, sizeof(m->address)));
		break;
	}
	return true;
}

/* The same of a standard opcode. */
static bool run_standard(const struct dwarf_lines *l, struct machine *m, uint64_t op,
			 struct dwarf_bytes *b)
{
	switch (op) {
	case DW_LNS_copy:
		return add_row(m);
	case DW_LNS_advance_pc:
		m->address += dwarf_bytes__uleb(b) * l->min_insn;
		break;
	case DW_LNS_advance_line:
		m->line += (uint32_t)dwarf_bytes__sleb(b);
		break;
	case DW_LNS_set_file:
		m->file = dwarf_bytes__uleb(b);
		break;
	case DW_LNS_const_add_pc:
		m->address += (uint64_t)((255 - l->opcode_base) / l->line_range) * l->min_insn;
		break;
	case DW_LNS_fixed_advance_pc:
		m->address += dwarf_bytes__take(b, 2);
		break;
	default:
		for (unsigned int n = l->lengths[op - 1]; n; n--)
			dwarf_bytes__uleb(b);
	}
	return true;
}

void dwarf_lines__find(const struct dwarf_lines *l, const uint64_t *addrs, size_t cnt,
		       bool (*found)(void *ctx, size_t idx, const struct dwarf_row *row), void *ctx)
{
	struct machine m = { .addrs = addrs, .cnt = cnt, .found = found, .ctx = ctx };
	struct dwarf_bytes b = l->program;
	bool more = true;

	begin_sequence(&m);
	while (more && b.sz) {
		uint64_t op = dwarf_bytes__take(&b, 1);

		if (op >= l->opcode_base) {
			op -= l->opcode_base;
			m.address += op / l->line_range * l->min_insn;
			m.line += (uint32_t)(l->line_base + (int)(op % l->line_range));
			more = add_row(&m);
		} else if (op) {
			more = run_standard(l, &m, op, &b);
		} else {
			more = run_extended(&m, &b);
		}
	}
}

/* ---- paths ---- */

static bool is_absolute(const char *path)
{
	return path && path[0] == '/';
}

/* What stands before a part of a path, with what parts them. */
static const char *before(const char *folder)
{
	return folder ? folder : "";
}

static const char *parted(const char *folder)
{
	return folder && *folder ? "/" : "";
}

const char *dwarf_lines__path(const struct dwarf_lines *l, uint64_t file, char *buf, size_t sz)
{
	const struct dwarf_line_path *f = file < l->files.cnt ? &l->files.v[file] : NULL;
	const char *folder = NULL, *first = NULL, *dir = NULL;
	int n;

	if (!f || !f->name || (f->folder >= l->folders.cnt && !is_absolute(f->name)))
		return "";
	if (!is_absolute(f->name))
		folder = l->folders.v[f->folder].name;
	if (folder && !is_absolute(folder) && f->folder)
		first = l->folders.v[0].name;
	/* DWARF 5 lists the unit's directory as number 0, which need not be absolute */
	if (!is_absolute(f->name) && !is_absolute(folder) && !is_absolute(first))
		dir = l->comp_dir;
	if (dir && ((first && !strcmp(dir, first)) || (folder && !strcmp(dir, folder))))
		dir = NULL;
	n = snprintf(buf, sz, "%s%s%s%s%s%s%s", before(dir), parted(dir), before(first),
		     parted(first), before(folder), parted(folder), f->name);
	return n < 0 || (size_t)n >= sz ? "" : buf;
}
