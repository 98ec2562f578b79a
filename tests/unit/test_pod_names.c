// SPDX-License-Identifier: BSD-2-Clause
/* Names of pods and containers by kubelet's log folders, which are made here as kubelet makes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "target/pod_names.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "12345678-90ab-cdef-1234-567890abcdef"

static char root[] = "/tmp/bpfprof-pods-XXXXXX";

static void make(const char *folder, const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", root, folder);
	(void)mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/%s", root, folder, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void clear(const char *folder)
{
	char command[1200];

	snprintf(command, sizeof(command), "rm -rf '%s/%s'", root, folder);
	assert_int_equal(system(command), 0);
}

static void check(const char *uid, const char *id, const char *space, const char *pod,
		  const char *container)
{
	struct pod_names got = { 0 };

	pod_names__find(root, uid, id, &got);
	assert_string_equal(got.space ? got.space : "", space);
	assert_string_equal(got.pod ? got.pod : "", pod);
	assert_string_equal(got.container ? got.container : "", container);
	pod_names__done(&got);
}

static void test_names(void **state)
{
	char cut[256];

	(void)state;
	/* no kubelet */
	check(UID, ID, "", "", "");
	make("pods", "shop_web-7d4b9c-x2x4z_" UID);
	make("pods", "shop_db-0_" UID "0");
	make("pods", "kube-system_etcd-node_1234567890abcdef1234567890abcdef");
	make("containers", "db-0_shop_postgres-" OTHER ".log");
	/* the pod's own container, which has no log */
	check(UID, OTHER "0", "shop", "web-7d4b9c-x2x4z", "");
	check("1234567890abcdef1234567890abcdef", "", "kube-system", "etcd-node", "");
	make("containers", "web-7d4b9c-x2x4z_shop_nginx-" ID ".log");
	check(UID, ID, "shop", "web-7d4b9c-x2x4z", "nginx");
	check("", ID, "shop", "web-7d4b9c-x2x4z", "nginx");
	check("", OTHER, "shop", "db-0", "postgres");
	check("", "", "", "", "");
	/* a name that was cut, and with it the id */
	clear("containers");
	memset(cut, 'n', sizeof(cut));
	snprintf(cut + 219, sizeof(cut) - 219, "_shop_nginx-%.20s.log", ID);
	make("containers", cut);
	cut[219] = '\0';
	check("", ID, "shop", cut, "nginx");
	check(UID, ID, "shop", "web-7d4b9c-x2x4z", "nginx");
	/* too short to be its own, or not cut */
	clear("containers");
	make("containers", "web_shop_nginx-01234567890.log");
	make("containers", "web_shop_nginx-0123456789abcdef.log");
	check("", ID, "", "", "");
}

/* What kubelet would not make. */
static void test_others(void **state)
{
	static const char *const names[] = { "-",
					     ".log",
					     "_",
					     "__-" ID ".log",
					     "a_b_c" ID ".log",
					     "-" ID ".log",
					     "a_b_c-" ID,
					     "A_\xff_\n-" ID ".log" };

	(void)state;
	clear("pods");
	clear("containers");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		make("containers", names[i]);
	make("pods", "_" UID);
	make("pods", "x y_Z_" UID "1");
	check(UID, ID, "", "", "");
	check(UID "1", "", "", "", "");
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : 1;
}

static int teardown(void **state)
{
	(void)state;
	clear("");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
