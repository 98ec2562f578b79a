/* SPDX-License-Identifier: BSD-2-Clause */
/* main wild: a leaf with an unwind table and nonsense in rbp, which the table says to leave alone.
 * Mode "self": rbp is a cycle; "index": rsp was saved where a register says, as OpenSSL's bn_mul_mont
 * does. */
#include "prog.h"

void wild(void);
void self(void);
void by_index(void);

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
	".size self, .-self\n"
	".globl by_index; .type by_index, @function\n"
	"by_index: .cfi_startproc\n"
	"	mov %rsp, %rax\n"
	"	mov $5, %r9d\n"
	"	sub $72, %rsp\n"
	".cfi_def_cfa_offset 80\n"
	"	mov %rax, 8(%rsp,%r9,8)\n"
	/* def_cfa_expression: breg7 8, breg9 0, lit8, mul, plus, deref, plus_uconst 8 */
	".cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8\n"
	"1:	pause\n"
	"	jmp 1b\n"
	".cfi_endproc\n"
	".size by_index, .-by_index\n");

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);

	prog_ready();
	if (!strcmp(mode, "self"))
		self();
	else if (!strcmp(mode, "index"))
		by_index();
	else
		wild();
	return 0;
}
