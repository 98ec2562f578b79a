/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target/dwarf_lines: each address has the file and the line that libdw's reader gives it, in tables of all
 * versions, compilers and languages; of damaged tables there is an end.
 */
#include "target/dwarf_lines.h"

#include <dwarf.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "target/dwarf_file.h"
#include "target/elf_file.h"
#include "toolrun.h"

struct target {
	int fd;
	struct elf_file *elf;
	struct dwarf_file file;
	uint64_t text; /* address: below it, libdw has the rows of what the linker has discarded */
};

static void target__open(struct target *t, const char *path)
{
	struct elf_section text;

	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	t->elf = elf_file__open(t->fd);
	assert_non_null(t->elf);
	assert_int_equal(dwarf_file__open(&t->file, t->elf, NULL), 0);
	assert_true(elf_file__section(t->elf, ".text", &text));
	t->text = text.addr;
}

static void target__close(struct target *t)
{
	dwarf_file__close(&t->file);
	elf_file__free(t->elf);
	close(t->fd);
}

struct answers {
	struct dwarf_row *rows; /* lo: 0 if there is none */
};

static bool take(void *ctx, size_t idx, const struct dwarf_row *row)
{
	struct answers *a = ctx;

	if (row->lo >= a->rows[idx].lo)
		a->rows[idx] = *row;
	return true;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* As libdw has it, with the unit's folder where that is relative. */
static void path_of(Dwarf_Line *row, const char *dir, char *buf, size_t sz)
{
	const char *path = dwarf_linesrc(row, NULL, NULL);

	assert_non_null(path);
	if (path[0] == '/' || !dir)
		snprintf(buf, sz, "%s", path);
	else if (!strncmp(path, dir, strlen(dir)) && path[strlen(dir)] == '/')
		snprintf(buf, sz, "%s", path);
	else
		snprintf(buf, sz, "%s/%s", dir, path);
}

/* Of the row that libdw has for an address. */
static void check(const struct dwarf_lines *l, Dwarf_Line *row, const struct dwarf_row *ours)
{
	char want[2 * PATH_MAX], got[PATH_MAX];
	Dwarf_Addr lo;
	int line;

	assert_int_equal(dwarf_lineaddr(row, &lo), 0);
	assert_int_equal(dwarf_lineno(row, &line), 0);
	path_of(row, l->comp_dir, want, sizeof(want));
	assert_int_equal(ours->lo, lo);
	assert_int_equal(ours->line, line);
	assert_string_equal(dwarf_lines__path(l, ours->file, got, sizeof(got)), want);
}

/* Does the sequence end where the row begins? libdw has such a row behind the end. */
static bool is_empty(Dwarf_Lines *rows, size_t row)
{
	Dwarf_Line *end = row ? dwarf_onesrcline(rows, row - 1) : NULL;
	Dwarf_Addr addr, begin;
	bool last;

	return end && !dwarf_lineendsequence(end, &last) && last && !dwarf_lineaddr(end, &addr) &&
	       !dwarf_lineaddr(dwarf_onesrcline(rows, row), &begin) && addr == begin;
}

/* The begin of each row of libdw's, its last byte, and what is behind a sequence. Returns how many rows. */
static size_t check_unit(const struct target *t, Dwarf_Die *unit, struct dwarf_lines *l)
{
	size_t cnt = 0, n = 0, checked = 0;
	struct answers a;
	Dwarf_Lines *rows;
	uint64_t *addrs;
	bool last;

	if (dwarf_getsrclines(unit, &rows, &cnt))
		return 0;
	assert_int_equal(dwarf_lines__open(l, &t->file, unit), 0);
	addrs = calloc(2 * cnt + 1, sizeof(*addrs));
	a.rows = calloc(2 * cnt + 1, sizeof(*a.rows));
	assert_non_null(addrs);
	assert_non_null(a.rows);
	for (size_t i = 0; i < cnt; i++) {
		Dwarf_Addr addr;

		assert_int_equal(dwarf_lineaddr(dwarf_onesrcline(rows, i), &addr), 0);
		addrs[n++] = addr;
		if (addr)
			addrs[n++] = addr - 1;
	}
	qsort(addrs, n, sizeof(*addrs), by_value);
	dwarf_lines__find(l, addrs, n, take, &a);
	for (size_t i = 0, row = 0; i < n; i++) {
		Dwarf_Line *found;
		Dwarf_Addr addr;

		/* the last row that is not above it */
		while (row < cnt && !dwarf_lineaddr(dwarf_onesrcline(rows, row), &addr) &&
		       addr <= addrs[i])
			row++;
		if (!row || addrs[i] < t->text)
			continue;
		found = dwarf_onesrcline(rows, row - 1);
		assert_int_equal(dwarf_lineendsequence(found, &last), 0);
		if (last || (!a.rows[i].lo && is_empty(rows, row - 1))) {
			assert_int_equal(a.rows[i].lo, 0);
			continue;
		}
		check(l, found, &a.rows[i]);
		checked++;
	}
	free(addrs);
	free(a.rows);
	return checked;
}

static size_t check_file(const char *path)
{
	struct dwarf_lines l = { 0 };
	struct target t;
	Dwarf_CU *cu = NULL;
	size_t checked = 0;
	Dwarf_Die unit;
	uint8_t type;

	target__open(&t, path);
	while (!dwarf_get_units(t.file.dbg, cu, &cu, NULL, &type, &unit, NULL))
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			checked += check_unit(&t, &unit, &l);
	dwarf_lines__done(&l);
	target__close(&t);
	return checked;
}

static const char program[] =
	"#include \\\"sub/inner.h\\\"\\n"
	"#include <stdlib.h>\\n"
	"static int twice(int x)\\n{\\n\\treturn inner(x) * 2;\\n}\\n\\n"
	"int main(int argc, char **argv)\\n{\\n"
	"\\tfor (int i = 0; i < argc; i++)\\n\\t\\tif (twice(i) > atoi(argv[i]))\\n\\t\\t\\treturn "
	"i;\\n"
	"\\treturn 0;\\n}\\n";

static void make_sources(void)
{
	assert_true(
		toolrun("mkdir -p sub && printf 'static inline __attribute__((always_inline)) "
			"int inner(int x)\\n{\\n\\tint y = x;\\n\\n\\treturn y * y + x;\\n}\\n' "
			">sub/inner.h && printf \"%s\" >a.c && cp a.c a.cc",
			program));
}

/* All that compilers here write. */
static void test_versions(void **state)
{
	static const char *const commands[] = {
		"gcc -gdwarf-2 -gstrict-dwarf -O2",
		"gcc -gdwarf-3 -O2",
		"gcc -gdwarf-4 -O2",
		"gcc -gdwarf-5 -O2",
		"gcc -gdwarf-5 -O0",
		"gcc -gdwarf-5 -gdwarf64 -O1",
		"gcc -gdwarf-4 -gno-as-locview-support -gno-as-loc-support -O2",
		"clang -gdwarf-4 -O2",
		"clang -gdwarf-5 -O2",
		"gcc -gdwarf-5 -O2 -ffunction-sections -Wl,--gc-sections",
		"gcc -gdwarf-5 -O2 -fdebug-prefix-map=$PWD=.",
	};

	(void)state;
	make_sources();
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		assert_true(toolrun("%s -o a a.c", commands[i]));
		assert_in_range(check_file(toolrun_path("a")), 10, 1000);
	}
	/* a folder that is given as a relative one */
	assert_true(toolrun("mkdir -p elsewhere && cd elsewhere && gcc -g -O2 -o ../b ../a.c"));
	assert_in_range(check_file(toolrun_path("b")), 10, 1000);
}

/* This program: a hundred units, and whatever there is of other languages. */
static void test_large(void **state)
{
	static const char *const progs[] = { "go_stacks", "rusty", "names", "alloc_std" };
	const char *folder = getenv("PROGS");
	char path[PATH_MAX];

	(void)state;
	assert_in_range(check_file("/proc/self/exe"), 1000, 10000000);
	for (size_t i = 0; folder && i < ARRAY_SIZE(progs); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, progs[i]);
		if (!access(path, R_OK) &&
		    toolrun("readelf -SW %s | grep -q ' [.]debug_info '", path))
			assert_in_range(check_file(path), 10, 100000000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_large),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
