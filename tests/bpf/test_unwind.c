/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of bpf/unwind.h on tables and stacks made by hand: searches against linear ones, each rule
 * against its definition, reads at the ends of memory, and random bytes where tables should be; and
 * of bpf/unwind_run.h against it.
 * Chunks are allocated singly, so that AddressSanitizer sees a read that leaves one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>
#include <linux/types.h>

#include "bpf/bpfprof.h"

/* An odd stack pointer makes unaligned loads, which x86-64 and the verifier allow. */
#define NO_ALIGN_CHECK __attribute__((no_sanitize("alignment")))
#undef __always_inline
#undef __noinline
#define __always_inline inline NO_ALIGN_CHECK
#define __noinline __attribute__((noinline, unused)) NO_ALIGN_CHECK
static uint64_t thread_pointer;
#define UNW_THREAD_POINTER(u) thread_pointer
#include "bpf/unwind_run.h"

#define PAGE 4096ULL
#define MAX_SEGS 5

/* ---- the target: some pages of memory, and table memory ---- */

static struct seg {
	uint64_t addr;
	size_t sz;
	uint8_t *data;
} segs[MAX_SEGS];
static size_t seg_cnt;
static int reads, fail_read = -1; /* the number of the read that fails */
static uint8_t *chunks[3];
static uint32_t used_pos;

static uint64_t rnd_state = 88172645463325252ULL;

static uint64_t rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state;
}

static uint64_t rnd_below(uint64_t n)
{
	return rnd() % n;
}

/* Segments do not touch each other: a read is good if it lies in one. */
static struct seg *find_seg(uint64_t addr, size_t sz)
{
	for (size_t i = 0; i < seg_cnt; i++)
		if (addr >= segs[i].addr && addr - segs[i].addr <= segs[i].sz &&
		    sz <= segs[i].sz - (addr - segs[i].addr))
			return &segs[i];
	return NULL;
}

static __always_inline int unw_read_user(struct unw *u, void *dst, __u32 sz, __u64 addr)
{
	struct seg *s = find_seg(addr, sz);

	assert_true(sz <= sizeof(u->win));
	if (reads++ == fail_read || !s)
		return -14;
	memcpy(dst, s->data + (addr - s->addr), sz);
	return 0;
}

static __always_inline const __u8 *unw_chunk(const struct unw *u, __u32 idx)
{
	(void)u;
	return idx < 3 ? chunks[idx] : NULL;
}

static __always_inline void unw_mark_used(const __u8 *chunk, __u32 pos)
{
	(void)chunk;
	used_pos = pos;
}

static uint8_t *add_seg(uint64_t addr, size_t sz)
{
	struct seg *s = &segs[seg_cnt++];

	assert_true(seg_cnt <= MAX_SEGS);
	s->addr = addr;
	s->sz = sz;
	s->data = calloc(1, sz);
	assert_non_null(s->data);
	return s->data;
}

static void poke(uint64_t addr, uint64_t v)
{
	struct seg *s = find_seg(addr, 8);

	assert_non_null(s);
	memcpy(s->data + (addr - s->addr), &v, 8);
}

static void poke_bytes(uint64_t addr, const void *bytes, size_t n)
{
	struct seg *s = find_seg(addr, n);

	assert_non_null(s);
	memcpy(s->data + (addr - s->addr), bytes, n);
}

/* call target, which ends at ra */
static void put_call(uint64_t ra, uint64_t target)
{
	uint8_t code[8] = { 0x90, 0x90, 0x90, 0xe8 };
	int32_t rel = (int32_t)(target - ra);

	memcpy(code + 4, &rel, sizeof(rel));
	poke_bytes(ra - sizeof(code), code, sizeof(code));
}

/* ---- tables ---- */

#define RULE_NONE 0 /* index of the rule without information in every table made here */
#define MAX_ROWS 8192

struct row {
	uint32_t addr; /* from the part's start, strictly ascending */
	uint16_t rule;
};

static uint32_t align16(uint32_t v)
{
	return (v + 15) & ~15U;
}

/* Lays a part out at pos of a chunk; returns the first position behind it. */
static uint32_t put_part(uint8_t *chunk, uint32_t pos, uint32_t text_sz, const struct row *rows,
			 uint32_t row_cnt, const struct bpfprof_rule *rules, uint32_t rule_cnt)
{
	uint32_t blk_cnt = (text_sz + 255) / 256;
	uint32_t blk_pos = pos + sizeof(struct bpfprof_part);
	struct bpfprof_part part = { .blk_cnt = blk_cnt, .row_cnt = row_cnt };
	uint32_t r = 0;

	part.off_pos = blk_pos + (blk_cnt + 1) * 2;
	part.rule_pos = (part.off_pos + row_cnt + 1) & ~1U;
	part.rules_pos = align16(part.rule_pos + row_cnt * 2);
	assert_true(part.rules_pos + rule_cnt * 16 <= BPFPROF_CHUNK_SZ);
	memcpy(chunk + pos, &part, sizeof(part));
	for (uint32_t b = 0; b <= blk_cnt; b++) {
		uint16_t first;

		while (r < row_cnt && rows[r].addr < b * 256)
			r++;
		first = b == blk_cnt ? row_cnt : r;
		memcpy(chunk + blk_pos + b * 2, &first, 2);
	}
	for (r = 0; r < row_cnt; r++) {
		chunk[part.off_pos + r] = rows[r].addr & 255;
		memcpy(chunk + part.rule_pos + r * 2, &rows[r].rule, 2);
	}
	memcpy(chunk + part.rules_pos, rules, rule_cnt * sizeof(*rules));
	return part.rules_pos + rule_cnt * 16;
}

static const __u64 owner[2] = { 0x100001234, 987654321 };

/* A list of mappings at pos: whose it is, the first addresses, what they lead to. */
static void put_maps(uint8_t *chunk, uint32_t pos, const uint64_t *starts,
		     const struct bpfprof_map *maps, uint32_t n)
{
	memcpy(chunk + pos, owner, sizeof(owner));
	pos += sizeof(owner);
	memcpy(chunk + pos, starts, n * 8);
	memcpy(chunk + align16(pos + n * 8), maps, n * sizeof(*maps));
}

static void init(struct unw *u, uint32_t chunk, uint32_t pos, uint32_t map_cnt)
{
	memset(u, 0, sizeof(*u));
	u->proc = (struct bpfprof_proc){ .chunk = chunk, .pos = pos, .map_cnt = map_cnt };
	memcpy(u->owner, owner, sizeof(owner));
}

static int setup(void **state)
{
	(void)state;
	seg_cnt = 0;
	reads = 0;
	fail_read = -1;
	for (int i = 0; i < 3; i++) {
		chunks[i] = calloc(1, BPFPROF_CHUNK_SZ);
		assert_non_null(chunks[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < seg_cnt; i++)
		free(segs[i].data);
	for (int i = 0; i < 3; i++)
		free(chunks[i]);
	return 0;
}

/* ---- searches ---- */

/* The row for an address as the format's description has it, without the index. */
static int linear_row(const struct row *rows, uint32_t row_cnt, uint32_t addr)
{
	int found = -1;

	for (uint32_t i = 0; i < row_cnt && rows[i].addr <= addr; i++)
		found = i;
	return found;
}

static void check_part(const struct row *rows, uint32_t row_cnt, uint32_t text_sz, uint32_t skew)
{
	struct bpfprof_rule rules[512];
	uint64_t start = 0x7f0000001000ULL + skew;
	struct bpfprof_map map = {
		.size = text_sz + 1024 - skew, .skew = skew, .chunk = 1, .pos = 48
	};
	struct unw u;

	init(&u, 0, 0, 1);
	for (int i = 0; i < 512; i++)
		rules[i] = (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SP,
						  .fp = 1,
						  .ra = 3,
						  .reg = i & 15,
						  .cfa_off = -i,
						  .fp_off = i * 3,
						  .aux = ~i,
						  .bx_off = i - 256 };
	put_part(chunks[1], 48, text_sz, rows, row_cnt, rules, 512);
	put_maps(chunks[0], 0, &start, &map, 1);
	assert_int_equal(unw_find_map(&u, start), 0);
	assert_int_equal(used_pos, 48);
	for (uint32_t a = skew; a < text_sz + 1024; a++) {
		int row = linear_row(rows, row_cnt, a);
		struct bpfprof_rule got, none = { 0 };

		unw_find_rule(&u, start - skew + a, &got);
		/* behind the last block nothing holds; a part ends its own text with a row */
		if (row < 0 || a >= (text_sz + 255) / 256 * 256)
			assert_memory_equal(&got, &none, sizeof(got));
		else
			assert_memory_equal(&got, &rules[rows[row].rule], sizeof(got));
	}
}

static void test_find_rule(void **state)
{
	static const int per_block[] = { 0, 1, 2, 7, 8, 15, 16, 17, 31, 128, 255, 256 };
	static struct row rows[MAX_ROWS];

	(void)state;
	check_part(rows, 0, 0, 0);
	check_part(rows, 0, 1000, 0);
	for (int round = 0; round < 60; round++) {
		uint32_t n = 0, blocks = 1 + rnd_below(12);

		for (uint32_t b = 0; b < blocks; b++) {
			int want = per_block[round < 12 ? round : (int)rnd_below(12)], have = 0;

			/* choose `want` of the 256 offsets, evenly likely */
			for (int off = 0; off < 256; off++)
				if ((int)rnd_below(256 - off) < want - have) {
					have++;
					rows[n++] = (struct row){ b * 256 + off, rnd_below(512) };
				}
			assert_int_equal(have, want);
		}
		check_part(rows, n, blocks * 256 - rnd_below(200), round & 1 ? rnd_below(200) : 0);
	}
}

static void check_maps(uint32_t n)
{
	static uint64_t starts[BPFPROF_MAX_MAPS];
	static struct bpfprof_map maps[BPFPROF_MAX_MAPS];
	uint64_t at = 0x400000;
	struct unw u;

	init(&u, 2, 64, n);
	for (uint32_t i = 0; i < n; i++) {
		at += rnd_below(3) * 4096;
		starts[i] = at;
		maps[i] = (struct bpfprof_map){ .size = 4096 * (1 + rnd_below(4)),
						.skew = rnd(),
						.chunk = BPFPROF_CHUNK_NO_TABLE,
						.pos = rnd() };
		at += maps[i].size;
	}
	put_maps(chunks[2], 64, starts, maps, n);
	assert_int_equal(unw_find_map(&u, 0x3fffff), 1);
	assert_int_equal(unw_find_map(&u, at), 1);
	assert_int_equal(unw_find_map(&u, 0), 1);
	assert_int_equal(unw_find_map(&u, UINT64_MAX), 1);
	for (uint32_t k = 0; k < 4 * n; k++) {
		uint32_t i = k < n ? k : rnd_below(n);
		uint64_t last = starts[i] + maps[i].size - 1;
		int gap = i + 1 == n || starts[i + 1] != last + 1;

		assert_int_equal(unw_find_map(&u, k & 1 ? last : starts[i]), 0);
		assert_int_equal(u.map_start, starts[i]);
		assert_memory_equal(&u.map, &maps[i], sizeof(u.map));
		assert_int_equal(unw_find_map(&u, last + 1), gap);
		/* a miss leaves the current mapping as it was */
		assert_true(u.map_start == starts[i + !gap]);
	}
}

static void test_find_map(void **state)
{
	static const uint32_t counts[] = { 1,  2,  3,	31,   32,   33,	  62,  63,
					   64, 65, 127, 1000, 2048, 4094, 4095 };
	struct unw u;

	(void)state;
	init(&u, 0, 0, 0);
	assert_int_equal(unw_find_map(&u, 0x1000), 1);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		check_maps(counts[i]);
	init(&u, 2, 64, BPFPROF_MAX_MAPS);
	assert_int_equal(unw_find_map(&u, 0x400000), 1);
	init(&u, 77, 0, 1);
	assert_int_equal(unw_find_map(&u, 0x400000), 1);
}

/* A list whose memory was given to another process meanwhile is nobody's. */
static void test_find_map_of_another(void **state)
{
	struct bpfprof_map map = { .size = 4096, .chunk = BPFPROF_CHUNK_NO_TABLE };
	uint64_t start = 0x400000;
	struct unw u;

	(void)state;
	put_maps(chunks[0], 0, &start, &map, 1);
	for (int i = 0; i < 2; i++) {
		init(&u, 0, 0, 1);
		assert_int_equal(unw_find_map(&u, start), 0);
		init(&u, 0, 0, 1);
		u.owner[i]++;
		assert_int_equal(unw_find_map(&u, start), 1);
	}
}

/* ---- reading the stack ---- */

static void test_read8(void **state)
{
	const uint64_t stack = 0x7ffd00000000ULL, sz = 5 * PAGE;
	struct unw u = { 0 };
	uint8_t *data = add_seg(stack, sz);

	(void)state;
	for (size_t i = 0; i < sz; i++)
		data[i] = rnd();
	add_seg(stack + sz + PAGE, PAGE);
	for (int i = 0; i < 200000; i++) {
		/* near the edges of pages and of the stack, now and then far away */
		uint64_t addr = stack + rnd_below(8) * (PAGE / 2) + rnd_below(64) - 32;
		__u64 got = 0, want = 0;
		struct seg *s;

		if (!rnd_below(16))
			addr = rnd();
		if (!rnd_below(64))
			addr = -rnd_below(16);
		if (rnd_below(2))
			addr = u.win_addr + rnd_below(4096) - 1024;
		s = find_seg(addr, 8);
		if (s)
			memcpy(&want, s->data + (addr - s->addr), 8);
		assert_int_equal(unw_read8(&u, addr, &got), !s);
		assert_int_equal(got, want);
	}
}

static void test_windows_are_used(void **state)
{
	const uint64_t stack = 0x7ffd00000000ULL;
	struct unw u = { 0 };
	__u64 v;

	(void)state;
	add_seg(stack, 4 * PAGE);
	for (uint64_t a = stack; a < stack + 4 * PAGE; a += 8)
		assert_int_equal(unw_read8(&u, a, &v), 0);
	assert_int_equal(reads, 4 * PAGE / UNW_WINDOW);
}

/* ---- steps ---- */

#define CODE 0x401000ULL
#define CODE_SZ 0x1000U
#define STACK 0x7ffd00000000ULL
#define STACK_SZ (4 * PAGE)

/*
 * A program of one mapping of code with one rule from offset 0x10 on, stack and code memory. pc,
 * sp, fp stand at CODE + 0x100, STACK + 0x100, STACK + 0x200.
 */
static void program(struct unw *u, struct bpfprof_rule rule)
{
	struct bpfprof_rule rules[] = { { .cfa = BPFPROF_CFA_NONE }, rule };
	struct row rows[] = { { 0x10, 1 }, { CODE_SZ - 0x10, RULE_NONE } };
	struct bpfprof_map map = { .size = CODE_SZ, .chunk = 1, .pos = 16 };
	uint64_t start = CODE;

	if (!seg_cnt) {
		add_seg(STACK, STACK_SZ);
		add_seg(CODE, CODE_SZ);
	}
	for (uint64_t a = 0; a < STACK_SZ; a += 8)
		poke(STACK + a, 0x1111000000000000ULL + a);
	put_part(chunks[1], 16, CODE_SZ, rows, 2, rules, 2);
	put_maps(chunks[0], 0, &start, &map, 1);
	init(u, 0, 0, 1);
	u->max = BPFPROF_MAX_UFRAMES;
	for (int i = 0; i < BPFPROF_NR_REGS; i++)
		u->regs[i] = STACK + 0x800 + i * 0x40;
	u->regs[UNW_REG_PC] = CODE + 0x100;
	u->regs[UNW_REG_SP] = STACK + 0x100;
	u->regs[UNW_REG_FP] = STACK + 0x200;
	unw_start(u, 0, 0);
	reads = 0;
}

static uint64_t stack_word(uint64_t addr)
{
	return 0x1111000000000000ULL + (addr - STACK);
}

static void check_caller(struct unw *u, uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_int_equal(unw_step(u), UNW_CONTINUE);
	assert_int_equal(u->pc, pc);
	assert_int_equal(u->sp, sp);
	assert_int_equal(u->fp, fp);
	assert_int_equal(u->nr, 1);
	assert_int_equal(u->frames[0], CODE + 0x100);
	assert_int_equal(u->exact, 0);
	assert_int_equal(u->have_regs, 0);
	assert_int_equal(u->trusted, 1);
}

static void test_cfa_kinds(void **state)
{
	const uint64_t sp = STACK + 0x100, fp = STACK + 0x200;
	struct unw u;

	(void)state;
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SP, .cfa_off = 0x48 });
	check_caller(&u, stack_word(sp + 0x40), sp + 0x48, fp);
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_FP, .cfa_off = 16 });
	check_caller(&u, stack_word(fp + 8), fp + 16, fp);
	/* a frame pointer below the stack pointer, as coroutines have: the rule decides */
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_FP, .cfa_off = -0x180 });
	check_caller(&u, stack_word(fp - 0x188), fp - 0x180, fp);
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_REG, .reg = 10, .cfa_off = 8 });
	check_caller(&u, stack_word(STACK + 0x800 + 10 * 0x40), STACK + 0x808 + 10 * 0x40, fp);

	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SP_DEREF, .cfa_off = 24, .aux = 8 });
	poke(sp + 24, STACK + 0x3f0);
	check_caller(&u, stack_word(STACK + 0x3f0), STACK + 0x3f8, fp);
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_FP_DEREF, .cfa_off = -8, .aux = 0 });
	poke(fp - 8, STACK + 0x500);
	check_caller(&u, stack_word(STACK + 0x4f8), STACK + 0x500, fp);

	program(&u, (struct bpfprof_rule){
			    .cfa = BPFPROF_CFA_SP_INDEX, .reg = 9, .cfa_off = 16, .aux = 8 });
	u.regs[9] = 5;
	poke(sp + 16 + 5 * 8, STACK + 0x600);
	check_caller(&u, stack_word(STACK + 0x600), STACK + 0x608, fp);

	/* the last instruction of a PLT entry comes after its push: at offset 11 without, at 10
	 * with ENDBR */
	for (unsigned int at = 0; at < 16; at++) {
		program(&u,
			(struct bpfprof_rule){ .cfa = BPFPROF_CFA_PLT, .cfa_off = 8, .aux = 11 });
		u.pc = u.regs[UNW_REG_PC] = CODE + 0x200 + at;
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		assert_int_equal(u.sp, at >= 11 ? sp + 16 : sp + 8);
		assert_int_equal(u.pc, stack_word(u.sp - 8));
	}
}

static void test_fp_and_ra_kinds(void **state)
{
	const uint64_t sp = STACK + 0x100, fp = STACK + 0x200;
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP, .cfa_off = 64 };
	struct unw u;

	(void)state;
	rule.fp = BPFPROF_FP_CFA;
	rule.fp_off = -16;
	program(&u, rule);
	check_caller(&u, stack_word(sp + 56), sp + 64, stack_word(sp + 48));
	rule.fp = BPFPROF_FP_FP;
	program(&u, rule);
	check_caller(&u, stack_word(sp + 56), sp + 64, stack_word(fp - 16));
	rule.fp = BPFPROF_FP_SP;
	rule.fp_off = 8;
	program(&u, rule);
	check_caller(&u, stack_word(sp + 56), sp + 64, stack_word(sp + 8));
	rule.fp = BPFPROF_FP_UNDEF;
	program(&u, rule);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	/* neither the mark of the outermost frame nor a frame */
	assert_true(u.fp && (u.fp & 7));

	rule.fp = BPFPROF_FP_SAME;
	rule.ra = BPFPROF_RA_OFF;
	rule.aux = -40;
	program(&u, rule);
	check_caller(&u, stack_word(sp + 24), sp + 64, fp);
	rule.ra = BPFPROF_RA_REG;
	rule.aux = 5;
	program(&u, rule);
	u.regs[5] = CODE + 0x777;
	check_caller(&u, CODE + 0x777, sp + 64, fp);
	rule.ra = BPFPROF_RA_END;
	program(&u, rule);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_complete);
	assert_int_equal(u.nr, 1);
}

/* Registers other than rsp, rbp, rip are known in an interrupted frame only. */
static void test_registers_of_callers(void **state)
{
	struct bpfprof_rule by_reg = { .cfa = BPFPROF_CFA_REG, .reg = 10, .cfa_off = 8 };
	struct bpfprof_rule by_index = { .cfa = BPFPROF_CFA_SP_INDEX, .reg = 9, .aux = 8 };
	struct bpfprof_rule by_ra = {
		.cfa = BPFPROF_CFA_SP, .cfa_off = 8, .ra = BPFPROF_RA_REG, .aux = 5
	};
	struct unw u;

	(void)state;
	program(&u, by_reg);
	u.have_regs = 0;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_unsupported);
	assert_int_equal(u.nr, 1);
	program(&u, by_index);
	u.have_regs = 0;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_unsupported);
	assert_int_equal(u.nr, 1);
	program(&u, by_ra);
	u.have_regs = 0;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_unsupported);
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_UNSUPPORTED });
	assert_int_equal(unw_step(&u), BPFPROF_STACK_unsupported);
	assert_int_equal(u.nr, 1);
}

/* Of a caller's registers rbx is followed, as far as the rules say where it is. */
static void test_rbx(void **state)
{
	static const struct {
		int16_t bx_off;
		uint64_t value; /* of rbx in the caller; 0: not known */
	} cases[] = { { 0, STACK + 0x700 }, { -24, STACK + 0x900 }, { BPFPROF_BX_UNKNOWN, 0 } };
	struct bpfprof_rule rules[] = {
		{ .cfa = BPFPROF_CFA_SP, .cfa_off = 64 },
		{ .cfa = BPFPROF_CFA_REG, .reg = UNW_REG_BX, .cfa_off = 16 }
	};
	struct row rows[] = { { 0, 0 }, { 0x200, 1 } };
	struct unw u;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rules[0].bx_off = cases[i].bx_off;
		program(&u, rules[0]);
		put_part(chunks[1], 16, CODE_SZ, rows, 2, rules, 2);
		u.regs[UNW_REG_BX] = STACK + 0x700;
		poke(STACK + 0x100 + 64 - 24, STACK + 0x900);
		poke(STACK + 0x100 + 64 - 8, CODE + 0x280);
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		assert_int_equal(u.pc, CODE + 0x280);
		if (!cases[i].value) {
			assert_int_equal(unw_step(&u), BPFPROF_STACK_unsupported);
			continue;
		}
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		assert_int_equal(u.sp, cases[i].value + 16);
		assert_int_equal(u.pc, stack_word(cases[i].value + 8));
	}
}

/* So is r12, by rules that say where it is; by all others it is lost. */
static void test_r12(void **state)
{
	static const struct {
		struct bpfprof_rule rule;
		uint64_t value; /* of r12 in the caller; 0: not known */
	} cases[] = {
		{ { .cfa = BPFPROF_CFA_SP, .reg = BPFPROF_R12_SAME }, STACK + 0x700 },
		{ { .cfa = BPFPROF_CFA_SP, .reg = 3 }, STACK + 0x900 },
		{ { .cfa = BPFPROF_CFA_SP, .reg = 255 }, STACK + 0xa00 },
		{ { .cfa = BPFPROF_CFA_SP, .reg = BPFPROF_R12_UNKNOWN }, 0 },
		/* these are numbers of registers: rdx, rbx, r9 */
		{ { .cfa = BPFPROF_CFA_REG, .reg = 1 }, 0 },
		{ { .cfa = BPFPROF_CFA_REG, .reg = 3 }, 0 },
		{ { .cfa = BPFPROF_CFA_SP_INDEX, .reg = 9 }, 0 },
	};
	struct row rows[] = { { 0, 0 }, { 0x200, 1 }, { 0x300, 2 } };
	struct unw u;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bpfprof_rule rules[] = {
			cases[i].rule,
			{ .cfa = BPFPROF_CFA_SP, .cfa_off = 8, .reg = BPFPROF_R12_SAME },
			{ .cfa = BPFPROF_CFA_REG, .reg = UNW_REG_R12, .cfa_off = 16 }
		};
		uint64_t cfa = STACK + 0x900;

		rules[0].cfa_off = (int32_t)(cfa - (STACK + 0x100));
		program(&u, rules[0]);
		put_part(chunks[1], 16, CODE_SZ, rows, 3, rules, 3);
		u.regs[1] = u.regs[UNW_REG_BX] = STACK + 0x100;
		u.regs[UNW_REG_R12] = STACK + 0x700;
		u.regs[9] = 4;
		if (rules[0].cfa == BPFPROF_CFA_SP_INDEX)
			poke(STACK + 0x100 + rules[0].cfa_off + 4 * 8, cfa);
		poke(cfa - 24, STACK + 0x900);
		poke(cfa - 255 * 8, STACK + 0xa00);
		poke(cfa - 8, CODE + 0x280);
		poke(cfa, CODE + 0x380);
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		assert_int_equal(u.pc, CODE + 0x380);
		if (!cases[i].value) {
			assert_int_equal(unw_step(&u), BPFPROF_STACK_unsupported);
			continue;
		}
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		assert_int_equal(u.sp, cases[i].value + 16);
		assert_int_equal(u.pc, stack_word(cases[i].value + 8));
	}
}

static void test_ends(void **state)
{
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP, .cfa_off = 8 };
	struct unw u;

	(void)state;
	program(&u, rule);
	poke(u.sp, 0);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_complete);
	assert_int_equal(u.nr, 1);

	/* a frame that is its own caller */
	rule.cfa_off = 0;
	program(&u, rule);
	poke(u.sp - 8, u.pc);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_bad_frame);

	/* two that call each other: stopped by the number of frames */
	rule = (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SP_DEREF };
	program(&u, rule);
	u.max = 100;
	poke(STACK + 0x100, STACK + 0x300);
	poke(STACK + 0x2f8, CODE + 0x200);
	poke(STACK + 0x300, STACK + 0x100);
	poke(STACK + 0xf8, CODE + 0x100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_too_deep);
	assert_int_equal(u.nr, 100);
}

/* The frames of a stack of n calls, one 16-byte frame each; the hash depends on all of them. */
static void test_depth(void **state)
{
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP, .cfa_off = 16 };
	uint64_t first_hash = 0;

	(void)state;
	for (int change = 0; change < 2; change++) {
		struct unw u;
		int n = 0, result;

		program(&u, rule);
		for (int i = 0; i < 300; i++)
			poke(u.sp + 8 + 16 * i, CODE + 0x20 + i + (change && i == 250));
		poke(u.sp + 8 + 16 * 300, 0);
		while ((result = unw_step(&u)) == UNW_CONTINUE)
			n++;
		assert_int_equal(result, BPFPROF_STACK_complete);
		assert_int_equal(n, 300);
		assert_int_equal(u.nr, 301);
		for (int i = 0; i < 300; i++)
			assert_int_equal(u.frames[i + 1], CODE + 0x1f + i + (change && i == 250));
		if (!change)
			first_hash = u.hash;
		else
			assert_true(u.hash != first_hash);
	}
}

/* A return address may be the first byte of the next function; the pc of an interrupted frame is
 * where it is. */
static void test_pc_before_the_return_address(void **state)
{
	struct bpfprof_rule rules[] = { { .cfa = BPFPROF_CFA_SP, .cfa_off = 32 },
					{ .cfa = BPFPROF_CFA_SP, .cfa_off = 4096 } };
	struct row rows[] = { { 0, 0 }, { 0x100, 1 } };
	struct unw u;

	(void)state;
	program(&u, rules[0]);
	put_part(chunks[1], 16, CODE_SZ, rows, 2, rules, 2);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.sp, STACK + 0x100 + 4096);
	program(&u, rules[0]);
	put_part(chunks[1], 16, CODE_SZ, rows, 2, rules, 2);
	unw_start(&u, 0, 1);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.sp, STACK + 0x100 + 32);
	assert_int_equal(u.frames[0], CODE + 0xff);
}

/* A window that ran past the end of the stack once is not tried again; one before it still is. */
static void test_failing_reads_are_remembered(void **state)
{
	const uint64_t stack = 0x7ffd00000000ULL, end = stack + 2 * PAGE;
	struct unw u = { 0 };
	__u64 v;

	(void)state;
	add_seg(stack, 2 * PAGE);
	for (int walk = 0; walk < 3; walk++) {
		reads = 0;
		assert_int_equal(unw_read8(&u, end - UNW_WINDOW, &v), 0);
		assert_int_equal(reads, 1);
		assert_int_equal(unw_read8(&u, end - PAGE, &v), 0);
		assert_int_equal(reads, 2);
		assert_int_equal(unw_read8(&u, end - 64, &v), 0);
		assert_int_equal(reads, walk ? 3 : 4);
		assert_int_equal(unw_read8(&u, end - 8, &v), 0);
		assert_int_equal(reads, walk ? 3 : 4);
	}
	/* it has become readable */
	free(segs[0].data);
	seg_cnt = 0;
	add_seg(stack, 3 * PAGE);
	assert_int_equal(unw_read8(&u, end - 64, &v), 0);
	assert_int_equal(unw_read8(&u, end, &v), 0);
	assert_int_equal(unw_read8(&u, end - 4, &v), 0);
}

#define CS_IN_UCONTEXT (UNW_UC_GREGS + 18 * 8) /* struct sigcontext_64 */

static void test_read_faults(void **state)
{
	static const struct bpfprof_rule rules[] = {
		{ .cfa = BPFPROF_CFA_SP, .cfa_off = 64 },
		{ .cfa = BPFPROF_CFA_FP_DEREF, .cfa_off = -8 },
		{ .cfa = BPFPROF_CFA_SP_DEREF, .cfa_off = 8 },
		{ .cfa = BPFPROF_CFA_SP, .cfa_off = 5000, .fp = BPFPROF_FP_CFA, .fp_off = -4900 },
		{ .cfa = BPFPROF_CFA_SP, .cfa_off = 8, .fp = BPFPROF_FP_FP },
		{ .cfa = BPFPROF_CFA_SP, .cfa_off = 8, .ra = BPFPROF_RA_OFF, .aux = -100 },
		{ .cfa = BPFPROF_CFA_SIGNAL },
	};
	struct unw u;

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		int total;

		program(&u, rules[i]);
		poke(u.fp - 8, STACK + 0x1100);
		poke(u.sp + 8, STACK + 0x1100);
		poke(u.sp + CS_IN_UCONTEXT, UNW_CS_USER);
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		total = reads;
		assert_true(total > 0);
		for (int k = 0; k < total; k++) {
			/* all in the first half of a page: no second try */
			program(&u, rules[i]);
			poke(u.fp - 8, STACK + 0x1100);
			poke(u.sp + 8, STACK + 0x1100);
			poke(u.sp + CS_IN_UCONTEXT, UNW_CS_USER);
			fail_read = k;
			assert_int_equal(unw_step(&u), BPFPROF_STACK_read_fault);
			assert_int_equal(u.nr, 1);
			fail_read = -1;
		}
	}
	/* all of the stack is somewhere else */
	program(&u, rules[0]);
	u.sp = 0;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_read_fault);
	program(&u, rules[0]);
	u.sp = -(uint64_t)8;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_read_fault);
	/* the last word of the stack is readable, the one behind it is not */
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SP, .cfa_off = 8 });
	u.sp = STACK + STACK_SZ - 8;
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.pc, stack_word(STACK + STACK_SZ - 8));
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SP, .cfa_off = 16 });
	u.sp = STACK + STACK_SZ - 8;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_read_fault);
}

static void test_misses(void **state)
{
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP, .cfa_off = 8 };
	struct bpfprof_map not_loaded = { .size = CODE_SZ, .chunk = BPFPROF_CHUNK_NOT_LOADED };
	uint64_t start = CODE;
	struct unw u;

	(void)state;
	/* unknown code that the processor was in, or that a table led to: sent raw, nothing
	 * recorded */
	program(&u, rule);
	u.pc = CODE - 1;
	assert_int_equal(unw_step(&u), UNW_MISS);
	assert_int_equal(u.nr, 0);
	program(&u, rule);
	u.pc = CODE + CODE_SZ + 1;
	u.exact = 0;
	assert_int_equal(unw_step(&u), UNW_MISS);
	/* a return address one past the end of the mapping is in it */
	program(&u, rule);
	u.pc = CODE + CODE_SZ;
	u.exact = 0;
	assert_int_not_equal(unw_step(&u), UNW_MISS);

	/* sending it raw would lead nowhere: the pc is a fact, a return address is not */
	program(&u, rule);
	u.pc = CODE - 1;
	u.proc.flags = BPFPROF_PROC_NO_RAW;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_no_mapping);
	assert_int_equal(u.nr, 1);
	assert_int_equal(u.frames[0], CODE - 1);
	program(&u, rule);
	u.pc = CODE;
	u.exact = 0;
	u.have_regs = 0;
	u.proc.flags = BPFPROF_PROC_NO_RAW;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_no_mapping);
	assert_int_equal(u.nr, 0);

	/* the kernel's half of the addresses */
	program(&u, rule);
	u.pc = 0xffffffff81000000ULL;
	u.exact = 0;
	u.have_regs = 0;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_no_mapping);
	assert_int_equal(u.nr, 0);

	program(&u, rule);
	put_maps(chunks[0], 0, &start, &not_loaded, 1);
	assert_int_equal(unw_step(&u), UNW_MISS);
	/* also where only a guess by frame pointer has led to: the table is not there yet */
	program(&u, rule);
	put_maps(chunks[0], 0, &start, &not_loaded, 1);
	u.trusted = 0;
	u.exact = 0;
	u.have_regs = 0;
	u.fp = 0;
	assert_int_equal(unw_step(&u), UNW_MISS);
	assert_int_equal(u.nr, 0);
	/* nor does it matter what raw stacks led to before */
	program(&u, rule);
	put_maps(chunks[0], 0, &start, &not_loaded, 1);
	u.proc.flags = BPFPROF_PROC_NO_RAW;
	assert_int_equal(unw_step(&u), UNW_MISS);
	/* if it cannot be loaded, by frame pointers */
	program(&u, rule);
	put_maps(chunks[0], 0, &start, &not_loaded, 1);
	u.trusted = 0;
	u.proc.flags = BPFPROF_PROC_NO_RAW | BPFPROF_PROC_NO_LOAD;
	u.pc = CODE + 0x300;
	poke(u.fp, u.fp + 0x40);
	poke(u.fp + 8, CODE + 0x200);
	put_call(CODE + 0x200, CODE + 0x2f0);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.pc, CODE + 0x200);
	/* where a guess led to no code at all it is not worth a raw record */
	program(&u, rule);
	u.trusted = 0;
	u.exact = 0;
	u.have_regs = 0;
	u.pc = 0x1234;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_no_mapping);
	assert_int_equal(u.nr, 0);
}

/* ---- code without tables ---- */

/* The function at FUNC, of which the pc is the third byte, is before the first row. */
#define FUNC (CODE + 6)
#define CALLER (CODE + 0x300)	     /* the return address that rbp leads to */
#define LEAF (CODE + 0x400)	     /* the one at rsp, if there is one */
#define NO_ROW (CODE + CODE_SZ - 16) /* behind the last row */

static void no_table(struct unw *u)
{
	static const uint8_t nops[16] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
					  0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };

	program(u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SP, .cfa_off = 8 });
	u->pc = u->regs[UNW_REG_PC] = CODE + 8;
	poke_bytes(CODE, nops, sizeof(nops));
	poke_bytes(LEAF - 8, nops, 8);
	put_call(CALLER, FUNC);
	poke(u->fp, STACK + 0x400);
	poke(u->fp + 8, CALLER);
}

/* As if something that it has called had been interrupted. */
static void no_table_called(struct unw *u)
{
	no_table(u);
	u->have_regs = 0;
	u->trusted = 0;
}

static void check_no_caller(struct unw *u)
{
	assert_int_equal(unw_step(u), BPFPROF_STACK_no_table);
	assert_int_equal(u->nr, 1);
	assert_int_equal(u->frames[0], CODE + 8 - !u->exact);
}

static void check_by_fp(struct unw *u)
{
	assert_int_equal(unw_step(u), UNW_CONTINUE);
	assert_int_equal(u->pc, CALLER);
	assert_int_equal(u->sp, STACK + 0x210);
	assert_int_equal(u->fp, STACK + 0x400);
	assert_int_equal(u->trusted, 0);
	assert_int_equal(u->nr, 1);
}

static void check_leaf(struct unw *u)
{
	uint64_t fp = u->fp;

	assert_int_equal(unw_step(u), UNW_CONTINUE);
	assert_int_equal(u->pc, LEAF);
	assert_int_equal(u->sp, STACK + 0x108);
	assert_int_equal(u->fp, fp);
	assert_int_equal(u->nr, 1);
}

/* What execve has left, at sp: argv with two words, and the environment. */
static void put_arguments(uint64_t sp)
{
	poke(sp, 2);
	poke(sp + 8, STACK + 0x1000);
	poke(sp + 16, STACK + 0x1008);
	poke(sp + 24, 0);
	poke(sp + 32, STACK + 0x1010);
}

static void test_first_code(void **state)
{
	/* mov %rbx, %rsp: where glibc's contexts end */
	static const uint8_t context[] = { 0x48, 0x89, 0xdc };
	struct unw u;

	(void)state;
	no_table(&u);
	u.fp = 0;
	put_arguments(u.sp);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_complete);
	no_table_called(&u);
	u.fp = 0;
	put_arguments(u.sp);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_complete);
	/* the same elsewhere, or not quite the same */
	for (int i = 0; i < 6; i++) {
		no_table_called(&u);
		put_arguments(u.sp + 8);
		put_arguments(u.sp);
		u.fp = i == 0 ? 1 : 0;
		u.sp += i == 1 ? 8 : 0;
		if (i > 1)
			poke(u.sp + (i - 2) * 8, i < 4 ? 0 : 5);
		if (i == 4)
			poke(u.sp + 24, STACK);
		check_no_caller(&u);
	}
	/* a return address of a table that nothing has called, but makecontext put there */
	no_table_called(&u);
	u.exact = 0;
	u.trusted = 1;
	poke_bytes(u.pc, context, sizeof(context));
	assert_int_equal(unw_step(&u), BPFPROF_STACK_complete);
	assert_int_equal(u.nr, 1);
	/* anything else is no frame */
	no_table_called(&u);
	u.exact = 0;
	u.trusted = 1;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_bad_frame);
	assert_int_equal(u.nr, 0);
	/* it is one behind a call */
	no_table_called(&u);
	u.exact = 0;
	u.trusted = 1;
	put_call(u.pc, CODE + 0x200);
	check_by_fp(&u);
}

static void test_frame_pointers(void **state)
{
	static const int64_t bad[] = { -8, -4096, UNW_FP_REACH, UNW_FP_REACH + 8, 4, 1 << 30 };
	struct unw u;

	(void)state;
	no_table(&u);
	check_by_fp(&u);
	/* and from there by the table again */
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.frames[1], CALLER - 1);
	assert_int_equal(u.trusted, 1);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		no_table_called(&u);
		u.fp = u.sp + bad[i];
		check_no_caller(&u);
	}
	/* it does not lead to code, of which a JIT compiler may have made more */
	no_table_called(&u);
	poke(u.fp + 8, CODE + CODE_SZ + 1);
	check_no_caller(&u);
	/* 0 is the end of no stack */
	no_table_called(&u);
	u.fp = 0;
	check_no_caller(&u);
	no_table_called(&u);
	poke(u.fp + 8, 0);
	check_no_caller(&u);
}

/* Which code before the return address at rbp + 8 makes a caller. */
static void test_calls(void **state)
{
	static const struct {
		uint8_t bytes[8];
		int is_call;
	} cases[] = {
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 }, 1 }, /* call *%rax */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x13 }, 1 }, /* call *(%rbx) */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd3 }, 1 }, /* call *%r11 */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x18 }, 1 }, /* call *24(%rax) */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0xc8 }, 1 }, /* call *(%rax,%rcx,8) */
		{ { 0x90, 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x08 }, 1 }, /* call *8(%rsp) */
		{ { 0x90, 0x90, 0xff, 0x15, 1, 2, 3, 4 }, 1 },		   /* call *disp(%rip) */
		{ { 0x90, 0x90, 0xff, 0x93, 1, 2, 3, 4 }, 1 },		   /* call *disp32(%rbx) */
		{ { 0x90, 0xff, 0x94, 0x24, 1, 2, 3, 4 }, 1 },		   /* call *disp32(%rsp) */
		{ { 0x90, 0xff, 0x14, 0xc5, 1, 2, 3, 4 }, 1 }, /* call *disp32(,%rax,8) */
		{ { 0x90, 0x90, 0x90, 0xe9, 1, 2, 3, 4 }, 0 }, /* jmp */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0 }, 0 }, /* jmp *%rax */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x14 }, 0 }, /* too short */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x54, 0x24 }, 0 }, /* the same */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x50 }, 0 }, /* the same */
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, 0 },
	};
	struct unw u;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		no_table(&u);
		poke_bytes(CALLER - 8, cases[i].bytes, 8);
		if (cases[i].is_call)
			check_by_fp(&u);
		else
			check_no_caller(&u);
		/* the same before the return address of code that has pushed nothing */
		no_table(&u);
		u.fp = 0x123;
		poke(u.sp, LEAF);
		poke_bytes(LEAF - 8, cases[i].bytes, 8);
		if (cases[i].is_call)
			check_leaf(&u);
		else
			check_no_caller(&u);
	}
}

/* Where a direct call may lead to be the caller's. */
static void test_direct_calls(void **state)
{
	/* jmp; endbr64, jmp *disp(%rip); mov %eax, %ebx; push %rbp, mov %rsp, %rbp, and push $-0x22
	 * behind them */
	static const uint8_t jump[8] = { 0xe9, 1, 2, 3, 4, 0x90, 0x90, 0x90 };
	static const uint8_t plt[8] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 1, 2 };
	static const uint8_t plain[8] = { 0x89, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
	static const uint8_t frame[8] = { 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90, 0x90 };
	static const uint8_t frame_of_kind[8] = { 0x90, 0x55, 0x48, 0x8b, 0xec, 0x6a, 0xde, 0x90 };
	struct unw u;

	(void)state;
	/* the function itself */
	no_table(&u);
	put_call(CALLER, u.pc);
	check_by_fp(&u);
	/* behind the pc: a function with a table, which returns to its caller */
	no_table(&u);
	poke_bytes(CODE + 0x500, plain, 8);
	put_call(CALLER, CODE + 0x500);
	check_no_caller(&u);
	/* one that jumps, as stubs of the PLT do */
	no_table(&u);
	poke_bytes(CODE + 0x500, jump, 8);
	put_call(CALLER, CODE + 0x500);
	check_by_fp(&u);
	no_table(&u);
	poke_bytes(CODE + 0x500, plt, 8);
	put_call(CALLER, CODE + 0x500);
	check_by_fp(&u);
	/* one without a table may jump later on */
	no_table(&u);
	poke_bytes(NO_ROW, plain, 8);
	put_call(CALLER, NO_ROW);
	check_by_fp(&u);
	/* but where a function was interrupted, and rbp is the frame that it makes */
	no_table(&u);
	poke_bytes(NO_ROW, frame, 8);
	put_call(CALLER, NO_ROW);
	check_no_caller(&u);
	no_table(&u);
	poke_bytes(NO_ROW, frame_of_kind, 8);
	put_call(CALLER, NO_ROW);
	poke(u.fp - 8, -(uint64_t)0x22);
	check_no_caller(&u);
	no_table(&u);
	poke_bytes(NO_ROW, frame_of_kind, 8);
	put_call(CALLER, NO_ROW);
	poke(u.fp - 8, 0x22);
	check_by_fp(&u);
	/* or has called what left rbp alone, so that it may have no frame yet */
	no_table_called(&u);
	poke_bytes(NO_ROW, frame, 8);
	put_call(CALLER, NO_ROW);
	u.regs[UNW_REG_FP] = u.fp;
	check_no_caller(&u);
	no_table_called(&u);
	poke_bytes(NO_ROW, frame_of_kind, 8);
	put_call(CALLER, NO_ROW);
	poke(u.fp - 8, 0x22);
	u.regs[UNW_REG_FP] = u.fp;
	check_by_fp(&u);
	no_table_called(&u);
	poke_bytes(NO_ROW, frame, 8);
	put_call(CALLER, NO_ROW);
	u.regs[UNW_REG_FP] = u.fp + 8;
	check_by_fp(&u);
	/* code that cannot be read */
	no_table(&u);
	put_call(CALLER, CODE - 0x1000);
	check_no_caller(&u);
}

/* An interrupted function whose next instruction tells that it has no frame, while rbp is its
 * caller's. */
static void test_prologues(void **state)
{
	static const struct {
		uint8_t before, code[8];
		int at; /* of the return address, in words */
	} cases[] = {
		{ 0x90, { 0x55, 0x48, 0x89, 0xe5 }, 0 },	     /* push %rbp */
		{ 0x90, { 0xf3, 0x0f, 0x1e, 0xfa, 0x55 }, 0 },	     /* endbr64; push %rbp */
		{ 0x90, { 0x89, 0x84, 0x24, 0, 0, 1, 0, 0x55 }, 0 }, /* HotSpot's */
		{ 0x55, { 0x48, 0x89, 0xe5, 0x90 }, 1 },	     /* mov %rsp, %rbp */
		{ 0x55, { 0x48, 0x8b, 0xec, 0x90 }, 1 },	     /* the same */
		{ 0x90, { 0x5d, 0xc3, 0x90, 0x90 }, 1 },	     /* pop %rbp */
		{ 0x90, { 0xc3, 0x90, 0x90, 0x90 }, 0 },	     /* ret */
		{ 0x90, { 0xc2, 0x10, 0, 0x90 }, 0 },		     /* ret $16 */
		{ 0x90, { 0xf3, 0xc3, 0x90, 0x90 }, 0 },	     /* rep ret */
		{ 0x90, { 0xf2, 0xc3, 0x90, 0x90 }, 0 },	     /* bnd ret */
	};
	struct unw u;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t at = STACK + 0x100 + cases[i].at * 8;

		no_table(&u);
		poke_bytes(u.pc - 1, &cases[i].before, 1);
		poke_bytes(u.pc, cases[i].code, 8);
		poke(u.sp, u.fp);
		poke(at, LEAF);
		put_call(LEAF, FUNC);
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		assert_int_equal(u.pc, LEAF);
		assert_int_equal(u.sp, at + 8);
		assert_int_equal(u.fp, STACK + 0x200);
		/* not in a caller */
		no_table_called(&u);
		poke_bytes(u.pc - 1, &cases[i].before, 1);
		poke_bytes(u.pc, cases[i].code, 8);
		poke(at, LEAF);
		put_call(LEAF, FUNC);
		check_by_fp(&u);
	}
	/* what was called is somewhere else */
	no_table(&u);
	poke_bytes(u.pc, cases[0].code, 8);
	poke(u.sp, LEAF);
	put_call(LEAF, CODE + 0x500);
	check_by_fp(&u);
}

static void test_leaf_without_table(void **state)
{
	static const uint8_t frame[4] = { 0x55, 0x48, 0x89, 0xe5 };
	static const uint8_t jump[8] = { 0xe9, 1, 2, 3, 4, 0x90, 0x90, 0x90 };
	static const uint8_t indirect[8] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 };
	struct unw u;

	(void)state;
	/* not in a caller: it has pushed the return address of its callee */
	no_table_called(&u);
	u.fp = 0x123;
	poke(u.sp, LEAF);
	put_call(LEAF, FUNC);
	check_no_caller(&u);
	/* rbp leads to a caller as well: the call that leads nearer is the last one */
	no_table(&u);
	put_call(CALLER, FUNC - 1);
	poke(u.sp, LEAF);
	put_call(LEAF, FUNC);
	check_leaf(&u);
	no_table(&u);
	poke(u.sp, LEAF);
	put_call(LEAF, FUNC - 1);
	check_by_fp(&u);
	/* which has a frame if it begins by making one */
	no_table(&u);
	put_call(CALLER, CODE);
	poke_bytes(CODE + 1, frame, 4);
	poke(u.sp, LEAF);
	put_call(LEAF, CODE + 1);
	check_no_caller(&u);
	/* but not at its first instruction */
	no_table(&u);
	put_call(CALLER, CODE);
	poke(u.sp, LEAF);
	put_call(LEAF, u.pc);
	check_leaf(&u);
	/* rbp leads to a call of what is no beginning of the function, but has called it */
	no_table(&u);
	poke_bytes(LEAF - 32, jump, 8);
	put_call(CALLER, LEAF - 32);
	poke(u.sp, LEAF);
	poke_bytes(LEAF - 8, indirect, 8);
	check_leaf(&u);
	/* or what may be the beginning, but that or something behind it has called as well */
	no_table(&u);
	u.pc = NO_ROW;
	put_call(CALLER, LEAF - 32);
	poke(u.sp, LEAF);
	poke_bytes(LEAF - 8, indirect, 8);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_no_table);
}

/* A function without a frame pointer has called: rbp is that of its caller, or of one further up. */
static void test_skipped_caller(void **state)
{
	static const uint8_t entry[8] = { 0x48, 0x8b, 0x65, 0xf0, 0x90, 0x90, 0x90, 0x90 };
	static const uint8_t frame[8] = { 0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90, 0x90 };
	struct unw u;

	(void)state;
	/* the return address of a call that leads nearer is on the stack below */
	no_table_called(&u);
	put_call(CALLER, CODE);
	poke(u.sp + 0x40, LEAF);
	put_call(LEAF, FUNC);
	check_no_caller(&u);
	/* one that does not */
	no_table_called(&u);
	poke(u.sp + 0x40, LEAF);
	put_call(LEAF, CODE);
	check_by_fp(&u);
	/* one to a function that has made its frame by now: an earlier call has left it */
	no_table_called(&u);
	put_call(CALLER, CODE);
	poke(u.sp + 0x40, LEAF);
	put_call(LEAF, FUNC);
	poke_bytes(FUNC, frame, 8);
	check_by_fp(&u);
	/* rbp was saved right below a return address, by push: of a call, or of HotSpot's
	 * interpreter */
	no_table_called(&u);
	poke(u.sp + 0x38, u.fp);
	poke(u.sp + 0x40, LEAF);
	put_call(LEAF, FUNC);
	check_no_caller(&u);
	no_table_called(&u);
	poke(u.sp + 0x38, u.fp);
	poke(u.sp + 0x40, LEAF);
	poke_bytes(LEAF, entry, 8);
	check_no_caller(&u);
	no_table_called(&u);
	poke(u.sp + 0x38, u.fp);
	check_by_fp(&u);
	/* but where that is such an entry itself, which knows its frame */
	no_table_called(&u);
	u.exact = 0;
	poke_bytes(u.pc, entry, 8);
	poke(u.sp + 0x38, u.fp);
	poke(u.sp + 0x40, LEAF);
	poke_bytes(LEAF, entry, 8);
	check_by_fp(&u);
}

/* What a rule that was worked out leads to has to follow a call. */
static void test_checked_calls(void **state)
{
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP, .cfa_off = 8, .ra = BPFPROF_RA_CALL };
	struct unw u;

	(void)state;
	program(&u, rule);
	poke(u.sp, CALLER);
	put_call(CALLER, CODE);
	check_caller(&u, CALLER, STACK + 0x108, STACK + 0x200);
	assert_int_equal(u.other, 0);
	program(&u, rule);
	poke(u.sp, CALLER + 1);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_bad_frame);
	assert_int_equal(u.nr, 1);
	program(&u, rule);
	poke(u.sp, 0);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_bad_frame);
	/* code outside of all tables may change */
	program(&u, rule);
	add_seg(CODE + 0x10000, PAGE);
	poke(u.sp, CODE + 0x10100);
	put_call(CODE + 0x10100, CODE);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.other, 1);
	/* what has gone out of memory */
	program(&u, rule);
	poke(u.sp, CALLER);
	fail_read = 1;
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	fail_read = -1;
}

/* ---- signal frames ---- */

static const int greg_of_dwarf[BPFPROF_NR_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,
						    REG_RDI, REG_RBP, REG_RSP, REG_R8,	REG_R9,
						    REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
						    REG_R15, REG_RIP };

static void put_ucontext(uint64_t addr)
{
	ucontext_t uc;

	memset(&uc, 0x5a, sizeof(uc));
	for (int i = 0; i < BPFPROF_NR_REGS; i++)
		uc.uc_mcontext.gregs[greg_of_dwarf[i]] = 0xabc000 + i;
	memset(&uc.uc_mcontext.gregs[REG_CSGSFS], 0, 2);
	*(uint8_t *)&uc.uc_mcontext.gregs[REG_CSGSFS] = 0x33; /* __USER_CS */
	poke_bytes(addr, &uc, sizeof(uc));
}

#define INTERRUPTED (0xabc000 + UNW_REG_PC)

static void check_interrupted(struct unw *u)
{
	assert_int_equal(unw_step(u), UNW_CONTINUE);
	for (int i = 0; i < BPFPROF_NR_REGS; i++) {
		__u64 v = 0;

		assert_int_equal(unw_reg(u, i, &v), 0);
		assert_int_equal(v, 0xabc000 + i);
	}
	assert_int_equal(u->pc, INTERRUPTED);
	assert_int_equal(u->sp, 0xabc000 + UNW_REG_SP);
	assert_int_equal(u->fp, 0xabc000 + UNW_REG_FP);
	assert_true(u->exact && u->have_regs && u->trusted);
}

static void test_signal_frame(void **state)
{
	/* mov $15, %rax or %eax; syscall */
	static const uint8_t trampolines[2][9] = {
		{ 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 },
		{ 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x90, 0x90 },
	};
	struct unw u;

	(void)state;
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SIGNAL });
	u.exact = 0;
	u.have_regs = 0;
	put_ucontext(u.sp);
	check_interrupted(&u);
	/* a libc that has no unwind information for its trampoline */
	for (int i = 0; i < 2; i++) {
		no_table(&u);
		u.exact = 0;
		u.have_regs = 0;
		poke_bytes(u.pc, trampolines[i], sizeof(trampolines[i]));
		put_ucontext(u.sp);
		check_interrupted(&u);
	}
}

/* Between the two writes by which the kernel sends a thread to its handler, rsp leads to the way back,
 * and rip is where the signal came. */
static void test_half_a_signal(void **state)
{
	static const struct {
		int64_t from; /* what was interrupted: rip */
		uint32_t frames;
	} cases[] = { { 0, 0 }, { -1, 0 }, { 1, 2 }, { -2, 2 }, { 0x100, 2 } };
	struct unw u;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SIGNAL });
		u.exact = 0;
		u.have_regs = 0;
		put_ucontext(u.sp);
		u.frames[0] = INTERRUPTED + cases[i].from;
		u.nr = 1;
		assert_int_equal(unw_step(&u), UNW_CONTINUE);
		assert_int_equal(u.nr, cases[i].frames);
		assert_int_equal(u.pc, INTERRUPTED);
	}
	/* further up, the same code may have been interrupted in itself */
	program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SIGNAL });
	u.exact = 0;
	u.have_regs = 0;
	put_ucontext(u.sp);
	u.frames[0] = u.frames[1] = INTERRUPTED;
	u.nr = 2;
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.nr, 3);
}

/* Between the two writes by which the kernel brings a thread back from its handler, rsp leads to the
 * stack of what was interrupted, and rip is the way back still. */
static void test_half_a_return(void **state)
{
	static const struct {
		uint64_t cs;
		int result;
	} cases[] = { { 0x5a5a5a5a5a5a0033, UNW_CONTINUE },
		      { 0xe033, UNW_CONTINUE },
		      { 0x23, BPFPROF_STACK_bad_frame },
		      { 0, BPFPROF_STACK_bad_frame },
		      { STACK + 0x133, BPFPROF_STACK_bad_frame },
		      { CODE + 0x200, BPFPROF_STACK_bad_frame } };
	struct unw u;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		program(&u, (struct bpfprof_rule){ .cfa = BPFPROF_CFA_SIGNAL });
		put_ucontext(u.sp);
		poke(u.sp + CS_IN_UCONTEXT, cases[i].cs);
		assert_int_equal(unw_step(&u), cases[i].result);
		assert_int_equal(u.nr, 1);
	}
}

/* ---- what a walk depends on ---- */

/* On a stack of return addresses and saved frame pointers, in code whose functions end the walk in
 * the last third. */
static uint64_t likely_word(void)
{
	return rnd_below(3) ? CODE + rnd_below(0x600) : STACK + rnd_below(STACK_SZ / 8) * 8;
}

static void refill_stack(const struct unw *keep)
{
	for (uint64_t a = STACK; a < STACK + STACK_SZ; a += 8) {
		uint32_t i = 0;

		while (keep && i < keep->word_cnt && keep->words[i] != a)
			i++;
		if (!keep || i == keep->word_cnt)
			poke(a, likely_word());
	}
}

static struct bpfprof_rule likely_rule(void)
{
	static const uint8_t cfas[] = { BPFPROF_CFA_SP, BPFPROF_CFA_FP, BPFPROF_CFA_SP_DEREF,
					BPFPROF_CFA_FP_DEREF };
	static const uint8_t fps[] = { BPFPROF_FP_SAME, BPFPROF_FP_CFA, BPFPROF_FP_SP,
				       BPFPROF_FP_FP, BPFPROF_FP_UNDEF };

	return (struct bpfprof_rule){ .cfa = cfas[rnd_below(4)],
				      .cfa_off = 16 + (int32_t)rnd_below(8) * 8,
				      .fp = fps[rnd_below(5)],
				      .fp_off = (int16_t)(8 * rnd_below(4)) };
}

static int walk_all(struct unw *u)
{
	int result = UNW_CONTINUE;

	unw_start(u, 7, 0);
	for (int i = 0; i < 40 && result == UNW_CONTINUE; i++)
		result = unw_step(u);
	return result;
}

/* What a walk has not noted may be anything, and it finds the same. */
static void test_what_decides(void **state)
{
	struct row rows[] = { { 0, 0 }, { 0x200, 1 }, { 0x400, 2 }, { 0x600, RULE_NONE } };
	int complete = 0, by_fp = 0;
	struct unw u, first;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct bpfprof_rule rules[] = { likely_rule(),
						likely_rule(),
						{ .cfa = BPFPROF_CFA_SP, .ra = BPFPROF_RA_END } };

		program(&u, rules[0]);
		put_part(chunks[1], 16, CODE_SZ, rows, 4, rules, 3);
		refill_stack(NULL);
		if (walk_all(&u) != BPFPROF_STACK_complete || u.other || u.word_cnt > UNW_MAX_WORDS)
			continue;
		complete++;
		by_fp += u.fp_mask != 0;
		first = u;
		refill_stack(&first);
		for (int i = 0; i < BPFPROF_NR_REGS; i++)
			if (i != UNW_REG_PC && i != UNW_REG_SP &&
			    (i != UNW_REG_FP || !first.fp_mask))
				u.regs[i] = likely_word();
		assert_int_equal(walk_all(&u), BPFPROF_STACK_complete);
		assert_int_equal(u.hash, first.hash);
		assert_int_equal(u.nr, first.nr);
		assert_int_equal(u.word_cnt, first.word_cnt);
		assert_int_equal(u.fp_mask, first.fp_mask);
	}
	assert_in_range(by_fp, 500, complete - 500);
}

/* ---- remembered rules ---- */

/* Such rules as most functions have, and some that are not remembered. */
static struct bpfprof_rule usual_rule(void)
{
	struct bpfprof_rule rule = { .cfa = rnd_below(4) ? BPFPROF_CFA_SP : BPFPROF_CFA_FP,
				     .cfa_off = 16 + (int32_t)rnd_below(8) * 8,
				     .fp = rnd_below(2) ? BPFPROF_FP_SAME : BPFPROF_FP_CFA,
				     .fp_off = -16 - (int32_t)rnd_below(4) * 8 };

	switch (rnd_below(12)) {
	case 0:
		rule.cfa_off = (int32_t)rnd_below(2 * UNW_WINDOW / 8) * 8;
		break;
	case 1:
		rule.fp_off = -(int32_t)rnd_below(2 * UNW_WINDOW / 8) * 8;
		break;
	case 2:
		rule.fp = BPFPROF_FP_UNDEF;
		break;
	case 3:
		rule.bx_off = BPFPROF_BX_UNKNOWN;
		break;
	case 4:
		rule.ra = BPFPROF_RA_INTERRUPTED;
		break;
	case 5:
		rule.cfa = BPFPROF_CFA_SP_DEREF;
		break;
	case 6:
		rule.reg = rnd_below(2) ? BPFPROF_R12_SAME : 4;
		break;
	default:
		rule.bx_off = rnd_below(2) ? 0 : -24;
	}
	return rule;
}

/* On a stack of such frames: a frame pointer leads upwards, and 0 or another function ends it. */
static void usual_stack(void)
{
	for (uint64_t a = STACK; a < STACK + STACK_SZ; a += 8) {
		uint64_t pc = CODE + 1 + rnd_below(rnd_below(40) ? 0x600 : 0x800);

		poke(a, rnd_below(50) ? pc : 0);
		if (!rnd_below(4))
			poke(a, a + 16 + rnd_below(20) * 8);
	}
}

/* As the walk in the kernel. *runs: frames by remembered rules. */
static int run_on(struct unw *u, struct unw_rules *rules, uint32_t *runs)
{
	uint32_t before = u->nr;
	int run, result;
	uint64_t addr;

	while ((run = unw_run_on(u, rules)) == UNW_RUN_MORE)
		;
	*runs += u->nr - before;
	if (run == UNW_RUN_END)
		return BPFPROF_STACK_complete;
	addr = u->pc - !u->exact;
	result = unw_step_known(u);
	if (result == UNW_CONTINUE || result == BPFPROF_STACK_complete)
		unw_learn(u, rules, addr);
	return result == UNW_GUESS ? unw_step_guess(u) : result;
}

static int run_all(struct unw *u, struct unw_rules *rules, uint32_t *runs)
{
	int result;

	while ((result = run_on(u, rules, runs)) == UNW_CONTINUE)
		;
	return result;
}

/* A walk is the same whether rules are remembered or not. */
static void test_remembered_rules(void **state)
{
	struct row rows[] = { { 0, 0 },	    { 0x100, 1 }, { 0x200, 2 },		{ 0x300, 3 },
			      { 0x400, 4 }, { 0x500, 5 }, { 0x600, RULE_NONE }, { 0x601, 6 } };
	static struct unw_rules rules;
	static struct unw u, by_rules;
	uint32_t frames = 0, runs = 0, ends = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct bpfprof_rule all[] = { usual_rule(),
					      usual_rule(),
					      usual_rule(),
					      usual_rule(),
					      usual_rule(),
					      usual_rule(),
					      { .cfa = BPFPROF_CFA_SP, .ra = BPFPROF_RA_END } };
		int result;

		program(&u, all[0]);
		put_part(chunks[1], 16, CODE_SZ, rows, 8, all, 7);
		usual_stack();
		u.regs[UNW_REG_PC] = CODE + 1 + rnd_below(0x600);
		u.regs[UNW_REG_SP] = STACK + rnd_below(STACK_SZ / 32) * 8;
		u.regs[UNW_REG_FP] = u.regs[UNW_REG_SP] + rnd_below(16) * 8;
		u.max = rnd_below(4) ? BPFPROF_MAX_UFRAMES : 1 + rnd_below(40);
		u.uret_pc = rnd_below(2) ? CODE + 1 + rnd_below(0x600) : 0;
		for (int i = 0; u.uret_pc && i < BPFPROF_MAX_URETS; i++) {
			u.uret[i].at = u.regs[UNW_REG_SP] + rnd_below(64) * 8;
			u.uret[i].ra = CODE + 1 + rnd_below(0x600);
			poke(u.uret[i].at, u.uret_pc);
		}
		by_rules = u;
		unw_start(&u, 7, 0);
		while ((result = unw_step(&u)) == UNW_CONTINUE)
			;
		/* another process, or another list: what was remembered holds no more */
		rules.whose = unw_mix(1, round);
		/* the second walk is by what the first has remembered */
		for (int walk = 0; walk < 2; walk++) {
			unw_start(&by_rules, 7, 0);
			assert_int_equal(run_all(&by_rules, &rules, &runs), result);
			assert_int_equal(by_rules.nr, u.nr);
			assert_int_equal(by_rules.hash, u.hash);
			assert_memory_equal(by_rules.frames, u.frames, u.nr * 8);
			assert_int_equal(by_rules.pc, u.pc);
			assert_int_equal(by_rules.sp, u.sp);
			assert_int_equal(by_rules.fp, u.fp);
			assert_int_equal(by_rules.bx_at, u.bx_at);
			assert_int_equal(by_rules.r12_at, u.r12_at);
			assert_int_equal(by_rules.exact, u.exact);
			assert_int_equal(by_rules.have_regs, u.have_regs);
			assert_int_equal(by_rules.trusted, u.trusted);
		}
		frames += u.nr;
		ends += result == BPFPROF_STACK_complete;
	}
	assert_in_range(ends, 1000, 19000);
	/* they are neither all remembered nor none of them */
	assert_in_range(runs, frames / 10, frames * 2 - 20000);
}

/* Frames over several windows, down to a first function, take no table: there is none any more. */
static void test_remembered_stack(void **state)
{
	struct row rows[] = { { 0, 0 }, { 0x200, 1 }, { 0x300, 2 } };
	struct bpfprof_rule all[] = { { .cfa = BPFPROF_CFA_SP, .cfa_off = 0x110 },
				      { .cfa = BPFPROF_CFA_SP, .cfa_off = UNW_WINDOW + 0x100 },
				      { .cfa = BPFPROF_CFA_SP, .ra = BPFPROF_RA_END } };
	uint64_t sp = STACK + 0x100;
	static struct unw_rules rules;
	static struct unw u, again;
	uint32_t runs = 0;

	(void)state;
	program(&u, all[0]);
	put_part(chunks[1], 16, CODE_SZ, rows, 3, all, 3);
	u.regs[UNW_REG_SP] = sp;
	for (int i = 0; i < 40; i++) {
		sp += i == 20 ? UNW_WINDOW + 0x100 : 0x110;
		poke(sp - 8, i == 19 ? CODE + 0x280 : i == 39 ? CODE + 0x301 : CODE + 0x20 + i);
	}
	assert_true(sp < STACK + STACK_SZ);
	again = u;
	unw_start(&u, 7, 0);
	assert_int_equal(run_all(&u, &rules, &runs), BPFPROF_STACK_complete);
	assert_int_equal(u.nr, 41);
	again.proc.map_cnt = 0;
	unw_start(&again, 7, 0);
	runs = 0;
	assert_int_equal(run_all(&again, &rules, &runs), BPFPROF_STACK_complete);
	assert_int_equal(runs, 41);
	assert_int_equal(again.hash, u.hash);
	assert_memory_equal(again.frames, u.frames, 41 * 8);
	/* no more than are wanted, the first function among them */
	for (again.max = 39; again.max <= 40; again.max++) {
		again.proc = u.proc;
		unw_start(&again, 7, 0);
		assert_int_equal(run_all(&again, &rules, &runs), BPFPROF_STACK_too_deep);
		assert_int_equal(again.nr, again.max);
	}
}

/* A stack that ends in the middle of a remembered frame is none. */
static void test_remembered_frame_unreadable(void **state)
{
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP, .cfa_off = 0x110 };
	static struct unw_rules rules;
	uint32_t runs = 0;
	struct unw u;

	(void)state;
	program(&u, rule);
	u.regs[UNW_REG_SP] = STACK + STACK_SZ - 0x100;
	u.rule = rule;
	unw_start(&u, 7, 0);
	unw_learn(&u, &rules, u.pc);
	assert_int_equal(run_all(&u, &rules, &runs), BPFPROF_STACK_read_fault);
	assert_int_equal(u.nr, 1);
	assert_int_equal(runs, 0);
}

/* What is remembered has one place; what is there then is another's. */
static void test_remembered_rules_collide(void **state)
{
	static struct unw_rules rules;
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP, .cfa_off = 16 };
	uint64_t other = 0x402000;
	struct unw u;

	(void)state;
	program(&u, rule);
	u.rule = rule;
	poke(STACK + 0x108, CODE + 0x200);
	assert_int_equal(unw_peek8(&u, STACK + 0x100, &(__u64){ 0 }), 0);
	rules.whose = 0x123456789abcdefULL;
	unw_run_on(&u, &rules);
	assert_int_equal(u.nr, 0);
	assert_int_equal(unw_learn(&u, &rules, u.pc), 0);
	assert_int_equal(unw_learn(&u, &rules, u.pc), 1);
	/* there is room for two; the third takes that of the first */
	for (int i = 0; i < 2; i++, other++) {
		while (unw_known_at(rules.whose ^ other) != unw_known_at(rules.whose ^ u.pc))
			other++;
		assert_int_equal(unw_learn(&u, &rules, other), 0);
		assert_int_equal(unw_learn(&u, &rules, other), 1);
		assert_int_equal(unw_learn(&u, &rules, u.pc), i ? 0 : 1);
	}
	/* another rule takes the place of the same address */
	u.rule.cfa_off = 32;
	assert_int_equal(unw_learn(&u, &rules, other - 1), -1);
	u.rule.cfa_off = 16;
	assert_int_equal(unw_learn(&u, &rules, other - 1), -1);
	/* of these, the first one that was learned has gone */
	while (unw_known_at(rules.whose ^ other) != unw_known_at(rules.whose ^ u.pc))
		other++;
	assert_int_equal(unw_learn(&u, &rules, other), 0);
	unw_learn(&u, &rules, other + 1);
	assert_int_equal(unw_learn(&u, &rules, u.pc), 1);
	rules.known[unw_known_at(rules.whose ^ u.pc)].key = 0;
	rules.known[unw_known_at(rules.whose ^ u.pc) + 1].key = 0;
	unw_run_on(&u, &rules);
	assert_int_equal(u.nr, 0);
	assert_int_equal(unw_learn(&u, &rules, u.pc), 0);
	rules.whose++;
	unw_run_on(&u, &rules);
	assert_int_equal(u.nr, 0);
	rules.whose--;
	u.trusted = 0;
	unw_run_on(&u, &rules);
	assert_int_equal(u.nr, 1);
	assert_true(u.trusted && !u.exact && !u.have_regs);
	assert_int_equal(u.pc, CODE + 0x200);
	assert_int_equal(u.sp, STACK + 0x110);
}

/* Neither a frame that is its own caller, nor a return address of 0, leads on. */
static void test_remembered_rule_leads_nowhere(void **state)
{
	static struct unw_rules rules;
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP };
	struct unw u;

	(void)state;
	program(&u, rule);
	u.rule = rule;
	u.exact = 0;
	poke(STACK + 0xf8, u.pc);
	unw_learn(&u, &rules, u.pc - 1);
	assert_int_equal(unw_peek8(&u, STACK, &(__u64){ 0 }), 0);
	unw_run_on(&u, &rules);
	assert_int_equal(u.nr, 0);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_bad_frame);
	rule.cfa_off = 16;
	u.rule = rule;
	assert_int_equal(unw_learn(&u, &rules, u.pc - 1), -1);
	assert_int_equal(unw_learn(&u, &rules, u.pc - 1), 1);
	poke(STACK + 0x108, 0);
	for (u.uret_pc = 0; u.uret_pc < 2; u.uret_pc++) {
		unw_start(&u, 0, 1);
		assert_int_equal(unw_peek8(&u, STACK, &(__u64){ 0 }), 0);
		unw_run_on(&u, &rules);
		assert_int_equal(u.nr, 0);
	}
}

/* ---- Go ---- */

/* A thread's memory: the word of g, an m, and three goroutines of 512 bytes each. */
#define GO_HEAP 0xc000000000ULL
#define GO_TP (GO_HEAP + 0x40)
#define GO_M (GO_HEAP + 0x100)
#define GO_G0 (GO_HEAP + 0x400)
#define GO_CURG (GO_HEAP + 0x600)
#define GO_OTHER (GO_HEAP + 0x800)
#define GO_STACK (STACK + 0x2000) /* of curg; what STACK begins with is g0's */

static const struct bpfprof_rule go_rule = {
	.cfa_off = -8, .fp_off = BPFPROF_GO_OFFSETS(0x30, 0xb8), .aux = 0x38, .bx_off = 0x60
};

/* On g0's stack; the goroutine was left with sp at GO_STACK + 0x300. */
static void go_program(struct unw *u, uint8_t cfa, struct bpfprof_rule rule)
{
	rule.cfa = cfa;
	program(u, rule);
	if (!find_seg(GO_HEAP, 8))
		add_seg(GO_HEAP, PAGE);
	thread_pointer = GO_TP;
	poke(GO_TP - 8, GO_G0);
	poke(GO_G0 + 0x30, GO_M);
	poke(GO_M + 0xb8, GO_CURG);
	poke(GO_CURG, GO_STACK);
	poke(GO_CURG + BPFPROF_GO_STACK_HI, GO_STACK + 0x1000);
	poke(GO_CURG + 0x30, GO_M);
	poke(GO_CURG + 0x38, GO_STACK + 0x300);
	poke(GO_CURG + 0x40, CODE + 0x555);
	poke(GO_CURG + 0x60, GO_STACK + 0x400);
}

static void test_go_systemstack(void **state)
{
	struct bpfprof_rule via_got = go_rule;
	struct unw u;

	(void)state;
	go_program(&u, BPFPROF_CFA_GO_SYSTEMSTACK, go_rule);
	check_caller(&u, stack_word(GO_STACK + 0x300), GO_STACK + 0x308, STACK + 0x200);
	assert_int_equal(u.other, 1);
	/* before it has switched */
	go_program(&u, BPFPROF_CFA_GO_SYSTEMSTACK, go_rule);
	u.sp = GO_STACK + 0x2f8;
	check_caller(&u, stack_word(GO_STACK + 0x2f8), GO_STACK + 0x300, STACK + 0x200);
	/* the distance of g from the thread pointer is in a word of the object */
	via_got.reg = 1;
	via_got.cfa_off = 0xf00;
	go_program(&u, BPFPROF_CFA_GO_SYSTEMSTACK, via_got);
	poke(CODE + 0xf00, (uint64_t)-8);
	check_caller(&u, stack_word(GO_STACK + 0x300), GO_STACK + 0x308, STACK + 0x200);
}

static void test_go_morestack(void **state)
{
	struct bpfprof_rule execute = { .cfa = BPFPROF_CFA_SP,
					.cfa_off = 8,
					.ra = BPFPROF_RA_GO_EXECUTE };
	struct unw u;

	(void)state;
	go_program(&u, BPFPROF_CFA_GO_MORESTACK, go_rule);
	check_caller(&u, CODE + 0x555, GO_STACK + 0x300, GO_STACK + 0x400);
	/* before it has switched */
	go_program(&u, BPFPROF_CFA_GO_MORESTACK, go_rule);
	u.sp = GO_STACK + 0x2f8;
	check_caller(&u, stack_word(GO_STACK + 0x2f8), GO_STACK + 0x300, STACK + 0x200);
	/* the goroutine was let go */
	go_program(&u, BPFPROF_CFA_GO_MORESTACK, go_rule);
	poke(GO_M + 0xb8, 0);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_complete);
	/* and the next one chosen: it did not call this */
	go_program(&u, BPFPROF_CFA_SP, execute);
	poke(u.sp, CODE + 0x101);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	put_part(chunks[1], 16, CODE_SZ, (struct row[]){ { 0x10, 1 } }, 1,
		 (struct bpfprof_rule[]){ { .cfa = BPFPROF_CFA_NONE },
					  { .cfa = BPFPROF_CFA_GO_MORESTACK,
					    .cfa_off = go_rule.cfa_off,
					    .fp_off = go_rule.fp_off,
					    .aux = go_rule.aux,
					    .bx_off = go_rule.bx_off } },
		 2);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_complete);
	assert_int_equal(u.nr, 2);
}

static void test_go_asmcgocall(void **state)
{
	struct bpfprof_rule rule = go_rule;
	struct unw u;

	(void)state;
	rule.aux = 0x28;
	rule.bx_off = 0x30;
	/* returned to from C: depth of the goroutine's stack, and g */
	go_program(&u, BPFPROF_CFA_GO_ASMCGOCALL, rule);
	u.exact = 0;
	poke(u.sp + 0x28, 0xd00);
	poke(u.sp + 0x30, GO_CURG);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.pc, stack_word(GO_STACK + 0x300));
	assert_int_equal(u.sp, GO_STACK + 0x308);
	/* called on g0's stack: no switch */
	go_program(&u, BPFPROF_CFA_GO_ASMCGOCALL, rule);
	u.exact = 0;
	poke(u.sp + 0x28, STACK + 0x180);
	poke(u.sp + 0x30, 0);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.pc, stack_word(STACK + 0x180));
	/* interrupted: on the goroutine's stack it has no frame, on g0's it is not known */
	go_program(&u, BPFPROF_CFA_GO_ASMCGOCALL, rule);
	u.sp = GO_STACK + 0x2f8;
	check_caller(&u, stack_word(GO_STACK + 0x2f8), GO_STACK + 0x300, STACK + 0x200);
	go_program(&u, BPFPROF_CFA_GO_ASMCGOCALL, rule);
	assert_int_equal(unw_step(&u), BPFPROF_STACK_no_goroutine);
}

/* What contradicts itself leads nowhere. */
static void test_go_unknown(void **state)
{
	const struct {
		uint64_t at, value;
	} wrong[] = {
		{ GO_TP - 8, 0 },		       /* no g */
		{ GO_TP - 8, 0x123456789 },	       /* not readable */
		{ GO_G0 + 0x30, 0 },		       /* no m */
		{ GO_M + 0xb8, 0 },		       /* no goroutine */
		{ GO_CURG + 0x30, GO_M + 8 },	       /* one that another thread works for */
		{ GO_CURG + 0x38, GO_STACK + 0x1000 }, /* sp above its stack */
		{ GO_CURG + 0x38, GO_STACK - 8 },      /* and below */
	};
	struct unw u;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		go_program(&u, BPFPROF_CFA_GO_SYSTEMSTACK, go_rule);
		poke(wrong[i].at, wrong[i].value);
		assert_int_equal(unw_step(&u), BPFPROF_STACK_no_goroutine);
		assert_int_equal(u.nr, 1);
	}
	/* a copy of the stack has nothing of it */
	go_program(&u, BPFPROF_CFA_GO_SYSTEMSTACK, go_rule);
	thread_pointer = 0;
	assert_int_equal(unw_step(&u), BPFPROF_STACK_no_goroutine);
}

/* A function that was made to call is looked up where it was interrupted. */
static void test_interrupted_caller(void **state)
{
	struct bpfprof_rule rule = { .cfa = BPFPROF_CFA_SP,
				     .cfa_off = 8,
				     .ra = BPFPROF_RA_INTERRUPTED };
	struct unw u;

	(void)state;
	program(&u, rule);
	poke(u.sp, CODE + 0x300);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.exact, 1);
	assert_int_equal(u.have_regs, 0);
	assert_int_equal(unw_step(&u), UNW_CONTINUE);
	assert_int_equal(u.frames[1], CODE + 0x300);
}

/* ---- nonsense ---- */

static void fill_random(uint8_t *p, size_t n)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t v = rnd();

		memcpy(p + i, &v, 8);
	}
}

static void random_case(struct unw *u, int round)
{
	struct bpfprof_rule rule = { .cfa = rnd_below(BPFPROF_NR_CFA + 1),
				     .fp = rnd_below(6),
				     .ra = rnd_below(8),
				     .reg = rnd(),
				     .cfa_off = (int32_t)rnd(),
				     .fp_off = (int32_t)rnd(),
				     .aux = (int16_t)rnd(),
				     .bx_off = rnd_below(2) ? 0 : (int16_t)rnd() };
	static struct unw_rules rules;
	int steps = 0, result;
	uint32_t runs = 0;

	program(u, rule);
	u->max = 1 + rnd_below(BPFPROF_MAX_UFRAMES);
	if (rnd_below(2))
		fill_random(segs[0].data, STACK_SZ);
	switch (round % 5) {
	case 0: /* the head of the part */
		fill_random(chunks[1] + 16, sizeof(struct bpfprof_part));
		break;
	case 1: /* its index and rows */
		fill_random(chunks[1] + 16 + sizeof(struct bpfprof_part), 4096);
		break;
	case 2: /* the list of mappings: somewhere in random memory */
		u->proc.chunk = 2;
		u->proc.pos = rnd();
		u->proc.map_cnt = rnd();
		memcpy(u->owner, chunks[2] + (u->proc.pos & (BPFPROF_CHUNK_SZ - 8)), 8);
		memcpy(&u->owner[1], chunks[2] + ((u->proc.pos + 8) & (BPFPROF_CHUNK_SZ - 8)), 8);
		break;
	case 3: { /* a mapping that leads anywhere */
		struct bpfprof_map map = {
			.size = rnd(), .skew = rnd(), .chunk = rnd_below(4), .pos = rnd()
		};
		uint64_t start = CODE - rnd_below(0x100);

		put_maps(chunks[0], 0, &start, &map, 1);
		break;
	}
	default: /* registers */
		for (int i = 0; i < BPFPROF_NR_REGS; i++)
			u->regs[i] = rnd_below(3) ? STACK + rnd_below(STACK_SZ) : rnd();
		u->regs[UNW_REG_PC] = CODE + rnd_below(CODE_SZ);
		unw_start(u, 0, rnd_below(2));
	}
	if (rnd_below(4) == 0)
		fail_read = rnd_below(20);
	rules.whose = rnd_below(4);
	do {
		assert_true(++steps <= (int)u->max + 1);
		result = round & 1 ? run_on(u, &rules, &runs) : unw_step(u);
	} while (result == UNW_CONTINUE);
	assert_true(u->nr <= u->max);
	fail_read = -1;
}

static void test_random(void **state)
{
	static struct unw u;

	(void)state;
	fill_random(chunks[2], BPFPROF_CHUNK_SZ);
	for (int i = 0; i < 100000; i++)
		random_case(&u, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(test_find_map, setup, teardown),
		cmocka_unit_test_setup_teardown(test_find_map_of_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read8, setup, teardown),
		cmocka_unit_test_setup_teardown(test_windows_are_used, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cfa_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fp_and_ra_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_registers_of_callers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rbx, setup, teardown),
		cmocka_unit_test_setup_teardown(test_r12, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pc_before_the_return_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failing_reads_are_remembered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_faults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_misses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_code, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frame_pointers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_direct_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prologues, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaf_without_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skipped_caller, setup, teardown),
		cmocka_unit_test_setup_teardown(test_checked_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signal_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(test_half_a_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_half_a_return, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_decides, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remembered_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remembered_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remembered_frame_unreadable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remembered_rules_collide, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remembered_rule_leads_nowhere, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_go_systemstack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_go_morestack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_go_asmcgocall, setup, teardown),
		cmocka_unit_test_setup_teardown(test_go_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interrupted_caller, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
