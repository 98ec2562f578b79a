/* SPDX-License-Identifier: BSD-2-Clause */
/* The library of unsized.c: behind a function in assembly, whose symbol has no size, are static
 * ones. */
#include "prog.h"

void unsized_asm(long n);
void unsized_entry(long n);

__asm__(".text\n"
	".globl unsized_asm\n"
	".type unsized_asm, @function\n"
	"unsized_asm:\n"
	".cfi_startproc\n"
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	".cfi_endproc\n");

static NOIPA void count(long n)
{
	while (n--)
		prog_sink++;
}

static NOIPA void call_count(long n)
{
	count(n);
	NO_TAIL_CALL();
}

void unsized_entry(long n)
{
	unsized_asm(n);
	call_count(n);
	NO_TAIL_CALL();
}
