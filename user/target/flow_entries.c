/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/flow_parts.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"

#ifndef SHT_RELR
#define SHT_RELR 19 /* gABI, relative relocation table */
#endif

#define MAX_ENTRIES (4U * FLOW_MAX_FUNCS)
#define MAX_SYMBOLS (256ULL << 20) /* bytes of a table */
#define MAX_NAMES (64U << 20)	   /* bytes */
#define MAX_SECTIONS 4096
#define MAX_COVERED (256ULL << 20) /* bytes of covered code that is searched */
#define MAX_DATA (64ULL << 20)	   /* bytes of a section */
#define MAX_DYNSYM (64U << 20)	   /* bytes */
#define MAX_STRINGS (64U << 20)	   /* bytes */
#define MAX_RELOCS (1U << 20)
#define SLOT_PIECE 2048	  /* relocations read at a time */
#define PIECE 4096	  /* records read at a time */
#define CODE_PIECE 65536U /* bytes of code read at a time */

struct finder {
	struct flow_entries *e;
	const struct elf_file *elf;
	const struct flow_code *code;
	bool fixed;	/* constants may be addresses: see struct flow */
	uint64_t first; /* the entry point; 0: there is none */
	void *piece;
	int err;
};

int flow_entries__add(struct flow_entries *e, struct flow_entry entry)
{
	int err;

	if (e->cnt >= MAX_ENTRIES)
		return 0;
	err = util_reserve(&e->v, &e->cap, e->cnt + 1, sizeof(*e->v));
	if (!err)
		e->v[e->cnt++] = entry;
	return err;
}

static void add(struct finder *f, uint64_t addr, enum flow_hint hint)
{
	if (!f->err && flow_code__run(f->code, addr))
		f->err = flow_entries__add(f->e, (struct flow_entry){ .addr = addr, .hint = hint });
}

/* ---- symbols ---- */

static void take_symbol(struct finder *f, const Elf64_Sym *sym, const char *name)
{
	int type = ELF64_ST_TYPE(sym->st_info);
	bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
	struct flow_entry entry = { .addr = sym->st_value };

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS ||
	    (!function && type != STT_NOTYPE))
		return;
	/* local labels of assembly may stand anywhere */
	if (!function && ELF64_ST_BIND(sym->st_info) == STB_LOCAL)
		return;
	/* gcc puts what a function hardly ever does elsewhere: it is jumped to, from its middle */
	if (f->err || !flow_code__run(f->code, sym->st_value) || strstr(name, ".cold"))
		return;
	entry.size = function ? sym->st_size : 0;
	entry.hint = function ? FLOW_SURE : FLOW_LABEL;
	entry.never = flow_never_returns(name, true);
	f->err = flow_entries__add(f->e, entry);
}

static void take_symbols(struct finder *f, const struct elf_section *table)
{
	size_t left = MIN(table->size, MAX_SYMBOLS) / sizeof(Elf64_Sym), pos = 0, n, i,
	       names_sz = 0;
	const Elf64_Sym *syms = f->piece;
	struct elf_section strings;
	char *names = NULL;
	void *buf;

	if (table->flags & SHF_COMPRESSED)
		return;
	if (elf_file__section_by_index(f->elf, table->link, &strings) &&
	    strings.type == SHT_STRTAB &&
	    !elf_file__read_section(f->elf, &strings, MAX_NAMES, &buf, &names_sz))
		names = buf;
	for (; left && !f->err; left -= n, pos += n) {
		n = MIN(left, (size_t)PIECE);
		if (elf_file__read(f->elf, table->offset + pos * sizeof(*syms), f->piece,
				   n * sizeof(*syms)))
			break;
		for (i = 0; i < n; i++)
			take_symbol(f, &syms[i],
				    names && syms[i].st_name < names_sz ? names + syms[i].st_name :
									  "");
	}
	free(names);
}

/* ---- relocations ---- */

/* What the dynamic linker will put somewhere: R_X86_64_RELATIVE and IRELATIVE (psABI, 4.4.1), whose
 * addend is an address of this object. */
static void take_relocs(struct finder *f, const struct elf_section *table)
{
	size_t left = MIN(table->size, MAX_SYMBOLS) / sizeof(Elf64_Rela), pos = 0, n, i;
	const Elf64_Rela *rela = f->piece;

	for (; left && !f->err; left -= n, pos += n) {
		n = MIN(left, (size_t)PIECE);
		if (elf_file__read(f->elf, table->offset + pos * sizeof(*rela), f->piece,
				   n * sizeof(*rela)))
			return;
		for (i = 0; i < n; i++) {
			uint32_t type = ELF64_R_TYPE(rela[i].r_info);

			if (type == R_X86_64_RELATIVE || type == R_X86_64_IRELATIVE)
				add(f, (uint64_t)rela[i].r_addend, FLOW_TABLE);
		}
	}
}

/* The word at vaddr is an address of this object. */
static void take_word(struct finder *f, uint64_t vaddr)
{
	uint64_t addr;

	if (!elf_file__read_vaddr(f->elf, vaddr, &addr, sizeof(addr)))
		add(f, addr, FLOW_TABLE);
}

/* gABI, relative relocations: an address, then bitmaps of the words behind it. */
static void take_packed_relocs(struct finder *f, const struct elf_section *table)
{
	size_t left = MIN(table->size, MAX_SYMBOLS) / sizeof(uint64_t), pos = 0, n, i, bit;
	const uint64_t *relr = f->piece;
	uint64_t next = 0;

	for (; left && !f->err; left -= n, pos += n) {
		n = MIN(left, (size_t)PIECE);
		if (elf_file__read(f->elf, table->offset + pos * sizeof(*relr), f->piece,
				   n * sizeof(*relr)))
			return;
		for (i = 0; i < n; i++) {
			if (!(relr[i] & 1)) {
				take_word(f, relr[i]);
				next = relr[i] + 8;
				continue;
			}
			for (bit = 1; bit < 64; bit++) {
				if (relr[i] >> bit & 1)
					take_word(f, next + 8 * (bit - 1));
			}
			next += 63 * 8;
		}
	}
}

/* .init_array and the like, where no relocation fills them. */
static void take_words(struct finder *f, const struct elf_section *table)
{
	uint64_t i;

	for (i = 0; i < MIN(table->size / 8, (uint64_t)PIECE); i++)
		take_word(f, table->addr + 8 * i);
}

/* Data of a file at a fixed address: no relocation tells which words are addresses. */
static void take_data(struct finder *f, const struct elf_section *data)
{
	uint64_t skip = -data->addr & 7, at = data->addr + skip, *words = f->piece;
	uint64_t left = data->size < skip ? 0 : MIN(data->size - skip, MAX_DATA) / 8, n, i;

	for (; left && !f->err; left -= n, at += n * 8) {
		n = MIN(left, (uint64_t)PIECE);
		if (elf_file__read_vaddr(f->elf, at, words, n * 8))
			return;
		for (i = 0; i < n; i++)
			add(f, words[i], FLOW_WORD);
	}
}

/* May a section's words be addresses of functions? Those of call frame information are none. */
static bool is_data(const struct finder *f, const struct elf_section *s)
{
	struct elf_section frames;

	return s->type == SHT_PROGBITS && (s->flags & (SHF_ALLOC | SHF_EXECINSTR)) == SHF_ALLOC &&
	       !(elf_file__section(f->elf, ".eh_frame", &frames) && frames.addr == s->addr);
}

static void take_sections(struct finder *f)
{
	struct elf_section s;
	size_t i;

	for (i = 1; i < MIN(elf_file__section_cnt(f->elf), (size_t)MAX_SECTIONS) && !f->err; i++) {
		if (!elf_file__section_by_index(f->elf, i, &s))
			continue;
		if (s.type == SHT_SYMTAB || s.type == SHT_DYNSYM)
			take_symbols(f, &s);
		else if (s.type == SHT_RELA && s.flags & SHF_ALLOC)
			take_relocs(f, &s);
		else if (s.type == SHT_RELR && s.flags & SHF_ALLOC)
			take_packed_relocs(f, &s);
		else if (s.type == SHT_INIT_ARRAY || s.type == SHT_FINI_ARRAY ||
			 s.type == SHT_PREINIT_ARRAY)
			take_words(f, &s);
		else if (f->fixed && is_data(f, &s))
			take_data(f, &s);
	}
	if (elf_file__section(f->elf, ".init", &s))
		add(f, s.addr, FLOW_SURE);
	if (elf_file__section(f->elf, ".fini", &s))
		add(f, s.addr, FLOW_SURE);
}

/* ---- covered code ---- */

/* Where the distance, of four bytes to what follows them, stands behind the opcode in call rel32, jmp
 * rel32 and lea rel32(%rip); 0: it is none of these. */
static const uint8_t distance_at[256] = { [0xe8] = 1, [0xe9] = 1, [0x8d] = 2 };

/* The covered code from its start on, instruction by instruction. */
static void take_instructions(struct finder *f, const uint8_t *bytes, size_t sz, uint64_t addr)
{
	struct insn in;
	uint64_t to;

	for (; sz && insn_decode(bytes, sz, &in); bytes += in.len, sz -= in.len, addr += in.len) {
		to = addr + in.len + (uint64_t)in.imm;
		if (in.map != INSN_ONE)
			continue;
		if (in.op == 0xe8)
			add(f, to, FLOW_SURE);
		/* out of a function that is described into one that is not: a tail call */
		else if (in.op == 0xe9)
			add(f, to, FLOW_TAKEN);
		else if (in.op == 0x8d && insn__rip_relative(&in))
			add(f, addr + in.len + (uint64_t)(int64_t)in.disp, FLOW_TAKEN);
		else if (f->fixed && insn__puts_constant(&in))
			add(f, (uint64_t)in.imm, FLOW_TAKEN);
	}
}

#define BYTES(b) (0x0101010101010101ULL * (b))
/* Not 0 if a byte of w is 0 (Hacker's Delight, 6-1). */
#define HAS_ZERO(w) (((w)-BYTES(1)) & ~(w)&BYTES(0x80))

/* Is one of these eight bytes an opcode of distance_at? */
static bool has_opcode(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return (HAS_ZERO(w ^ BYTES(0xe8)) | HAS_ZERO(w ^ BYTES(0xe9)) |
		HAS_ZERO(w ^ BYTES(0x8d))) != 0;
}

/* Does anything in there look as if it referred to the code that nothing describes? Few functions
 * do, and most of the bytes that look so are none. */
static bool refers(const struct finder *f, const uint8_t *p, size_t sz, uint64_t addr)
{
	uint64_t min = f->code->runs[0].start, max = f->code->runs[f->code->run_cnt - 1].end;
	int32_t rel;
	size_t i;

	for (i = 0; i + 6 <= sz; i++) {
		size_t skip;
		uint64_t to;

		while (!(i & 7) && i + 8 <= sz && !has_opcode(p + i))
			i += 8;
		if (i + 6 > sz)
			break;
		skip = distance_at[p[i]];
		if (!skip)
			continue;
		memcpy(&rel, p + i + skip, sizeof(rel));
		to = addr + i + skip + 4 + (uint64_t)(int64_t)rel;
		if (to >= min && to < max && (skip == 1 || (p[i + 1] & 0xc7) == 5) &&
		    flow_code__run(f->code, to))
			return true;
	}
	return false;
}

/* Code as it was last read, so that small functions do not need a read each. */
struct window {
	uint64_t start;
	size_t sz;
	uint8_t bytes[CODE_PIECE];
};

/* sz bytes at vaddr, at most CODE_PIECE; NULL if they cannot be read. */
static const uint8_t *window__get(struct window *w, const struct elf_file *elf, uint64_t vaddr,
				  size_t sz)
{
	if (vaddr < w->start || vaddr - w->start > w->sz || w->sz - (vaddr - w->start) < sz) {
		w->start = vaddr;
		w->sz = sizeof(w->bytes);
		if (elf_file__read_vaddr(elf, vaddr, w->bytes, w->sz)) {
			/* near the end of its segment */
			w->sz = sz;
			if (elf_file__read_vaddr(elf, vaddr, w->bytes, sz))
				w->sz = 0;
		}
		if (w->sz < sz)
			return NULL;
	}
	return w->bytes + (vaddr - w->start);
}

/* Functions are read whole if they fit, else in pieces: where such a piece begins is no
 * instruction, but decoding falls into step soon. */
static void take_covered(struct finder *f, const struct flow_range *covered, size_t cnt)
{
	struct window *w = calloc(1, sizeof(*w));
	uint64_t left = MAX_COVERED, at, sz;
	const uint8_t *code;
	size_t i;

	if (!w)
		f->err = -ENOMEM;
	for (i = 0; i < cnt && left && !f->err; i++) {
		for (at = covered[i].start; at < covered[i].end && left && !f->err; at += sz) {
			sz = MIN(MIN(covered[i].end - at, (uint64_t)CODE_PIECE), left);
			left -= sz;
			code = window__get(w, f->elf, at, sz);
			/* at a fixed address, the first function has that of main as a constant */
			if (code && ((f->fixed && f->first - at < sz) || refers(f, code, sz, at)))
				take_instructions(f, code, sz, at);
		}
	}
	free(w);
}

/* ---- all of them ---- */

static int by_address(const void *a, const void *b)
{
	const struct flow_entry *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->hint != y->hint)
		return x->hint - y->hint;
	return x->size > y->size ? -1 : x->size < y->size;
}

/* Of the same address; a is the surer one. */
static void merge(struct flow_entry *a, const struct flow_entry *b)
{
	a->size = MAX(a->size, b->size);
	a->never |= b->never;
}

int flow_entries__find(struct flow_entries *e, const struct elf_file *elf, bool fixed,
		       const struct flow_code *code, const struct flow_range *covered,
		       size_t covered_cnt)
{
	struct finder f = { .e = e, .elf = elf, .code = code, .fixed = fixed };
	size_t i, kept = 0;
	Elf64_Ehdr eh;

	memset(e, 0, sizeof(*e));
	f.piece = malloc(PIECE * sizeof(Elf64_Sym));
	if (!f.piece)
		return -ENOMEM;
	_Static_assert(sizeof(Elf64_Sym) >= sizeof(Elf64_Rela), "room for either");
	/* gABI, "ELF Header": 0 is no entry point */
	if (!elf_file__read(elf, 0, &eh, sizeof(eh)))
		f.first = eh.e_entry;
	if (f.first)
		add(&f, f.first, FLOW_SURE);
	take_sections(&f);
	take_covered(&f, covered, covered_cnt);
	free(f.piece);
	if (f.err) {
		flow_entries__done(e);
		return f.err;
	}
	if (e->cnt)
		qsort(e->v, e->cnt, sizeof(*e->v), by_address);
	for (i = 0; i < e->cnt; i++) {
		if (!kept || e->v[i].addr != e->v[kept - 1].addr)
			e->v[kept++] = e->v[i];
		else
			merge(&e->v[kept - 1], &e->v[i]);
	}
	e->cnt = kept;
	return 0;
}

void flow_entries__done(struct flow_entries *e)
{
	free(e->v);
	memset(e, 0, sizeof(*e));
}

/* ---- functions that never return ---- */

static bool is_one_of(const char *name, const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

bool flow_never_returns(const char *name, bool own)
{
	/* by C, POSIX, C++ and their ABIs: a program has no function of such a name that does
	 * something else */
	static const char *const reserved[] = {
		"abort",
		"exit",
		"_exit",
		"_Exit",
		"quick_exit",
		"pthread_exit",
		"longjmp",
		"_longjmp",
		"siglongjmp",
		"__longjmp_chk",
		"__assert_fail",
		"__assert_perror_fail",
		"__stack_chk_fail",
		"__chk_fail",
		"__fortify_fail",
		"_Unwind_Resume",
		"__cxa_throw",
		"__cxa_rethrow",
		"__cxa_bad_cast",
		"__cxa_throw_bad_array_new_length",
		"_ZSt9terminatev",
	};
	static const char *const others[] = {
		"err",
		"errx",
		"verr",
		"verrx",
		"g_assertion_message",
		"g_assertion_message_expr",
		"g_abort",
	};

	return is_one_of(name, reserved, ARRAY_SIZE(reserved)) ||
	       /* std::__throw_length_error(char const*) and the like */
	       (!strncmp(name, "_ZSt", 4) && strstr(name, "__throw_")) ||
	       (!own && is_one_of(name, others, ARRAY_SIZE(others)));
}

/* A table of symbols and their names. */
struct symbols {
	Elf64_Sym *v;
	size_t sz;
	char *names;
	size_t names_sz;
};

static bool is_wanted(const struct symbols *s, uint32_t symbol)
{
	Elf64_Sym sym;

	if (symbol >= s->sz / sizeof(sym))
		return false;
	sym = s->v[symbol];
	return sym.st_name < s->names_sz && flow_never_returns(s->names + sym.st_name, false);
}

static int take_slots(struct flow_extern *x, const struct elf_file *elf,
		      const struct elf_section *table, const struct symbols *s, Elf64_Rela *piece)
{
	size_t left = MIN(table->size / sizeof(*piece), (size_t)MAX_RELOCS), pos = 0, n, i;

	for (; left; left -= n, pos += n) {
		n = MIN(left, (size_t)SLOT_PIECE);
		if (elf_file__read(elf, table->offset + pos * sizeof(*piece), piece,
				   n * sizeof(*piece)))
			return 0;
		for (i = 0; i < n; i++) {
			uint32_t type = ELF64_R_TYPE(piece[i].r_info);

			if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
			    !is_wanted(s, ELF64_R_SYM(piece[i].r_info)))
				continue;
			if (util_reserve(&x->v, &x->cap, x->cnt + 1, sizeof(*x->v)))
				return -ENOMEM;
			x->v[x->cnt++] = piece[i].r_offset;
		}
	}
	return 0;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* False if there is none that can be read. */
static bool read_symbols(struct symbols *s, const struct elf_file *elf)
{
	struct elf_section table, strings;
	void *v, *names;

	if (!elf_file__section(elf, ".dynsym", &table) || table.type != SHT_DYNSYM ||
	    !elf_file__section_by_index(elf, table.link, &strings) || strings.type != SHT_STRTAB ||
	    elf_file__read_section(elf, &table, MAX_DYNSYM, &v, &s->sz))
		return false;
	s->v = v;
	if (elf_file__read_section(elf, &strings, MAX_STRINGS, &names, &s->names_sz))
		return false;
	s->names = names;
	return true;
}

int flow_extern__find(struct flow_extern *x, const struct elf_file *elf)
{
	Elf64_Rela *piece = malloc(SLOT_PIECE * sizeof(*piece));
	struct symbols s = { 0 };
	struct elf_section table;
	int err = piece ? 0 : -ENOMEM;
	size_t i;

	memset(x, 0, sizeof(*x));
	if (!err && read_symbols(&s, elf)) {
		for (i = 1; i < MIN(elf_file__section_cnt(elf), (size_t)MAX_SECTIONS) && !err;
		     i++) {
			if (elf_file__section_by_index(elf, i, &table) && table.type == SHT_RELA &&
			    table.flags & SHF_ALLOC && !(table.flags & SHF_COMPRESSED))
				err = take_slots(x, elf, &table, &s, piece);
		}
		if (x->cnt)
			qsort(x->v, x->cnt, sizeof(*x->v), ascending);
	}
	free(s.v);
	free(s.names);
	free(piece);
	if (err)
		flow_extern__done(x);
	return err;
}

void flow_extern__done(struct flow_extern *x)
{
	free(x->v);
	memset(x, 0, sizeof(*x));
}

bool flow_extern__has(const struct flow_extern *x, uint64_t got)
{
	return x->cnt && bsearch(&got, x->v, x->cnt, sizeof(got), ascending);
}
