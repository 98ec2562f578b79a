/* SPDX-License-Identifier: BSD-2-Clause */
/* The decoder of instructions against capstone, over all code of this process; and on nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include <capstone/capstone.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/elf_file.h"
#include "target/insn.h"

/* ---- single instructions ---- */

static const struct {
	uint8_t bytes[16];
	uint8_t len;	  /* 0: it is none */
	uint32_t written; /* general registers, a bit each */
} cases[] = {
	{ { 0x90 }, 1, 1 },					    /* nop: xchg %eax, %eax */
	{ { 0xc3 }, 1, 0 },					    /* ret */
	{ { 0xf3, 0xc3 }, 2, 0 },				    /* rep ret */
	{ { 0xe8, 1, 2, 3, 4 }, 5, 0 },				    /* call */
	{ { 0x66, 0xe8, 1, 2, 3, 4 }, 6, 0 },			    /* data16 call */
	{ { 0x48, 0x89, 0xe5 }, 3, 1U << 5 },			    /* mov %rsp, %rbp */
	{ { 0x48, 0x8b, 0xec }, 3, 1U << 5 },			    /* the same */
	{ { 0x48, 0x83, 0xec, 8 }, 4, 1U << 4 },		    /* sub $8, %rsp */
	{ { 0x48, 0x81, 0xec, 0, 1, 0, 0 }, 7, 1U << 4 },	    /* sub $256, %rsp */
	{ { 0x48, 0x83, 0xfd, 8 }, 4, 0 },			    /* cmp $8, %rbp */
	{ { 0x48, 0x8b, 0x6c, 0x24, 0x10 }, 5, 1U << 5 },	    /* mov 16(%rsp), %rbp */
	{ { 0x48, 0x89, 0x6c, 0x24, 0x10 }, 5, 0 },		    /* mov %rbp, 16(%rsp) */
	{ { 0x4d, 0x89, 0xe5 }, 3, 1U << 13 },			    /* mov %r12, %r13 */
	{ { 0x88, 0xc5 }, 2, 0 },				    /* mov %al, %ch */
	{ { 0x40, 0x88, 0xc5 }, 3, 1U << 5 },			    /* mov %al, %bpl */
	{ { 0x0f, 0x94, 0xc5 }, 3, 0 },				    /* sete %ch */
	{ { 0x40, 0x0f, 0x94, 0xc5 }, 4, 1U << 5 },		    /* sete %bpl */
	{ { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 }, 10, 1 },	    /* movabs $…, %rax */
	{ { 0x66, 0xb8, 1, 2 }, 4, 1 },				    /* mov $513, %ax */
	{ { 0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8 }, 10, 0 },	    /* movabs …, %rax */
	{ { 0x67, 0xa1, 1, 2, 3, 4 }, 6, 0 },			    /* addr32 mov …, %eax */
	{ { 0xf6, 0xc1, 1 }, 3, 0 },				    /* test $1, %cl */
	{ { 0xf7, 0xd5 }, 2, 1U << 5 },				    /* not %ebp */
	{ { 0xf7, 0xe5 }, 2, 0 },				    /* mul %ebp */
	{ { 0xf7, 0xc5, 1, 2, 3, 4 }, 6, 0 },			    /* test $…, %ebp */
	{ { 0xff, 0xd5 }, 2, 0 },				    /* call *%rbp */
	{ { 0xff, 0xc5 }, 2, 1U << 5 },				    /* inc %ebp */
	{ { 0x8d, 0x2c, 0x25, 1, 2, 3, 4 }, 7, 1U << 5 },	    /* lea …, %ebp */
	{ { 0x48, 0x8d, 0x3d, 1, 2, 3, 4 }, 7, 1U << 7 },	    /* lea …(%rip), %rdi */
	{ { 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 }, 8, 0 },		    /* nopl 0(%rax,%rax) */
	{ { 0xf3, 0x0f, 0x1e, 0xfa }, 4, 0 },			    /* endbr64 */
	{ { 0xc8, 0x10, 0, 0 }, 4, 0 },				    /* enter $16, $0 */
	{ { 0x0f, 0xa4, 0xc5, 4 }, 4, 1U << 5 },		    /* shld $4, %eax, %ebp */
	{ { 0x0f, 0xb1, 0xcd }, 3, 1U << 5 },			    /* cmpxchg %ecx, %ebp */
	{ { 0x0f, 0xc1, 0xcd }, 3, 1U << 5 | 1U << 1 },		    /* xadd %ecx, %ebp */
	{ { 0x0f, 0xba, 0xe5, 1 }, 4, 0 },			    /* bt $1, %ebp */
	{ { 0x0f, 0xba, 0xed, 1 }, 4, 1U << 5 },		    /* bts $1, %ebp */
	{ { 0x66, 0x48, 0x0f, 0x6e, 0xc5 }, 5, 0 },		    /* movq %rbp, %xmm0 */
	{ { 0x66, 0x48, 0x0f, 0x7e, 0xc5 }, 5, 1U << 5 },	    /* movq %xmm0, %rbp */
	{ { 0xf3, 0x0f, 0x7e, 0xc5 }, 4, 0 },			    /* movq %xmm5, %xmm0 */
	{ { 0xf2, 0x48, 0x0f, 0x2c, 0xe8 }, 5, 1U << 5 },	    /* cvttsd2si %xmm0, %rbp */
	{ { 0x66, 0x0f, 0x3a, 0x16, 0xc5, 1 }, 6, 1U << 5 },	    /* pextrd $1, %xmm0, %ebp */
	{ { 0xc5, 0xf9, 0x6f, 0x6c, 0x24, 0x10 }, 6, 0 },	    /* vmovdqa 16(%rsp), %xmm5 */
	{ { 0xc5, 0xf8, 0x77 }, 3, 0 },				    /* vzeroupper */
	{ { 0xc4, 0xe2, 0xd0, 0xf2, 0xe8 }, 5, 1U << 5 },	    /* andn %rax, %rbp, %rbp */
	{ { 0xc4, 0xe2, 0xf3, 0xf6, 0xe8 }, 5, 1U << 5 | 1U << 1 }, /* mulx %rax, %rcx, %rbp */
	{ { 0xc4, 0xe3, 0xfb, 0xf0, 0xe8, 4 }, 6, 1U << 5 },	    /* rorx $4, %rax, %rbp */
	{ { 0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x6c, 0x24, 1 }, 8, 0 },  /* vmovdqu64 …, %zmm5 */
	{ { 0x8f, 0x45, 8 }, 3, 0 },				    /* pop 8(%rbp) */
	{ { 0x06 }, 0, 0 },					    /* not in 64-bit mode */
	{ { 0xea }, 0, 0 },
	{ { 0x0f, 0x04 }, 0, 0 },
};

static void test_single(void **state)
{
	struct insn in;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool ok = insn_decode(cases[i].bytes, sizeof(cases[i].bytes), &in);

		if (!ok != !cases[i].len || (ok && in.len != cases[i].len) ||
		    (ok && insn__written(&in) != cases[i].written))
			fail_msg("case %zu: %d, %u bytes, writes %#x", i, ok, in.len,
				 insn__written(&in));
		/* cut short it is none */
		if (ok)
			assert_false(insn_decode(cases[i].bytes, cases[i].len - 1U, &in));
	}
}

static void test_operands(void **state)
{
	static const uint8_t store[] = { 0x48, 0x89, 0x6c, 0x24, 0xf0 };
	static const uint8_t indexed[] = { 0x48, 0x89, 0x6c, 0x04, 0xf0 };
	static const uint8_t sub[] = { 0x48, 0x83, 0xec, 0x80 };
	static const uint8_t lea[] = { 0x4c, 0x8d, 0x1d, 0xfc, 0xff, 0xff, 0xff };
	struct insn in;

	(void)state;
	assert_true(insn_decode(store, sizeof(store), &in));
	assert_int_equal(insn__base(&in), INSN_SP);
	assert_int_equal(in.disp, -16);
	assert_int_equal(insn__reg(&in), INSN_BP);
	assert_true(in.wide);
	assert_true(insn_decode(indexed, sizeof(indexed), &in));
	assert_int_equal(insn__base(&in), INSN_NO_REG);
	assert_true(insn_decode(sub, sizeof(sub), &in));
	assert_int_equal(in.imm, -128);
	assert_int_equal(insn__ext(&in), 5);
	assert_true(insn_decode(lea, sizeof(lea), &in));
	assert_true(insn__rip_relative(&in));
	assert_int_equal(insn__reg(&in), 11);
	assert_int_equal(in.disp, -4);
}

/* ---- against capstone ---- */

/* Of rsp and rbp, in all their widths. */
static bool is_named(unsigned int id, unsigned int reg)
{
	static const unsigned int names[2][4] = {
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
		{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
	};

	for (int i = 0; i < 4; i++)
		if (names[reg - INSN_SP][i] == id)
			return true;
	return false;
}

/* What moves rsp without naming it. */
static bool moves_stack(const cs_insn *insn)
{
	static const char *const names[] = { "push", "pop",   "call", "ret",   "leave",
					     "iret", "enter", "bnd",  "lcall", "lret" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(insn->mnemonic, names[i], strlen(names[i])))
			return true;
	return false;
}

static void compare(csh cs, const cs_insn *insn, const uint8_t *code, size_t sz, const char *where)
{
	cs_regs reads, writes;
	uint8_t read_cnt, write_cnt;
	struct insn in;

	if (!insn_decode(code, sz, &in) || in.len != insn->size)
		fail_msg("%s: %s %s: %u bytes, not %u", where, insn->mnemonic, insn->op_str,
			 insn->size, in.len);
	if (moves_stack(insn) ||
	    cs_regs_access(cs, insn, reads, &read_cnt, writes, &write_cnt) != CS_ERR_OK)
		return;
	for (unsigned int reg = INSN_SP; reg <= INSN_BP; reg++) {
		bool written = false;

		for (int i = 0; i < write_cnt; i++)
			written |= is_named(writes[i], reg);
		if (written && !insn__writes(&in, reg))
			fail_msg("%s: %s %s writes register %u", where, insn->mnemonic,
				 insn->op_str, reg);
	}
}

/* The instructions of .text; what capstone does not know is stepped over. */
static size_t compare_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = fd < 0 ? NULL : elf_file__open(fd);
	struct elf_section s;
	size_t sz, left, cnt = 0;
	const uint8_t *p;
	uint64_t addr = 0;
	cs_insn *insn;
	struct insn in;
	void *text;
	csh cs;

	if (!elf)
		return 0;
	assert_true(elf_file__section(elf, ".text", &s));
	assert_int_equal(elf_file__read_section(elf, &s, s.size, &text, &sz), 0);
	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &cs), CS_ERR_OK);
	assert_int_equal(cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON), CS_ERR_OK);
	insn = cs_malloc(cs);
	p = text;
	for (left = sz; left; cnt++) {
		const uint8_t *at = p;
		size_t at_left = left;

		if (cs_disasm_iter(cs, &p, &left, &addr, insn)) {
			compare(cs, insn, at, at_left, path);
		} else if (insn_decode(p, left, &in)) {
			p += in.len;
			left -= in.len;
		} else {
			fail_msg("%s: no instruction at %#zx", path, sz - left);
		}
	}
	cs_free(insn, 1);
	cs_close(&cs);
	free(text);
	elf_file__free(elf);
	close(fd);
	return cnt;
}

static int each_object(struct dl_phdr_info *info, size_t sz, void *ctx)
{
	(void)sz;
	if (strstr(info->dlpi_name, "/libc.so") || strstr(info->dlpi_name, "/libcapstone") ||
	    strstr(info->dlpi_name, "/libm.so"))
		*(size_t *)ctx += compare_text(info->dlpi_name);
	return 0;
}

static void test_against_capstone(void **state)
{
	size_t cnt = compare_text("/proc/self/exe");

	(void)state;
	dl_iterate_phdr(each_object, &cnt);
	print_message("%zu instructions\n", cnt);
	assert_true(cnt > 100000);
}

/* ---- nonsense ---- */

static void test_random(void **state)
{
	uint64_t x = 88172645463325252ULL;
	struct insn in;

	(void)state;
	for (int i = 0; i < 300000; i++) {
		size_t sz = (size_t)(x >> 33) % 17;
		uint8_t *p = malloc(sz + !sz);

		assert_non_null(p);
		for (size_t k = 0; k < sz; k++) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			p[k] = (uint8_t)(x >> 56);
		}
		if (insn_decode(p, sz, &in)) {
			assert_in_range(in.len, 1, sz < INSN_MAX ? sz : INSN_MAX);
			(void)insn__written(&in);
			(void)insn__base(&in);
		}
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_single),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_against_capstone),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
