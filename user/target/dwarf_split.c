/* SPDX-License-Identifier: BSD-2-Clause */
/* Every number comes from a file of somebody else's: what leads out of its section is none. */
#include "target/dwarf_split.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/dwarf_file.h"
#include "target/elf_file.h"

#define MAX_ABBREV (64U << 20)
#define MAX_SECTION (512U << 20)

/* Their columns in .debug_cu_index (DWARF 5, 7.3.5.3; GNU's has the same for these). */
static const struct {
	const char *name;
	uint32_t column; /* 0: all units share it */
	bool needed;
} sections[DWARF_SPLIT_NR] = {
	[DWARF_SPLIT_INFO] = { ".debug_info.dwo", 1, true },
	[DWARF_SPLIT_ABBREV] = { ".debug_abbrev.dwo", 3, true },
	[DWARF_SPLIT_STR_OFFSETS] = { ".debug_str_offsets.dwo", 6, false },
	[DWARF_SPLIT_RNGLISTS] = { ".debug_rnglists.dwo", 8, false },
	[DWARF_SPLIT_STR] = { ".debug_str.dwo", 0, false },
	[DWARF_SPLIT_INDEX] = { ".debug_cu_index", 0, false },
};

/* ---- numbers ---- */

/* Entry idx of a table of n bytes each. */
static bool at(struct dwarf_bytes table, uint64_t idx, size_t n, uint64_t *ret)
{
	if (idx >= table.sz / n)
		return false;
	table = dwarf_bytes__from(table, idx * n);
	*ret = dwarf_bytes__take(&table, n);
	return true;
}

/* ---- whether there is another file ---- */

/* Takes one declaration (DWARF 5, 7.5.3). Returns whether it has the name of a .dwo file. */
static bool take_declaration(struct dwarf_bytes *b)
{
	uint64_t attr, form;
	bool ret = false;

	dwarf_bytes__uleb(b);	 /* tag */
	dwarf_bytes__take(b, 1); /* has children */
	do {
		attr = dwarf_bytes__uleb(b);
		form = dwarf_bytes__uleb(b);
		if (form == DW_FORM_implicit_const)
			dwarf_bytes__uleb(b);
		ret |= attr == DW_AT_dwo_name || attr == DW_AT_GNU_dwo_name;
	} while (attr || form);
	return ret;
}

bool dwarf_split__may_be(const struct elf_file *elf)
{
	struct elf_section s;
	struct dwarf_bytes b;
	bool ret = false;
	void *data;

	/* clang's units of DWARF 5 have their addresses there in any case */
	if (!elf_file__section(elf, ".debug_addr", &s))
		return false;
	if (!elf_file__section(elf, ".debug_abbrev", &s) ||
	    elf_file__read_section(elf, &s, MAX_ABBREV, &data, &b.sz))
		return true;
	b.p = data;
	/* a code of 0 ends the declarations of a unit, behind which those of others may come */
	while (!ret && b.sz)
		if (dwarf_bytes__uleb(&b))
			ret = take_declaration(&b);
	free(data);
	return ret;
}

/* ---- the file ---- */

int dwarf_split_file__open(struct dwarf_split_file *f, const struct elf_file *elf)
{
	struct elf_section s;
	int err = 0;

	*f = (struct dwarf_split_file){ 0 };
	for (size_t i = 0; i < DWARF_SPLIT_NR && !err; i++) {
		if (elf_file__section(elf, sections[i].name, &s))
			err = elf_file__read_section(elf, &s, MAX_SECTION, &f->data[i], &f->sz[i]);
		else if (sections[i].needed)
			err = -ENOENT;
	}
	if (err)
		dwarf_split_file__close(f);
	return err;
}

void dwarf_split_file__close(struct dwarf_split_file *f)
{
	for (size_t i = 0; i < DWARF_SPLIT_NR; i++)
		free(f->data[i]);
	*f = (struct dwarf_split_file){ 0 };
}

/* ---- the parts of a unit ---- */

/* The row of a unit in the index, from 1 on; 0: it is not there. */
static uint64_t find_row(struct dwarf_bytes ids, uint64_t slots, uint64_t id)
{
	struct dwarf_bytes rows = dwarf_bytes__from(ids, slots * 8);
	uint64_t mask = slots - 1, slot = id & mask, step = ((id >> 32) & mask) | 1, found, row;

	for (uint64_t i = 0; i < slots; i++, slot = (slot + step) & mask) {
		if (!at(ids, slot, 8, &found) || !at(rows, slot, 4, &row) || !row)
			return 0;
		if (found == id)
			return row;
	}
	return 0;
}

/* The parts of the sections that belong to the unit of a .dwp. */
static int find_parts(struct dwarf_bytes index, uint64_t id, struct dwarf_bytes *parts)
{
	uint64_t columns, units, slots, row, column, off, sz;
	struct dwarf_bytes ids, table;

	dwarf_bytes__take(&index, 4); /* version */
	columns = dwarf_bytes__take(&index, 4);
	units = dwarf_bytes__take(&index, 4);
	slots = dwarf_bytes__take(&index, 4);
	ids = index;
	if (!slots || slots & (slots - 1) || slots > index.sz / 12 || columns > 16)
		return -EBADMSG;
	table = dwarf_bytes__from(index, slots * 12);
	row = find_row(ids, slots, id);
	if (!row || row > units)
		return -ENOENT;
	for (size_t i = 0; i < DWARF_SPLIT_NR; i++) {
		if (!sections[i].column)
			continue;
		for (uint64_t c = 0; c < columns && at(table, c, 4, &column); c++) {
			if (column != sections[i].column ||
			    !at(table, row * columns + c, 4, &off) ||
			    !at(table, (units + row) * columns + c, 4, &sz))
				continue;
			parts[i] = dwarf_bytes__from(parts[i], off);
			parts[i].sz = MIN(parts[i].sz, sz);
		}
	}
	return 0;
}

/* ---- the unit ---- */

static struct dwarf_bytes data_from(const Elf_Data *data, Dwarf_Die *die, unsigned int base,
				    unsigned int gnu_base)
{
	struct dwarf_bytes all = { data ? data->d_buf : NULL, data ? data->d_size : 0 };
	Dwarf_Attribute attr;
	Dwarf_Word off = 0;

	if (dwarf_attr(die, base, &attr) || dwarf_attr(die, gnu_base, &attr))
		dwarf_formudata(&attr, &off);
	return dwarf_bytes__from(all, off);
}

static int open_image(struct dwarf_split *s, const struct dwarf_bytes *parts)
{
	const struct dwarf_image_section two[] = {
		{ ".debug_info", parts[DWARF_SPLIT_INFO].p, parts[DWARF_SPLIT_INFO].sz },
		{ ".debug_abbrev", parts[DWARF_SPLIT_ABBREV].p, parts[DWARF_SPLIT_ABBREV].sz },
	};
	int err = dwarf_image__make(&s->image, two, ARRAY_SIZE(two));

	if (err)
		return err;
	s->elf = elf_memory((char *)s->image.data, s->image.sz);
	s->dbg = s->elf ? dwarf_file_begin(s->elf) : NULL;
	/* the first section's bytes: dwarf_image__make */
	s->info = (struct dwarf_bytes){ s->image.data + sizeof(Elf64_Ehdr), two[0].sz };
	return s->dbg ? 0 : -EBADMSG;
}

static int find_unit(struct dwarf_split *s, uint64_t id)
{
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Half version;
	uint64_t found;

	while (!dwarf_get_units(s->dbg, cu, &cu, &version, &type, &s->unit, NULL)) {
		if (type != DW_UT_split_compile || !s->unit.addr ||
		    dwarf_cu_info(cu, NULL, NULL, NULL, NULL, &found, NULL, NULL) || found != id)
			continue;
		s->version = version;
		return 0;
	}
	return -ENOENT;
}

int dwarf_split__open(struct dwarf_split *s, const struct dwarf_split_file *f,
		      const struct dwarf_file *of, Dwarf_Die *skeleton)
{
	struct dwarf_bytes parts[DWARF_SPLIT_NR];
	Dwarf_Attribute attr;
	Dwarf_Addr base;
	uint64_t id = 0;
	int err = 0;

	*s = (struct dwarf_split){ 0 };
	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, NULL, &id, NULL, NULL) || !id)
		return -ENOENT;
	for (size_t i = 0; i < DWARF_SPLIT_NR; i++)
		parts[i] = (struct dwarf_bytes){ f->data[i], f->sz[i] };
	if (f->sz[DWARF_SPLIT_INDEX])
		err = find_parts(parts[DWARF_SPLIT_INDEX], id, parts);
	if (!err)
		err = open_image(s, parts);
	if (!err)
		err = find_unit(s, id);
	if (err) {
		dwarf_split__close(s);
		return err;
	}
	s->str = parts[DWARF_SPLIT_STR];
	s->str_offsets = dwarf_bytes__from(parts[DWARF_SPLIT_STR_OFFSETS], s->version >= 5 ? 8 : 0);
	s->rnglists = parts[DWARF_SPLIT_RNGLISTS];
	s->addr = data_from(of->addr, skeleton, DW_AT_addr_base, DW_AT_GNU_addr_base);
	s->ranges = data_from(of->ranges, skeleton, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base);
	if (dwarf_attr(skeleton, DW_AT_low_pc, &attr) && !dwarf_formaddr(&attr, &base))
		s->base = base;
	return 0;
}

void dwarf_split__close(struct dwarf_split *s)
{
	dwarf_end(s->dbg);
	elf_end(s->elf);
	dwarf_image__done(&s->image);
	*s = (struct dwarf_split){ 0 };
}

/* ---- attributes ---- */

/* What stands in the DIE, as far as it may reach. */
static struct dwarf_bytes value_of(const struct dwarf_split *s, const Dwarf_Attribute *attr)
{
	if (attr->valp < s->info.p || attr->valp >= s->info.p + s->info.sz)
		return (struct dwarf_bytes){ 0 };
	return dwarf_bytes__from(s->info, (uint64_t)(attr->valp - s->info.p));
}

const char *dwarf_split__string(const struct dwarf_split *s, Dwarf_Attribute *attr)
{
	struct dwarf_bytes v;
	uint64_t idx, off;

	if (!attr)
		return NULL;
	v = value_of(s, attr);
	switch (attr->form) {
	case DW_FORM_string:
		return memchr(v.p, 0, v.sz) ? (const char *)v.p : NULL;
	case DW_FORM_strx:
	case DW_FORM_GNU_str_index:
		idx = dwarf_bytes__uleb(&v);
		break;
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		idx = dwarf_bytes__take(&v, attr->form - DW_FORM_strx1 + 1);
		break;
	default:
		return NULL;
	}
	if (!at(s->str_offsets, idx, 4, &off))
		return NULL;
	v = dwarf_bytes__from(s->str, off);
	return v.sz && memchr(v.p, 0, v.sz) ? (const char *)v.p : NULL;
}

static bool address(const struct dwarf_split *s, Dwarf_Attribute *attr, uint64_t *ret)
{
	struct dwarf_bytes v = value_of(s, attr);

	switch (attr->form) {
	case DW_FORM_addr:
		*ret = dwarf_bytes__take(&v, 8);
		return true;
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		return at(s->addr, dwarf_bytes__uleb(&v), 8, ret);
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		return at(s->addr, dwarf_bytes__take(&v, attr->form - DW_FORM_addrx1 + 1), 8, ret);
	}
	return false;
}

/* ---- ranges ---- */

/* The list of a DIE: DWARF 5, 7.28. */
static struct dwarf_bytes list_of(const struct dwarf_split *s, Dwarf_Attribute *attr)
{
	struct dwarf_bytes v = value_of(s, attr), offsets = dwarf_bytes__from(s->rnglists, 12);
	uint64_t off;

	if (s->version < 5)
		return dwarf_bytes__from(s->ranges, dwarf_bytes__take(&v, 4));
	if (attr->form != DW_FORM_rnglistx)
		return dwarf_bytes__from(s->rnglists, dwarf_bytes__take(&v, 4));
	return at(offsets, dwarf_bytes__uleb(&v), 4, &off) ? dwarf_bytes__from(offsets, off) :
							     (struct dwarf_bytes){ 0 };
}

void dwarf_split_ranges__init(struct dwarf_split_ranges *r, const struct dwarf_split *s,
			      Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word len;

	*r = (struct dwarf_split_ranges){ .s = s, .base = s->base };
	if (dwarf_attr(die, DW_AT_ranges, &attr)) {
		r->list = list_of(s, &attr);
		return;
	}
	if (!dwarf_attr(die, DW_AT_low_pc, &attr) || !address(s, &attr, &r->lo) ||
	    !dwarf_attr(die, DW_AT_high_pc, &attr))
		return;
	if (!address(s, &attr, &r->hi))
		r->hi = dwarf_formudata(&attr, &len) ? r->lo : r->lo + len;
}

/* DWARF 4, 2.17.3 */
static bool next_old(struct dwarf_split_ranges *r, uint64_t *lo, uint64_t *hi)
{
	while (r->list.sz >= 16) {
		*lo = dwarf_bytes__take(&r->list, 8);
		*hi = dwarf_bytes__take(&r->list, 8);
		if (!*lo && !*hi)
			break;
		if (*lo != UINT64_MAX) {
			*lo += r->base;
			*hi += r->base;
			return true;
		}
		r->base = *hi;
	}
	r->list.sz = 0;
	return false;
}

/* DWARF 5, 2.17.3. False at the end. */
static bool next_entry(struct dwarf_split_ranges *r, uint64_t *lo, uint64_t *hi)
{
	struct dwarf_bytes *b = &r->list, addr = r->s->addr;

	*lo = *hi = 0;
	switch (dwarf_bytes__take(b, 1)) {
	case DW_RLE_base_addressx:
		return at(addr, dwarf_bytes__uleb(b), 8, &r->base);
	case DW_RLE_base_address:
		r->base = dwarf_bytes__take(b, 8);
		return true;
	case DW_RLE_startx_endx:
		return at(addr, dwarf_bytes__uleb(b), 8, lo) &&
		       at(addr, dwarf_bytes__uleb(b), 8, hi);
	case DW_RLE_startx_length:
		if (!at(addr, dwarf_bytes__uleb(b), 8, lo))
			return false;
		*hi = *lo + dwarf_bytes__uleb(b);
		return true;
	case DW_RLE_offset_pair:
		*lo = r->base + dwarf_bytes__uleb(b);
		*hi = r->base + dwarf_bytes__uleb(b);
		return true;
	case DW_RLE_start_end:
		*lo = dwarf_bytes__take(b, 8);
		*hi = dwarf_bytes__take(b, 8);
		return true;
	case DW_RLE_start_length:
		*lo = dwarf_bytes__take(b, 8);
		*hi = *lo + dwarf_bytes__uleb(b);
		return true;
	}
	return false;
}

bool dwarf_split_ranges__next(struct dwarf_split_ranges *r, uint64_t *lo, uint64_t *hi)
{
	if (r->lo < r->hi) {
		*lo = r->lo;
		*hi = r->hi;
		r->lo = r->hi;
		return true;
	}
	if (r->s->version < 5)
		return next_old(r, lo, hi);
	while (r->list.sz && next_entry(r, lo, hi))
		if (*lo < *hi)
			return true;
	r->list.sz = 0;
	return false;
}
