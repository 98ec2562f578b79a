/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes a target of the configuration means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/process_rule.h"
#include "base/util.h"

static const struct process_facts process = {
	.of = {
		[PROCESS_COMM] = "redis-server",
		[PROCESS_EXE] = "/usr/bin/redis-server",
		[PROCESS_CGROUP] = "/kubepods.slice/pod1/cri-containerd-abcdef.scope",
		[PROCESS_CONTAINER] = "abcdef",
		[PROCESS_POD] = "cache-0",
		[PROCESS_NAMESPACE] = "shop",
		[PROCESS_UNIT] = "cri-containerd-abcdef.scope",
	},
	.container_name = "redis",
	.container_service = "store",
};

static bool matches(enum process_key key, const char *pattern, const struct process_facts *f)
{
	struct process_rule rule = { 0 };

	rule.patterns[key] = (char *)pattern;
	return process_rule__matches(&rule, f);
}

static void patterns(void **state)
{
	static const struct {
		enum process_key key;
		const char *yes, *no;
	} tests[] = {
		{ PROCESS_COMM, "redis-server", "redis" },
		{ PROCESS_COMM, "redis*", "*redis" },
		{ PROCESS_COMM, "r?dis-[rst]erver", "R*" },
		{ PROCESS_EXE, "/usr/*", "/usr/bin" },
		{ PROCESS_EXE, "*/redis-server", "redis-server" },
		{ PROCESS_CGROUP, "/kubepods.slice/*", "kubepods.slice/*" },
		/* by its id, by its name, or by its service */
		{ PROCESS_CONTAINER, "abc*", "abc" },
		{ PROCESS_CONTAINER, "redis", "cache" },
		{ PROCESS_CONTAINER, "st?re", "stor" },
		{ PROCESS_POD, "cache-*", "cache" },
		{ PROCESS_NAMESPACE, "shop", "s" },
		{ PROCESS_UNIT, "*.scope", "*.service" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!matches(tests[i].key, tests[i].yes, &process))
			fail_msg("%s: no match", tests[i].yes);
		if (matches(tests[i].key, tests[i].no, &process))
			fail_msg("%s: a match", tests[i].no);
	}
}

/* A star means something, and all patterns have to match. */
static void what_is_not_known_does_not_match(void **state)
{
	static const struct process_facts nothing = {
		.of = { [PROCESS_COMM] = "a", [PROCESS_POD] = "" }
	};
	struct process_rule rule = { .patterns = { [PROCESS_COMM] = "a", [PROCESS_UNIT] = "*" } };

	(void)state;
	for (int i = 0; i < PROCESS_NR_KEYS; i++)
		assert_int_equal(matches(i, "*", &nothing), i == PROCESS_COMM);
	assert_false(process_rule__matches(&rule, &nothing));
	rule.patterns[PROCESS_UNIT] = NULL;
	assert_true(process_rule__matches(&rule, &nothing));
	assert_false(process_rule__matches(&rule, &process));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns),
		cmocka_unit_test(what_is_not_known_does_not_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
