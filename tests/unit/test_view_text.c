/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of view/: the call tree, which stacks are in focus, and files that are added up. */
#include "view/tree.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "golden_profile.h"
#include "profile/difference.h"
#include "profile/frames.h"
#include "profile/profile.h"
#include "toolrun.h"
#include "view/sum_files.h"
#include "view/text.h"
#include "view/text_sides.h"
#include "view/view.h"
#include "view/write_file.h"
#include "written.h"

#define MAX_DEPTH 400

static bool is_huge; /* is what has been added up so far? */

size_t __real_profile__bytes(const struct profile *p);
size_t __wrap_profile__bytes(const struct profile *p);

size_t __wrap_profile__bytes(const struct profile *p)
{
	return is_huge ? SUM_FILES_MAX : __real_profile__bytes(p);
}

static struct profile *empty(void)
{
	static const struct profile_value_type types[] = { { "samples", "count" },
							   { "cpu", "nanoseconds" } };
	static const struct profile_value_type period = { "cpu", "nanoseconds" };
	struct profile *p = profile__new(types, 2, period, 1000000);

	assert_non_null(p);
	return p;
}

/* The stack's functions from the root on, with a blank between two; n samples of 1 ms. */
static void add(struct profile *p, const char *stack, int64_t n)
{
	int64_t values[] = { n, n * 1000000 };
	uint32_t locs[MAX_DEPTH], at = MAX_DEPTH;
	char *words = strdup(stack), *rest = words, *word;

	assert_non_null(words);
	while ((word = strsep(&rest, " "))) {
		assert_true(at > 0);
		locs[--at] = profile__add_marker(p, word);
		assert_int_not_equal(locs[at], PROFILE_NONE);
	}
	free(words);
	assert_int_not_equal(profile__add_sample(p, locs + at, MAX_DEPTH - at, NULL, 0, values),
			     PROFILE_NONE);
}

static char *shown(const struct profile *p, size_t value, const struct view_options *o)
{
	const struct view view = { .profile = p, .value = value, .title = "x", .opts = o };
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	assert_int_equal(view_text_write(&view, f), 0);
	fclose(f);
	return text;
}

static void shows(const struct profile *p, size_t value, const struct view_options *o,
		  const char *want)
{
	char *text = shown(p, value, o);

	assert_string_equal(text, want);
	free(text);
}

static char *sides_shown(const struct view *view)
{
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	assert_int_equal(view_sides_write(view, f), 0);
	fclose(f);
	return text;
}

#define TREE "       cum   cum%       flat  flat%  name\n"

static struct profile *some(void)
{
	struct profile *p = empty();

	add(p, "main a b", 40);
	add(p, "main a b b", 20);
	add(p, "main a c", 10);
	add(p, "main d e f", 25);
	add(p, "main d e", 4);
	add(p, "other", 1);
	return p;
}

static void tree(void **state)
{
	struct profile *p = some();

	(void)state;
	shows(p, 1, &(struct view_options){ .tree = true },
	      "Type: cpu\nTotal samples = 100ms\n" TREE
	      "      99ms 99.00%          0     0%  ├─ main\n"
	      "      70ms 70.00%          0     0%  │  ├─ a\n"
	      "      60ms 60.00%       40ms 40.00%  │  │  ├─ b\n"
	      "      20ms 20.00%       20ms 20.00%  │  │  │  b\n"
	      "      10ms 10.00%       10ms 10.00%  │  │  └─ c\n"
	      "      29ms 29.00%          0     0%  │  └─ d\n"
	      "      29ms 29.00%        4ms  4.00%  │     e\n"
	      "      25ms 25.00%       25ms 25.00%  │     f\n"
	      "       1ms  1.00%        1ms  1.00%  └─ other\n");
	profile__free(p);
}

static void tree_cut(void **state)
{
	struct profile *p = some();

	(void)state;
	/* a branch that is as large as the share is shown */
	shows(p, 0, &(struct view_options){ .tree = true, .min_share = 0.25 },
	      "Type: samples\nTotal samples = 100\n" TREE
	      "        99 99.00%          0     0%  main\n"
	      "        70 70.00%          0     0%  ├─ a\n"
	      "        60 60.00%         40 40.00%  │  b\n"
	      "        29 29.00%          0     0%  └─ d\n"
	      "        29 29.00%          4  4.00%     e\n"
	      "        25 25.00%         25 25.00%     f\n"
	      "3 branches below 25 % of the total are left out\n");
	shows(p, 0, &(struct view_options){ .tree = true, .limit = 2 },
	      "Type: samples\nTotal samples = 100\n" TREE
	      "        99 99.00%          0     0%  ├─ main\n"
	      "        70 70.00%          0     0%  │  ├─ a\n"
	      "These are the first 2 of 9 lines\n");
	profile__free(p);
}

static void focus(void **state)
{
	struct profile *p = some();

	(void)state;
	shows(p, 0, &(struct view_options){ .tree = true, .focus = "^[ef]$" },
	      "Type: samples\nTotal samples = 100\n" TREE
	      "        29 29.00%          0     0%  main\n"
	      "        29 29.00%          0     0%  d\n"
	      "        29 29.00%          4  4.00%  e\n"
	      "        25 25.00%         25 25.00%  f\n");
	shows(p, 0, &(struct view_options){ .focus = "^b" },
	      "Type: samples\nTotal samples = 100\n"
	      "      flat  flat%   sum%        cum   cum%  name\n"
	      "        60 60.00% 60.00%         60 60.00%  b\n"
	      "         0     0% 60.00%         60 60.00%  a\n"
	      "         0     0% 60.00%         60 60.00%  main\n");
	shows(p, 0, &(struct view_options){ .focus = "nowhere", .tree = true },
	      "Type: samples\nTotal samples = 100\n" TREE);
	profile__free(p);
}

static void nothing(void **state)
{
	struct profile *p = empty();

	(void)state;
	shows(p, 1, &(struct view_options){ .tree = true }, "Type: cpu\nTotal samples = 0\n" TREE);
	profile__free(p);
}

static void hostile_names(void **state)
{
	struct profile *p = empty();

	(void)state;
	add(p, "main\x1b[2J a\nb", 1);
	shows(p, 0, &(struct view_options){ .tree = true },
	      "Type: samples\nTotal samples = 1\n" TREE
	      "         1   100%          0     0%  main\xef\xbf\xbd[2J\n"
	      "         1   100%          1   100%  a\xef\xbf\xbd"
	      "b\n");
	profile__free(p);
}

/* What has no name is where it is: the same address of two objects is no one function. */
static void unnamed(void **state)
{
	static const struct {
		const char *file;
		uint64_t offset;
	} rows[] = {
		{ "/usr/lib/liba.so", 0 }, { "/opt/b;\n", 0x1000 }, { "", 0 }, { "//anon", 0 }
	};
	int64_t values[] = { 1, 1000000 };
	struct profile *p = empty();
	struct profile_mapping m = { .start = 0x4000, .limit = 0x8000 };
	uint32_t loc;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		m.filename = profile__string(p, rows[i].file);
		m.offset = rows[i].offset;
		m.owner = i;
		loc = profile__add_location(p, profile__add_mapping(p, &m), 0x4321);
		assert_int_not_equal(profile__add_sample(p, &loc, 1, NULL, 0, values),
				     PROFILE_NONE);
	}
	shows(p, 0, &(struct view_options){ 0 },
	      "Type: samples\nTotal samples = 4\n"
	      "      flat  flat%   sum%        cum   cum%  name\n"
	      "         2 50.00% 50.00%          2 50.00%  0x4321\n"
	      "         1 25.00% 75.00%          1 25.00%  b;\xef\xbf\xbd+0x1321\n"
	      "         1 25.00%   100%          1 25.00%  liba.so+0x321\n");
	profile__free(p);
}

static size_t lines(const char *text)
{
	size_t cnt = 0;

	for (; *text; text++)
		cnt += *text == '\n';
	return cnt;
}

/* A recursion is a line for each call; forks within forks are drawn up to a number of them. */
static void deep(void **state)
{
	char stack[2 * MAX_DEPTH] = "r", *text;
	struct profile *p = empty();
	size_t i;

	(void)state;
	for (i = 1; i < MAX_DEPTH; i++)
		strcat(stack, " r");
	add(p, stack, 1);
	text = shown(p, 0, &(struct view_options){ .tree = true });
	assert_int_equal(lines(text), 3 + MAX_DEPTH);
	assert_null(strstr(text, "left out"));
	free(text);
	profile__free(p);

	p = empty();
	strcpy(stack, "r");
	for (i = 1; i <= TREE_MAX_FORKS + 5; i++) {
		add(p, stack, 1);
		strcat(stack, " r");
		add(p, stack, 1);
		stack[strlen(stack) - 1] = 's';
		add(p, stack, 1);
		stack[strlen(stack) - 1] = 'r';
	}
	text = shown(p, 0, &(struct view_options){ .tree = true });
	/* the root, and two for each fork */
	assert_int_equal(lines(text), 3 + 1 + 2 * TREE_MAX_FORKS + 1);
	assert_non_null(strstr(text, "2 branches within more than 64 others are left out\n"));
	free(text);
	profile__free(p);
}

/* ---- files ---- */

static const char *file(const char *name, const struct profile *p)
{
	struct bytes b = written(p);
	char *path = strdup(toolrun_path(name));
	FILE *f;

	assert_non_null(path);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(b.data, 1, b.sz, f), b.sz);
	fclose(f);
	free(b.data);
	return path;
}

static struct bytes sum_of(const char *a, const char *b)
{
	char *files[] = { (char *)a, (char *)b, NULL };
	struct profile *p;
	struct bytes ret;

	assert_int_equal(sum_files(files, &p), 0);
	ret = written(p);
	assert_int_equal(p->duration_ns, 7);
	assert_int_equal(p->time_ns, 100);
	assert_int_equal(p->period, 0);
	assert_int_equal(profile__total(p, 0), 103);
	profile__free(p);
	return ret;
}

static void sums(void **state)
{
	struct profile *p = some(), *q = empty();
	const char *a, *b;
	struct bytes ab, ba;

	(void)state;
	add(q, "main a b", 3);
	p->time_ns = 1000;
	p->duration_ns = 5;
	q->time_ns = 100;
	q->duration_ns = 2;
	q->period = 2;
	a = file("a", p);
	b = file("b", q);
	ab = sum_of(a, b);
	ba = sum_of(b, a);
	assert_int_equal(ab.sz, ba.sz);
	assert_memory_equal(ab.data, ba.data, ab.sz);
	free(ab.data);
	free(ba.data);
	free((char *)a);
	free((char *)b);
	profile__free(p);
	profile__free(q);
}

/* Of the base if n is below 0, as a difference has it. */
static void add_side(struct profile *p, const char *stack, int64_t n)
{
	static const char *const base[] = { DIFFERENCE_KEY, DIFFERENCE_VALUE };
	struct profile_label label = { .key = profile__string(p, base[0]),
				       .str = profile__string(p, base[1]) };
	struct profile *of = empty();
	const struct profile_sample *s;
	uint32_t locs[8];

	add(of, stack, n);
	s = &of->samples[0];
	assert_in_range(s->loc_cnt, 1, 8);
	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		const struct profile_location *l = &of->locations[of->loc_ids[s->loc + i]];
		uint32_t name = of->functions[of->lines[l->line].function].name;

		locs[i] = profile__add_marker(p, strtab__get(of->strings, name));
	}
	profile__add_sample(p, locs, s->loc_cnt, &label, n < 0, profile__values(of, s));
	profile__free(of);
}

#define SIDES                                                                      \
	" base flat   new flat       diff     diff%    base cum    new cum       " \
	"diff     diff%  name\n"

static void two_sides(void **state)
{
	struct view_side sides[2] = { { "old\x1b", 2, 3000000000 }, { "app", 1, 1500000000 } };
	struct profile *p = empty();
	struct view view = { .profile = p, .value = 1, .title = "x", .sides = sides };
	struct view_options all = { 0 }, some = { .limit = 2, .focus = "^[bc]$" };
	char *text;

	(void)state;
	add_side(p, "main a b b", -20);
	add_side(p, "main a b b", 30);
	add_side(p, "main a", -40);
	add_side(p, "main a", 40);
	add_side(p, "main c", -25);
	add_side(p, "main d", 5);
	view.opts = &all;
	text = sides_shown(&view);
	assert_string_equal(text,
			    "Type: cpu\n"
			    "Base: old\xef\xbf\xbd, 2 files over 3s, total 85ms\n"
			    "New: app, 1 file over 1.50s, total 75ms\n"
			    "Difference: -10ms (-11.76%)\n" VIEW_UNEVEN "\n" SIDES
			    "      25ms          0      -25ms      gone        25ms          0     "
			    " -25ms      gone  c\n"
			    "      20ms       30ms      +10ms   +50.00%        20ms       30ms     "
			    " +10ms   +50.00%  b\n"
			    "         0        5ms       +5ms       new           0        5ms     "
			    "  +5ms       new  d\n"
			    "      40ms       40ms          0        0%        60ms       70ms     "
			    " +10ms   +16.67%  a\n"
			    "         0          0          0         -        85ms       75ms     "
			    " -10ms   -11.76%  main\n");
	free(text);
	/* the totals stay those of the whole */
	view.opts = &some;
	sides[0] = (struct view_side){ "old", 1, 0 };
	sides[1] = (struct view_side){ "app", 1, 0 };
	text = sides_shown(&view);
	assert_string_equal(text,
			    "Type: cpu\n"
			    "Base: old, 1 file, total 85ms\n"
			    "New: app, 1 file, total 75ms\n"
			    "Difference: -10ms (-11.76%)\n"
			    "Top 2 of 4 functions\n" SIDES
			    "      25ms          0      -25ms      gone        "
			    "25ms          0     "
			    " -25ms      gone  c\n"
			    "      20ms       30ms      +10ms   +50.00%        "
			    "20ms       30ms     "
			    " +10ms   +50.00%  b\n");
	free(text);
	profile__free(p);
}

/* Ends of the range are held. */
static void extreme_sides(void **state)
{
	const struct view_side sides[2] = { { "old", 1, 0 }, { "app", 1, 0 } };
	struct profile *p = empty();
	const struct view_options all = { 0 };
	struct view view = { .profile = p, .title = "x", .sides = sides, .opts = &all };

	(void)state;
	add_side(p, "f", -1);
	add_side(p, "f", 1);
	add_side(p, "g", -1);
	profile__values(p, &p->samples[0])[0] = INT64_MIN;
	profile__values(p, &p->samples[1])[0] = INT64_MIN;
	profile__values(p, &p->samples[2])[0] = INT64_MIN;
	free(sides_shown(&view));
	profile__free(p);
}

static void uneven_sides(void **state)
{
	(void)state;
	assert_true(view_sides_differ((struct view_side[]){ { "a", 1, 100 }, { "b", 2, 100 } }));
	assert_true(view_sides_differ((struct view_side[]){ { "a", 1, 100 }, { "b", 1, 103 } }));
	assert_false(view_sides_differ((struct view_side[]){ { "a", 2, 100 }, { "b", 2, 101 } }));
	assert_true(view_sides_differ((struct view_side[]){ { "a", 2, 100 }, { "b", 2, 0 } }));
}

static void no_sums(void **state)
{
	struct profile *p = some(), *q;
	const char *a = file("a", p);
	char *files[] = { (char *)a, (char *)"/nonexistent", NULL };

	(void)state;
	assert_int_equal(sum_files(files, &q), -ENOENT);
	files[1] = (char *)"/dev/null";
	assert_int_equal(sum_files(files, &q), -EBADMSG);
	assert_true(toolrun("head -c 100 a > cut"));
	files[1] = (char *)toolrun_path("cut");
	assert_int_equal(sum_files(files, &q), -EBADMSG);
	/* a sum is bounded; one file alone is by its reader */
	is_huge = true;
	files[1] = (char *)a;
	assert_int_equal(sum_files(files, &q), -EFBIG);
	files[1] = NULL;
	assert_int_equal(sum_files(files, &q), 0);
	is_huge = false;
	profile__free(q);
	free((char *)a);
	profile__free(p);
}

static void too_many_frames(void **state)
{
	struct profile *p =
		golden_many_frames((struct profile_value_type[]){ { "cpu", "count" } }, 1);
	char *files[] = { (char *)file("many", p), NULL };
	struct view_options o = VIEW_DEFAULTS;

	(void)state;
	profile__free(p);
	for (int i = 0; i < 3; i++) {
		o.tree = i == 1;
		o.format = i == 2 ? view_format_find("html") : NULL;
		assert_int_equal(view_files(&o, files, toolrun_path("shown")), -E2BIG);
	}
	free(files[0]);
}

/* A recursion has a node for each call. */
static void too_many_nodes(void **state)
{
	struct tree_options o = { .value = 1, .max_nodes = 5 };
	struct profile *p = empty();
	struct frames fr;
	FILE *f = fopen("/dev/null", "w");

	(void)state;
	assert_non_null(f);
	add(p, "f f f f", 1);
	assert_int_equal(frames__make(p, false, &fr), 0);
	assert_int_equal(tree_write(&fr, &o, f), 0);
	o.max_nodes = 4;
	assert_int_equal(tree_write(&fr, &o, f), -E2BIG);
	assert_int_equal(fclose(f), 0);
	frames__done(&fr);
	profile__free(p);
}

static int ends_itself(void *ctx, FILE *f)
{
	(void)ctx;
	fputs("text", f);
	raise(SIGTERM);
	return 0;
}

/* What is written may take long to make. */
static void signals_end_what_is_made(void **state)
{
	const char *path = toolrun_path("made");
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGTERM, SIG_DFL);
		write_file(path, ends_itself, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tree),
		cmocka_unit_test(tree_cut),
		cmocka_unit_test(focus),
		cmocka_unit_test(nothing),
		cmocka_unit_test(unnamed),
		cmocka_unit_test(deep),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(sums),
		cmocka_unit_test(no_sums),
		cmocka_unit_test(two_sides),
		cmocka_unit_test(extreme_sides),
		cmocka_unit_test(uneven_sides),
		cmocka_unit_test(too_many_frames),
		cmocka_unit_test(too_many_nodes),
		cmocka_unit_test(signals_end_what_is_made),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
