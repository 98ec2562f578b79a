// SPDX-License-Identifier: BSD-2-Clause
/* When a process is looked at for what it maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/mapped_files.h"
#include "target/objects.h"
#include "target/procs.h"

static enum mapped_files_news news_of(struct mapped_files *m, uint32_t proc)
{
	enum mapped_files_news ret;

	assert_int_equal(mapped_files__look(m, proc, &ret), 0);
	return ret;
}

/* It has news when it is first met, when it maps something, and when a file may answer that did not: once each. */
static void test_news(void **state)
{
	struct procs *procs = procs__new("/proc");
	struct objects *objects = objects__new();
	struct mapped_files *m = mapped_files__new(procs, objects, NULL);
	uint32_t proc;

	(void)state;
	assert_true(procs && objects && m);
	proc = procs__add(procs, (uint32_t)getpid(), 0, 0, "", false, 0);
	assert_int_equal(procs__read_maps(procs, proc, 0), 0);
	assert_int_equal(news_of(m, proc), MAPPED_FILES_FIRST);
	assert_int_equal(news_of(m, proc), MAPPED_FILES_SAME);
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		    MAP_FAILED);
	assert_int_equal(procs__read_maps(procs, proc, 0), 0);
	assert_int_equal(news_of(m, proc), MAPPED_FILES_OTHER);
	assert_int_equal(news_of(m, proc), MAPPED_FILES_SAME);
	objects__wake_at(objects, 1);
	assert_int_equal(news_of(m, proc), MAPPED_FILES_OTHER);
	assert_int_equal(news_of(m, proc), MAPPED_FILES_SAME);
	mapped_files__free(m);
	objects__free(objects);
	procs__free(procs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_news),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
