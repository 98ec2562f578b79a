// SPDX-License-Identifier: BSD-2-Clause
/* The account of a run: JSON that others can read whatever names stand in it, figures that add up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "kinds.h"
#include "report/formats.h"
#include "options.h"
#include "profile/profile.h"
#include "report/report.h"
#include "toolrun.h"

static struct options opts;
static struct report report;

static int setup(void **state)
{
	struct collect_account *a = &report.accounts[BPFPROF_CPU];

	(void)state;
	memset(&opts, 0, sizeof(opts));
	memset(&report, 0, sizeof(report));
	opts.kinds[BPFPROF_CPU] = true;
	opts.format = &formats[0];
	report.opts = &opts;
	report.kinds = opts.kinds;
	report.target = "pid:1234";
	report.stats.frequency = 99;
	report.cpus = 2;
	report.duration_ns = report.run_ns = 10000000123;
	report.startup_ns = 98765432;
	report.samples[BPFPROF_CPU] = 321;
	report.stats.bpf_ns = 5555;
	report.stats.bpf_runs = 1100;
	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		a->lost[i] = i + 1;
	/* 55 that are cut, by the first ten reasons */
	a->stacks[BPFPROF_STACK_complete] = 945;
	for (int i = 1; i <= 10; i++)
		a->stacks[i] = i;
	for (int i = 0; i < BPFPROF_NR_RESULTS; i++)
		a->recorded += a->stacks[i];
	a->seen = a->recorded;
	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		a->seen += a->lost[i];
	a->unwinds = 900;
	a->rules = (struct bpfprof_cache_stats){ 800, 7, 1 };
	a->frames = 18446744073709551615ULL;
	a->raw = 17;
	a->events_lost = 3;
	report.symbols[BPFPROF_CPU] = (struct symbolize_stats){ 100, 90, 80, 7000, 60, 30, 2 };
	report.files.code =
		(struct code_stats){ .objects = 4,
				     .rows = 5,
				     .bytes = 6,
				     .build_ns = 7,
				     .copies = { .proved = 12, .differ = 13, .unread = 14 } };
	return 0;
}

static void write_stats(void)
{
	FILE *f = fopen(toolrun_path("stats.json"), "w");

	assert_non_null(f);
	report_stats(&report, f);
	assert_int_equal(fclose(f), 0);
}

/* Python's reader is the judge; the script sees the object as `s`. */
static bool holds(const char *script)
{
	FILE *f = fopen(toolrun_path("judge.py"), "w");

	assert_non_null(f);
	fprintf(f,
		"import json\n"
		"text = open('stats.json', 'rb').read()\n"
		"s = json.loads(text.decode('utf-8', 'strict'))\n"
		"%s\n",
		script);
	assert_int_equal(fclose(f), 0);
	return toolrun("python3 judge.py");
}

static bool have_python(void)
{
	if (toolrun_have("python3"))
		return true;
	print_message("python3 is not installed: nobody to read the JSON\n");
	return false;
}

static void test_stats(void **state)
{
	(void)state;
	if (!have_python())
		skip();
	write_stats();
	assert_true(holds(
		"assert text.endswith(b'\\n') and text.count(b'\\n') == 1\n"
		"assert s['schema'] == 1 and s['target'] == 'pid:1234'\n"
		"assert s['version'] and s['kernel'] == __import__('os').uname().release\n"
		"assert s['duration_ns'] == 10000000123 and s['startup_ns'] == 98765432\n"
		"assert list(s['kinds']) == ['cpu']\n"
		"k = s['kinds']['cpu']\n"
		"assert k['samples'] == 321 and k['period_ns'] in (10101010, 10101011)\n"
		"assert k['unwind'] == {'frames': 2**64 - 1, 'bpf_ns': 5555, 'runs': 900,\n"
		"    'rules': {'cached': 800, 'checked': 7, 'mismatched': 1}}\n"
		"assert s['tables']['objects'] == 4 and s['tables']['rows'] == 5\n"
		"assert s['tables']['bytes'] == 6 and s['tables']['build_ns'] == 7\n"
		"assert s['copies'] == dict(proved=12, differ=13, unread=14)\n"
		"assert s['symbols'] == dict(locations=100, named=90, with_line=80, ns=7000,\n"
		"    hits=60, misses=30, evicted=2)\n"
		"assert s['self']['bpf_ns'] == 5555\n"
		"assert s['self']['cpu_ns'] > 0 and s['self']['peak_rss'] > 1000000\n"));
}

static void test_identity(void **state)
{
	(void)state;
	if (!have_python())
		skip();
	write_stats();
	assert_true(
		holds("k = s['kinds']['cpu']\n"
		      "assert k['lost'] == dict(ring_full=1, nested=2, missed=3, no_slot=4, "
		      "no_state=5, may_throw=6, may_fail=7, ran_on=8, orphan=9, no_memory=10)\n"
		      "assert k['seen'] == k['recorded'] + sum(k['lost'].values())\n"
		      "t = k['stacks']['truncated']\n"
		      "assert k['recorded'] == k['stacks']['complete'] + sum(t.values())\n"
		      "assert k['stacks']['complete'] == 945 and 'complete' not in t\n"
		      "assert {'no_table', 'read_fault', 'too_deep'} <= set(t)\n"));
}

/* What only some kinds have to say, for programs. */
static void test_stats_of_waits(void **state)
{
	(void)state;
	if (!have_python())
		skip();
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		opts.kinds[i] = i != BPFPROF_HEAP;
	report.accounts[BPFPROF_BLOCK].below = 12345;
	report.accounts[BPFPROF_BLOCK].below_ns = 18446744073709551615ULL;
	report.accounts[BPFPROF_BLOCK].kernel_stacks = (struct bpfprof_cache_stats){ 514, 3, 1 };
	report.accounts[BPFPROF_BLOCK].user_stacks = (struct bpfprof_cache_stats){ 9, 2, 0 };
	report.stats.wait_cost_ns[BPFPROF_BLOCK] = 4711;
	report.stats.limited_ns = 12;
	report.stats.snapshot_ns = 7654321;
	write_stats();
	assert_true(
		holds("k = s['kinds']\n"
		      "assert list(k) == ['cpu', 'block', 'mutex', 'offcpu', 'threadcreate', "
		      "'threads', 'faults', 'custom', 'fds']\n"
		      "assert k['block']['below'] == 12345\n"
		      "assert k['block']['below_ns'] == 2**64 - 1\n"
		      "assert k['block']['kernel_stacks'] == {'cached': 514, 'checked': 3, "
		      "'mismatched': 1}\n"
		      "assert k['block']['user_stacks'] == {'cached': 9, 'checked': 2, "
		      "'mismatched': 0}\n"
		      "assert k['block']['min_wait_ns'] == 1000\n"
		      "assert k['block']['cost_ns'] == 4711 and k['block']['limited_ns'] == 12\n"
		      "assert k['offcpu']['below'] == 0 and k['offcpu']['min_wait_ns'] == 0\n"
		      "assert 'below' not in k['threads'] and 'below' not in k['cpu']\n"
		      "assert [n for n in k if 'rules' in k[n]['unwind']] == "
		      "['cpu', 'threadcreate', 'threads', 'faults', 'custom', 'fds']\n"
		      "assert k['threads']['snapshot_ns'] == 7654321\n"
		      "assert [n for n in k if 'period_ns' in k[n]] == ['cpu']\n"
		      "assert 'threads_at_start' not in k['threadcreate']\n"));
	report.stats.threads_at_start = 17;
	write_stats();
	assert_true(holds("assert s['kinds']['threadcreate']['threads_at_start'] == 17\n"));
}

static void test_no_kind(void **state)
{
	(void)state;
	if (!have_python())
		skip();
	opts.kinds[BPFPROF_CPU] = false;
	write_stats();
	assert_true(holds("assert s['kinds'] == {} and s['symbols']['locations'] == 0"));
}

/* Names come from file names of other people. */
static void test_hostile_names(void **state)
{
	static const struct {
		const char *target, *want; /* a Python expression, or NULL: only to be readable */
	} rows[] = {
		{ "command:a\"b", "'command:a\"b'" },
		{ "command:a\\", "'command:a\\\\'" },
		{ "command:\"}{\"x\":1", "'command:\"}{\"x\":1'" },
		{ "command:\xc3\xbc\xe2\x82\xac", "'command:\\u00fc\\u20ac'" },
		{ "command:\xf0\x9f\x90\x9d", "'command:\\U0001f41d'" },
		{ "command:\n\r\t\b\x01\x1b[31m", NULL },
		{ "command:\xff\xfe\x80", NULL },
		{ "command:\xc3", NULL },
		{ "command:\xed\xa0\x80", NULL }, /* a surrogate */
		{ "command:\x7f", NULL },
		{ "command:\xc2\x85\xe2\x80\xa8", NULL }, /* line ends of Unicode */
		{ "", "''" },
	};
	char script[256], *longest;

	(void)state;
	if (!have_python())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		report.target = rows[i].target;
		write_stats();
		snprintf(script, sizeof(script),
			 "assert len(text.splitlines()) == 1\n"
			 "assert all(ord(c) >= 32 for c in s['target'])\n"
			 "assert %s",
			 rows[i].want ? "s['target'] == " : "True");
		if (rows[i].want)
			strncat(script, rows[i].want, sizeof(script) - strlen(script) - 1);
		if (!holds(script))
			fail_msg("row %zu is not read back", i);
	}
	/* longer than any buffer, of what has to be escaped, ending anywhere within a character */
	for (size_t pad = 0; pad < 4; pad++) {
		longest = calloc(1, 9000);
		memset(longest, 'x', pad);
		for (size_t n = pad; n < 8000; n += 3)
			memcpy(longest + n, pad % 2 ? "\"\\\"" : "\xe2\x82\xac", 3);
		report.target = longest;
		write_stats();
		assert_true(holds("assert len(s['target']) > 300"));
		free(longest);
	}
}

static struct profile *profile_of(enum bpfprof_kind kind, const int64_t *values)
{
	const struct kind *k = &kinds[kind];
	struct profile *p = profile__new(k->value_types, k->value_cnt, k->period_type, 1);

	assert_non_null(p);
	(void)profile__add_sample(p, NULL, 0, NULL, 0, values);
	return p;
}

static struct profile *new_profile(void)
{
	return profile_of(BPFPROF_CPU, (const int64_t[]){ 1000, 10101010000 });
}

static bool has_comment(const struct profile *p, const char *part)
{
	for (size_t i = 0; i < p->comment_cnt; i++)
		if (strstr(strtab__get(p->strings, p->comments[i]), part))
			return true;
	return false;
}

static void test_comments(void **state)
{
	struct collect_account *a = &report.accounts[BPFPROF_CPU];
	struct profile *p = new_profile();
	char part[128];

	(void)state;
	assert_non_null(p);
	assert_int_equal(report_comment(&report, BPFPROF_CPU, p), 0);
	assert_true(has_comment(p, "cpu of pid:1234, event cpu-clock, 99 Hz, 2 CPUs"));
	snprintf(part, sizeof(part), "%llu seen, %llu recorded, 55 lost",
		 (unsigned long long)a->seen, (unsigned long long)a->recorded);
	assert_true(has_comment(p, part));
	assert_true(has_comment(p, "lost 1: the ring to user space was full"));
	assert_true(has_comment(p, "945 whole (94.50 %), 55 cut short"));
	assert_true(has_comment(p, "cut short 2: no unwind table and no frame pointer"));
	assert_true(has_comment(
		p, "not named by it: 13 pieces that are not what the file has, 14 that"));
	profile__free(p);

	/* what did not happen is not spoken of; copies that were proved are as good as the file */
	p = new_profile();
	memset(a, 0, sizeof(*a));
	report.files.code.copies.differ = report.files.code.copies.unread = 0;
	assert_int_equal(report_comment(&report, BPFPROF_CPU, p), 0);
	assert_true(has_comment(p, "0 seen, 0 recorded, 0 lost"));
	assert_true(has_comment(p, "0 whole (100.00 %), 0 cut short"));
	assert_false(has_comment(p, "the ring"));
	assert_int_equal(p->comment_cnt, 3);
	profile__free(p);
}

/* Standard error of report_summary(), for the caller to free. */
static char *summary_of(enum bpfprof_kind kind, struct profile *p, const char *path)
{
	int saved = dup(STDERR_FILENO);
	FILE *f = fopen(toolrun_path("stderr"), "w");
	char *text;
	size_t sz;

	fflush(stderr);
	dup2(fileno(f), STDERR_FILENO);
	report_summary(&report, kind, p, path);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	fclose(f);
	text = toolrun_read(toolrun_path("stderr"), &sz);
	text[sz] = '\0';
	return text;
}

static char *summary(struct profile *p, const char *path)
{
	return summary_of(BPFPROF_CPU, p, path);
}

/* The line of each kind reads as a sentence. */
static void test_summary_of_kinds(void **state)
{
	static const struct {
		enum bpfprof_kind kind;
		int64_t values[KIND_MAX_VALUES];
		const char *line;
	} rows[] = {
		{ BPFPROF_CPU, { 1, 1234567890 }, ": 9 samples, 1.23 s of CPU, 100.00 %" },
		{ BPFPROF_HEAP,
		  { 1, 2048, 1, 1000 },
		  ": 9 samples, 2.00 KiB allocated, 1000 B in use, 100.00 %" },
		{ BPFPROF_BLOCK,
		  { 340, 1204000000 },
		  ": 9 samples, 340 contentions, 1.20 s of delay, 100.00 %" },
		{ BPFPROF_MUTEX, { 2, 12345 }, ": 9 samples, 2 contentions, 12.35 us of delay, " },
		{ BPFPROF_BLOCK, { 2, 0 }, ": 9 samples, 2 contentions, 0.00 s of delay, " },
		{ BPFPROF_OFFCPU,
		  { 70000, 99000000 },
		  ": 9 samples, 70000 waits, 99 ms off the CPU, " },
		{ BPFPROF_THREADCREATE, { 1000 }, ": 9 samples, 1000 threads created, 100.00 %" },
		{ BPFPROF_THREADS, { 200 }, ": 9 samples, 200 threads, 100.00 %" },
	};

	(void)state;
	report.stats.heap.method = "session";
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct profile *p = profile_of(rows[i].kind, rows[i].values);
		char *text;

		report.accounts[rows[i].kind] = (struct collect_account){
			.seen = 9, .recorded = 9, .stacks[BPFPROF_STACK_complete] = 9
		};
		text = summary_of(rows[i].kind, p, "x.pb.gz");
		if (!strstr(text, rows[i].line))
			fail_msg("row %zu: '%s'", i, text);
		free(text);
		profile__free(p);
	}
}

/* A wait, memory and threads count at what is the program's own, and the table says so; CPU time
 * counts where it is spent. */
static void test_summary_counts_at_own(void **state)
{
	(void)state;
	report.stats.heap.method = "session";
	for (int kind = 0; kind < BPFPROF_NR_KINDS; kind++) {
		const struct kind *k = &kinds[kind];
		struct profile *p = profile__new(k->value_types, k->value_cnt, k->period_type, 1);
		struct profile_mapping app = { .filename = profile__string(p, "/srv/app") };
		const char *const names[] = { "__futex_abstimed_wait_common64", "worker" };
		uint32_t locs[2];
		char *text, *row;

		report.accounts[kind] = (struct collect_account){ .seen = 1, .recorded = 1 };
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			struct profile_function f = { .name = profile__string(p, names[i]) };
			struct profile_line line = { 0 };

			f.system_name = f.name;
			line.function = profile__add_function(p, &f);
			locs[i] = profile__add_location(p, profile__add_mapping(p, &app), i);
			assert_int_equal(profile__set_lines(p, locs[i], &line, 1), 0);
		}
		profile__add_sample(p, locs, 2, NULL, 0, (const int64_t[]){ 1, 1, 1, 1 });
		text = summary_of(kind, p, "x.pb.gz");
		row = strstr(text, "100%   100%");
		assert_non_null(row);
		assert_int_equal(!!strstr(text, "its innermost function that is no library's"),
				 kind != BPFPROF_CPU);
		assert_int_equal(!!strstr(text, names[0]), kind == BPFPROF_CPU);
		*strchr(row, '\n') = '\0';
		assert_non_null(strstr(row, names[kind != BPFPROF_CPU]));
		free(text);
		profile__free(p);
	}
}

/* What was left out, and how many threads there were, for people: in the file and at the end. */
static void test_notes_of_waits(void **state)
{
	static const struct {
		enum bpfprof_kind kind;
		bool given;
		uint64_t min_wait, rate, below, below_ns, limited_ns, limit;
		const char *says[2];
		const char * not ;
	} rows[] = {
		{ .kind = BPFPROF_BLOCK,
		  .says = { "block of pid:1234, waits of 1 us and more, 2 CPUs" },
		  .not = "left out" },
		{ .kind = BPFPROF_OFFCPU,
		  .below = 3,
		  .says = { "offcpu of pid:1234, waits of any length, 2 CPUs" },
		  .not = "left out" },
		{ .kind = BPFPROF_MUTEX,
		  .given = true,
		  .min_wait = 2500000,
		  .below = 17,
		  .below_ns = 1234567,
		  .says = { "mutex of pid:1234, waits of 2.5 ms and more, 2 CPUs",
			    "left out: 17 waits shorter than 2.5 ms, together 1.235 ms" },
		  .not = "probability" },
		{ .kind = BPFPROF_BLOCK,
		  .given = true,
		  .rate = 100000,
		  .says = { "waits of any length",
			    "shorter than 100 us was recorded with the probability length / 100 "
			    "us" },
		  .not = "left out" },
		{ .kind = BPFPROF_BLOCK,
		  .limited_ns = 500000000,
		  .limit = 1250000,
		  .says = { "waits of 1 us and more",
			    "to stay within --wait-budget 2, 5.0 % of the time a wait shorter than "
			    "a limit, 1.25 ms on average, was" },
		  .not = "left out" },
		{ .kind = BPFPROF_THREADCREATE,
		  .says = { "threadcreate of pid:1234, 2 CPUs", "threads alive at the start: 17" },
		  .not = "waits" },
		{ .kind = BPFPROF_THREADS,
		  .says = { "threads of pid:1234, 2 CPUs", "read within 12.3 ms" },
		  .not = "waits" },
	};

	(void)state;
	report.stats.snapshot_ns = 12345678;
	report.stats.threads_at_start = 17;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct profile *p = profile_of(rows[i].kind, (const int64_t[]){ 1, 1 });
		char *text;

		opts.min_wait_given = rows[i].given;
		opts.min_wait_ns = rows[i].min_wait;
		opts.wait_rate_ns = rows[i].rate;
		opts.wait_budget = 2;
		report.stats.limited_ns = rows[i].limited_ns;
		report.stats.wait_rate_ns = rows[i].limit;
		report.accounts[rows[i].kind].below = rows[i].below;
		report.accounts[rows[i].kind].below_ns = rows[i].below_ns;
		assert_int_equal(report_comment(&report, rows[i].kind, p), 0);
		text = summary_of(rows[i].kind, p, "x.pb.gz");
		for (size_t j = 0; j < 2 && rows[i].says[j]; j++) {
			if (!has_comment(p, rows[i].says[j]))
				fail_msg("row %zu: no comment '%s'", i, rows[i].says[j]);
			if (j)
				assert_non_null(strstr(text, rows[i].says[j]));
		}
		assert_false(has_comment(p, rows[i].not ));
		assert_null(strstr(text, rows[i].not ));
		free(text);
		profile__free(p);
	}
}

/* In the profile of a window, what is counted from the start of the run is said to be, and shares of
 * time are of that. */
/* A rate that was not kept, which chance does not explain. */
static void test_notes_of_rate(void **state)
{
	static const struct {
		uint32_t frequency;
		uint64_t cpu_ns, samples;
		const char *says;
	} rows[] = {
		{ 100000, 2000000000, 152000,
		  "100000 Hz were not kept: of 2.00 s of CPU time 1.52 s were sampled, 76000 Hz on "
		  "average" },
		{ 100000, 2000000000, 199000, NULL },
		{ 100000, 2000000000, 210000, NULL },
		{ 99, 2000000000, 160, NULL },
		{ 99, 20000000000, 1500, "of 20.00 s of CPU time 15.15 s" },
		/* not known */
		{ 99, 0, 5, NULL },
		{ 99, 0, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct profile *p = profile_of(BPFPROF_CPU, (const int64_t[]){ 1, 1 });

		report.stats.frequency = rows[i].frequency;
		report.stats.target_cpu_ns = rows[i].cpu_ns;
		report.stats.cpu_samples = rows[i].samples;
		assert_int_equal(report_comment(&report, BPFPROF_CPU, p), 0);
		assert_int_equal(has_comment(p, "not kept"), rows[i].says != NULL);
		assert_true(!rows[i].says || has_comment(p, rows[i].says));
		profile__free(p);
	}
}

static void test_notes_of_windows(void **state)
{
	struct profile *heap = profile_of(BPFPROF_HEAP, (const int64_t[]){ 1, 1, 0, 0 });
	struct profile *block = profile_of(BPFPROF_BLOCK, (const int64_t[]){ 1, 1 });

	(void)state;
	report.is_window = true;
	report.duration_ns = 1000000000;
	report.stats.heap = (struct heap_report){ .method = "multi",
						  .points = 3,
						  .hits = 77,
						  .cost_ns = 1,
						  .cpu_ns = 100,
						  .sliced = true,
						  .other_hits = 5000,
						  .other_ns = 4000000,
						  .attached_ns = 2500000000 };
	report.stats.limited_ns = 5000000000;
	opts.wait_budget = 1;
	assert_int_equal(report_comment(&report, BPFPROF_HEAP, heap), 0);
	assert_true(has_comment(heap,
				"77 hits, which took 1.00 % of the program's CPU time since "
				"the start of the run"));
	assert_true(has_comment(heap, "attached 25.0 % of the time only since the start"));
	assert_true(has_comment(heap, "others have hit the probes 5000 times, which took them 4"));
	assert_int_equal(report_comment(&report, BPFPROF_BLOCK, block), 0);
	assert_true(has_comment(block, "50.0 % of the time since the start of the run a wait"));
	profile__free(heap);
	profile__free(block);
}

static void test_summary(void **state)
{
	struct profile *p = new_profile();
	char *text;

	(void)state;
	text = summary(p, "evil\033[31m\n.pb.gz");
	assert_null(strchr(text, '\033'));
	assert_non_null(
		strstr(text, "1000 samples, 10.10 s of CPU, 94.50 % of stacks whole, 55 lost"));
	assert_non_null(strstr(text, "go tool pprof"));
	assert_non_null(strstr(text, "13 pieces that are not what the file has"));
	free(text);
	/* a pipe cannot be opened again */
	text = summary(p, "-");
	assert_non_null(strstr(text, "standard output: 1000 samples"));
	assert_null(strstr(text, "go tool pprof"));
	free(text);
	report.accounts[BPFPROF_CPU] = (struct collect_account){ .seen = 0 };
	text = summary(p, "empty.pb.gz");
	assert_non_null(strstr(text, "nothing ran"));
	free(text);
	log_set_level(LOG_ERROR);
	text = summary(p, "quiet.pb.gz");
	assert_string_equal(text, "");
	free(text);
	log_set_level(LOG_INFO);
	profile__free(p);
}

static void test_strict(void **state)
{
	static const struct {
		uint64_t seen, lost[BPFPROF_NR_LOST], whole, cut, events_lost, not_followed,
			untracked, unreached, late, unseen;
		const char *says; /* NULL: nothing is wrong */
	} rows[] = {
		{ .seen = 0 },
		{ .seen = 1000, .whole = 990, .cut = 10 },
		{ .seen = 1000,
		  .whole = 989,
		  .cut = 11,
		  .says = "heap: 11 of 1000 stacks cut short" },
		{ .seen = 50, .whole = 49, .cut = 1, .says = "heap: 1 of 50 stacks cut short" },
		{ .seen = 1000,
		  .lost = { [BPFPROF_LOST_ring_full] = 1 },
		  .whole = 999,
		  .says = "heap: 1 of 1000 samples lost (the ring to user space was full)" },
		{ .seen = 3,
		  .lost = { [BPFPROF_LOST_nested] = 1, [BPFPROF_LOST_no_memory] = 1 },
		  .whole = 1,
		  .says = "heap: 1 of 3 samples lost (the sampler interrupted itself); "
			  "heap: 1 of 3 samples lost (user space was out of memory)" },
		{ .seen = 5, .whole = 5, .events_lost = 2, .says = "process events lost 2 times" },
		{ .seen = 5,
		  .whole = 5,
		  .not_followed = 3,
		  .says = "3 child processes were not followed" },
		{ .seen = 5,
		  .whole = 5,
		  .untracked = 4,
		  .says = "heap: the frees of 4 samples were not followed" },
		{ .seen = 5, .whole = 5, .late = 3, .says = "heap: 3 processes were probed late" },
		{ .seen = 5, .whole = 5, .unseen = 1, .says = "heap: 1 libraries were not seen" },
		{ .seen = 0, .unreached = 2, .says = "heap: 2 processes could not be probed" },
	};
	struct collect_account *a = &report.accounts[BPFPROF_HEAP];
	char text[256], small[16];

	(void)state;
	/* what the CPU profile would have to say counts only where it is recorded */
	opts.kinds[BPFPROF_CPU] = false;
	opts.kinds[BPFPROF_HEAP] = true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		*a = (struct collect_account){ .seen = rows[i].seen,
					       .recorded = rows[i].whole + rows[i].cut,
					       .events_lost = rows[i].events_lost,
					       .not_followed = rows[i].not_followed };
		memcpy(a->lost, rows[i].lost, sizeof(a->lost));
		a->stacks[BPFPROF_STACK_complete] = rows[i].whole;
		a->stacks[BPFPROF_STACK_no_table] = rows[i].cut;
		report.stats.heap.untracked = rows[i].untracked;
		report.stats.heap.unreached = rows[i].unreached;
		report.stats.heap.late = rows[i].late;
		report.stats.heap.unseen = rows[i].unseen;
		assert_int_equal(report_strict(&report, text, sizeof(text)),
				 rows[i].says ? -ENODATA : 0);
		assert_string_equal(text, rows[i].says ? rows[i].says : "");
		assert_int_equal(report_strict(&report, small, sizeof(small)),
				 rows[i].says ? -ENODATA : 0);
		assert_true(strlen(small) < sizeof(small));
	}
}

static void test_kinds(void **state)
{
	char *text = NULL;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	(void)state;
	assert_int_equal(kinds_find("cpu", 3), BPFPROF_CPU);
	assert_int_equal(kinds_find("cpux", 3), BPFPROF_CPU);
	assert_int_equal(kinds_find("cpu", 2), -1);
	assert_int_equal(kinds_find("cpux", 4), -1);
	assert_int_equal(kinds_find("", 0), -1);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		kinds_print(f, i);
	fclose(f);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		const struct kind *k = &kinds[i];

		assert_non_null(strstr(text, k->name));
		assert_non_null(strstr(text, k->cost));
		assert_true(k->value_cnt >= 1 && k->value_cnt <= KIND_MAX_VALUES);
		assert_int_equal(strspn(k->name, "abcdefghijklmnopqrstuvwxyz"), strlen(k->name));
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_stats, setup),
		cmocka_unit_test_setup(test_identity, setup),
		cmocka_unit_test_setup(test_stats_of_waits, setup),
		cmocka_unit_test_setup(test_no_kind, setup),
		cmocka_unit_test_setup(test_hostile_names, setup),
		cmocka_unit_test_setup(test_comments, setup),
		cmocka_unit_test_setup(test_summary, setup),
		cmocka_unit_test_setup(test_summary_of_kinds, setup),
		cmocka_unit_test_setup(test_summary_counts_at_own, setup),
		cmocka_unit_test_setup(test_notes_of_waits, setup),
		cmocka_unit_test_setup(test_notes_of_rate, setup),
		cmocka_unit_test_setup(test_notes_of_windows, setup),
		cmocka_unit_test_setup(test_strict, setup),
		cmocka_unit_test_setup(test_kinds, setup),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
