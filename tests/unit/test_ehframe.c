/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables: made from sections written here byte by byte, damaged in many ways, and libc's as
 * unwind.h finds rules in it. tests/tables compares whole systems with readelf.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <link.h>
#include <linux/types.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/ehframe.h"
#include "target/elf_file.h"
#include "target/unwind_build.h"
#include "target/unwind_table.h"

/* ---- unwind.h over one chunk ---- */

#undef __always_inline
#undef __noinline
#define __always_inline inline
#define __noinline __attribute__((noinline, unused))
#include "unwind.h"
#include "truth.h"

static uint8_t chunk_mem[BPFPROF_CHUNK_SZ] __attribute__((aligned(16)));

static __always_inline int unw_read_user(struct unw *u, void *dst, __u32 sz, __u64 addr)
{
	(void)u, (void)dst, (void)sz, (void)addr;
	return 1;
}

static __always_inline const __u8 *unw_chunk(const struct unw *u, __u32 idx)
{
	(void)u;
	return idx == 0 ? chunk_mem : NULL;
}

static __always_inline void unw_mark_used(const __u8 *chunk, __u32 pos)
{
	(void)chunk, (void)pos;
}

/* ---- An image ---- */

#define TEXT 0x10000ULL /* address of the executable segment */
#define TEXT_SZ 0x8000000ULL
#define DATA 0x400000000ULL /* address of the segment that holds the sections */

struct bytes {
	uint8_t *p;
	size_t sz, cap;
};

static void put(struct bytes *b, const void *data, size_t sz)
{
	assert_int_equal(util_reserve(&b->p, &b->cap, b->sz + sz, 1), 0);
	memcpy(b->p + b->sz, data, sz);
	b->sz += sz;
}

static void put8(struct bytes *b, uint8_t v)
{
	put(b, &v, 1);
}

static void put16(struct bytes *b, uint16_t v)
{
	put(b, &v, 2);
}

static void put32(struct bytes *b, uint32_t v)
{
	put(b, &v, 4);
}

static void put64(struct bytes *b, uint64_t v)
{
	put(b, &v, 8);
}

static void put_uleb(struct bytes *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		put8(b, (uint8_t)v | 0x80);
	put8(b, (uint8_t)v);
}

/* Call frame instructions as they stand, with their length. */
struct code {
	const uint8_t *p;
	size_t sz;
};
#define CODE(...)                                         \
	((struct code){ (const uint8_t[]){ __VA_ARGS__ }, \
			sizeof((const uint8_t[]){ __VA_ARGS__ }) })

#define STANDARD \
	CODE(DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1) /* CFA rsp+8, return address at CFA-8 */

struct section {
	struct bytes b;
	bool debug, wide; /* .debug_frame; 64-bit DWARF */
	uint8_t enc;	  /* of FDE addresses, as the last CIE says */
	bool has_z;
	size_t cie;  /* the last one's position */
	size_t open; /* position of the entry that is being written */
};

static void begin_entry(struct section *s)
{
	s->open = s->b.sz;
	put32(&s->b, s->wide ? UINT32_MAX : 0);
	if (s->wide)
		put64(&s->b, 0);
}

static void end_entry(struct section *s)
{
	size_t head = s->wide ? 12 : 4, len = s->b.sz - s->open - head;

	memcpy(s->b.p + s->open + (s->wide ? 4 : 0), &len, s->wide ? 8 : 4);
}

static void put_offset(struct section *s, uint64_t v)
{
	if (s->wide)
		put64(&s->b, v);
	else
		put32(&s->b, (uint32_t)v);
}

static void put_cie(struct section *s, uint8_t version, const char *augmentation, uint8_t enc,
		    struct code code)
{
	s->cie = s->b.sz;
	s->enc = strchr(augmentation, 'R') ? enc : DW_EH_PE_absptr;
	s->has_z = augmentation[0] == 'z';
	begin_entry(s);
	put_offset(s, s->debug ? UINT64_MAX : 0);
	put8(&s->b, version);
	put(&s->b, augmentation, strlen(augmentation) + 1);
	if (version == 4) {
		put8(&s->b, 8);
		put8(&s->b, 0);
	}
	put_uleb(&s->b, 1);
	put8(&s->b, 0x78); /* -8 */
	put8(&s->b, 16);
	if (s->has_z)
		put8(&s->b, (uint8_t)((strchr(augmentation, 'R') ? 1 : 0) +
				      (strchr(augmentation, 'L') ? 1 : 0) +
				      (strchr(augmentation, 'P') ? 5 : 0)));
	for (; *augmentation; augmentation++) {
		if (*augmentation == 'R')
			put8(&s->b, enc);
		if (*augmentation == 'L')
			put8(&s->b, DW_EH_PE_absptr);
		if (*augmentation == 'P') {
			put8(&s->b, DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4);
			put32(&s->b, 0x1234);
		}
	}
	put(&s->b, code.p, code.sz);
	end_entry(s);
}

static void put_pointer(struct section *s, uint8_t enc, uint64_t v)
{
	if ((enc & 0x70) == DW_EH_PE_pcrel)
		v -= DATA + s->b.sz;
	switch (enc & 0x0f) {
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		put16(&s->b, (uint16_t)v);
		break;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		put32(&s->b, (uint32_t)v);
		break;
	case DW_EH_PE_uleb128:
	case DW_EH_PE_sleb128: /* of positive values: a further byte keeps the sign bit clear */
		for (; v >= 0x40; v >>= 7)
			put8(&s->b, (uint8_t)v | 0x80);
		put8(&s->b, (uint8_t)v);
		break;
	default:
		put64(&s->b, v);
	}
}

static void put_fde(struct section *s, uint64_t start, uint64_t size, struct code code)
{
	begin_entry(s);
	put_offset(s, s->debug ? s->cie : s->b.sz - s->cie);
	put_pointer(s, s->enc, start);
	put_pointer(s, s->enc & 0x0f, size);
	if (s->has_z)
		put8(&s->b, 0);
	put(&s->b, code.p, code.sz);
	end_entry(s);
}

#define NO_CODE ((struct code){ (const uint8_t *)"", 0 })

/*
 * An ELF file of a text segment (whose bytes lie beyond what is kept: a hole of the file) and a
 * segment with the sections. The file is one without a name, since a text of 128 MiB would not fit
 * in memory under a sanitizer.
 */
static int make_file(const struct section *eh, const struct section *debug, bool headers)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
	uint64_t data_off = 0x1000, eh_sz = eh ? eh->b.sz : 0, debug_sz = debug ? debug->b.sz : 0;
	uint64_t hdr_off = (data_off + eh_sz + debug_sz + 15) & ~15ULL, names_off = hdr_off + 16;
	uint64_t sh_off = (names_off + sizeof(names) + 15) & ~15ULL,
		 text_off = (sh_off + 4 * 64 + 4095) & ~4095ULL;
	Elf64_Ehdr e = { .e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_ehsize = sizeof(e),
			 .e_phoff = sizeof(e),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 3,
			 .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr ph[3] = {
		{ PT_LOAD, PF_R | PF_X, text_off, TEXT, TEXT, TEXT_SZ, TEXT_SZ, 4096 },
		{ PT_LOAD, PF_R, data_off, DATA, DATA, sh_off - data_off, sh_off - data_off, 4096 },
		{ PT_GNU_EH_FRAME, PF_R, hdr_off, DATA + hdr_off - data_off, 0, 12, 12, 4 },
	};
	Elf64_Shdr sh[4] = {
		{ 0 },
		{ 1, SHT_PROGBITS, SHF_ALLOC, DATA, data_off, eh_sz, 0, 0, 8, 0 },
		{ 11, SHT_PROGBITS, 0, 0, data_off + eh_sz, debug_sz, 0, 0, 8, 0 },
		{ 24, SHT_STRTAB, 0, 0, names_off, sizeof(names), 0, 0, 1, 0 },
	};
	uint8_t hdr[12] = { 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_omit, DW_EH_PE_omit };
	int32_t to_eh = (int32_t)(data_off - hdr_off - 4);
	int fd = memfd_create("test_ehframe", MFD_CLOEXEC);

	assert_true(fd >= 0);
	memcpy(e.e_ident, ELFMAG "\2\1\1", 7);
	if (headers) {
		e.e_shoff = sh_off;
		e.e_shnum = 4;
		e.e_shstrndx = 3;
	}
	if (!eh_sz)
		sh[1].sh_name = 0, e.e_phnum = 2;
	if (!debug_sz)
		sh[2].sh_name = 0;
	memcpy(hdr + 4, &to_eh, 4);
	assert_int_equal(ftruncate(fd, (off_t)(text_off + TEXT_SZ)), 0);
	assert_int_equal(pwrite(fd, &e, sizeof(e), 0), sizeof(e));
	assert_int_equal(pwrite(fd, ph, sizeof(ph), sizeof(e)), sizeof(ph));
	if (eh_sz)
		assert_int_equal(pwrite(fd, eh->b.p, eh_sz, (off_t)data_off), eh_sz);
	if (debug_sz)
		assert_int_equal(pwrite(fd, debug->b.p, debug_sz, (off_t)(data_off + eh_sz)),
				 debug_sz);
	assert_int_equal(pwrite(fd, hdr, sizeof(hdr), (off_t)hdr_off), sizeof(hdr));
	assert_int_equal(pwrite(fd, names, sizeof(names), (off_t)names_off), sizeof(names));
	assert_int_equal(pwrite(fd, sh, sizeof(sh), (off_t)sh_off), sizeof(sh));
	return fd;
}

static int build_file(int fd, struct unwind_table *ret)
{
	struct elf_file *elf = elf_file__open(fd);
	int err;

	assert_non_null(elf);
	err = unwind_build(elf, ret);
	elf_file__free(elf);
	close(fd);
	return err;
}

static int try_build(const struct section *eh, const struct section *debug, bool headers,
		     struct unwind_table *ret)
{
	return build_file(make_file(eh, debug, headers), ret);
}

/* Builds the table, which has to succeed, and releases the section. */
static void build(struct section *eh, struct unwind_table *ret)
{
	assert_int_equal(try_build(eh, NULL, true, ret), 0);
	free(eh->b.p);
}

/* ---- What the tables say ---- */

static void rule_is(const struct unwind_table *t, uint64_t vaddr, struct bpfprof_rule want)
{
	struct bpfprof_rule got;

	truth_lookup(t, vaddr, &got);
	if (memcmp(&got, &want, sizeof(got)))
		print_error("at %#lx: cfa %u fp %u ra %u reg %u cfa_off %d fp_off %d aux %d\n",
			    (unsigned long)vaddr, got.cfa, got.fp, got.ra, got.reg, got.cfa_off,
			    got.fp_off, got.aux);
	assert_memory_equal(&got, &want, sizeof(got));
}

#define RULE(...) ((struct bpfprof_rule){ __VA_ARGS__ })
#define SP(off) RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = (off))
#define NONE RULE(.cfa = BPFPROF_CFA_NONE)
#define UNSUPPORTED RULE(.cfa = BPFPROF_CFA_UNSUPPORTED)

/* Parts as bpfprof.h wants them: aligned, bounded, without overlap, all positions inside. */
static void check_form(const struct unwind_table *t)
{
	uint64_t rows = 0, blob = 0;
	size_t i;
	uint32_t b, r;

	for (i = 0; i < t->part_cnt; i++) {
		const struct unwind_part *p = &t->parts[i];
		const struct bpfprof_part *head = p->blob;
		const uint16_t *blk = (const uint16_t *)(head + 1), *rule;
		const uint8_t *off = (const uint8_t *)p->blob + head->off_pos;

		assert_int_equal(p->vaddr % 256, 0);
		assert_true(i == 0 || p->vaddr >= p[-1].vaddr + p[-1].text_sz);
		assert_true(p->blob_sz <= BPFPROF_CHUNK_SZ / 2 && p->blob_sz % 16 == 0);
		assert_true(p->text_sz <= 64U << 20);
		assert_int_equal(p->text_sz, head->blk_cnt * 256);
		assert_true(head->row_cnt <= BPFPROF_PART_MAX_ROWS && head->row_cnt > 0);
		assert_true(head->off_pos >= sizeof(*head) + 2 * (head->blk_cnt + 1));
		assert_true(head->rule_pos % 2 == 0 &&
			    head->rule_pos >= head->off_pos + head->row_cnt);
		assert_true(head->rules_pos % 16 == 0 &&
			    head->rules_pos >= head->rule_pos + 2 * head->row_cnt);
		rule = (const uint16_t *)((const uint8_t *)p->blob + head->rule_pos);
		assert_int_equal(blk[0], 0);
		assert_int_equal(blk[head->blk_cnt], head->row_cnt);
		for (b = 0; b < head->blk_cnt; b++) {
			assert_true(blk[b] <= blk[b + 1] && blk[b + 1] - blk[b] <= 256);
			for (r = blk[b] + 1u; r < blk[b + 1]; r++)
				assert_true(off[r] > off[r - 1]);
		}
		for (r = 0; r < head->row_cnt; r++)
			assert_true(head->rules_pos + 16 * rule[r] + 16 <= p->blob_sz);
		rows += head->row_cnt;
		blob += p->blob_sz;
	}
	assert_int_equal(rows, t->row_cnt);
	assert_int_equal(blob, t->blob_sz);
}

/* unwind.h finds the same as the lookup, at each address from start to end, in the part put into a
 * chunk. */
static void check_unwind_h(const struct unwind_table *t, uint64_t start, uint64_t end)
{
	const uint32_t pos = 0x34560;
	struct unw *u = calloc(1, sizeof(*u));
	struct bpfprof_rule want, got;
	uint64_t addr;
	size_t i;

	assert_non_null(u);
	for (i = 0; i < t->part_cnt; i++) {
		const struct unwind_part *p = &t->parts[i];
		struct bpfprof_part *head = (struct bpfprof_part *)(chunk_mem + pos);
		uint64_t from = MAX(p->vaddr, start), to = MIN(p->vaddr + p->text_sz, end);

		if (from >= to)
			continue;
		memset(chunk_mem, 0xa5, sizeof(chunk_mem));
		memcpy(chunk_mem + pos, p->blob, p->blob_sz);
		head->off_pos += pos;
		head->rule_pos += pos;
		head->rules_pos += pos;
		u->map_start = 0x7f0000000000 + (from - start);
		u->map = (struct bpfprof_map){ (uint32_t)(to - from), (uint32_t)(from - p->vaddr),
					       0, pos };
		u->blk_cnt = head->blk_cnt;
		u->off_pos = head->off_pos;
		u->rule_pos = head->rule_pos;
		u->rules_pos = head->rules_pos;
		for (addr = from; addr < to; addr++) {
			truth_lookup(t, addr, &want);
			unw_find_rule(u, u->map_start + (addr - from), &got);
			if (memcmp(&want, &got, sizeof(got)))
				fail_msg("unwind.h differs at %#lx", (unsigned long)addr);
		}
	}
	free(u);
}

static void release(struct unwind_table *t)
{
	check_form(t);
	unwind_table__done(t);
	assert_null(t->parts);
}

#define ADVANCE(n) (DW_CFA_advance_loc | (n))

/* One function at TEXT + 0x100 of 0x40 bytes with a usual CIE. */
static void build_one(struct code code, struct unwind_table *ret)
{
	struct section s = { 0 };

	put_cie(&s, 1, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata8, STANDARD);
	put_fde(&s, TEXT + 0x100, 0x40, code);
	build(&s, ret);
}

#define F (TEXT + 0x100)

static void expect_one(struct code code, struct bpfprof_rule want)
{
	struct unwind_table t;

	build_one(code, &t);
	rule_is(&t, F - 1, NONE);
	rule_is(&t, F, want);
	rule_is(&t, F + 0x3f, want);
	rule_is(&t, F + 0x40, NONE);
	release(&t);
}

/* ---- Tests ---- */

static void test_plain_function(void **state)
{
	struct unwind_table t;

	(void)state;
	build_one(CODE(ADVANCE(1), DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2, ADVANCE(3),
		       DW_CFA_def_cfa_register, 6, ADVANCE(0x20), DW_CFA_def_cfa, 7, 8, DW_CFA_nop,
		       DW_CFA_nop),
		  &t);
	rule_is(&t, F, SP(8));
	rule_is(&t, F + 1,
		RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 16, .fp = BPFPROF_FP_CFA, .fp_off = -16));
	rule_is(&t, F + 3,
		RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 16, .fp = BPFPROF_FP_CFA, .fp_off = -16));
	rule_is(&t, F + 4,
		RULE(.cfa = BPFPROF_CFA_FP, .cfa_off = 16, .fp = BPFPROF_FP_CFA, .fp_off = -16));
	rule_is(&t, F + 0x24,
		RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 8, .fp = BPFPROF_FP_CFA, .fp_off = -16));
	rule_is(&t, F + 0x40, NONE);
	assert_int_equal(t.row_cnt, 5);
	assert_int_equal(t.part_cnt, 1);
	assert_int_equal(t.parts[0].vaddr, F & ~255ULL);
	check_unwind_h(&t, TEXT, TEXT + 0x400);
	release(&t);
}

static void test_location_instructions(void **state)
{
	struct unwind_table t;
	struct section s = { 0 };

	(void)state;
	put_cie(&s, 1, "zR", DW_EH_PE_absptr, STANDARD);
	put_fde(&s, F, 0x40000,
		CODE(DW_CFA_advance_loc1, 0x90, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc2,
		     0x00, 0x10, DW_CFA_def_cfa_offset, 24, DW_CFA_advance_loc4, 0, 0, 1, 0,
		     DW_CFA_def_cfa_offset, 32, DW_CFA_MIPS_advance_loc8, 0, 0, 1, 0, 0, 0, 0, 0,
		     DW_CFA_def_cfa_offset, 40, DW_CFA_set_loc, 0, 0x01, 0x04, 0, 0, 0, 0, 0,
		     DW_CFA_def_cfa_offset, 48, DW_CFA_set_loc, 0, 0, 0x09, 0, 0, 0, 0, 0,
		     DW_CFA_def_cfa_offset, 56));
	build(&s, &t);
	rule_is(&t, F + 0x8f, SP(8));
	rule_is(&t, F + 0x90, SP(16));
	rule_is(&t, F + 0x108f, SP(16));
	rule_is(&t, F + 0x1090, SP(24));
	rule_is(&t, F + 0x11090, SP(32));
	rule_is(&t, F + 0x21090, SP(40));
	rule_is(&t, 0x400ff, SP(40));
	rule_is(&t, 0x40100, SP(48));
	rule_is(&t, F + 0x3ffff, SP(48)); /* the last location lies behind the function's end */
	rule_is(&t, F + 0x40000, NONE);
	check_unwind_h(&t, TEXT, F + 0x40100);
	release(&t);
}

static void test_cfa_forms(void **state)
{
	(void)state;
	expect_one(CODE(DW_CFA_def_cfa_sf, 6, 0x7e), RULE(.cfa = BPFPROF_CFA_FP, .cfa_off = 16));
	expect_one(CODE(DW_CFA_def_cfa_offset_sf, 0x7c), SP(32));
	expect_one(CODE(DW_CFA_def_cfa, 10, 0), RULE(.cfa = BPFPROF_CFA_REG, .reg = 10));
	expect_one(CODE(DW_CFA_def_cfa, 17, 0), UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa, 7, 0xff, 0xff, 0xff, 0xff, 0x07), SP(INT32_MAX));
	expect_one(CODE(DW_CFA_def_cfa, 7, 0x80, 0x80, 0x80, 0x80, 0x08), UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa, 7, 0x88, 0x80, 0x80, 0x00), SP(8));
	/* breg7 16 */
	expect_one(CODE(DW_CFA_def_cfa_expression, 2, 0x77, 16), SP(16));
	/* breg6 -8, deref */
	expect_one(CODE(DW_CFA_def_cfa_expression, 3, 0x76, 0x78, 0x06),
		   RULE(.cfa = BPFPROF_CFA_FP_DEREF, .cfa_off = -8));
	/* breg7 40, deref, plus_uconst 8, and the same by lit8, plus */
	expect_one(CODE(DW_CFA_def_cfa_expression, 5, 0x77, 40, 0x06, 0x23, 8),
		   RULE(.cfa = BPFPROF_CFA_SP_DEREF, .cfa_off = 40, .aux = 8));
	expect_one(CODE(DW_CFA_def_cfa_expression, 5, 0x77, 40, 0x06, 0x38, 0x22),
		   RULE(.cfa = BPFPROF_CFA_SP_DEREF, .cfa_off = 40, .aux = 8));
	/* breg7 8, breg9 0, lit8, mul, plus, deref, plus_uconst 8 */
	expect_one(CODE(DW_CFA_def_cfa_expression, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06,
			0x23, 8),
		   RULE(.cfa = BPFPROF_CFA_SP_INDEX, .reg = 9, .cfa_off = 8, .aux = 8));
	expect_one(CODE(DW_CFA_def_cfa_expression, 8, 0x77, 0x78, 0x73, 0, 0x38, 0x1e, 0x22, 0x06),
		   RULE(.cfa = BPFPROF_CFA_SP_INDEX, .reg = 3, .cfa_off = -8));
	/* the same by breg6; breg9 1; breg16; lit4; without deref; cut short */
	expect_one(CODE(DW_CFA_def_cfa_expression, 8, 0x76, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06),
		   UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 8, 0x77, 8, 0x79, 1, 0x38, 0x1e, 0x22, 0x06),
		   UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 8, 0x77, 8, 0x80, 0, 0x38, 0x1e, 0x22, 0x06),
		   UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 8, 0x77, 8, 0x79, 0, 0x34, 0x1e, 0x22, 0x06),
		   UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 7, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22),
		   UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 3, 0x77, 8, 0x79), UNSUPPORTED);
	/* breg10 0, deref; breg7 8, deref, deref; an empty one; one cut short */
	expect_one(CODE(DW_CFA_def_cfa_expression, 3, 0x7a, 0, 0x06), UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 4, 0x77, 8, 0x06, 0x06), UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 0), UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 1, 0x77), UNSUPPORTED);
	/* a register behind an expression: with the offset of before, changed in between or not; an
	 * offset: the expression stays */
	expect_one(CODE(DW_CFA_def_cfa_expression, 3, 0x76, 0x78, 0x06, DW_CFA_def_cfa_register, 7),
		   SP(8));
	expect_one(CODE(DW_CFA_def_cfa_expression, 0, DW_CFA_def_cfa_offset, 24,
			DW_CFA_def_cfa_register, 7),
		   SP(24));
	expect_one(CODE(DW_CFA_def_cfa_expression, 3, 0x76, 0x78, 0x06, DW_CFA_def_cfa_offset, 8),
		   RULE(.cfa = BPFPROF_CFA_FP_DEREF, .cfa_off = -8));
	/* halves of what could not be held */
	expect_one(CODE(DW_CFA_def_cfa, 17, 0, DW_CFA_def_cfa_offset, 8), UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa, 17, 0, DW_CFA_def_cfa_register, 7), SP(0));
	expect_one(
		CODE(DW_CFA_def_cfa, 7, 0x80, 0x80, 0x80, 0x80, 0x08, DW_CFA_def_cfa_register, 6),
		UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 3, 0x76, 0x78, 0x06, DW_CFA_def_cfa, 7, 24),
		   SP(24));
}

static void test_plt(void **state)
{
	(void)state;
	expect_one(CODE(DW_CFA_def_cfa_expression, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a,
			0x33, 0x24, 0x22),
		   RULE(.cfa = BPFPROF_CFA_PLT, .cfa_off = 8, .aux = 11));
	expect_one(CODE(DW_CFA_def_cfa_expression, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a,
			0x33, 0x24, 0x22),
		   RULE(.cfa = BPFPROF_CFA_PLT, .cfa_off = 8, .aux = 10));
	/* shifted by 2 */
	expect_one(CODE(DW_CFA_def_cfa_expression, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a,
			0x32, 0x24, 0x22),
		   UNSUPPORTED);
	/* of rbp */
	expect_one(CODE(DW_CFA_def_cfa_expression, 11, 0x76, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a,
			0x33, 0x24, 0x22),
		   UNSUPPORTED);
}

static void test_rbp(void **state)
{
	const uint8_t sp = BPFPROF_CFA_SP;

	(void)state;
	expect_one(CODE(DW_CFA_offset_extended, 6, 2),
		   RULE(.cfa = sp, .cfa_off = 8, .fp = BPFPROF_FP_CFA, .fp_off = -16));
	expect_one(CODE(DW_CFA_offset_extended_sf, 6, 0x7e),
		   RULE(.cfa = sp, .cfa_off = 8, .fp = BPFPROF_FP_CFA, .fp_off = 16));
	expect_one(CODE(DW_CFA_GNU_negative_offset_extended, 6, 2),
		   RULE(.cfa = sp, .cfa_off = 8, .fp = BPFPROF_FP_CFA, .fp_off = 16));
	expect_one(CODE(DW_CFA_expression, 6, 2, 0x76, 0),
		   RULE(.cfa = sp, .cfa_off = 8, .fp = BPFPROF_FP_FP));
	expect_one(CODE(DW_CFA_expression, 6, 2, 0x77, 0x70),
		   RULE(.cfa = sp, .cfa_off = 8, .fp = BPFPROF_FP_SP, .fp_off = -16));
	expect_one(CODE(DW_CFA_expression, 6, 2, 0x7a, 0), UNSUPPORTED);
	expect_one(CODE(DW_CFA_undefined, 6),
		   RULE(.cfa = sp, .cfa_off = 8, .fp = BPFPROF_FP_UNDEF));
	expect_one(CODE(DW_CFA_register, 6, 9),
		   RULE(.cfa = sp, .cfa_off = 8, .fp = BPFPROF_FP_UNDEF));
	expect_one(CODE(DW_CFA_val_offset, 6, 1), UNSUPPORTED);
	expect_one(CODE(DW_CFA_val_offset_sf, 6, 1), UNSUPPORTED);
	expect_one(CODE(DW_CFA_val_expression, 6, 2, 0x77, 0), UNSUPPORTED);
	expect_one(CODE(DW_CFA_offset | 6, 2, DW_CFA_same_value, 6), SP(8));
	expect_one(CODE(DW_CFA_offset | 6, 2, DW_CFA_restore | 6), SP(8));
	expect_one(CODE(DW_CFA_offset | 6, 2, DW_CFA_restore_extended, 6), SP(8));
	/* rbx and xmm0 do not matter */
	expect_one(CODE(DW_CFA_offset | 3, 2, DW_CFA_val_offset, 17, 1, DW_CFA_expression, 3, 1,
			0x96, DW_CFA_restore | 3, DW_CFA_GNU_args_size, 0x90, 1,
			DW_CFA_GNU_window_save),
		   SP(8));
}

/* One function as build_one makes it, whose rules say where r12 is. */
static void expect_r12(struct code code, uint8_t want)
{
	struct unwind_source source;
	struct unwind_table t = { 0 };
	struct section s = { 0 };
	struct elf_file *elf;
	struct ehframe *e;
	int fd;

	put_cie(&s, 1, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata8, STANDARD);
	put_fde(&s, F, 0x40, code);
	fd = make_file(&s, NULL, true);
	free(s.b.p);
	elf = elf_file__open(fd);
	assert_non_null(elf);
	e = ehframe__open(elf, false);
	assert_non_null(e);
	ehframe__follow_r12(e);
	source = ehframe__source(e);
	assert_int_equal(unwind_build_merged(&source, 1, &t), 0);
	rule_is(&t, F, RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 8, .reg = want));
	ehframe__free(e);
	elf_file__free(elf);
	close(fd);
	release(&t);
}

/* It is followed where it is asked for alone. */
static void test_r12(void **state)
{
	const uint8_t unknown = BPFPROF_R12_UNKNOWN, same = BPFPROF_R12_SAME;

	(void)state;
	expect_one(CODE(DW_CFA_offset | 12, 3), SP(8));
	expect_r12(CODE(DW_CFA_nop), same);
	expect_r12(CODE(DW_CFA_offset | 12, 3), 3);
	expect_r12(CODE(DW_CFA_offset_extended, 12, 0xff, 1), 255);
	/* where no rule can say that it is */
	expect_r12(CODE(DW_CFA_offset_extended, 12, 0x80, 2), unknown);
	expect_r12(CODE(DW_CFA_offset | 12, 0), unknown);
	expect_r12(CODE(DW_CFA_offset | 12, 1), unknown);
	expect_r12(CODE(DW_CFA_offset_extended_sf, 12, 0x7f), unknown);
	expect_r12(CODE(DW_CFA_offset | 12, 3, DW_CFA_restore | 12), same);
	expect_r12(CODE(DW_CFA_offset | 12, 3, DW_CFA_same_value, 12), same);
	expect_r12(CODE(DW_CFA_undefined, 12), unknown);
	expect_r12(CODE(DW_CFA_register, 12, 3), unknown);
	expect_r12(CODE(DW_CFA_val_offset, 12, 1), unknown);
	expect_r12(CODE(DW_CFA_expression, 12, 1, DW_OP_lit0), unknown);
	expect_r12(CODE(DW_CFA_remember_state, DW_CFA_offset | 12, 3, DW_CFA_restore_state), same);
}

static void test_return_address(void **state)
{
	(void)state;
	expect_one(CODE(DW_CFA_undefined, 16), RULE(.cfa = BPFPROF_CFA_SP, .ra = BPFPROF_RA_END));
	/* no caller: it does not matter that its frame cannot be found */
	expect_one(
		CODE(DW_CFA_undefined, 16, DW_CFA_def_cfa_expression, 0, DW_CFA_val_offset, 6, 1),
		RULE(.cfa = BPFPROF_CFA_SP, .ra = BPFPROF_RA_END));
	expect_one(CODE(DW_CFA_register, 16, 5),
		   RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 8, .ra = BPFPROF_RA_REG, .aux = 5));
	expect_one(CODE(DW_CFA_register, 16, 99), UNSUPPORTED);
	expect_one(CODE(DW_CFA_same_value, 16), UNSUPPORTED);
	expect_one(CODE(DW_CFA_offset | 16, 3),
		   RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 8, .ra = BPFPROF_RA_OFF, .aux = -24));
	expect_one(CODE(DW_CFA_offset | 16, 3, DW_CFA_restore | 16), SP(8));
	expect_one(CODE(DW_CFA_expression, 16, 2, 0x77, 8), UNSUPPORTED);
	expect_one(CODE(DW_CFA_val_expression, 16, 2, 0x77, 8), UNSUPPORTED);
	/* both want aux */
	expect_one(CODE(DW_CFA_offset | 16, 3, DW_CFA_def_cfa_expression, 3, 0x76, 0x78, 0x06),
		   UNSUPPORTED);
	/* the kernel's place, but no signal frame */
	expect_one(CODE(DW_CFA_expression, 16, 3, 0x77, 0xa8, 0x01), UNSUPPORTED);
}

static void test_signal_frame(void **state)
{
	/* as in glibc: CFA breg7 160 deref, rbp breg7 120, rip breg7 168 */
	struct code good =
		CODE(DW_CFA_def_cfa_expression, 4, 0x77, 0xa0, 0x01, 0x06, DW_CFA_expression, 6, 3,
		     0x77, 0xf8, 0x00, DW_CFA_expression, 16, 3, 0x77, 0xa8, 0x01);
	struct code other = CODE(DW_CFA_expression, 16, 3, 0x77, 0xa0, 0x01);
	struct section s = { 0 };
	struct unwind_table t;

	(void)state;
	put_cie(&s, 1, "zRS", DW_EH_PE_pcrel | DW_EH_PE_sdata8, NO_CODE);
	put_fde(&s, F, 9, good);
	put_fde(&s, F + 0x40, 9, other);
	build(&s, &t);
	rule_is(&t, F, RULE(.cfa = BPFPROF_CFA_SIGNAL));
	rule_is(&t, F + 0x40, UNSUPPORTED);
	assert_int_equal(t.unsupported_cnt, 1);
	release(&t);
}

static void test_remember(void **state)
{
	uint8_t deep[64];
	struct unwind_table t;
	int i;

	(void)state;
	build_one(CODE(DW_CFA_remember_state, ADVANCE(1), DW_CFA_def_cfa_offset, 16,
		       DW_CFA_offset | 6, 2, DW_CFA_remember_state, ADVANCE(1), DW_CFA_def_cfa, 6,
		       32, ADVANCE(1), DW_CFA_restore_state, ADVANCE(1), DW_CFA_restore_state),
		  &t);
	rule_is(&t, F, SP(8));
	rule_is(&t, F + 1,
		RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 16, .fp = BPFPROF_FP_CFA, .fp_off = -16));
	rule_is(&t, F + 2,
		RULE(.cfa = BPFPROF_CFA_FP, .cfa_off = 32, .fp = BPFPROF_FP_CFA, .fp_off = -16));
	rule_is(&t, F + 3,
		RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 16, .fp = BPFPROF_FP_CFA, .fp_off = -16));
	rule_is(&t, F + 4, SP(8));
	release(&t);

	/* more than is kept, and nothing to restore: unknown from there on */
	for (i = 0; i < 64; i++)
		deep[i] = i < 2 ? (i ? DW_CFA_nop : ADVANCE(4)) : DW_CFA_remember_state;
	build_one((struct code){ deep, sizeof(deep) }, &t);
	rule_is(&t, F + 3, SP(8));
	rule_is(&t, F + 4, UNSUPPORTED);
	rule_is(&t, F + 0x3f, UNSUPPORTED);
	rule_is(&t, F + 0x40, NONE);
	release(&t);
	expect_one(CODE(DW_CFA_restore_state), UNSUPPORTED);
}

static void test_bad_instructions(void **state)
{
	struct unwind_table t;

	(void)state;
	build_one(CODE(ADVANCE(2), DW_CFA_def_cfa_offset, 16, ADVANCE(2), 0x3b, ADVANCE(2),
		       DW_CFA_def_cfa_offset, 8),
		  &t);
	rule_is(&t, F + 1, SP(8));
	rule_is(&t, F + 3, SP(16));
	rule_is(&t, F + 4, UNSUPPORTED);
	rule_is(&t, F + 6, UNSUPPORTED);
	release(&t);
	/* cut short */
	expect_one(CODE(DW_CFA_def_cfa_offset), UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_expression, 5, 0x77), UNSUPPORTED);
	expect_one(CODE(DW_CFA_advance_loc4, 1, 0), UNSUPPORTED);
	expect_one(CODE(DW_CFA_def_cfa_offset, 0x80, 0x80), UNSUPPORTED);
	/* back, to an address near 0 (pcrel, from about DATA) */
	expect_one(CODE(DW_CFA_set_loc, 0, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff), UNSUPPORTED);
}

static void test_encodings(void **state)
{
	static const uint8_t formats[] = { DW_EH_PE_absptr,
					   DW_EH_PE_udata4,
					   DW_EH_PE_udata8,
					   DW_EH_PE_sdata4,
					   DW_EH_PE_sdata8,
					   DW_EH_PE_uleb128,
					   DW_EH_PE_sleb128,
					   DW_EH_PE_pcrel | DW_EH_PE_sdata8,
					   DW_EH_PE_pcrel | DW_EH_PE_udata8 };
	struct unwind_table t;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(formats); i++) {
		struct section s = { 0 };

		put_cie(&s, 1, "zPLR", formats[i], STANDARD);
		put_fde(&s, F, 0x40, CODE(ADVANCE(8), DW_CFA_def_cfa_offset, 24));
		build(&s, &t);
		rule_is(&t, F - 1, NONE);
		rule_is(&t, F, SP(8));
		rule_is(&t, F + 8, SP(24));
		rule_is(&t, F + 0x3f, SP(24));
		rule_is(&t, F + 0x40, NONE);
		release(&t);
	}
}

static void test_refused(void **state)
{
	static const uint8_t encodings[] = { DW_EH_PE_indirect,
					     DW_EH_PE_omit,
					     DW_EH_PE_textrel,
					     DW_EH_PE_funcrel,
					     DW_EH_PE_aligned,
					     DW_EH_PE_datarel | DW_EH_PE_sdata4,
					     0x05,
					     0x0d };
	static const char *const augmentations[] = { "zRX", "eh", "X", "zXR" };
	struct unwind_table t;
	size_t i;

	(void)state;
	/* what cannot be read is left out, what stands beside it stays */
	for (i = 0; i < ARRAY_SIZE(encodings) + ARRAY_SIZE(augmentations); i++) {
		struct section s = { 0 };
		bool enc = i < ARRAY_SIZE(encodings);

		put_cie(&s, 1, enc ? "zR" : augmentations[i - ARRAY_SIZE(encodings)],
			enc ? encodings[i] : 0, STANDARD);
		put_fde(&s, F, 0x40, NO_CODE);
		assert_int_equal(try_build(&s, NULL, true, &t), -EBADMSG);
		assert_null(t.parts);
		put_cie(&s, 1, "zR", DW_EH_PE_absptr, STANDARD);
		put_fde(&s, F + 0x100, 0x40, NO_CODE);
		build(&s, &t);
		rule_is(&t, F, NONE);
		rule_is(&t, F + 0x100, SP(8));
		release(&t);
	}
}

static void test_versions(void **state)
{
	static const uint8_t versions[] = { 1, 3, 4 };
	struct unwind_table t;
	size_t i;
	int kind;

	(void)state;
	for (i = 0; i < sizeof(versions); i++) {
		for (kind = 0; kind < 4; kind++) {
			struct section s = { .debug = kind & 1, .wide = kind & 2 };

			put_cie(&s, versions[i], "", 0, STANDARD);
			put_fde(&s, F, 0x40, NO_CODE);
			assert_int_equal(
				try_build(s.debug ? NULL : &s, s.debug ? &s : NULL, true, &t), 0);
			free(s.b.p);
			rule_is(&t, F, SP(8));
			rule_is(&t, F + 0x40, NONE);
			release(&t);
		}
	}
}

static void test_order(void **state)
{
	struct section s = { 0 };
	struct unwind_table t;

	(void)state;
	put_cie(&s, 1, "zR", DW_EH_PE_absptr, STANDARD);
	put_fde(&s, F + 0x1000, 0x40, CODE(DW_CFA_def_cfa_offset, 40));
	put_fde(&s, F, 0x40, CODE(DW_CFA_def_cfa_offset, 16));
	put_fde(&s, F + 0x4f, 0x40, CODE(DW_CFA_def_cfa_offset, 24));	/* behind padding */
	put_fde(&s, F + 0x9f, 0x40, CODE(DW_CFA_def_cfa_offset, 32));	/* and once more */
	put_fde(&s, F, 0x80, CODE(DW_CFA_def_cfa_offset, 48));		/* the first one counts */
	put_fde(&s, F + 0x1010, 0x10, CODE(DW_CFA_def_cfa_offset, 56)); /* inside of another */
	put_fde(&s, F + 0x2000, 0, CODE(DW_CFA_def_cfa_offset, 64));
	put_fde(&s, 0, 0x40, CODE(DW_CFA_def_cfa_offset, 64));
	put_fde(&s, TEXT - 1, 0x40, CODE(DW_CFA_def_cfa_offset, 64));
	put_fde(&s, TEXT + TEXT_SZ - 8, 0x40, CODE(DW_CFA_def_cfa_offset, 64));
	put_fde(&s, F + 0x3000, UINT64_MAX - 0x1000, CODE(DW_CFA_def_cfa_offset, 64));
	build(&s, &t);
	rule_is(&t, F + 0x3f, SP(16));
	rule_is(&t, F + 0x40, NONE);
	rule_is(&t, F + 0x4e, NONE);
	rule_is(&t, F + 0x4f, SP(24));
	rule_is(&t, F + 0x8e, SP(24));
	rule_is(&t, F + 0x8f, NONE);
	rule_is(&t, F + 0x9e, NONE);
	rule_is(&t, F + 0x9f, SP(32));
	rule_is(&t, F + 0x100f, SP(40));
	rule_is(&t, F + 0x1010, SP(56));
	rule_is(&t, F + 0x1020, NONE);
	rule_is(&t, F + 0x2000, NONE);
	rule_is(&t, TEXT, NONE);
	assert_int_equal(t.row_cnt, 9);
	check_unwind_h(&t, TEXT, F + 0x1200);
	release(&t);
}

static void test_debug_frame(void **state)
{
	struct section eh = { 0 }, debug = { .debug = true };
	struct unwind_table t;

	(void)state;
	put_cie(&eh, 1, "zR", DW_EH_PE_absptr, STANDARD);
	put_fde(&eh, F + 0x100, 0x40, NO_CODE);
	put_cie(&debug, 4, "", 0, STANDARD);
	put_fde(&debug, F + 0x100, 0x40, CODE(DW_CFA_def_cfa_offset, 16)); /* .eh_frame has it */
	put_fde(&debug, F + 0x120, 0x40, CODE(DW_CFA_def_cfa_offset, 16));
	put_fde(&debug, F + 0x140, 0x40, CODE(DW_CFA_def_cfa_offset, 24));
	put_fde(&debug, F, 0x110, CODE(DW_CFA_def_cfa_offset, 32));
	assert_int_equal(try_build(&eh, &debug, true, &t), 0);
	assert_int_equal(t.cfi_sz, eh.b.sz + debug.b.sz);
	free(eh.b.p);
	free(debug.b.p);
	rule_is(&t, F, SP(32));
	rule_is(&t, F + 0xff, SP(32));
	rule_is(&t, F + 0x100, SP(8));
	rule_is(&t, F + 0x13f, SP(8));
	rule_is(&t, F + 0x140, SP(24));
	rule_is(&t, F + 0x180, NONE);
	release(&t);
}

static void test_cie_behind_fde(void **state)
{
	struct section s = { .debug = true };
	struct unwind_table t;

	(void)state;
	s.cie = 4 + 4 + 8 + 8; /* where the CIE will be */
	put_fde(&s, F, 0x40, NO_CODE);
	assert_int_equal(s.b.sz, s.cie);
	put_cie(&s, 4, "", 0, STANDARD);
	assert_int_equal(try_build(NULL, &s, true, &t), 0);
	free(s.b.p);
	rule_is(&t, F, SP(8));
	release(&t);
}

static void test_no_section_headers(void **state)
{
	struct section s = { 0 };
	struct unwind_table t;
	uint32_t zero = 0;

	(void)state;
	put_cie(&s, 1, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata8, STANDARD);
	put_fde(&s, F, 0x40, NO_CODE);
	put(&s.b, &zero, 4);
	put_fde(&s, F + 0x100, 0x40, NO_CODE);
	assert_int_equal(try_build(&s, NULL, false, &t), 0);
	rule_is(&t, F, SP(8));
	rule_is(&t, F + 0x100, NONE);
	release(&t);
	/* with a section its size is the end */
	build(&s, &t);
	rule_is(&t, F + 0x100, SP(8));
	release(&t);
}

static void test_nothing(void **state)
{
	struct section s = { 0 };
	struct unwind_table t;

	(void)state;
	assert_int_equal(try_build(NULL, NULL, true, &t), -ENOENT);
	assert_int_equal(try_build(NULL, NULL, false, &t), -ENOENT);
	put32(&s.b, 0);
	assert_int_equal(try_build(&s, NULL, true, &t), 0);
	assert_int_equal(t.part_cnt, 0);
	rule_is(&t, F, NONE);
	unwind_table__done(&t);
	put32(&s.b, 0x7fffffff);
	assert_int_equal(try_build(&s, NULL, true, &t), -EBADMSG);
	free(s.b.p);
}

/* A row at every `step` bytes from F + 3 on, with `distinct` rules in turn. */
static void check_dense(uint32_t step, uint32_t distinct)
{
	const uint32_t cnt = 150000, size = cnt * step;
	struct section s = { 0 };
	struct bytes code = { 0 };
	struct unwind_table t;
	uint32_t i;

	for (i = 0; i < cnt; i++) {
		if (i)
			put8(&code, ADVANCE(step));
		put8(&code, DW_CFA_def_cfa_offset);
		put_uleb(&code, i % distinct * 8 + 8);
	}
	put_cie(&s, 1, "zR", DW_EH_PE_absptr, STANDARD);
	put_fde(&s, F + 3, size, (struct code){ code.p, code.sz });
	free(code.p);
	build(&s, &t);
	for (i = 0; i < size; i++)
		rule_is(&t, F + 3 + i, SP((int32_t)(i / step % distinct * 8 + 8)));
	rule_is(&t, F + 2, NONE);
	rule_is(&t, F + 3 + size, NONE);
	assert_true(t.part_cnt >= 3);
	assert_true(t.row_cnt >= cnt && t.row_cnt <= cnt + 1 + t.part_cnt);
	check_unwind_h(&t, TEXT, F + size + 0x100);
	release(&t);
}

/* Blocks of 256 rows, more rows than a part holds, more rules than it holds; parts that begin
 * between two rows. */
static void test_dense(void **state)
{
	(void)state;
	check_dense(1, 3);
	check_dense(1, 300);
	check_dense(1, 30000);
	check_dense(3, 300);
	check_dense(3, 30000);
	check_dense(7, 4001);
}

/* Few rows in much text: a part ends where its index would grow too large, a hole is not indexed.
 */
static void test_sparse(void **state)
{
	struct section s = { 0 };
	struct unwind_table t;
	uint64_t big = 80ULL << 20, after = TEXT + big + (3ULL << 20), addr;

	(void)state;
	put_cie(&s, 1, "zR", DW_EH_PE_absptr, STANDARD);
	put_fde(&s, TEXT + 0x80, big,
		CODE(ADVANCE(16), DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2));
	put_fde(&s, after, 0x40, NO_CODE);
	build(&s, &t);
	assert_int_equal(t.part_cnt, 4);
	rule_is(&t, TEXT + 0x80, SP(8));
	for (addr = TEXT + 0x90; addr < TEXT + 0x80 + big; addr += 4093)
		rule_is(&t, addr,
			RULE(.cfa = BPFPROF_CFA_SP, .cfa_off = 16, .fp = BPFPROF_FP_CFA,
			     .fp_off = -16));
	rule_is(&t, TEXT + 0x80 + big, NONE);
	rule_is(&t, after - 1, NONE);
	rule_is(&t, after, SP(8));
	rule_is(&t, after + 0x40, NONE);
	assert_true(t.parts[3].vaddr > t.parts[2].vaddr + t.parts[2].text_sz);
	check_unwind_h(&t, TEXT + big - 0x1000, after + 0x100);
	release(&t);
}

/* Parts may not be made without end: a function in each MiB of an immense segment is refused. */
static void test_too_many_parts(void **state)
{
	struct unwind_table t = { 0 };
	struct unwind_packer *p = unwind_packer__new(&t);
	uint64_t i;

	(void)state;
	assert_non_null(p);
	for (i = 1; i <= 5000; i++) {
		unwind_packer__row(p, i << 22, SP(8));
		unwind_packer__row(p, (i << 22) + 16, NONE);
	}
	assert_int_equal(unwind_packer__finish(p), -E2BIG);
	unwind_packer__free(p);
	unwind_table__done(&t);
}

/* A section with a bit of everything, for the tests of damage. */
static void put_mixture(struct section *s)
{
	int i;

	for (i = 0; i < 4; i++) {
		put_cie(s, i == 3 ? 4 : 1,
			i == 1 ? "zPLR" :
			i == 2 ? "zRS" :
				 "zR",
			i & 1 ? DW_EH_PE_pcrel | DW_EH_PE_sdata8 : DW_EH_PE_udata4, STANDARD);
		put_fde(s, F + 0x1000u * (unsigned int)i, 0x400,
			CODE(ADVANCE(1), DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2,
			     ADVANCE(3), DW_CFA_def_cfa_register, 6, DW_CFA_advance_loc1, 0x90,
			     DW_CFA_remember_state, DW_CFA_def_cfa, 7, 8, DW_CFA_advance_loc2, 0, 1,
			     DW_CFA_restore_state, DW_CFA_nop));
		put_fde(s, F + 0x800 + 0x1000u * (unsigned int)i, 0x400,
			CODE(DW_CFA_def_cfa_expression, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b,
			     0x2a, 0x33, 0x24, 0x22, DW_CFA_advance_loc4, 0, 1, 0, 0,
			     DW_CFA_expression, 6, 2, 0x76, 0, DW_CFA_expression, 16, 3, 0x77, 0xa8,
			     0x01, ADVANCE(9), DW_CFA_def_cfa_expression, 3, 0x76, 0x78, 0x06,
			     DW_CFA_undefined, 16));
	}
}

static void test_damage(void **state)
{
	uint64_t x = 88172645463325252ULL; /* xorshift, the same bytes in each run */
	struct section s = { 0 }, cut;
	struct unwind_table t;
	uint8_t *good;
	size_t i, n, sz;
	int err, round;

	(void)state;
	put_mixture(&s);
	sz = s.b.sz;
	good = malloc(sz);
	assert_non_null(good);
	memcpy(good, s.b.p, sz);
	for (i = 0; i < sz; i++) {
		cut = s;
		cut.b.sz = i;
		err = try_build(&cut, NULL, i & 1, &t);
		assert_true(!err || err == -EBADMSG || err == -ENOENT);
		release(&t);
	}
	for (round = 0; round < 20000; round++) {
		memcpy(s.b.p, good, sz);
		for (n = round % 8 + 1; n--;) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			s.b.p[x % sz] = (uint8_t)(x >> 32);
		}
		err = try_build(round & 2 ? NULL : &s, round & 2 ? &s : NULL, true, &t);
		assert_true(!err || err == -EBADMSG);
		release(&t);
	}
	free(good);
	free(s.b.p);
}

static int first_library(struct dl_phdr_info *info, size_t sz, void *ret)
{
	(void)sz;
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	snprintf(ret, 4096, "%s", info->dlpi_name);
	return 1;
}

static void test_libc(void **state)
{
	char path[4096] = "";
	struct elf_file *elf;
	struct unwind_table t;
	const struct elf_segment *seg;
	size_t cnt, i;
	int fd;

	(void)state;
	if (!dl_iterate_phdr(first_library, path)) {
		print_message("no libc.so in this process\n");
		skip();
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	elf = elf_file__open(fd);
	assert_non_null(elf);
	assert_int_equal(unwind_build(elf, &t), 0);
	assert_true(t.row_cnt > 1000);
	assert_true(t.blob_sz <= 5 * t.row_cnt);
	assert_int_equal(t.unsupported_cnt, 0);
	seg = elf_file__segments(elf, &cnt);
	for (i = 0; i < cnt; i++) {
		if (seg[i].exec)
			check_unwind_h(&t, seg[i].vaddr, seg[i].vaddr + seg[i].filesz);
	}
	release(&t);
	elf_file__free(elf);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_function),
		cmocka_unit_test(test_location_instructions),
		cmocka_unit_test(test_cfa_forms),
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_rbp),
		cmocka_unit_test(test_r12),
		cmocka_unit_test(test_return_address),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_remember),
		cmocka_unit_test(test_bad_instructions),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_cie_behind_fde),
		cmocka_unit_test(test_no_section_headers),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_dense),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_too_many_parts),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
