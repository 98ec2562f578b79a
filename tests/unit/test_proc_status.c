// SPDX-License-Identifier: BSD-2-Clause
/* /proc/ID/status, with a hostile name in it, and paths with the kernel's remark behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/deleted.h"
#include "base/proc_status.h"

static void test_ours(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "\nTgid:\t7\n"), 0);
	assert_int_equal(proc_status_read(PROC_STATUS_DIR, (uint32_t)getpid(), &text), 0);
	assert_int_equal(proc_status_number(text, "Tgid"), getpid());
	assert_int_equal(proc_status_number(text, "Threads"), 1);
	assert_true(proc_status_number(text, "VmHWM") > 100);
	assert_memory_equal(proc_status_line(text, "State"), "\tR", 2);
	free(text);
}

static void test_none(void **state)
{
	char *text;

	(void)state;
	assert_int_not_equal(proc_status_read("/does/not/exist", 1, &text), 0);
	assert_int_equal(proc_status_number("Name:\ta\nTgid:\t7\n", "Tgi"), 0);
	assert_int_equal(proc_status_number("Name:\ta\nTgid:\t7\n", "Threads"), 0);
	assert_null(proc_status_line("Tgid:\t7\n", "Tgid"));
}

static size_t length(const char *path)
{
	return deleted_path_length(path, strlen(path));
}

static void test_deleted(void **state)
{
	(void)state;
	assert_int_equal(length("/a (deleted)"), 2);
	assert_int_equal(length("/a (deleted) (deleted)"), strlen("/a (deleted)"));
	assert_int_equal(length("/a (deleted) "), strlen("/a (deleted) "));
	assert_int_equal(length("/a(deleted)"), strlen("/a(deleted)"));
	assert_int_equal(length(" (deleted)"), strlen(" (deleted)"));
	assert_int_equal(length(""), 0);
	/* no more than its length is looked at */
	assert_int_equal(deleted_path_length("/a (deleted)", 5), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
