/* SPDX-License-Identifier: BSD-2-Clause */
/* symtab against readelf and objdump on real files, and its choices on a made-up one. */
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

struct loaded {
	int fd;
	struct elf_file *elf;
	struct symtab *st;
};

static void load(struct loaded *l, const char *path)
{
	l->fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(l->fd >= 0);
	l->elf = elf_file__open(l->fd);
	assert_non_null(l->elf);
	l->st = symtab__load(l->elf, NULL);
	assert_non_null(l->st);
}

static void unload(struct loaded *l)
{
	symtab__free(l->st);
	elf_file__free(l->elf);
	close(l->fd);
}

/* Whether readelf, too, has a symbol of this name there: what is found may be an alias or a symbol
 * within another one. */
static bool is_listed(const char *path, const char *name, uint64_t start)
{
	char line[1024], other[768];
	bool found = false;
	uint64_t value;
	FILE *f = toolrun_open("readelf -sW %s", path);

	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*d: %" SCNx64 " %*s %*s %*s %*s %*s %767[^@ \n]", &value,
			   other) == 2)
			found = value == start && !strcmp(name, other);
	}
	while (fgets(line, sizeof(line), f))
		;
	pclose(f);
	return found;
}

/* Every sized function that readelf lists is found at its first and last byte. */
static void check_all(const char *path, size_t at_least)
{
	char line[1024], name[768], type[32], size_text[32];
	size_t cnt = 0, aliases = 0;
	struct symtab_symbol s;
	struct loaded l;
	FILE *f;

	load(&l, path);
	f = toolrun_open("readelf -sW %s", path);
	while (fgets(line, sizeof(line), f)) {
		uint64_t value, size;
		char ndx[16];

		if (sscanf(line, " %*d: %" SCNx64 " %31s %31s %*s %*s %15s %767[^@ \n]", &value,
			   size_text, type, ndx, name) != 5)
			continue;
		size = strtoull(size_text, NULL, 0);
		if ((strcmp(type, "FUNC") && strcmp(type, "IFUNC")) || !strcmp(ndx, "UND") || !size)
			continue;
		assert_int_equal(symtab__find(l.st, value, &s), 0);
		assert_int_equal(s.start, value);
		assert_int_equal(symtab__find(l.st, value + size - 1, &s), 0);
		assert_true(s.start >= value && s.end >= value + size);
		assert_null(strchr(s.name, '@'));
		if (strcmp(s.name, name) && aliases++ < 20)
			assert_true(is_listed(path, s.name, s.start));
		cnt++;
	}
	pclose(f);
	assert_true(cnt >= at_least);
	unload(&l);
}

static void test_libc(void **state)
{
	(void)state;
	if (!toolrun("cp -L $(gcc -print-file-name=libc.so.6) libc.so"))
		skip();
	check_all(toolrun_path("libc.so"), 1000);
}

static void test_self(void **state)
{
	(void)state;
	if (!toolrun("cp /proc/%d/exe self", getpid()))
		skip();
	check_all(toolrun_path("self"), 20);
}

/* Every stub that objdump names in the PLT has that name. */
static void test_plt(void **state)
{
	static const char *const builds[] = { "-O1", "-O1 -fcf-protection=full -Wl,-z,ibtplt",
					      "-O1 -Wl,-z,now", "-no-pie", "-fuse-ld=lld" };
	static const char src[] =
		"#include <stdio.h>\n#include <stdlib.h>\nvoid *p; int main(int c, char **v)\n"
		"{ p = puts; printf(\"%d\", atoi(v[0])); qsort(v, c, 8, p); return getpid(); }\n";
	char line[512], name[256];
	struct symtab_symbol s;
	struct loaded l;
	size_t i, cnt;
	uint64_t addr;
	FILE *f;

	(void)state;
	toolrun_write("plt.c", src, sizeof(src) - 1);
	for (i = 0; i < ARRAY_SIZE(builds); i++) {
		if (!toolrun("gcc -w -fno-builtin %s -o plt plt.c 2>/dev/null", builds[i]))
			continue;
		load(&l, toolrun_path("plt"));
		f = toolrun_open("objdump -d plt");
		cnt = 0;
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "%" SCNx64 " <%255[^>]>:", &addr, name) != 2 ||
			    !strstr(name, "@plt") || strchr(name, '*'))
				continue;
			/* the lazy halves of split stubs, which objdump names by their order, are
			 * never jumped to by a call */
			if (symtab__find(l.st, addr, &s))
				continue;
			assert_string_equal(s.name, name);
			assert_int_equal(s.start, addr);
			cnt++;
		}
		pclose(f);
		assert_true(cnt >= 4);
		unload(&l);
	}
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
		".globl sizeless\nsizeless: .fill 32, 1, 0x90\n"
		".globl next\n.type next, @function\nnext: .fill 8, 1, 0x90\n.size next, 8\n"
		".globl versioned_v1\n.type versioned_v1, @function\nversioned_v1: ret\n.size "
		"versioned_v1, 1\n"
		".symver versioned_v1, versioned@V1\n"
		".globl last\n.type last, @function\nlast: ret\nret\n"
		".data\n.globl data_label\ndata_label: .quad 1\n";
	static const char map[] = "V1 { versioned; };\n";
	struct symtab_symbol s;
	struct elf_section text, data;
	struct loaded l;
	uint64_t at;

	(void)state;
	toolrun_write("choice.s", src, sizeof(src) - 1);
	toolrun_write("choice.map", map, sizeof(map) - 1);
	if (!toolrun("gcc -shared -nostdlib -Wl,--version-script=choice.map -o choice choice.s"))
		skip();
	load(&l, toolrun_path("choice"));
	assert_true(elf_file__section(l.elf, ".text", &text));
	at = text.addr;
	assert_int_equal(symtab__find(l.st, at - 1, &s), -ENOENT);
	/* global before weak before local, fewer underscores, shorter, alphabet; the label is no
	 * function of its own */
	assert_int_equal(symtab__find(l.st, at + 15, &s), 0);
	assert_string_equal(s.name, "alias_a");
	assert_int_equal(s.start, at);
	assert_int_equal(s.end, at + 16);
	assert_int_equal(symtab__find(l.st, at + 16, &s), -ENOENT);
	assert_int_equal(symtab__find(l.st, at + 31, &s), -ENOENT);
	assert_int_equal(symtab__find(l.st, at + 63, &s), 0);
	assert_string_equal(s.name, "sizeless");
	assert_int_equal(s.end, at + 64);
	assert_int_equal(symtab__find(l.st, at + 64, &s), 0);
	assert_string_equal(s.name, "next");
	assert_int_equal(symtab__find(l.st, at + 72, &s), 0);
	assert_int_equal(strncmp(s.name, "versioned", 9), 0);
	assert_null(strchr(s.name, '@'));
	/* to the end of its section and no further */
	assert_int_equal(symtab__find(l.st, at + 74, &s), 0);
	assert_string_equal(s.name, "last");
	assert_int_equal(s.end, text.addr + text.size);
	assert_int_equal(symtab__find(l.st, text.addr + text.size, &s), -ENOENT);
	assert_true(elf_file__section(l.elf, ".data", &data));
	assert_int_equal(symtab__find(l.st, data.addr, &s), -ENOENT);
	unload(&l);
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
	struct symtab_symbol s;
	struct elf_section sec;
	struct elf_file *e;
	struct symtab *st;
	uint8_t *good, *bad;
	size_t sz, i, k;
	uint64_t shoff;

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
		st = symtab__load(e, NULL);
		assert_non_null(st);
		for (k = 0; k < 2000; k++) {
			uint64_t addr = (uint64_t)rand() % (sz * 2);

			if (!symtab__find(st, addr, &s)) {
				assert_true(s.start <= addr && addr < s.end);
				assert_true(strlen(s.name) > 0);
			}
		}
		symtab__free(st);
		elf_file__free(e);
	}
	free(bad);
	free(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),   cmocka_unit_test(test_self),
		cmocka_unit_test(test_plt),    cmocka_unit_test(test_choice),
		cmocka_unit_test(test_prefer), cmocka_unit_test(test_damaged),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
