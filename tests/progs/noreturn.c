/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main caller never: the call is the last instruction of caller, so that the return address is the
 * first byte of decoy, whose unwind rule is another one.
 */
#include "prog.h"

void caller(void);
NOIPA void never(void);

void never(void)
{
	prog_ready();
	spin();
	NO_TAIL_CALL();
}

__asm__(".text\n"
	".globl caller; .type caller, @function\n"
	"caller: .cfi_startproc\n"
	"	sub $24, %rsp\n"
	".cfi_def_cfa_offset 32\n"
	"	call never\n"
	".cfi_endproc\n"
	".size caller, .-caller\n"
	".type decoy, @function\n"
	"decoy: .cfi_startproc\n"
	".cfi_def_cfa_offset 4096\n"
	"	nop; nop; nop; nop\n"
	".cfi_endproc\n"
	".size decoy, .-decoy\n");

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	caller();
	return 0;
}
