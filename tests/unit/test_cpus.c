// SPDX-License-Identifier: BSD-2-Clause
/* The list of CPUs, and the table of what the kernel can do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/cpus.h"
#include "kernel/features.h"
#include "kernel/probe_fds.h"
#include "kernel/sample_rate.h"
#include "kernel/uprobes.h"
#include "kernel/waits_how.h"

#define CNT 12

/* want: a '1' for each CPU that is online. */
static void expect(const char *list, const char *want)
{
	bool online[CNT + 1];
	char got[CNT + 1] = "";

	memset(online, 1, sizeof(online));
	if (cpus_parse(list, online, CNT))
		fail_msg("'%s' is refused", list);
	for (int i = 0; i < CNT; i++)
		got[i] = online[i] ? '1' : '.';
	if (strcmp(got, want))
		fail_msg("'%s' gives %s, not %s", list, got, want);
	/* and nothing behind the array */
	assert_true(online[CNT]);
}

static void test_lists(void **state)
{
	(void)state;
	expect("0\n", "1...........");
	expect("0-3,8\n", "1111....1...");
	expect("0-3,8", "1111....1...");
	expect("1,3,5,7,9,11\n", ".1.1.1.1.1.1");
	expect("5-5", ".....1......");
	expect("\n", "............");
	expect("", "............");
	expect("0-11\n", "111111111111");
	expect("10-4095\n", "..........11");
	expect("12\n", "............");
	expect("4,99999999999999999999\n", "....1.......");
	expect("0-99999999999999999999\n", "111111111111");
}

static void test_garbage(void **state)
{
	static const char *const rows[] = { "x",   "1x",    "1-",  "1-x",  "-1",  "1--2",
					    "3-1", ",",	    "0,x", "0,,1", " ",	  "+1",
					    "0 1", "0-1-2", "0;1", "\t1",  "1- 2" };
	bool online[CNT];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (cpus_parse(rows[i], online, CNT) != -EINVAL)
			fail_msg("'%s' is taken for a list", rows[i]);
}

static void test_this_machine(void **state)
{
	bool online[8192];
	int possible = cpus_possible(), cnt = 0;

	(void)state;
	assert_true(possible > 0 && possible <= 8192);
	assert_int_equal(cpus_online(online, possible), 0);
	for (int i = 0; i < possible; i++)
		cnt += online[i];
	assert_int_equal(cnt, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(possible >= sysconf(_SC_NPROCESSORS_CONF));
}

/* A thread that sleeps leaves its CPU, and one that spins keeps it busy; both are counted. */
static void test_work(void **state)
{
	struct cpus_work before, after;
	uint64_t begin = util_monotonic_ns();

	(void)state;
	assert_int_equal(cpus_work(&before), 0);
	for (int i = 0; i < 100; i++)
		usleep(1);
	do {
		assert_int_equal(cpus_work(&after), 0);
		/* within seconds, unless nothing counts */
		assert_true(util_monotonic_ns() - begin < 60 * NSEC_PER_SEC);
	} while (after.busy_ns < before.busy_ns + NSEC_PER_SEC / 10);
	assert_true(after.switches >= before.switches + 100);
	/* no more than there are CPUs; each of five numbers is one of whole ticks of 10 ms */
	assert_true(after.busy_ns - before.busy_ns <=
		    (util_monotonic_ns() - begin) * sysconf(_SC_NPROCESSORS_ONLN) +
			    NSEC_PER_SEC / 20);
}

static void test_features(void **state)
{
	(void)state;
	for (int i = 0; i < NR_FEATURES; i++) {
		struct feature_result r = features_probe(i), again = features_probe(i);

		assert_non_null(r.name);
		assert_true(r.name[0] != '\0');
		assert_non_null(r.text);
		assert_true(r.text[0] != '\0');
		/* asking leaves nothing behind that would change the answer */
		assert_int_equal(r.ok, again.ok);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(r.name, features_probe(j).name);
	}
	assert_int_equal(features_probe(FEATURE_BTF).ok, !access("/sys/kernel/btf/vmlinux", R_OK));
}

static size_t asked; /* for what is not needed, or for a text */

enum uprobe_method __real_uprobes_probe(enum uprobe_method at_best);
enum uprobe_method __wrap_uprobes_probe(enum uprobe_method at_best);
void __real_waits_how__probe(struct waits_how *ret);
void __wrap_waits_how__probe(struct waits_how *ret);
enum fds_how __real_probe_fds__how(void);
enum fds_how __wrap_probe_fds__how(void);
uint64_t __real_sample_rate__cost_ns(void);
uint64_t __wrap_sample_rate__cost_ns(void);

enum uprobe_method __wrap_uprobes_probe(enum uprobe_method at_best)
{
	asked++;
	return __real_uprobes_probe(at_best);
}

void __wrap_waits_how__probe(struct waits_how *ret)
{
	asked++;
	__real_waits_how__probe(ret);
}

enum fds_how __wrap_probe_fds__how(void)
{
	asked++;
	return __real_probe_fds__how();
}

uint64_t __wrap_sample_rate__cost_ns(void)
{
	asked++;
	return __real_sample_rate__cost_ns();
}

/* Whoever wants to know whether anything can be recorded waits for nothing else. */
static void test_missing(void **state)
{
	const char *missing;

	(void)state;
	asked = 0;
	missing = features_missing();
	assert_int_equal(asked, 0);
	for (int i = 0; i < NR_FEATURES; i++) {
		struct feature_result r = features_probe(i);

		if (!r.needed || r.ok)
			continue;
		assert_non_null(missing);
		assert_string_equal(missing, r.text);
		return;
	}
	assert_null(missing);
	assert_true(asked > 0);
}

static void test_paranoid(void **state)
{
	static const struct {
		int level;
		bool admin, ok;
	} cases[] = {
		{ -1, false, true }, { 2, false, true }, { 2, true, true },   { 3, false, false },
		{ 3, true, true },   { 4, true, true },	 { 4, false, false },
	};
	const char *text;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(features_paranoid(cases[i].level, cases[i].admin, &text),
				 cases[i].ok);
		/* what is asked for, and what would do without it */
		assert_int_equal(strstr(text, "CAP_SYS_ADMIN") != NULL, cases[i].level > 2);
		assert_int_equal(strstr(text, "sysctl kernel.perf_event_paranoid=2") != NULL,
				 cases[i].level > 2);
		assert_int_equal(strstr(text, "run with CAP_SYS_ADMIN") != NULL, !cases[i].ok);
	}
	/* of this machine */
	assert_true(features_probe(FEATURE_PARANOID).ok || features_paranoid_level() > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),	     cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_this_machine), cmocka_unit_test(test_work),
		cmocka_unit_test(test_features),     cmocka_unit_test(test_paranoid),
		cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
