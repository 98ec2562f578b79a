/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the ranges of addresses of a DIE, one by one. */
#include "target/dwarf_read.h"

#include <dwarf.h>
#include <string.h>

bool dwarf_ranges__init(struct dwarf_ranges *it, struct dwarf_file *f, const struct dwarf_unit *u,
			const struct dwarf_value *low, const struct dwarf_value *high,
			const struct dwarf_value *ranges)
{
	uint64_t off;

	memset(it, 0, sizeof(*it));
	it->f = f;
	it->u = u;
	it->base = u->low_pc;
	if (ranges->form) {
		if (ranges->form == DW_FORM_rnglistx) {
			if (!dwarf_table_entry(f, DWARF_SEC_RNGLISTS, u->rnglists_base, ranges->u,
					       u->offset_sz, &off))
				return false;
			off += u->rnglists_base;
		} else if (!dwarf_value_const(ranges, &off)) {
			return false;
		}
		it->r = dwarf_file__rd(f, u->version >= 5 ? DWARF_SEC_RNGLISTS : DWARF_SEC_RANGES,
				       off);
		it->list = true;
		return !it->r.bad;
	}
	if (!dwarf_value_address(f, u, low, &it->lo))
		return false;
	/* since DWARF 4 the high pc may be given as a length */
	if (dwarf_value_const(high, &off))
		it->hi = it->lo + off;
	else if (!dwarf_value_address(f, u, high, &it->hi))
		return false;
	return true;
}

/* One entry of .debug_ranges (DWARF 4, 2.17.3). False at the end. */
static bool next_old(struct dwarf_ranges *it)
{
	uint64_t a = rd_uint(&it->r, 8), b = rd_uint(&it->r, 8);

	if (it->r.bad || (!a && !b))
		return false;
	it->lo = it->hi = 0;
	if (a == UINT64_MAX) {
		it->base = b;
	} else {
		it->lo = it->base + a;
		it->hi = it->base + b;
	}
	return true;
}

/* One entry of .debug_rnglists (DWARF 5, 7.25). False at the end. */
static bool next_new(struct dwarf_ranges *it)
{
	struct dwarf_value v = { .form = DW_FORM_addrx };
	uint64_t kind = rd_uint(&it->r, 1), a;

	it->lo = it->hi = 0;
	switch (kind) {
	case DW_RLE_base_addressx:
		v.u = rd_uleb(&it->r);
		return !it->r.bad && dwarf_value_address(it->f, it->u, &v, &it->base);
	case DW_RLE_startx_endx:
	case DW_RLE_startx_length:
		v.u = rd_uleb(&it->r);
		if (!dwarf_value_address(it->f, it->u, &v, &it->lo))
			return false;
		v.u = rd_uleb(&it->r);
		if (kind == DW_RLE_startx_length)
			it->hi = it->lo + v.u;
		else if (!dwarf_value_address(it->f, it->u, &v, &it->hi))
			return false;
		break;
	case DW_RLE_offset_pair:
		it->lo = it->base + rd_uleb(&it->r);
		it->hi = it->base + rd_uleb(&it->r);
		break;
	case DW_RLE_base_address:
		it->base = rd_uint(&it->r, 8);
		break;
	case DW_RLE_start_end:
		it->lo = rd_uint(&it->r, 8);
		it->hi = rd_uint(&it->r, 8);
		break;
	case DW_RLE_start_length:
		it->lo = rd_uint(&it->r, 8);
		a = rd_uleb(&it->r);
		it->hi = it->lo + a;
		break;
	default: /* DW_RLE_end_of_list among them */
		return false;
	}
	return !it->r.bad;
}

bool dwarf_ranges__next(struct dwarf_ranges *it, uint64_t *ret_lo, uint64_t *ret_hi)
{
	for (;;) {
		uint64_t lo = it->lo, hi = it->hi;

		it->lo = it->hi = 0;
		/* linkers give discarded code the address 0, or -1 or -2 */
		if (lo && lo < hi) {
			*ret_lo = lo;
			*ret_hi = hi;
			return true;
		}
		if (!it->list || !dwarf_file__spend(it->f, 1))
			return false;
		if (!(it->u->version >= 5 ? next_new(it) : next_old(it)))
			return false;
	}
}
