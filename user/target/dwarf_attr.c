/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads abbreviations and the values of attributes, DWARF 2 to 5. */
#include "target/dwarf_read.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define MAX_ABBREVS (1U << 16) /* of a unit */
#define MAX_SPECS (1U << 20)   /* of a unit, all abbreviations together */

/* ---- abbreviations ---- */

/* Bytes of a value of this form; -1 if it has no fixed size (DWARF 5, 7.5.6). */
static int form_size(uint16_t form, const struct dwarf_unit *u)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_addr:
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_ref_addr:
		/* as large as an address in DWARF 2 */
		return u->version == 2 ? 8 : u->offset_sz;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return u->offset_sz;
	}
	return -1;
}

/* The attributes of one abbreviation; appended to ret unless that is NULL. */
static int read_specs(struct rd *r, const struct dwarf_unit *u, struct dwarf_abbrevs *ret,
		      struct dwarf_abbrev *ab)
{
	struct dwarf_spec s;
	uint64_t attr, form;
	int sz;

	for (;;) {
		attr = rd_uleb(r);
		form = rd_uleb(r);
		s.implicit = form == DW_FORM_implicit_const ? rd_sleb(r) : 0;
		if (r->bad)
			return -EBADMSG;
		if (!attr && !form)
			return 0;
		if (!ret)
			continue;
		/* beyond 16 bits nothing is defined; 0xffff is an attribute that nobody asks for
		 * and an unknown form */
		s.attr = MIN(attr, 0xffff);
		s.form = MIN(form, 0xffff);
		if (ret->spec_cnt >= MAX_SPECS)
			return -EBADMSG;
		if (util_reserve(&ret->specs, &ret->spec_cap, ret->spec_cnt + 1, sizeof(s)))
			return -ENOMEM;
		ret->specs[ret->spec_cnt++] = s;
		ab->spec_cnt++;
		sz = form_size(s.form, u);
		ab->fixed_sz = sz < 0 || ab->fixed_sz < 0 ? -1 : ab->fixed_sz + sz;
	}
}

static int compare_codes(const void *a, const void *b)
{
	uint64_t x = ((const struct dwarf_abbrev *)a)->code,
		 y = ((const struct dwarf_abbrev *)b)->code;

	return x < y ? -1 : x > y;
}

int dwarf_abbrevs__read(struct dwarf_file *f, const struct dwarf_unit *u, uint64_t only,
			struct dwarf_abbrevs *ret)
{
	struct rd r = dwarf_file__rd(f, DWARF_SEC_ABBREV, u->abbrev_off);
	const uint8_t *start = r.p;
	bool sorted = true;
	int err = 0;

	ret->cnt = ret->spec_cnt = 0;
	while (!err) {
		struct dwarf_abbrev ab = { .code = rd_uleb(&r), .spec = ret->spec_cnt };
		bool wanted = !only || ab.code == only;

		if (!ab.code)
			break;
		ab.tag = rd_uleb16(&r);
		ab.children = rd_uint(&r, 1) != 0;
		err = read_specs(&r, u, wanted ? ret : NULL, &ab);
		if (err || !wanted)
			continue;
		if (ret->cnt >= MAX_ABBREVS)
			err = -EBADMSG;
		else
			err = util_reserve(&ret->abbrevs, &ret->cap, ret->cnt + 1, sizeof(ab));
		if (err)
			continue;
		sorted = sorted && (!ret->cnt || ret->abbrevs[ret->cnt - 1].code < ab.code);
		ret->abbrevs[ret->cnt++] = ab;
		if (only)
			break;
	}
	if (!dwarf_file__spend(f, r.p - start))
		return -EBADMSG;
	if (!sorted)
		qsort(ret->abbrevs, ret->cnt, sizeof(*ret->abbrevs), compare_codes);
	return err ? err : r.bad ? -EBADMSG : 0;
}

void dwarf_abbrevs__done(struct dwarf_abbrevs *a)
{
	free(a->abbrevs);
	free(a->specs);
	memset(a, 0, sizeof(*a));
}

const struct dwarf_abbrev *dwarf_abbrevs__find(const struct dwarf_abbrevs *a, uint64_t code)
{
	struct dwarf_abbrev key = { .code = code };

	/* compilers number them from 1 without gaps */
	if (code - 1 < a->cnt && a->abbrevs[code - 1].code == code)
		return &a->abbrevs[code - 1];
	return a->cnt ? bsearch(&key, a->abbrevs, a->cnt, sizeof(key), compare_codes) : NULL;
}

/* ---- attribute values ---- */

/* The values whose forms have no fixed size. */
static void read_varying(struct rd *r, const struct dwarf_spec *spec, struct dwarf_value *v)
{
	switch (v->form) {
	case DW_FORM_flag_present:
		v->u = 1;
		break;
	case DW_FORM_implicit_const:
		v->u = (uint64_t)spec->implicit;
		break;
	case DW_FORM_sdata:
		v->u = (uint64_t)rd_sleb(r);
		break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		v->u = rd_uleb(r);
		break;
	case DW_FORM_string:
		v->str = rd_string(r);
		break;
	case DW_FORM_block1:
		rd_skip(r, rd_uint(r, 1));
		break;
	case DW_FORM_block2:
		rd_skip(r, rd_uint(r, 2));
		break;
	case DW_FORM_block4:
		rd_skip(r, rd_uint(r, 4));
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		rd_skip(r, rd_uleb(r));
		break;
	default:
		rd_fail(r);
	}
}

struct dwarf_value dwarf_read_value(struct rd *r, const struct dwarf_unit *u,
				    const struct dwarf_spec *spec)
{
	struct dwarf_value v = { .form = spec->form };
	int sz;

	if (v.form == DW_FORM_indirect) {
		v.form = rd_uleb16(r);
		/* the value of an implicit_const stands in the abbreviation, of which there is none
		 */
		if (v.form == DW_FORM_indirect || v.form == DW_FORM_implicit_const)
			rd_fail(r);
	}
	sz = form_size(v.form, u);
	if (sz > 8)
		rd_skip(r, sz);
	else if (sz > 0)
		v.u = rd_uint(r, sz);
	else
		read_varying(r, spec, &v);
	if (r->bad)
		v.form = 0;
	return v;
}

static const char *string_at(const struct dwarf_file *f, enum dwarf_sec sec, uint64_t off)
{
	struct rd r = dwarf_file__rd(f, sec, off);

	return rd_string(&r);
}

bool dwarf_table_entry(const struct dwarf_file *f, enum dwarf_sec sec, uint64_t base, uint64_t idx,
		       size_t sz, uint64_t *ret)
{
	struct rd r;

	if (base > f->sec_sz[sec] || idx > f->sec_sz[sec] / sz)
		return false;
	r = dwarf_file__rd(f, sec, base + idx * sz);
	*ret = rd_uint(&r, sz);
	return !r.bad;
}

const char *dwarf_value_string(const struct dwarf_file *f, const struct dwarf_unit *u,
			       const struct dwarf_value *v)
{
	uint64_t off;

	switch (v->form) {
	case DW_FORM_string:
		return v->str;
	case DW_FORM_strp:
		return string_at(f, DWARF_SEC_STR, v->u);
	case DW_FORM_line_strp:
		return string_at(f, DWARF_SEC_LINE_STR, v->u);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return f->alt ? string_at(f->alt, DWARF_SEC_STR, v->u) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		if (!dwarf_table_entry(f, DWARF_SEC_STR_OFFSETS, u->str_base, v->u, u->offset_sz,
				       &off))
			return NULL;
		return string_at(f, DWARF_SEC_STR, off);
	}
	return NULL;
}

bool dwarf_value_address(const struct dwarf_file *f, const struct dwarf_unit *u,
			 const struct dwarf_value *v, uint64_t *ret)
{
	switch (v->form) {
	case DW_FORM_addr:
		*ret = v->u;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return dwarf_table_entry(f, DWARF_SEC_ADDR, u->addr_base, v->u, 8, ret);
	}
	return false;
}

bool dwarf_value_ref(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret,
		     bool *ret_alt)
{
	*ret_alt = false;
	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (v->u > u->end - u->off)
			return false;
		*ret = u->off + v->u;
		return true;
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case DW_FORM_GNU_ref_alt:
		*ret_alt = true;
		*ret = v->u;
		return true;
	case DW_FORM_ref_addr:
		*ret = v->u;
		return true;
	}
	return false;
}

bool dwarf_value_const(const struct dwarf_value *v, uint64_t *ret)
{
	switch (v->form) {
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_sec_offset:
		*ret = v->u;
		return true;
	}
	return false;
}
