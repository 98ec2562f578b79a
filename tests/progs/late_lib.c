/* SPDX-License-Identifier: BSD-2-Clause */
/* The libraries of late.c: equal but for the names and the size of a frame, so that a rule of the
 * one fails in the other. */
#include <time.h>

#define NOIPA __attribute__((noipa))
#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)

void NAME(LIB, _entry)(double seconds);
NOIPA void NAME(LIB, _spin)(double seconds);

NOIPA void NAME(LIB, _spin)(double seconds)
{
	volatile char frame[FRAME];
	struct timespec t0, t;
	volatile int n;

	frame[0] = 0;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
	do {
		for (n = 0; n < 100000; n++)
			frame[0]++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec - t0.tv_sec + (t.tv_nsec - t0.tv_nsec) * 1e-9 < seconds);
}

void NAME(LIB, _entry)(double seconds)
{
	NAME(LIB, _spin)(seconds);
	__asm__ volatile("");
}
