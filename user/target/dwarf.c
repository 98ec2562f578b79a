/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers addresses from DWARF, read by libdw.
 *
 * For each unit: which of the addresses lie in its ranges (they are claimed); then its tree of
 * DIEs, once, from front to back. A subprogram or inlined subroutine whose ranges hold a claimed
 * address leaves a hit there. As parents stand before their children, the hits of an address come
 * outermost first, and chained from the last to the first they are its frames. Names are looked up
 * for hits only. libdw's own way (dwarf_getscopes) walks the unit again for each address.
 */
#include "target/dwarf.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sorted.h"
#include "base/strtab.h"
#include "base/util.h"
#include "target/dwarf_aranges.h"
#include "target/dwarf_file.h"
#include "target/dwarf_kept.h"
#include "target/dwarf_lines.h"
#include "target/dwarf_split.h"
#include "target/elf_file.h"
#include "target/symtab.h"

#define MAX_DEPTH 256 /* of the tree */
#define NONE UINT32_MAX
/* An honest tree has fewer DIEs than bytes; one that is folded into itself may have any number. */
#define STEPS_PER_BYTE 8
#define STEPS_MIN 1000000
#define STEPS_PER_LOOK 64 /* at the clock: of DIEs, and of units */
#define BYTES_PER_STEP 8  /* that libdw walks by itself */
/* Damage that costs libdw much at each step: an honest gigabyte takes half of this. */
#define MAX_NS (20 * NSEC_PER_SEC)

struct hit {
	Dwarf_Die die;
	uint64_t call_file, call_line;
	uint32_t outer; /* hit, or NONE */
	uint32_t depth; /* frames outside of this one */
};

struct query {
	uint32_t unit;	 /* the unit that claims it now, or NONE */
	uint32_t last;	 /* its innermost hit, or NONE */
	Dwarf_Off scope; /* the subprogram of its hits */
	uint64_t entry;	 /* of the subprogram's range that holds it */
	struct dwarf_row row;
	bool has_row, named;
};

struct resolver {
	struct dwarf_kept *kept;
	struct dwarf_file *file;	    /* kept's */
	struct dwarf_split_file split_file; /* without DWARF_SPLIT_INFO there is none */
	bool wants_paths;		    /* of .dwo files, and nothing else */
	struct strtab *strings;
	const uint64_t *vaddrs;
	struct query *queries;
	size_t cnt;
	struct dwarf_answers *ret;
	struct dwarf_aranges aranges;
	uint64_t steps; /* what is left */
	/* of CPU time, for a busy machine takes no names away; and when that much may have passed */
	uint64_t limit_ns, look_ns;

	/* of the unit at hand */
	Dwarf_CU *cu; /* NULL before the first one */
	Dwarf_Die unit;
	struct dwarf_split split; /* its functions, if they are in split_file */
	bool all;		  /* of its DIEs are walked */
	bool has_ranges;	  /* else its lines say where it is */
	bool has_lines;		  /* were read, of which there may be millions */
	int err;		  /* of reading them */
	uint32_t unit_idx;
	bool cxx;
	struct dwarf_lines lines;
	uint32_t *paths; /* string id by file, NONE: not asked for yet */
	size_t paths_cap;
	const char *reached; /* the last DIE that was read */
	uint64_t discarded;  /* size of the largest function that the linker has thrown away */
	uint32_t *claimed;   /* queries */
	size_t claimed_cnt, claimed_cap;
	struct hit *hits;
	size_t hit_cnt, hit_cap;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* The CPU clock takes a system call: it is not asked for before so much time has passed at all. */
static bool is_late(const struct resolver *r)
{
	return util_monotonic_ns() > r->look_ns && cpu_ns() > r->limit_ns;
}

static bool spend(struct resolver *r, uint64_t steps)
{
	uint64_t before = r->steps;

	r->steps -= MIN(steps, before);
	if (r->steps / STEPS_PER_LOOK != before / STEPS_PER_LOOK && is_late(r))
		r->steps = 0;
	return r->steps;
}

typedef int (*query_fn)(struct resolver *r, size_t query, uint64_t lo, void *ctx);

static int each_in_range(struct resolver *r, uint64_t lo, uint64_t hi, query_fn f, void *ctx)
{
	size_t i;
	int err;

	if (dwarf_is_discarded(lo)) {
		r->discarded = MAX(r->discarded, hi - lo);
		return 0;
	}
	for (i = sorted_lower_bound(r->vaddrs, r->cnt, lo);
	     i < r->cnt && r->vaddrs[i] < hi && spend(r, 1); i++) {
		err = f(r, i, lo, ctx);
		if (err)
			return err;
	}
	return 0;
}

/* Calls f for each query in the ranges of a DIE, with the range's begin. Returns whether it has ranges,
 * or -ENOMEM. */
static int each_in_ranges(struct resolver *r, Dwarf_Die *die, query_fn f, void *ctx)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	bool any = false;
	int err = 0;

	while (!err && (off = dwarf_ranges(die, off, &base, &lo, &hi)) > 0 && spend(r, 1)) {
		any = true;
		err = each_in_range(r, lo, hi, f, ctx);
	}
	return err ? err : any;
}

/* The same of a DIE of a split unit. */
static int each_in_split_ranges(struct resolver *r, Dwarf_Die *die, query_fn f, void *ctx)
{
	struct dwarf_split_ranges ranges;
	uint64_t lo, hi;
	bool any = false;
	int err = 0;

	dwarf_split_ranges__init(&ranges, &r->split, die);
	while (!err && dwarf_split_ranges__next(&ranges, &lo, &hi) && spend(r, 1)) {
		any = true;
		err = each_in_range(r, lo, hi, f, ctx);
	}
	return err ? err : any;
}

/* ---- claims ---- */

static int claim(struct resolver *r, size_t idx, uint64_t lo, void *ctx)
{
	struct query *q = &r->queries[idx];

	(void)lo;
	(void)ctx;
	if (q->named || q->unit == r->unit_idx)
		return 0;
	if (util_reserve(&r->claimed, &r->claimed_cap, r->claimed_cnt + 1, sizeof(*r->claimed)))
		return -ENOMEM;
	r->claimed[r->claimed_cnt++] = idx;
	q->unit = r->unit_idx;
	q->last = NONE;
	q->has_row = false;
	return 0;
}

/* A row for an address. A unit with code but without ranges (some assemblers) is known by these. */
static bool take_row(void *ctx, size_t idx, const struct dwarf_row *row)
{
	struct resolver *r = ctx;
	struct query *q = &r->queries[idx];

	if (!r->has_ranges)
		r->err = claim(r, idx, row->lo, NULL);
	if (r->err || !spend(r, 1))
		return false;
	if (q->unit == r->unit_idx && (!q->has_row || row->lo >= q->row.lo)) {
		q->row = *row;
		q->has_row = true;
	}
	return true;
}

/* ---- the tree ---- */

struct function {
	Dwarf_Die *die;
	bool inlined;
	Dwarf_Off
		scope; /* the subprogram around an inlined subroutine, or this subprogram itself */
};

static int add_hit(struct resolver *r, size_t idx, uint64_t lo, void *ctx)
{
	struct query *q = &r->queries[idx];
	const struct function *f = ctx;
	struct hit h = { .die = *f->die, .call_file = UINT64_MAX, .outer = NONE };
	Dwarf_Attribute attr;

	if (q->unit != r->unit_idx || q->named)
		return 0;
	if (f->inlined) {
		if (q->last == NONE || q->scope != f->scope)
			return 0;
		h.outer = q->last;
		h.depth = r->hits[q->last].depth + 1;
		if (h.depth >= DWARF_MAX_INLINE)
			return 0;
		dwarf_formudata(dwarf_attr(f->die, DW_AT_call_file, &attr), &h.call_file);
		dwarf_formudata(dwarf_attr(f->die, DW_AT_call_line, &attr), &h.call_line);
	}
	/* damaged units may have any number of functions at one address */
	if (r->hit_cnt >= (uint64_t)r->claimed_cnt * DWARF_MAX_INLINE)
		return 0;
	if (r->hit_cnt >= NONE || util_reserve(&r->hits, &r->hit_cap, r->hit_cnt + 1, sizeof(h)))
		return -ENOMEM;
	r->hits[r->hit_cnt] = h;
	q->last = r->hit_cnt++;
	q->scope = f->scope;
	if (!f->inlined)
		q->entry = lo;
	return 0;
}

/* Where no attribute says where it is, libdw walks all that is below the DIE, which was read
 * before, once more. */
static int next_sibling(struct resolver *r, Dwarf_Die *die)
{
	if (!spend(r, (uint64_t)(r->reached - (const char *)die->addr) / BYTES_PER_STEP))
		return 1;
	return dwarf_siblingof(die, die);
}

/* Is there seldom code below a DIE? Functions of types are declared in them, and defined outside. */
static bool is_type(int tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
		return true;
	}
	return false;
}

/* Takes note of the functions among die and what follows it on its level. scope: the subprogram
 * around them, or 0. Where the unit is damaged or too deep, what was found before counts.
 *
 * Below a subprogram without hits only a nested function could have one, whose code need not lie in the
 * ranges of what is around it: that, and what is below types, is looked at if an address has no function
 * otherwise. */
static int walk(struct resolver *r, Dwarf_Die die, Dwarf_Off scope, unsigned int depth)
{
	Dwarf_Die child;
	int more = 0, err = 0;

	for (; !more && spend(r, 1); more = next_sibling(r, &die)) {
		struct function f = { .die = &die, .scope = scope };
		int tag = dwarf_tag(&die);
		size_t hits_before = r->hit_cnt;

		r->reached = MAX(r->reached, (const char *)die.addr);
		if (!r->all && is_type(tag))
			continue;
		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
			f.inlined = tag == DW_TAG_inlined_subroutine;
			if (!f.inlined)
				f.scope = dwarf_dieoffset(&die);
			err = r->split.dbg ? each_in_split_ranges(r, &die, add_hit, &f) :
					     each_in_ranges(r, &die, add_hit, &f);
			if (!err)
				f.scope = scope;
			if (err >= 0 && r->hit_cnt == hits_before && !r->all && !r->discarded)
				continue;
		}
		if (err >= 0 && !dwarf_child(&die, &child)) {
			if (depth == MAX_DEPTH)
				r->steps = 0;
			err = walk(r, child, f.scope, depth + 1);
		}
		if (err < 0)
			return err;
	}
	return 0;
}

/* ---- answers ---- */

/* The id of a path of the unit's line table. */
static int path_id(struct resolver *r, uint64_t file, uint32_t *ret)
{
	char buf[PATH_MAX];

	*ret = 0;
	if (file >= r->lines.files.cnt)
		return 0;
	if (r->paths[file] == NONE)
		r->paths[file] = strtab__add(r->strings,
					     dwarf_lines__path(&r->lines, file, buf, sizeof(buf)));
	*ret = r->paths[file];
	return *ret == NONE ? -ENOMEM : 0;
}

/* The id of a string that a function or the declaration that it leads to has. */
static int name_id(struct resolver *r, Dwarf_Die *die, unsigned int name, uint32_t *ret)
{
	Dwarf_Attribute attr, *found = dwarf_attr_integrate(die, name, &attr);
	const char *s = r->split.dbg ? dwarf_split__string(&r->split, found) :
				       dwarf_file__string(r->file, found);

	/* each may begin within another one: a section of a MB could have names of many GB */
	*ret = s && strnlen(s, SYMTAB_MAX_NAME + 1) > SYMTAB_MAX_NAME ? 0 :
									strtab__add(r->strings, s);
	return *ret == NONE ? -ENOMEM : 0;
}

static int find_names(struct resolver *r, Dwarf_Die *die, struct dwarf_frame *frame)
{
	int err = name_id(r, die, DW_AT_name, &frame->name), line;

	if (!err)
		err = name_id(r, die, DW_AT_linkage_name, &frame->linkage_name);
	if (!err && !frame->linkage_name)
		err = name_id(r, die, DW_AT_MIPS_linkage_name, &frame->linkage_name);
	if (!dwarf_decl_line(die, &line))
		frame->start_line = line;
	frame->unqualified = r->cxx && !frame->linkage_name;
	return err;
}

static int add_frame(struct resolver *r, struct dwarf_answer *a, struct dwarf_frame *frame,
		     uint64_t file, uint64_t line)
{
	struct dwarf_answers *ret = r->ret;
	int err = path_id(r, file, &frame->file);

	if (err)
		return err;
	if (ret->frame_cnt >= NONE ||
	    util_reserve(&ret->frames, &ret->frame_cap, ret->frame_cnt + 1, sizeof(*frame)))
		return -ENOMEM;
	frame->line = MIN(line, INT32_MAX);
	ret->frames[ret->frame_cnt++] = *frame;
	a->cnt++;
	return 0;
}

/* Turns the hits of a query into frames. */
static int answer(struct resolver *r, uint32_t idx)
{
	struct query *q = &r->queries[idx];
	struct dwarf_answer *a = &r->ret->answers[idx];
	uint64_t file = q->has_row ? q->row.file : UINT64_MAX, line = q->has_row ? q->row.line : 0;
	struct dwarf_frame frame = {};
	struct hit *h;
	uint32_t i;
	int err = 0;

	/* what a unit before this one knew stays: perhaps it was the line */
	if (q->last == NONE && !q->has_row)
		return 0;
	a->first = r->ret->frame_cnt;
	a->cnt = 0;
	a->entry = q->last == NONE ? 0 : q->entry;
	for (i = q->last; i != NONE && !err; i = h->outer) {
		h = &r->hits[i];
		memset(&frame, 0, sizeof(frame));
		err = find_names(r, &h->die, &frame);
		/* an inlined function without a name cannot be shown, and its call takes the place
		 * of its line */
		if (!err && (frame.name || frame.linkage_name || h->outer == NONE))
			err = add_frame(r, a, &frame, file, line);
		file = h->call_file;
		line = h->call_line;
	}
	if (!err && q->last == NONE)
		err = add_frame(r, a, &frame, file, line);
	q->named = q->last != NONE;
	return err;
}

/* DWARF 5, 7.12, and the codes that were given out after it: https://dwarfstd.org/languages.html */
static bool is_cxx(int language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2a: /* C++17 */
	case 0x2b: /* C++20 */
		return true;
	}
	return false;
}

/* dwarf_srclang would open a split unit's other half. */
static int language_of(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Word language;

	return dwarf_attr(unit, DW_AT_language, &attr) && !dwarf_formudata(&attr, &language) ?
		       (int)language :
		       -1;
}

static int read_lines(struct resolver *r)
{
	int err = dwarf_lines__open(&r->lines, r->file, &r->unit);

	if (err)
		return err;
	r->has_lines = true;
	if (util_reserve(&r->paths, &r->paths_cap, r->lines.files.cnt, sizeof(*r->paths)))
		return -ENOMEM;
	if (r->lines.files.cnt)
		memset(r->paths, 0xff, r->lines.files.cnt * sizeof(*r->paths));
	r->err = 0;
	dwarf_lines__find(&r->lines, r->vaddrs, r->cnt, take_row, r);
	return r->err;
}

/* The frame of each address of a skeleton is the path of its .dwo. */
static int answer_path(struct resolver *r)
{
	Dwarf_Attribute attr, *found = dwarf_attr(&r->unit, DW_AT_dwo_name, &attr);
	struct dwarf_frame frame = { 0 };
	const char *name, *dir;
	char path[PATH_MAX];
	int n;

	if (!found)
		found = dwarf_attr(&r->unit, DW_AT_GNU_dwo_name, &attr);
	name = dwarf_file__string(r->file, found);
	dir = dwarf_file__string(r->file, dwarf_attr(&r->unit, DW_AT_comp_dir, &attr));
	if (!name || !name[0])
		return 0;
	n = snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' || !dir ? "" : dir,
		     name[0] == '/' || !dir ? "" : "/", name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return 0;
	frame.name = strtab__add(r->strings, path);
	if (frame.name == NONE)
		return -ENOMEM;
	for (size_t i = 0; i < r->claimed_cnt; i++) {
		struct dwarf_answer *a = &r->ret->answers[r->claimed[i]];

		if (util_reserve(&r->ret->frames, &r->ret->frame_cap, r->ret->frame_cnt + 1,
				 sizeof(frame)))
			return -ENOMEM;
		*a = (struct dwarf_answer){ .first = (uint32_t)r->ret->frame_cnt, .cnt = 1 };
		r->ret->frames[r->ret->frame_cnt++] = frame;
	}
	return 0;
}

static bool has_unnamed(const struct resolver *r)
{
	for (size_t i = 0; i < r->claimed_cnt; i++)
		if (r->queries[r->claimed[i]].last == NONE)
			return true;
	return false;
}

static int walk_all(struct resolver *r, Dwarf_Die first)
{
	r->all = true;
	r->hit_cnt = 0;
	r->reached = first.addr;
	for (size_t i = 0; i < r->claimed_cnt; i++)
		r->queries[r->claimed[i]].last = NONE;
	return walk(r, first, 0, 0);
}

/* The tree of the unit's functions: its own, or that of the split unit. Finds names in either. */
static int walk_unit(struct resolver *r)
{
	Dwarf_Die *unit = &r->unit, first;
	int err;

	if (r->split.dbg) {
		unit = &r->split.unit;
		r->cxx = is_cxx(language_of(unit));
		r->reached = unit->addr;
		r->steps += r->split.info.sz * STEPS_PER_BYTE;
	}
	if (dwarf_child(unit, &first))
		return 0;
	r->all = false;
	err = walk(r, first, 0, 0);
	return !err && has_unnamed(r) ? walk_all(r, first) : err;
}

static int resolve_unit(struct resolver *r)
{
	size_t i;
	int err;

	r->claimed_cnt = r->hit_cnt = 0;
	r->discarded = 0;
	r->reached = r->unit.addr;
	err = each_in_ranges(r, &r->unit, claim, NULL);
	r->has_ranges = err;
	if (err < 0 || (r->has_ranges && !r->claimed_cnt))
		return MIN(err, 0);
	if (r->wants_paths)
		return answer_path(r);
	r->cxx = is_cxx(language_of(&r->unit));
	err = read_lines(r);
	if (!err && r->claimed_cnt && r->split_file.data[DWARF_SPLIT_INFO] &&
	    dwarf_split__open(&r->split, &r->split_file, r->file, &r->unit) == -ENOMEM)
		err = -ENOMEM;
	if (!err && r->claimed_cnt)
		err = walk_unit(r);
	/* half a walk finds functions, and not what is inlined into them, whose lines they would be given */
	for (i = 0; i < r->claimed_cnt && !err && r->steps; i++)
		err = answer(r, r->claimed[i]);
	dwarf_split__close(&r->split);
	return err;
}

/* The unit behind the one at hand, or the first one. False if there is none. */
static bool next_unit(struct resolver *r, uint8_t *ret_type)
{
	if ((r->has_lines || !(r->unit_idx % STEPS_PER_LOOK)) && is_late(r))
		return false;
	r->has_lines = false;
	/* asked for more than the unit's own DIE, libdw would open the .dwo of a skeleton */
	return !dwarf_get_units(r->file->dbg, r->cu, &r->cu, NULL, ret_type, &r->unit, NULL);
}

/* Has the unit at hand none of the addresses, without a look into it? */
static bool is_ruled_out(struct resolver *r)
{
	return dwarf_aranges__rules_out(&r->aranges,
					dwarf_dieoffset(&r->unit) - dwarf_cuoffset(&r->unit));
}

static int resolve_units(struct resolver *r)
{
	uint8_t type;
	size_t i;
	int err = 0;

	r->queries = calloc(r->cnt, sizeof(*r->queries));
	r->ret->answers = calloc(r->cnt, sizeof(*r->ret->answers));
	if (!r->queries || !r->ret->answers)
		return -ENOMEM;
	for (i = 0; i < r->cnt; i++)
		r->queries[i].unit = r->queries[i].last = NONE;
	err = dwarf_aranges__read(&r->aranges, r->file->aranges, r->vaddrs, r->cnt);
	/* of a skeleton (split DWARF) the lines are here, and no functions */
	for (; !err && next_unit(r, &type); r->unit_idx++) {
		if (r->unit.addr && (type == DW_UT_compile || type == DW_UT_skeleton) &&
		    !is_ruled_out(r))
			err = resolve_unit(r);
	}
	return err;
}

static int resolve(struct resolver *r)
{
	/* more than there is memory for, not less memory than anything needs */
	if (setjmp(dwarf_file_no_memory))
		return -E2BIG;
	return resolve_units(r);
}

static int resolve_in(struct resolver *r, const struct elf_file *elf, const struct elf_file *alt)
{
	int err;

	memset(r->ret, 0, sizeof(*r->ret));
	err = dwarf_kept__open(elf, alt, &r->kept);
	if (err)
		return err;
	r->file = &r->kept->file;
	if (r->cnt) {
		r->steps = r->file->info->d_size * STEPS_PER_BYTE + STEPS_MIN;
		r->limit_ns = cpu_ns() + MAX_NS;
		r->look_ns = util_monotonic_ns() + MAX_NS;
		err = resolve(r);
	}
	if (err)
		dwarf_answers__done(r->ret);
	/* what was left half done */
	dwarf_split__close(&r->split);
	dwarf_kept__close(r->kept, err != 0);
	dwarf_aranges__done(&r->aranges);
	dwarf_lines__done(&r->lines);
	free(r->queries);
	free(r->paths);
	free(r->claimed);
	free(r->hits);
	return err;
}

int dwarf_resolve(const struct elf_file *elf, const struct elf_file *alt,
		  const struct elf_file *split, const uint64_t *vaddrs, size_t cnt,
		  struct strtab *strings, struct dwarf_answers *ret)
{
	struct resolver r = { .strings = strings, .vaddrs = vaddrs, .cnt = cnt, .ret = ret };
	int err = split ? dwarf_split_file__open(&r.split_file, split) : 0;

	/* a file that is no good leaves lines and no functions */
	if (err == -ENOMEM)
		return err;
	err = resolve_in(&r, elf, alt);
	dwarf_split_file__close(&r.split_file);
	return err;
}

int dwarf_split_files(const struct elf_file *elf, const struct elf_file *alt,
		      const uint64_t *vaddrs, size_t cnt, struct strtab *strings,
		      struct dwarf_answers *ret)
{
	struct resolver r = {
		.strings = strings, .vaddrs = vaddrs, .cnt = cnt, .ret = ret, .wants_paths = true
	};

	return resolve_in(&r, elf, alt);
}

void dwarf_answers__done(struct dwarf_answers *a)
{
	free(a->answers);
	free(a->frames);
	memset(a, 0, sizeof(*a));
}
