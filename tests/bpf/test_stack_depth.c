// SPDX-License-Identifier: BSD-2-Clause
/*
 * The stacks of the BPF programs, as Linux 5.10 and 6.1 add them up (check_max_stack_depth in kernel/bpf/verifier.c): along every
 * chain of calls the frames, each rounded up to 32 bytes, take 512 together at most. Newer kernels round to 16 where they compile
 * programs, and give those for tracing a stack of their own: what one of them loads may be too large for another.
 */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <gelf.h>
#include <linux/bpf.h>

#include "base/util.h"
#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "noloop.skel.h"

#define MAX_STACK 512
#define STEP 32
#define MAX_DEPTH 8 /* MAX_CALL_FRAMES, include/linux/bpf_verifier.h */
#define MAX_FUNCS 512
#define MAX_SECTIONS 512
#define INSN ((uint64_t)sizeof(struct bpf_insn))

struct func {
	const char *name;
	size_t section;
	uint64_t begin, end; /* bytes in the section */
	int frame, sum;	     /* bytes of stack, sum: with what it calls, or 0: not known yet */
	int depth;	     /* of calls, with its own */
	const struct func *deepest; /* of what it calls, or NULL */
};

struct object {
	Elf *elf;
	Elf_Data *code[MAX_SECTIONS],
		*relocs[MAX_SECTIONS]; /* by the number of the section they belong to */
	const char *titles[MAX_SECTIONS];
	Elf_Data *symbols;
	size_t names; /* the section that they are in */
	struct func funcs[MAX_FUNCS];
	size_t len;
};

static struct func *find_func(struct object *obj, size_t section, uint64_t at)
{
	for (size_t i = 0; i < obj->len; i++) {
		struct func *f = &obj->funcs[i];

		if (f->section == section && at >= f->begin && at < f->end)
			return f;
	}
	fail_msg("no function at section %zu + %llu", section, (unsigned long long)at);
	return NULL;
}

/*
 * The function that an instruction refers to by a relocation, or NULL: there is none, or it is data. offset: from the symbol, in
 * bytes, if that is the section.
 */
static struct func *find_relocated(struct object *obj, size_t section, uint64_t at, int64_t offset)
{
	GElf_Rel rel;
	GElf_Sym sym;

	for (int i = 0; obj->relocs[section] && gelf_getrel(obj->relocs[section], i, &rel); i++) {
		if (rel.r_offset != at)
			continue;
		assert_non_null(gelf_getsym(obj->symbols, (int)GELF_R_SYM(rel.r_info), &sym));
		if (sym.st_shndx >= MAX_SECTIONS || !obj->code[sym.st_shndx])
			return NULL;
		return find_func(obj, sym.st_shndx,
				 sym.st_value + (GELF_ST_TYPE(sym.st_info) == STT_SECTION ?
							 (uint64_t)offset :
							 0));
	}
	return NULL;
}

static const struct bpf_insn *insn_at(const struct object *obj, const struct func *f, uint64_t at)
{
	return (const struct bpf_insn *)((const char *)obj->code[f->section]->d_buf + at);
}

/* The function that an instruction calls, or hands to a helper that calls it, or NULL. */
static struct func *find_callee(struct object *obj, const struct func *f, uint64_t at)
{
	const struct bpf_insn *insn = insn_at(obj, f, at);
	int64_t offset = (insn->imm + 1) * (int64_t)INSN;
	struct func *callee;

	if (insn->code == (BPF_LD | BPF_IMM | BPF_DW))
		return find_relocated(obj, f->section, at, insn->imm);
	if (insn->code != (BPF_JMP | BPF_CALL) || insn->src_reg != BPF_PSEUDO_CALL)
		return NULL;
	callee = find_relocated(obj, f->section, at, offset);
	return callee ? callee : find_func(obj, f->section, at + (uint64_t)offset);
}

/*
 * How far below the frame pointer an instruction reaches, in bytes. is_frame: the registers that hold the frame pointer, by what
 * comes before.
 */
static int reach(const struct bpf_insn *insn, bool *is_frame)
{
	__u8 class = BPF_CLASS(insn->code);
	bool *dst = &is_frame[insn->dst_reg], was = *dst;

	if (class == BPF_LDX || class == BPF_LD || class == BPF_ALU || class == BPF_ALU64)
		*dst = false;
	if (class == BPF_LDX && insn->src_reg == BPF_REG_10)
		return -insn->off;
	if ((class == BPF_ST || class == BPF_STX) && insn->dst_reg == BPF_REG_10)
		return -insn->off;
	/* an address in the frame is made by two */
	if (insn->code == (BPF_ALU64 | BPF_MOV | BPF_X) && insn->src_reg == BPF_REG_10)
		*dst = true;
	if (insn->code == (BPF_ALU64 | BPF_ADD | BPF_K) && was)
		return -insn->imm;
	return 0;
}

static void add_up(struct object *obj, struct func *f)
{
	bool is_frame[MAX_BPF_REG] = { false };
	int frame = 1, below = 0, depth = 0;

	for (uint64_t at = f->begin; at < f->end; at += INSN) {
		struct func *callee = find_callee(obj, f, at);

		frame = MAX(frame, reach(insn_at(obj, f, at), is_frame));
		if (!callee)
			continue;
		assert_ptr_not_equal(callee, f);
		if (!callee->sum)
			add_up(obj, callee);
		if (callee->sum > below) {
			below = callee->sum;
			f->deepest = callee;
		}
		depth = MAX(depth, callee->depth);
	}
	f->frame = frame;
	f->sum = below + (frame + STEP - 1) / STEP * STEP;
	f->depth = depth + 1;
}

static void read_sections(struct object *obj)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = NULL;
	size_t strings;

	assert_int_equal(elf_getshdrstrndx(obj->elf, &strings), 0);
	while ((scn = elf_nextscn(obj->elf, scn))) {
		size_t i = elf_ndxscn(scn);

		assert_non_null(gelf_getshdr(scn, &shdr));
		assert_in_range(i, 0, MAX_SECTIONS - 1);
		assert_in_range(shdr.sh_info, 0,
				shdr.sh_type == SHT_REL ? MAX_SECTIONS - 1 : UINT32_MAX);
		obj->titles[i] = elf_strptr(obj->elf, strings, shdr.sh_name);
		if (shdr.sh_type == SHT_PROGBITS && (shdr.sh_flags & SHF_EXECINSTR))
			obj->code[i] = elf_getdata(scn, NULL);
		else if (shdr.sh_type == SHT_REL)
			obj->relocs[shdr.sh_info] = elf_getdata(scn, NULL);
		else if (shdr.sh_type == SHT_SYMTAB) {
			obj->symbols = elf_getdata(scn, NULL);
			obj->names = shdr.sh_link;
		}
	}
}

static void read_funcs(struct object *obj)
{
	GElf_Sym sym;

	for (int i = 0; gelf_getsym(obj->symbols, i, &sym); i++) {
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		assert_in_range(obj->len, 0, MAX_FUNCS - 1);
		obj->funcs[obj->len++] = (struct func){
			.name = elf_strptr(obj->elf, obj->names, sym.st_name),
			.section = sym.st_shndx,
			.begin = sym.st_value,
			.end = sym.st_value + sym.st_size,
		};
	}
}

/* Is it a program that the older kernels load? Those that have sched_exit_tp (6.15) give programs for tracing their own stack. */
static bool is_program(const struct object *obj, const struct func *f)
{
	const char *section = obj->titles[f->section];

	return strcmp(section, ".text") && strcmp(section, "?tp_btf/sched_exit_tp");
}

static void check(const void *bytes, size_t size)
{
	struct object *obj = calloc(1, sizeof(*obj));
	int refused = 0;

	assert_non_null(obj);
	elf_version(EV_CURRENT);
	/* libelf takes a pointer that is not const, and does not write there */
	obj->elf = elf_memory((char *)bytes, size);
	assert_non_null(obj->elf);
	read_sections(obj);
	read_funcs(obj);
	assert_in_range(obj->len, 10, MAX_FUNCS);
	for (size_t i = 0; i < obj->len; i++) {
		struct func *f = &obj->funcs[i];

		if (!f->sum)
			add_up(obj, f);
		assert_in_range(f->depth, 1, MAX_DEPTH);
		if (f->sum <= MAX_STACK || !is_program(obj, f))
			continue;
		print_message("%d bytes of stack:", f->sum);
		for (const struct func *at = f; at; at = at->deepest)
			print_message(" %s %d", at->name, at->frame);
		print_message("\n");
		refused++;
	}
	assert_int_equal(refused, 0);
	elf_end(obj->elf);
	free(obj);
}

static void test_programs(void **state)
{
	size_t size;
	const void *bytes = bpfprof_bpf__elf_bytes(&size);

	(void)state;
	check(bytes, size);
}

static void test_programs_without_loops(void **state)
{
	size_t size;
	const void *bytes = noloop_bpf__elf_bytes(&size);

	(void)state;
	check(bytes, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_programs_without_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
