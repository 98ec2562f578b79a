/* SPDX-License-Identifier: BSD-2-Clause */
/* base/memory_max: what control groups leave, by files as the kernel has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory_max.h"
#include "base/util.h"
#include "toolrun.h"

#define MIB (1ULL << 20)

static void put(const char *path, const char *text)
{
	assert_true(toolrun("mkdir -p $(dirname %s) && printf '%s' > %s", path, text, path));
}

static uint64_t limit(const char *mount, const char *groups, pid_t pid)
{
	return memory_max_of(toolrun_path(mount), groups, pid);
}

static void test_limits(void **state)
{
	(void)state;
	put("a/x/memory.max", "1000000\n");
	put("a/x/y/memory.max", "max\n");
	put("a/x/y/z/memory.max", "500000\n");
	assert_int_equal(limit("a", "0::/x\n", 1), 1000000);
	assert_int_equal(limit("a", "0::/x/y\n", 1), 1000000);
	assert_int_equal(limit("a", "0::/x/y/z\n", 1), 500000);
	assert_int_equal(limit("a", "0::/x/y/new\n", 1), 1000000);
	assert_int_equal(limit("a", "0::/other\n", 1), UINT64_MAX);
	assert_int_equal(limit("a", "0::/../x\n", 1), UINT64_MAX);
	assert_int_equal(limit("none", "0::/\n", 1), UINT64_MAX);
	assert_int_equal(limit("a", "", 1), UINT64_MAX);
	assert_int_equal(limit("a", "0\n::\n:\n\n", 1), UINT64_MAX);
	/* in a namespace, with its own part mounted */
	put("b/memory.max", "70000\n");
	assert_int_equal(limit("b", "0::/\n", 1), 70000);
	assert_int_equal(limit("b", "0::/sub\n", 1), 70000);
	/* version 1, and both */
	put("c/memory/p/memory.limit_in_bytes", "30000\n");
	put("c/memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(limit("c", "5:pids:/p\n4:memory:/p\n0::/\n", 1), 30000);
	assert_int_equal(limit("c", "4:cpu,memory:/p/q\n", 1), 30000);
	assert_int_equal(limit("c", "4:memory:/\n", 1), 9223372036854771712ULL);
	assert_int_equal(limit("c", "4:name=memory:/p\n3:memory2:/p\n", 1), UINT64_MAX);
}

/* In a namespace, with the whole machine's mounted: the path is none of that. */
static void test_hidden(void **state)
{
	(void)state;
	put("m/cgroup.procs", "1\n2\n");
	put("m/pods/cgroup.procs", "");
	put("m/pods/memory.max", "90000\n");
	put("m/pods/one/cgroup.procs", "5\n");
	put("m/pods/one/memory.max", "40000\n");
	put("m/pods/two/cgroup.procs", "12\n123\n");
	put("m/pods/two/memory.max", "max\n");
	/* which is no group */
	put("m/none/sub/cgroup.procs", "6\n");
	put("m/none/sub/memory.max", "10000\n");
	assert_int_equal(limit("m", "0::/\n", 5), 40000);
	assert_int_equal(limit("m", "0::/\n", 123), 90000);
	assert_int_equal(limit("m", "0::/\n", 12), 90000);
	assert_int_equal(limit("m", "0::/\n", 2), UINT64_MAX);
	assert_int_equal(limit("m", "0::/\n", 3), UINT64_MAX);
	assert_int_equal(limit("m", "0::/\n", 6), UINT64_MAX);
}

static void test_share(void **state)
{
	(void)state;
	assert_int_equal(memory_max_share(UINT64_MAX, 2, 4096 * MIB), 4096 * MIB);
	assert_int_equal(memory_max_share(1024 * MIB, 2, 4096 * MIB), 512 * MIB);
	assert_int_equal(memory_max_share(1024 * MIB, 2, 256 * MIB), 256 * MIB);
	assert_int_equal(memory_max_share(1024 * MIB, 4, 1024 * MIB), 256 * MIB);
	assert_int_equal(memory_max_share(1, 2, 4096 * MIB), 64 * MIB);
	assert_int_equal(memory_max_share(1, 2, 1), 1);
}

static void test_own(void **state)
{
	char *groups;
	size_t sz;

	(void)state;
	assert_int_equal(util_read_file("/proc/self/cgroup", 1 << 20, &groups, &sz), 0);
	assert_int_equal(memory_max(), memory_max_of("/sys/fs/cgroup", groups, getpid()));
	free(groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_own),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
