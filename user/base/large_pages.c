// SPDX-License-Identifier: BSD-2-Clause
#include "base/large_pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#define LARGE_SZ (4U << 20)
#define SMALL_PAGE ((uintptr_t)4096)

static bool preferred;

void large_pages__prefer(void)
{
	preferred = true;
}

void large_pages__use(void *array, size_t bytes)
{
	/* from where malloc's mapping begins: mremap(2), by which it grows, takes none that is of two kinds */
	uintptr_t from = (uintptr_t)array & ~(SMALL_PAGE - 1);

	if (preferred && bytes >= LARGE_SZ)
		(void)madvise((void *)from, (uintptr_t)array - from + bytes, MADV_HUGEPAGE);
}
