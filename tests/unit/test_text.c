/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/text, profile/folded and profile/frames; the table is compared with the one of
 * `pprof -top`. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "golden.h"
#include "golden_profile.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/text.h"

static const struct profile_value_type types[] = { { "samples", "count" },
						   { "cpu", "nanoseconds" },
						   { "space", "bytes" } };

typedef int (*write_fn)(const struct profile *p, FILE *f, size_t top);

static int folded(const struct profile *p, FILE *f, size_t top)
{
	(void)top;
	return folded_write(p, f);
}

static int top_rows(const struct profile *p, FILE *f, size_t top)
{
	return text_write_top(p, f, top, false);
}

static int own_rows(const struct profile *p, FILE *f, size_t top)
{
	return text_write_top(p, f, top, true);
}

static int dump(const struct profile *p, FILE *f, size_t top)
{
	(void)top;
	return threads_text_write(p, f);
}

static char *written(const struct profile *p, write_fn write, size_t top)
{
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	assert_int_equal(write(p, f, top), 0);
	assert_int_equal(fclose(f), 0);
	return text;
}

static uint32_t frame(struct profile *p, uint64_t address, const char *name)
{
	return golden_location(p, PROFILE_NONE, address, name, name, "", 0);
}

static void add(struct profile *p, const char *stack, int64_t value,
		const struct profile_label *labels, size_t label_cnt)
{
	/* a letter is a frame, leaf first */
	uint32_t locs[16];
	int64_t values[] = { value, value, value };
	char name[2] = { 0 };
	size_t n;

	for (n = 0; stack[n]; n++) {
		name[0] = stack[n];
		locs[n] = frame(p, (unsigned char)stack[n], name);
	}
	profile__add_sample(p, locs, n, labels, label_cnt, values);
}

static struct profile *plain(size_t type)
{
	struct profile *p = profile__new(&types[type], 1, types[type], 1);

	assert_non_null(p);
	return p;
}

static void golden_texts(void **state)
{
	struct profile *p = golden_profile();
	char *text;

	(void)state;
	text = written(p, folded, 0);
	golden_compare("basic.folded", text);
	free(text);
	text = written(p, text_write, 0);
	golden_compare("basic.txt", text);
	free(text);
	text = written(p, top_rows, 2);
	assert_string_equal(text,
			    "      flat  flat%   sum%        cum   cum%  name\n"
			    "    1050ms 58.33% 58.33%     1050ms 58.33%  ns::fib(int)\n"
			    "     500ms 27.78% 86.11%      700ms 38.89%  helper\n");
	free(text);
	/* what is in the kernel counts for work(), into which helper() is inlined */
	text = written(p, own_rows, 2);
	assert_string_equal(text,
			    "      flat  flat%   sum%        cum   cum%  name\n"
			    "    1050ms 58.33% 58.33%     1050ms 58.33%  ns::fib(int)\n"
			    "     700ms 38.89% 97.22%      700ms 38.89%  helper\n");
	free(text);
	profile__free(p);
}

/* A stack counts from its first own frame on, which may be in the middle of a location. */
static void own_rows_leave_out_the_rest(void **state)
{
	struct profile *p = plain(0);
	uint32_t locs[] = { frame(p, 1, "__libc_read"), frame(p, 2, "serve"), frame(p, 3, "main") };
	struct profile_line lines[2] = { 0 };
	char *text;

	(void)state;
	lines[0] = p->lines[p->locations[frame(p, 4, "__poll")].line];
	lines[1] = p->lines[p->locations[locs[1]].line];
	for (size_t i = 0; i < ARRAY_SIZE(locs); i++)
		p->locations[locs[i]].mapping = profile__add_mapping(
			p, &(struct profile_mapping){ .filename = profile__string(p, "/srv/app") });
	assert_int_equal(profile__set_lines(p, locs[1], lines, 2), 0);
	profile__add_sample(p, locs, 3, NULL, 0, (int64_t[]){ 3 });
	profile__add_sample(p, locs + 2, 1, NULL, 0, (int64_t[]){ 1 });
	text = written(p, own_rows, 0);
	assert_string_equal(text,
			    "      flat  flat%   sum%        cum   cum%  name\n"
			    "         3 75.00% 75.00%          3 75.00%  serve\n"
			    "         1 25.00%   100%          4   100%  main\n");
	free(text);
	text = written(p, top_rows, 1);
	assert_non_null(strstr(text, " 3 75.00%  __libc_read\n"));
	free(text);
	profile__free(p);
}

static void golden_kind_texts(void **state)
{
	(void)state;
	for (int kind = BPFPROF_BLOCK; kind <= BPFPROF_THREADS; kind++) {
		struct profile *p = golden_kind_profile(kind);
		char name[64], *text = written(p, folded, 0);

		snprintf(name, sizeof(name), "%s.folded", kinds[kind].name);
		golden_compare(name, text);
		free(text);
		text = written(p, kind == BPFPROF_THREADS ? dump : text_write, 0);
		snprintf(name, sizeof(name), "%s.txt", kinds[kind].name);
		golden_compare(name, text);
		free(text);
		profile__free(p);
	}
}

static void golden_heap_texts(void **state)
{
	struct profile *p = golden_heap_profile();
	char *text;

	(void)state;
	text = written(p, folded, 0);
	golden_compare("heap.folded", text);
	free(text);
	text = written(p, text_write, 0);
	golden_compare("heap.txt", text);
	free(text);
	profile__free(p);
	/* without what is in use: what was allocated */
	p = golden_heap_values(2);
	text = written(p, folded, 0);
	assert_string_equal(text,
			    "main;cache_put 11837440\n"
			    "main;parse 5242880\n"
			    "main;parse;cache_put 1048576\n");
	free(text);
	profile__free(p);
}

static void empty_is_written(void **state)
{
	struct profile *p = plain(0);
	char *text = written(p, folded, 0);

	(void)state;
	assert_string_equal(text, "");
	free(text);
	text = written(p, text_write, 10);
	assert_string_equal(text,
			    "Type: samples\nTotal samples = 0\n      flat  flat%   sum%        cum "
			    "  cum%  name\n");
	free(text);
	profile__free(p);
}

static void recursion_counts_once(void **state)
{
	struct profile *p = plain(0);
	char *text;

	(void)state;
	add(p, "aaab", 3, NULL, 0);
	add(p, "caba", 1, NULL, 0);
	text = written(p, top_rows, 0);
	assert_string_equal(text,
			    "      flat  flat%   sum%        cum   cum%  name\n"
			    "         3 75.00% 75.00%          4   100%  a\n"
			    "         1 25.00%   100%          1 25.00%  c\n"
			    "         0     0%   100%          4   100%  b\n");
	free(text);
	profile__free(p);
}

static void rows_are_sorted_and_cut(void **state)
{
	struct profile *p = plain(0);
	char *text;

	(void)state;
	add(p, "zm", 5, NULL, 0);
	add(p, "ym", 5, NULL, 0);
	add(p, "bz", 5, NULL, 0);
	text = written(p, text_write, 3);
	assert_string_equal(text,
			    "Type: samples\nTotal samples = 15\nTop 3 of 4 functions\n"
			    "      flat  flat%   sum%        cum   cum%  name\n"
			    "         5 33.33% 33.33%         10 66.67%  z\n"
			    "         5 33.33% 66.67%          5 33.33%  b\n"
			    "         5 33.33%   100%          5 33.33%  y\n");
	free(text);
	profile__free(p);
}

static void check_total(size_t type, int64_t value, const char *want)
{
	struct profile *p = plain(type);
	char *text, line[128];

	add(p, "a", value, NULL, 0);
	text = written(p, text_write, 0);
	/* the total has no sign; the row below has */
	snprintf(line, sizeof(line), "\nTotal samples = %s\n", want + (*want == '-'));
	if (!strstr(text, line))
		fail_msg("%" PRId64 " is not %s in:\n%s", value, want, text);
	snprintf(line, sizeof(line), "\n%10s   100%%   100%% %10s   100%%  a\n", want, want);
	if (value && !strstr(text, line))
		fail_msg("%" PRId64 " is not %s in:\n%s", value, want, text);
	free(text);
	profile__free(p);
}

static void numbers_are_for_people(void **state)
{
	(void)state;
	check_total(0, 123456789, "123456789");
	check_total(1, 0, "0");
	check_total(1, 999, "999ns");
	check_total(1, 1500, "1.50us");
	check_total(1, 20000000, "20ms");
	check_total(1, 1234567890, "1.23s");
	check_total(1, INT64_C(3599000000000), "3599s");
	check_total(1, INT64_C(5400000000000), "1.50hrs");
	check_total(1, -20000000, "-20ms");
	check_total(2, 1023, "1023B");
	check_total(2, 524288, "512kB");
	check_total(2, 1572864, "1.50MB");
	check_total(2, INT64_C(3) << 30, "3GB");
	check_total(2, INT64_MAX, "8192PB");
}

static void lines_are_merged_and_sorted(void **state)
{
	struct profile *p = plain(0);
	struct profile_label thread = { 0 };
	uint32_t locs[2];
	char *text;

	(void)state;
	thread.key = profile__string(p, "thread");
	thread.str = profile__string(p, "t");
	add(p, "cba", 1, NULL, 0);
	add(p, "ba", 2, NULL, 0);
	add(p, "a", 3, NULL, 0);
	/* another address of b: the same line */
	locs[0] = frame(p, 0x999, "b");
	locs[1] = frame(p, 'a', "a");
	profile__add_sample(p, locs, 2, NULL, 0, (int64_t[]){ 40 });
	locs[0] = frame(p, 0x998, "b 41");
	profile__add_sample(p, locs, 2, NULL, 0, (int64_t[]){ 7 });
	locs[0] = profile__add_location(p, PROFILE_NONE, 0xabc);
	profile__add_sample(p, locs, 2, NULL, 0, (int64_t[]){ 8 });
	profile__add_sample(p, NULL, 0, NULL, 0, (int64_t[]){ 9 });
	profile__add_sample(p, NULL, 0, &thread, 1, (int64_t[]){ 10 });
	add(p, "b", 11, &thread, 1);
	text = written(p, folded, 0);
	assert_string_equal(
		text, "[no stack] 9\na 3\na;0xabc 8\na;b 41 7\na;b 42\na;b;c 1\nt 10\nt;b 11\n");
	free(text);
	profile__free(p);
}

static void root_is_the_process(void **state)
{
	struct profile *p = plain(0);
	struct profile_label labels[2] = { 0 };
	char *text;

	(void)state;
	labels[0].key = profile__string(p, "thread");
	labels[0].str = profile__string(p, "worker");
	labels[1].key = profile__string(p, "comm");
	labels[1].str = profile__string(p, "server");
	add(p, "a", 1, labels, 2);
	add(p, "a", 2, labels, 1);
	text = written(p, folded, 0);
	assert_string_equal(text, "server;a 1\nworker;a 2\n");
	free(text);
	profile__free(p);
}

static void lines_stay_lines(void **state)
{
	struct profile *p = plain(0);
	uint32_t locs[3];
	char *text;

	(void)state;
	locs[0] = frame(p, 1, "a;b\nc 5\n");
	locs[1] = frame(p, 2, "\x1b]0;t\x07");
	locs[2] = frame(p, 3, "");
	profile__add_sample(p, locs, 3, NULL, 0, (int64_t[]){ 1 });
	text = written(p, folded, 0);
	assert_string_equal(text,
			    "0x3;\xef\xbf\xbd]0:t\xef\xbf\xbd;a:b\xef\xbf\xbd"
			    "c 5\xef\xbf\xbd 1\n");
	free(text);
	profile__add_comment(p, "two\nlines");
	text = written(p, text_write, 0);
	assert_non_null(strstr(text, "\ntwo\xef\xbf\xbdlines\n"));
	assert_non_null(strstr(text,
			       "  a;b\xef\xbf\xbd"
			       "c 5\xef\xbf\xbd\n"));
	assert_null(strchr(text, 0x1b));
	free(text);
	profile__free(p);
}

/* The table of pprof, squeezed, less what it appends to names of inlined functions; its header line
 * is not there. */
static char *pprof_rows(const struct profile *p)
{
	char *data, *text, *at, *rows, *inlined;
	size_t sz;
	FILE *f = open_memstream(&data, &sz);

	assert_int_equal(pprof_write(p, f), 0);
	fclose(f);
	text = golden_pprof("-top -nodecount=100000 -nodefraction=0 -edgefraction=0", data, sz,
			    NULL);
	free(data);
	golden_squeeze(text);
	at = strstr(text, "cum%\n");
	assert_non_null(at);
	rows = strdup(at + 5);
	free(text);
	while ((inlined = strstr(rows, " (inline)")) ||
	       (inlined = strstr(rows, " (partial-inline)"))) {
		at = strchr(inlined, ')') + 1;
		memmove(inlined, at, strlen(at) + 1);
	}
	return rows;
}

/* Ours, in the same form. */
static char *our_rows(const struct profile *p)
{
	char *text = written(p, top_rows, 0), *rows = strdup(strchr(text, '\n') + 1);

	free(text);
	golden_squeeze(rows);
	return rows;
}

/* Functions with distinct flat values, so that there is one order only. */
static struct profile *random_profile(uint32_t x, size_t type, int64_t scale)
{
	struct profile *p = plain(type);
	uint32_t locs[20], n, i, j;
	char name[32];

	for (i = 0; i < 40; i++) {
		for (n = 1 + x % 19, j = 0; j < n; j++) {
			x = x * 1664525 + 1013904223;
			snprintf(name, sizeof(name), "f%u", j ? (x >> 9) % 40 : i);
			locs[j] = frame(p, j ? (x >> 9) % 40 : i, name);
		}
		profile__add_sample(p, locs, n, NULL, 0,
				    (int64_t[]){ (INT64_C(1) << i) % 1000003 * scale + i });
	}
	assert_int_equal(profile__finish(p), 0);
	return p;
}

static void table_is_pprofs(void **state)
{
	static const int64_t scales[] = { 1, 977, 1234567 };
	struct profile *p;
	char *want, *got;
	size_t type, i;

	(void)state;
	if (!golden_have_pprof())
		skip();
	for (type = 0; type < ARRAY_SIZE(types); type++)
		for (i = 0; i < ARRAY_SIZE(scales); i++) {
			p = random_profile((uint32_t)(type * 31 + i), type, scales[i]);
			want = pprof_rows(p);
			got = our_rows(p);
			assert_string_equal(got, want);
			free(want);
			free(got);
			profile__free(p);
		}
	p = golden_profile();
	want = pprof_rows(p);
	assert_non_null(strstr(want,
			       "1050ms 58.33% 58.33% 1050ms 58.33% ns::fib(int)\n"
			       "500ms 27.78% 86.11% 700ms 38.89% helper\n"));
	free(want);
	profile__free(p);
	for (size_t cnt = 4; cnt; cnt--) {
		p = golden_heap_values(cnt);
		want = pprof_rows(p);
		got = our_rows(p);
		/* rows of nothing but zeros, which pprof leaves out, come last */
		assert_true(strlen(want) > 50);
		assert_memory_equal(got, want, strlen(want));
		free(want);
		free(got);
		profile__free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_texts),
		cmocka_unit_test(own_rows_leave_out_the_rest),
		cmocka_unit_test(golden_heap_texts),
		cmocka_unit_test(golden_kind_texts),
		cmocka_unit_test(empty_is_written),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(rows_are_sorted_and_cut),
		cmocka_unit_test(numbers_are_for_people),
		cmocka_unit_test(lines_are_merged_and_sorted),
		cmocka_unit_test(root_is_the_process),
		cmocka_unit_test(lines_stay_lines),
		cmocka_unit_test(table_is_pprofs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
