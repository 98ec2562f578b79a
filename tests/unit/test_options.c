/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: what each option sets, and that every misuse is refused with one sentence that
 * names the thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "report/formats.h"
#include "kinds.h"
#include "options.h"
#include "options_table.h"

#define MAX_ARGS 40

static char err[256];

/* Parses "bpfprof" and these words, NULL-terminated. */
static int parse(struct options *o, const char *const *words)
{
	static char *argv[MAX_ARGS + 2];
	int argc = 1;

	argv[0] = (char *)"bpfprof";
	for (; words[argc - 1]; argc++) {
		assert_true(argc <= MAX_ARGS);
		argv[argc] = (char *)words[argc - 1];
	}
	argv[argc] = NULL;
	memset(err, 'x', sizeof(err));
	return options_parse(argc, argv, o, err, sizeof(err));
}

#define PARSE(o, ...) parse(o, (const char *const[]){ __VA_ARGS__, NULL })

/* A wrong command line, and what the sentence names. */
struct refused {
	const char *words[12];
	const char *named;
};

static void assert_refused(const struct refused *rows, size_t cnt)
{
	struct options o;

	for (size_t i = 0; i < cnt; i++)
		if (parse(&o, rows[i].words) != -EINVAL || !strstr(err, rows[i].named))
			fail_msg("row %zu: \"%s\" does not say: %s", i, err, rows[i].named);
}

/* names: of all kinds that are to be recorded, with a blank between two. */
static void assert_kinds(const struct options *o, const char *names)
{
	char text[256] = "";

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (o->kinds[i])
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 *text ? " " : "", kinds[i].name);
	assert_string_equal(text, names);
}

static void test_defaults(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "--pid", "1234"), 0);
	assert_int_equal(o.command, OPTIONS_RECORD);
	assert_int_equal(o.pids.cnt, 1);
	assert_int_equal(o.pids.ids[0], 1234);
	assert_false(o.all || o.follow || o.user_only || o.kernel_only);
	assert_null(o.argv);
	assert_null(o.cgroup);
	assert_null(o.comm);
	assert_null(o.output);
	assert_null(o.stats);
	assert_int_equal(o.tids.cnt, 0);
	assert_int_equal(o.duration_ns, 0);
	assert_int_equal(o.frequency, 99);
	assert_int_equal(o.event, OPTIONS_CPU_CLOCK);
	assert_string_equal(o.format->name, "pprof");
	assert_int_equal(o.log_level, LOG_INFO);
	assert_true(o.thread_labels);
	assert_kinds(&o, "cpu heap block threadcreate");
	assert_false(o.kinds_given);
	assert_int_equal(o.heap_rate, 524288);
	assert_true(o.heap_budget == 1);
	assert_true(o.wait_budget == 1);
	assert_int_equal(o.min_age_ns, 0);
	assert_false(o.debuginfod);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-p1", "--debuginfod"), 0);
	assert_int_equal(o.debuginfod_wait_ns, 10 * NSEC_PER_SEC);
	assert_string_equal(o.debuginfod_cache, "/var/cache/bpfprof");
	options_done(&o);
	assert_int_equal(PARSE(&o, "-p1", "-P", "heap"), 0);
	assert_true(o.heap_budget == 5);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-a"), 0);
	assert_kinds(&o, "cpu block threadcreate");
	options_done(&o);
}

static void test_heap(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "-p1", "-P", "heap", "--heap-rate", "64k", "--heap-budget",
			       "2.5%", "--min-age", "10s"),
			 0);
	assert_kinds(&o, "heap");
	assert_true(o.kinds_given);
	assert_int_equal(o.heap_rate, 65536);
	assert_true(o.heap_budget == 2.5);
	assert_int_equal(o.min_age_ns, 10000000000);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-p1", "-K"), 0);
	assert_kinds(&o, "cpu");
	options_done(&o);
	assert_int_equal(PARSE(&o, "-p1", "--heap-rate", "1", "--heap-budget", "100"), 0);
	assert_int_equal(o.heap_rate, 1);
	assert_true(o.heap_budget == 100);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-a", "-P", "heap", "--heap-rate", "4095M"), 0);
	assert_int_equal(o.heap_rate, 4095ULL << 20);
	options_done(&o);
	/* an agent may have it for a target that comes later */
	assert_int_equal(PARSE(&o, "agent", "-P", "offcpu", "-F", "7", "--event", "cpu-clock",
			       "--heap-rate", "1", "--heap-budget", "100"),
			 0);
	options_done(&o);
	assert_int_equal(PARSE(&o, "bench", "-P", "cpu,heap", "--aa", "--heap-rate", "1", "-F",
			       "97", "--", "true"),
			 0);
	options_done(&o);
}

static void test_custom(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(
		PARSE(&o, "-p1", "-P", "cpu,custom:a,b=add:f:g:ret,remove:f:h:arg1,threads"), 0);
	assert_kinds(&o, "cpu threads custom");
	assert_false(o.custom.all);
	assert_int_equal(custom_wanted__cnt(&o.custom), 2);
	assert_string_equal(o.custom.pairs[0].remove.function, "h");
	options_done(&o);
	assert_int_equal(PARSE(&o, "-p1", "-P", "custom", "-P", "heap"), 0);
	assert_kinds(&o, "heap custom");
	assert_true(o.custom.all);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-p1", "-o", "-", "-P", "custom:a"), 0);
	options_done(&o);
	assert_int_equal(PARSE(&o, "list", "--pid", "7"), 0);
	assert_int_equal(o.pids.ids[0], 7);
	options_done(&o);
}

static void test_waits(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = {
		{ "0", 0 },
		{ "0us", 0 },
		{ "0.0s", 0 },
		{ "10us", 10000 },
		{ "1ns", 1 },
		{ "2.5ms", 2500000 },
		{ "3", 3 * NSEC_PER_SEC },
	};
	struct options o;

	(void)state;
	/* as the issue has them, and nothing for what measures no waits */
	assert_int_equal(PARSE(&o, "-p1", "-P", "threads,offcpu,block,mutex,threadcreate"), 0);
	assert_kinds(&o, "block mutex offcpu threadcreate threads");
	assert_false(o.min_wait_given);
	assert_int_equal(o.wait_rate_ns, 0);
	assert_int_equal(options_min_wait_ns(&o, BPFPROF_BLOCK), 1000);
	assert_int_equal(options_min_wait_ns(&o, BPFPROF_MUTEX), 1000);
	assert_int_equal(options_min_wait_ns(&o, BPFPROF_OFFCPU), 0);
	assert_int_equal(options_min_wait_ns(&o, BPFPROF_THREADS), 0);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-a", "-P", "offcpu,block"), 0);
	assert_int_equal(options_min_wait_ns(&o, BPFPROF_BLOCK), 1000);
	assert_int_equal(options_min_wait_ns(&o, BPFPROF_OFFCPU), 1000000);
	options_done(&o);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		assert_int_equal(PARSE(&o, "-a", "--min-wait", times[i].text), 0);
		assert_true(o.min_wait_given);
		assert_int_equal(options_min_wait_ns(&o, BPFPROF_BLOCK), times[i].ns);
		assert_int_equal(options_min_wait_ns(&o, BPFPROF_MUTEX), times[i].ns);
		assert_int_equal(options_min_wait_ns(&o, BPFPROF_OFFCPU), times[i].ns);
		assert_int_equal(options_min_wait_ns(&o, BPFPROF_CPU), 0);
		options_done(&o);
	}
	assert_int_equal(PARSE(&o, "-p1", "-P", "mutex", "--wait-rate", "100us"), 0);
	assert_int_equal(o.wait_rate_ns, 100000);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-p1", "--wait-budget", "0.5%"), 0);
	assert_true(o.wait_budget == 0.5);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-p1", "--wait-rate", "4s"), 0);
	options_done(&o);
	/* what has kernel frames may be asked for without the others */
	assert_int_equal(PARSE(&o, "-p1", "-K", "-P", "offcpu,threads"), 0);
	options_done(&o);
}

static void test_long_options(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "record", "--pid=7,8", "--follow", "--tid", "9,10", "--cgroup",
			       "/a/b", "--comm", "ngin?*", "--user", "--profile", "cpu",
			       "--duration", "500ms", "--frequency", "997", "--event", "cycles",
			       "--output", "out", "--format", "folded", "--stats", "-",
			       "--no-labels", "--strict", "--ready-fd", "5", "--verbose",
			       "--debuginfod", "--debuginfod-wait", "1m", "--debuginfod-cache",
			       "/c"),
			 0);
	assert_int_equal(o.pids.cnt, 2);
	assert_int_equal(o.pids.ids[1], 8);
	assert_true(o.follow);
	assert_int_equal(o.tids.cnt, 2);
	assert_int_equal(o.tids.ids[0], 9);
	assert_string_equal(o.cgroup, "/a/b");
	assert_string_equal(o.comm, "ngin?*");
	assert_true(o.user_only);
	assert_int_equal(o.duration_ns, 500000000);
	assert_int_equal(o.frequency, 997);
	assert_int_equal(o.event, OPTIONS_CYCLES);
	assert_string_equal(o.output, "out");
	assert_string_equal(o.format->name, "folded");
	assert_string_equal(o.stats, "-");
	assert_false(o.thread_labels);
	assert_true(o.strict);
	assert_int_equal(o.ready_fd, 5);
	assert_true(o.debuginfod);
	assert_int_equal(o.debuginfod_wait_ns, 60 * NSEC_PER_SEC);
	assert_string_equal(o.debuginfod_cache, "/c");
	assert_int_equal(o.log_level, LOG_DEBUG);
	options_done(&o);
}

static void test_short_options(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "-a", "-t5", "-K", "-Pcpu", "-d", "2m", "-F1000000", "-o", "-",
			       "-f", "text", "-q"),
			 0);
	assert_true(o.all);
	assert_true(o.kernel_only);
	assert_false(o.user_only);
	assert_int_equal(o.tids.ids[0], 5);
	assert_int_equal(o.duration_ns, 120 * NSEC_PER_SEC);
	assert_int_equal(o.frequency, OPTIONS_MAX_FREQUENCY);
	assert_string_equal(o.output, "-");
	assert_string_equal(o.format->name, "text");
	assert_int_equal(o.log_level, LOG_ERROR);
	options_done(&o);
}

static void test_lists_without_repetition(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "-p", "3,1,3", "-p", "1,2", "-P", "cpu,cpu"), 0);
	assert_int_equal(o.pids.cnt, 3);
	assert_int_equal(o.pids.ids[0], 3);
	assert_int_equal(o.pids.ids[1], 1);
	assert_int_equal(o.pids.ids[2], 2);
	options_done(&o);
}

static void test_list_limit(void **state)
{
	char *list = malloc(8 * (BPFPROF_MAX_FILTERED + 1)), *end = list;
	struct options o;

	(void)state;
	assert_non_null(list);
	for (int i = 1; i <= BPFPROF_MAX_FILTERED; i++)
		end += sprintf(end, "%s%d", i > 1 ? "," : "", i);
	assert_int_equal(PARSE(&o, "-p", list), 0);
	assert_int_equal(o.pids.cnt, BPFPROF_MAX_FILTERED);
	options_done(&o);
	sprintf(end, ",%d", BPFPROF_MAX_FILTERED + 1);
	assert_int_equal(PARSE(&o, "-p", list), -EINVAL);
	assert_non_null(strstr(err, "at most"));
	assert_null(o.pids.ids);
	free(list);
}

/* The command's own options are the command's, whatever they look like. */
static void test_command(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "-F", "10", "--", "./benchmark", "-F", "abc", "--", "--pid"), 0);
	assert_int_equal(o.frequency, 10);
	assert_non_null(o.argv);
	assert_string_equal(o.argv[0], "./benchmark");
	assert_string_equal(o.argv[1], "-F");
	assert_string_equal(o.argv[3], "--");
	assert_string_equal(o.argv[4], "--pid");
	assert_null(o.argv[5]);
	assert_int_equal(o.pids.cnt, 0);
	assert_true(o.follow);
	options_done(&o);

	/* without its children, where these could not be told from it */
	assert_int_equal(PARSE(&o, "-f", "debug1", "--", "./benchmark"), 0);
	assert_false(o.follow);
	options_done(&o);
	assert_int_equal(PARSE(&o, "-f", "debug2", "-P", "threads", "-p", "1"), 0);
	options_done(&o);

	assert_int_equal(PARSE(&o, "record", "--", "list"), 0);
	assert_string_equal(o.argv[0], "list");
	options_done(&o);
}

static void test_commands(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "check"), 0);
	assert_int_equal(o.command, OPTIONS_CHECK);
	assert_int_equal(PARSE(&o, "list", "-q"), 0);
	assert_int_equal(o.command, OPTIONS_LIST);
	assert_int_equal(o.log_level, LOG_ERROR);
	assert_int_equal(PARSE(&o, "--help"), 0);
	assert_int_equal(o.command, OPTIONS_HELP);
	assert_int_equal(PARSE(&o, "help"), 0);
	assert_int_equal(o.command, OPTIONS_MANUAL);
	assert_int_equal(o.help, OPTIONS_HELP);
	assert_int_equal(PARSE(&o, "help", "merge"), 0);
	assert_int_equal(o.command, OPTIONS_MANUAL);
	assert_int_equal(o.help, OPTIONS_MERGE);
	assert_int_equal(PARSE(&o, "check", "-h"), 0);
	assert_int_equal(o.command, OPTIONS_HELP);
	assert_int_equal(PARSE(&o, "--version"), 0);
	assert_int_equal(o.command, OPTIONS_VERSION);
	/* help is help, even with an incomplete or contradictory rest, and forgets the lists it has
	 * read */
	assert_int_equal(PARSE(&o, "-p", "1", "-a", "--help", "--nonsense"), 0);
	assert_int_equal(o.command, OPTIONS_HELP);
	options_done(&o);
}

static const struct {
	const char *words[8];
	const char *named; /* what the sentence has to contain */
} bad[] = {
	{ { NULL }, "nothing to profile" },
	{ { "record", NULL }, "nothing to profile" },
	{ { "-d", "3", NULL }, "nothing to profile" },
	{ { "-t", "3", NULL }, "add --all or --pid" },
	{ { "--comm", "x", NULL }, "add --all or --pid" },
	{ { "--follow", NULL }, "nothing to profile" },
	{ { "--follow", "-a", NULL }, "--follow" },
	{ { "-f", "debug1", "-a", NULL },
	  "--format debug1 is of one process: it does not go with --all" },
	{ { "-f", "legacy", "-p", "1,2", NULL },
	  "--format legacy is of one process: it does not go with several ids of --pid" },
	{ { "-f", "legacy", "-p", "1", "--follow", NULL }, "it does not go with --follow" },
	{ { "-f", "legacy", "--follow", "--", "true", NULL }, "it does not go with --follow" },
	{ { "-f", "debug2", "-a", "-P", "threads", NULL }, "--all" },
	{ { "-f", "debug2", "-p", "1", NULL },
	  "--format debug2 is of threads, and not of cpu: give -P threads, or the format debug1" },
	{ { "-f", "debug2", "-p", "1", "-P", "threads,heap", NULL }, "and not of heap" },
	{ { "-p", "0", NULL }, "'0'" },
	{ { "-p", "-1", NULL }, "'-1'" },
	{ { "-p", "+1", NULL }, "'+1'" },
	{ { "-p", "1;ls", NULL }, "'1;ls'" },
	{ { "-p", "", NULL }, "--pid" },
	{ { "-p", "1,", NULL }, "--pid: ''" },
	{ { "-p", ",1", NULL }, "--pid: ''" },
	{ { "-p", "1 ", NULL }, "'1 '" },
	{ { "-p", "0x10", NULL }, "'0x10'" },
	{ { "-p", "2147483648", NULL }, "'2147483648'" },
	{ { "-p", "99999999999999999999999999", NULL }, "'9999" },
	{ { "-p", "000000000000001;ls", NULL }, ";ls'" },
	{ { "-a", "-t", "7,x", NULL }, "--tid: 'x'" },
	{ { "-p", "1", "-a", NULL }, "--pid and --all" },
	{ { "-p", "1", "--", "ls", NULL }, "--pid" },
	{ { "-a", "--", "ls", NULL }, "--all" },
	{ { "--", NULL }, "--" },
	{ { "-a", "--", NULL }, "--" },
	{ { "ls", NULL }, "'ls'" },
	{ { "-a", "chekc", NULL }, "'chekc'" },
	{ { "-o", "--", "ls", NULL }, "'ls'" },
	{ { "-a", "-F", "0", NULL }, "'0'" },
	{ { "-a", "-F", "abc", NULL }, "'abc'" },
	{ { "-a", "-F", "-5", NULL }, "'-5'" },
	{ { "-a", "-F", "99.5", NULL }, "'99.5'" },
	{ { "-a", "-F", "1e9", NULL }, "'1e9'" },
	{ { "-a", "-F", "1000000000", NULL }, "1000000" },
	{ { "-a", "-F", "1000001", NULL }, "1000001" },
	{ { "-a", "-d", "0", NULL }, "'0'" },
	{ { "-a", "-d", "-3", NULL }, "'-3'" },
	{ { "-a", "-d", "", NULL }, "--duration" },
	{ { "-a", "-d", "5x", NULL }, "'5x'" },
	{ { "-a", "-d", "nan", NULL }, "'nan'" },
	{ { "-a", "-d", "99999999999999999999", NULL }, "99999999999999999999" },
	{ { "-a", "-U", "-K", NULL }, "--user and --kernel" },
	{ { "-a", "-P", "heap2", NULL }, "'heap2': choose from cpu" },
	{ { "-a", "-P", "cpu,", NULL }, "''" },
	{ { "-a", "-P", "cp", NULL }, "'cp'" },
	{ { "-a", "-f", "svg", NULL }, "'svg'" },
	{ { "-a", "--event", "instructions", NULL }, "'instructions'" },
	{ { "-a", "-o", "", NULL }, "--output" },
	{ { "-a", "--debuginfod-wait", "5s", NULL }, "--debuginfod-wait goes with --debuginfod" },
	{ { "-a", "--debuginfod-cache", "/c", NULL }, "--debuginfod-cache goes with" },
	{ { "-a", "--debuginfod", "--debuginfod-cache", "", NULL }, "--debuginfod-cache" },
	{ { "-a", "--debuginfod", "--debuginfod-wait", "0", NULL }, "'0'" },
	{ { "-a", "--debuginfod", "--debuginfod-wait", "2h", NULL }, "'2h'" },
	{ { "-a", "-K", "-P", "cpu", "--debuginfod", NULL }, "--kernel" },
	{ { "-a", "--stats", "", NULL }, "--stats" },
	{ { "-a", "-P", "cpu", "-o", "-", "--stats", "-", NULL }, "--stats" },
	{ { "-a", "-o", "-", NULL }, "standard output takes one profile" },
	{ { "-a", "--cgroup", "", NULL }, "--cgroup" },
	{ { "-a", "--comm", "", NULL }, "--comm" },
	{ { "-a", "--comm", "sixteen-bytes-xx", NULL }, "15 bytes" },
	{ { "-a", "-x", NULL }, "'-x'" },
	{ { "-a", "-qx", NULL }, "'-x'" },
	{ { "--nonsense", NULL }, "'--nonsense'" },
	{ { "--heap-rat0", "1", NULL }, "'--heap-rat0'" },
	{ { "-p", "1", "--heap-rate", "0", NULL }, "--heap-rate: '0' is no number" },
	{ { "-p", "1", "--heap-rate", "4G", NULL },
	  "--heap-rate: '4G' is no number of bytes from 1 on and below 4G" },
	{ { "-p", "1", "--heap-rate", "1kk", NULL }, "--heap-rate: '1kk' is no number" },
	{ { "-p", "1", "--heap-rate", "-1", NULL }, "--heap-rate: '-1' is no number" },
	{ { "-p", "1", "--heap-budget", "0", NULL }, "--heap-budget: '0' is no percentage" },
	{ { "-p", "1", "--heap-budget", "101", NULL }, "--heap-budget: '101'" },
	{ { "-p", "1", "--heap-budget", "nan", NULL }, "--heap-budget: 'nan'" },
	{ { "-p", "1", "--heap-budget", "5x", NULL }, "--heap-budget: '5x'" },
	{ { "-p", "1", "--min-age", "0", NULL }, "--min-age: '0' is out of range" },
	{ { "-a", "--min-age", "1s", NULL }, "--min-age goes with the heap profile: add -P heap" },
	{ { "-a", "--heap-rate", "64k", NULL },
	  "--heap-rate goes with the heap profile: add -P heap" },
	/* also what is the default anyway */
	{ { "-p", "1", "-P", "cpu", "--heap-budget", "5", NULL },
	  "--heap-budget goes with the heap profile: add -P heap" },
	{ { "-p", "1", "-P", "heap,threads", "-F", "99", NULL },
	  "--frequency goes with the cpu profile: add -P cpu" },
	{ { "-P", "offcpu", "--event", "cpu-clock", "--", "true", NULL },
	  "--event goes with the cpu profile: add -P cpu" },
	{ { "bench", "--aa", "--heap-rate", "1", "--", "true", NULL },
	  "--heap-rate goes with the heap profile: add -P heap" },
	{ { "bench", "--aa", "-Pheap", "-F", "997", "--", "true", NULL },
	  "--frequency goes with the cpu profile: add -P cpu" },
	{ { "-p", "1", "--min-wait", "x", NULL }, "--min-wait: 'x' is no time" },
	{ { "-p", "1", "--min-wait", "", NULL }, "--min-wait: '' is no time" },
	{ { "-p", "1", "--min-wait", "-1us", NULL }, "--min-wait: '-1us' is no time" },
	{ { "-p", "1", "--min-wait", "0x1", NULL }, "--min-wait: '0x1' is no time" },
	{ { "-p", "1", "--min-wait", "0.0000000001", NULL }, "'0.0000000001' is no time" },
	{ { "-p", "1", "--min-wait", "99999999999999999999", NULL }, "--min-wait: '9999" },
	{ { "-p", "1", "-P", "cpu", "--min-wait", "0", NULL }, "--min-wait goes with the block" },
	{ { "-p", "1", "--wait-rate", "0", NULL }, "--wait-rate: '0' is no time above 0" },
	{ { "-p", "1", "--wait-rate", "5s", NULL }, "--wait-rate: '5s' is no time above 0 and up" },
	{ { "-p", "1", "--wait-rate", "us", NULL }, "--wait-rate: 'us' is no time" },
	{ { "-p", "1", "-P", "threads", "--wait-rate", "1ms", NULL }, "--wait-rate goes with" },
	{ { "-p", "1", "--wait-budget", "0", NULL }, "--wait-budget: '0' is no percentage" },
	{ { "-p", "1", "-P", "cpu", "--wait-budget", "1", NULL }, "--wait-budget goes with" },
	{ { "-p", "1", "-K", "-P", "block", NULL },
	  "--kernel: the block profile has no kernel frames" },
	{ { "-p", "1", "-K", "-P", "cpu,mutex", NULL }, "--kernel: the mutex profile has no" },
	{ { "-p", "1", "-K", "-P", "threadcreate", NULL }, "--kernel: the threadcreate profile" },
	{ { "-p", "1", "-K", "-P", "heap", NULL },
	  "--kernel: the heap profile has no kernel frames" },
	{ { "--al=1", NULL }, "--all takes no argument" },
	{ { "-p", NULL }, "--pid needs an argument" },
	{ { "-a", "--duration", NULL }, "--duration needs an argument" },
	{ { "-a", "-F", NULL }, "--frequency needs an argument" },
	{ { "check", "-a", NULL }, "unknown option '-a': see bpfprof check --help" },
	{ { "check", "--pid", "1", NULL }, "'--pid': see bpfprof check --help" },
	{ { "help", "nothing", NULL }, "there is no command 'nothing'" },
	{ { "help", "diff", "view", NULL }, "help takes one command" },
	{ { "list", "x", NULL }, "list takes no arguments" },
	{ { "bench", "--aa", "-P", "custom", "--", "true", NULL }, "bench compares no custom" },
	{ { "bench", "--aa", "-P", "fds", "--", "true", NULL }, "bench compares no fds" },
	{ { "bench", "--aa", "-P", "threads", "--", "true", NULL }, "bench compares no threads" },
	{ { "list", "-p", "1,2", NULL }, "list takes one process" },
	{ { "list", "-F", "9", NULL }, "unknown option '-F': see bpfprof list --help" },
	{ { "-a", "-P", "custom", NULL }, "custom profiles are recorded of processes" },
	{ { "-a", "-P", "fds", NULL }, "fds profiles are recorded of processes" },
	{ { "agent", "-P", "custom:a", NULL }, "custom profiles are recorded of processes" },
	{ { "-p", "1", "-o", "-", "-P", "custom", NULL }, "standard output takes one" },
	{ { "-p", "1", "-P", "custom:a\n", NULL }, "is no name of a custom profile" },
	{ { "-p", "1", "-P", "a=add:x", NULL }, "is no pair of functions" },
};

static void test_bad_input(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct options o;

		if (parse(&o, bad[i].words) != -EINVAL)
			fail_msg("row %zu was accepted, expected: %s", i, bad[i].named);
		if (!strstr(err, bad[i].named))
			fail_msg("row %zu: \"%s\" does not say: %s", i, err, bad[i].named);
		assert_null(strchr(err, '\n'));
		assert_null(o.pids.ids);
		assert_null(o.tids.ids);
	}
}

/* A long argument is cut within the sentence, not behind it. */
static void test_long_argument(void **state)
{
	char arg[4096];
	struct options o;

	(void)state;
	memset(arg, 'y', sizeof(arg) - 1);
	arg[sizeof(arg) - 1] = 0;
	assert_int_equal(PARSE(&o, "-a", "-f", arg), -EINVAL);
	assert_true(strlen(err) < sizeof(err));
	assert_int_equal(PARSE(&o, "-a", "-P", arg), -EINVAL);
	assert_non_null(strstr(err, "choose from"));
	assert_int_equal(PARSE(&o, "-a", "--comm", arg), -EINVAL);
	assert_int_equal(PARSE(&o, "-p", arg), -EINVAL);
}

/* Two command lines ask for the same. named: one of them names kinds, which have a budget of their
 * own for the heap. */
static void assert_same(const struct options *a, const struct options *b, bool named)
{
	assert_memory_equal(a->kinds, b->kinds, sizeof(a->kinds));
	assert_int_equal(a->frequency, b->frequency);
	assert_int_equal(a->event, b->event);
	assert_int_equal(a->format, b->format);
	assert_int_equal(a->heap_rate, b->heap_rate);
	assert_true(named || a->heap_budget == b->heap_budget);
	assert_true(a->wait_budget == b->wait_budget);
	assert_int_equal(options_min_wait_ns(a, BPFPROF_BLOCK),
			 options_min_wait_ns(b, BPFPROF_BLOCK));
	assert_int_equal(a->wait_rate_ns, b->wait_rate_ns);
	assert_int_equal(a->min_age_ns, b->min_age_ns);
	assert_int_equal(a->duration_ns, b->duration_ns);
}

/* The parser knows each option of the table, by both names. */
static void test_table_parsed(void **state)
{
	(void)state;
	for (size_t i = 0; i < option_table(OPTIONS_RECORD)->cnt; i++) {
		const struct option_row *r = &option_table(OPTIONS_RECORD)->rows[i];
		char longs[64], shorts[] = { '-', (char)r->val, '\0' };
		struct options o;

		if (!r->name)
			continue;
		snprintf(longs, sizeof(longs), "--%s", r->name);
		for (int j = 0; j < 2; j++) {
			if (j && r->val >= OPT_CGROUP)
				continue;
			/* a wrong argument, or an operand: what is refused is another thing */
			if (!PARSE(&o, j ? shorts : longs, ""))
				options_done(&o);
			assert_null(strstr(err, "see bpfprof --help"));
		}
	}
}

/* The table's default of an option is the argument that changes nothing. */
static void test_table_defaults(void **state)
{
	size_t tried = 0;

	(void)state;
	for (size_t i = 0; i < option_table(OPTIONS_RECORD)->cnt; i++) {
		const struct option_row *r = &option_table(OPTIONS_RECORD)->rows[i];
		struct options given, left_out;
		char word[64];

		/* that of --output says how a name is made */
		if (!r->def || r->val == 'o')
			continue;
		snprintf(word, sizeof(word), "--%s", r->name);
		/* with which two others go */
		assert_int_equal(PARSE(&left_out, "--pid", "1", "--debuginfod"), 0);
		assert_int_equal(PARSE(&given, "--pid", "1", "--debuginfod", word, r->def), 0);
		assert_same(&left_out, &given, r->val == 'P');
		assert_int_equal(left_out.debuginfod_wait_ns, given.debuginfod_wait_ns);
		assert_string_equal(left_out.debuginfod_cache, given.debuginfod_cache);
		options_done(&left_out);
		options_done(&given);
		tried++;
	}
	assert_int_equal(tried, 10);
}

/* ---- the agent's ---- */

static void test_agent(void **state)
{
	static const struct refused refused[] = {
		{ { "agent", "x", NULL }, "'x'" },
		{ { "agent", "--", NULL }, "'--'" },
		{ { "agent", "-p", "1", NULL }, "see bpfprof agent --help" },
		{ { "agent", "--output", "x", NULL }, "see bpfprof agent --help" },
		{ { "agent", "--spool", NULL }, "--spool needs an argument: see bpfprof agent" },
		{ { "agent", "--spool", "", NULL }, "--spool" },
		{ { "agent", "--spool-size", "1000k", NULL }, "'1000k'" },
		{ { "agent", "--spool-size", "1T", NULL }, "'1T'" },
		{ { "agent", "--spool-size", "9223372036854775807G", NULL }, "--spool-size" },
		{ { "agent", "--window", "999ms", NULL }, "at least 1s" },
		{ { "agent", "-P", "nothing", NULL }, "'nothing'" },
		{ { "agent", "-P", "fds", NULL }, "whole machine: use bpfprof --pid" },
		{ { "agent", "--min-age", "5s", NULL }, "give a [target] profile = heap" },
		{ { "--spool", "x", NULL }, "see bpfprof --help" },
	};
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "agent"), 0);
	assert_int_equal(o.command, OPTIONS_AGENT);
	assert_true(o.all);
	assert_kinds(&o, "cpu offcpu threadcreate");
	assert_int_equal(o.frequency, 19);
	assert_int_equal(o.window_ns, 10000000000);
	assert_string_equal(o.spool, "/var/lib/bpfprof");
	assert_int_equal(o.spool_sz, 1 << 30);
	assert_int_equal(options_min_wait_ns(&o, BPFPROF_OFFCPU), 1000000);
	assert_true(o.wait_budget == 0.25);
	assert_false(o.own_samples);
	assert_int_equal(PARSE(&o, "agent", "--own-samples"), 0);
	assert_true(o.own_samples);
	assert_int_equal(PARSE(&o, "agent", "--spool", "d", "--spool-size", "2M", "-F", "7", "-P",
			       "cpu", "--window", "1s", "-d", "1h", "-q"),
			 0);
	assert_string_equal(o.spool, "d");
	assert_int_equal(o.spool_sz, 2 << 20);
	assert_int_equal(o.frequency, 7);
	assert_kinds(&o, "cpu");
	assert_int_equal(o.window_ns, 1000000000);
	assert_int_equal(o.duration_ns, 3600000000000);
	/* what runs all the time costs the same, named or not */
	assert_int_equal(PARSE(&o, "agent", "-P", "cpu,heap,block"), 0);
	assert_true(o.heap_budget == 1);
	assert_true(o.wait_budget == 0.25);
	assert_int_equal(PARSE(&o, "agent", "-h"), 0);
	assert_int_equal(o.command, OPTIONS_HELP);
	assert_int_equal(o.help, OPTIONS_AGENT);
	assert_int_equal(PARSE(&o, "-h"), 0);
	assert_int_equal(o.help, OPTIONS_RECORD);
	assert_refused(refused, ARRAY_SIZE(refused));
}

static void test_dump(void **state)
{
	static const struct refused refused[] = {
		{ { "agent", "--dump", NULL }, "--dump needs an argument: see bpfprof agent" },
		{ { "agent", "--dump", "0", NULL }, "'0'" },
		{ { "agent", "--dump", "soon", NULL }, "'soon'" },
		{ { "agent", "--dump", "5m", "x", NULL }, "'x'" },
		{ { "agent", "--dump", "5m", "--window", "1s", NULL }, "not with --window" },
		{ { "agent", "-P", "cpu", "--dump", "5m", NULL }, "not with --profile" },
		{ { "agent", "--dump", "5m", "--spool-size", "2M", NULL },
		  "not with --spool-size" },
		{ { "agent", "--dump", "5m", "--bad", NULL }, "see bpfprof agent --help" },
		{ { "--dump", "5m", NULL }, "see bpfprof --help" },
	};
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "agent", "--dump", "5m"), 0);
	assert_int_equal(o.command, OPTIONS_DUMP);
	assert_int_equal(o.dump_ns, 300000000000);
	assert_string_equal(o.spool, "/var/lib/bpfprof");
	assert_int_equal(PARSE(&o, "agent", "-q", "--spool", "d", "--dump", "90s", "-v"), 0);
	assert_int_equal(o.command, OPTIONS_DUMP);
	assert_int_equal(o.dump_ns, 90000000000);
	assert_string_equal(o.spool, "d");
	assert_int_equal(PARSE(&o, "agent", "--dump", "5m", "-h"), 0);
	assert_int_equal(o.command, OPTIONS_HELP);
	assert_int_equal(PARSE(&o, "agent", "--version", "--dump", "5m"), 0);
	assert_int_equal(o.command, OPTIONS_VERSION);
	assert_refused(refused, ARRAY_SIZE(refused));
}

/* ---- view and merge ---- */

static void test_merge(void **state)
{
	static const struct refused refused[] = {
		{ { "merge", NULL }, "nothing to add up" },
		{ { "merge", "-o", "x", NULL }, "nothing to add up" },
		{ { "merge", "--", NULL }, "nothing to add up" },
		{ { "merge", "x", NULL }, "--output is missing" },
		{ { "merge", "x", "-o", "", NULL }, "--output: the path is empty" },
		{ { "merge", "x", "-o", NULL }, "--output needs an argument: see bpfprof merge" },
		{ { "merge", "x", "-f", "text", NULL }, "see bpfprof merge --help" },
		{ { "merge", "x", "--pid", "1", NULL }, "see bpfprof merge --help" },
	};
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "merge", "a", "-o", "x", "b", "-q", "--", "-c"), 0);
	assert_int_equal(o.command, OPTIONS_MERGE);
	assert_string_equal(o.output, "x");
	assert_int_equal(o.log_level, LOG_ERROR);
	assert_string_equal(o.files[0], "a");
	assert_string_equal(o.files[1], "b");
	assert_string_equal(o.files[2], "-c");
	assert_null(o.files[3]);
	assert_int_equal(PARSE(&o, "merge", "-h"), 0);
	assert_int_equal(o.command, OPTIONS_HELP);
	assert_int_equal(o.help, OPTIONS_MERGE);
	assert_refused(refused, ARRAY_SIZE(refused));
}

static void test_view(void **state)
{
	static const struct refused refused[] = {
		{ { "view", NULL }, "nothing to show" },
		{ { "view", "x", "-f", "pprof", NULL },
		  "unknown format 'pprof': choose from text" },
		{ { "view", "x", "--limit", "0", NULL }, "--limit: '0'" },
		{ { "view", "x", "--limit", "-1", NULL }, "--limit: '-1'" },
		{ { "view", "x", "--focus", "a(", NULL }, "--focus: 'a('" },
		{ { "view", "x", "--min-share", "101", NULL }, "--min-share: '101'" },
		{ { "view", "x", "--min-share", "-1", NULL }, "--min-share: '-1'" },
		{ { "view", "x", "--min-share", "1%%", NULL }, "--min-share: '1%%'" },
		{ { "view", "x", "--min-share", "nan", NULL }, "--min-share: 'nan'" },
		{ { "view", "x", "--min-share", "", NULL }, "--min-share: ''" },
		{ { "view", "x", "--min-share", "1", NULL }, "--min-share is for --tree" },
		{ { "view", "x", "--all", NULL }, "see bpfprof view --help" },
		{ { "view", "--base", "x", NULL }, "nothing to show" },
		{ { "view", "x", "--base", NULL }, "--base needs an argument" },
		{ { "view", "x", "--base", "y", "--tree", NULL }, "--tree is not for --base" },
	};
	struct options o;

	(void)state;
	assert_int_equal(PARSE(&o, "view", "a"), 0);
	assert_int_equal(o.command, OPTIONS_VIEW);
	assert_null(o.output);
	assert_null(o.view.value);
	assert_null(o.view.focus);
	assert_false(o.view.tree);
	assert_int_equal(o.view.limit, 0);
	assert_true(o.view.min_share == 0.005);
	assert_int_equal(PARSE(&o, "view", "a", "--tree", "--value", "cpu", "--focus", "^ma.n$",
			       "b", "--limit", "7", "--min-share", "2%", "-o", "x", "-f", "text"),
			 0);
	assert_string_equal(o.output, "x");
	assert_string_equal(o.view.value, "cpu");
	assert_string_equal(o.view.focus, "^ma.n$");
	assert_true(o.view.tree);
	assert_int_equal(o.view.limit, 7);
	assert_true(o.view.min_share == 0.02);
	assert_ptr_equal(o.view.format, view_format_find("text"));
	assert_string_equal(o.files[1], "b");
	assert_null(o.files[2]);
	assert_null(o.view.bases);
	assert_int_equal(PARSE(&o, "view", "--base", "a", "n", "--base=b"), 0);
	assert_string_equal(o.view.bases[0], "a");
	assert_string_equal(o.view.bases[1], "b");
	assert_null(o.view.bases[2]);
	assert_string_equal(o.files[0], "n");
	assert_null(o.files[1]);
	options_done(&o);
	assert_null(o.view.bases);
	assert_refused(refused, ARRAY_SIZE(refused));
}

/* What a gate names has to be among what is recorded. */
static void test_bench_gates(void **state)
{
	static const struct {
		const char *kinds, *gate;
		bool good;
	} rows[] = {
		{ "cpu", "cpu:+5%", true },
		{ "cpu", "cpu:parse:+5%", true },
		{ "cpu", "wall:+5%", true },
		{ "cpu", "samples:+5%", false },
		{ "cpu", "alloc_space:+5%", false },
		{ "cpu", "heap:+5%", false },
		{ "cpu", "cqu:+5%", false },
		{ "heap", "alloc_objects:+1%", true },
		{ "heap", "heap:+1%", true },
		{ "heap", "cpu:+1%", false },
		{ "cpu,heap", "inuse_space:f:+1%", true },
		{ "block", "block:+1%", true },
		{ "block", "delay:+1%", true },
		{ "block", "contentions:+1%", true },
		{ "block", "offcpu:+1%", false },
		{ "mutex", "mutex:+1%", true },
		{ "offcpu", "offcpu:+1%", true },
		{ "offcpu", "block:+1%", false },
		{ "threadcreate,faults", "faults:+1%", true },
	};
	struct options o;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int ret = PARSE(&o, "bench", "--aa", "-P", rows[i].kinds, "--fail-on", rows[i].gate,
				"--", "b");

		if (ret != (rows[i].good ? 0 : -EINVAL))
			fail_msg("-P %s --fail-on %s: %d", rows[i].kinds, rows[i].gate, ret);
	}
}

static void test_bench(void **state)
{
	static const char *const both[] = { "--against", "a", "--", "b" };
	static const struct refused refused[] = {
		{ { "bench", "--against", "a" }, "-- COMMAND" },
		{ { "bench", "--aa" }, "behind --" },
		{ { "bench", "--", "b" }, "--against" },
		{ { "bench", "--against", "", "--", "b" }, "empty" },
		{ { "bench", "--aa", "--against", "a", "--", "b" }, "exclude" },
		{ { "bench", "--aa", "b" }, "behind --" },
		{ { "bench", "--aa", "--repeat", "0", "--", "b" }, "--repeat" },
		{ { "bench", "--aa", "--repeat", "1001", "--", "b" }, "--repeat" },
		{ { "bench", "--aa", "--repeat", "9", "--max-repeat", "8", "--", "b" }, "below" },
		{ { "bench", "--aa", "--builds", "1", "--", "b" }, "--builds" },
		{ { "bench", "--aa", "--builds", "4", "--repeat", "6", "--", "b" }, "multiples" },
		{ { "bench", "--aa", "--builds", "4", "--max-repeat", "10", "--", "b" },
		  "multiples" },
		{ { "bench", "--aa", "--ops", "0", "--", "b" }, "--ops" },
		{ { "bench", "--aa", "--ops", "1", "--ops-regex", "(a)", "--", "b" }, "exclude" },
		{ { "bench", "--aa", "--ops-regex", "a", "--", "b" }, "group" },
		{ { "bench", "--aa", "--ops-regex", "(a", "--", "b" }, "regular expression" },
		{ { "bench", "--aa", "--ops-probe", "f", "--", "b" }, "--ops-probe: 'f'" },
		{ { "bench", "--aa", "--ops-probe", "usdt:a", "--", "b" }, "usdt:FILE" },
		{ { "bench", "--aa", "--ops-probe", "uprobe:f", "--ops", "1", "--", "b" },
		  "exclude" },
		{ { "bench", "--aa", "--ops-probe", "uprobe:f", "--ops-regex", "(a)", "--", "b" },
		  "exclude" },
		{ { "bench", "--aa", "--append", "d", "-o", "e", "--", "b" }, "exclude" },
		{ { "bench", "--aa", "--timeout", "0", "--", "b" }, "--timeout" },
		{ { "bench", "--aa", "--fail-on", "cpu", "--", "b" }, "--fail-on" },
		{ { "bench", "--aa", "--fail-on", "heap:+1%", "--", "b" },
		  "--fail-on: the runs have no 'heap': choose from cpu, wall, or record" },
		{ { "bench", "--aa", "-P", "offcpu,cpu", "--fail-on", "x:+1%", "--", "b" },
		  "cpu, events, delay, wall" },
		{ { "bench", "--aa", "-P", "block", "--fail-on", "mutex:+1%", "--", "b" },
		  "the runs have no 'mutex'" },
		{ { "bench", "--aa", "-f", "xml", "--", "b" }, "xml" },
		{ { "bench", "--aa", "-P", "nothing", "--", "b" }, "nothing" },
		{ { "bench", "--aa", "--pid", "1", "--", "b" }, "--pid" },
	};
	struct options o;

	(void)state;
	assert_refused(refused, ARRAY_SIZE(refused));
	assert_int_equal(PARSE(&o, "bench", both[0], both[1], both[2], both[3], "-c"), 0);
	assert_int_equal(o.command, OPTIONS_BENCH);
	assert_string_equal(o.bench.against, "a");
	assert_string_equal(o.argv[0], "b");
	/* what is behind the command is the command's */
	assert_string_equal(o.argv[1], "-c");
	assert_null(o.argv[2]);
	assert_kinds(&o, "cpu");
	assert_int_equal(o.frequency, 997);
	assert_int_equal(o.bench.repeat, 10);
	assert_int_equal(o.bench.max_repeat, 10);
	assert_int_equal(o.bench.warmup, 1);
	assert_int_equal(o.bench.builds, 0);
	assert_int_equal(o.bench.ops, 0);
	assert_null(o.bench.ops_probe);
	assert_null(o.output);
	options_done(&o);
	/* a folder is no output of a recording: two kinds go well with it */
	assert_int_equal(PARSE(&o, "bench", "--aa", "-P", "cpu,heap", "-o", "dir", "--repeat", "4",
			       "--max-repeat", "16", "--strict", "-f", "json", "--ops-probe",
			       "uprobe:./b:ns::f", "--", "b"),
			 0);
	assert_string_equal(o.output, "dir");
	assert_string_equal(o.bench.ops_probe, "uprobe:./b:ns::f");
	assert_kinds(&o, "cpu heap");
	assert_int_equal(o.bench.max_repeat, 16);
	assert_true(o.strict);
	options_done(&o);
	/* each build once, unless more is asked for */
	assert_int_equal(PARSE(&o, "bench", "--aa", "--builds", "6", "--", "b{i}"), 0);
	assert_int_equal(o.bench.builds, 6);
	assert_int_equal(o.bench.repeat, 6);
	assert_int_equal(o.bench.max_repeat, 6);
	options_done(&o);
	assert_int_equal(
		PARSE(&o, "bench", "--aa", "--builds", "6", "--repeat", "12", "--", "b{i}"), 0);
	assert_int_equal(o.bench.max_repeat, 12);
	options_done(&o);
}

static void test_serve(void **state)
{
	static const struct refused refused[] = {
		{ { "serve" }, "--pid PID, or --all" },
		{ { "serve", "--pid", "1", "--all" }, "exclude" },
		{ { "serve", "--pid", "1,2" }, "one process" },
		{ { "serve", "--all", "--always", "heap" }, "--always goes with --pid" },
		{ { "serve", "--pid", "1", "--always", "cpu" }, "'cpu' is none of heap, block" },
		{ { "serve", "--pid", "1", "--always", "heap,threads" }, "'threads'" },
		{ { "serve", "--pid", "1", "--always", "" }, "''" },
		{ { "serve", "--pid", "1", "--allow-remote" }, "--token-file" },
		{ { "serve", "--pid", "1", "--token-file", "" }, "empty" },
		{ { "serve", "--pid", "1", "-F", "10001" }, "10000" },
		{ { "serve", "--pid", "1", "--spool", "d" }, "serve --help" },
		{ { "serve", "--pid", "1", "--", "ls" }, "unexpected argument '--'" },
		{ { "serve", "--pid", "1", "ls" }, "unexpected argument 'ls'" },
	};
	struct options o;

	(void)state;
	assert_refused(refused, ARRAY_SIZE(refused));
	assert_int_equal(PARSE(&o, "serve", "--pid", "7"), 0);
	assert_int_equal(o.command, OPTIONS_SERVE);
	assert_int_equal(o.pids.ids[0], 7);
	assert_kinds(&o, "");
	assert_string_equal(o.listen, "127.0.0.1:6060");
	assert_null(o.token_file);
	assert_false(o.allow_remote);
	assert_true(o.heap_budget == 5 && o.wait_budget == 1);
	options_done(&o);
	assert_int_equal(PARSE(&o, "serve", "-p", "7", "--always", "block,heap", "--allow-remote",
			       "--token-file", "t"),
			 0);
	assert_kinds(&o, "heap block");
	assert_string_equal(o.token_file, "t");
	assert_true(o.allow_remote);
	options_done(&o);
	assert_int_equal(PARSE(&o, "serve", "--all"), 0);
	assert_int_equal(o.pids.cnt, 0);
	options_done(&o);
}

/* As test_table_parsed and test_table_defaults. */
static void test_serve_table(void **state)
{
	const struct option_table *t = option_table(OPTIONS_SERVE);
	size_t tried = 0;

	(void)state;
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *r = &t->rows[i];
		struct options given, left_out;
		char word[64];

		if (!r->name)
			continue;
		snprintf(word, sizeof(word), "--%s", r->name);
		if (!PARSE(&given, "serve", "-p", "1", word, ""))
			options_done(&given);
		assert_null(strstr(err, "--help"));
		if (!r->def)
			continue;
		assert_int_equal(PARSE(&left_out, "serve", "-p", "1"), 0);
		assert_int_equal(PARSE(&given, "serve", "-p", "1", word, r->def), 0);
		assert_same(&left_out, &given, false);
		assert_string_equal(left_out.listen, given.listen);
		options_done(&left_out);
		options_done(&given);
		tried++;
	}
	assert_int_equal(tried, 5);
}

/* As test_table_parsed and test_table_defaults. */
static void test_agent_table(void **state)
{
	const struct option_table *t = option_table(OPTIONS_AGENT);
	size_t tried = 0;

	(void)state;
	for (size_t i = 0; i < t->cnt; i++) {
		const struct option_row *r = &t->rows[i];
		struct options given, left_out;
		char word[64];

		if (!r->name)
			continue;
		snprintf(word, sizeof(word), "--%s", r->name);
		if (!PARSE(&given, "agent", word, ""))
			options_done(&given);
		assert_null(strstr(err, "--help"));
		if (!r->def)
			continue;
		assert_int_equal(PARSE(&left_out, "agent"), 0);
		assert_int_equal(PARSE(&given, "agent", word, r->def), 0);
		assert_same(&left_out, &given, r->val == 'P');
		assert_string_equal(left_out.spool, given.spool);
		assert_int_equal(left_out.spool_sz, given.spool_sz);
		assert_string_equal(left_out.listen, given.listen);
		assert_int_equal(left_out.window_ns, given.window_ns);
		tried++;
	}
	assert_int_equal(tried, 11);
}

/* --help and the parser know the same options. */
static void test_usage(void **state)
{
	static const char *const names[] = {
		"-p, --pid",	 "-a, --all",	   "--follow",		"-t, --tid",
		"--cgroup",	 "--comm",	   "-U, --user",	"-K, --kernel",
		"-P, --profile", "-d, --duration", "-F, --frequency",	"--event",
		"-o, --output",	 "-f, --format",   "--stats",		"--no-labels",
		"-q, --quiet",	 "-v, --verbose",  "--version",		"-h, --help",
		"-- COMMAND",	 "--heap-rate",	   "--heap-budget",	"--min-age",
		"--min-wait",	 "--wait-rate",	   "--wait-budget",	"--strict",
		"--ready-fd",	 "--debuginfod",   "--debuginfod-wait", "--debuginfod-cache",
	};
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	(void)state;
	assert_non_null(f);
	options_usage(OPTIONS_RECORD, f);
	fclose(f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strstr(text, names[i]))
			fail_msg("--help is silent about %s", names[i]);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 100);
	free(text);
}

static void test_kinds(void **state)
{
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	(void)state;
	assert_int_equal(kinds_find("cpu", 3), BPFPROF_CPU);
	assert_int_equal(kinds_find("cpu,heap", 3), BPFPROF_CPU);
	assert_int_equal(kinds_find("cpu", 2), -1);
	assert_int_equal(kinds_find("cpux", 4), -1);
	assert_int_equal(kinds_find("", 0), -1);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		const struct kind *k = &kinds[i];

		assert_in_range(k->value_cnt, 1, KIND_MAX_VALUES);
		for (size_t v = 0; v < k->value_cnt; v++)
			assert_true(*k->value_types[v].type && *k->value_types[v].unit);
		assert_non_null(k->period_type.unit);
	}
	assert_non_null(f);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		kinds_print(f, i);
	fclose(f);
	assert_non_null(strstr(text, "samples/count, cpu/nanoseconds"));
	assert_non_null(strstr(text, "contentions/count, delay/nanoseconds"));
	assert_non_null(strstr(text, "threadcreate/count\n"));
	assert_non_null(strstr(text, "heap (default, but with --all)"));
	assert_non_null(strstr(text, "block (default)"));
	assert_non_null(strstr(text, "offcpu\n"));
	free(text);
}

static void test_formats(void **state)
{
	char names[FORMATS_NAMES_SZ];

	(void)state;
	assert_string_equal(formats_find("pprof")->ext, "pb.gz");
	assert_string_equal(formats_find("folded")->ext, "folded");
	assert_string_equal(formats_find("text")->ext, "txt");
	assert_string_equal(formats_find("flamegraph")->ext, "html");
	assert_string_equal(formats_find("debug1")->ext, "debug1.txt");
	assert_string_equal(formats_find("legacy")->ext, "prof");
	assert_true(formats_is_binary(formats_find("pprof"), &kinds[BPFPROF_HEAP]));
	assert_true(formats_is_binary(formats_find("legacy"), &kinds[BPFPROF_CPU]));
	assert_false(formats_is_binary(formats_find("legacy"), &kinds[BPFPROF_HEAP]));
	assert_false(formats_is_binary(formats_find("debug1"), &kinds[BPFPROF_CPU]));
	assert_null(formats_find("pprof "));
	assert_null(formats_find(""));
	formats_names(names, sizeof(names));
	assert_string_equal(names, "pprof, folded, text, flamegraph, debug1, debug2, legacy");
	/* where there is less room, it is cut */
	formats_names(names, sizeof("pprof, f"));
	assert_string_equal(names, "pprof, f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_custom),
		cmocka_unit_test(test_long_options),
		cmocka_unit_test(test_short_options),
		cmocka_unit_test(test_lists_without_repetition),
		cmocka_unit_test(test_list_limit),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_long_argument),
		cmocka_unit_test(test_table_parsed),
		cmocka_unit_test(test_table_defaults),
		cmocka_unit_test(test_agent),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_view),
		cmocka_unit_test(test_bench_gates),
		cmocka_unit_test(test_bench),
		cmocka_unit_test(test_serve),
		cmocka_unit_test(test_serve_table),
		cmocka_unit_test(test_agent_table),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
