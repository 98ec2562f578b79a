/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers addresses from DWARF.
 *
 * For each unit: which of the addresses lie in its ranges (they are claimed); then its line
 * program, which gives each claimed address its row; then its tree of DIEs, once, from front to
 * back. A subprogram or inlined subroutine whose ranges hold a claimed address leaves a hit there.
 * As parents stand before their children, the hits of an address come outermost first, and chained
 * from the last to the first they are its frames. Names are looked up for hits only.
 */
#include "target/dwarf.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/strtab.h"
#include "base/util.h"
#include "target/dwarf_read.h"

#define MAX_DEPTH 256 /* of the tree */
#define MAX_HOPS 16   /* from an instance to the declaration that has the name */
#define NONE UINT32_MAX
#define ALT_BIT (1ULL << 63) /* in a DIE's offset: it is one of the supplementary file */

struct hit {
	uint64_t die; /* that has the name or leads to it */
	uint64_t call_file, call_line;
	uint32_t outer; /* hit, or NONE */
	uint32_t depth; /* frames outside of this one */
};

struct query {
	uint32_t unit;	/* the unit that claims it now, or NONE */
	uint32_t last;	/* its innermost hit, or NONE */
	uint64_t scope; /* the subprogram of its hits */
	uint64_t row_file, row_line;
	bool has_row, named;
};

struct name {	      /* a slot of the table of DIEs whose names are known */
	uint64_t key; /* the DIE's offset + 1, or 0 */
	uint32_t name, linkage_name, start_line;
};

struct resolver {
	struct dwarf_file *f;
	struct strtab *strings;
	const uint64_t *vaddrs;
	struct query *queries;
	size_t cnt;
	struct dwarf_answers *ret;

	/* of the unit at hand */
	const struct dwarf_unit *unit;
	uint32_t unit_idx;
	struct dwarf_abbrevs abbrevs;
	struct dwarf_lines lines;
	uint32_t *paths; /* string id by file of the line table, NONE: not asked for yet */
	size_t paths_cap;
	uint32_t *claimed; /* queries, ascending if the unit's ranges are */
	size_t claimed_cnt, claimed_cap;
	struct hit *hits;
	size_t hit_cnt, hit_cap;
	size_t next; /* where line rows have got to */
	bool claim_by_rows;
	int err;

	struct name *names;
	size_t name_cnt, name_cap; /* a power of two */
	struct dwarf_abbrevs one;  /* scratch */
};

/* The first address >= addr. */
static size_t lower_bound(const struct resolver *r, uint64_t addr)
{
	size_t lo = 0, hi = r->cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->vaddrs[mid] < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* ---- claims ---- */

static int claim(struct resolver *r, size_t idx)
{
	struct query *q = &r->queries[idx];

	if (q->named || q->unit == r->unit_idx)
		return 0;
	if (util_reserve(&r->claimed, &r->claimed_cap, r->claimed_cnt + 1, sizeof(*r->claimed)))
		return -ENOMEM;
	r->claimed[r->claimed_cnt++] = idx;
	q->unit = r->unit_idx;
	q->last = NONE;
	q->scope = 0;
	q->has_row = false;
	return 0;
}

static int claim_ranges(struct resolver *r, struct dwarf_ranges *it)
{
	uint64_t lo, hi;
	size_t i;
	int err;

	while (dwarf_ranges__next(it, &lo, &hi)) {
		for (i = lower_bound(r, lo); i < r->cnt && r->vaddrs[i] < hi; i++) {
			err = claim(r, i);
			if (err)
				return err;
		}
	}
	return 0;
}

/* ---- lines ---- */

static void take_row(void *ctx, uint64_t lo, uint64_t hi, uint64_t file, uint64_t line)
{
	struct resolver *r = ctx;

	if ((r->next && r->vaddrs[r->next - 1] >= lo) ||
	    (r->next < r->cnt && r->vaddrs[r->next] < lo))
		r->next = lower_bound(r, lo);
	for (; r->next < r->cnt && r->vaddrs[r->next] < hi; r->next++) {
		struct query *q = &r->queries[r->next];

		if (r->claim_by_rows && claim(r, r->next))
			r->err = -ENOMEM;
		if (q->unit != r->unit_idx || q->named)
			continue;
		q->has_row = true;
		q->row_file = file;
		q->row_line = line;
	}
}

/* The id of a path of the unit's line table. */
static int path_id(struct resolver *r, uint64_t file, uint32_t *ret)
{
	char buf[PATH_MAX];

	*ret = 0;
	if (file >= r->lines.file_cnt)
		return 0;
	if (r->paths[file] == NONE)
		r->paths[file] = strtab__add(r->strings,
					     dwarf_lines__path(&r->lines, file, buf, sizeof(buf)));
	if (r->paths[file] == NONE)
		return -ENOMEM;
	*ret = r->paths[file];
	return 0;
}

static int run_lines(struct resolver *r)
{
	int err = dwarf_lines__open(&r->lines, r->f, r->unit);

	if (err) {
		dwarf_lines__done(&r->lines);
		return err == -ENOMEM ? err : 0;
	}
	if (util_reserve(&r->paths, &r->paths_cap, r->lines.file_cnt, sizeof(*r->paths)))
		return -ENOMEM;
	if (r->lines.file_cnt)
		memset(r->paths, 0xff, r->lines.file_cnt * sizeof(*r->paths));
	r->next = 0;
	r->err = 0;
	dwarf_lines__run(&r->lines, r->f, take_row, r);
	return r->err;
}

/* ---- the tree ---- */

struct die {
	uint64_t off;
	bool inlined;
	struct dwarf_value low, high, ranges, origin, call_file, call_line;
};

static void read_function(struct rd *rd, const struct resolver *r, const struct dwarf_abbrev *ab,
			  struct die *die)
{
	const struct dwarf_spec *spec = r->abbrevs.specs + ab->spec;
	uint32_t i;

	for (i = 0; i < ab->spec_cnt && !rd->bad; i++) {
		struct dwarf_value v = dwarf_read_value(rd, r->unit, &spec[i]);

		switch (spec[i].attr) {
		case DW_AT_low_pc:
			die->low = v;
			break;
		case DW_AT_high_pc:
			die->high = v;
			break;
		case DW_AT_ranges:
			die->ranges = v;
			break;
		case DW_AT_abstract_origin:
			die->origin = v;
			break;
		case DW_AT_call_file:
			die->call_file = v;
			break;
		case DW_AT_call_line:
			die->call_line = v;
			break;
		}
	}
}

/* Leaves the DIE's hit at a query. scope: the subprogram around an inlined subroutine, or this
 * subprogram itself. */
static int add_hit(struct resolver *r, struct query *q, const struct die *die, uint64_t name_die,
		   uint64_t scope)
{
	struct hit h = { .die = name_die, .outer = NONE };

	if (q->unit != r->unit_idx || q->named)
		return 0;
	if (die->inlined) {
		if (q->last == NONE || q->scope != scope)
			return 0;
		h.outer = q->last;
		h.depth = r->hits[q->last].depth + 1;
		if (h.depth >= DWARF_MAX_INLINE)
			return 0;
		dwarf_value_const(&die->call_file, &h.call_file);
		dwarf_value_const(&die->call_line, &h.call_line);
	}
	/* damaged units may have any number of functions at one address */
	if (r->hit_cnt >= (uint64_t)r->claimed_cnt * DWARF_MAX_INLINE ||
	    !dwarf_file__spend(r->f, 1))
		return 0;
	if (r->hit_cnt >= NONE || util_reserve(&r->hits, &r->hit_cap, r->hit_cnt + 1, sizeof(h)))
		return -ENOMEM;
	r->hits[r->hit_cnt] = h;
	q->last = r->hit_cnt++;
	q->scope = scope;
	return 0;
}

/*
 * Takes note of a function. *scope is the subprogram around it, and then the one around its
 * children: itself, if it is a subprogram with code.
 */
static int note_function(struct resolver *r, const struct die *die, uint64_t *scope)
{
	uint64_t name_die = die->off, ref, lo, hi;
	struct dwarf_ranges it;
	bool alt;
	size_t i;
	int err;

	if (!dwarf_ranges__init(&it, r->f, r->unit, &die->low, &die->high, &die->ranges))
		return 0;
	if (!die->inlined)
		*scope = die->off;
	else if (dwarf_value_ref(r->unit, &die->origin, &ref, &alt) && !(ref & ALT_BIT))
		name_die = ref | (alt ? ALT_BIT : 0);
	while (dwarf_ranges__next(&it, &lo, &hi)) {
		for (i = lower_bound(r, lo); i < r->cnt && r->vaddrs[i] < hi; i++) {
			err = add_hit(r, &r->queries[i], die, name_die, *scope);
			if (err)
				return err;
		}
	}
	return 0;
}

static void skip_die(struct rd *rd, const struct resolver *r, const struct dwarf_abbrev *ab)
{
	uint32_t i;

	if (ab->fixed_sz >= 0) {
		rd_skip(rd, ab->fixed_sz);
		return;
	}
	for (i = 0; i < ab->spec_cnt && !rd->bad; i++)
		dwarf_read_value(rd, r->unit, &r->abbrevs.specs[ab->spec + i]);
}

/* Where the unit is damaged, what was found before counts. */
static int walk_tree(struct resolver *r)
{
	const uint8_t *info = r->f->sec[DWARF_SEC_INFO];
	struct rd rd = dwarf_file__rd(r->f, DWARF_SEC_INFO, r->unit->die_off);
	uint64_t scopes[MAX_DEPTH] = {};
	size_t depth = 0;
	int err = 0;

	rd.end = info + r->unit->end;
	if (!dwarf_file__spend(r->f, rd.end - rd.p))
		return 0;
	while (!err && rd.p < rd.end) {
		struct die die = { .off = rd.p - info };
		uint64_t code = rd_uleb(&rd), scope = scopes[depth];
		const struct dwarf_abbrev *ab;

		if (!code) {
			if (depth <= 1)
				break;
			depth--;
			continue;
		}
		ab = dwarf_abbrevs__find(&r->abbrevs, code);
		if (!ab)
			break;
		if (ab->tag == DW_TAG_subprogram || ab->tag == DW_TAG_inlined_subroutine) {
			die.inlined = ab->tag == DW_TAG_inlined_subroutine;
			read_function(&rd, r, ab, &die);
			if (!rd.bad)
				err = note_function(r, &die, &scope);
		} else {
			skip_die(&rd, r, ab);
		}
		if (ab->children && ++depth < MAX_DEPTH)
			scopes[depth] = scope;
		if (depth >= MAX_DEPTH || !depth)
			break;
	}
	return err;
}

/* ---- names ---- */

/* One DIE on the way from an instance to its declaration: adds what it knows to *n. True if *die is
 * the next one to ask. */
static int read_names(struct resolver *r, uint64_t *die, struct name *n, bool *ret_more)
{
	struct dwarf_file *f = *die & ALT_BIT ? r->f->alt : r->f;
	uint64_t off = *die & ~ALT_BIT, code, line;
	const struct dwarf_unit *u = f ? dwarf_file__unit_at(f, off) : NULL;
	const struct dwarf_abbrevs *abbrevs = &r->abbrevs;
	const struct dwarf_abbrev *ab;
	uint32_t i, *id;
	struct rd rd;
	int err;

	*ret_more = false;
	if (!u)
		return 0;
	rd = dwarf_file__rd(f, DWARF_SEC_INFO, off);
	rd.end = f->sec[DWARF_SEC_INFO] + u->end;
	code = rd_uleb(&rd);
	if (!code)
		return 0;
	if (u != r->unit) {
		abbrevs = &r->one;
		err = dwarf_abbrevs__read(f, u, code, &r->one);
		if (err)
			return err == -ENOMEM ? err : 0;
	}
	ab = dwarf_abbrevs__find(abbrevs, code);
	for (i = 0; ab && i < ab->spec_cnt && !rd.bad; i++) {
		const struct dwarf_spec *spec = &abbrevs->specs[ab->spec + i];
		struct dwarf_value v = dwarf_read_value(&rd, u, spec);
		bool alt;

		switch (spec->attr) {
		case DW_AT_name:
		case DW_AT_linkage_name:
		case DW_AT_MIPS_linkage_name:
			id = spec->attr == DW_AT_name ? &n->name : &n->linkage_name;
			if (!*id)
				*id = strtab__add(r->strings, dwarf_value_string(f, u, &v));
			if (*id == NONE)
				return -ENOMEM;
			break;
		case DW_AT_decl_line:
			if (!n->start_line && dwarf_value_const(&v, &line))
				n->start_line = MIN(line, INT32_MAX);
			break;
		case DW_AT_abstract_origin:
		case DW_AT_specification:
			if (!dwarf_value_ref(u, &v, die, &alt) || *die & ALT_BIT ||
			    (alt && f == r->f->alt))
				break;
			/* what a supplementary file refers to is in itself */
			if (alt || f == r->f->alt)
				*die |= ALT_BIT;
			*ret_more = true;
			break;
		}
	}
	return 0;
}

/* The slot of a key: the one that has it, or the empty one where it belongs. */
static struct name *name_slot(struct name *names, size_t cap, uint64_t key)
{
	size_t i = util_hash(&key, sizeof(key), 0) & (cap - 1);

	while (names[i].key && names[i].key != key)
		i = (i + 1) & (cap - 1);
	return &names[i];
}

static int grow_names(struct resolver *r)
{
	size_t cap = r->name_cap ? r->name_cap * 2 : 256, i;
	struct name *names;

	if (r->name_cnt * 2 < r->name_cap)
		return 0;
	names = calloc(cap, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (i = 0; i < r->name_cap; i++) {
		if (r->names[i].key)
			*name_slot(names, cap, r->names[i].key) = r->names[i];
	}
	free(r->names);
	r->names = names;
	r->name_cap = cap;
	return 0;
}

static int find_name(struct resolver *r, uint64_t die, struct name *ret)
{
	uint64_t key = die + 1;
	int err = grow_names(r), hops;
	struct name *slot;
	bool more = true;

	if (err)
		return err;
	slot = name_slot(r->names, r->name_cap, key);
	if (!slot->key) {
		struct name n = { .key = key };

		for (hops = 0; more && hops < MAX_HOPS; hops++) {
			err = read_names(r, &die, &n, &more);
			if (err)
				return err;
		}
		*slot = n;
		r->name_cnt++;
	}
	*ret = *slot;
	return 0;
}

/* ---- answers ---- */

static int add_frame(struct resolver *r, struct dwarf_answer *a, const struct dwarf_frame *frame)
{
	struct dwarf_answers *ret = r->ret;

	if (ret->frame_cnt >= NONE ||
	    util_reserve(&ret->frames, &ret->frame_cap, ret->frame_cnt + 1, sizeof(*frame)))
		return -ENOMEM;
	ret->frames[ret->frame_cnt++] = *frame;
	a->cnt++;
	return 0;
}

/* Turns the hits of a query into frames. */
static int answer(struct resolver *r, uint32_t idx)
{
	struct query *q = &r->queries[idx];
	struct dwarf_answer *a = &r->ret->answers[idx];
	uint64_t file = q->row_file, line = q->row_line;
	uint32_t h;
	int err = 0;

	/* what a unit before this one knew stays: perhaps it was the line */
	if (q->last == NONE && !q->has_row)
		return 0;
	a->first = r->ret->frame_cnt;
	a->cnt = 0;
	for (h = q->last; h != NONE && !err; h = r->hits[h].outer) {
		struct dwarf_frame frame = {};
		struct name n;

		err = find_name(r, r->hits[h].die, &n);
		if (err)
			return err;
		/* an inlined function without a name cannot be shown, and its call takes the place
		 * of its line */
		if (n.name || n.linkage_name || r->hits[h].outer == NONE) {
			frame.name = n.name;
			frame.linkage_name = n.linkage_name;
			frame.start_line = n.start_line;
			frame.unqualified = r->unit->cxx && !n.linkage_name;
			frame.line = MIN(line, INT32_MAX);
			err = path_id(r, file, &frame.file);
			if (!err)
				err = add_frame(r, a, &frame);
		}
		file = r->hits[h].call_file;
		line = r->hits[h].call_line;
	}
	if (q->last == NONE) {
		struct dwarf_frame frame = { .line = MIN(line, INT32_MAX) };

		err = path_id(r, file, &frame.file);
		if (!err)
			err = add_frame(r, a, &frame);
	}
	q->named = q->last != NONE;
	return err;
}

/* The ranges that a unit's first DIE gives it; false if it gives none. */
static bool unit_ranges(struct resolver *r, struct dwarf_ranges *it)
{
	struct rd rd = dwarf_file__rd(r->f, DWARF_SEC_INFO, r->unit->die_off);
	const struct dwarf_abbrev *ab;
	struct die root = {};
	uint64_t code;

	rd.end = r->f->sec[DWARF_SEC_INFO] + r->unit->end;
	code = rd_uleb(&rd);
	if (!code || dwarf_abbrevs__read(r->f, r->unit, code, &r->abbrevs))
		return false;
	ab = dwarf_abbrevs__find(&r->abbrevs, code);
	if (!ab)
		return false;
	read_function(&rd, r, ab, &root);
	return dwarf_ranges__init(it, r->f, r->unit, &root.low, &root.high, &root.ranges);
}

static int resolve_unit(struct resolver *r, uint32_t idx)
{
	struct dwarf_ranges it;
	int err = 0;
	size_t i;

	r->unit = &r->f->units[idx];
	r->unit_idx = idx;
	r->claimed_cnt = r->hit_cnt = 0;
	if (r->unit->type != DW_UT_compile && r->unit->type != DW_UT_skeleton)
		return 0;
	/* a unit with code but without ranges (some assemblers) is known by its lines */
	r->claim_by_rows = !unit_ranges(r, &it);
	if (!r->claim_by_rows) {
		err = claim_ranges(r, &it);
		if (err || !r->claimed_cnt)
			return err;
	}
	err = run_lines(r);
	if (!err && r->claimed_cnt) {
		err = dwarf_abbrevs__read(r->f, r->unit, 0, &r->abbrevs);
		if (err != -ENOMEM)
			err = walk_tree(r);
	}
	for (i = 0; i < r->claimed_cnt && !err; i++)
		err = answer(r, r->claimed[i]);
	dwarf_lines__done(&r->lines);
	return err;
}

static int resolve(struct resolver *r)
{
	uint32_t u;
	size_t i;
	int err = 0;

	r->queries = calloc(r->cnt, sizeof(*r->queries));
	r->ret->answers = calloc(r->cnt, sizeof(*r->ret->answers));
	if (!r->queries || !r->ret->answers)
		return -ENOMEM;
	for (i = 0; i < r->cnt; i++)
		r->queries[i].unit = r->queries[i].last = NONE;
	for (u = 0; u < r->f->unit_cnt && !err; u++)
		err = resolve_unit(r, u);
	return err;
}

int dwarf_resolve(const struct elf_file *elf, const struct elf_file *alt, const uint64_t *vaddrs,
		  size_t cnt, struct strtab *strings, struct dwarf_answers *ret)
{
	struct resolver r = { .strings = strings, .vaddrs = vaddrs, .cnt = cnt, .ret = ret };
	struct dwarf_file *alt_file = NULL;
	int err;

	memset(ret, 0, sizeof(*ret));
	/* without the supplementary file some names are missing, no more */
	if (alt)
		alt_file = dwarf_file__load(alt, NULL);
	r.f = dwarf_file__load(elf, alt_file);
	if (!r.f) {
		err = -errno;
		dwarf_file__free(alt_file);
		return err;
	}
	err = cnt ? resolve(&r) : 0;
	if (err)
		dwarf_answers__done(ret);
	dwarf_file__free(alt_file);
	dwarf_file__free(r.f);
	dwarf_abbrevs__done(&r.abbrevs);
	dwarf_abbrevs__done(&r.one);
	dwarf_lines__done(&r.lines);
	free(r.queries);
	free(r.paths);
	free(r.claimed);
	free(r.hits);
	free(r.names);
	return err;
}

void dwarf_answers__done(struct dwarf_answers *a)
{
	free(a->answers);
	free(a->frames);
	memset(a, 0, sizeof(*a));
}
