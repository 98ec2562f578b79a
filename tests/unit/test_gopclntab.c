/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go's table of functions: in each of its forms, wherever linkers put it, damaged in many ways, and
 * those of real programs against their symbols.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/gopclntab.h"
#include "tests/unit/go_image.h"
#include "tests/unit/go_progs.h"

static const struct go_func funcs[] = {
	{ .name = "runtime.deferreturn",
	  .size = 0x40,
	  .func_id = 21,
	  .start_line = 3,
	  .pcsp = { { 0, 4 }, { 8, 0x1c }, { 0, 2 } },
	  .file = { { 1, 0x22 } },
	  .line = { { 300, 0x10 }, { 7, 0x12 } } },
	{ .name = "runtime.mcall",
	  .size = 0x20,
	  .flags = GOPCLNTAB_ASM | GOPCLNTAB_SPWRITE,
	  .func_id = 13 },
	{ .name = "runtime.goexit",
	  .size = 0x20,
	  .flags = GOPCLNTAB_ASM | GOPCLNTAB_TOPFRAME,
	  .pcsp = { { 0, 0x20 } } },
	{ .name = "main.(*T).M",
	  .size = 0x100,
	  .start_line = 70000,
	  .pcsp = { { 0, 9 }, { 0x40000000, 0x97 }, { 0, 0x40 } },
	  .file = { { 0, 0xe0 } } },
	{},
};

static const int minors[] = { 16, 18, 20, 25, 26, 27 };

static struct go_image image(int minor)
{
	return (struct go_image){ .minor = minor,
				  .has_sections = true,
				  .names_table = true,
				  .funcs = funcs,
				  .files = { "/src/main.go", "/src/panic.go" },
				  .version = "go1.26.8" };
}

static struct gopclntab *open_image(const struct go_image *m)
{
	struct elf_file *elf = elf_file__open_memory(m->data, sizeof(m->data));
	struct gopclntab *g;

	assert_non_null(elf);
	errno = 0;
	g = gopclntab__open(elf);
	elf_file__free(elf);
	return g;
}

static struct gopclntab *open_made(struct go_image *m)
{
	go_image__make(m);
	return open_image(m);
}

/* Makes it, changes some bytes, and expects this errno. */
static void refuse(struct go_image *m, size_t pos, uint64_t v, size_t sz, int err)
{
	struct gopclntab *g;

	go_image__make(m);
	go_put(m, pos, v, sz);
	g = open_image(m);
	assert_null(g);
	assert_int_equal(errno, err);
}

static void check_values(const struct gopclntab *g, const struct gopclntab_func *f, uint32_t offset,
			 const struct go_value *want)
{
	uint64_t pc = f->start, start, end;
	struct gopclntab_values v;
	int32_t value;

	gopclntab_values__init(&v, g, f, offset);
	for (; want->bytes; pc += want->bytes, want++) {
		assert_true(gopclntab_values__next(&v, &start, &end, &value));
		assert_int_equal(start, pc);
		assert_int_equal(end, pc + want->bytes);
		assert_int_equal(value, want->value);
		assert_int_equal(gopclntab__value(g, f, offset, end - 1), value);
	}
	assert_false(gopclntab_values__next(&v, &start, &end, &value));
	assert_false(gopclntab_values__next(&v, &start, &end, &value));
	assert_int_equal(gopclntab__value(g, f, offset, pc), -1);
}

/* Everything that the image says. */
static void check(const struct gopclntab *g, const struct go_image *m)
{
	uint64_t start = GO_CODE;
	struct gopclntab_func f;
	size_t i, at;

	assert_int_equal(gopclntab__layout(g), m->minor >= 20 ? 20 : m->minor >= 18 ? 18 : 16);
	assert_int_equal(gopclntab__cnt(g), m->cnt);
	for (i = 0; i < m->cnt; i++, start = f.end) {
		const struct go_func *want = &m->funcs[i];

		assert_true(gopclntab__func(g, i, &f));
		assert_int_equal(f.start, start);
		assert_int_equal(f.end, start + want->size);
		assert_string_equal(f.name, want->name);
		assert_int_equal(f.flags, want->flags);
		assert_int_equal(f.func_id, want->func_id);
		assert_int_equal(f.start_line, m->minor >= 20 ? want->start_line : 0);
		check_values(g, &f, f.pcsp, want->pcsp);
		check_values(g, &f, f.pcfile, want->file);
		check_values(g, &f, f.pcln, want->line);
		assert_true(gopclntab__find(g, f.start, &at) && at == i);
		assert_true(gopclntab__find(g, f.end - 1, &at) && at == i);
	}
	assert_false(gopclntab__func(g, i, &f));
	assert_false(gopclntab__find(g, GO_CODE - 1, &at));
	assert_false(gopclntab__find(g, start, &at));
}

static void test_every_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		for (int pie = 0; pie < 2; pie++) {
			struct go_image m = image(minors[i]);
			struct gopclntab *g;

			m.pie = pie;
			g = open_made(&m);
			assert_non_null(g);
			check(g, &m);
			gopclntab__free(g);
		}
	}
}

/* Without section headers, and in a section of another name. */
static void test_found_by_its_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		for (int k = 0; k < 4; k++) {
			struct go_image m = image(minors[i]);
			struct gopclntab *g;

			m.pie = k & 1;
			m.has_sections = k & 2;
			m.names_table = false;
			g = open_made(&m);
			assert_non_null(g);
			check(g, &m);
			assert_int_equal(gopclntab__minor(g), 26);
			gopclntab__free(g);
		}
	}
}

/* A program may have another one's table in its constants: none of its own data refers to that. */
static void test_a_table_of_another_program(void **state)
{
	struct go_image m = image(20);
	struct gopclntab *g;

	(void)state;
	m.has_sections = false;
	go_image__make(&m);
	memcpy(m.data + GO_FILE_CONST, m.data + m.header, 64);
	go_put(&m, GO_FILE_CONST + 8, 1, 8);
	g = open_image(&m);
	assert_non_null(g);
	check(g, &m);
	gopclntab__free(g);
	go_put(&m, m.moduledata, 0, 8);
	assert_null(open_image(&m));
	assert_int_equal(errno, ENOENT);
}

/* Only files that may be Go's are searched. */
static void test_no_program_of_go(void **state)
{
	struct go_image m = image(20);
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = elf_file__open(self);

	(void)state;
	assert_non_null(elf);
	assert_null(gopclntab__open(elf));
	assert_int_equal(errno, ENOENT);
	elf_file__free(elf);
	close(self);

	m.names_table = false;
	m.version = NULL;
	assert_null(open_made(&m));
	assert_int_equal(errno, ENOENT);
	m.has_sections = false;
	gopclntab__free(open_made(&m));
	assert_int_equal(errno, 0);
	/* 1.2 to 1.15, and what is not known yet; other machines; other pointers */
	m = image(20);
	go_image__make(&m);
	refuse(&m, m.header, 0xfb, 1, ENOENT);
	refuse(&m, m.header, 0xf2, 1, ENOENT);
	refuse(&m, m.header + 4, 1, 1, ENOENT);
	refuse(&m, m.header + 6, 4, 1, ENOENT);
	refuse(&m, m.header + 7, 4, 1, ENOENT);
}

static void test_damaged_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct go_image m = image(minors[i]);
		size_t first, k;

		go_image__make(&m);
		first = m.header + (m.minor >= 18 ? 32 : 24);
		refuse(&m, m.header + 8, 0, 8, ENOENT);
		refuse(&m, m.header + 8, UINT64_MAX, 8, ENOENT);
		refuse(&m, m.header + 8, UINT64_MAX / 8, 8, ENOENT);
		refuse(&m, m.header + 8, GO_SEGMENT, 8, ENOENT);
		for (k = 0; k < 5; k++) {
			refuse(&m, first + k * 8, UINT64_MAX, 8, ENOENT);
			refuse(&m, first + k * 8, GO_SEGMENT, 8, ENOENT);
			refuse(&m, first + k * 8, 8, 8, ENOENT);
		}
	}
}

/* What the functab, the code and the moduledata say of each other has to agree. */
static void test_damaged_functabs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct go_image m = image(minors[i]);
		uint64_t wide = m.minor >= 18 ? 4 : 8, base = m.minor >= 18 ? 0 : GO_CODE;

		go_image__make(&m);
		/* not ascending */
		refuse(&m, m.functab + 2 * wide, base + 0x70, wide, EBADMSG);
		/* another begin or end */
		refuse(&m, m.functab, base + 1, wide, EBADMSG);
		refuse(&m, m.functab + 8 * wide, base + 0x190, wide, EBADMSG);
		/* code that the file has not, although moduledata has it so */
		go_put(&m, m.functab + 8 * wide, base + 0x10000, wide);
		go_put(&m, m.moduledata + 21 * 8, GO_CODE + 0x10000, 8);
		assert_null(open_image(&m));
		assert_int_equal(errno, EBADMSG);
		if (m.minor < 18)
			continue;
		go_image__make(&m);
		go_put(&m, m.moduledata + 20 * 8, GO_DATA, 8);
		go_put(&m, m.moduledata + 22 * 8, GO_DATA, 8);
		assert_null(open_image(&m));
		assert_int_equal(errno, EBADMSG);
	}
}

/* Up to 1.25 the header suffices. */
static void test_without_moduledata(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct go_image m = image(minors[i]);
		struct gopclntab *g;

		go_image__make(&m);
		go_put(&m, m.moduledata, 0, 8);
		g = open_image(&m);
		assert_int_equal(g != NULL, m.minor < 26);
		if (g)
			check(g, &m);
		gopclntab__free(g);
	}
}

static void test_damaged_records(void **state)
{
	struct go_image m = image(20);
	struct gopclntab_func f;
	struct gopclntab *g;

	(void)state;
	go_image__make(&m);
	/* outside of the table; a name that is none; more tables than there is room for */
	go_put(&m, m.functab + 4, UINT32_MAX, 4);
	go_put(&m, m.records[1] + 4, (uint32_t)(m.cus - m.names), 4);
	go_put(&m, m.records[2] + 28, UINT32_MAX, 4);
	g = open_image(&m);
	assert_non_null(g);
	for (size_t i = 0; i < 3; i++)
		assert_false(gopclntab__func(g, i, &f));
	assert_true(gopclntab__func(g, 3, &f));
	assert_int_equal(gopclntab__pcdata(g, &f, 0), 0);
	assert_int_equal(gopclntab__funcdata(g, &f, 0), 0);
	gopclntab__free(g);
}

/* Values from these bytes, for the last function. */
static size_t count_values(const uint8_t *bytes, size_t sz, int32_t *ret_last)
{
	struct go_image m = image(20);
	uint64_t start, end, last = 0;
	struct gopclntab_values v;
	struct gopclntab_func f;
	struct gopclntab *g;
	size_t cnt = 0;

	go_image__make(&m);
	memcpy(m.data + m.functab - sz, bytes, sz);
	go_put(&m, m.records[3] + 16, m.functab - sz - m.pctab, 4);
	g = open_image(&m);
	assert_non_null(g);
	assert_true(gopclntab__func(g, 3, &f));
	gopclntab_values__init(&v, g, &f, f.pcsp);
	while (gopclntab_values__next(&v, &start, &end, ret_last)) {
		assert_true(start == (cnt ? last : f.start) && end > start && end <= f.end);
		last = end;
		cnt++;
	}
	gopclntab__free(g);
	return cnt;
}

#define COUNT(ret_last, ...)                                                                     \
	count_values((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), \
		     ret_last)

static void test_damaged_values(void **state)
{
	int32_t last = 0;

	(void)state;
	assert_int_equal(COUNT(&last, 2, 1, 0), 1);
	assert_int_equal(last, 0);
	/* the first may be -1 */
	assert_int_equal(COUNT(&last, 0, 1, 0), 1);
	assert_int_equal(last, -1);
	/* the table ends: before a value, in a number, before the bytes */
	assert_int_equal(COUNT(&last, 2, 1), 1);
	assert_int_equal(COUNT(&last, 2, 1, 2), 1);
	assert_int_equal(COUNT(&last, 2, 1, 0x82), 1);
	/* no bytes */
	assert_int_equal(COUNT(&last, 2, 1, 2, 0, 2, 1, 0), 1);
	/* more than the function has */
	assert_int_equal(COUNT(&last, 2, 0x80, 0x80, 4, 2, 1, 0), 1);
	assert_int_equal(COUNT(&last, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 1, 0), 1);
	/* 32 bits, and a number that does not end there */
	assert_int_equal(COUNT(&last, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0), 1);
	assert_int_equal(last, INT32_MAX);
	assert_int_equal(COUNT(&last, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0), 0);
}

/* Offsets of a record that lead out of the table from where they count. */
static void test_records_outside(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct go_image m = image(minors[i]);
		size_t wide = m.minor >= 18 ? 4 : 8, sz, off;
		struct gopclntab_func f;
		struct gopclntab *g;

		go_image__make(&m);
		sz = GO_FILE_DATA - m.header;
		for (off = sz - (m.functab - m.header) - 8; off <= sz + 8; off += 8) {
			go_put(&m, m.functab + wide, off, wide);
			g = open_image(&m);
			assert_non_null(g);
			assert_false(gopclntab__func(g, 0, &f));
			assert_true(gopclntab__func(g, 1, &f));
			gopclntab__free(g);
		}
	}
}

static void test_an_offset_outside(void **state)
{
	struct go_image m = image(20);
	uint64_t start, end;
	struct gopclntab_values v;
	struct gopclntab_func f;
	struct gopclntab *g = open_made(&m);
	int32_t value;

	(void)state;
	assert_non_null(g);
	assert_true(gopclntab__func(g, 0, &f));
	gopclntab_values__init(&v, g, &f, (uint32_t)(m.functab - m.pctab));
	assert_false(gopclntab_values__next(&v, &start, &end, &value));
	gopclntab_values__init(&v, g, &f, UINT32_MAX);
	assert_false(gopclntab_values__next(&v, &start, &end, &value));
	gopclntab__free(g);
}

static void test_files(void **state)
{
	struct go_image m = image(20);
	struct gopclntab *g = open_made(&m);
	struct gopclntab_func f;

	(void)state;
	assert_non_null(g);
	assert_true(gopclntab__func(g, 0, &f));
	assert_string_equal(gopclntab__file(g, &f, 0), "/src/main.go");
	assert_string_equal(gopclntab__file(g, &f, 1), "/src/panic.go");
	assert_null(gopclntab__file(g, &f, 2));
	assert_null(gopclntab__file(g, &f, -1));
	assert_null(gopclntab__file(g, &f, INT32_MAX));
	f.cu = UINT32_MAX;
	assert_null(gopclntab__file(g, &f, 1));
	f.cu = 1;
	assert_string_equal(gopclntab__file(g, &f, 0), "/src/panic.go");
	gopclntab__free(g);
	/* files that are none */
	go_put(&m, m.cus, UINT32_MAX, 4);
	g = open_image(&m);
	assert_null(gopclntab__file(g, &f, -1));
	f.cu = 0;
	assert_null(gopclntab__file(g, &f, 0));
	gopclntab__free(g);
}

static void test_versions(void **state)
{
	static const struct {
		const char *text;
		int minor;
	} versions[] = { { "go1.19.8", 19 },
			 { "go1.26", 26 },
			 { "devel go1.27-12ab34cd Mon", 27 },
			 { "go1.22.1 X:boringcrypto", 22 },
			 { "devel +12ab34", 0 },
			 { "go2.0", 0 },
			 { "", 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		for (int k = 0; k < 4; k++) {
			struct go_image m = image(k & 1 ? 16 : 20);
			struct gopclntab *g;

			m.pie = k & 2;
			m.version = versions[i].text;
			g = open_made(&m);
			assert_non_null(g);
			assert_int_equal(gopclntab__minor(g), versions[i].minor);
			gopclntab__free(g);
		}
	}
}

/* ---- real programs ---- */

struct symbol {
	uint64_t start;
	uint32_t name;
	bool found;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = ((const struct symbol *)a)->start, y = ((const struct symbol *)b)->start;

	return x < y ? -1 : x > y;
}

/* Functions of .symtab in [lo, hi). */
static struct symbol *read_symbols(const struct elf_file *elf, uint64_t lo, uint64_t hi,
				   char **ret_names, size_t *ret_cnt)
{
	struct elf_section symtab, strtab;
	struct symbol *symbols;
	size_t sz, i;
	Elf64_Sym *syms;

	assert_true(elf_file__section(elf, ".symtab", &symtab));
	assert_true(elf_file__section_by_index(elf, symtab.link, &strtab));
	assert_int_equal(elf_file__read_section(elf, &symtab, 1U << 30, (void **)&syms, &sz), 0);
	symbols = calloc(sz / sizeof(*syms) + 1, sizeof(*symbols));
	assert_non_null(symbols);
	*ret_cnt = 0;
	for (i = 0; i < sz / sizeof(*syms); i++) {
		if (ELF64_ST_TYPE(syms[i].st_info) == STT_FUNC && syms[i].st_size &&
		    syms[i].st_value >= lo && syms[i].st_value < hi)
			symbols[(*ret_cnt)++] = (struct symbol){ .start = syms[i].st_value,
								 .name = syms[i].st_name };
	}
	free(syms);
	qsort(symbols, *ret_cnt, sizeof(*symbols), compare);
	assert_int_equal(elf_file__read_section(elf, &strtab, 1U << 30, (void **)ret_names, &sz),
			 0);
	return symbols;
}

/*
 * The symbol's name has what the table's has not: the ABI, and, up to 1.20, type arguments. A middle
 * dot is a dot to some versions of the linker.
 */
static bool same_name(const char *symbol, const char *name)
{
	const char *dots = strstr(name, "[...]"), *dot = strstr(name, "\xc2\xb7");
	size_t len = strlen(name);

	if (dots)
		return !strncmp(symbol, name, (size_t)(dots - name) + 1);
	if (dot)
		return !strncmp(symbol, name, (size_t)(dot - name));
	return !strncmp(symbol, name, len) && (!symbol[len] || !strcmp(symbol + len, ".abi0"));
}

static void compare_with_symbols(const char *name)
{
	int fd = go_progs__open(name);
	struct elf_file *elf = elf_file__open(fd);
	struct gopclntab_func first, last, f;
	struct symbol *symbols, *s;
	size_t cnt, i, differ = 0;
	struct gopclntab *g;
	char *names;

	assert_non_null(elf);
	g = gopclntab__open(elf);
	assert_non_null(g);
	assert_true(gopclntab__cnt(g) > 1000);
	assert_true(gopclntab__func(g, 0, &first));
	assert_true(gopclntab__func(g, gopclntab__cnt(g) - 1, &last));
	symbols = read_symbols(elf, first.start, last.end, &names, &cnt);
	for (i = 0; i < gopclntab__cnt(g); i++) {
		assert_true(gopclntab__func(g, i, &f));
		s = bsearch(&(struct symbol){ .start = f.start }, symbols, cnt, sizeof(*s),
			    compare);
		while (s && s > symbols && s[-1].start == f.start)
			s--;
		for (; s && s < symbols + cnt && s->start == f.start; s++)
			s->found |= same_name(names + s->name, f.name);
	}
	for (i = 0; i < cnt; i++) {
		if (!symbols[i].found)
			print_message("%s: %s is not in the table\n", name,
				      names + symbols[i].name);
		differ += !symbols[i].found;
	}
	assert_int_equal(differ, 0);
	free(names);
	free(symbols);
	gopclntab__free(g);
	elf_file__free(elf);
	close(fd);
}

static void test_against_symbols(void **state)
{
	(void)state;
	go_progs__need();
	compare_with_symbols("go_frames");
	compare_with_symbols("go_frames-pie");
}

/* The tables of a stripped one are those of the same program with symbols. */
static void test_stripped(void **state)
{
	struct gopclntab *g[2];
	struct gopclntab_func a, b;
	int i;

	(void)state;
	go_progs__need();
	for (i = 0; i < 2; i++) {
		int fd = go_progs__open(i ? "go_frames-stripped" : "go_frames");
		struct elf_file *elf = elf_file__open(fd);

		g[i] = gopclntab__open(elf);
		assert_non_null(g[i]);
		elf_file__free(elf);
		close(fd);
	}
	assert_int_equal(gopclntab__cnt(g[0]), gopclntab__cnt(g[1]));
	assert_int_equal(gopclntab__minor(g[0]), gopclntab__minor(g[1]));
	assert_true(gopclntab__minor(g[0]) >= 19);
	for (size_t k = 0; k < gopclntab__cnt(g[0]); k++) {
		assert_true(gopclntab__func(g[0], k, &a) && gopclntab__func(g[1], k, &b));
		assert_string_equal(a.name, b.name);
		assert_int_equal(a.end - a.start, b.end - b.start);
	}
	gopclntab__free(g[0]);
	gopclntab__free(g[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_form),
		cmocka_unit_test(test_found_by_its_bytes),
		cmocka_unit_test(test_a_table_of_another_program),
		cmocka_unit_test(test_no_program_of_go),
		cmocka_unit_test(test_damaged_headers),
		cmocka_unit_test(test_damaged_functabs),
		cmocka_unit_test(test_without_moduledata),
		cmocka_unit_test(test_damaged_records),
		cmocka_unit_test(test_damaged_values),
		cmocka_unit_test(test_records_outside),
		cmocka_unit_test(test_an_offset_outside),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_against_symbols),
		cmocka_unit_test(test_stripped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
