/* SPDX-License-Identifier: BSD-2-Clause */
/* A program without libc, and so without an allocator: says "ready" and waits to be killed. */
#include <asm/unistd.h>
#include <stddef.h>

void _start(void);

static long call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

void _start(void)
{
	call(__NR_alarm, 120, 0, 0);
	call(__NR_write, 1, (long)"ready\n", 6);
	for (;;)
		call(__NR_pause, 0, 0, 0);
}
