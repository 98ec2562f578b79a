// SPDX-License-Identifier: BSD-2-Clause
/* What bench is made of: the order of the runs, the words of a command, what commands print, what is said of
 * a run in its profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "base/util.h"
#include "bench/output.h"
#include "bench/parts.h"
#include "bench/plan.h"
#include "bench/words.h"
#include "options.h"
#include "options_bench.h"
#include "profile/facts.h"
#include "profile/merge.h"
#include "profile/pprof.h"
#include "profile/profile.h"

/* ---- the order ---- */

static size_t count_new(const struct plan_run *runs, size_t cnt)
{
	size_t ret = 0;

	for (size_t i = 0; i < cnt; i++)
		ret += runs[i].is_new;
	return ret;
}

/* The sides of a block of four as a number of four bits. */
static unsigned int order_of(const struct plan_run runs[4])
{
	unsigned int bits = 0;

	for (size_t i = 0; i < 4; i++)
		bits |= (unsigned int)runs[i].is_new << i;
	return bits;
}

static void blocks_are_fair(void **unused)
{
	enum {
		BLOCKS = 60000
	};
	size_t orders[16] = { 0 }, kinds = 0, by_slot[4] = { 0 };
	double padding = 0;

	(void)unused;
	for (uint64_t b = 0; b < BLOCKS; b++) {
		struct plan_run runs[2 * PLAN_BLOCK], again[2 * PLAN_BLOCK];

		plan_block(7, b, 2, runs);
		assert_int_equal(count_new(runs, 4), 2);
		orders[order_of(runs)]++;
		for (uint32_t i = 0; i < 4; i++) {
			assert_int_equal(runs[i].slot, i);
			assert_true(runs[i].padding < PLAN_MAX_PADDING);
			padding += runs[i].padding;
			by_slot[i] += runs[i].is_new;
		}
		plan_block(7, b, 2, again);
		assert_int_equal(order_of(again), order_of(runs));
		plan_block(7, b, 1, runs);
		assert_int_equal(count_new(runs, 2), 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		if (!orders[i])
			continue;
		kinds++;
		/* 10,000 each, five standard deviations are 457 */
		assert_in_range(orders[i], 10000 - 457, 10000 + 457);
	}
	assert_int_equal(kinds, 6);
	for (size_t i = 0; i < 4; i++)
		assert_in_range(by_slot[i], 30000 - 613, 30000 + 613);
	/* the mean of a number below 4,096, whose standard deviation is 1,182 */
	padding /= 4 * BLOCKS;
	assert_true(padding > 2047.5 - 12.1 && padding < 2047.5 + 12.1);
}

/* Each of the side's two runs of a block is the first one half of the time, whatever the order of the sides. */
static void runs_of_a_side_are_numbered(void **unused)
{
	enum {
		BLOCKS = 60000
	};
	size_t first[2][2] = { { 0 } };

	(void)unused;
	for (uint64_t b = 0; b < BLOCKS; b++) {
		struct plan_run runs[2 * PLAN_BLOCK];
		uint32_t seen[2] = { 0 };
		bool met[2] = { false };

		plan_block(11, b, 2, runs);
		for (size_t i = 0; i < 4; i++) {
			int side = runs[i].is_new;

			assert_in_range(runs[i].nth, 0, 1);
			seen[side] |= 1U << runs[i].nth;
			if (!met[side])
				first[side][runs[i].nth]++;
			met[side] = true;
		}
		assert_true(seen[0] == 3 && seen[1] == 3);
		plan_block(11, b, 1, runs);
		assert_true(!runs[0].nth && !runs[1].nth);
	}
	/* 30,000 each, five standard deviations are 613 */
	for (int i = 0; i < 4; i++)
		assert_in_range(first[i / 2][i % 2], 30000 - 613, 30000 + 613);
}

static void seeds_differ(void **unused)
{
	size_t same = 0;

	(void)unused;
	for (uint64_t seed = 1; seed <= 600; seed++) {
		struct plan_run a[2 * PLAN_BLOCK], b[2 * PLAN_BLOCK];

		plan_block(seed, 0, 2, a);
		plan_block(seed + 1, 0, 2, b);
		same += order_of(a) == order_of(b);
	}
	/* a sixth, five standard deviations are 46 */
	assert_in_range(same, 54, 146);
}

static void looks(void **unused)
{
	uint64_t at[PLAN_MAX_LOOKS];

	(void)unused;
	assert_int_equal(plan_looks(10, 10, at), 1);
	assert_int_equal(at[0], 10);
	assert_int_equal(plan_looks(6, 40, at), 4);
	assert_int_equal(at[0], 6);
	assert_int_equal(at[1], 12);
	assert_int_equal(at[2], 24);
	assert_int_equal(at[3], 40);
	assert_int_equal(plan_looks(1, 1000000, at), PLAN_MAX_LOOKS);
	assert_int_equal(at[PLAN_MAX_LOOKS - 1], 1000000);
}

static void disturbed(void **unused)
{
	const double quiet[] = { 0, 0.004, 0.002, 0.001, 0.015 };
	const double one[] = { 0.01, 0.012, 0.4, 0.011, 0.009, 0.01 };
	const double two[] = { 0.01, 0.3, 0.012, 0.4, 0.011, 0.009, 0.01, 0.012 };
	/* a neighbour that is always there stands out nowhere */
	const double busy[] = { 0.9, 1, 0.8, 0.95, 0.85, 1.05 };
	bool marked[8];

	(void)unused;
	assert_int_equal(plan_disturbed(quiet, ARRAY_SIZE(quiet), 5, marked), 0);
	assert_int_equal(plan_disturbed(busy, ARRAY_SIZE(busy), 5, marked), 0);
	assert_int_equal(plan_disturbed(one, ARRAY_SIZE(one), 5, marked), 1);
	assert_true(marked[2] && !marked[1]);
	assert_int_equal(plan_disturbed(two, ARRAY_SIZE(two), 5, marked), 2);
	assert_true(marked[1] && marked[3]);
	/* the worst one first */
	assert_int_equal(plan_disturbed(two, ARRAY_SIZE(two), 1, marked), 1);
	assert_true(marked[3] && !marked[1]);
	assert_int_equal(plan_disturbed(two, ARRAY_SIZE(two), 0, marked), 0);
	assert_int_equal(plan_disturbed(two, 0, 5, marked), 0);
}

/* ---- words ---- */

static void assert_words(const char *command, const char *const *want)
{
	char **words, err[256];
	size_t i = 0;

	assert_int_equal(words_split(command, &words, err, sizeof(err)), 0);
	for (; want[i]; i++)
		assert_string_equal(words[i], want[i]);
	assert_null(words[i]);
	words_free(words);
}

static void assert_refused(const char *command, const char *says)
{
	char **words, err[256] = "";

	assert_int_equal(words_split(command, &words, err, sizeof(err)), -EINVAL);
	if (!strstr(err, says))
		fail_msg("\"%s\" does not say: %s", err, says);
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void splitting(void **unused)
{
	char *const argv[] = { "a", "", "b c", NULL };
	char **copy;

	(void)unused;
	assert_words("./app data", WORDS("./app", "data"));
	assert_words("  ./app 'two words' \"and  two\" a\\ b ''",
		     WORDS("./app", "two words", "and  two", "a b", ""));
	assert_words("sh -c 'a | b; c >d'", WORDS("sh", "-c", "a | b; c >d"));
	setenv("BENCH_TEST_WORD", "x y", 1);
	assert_words("a \"$BENCH_TEST_WORD\"", WORDS("a", "x y"));
	unsetenv("BENCH_TEST_WORD");
	assert_refused("", "empty");
	assert_refused("  ", "empty");
	assert_refused("a | b", "sh -c");
	assert_refused("a > b", "sh -c");
	assert_refused("a; b", "sh -c");
	assert_refused("a 'b", "not closed");
	/* nothing is run to find out what is to be run */
	assert_refused("a $(echo b)", "sh -c");
	assert_refused("a `echo b`", "sh -c");
	assert_refused("a {b}", "sh -c");
	assert_refused("a.{i}", "--builds");
	assert_refused("a $BENCH_TEST_WORD", "not set");
	assert_int_equal(words_copy(argv, &copy), 0);
	assert_string_equal(copy[2], "b c");
	assert_null(copy[3]);
	words_free(copy);
}

static void numbers(void **unused)
{
	char *const argv[] = { "./app.{i}", "{i}{i}", "", "{ i}", "a{i}b{i", NULL };
	char *const without[] = { "./app", "{i", "i}", NULL };
	char **copy;

	(void)unused;
	assert_true(words_have_number(argv));
	assert_false(words_have_number(without));
	assert_int_equal(words_number(argv, 12, &copy), 0);
	assert_string_equal(copy[0], "./app.12");
	assert_string_equal(copy[1], "1212");
	assert_string_equal(copy[2], "");
	assert_string_equal(copy[3], "{ i}");
	assert_string_equal(copy[4], "a12b{i");
	assert_null(copy[5]);
	words_free(copy);
}

/* ---- what commands print ---- */

static double operations(const char *regex, const char *text, size_t piece)
{
	struct bench_output o;
	regex_t re;

	assert_int_equal(regcomp(&re, regex, REG_EXTENDED), 0);
	bench_output__begin(&o, &re);
	for (size_t at = 0; text[at]; at += MIN(piece, strlen(text + at)))
		bench_output__take(&o, text + at, MIN(piece, strlen(text + at)));
	bench_output__end(&o);
	regfree(&re);
	return o.found ? o.ops_cnt : -1;
}

static void counting(void **unused)
{
	const char *text = "12 requests\nprogress\n1,234,567 requests in 10 s\n\n";
	char *line = malloc(100001);
	struct bench_output o;

	(void)unused;
	for (size_t piece = 1; piece < 60; piece++)
		assert_true(operations("([0-9,]+) requests", text, piece) == 1234567);
	assert_true(operations("([0-9,]+) replies", text, 100) == -1);
	assert_true(operations("rate: ([0-9.]+)", "rate: 12.5", 100) == 12.5);
	assert_true(operations("n=([^ ]*)", "n=much n=5", 100) == -1);
	assert_true(operations("(x)?y", "y", 100) == -1);
	/* the end of a long line is not looked at, and the next line is */
	assert_non_null(line);
	memset(line, 'a', 100000);
	strcpy(line + 99990, " n=7\nn=8");
	assert_true(operations("n=([0-9]+)", line, 100001) == 8);
	bench_output__begin(&o, NULL);
	bench_output__take(&o, line, strlen(line));
	assert_false(o.found);
	bench_output__end(&o);
	assert_string_equal(o.last, "n=8");
	bench_output__take(&o, "the end\n  \n", 11);
	assert_string_equal(o.last, "the end");
	free(line);
}

/* Costs are divided by the number: one that is rounded is another cost. */
static void whole_numbers(void **unused)
{
	static const struct {
		double printed;
		int err;
		uint64_t ops;
	} cases[] = {
		{ 1, 0, 1 },	      { 12, 0, 12 },	   { 1234567, 0, 1234567 },
		{ 12.4, -EDOM, 0 },   { 12.6, -EDOM, 0 },  { 1.5, -EDOM, 0 },
		{ 12.001, 0, 12 },    { 399.4, -EDOM, 0 }, { 81204.5, 0, 81205 },
		{ 0, -ERANGE, 0 },    { 0.5, -ERANGE, 0 }, { -3, -ERANGE, 0 },
		{ 1e18, -ERANGE, 0 }, { NAN, -ERANGE, 0 },
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct bench_output o = { .found = true, .ops_cnt = cases[i].printed };
		uint64_t ops = 0;

		assert_int_equal(bench_output__ops(&o, &ops), cases[i].err);
		assert_int_equal(ops, cases[i].ops);
	}
}

/* ---- what is said of a run ---- */

static struct profile *new_profile(void)
{
	const struct profile_value_type t = { "samples", "count" };
	struct profile *p = profile__new(&t, 1, t, 1);

	assert_non_null(p);
	return p;
}

static size_t comments_with(const struct profile *p, const char *begin)
{
	size_t cnt = 0;

	for (size_t i = 0; i < p->comment_cnt; i++)
		cnt += !strncmp(strtab__get(p->strings, p->comments[i]), begin, strlen(begin));
	return cnt;
}

static void facts_are_kept(void **unused)
{
	struct run_facts f, got;
	struct profile *p = new_profile();
	const char *key;

	(void)unused;
	facts_clear(&f);
	assert_int_equal(profile__add_comment(p, "a comment"), 0);
	assert_int_equal(facts_write(p, &f), 0);
	assert_int_equal(p->comment_cnt, 1);
	f = (struct run_facts){ .run = "0001",
				.machine = "m",
				.block = 0,
				.slot = 3,
				.build = 2,
				.seed = 5,
				.look = 1,
				.ops = 7,
				.cpu_ns = 9,
				.wall_ns = 11,
				.other_ns = 0,
				.seen = 0,
				.lost = 0 };
	assert_int_equal(facts_write(p, &f), 0);
	assert_int_equal(facts_read(p, &got, &key), 0);
	assert_memory_equal(&got, &f, sizeof(f));
	/* in place of what was there, and nothing else changes */
	facts_clear(&f);
	f.ops = 8;
	assert_int_equal(facts_write(p, &f), 0);
	assert_int_equal(facts_read(p, &got, &key), 0);
	assert_int_equal(got.ops, 8);
	assert_int_equal(got.cpu_ns, 9);
	assert_int_equal(comments_with(p, "bpfprof.ops="), 1);
	assert_int_equal(comments_with(p, "a comment"), 1);
	profile__free(p);
}

/* Of one run nothing is true of the sum of two. */
static void facts_of_sums(void **unused)
{
	struct profile_merge *m = profile_merge__new();
	struct run_facts f, got;
	const char *key;

	(void)unused;
	assert_non_null(m);
	facts_clear(&f);
	f.cpu_ns = 5;
	for (int cnt = 1; cnt <= 2; cnt++) {
		struct profile *sum;

		for (int i = 0; i < cnt; i++) {
			struct profile *p = new_profile();

			assert_int_equal(profile__add_comment(p, "bpfprof 1.0"), 0);
			assert_int_equal(facts_write(p, &f), 0);
			assert_int_equal(profile_merge__add(m, p, NULL, 0), 0);
			profile__free(p);
		}
		sum = profile_merge__take(m);
		assert_non_null(sum);
		assert_int_equal(facts_read(sum, &got, &key), 0);
		assert_true(got.cpu_ns == (cnt == 1 ? 5 : FACTS_NONE));
		assert_int_equal(comments_with(sum, "bpfprof 1.0"), 1);
		profile__free(sum);
	}
	profile_merge__free(m);
}

/* ---- what a run may have lost ---- */

static int write_one(void *profile, FILE *f)
{
	return pprof_write(profile, f);
}

/* A run has ended whose profile of a kind says this. */
static void write_kind(const struct bench *b, const char *kind, uint64_t seen, uint64_t lost)
{
	char path[PATH_MAX], text[256];
	struct run_facts f;
	struct profile *p = new_profile();

	facts_clear(&f);
	f.wall_ns = 5;
	f.seen = seen;
	f.lost = lost;
	assert_int_equal(facts_write(p, &f), 0);
	assert_int_equal(profile__finish(p), 0);
	bench_set_begun(&b->set, path);
	snprintf(path + strlen(path), 64, ".%s.pb.gz", kind);
	assert_int_equal(output_write(path, write_one, p, text, sizeof(text)), 0);
	profile__free(p);
}

static void losses_of_each_kind(void **unused)
{
	struct options o = { .kinds = { [BPFPROF_CPU] = true, [BPFPROF_OFFCPU] = true } };
	struct bench b = { .opts = &o };
	struct run_facts f;

	(void)unused;
	strcpy(b.set.path, "/tmp/test_bench.XXXXXX");
	assert_non_null(mkdtemp(b.set.path));
	write_kind(&b, "cpu", 1000, 10);
	write_kind(&b, "offcpu", 0, 0);
	assert_int_equal(bench_set_peek(&b, RUNS_NEW, &f), 0);
	assert_int_equal(f.seen, 1000);
	write_kind(&b, "offcpu", 1000, 11);
	assert_int_equal(bench_set_peek(&b, RUNS_NEW, &f), -EINVAL);
	write_kind(&b, "offcpu", 1000, 10);
	assert_int_equal(bench_set_peek(&b, RUNS_NEW, &f), 0);
	write_kind(&b, "cpu", 1000, 11);
	assert_int_equal(bench_set_peek(&b, RUNS_NEW, &f), -EINVAL);
	write_kind(&b, "cpu", 0, 0);
	assert_int_equal(bench_set_peek(&b, RUNS_NEW, &f), -EINVAL);
	bench_set_drop(&b);
	assert_int_equal(rmdir(b.set.path), 0);
}

/* ---- sets that are added to ---- */

/* A run of the set that did so many operations. */
static void write_run(const struct bench *b, enum runs_side side, uint64_t run, uint64_t ops)
{
	const struct profile_value_type types[] = { { "samples", "count" },
						    { "cpu", "nanoseconds" } };
	struct profile *p = profile__new(types, 2, types[1], 1000000);
	const int64_t values[] = { 5, 5000000 };
	char path[PATH_MAX], text[256];
	struct run_facts f;

	assert_non_null(p);
	assert_int_not_equal(profile__add_sample(p, NULL, 0, NULL, 0, values), PROFILE_NONE);
	facts_clear(&f);
	snprintf(f.run, sizeof(f.run), "%04d", (int)run);
	f.block = run / 4;
	f.look = 1;
	f.ops = ops;
	assert_int_equal(facts_write(p, &f), 0);
	assert_int_equal(profile__finish(p), 0);
	snprintf(path, sizeof(path), "%.99s/%s/%s.cpu.pb.gz", b->set.path, bench_side_names[side],
		 f.run);
	assert_int_equal(output_write(path, write_one, p, text, sizeof(text)), 0);
	profile__free(p);
}

/* Opens a set of four runs to add to it. */
static int open_again(const char *path, const struct options *o, const uint64_t ops[4],
		      uint64_t *ret)
{
	struct bench b = { .opts = o };
	int err;

	snprintf(b.set.path, sizeof(b.set.path), "%s", path);
	for (uint64_t i = 0; i < 4; i++)
		write_run(&b, i % 2 ? RUNS_NEW : RUNS_BASE, i + 1, ops[i]);
	err = bench_set_open(&b, path, true);
	*ret = b.set.ops_before;
	bench_set_close(&b.set);
	return err;
}

/* What runs did goes for those that are added only if it is the same of all. */
static void operations_of_sets(void **unused)
{
	const uint64_t same[] = { 7, 7, 7, 7 }, differ[] = { 100, 90, 100, 90 };
	const uint64_t none[] = { FACTS_NONE, FACTS_NONE, FACTS_NONE, FACTS_NONE };
	struct options o = { .kinds = { [BPFPROF_CPU] = true } };
	struct bench b = { .opts = &o };
	uint64_t ops;

	(void)unused;
	assert_int_equal(bench_set_open(&b, NULL, false), 0);
	assert_int_equal(open_again(b.set.path, &o, same, &ops), 0);
	assert_int_equal(ops, 7);
	assert_int_equal(open_again(b.set.path, &o, none, &ops), 0);
	assert_true(ops == FACTS_NONE);
	assert_int_equal(open_again(b.set.path, &o, differ, &ops), -EINVAL);
	o.bench.ops_regex = "([0-9]+)";
	assert_int_equal(open_again(b.set.path, &o, differ, &ops), 0);
	o.bench.ops_regex = NULL;
	o.bench.ops_probe = "uprobe:f";
	assert_int_equal(open_again(b.set.path, &o, differ, &ops), 0);
	bench_set_close(&b.set);
	assert_int_equal(access(b.set.path, F_OK), -1);
}

/* ---- options ---- */

/* A gate that no run can have is refused before any is made. */
static void gates_of_functions(void **unused)
{
	struct options o = { .kinds = { [BPFPROF_CPU] = true }, .kinds_given = true };
	char text[256];

	(void)unused;
	o.bench.aa = true;
	o.judge.gate_cnt = 1;
	o.judge.gates[0] = (struct judge_gate){ .metric = RUNS_WALL, .effect = 0.05 };
	assert_int_equal(options_bench_check(&o, text, sizeof(text)), 0);
	strcpy(o.judge.gates[0].function, "f");
	assert_int_equal(options_bench_check(&o, text, sizeof(text)), -EINVAL);
	assert_non_null(strstr(text, "'wall' is of whole runs"));
	strcpy(o.judge.gates[0].metric, "cpu");
	assert_int_equal(options_bench_check(&o, text, sizeof(text)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_fair),
		cmocka_unit_test(runs_of_a_side_are_numbered),
		cmocka_unit_test(seeds_differ),
		cmocka_unit_test(looks),
		cmocka_unit_test(disturbed),
		cmocka_unit_test(splitting),
		cmocka_unit_test(numbers),
		cmocka_unit_test(counting),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(facts_are_kept),
		cmocka_unit_test(facts_of_sums),
		cmocka_unit_test(losses_of_each_kind),
		cmocka_unit_test(operations_of_sets),
		cmocka_unit_test(gates_of_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
