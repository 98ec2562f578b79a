/* SPDX-License-Identifier: BSD-2-Clause */
/* main hot six: six() is pushes and pops and nothing else, so that samples land on each of them. */
#include "prog.h"

void six(void);

__asm__(".text\n"
	".globl six; .type six, @function\n"
	"six: .cfi_startproc\n"
	"	push %rbx; .cfi_adjust_cfa_offset 8\n"
	"	push %rbp; .cfi_adjust_cfa_offset 8; .cfi_rel_offset %rbp, 0\n"
	"	mov $7, %ebp\n"
	"	push %r12; .cfi_adjust_cfa_offset 8\n"
	"	push %r13; .cfi_adjust_cfa_offset 8\n"
	"	push %r14; .cfi_adjust_cfa_offset 8\n"
	"	push %r15; .cfi_adjust_cfa_offset 8\n"
	"	sub $72, %rsp; .cfi_adjust_cfa_offset 72\n"
	"	nop\n"
	"	add $72, %rsp; .cfi_adjust_cfa_offset -72\n"
	"	pop %r15; .cfi_adjust_cfa_offset -8\n"
	"	pop %r14; .cfi_adjust_cfa_offset -8\n"
	"	pop %r13; .cfi_adjust_cfa_offset -8\n"
	"	pop %r12; .cfi_adjust_cfa_offset -8\n"
	"	pop %rbp; .cfi_adjust_cfa_offset -8; .cfi_restore %rbp\n"
	"	pop %rbx; .cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size six, .-six\n");

static NOIPA void hot(void)
{
	while (!prog_stop)
		six();
}

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	prog_ready();
	hot();
	return 0;
}
