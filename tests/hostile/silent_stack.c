/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that waits for ever, and whose stack is said to be in a file that it maps, which nobody has read so far.
 * FILE: of at least a page.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "prog.h"

#define PAGE 4096

static uint32_t futex;

/* Nothing uses the stack after that, nor does the kernel. */
static void *wait_there(void *stack)
{
	register long timeout __asm__("r10") = 0;
	long nr = SYS_futex;

	__asm__ volatile("mov %[stack], %%rsp\n1:\tsyscall\n\tmov %[nr], %%rax\n\tjmp 1b"
			 : "+a"(nr)
			 : [stack] "r"((char *)stack + PAGE / 2), [nr] "i"(SYS_futex), "D"(&futex),
			   "S"(FUTEX_WAIT), "d"(0), "r"(timeout)
			 : "rcx", "r11", "memory");
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	void *stack = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	pthread_t thread;

	if (stack == MAP_FAILED || pthread_create(&thread, NULL, wait_there, stack))
		return 1;
	alarm(120);
	prog_ready();
	for (;;)
		pause();
}
