/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts together what Go's table, DWARF and symbol tables know of addresses. */
#include "target/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strtab.h"
#include "base/util.h"
#include "target/demangle.h"
#include "target/dwarf.h"
#include "target/elf_file.h"
#include "target/gonames.h"
#include "target/symtab.h"

/* What one call works with. Frames have ids of `strings` until the end, then offsets. */
struct naming {
	const struct elf_file *elf, *debug, *alt, *split;
	struct gonames_answers go; /* answers is NULL without a table of Go's */
	uint64_t *others;	   /* the addresses that are not Go's */
	size_t other_cnt;
	/* by the index of others */
	struct dwarf_answers dwarf; /* answers is NULL without DWARF */
	struct symtab_answers symtab;
	uint32_t *symbol; /* 1 + the index in symtab, 0: not asked for */
	struct strtab *strings;
	uint32_t *demangled; /* by id: the id of the name for people, 0: not asked for yet */
	size_t demangled_cnt, demangled_cap;
	bool plain; /* without DWARF */
	struct symbols *ret;
	size_t frame_cap;
};

/* Between its first function and its last, Go knows its own code better than what else is there. */
static int read_go(struct naming *n, const uint64_t *vaddrs, size_t cnt)
{
	size_t i;

	n->others = calloc(cnt + 1, sizeof(*n->others));
	/* whatever is wrong with the table, the object may have DWARF and symbols */
	if (!n->others || gonames_resolve(n->elf, vaddrs, cnt, n->strings, &n->go) == -ENOMEM)
		return -ENOMEM;
	for (i = 0; i < cnt; i++) {
		if (!n->go.answers || !n->go.answers[i].is_go)
			n->others[n->other_cnt++] = vaddrs[i];
	}
	return 0;
}

/* Which of the two has the DWARF; NULL: neither. */
static const struct elf_file *with_dwarf(const struct elf_file *elf, const struct elf_file *debug)
{
	return elf_file__has_dwarf(elf) ? elf : debug;
}

static void read_dwarf(struct naming *n)
{
	const struct elf_file *elf = with_dwarf(n->elf, n->debug);

	/* whatever is wrong with its DWARF, also if it is too large, the object may have symbols */
	if (elf && n->other_cnt)
		(void)dwarf_resolve(elf, n->alt, n->split, n->others, n->other_cnt, n->strings,
				    &n->dwarf);
}

/* Does DWARF leave the physical function at address i without the name that the linker has? */
static bool needs_symbol(const struct naming *n, size_t i)
{
	const struct dwarf_answer *a = n->dwarf.answers ? &n->dwarf.answers[i] : NULL;
	const struct dwarf_frame *d = a && a->cnt ? &n->dwarf.frames[a->first + a->cnt - 1] : NULL;

	return !d || d->unqualified || (!d->name && !d->linkage_name);
}

/* Asks the symbol tables, all at once, for the addresses that need them. */
static int read_symbols(struct naming *n)
{
	uint64_t *asked = calloc(n->other_cnt + 1, sizeof(*asked));
	size_t asked_cnt = 0, i;
	int err = 0;

	n->symbol = calloc(n->other_cnt + 1, sizeof(*n->symbol));
	if (!asked || !n->symbol) {
		free(asked);
		return -ENOMEM;
	}
	for (i = 0; i < n->other_cnt; i++) {
		if (needs_symbol(n, i)) {
			asked[asked_cnt++] = n->others[i];
			n->symbol[i] = asked_cnt;
		}
	}
	if (asked_cnt)
		err = symtab_resolve(n->elf, n->debug, asked, asked_cnt, &n->symtab);
	free(asked);
	/* whatever is wrong with its symbols, the object may have DWARF */
	return err == -ENOMEM ? err : 0;
}

/* Go's linker marks where its code begins and ends: C code may begin where it ends. */
static bool is_mark(const char *name)
{
	return !strcmp(name, "runtime.text") || !strcmp(name, "runtime.etext");
}

/* NULL: no symbol, or it was not asked for. */
static const char *symbol_name(const struct naming *n, size_t i)
{
	const struct symtab_symbol *sym;
	const char *name;

	if (!n->symbol[i] || !n->symtab.symbols)
		return NULL;
	sym = &n->symtab.symbols[n->symbol[i] - 1];
	name = n->symtab.names + sym->name;
	return sym->name && !is_mark(name) ? name : NULL;
}

/* Where the function of address i begins, as whoever has named it says. */
static uint32_t from_entry(const struct naming *n, size_t i)
{
	const struct dwarf_answer *a = n->dwarf.answers ? &n->dwarf.answers[i] : NULL;
	uint64_t entry = a ? a->entry : 0;

	if (!entry && symbol_name(n, i))
		entry = n->symtab.symbols[n->symbol[i] - 1].start;
	return entry ? symbol_from_entry(n->others[i], entry) : 0;
}

/* The id of a name for people. */
static int demangled_id(struct naming *n, uint32_t id, uint32_t *ret)
{
	size_t cnt = strtab__cnt(n->strings);
	char *name;

	if (id >= n->demangled_cnt) {
		if (util_reserve(&n->demangled, &n->demangled_cap, cnt, sizeof(*n->demangled)))
			return -ENOMEM;
		memset(n->demangled + n->demangled_cnt, 0,
		       (cnt - n->demangled_cnt) * sizeof(*n->demangled));
		n->demangled_cnt = cnt;
	}
	if (!n->demangled[id]) {
		name = demangle(strtab__get(n->strings, id));
		n->demangled[id] = name ? strtab__add(n->strings, name) : id;
		free(name);
		if (n->demangled[id] == UINT32_MAX)
			return -ENOMEM;
	}
	*ret = n->demangled[id];
	return 0;
}

/* Fills in the names of a frame for which DWARF knows `name` and `linkage_name`, or neither. */
static int name_frame(struct naming *n, const struct dwarf_frame *d, struct symbol_frame *frame)
{
	uint32_t name;
	int err;

	frame->system_name = d->linkage_name ? d->linkage_name : d->name;
	err = demangled_id(n, frame->system_name, &name);
	if (err)
		return err;
	/* a linkage name that cannot be demangled is worse than the plain one: Go and Rust have
	 * such */
	frame->name = name == d->linkage_name && d->name ? d->name : name;
	return 0;
}

static int add_frame(struct naming *n, const struct symbol_frame *frame)
{
	struct symbols *ret = n->ret;

	if (ret->frame_cnt >= UINT32_MAX ||
	    util_reserve(&ret->frames, &n->frame_cap, ret->frame_cnt + 1, sizeof(*frame)))
		return -ENOMEM;
	ret->frames[ret->frame_cnt++] = *frame;
	return 0;
}

/* The physical function, to which code belongs, from DWARF or from the symbol table. */
static int add_outermost(struct naming *n, size_t i, const struct dwarf_frame *d)
{
	struct symbol_frame frame = { .file = d->file,
				      .line = d->line,
				      .start_line = d->start_line,
				      .from_entry = from_entry(n, i) };
	const char *symbol = symbol_name(n, i);
	struct dwarf_frame named = *d;
	int err;

	if (!d->name && !d->linkage_name) {
		if (!symbol)
			return 0;
		named.linkage_name = strtab__add(n->strings, symbol);
	} else if (symbol && !strncmp(symbol, "_Z", 2)) {
		/* without what GCC says of clones and of parts split off */
		named.linkage_name = strtab__add_n(n->strings, symbol, strcspn(symbol, "."));
	}
	if (named.linkage_name == UINT32_MAX)
		return -ENOMEM;
	err = name_frame(n, &named, &frame);
	return err ? err : add_frame(n, &frame);
}

static int name_address(struct naming *n, size_t index)
{
	const struct dwarf_answer *a = n->dwarf.answers ? &n->dwarf.answers[index] : NULL;
	struct dwarf_frame none = {};
	uint32_t i;
	int err = 0;

	if (!a || !a->cnt)
		return add_outermost(n, index, &none);
	for (i = 0; i + 1 < a->cnt && !err; i++) {
		const struct dwarf_frame *d = &n->dwarf.frames[a->first + i];
		struct symbol_frame frame = { .file = d->file,
					      .line = d->line,
					      .start_line = d->start_line,
					      .from_entry = from_entry(n, index) };

		err = name_frame(n, d, &frame);
		if (!err)
			err = add_frame(n, &frame);
	}
	return err ? err : add_outermost(n, index, &n->dwarf.frames[a->first + a->cnt - 1]);
}

int symbols__set_strings(struct symbols *ret, const struct strtab *strings)
{
	size_t cnt = strtab__cnt(strings), sz = 1, cap = 0, i, k;
	uint32_t *offsets = calloc(cnt, sizeof(*offsets));
	int err = offsets ? util_reserve(&ret->strings, &cap, sz, 1) : -ENOMEM;

	if (!err)
		ret->strings[0] = '\0';
	for (i = 0; i < ret->frame_cnt && !err; i++) {
		struct symbol_frame *f = &ret->frames[i];
		uint32_t *ids[] = { &f->name, &f->system_name, &f->file };

		for (k = 0; k < ARRAY_SIZE(ids) && !err; k++) {
			const char *s = strtab__get(strings, *ids[k]);
			size_t len = strlen(s) + 1;

			if (*ids[k] && !offsets[*ids[k]]) {
				err = sz + len > UINT32_MAX ?
					      -ENOMEM :
					      util_reserve(&ret->strings, &cap, sz + len, 1);
				if (err)
					break;
				memcpy(ret->strings + sz, s, len);
				offsets[*ids[k]] = sz;
				sz += len;
			}
			*ids[k] = offsets[*ids[k]];
		}
	}
	free(offsets);
	ret->strings_sz = sz;
	return err;
}

static int add_go(struct naming *n, const struct gonames_answer *a)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < a->cnt && !err; i++)
		err = add_frame(n, &n->go.frames[a->first + i]);
	return err;
}

static int symbolize(struct naming *n, const uint64_t *vaddrs, size_t cnt)
{
	size_t i, other = 0;
	int err;

	n->strings = strtab__new();
	n->ret->first = calloc(cnt + 1, sizeof(*n->ret->first));
	if (!n->strings || !n->ret->first)
		return -ENOMEM;
	n->ret->cnt = cnt;
	err = read_go(n, vaddrs, cnt);
	if (!err) {
		if (!n->plain)
			read_dwarf(n);
		err = read_symbols(n);
	}
	for (i = 0; i < cnt && !err; i++) {
		if (n->go.answers && n->go.answers[i].is_go)
			err = add_go(n, &n->go.answers[i]);
		else
			err = name_address(n, other++);
		n->ret->first[i + 1] = n->ret->frame_cnt;
	}
	return err ? err : symbols__set_strings(n->ret, n->strings);
}

int names_find(const struct elf_file *elf, const struct elf_file *debug, const struct elf_file *alt,
	       const struct elf_file *split, const uint64_t *vaddrs, size_t cnt, bool plain,
	       struct symbols *ret)
{
	struct naming n = {
		.elf = elf, .debug = debug, .alt = alt, .split = split, .plain = plain, .ret = ret
	};
	int err;

	memset(ret, 0, sizeof(*ret));
	err = symbolize(&n, vaddrs, cnt);
	if (err)
		symbols__done(ret);
	gonames_answers__done(&n.go);
	free(n.others);
	dwarf_answers__done(&n.dwarf);
	symtab_answers__done(&n.symtab);
	free(n.symbol);
	strtab__free(n.strings);
	free(n.demangled);
	return err;
}

static int put_paths(const struct dwarf_answers *a, const struct strtab *strings, size_t cnt,
		     struct symbols *ret)
{
	ret->cnt = cnt;
	ret->first = calloc(cnt + 1, sizeof(*ret->first));
	ret->frames = calloc(a->frame_cnt + 1, sizeof(*ret->frames));
	if (!ret->first || !ret->frames)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (a->answers && a->answers[i].cnt)
			ret->frames[ret->frame_cnt++].name = a->frames[a->answers[i].first].name;
		ret->first[i + 1] = (uint32_t)ret->frame_cnt;
	}
	return symbols__set_strings(ret, strings);
}

int names_split_files(const struct elf_file *elf, const struct elf_file *debug,
		      const struct elf_file *alt, const uint64_t *vaddrs, size_t cnt,
		      struct symbols *ret)
{
	const struct elf_file *from = with_dwarf(elf, debug);
	struct strtab *strings = strtab__new();
	struct dwarf_answers a = { 0 };
	int err = !strings ? -ENOMEM :
		  from	   ? dwarf_split_files(from, alt, vaddrs, cnt, strings, &a) :
			     -ENOENT;

	memset(ret, 0, sizeof(*ret));
	if (!err)
		err = put_paths(&a, strings, cnt, ret);
	if (err)
		symbols__done(ret);
	dwarf_answers__done(&a);
	strtab__free(strings);
	return err;
}

void symbols__done(struct symbols *s)
{
	free(s->first);
	free(s->frames);
	free(s->strings);
	memset(s, 0, sizeof(*s));
}
