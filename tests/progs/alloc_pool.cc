// SPDX-License-Identifier: BSD-2-Clause
// A program with an operator new of its own, which gives small blocks from a pool, asks malloc for others, and throws if that fails.
//   exhaust  others until there is no memory, again and again: caught, and counted on
//   small    one of the pool each ms, until it ends
#include <cstdlib>
#include <new>

#include <sys/resource.h>

#include "alloc.h"

#define TIMES 20
#define SMALL 256
#define OTHER 4000
#define POOL_SZ (1 << 20)
#define MOST 4096 // others at a time

static char pool[POOL_SZ];
static size_t pool_used;

NOIPA void *operator new(size_t n)
{
	void *p = nullptr;

	// none is in use for so long that its turn would come again
	if (n <= SMALL) {
		p = pool + pool_used;
		pool_used = (pool_used + SMALL) % sizeof(pool);
		return p;
	}
	p = malloc(n);
	if (!p)
		throw std::bad_alloc();
	return p;
}

NOIPA void operator delete(void *p) noexcept
{
	if (static_cast<char *>(p) < pool || static_cast<char *>(p) >= pool + sizeof(pool))
		free(p);
}

NOIPA void operator delete(void *p, size_t n) noexcept
{
	(void)n;
	operator delete(p);
}

LEAF(leaf_small, p = ::operator new(n))
LEAF(leaf_other, p = ::operator new(n))

static NOIPA void limit_memory(bool on)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_AS, &l))
		_exit(3);
	// what there is already stays
	l.rlim_cur = on ? 0 : l.rlim_max;
	if (setrlimit(RLIMIT_AS, &l))
		_exit(3);
}

// Until there is no memory.
static NOIPA void fill(void)
{
	static void *volatile other[MOST];
	static volatile int cnt, line;

	cnt = 0;
	try {
		while (cnt < MOST) {
			other[cnt] = leaf_other(OTHER);
			cnt = cnt + 1;
			line = ledger_took("main;exhaust;fill;leaf_other", OTHER);
		}
		_exit(3);
	} catch (const std::bad_alloc &) {
	}
	while (cnt) {
		cnt = cnt - 1;
		operator delete(other[cnt]);
		ledger_freed(line);
	}
}

static NOIPA void exhaust(void)
{
	for (int i = 0; i < TIMES; i++) {
		limit_memory(true);
		leaf_small(24);
		ledger_took("main;exhaust;leaf_small", 24);
		fill();
		limit_memory(false);
	}
}

static NOIPA void small(void)
{
	for (;;) {
		leaf_small(24);
		alloc_sleep_ms(1);
	}
}

static const struct alloc_mode modes[] = {
	{ "exhaust", exhaust },
	{ "small", small },
};

int main(int argc, char **argv)
{
	const char *mode = alloc_begin(argc, argv);

	alloc_run(mode, modes, sizeof(modes) / sizeof(modes[0]));
	return 0;
}
