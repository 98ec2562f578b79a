/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the symbols around given addresses in one pass over the symbol tables.
 *
 * A symbol with a size claims the addresses in its range, which are neighbours in the ascending
 * array. So that many symbols around many addresses cost no more than they have to (a hostile file
 * has them all around all), a claim goes to the few nodes of a segment tree that make up the range,
 * and the best claim on an address is the best of those on the path from its leaf to the root.
 *
 * A symbol without a size (a label) ends where the next one begins at the latest, which takes a
 * second look: the first pass finds the last label before each address; if that matters to any, the
 * second pass takes it away where a symbol with a size stands between the two, or around the label,
 * and finds where the next symbol begins. What is left has to be proved (target/label_proof.h).
 */
#include "target/symtab.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/sorted.h"
#include "base/util.h"
#include "target/elf_file.h"
#include "target/label_proof.h"
#include "target/minidebug.h"
#include "target/plt.h"

#define MAX_TABLE (256ULL << 20) /* bytes of a symbol table */
#define MAX_READ (256U << 20)	 /* bytes of all names read, half of them to compare names */
#define NAME_STEP 128		 /* bytes: most names are shorter */
#define PIECE 65536		 /* bytes read of a table at a time */
#define MAX_SOURCES 3

struct source { /* of symbols */
	const struct elf_file *elf;
	struct elf_section symbols, strings;
	const char *suffix;
};

struct candidate {
	uint64_t start; /* 0: none */
	uint32_t name;	/* offset in the source's strings */
	uint8_t source;
	int8_t rank;
};

struct label {
	struct candidate c;
	uint64_t end; /* of its section */
	bool is_function;
};

struct open { /* an address that only a label may name */
	uint64_t vaddr, label;
	size_t index;
	int64_t hidden; /* what changes from the one before; if the sum is above 0, it is none */
	uint64_t next;	/* where a symbol begins behind it and before the next open address */
};

struct range { /* of a symbol's addresses */
	uint64_t start, end;
	bool sized; /* false: end is that of its section */
};

struct text { /* a string being read */
	char *s;
	size_t cap;
};

struct search {
	const struct elf_file *elf, *debug; /* the object, its file of debug information or NULL */
	const uint64_t *vaddrs;
	size_t cnt;
	struct minidebug mini; /* of elf, if it is all that has a .symtab */
	struct source sources[MAX_SOURCES];
	uint8_t source_cnt;
	struct candidate *tree; /* root at 1, the leaf of address i at cnt + i */
	struct label *labels;	/* by the first address at or behind them */
	struct open *opens;	/* ascending */
	size_t open_cnt;
	void *piece;
	struct text names[2]; /* being compared */
	size_t read;	      /* bytes of names */
	int err;	      /* of a comparison */
};

/* ---- choice ---- */

int symtab_prefer(const char *a, int rank_a, const char *b, int rank_b)
{
	size_t ua = strspn(a, "_"), ub = strspn(b, "_"), la, lb;

	if (rank_a != rank_b)
		return rank_a > rank_b ? -1 : 1;
	if (ua != ub)
		return ua < ub ? -1 : 1;
	la = strlen(a);
	lb = strlen(b);
	if (la != lb)
		return la < lb ? -1 : 1;
	return strcmp(a, b);
}

/* Symbols with a size before those without, functions before others, then by binding. */
static int8_t rank(const Elf64_Sym *s)
{
	int type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);

	return (s->st_size ? 8 : 0) + (type != STT_NOTYPE ? 4 : 0) +
	       (bind == STB_GLOBAL ? 2 :
		bind == STB_WEAK   ? 1 :
				     0);
}

/*
 * The name of a candidate at t->s + at, for people: without version, with its source's suffix, with
 * a NUL. 0 and its length without the NUL; -ENOENT if it has none, or one without end; -errno.
 */
static int read_name(struct search *s, const struct candidate *c, struct text *t, size_t at,
		     size_t *ret_len)
{
	const struct source *src = &s->sources[c->source];
	size_t avail = MIN(src->strings.size - c->name, SYMTAB_MAX_NAME), len = 0, n;
	size_t suffix_sz = strlen(src->suffix) + 1;
	char *nul = NULL, *version;
	int err;

	for (; !nul && len < avail; len += n) {
		n = MIN(avail - len, MAX(len, NAME_STEP));
		err = util_reserve(&t->s, &t->cap, at + len + n + suffix_sz, 1);
		if (!err)
			err = elf_file__read(src->elf, src->strings.offset + c->name + len,
					     t->s + at + len, n);
		if (err)
			return err;
		s->read += n;
		nul = memchr(t->s + at + len, '\0', n);
	}
	if (!nul || nul == t->s + at)
		return -ENOENT;
	/* name@VERSION and name@@VERSION */
	version = strchr(t->s + at + 1, '@');
	if (version)
		nul = version;
	memcpy(nul, src->suffix, suffix_sz);
	*ret_len = nul + suffix_sz - 1 - (t->s + at);
	return 0;
}

/* Is a, of equal start and rank, the better one? Names are compared within a table: two tables
 * mostly have the same. */
static bool has_better_name(struct search *s, const struct candidate *a, const struct candidate *b)
{
	size_t len;
	int err;

	if (a->source != b->source)
		return a->source < b->source;
	if (a->name == b->name || s->read > MAX_READ / 2)
		return false;
	err = read_name(s, a, &s->names[0], 0, &len);
	if (!err) {
		err = read_name(s, b, &s->names[1], 0, &len);
		if (!err)
			return symtab_prefer(s->names[0].s, 0, s->names[1].s, 0) < 0;
		if (err == -ENOENT)
			return true;
	}
	if (err != -ENOENT)
		s->err = err;
	return false;
}

static bool is_better(struct search *s, const struct candidate *a, const struct candidate *b)
{
	if (a->start != b->start)
		return a->start > b->start;
	if (a->rank != b->rank)
		return a->rank > b->rank;
	return a->start && has_better_name(s, a, b);
}

/* A claim of c on the addresses from index first to end, exclusive. */
static void claim(struct search *s, size_t first, size_t end, const struct candidate *c)
{
	for (first += s->cnt, end += s->cnt; first < end; first /= 2, end /= 2) {
		if (first & 1) {
			if (is_better(s, c, &s->tree[first]))
				s->tree[first] = *c;
			first++;
		}
		if (end & 1) {
			end--;
			if (is_better(s, c, &s->tree[end]))
				s->tree[end] = *c;
		}
	}
}

static struct candidate best_claim(struct search *s, size_t i)
{
	struct candidate best = s->tree[i += s->cnt];

	for (i /= 2; i; i /= 2) {
		if (is_better(s, &s->tree[i], &best))
			best = s->tree[i];
	}
	return best;
}

/* ---- tables ---- */

/* False if there is no such table, or none of use. */
static bool add_source(struct search *s, const struct elf_file *elf, const char *section,
		       const char *suffix)
{
	struct source *src = &s->sources[s->source_cnt];

	*src = (struct source){ .elf = elf, .suffix = suffix };
	if (!elf_file__section(elf, section, &src->symbols) || src->symbols.size > MAX_TABLE ||
	    src->symbols.flags & SHF_COMPRESSED ||
	    !elf_file__section_by_index(elf, src->symbols.link, &src->strings) ||
	    src->strings.type != SHT_STRTAB || src->strings.flags & SHF_COMPRESSED)
		return false;
	s->source_cnt++;
	return true;
}

/* The addresses that a symbol of code names; false if there are none. */
static bool symbol_range(const struct source *src, const Elf64_Sym *sym, struct range *ret)
{
	int type = ELF64_ST_TYPE(sym->st_info);
	struct elf_section sec;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || !sym->st_value ||
	    !sym->st_name || sym->st_name >= src->strings.size)
		return false;
	*ret = (struct range){ .start = sym->st_value, .sized = sym->st_size };
	if (ret->sized && __builtin_add_overflow(sym->st_value, sym->st_size, &ret->end))
		return false;
	if (ret->sized && type != STT_NOTYPE)
		return true;
	/* what has no type may be data; and what has no size needs the end of its section */
	if (sym->st_shndx >= SHN_LORESERVE ||
	    !elf_file__section_by_index(src->elf, sym->st_shndx, &sec) ||
	    !(sec.flags & SHF_EXECINSTR) || sym->st_value - sec.addr >= sec.size)
		return false;
	if (!ret->sized)
		ret->end = sec.addr + sec.size;
	return ret->end > ret->start;
}

typedef void (*visit_fn)(struct search *s, uint8_t source, const Elf64_Sym *sym,
			 const struct range *range);

static int visit_source(struct search *s, uint8_t source, visit_fn visit)
{
	const struct source *src = &s->sources[source];
	size_t left = src->symbols.size / sizeof(Elf64_Sym), pos = 0, n, i;
	const Elf64_Sym *syms = s->piece;
	struct range range;
	int err;

	for (; left; left -= n, pos += n) {
		n = MIN(left, PIECE / sizeof(*syms));
		err = elf_file__read(src->elf, src->symbols.offset + pos * sizeof(*syms), s->piece,
				     n * sizeof(*syms));
		if (err)
			return err;
		for (i = 0; i < n && !s->err; i++) {
			if (symbol_range(src, &syms[i], &range))
				visit(s, source, &syms[i], &range);
		}
	}
	return s->err;
}

static int visit_all(struct search *s, visit_fn visit)
{
	uint8_t i;
	int err = 0;

	for (i = 0; i < s->source_cnt && !err; i++)
		err = visit_source(s, i, visit);
	return err;
}

static void visit_first(struct search *s, uint8_t source, const Elf64_Sym *sym,
			const struct range *range)
{
	size_t first = sorted_lower_bound(s->vaddrs, s->cnt, range->start), end = first;
	struct candidate c = { range->start, sym->st_name, source, rank(sym) };

	if (first == s->cnt || s->vaddrs[first] >= range->end)
		return;
	if (!range->sized) {
		if (is_better(s, &c, &s->labels[first].c))
			s->labels[first] =
				(struct label){ c, range->end,
						ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE };
		return;
	}
	/* mostly one address or a few */
	while (end < s->cnt && end - first < 4 && s->vaddrs[end] < range->end)
		end++;
	if (end - first == 4)
		end = sorted_lower_bound(s->vaddrs, s->cnt, range->end);
	claim(s, first, end, &c);
}

/* ---- labels ---- */

/* The first of the open addresses whose vaddr, or whose label, is at or behind the given one. */
static size_t first_open(const struct search *s, uint64_t vaddr, bool label)
{
	size_t lo = 0, hi = s->open_cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if ((label ? s->opens[mid].label : s->opens[mid].vaddr) < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void hide(struct search *s, size_t first, size_t end)
{
	if (first < end) {
		s->opens[first].hidden++;
		s->opens[end].hidden--;
	}
}

/*
 * A symbol with a size hides a label from an address if it begins between the two, or before the
 * label and ends behind it. As it is not around the address itself, that is: if it begins before
 * the address, but not where the label does, and ends behind the label.
 */
static void visit_second(struct search *s, uint8_t source, const Elf64_Sym *sym,
			 const struct range *range)
{
	size_t first, end;

	(void)source;
	(void)sym;
	/* the last open address before it */
	first = first_open(s, range->start, false);
	if (first)
		s->opens[first - 1].next = MIN(s->opens[first - 1].next, range->start);
	if (!range->sized || range->start > s->opens[s->open_cnt - 1].vaddr ||
	    range->end <= s->opens[0].label)
		return;
	end = first_open(s, range->end, true);
	hide(s, first, first_open(s, range->start, true));
	hide(s, MAX(first, first_open(s, range->start + 1, true)), end);
}

/* Finds the addresses that are in no sized symbol's range but may be in that of the last label. */
static void find_open(struct search *s)
{
	struct candidate *leaves = s->tree + s->cnt;
	size_t i;

	for (i = 0; i < s->cnt; i++) {
		struct label *l = &s->labels[i];

		leaves[i] = best_claim(s, i);
		if (i && !l->c.start)
			*l = l[-1];
		if (!leaves[i].start && s->vaddrs[i] < l->end)
			s->opens[s->open_cnt++] = (struct open){ .vaddr = s->vaddrs[i],
								 .label = l->c.start,
								 .next = UINT64_MAX,
								 .index = i };
	}
}

/*
 * Can the label have code at all? A compiler gives each function its size, so a mangled name without
 * one is of a function without code, as `unreachable` makes them; and what the linker calls
 * __start_SECTION is no function. 1, 0 or -errno.
 */
static int has_code(struct search *s, const struct label *l)
{
	struct text *t = &s->names[0];
	size_t len;
	int err = read_name(s, &l->c, t, 0, &len);

	if (err)
		return err == -ENOENT ? 0 : err;
	return l->is_function ? strncmp(t->s, "_Z", 2) && strncmp(t->s, "_R", 2) :
				strncmp(t->s, "__start_", 8) && strncmp(t->s, "__stop_", 7);
}

/* The claims of labels that nothing hides; returns how many, or -errno. */
static ssize_t make_claims(struct search *s, struct label_claim *claims)
{
	uint64_t next = UINT64_MAX, last = 0;
	int64_t depth = 0;
	size_t i, n = 0;
	int code = 0;

	for (i = s->open_cnt; i-- > 0;)
		s->opens[i].next = next = MIN(next, s->opens[i].next);
	for (i = 0; i < s->open_cnt; i++) {
		struct open *o = &s->opens[i];
		const struct label *l = &s->labels[o->index];

		depth += o->hidden;
		if (depth)
			continue;
		if (o->label != last)
			code = has_code(s, l);
		last = o->label;
		if (code < 0)
			return code;
		if (code) {
			s->opens[n] = *o;
			claims[n++] = (struct label_claim){ .vaddr = o->vaddr,
							    .label = o->label,
							    .end = MIN(l->end, o->next),
							    .is_function = l->is_function };
		}
	}
	return n;
}

/* Leaves in each leaf of the tree what names its address. */
static int settle(struct search *s)
{
	struct label_claim *claims;
	ssize_t cnt, i;
	int err;

	find_open(s);
	if (!s->open_cnt)
		return 0;
	err = visit_all(s, visit_second);
	if (err)
		return err;
	claims = calloc(s->open_cnt, sizeof(*claims));
	if (!claims)
		return -ENOMEM;
	cnt = make_claims(s, claims);
	err = cnt < 0 ? cnt : label_proof(s->elf, s->debug, claims, cnt);
	for (i = 0; i < cnt && !err; i++) {
		size_t index = s->opens[i].index;

		if (claims[i].proved)
			s->tree[s->cnt + index] = s->labels[index].c;
	}
	free(claims);
	return err;
}

/* ---- PLT ---- */

/* A stub is as good as a symbol with a size; the last source's symbols name them. */
static int claim_stubs(struct search *s, const struct plt_stub *stubs, size_t cnt)
{
	uint8_t source = s->source_cnt - 1;
	const struct source *src = &s->sources[source];
	Elf64_Sym sym;
	size_t i;
	int err = 0;

	for (i = 0; i < cnt && !err; i++) {
		struct candidate c = { .start = stubs[i].start, .source = source };

		if (!stubs[i].symbol || stubs[i].symbol >= src->symbols.size / sizeof(sym))
			continue;
		err = elf_file__read(src->elf, src->symbols.offset + stubs[i].symbol * sizeof(sym),
				     &sym, sizeof(sym));
		c.name = sym.st_name;
		if (!err && c.name && c.name < src->strings.size)
			claim(s, stubs[i].first, stubs[i].first + stubs[i].cnt, &c);
	}
	return err ? err : s->err;
}

static int search_plt(struct search *s, const struct elf_file *elf)
{
	struct plt_stub *stubs;
	size_t cnt;
	int err = plt_find(elf, s->vaddrs, s->cnt, &stubs, &cnt);

	if (err)
		return err;
	if (cnt && add_source(s, elf, ".dynsym", "@plt"))
		err = claim_stubs(s, stubs, cnt);
	free(stubs);
	return err;
}

/* ---- all of it ---- */

static void add_tables(struct search *s, const struct elf_file *elf, const struct elf_file *debug)
{
	if (!add_source(s, elf, ".symtab", "") && !(debug && add_source(s, debug, ".symtab", "")) &&
	    !minidebug__open(&s->mini, elf))
		add_source(s, s->mini.elf, ".symtab", "");
	add_source(s, elf, ".dynsym", "");
}

static int search_symbols(struct search *s, const struct elf_file *elf,
			  const struct elf_file *debug)
{
	int err;

	add_tables(s, elf, debug);
	err = visit_all(s, visit_first);
	/* before the labels: a stub has a size as well */
	return err ? err : search_plt(s, elf);
}

/* Reads the names of those chosen. */
static int answer(struct search *s, struct symtab_answers *ret)
{
	struct candidate c, last = {};
	struct symtab_symbol chosen = {};
	struct text names = {};
	size_t sz = 1, len, i;
	int err = util_reserve(&names.s, &names.cap, sz, 1);

	if (!err)
		names.s[0] = '\0';
	for (i = 0; i < s->cnt && !err; i++) {
		c = s->tree[s->cnt + i];
		if (!c.start || s->read > MAX_READ)
			continue;
		if (c.start != last.start || c.source != last.source || c.name != last.name) {
			last = c;
			chosen = (struct symtab_symbol){};
			err = read_name(s, &c, &names, sz, &len);
			if (!err) {
				chosen = (struct symtab_symbol){ c.start, sz };
				sz += len + 1;
			} else if (err == -ENOENT) {
				err = 0;
			}
		}
		ret->symbols[i] = chosen;
	}
	ret->names = names.s;
	return err ? err : s->err;
}

static int resolve(struct search *s, const struct elf_file *elf, const struct elf_file *debug,
		   struct symtab_answers *ret)
{
	int err;

	s->tree = calloc(s->cnt * 2, sizeof(*s->tree));
	s->labels = calloc(s->cnt, sizeof(*s->labels));
	s->opens = calloc(s->cnt + 1, sizeof(*s->opens));
	s->piece = malloc(PIECE);
	if (!s->tree || !s->labels || !s->opens || !s->piece)
		return -ENOMEM;
	err = search_symbols(s, elf, debug);
	if (!err)
		err = settle(s);
	return err ? err : answer(s, ret);
}

int symtab_resolve(const struct elf_file *elf, const struct elf_file *debug, const uint64_t *vaddrs,
		   size_t cnt, struct symtab_answers *ret)
{
	struct search s = { .elf = elf, .debug = debug, .vaddrs = vaddrs, .cnt = cnt };
	int err = 0;

	*ret = (struct symtab_answers){ calloc(cnt + 1, sizeof(*ret->symbols)), NULL };
	if (!ret->symbols)
		return -ENOMEM;
	if (cnt)
		err = resolve(&s, elf, debug, ret);
	if (s.mini.elf)
		minidebug__close(&s.mini);
	free(s.tree);
	free(s.labels);
	free(s.opens);
	free(s.piece);
	free(s.names[0].s);
	free(s.names[1].s);
	if (err)
		symtab_answers__done(ret);
	return err;
}

void symtab_answers__done(struct symtab_answers *a)
{
	free(a->symbols);
	free(a->names);
	*a = (struct symtab_answers){};
}
