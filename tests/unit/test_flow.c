/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of code without call frame information, by shapes of code in assembly. tests/tables/flow.c
 * compares those of real code. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/types.h>

#include "bpfprof.h"
#include "target/elf_file.h"
#include "target/flow.h"
#include "target/unwind_build.h"
#include "toolrun.h"
#include "truth.h"

/* ---- shapes of code ---- */

/*
 * A mark says which rule holds at the instruction behind it:
 *   cN      the CFA is rsp + N, rbp is the caller's, or is not needed
 *   cN_M    the same, and the caller's rbp is at CFA - M
 *   fN_M    the same by rbp + N
 *   end     there is no caller
 *   sig     a signal handler returns there
 *   none    there is no rule
 *   sN      the CFA is rsp + N by call frame information
 *   rN      the caller's r12 is at CFA - 8 * N; it is in r12 (1); it is not known (0)
 */
struct shape {
	const char *name, *code;
};

static const struct shape shapes[] = {
	{ "leaf", "c8: nop; c8: ret; none: clc; none: ret" },
	{ "pushes",
	  "c8: push %rbx; c16: push %r12; c24: sub $40, %rsp; c64: call leaf; c64: add $40, %rsp; "
	  "c24: pop %r12; c16: pop %rbx; c8: ret" },
	{ "pushes_constant",
	  "c8: push $1; c16: push 8(%rdi); c24: call leaf; c24: add $16, %rsp; c8: ret" },
	{ "large", "c8: sub $0x1000, %rsp; c4104: lea 0x1000(%rsp), %rsp; c8: ret" },
	{ "saves",
	  "c8: push %rbx; c16: push %rbp; c24_24: mov %rdi, %rbp; c24_24: call leaf; "
	  "c24_24: pop %rbp; c16: pop %rbx; c8: ret" },
	{ "moves",
	  "c8: sub $24, %rsp; c32: mov %rbp, 8(%rsp); c32_24: xor %ebp, %ebp; c32_24: call leaf; "
	  "c32_24: mov 8(%rsp), %rbp; c32: add $24, %rsp; c8: ret" },
	{ "frame",
	  "c8: push %rbp; c16_16: mov %rsp, %rbp; f16_16: push %rbx; f16_16: call leaf; "
	  "f16_16: pop %rbx; f16_16: pop %rbp; c8: ret" },
	{ "leaves",
	  "push %rbp; mov %rsp, %rbp; and $-32, %rsp; f16_16: sub $64, %rsp; f16_16: call leaf; "
	  "f16_16: leave; c8: ret" },
	{ "variable",
	  "push %rbp; mov %rsp, %rbp; sub %rdi, %rsp; f16_16: lea -8(%rbp), %rsp; "
	  "f16_16: leave; c8: ret" },
	{ "branch",
	  "test %edi, %edi; je 1f; c8: ret; none: clc; 1: c8: push %rbx; c16: call leaf; "
	  "c16: pop %rbx; c8: ret" },
	{ "loop", "push %rbx; 1: c16: dec %edi; c16: jnz 1b; c16: pop %rbx; c8: ret" },
	/* ways that meet with different stacks */
	{ "disagrees", "test %edi, %edi; je 1f; c8: push %rbx; 1: none: clc; none: ud2" },
	/* what is not known any more does not come back */
	{ "loses", "c8: mov %rdi, %rsp; none: clc; none: ret" },
	/* arguments are put below the return address: for its caller the frame is rbp's to tell */
	{ "inserts",
	  "c8: nop; pop %rax; push %rdi; push %rax; none: push %rbp; none: mov %rsp, %rbp; "
	  "none: call *%rdx; none: leave; none: ret" },
	{ "tail", "push %rbx; c16: pop %rbx; c8: jmp leaf; none: clc" },
	{ "tail_indirect", "push %rbx; c16: pop %rbx; c8: jmp *%rax; none: clc" },
	{ "exits", "mov $60, %eax; c8: syscall; none: clc; none: ret" },
	{ "calls_exits", "sub $8, %rsp; c16: call exits; none: add $8, %rsp; none: ret" },
	{ "calls_abort", "sub $8, %rsp; c16: call abort@PLT; none: add $8, %rsp; none: ret" },
	/* an object's own functions: their code tells, and not that libc has some of these names */
	{ "err", "c8: ret" },
	{ "calls_err", "sub $8, %rsp; c16: call err; c16: add $8, %rsp; c8: ret" },
	{ "errx", "sub $8, %rsp; c16: call abort@PLT" },
	{ "calls_errx", "sub $8, %rsp; c16: call errx; none: add $8, %rsp; none: ret" },
	/* padding costs no row */
	{ "padded", "c8: jmp *%rax; c8: nopl 0x0(%rax); .balign 16" },
	{ "traps", "c8: ud2; none: clc" },
	{ "begins", "xor %ebp, %ebp; end: mov %rsp, %rdi; end: call leaf; end: hlt; none: clc" },
	{ "begins_thread",
	  "mov $56, %eax; c8: syscall; c8: test %eax, %eax; jnz 1f; xor %ebp, %ebp; end: pop %rdi; "
	  "end: call *%r9; mov %eax, %edi; mov $60, %eax; end: syscall; none: hlt; 1: c8: ret" },
	/* zero in rbp as in any other register */
	{ "zeroes", "push %rbp; xor %ebp, %ebp; c16_16: call leaf; c16_16: pop %rbp; c8: ret" },
	{ "sigreturn", "sig: mov $15, %rax; sig: syscall" },
	{ "sigreturn32", "sig: mov $15, %eax; sig: syscall" },
	{ "switches",
	  "push %rbx; cmp $2, %edi; ja 9f; lea 8f(%rip), %rax; movslq (%rax,%rdi,4), %rdx; "
	  "add %rdx, %rax; c16: jmp *%rax; .section .rodata; .balign 4; "
	  "8: .long 1f-8b, 2f-8b, 3f-8b; .text; none: clc; 1: c16: pop %rbx; c8: ret; none: clc; "
	  "2: c16: nop; 3: c16: nop; 9: c16: pop %rbx; c8: ret" },
	/* a function that only a pointer in data leads to, behind padding */
	{ "points",
	  "c8: ret; .pushsection .text.pointed, \"ax\"; nop; .balign 16; 1: c8: push %rbx; "
	  "c16: pop %rbx; c8: ret; .popsection; .pushsection .data; .quad 1b; .popsection" },
	/* call frame information is believed, whatever the code does */
	{ "stated",
	  ".cfi_startproc; s8: push %rbx; s8: call leaf; s8: pop %rbx; s8: ret; .cfi_endproc" },
};

/* Of a file without symbols that is loaded where it says, and whose functions are packed: behind the
 * last instruction of a shape the next one begins. */
static const struct shape fixed_shapes[] = {
	{ "describes", ".cfi_startproc; s8: mov $constant, %edi; s8: ret; .cfi_endproc" },
	/* only that constant leads to it */
	{ "constant", "c8: push %rbx; c16: call called; c16: pop %rbx; c8: ret" },
	{ "called", "c8: nop; .fill 64, 1, 0x90; c8: ret" },
	/* only a word in data does */
	{ "word",
	  ".pushsection .data; .balign 8; .quad word; .popsection; "
	  "c8: push %rbx; c16: xor %edi, %edi; c16: pop %rbx; c8: ret" },
	{ "room",
	  ".pushsection .data; .balign 8; .quad room; .popsection; "
	  "c8: sub $24, %rsp; c32: call called; c32: add $24, %rsp; c8: ret" },
	/* a word as well, but of what may be a label */
	{ "label",
	  ".pushsection .data; .balign 8; .quad label; .popsection; none: mov %rdi, %rax; none: "
	  "ret" },
	/* that the call does not return shows by what is behind it */
	{ "dies",
	  ".pushsection .data; .balign 8; .quad dies; .popsection; "
	  "c8: push %rbx; c16: mov %rdi, %rbx; c16: call describes" },
	{ "behind",
	  ".pushsection .data; .balign 8; .quad behind; .popsection; "
	  "c8: push %r12; c16: push %r13; c24: pop %r13; c16: pop %r12; c8: ret" },
};

/* Where the caller's r12 is, of those who follow it. */
static const struct shape r12_shapes[] = {
	{ "r12_leaf", "r1: nop; r1: ret" },
	{ "r12_pushes",
	  "r1: push %r13; r1: push %r12; r3: xor %r12d, %r12d; r3: call r12_leaf; r3: pop %r12; "
	  "r1: pop %r13; r1: ret" },
	{ "r12_moves",
	  "sub $40, %rsp; r1: mov %r12, 16(%rsp); r4: mov %rdi, %r12; r4: mov 8(%rsp), %r12; "
	  "r4: mov 16(%rsp), %r12; r1: add $40, %rsp; r1: ret" },
	{ "r12_frame",
	  "push %rbp; mov %rsp, %rbp; push %r12; r3: sub $64, %rsp; r3: mov %rdi, %r12; "
	  "r3: mov -8(%rbp), %r12; r1: leave; r1: ret" },
	/* it is gone with the stack that it was saved to */
	{ "r12_drops", "push %r12; r2: mov %rdi, %r12; r2: add $8, %rsp; r0: ret" },
	{ "r12_overwrites", "r1: mov %rdi, %r12; r0: push %r12; r0: pop %r12; r0: ret" },
	{ "r12_copies", "r1: mov %r12, (%rdi); r1: mov (%rdi), %r12; r0: ret" },
	{ "r12_pops", "push %rdi; r1: pop %r12; r0: ret" },
	{ "r12_half", "push %r12; r2: mov (%rsp), %r12d; r2: add $8, %rsp; r0: ret" },
	{ "r12_branch", "test %edi, %edi; je 1f; xor %r12d, %r12d; r0: nop; 1: r0: nop; r0: ret" },
	/* at another place than a rule can say */
	{ "r12_far",
	  "sub $4096, %rsp; mov %r12, (%rsp); r0: nop; mov (%rsp), %r12; "
	  "r1: add $4096, %rsp; r1: ret" },
};

static const char *const marks[] = { "c", "f", "end:", "sig:", "none:", "s", "r" };

/* The next mark in a shape: letters, digits, perhaps two numbers, a colon, at the start of a
 * statement. NULL: there is none. */
static const char *next_mark(const char *code)
{
	for (const char *p = code; *p; p++) {
		if (p != code && (p[-1] != ' ' || (p > code + 1 && p[-2] != ';' && p[-2] != ':')))
			continue;
		for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
			size_t len = strlen(marks[i]), n = strcspn(p, ":; ");

			if (!strncmp(p, marks[i], len) && p[n] == ':' &&
			    (len > 1 || strspn(p + 1, "0123456789_") + 1 == n))
				return p;
		}
	}
	return NULL;
}

static void add_shape(FILE *f, const struct shape *s, int align)
{
	const char *code = s->code, *mark;
	int n = 0;

	fprintf(f, ".globl %s\n.type %s, @function\n.balign %d\n%s:\n", s->name, s->name, align,
		s->name);
	for (; (mark = next_mark(code)); n++) {
		int len = (int)strcspn(mark, ":");

		fprintf(f, "%.*s\nmark_%.*s.%d.%s:\n", (int)(mark - code), code, len, mark, n,
			s->name);
		code = mark + len + 1;
	}
	fprintf(f, "%s\n.size %s, .-%s\n", code, s->name, s->name);
}

static void check_rule(const char *mark, const struct bpfprof_rule *r)
{
	int cfa_off = 0, saved = 0;
	char kind = mark[0];

	if (!strncmp(mark, "end.", 4)) {
		assert_int_equal(r->ra, BPFPROF_RA_END);
	} else if (!strncmp(mark, "sig.", 4)) {
		assert_int_equal(r->cfa, BPFPROF_CFA_SIGNAL);
	} else if (!strncmp(mark, "none.", 5)) {
		assert_int_equal(r->cfa, BPFPROF_CFA_NONE);
	} else if (kind == 'r') {
		assert_int_equal(r->ra, BPFPROF_RA_CALL);
		assert_int_equal(r->reg, atoi(mark + 1));
	} else {
		assert_int_equal(r->reg, BPFPROF_R12_UNKNOWN);
		assert_in_range(sscanf(mark + 1, "%d_%d", &cfa_off, &saved), 1, 2);
		assert_int_equal(r->cfa, kind == 'f' ? BPFPROF_CFA_FP : BPFPROF_CFA_SP);
		assert_int_equal(r->cfa_off, cfa_off);
		assert_int_equal(r->ra, kind == 's' ? BPFPROF_RA_CFA : BPFPROF_RA_CALL);
		assert_int_equal(r->fp, saved ? BPFPROF_FP_CFA : BPFPROF_FP_SAME);
		if (saved)
			assert_int_equal(r->fp_off, -saved);
	}
}

static struct elf_file *open_elf(const char *path, int *ret_fd)
{
	struct elf_file *elf;

	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(*ret_fd >= 0);
	elf = elf_file__open(*ret_fd);
	assert_non_null(elf);
	return elf;
}

static void assemble_shapes(const struct shape *s, size_t cnt, int align)
{
	FILE *f = fopen(toolrun_path("shapes.s"), "w");

	assert_non_null(f);
	fprintf(f, ".text\n");
	for (size_t i = 0; i < cnt; i++)
		add_shape(f, &s[i], align);
	fprintf(f, ".section .note.GNU-stack,\"\",@progbits\n");
	assert_int_equal(fclose(f), 0);
}

static struct elf_file *make_shapes(const struct shape *s, size_t cnt, int *ret_fd)
{
	assemble_shapes(s, cnt, 16);
	assert_true(toolrun("gcc -shared -nostartfiles -Wl,-Bsymbolic -o shapes.so shapes.s"));
	return open_elf(toolrun_path("shapes.so"), ret_fd);
}

/* Returns the number of marks. */
static int check_marks(const struct unwind_table *t)
{
	struct bpfprof_rule rule;
	char line[256], mark[128];
	uint64_t addr;
	int cnt = 0;
	FILE *f = toolrun_open("nm shapes.so");

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %*c mark_%127s", &addr, mark) != 2)
			continue;
		truth_lookup(t, addr, &rule);
		print_message("%s\n", mark);
		check_rule(mark, &rule);
		cnt++;
	}
	pclose(f);
	return cnt;
}

static void test_shapes(void **state)
{
	struct unwind_table t;
	struct elf_file *elf;
	int fd;

	(void)state;
	elf = make_shapes(shapes, sizeof(shapes) / sizeof(shapes[0]), &fd);
	assert_int_equal(unwind_build(elf, &t), 0);
	assert_true(check_marks(&t) > 100);
	unwind_table__done(&t);
	elf_file__free(elf);
	close(fd);
}

static void test_r12(void **state)
{
	struct unwind_table t = { 0 };
	struct unwind_source source;
	struct elf_file *elf;
	struct flow *flow;
	int fd;

	(void)state;
	elf = make_shapes(r12_shapes, sizeof(r12_shapes) / sizeof(r12_shapes[0]), &fd);
	assert_int_equal(flow_build(elf, NULL, 0, true, &flow), 0);
	assert_non_null(flow);
	source = flow__source(flow);
	assert_int_equal(unwind_build_merged(&source, 1, &t), 0);
	assert_true(check_marks(&t) > 40);
	unwind_table__done(&t);
	flow__free(flow);
	elf_file__free(elf);
	close(fd);
}

static void test_fixed(void **state)
{
	struct unwind_table t;
	struct elf_file *elf;
	int fd;

	(void)state;
	assemble_shapes(fixed_shapes, sizeof(fixed_shapes) / sizeof(fixed_shapes[0]), 1);
	assert_true(
		toolrun("gcc -static -nostdlib -no-pie -Wl,-e,describes -o shapes.so shapes.s && "
			"strip -o fixed shapes.so"));
	elf = open_elf(toolrun_path("fixed"), &fd);
	assert_int_equal(unwind_build(elf, &t), 0);
	assert_int_equal(check_marks(&t), 26);
	unwind_table__done(&t);
	elf_file__free(elf);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_r12),
		cmocka_unit_test(test_fixed),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
