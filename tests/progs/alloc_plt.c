/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library with an allocator whose functions call each other by their public names, as any library in front of it
 * sees: a block after another, of which the last one can be given back.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 16 /* the size is in it */

static char arena[1 << 30] __attribute__((aligned(4096)));
static size_t used;

static void *carve(size_t align, size_t n)
{
	size_t from = __atomic_load_n(&used, __ATOMIC_RELAXED), at;

	do {
		at = (from + HEADER + align - 1) & ~(align - 1);
		if (n > sizeof(arena) - at) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!__atomic_compare_exchange_n(&used, &from, at + ((n + 15) & ~(size_t)15), 0,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	memcpy(arena + at - HEADER, &n, sizeof(n));
	return arena + at;
}

static size_t size_of(void *p)
{
	size_t n;

	memcpy(&n, (char *)p - HEADER, sizeof(n));
	return n;
}

void *malloc(size_t n)
{
	return carve(16, n);
}

void free(void *p)
{
	size_t at = (size_t)((char *)p - arena), end;

	if (!p)
		return;
	end = at + ((size_of(p) + 15) & ~(size_t)15);
	__atomic_compare_exchange_n(&used, &end, at - HEADER, 0, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

void *calloc(size_t cnt, size_t n)
{
	void *p;

	if (n && cnt > SIZE_MAX / n) {
		errno = ENOMEM;
		return NULL;
	}
	p = malloc(cnt * n);
	return p ? memset(p, 0, cnt * n) : NULL;
}

void *realloc(void *old, size_t n)
{
	void *p;

	/* in place: then it calls nothing */
	if (old && n <= size_of(old))
		return old;
	p = malloc(n);
	if (p && old) {
		memcpy(p, old, size_of(old));
		free(old);
	}
	return p;
}

void *memalign(size_t align, size_t n)
{
	return carve(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

void *valloc(size_t n)
{
	return memalign(4096, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	int err = errno;
	void *p;

	if (align % sizeof(void *) || align & (align - 1))
		return EINVAL;
	p = aligned_alloc(align, n);
	errno = err;
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}
