/* SPDX-License-Identifier: BSD-2-Clause */
/* A system call that returns -errno and does not write to errno, unlike syscall(2): of processes that run in our memory
 * beside us (CLONE_VM), whose errno is ours. */
#ifndef BASE_RAW_CALL_H
#define BASE_RAW_CALL_H

static inline long raw_call(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif
