/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads .debug_aranges as it stands: libdw would make a list of all that is in it, and sort that. */
#include "target/dwarf_aranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/util.h"
#include "target/dwarf_file.h"

/* What is left of the section, or of a set in it. */
struct cursor {
	const uint8_t *p;
	size_t sz;
};

static bool take(struct cursor *c, void *to, size_t n)
{
	if (c->sz < n)
		return false;
	memcpy(to, c->p, n);
	c->p += n;
	c->sz -= n;
	return true;
}

/* A set's length, and how many bytes its offsets have. */
static bool take_length(struct cursor *c, uint64_t *ret, size_t *ret_offset_sz)
{
	uint32_t len;

	if (!take(c, &len, sizeof(len)))
		return false;
	*ret = len;
	*ret_offset_sz = 4;
	if (len != 0xffffffff) /* 7.4 */
		return true;
	*ret_offset_sz = 8;
	return take(c, ret, sizeof(*ret));
}

struct set {
	uint64_t unit;
	struct cursor tuples; /* of an address and a length */
};

/* The next set of the section. False if there is none; without tuples if its form is unknown. */
static bool take_set(struct cursor *section, struct set *ret)
{
	const uint8_t *begin = section->p;
	struct cursor c = *section;
	uint8_t address_sz, segment_sz;
	size_t offset_sz, padding;
	uint64_t len;
	uint16_t version;

	*ret = (struct set){ 0 };
	if (!take_length(&c, &len, &offset_sz) || len > c.sz)
		return false;
	section->p = c.p + len;
	section->sz = c.sz - len;
	c.sz = len;
	if (!take(&c, &version, sizeof(version)) || !take(&c, &ret->unit, offset_sz) ||
	    !take(&c, &address_sz, 1) || !take(&c, &segment_sz, 1) || version != 2 ||
	    address_sz != 8 || segment_sz)
		return true;
	/* the first tuple is at a multiple of a tuple's size */
	padding = -(size_t)(c.p - begin) % 16;
	if (padding > c.sz)
		return true;
	ret->tuples = (struct cursor){ c.p + padding, c.sz - padding };
	return true;
}

/* Is there one of them in [lo, lo + len)? */
static bool any_in(const uint64_t *vaddrs, size_t cnt, uint64_t lo, uint64_t len)
{
	size_t i = sorted_lower_bound(vaddrs, cnt, lo);

	return i < cnt && vaddrs[i] - lo < len;
}

static int add(struct dwarf_aranges *a, struct set *set, const uint64_t *vaddrs, size_t cnt)
{
	struct dwarf_aranges_unit unit = { .off = set->unit };
	bool listed = false;
	uint64_t tuple[2];

	/* to the end of the set: a pair of zeros also stands for code that the linker has left out */
	while (take(&set->tuples, tuple, sizeof(tuple))) {
		if (!tuple[1] || dwarf_is_discarded(tuple[0]))
			continue;
		listed = true;
		unit.holds |= any_in(vaddrs, cnt, tuple[0], tuple[1]);
	}
	if (!listed)
		return 0;
	if (util_reserve(&a->units, &a->cap, a->cnt + 1, sizeof(*a->units)))
		return -ENOMEM;
	a->units[a->cnt++] = unit;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct dwarf_aranges_unit *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

/* A unit may have several sets. */
static void sort(struct dwarf_aranges *a)
{
	size_t n = 0;

	if (a->cnt)
		qsort(a->units, a->cnt, sizeof(*a->units), compare);
	for (size_t i = 0; i < a->cnt; i++) {
		if (n && a->units[n - 1].off == a->units[i].off)
			a->units[n - 1].holds |= a->units[i].holds;
		else
			a->units[n++] = a->units[i];
	}
	a->cnt = n;
}

int dwarf_aranges__read(struct dwarf_aranges *a, const Elf_Data *section, const uint64_t *vaddrs,
			size_t cnt)
{
	struct cursor c = { 0 };
	struct set set;
	int err = 0;

	*a = (struct dwarf_aranges){ 0 };
	if (section)
		c = (struct cursor){ section->d_buf, section->d_size };
	while (!err && take_set(&c, &set))
		err = add(a, &set, vaddrs, cnt);
	sort(a);
	return err;
}

bool dwarf_aranges__rules_out(const struct dwarf_aranges *a, uint64_t off)
{
	struct dwarf_aranges_unit key = { .off = off };
	const struct dwarf_aranges_unit *unit =
		a->cnt ? bsearch(&key, a->units, a->cnt, sizeof(key), compare) : NULL;

	return unit && !unit->holds;
}

void dwarf_aranges__done(struct dwarf_aranges *a)
{
	free(a->units);
	*a = (struct dwarf_aranges){ 0 };
}
