/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/threads_text: what is written of threads that are known in full. */
#include <errno.h>
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
#include "profile/profile.h"
#include "profile/text.h"

static const struct profile_value_type type = { "threads", "count" };

static struct profile *new_profile(void)
{
	struct profile *p = profile__new(&type, 1, type, 1);

	assert_non_null(p);
	return p;
}

static char *written(const struct profile *p)
{
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	assert_int_equal(threads_text_write(p, f), 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(strlen(text), sz);
	return text;
}

static void expect(struct profile *p, const char *want)
{
	char *text;

	assert_int_equal(profile__finish(p), 0);
	text = written(p);
	assert_string_equal(text, want);
	free(text);
	profile__free(p);
}

struct says {
	int64_t tid, pid, since;
	const char *thread, *comm, *state, *in;
};

static void add_str(struct profile *p, struct profile_label *labels, size_t *n, const char *key,
		    const char *str)
{
	if (str)
		labels[(*n)++] = (struct profile_label){ .key = profile__string(p, key),
							 .str = profile__string(p, str) };
}

static void add_num(struct profile *p, struct profile_label *labels, size_t *n, const char *key,
		    int64_t num, const char *unit)
{
	if (num)
		labels[(*n)++] = (struct profile_label){ .key = profile__string(p, key),
							 .num = num,
							 .num_unit = profile__string(p, unit) };
}

static void add(struct profile *p, const struct says *says, const uint32_t *locs, size_t cnt)
{
	struct profile_label labels[7];
	int64_t one = 1;
	size_t n = 0;

	add_num(p, labels, &n, "pid", says->pid, "pid");
	add_str(p, labels, &n, "comm", says->comm);
	add_str(p, labels, &n, "thread", says->thread);
	add_num(p, labels, &n, "tid", says->tid, "tid");
	add_str(p, labels, &n, "state", says->state);
	add_str(p, labels, &n, "in", says->in);
	add_num(p, labels, &n, "since", says->since, "nanoseconds");
	assert_int_not_equal(profile__add_sample(p, locs, cnt, labels, n, &one), PROFILE_NONE);
}

static void blocks_have_their_form(void **state)
{
	struct profile *p = new_profile();
	struct profile_mapping app = { .start = 0x555555554000,
				       .limit = 0x555555556000,
				       .offset = 0x1000 };
	struct profile_mapping kernel = { .start = 0xffff800000000000, .limit = UINT64_MAX };
	struct profile_function f = { 0 };
	struct profile_line inlined[2] = { { .line = 7 }, { .line = 42 } };
	uint32_t m, k, stack[6], spin[2];

	(void)state;
	app.filename = profile__string(p, "/usr/bin/app");
	kernel.filename = profile__string(p, "[kernel.kallsyms]");
	m = profile__add_mapping(p, &app);
	k = profile__add_mapping(p, &kernel);
	stack[0] = golden_location(p, k, 0xffffffff81000010, "futex_wait", "futex_wait", "", 0);
	stack[1] = golden_location(p, m, 0x555555554200, "wait_for", "wait_for", "/src/w.c", 12);
	stack[2] = profile__add_location(p, m, 0x555555554300);
	f.name = f.system_name = profile__string(p, "inner");
	f.filename = profile__string(p, "/src/in.h");
	inlined[0].function = profile__add_function(p, &f);
	f.name = f.system_name = profile__string(p, "outer");
	f.filename = profile__string(p, "/src/w.c");
	inlined[1].function = profile__add_function(p, &f);
	assert_int_equal(profile__set_lines(p, stack[2], inlined, 2), 0);
	stack[3] = golden_location(p, m, 0x555555554400, "main", "main", "", 0);
	stack[4] = golden_location(p, m, 0x555555554500, "app+0x1500", "", "", 0);
	stack[5] = profile__add_marker(p, "[unwind: no table]");
	spin[0] = golden_location(p, PROFILE_NONE, 0x1234, "spin", "spin", "", 0);
	spin[1] = profile__add_location(p, m, 0x555555554600);

	/* not in the order in which they are written */
	add(p, &(struct says){ .tid = 20, .state = "running", .in = "user code" }, spin, 2);
	add(p,
	    &(struct says){ .tid = 9,
			    .thread = "worker",
			    .state = "sleeping",
			    .in = "futex",
			    .since = INT64_C(12345678901) },
	    stack, 6);
	assert_int_equal(profile__add_comment(p, "3 seen"), 0);
	assert_int_equal(profile__add_comment(p, "# not for people"), 0);
	expect(p,
	       "# 3 seen\n"
	       "\n"
	       "thread 9 \"worker\" [sleeping in futex, 12s]:\n"
	       "futex_wait\n"
	       "\t[kernel.kallsyms]\n"
	       "wait_for\n"
	       "\t/src/w.c:12\n"
	       "inner\n"
	       "\t/src/in.h:7\n"
	       "outer\n"
	       "\t/src/w.c:42\n"
	       "main\n"
	       "\t/usr/bin/app+0x1400\n"
	       "app+0x1500\n"
	       "\t/usr/bin/app+0x1500\n"
	       "[unwind: no table]\n"
	       "\n"
	       "thread 20 [running in user code]:\n"
	       "spin\n"
	       "app+0x1600\n"
	       "\t/usr/bin/app+0x1600\n");
}

static void hostile_names_stay_in_line(void **state)
{
	struct profile *p = new_profile();
	uint32_t loc = golden_location(p, PROFILE_NONE, 1, "a\nthread 1:", "a", "f\n\tile", 3);

	(void)state;
	add(p,
	    &(struct says){ .tid = 1,
			    .pid = 7,
			    .thread = "x\" [running]:\n\\",
			    .comm = "\033[2J\"",
			    .state = "stopped" },
	    &loc, 1);
	expect(p,
	       "thread 1 \"x\\\" [running]:\uFFFD\\\\\" of 7 \"\uFFFD[2J\\\"\" [stopped]:\n"
	       "a\uFFFDthread 1:\n"
	       "\tf\uFFFD\uFFFDile:3\n");
}

static void since_is_a_duration(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 1, "0us" },
		{ 123456, "123us" },
		{ 9999999, "9999us" },
		{ 10000000, "10ms" },
		{ INT64_C(9999999999), "9999ms" },
		{ INT64_C(10000000000), "10s" },
		{ INT64_C(599000000000), "599s" },
		{ INT64_C(600000000000), "10m" },
		{ INT64_C(36000000000000), "10h" },
		{ INT64_MAX, "2562047h" },
	};
	char want[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile *p = new_profile();
		uint64_t ns;

		add(p, &(struct says){ .tid = 5, .since = cases[i].ns, .state = "sleeping" }, NULL,
		    0);
		snprintf(want, sizeof(want), "thread 5 [sleeping, %s]:\n", cases[i].text);
		expect(p, want);
		/* it can be read back, and is not more than it was */
		if (i && cases[i].ns < INT64_MAX) {
			assert_int_equal(util_parse_duration(cases[i].text, &ns), 0);
			assert_true(ns <= (uint64_t)cases[i].ns && ns > (uint64_t)cases[i].ns / 2);
		}
	}
}

static void little_is_enough(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	expect(p, "");
	p = new_profile();
	assert_int_equal(profile__add_comment(p, "nobody"), 0);
	expect(p, "# nobody\n");
	p = new_profile();
	add(p, &(struct says){ 0 }, NULL, 0);
	expect(p, "thread 0 [unknown]:\n");
}

/* Go's own form, less what a thread has not. */
static void debug2_is_gos(void **state)
{
	struct profile *p = new_profile();
	struct profile_mapping app = { .start = 0x555555554000,
				       .limit = 0x555555556000,
				       .offset = 0x1000 };
	uint32_t m, stack[4];
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	(void)state;
	app.filename = profile__string(p, "/usr/bin/app");
	m = profile__add_mapping(p, &app);
	stack[0] = golden_location(p, m, 0x555555554200, "take", "take", "/src/q.c", 12);
	stack[1] = golden_location(p, m, 0x555555554300, "ns::f(int)", "_ZN2ns1fEi", "", 0);
	stack[2] = golden_location(p, m, 0x555555554400, "main.run", "main.run", "/r.go", 5);
	stack[3] = profile__add_marker(p, "[unwind: no table]");
	p->locations[stack[2]].from_entry = 0;
	profile__add_comment(p, "2 threads");
	add(p,
	    &(struct says){ .tid = 8,
			    .pid = 7,
			    .comm = "app",
			    .thread = "a\"b",
			    .state = "sleeping",
			    .in = "futex",
			    .since = 200 * INT64_C(1000000000) },
	    stack, 4);
	add(p, &(struct says){ .tid = 7, .state = "running", .since = 59 * INT64_C(1000000000) },
	    stack, 1);
	assert_int_equal(profile__finish(p), 0);
	assert_non_null(f);
	assert_int_equal(debug2_write(p, f), 0);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text,
			    "thread 7 [running]:\n"
			    "take(...)\n"
			    "\t/src/q.c:12 +0x20\n"
			    "\n"
			    "thread 8 \"a\\\"b\" [sleeping in futex, 3 minutes]:\n"
			    "take(...)\n"
			    "\t/src/q.c:12 +0x20\n"
			    "ns::f(int)\n"
			    "\t/usr/bin/app+0x1300 +0x30\n"
			    "main.run(...)\n"
			    "\t/r.go:5\n"
			    "[unwind: no table]\n");
	free(text);
	profile__free(p);
}

static void full_device_is_told(void **state)
{
	struct profile *p = new_profile();
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	add(p, &(struct says){ .tid = 1 }, NULL, 0);
	assert_int_equal(threads_text_write(p, f), -EIO);
	fclose(f);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_have_their_form),
		cmocka_unit_test(hostile_names_stay_in_line),
		cmocka_unit_test(since_is_a_duration),
		cmocka_unit_test(little_is_enough),
		cmocka_unit_test(debug2_is_gos),
		cmocka_unit_test(full_device_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
