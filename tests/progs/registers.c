/* SPDX-License-Identifier: BSD-2-Clause */
/* main wild: a leaf with an unwind table and nonsense in rbp, which the table says to leave alone.
 * Mode "self": rbp is a cycle. */
#include "prog.h"

void wild(void);
void self(void);

__asm__(".text\n"
	".globl wild; .type wild, @function\n"
	"wild: .cfi_startproc\n"
	"	push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"	movabs $0xdeadbeefdeadbeef, %rbp\n"
	"1:	pause\n"
	"	jmp 1b\n"
	".cfi_endproc\n"
	".size wild, .-wild\n"
	".globl self; .type self, @function\n"
	"self: .cfi_startproc\n"
	"	push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"	push %rsp\n"
	".cfi_def_cfa_offset 24\n"
	"	mov %rsp, %rbp\n"
	"	mov %rsp, (%rsp)\n"
	"1:	pause\n"
	"	jmp 1b\n"
	".cfi_endproc\n"
	".size self, .-self\n");

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);

	prog_ready();
	if (!strcmp(mode, "self"))
		self();
	else
		wild();
	return 0;
}
