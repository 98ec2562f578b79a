/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads bytes, the sections and the units of DWARF 2 to 5. */
#include "target/dwarf_read.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"

#define MAX_TOTAL (2ULL << 30) /* bytes of all debug sections of a file */
#define MAX_UNITS (1U << 20)
/* Each byte is looked at a few times; an honest file stays far below. */
#define BUDGET_PER_BYTE 8
#define BUDGET_MIN 1000000

/* ---- bytes ---- */

void rd_fail(struct rd *r)
{
	r->p = r->end;
	r->bad = true;
}

uint64_t rd_uint(struct rd *r, size_t sz)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->p) < sz) {
		rd_fail(r);
		return 0;
	}
	memcpy(&v, r->p, sz); /* little endian, as the files that elf_file lets pass */
	r->p += sz;
	return v;
}

uint64_t rd_uleb(struct rd *r)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t b;

	if (r->p < r->end && !(*r->p & 0x80))
		return *r->p++;
	do {
		if (r->p == r->end) {
			rd_fail(r);
			return 0;
		}
		b = *r->p++;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
	} while (b & 0x80);
	return v;
}

uint16_t rd_uleb16(struct rd *r)
{
	uint64_t v = rd_uleb(r);

	return MIN(v, 0xffff);
}

int64_t rd_sleb(struct rd *r)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t b;

	do {
		if (r->p == r->end) {
			rd_fail(r);
			return 0;
		}
		b = *r->p++;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
	} while (b & 0x80);
	if (b & 0x40 && shift < 64)
		v |= ~0ULL << shift;
	return (int64_t)v;
}

const char *rd_string(struct rd *r)
{
	const uint8_t *s = r->p, *nul = s < r->end ? memchr(s, 0, r->end - s) : NULL;

	if (!nul) {
		rd_fail(r);
		return NULL;
	}
	r->p = nul + 1;
	return (const char *)s;
}

void rd_skip(struct rd *r, uint64_t sz)
{
	if (sz > (uint64_t)(r->end - r->p))
		rd_fail(r);
	else
		r->p += sz;
}

unsigned int rd_unit_length(struct rd *r)
{
	uint64_t len = rd_uint(r, 4);
	unsigned int offset_sz = 4;

	if (len == 0xffffffff) {
		len = rd_uint(r, 8);
		offset_sz = 8;
	} else if (len >= 0xfffffff0) {
		rd_fail(r);
	}
	if (r->bad || len > (uint64_t)(r->end - r->p)) {
		rd_fail(r);
		return 0;
	}
	r->end = r->p + len;
	return offset_sz;
}

/* ---- sections, units ---- */

struct rd dwarf_file__rd(const struct dwarf_file *f, enum dwarf_sec sec, uint64_t off)
{
	struct rd r = {};

	if (!f->sec[sec] || off > f->sec_sz[sec]) {
		r.bad = true;
		return r;
	}
	r.p = f->sec[sec] + off;
	r.end = f->sec[sec] + f->sec_sz[sec];
	return r;
}

bool dwarf_file__spend(struct dwarf_file *f, uint64_t steps)
{
	if (f->budget < steps) {
		f->budget = 0;
		return false;
	}
	f->budget -= steps;
	return true;
}

static int load_sections(struct dwarf_file *f, const struct elf_file *elf)
{
	static const char *const names[DWARF_NR_SECS] = {
		[DWARF_SEC_INFO] = ".debug_info",
		[DWARF_SEC_ABBREV] = ".debug_abbrev",
		[DWARF_SEC_STR] = ".debug_str",
		[DWARF_SEC_LINE] = ".debug_line",
		[DWARF_SEC_LINE_STR] = ".debug_line_str",
		[DWARF_SEC_RANGES] = ".debug_ranges",
		[DWARF_SEC_RNGLISTS] = ".debug_rnglists",
		[DWARF_SEC_ADDR] = ".debug_addr",
		[DWARF_SEC_STR_OFFSETS] = ".debug_str_offsets",
	};
	struct elf_section s;
	uint64_t total = 0;
	void *buf;
	int i, err;

	for (i = 0; i < DWARF_NR_SECS; i++) {
		if (!elf_file__section(elf, names[i], &s))
			continue;
		err = elf_file__read_section(elf, &s, &buf, &f->sec_sz[i]);
		if (err)
			return err;
		f->sec[i] = buf;
		total += f->sec_sz[i];
		if (total > MAX_TOTAL)
			return -E2BIG;
	}
	f->budget = total * BUDGET_PER_BYTE + BUDGET_MIN;
	return f->sec_sz[DWARF_SEC_INFO] ? 0 : -ENOENT;
}

/* The header of the unit at r (DWARF 5, 7.5.1); moves r behind the unit. False if no more can be
 * read. */
static bool read_unit(const struct dwarf_file *f, struct rd *r, struct dwarf_unit *u)
{
	const uint8_t *info = f->sec[DWARF_SEC_INFO];
	struct rd h = *r;
	uint64_t addr_sz;

	memset(u, 0, sizeof(*u));
	u->off = r->p - info;
	u->offset_sz = rd_unit_length(&h);
	if (!u->offset_sz)
		return false;
	r->p = h.end;
	u->end = h.end - info;
	u->version = rd_uint(&h, 2);
	u->type = DW_UT_compile;
	if (u->version >= 5) {
		u->type = rd_uint(&h, 1);
		addr_sz = rd_uint(&h, 1);
		u->abbrev_off = rd_uint(&h, u->offset_sz);
		if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
			rd_skip(&h, 8);
		else if (u->type == DW_UT_type || u->type == DW_UT_split_type)
			rd_skip(&h, 8 + u->offset_sz);
	} else {
		u->abbrev_off = rd_uint(&h, u->offset_sz);
		addr_sz = rd_uint(&h, 1);
	}
	u->die_off = h.p - info;
	/* a unit that is none of ours is passed over: no DIE lies in it */
	if (h.bad || u->version < 2 || u->version > 5 || addr_sz != 8)
		u->die_off = u->end;
	return true;
}

/* DWARF 5, 7.12, and the codes that were given out after it (dwarfstd.org/languages.html). */
static bool is_cxx(uint64_t language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b: /* C++17 */
	case 0x2c: /* C++20 */
		return true;
	}
	return false;
}

/* Attributes of a unit's first DIE that its other DIEs depend on. */
static int read_root(struct dwarf_file *f, struct dwarf_unit *u, struct dwarf_abbrevs *abbrevs)
{
	struct dwarf_value low = {}, comp_dir = {}, v;
	const struct dwarf_abbrev *ab;
	struct rd r = dwarf_file__rd(f, DWARF_SEC_INFO, u->die_off);
	uint64_t code;
	uint32_t i;
	int err;

	/* DWARF 5, 7.26 and 7.27: where the header of the only table ends */
	u->str_base = u->addr_base = u->offset_sz == 4 ? 8 : 16;
	u->rnglists_base = u->offset_sz == 4 ? 12 : 20;
	r.end = f->sec[DWARF_SEC_INFO] + u->end;
	code = rd_uleb(&r);
	if (!code)
		return 0;
	err = dwarf_abbrevs__read(f, u, code, abbrevs);
	ab = err ? NULL : dwarf_abbrevs__find(abbrevs, code);
	if (!ab)
		return err == -ENOMEM ? err : 0;
	for (i = 0; i < ab->spec_cnt; i++) {
		v = dwarf_read_value(&r, u, &abbrevs->specs[ab->spec + i]);
		switch (abbrevs->specs[ab->spec + i].attr) {
		case DW_AT_low_pc:
			low = v;
			break;
		case DW_AT_comp_dir:
			comp_dir = v;
			break;
		case DW_AT_stmt_list:
			u->has_lines = dwarf_value_const(&v, &u->line_off);
			break;
		case DW_AT_language:
			u->cxx = is_cxx(v.u);
			break;
		case DW_AT_str_offsets_base:
			u->str_base = v.u;
			break;
		case DW_AT_addr_base:
		case DW_AT_GNU_addr_base:
			u->addr_base = v.u;
			break;
		case DW_AT_rnglists_base:
			u->rnglists_base = v.u;
			break;
		}
	}
	/* these need the bases, which may stand behind them */
	dwarf_value_address(f, u, &low, &u->low_pc);
	u->comp_dir = dwarf_value_string(f, u, &comp_dir);
	return 0;
}

static int load_units(struct dwarf_file *f)
{
	struct rd r = dwarf_file__rd(f, DWARF_SEC_INFO, 0);
	struct dwarf_abbrevs abbrevs = {};
	struct dwarf_unit u;
	int err = 0;

	while (!err && r.p < r.end && f->unit_cnt < MAX_UNITS && read_unit(f, &r, &u)) {
		if (u.die_off >= u.end)
			continue;
		err = util_reserve(&f->units, &f->unit_cap, f->unit_cnt + 1, sizeof(*f->units));
		if (!err)
			err = read_root(f, &u, &abbrevs);
		if (!err)
			f->units[f->unit_cnt++] = u;
	}
	dwarf_abbrevs__done(&abbrevs);
	return err;
}

struct dwarf_file *dwarf_file__load(const struct elf_file *elf, struct dwarf_file *alt)
{
	struct dwarf_file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return NULL;
	f->alt = alt;
	err = load_sections(f, elf);
	if (!err)
		err = load_units(f);
	if (err) {
		dwarf_file__free(f);
		errno = -err;
		return NULL;
	}
	return f;
}

void dwarf_file__free(struct dwarf_file *f)
{
	int i;

	if (!f)
		return;
	for (i = 0; i < DWARF_NR_SECS; i++)
		free(f->sec[i]);
	free(f->units);
	free(f);
}

const struct dwarf_unit *dwarf_file__unit_at(const struct dwarf_file *f, uint64_t off)
{
	size_t lo = 0, hi = f->unit_cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->units[mid].off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || off < f->units[lo - 1].die_off || off >= f->units[lo - 1].end)
		return NULL;
	return &f->units[lo - 1];
}
