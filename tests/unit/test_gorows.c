/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind rows of Go's functions that set rsp: at every instruction of each form that Go's assembler
 * gives them. tests/tables/compare.c compares the others with .debug_frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <linux/types.h>

#include "bpfprof.h"
#include "base/util.h"
#include "target/elf_file.h"
#include "target/gopclntab.h"
#include "target/unwind_build.h"
#include "tests/unit/go_image.h"
#include "tests/unit/truth.h"

/*
 * Each line says the rule at its instruction: sp N, the CFA is rsp + N and rbp is the caller's;
 * sv N, the same and the caller's rbp is saved; bp, the CFA is rbp + 16; r12, it is r12 + 8; no,
 * there is none; in, it is what rbp points to + 16.
 */
__asm__(".macro sp n, insn:vararg\n"
	".pushsection .rules, \"a\"; .byte 0, \\n; .popsection; 9:\\insn\n"
	".pushsection .rules; .byte 8f-9b; .popsection; 8:\n"
	".endm\n"
	".macro sv n, insn:vararg\n"
	".pushsection .rules, \"a\"; .byte 1, \\n; .popsection; 9:\\insn\n"
	".pushsection .rules; .byte 8f-9b; .popsection; 8:\n"
	".endm\n"
	".macro bp insn:vararg\n"
	".pushsection .rules, \"a\"; .byte 2, 16; .popsection; 9:\\insn\n"
	".pushsection .rules; .byte 8f-9b; .popsection; 8:\n"
	".endm\n"
	".macro r12 insn:vararg\n"
	".pushsection .rules, \"a\"; .byte 3, 8; .popsection; 9:\\insn\n"
	".pushsection .rules; .byte 8f-9b; .popsection; 8:\n"
	".endm\n"
	".macro no insn:vararg\n"
	".pushsection .rules, \"a\"; .byte 4, 0; .popsection; 9:\\insn\n"
	".pushsection .rules; .byte 8f-9b; .popsection; 8:\n"
	".endm\n"
	".macro in insn:vararg\n"
	".pushsection .rules, \"a\"; .byte 5, 0; .popsection; 9:\\insn\n"
	".pushsection .rules; .byte 8f-9b; .popsection; 8:\n"
	".endm\n"
	".macro begin name\n"
	"\\name: .pushsection .rules, \"a\"; \\name\\()_rules: .popsection\n"
	".endm\n"
	".macro end name\n"
	"\\name\\()_end: .pushsection .rules, \"a\"; \\name\\()_rules_end: .popsection\n"
	".endm\n"
	".pushsection .text\n"

	/* time.now up to Go 1.20 */
	"begin moves_rbp\n"
	"sp 8, sub $0x18, %rsp\n"
	"sp 32, mov %rbp, 0x10(%rsp)\n"
	"sv 32, lea 0x10(%rsp), %rbp\n"
	"bp mov %rsp, %r12\n"
	"bp mov 0x38(%rdx), %rsp\n"
	"bp sub $0x20, %rsp\n"
	"bp and $-16, %rsp\n"
	"bp cmp $0, %rax\n"
	"bp je 1f\n"
	"2: bp mov 8(%rsp), %rbp\n" /* not where rbp is saved */
	"bp mov %r12, %rsp\n"
	"bp add $0x18, %rsp\n"
	"bp mov 0x10(%rsp), %rbp\n"
	"sp 32, add $0x18, %rsp\n"
	"sp 8, ret\n"
	"1: bp syscall\n"
	"bp jmp 2b\n"
	"end moves_rbp\n"

	"begin frame_of_128\n"
	"sp 8, sub $-0x80, %rsp\n"
	"sp 136, mov %rbp, 0x78(%rsp)\n"
	"sv 136, lea 0x78(%rsp), %rbp\n"
	"bp mov %rdx, %rsp\n"
	"bp mov 0x78(%rsp), %rbp\n"
	"sp 136, sub $-0x80, %rsp\n"
	"sp 8, ret\n"
	"end frame_of_128\n"

	/* from 1.21 on, and a function that is called last */
	"begin pushes_rbp\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp sub $0x10, %rsp\n"
	"bp mov (%rdx), %rsp\n"
	"bp je 1f\n"
	"bp pop %r12\n"
	"bp add $0x10, %rsp\n"
	"bp pop %rbp\n"
	"sp 8, ret\n"
	"1: bp mov %rdi, %rdx\n"
	"bp pop %rbp\n"
	"sp 8, mov (%rdx), %rdi\n"
	"sp 8, jmp *%rdi\n"
	"bp nop\n"
	"end pushes_rbp\n"

	/* a frame within that of the assembler: call5 of purego */
	"begin nests_rbp\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp mov 0x10(%rsp), %rbx\n"
	"bp push %rbp\n"
	"bp mov %rsp, %rbp\n"
	"in sub $0x10, %rsp\n"
	"in and $-16, %rsp\n"
	"in je 1f\n"
	"in call *%rbx\n"
	"1: in mov %rbp, %rsp\n"
	"in pop %rbp\n"
	"bp mov %rax, 0x40(%rsp)\n"
	"bp pop %rbp\n"
	"sp 8, ret\n"
	"no nop\n"
	"end nests_rbp\n"

	"begin nests_and_leaves\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp push %rbp\n"
	"bp mov %rsp, %rbp\n"
	"in and $-16, %rsp\n"
	"in leave\n"
	"bp leave\n"
	"sp 8, ret\n"
	"end nests_and_leaves\n"

	/* rbp is still what it was; but then it is not where it was pushed */
	"begin keeps_rbp\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp push %rbp\n"
	"bp call *%rax\n"
	"bp pop %rbp\n"
	"bp push %rbp\n"
	"bp sub $8, %rsp\n"
	"bp mov %rsp, %rbp\n"
	"no pop %rbp\n"
	"no ret\n"
	"end keeps_rbp\n"

	/* what is jumped to from there */
	"begin jumps_pushed\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp push %rbp\n"
	"bp je 1f\n"
	"bp pop %rbp\n"
	"bp pop %rbp\n"
	"sp 8, ret\n"
	"1: no pop %rbp\n"
	"no pop %rbp\n"
	"no ret\n"
	"end jumps_pushed\n"

	"begin jumps_nested\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp push %rbp\n"
	"bp mov %rsp, %rbp\n"
	"in jmp 1f\n"
	"1: no mov %rbp, %rsp\n"
	"no pop %rbp\n"
	"end jumps_nested\n"

	/* what c2goasm makes of C */
	"begin takes_rbp\n"
	"sp 8, sub $0x18, %rsp\n"
	"sp 32, mov %rbp, 0x10(%rsp)\n"
	"sv 32, lea 0x10(%rsp), %rbp\n"
	"bp mov 0x20(%rsp), %rdi\n"
	"bp mov %rsp, %rbp\n"
	"no add $8, %rsp\n"
	"no and $-32, %rsp\n"
	"no mov %rbp, %rsp\n"
	"no mov 0x10(%rsp), %rbp\n"
	"no add $0x18, %rsp\n"
	"no ret\n"
	"end takes_rbp\n"

	"begin points_to_data\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp and $-32, %rsp\n"
	"bp lea 0x1000(%rip), %rbp\n"
	"no vmovdqa (%rbp), %ymm0\n"
	"no ret\n"
	"end points_to_data\n"

	"begin loads_a_constant\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp mov 0x1000(%rip), %rbp\n"
	"no ret\n"
	"end loads_a_constant\n"

	"begin counts_in_rbp\n"
	"sp 8, push %rbp\n"
	"sv 16, mov %rsp, %rbp\n"
	"bp xor %ebp, %ebp\n"
	"no inc %rbp\n"
	"no ret\n"
	"end counts_in_rbp\n"

	/* racecall */
	"begin leaves_in_r12\n"
	"sp 8, mov 0x30(%r14), %r13\n"
	"sp 8, mov %rsp, %r12\n"
	"r12 mov (%r13), %r10\n"
	"r12 cmp %r14, %r10\n"
	"r12 je 1f\n"
	"r12 mov 0x38(%r10), %rsp\n"
	"1: r12 and $-16, %rsp\n"
	"r12 call *%rax\n"
	"r12 mov %r12, %rsp\n"
	"sp 8, xorps %xmm15, %xmm15\n"
	"sp 8, ret\n"
	"end leaves_in_r12\n"

	/* what is not that */
	"begin loses_r12\n"
	"no mov %rsp, %r12\n"
	"no mov (%r13), %rsp\n"
	"no mov (%r13), %r12\n"
	"no mov %r12, %rsp\n"
	"no ret\n"
	"end loses_r12\n"

	"begin moves_rsp_first\n"
	"no mov (%r13), %rsp\n"
	"no mov %rsp, %r12\n"
	"no mov %r12, %rsp\n"
	"no ret\n"
	"end moves_rsp_first\n"

	"begin keeps_r12\n"
	"no mov %rsp, %r12\n"
	"no mov (%r13), %rsp\n"
	"no ret\n"
	"end keeps_r12\n"

	"begin has_a_frame\n" /* r12 is not where it was called from */
	"no pushq $0x12345\n"
	"no mov %rsp, %r12\n"
	"no mov (%r13), %rsp\n"
	"no mov %r12, %rsp\n"
	"no ret\n"
	"end has_a_frame\n"
	".popsection\n");

#define CODE(name) extern const uint8_t name[], name##_end[], name##_rules[], name##_rules_end[]

CODE(moves_rbp);
CODE(frame_of_128);
CODE(pushes_rbp);
CODE(nests_rbp);
CODE(nests_and_leaves);
CODE(keeps_rbp);
CODE(jumps_pushed);
CODE(jumps_nested);
CODE(takes_rbp);
CODE(points_to_data);
CODE(loads_a_constant);
CODE(counts_in_rbp);
CODE(leaves_in_r12);
CODE(loses_r12);
CODE(moves_rsp_first);
CODE(keeps_r12);
CODE(has_a_frame);

#define BYTES(name) name, name##_end, name##_rules, name##_rules_end

static const struct code {
	const uint8_t *code, *end, *rules, *rules_end;
	uint32_t prologue;	 /* bytes of its first instruction */
	int32_t frame, leftover; /* what pcsp says behind it (0: there is none), and at the first
				    ret */
} codes[] = {
	{ BYTES(moves_rbp), 4, 0x18, 0x20 }, { BYTES(frame_of_128), 4, 0x80, 0 },
	{ BYTES(nests_rbp), 1, 8, 0 },	     { BYTES(nests_and_leaves), 1, 8, 0 },
	{ BYTES(keeps_rbp), 1, 8, 0 },	     { BYTES(jumps_pushed), 1, 8, 0 },
	{ BYTES(jumps_nested), 1, 8, 0 },    { BYTES(takes_rbp), 4, 0x18, 0 },
	{ BYTES(points_to_data), 1, 8, 0 },  { BYTES(loads_a_constant), 1, 8, 0 },
	{ BYTES(counts_in_rbp), 1, 8, 0 },   { BYTES(pushes_rbp), 1, 8, 0x18 },
	{ BYTES(leaves_in_r12), 0, 0, 0 },   { BYTES(loses_r12), 0, 0, 0 },
	{ BYTES(moves_rsp_first), 0, 0, 0 }, { BYTES(keeps_r12), 0, 0, 0 },
	{ BYTES(has_a_frame), 5, 8, 0 },
};

static void check_rules(const struct unwind_table *t, const struct code *c)
{
	static const uint8_t cfas[] = { BPFPROF_CFA_SP,		 BPFPROF_CFA_SP,
					BPFPROF_CFA_FP,		 BPFPROF_CFA_REG,
					BPFPROF_CFA_UNSUPPORTED, BPFPROF_CFA_FP_DEREF };
	const uint8_t *rule = c->rules;
	uint64_t addr = GO_CODE;

	for (; rule < c->rules_end; addr += rule[2], rule += 3) {
		struct bpfprof_rule got;

		truth_lookup(t, addr, &got);
		if (got.cfa != cfas[rule[0]] || got.cfa_off != rule[1] ||
		    got.ra != (rule[0] == 3 ? BPFPROF_RA_CALL : BPFPROF_RA_CFA) ||
		    got.reg != (rule[0] == 3 ? 12 : 0) || got.aux != (rule[0] == 5 ? 16 : 0) ||
		    got.fp_off != (got.fp == BPFPROF_FP_CFA ? -16 : 0) ||
		    got.fp != (rule[0] == 1 || rule[0] == 2 || rule[0] == 5 ? BPFPROF_FP_CFA :
									      BPFPROF_FP_SAME))
			fail_msg("at 0x%x: cfa %u off %d fp %u, wanted %u off %u",
				 (unsigned int)(addr - GO_CODE), got.cfa, got.cfa_off, got.fp,
				 rule[0], rule[1]);
	}
	assert_int_equal(addr - GO_CODE, c->end - c->code);
}

static void test_setting_rsp(void **state)
{
	static struct go_image m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		const struct code *c = &codes[i];
		uint32_t sz = (uint32_t)(c->end - c->code);
		const struct go_func funcs[] = {
			{ .name = "time.now",
			  .size = sz,
			  .flags = GOPCLNTAB_ASM | GOPCLNTAB_SPWRITE,
			  .pcsp = { { 0, c->frame ? c->prologue : sz },
				    { c->frame, c->frame ? sz - c->prologue - 1 : 0 },
				    { c->leftover, c->frame ? 1 : 0 } } },
			{ .name = "main.main", .size = 0x40, .pcsp = { { 0, 0x40 } } },
			{},
		};
		struct unwind_table t = { 0 };
		struct elf_file *elf;

		m = (struct go_image){ .minor = 19,
				       .has_sections = true,
				       .names_table = true,
				       .funcs = funcs,
				       .files = { "/src/main.go" },
				       .version = "go1.19.8" };
		go_image__make(&m);
		memcpy(m.data + GO_FILE_TEXT + (GO_CODE - GO_TEXT), c->code, sz);
		elf = elf_file__open_memory(m.data, sizeof(m.data));
		assert_non_null(elf);
		assert_int_equal(unwind_build(elf, &t), 0);
		check_rules(&t, c);
		unwind_table__done(&t);
		elf_file__free(elf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_setting_rsp) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
