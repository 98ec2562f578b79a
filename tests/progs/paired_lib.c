/* SPDX-License-Identifier: BSD-2-Clause */
/* The library of paired.c: paired.ld puts its code into two segments. */
#include "prog.h"

#define SECOND NOIPA __attribute__((section(".text.second")))

void paired_first(long n);
void paired_second(long n);

static NOIPA void count(long n)
{
	while (n--)
		prog_sink++;
}

static SECOND void count_second(long n)
{
	while (n--)
		prog_sink++;
}

/* The frames of the two differ, and are larger than what a guess would bridge. */
#define CALLS(name, count, frame)                              \
	void name(long n)                                      \
	{                                                      \
		char room[frame];                              \
                                                               \
		__asm__ volatile("" : : "r"(room) : "memory"); \
		count(n);                                      \
		NO_TAIL_CALL();                                \
	}
NOIPA CALLS(paired_first, count, 600) SECOND CALLS(paired_second, count_second, 3000)
