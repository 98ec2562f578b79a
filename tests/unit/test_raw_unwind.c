// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copied stacks: this program copies its own, as the kernel side does, and unwinds the copy with
 * tables made of its own code; backtrace(3), which is libgcc's unwinder, is the truth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <execinfo.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/proc_maps.h"
#include "target/raw_unwind.h"
#include "target/unwind_build.h"
#include "truth.h"

#define NOIPA __attribute__((noipa))
#define PAGE 4096ULL
#define MAX_CODE 64 /* executable ranges of ours */
#define MAX_PARTS 256

/* ---- table memory ---- */

static uint8_t *chunks[64];
static uint32_t chunk_cnt, chunk_used = BPFPROF_CHUNK_SZ;

static struct code {
	uint64_t start, end, offset;
	char path[512];
	bool loaded;
} code[MAX_CODE];
static size_t code_cnt;

static struct part {
	uint64_t start;
	struct bpfprof_map map;
} parts[MAX_PARTS];
static size_t part_cnt;

static const struct bpfprof_proc_key key = { .tgid = 1, .exec_id = 2, .start_ns = 3 };

static void place(const void *data, uint32_t sz, uint32_t *ret_chunk, uint32_t *ret_pos)
{
	assert_true(sz <= BPFPROF_CHUNK_SZ);
	if (BPFPROF_CHUNK_SZ - chunk_used < sz) {
		assert_true(chunk_cnt < ARRAY_SIZE(chunks));
		chunks[chunk_cnt] = calloc(1, BPFPROF_CHUNK_SZ);
		assert_non_null(chunks[chunk_cnt]);
		chunk_cnt++;
		chunk_used = 0;
	}
	*ret_chunk = chunk_cnt - 1;
	*ret_pos = chunk_used;
	memcpy(chunks[*ret_chunk] + *ret_pos, data, sz);
	chunk_used += (sz + 15) & ~15U;
}

static void add_part(uint64_t start, struct bpfprof_map map)
{
	assert_true(part_cnt < MAX_PARTS);
	parts[part_cnt++] = (struct part){ start, map };
}

static void load(struct code *c)
{
	int fd = open(c->path, O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = fd < 0 ? NULL : elf_file__open(fd);
	struct unwind_table t;
	uint64_t vaddr;

	c->loaded = true;
	if (!elf || unwind_build(elf, &t)) {
		add_part(c->start, (struct bpfprof_map){ .size = c->end - c->start,
							 .chunk = BPFPROF_CHUNK_NO_TABLE });
		elf_file__free(elf);
		close(fd);
		return;
	}
	assert_true(truth_vaddr(elf, c->offset, &vaddr));
	for (size_t i = 0; i < t.part_cnt; i++) {
		uint64_t from = t.parts[i].vaddr + (c->start - vaddr);
		uint64_t to = MIN(from + t.parts[i].text_sz, c->end), lo = MAX(from, c->start);
		struct bpfprof_map map = { .size = to - lo, .skew = lo - from };
		struct bpfprof_part head;

		if (lo >= to)
			continue;
		place(t.parts[i].blob, t.parts[i].blob_sz, &map.chunk, &map.pos);
		memcpy(&head, t.parts[i].blob, sizeof(head));
		head.off_pos += map.pos;
		head.rule_pos += map.pos;
		head.rules_pos += map.pos;
		memcpy(chunks[map.chunk] + map.pos, &head, sizeof(head));
		add_part(lo, map);
	}
	unwind_table__done(&t);
	elf_file__free(elf);
	close(fd);
}

static int by_start(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Writes the process's list: tables where they are loaded, and NOT_LOADED elsewhere. */
static struct bpfprof_proc publish(void)
{
	static uint8_t list[sizeof(key) + MAX_PARTS * (8 + sizeof(struct bpfprof_map)) + 16];
	struct bpfprof_proc proc = { .gen = 1 };
	struct part all[MAX_PARTS];
	size_t cnt = part_cnt, at;

	memcpy(all, parts, part_cnt * sizeof(*parts));
	for (size_t i = 0; i < code_cnt; i++)
		if (!code[i].loaded && cnt < MAX_PARTS)
			all[cnt++] = (struct part){ code[i].start,
						    { .size = code[i].end - code[i].start,
						      .chunk = BPFPROF_CHUNK_NOT_LOADED } };
	qsort(all, cnt, sizeof(*all), by_start);
	at = sizeof(key) + ((cnt * 8 + 15) & ~(size_t)15);
	memcpy(list, &key, sizeof(key));
	for (size_t i = 0; i < cnt; i++) {
		memcpy(list + sizeof(key) + i * 8, &all[i].start, 8);
		memcpy(list + at + i * sizeof(all[i].map), &all[i].map, sizeof(all[i].map));
	}
	proc.map_cnt = cnt;
	place(list, at + cnt * sizeof(struct bpfprof_map), &proc.chunk, &proc.pos);
	return proc;
}

static void unload_all(void)
{
	for (uint32_t i = 0; i < chunk_cnt; i++)
		free(chunks[i]);
	chunk_cnt = 0;
	chunk_used = BPFPROF_CHUNK_SZ;
	part_cnt = 0;
	for (size_t i = 0; i < code_cnt; i++)
		code[i].loaded = false;
}

static int setup(void **state)
{
	struct proc_maps_reader r;
	struct proc_maps_line l;

	(void)state;
	unload_all();
	code_cnt = 0;
	if (proc_maps_open(&r, "/proc", getpid(), 0, PROC_MAPS_MAX))
		return 1;
	while (proc_maps_next(&r, &l) && code_cnt < MAX_CODE) {
		if (!l.exec)
			continue;
		code[code_cnt] =
			(struct code){ .start = l.start, .end = l.end, .offset = l.offset };
		snprintf(code[code_cnt++].path, sizeof(code[0].path), "%s", l.file.path);
	}
	proc_maps_close(&r);
	return code_cnt == 0;
}

static int teardown(void **state)
{
	(void)state;
	unload_all();
	return 0;
}

/* ---- a copy of our stack ---- */

struct copy {
	struct bpfprof_raw raw;
	uint8_t stack[BPFPROF_RAW_STACK_SZ] __attribute__((aligned(16)));
	void *truth[2000];
	int truth_cnt;
};

static struct copy copy;

static bool read_self(void *dst, uint64_t addr, size_t sz)
{
	struct iovec local = { dst, sz }, remote = { (void *)addr, sz };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)sz;
}

/*
 * As copy_stack() in stack.bpf.c: to the end of each page, at most so many pages. The red zone's
 * may lie below all that was ever touched: then it is the first hole.
 */
static void copy_pages(struct copy *c, int pages)
{
	uint64_t addr = c->raw.stack_addr, want = PAGE - (addr & (PAGE - 1));
	uint32_t sz = 0;

	for (int i = 0; i < pages; i++) {
		if (read_self(c->stack + sz, addr, want))
			c->raw.stack_sz = sz + want;
		else
			c->raw.holes |= 1U << i;
		sz += want;
		addr += want;
		want = PAGE;
	}
}

static void take_regs(struct copy *c, const ucontext_t *uc)
{
	static const int greg[BPFPROF_NR_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,
						   REG_RDI, REG_RBP, REG_RSP, REG_R8,  REG_R9,
						   REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
						   REG_R15, REG_RIP };

	for (int i = 0; i < BPFPROF_NR_REGS; i++)
		c->raw.regs[i] = uc->uc_mcontext.gregs[greg[i]];
	c->raw.stack_addr = c->raw.regs[7] - BPFPROF_RED_ZONE;
}

/* The leaf: what it copies, and what backtrace says, agree from its caller on. */
static NOIPA void capture(int pages)
{
	ucontext_t uc;

	memset(&copy.raw, 0, sizeof(copy.raw));
	getcontext(&uc);
	take_regs(&copy, &uc);
	copy_pages(&copy, pages);
	copy.truth_cnt = backtrace(copy.truth, ARRAY_SIZE(copy.truth));
	/* our caller is the second frame, whatever a sanitizer has put before it */
	while (copy.truth_cnt > 2 && copy.truth[1] != __builtin_return_address(0))
		memmove(copy.truth, copy.truth + 1, --copy.truth_cnt * sizeof(copy.truth[0]));
}

static NOIPA void deep(int depth, int pages)
{
	if (depth)
		deep(depth - 1, pages);
	else
		capture(pages);
	__asm__ volatile("" ::: "memory");
}

/* With frames so large that a copy holds some hundreds of them. */
static NOIPA void heavy(int depth, int pages)
{
	volatile char room[256];

	room[0] = 1;
	if (depth)
		heavy(depth - 1, pages);
	else
		capture(pages);
	(void)room[0];
}

/* One large frame between, whose middle is never touched by an unwinder. */
static uint64_t middle;

static NOIPA void wide(int pages)
{
	volatile char room[3 * PAGE];

	room[0] = room[sizeof(room) - 1] = 1;
	middle = (uintptr_t)room + sizeof(room) / 2;
	capture(pages);
	(void)room[1];
}

static int compare(const void *a, const void *b)
{
	if (!copy.truth_cnt)
		capture(BPFPROF_RAW_STACK_SZ / PAGE);
	return *(const int *)a - *(const int *)b;
}

/* ---- unwinding it ---- */

static const uint8_t *chunk_of(void *ctx, uint32_t idx)
{
	(void)ctx;
	return idx < chunk_cnt ? chunks[idx] : NULL;
}

/* A page that the process has filled itself, and what becomes of reading it. */
#define GENERATED 0x10000ULL
static int generated;

static int read_code(void *ctx, uint64_t addr, void *buf, size_t sz)
{
	const uint8_t *then = raw_code_then(&copy.raw, addr, sz);

	(void)ctx;
	if (addr / PAGE == GENERATED / PAGE) {
		memset(buf, 0x90, sz); /* nop */
		return then ? memcpy(buf, then, sz), 0 : generated;
	}
	for (size_t i = 0; i < code_cnt; i++)
		if (addr >= code[i].start && addr < code[i].end && sz <= code[i].end - addr)
			return read_self(buf, addr, sz) ? 0 : -1;
	return -1;
}

static uint64_t frames[BPFPROF_MAX_UFRAMES];
static size_t frame_cnt;
static uint64_t miss;

static int unwind(struct bpfprof_proc proc)
{
	struct raw_unwind in = { .key = key,
				 .proc = proc,
				 .regs = copy.raw,
				 .stack = copy.stack,
				 .chunk = chunk_of,
				 .read_code = read_code };

	frame_cnt = 0;
	return raw_unwind(&in, frames, &frame_cnt, &miss);
}

/* Loads what is asked for until nothing is missed. */
static int unwind_loading(int *ret_loads)
{
	int result;

	*ret_loads = 0;
	while ((result = unwind(publish())) == RAW_UNWIND_MISS) {
		struct code *c = NULL;

		for (size_t i = 0; i < code_cnt; i++)
			if (miss >= code[i].start && miss < code[i].end)
				c = &code[i];
		/* asked for once, and for nothing that is not code */
		assert_non_null(c);
		assert_false(c->loaded);
		load(c);
		(*ret_loads)++;
	}
	return result;
}

/* All frames from the leaf's caller on are backtrace's; its are return addresses. */
static void same_frames(size_t cnt)
{
	assert_true(cnt <= (size_t)copy.truth_cnt);
	for (size_t i = 1; i < cnt; i++)
		if (frames[i] != (uintptr_t)copy.truth[i] - 1)
			fail_msg("frame %zu is %#llx, not %p less one", i,
				 (unsigned long long)frames[i], copy.truth[i]);
}

static void test_whole(void **state)
{
	int loads;

	(void)state;
	for (int depth = 0; depth < 100; depth += 11) {
		deep(depth, BPFPROF_RAW_STACK_SZ / PAGE);
		assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_complete);
		/* this program, cmocka and libc, at the first time only */
		assert_true(depth ? !loads : loads >= 3);
		assert_int_equal(frame_cnt, copy.truth_cnt);
		assert_true(frame_cnt > (size_t)depth);
		same_frames(frame_cnt);
		/* the pc itself, not less one */
		assert_int_equal(frames[0], copy.raw.regs[16]);
	}
}

static void test_through_libc(void **state)
{
	int v[] = { 5, 3, 1, 4 }, loads;

	(void)state;
	copy.truth_cnt = 0;
	qsort(v, ARRAY_SIZE(v), sizeof(v[0]), compare);
	assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_complete);
	assert_int_equal(frame_cnt, copy.truth_cnt);
	same_frames(frame_cnt);
}

static void test_in_system_call(void **state)
{
	int loads;

	(void)state;
	deep(3, 8);
	copy.raw.ra = 1;
	assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_complete);
	assert_int_equal(frames[0], copy.raw.regs[16] - 1);
	assert_int_equal(frame_cnt, copy.truth_cnt);
	same_frames(frame_cnt);
}

static void test_too_deep(void **state)
{
	int loads;

	(void)state;
	deep(1500, BPFPROF_RAW_STACK_SZ / PAGE);
	assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_too_deep);
	assert_int_equal(frame_cnt, BPFPROF_MAX_UFRAMES);
	same_frames(frame_cnt);
}

static void test_copy_short(void **state)
{
	size_t longest;
	int loads;

	(void)state;
	/* a full copy that does not reach the end */
	heavy(1500, BPFPROF_RAW_STACK_SZ / PAGE);
	assert_true(copy.raw.stack_sz > BPFPROF_RAW_STACK_SZ - PAGE);
	assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_copy_short);
	longest = frame_cnt;
	assert_true(longest > 50);
	same_frames(frame_cnt);
	/* a copy that ended because nothing could be read behind it is something else */
	for (int pages = 1; pages < 7; pages++) {
		heavy(1500, pages);
		assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_read_fault);
		assert_true(frame_cnt >= 1 && frame_cnt < longest);
		same_frames(frame_cnt);
	}
}

/* A page of the copy that could not be read, and holds whatever was in the buffer before. */
static void punch(int page)
{
	uint64_t first = copy.raw.stack_addr / PAGE;
	uint64_t from = MAX((first + page) * PAGE, copy.raw.stack_addr) - copy.raw.stack_addr;
	uint64_t to = (first + page + 1) * PAGE - copy.raw.stack_addr;

	copy.raw.holes |= 1U << page;
	assert_true(to <= copy.raw.stack_sz);
	memset(copy.stack + from, 0xcc, to - from);
}

static void test_holes(void **state)
{
	size_t whole, before = 0;
	int loads;

	(void)state;
	/* in the untouched middle of a frame: nothing is missed */
	wide(8);
	assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_complete);
	whole = frame_cnt;
	wide(8);
	punch(middle / PAGE - copy.raw.stack_addr / PAGE);
	assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_complete);
	assert_int_equal(frame_cnt, whole);
	same_frames(frame_cnt);
	/* where the frames are: it ends there, with those before */
	for (int page = 1; page < 5; page++) {
		heavy(1500, 6);
		punch(page);
		assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_read_fault);
		assert_true(frame_cnt > before);
		before = frame_cnt;
		same_frames(frame_cnt);
	}
}

static void test_not_known(void **state)
{
	struct bpfprof_proc proc;
	int loads;

	(void)state;
	deep(5, 8);
	/* no mapping at all */
	proc = (struct bpfprof_proc){ .chunk = 0 };
	assert_int_equal(unwind(proc), RAW_UNWIND_MISS);
	assert_int_equal(miss, copy.raw.regs[16]);
	assert_int_equal(frame_cnt, 0);
	/* mapped, not loaded */
	proc = publish();
	assert_int_equal(unwind(proc), RAW_UNWIND_MISS);
	assert_int_equal(miss, copy.raw.regs[16]);
	/* not to be had: recorded as it is, with at least the interrupted pc */
	proc.flags = BPFPROF_PROC_NO_RAW | BPFPROF_PROC_NO_LOAD;
	assert_true(unwind(proc) < BPFPROF_NR_RESULTS);
	assert_true(frame_cnt >= 1);
	assert_int_equal(frames[0], copy.raw.regs[16]);
	/* what is asked for of a caller is an address inside its call */
	for (size_t i = 0; i < code_cnt; i++)
		if (copy.raw.regs[16] >= code[i].start && copy.raw.regs[16] < code[i].end)
			load(&code[i]);
	assert_int_equal(unwind(publish()), RAW_UNWIND_MISS);
	assert_true(frame_cnt > 5);
	assert_int_equal(miss, (uintptr_t)copy.truth[frame_cnt] - 1);
	assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_complete);
	/* a list that belongs to another process is no list */
	proc = publish();
	chunks[proc.chunk][proc.pos]++;
	assert_int_equal(unwind(proc), RAW_UNWIND_MISS);
}

/* Code that the process has made itself has a caller only if a call was there when the stack was
 * copied; where that was not noted, if one is there now, or if nobody can say any more what was. */
static void test_generated_code(void **state)
{
	uint64_t sp = 0x7ffd00000800, fp = sp + 0x40, words[2] = { sp + 0x80, GENERATED + 0x200 };

	(void)state;
	memset(&copy, 0, sizeof(copy));
	copy.raw.stack_addr = sp - BPFPROF_RED_ZONE;
	copy.raw.stack_sz = PAGE;
	copy.raw.regs[16] = GENERATED + 0x100;
	copy.raw.regs[7] = sp;
	copy.raw.regs[6] = fp;
	memcpy(copy.stack + (fp - copy.raw.stack_addr), words, sizeof(words));
	add_part(GENERATED, (struct bpfprof_map){ .size = PAGE, .chunk = BPFPROF_CHUNK_NO_TABLE });
	for (generated = 0; generated >= -EFAULT; generated -= EFAULT) {
		assert_int_equal(unwind(publish()), BPFPROF_STACK_no_table);
		assert_int_equal(frame_cnt, 1);
	}
	generated = -ESRCH;
	assert_int_equal(unwind(publish()), BPFPROF_STACK_no_table);
	assert_int_equal(frame_cnt, 2);
	assert_int_equal(frames[1], GENERATED + 0x1ff);
	/* none was there then */
	copy.raw.codes[3] = (struct bpfprof_raw_code){ .addr = GENERATED + 0x1f8 };
	assert_int_equal(unwind(publish()), BPFPROF_STACK_no_table);
	assert_int_equal(frame_cnt, 1);
	/* call *%rax, which now is something else */
	generated = 0;
	memcpy(copy.raw.codes[3].bytes + 6, "\xff\xd0", 2);
	assert_int_equal(unwind(publish()), BPFPROF_STACK_no_table);
	assert_int_equal(frame_cnt, 2);
	assert_int_equal(frames[1], GENERATED + 0x1ff);
}

static void test_code_then(void **state)
{
	const struct bpfprof_raw raw = { .codes[BPFPROF_RAW_CODES - 1] = { 0x1000, "01234567" } };

	(void)state;
	assert_memory_equal(raw_code_then(&raw, 0x1000, 8), "01234567", 8);
	assert_memory_equal(raw_code_then(&raw, 0x1003, 5), "34567", 5);
	assert_null(raw_code_then(&raw, 0x1003, 6));
	assert_null(raw_code_then(&raw, 0xfff, 1));
	assert_null(raw_code_then(&raw, 0x1008, 0));
	/* one that is empty has no address 0 */
	assert_null(raw_code_then(&raw, 0, 8));
}

static void test_wild_pc(void **state)
{
	(void)state;
	deep(1, 8);
	/* the kernel's half is nobody's code: there is nothing to load, and the pc is a fact */
	copy.raw.regs[16] = 0xffffffff81000000;
	assert_int_equal(unwind(publish()), BPFPROF_STACK_no_mapping);
	assert_int_equal(frame_cnt, 1);
	assert_int_equal(frames[0], 0xffffffff81000000);
}

/* Whatever the stack, the registers and the table memory hold: it ends, within its bounds. */
static void test_garbage(void **state)
{
	size_t results[BPFPROF_NR_RESULTS] = { 0 };
	struct bpfprof_proc proc;
	int loads;

	(void)state;
	srand(5);
	deep(40, 8);
	assert_int_equal(unwind_loading(&loads), BPFPROF_STACK_complete);
	for (int round = 0; round < 20000; round++) {
		int result;

		if (round % 50 == 0)
			deep(40, 8);
		proc = (struct bpfprof_proc){ 0 };
		if (round == 0 || round % 1000 == 0)
			proc = publish();
		proc = round % 1000 ?
			       (struct bpfprof_proc){ .chunk = 0,
						      .pos = (uint32_t)rand() % BPFPROF_CHUNK_SZ,
						      .map_cnt = (uint16_t)rand() } :
			       proc;
		for (int i = 0; i < 8; i++) {
			size_t at = (size_t)rand() % copy.raw.stack_sz & ~(size_t)7;
			uint64_t v =
				rand() % 2 ?
					copy.raw.stack_addr + ((uint64_t)rand() % 40000 & ~7ULL) :
					code[(size_t)rand() % code_cnt].start + rand() % 65536;

			memcpy(copy.stack + at, &v, 8);
		}
		copy.raw.regs[rand() % 6] = (uint64_t)rand() << 33 | rand();
		copy.raw.holes = rand() % 4 ? 0 : (uint16_t)rand() & 0xff;
		proc.flags = rand() % 2;
		result = unwind(proc);
		assert_true(result == RAW_UNWIND_MISS ||
			    (result >= 0 && result < BPFPROF_NR_RESULTS));
		assert_true(frame_cnt <= BPFPROF_MAX_UFRAMES);
		if (result != RAW_UNWIND_MISS)
			results[result]++;
	}
	assert_true(results[BPFPROF_STACK_complete] < 20000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole),     TEST(test_through_libc),	 TEST(test_in_system_call),
		TEST(test_too_deep),  TEST(test_copy_short),	 TEST(test_holes),
		TEST(test_not_known), TEST(test_generated_code), TEST(test_code_then),
		TEST(test_wild_pc),   TEST(test_garbage),
	};
	void *warm[1];

	/* loads libgcc, whose code then is among the maps */
	backtrace(warm, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
