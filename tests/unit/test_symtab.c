/* SPDX-License-Identifier: BSD-2-Clause */
/* symtab against a plain model of its rules, on readelf's symbols of real files and on made-up
 * ones; its PLT against objdump. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/symtab.h"
#include "toolrun.h"

/* ---- the model: all symbols are looked at for each address; where none has a size, it gives the
 * one that may name it, if that can be proved ---- */

struct symbol {
	uint64_t value, size;
	unsigned int type, bind, section;
	bool dynamic; /* of .dynsym */
	char *name;
};

struct model {
	struct symbol *symbols;
	size_t cnt, cap;
};

static void model__add(struct model *m, const struct symbol *sym)
{
	assert_int_equal(util_reserve(&m->symbols, &m->cap, m->cnt + 1, sizeof(*sym)), 0);
	m->symbols[m->cnt] = *sym;
	m->symbols[m->cnt++].name = strdup(sym->name);
}

static void model__done(struct model *m)
{
	while (m->cnt)
		free(m->symbols[--m->cnt].name);
	free(m->symbols);
}

static bool of_code(const struct symbol *s, const struct elf_section *sec)
{
	bool in_text = sec->flags & SHF_EXECINSTR && s->value - sec->addr < sec->size;

	if (!s->value || s->section == SHN_UNDEF || s->section == SHN_ABS)
		return false;
	if (s->type == STT_FUNC || s->type == STT_GNU_IFUNC)
		return s->size || in_text;
	return s->type == STT_NOTYPE && in_text;
}

static int binding(const struct symbol *s)
{
	return s->bind == STB_GLOBAL ? 2 : s->bind == STB_WEAK ? 1 : 0;
}

static bool is_better(const struct symbol *a, const struct symbol *b)
{
	bool fa = a->type != STT_NOTYPE, fb;

	if (!b)
		return true;
	fb = b->type != STT_NOTYPE;
	if (a->value != b->value)
		return a->value > b->value;
	if (fa != fb)
		return fa;
	if (binding(a) == binding(b) && a->dynamic != b->dynamic)
		return !a->dynamic;
	return symtab_prefer(a->name, binding(a), b->name, binding(b)) < 0;
}

static const struct symbol *model__find(const struct model *m, const struct elf_file *elf,
					uint64_t addr)
{
	const struct symbol *sized = NULL, *label = NULL, *s;
	struct elf_section sec = {}, label_sec = {};

	for (s = m->symbols; s < m->symbols + m->cnt; s++) {
		if (s->value > addr)
			continue;
		memset(&sec, 0, sizeof(sec));
		elf_file__section_by_index(elf, s->section, &sec);
		if (!of_code(s, &sec))
			continue;
		if (s->size && addr - s->value < s->size && is_better(s, sized))
			sized = s;
		if (!s->size && is_better(s, label)) {
			label = s;
			label_sec = sec;
		}
	}
	if (sized || !label || addr - label_sec.addr >= label_sec.size)
		return sized;
	for (s = m->symbols; s < m->symbols + m->cnt; s++) {
		memset(&sec, 0, sizeof(sec));
		elf_file__section_by_index(elf, s->section, &sec);
		if (!s->size || !of_code(s, &sec))
			continue;
		if (s->value > label->value ?
			    s->value <= addr :
			    s->value < label->value && label->value - s->value < s->size)
			return NULL;
	}
	return label;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Around the ends of all symbols, and in their middle. all_proved: a symbol without a size names all
 * that it may. Returns how many addresses have a name. */
static size_t check_model(const struct model *m, const struct elf_file *elf, bool all_proved)
{
	uint64_t *addrs = calloc(m->cnt, 8 * sizeof(*addrs));
	struct symtab_answers a;
	size_t i, cnt = 0, named = 0;

	for (i = 0; i < m->cnt; i++) {
		const struct symbol *s = &m->symbols[i];
		const uint64_t at[8] = { s->value - 1,		 s->value,
					 s->value + 1,		 s->value + s->size / 2,
					 s->value + s->size,	 s->value + s->size - 1,
					 s->value + s->size + 9, s->value + 64 };

		memcpy(addrs + cnt, at, sizeof(at));
		cnt += 8;
	}
	qsort(addrs, cnt, sizeof(*addrs), compare_u64);
	assert_int_equal(symtab_resolve(elf, NULL, addrs, cnt, &a), 0);
	for (i = 0; i < cnt; i++) {
		const char *name = a.names + a.symbols[i].name;
		const struct symbol *want;

		if (strstr(name, "@plt") || (i && addrs[i - 1] == addrs[i]))
			continue;
		want = model__find(m, elf, addrs[i]);
		if (want && !want->size && !all_proved && !name[0])
			continue;
		assert_string_equal(name, want ? want->name : "");
		assert_int_equal(a.symbols[i].start, want ? want->value : 0);
		named += want != NULL;
	}
	symtab_answers__done(&a);
	free(addrs);
	return named;
}

/* ---- real files ---- */

struct loaded {
	int fd;
	struct elf_file *elf;
};

static void load(struct loaded *l, const char *path)
{
	l->fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(l->fd >= 0);
	l->elf = elf_file__open(l->fd);
	assert_non_null(l->elf);
}

static void unload(struct loaded *l)
{
	elf_file__free(l->elf);
	close(l->fd);
}

static void read_model(struct model *m, const char *path)
{
	static char line[65536], name[65536];
	char type[32], bind[32], size[32], ndx[16];
	FILE *f = toolrun_open("readelf -sW %s", path);
	struct symbol s = { .name = name };

	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Symbol table", 12))
			s.dynamic = strstr(line, ".dynsym");
		if (sscanf(line, " %*d: %" SCNx64 " %31s %31s %31s %*s %15s %65535[^@ \n]",
			   &s.value, size, type, bind, ndx, name) != 6)
			continue;
		s.size = strtoull(size, NULL, 0);
		s.type = !strcmp(type, "FUNC")	 ? STT_FUNC :
			 !strcmp(type, "IFUNC")	 ? STT_GNU_IFUNC :
			 !strcmp(type, "NOTYPE") ? STT_NOTYPE :
						   STT_OBJECT;
		s.bind = !strcmp(bind, "GLOBAL") ? STB_GLOBAL :
			 !strcmp(bind, "WEAK")	 ? STB_WEAK :
						   STB_LOCAL;
		s.section = strtoul(ndx, NULL, 10); /* 0 for UND and ABS */
		if (s.type != STT_OBJECT && s.section)
			model__add(m, &s);
	}
	pclose(f);
}

static void check_file(const char *path, size_t at_least)
{
	struct model m = {};
	struct loaded l;

	read_model(&m, path);
	load(&l, path);
	assert_true(check_model(&m, l.elf, false) >= at_least);
	unload(&l);
	model__done(&m);
}

static void test_libc(void **state)
{
	(void)state;
	if (!toolrun("cp -L $(gcc -print-file-name=libc.so.6) libc.so"))
		skip();
	check_file(toolrun_path("libc.so"), 5000);
}

static void test_libstdcxx(void **state)
{
	(void)state;
	if (!toolrun("cp -L $(gcc -print-file-name=libstdc++.so.6) libstdc++.so"))
		skip();
	check_file(toolrun_path("libstdc++.so"), 5000);
}

static void test_self(void **state)
{
	(void)state;
	if (!toolrun("cp /proc/%d/exe self", getpid()))
		skip();
	check_file(toolrun_path("self"), 100);
}

/* ---- made-up files ---- */

enum {
	NONE,
	TEXT,
	OTHER_TEXT,
	DATA,
	SYMTAB,
	STRTAB,
	DYNSYM,
	SHSTRTAB,
	SECTION_CNT
};

#define IMAGE_CODE 0x1000 /* addresses: TEXT, OTHER_TEXT and DATA have this many bytes each, */
#define IMAGE_SZ 0x400	  /* all of them clc, through which any label reaches what is behind */

/* An image with these symbols, for elf_file__open_memory. */
static void *make_image(const struct model *m, size_t *ret_sz)
{
	static const char names[] = "\0.symtab\0.dynsym";
	size_t cap = sizeof(Elf64_Ehdr) + SECTION_CNT * sizeof(Elf64_Shdr) + sizeof(names), at, i;
	size_t code_sz = (DATA - TEXT + 1) * IMAGE_SZ;
	Elf64_Phdr ph = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_vaddr = IMAGE_CODE,
			  .p_filesz = code_sz,
			  .p_memsz = code_sz };
	Elf64_Shdr sh[SECTION_CNT] = {};
	Elf64_Ehdr eh = { .e_ident = ELFMAG,
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_phoff = sizeof(eh),
			  .e_phentsize = sizeof(ph),
			  .e_phnum = 1,
			  .e_shoff = sizeof(eh) + sizeof(ph),
			  .e_shentsize = sizeof(*sh),
			  .e_shnum = SECTION_CNT,
			  .e_shstrndx = SHSTRTAB };
	char *image;

	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	for (i = 0; i < m->cnt; i++)
		cap += sizeof(Elf64_Sym) + strlen(m->symbols[i].name) + 1;
	image = calloc(1, cap + sizeof(ph) + code_sz + 2 * sizeof(Elf64_Sym) + 1);
	at = sizeof(eh) + sizeof(ph) + sizeof(sh);
	ph.p_offset = at;
	memset(image + at, 0xf8, code_sz);
	for (i = TEXT; i <= DATA; i++)
		sh[i] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
				      .sh_flags = i == DATA ? 0 : SHF_EXECINSTR,
				      .sh_addr = IMAGE_CODE + (i - TEXT) * IMAGE_SZ,
				      .sh_offset = at + (i - TEXT) * IMAGE_SZ,
				      .sh_size = IMAGE_SZ };
	at += code_sz;
	sh[SHSTRTAB] =
		(Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof(names) };
	memcpy(image + at, names, sizeof(names));
	at += sizeof(names);
	sh[STRTAB] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = 1 };
	for (i = 0; i < m->cnt; i++) {
		strcpy(image + at + sh[STRTAB].sh_size, m->symbols[i].name);
		sh[STRTAB].sh_size += strlen(m->symbols[i].name) + 1;
	}
	at += sh[STRTAB].sh_size;
	for (int dynamic = 0; dynamic < 2; dynamic++) {
		Elf64_Sym sym = {};
		uint32_t name = 1;
		Elf64_Shdr *s = &sh[dynamic ? DYNSYM : SYMTAB];

		*s = (Elf64_Shdr){ .sh_type = dynamic ? SHT_DYNSYM : SHT_SYMTAB,
				   .sh_name = dynamic ? 9 : 1,
				   .sh_offset = at,
				   .sh_link = STRTAB,
				   .sh_size = sizeof(sym) };
		for (i = 0; i < m->cnt; name += strlen(m->symbols[i++].name) + 1) {
			const struct symbol *from = &m->symbols[i];

			if (from->dynamic != dynamic)
				continue;
			sym = (Elf64_Sym){ .st_name = name,
					   .st_value = from->value,
					   .st_size = from->size,
					   .st_shndx = from->section,
					   .st_info = ELF64_ST_INFO(from->bind, from->type) };
			memcpy(image + at + s->sh_size, &sym, sizeof(sym));
			s->sh_size += sizeof(sym);
		}
		at += s->sh_size;
	}
	memcpy(image, &eh, sizeof(eh));
	memcpy(image + sizeof(eh), &ph, sizeof(ph));
	memcpy(image + sizeof(eh) + sizeof(ph), sh, sizeof(sh));
	*ret_sz = at;
	return image;
}

static size_t check_image(const struct model *m)
{
	size_t sz, named;
	void *image = make_image(m, &sz);
	struct elf_file *elf = elf_file__open_memory(image, sz);

	assert_non_null(elf);
	named = check_model(m, elf, true);
	elf_file__free(elf);
	free(image);
	return named;
}

/* Symbols of all kinds over, in, at and behind each other. */
static void test_random(void **state)
{
	static const unsigned int types[] = { STT_FUNC, STT_FUNC, STT_NOTYPE, STT_GNU_IFUNC,
					      STT_OBJECT };
	size_t named = 0;

	(void)state;
	srand(1);
	for (int round = 0; round < 3000; round++) {
		struct model m = {};
		int cnt = 1 + rand() % 40, spread = 1 + rand() % (3 * IMAGE_SZ);
		char name[16];

		for (int i = 0; i < cnt; i++) {
			struct symbol s = { .value = IMAGE_CODE + rand() % spread,
					    .name = name,
					    .type = types[rand() % ARRAY_SIZE(types)],
					    .bind = rand() % 3,
					    .dynamic = rand() % 2,
					    .size = rand() % 2 ? 0 : rand() % (1 << rand() % 11) };

			s.section =
				rand() % 8 ?
					(unsigned int)(TEXT + (s.value - IMAGE_CODE) / IMAGE_SZ) :
					1 + (unsigned int)rand() % SHSTRTAB;
			/* all names differ, so that there is one right answer */
			snprintf(name, sizeof(name), "%.*sn%d", rand() % 3, "___", i);
			model__add(&m, &s);
		}
		named += check_image(&m);
		model__done(&m);
	}
	assert_true(named > 50000);
}

/* What would be quadratic if each symbol went to all addresses in its range. */
static void test_many_around_many(void **state)
{
	enum {
		symbol_cnt = 100000,
		addr_cnt = 100000
	};
	struct symbol s = { .type = STT_FUNC, .section = TEXT };
	uint64_t *addrs = calloc(addr_cnt, sizeof(*addrs));
	struct symtab_answers a;
	struct model m = {};
	struct elf_file *elf;
	char name[16];
	void *image;
	size_t sz, i;

	(void)state;
	s.name = name;
	for (i = 0; i < symbol_cnt; i++) {
		s.value = IMAGE_CODE + i;
		s.size = 10000000 - i;
		snprintf(name, sizeof(name), "n%zu", i);
		model__add(&m, &s);
	}
	for (i = 0; i < addr_cnt; i++)
		addrs[i] = IMAGE_CODE + symbol_cnt / 2 + i;
	image = make_image(&m, &sz);
	elf = elf_file__open_memory(image, sz);
	assert_int_equal(symtab_resolve(elf, NULL, addrs, addr_cnt, &a), 0);
	for (i = 0; i < addr_cnt; i++)
		assert_int_equal(a.symbols[i].start, MIN(addrs[i], IMAGE_CODE + symbol_cnt - 1));
	assert_string_equal(a.names + a.symbols[0].name, "n50000");
	assert_string_equal(a.names + a.symbols[addr_cnt - 1].name, "n99999");
	symtab_answers__done(&a);
	elf_file__free(elf);
	free(image);
	free(addrs);
	model__done(&m);
}

/* Names of all lengths, up to the longest that counts. */
static void test_long_names(void **state)
{
	static const size_t lens[] = {
		1, 126, 127, 128, 129, 255, 256, 257, 5000, SYMTAB_MAX_NAME - 1, SYMTAB_MAX_NAME
	};
	struct symbol s = { .type = STT_FUNC, .section = TEXT, .size = 1 };
	struct symtab_answers a;
	struct model m = {};
	uint64_t addrs[ARRAY_SIZE(lens)];
	struct elf_file *elf;
	void *image;
	size_t sz, i;

	(void)state;
	s.name = calloc(1, SYMTAB_MAX_NAME + 1);
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		memset(s.name, 'a' + i, lens[i]);
		addrs[i] = s.value = IMAGE_CODE + i;
		model__add(&m, &s);
	}
	image = make_image(&m, &sz);
	elf = elf_file__open_memory(image, sz);
	assert_int_equal(symtab_resolve(elf, NULL, addrs, ARRAY_SIZE(lens), &a), 0);
	for (i = 0; i + 1 < ARRAY_SIZE(lens); i++)
		assert_string_equal(a.names + a.symbols[i].name, m.symbols[i].name);
	assert_int_equal(a.symbols[i].name, 0);
	symtab_answers__done(&a);
	assert_int_equal(symtab_resolve(elf, NULL, NULL, 0, &a), 0);
	symtab_answers__done(&a);
	elf_file__free(elf);
	free(image);
	free(s.name);
	model__done(&m);
}

/* ---- one address ---- */

struct found {
	char name[256]; /* "" if it is in no symbol's range */
	uint64_t start;
};

static struct found find(const struct loaded *l, const struct elf_file *debug, uint64_t addr)
{
	struct symtab_answers a;
	struct found f = {};

	assert_int_equal(symtab_resolve(l->elf, debug, &addr, 1, &a), 0);
	snprintf(f.name, sizeof(f.name), "%s", a.names + a.symbols[0].name);
	f.start = a.symbols[0].start;
	symtab_answers__done(&a);
	return f;
}

/* What objdump puts under a name in a section of the PLT has that name, or none: the heads of PLTs,
 * lazy halves and stubs of functions that are chosen at start (STT_GNU_IFUNC) have none. */
static void check_stubs(const struct loaded *l)
{
	FILE *f =
		toolrun_open("objdump -d -j .plt -j .plt.sec -j .plt.got -j .iplt plt 2>/dev/null");
	char line[512], name[256] = "", colon;
	struct found s;
	uint64_t addr;

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " <%255[^>]>:", &addr, name) == 2)
			continue;
		if (sscanf(line, " %" SCNx64 "%c\t", &addr, &colon) != 2 || colon != ':')
			continue;
		s = find(l, NULL, addr);
		if (s.name[0])
			assert_string_equal(s.name, name);
	}
	pclose(f);
}

/* Every stub that objdump names in the PLT has that name. */
static void test_plt(void **state)
{
	static const char *const builds[] = { "-O1",
					      "-O1 -fcf-protection=full -Wl,-z,ibtplt",
					      "-O1 -Wl,-z,now",
					      "-no-pie",
					      "-fuse-ld=lld",
					      "-fuse-ld=gold" };
	static const char src[] =
		"#include <stdio.h>\n#include <stdlib.h>\nvoid *p; int main(int c, char **v)\n"
		"{ p = puts; printf(\"%d\", atoi(v[0])); qsort(v, c, 8, p); return getpid(); }\n";
	char line[512], name[256];
	struct loaded l;
	struct found s;
	size_t i, cnt;
	uint64_t addr;
	FILE *f;

	(void)state;
	toolrun_write("plt.c", src, sizeof(src) - 1);
	for (i = 0; i < ARRAY_SIZE(builds); i++) {
		if (!toolrun("gcc -w -fno-builtin %s -o plt plt.c 2>/dev/null", builds[i]))
			continue;
		load(&l, toolrun_path("plt"));
		check_stubs(&l);
		f = toolrun_open("objdump -d plt");
		cnt = 0;
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "%" SCNx64 " <%255[^>]>:", &addr, name) != 2 ||
			    !strstr(name, "@plt") || strchr(name, '*'))
				continue;
			/* the lazy halves of split stubs, which objdump names by their order, are
			 * never jumped to by a call */
			s = find(&l, NULL, addr);
			if (!s.name[0])
				continue;
			assert_string_equal(s.name, name);
			assert_int_equal(s.start, addr);
			s = find(&l, NULL, addr + 7);
			assert_string_equal(s.name, name);
			assert_int_equal(s.start, addr);
			cnt++;
		}
		pclose(f);
		assert_true(cnt >= 4);
		unload(&l);
	}
	assert_true(toolrun("gcc -w -fno-builtin -static -o plt plt.c"));
	load(&l, toolrun_path("plt"));
	check_stubs(&l);
	unload(&l);
}

static void assert_found(const struct loaded *l, uint64_t addr, const char *name, uint64_t start)
{
	struct found f = find(l, NULL, addr);

	assert_string_equal(f.name, name);
	assert_int_equal(f.start, start);
}

/* Aliases, sizes, gaps and labels, in assembly. */
static void test_choice(void **state)
{
	static const char src[] =
		".text\n.balign 16\n"
		".globl alias_b\n.type alias_b, @function\nalias_b:\n"
		".globl __alias\n.type __alias, @function\n__alias:\n"
		".weak al\n.type al, @function\nal:\n"
		".type a, @function\na:\n"
		".globl alias_a\n.type alias_a, @function\nalias_a:\n"
		"nop\nlabel_inside:\n.fill 15, 1, 0x90\n"
		".size alias_b, 16\n.size alias_a, 16\n.size __alias, 16\n.size al, 16\n.size a, "
		"16\n"
		".fill 16, 1, 0x90\n" /* in nobody's range */
		".globl sizeless\nsizeless: .fill 32, 1, 0xf8\n"
		".globl next\n.type next, @function\nnext: .fill 8, 1, 0x90\n.size next, 8\n"
		".globl versioned_v1\n.type versioned_v1, @function\nversioned_v1: ret\n.size "
		"versioned_v1, 1\n"
		".symver versioned_v1, versioned@V1\n"
		".globl last\n.type last, @function\nlast: ret\nnop\n"
		".data\n.globl data_label\ndata_label: .quad 1\n";
	static const char map[] = "V1 { versioned; };\n";
	struct elf_section text, data;
	struct loaded l;
	struct found f;
	uint64_t at;

	(void)state;
	toolrun_write("choice.s", src, sizeof(src) - 1);
	toolrun_write("choice.map", map, sizeof(map) - 1);
	if (!toolrun("gcc -shared -nostdlib -Wl,--version-script=choice.map -o choice choice.s"))
		skip();
	load(&l, toolrun_path("choice"));
	assert_true(elf_file__section(l.elf, ".text", &text));
	at = text.addr;
	assert_found(&l, at - 1, "", 0);
	/* global before weak before local, fewer underscores, shorter, alphabet; the label is no
	 * function of its own */
	assert_found(&l, at, "alias_a", at);
	assert_found(&l, at + 15, "alias_a", at);
	assert_found(&l, at + 16, "", 0);
	assert_found(&l, at + 31, "", 0);
	assert_found(&l, at + 32, "sizeless", at + 32);
	assert_found(&l, at + 63, "sizeless", at + 32);
	assert_found(&l, at + 64, "next", at + 64);
	f = find(&l, NULL, at + 72);
	assert_int_equal(strncmp(f.name, "versioned", 9), 0);
	assert_null(strchr(f.name, '@'));
	assert_found(&l, at + 73, "last", at + 73);
	/* behind its end, which the code shows */
	assert_found(&l, at + 74, "", 0);
	assert_found(&l, text.addr + text.size - 1, "", 0);
	assert_found(&l, text.addr + text.size, "", 0);
	assert_true(elf_file__section(l.elf, ".data", &data));
	assert_found(&l, data.addr, "", 0);
	unload(&l);
}

/* The debug file's .symtab serves what has none, and only that. */
static void test_debug(void **state)
{
	static const char src[] =
		"int f(int x) { return x; } static int g(int x) { return -x; }\n"
		"int (*p)(int) = g;\n";
	struct loaded full, stripped, other;
	struct model m = {};
	uint64_t g = 0;

	(void)state;
	toolrun_write("debug.c", src, sizeof(src) - 1);
	assert_true(
		toolrun("gcc -shared -fPIC -o full debug.c && strip -o stripped full && "
			"gcc -shared -fPIC -Dg=other -o other debug.c"));
	read_model(&m, toolrun_path("full"));
	for (size_t i = 0; i < m.cnt; i++) {
		if (!strcmp(m.symbols[i].name, "g"))
			g = m.symbols[i].value;
	}
	load(&full, toolrun_path("full"));
	load(&stripped, toolrun_path("stripped"));
	load(&other, toolrun_path("other"));
	assert_string_equal(find(&stripped, NULL, g).name, "");
	assert_string_equal(find(&stripped, full.elf, g).name, "g");
	assert_string_equal(find(&stripped, full.elf, g - 1).name, "f");
	assert_string_equal(find(&full, other.elf, g).name, "g");
	unload(&full);
	unload(&stripped);
	unload(&other);
	model__done(&m);
}

static void test_prefer(void **state)
{
	(void)state;
	assert_true(symtab_prefer("zzz", 2, "a", 1) < 0);
	assert_true(symtab_prefer("_a", 1, "bbb", 1) > 0);
	assert_true(symtab_prefer("aa", 1, "bbb", 1) < 0);
	assert_true(symtab_prefer("ab", 1, "aa", 1) > 0);
	assert_int_equal(symtab_prefer("ab", 1, "ab", 1), 0);
}

/* Symbols and relocations of nonsense: nothing may be read that is not there (run with ASan). */
static void test_damaged(void **state)
{
	static const char *const sections[] = { ".symtab", ".strtab",	".dynsym",
						".dynstr", ".rela.plt", ".rela.dyn" };
	struct symtab_answers a;
	struct elf_section sec;
	struct elf_file *e;
	uint8_t *good, *bad;
	uint64_t addrs[2000], shoff;
	size_t sz, i, k;

	(void)state;
	good = toolrun_read("/proc/self/exe", &sz);
	bad = malloc(sz);
	memcpy(&shoff, good + offsetof(Elf64_Ehdr, e_shoff), 8);
	srand(2);
	for (i = 0; i < 60; i++) {
		memcpy(bad, good, sz);
		e = elf_file__open_memory(good, sz);
		for (k = 0; k < 200; k++) {
			if (elf_file__section(e, sections[rand() % ARRAY_SIZE(sections)], &sec) &&
			    sec.size)
				bad[sec.offset + (size_t)rand() % sec.size] = rand();
		}
		bad[shoff + (size_t)rand() % (sz - shoff)] ^= 1 << (rand() & 7);
		elf_file__free(e);
		e = elf_file__open_memory(bad, sz);
		if (!e)
			continue;
		for (k = 0; k < ARRAY_SIZE(addrs); k++)
			addrs[k] = (uint64_t)rand() % (sz * 2);
		qsort(addrs, ARRAY_SIZE(addrs), sizeof(*addrs), compare_u64);
		assert_int_equal(symtab_resolve(e, NULL, addrs, ARRAY_SIZE(addrs), &a), 0);
		for (k = 0; k < ARRAY_SIZE(addrs); k++) {
			if (a.symbols[k].name) {
				assert_true(a.symbols[k].start <= addrs[k]);
				assert_true(strlen(a.names + a.symbols[k].name) > 0);
			}
		}
		symtab_answers__done(&a);
		elf_file__free(e);
	}
	free(bad);
	free(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_libstdcxx),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_many_around_many),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_debug),
		cmocka_unit_test(test_prefer),
		cmocka_unit_test(test_damaged),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
