// SPDX-License-Identifier: BSD-2-Clause
/*
 * Spins at a given depth: DEPTH calls of one of eight functions each, so that the stack changes
 * tables' rows as real ones do. Built with and without frame pointers for the comparison of the two
 * kinds of walk.
 */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long sink;

static unsigned long descend(int depth);

#define LEVEL(n)                                                                     \
	static unsigned long __attribute__((noinline, noclone)) level_##n(int depth) \
	{                                                                            \
		volatile char local[16 * n + 8];                                     \
                                                                                     \
		local[0] = (char)depth;                                              \
		return descend(depth - 1) + (unsigned long)local[0];                 \
	}
LEVEL(0)
LEVEL(1)
LEVEL(2)
LEVEL(3)
LEVEL(4)
LEVEL(5)
LEVEL(6)
LEVEL(7)

static unsigned long __attribute__((noinline, noclone)) spin(void)
{
	for (;;)
		sink++;
	return sink;
}

static unsigned long __attribute__((always_inline)) inline descend(int depth)
{
	static unsigned long (*const levels[])(int) = { level_0, level_1, level_2, level_3,
							level_4, level_5, level_6, level_7 };

	return depth > 0 ? levels[depth % 8](depth) + 1 : spin() + 1;
}

int main(int argc, char **argv)
{
	printf("ready\n");
	fflush(stdout);
	return (int)level_0(argc > 1 ? atoi(argv[1]) : 40);
}
