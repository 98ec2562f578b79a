/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's configuration: what is in it counts as on the command line, which counts more; what is
 * wrong is said with file and line, and leaves nothing behind.
 */
#include "config.h"

#include <linux/types.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "courier/stores.h"
#include "options.h"

/* see user/config.c */
extern int ini_max_line __attribute__((weak));

static char folder[64], path[128], token[128], err[1024];

static void put(const char *file, const char *text)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static struct options opts;

/* bpfprof agent --config FILE and what more is given */
static int parse(const char *text, char *const *more)
{
	static char *argv[16];
	int n = 0;

	put(path, text);
	argv[n++] = "bpfprof";
	argv[n++] = "agent";
	argv[n++] = "--config";
	argv[n++] = path;
	while (more && *more)
		argv[n++] = *more++;
	argv[n] = NULL;
	*err = '\0';
	return options_parse(n, argv, &opts, err, sizeof(err));
}

static void good(const char *text, char *const *more)
{
	if (parse(text, more))
		fail_msg("refused: %s", err);
}

/* Refused with FILE:LINE: …what… in one line. line 0: without. */
static void refused(const char *text, int line, const char *what)
{
	char begin[160];

	snprintf(begin, sizeof(begin), line ? "%s:%d: " : "%s", line ? path : "", line);
	assert_int_equal(parse(text, NULL), -EINVAL);
	if (strncmp(err, begin, strlen(begin)) || !strstr(err, what) || strchr(err, '\n'))
		fail_msg("'%s' is not '%s…%s'", err, begin, what);
	assert_null(opts.config);
}

static void options_are_taken(void **state)
{
	(void)state;
	good("; a comment\n\n# another one\nfrequency = 49\n"
	     "profile = cpu,block ; and why\nspool=/tmp/x\nwindow\t=\t5s\nspool-size: 2M\n"
	     "no-labels = yes\nquiet = off\n",
	     NULL);
	assert_int_equal(opts.command, OPTIONS_AGENT);
	assert_int_equal(opts.frequency, 49);
	assert_string_equal(opts.spool, "/tmp/x");
	assert_int_equal(opts.window_ns, 5 * NSEC_PER_SEC);
	assert_int_equal(opts.spool_sz, 2 << 20);
	assert_false(opts.thread_labels);
	assert_int_equal(opts.log_level, LOG_INFO);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		assert_int_equal(opts.kinds[i], i == BPFPROF_CPU || i == BPFPROF_BLOCK);
	assert_int_equal(opts.config->push_cnt, 0);
	options_done(&opts);
	/* an empty one is one */
	good("", NULL);
	assert_int_equal(opts.frequency, OPTIONS_AGENT_FREQUENCY);
	options_done(&opts);
}

static void the_command_line_counts_more(void **state)
{
	(void)state;
	good("frequency = 49\nprofile = cpu,block\nwindow = 5s\n",
	     (char *[]){ "-F", "7", "-P", "threadcreate", "-P", "cpu", NULL });
	assert_int_equal(opts.frequency, 7);
	assert_int_equal(opts.window_ns, 5 * NSEC_PER_SEC);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		assert_int_equal(opts.kinds[i], i == BPFPROF_CPU || i == BPFPROF_THREADCREATE);
	options_done(&opts);
}

/* What is wrong with all of them together is where the last one stands. */
static void options_that_do_not_go_together(void **state)
{
	(void)state;
	refused("\nwindow = 500ms\n", 2, "--window is too short: give it at least 1s");
	refused("window = 500ms\nfrequency = 19\nwindow = 600ms\n", 3, "--window is too short");
	refused("frequency = 19\nmin-age = 5s\n", 2, "--min-age goes with the heap profile");
	refused("quiet = yes\nprofile = fds\n", 2, "fds profiles are recorded of processes");
	refused("profile = cpu\nmin-wait = 1us\n", 2, "--min-wait goes with the block");
	refused("profile = cpu\nwait-rate = 1us\n", 2, "--wait-rate goes with the block");
	refused("wait-budget = 1\nprofile = cpu\n", 1, "--wait-budget goes with the block");
	/* it is the command line's */
	assert_int_equal(parse("window = 5s\n", (char *[]){ "--window", "500ms", NULL }), -EINVAL);
	assert_int_equal(strncmp(err, "--window is too short", 21), 0);
}

static void dumps_find_the_folder(void **state)
{
	(void)state;
	good("spool = /tmp/x\nwindow = 5s\n[push \"a\"]\nurl = http://parca:80\n",
	     (char *[]){ "--dump", "5m", NULL });
	assert_int_equal(opts.command, OPTIONS_DUMP);
	assert_string_equal(opts.spool, "/tmp/x");
	assert_int_equal(opts.dump_ns, 300 * NSEC_PER_SEC);
	options_done(&opts);
	good("spool = /tmp/x\n", (char *[]){ "--dump=5m", "--spool=/tmp/y", NULL });
	assert_int_equal(opts.command, OPTIONS_DUMP);
	assert_string_equal(opts.spool, "/tmp/y");
	options_done(&opts);
	assert_int_equal(parse("", (char *[]){ "--dump", "5m", "--window", "5s", NULL }), -EINVAL);
	assert_non_null(strstr(err, "not with --window"));
	/* it is not what an agent is to do all the time */
	refused("dump = 5m\n", 1, "there is no option 'dump'");
}

static void destinations_are_taken(void **state)
{
	static const char *const kinds[][2] = {
		{ "http://pyroscope.example", "pyroscope" },
		{ "https://pyroscope.example:443/base/", "pyroscope" },
		{ "http://127.0.0.1:4040/", "pyroscope" },
		{ "http://[::1]:4040", "pyroscope" },
		{ "http://parca:80", "parca" },
		{ "http://10.0.0.1:7070", "parca" },
		{ "https://x/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", "parca" },
		{ "http://otel-collector:4318", "otlp" },
		{ "http://x/v1development/profiles", "otlp" },
		{ "http://x:9999/v1/pprof", "pprof" },
	};
	char text[1024];
	const struct destination *d;

	(void)state;
	snprintf(text, sizeof(text),
		 "frequency = 19\n[push \"one\"]\n   url = http://x:4040\n\ttoken-file = %s\n"
		 "tenant = a b\n[push \"two\"]\nurl = https://y\nkind = otlp-1.9\nuser = u\n"
		 "password-file = %s\nca-file=%s\ncert-file=%s\nkey-file=%s\nmax-age = 2h\n",
		 token, token, token, token, token);
	good(text, NULL);
	assert_int_equal(opts.config->push_cnt, 2);
	d = &opts.config->push[0];
	assert_string_equal(d->name, "one");
	assert_string_equal(d->kind, "pyroscope");
	assert_string_equal(d->tenant, "a b");
	assert_string_equal(d->files[DESTINATION_TOKEN], token);
	assert_int_equal(d->max_age_ns, 3600 * NSEC_PER_SEC);
	d = &opts.config->push[1];
	assert_string_equal(d->kind, "otlp-1.9");
	assert_string_equal(d->user, "u");
	assert_string_equal(d->files[DESTINATION_KEY], token);
	assert_int_equal(d->max_age_ns, 7200 * NSEC_PER_SEC);
	options_done(&opts);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(text, sizeof(text), "[push \"a\"]\nurl = %s\n", kinds[i][0]);
		good(text, NULL);
		assert_string_equal(opts.config->push[0].kind, kinds[i][1]);
		/* the courier knows it */
		assert_non_null(store_find(kinds[i][1]));
		options_done(&opts);
	}
}

/* What is behind '?' is the store's, where no path goes behind it. */
static void queries_of_urls(void **state)
{
	static const char *const wrong[] = {
		"https://host:7070/?x=y",
		"https://host:4040?x=y",
		"http://otel/a?b=/v1development/profiles",
		"http://x/v1/pprof?a=b\nkind = otlp-1.9",
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(text, sizeof(text), "[push \"a\"]\nurl = %s\n", wrong[i]);
		refused(text, 1, "goes behind it, and '?' with what follows would be in front");
	}
	refused("[push \"a\"]\nurl = http://x:4040/#y\n", 1, "behind '#': leave it out");
	refused("[push \"a\"]\nurl = http://x/v1/pprof#y\n", 1, "behind '#': leave it out");
	good("[push \"a\"]\nurl = http://x/v1/pprof?a=b\n[push \"b\"]\n"
	     "url = http://host?x=y\nkind = pprof\n",
	     NULL);
	assert_string_equal(opts.config->push[0].kind, "pprof");
	assert_string_equal(opts.config->push[0].url, "http://x/v1/pprof?a=b");
	assert_string_equal(opts.config->push[1].url, "http://host?x=y");
	options_done(&opts);
}

/* As long as URLs and patterns may be: a container in a pod has a path of 200 bytes. */
static void long_lines(void **state)
{
	char url[DESTINATION_MAX_URL + 2] = "http://x:4040/", *text;
	char exe[1025];

	(void)state;
	if (!&ini_max_line)
		skip();
	memset(url + strlen(url), 'u', sizeof(url) - 2 - strlen(url));
	memset(exe, 'e', sizeof(exe) - 1);
	exe[sizeof(exe) - 1] = '\0';
	assert_return_code(asprintf(&text,
				    "[push \"a\"]\nurl = %s\n[target \"b\"]\nexe = %s\n"
				    "profile = heap ; %3000s\n",
				    url, exe, "c"),
			   errno);
	good(text, NULL);
	assert_string_equal(opts.config->push[0].url, url);
	assert_string_equal(opts.config->targets[0].patterns[PROCESS_EXE], exe);
	assert_int_equal(opts.config->targets[0].kinds, 1 << BPFPROF_HEAP);
	options_done(&opts);
	free(text);
	/* the message has room for the reason */
	strcat(url, "u");
	assert_return_code(asprintf(&text, "[push \"a\"]\nurl = %s\n", url), errno);
	refused(text, 1, "url: it is longer than 1000 bytes");
	free(text);
	assert_return_code(asprintf(&text, "[push \"a\"]\nurl = %.900s\n", url + 1), errno);
	refused(text, 1, "does not begin with http:// or https://");
	free(text);
	/* with the key, no more than that */
	for (int i = 0; i < 2; i++) {
		assert_return_code(asprintf(&text, "spool = /%*s\nfrequency = 19\n",
					    CONFIG_MAX_LINE - (int)strlen("spool = /") + i, "c"),
				   errno);
		if (i)
			refused(text, 1, "the line is longer than 4096 bytes");
		else
			good(text, NULL), options_done(&opts);
		free(text);
	}
}

static void targets_are_taken(void **state)
{
	const struct process_rule *t;

	(void)state;
	good("[target \"redis\"]\ncomm = redis-server\nprofile = heap,block\n[push \"a\"]\n"
	     "url = http://x:4040\n[target \"all_keys\"]\nprofile = mutex\ncomm = a*\nexe = /b/*\n"
	     "cgroup = /c\ncontainer = d\npod = e-*\nnamespace = f\nunit = g.service\n",
	     NULL);
	assert_int_equal(opts.config->target_cnt, 2);
	assert_int_equal(opts.config->push_cnt, 1);
	t = &opts.config->targets[0];
	assert_string_equal(t->name, "redis");
	assert_string_equal(t->patterns[PROCESS_COMM], "redis-server");
	assert_null(t->patterns[PROCESS_EXE]);
	assert_int_equal(t->kinds, 1 << BPFPROF_HEAP | 1 << BPFPROF_BLOCK);
	t = &opts.config->targets[1];
	assert_string_equal(t->patterns[PROCESS_UNIT], "g.service");
	assert_int_equal(t->kinds, 1 << BPFPROF_MUTEX);
	/* what is recorded of targets is recorded, and of nobody else */
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		bool chosen = i == BPFPROF_HEAP || i == BPFPROF_BLOCK || i == BPFPROF_MUTEX;

		assert_int_equal(opts.chosen[i], chosen);
		assert_true(!chosen || opts.kinds[i]);
	}
	assert_true(opts.kinds[BPFPROF_CPU]);
	assert_true(opts.heap_budget == OPTIONS_DEFAULT_HEAP_BUDGET);
	options_done(&opts);
}

static void services_are_taken(void **state)
{
	const struct process_rule *s;

	(void)state;
	good("[service \"shop\"]\nunit = shop-*\n[target \"shop\"]\ncomm = x\nprofile = heap\n"
	     "[service \"all_keys\"]\ncomm = a\ncontainer = b\npod = c\nnamespace = d\nunit = e\n",
	     NULL);
	assert_int_equal(opts.config->service_cnt, 2);
	assert_int_equal(opts.config->target_cnt, 1);
	s = &opts.config->services[0];
	assert_string_equal(s->name, "shop");
	assert_string_equal(s->patterns[PROCESS_UNIT], "shop-*");
	assert_null(s->patterns[PROCESS_COMM]);
	s = &opts.config->services[1];
	assert_string_equal(s->patterns[PROCESS_COMM], "a");
	assert_string_equal(s->patterns[PROCESS_CONTAINER], "b");
	assert_string_equal(s->patterns[PROCESS_POD], "c");
	assert_string_equal(s->patterns[PROCESS_NAMESPACE], "d");
	assert_string_equal(s->patterns[PROCESS_UNIT], "e");
	options_done(&opts);
}

static void what_is_wrong_with_a_service_is_said(void **state)
{
	(void)state;
	refused("[service]\n", 1, "a service has a name");
	refused("[service \"a b\"]\ncomm = x\n", 1, "[service \"a b\"]: a name has 1 to");
	refused("[service \"a\"]\n", 1, "it does not say which processes");
	refused("[service \"a\"]\nexe = /x\n", 2, "[service] has no key 'exe'");
	refused("[service \"a\"]\nprofile = heap\n", 2, "[service] has no key 'profile'");
	refused("[service \"a\"]\ncomm = x\ncomm = y\n", 3, "comm stands twice");
	refused("[service \"a\"]\ncomm = x\n[service \"a\"]\n", 3,
		"there is a section [service \"a\"] in line 1");
}

static void more_targets_than_there_may_be(void **state)
{
	char text[8192] = "";

	(void)state;
	for (int i = 0; i <= PROCESS_RULES_MAX; i++) {
		if (i == PROCESS_RULES_MAX)
			good(text, NULL), options_done(&opts);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "[target \"t%d\"]\ncomm = x\nprofile = heap\n", i);
	}
	refused(text, 3 * PROCESS_RULES_MAX + 1, "more than 32 targets");
}

static void what_is_wrong_with_a_target_is_said(void **state)
{
	(void)state;
	refused("[target]\n", 1, "a target has a name");
	refused("[target \"a b\"]\ncomm = x\nprofile = heap\n", 1, "a name has 1 to");
	refused("[target \"a\"]\nprofile = heap\n", 1, "it does not say which processes");
	refused("[target \"a\"]\ncomm = x\n", 1, "it does not say what to record");
	refused("[target \"a\"]\ncomm = x\nprofile = cpu\n", 3,
		"cpu is recorded of the whole machine");
	refused("[target \"a\"]\ncomm = x\nprofile = custom\n", 3,
		"the agent records no custom profiles");
	refused("[target \"a\"]\ncomm = x\nprofile = heap,gpu\n", 3, "there is no kind 'gpu'");
	refused("[target \"a\"]\ncomm = x\nprofile = heap\nprofile = block\n", 4,
		"profile stands twice");
	refused("[target \"a\"]\ncomm = x\ncomm = y\n", 3, "comm stands twice");
	refused("[target \"a\"]\ncomm =\nprofile = heap\n", 1, "the pattern is empty");
	refused("[target \"a\"]\ncomm = 1234567890123456\nprofile = heap\n", 1,
		"cuts them to 15 bytes");
	refused("[target \"a\"]\ncomm = *a*b*c*d*e*f*g*h*i\nprofile = heap\n", 1,
		"more than 8 stars");
	refused("[target \"a\"]\npid = 1\n", 2, "has no key 'pid'");
	refused("[target \"a\"]\ncomm = x\nprofile = heap\n[target \"a\"]\n", 4,
		"there is a section [target \"a\"] in line 1");
	refused("profile = cpu,heap\n[target \"a\"]\ncomm = x\nprofile = heap\n", 2,
		"heap is recorded of the whole machine already");
}

static void what_is_wrong_is_said(void **state)
{
	char text[4096], missing[256];

	(void)state;
	refused("frequency = 19\nfrequncy = 19\n", 2, "there is no option 'frequncy'");
	refused("freq = 19\n", 1, "there is no option 'freq'");
	refused("version = yes\n", 1, "there is no option 'version'");
	refused("config = x\n", 1, "there is no option 'config'");
	refused("pid = 1\n", 1, "there is no option 'pid'");
	refused("\n\nfrequency = fast\n", 3, "'fast' is not a number");
	refused("window = 1s\nwindow = 0\n", 2, "--window: '0'");
	refused("profile = cpu\nprofile = gpu\n", 2, "there is no kind 'gpu'");
	refused("no-labels = maybe\n", 1, "give yes or no");
	refused("frequency\n", 1, "no KEY = VALUE");
	refused("[push \"a\"]\nurl = http://x:4040\nhello\n", 3, "no KEY = VALUE");
	refused("[pull \"a\"]\n", 1, "there is no section [pull \"a\"]");
	refused("[push]\n", 1, "a destination has a name");
	refused("[push a]\n", 1, "a destination has a name");
	refused("[push \"a\"\n", 1, "does not end with ']'");
	refused("[push \"a\"]\n", 1, "it has no url");
	refused("[push \"a/b\"]\nurl = http://x:4040\n", 1, "a name has 1 to");
	refused("[push \"\"]\nurl = http://x:4040\n", 1, "a name has 1 to");
	refused("[push \"a\"]\nurl = http://x:4040\n[push \"a\"]\nurl = http://y:4040\n", 3,
		"there is a section [push \"a\"] in line 1");
	refused("[push \"a\"]\nurl = http://x:4040\nurl = http://y:4040\n", 3, "url stands twice");
	refused("[push \"a\"]\nurl = http://x:4040\ncolour = red\n", 3, "has no key 'colour'");
	refused("[push \"a\"]\nurl = x:4040\n", 1, "does not begin with http:// or https://");
	refused("[push \"a\"]\nurl = ftp://x:4040\n", 1, "does not begin with http:// or https://");
	refused("[push \"a\"]\nurl = http://\n", 1, "names no host");
	refused("[push \"a\"]\nurl = http:///path\n", 1, "names no host");
	refused("[push \"a\"]\nurl = http://u:p@x:4040\n", 1, "give the user as user =");
	refused("[push \"a\"]\nurl = http://x y:4040\n", 1, "has a blank");
	refused("[push \"a\"]\nurl = http://x\n", 1, "its kind does not follow");
	refused("[push \"a\"]\nurl = http://x\nkind = influx\n", 1, "there is no 'influx'");
	refused("[push \"a\"]\nurl = http://x:4040\nmax-age = old\n", 3, "max-age: 'old'");
	refused("[push \"a\"]\nurl = http://x:4040\nmax-age = 1h\nmax-age = 2h\n", 4,
		"max-age stands twice");
	refused("[push \"a\"]\nurl = http://x:4040\ntenant =\n", 1, "tenant: it is empty");
	snprintf(missing, sizeof(missing),
		 "[push \"a\"]\nurl = http://x:4040\ntoken-file = %s/no\n", folder);
	refused(missing, 1, "No such file");
	snprintf(missing, sizeof(missing), "[push \"a\"]\nurl = http://x:4040\nca-file = %s\n",
		 folder);
	refused(missing, 1, "it is no file");
	snprintf(text, sizeof(text),
		 "[push \"a\"]\nurl = http://x:4040\nuser = u\ntoken-file = %s\n", token);
	refused(text, 1, "exclude each other");
	snprintf(text, sizeof(text), "[push \"a\"]\nurl = http://x:4040\nkey-file = %s\n", token);
	refused(text, 1, "key-file goes with cert-file");
	snprintf(text, sizeof(text), "[push \"a\"]\nurl = http://x:4040\npassword-file = %s\n",
		 token);
	refused(text, 1, "password-file goes with user");
	/* no file at all */
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(options_parse(4, (char *[]){ "bpfprof", "agent", "--config", path }, &opts,
				       err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, "it is no file"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(options_parse(4, (char *[]){ "bpfprof", "agent", "--config", path }, &opts,
				       err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, "No such file"));
}

static void more_destinations_than_there_may_be(void **state)
{
	char text[4096] = "";

	(void)state;
	for (int i = 0; i <= WIRE_MAX_DESTINATIONS; i++) {
		if (i == WIRE_MAX_DESTINATIONS)
			good(text, NULL), options_done(&opts);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "[push \"d%d\"]\nurl = http://x:4040\n", i);
	}
	refused(text, 2 * WIRE_MAX_DESTINATIONS + 1, "more than 16 destinations");
}

static void it_can_be_checked(void **state)
{
	char *argv[] = { "bpfprof", "agent", "--check-config", path, NULL };

	(void)state;
	put(path, "frequency = 19\n");
	assert_int_equal(options_parse(4, argv, &opts, err, sizeof(err)), 0);
	assert_int_equal(opts.command, OPTIONS_CHECK_CONFIG);
	options_done(&opts);
	/* wrong as an option, and as a line: no agent is started by that, whose messages are others */
	for (int i = 0; i < 2; i++) {
		put(path, i ? "frequency = 0\n" : "frequency\n");
		assert_int_equal(options_parse(4, argv, &opts, err, sizeof(err)), -EINVAL);
		assert_int_equal(opts.command, OPTIONS_CHECK_CONFIG);
	}
	argv[2] = "--config";
	assert_int_equal(options_parse(4, argv, &opts, err, sizeof(err)), -EINVAL);
	assert_int_equal(opts.command, OPTIONS_AGENT);
}

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_config.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/agent.ini", folder);
	snprintf(token, sizeof(token), "%s/token", folder);
	put(token, "secret\n");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(token);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_taken),
		cmocka_unit_test(the_command_line_counts_more),
		cmocka_unit_test(options_that_do_not_go_together),
		cmocka_unit_test(dumps_find_the_folder),
		cmocka_unit_test(destinations_are_taken),
		cmocka_unit_test(long_lines),
		cmocka_unit_test(queries_of_urls),
		cmocka_unit_test(targets_are_taken),
		cmocka_unit_test(services_are_taken),
		cmocka_unit_test(what_is_wrong_with_a_service_is_said),
		cmocka_unit_test(more_targets_than_there_may_be),
		cmocka_unit_test(what_is_wrong_with_a_target_is_said),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(more_destinations_than_there_may_be),
		cmocka_unit_test(it_can_be_checked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
