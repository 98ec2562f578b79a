/* SPDX-License-Identifier: BSD-2-Clause */
/* Spins with a stack pointer, mode "sp", or with both pointers, mode "both", that lead into the
 * kernel. */
#include "prog.h"

static NOIPA void wild(int both)
{
	/* the direct map of all memory begins there (Documentation/arch/x86/x86_64/mm.rst) */
	if (both)
		__asm__ volatile(
			"mov $0xffff888000001000,%%rsp; mov %%rsp,%%rbp; 1: pause; jmp 1b" ::
				: "memory");
	else
		__asm__ volatile("mov $0xffff888000001000,%%rsp; 1: pause; jmp 1b" ::: "memory");
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);

	prog_ready();
	wild(!strcmp(mode, "both"));
	return 0;
}
