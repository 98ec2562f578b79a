// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory that is a copy of a file's code: where it can be, by made-up segments and lines of maps;
 * and whether it is one, in processes of a /proc of our own making, whose memory is a file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/util.h"
#include "capture/copies.h"
#include "target/beside.h"
#include "target/copy.h"
#include "target/elf_file.h"
#include "target/objects.h"
#include "target/proc_maps.h"
#include "target/procs.h"
#include "target/proof.h"
#include "toolrun.h"

#define TICK (NSEC_PER_SEC / 100)
#define PG COPY_PAGE

/* ---- where it can be ---- */

/* As ld -z separate-code lays a program out. The last page of the third is the first of the
 * fourth's in the file. */
static const struct elf_segment layout[] = {
	{ .vaddr = 0, .offset = 0, .filesz = 0x5c8, .memsz = 0x5c8 },
	{ .vaddr = 0x1000, .offset = 0x1000, .filesz = 0x5175, .memsz = 0x5175, .exec = true },
	{ .vaddr = 0x7000, .offset = 0x7000, .filesz = 0x2d4, .memsz = 0x2d4 },
	{ .vaddr = 0x8dd0, .offset = 0x7dd0, .filesz = 0x248, .memsz = 0x900 },
};

#define AT 0x555500000000ULL /* where it is mapped */

static size_t pieces(const struct elf_segment *segments, size_t cnt, uint64_t beside,
		     uint64_t offset, uint64_t start, uint64_t end, struct copy_place ret[8])
{
	struct proc_map map = { .start = beside, .end = beside + PG, .offset = offset };
	struct proc_map range = { .start = start, .end = end };
	size_t n = 0;

	for (size_t i = 0, found = copy_places(segments, cnt, &map, ret, 8); i < found; i++) {
		ret[n] = ret[i];
		n += copy_cut(segments, cnt, &range, &ret[n]);
	}
	return n;
}

static void test_pieces(void **state)
{
	static const struct {
		uint64_t beside, offset;
	} by[] = { { AT, 0 }, { AT + 0x9000, 0x8000 } };
	struct copy_place p[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		/* all of it, and that is where it ends, though memory does not */
		assert_int_equal(
			pieces(layout, 4, by[i].beside, by[i].offset, AT + 0x1000, AT + 0x7000, p),
			1);
		assert_int_equal(p[0].start, AT + 0x1000);
		assert_int_equal(p[0].end, AT + 0x7000);
		assert_int_equal(p[0].offset, 0x1000);
		assert_int_equal(
			pieces(layout, 4, by[i].beside, by[i].offset, AT - 0x4000, AT + 0x20000, p),
			1);
		assert_int_equal(p[0].start, AT + 0x1000);
		assert_int_equal(p[0].end, AT + 0x7000);
		/* a part in the middle */
		assert_int_equal(
			pieces(layout, 4, by[i].beside, by[i].offset, AT + 0x3000, AT + 0x5000, p),
			1);
		assert_int_equal(p[0].start, AT + 0x3000);
		assert_int_equal(p[0].offset, 0x3000);
		/* what lies elsewhere is nothing of the file's */
		assert_int_equal(
			pieces(layout, 4, by[i].beside, by[i].offset, AT + 0x7000, AT + 0x9000, p),
			0);
		assert_int_equal(pieces(layout, 4, by[i].beside, by[i].offset, AT + (1 << 30),
					AT + (1 << 30) + 0x10000, p),
				 0);
	}
	/* the page that two segments share may be that of either: one of these is right */
	assert_int_equal(pieces(layout, 4, AT + 0x8000, 0x7000, AT, AT + 0x20000, p), 2);
	assert_true((p[0].start == AT + 0x1000) != (p[1].start == AT + 0x1000));
	/* no page of the file */
	assert_int_equal(pieces(layout, 4, AT, 0x9000, AT, AT + 0x20000, p), 0);
	assert_int_equal(pieces(layout, 0, AT, 0, AT, AT + 0x20000, p), 0);
}

/* Two segments of code in one range, as BOLT makes them. */
static void test_two_codes(void **state)
{
	static const struct elf_segment two[] = {
		{ .vaddr = 0x400000, .offset = 0, .filesz = 0x2345, .exec = true },
		{ .vaddr = 0x600000, .offset = 0x200000, .filesz = 0x1000, .exec = true },
		{ .vaddr = 0x800000, .offset = 0x300000, .filesz = 0x1000 },
	};
	struct copy_place p[8];

	(void)state;
	assert_int_equal(pieces(two, 3, 0x800000, 0x300000, 0x400000, 0x800000, p), 2);
	assert_int_equal(p[0].start, 0x400000);
	assert_int_equal(p[0].end, 0x403000);
	assert_int_equal(p[0].offset, 0);
	assert_int_equal(p[1].start, 0x600000);
	assert_int_equal(p[1].end, 0x601000);
	assert_int_equal(p[1].offset, 0x200000);
}

/* A file with segments without end: what it costs to look at them is bounded. */
static void test_many_segments(void **state)
{
	struct elf_segment s[256];
	struct copy_place p[256];
	struct proc_map beside = { .start = AT, .end = AT + PG };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(s); i++)
		s[i] = (struct elf_segment){ .vaddr = i * PG, .filesz = PG, .exec = true };
	assert_int_equal(copy_places(s, ARRAY_SIZE(s), &beside, p, 8), 8);
	/* each is where it is by each of the others: a distance of one more for each */
	assert_int_equal(copy_places(s, ARRAY_SIZE(s), &beside, p, ARRAY_SIZE(p)),
			 2 * COPY_MAX_SEGMENTS - 1);
}

/* Whatever a file claims, a piece lies in the range, and its offset leads back to its address. */
static void test_hostile_segments(void **state)
{
	static const uint64_t odd[] = { 0,	    1,		0xfff,	     0x1000,
					0x1001,	    1ULL << 47, INT64_MAX,   INT64_MAX - 0xfff,
					UINT64_MAX, 0x400000,	0x7fff0000,  UINT64_MAX - 0xfff,
					1ULL << 63, 0x123456,	0x800000000, UINT64_MAX / 2 + 1 };
	struct elf_segment s[8];
	struct copy_place p[8];
	size_t found = 0;

	(void)state;
	srand(3);
	for (int round = 0; round < 200000; round++) {
		size_t cnt = 1 + (size_t)rand() % ARRAY_SIZE(s), n;
		uint64_t beside = odd[(size_t)rand() % ARRAY_SIZE(odd)] & ~(PG - 1);
		uint64_t offset = odd[(size_t)rand() % ARRAY_SIZE(odd)] & ~(PG - 1);
		uint64_t start = odd[(size_t)rand() % ARRAY_SIZE(odd)] & ~(PG - 1);
		uint64_t end = start + (1 + (uint64_t)rand() % 4096) * PG;

		if (end < start || start >> 63)
			continue;
		for (size_t i = 0; i < cnt; i++)
			s[i] = (struct elf_segment){
				.vaddr = odd[(size_t)rand() % ARRAY_SIZE(odd)] % ((1ULL << 47) + 1),
				.offset = odd[(size_t)rand() % ARRAY_SIZE(odd)] & INT64_MAX,
				.filesz = odd[(size_t)rand() % ARRAY_SIZE(odd)] % (1ULL << 47),
				.exec = rand() % 2,
			};
		n = pieces(s, cnt, beside, offset, start, end, p);
		found += n;
		for (size_t i = 0; i < n; i++) {
			struct proc_map map = { .start = p[i].start,
						.end = p[i].end,
						.offset = p[i].offset };
			uint64_t lo = p[i].start, hi = p[i].end, vaddr;

			assert_true(p[i].start >= start && p[i].start < p[i].end &&
				    p[i].end <= end);
			assert_true(p[i].start % PG == 0 && p[i].offset % PG == 0);
			if (!copy_file_part(s, cnt, &map, &lo, &hi, &vaddr))
				continue;
			assert_true(lo >= p[i].start && lo < hi && hi <= p[i].end);
			assert_true(elf_segments__offset(s, cnt, vaddr, hi - lo, &offset));
		}
	}
	assert_true(found > 1000);
}

static void test_file_part(void **state)
{
	struct proc_map map = { .start = AT + 0x1000, .end = AT + 0x7000, .offset = 0x1000 };
	uint64_t start = AT + 0x2000, end = AT + 0x3000, vaddr;

	(void)state;
	assert_true(copy_file_part(layout, 4, &map, &start, &end, &vaddr));
	assert_int_equal(vaddr, 0x2000);
	assert_int_equal(start, AT + 0x2000);
	assert_int_equal(end, AT + 0x3000);
	/* the last page has more bytes than the segment */
	start = AT + 0x6000;
	end = AT + 0x7000;
	assert_true(copy_file_part(layout, 4, &map, &start, &end, &vaddr));
	assert_int_equal(end, AT + 0x6175);
	map.offset = 0x7000;
	assert_false(copy_file_part(layout, 4, &map, &start, &end, &vaddr));
}

/* Two segments of code with a page in common, by whole mappings of the second one. */
static void test_shared_page(void **state)
{
	static const struct elf_segment both[] = {
		{ .vaddr = 0x1000, .offset = 0x1000, .filesz = 0x4a20, .exec = true },
		{ .vaddr = 0x6a20, .offset = 0x5a20, .filesz = 0x1800, .exec = true },
	};
	struct proc_map map = { .start = AT + 0x6000, .end = AT + 0x9000, .offset = 0x5000 };
	uint64_t start = map.start, end = map.end, vaddr;
	struct copy_place p[8];

	(void)state;
	assert_true(copy_file_part(both, 2, &map, &start, &end, &vaddr));
	assert_int_equal(vaddr, 0x6a20);
	assert_int_equal(start, AT + 0x6a20);
	assert_int_equal(end, AT + 0x8220);
	assert_int_equal(pieces(both, 2, AT + 0x1000, 0x1000, AT + 0x6000, AT + 0x9000, p), 1);
	assert_int_equal(p[0].start, AT + 0x6000);
	assert_int_equal(p[0].end, AT + 0x9000);
	assert_int_equal(p[0].vaddr, 0x6000);
}

/* ---- what lines of maps say ---- */

/* Takes lines, "" apart, and prints of each whether it led to a file, and the doubtful one. */
static void take(const char *const *lines, char *said, size_t said_sz)
{
	struct beside b;
	struct beside_found found;
	char text[256];

	beside__init(&b);
	*said = '\0';
	for (; *lines; lines++) {
		struct proc_maps_line line;
		size_t len = strlen(said);

		snprintf(text, sizeof(text), "%s", *lines);
		assert_true(proc_maps_parse(text, &line));
		beside__take(&b, &line, &found);
		snprintf(said + len, said_sz - len, "%s%s;",
			 found.file ? found.file->file.path : "", found.doubtful ? "!" : "");
	}
}

static void test_beside(void **state)
{
	char said[512];

	(void)state;
	/* the first file below, and the first above; others are of no interest */
	take((const char *const[]){ "1000-2000 r--p 00000000 fe:00 1 /a",
				    "2000-3000 r--p 00000000 fe:00 2 /b",
				    "3000-4000 r-xp 00000000 00:00 0 ",
				    "4000-5000 rwxp 00000000 00:00 0 [anon:x]",
				    "5000-6000 rw-p 00000000 00:00 0 [heap]",
				    "6000-7000 rw-p 00001000 fe:00 3 /c",
				    "7000-8000 rw-p 00001000 fe:00 4 /d", NULL },
	     said, sizeof(said));
	assert_string_equal(said, ";;/b;/b;;/c;;");
	/* shared memory is memory; what the kernel lends is no file */
	take((const char *const[]){ "1000-2000 r-xp 00000000 00:01 9 /memfd:text (deleted)",
				    "2000-3000 r-xp 00000000 00:01 9 /anon_hugepage (deleted)",
				    "3000-4000 r-xp 00000000 00:00 0 [vdso]",
				    "4000-5000 r--p 00000000 fe:00 1 /a", NULL },
	     said, sizeof(said));
	assert_string_equal(said, ";;;/a;");
	/* a file in the middle of another */
	take((const char *const[]){ "1000-2000 r--p 00000000 fe:00 1 /a",
				    "2000-3000 r-xp 00000000 00:10 7 /dev/hugepages/x (deleted)",
				    "3000-4000 r--p 00003000 fe:00 1 /a", NULL },
	     said, sizeof(said));
	assert_string_equal(said, ";;/a!;");
	/* libraries one behind the other are none, and data in between is no code */
	take((const char *const[]){ "1000-2000 r-xp 00000000 fe:00 1 /a",
				    "2000-3000 r-xp 00000000 fe:00 2 /b",
				    "3000-4000 r-xp 00000000 fe:00 3 /c",
				    "4000-5000 r--p 00000000 fe:00 4 /d",
				    "5000-6000 r--p 00001000 fe:00 3 /c", NULL },
	     said, sizeof(said));
	assert_string_equal(said, ";;;;;");
}

/* A path that is longer than any that can be opened is no file. */
static void test_beside_long(void **state)
{
	static char path[PATH_MAX + 100], text[PATH_MAX + 200];
	struct beside b;
	struct beside_found found;
	struct proc_maps_line line;

	(void)state;
	beside__init(&b);
	memset(path, 'x', sizeof(path) - 1);
	snprintf(text, sizeof(text), "1000-2000 r--p 00000000 fe:00 1 /%s", path);
	assert_true(proc_maps_parse(text, &line));
	beside__take(&b, &line, &found);
	strcpy(text, "2000-3000 r-xp 00000000 00:00 0 ");
	assert_true(proc_maps_parse(text, &line));
	beside__take(&b, &line, &found);
	assert_null(found.file);
}

/* ---- processes ---- */

static struct procs *ps;
static struct objects *objects;
static struct copies *copies;

static uint32_t object_of(void *ctx, uint32_t proc, const struct proc_map *map)
{
	const struct proc_file *f = procs__file(ps, map->file);
	int fd;

	(void)ctx;
	if (f->kind != PROC_FILE_REGULAR)
		return OBJECTS_NONE;
	fd = procs__open(ps, objects, proc, map);
	return fd < 0 ? OBJECTS_NONE : objects__add(objects, fd, f->path);
}

static int setup(void **state)
{
	(void)state;
	if (!toolrun("rm -rf proc && mkdir proc"))
		return 1;
	ps = procs__new(toolrun_path("proc"));
	objects = objects__new();
	copies = ps && objects ? copies__new(ps, objects, object_of, NULL) : NULL;
	return !copies;
}

static int teardown(void **state)
{
	(void)state;
	copies__free(copies);
	objects__free(objects);
	procs__free(ps);
	return 0;
}

#define PID 10
#define TEXT_SZ (4ULL << 20) /* more than what is compared at first */
#define ZEROS "zeros"
#define PROG "prog"

/* A program with so much code, no two pages of which are the same. */
static void make_program(const char *name, const char *fill)
{
	char text[512];
	int n = snprintf(
		text, sizeof(text),
		".globl _start\n_start:\n.set i, 0\n.rept %llu\n.fill 511, 8, %s\n"
		".quad i\n.set i, i + 1\n.endr\n.section .rodata\n.quad 1\n.data\n.quad 2\n",
		TEXT_SZ / PG, fill);

	if (!access(toolrun_path(name), F_OK))
		return;
	toolrun_write("prog.s", text, n);
	assert_true(
		toolrun("gcc -nostdlib -static -no-pie -Wl,-z,separate-code -o %s prog.s", name));
}

/* A process that has mapped the program, but its code, which is memory from `hole` to the end of
 * it. Returns the code's place in it. */
static struct proc_map make_process(const char *name, uint64_t hole, const char *memory,
				    const char *more)
{
	const char *path = toolrun_path(name);
	struct proc_map code = {};
	struct elf_file *elf;
	int fd = open(path, O_RDONLY);
	const struct elf_segment *s;
	struct stat st;
	size_t cnt;
	FILE *f;

	assert_true(fd >= 0 && !fstat(fd, &st));
	assert_true(toolrun("mkdir -p proc/%d", PID));
	f = fopen(toolrun_path("proc/10/stat"), "w");
	fprintf(f, "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n", PID);
	fclose(f);
	f = fopen(toolrun_path("proc/10/maps"), "w");
	elf = elf_file__open(fd);
	assert_non_null(elf);
	s = elf_file__segments(elf, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		uint64_t start = s[i].vaddr & ~(PG - 1), end = s[i].vaddr + s[i].filesz;
		uint64_t file_end = s[i].exec ? MIN(start + hole, end) : end;

		end = (end + PG - 1) & ~(PG - 1);
		file_end = (file_end + PG - 1) & ~(PG - 1);
		if (file_end > start)
			fprintf(f, "%" PRIx64 "-%" PRIx64 " r-%cp %llx %x:%x %lu %s\n", start,
				file_end, s[i].exec ? 'x' : '-', s[i].offset & ~(PG - 1),
				major(st.st_dev), minor(st.st_dev), st.st_ino, path);
		if (!s[i].exec)
			continue;
		code = (struct proc_map){ .start = start,
					  .end = end,
					  .offset = s[i].offset & ~(PG - 1) };
		if (file_end < end)
			fprintf(f, "%" PRIx64 "-%" PRIx64 " r-xp %s\n", file_end, end, memory);
	}
	fputs(more, f);
	fclose(f);
	elf_file__free(elf);
	close(fd);
	return code;
}

/* Writes n bytes of the file at offset to the memory of the process. */
static void fill_memory(const char *name, uint64_t offset, uint64_t addr, size_t n)
{
	assert_true(
		toolrun("dd if=%s of=proc/%d/mem bs=4096 iflag=skip_bytes,count_bytes "
			"oflag=seek_bytes skip=%" PRIu64 " seek=%" PRIu64
			" count=%zu conv=notrunc status=none",
			name, PID, offset, addr, n));
}

static void poke(uint64_t addr, uint8_t byte)
{
	int fd = open(toolrun_path("proc/10/mem"), O_WRONLY);

	assert_int_equal(pwrite(fd, &byte, 1, (off_t)addr), 1);
	close(fd);
}

static uint32_t read_process(void)
{
	uint32_t proc = procs__add(ps, PID, 1, 5 * TICK, "x", false, 0);

	assert_int_equal(procs__read_maps(ps, proc, 0), 0);
	return proc;
}

#define MEMORY "00000000 00:00 0"

/* The program, all of its code copied. Its process has been read and settled. */
static uint32_t copied(const char *name, struct proc_map *ret_code)
{
	uint32_t proc;

	*ret_code = make_process(name, 0, MEMORY, "");
	assert_true(toolrun("rm -f proc/%d/mem", PID));
	fill_memory(name, ret_code->offset, ret_code->start, ret_code->end - ret_code->start);
	proc = read_process();
	assert_int_equal(procs__map_at(ps, proc, ret_code->start)->copy, PROC_MAP_MAYBE_COPY);
	assert_int_equal(copies__settle(copies, proc), 0);
	return proc;
}

static void need_copy(uint32_t proc, uint64_t addr, uint64_t offset)
{
	const struct proc_map *m = procs__map_at(ps, proc, addr);

	assert_non_null(m);
	assert_int_equal(m->copy, PROC_MAP_COPY);
	assert_int_equal(m->offset + (addr - m->start), offset);
	assert_string_equal(procs__file(ps, m->file)->path, toolrun_path(PROG));
}

static void need_memory(uint32_t proc, uint64_t addr, enum proc_map_copy how)
{
	const struct proc_map *m = procs__map_at(ps, proc, addr);

	assert_non_null(m);
	assert_int_equal(m->copy, how);
	assert_int_equal(procs__file(ps, m->file)->kind, PROC_FILE_ANON);
}

static void need_stats(uint64_t proved, uint64_t differ, uint64_t unread)
{
	struct copies_stats s;

	copies__stats(copies, &s);
	assert_int_equal(s.proved, proved);
	assert_int_equal(s.differ, differ);
	assert_int_equal(s.unread, unread);
}

static bool vouched(uint32_t proc, uint64_t addr)
{
	return copies__vouch(copies, proc, &addr, 1, util_monotonic_ns()) == 1;
}

static void test_copied(void **state)
{
	struct proc_map code;
	uint32_t proc, gen;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	proc = copied(PROG, &code);
	need_copy(proc, code.start, code.offset);
	need_copy(proc, code.end - 1, code.offset + (code.end - code.start) - 1);
	need_stats(1, 0, 0);
	for (uint64_t addr = code.start; addr < code.end; addr += PG)
		assert_true(vouched(proc, addr + 8));
	/* maps does not tell of it, and it is one all the same */
	gen = procs__space(ps, proc)->gen;
	assert_int_equal(procs__read_maps(ps, proc, 0), 0);
	need_copy(proc, code.start, code.offset);
	assert_int_equal(procs__space(ps, proc)->gen, gen);
	assert_int_equal(copies__settle(copies, proc), 0);
	need_stats(1, 0, 0);
	assert_int_equal(procs__space(ps, proc)->gen, gen);
}

/* Only the end of it, in a file of no contents that are known, or in shared memory. */
static void test_part(void **state)
{
	static const char *const memories[] = { MEMORY, "00000000 00:01 77 /memfd:x (deleted)",
						"00000000 00:00 0 [anon:text]",
						"00000000 00:10 78 /dev/hugepages/x (deleted)" };

	(void)state;
	make_program(PROG, "0x1122334455667788");
	for (size_t i = 0; i < ARRAY_SIZE(memories); i++) {
		uint64_t hole = 37 * PG;
		struct proc_map code = make_process(PROG, hole, memories[i], "");
		uint32_t proc;

		assert_true(toolrun("rm -f proc/%d/mem", PID));
		fill_memory(PROG, code.offset, code.start, code.end - code.start);
		proc = read_process();
		assert_int_equal(copies__settle(copies, proc), 0);
		assert_int_equal(procs__map_at(ps, proc, code.start)->copy, PROC_MAP_AS_IS);
		need_copy(proc, code.start + hole, code.offset + hole);
		need_stats(i + 1, 0, 0);
		copies__forget(copies, proc);
		procs__remove(ps, proc);
	}
}

/* One byte at the end is another: nothing of it is a copy, until it is announced anew. */
static void test_differs(void **state)
{
	const struct proc_file memory = { .kind = PROC_FILE_ANON, .path = (char *)"" };
	struct proc_map code;
	uint32_t proc;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	code = make_process(PROG, 0, MEMORY, "");
	assert_true(toolrun("rm -f proc/%d/mem", PID));
	fill_memory(PROG, code.offset, code.start, code.end - code.start);
	poke(code.start + TEXT_SZ - 1, 0xaa);
	proc = read_process();
	assert_int_equal(copies__settle(copies, proc), 0);
	need_memory(proc, code.start, PROC_MAP_NO_COPY);
	need_stats(0, 1, 0);
	/* it is not asked again and again */
	assert_int_equal(procs__read_maps(ps, proc, 0), 0);
	assert_int_equal(copies__settle(copies, proc), 0);
	need_stats(0, 1, 0);
	/* copying it has ended: mprotect */
	fill_memory(PROG, code.offset, code.start, code.end - code.start);
	assert_int_equal(procs__on_mmap(ps, PID, util_monotonic_ns(), code.start,
					code.end - code.start, 0, &memory),
			 0);
	assert_int_equal(copies__settle(copies, proc), 0);
	need_copy(proc, code.start, code.offset);
	need_stats(1, 0, 0);
}

/* The code is being copied: that is no other code, and what comes next asks anew. */
static void test_being_filled(void **state)
{
	struct proc_map code;
	uint64_t half;
	uint32_t proc;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	code = make_process(PROG, 0, MEMORY, "");
	half = (code.end - code.start) / 2 & ~(PG - 1);
	assert_true(toolrun("rm -f proc/%d/mem; truncate -s %" PRIu64 " proc/%d/mem", PID, code.end,
			    PID));
	proc = read_process();
	for (uint64_t filled = 0; filled <= half; filled += half) {
		if (filled)
			fill_memory(PROG, code.offset, code.start, filled);
		assert_int_equal(copies__settle(copies, proc), 0);
		need_memory(proc, code.start, PROC_MAP_MAYBE_COPY);
		need_stats(0, 0, 0);
	}
	fill_memory(PROG, code.offset, code.start, code.end - code.start);
	assert_int_equal(copies__settle(copies, proc), 0);
	need_copy(proc, code.start, code.offset);
	need_stats(1, 0, 0);
}

/* What happens once it is known whether a range is a copy, and before that is said. */
static void (*when_compared)(void);

int __real_proofs__range(struct proofs *p, uint32_t proc, uint32_t object,
			 const struct proc_map *map);
int __wrap_proofs__range(struct proofs *p, uint32_t proc, uint32_t object,
			 const struct proc_map *map);

int __wrap_proofs__range(struct proofs *p, uint32_t proc, uint32_t object,
			 const struct proc_map *map)
{
	int err = __real_proofs__range(p, proc, object, map);

	if (when_compared)
		when_compared();
	return err;
}

static struct proc_map being_filled;

static void fill_all(void)
{
	fill_memory(PROG, being_filled.offset, being_filled.start,
		    being_filled.end - being_filled.start);
}

/* The same, and the last of it is there as soon as it has been found to differ. */
static void test_filled_meanwhile(void **state)
{
	uint32_t proc;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	being_filled = make_process(PROG, 0, MEMORY, "");
	assert_true(toolrun("rm -f proc/%d/mem; truncate -s %" PRIu64 " proc/%d/mem", PID,
			    being_filled.end, PID));
	proc = read_process();
	when_compared = fill_all;
	assert_int_equal(copies__settle(copies, proc), 0);
	when_compared = NULL;
	need_memory(proc, being_filled.start, PROC_MAP_MAYBE_COPY);
	assert_int_equal(copies__settle(copies, proc), 0);
	need_copy(proc, being_filled.start, being_filled.offset);
	need_stats(1, 0, 0);
}

/* Other code takes the place of a copy while it is watched, and of one page of it. */
static void test_replaced(void **state)
{
	const struct proc_file memory = { .kind = PROC_FILE_ANON, .path = (char *)"" };
	struct proc_map code;
	uint64_t page, at;
	uint32_t proc;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	proc = copied(PROG, &code);
	page = code.start + 100 * PG;
	at = util_monotonic_ns();
	poke(page + 17, 0xaa);
	assert_int_equal(procs__on_mmap(ps, PID, at, page, PG, 0, &memory), 0);
	/* samples from before are not named by it, nor by the file, which cannot be asked any more
	 */
	assert_int_equal(procs__file(ps, procs__map_at_time(ps, proc, page, at - 1)->file)->kind,
			 PROC_FILE_ANON);
	assert_int_equal(copies__settle(copies, proc), 0);
	need_memory(proc, page, PROC_MAP_NO_COPY);
	need_copy(proc, page - 1, code.offset + 100 * PG - 1);
	need_copy(proc, page + PG, code.offset + 101 * PG);
	need_stats(2, 1, 0);
	assert_false(procs__map_at(ps, proc, page)->end > page + PG);
	assert_true(vouched(proc, page));
}

/* What was not compared at first is compared before it is named. */
static void test_changed_later(void **state)
{
	struct copies_stats stats;
	struct proc_map code;
	size_t bad = 0;
	uint32_t proc;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	proc = copied(PROG, &code);
	for (uint64_t addr = code.start; addr < code.end; addr += PG)
		poke(addr + 4000, 0xaa);
	for (uint64_t addr = code.start; addr < code.end; addr += PG) {
		(void)vouched(proc, addr + 1);
		if (procs__map_at(ps, proc, addr)->copy == PROC_MAP_COPY)
			need_copy(proc, addr, code.offset + (addr - code.start));
		else
			need_memory(proc, addr, PROC_MAP_NO_COPY);
		bad += procs__map_at(ps, proc, addr)->copy != PROC_MAP_COPY;
		/* nothing is claimed any more that is not so */
		assert_true(vouched(proc, addr + 1));
	}
	/* 16 windows of 16 pages were compared in time */
	assert_true(bad >= TEXT_SZ / PG - 256);
	copies__stats(copies, &stats);
	assert_int_equal(stats.differ, bad);
}

/* A frame of one that is not known to be a copy any more is told from those before it. */
static void test_vouch_stack(void **state)
{
	uint64_t frames[2], addr;
	struct proc_map code;
	uint32_t proc;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	proc = copied(PROG, &code);
	for (addr = code.start; addr < code.end; addr += PG)
		poke(addr + 4000, 0xaa);
	frames[0] = code.start + 8;
	for (addr = code.start; addr < code.end; addr += PG) {
		frames[1] = addr;
		if (copies__vouch(copies, proc, frames, 2, util_monotonic_ns()) == 1)
			break;
	}
	assert_true(addr < code.end);
	need_memory(proc, addr, PROC_MAP_NO_COPY);
	/* from now on it is memory, of which nothing is claimed */
	assert_int_equal(copies__vouch(copies, proc, frames, 2, util_monotonic_ns()), 2);
}

/* A page that is still a copy is in a window with others that are not: their ranges are taken out while the stack is looked at. */
static void test_vouch_beside_others(void **state)
{
	size_t dropped = 0;
	struct proc_map code;
	uint64_t addr;
	uint32_t proc;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	proc = copied(PROG, &code);
	for (addr = code.start; addr < code.end; addr += PG)
		if ((addr - code.start) / PG % 4)
			poke(addr + 4000, 0xaa);
	for (addr = code.start; addr < code.end; addr += 4 * PG) {
		const uint64_t frames[] = { addr + 8, addr + 16, addr + 24 };

		assert_int_equal(copies__vouch(copies, proc, frames, 3, util_monotonic_ns()), 3);
		need_copy(proc, addr, code.offset + (addr - code.start));
		dropped += procs__map_at(ps, proc, addr + PG)->copy == PROC_MAP_NO_COPY;
	}
	/* but for what was compared at first */
	assert_true(dropped > 0);
}

/* The process has ended before it could be compared: nothing is named by guess. */
static void test_gone(void **state)
{
	size_t unread = 0;
	struct copies_stats stats;
	struct proc_map code;
	uint32_t proc;

	(void)state;
	make_program(PROG, "0x1122334455667788");
	proc = copied(PROG, &code);
	assert_true(toolrun("mv proc/%d proc/gone", PID));
	for (uint64_t addr = code.start; addr < code.end; addr += PG)
		unread += !vouched(proc, addr);
	copies__stats(copies, &stats);
	assert_true(unread && stats.unread == unread && !stats.differ);
	/* nor before anything was */
	copies__forget(copies, proc);
	procs__remove(ps, proc);
	assert_true(toolrun("mv proc/gone proc/%d", PID));
	proc = read_process();
	assert_true(toolrun("mv proc/%d/mem mem", PID));
	assert_int_equal(copies__settle(copies, proc), 0);
	need_memory(proc, code.start, PROC_MAP_UNREAD);
	copies__stats(copies, &stats);
	assert_int_equal(stats.unread, unread + 1);
	assert_int_equal(stats.differ, 0);
}

/* Code that is gaps only says nothing of where it comes from. */
static void test_gaps(void **state)
{
	static const char zeros[] = ".globl _start\n_start: .fill 8192, 1, 0\n";
	struct proc_map code;
	uint32_t proc;

	(void)state;
	toolrun_write("prog.s", zeros, strlen(zeros));
	assert_true(
		toolrun("gcc -nostdlib -static -no-pie -Wl,-z,separate-code -o " ZEROS " prog.s"));
	code = make_process(ZEROS, 0, MEMORY, "");
	assert_true(toolrun("rm -f proc/%d/mem && truncate -s 16M proc/%d/mem", PID, PID));
	proc = read_process();
	assert_int_equal(copies__settle(copies, proc), 0);
	need_memory(proc, code.start, PROC_MAP_NO_COPY);
	need_stats(0, 1, 0);
}

#define ELSEWHERE 0x10000000ULL

/* A second copy, of a part of the code, which ends within its last page. */
static void test_moved(void **state)
{
	uint64_t from = 300 * PG, sz = 300 * PG;
	struct proc_map code;
	uint32_t proc;
	char more[128];

	(void)state;
	make_program(PROG, "0x1122334455667788");
	snprintf(more, sizeof(more),
		 "%llx-%llx r-xp 00000000 00:00 0\n%llx-%llx rwxp 00000000 00:00 0\n", ELSEWHERE,
		 ELSEWHERE + sz, 2 * ELSEWHERE, 2 * ELSEWHERE + sz);
	code = make_process(PROG, 0, MEMORY, more);
	assert_true(toolrun("rm -f proc/%d/mem && truncate -s 1G proc/%d/mem", PID, PID));
	fill_memory(PROG, code.offset, code.start, code.end - code.start);
	fill_memory(PROG, code.offset + from, ELSEWHERE, sz - 100);
	/* code of another making: as its first page, but not more */
	fill_memory(PROG, code.offset + 700 * PG, 2 * ELSEWHERE, PG);
	proc = read_process();
	assert_int_equal(copies__settle(copies, proc), 0);
	need_copy(proc, code.start, code.offset);
	need_copy(proc, ELSEWHERE, code.offset + from);
	need_copy(proc, ELSEWHERE + sz - PG - 1, code.offset + from + sz - PG - 1);
	need_memory(proc, ELSEWHERE + sz - PG, PROC_MAP_AS_IS);
	need_memory(proc, 2 * ELSEWHERE, PROC_MAP_AS_IS);
	need_stats(2, 0, 0);
}

#define HOLE (100ULL << 20)
#define REST (2ULL << 20)
#define HOLES_AT 0x400000ULL

/* A program with so many segments of code that are holes in its file, between a page of headers and
 * REST bytes of code, all other ones. Returns where those are in the file. */
static uint64_t make_holes(size_t holes)
{
	uint64_t at = 0, sz = PG;
	Elf64_Ehdr eh = { .e_ident = ELFMAG "\x02\x01\x01",
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = holes + 2 };
	FILE *f = fopen(toolrun_path("holes"), "w");

	fwrite(&eh, sizeof(eh), 1, f);
	for (size_t i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph = { .p_type = PT_LOAD, .p_flags = i ? PF_R | PF_X : PF_R };

		at += i ? sz : 0;
		sz = !i ? PG : i <= holes ? HOLE : REST;
		ph.p_offset = at;
		ph.p_vaddr = HOLES_AT + at;
		ph.p_filesz = ph.p_memsz = sz;
		fwrite(&ph, sizeof(ph), 1, f);
	}
	fseek(f, (long)at, SEEK_SET);
	for (uint64_t i = 0; i < REST; i += sizeof(i))
		fwrite(&i, sizeof(i), 1, f);
	assert_int_equal(fclose(f), 0);
	return at;
}

/* Its process has copied the code at the end, and half of that once more. */
static uint32_t with_holes(size_t holes)
{
	uint64_t rest = make_holes(holes), more = 0x40000000, at = HOLES_AT;
	struct stat st;
	FILE *f;

	make_program(PROG, "0x1122334455667788");
	/* whose maps are other ones then */
	(void)make_process(PROG, 0, MEMORY, "");
	assert_int_equal(stat(toolrun_path("holes"), &st), 0);
	f = fopen(toolrun_path("proc/10/maps"), "w");
	fprintf(f, "%" PRIx64 "-%" PRIx64 " r--p 0 %x:%x %lu ", at, at + (uint64_t)PG,
		major(st.st_dev), minor(st.st_dev), st.st_ino);
	fprintf(f, "%s\n", toolrun_path("holes"));
	fprintf(f, "%" PRIx64 "-%" PRIx64 " r-xp " MEMORY "\n", at + rest,
		at + rest + (uint64_t)REST);
	fprintf(f, "%" PRIx64 "-%" PRIx64 " r-xp " MEMORY "\n", more, more + (uint64_t)(REST / 2));
	fclose(f);
	assert_true(toolrun("rm -f proc/%d/mem", PID));
	fill_memory("holes", rest, at + rest, REST);
	fill_memory("holes", rest, more, REST / 2);
	return read_process();
}

/* A file can claim to have code without end: it is not searched through for ever. */
static void test_search_ends(void **state)
{
	static const struct {
		size_t holes, found;
	} cases[] = { { 1, 2 }, { 4, 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (i) {
			teardown(state);
			setup(state);
		}
		assert_int_equal(copies__settle(copies, with_holes(cases[i].holes)), 0);
		need_stats(cases[i].found, 0, 0);
	}
}

#define GENERATED_SZ (300 * PG)

/* A process that has filled a range itself, from ELSEWHERE on; *code: its program's. */
static uint32_t generated(struct proc_map *code)
{
	char more[128];

	make_program(PROG, "0x1122334455667788");
	snprintf(more, sizeof(more), "%llx-%llx r-xp 00000000 00:00 0\n", ELSEWHERE,
		 ELSEWHERE + GENERATED_SZ);
	*code = make_process(PROG, TEXT_SZ, "", more);
	assert_true(toolrun("rm -f proc/%d/mem", PID));
	fill_memory(PROG, code->offset, ELSEWHERE, GENERATED_SZ);
	return read_process();
}

/* Memory of a process that has copied nothing: its own code, wherever it lies, and whatever it
 * looks like. */
static void test_generated(void **state)
{
	struct proc_map code;
	uint8_t bytes[8];
	uint32_t proc = generated(&code);

	(void)state;
	need_memory(proc, ELSEWHERE, PROC_MAP_MAYBE_COPY);
	assert_int_equal(copies__settle(copies, proc), 0);
	need_memory(proc, ELSEWHERE, PROC_MAP_AS_IS);
	assert_int_equal(procs__map_at(ps, proc, code.start)->copy, PROC_MAP_AS_IS);
	need_stats(0, 0, 0);
	assert_true(vouched(proc, ELSEWHERE));
	/* it can be read, but where nothing is any more */
	assert_int_equal(copies__read(copies, proc, ELSEWHERE, bytes, sizeof(bytes)), 0);
	assert_int_equal(copies__read(copies, proc, ELSEWHERE - PG, bytes, sizeof(bytes)),
			 -ENODATA);
	assert_true(copies__read(copies, proc, ELSEWHERE + GENERATED_SZ, bytes, sizeof(bytes)) < 0);
}

/* Code that a stack leads through, again and again: a page is read once, and no more than some of them. */
static void test_looks(void **state)
{
	struct proc_map code;
	uint8_t bytes[8], truth[8];
	uint32_t proc = generated(&code);
	size_t some = 0;
	uint64_t addr;

	(void)state;
	copies__begin_looks(copies);
	/* over the end of a page */
	for (addr = ELSEWHERE + PG - 16; addr < ELSEWHERE + PG + 16; addr++) {
		int err = copies__read(copies, proc, addr, truth, sizeof(truth));

		some += !err;
		assert_int_equal(copies__look(copies, proc, addr, bytes, sizeof(bytes)), err);
		assert_memory_equal(bytes, truth, sizeof(bytes));
	}
	assert_true(some > 0);
	assert_int_equal(copies__look(copies, proc, ELSEWHERE - PG, bytes, sizeof(bytes)),
			 -ENODATA);
	/* those three, and so many more, whatever is there */
	for (addr = 3; addr < COPIES_LOOKS; addr++)
		assert_int_not_equal(copies__look(copies, proc, ELSEWHERE + addr * PG, bytes, 8),
				     -EBUSY);
	assert_int_equal(copies__look(copies, proc, ELSEWHERE + addr * PG, bytes, 8), -EBUSY);
	/* as it is now */
	assert_int_equal(copies__read(copies, proc, ELSEWHERE, bytes, sizeof(bytes)), 0);
	poke(ELSEWHERE, bytes[0] + 1);
	copies__begin_looks(copies);
	assert_int_equal(copies__look(copies, proc, ELSEWHERE, bytes + 7, 1), 0);
	assert_int_equal(bytes[7], (uint8_t)(bytes[0] + 1));
}

/* ---- events ---- */

static const struct proc_file memory = { .kind = PROC_FILE_ANON, .path = (char *)"" };
static const struct proc_file prog = { .kind = PROC_FILE_REGULAR, .path = (char *)"/p", .ino = 1 };
static const struct proc_file lib = { .kind = PROC_FILE_REGULAR, .path = (char *)"/l", .ino = 2 };

static void mmap_event(uint32_t pid, uint64_t time, uint64_t start, uint64_t end,
		       const struct proc_file *f)
{
	assert_int_equal(procs__on_mmap(ps, pid, time, start, end - start, start, f), 0);
}

static void test_events(void **state)
{
	uint32_t proc = procs__add(ps, 20, 1, TICK, "x", false, 0), child;

	(void)state;
	/* code that a program makes is no question */
	mmap_event(20, 10, 0x1000, 0x9000, &prog);
	mmap_event(20, 11, 0x20000, 0x30000, &memory);
	mmap_event(20, 12, 0x20000, 0x40000, &memory);
	mmap_event(20, 12, 0x1000000, 0x1000000 + COPY_MIN_MOVED / 2, &memory);
	need_memory(proc, 0x20000, PROC_MAP_AS_IS);
	need_memory(proc, 0x1000000, PROC_MAP_AS_IS);
	assert_int_equal(procs__space(ps, proc)->beside_cnt, 0);
	/* it takes the place of a file's: that is remembered, once */
	mmap_event(20, 13, 0x3000, 0x5000, &memory);
	mmap_event(20, 14, 0x3000, 0x5000, &memory);
	need_memory(proc, 0x3000, PROC_MAP_MAYBE_COPY);
	assert_int_equal(procs__map_at(ps, proc, 0x2fff)->copy, PROC_MAP_AS_IS);
	assert_int_equal(procs__space(ps, proc)->beside_cnt, 1);
	assert_int_equal(procs__space(ps, proc)->beside[0].start, 0x1000);
	assert_int_equal(procs__space(ps, proc)->beside[0].end, 0x9000);
	/* from then on large memory may be a second copy */
	mmap_event(20, 15, 0x1000000, 0x1000000 + COPY_MIN_MOVED, &memory);
	mmap_event(20, 16, 0x2000000, 0x2000000 + COPY_MIN_MOVED - PG, &memory);
	need_memory(proc, 0x1000000, PROC_MAP_MAYBE_COPY);
	need_memory(proc, 0x2000000, PROC_MAP_AS_IS);
	/* children have what their parents had */
	assert_int_equal(procs__on_fork(ps, 21, 20, 20), 0);
	child = procs__find_live(ps, 21);
	need_memory(child, 0x3000, PROC_MAP_MAYBE_COPY);
	assert_int_equal(procs__space(ps, child)->beside_cnt, 1);
	/* a library in the place of another is told apart by its headers */
	mmap_event(20, 30, 0x6000, 0x7000, &lib);
	assert_int_equal(procs__map_at(ps, proc, 0x6000)->copy, PROC_MAP_MAYBE_COPY);
	/* no end of them */
	for (uint64_t i = 0; i < 3 * PROCS_MAX_BESIDE; i++) {
		mmap_event(20, 40 + 2 * i, 0x100000 + i * PG, 0x101000 + i * PG, &prog);
		mmap_event(20, 41 + 2 * i, 0x100000 + i * PG, 0x101000 + i * PG, &memory);
	}
	assert_int_equal(procs__space(ps, proc)->beside_cnt, PROCS_MAX_BESIDE);
	/* what was one and is none */
	mmap_event(20, 1000, 0x3000, 0x5000, &prog);
	assert_int_equal(procs__map_at(ps, proc, 0x3000)->copy, PROC_MAP_AS_IS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_two_codes),
		cmocka_unit_test(test_many_segments),
		cmocka_unit_test(test_hostile_segments),
		cmocka_unit_test(test_file_part),
		cmocka_unit_test(test_shared_page),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_beside_long),
		TEST(test_copied),
		TEST(test_part),
		TEST(test_differs),
		TEST(test_being_filled),
		TEST(test_filled_meanwhile),
		TEST(test_replaced),
		TEST(test_changed_later),
		TEST(test_vouch_stack),
		TEST(test_vouch_beside_others),
		TEST(test_gone),
		TEST(test_gaps),
		TEST(test_moved),
		TEST(test_search_ends),
		TEST(test_generated),
		TEST(test_looks),
		TEST(test_events),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
