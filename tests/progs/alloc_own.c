/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library with an allocator of its own under jemalloc's prefix: a block after another, none of
 * them used again. What own_hook points to is called in the middle of an allocation, and may not
 * come back.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void (*own_hook)(void);

void *je_malloc(size_t n);
void *je_calloc(size_t cnt, size_t n);
void *je_realloc(void *p, size_t n);
void je_free(void *p);

#define HEADER 16

static char arena[1 << 20];
static size_t used;

static __attribute__((noinline)) void *carve(size_t n)
{
	char *p = arena +
		  __atomic_fetch_add(&used, HEADER + ((n + 15) & ~(size_t)15), __ATOMIC_RELAXED);

	if (own_hook)
		own_hook();
	if (p + HEADER + n > arena + sizeof(arena))
		return NULL;
	memcpy(p, &n, sizeof(n));
	return p + HEADER;
}

void *je_malloc(size_t n)
{
	void *p = carve(n);

	__asm__ volatile("" : "+r"(p));
	return p;
}

void *je_calloc(size_t cnt, size_t n)
{
	void *p;

	if (n && cnt > SIZE_MAX / n)
		return NULL;
	p = carve(cnt * n);
	if (p)
		memset(p, 0, cnt * n);
	return p;
}

void *je_realloc(void *p, size_t n)
{
	void *q = carve(n);
	size_t had;

	if (p && q) {
		memcpy(&had, (char *)p - HEADER, sizeof(had));
		memcpy(q, p, had < n ? had : n);
	}
	return q;
}

void je_free(void *p)
{
	if (p)
		memset(p, 0xdd, 1);
}
