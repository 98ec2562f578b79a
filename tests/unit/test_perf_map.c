/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_map on made-up files, and against a search that looks at every line for every address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "target/perf_map.h"

static int file_of(const char *text, size_t sz)
{
	int fd = memfd_create("perf-map", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sz), sz);
	return fd;
}

static struct perf_map_names find_in(int fd, const uint64_t *addrs, size_t cnt)
{
	struct perf_map_names names;

	assert_int_equal(perf_map_find(fd, addrs, cnt, &names), 0);
	assert_int_equal(names.symbols.cnt, cnt);
	assert_int_equal(names.symbols.first[cnt], names.symbols.frame_cnt);
	return names;
}

/* "" if it has none */
static const char *name_of(const struct symbols *s, size_t i)
{
	if (s->first[i] == s->first[i + 1])
		return "";
	assert_int_equal(s->first[i + 1] - s->first[i], 1);
	assert_true(s->frames[s->first[i]].name);
	return s->strings + s->frames[s->first[i]].name;
}

/* A text of sz bytes names addr so, "" for not at all, and has so many lines that are none. */
static void check_sz(const char *text, size_t sz, uint64_t addr, const char *name, uint64_t ignored)
{
	int fd = file_of(text, sz);
	struct perf_map_names n = find_in(fd, &addr, 1);

	assert_string_equal(name_of(&n.symbols, 0), name);
	assert_int_equal(n.ignored, ignored);
	assert_int_equal(n.unread, 0);
	symbols__done(&n.symbols);
	close(fd);
}

static void check(const char *text, uint64_t addr, const char *name, uint64_t ignored)
{
	check_sz(text, strlen(text), addr, name, ignored);
}

static void test_lines(void **state)
{
	(void)state;
	check("1000 10 f\n", 0xfff, "", 0);
	check("1000 10 f\n", 0x1000, "f", 0);
	check("1000 10 f\n", 0x100f, "f", 0);
	check("1000 10 f\n", 0x1010, "", 0);
	check("0x1000 0X10 f\n", 0x1001, "f", 0);
	check("00000000000000001000 010 f\n", 0x1001, "f", 0);
	check("7fffABCDEF00 aF LazyCompile:*fib /a b.js:1:2;x\n", 0x7fffabcdefae,
	      "LazyCompile:*fib /a b.js:1:2;x", 0);
	check("1000 10  two\n", 0x1000, " two", 0);
	check("1000 10 f\r\n", 0x1000, "f\r", 0);
	check("fffffffffffffff0 f f\n", 0xfffffffffffffffe, "f", 0);
	check("", 0x1000, "", 0);
	check("\n\n1000 10 f\n\n", 0x1000, "f", 3);
}

static void test_no_lines(void **state)
{
	static const char *const lines[] = {
		"1000 10\n",
		"1000\n",
		"1000  10 f\n",
		" 1000 10 f\n",
		"1000\t10\tf\n",
		"-1000 10 f\n",
		"1000 -10 f\n",
		"1000 0 f\n",
		"1000 1g f\n",
		"0x 10 f\n",
		"1000 0x f\n",
		"11000000000000000 10 f\n",
		"ffffffffffffffff 1 f\n",
		"fffffffffffffff0 11 f\n",
		"1000 ffffffffffffffff f\n",
		"root:$y$j9T$abc:19000:0:99999:7:::\n",
	};
	static const char with_nul[] = "1000 10 f\0g\n";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		check(lines[i], 0x1000, "", 1);
	/* they have a range, which is nobody's */
	check("1000 10 \n", 0x1000, "", 0);
	check("1000 10 f\n1000 10 \n", 0x1000, "", 0);
	check_sz(with_nul, sizeof(with_nul) - 1, 0x1000, "", 0);
}

static void test_last_line(void **state)
{
	static const char moved[] =
		"1000 100 old\n"
		"2000 100 other\n"
		"1080 100 new\n"
		"10c0 10 inner\n";
	static const struct {
		uint64_t addr;
		const char *name;
		uint64_t start;
	} want[] = {
		{ 0x1000, "old", 0x1000 }, { 0x107f, "old", 0x1000 },	{ 0x1080, "new", 0x1080 },
		{ 0x10bf, "new", 0x1080 }, { 0x10c0, "inner", 0x10c0 }, { 0x10d0, "new", 0x1080 },
		{ 0x1100, "new", 0x1080 }, { 0x117f, "new", 0x1080 },	{ 0x1180, "", 0 },
		{ 0x1fff, "", 0 },	   { 0x2000, "other", 0x2000 }, { 0x3000, "", 0 },
	};
	uint64_t addrs[ARRAY_SIZE(want)];
	struct perf_map_names n;
	int fd = file_of(moved, sizeof(moved) - 1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		addrs[i] = want[i].addr;
	n = find_in(fd, addrs, ARRAY_SIZE(addrs));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_string_equal(name_of(&n.symbols, i), want[i].name);
		if (want[i].start)
			assert_int_equal(n.symbols.frames[n.symbols.first[i]].from_entry,
					 want[i].addr - want[i].start + 1);
	}
	symbols__done(&n.symbols);
	close(fd);
	/* what is being written may have half its name; and it has taken the old one's place */
	check("1000 10 old\n1000 10 ne", 0x1000, "", 0);
	check("1000 10 old\n1000 10 ", 0x1000, "", 0);
	check("1000 10 old\n1000 1", 0x1000, "old", 1);
	check("1000 10 old\n2000 10 ne", 0x1000, "old", 0);
}

/* A line may hold many addresses, also one without a name. */
static void test_neighbours(void **state)
{
	static const char text[] = "1000 10 one\n1010 10 \n1020 10 three\n";
	const uint64_t addrs[] = { 0x1000, 0x1008, 0x1010, 0x1018, 0x1020, 0x1028 };
	static const char *const want[] = { "one", "one", "", "", "three", "three" };
	int fd = file_of(text, sizeof(text) - 1);
	struct perf_map_names n = find_in(fd, addrs, ARRAY_SIZE(addrs));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++)
		assert_string_equal(name_of(&n.symbols, i), want[i]);
	symbols__done(&n.symbols);
	close(fd);
}

static void test_mangled(void **state)
{
	static const char text[] = "1000 10 _ZN3foo3barEi\n";
	uint64_t addr = 0x1000;
	int fd = file_of(text, sizeof(text) - 1);
	struct perf_map_names n = find_in(fd, &addr, 1);

	(void)state;
	assert_string_equal(name_of(&n.symbols, 0), "foo::bar(int)");
	assert_string_equal(n.symbols.strings + n.symbols.frames[0].system_name, "_ZN3foo3barEi");
	symbols__done(&n.symbols);
	close(fd);
}

/* A line with a name of so many bytes. */
static int long_line(size_t sz)
{
	char *text = malloc(sz + 64);
	int fd, n;

	assert_non_null(text);
	n = sprintf(text, "1000 10 ");
	memset(text + n, 'x', sz);
	n += sz;
	n += sprintf(text + n, "\n2000 10 behind\n");
	fd = file_of(text, n);
	free(text);
	return fd;
}

static void test_long_lines(void **state)
{
	static const size_t sizes[] = { 1,
					503,
					504,
					PERF_MAP_MAX_LINE - 9,
					PERF_MAP_MAX_LINE - 8,
					(256U << 10) - 8,
					(256U << 10) - 9,
					1 << 20 };
	const uint64_t addrs[] = { 0x1000, 0x2000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int fd = long_line(sizes[i]);
		struct perf_map_names n = find_in(fd, addrs, 2);

		assert_int_equal(strlen(name_of(&n.symbols, 0)),
				 sizes[i] + 9 <= PERF_MAP_MAX_LINE ? sizes[i] : 0);
		assert_string_equal(name_of(&n.symbols, 1), "behind");
		assert_int_equal(n.ignored, 0);
		symbols__done(&n.symbols);
		close(fd);
	}
}

/* Wherever a line begins: files are read in chunks, of some power of two. */
static void test_everywhere(void **state)
{
	static const char line[] = "7f0012345678 abc here\n";
	const uint64_t addr = 0x7f0012345678;
	const size_t at = 256U << 10;
	char *text = malloc(2 * at);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i <= sizeof(line); i++) {
		struct perf_map_names n;
		int fd;

		memset(text, '\n', 2 * at);
		memcpy(text + at - i, line, sizeof(line) - 1);
		fd = file_of(text, 2 * at);
		n = find_in(fd, &addr, 1);
		assert_string_equal(name_of(&n.symbols, 0), "here");
		symbols__done(&n.symbols);
		close(fd);
	}
	free(text);
}

/* Of a file that is too large the end is read; the first line there may have been cut. */
static void test_large(void **state)
{
	static const char before[] = "1000 10 old\n2000 10 old\n", cut[] = "3000 10 cut\n",
			  after[] = "1000 10 new\n";
	const uint64_t addrs[] = { 0x5, 0x1000, 0x2000, 0x3000 };
	const off_t begin = 4096;
	int fd = file_of(before, sizeof(before) - 1);
	struct perf_map_names n;

	(void)state;
	/* what is left out ends within it: what is read begins with "0 10 cut" */
	assert_int_equal(pwrite(fd, cut, sizeof(cut) - 1, begin - 3), sizeof(cut) - 1);
	assert_int_equal(pwrite(fd, after, sizeof(after) - 1,
				begin + PERF_MAP_MAX_READ - (off_t)sizeof(after) + 1),
			 sizeof(after) - 1);
	/* and a line break before it, for what is between is one line */
	assert_int_equal(pwrite(fd, "\n", 1, begin + PERF_MAP_MAX_READ - (off_t)sizeof(after)), 1);
	n = find_in(fd, addrs, ARRAY_SIZE(addrs));
	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++)
		assert_string_equal(name_of(&n.symbols, i), i == 1 ? "new" : "");
	assert_int_equal(n.unread, begin);
	symbols__done(&n.symbols);
	close(fd);
}

#define LINES 20000
#define ADDRS 3000

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_against_every_line(void **state)
{
	static uint64_t start[LINES], size[LINES], addrs[ADDRS];
	char *text = malloc(LINES * 128UL), want[128];
	struct perf_map_names n;
	size_t sz = 0, named = 0;
	int fd;

	(void)state;
	assert_non_null(text);
	srandom(1);
	for (size_t i = 0; i < LINES; i++) {
		start[i] = 0x7f0000000000 + random() % 3000000;
		/* a few are large */
		size[i] = 1 + random() % (i % 1000 ? 300 : 1000000);
		sz += sprintf(text + sz,
			      i % 2 ? "%" PRIx64 " %" PRIx64 " f%zu%.*s\n" :
				      "0x%" PRIx64 " 0x%" PRIx64 " f%zu%.*s\n",
			      start[i], size[i], i, (int)(random() % 60),
			      "------------------------------------------------------------");
	}
	for (size_t i = 0; i < ADDRS; i++)
		addrs[i] = 0x7f0000000000 - 100 + random() % 3000500;
	qsort(addrs, ADDRS, sizeof(*addrs), ascending);
	fd = file_of(text, sz);
	n = find_in(fd, addrs, ADDRS);
	for (size_t i = 0; i < ADDRS; i++) {
		size_t line = LINES;

		while (line &&
		       (addrs[i] < start[line - 1] || addrs[i] >= start[line - 1] + size[line - 1]))
			line--;
		snprintf(want, sizeof(want), "f%zu", line - 1);
		assert_int_equal(strcspn(name_of(&n.symbols, i), "-"), line ? strlen(want) : 0);
		assert_memory_equal(name_of(&n.symbols, i), want, line ? strlen(want) : 0);
		named += line > 0;
	}
	assert_true(named > ADDRS / 2 && named < ADDRS);
	symbols__done(&n.symbols);
	close(fd);
	free(text);
}

static void test_no_addresses(void **state)
{
	int fd = file_of("1000 10 f\n", 10);
	struct perf_map_names n = find_in(fd, NULL, 0);

	(void)state;
	assert_int_equal(n.symbols.frame_cnt, 0);
	symbols__done(&n.symbols);
	close(fd);
	assert_int_equal(perf_map_find(-1, NULL, 0, &n), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	     cmocka_unit_test(test_no_lines),
		cmocka_unit_test(test_last_line),    cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_everywhere),   cmocka_unit_test(test_mangled),
		cmocka_unit_test(test_long_lines),   cmocka_unit_test(test_large),
		cmocka_unit_test(test_no_addresses), cmocka_unit_test(test_against_every_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
