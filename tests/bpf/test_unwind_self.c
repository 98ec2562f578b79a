/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real stacks: this program single-steps itself through recursion and qsort of libc, and after each
 * instruction unwinds its stack by bpf/unwind.h with tables that unwind_build made of its own code,
 * by bpf/unwind_run.h as well, and by backtrace(3), which is libgcc's unwinder. All have to see the
 * same frames down to the first, at every instruction of every prologue, epilogue and PLT stub.
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/types.h>

#include "bpf/bpfprof.h"

#define NO_ALIGN_CHECK __attribute__((no_sanitize("alignment")))
#undef __always_inline
#undef __noinline
#define __always_inline inline NO_ALIGN_CHECK
#define __noinline __attribute__((noinline)) NO_ALIGN_CHECK
#include "bpf/unwind_run.h"

#include "target/elf_file.h"
#include "target/unwind_build.h"
#include "tests/unit/truth.h"

#define NOIPA __attribute__((noipa))
#define MAX_CHUNKS 64
#define MAX_TRACE 200
#define TRAP_FLAG 0x100
#define CACHES 8

/* ---- tables of this process ---- */

static uint8_t *chunks[MAX_CHUNKS];
static uint32_t chunk_cnt, chunk_used;

static struct {
	uint64_t start[256];
	struct bpfprof_map map[256];
	uint32_t cnt;
} maps;

static __always_inline int unw_read_user(struct unw *u, void *dst, __u32 sz, __u64 addr)
{
	struct iovec local = { dst, sz }, remote = { (void *)addr, sz };

	(void)u;
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)sz;
}

static __always_inline const __u8 *unw_chunk(const struct unw *u, __u32 idx)
{
	(void)u;
	return idx < chunk_cnt ? chunks[idx] : NULL;
}

static __always_inline void unw_mark_used(const __u8 *chunk, __u32 pos)
{
	(void)chunk;
	(void)pos;
}

static void place(const void *data, uint32_t sz, uint32_t *ret_chunk, uint32_t *ret_pos)
{
	if (!chunk_cnt || BPFPROF_CHUNK_SZ - chunk_used < sz) {
		assert_true(chunk_cnt < MAX_CHUNKS);
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

/* Positions of a part count from its start until it is placed. */
static void place_part(const struct unwind_part *p, struct bpfprof_map *ret)
{
	struct bpfprof_part head;

	place(p->blob, p->blob_sz, &ret->chunk, &ret->pos);
	memcpy(&head, p->blob, sizeof(head));
	head.off_pos += ret->pos;
	head.rule_pos += ret->pos;
	head.rules_pos += ret->pos;
	memcpy(chunks[ret->chunk] + ret->pos, &head, sizeof(head));
}

/* bias: what is added to the object's virtual addresses. */
static void add_code(struct elf_file *elf, uint64_t start, uint64_t end, uint64_t bias)
{
	struct unwind_table t;

	assert_int_equal(unwind_build(elf, &t), 0);
	for (size_t i = 0; i < t.part_cnt; i++) {
		const struct unwind_part *p = &t.parts[i];
		uint64_t from = p->vaddr + bias, to = from + p->text_sz;
		struct bpfprof_map map = { 0 };

		if (from >= end || to <= start)
			continue;
		place_part(p, &map);
		map.skew = start > from ? start - from : 0;
		from += map.skew;
		map.size = (to < end ? to : end) - from;
		assert_true(maps.cnt < 256);
		maps.start[maps.cnt] = from;
		maps.map[maps.cnt++] = map;
	}
	unwind_table__done(&t);
}

static void add_file(const char *path, uint64_t start, uint64_t end, uint64_t offset)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = fd < 0 ? NULL : elf_file__open(fd);
	uint64_t vaddr;

	assert_non_null(elf);
	assert_true(truth_vaddr(elf, offset, &vaddr));
	add_code(elf, start, end, start - vaddr);
	elf_file__free(elf);
	close(fd);
}

static int load_tables(void **state)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[5000], path[4096], perms[8];
	unsigned long start, end, offset;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		path[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095[^\n]", &start, &end, perms, &offset,
			   path) < 4 ||
		    perms[2] != 'x')
			continue;
		if (path[0] == '/') {
			add_file(path, start, end, offset);
		} else if (start == getauxval(AT_SYSINFO_EHDR)) {
			struct elf_file *elf = elf_file__open_memory((void *)start, end - start);

			assert_non_null(elf);
			add_code(elf, start, end, start);
			elf_file__free(elf);
		}
	}
	fclose(f);
	assert_true(maps.cnt > 2);
	return 0;
}

static int free_tables(void **state)
{
	(void)state;
	while (chunk_cnt)
		free(chunks[--chunk_cnt]);
	return 0;
}

static void set_maps(struct unw *u)
{
	static uint8_t list[16 + sizeof(maps)] __attribute__((aligned(16)));
	static uint32_t chunk, pos;

	if (!chunk && !pos) {
		uint32_t at = 16 + ((maps.cnt * 8 + 15) & ~15U);

		memcpy(list + 16, maps.start, maps.cnt * 8);
		memcpy(list + at, maps.map, maps.cnt * sizeof(maps.map[0]));
		place(list, at + maps.cnt * sizeof(maps.map[0]), &chunk, &pos);
	}
	u->proc = (struct bpfprof_proc){ .chunk = chunk, .pos = pos, .map_cnt = maps.cnt };
}

/* ---- the comparison ---- */

static const int greg_of_dwarf[BPFPROF_NR_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,
						    REG_RDI, REG_RBP, REG_RSP, REG_R8,	REG_R9,
						    REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
						    REG_R15, REG_RIP };

static struct {
	long steps, frames, worst, runs;
	long bad; /* of the steps: the stacks differ */
	int result;
	uint64_t pc; /* of the first bad one */
	char why[200];
} seen;

static void differs(uint64_t pc, int result, const char *what, int at, uint64_t ours,
		    uint64_t theirs)
{
	if (!seen.bad++) {
		seen.pc = pc;
		seen.result = result;
		snprintf(seen.why, sizeof(seen.why),
			 "pc %#lx frame %d: %s (ours %#lx, backtrace %#lx, result %d)", pc, at,
			 what, ours, theirs, result);
	}
}

/* Walks from where u began once more, by the rules that were remembered at former instructions, and
 * compares. */
static void compare_remembered(const struct unw *u, struct unw_rules *rules, int result)
{
	static struct unw again;
	int got = UNW_CONTINUE;

	memcpy(again.regs, u->regs, sizeof(again.regs));
	set_maps(&again);
	again.max = u->max;
	unw_start(&again, 0, 0);
	while (got == UNW_CONTINUE) {
		uint32_t before = again.nr;
		uint64_t addr;
		int run;

		while ((run = unw_run_on(&again, rules)) == UNW_RUN_MORE)
			;
		seen.runs += again.nr - before;
		addr = again.pc - !again.exact;
		got = run == UNW_RUN_END ? BPFPROF_STACK_complete : unw_step(&again);
		if (run == UNW_RUN_OVER && (got == UNW_CONTINUE || got == BPFPROF_STACK_complete))
			unw_learn(&again, rules, addr);
	}
	if (got != result || again.nr != u->nr || again.hash != u->hash || again.pc != u->pc ||
	    again.sp != u->sp || again.fp != u->fp || again.bx_at != u->bx_at)
		differs(u->regs[UNW_REG_PC], got, "another walk by remembered rules", again.nr,
			again.pc, u->pc);
}

/* Which rules have to share a place depends on where this program was loaded; with several caches,
 * where other ones do, it does not matter. */
static void compare_caches(const struct unw *u, int result)
{
	static struct unw_rules caches[CACHES];

	for (uint64_t i = 0; i < CACHES; i++) {
		caches[i].whose = (i + 1) * 0xd1342543de82ef95ULL;
		compare_remembered(u, &caches[i], result);
	}
}

/* backtrace sees this handler and the trampoline first: the interrupted frame is the one with the
 * pc. */
static void compare_stacks(const ucontext_t *uc)
{
	static struct unw u;
	uint8_t exact[BPFPROF_MAX_UFRAMES + 2] = { 0 };
	void *trace[MAX_TRACE];
	int n = backtrace(trace, MAX_TRACE), skip = 0, result;
	uint64_t pc = uc->uc_mcontext.gregs[REG_RIP];

	while (skip < n && (uint64_t)trace[skip] != pc)
		skip++;
	memset(&u, 0, sizeof(u));
	set_maps(&u);
	u.max = BPFPROF_MAX_UFRAMES;
	for (int i = 0; i < BPFPROF_NR_REGS; i++)
		u.regs[i] = uc->uc_mcontext.gregs[greg_of_dwarf[i]];
	unw_start(&u, 0, 0);
	do
		exact[u.nr] = u.exact;
	while ((result = unw_step(&u)) == UNW_CONTINUE);
	compare_caches(&u, result);
	seen.steps++;
	seen.frames += u.nr;
	if (u.nr > seen.worst)
		seen.worst = u.nr;
	if (result != BPFPROF_STACK_complete) {
		differs(pc, result, "not whole", u.nr, 0, 0);
		return;
	}
	for (uint32_t i = 0; i < u.nr || (int)i < n - skip; i++) {
		/* the trampoline that leads to an interrupted frame was not called either */
		bool called = !exact[i] && !exact[i + 1];
		uint64_t ours = i < u.nr ? u.frames[i] + called : 0;
		uint64_t theirs = (int)i < n - skip ? (uint64_t)trace[skip + i] : 0;

		if (ours != theirs) {
			differs(pc, result, "another frame", i, ours, theirs);
			return;
		}
	}
}

static volatile int stepping;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	compare_stacks(uc);
	if (stepping)
		uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	else
		uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* Traps here, and after every instruction from here on if `on`. */
static NOIPA void step(int on)
{
	stepping = on;
	__asm__ volatile("int3" : : : "memory");
}

static void begin(void)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	void *warm[4];

	/* its first call loads libgcc */
	backtrace(warm, 4);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(sigaction(SIGTRAP, &sa, NULL), 0);
}

static void check(long least_steps, long least_depth)
{
	signal(SIGTRAP, SIG_DFL);
	if (seen.bad)
		print_error("%ld of %ld steps: %s\n", seen.bad, seen.steps, seen.why);
	assert_int_equal(seen.bad, 0);
	assert_true(seen.steps >= least_steps);
	assert_true(seen.worst >= least_depth);
	seen.runs /= CACHES;
	assert_true(least_steps < 100 || seen.runs >= seen.frames / 2);
	print_message("%ld instructions, %ld frames, %ld by remembered rules, at most %ld deep\n",
		      seen.steps, seen.frames, seen.runs, seen.worst);
}

/* ---- what is stepped through ---- */

static volatile int sink;

static NOIPA int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static NOIPA int sort(int n)
{
	int numbers[16];

	for (int i = 0; i < 16; i++)
		numbers[i] = (i * 7 + n) % 16;
	qsort(numbers, 16, sizeof(int), by_value);
	return numbers[n & 15];
}

static NOIPA int deep(int n)
{
	volatile char local[16 + n % 5 * 40];

	local[0] = n;
	return (n ? deep(n - 1) : sort(3)) + local[0];
}

static void test_recursion_and_qsort(void **state)
{
	(void)state;
	begin();
	sink = deep(0);
	step(1);
	sink = deep(30);
	step(0);
	check(500, 35);
}

static NOIPA void aligned(int n)
{
	_Alignas(64) volatile char wide[128];
	volatile char more[n * 8 + 8];

	wide[0] = more[0] = n;
	if (n)
		aligned(n - 1);
	else
		step(0);
	sink = wide[0] + more[0];
}

/*
 * Not stepped through: gcc's rules for the epilogues of such functions are wrong (rbp is said to be
 * saved where it was, although it was popped), so that there is no truth in them.
 */
static void test_realigned_frames(void **state)
{
	(void)state;
	begin();
	aligned(5);
	check(1, 10);
}

static NOIPA void use_libc(void)
{
	char text[200];
	struct timespec t;

	sink = snprintf(text, sizeof(text), "%d %s %.3f %p", 42, "words", 3.25, (void *)text);
	sink = clock_gettime(CLOCK_MONOTONIC, &t);
	sink = (int)strtod("123.5e7", NULL);
	sink = getppid();
	free(malloc(100));
	free(malloc(1 << 20));
}

static void test_libc(void **state)
{
	(void)state;
	begin();
	use_libc();
	step(1);
	use_libc();
	step(0);
	check(1000, 5);
}

/* The first call of a function by its PLT stub leads through the dynamic linker, whose resolver
 * aligns its stack and keeps the CFA in rbx. */
static void test_lazy_binding(void **state)
{
	(void)state;
	begin();
	step(1);
	sink = getpgrp() + getsid(0);
	step(0);
	check(1000, 5);
}

static void on_user(int sig)
{
	sink = deep(sig & 3);
}

/* Through a signal frame: the handler is stepped through, below it lies raise. */
static void test_signal_handler(void **state)
{
	(void)state;
	begin();
	signal(SIGUSR1, on_user);
	raise(SIGUSR1);
	step(1);
	raise(SIGUSR1);
	step(0);
	signal(SIGUSR1, SIG_DFL);
	check(20, 5);
}

static void step_handler(int sig)
{
	step(1);
	sink = deep(sig & 3);
	step(0);
}

static void test_inside_signal_handler(void **state)
{
	(void)state;
	begin();
	signal(SIGUSR1, step_handler);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
	check(100, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recursion_and_qsort),
		cmocka_unit_test(test_realigned_frames),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_signal_handler),
		cmocka_unit_test(test_inside_signal_handler),
		cmocka_unit_test(test_lazy_binding),
	};

	return cmocka_run_group_tests(tests, load_tables, free_tables);
}
