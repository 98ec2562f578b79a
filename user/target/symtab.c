/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads symbol tables into one sorted array and finds the symbol around an address. */
#include "target/symtab.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"

#define MAX_TABLE (256ULL << 20) /* bytes of a symbol table, and of its strings */
#define MAX_RELOCS (1U << 20)
#define MAX_BACK 64 /* symbols looked at before an address for one that reaches it */
#define PLT_NAME_MAX 512

struct symbol {
	uint64_t start, end;
	const char *name;
	uint32_t section; /* of a symbol whose end is not known yet, else 0 */
	int8_t rank;
};

struct symtab {
	struct symbol *symbols; /* by start, of equal ones the preferred one last */
	size_t cnt, cap;
	uint64_t *reach; /* largest end of the symbols up to each */
	char **strings;	 /* tables and names that symbols refer to */
	size_t string_cnt, string_cap;
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

static int compare(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return -symtab_prefer(a->name, a->rank, b->name, b->rank);
}

/* Symbols with a size before those without, functions before labels, then by binding. */
static int rank(const Elf64_Sym *s)
{
	int type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);

	return (s->st_size ? 8 : 0) + (type != STT_NOTYPE ? 4 : 0) +
	       (bind == STB_GLOBAL ? 2 :
		bind == STB_WEAK   ? 1 :
				     0);
}

/* ---- reading ---- */

static int own_string(struct symtab *st, char *s)
{
	if (util_reserve(&st->strings, &st->string_cap, st->string_cnt + 1, sizeof(*st->strings))) {
		free(s);
		return -ENOMEM;
	}
	st->strings[st->string_cnt++] = s;
	return 0;
}

static int add_symbol(struct symtab *st, const struct elf_file *elf, const Elf64_Sym *s, char *name)
{
	int type = ELF64_ST_TYPE(s->st_info);
	struct symbol sym = { .start = s->st_value, .name = name, .rank = rank(s) };
	struct elf_section sec;
	bool have_section;
	char *at;

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || !s->st_value || !*name)
		return 0;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	have_section =
		s->st_shndx < SHN_LORESERVE && elf_file__section_by_index(elf, s->st_shndx, &sec);
	/* labels name data as well; and what has no size needs the end of its section */
	if (type == STT_NOTYPE || !s->st_size) {
		if (!have_section || !(sec.flags & SHF_EXECINSTR) ||
		    s->st_value - sec.addr >= sec.size)
			return 0;
	}
	if (s->st_size) {
		if (__builtin_add_overflow(s->st_value, s->st_size, &sym.end))
			return 0;
	} else {
		sym.end = sec.addr + sec.size;
		sym.section = s->st_shndx;
	}
	/* name@VERSION and name@@VERSION; other names that share these bytes end here as well */
	at = strchr(name + 1, '@');
	if (at)
		*at = '\0';
	if (util_reserve(&st->symbols, &st->cap, st->cnt + 1, sizeof(sym)))
		return -ENOMEM;
	st->symbols[st->cnt++] = sym;
	return 0;
}

/* A table with its strings; -ENOENT if it is missing or damaged. *ret_names has a NUL at its end.
 */
static int read_table(const struct elf_file *elf, const char *section, Elf64_Sym **ret_syms,
		      size_t *ret_cnt, char **ret_names, size_t *ret_names_sz)
{
	struct elf_section s, str;
	void *syms = NULL, *names = NULL;
	size_t sz, names_sz;
	int err;

	if (!elf_file__section(elf, section, &s) || s.size > MAX_TABLE ||
	    !elf_file__section_by_index(elf, s.link, &str) || str.type != SHT_STRTAB ||
	    str.size > MAX_TABLE)
		return -ENOENT;
	err = elf_file__read_section(elf, &s, &syms, &sz);
	if (!err)
		err = elf_file__read_section(elf, &str, &names, &names_sz);
	if (err || !names_sz) {
		free(syms);
		free(names);
		return err == -ENOMEM ? err : -ENOENT;
	}
	((char *)names)[names_sz - 1] = '\0';
	*ret_syms = syms;
	*ret_cnt = sz / sizeof(Elf64_Sym);
	*ret_names = names;
	*ret_names_sz = names_sz;
	return 0;
}

static int add_table(struct symtab *st, const struct elf_file *elf, const char *section)
{
	size_t cnt, names_sz, i;
	Elf64_Sym *syms;
	char *names;
	int err = read_table(elf, section, &syms, &cnt, &names, &names_sz);

	if (err)
		return err;
	err = own_string(st, names);
	for (i = 1; i < cnt && !err; i++) {
		if (syms[i].st_name < names_sz)
			err = add_symbol(st, elf, &syms[i], names + syms[i].st_name);
	}
	free(syms);
	return err;
}

/* ---- PLT ---- */

struct slot { /* an entry of the GOT and the symbol whose address the dynamic linker puts there */
	uint64_t addr;
	uint32_t sym;
};

struct plt {
	struct slot *slots;
	size_t cnt, cap;
	Elf64_Sym *syms;
	size_t sym_cnt;
	char *names;
	size_t names_sz;
};

static int compare_slots(const void *a, const void *b)
{
	uint64_t x = ((const struct slot *)a)->addr, y = ((const struct slot *)b)->addr;

	return x < y ? -1 : x > y;
}

static int read_slots(struct plt *plt, const struct elf_file *elf, const char *section)
{
	struct elf_section s;
	Elf64_Rela *rela;
	size_t sz, i;
	void *buf;
	int err;

	if (!elf_file__section(elf, section, &s) || s.type != SHT_RELA ||
	    s.size > MAX_RELOCS * sizeof(Elf64_Rela))
		return 0;
	err = elf_file__read_section(elf, &s, &buf, &sz);
	if (err)
		return err == -ENOMEM ? err : 0;
	rela = buf;
	for (i = 0; i < sz / sizeof(*rela) && !err; i++) {
		uint32_t type = ELF64_R_TYPE(rela[i].r_info);

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		err = util_reserve(&plt->slots, &plt->cap, plt->cnt + 1, sizeof(*plt->slots));
		if (!err)
			plt->slots[plt->cnt++] =
				(struct slot){ rela[i].r_offset, ELF64_R_SYM(rela[i].r_info) };
	}
	free(buf);
	return err;
}

/* The GOT entry that the stub at vaddr jumps through: [endbr64] [bnd] jmp *rel32(%rip). 0 if it is
 * no such stub. */
static uint64_t stub_target(const uint8_t *code, size_t sz, uint64_t vaddr)
{
	size_t pos = 0;
	int32_t rel;

	if (sz >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		pos = 4;
	if (pos < sz && code[pos] == 0xf2)
		pos++;
	if (sz - pos < 6 || code[pos] != 0xff || code[pos + 1] != 0x25)
		return 0;
	memcpy(&rel, code + pos + 2, 4);
	return vaddr + pos + 6 + (uint64_t)(int64_t)rel;
}

static int add_stub(struct symtab *st, const struct plt *plt, uint64_t vaddr, uint64_t sz,
		    uint64_t target)
{
	struct slot key = { .addr = target }, *slot;
	struct symbol sym = { .start = vaddr, .end = vaddr + sz };
	char buf[PLT_NAME_MAX], *name;
	int len;

	slot = plt->cnt ? bsearch(&key, plt->slots, plt->cnt, sizeof(key), compare_slots) : NULL;
	if (!target || !slot || slot->sym >= plt->sym_cnt ||
	    plt->syms[slot->sym].st_name >= plt->names_sz)
		return 0;
	len = snprintf(buf, sizeof(buf), "%s@plt", plt->names + plt->syms[slot->sym].st_name);
	if (len < 0 || (size_t)len >= sizeof(buf) || buf[0] == '@')
		return 0;
	name = strdup(buf);
	if (!name || own_string(st, name))
		return -ENOMEM;
	sym.name = name;
	if (util_reserve(&st->symbols, &st->cap, st->cnt + 1, sizeof(sym)))
		return -ENOMEM;
	st->symbols[st->cnt++] = sym;
	return 0;
}

static int add_stubs(struct symtab *st, const struct plt *plt, const struct elf_file *elf,
		     const char *section)
{
	struct elf_section s;
	size_t sz, step, pos;
	uint8_t *code;
	void *buf;
	int err;

	if (!elf_file__section(elf, section, &s) || s.size > MAX_RELOCS * 16)
		return 0;
	/* .plt.got without endbr64 has entries of 8 bytes */
	step = s.entsize == 8 ? 8 : 16;
	err = elf_file__read_section(elf, &s, &buf, &sz);
	if (err)
		return err == -ENOMEM ? err : 0;
	code = buf;
	for (pos = 0; sz - pos >= step && !err; pos += step)
		err = add_stub(st, plt, s.addr + pos, step,
			       stub_target(code + pos, step, s.addr + pos));
	free(buf);
	return err;
}

static int add_plt(struct symtab *st, const struct elf_file *elf)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	struct plt plt = {};
	size_t i;
	int err = read_table(elf, ".dynsym", &plt.syms, &plt.sym_cnt, &plt.names, &plt.names_sz);

	if (err)
		return err == -ENOENT ? 0 : err;
	err = read_slots(&plt, elf, ".rela.plt");
	if (!err)
		err = read_slots(&plt, elf, ".rela.dyn");
	if (plt.cnt)
		qsort(plt.slots, plt.cnt, sizeof(*plt.slots), compare_slots);
	for (i = 0; i < ARRAY_SIZE(sections) && !err; i++)
		err = add_stubs(st, &plt, elf, sections[i]);
	free(plt.slots);
	free(plt.syms);
	free(plt.names);
	return err;
}

/* ---- the sorted table ---- */

/* Symbols without a size end at the next symbol; inside of one with a size they are mere labels and
 * get no range. */
static int finish(struct symtab *st)
{
	uint64_t reach = 0, next = UINT64_MAX;
	size_t i;

	if (!st->cnt)
		return 0;
	st->reach = calloc(st->cnt, sizeof(*st->reach));
	if (!st->reach)
		return -ENOMEM;
	qsort(st->symbols, st->cnt, sizeof(*st->symbols), compare);
	for (i = st->cnt; i-- > 0;) {
		struct symbol *s = &st->symbols[i];

		if (i + 1 < st->cnt && st->symbols[i + 1].start != s->start)
			next = st->symbols[i + 1].start;
		if (s->section)
			s->end = MIN(s->end, next);
	}
	for (i = 0; i < st->cnt; i++) {
		struct symbol *s = &st->symbols[i];

		if (s->section && reach > s->start)
			s->end = s->start;
		if (!s->section)
			reach = MAX(reach, s->end);
		st->reach[i] = MAX(i ? st->reach[i - 1] : 0, s->end);
	}
	return 0;
}

struct symtab *symtab__load(const struct elf_file *elf, const struct elf_file *debug)
{
	struct symtab *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return NULL;
	err = add_table(st, elf, ".symtab");
	if (err == -ENOENT && debug)
		err = add_table(st, debug, ".symtab");
	if (!err || err == -ENOENT)
		err = add_table(st, elf, ".dynsym");
	if (!err || err == -ENOENT)
		err = add_plt(st, elf);
	if (!err)
		err = finish(st);
	if (err) {
		symtab__free(st);
		errno = -err;
		return NULL;
	}
	return st;
}

void symtab__free(struct symtab *st)
{
	size_t i;

	if (!st)
		return;
	for (i = 0; i < st->string_cnt; i++)
		free(st->strings[i]);
	free(st->strings);
	free(st->symbols);
	free(st->reach);
	free(st);
}

size_t symtab__cnt(const struct symtab *st)
{
	return st->cnt;
}

int symtab__find(const struct symtab *st, uint64_t addr, struct symtab_symbol *ret)
{
	size_t lo = 0, hi = st->cnt, steps;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (st->symbols[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (steps = 0; lo-- > 0 && st->reach[lo] > addr && steps < MAX_BACK; steps++) {
		const struct symbol *s = &st->symbols[lo];

		if (addr < s->end) {
			*ret = (struct symtab_symbol){ s->name, s->start, s->end };
			return 0;
		}
	}
	return -ENOENT;
}
