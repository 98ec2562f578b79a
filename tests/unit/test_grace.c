// SPDX-License-Identifier: BSD-2-Clause
/* Grace periods: each that is asked for passes, and says so; what they are asked to remove is gone
 * then; what waits for them has few rights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/util.h"
#include "kernel/grace.h"

static struct grace *grace;

static int setup(void **state)
{
	(void)state;
	grace = grace__new();
	if (!grace)
		print_message("no maps: %s\n", strerror(errno));
	return grace || errno == EPERM ? 0 : 1;
}

static int teardown(void **state)
{
	(void)state;
	grace__free(grace);
	grace = NULL;
	return 0;
}

#define NEED_GRACE()            \
	do {                    \
		if (!grace)     \
			skip(); \
	} while (0)

static void test_passes(void **state)
{
	struct pollfd p;
	uint64_t number = 0;

	(void)state;
	NEED_GRACE();
	assert_int_equal(grace__passed(grace, 0, true), 1);
	for (uint64_t i = 1; i <= 3; i++) {
		p = (struct pollfd){ .fd = grace__fd(grace), .events = POLLIN };
		assert_int_equal(poll(&p, 1, 0), 0);
		number = grace__ask(grace);
		assert_int_equal(number, i);
		assert_int_equal(poll(&p, 1, -1), 1);
		assert_int_equal(grace__passed(grace, number, false), 1);
	}
	assert_int_equal(grace__passed(grace, number + 1, false), 0);
	for (int i = 0; i < 100; i++)
		number = grace__ask(grace);
	assert_int_equal(grace__passed(grace, number, true), 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	/* one is not waited for: it ends with what waits for it */
	(void)grace__ask(grace);
}

static void test_changes(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	uint32_t keys[] = { 0, 1 }, ids;
	int inner, outer;

	(void)state;
	NEED_GRACE();
	inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, 4, 1, NULL);
	opts.inner_map_fd = (uint32_t)inner;
	outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", 4, 4, 2, &opts);
	assert_true(inner >= 0 && outer >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		assert_int_equal(bpf_map_update_elem(outer, &keys[i], &inner, BPF_ANY), 0);
	assert_int_equal(grace__passed(grace, grace__remove(grace, outer, 1), true), 1);
	assert_int_equal(bpf_map_lookup_elem(outer, &keys[0], &ids), 0);
	assert_int_equal(bpf_map_lookup_elem(outer, &keys[1], &ids), -ENOENT);
	/* one that is not there: it passes all the same */
	assert_int_equal(grace__passed(grace, grace__remove(grace, outer, 1), true), 1);
	assert_int_equal(grace__passed(grace, grace__put(grace, outer, 1, inner), true), 1);
	assert_int_equal(bpf_map_lookup_elem(outer, &keys[1], &ids), 0);
	/* in the order in which it is asked for */
	(void)grace__remove(grace, outer, 1);
	(void)grace__put(grace, outer, 1, inner);
	(void)grace__put(grace, outer, 0, inner);
	assert_int_equal(grace__passed(grace, grace__remove(grace, outer, 0), true), 1);
	assert_int_equal(bpf_map_lookup_elem(outer, &keys[0], &ids), -ENOENT);
	assert_int_equal(bpf_map_lookup_elem(outer, &keys[1], &ids), 0);
	/* what cannot be: the caller relies on it */
	assert_true(grace__passed(grace, grace__put(grace, outer, 2, inner), true) < 0);
	close(inner);
	close(outer);
}

/* Capabilities in force, and signals that are blocked, of a thread of ours. */
static void read_thread(const char *tid, uint64_t *ret_caps, uint64_t *ret_blocked)
{
	char path[64], *buf;
	size_t sz;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", tid);
	assert_int_equal(util_read_file(path, 65536, &buf, &sz), 0);
	*ret_caps = strtoull(strstr(buf, "\nCapEff:") + 8, NULL, 16);
	*ret_blocked = strtoull(strstr(buf, "\nSigBlk:") + 8, NULL, 16);
	free(buf);
}

static void test_rights(void **state)
{
	uint64_t permitted, effective, caps, blocked;
	struct dirent *entry;
	int threads = 0;
	DIR *dir;

	(void)state;
	NEED_GRACE();
	/* by then it has given up what it does not need */
	assert_int_equal(grace__passed(grace, grace__ask(grace), true), 1);
	assert_int_equal(caps_get(&permitted, &effective), 0);
	dir = opendir("/proc/self/task");
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		read_thread(entry->d_name, &caps, &blocked);
		if (atoi(entry->d_name) == getpid()) {
			assert_int_equal(caps, effective);
			continue;
		}
		threads++;
		assert_int_equal(caps, effective & CAPS_BIT(CAP_BPF) ?
					       CAPS_BIT(CAP_BPF) :
					       effective & CAPS_BIT(CAP_SYS_ADMIN));
		assert_true(blocked & (1ULL << (SIGINT - 1)));
		assert_true(blocked & (1ULL << (SIGTERM - 1)));
	}
	closedir(dir);
	assert_int_equal(threads, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_passes),
		TEST(test_changes),
		TEST(test_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
