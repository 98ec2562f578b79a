// SPDX-License-Identifier: BSD-2-Clause
#include "base/own_stack.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#define GUARD_SZ (1U << 20) /* more than any function takes at once */
#define MAPPING_SZ (GUARD_SZ + OWN_STACK_SZ)

/* makecontext(3) passes on ints only. */
static struct {
	void (*run)(void *arg);
	void *arg;
} call;

static void enter(void)
{
	call.run(call.arg);
}

static bool is_large_enough(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_STACK, &l) || l.rlim_cur >= OWN_STACK_SZ;
}

/* pthread_create(3): threads get what the limit was when the program began. */
static void give_threads_as_much(void)
{
	pthread_attr_t attr;

	if (pthread_attr_init(&attr))
		return;
	if (!pthread_attr_setstacksize(&attr, OWN_STACK_SZ))
		(void)pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

void own_stack_run(void (*run)(void *arg), void *arg)
{
	ucontext_t here, there;
	char *mapping;

	if (is_large_enough()) {
		run(arg);
		return;
	}
	give_threads_as_much();
	mapping = mmap(NULL, MAPPING_SZ, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (mapping == MAP_FAILED || mprotect(mapping, GUARD_SZ, PROT_NONE) || getcontext(&there)) {
		if (mapping != MAP_FAILED)
			munmap(mapping, MAPPING_SZ);
		run(arg);
		return;
	}
	there.uc_stack.ss_sp = mapping + GUARD_SZ;
	there.uc_stack.ss_size = OWN_STACK_SZ;
	there.uc_link = &here;
	call.run = run;
	call.arg = arg;
	makecontext(&there, enter, 0);
	(void)swapcontext(&here, &there);
	munmap(mapping, MAPPING_SZ);
}
