// SPDX-License-Identifier: BSD-2-Clause
/* What heap_probes keeps of objects, whose numbers are used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "heap/heap_probes.h"
#include "target/objects.h"

static uint32_t add(struct objects *o, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return objects__add(o, fd, path);
}

static void ignore(void *ctx, uint32_t object)
{
	(void)ctx;
	(void)object;
}

/* An object without an allocator is not probed where another one with its number had one, nor the
 * other way round. */
static void test_number_used_again(void **state)
{
	struct objects *o = objects__new();
	struct heap_probes *hp = heap_probes__new(UPROBES_MULTI, false, NULL, o);
	uint32_t libc, self;
	Dl_info info;

	(void)state;
	assert_true(o && hp);
	assert_true(dladdr((void *)(uintptr_t)getppid, &info));
	for (int i = 0; i < 2; i++) {
		libc = add(o, info.dli_fname);
		assert_int_equal(libc, 0);
		assert_int_equal(heap_probes__look(hp, libc), HEAP_PROBES_ALLOCATOR);
		assert_int_equal(heap_probes__look(hp, libc), HEAP_PROBES_ALLOCATOR);
		objects__release_unused(o, ignore, NULL);
		self = add(o, "/proc/self/exe");
		assert_int_equal(self, libc);
		assert_int_equal(heap_probes__look(hp, self), HEAP_PROBES_NOTHING);
		objects__release_unused(o, ignore, NULL);
	}
	heap_probes__free(hp);
	objects__free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
