/* SPDX-License-Identifier: BSD-2-Clause */
/* serve/custom_found: the files of a process are looked at once, and what is recorded goes on meanwhile. Which profiles
 * are found is tested in tests/e2e/test_serve. */
#include <linux/types.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "serve/custom_found.h"
#include "serve/recordings.h"
#include "target/objects.h"

static struct recordings recordings;
static unsigned int tended;

void __real_objects__meanwhile(struct objects *o, void (*call)(void *ctx), void *ctx);
void __wrap_objects__meanwhile(struct objects *o, void (*call)(void *ctx), void *ctx);
void __wrap_recordings__meanwhile(struct recordings *r);

/* As if the first file took some ms. */
void __wrap_objects__meanwhile(struct objects *o, void (*call)(void *ctx), void *ctx)
{
	__real_objects__meanwhile(o, call, ctx);
	if (call)
		call(ctx);
}

void __wrap_recordings__meanwhile(struct recordings *r)
{
	assert_ptr_equal(r, &recordings);
	tended++;
}

/* Were its files looked at, with the recordings tended meanwhile? */
static bool looked(struct custom_found *f, uint32_t pid, int want)
{
	recordings.took_long = false;
	tended = 0;
	assert_int_equal(custom_found__look(f, &recordings, pid), want);
	assert_int_equal(tended > 0, recordings.took_long);
	return recordings.took_long;
}

static void test_look(void **state)
{
	struct custom_found f = { 0 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(looked(&f, getpid(), 0));
	assert_false(looked(&f, getpid(), 0));
	/* it has other code now */
	assert_true(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
	assert_true(looked(&f, getpid(), 0));
	assert_false(looked(&f, getpid(), 0));
	assert_true(looked(&f, getppid(), 0));
	assert_true(looked(&f, getpid(), 0));
	/* no process has this id */
	assert_true(looked(&f, 1U << 30, -ESRCH));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
