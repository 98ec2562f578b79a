/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes a target of the configuration means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/target_rule.h"
#include "base/util.h"

static const struct target_facts process = {
	.of = {
		[TARGET_COMM] = "redis-server",
		[TARGET_EXE] = "/usr/bin/redis-server",
		[TARGET_CGROUP] = "/kubepods.slice/pod1/cri-containerd-abcdef.scope",
		[TARGET_CONTAINER] = "abcdef",
		[TARGET_POD] = "cache-0",
		[TARGET_NAMESPACE] = "shop",
		[TARGET_UNIT] = "cri-containerd-abcdef.scope",
	},
	.container_name = "redis",
};

static bool matches(enum target_key key, const char *pattern, const struct target_facts *f)
{
	struct target_rule rule = { 0 };

	rule.patterns[key] = (char *)pattern;
	return target_rule__matches(&rule, f);
}

static void patterns(void **state)
{
	static const struct {
		enum target_key key;
		const char *yes, *no;
	} tests[] = {
		{ TARGET_COMM, "redis-server", "redis" },
		{ TARGET_COMM, "redis*", "*redis" },
		{ TARGET_COMM, "r?dis-[rst]erver", "R*" },
		{ TARGET_EXE, "/usr/*", "/usr/bin" },
		{ TARGET_EXE, "*/redis-server", "redis-server" },
		{ TARGET_CGROUP, "/kubepods.slice/*", "kubepods.slice/*" },
		/* by its id or by its name */
		{ TARGET_CONTAINER, "abc*", "abc" },
		{ TARGET_CONTAINER, "redis", "cache" },
		{ TARGET_POD, "cache-*", "cache" },
		{ TARGET_NAMESPACE, "shop", "s" },
		{ TARGET_UNIT, "*.scope", "*.service" },
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
	static const struct target_facts nothing = {
		.of = { [TARGET_COMM] = "a", [TARGET_POD] = "" }
	};
	struct target_rule rule = { .patterns = { [TARGET_COMM] = "a", [TARGET_UNIT] = "*" } };

	(void)state;
	for (int i = 0; i < TARGET_NR_KEYS; i++)
		assert_int_equal(matches(i, "*", &nothing), i == TARGET_COMM);
	assert_false(target_rule__matches(&rule, &nothing));
	rule.patterns[TARGET_UNIT] = NULL;
	assert_true(target_rule__matches(&rule, &nothing));
	assert_false(target_rule__matches(&rule, &process));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns),
		cmocka_unit_test(what_is_not_known_does_not_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
