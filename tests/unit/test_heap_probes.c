// SPDX-License-Identifier: BSD-2-Clause
/* What heap_probes keeps of objects, whose numbers are used again, and of those that do not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/util.h"
#include "heap/heap_probes.h"
#include "target/allocators.h"
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

static int allocators_err; /* of the next request, once */

int __real_objects__allocators(struct objects *o, uint32_t id, struct allocator_points *ret);
int __wrap_objects__allocators(struct objects *o, uint32_t id, struct allocator_points *ret);

int __wrap_objects__allocators(struct objects *o, uint32_t id, struct allocator_points *ret)
{
	int err = allocators_err;

	allocators_err = 0;
	return err ? err : __real_objects__allocators(o, id, ret);
}

/* What has not answered is not known to have nothing: it is asked again. What has is not. */
static void test_unanswered(void **state)
{
	static const struct {
		int err;
		enum heap_probes_has first, then;
	} answers[] = {
		{ -EAGAIN, HEAP_PROBES_UNKNOWN, HEAP_PROBES_ALLOCATOR },
		{ -ENOMEM, HEAP_PROBES_UNKNOWN, HEAP_PROBES_ALLOCATOR },
		{ -ENOEXEC, HEAP_PROBES_NOTHING, HEAP_PROBES_NOTHING },
	};
	Dl_info info;

	(void)state;
	assert_true(dladdr((void *)(uintptr_t)getppid, &info));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		struct objects *o = objects__new();
		struct heap_probes *hp = heap_probes__new(UPROBES_MULTI, false, NULL, o);
		uint32_t libc = add(o, info.dli_fname);

		allocators_err = answers[i].err;
		assert_int_equal(heap_probes__look(hp, libc), answers[i].first);
		assert_int_equal(heap_probes__look(hp, libc), answers[i].then);
		allocators_err = -ENOEXEC;
		assert_int_equal(heap_probes__look(hp, libc), answers[i].then);
		/* it was not asked */
		assert_int_equal(allocators_err, -ENOEXEC);
		heap_probes__free(hp);
		objects__free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_unanswered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
