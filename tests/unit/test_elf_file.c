/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_file against readelf and objcopy, and against damaged files. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "toolrun.h"
#include "truth.h"

static const char self[] = "/proc/self/exe";

static struct elf_file *open_path(const char *path, int *ret_fd)
{
	struct elf_file *e;

	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(*ret_fd >= 0);
	e = elf_file__open(*ret_fd);
	assert_non_null(e);
	return e;
}

static void close_both(struct elf_file *e, int fd)
{
	elf_file__free(e);
	close(fd);
}

static void test_segments(void **state)
{
	const struct elf_segment *s;
	char line[512], flags[16];
	size_t cnt, n = 0;
	struct elf_file *e;
	FILE *f;
	int fd;

	(void)state;
	e = open_path(self, &fd);
	s = elf_file__segments(e, &cnt);
	f = toolrun_open("readelf -lW /proc/%d/exe", getpid());
	while (fgets(line, sizeof(line), f)) {
		uint64_t off, vaddr, filesz, memsz;

		if (sscanf(line,
			   " LOAD %" SCNx64 " %" SCNx64 " %*x %" SCNx64 " %" SCNx64 " %15[RWE ]",
			   &off, &vaddr, &filesz, &memsz, flags) != 5)
			continue;
		assert_true(n < cnt);
		assert_int_equal(s[n].offset, off);
		assert_int_equal(s[n].vaddr, vaddr);
		assert_int_equal(s[n].filesz, filesz);
		assert_int_equal(s[n].memsz, memsz);
		assert_int_equal(s[n].exec, strchr(flags, 'E') != NULL);
		n++;
	}
	pclose(f);
	assert_true(n >= 2);
	assert_int_equal(n, cnt);
	close_both(e, fd);
}

static void test_sections(void **state)
{
	char line[512], name[128], type[32];
	struct elf_section s;
	struct elf_file *e;
	size_t n = 0;
	FILE *f;
	int fd;

	(void)state;
	e = open_path(self, &fd);
	f = toolrun_open("readelf -SW /proc/%d/exe | sed 's/\\[ */[/'", getpid());
	while (fgets(line, sizeof(line), f)) {
		uint64_t addr, off, size;
		unsigned int idx;

		if (sscanf(line, " [%u] %127s %31s %" SCNx64 " %" SCNx64 " %" SCNx64, &idx, name,
			   type, &addr, &off, &size) != 6 ||
		    !idx)
			continue;
		assert_int_equal(elf_file__section(e, name, &s), strcmp(type, "NOBITS") != 0);
		assert_true(elf_file__section_by_index(e, idx, &s));
		assert_int_equal(s.addr, addr);
		assert_int_equal(s.offset, off);
		assert_int_equal(s.size, size);
		n++;
	}
	pclose(f);
	assert_true(n > 10);
	assert_false(elf_file__section(e, ".nonesuch", &s));
	assert_false(elf_file__section_by_index(e, 0, &s));
	assert_false(elf_file__section_by_index(e, 100000, &s));
	close_both(e, fd);
}

static void check_build_id(const struct elf_file *e)
{
	char line[256], want[160] = "", have[160] = "";
	size_t sz, i;
	const uint8_t *id = elf_file__build_id(e, &sz);
	FILE *f = toolrun_open("readelf -n /proc/%d/exe", getpid());

	while (fgets(line, sizeof(line), f))
		sscanf(line, " Build ID: %159s", want);
	pclose(f);
	for (i = 0; i < sz; i++)
		sprintf(have + 2 * i, "%02x", id[i]);
	assert_string_equal(have, want);
}

static void test_build_id(void **state)
{
	struct elf_file *e;
	int fd;

	(void)state;
	e = open_path(self, &fd);
	check_build_id(e);
	close_both(e, fd);
}

static void test_no_section_headers(void **state)
{
	struct elf_section s;
	struct elf_file *e;
	size_t sz, cnt;
	Elf64_Ehdr *eh;

	(void)state;
	eh = toolrun_read(self, &sz);
	eh->e_shoff = 0;
	eh->e_shnum = eh->e_shstrndx = 0;
	e = elf_file__open_memory(eh, sz);
	assert_non_null(e);
	assert_false(elf_file__section(e, ".text", &s));
	elf_file__segments(e, &cnt);
	assert_true(cnt >= 2);
	check_build_id(e);
	elf_file__free(e);
	free(eh);
}

/* Every byte of an executable segment: its offset leads to its address, and both to the same bytes.
 */
static void test_vaddr(void **state)
{
	const struct elf_segment *s;
	uint8_t a[16], b[16];
	uint64_t vaddr, i;
	struct elf_file *e;
	size_t cnt, k;
	int fd;

	(void)state;
	e = open_path(self, &fd);
	s = elf_file__segments(e, &cnt);
	for (k = 0; k < cnt; k++) {
		for (i = 0; i + sizeof(a) < s[k].filesz; i += 997) {
			assert_int_equal(elf_file__read(e, s[k].offset + i, a, sizeof(a)), 0);
			assert_int_equal(elf_file__read_vaddr(e, s[k].vaddr + i, b, sizeof(b)), 0);
			assert_memory_equal(a, b, sizeof(a));
			if (s[k].exec) {
				assert_true(truth_vaddr(e, s[k].offset + i, &vaddr));
				assert_int_equal(vaddr, s[k].vaddr + i);
			}
		}
		assert_int_equal(
			elf_file__read_vaddr(e, s[k].vaddr + s[k].filesz, b, 1),
			k + 1 < cnt && s[k + 1].vaddr == s[k].vaddr + s[k].filesz ? 0 : -ENODATA);
	}
	assert_false(truth_vaddr(e, 1ULL << 40, &vaddr));
	assert_int_equal(elf_file__read(e, 1ULL << 40, a, 1), -ENODATA);
	assert_int_equal(elf_file__read(e, UINT64_MAX, a, 8), -ENODATA);
	assert_int_equal(elf_file__read_vaddr(e, UINT64_MAX - 3, a, 8), -ENODATA);
	close_both(e, fd);
}

/* Two segments of code with a page in common: mappings of either, whole or cut. */
static void test_shared_page(void **state)
{
	static const struct elf_segment both[] = {
		{ .vaddr = 0x1000, .offset = 0x1000, .filesz = 0x4a20, .exec = true },
		{ .vaddr = 0x6a20, .offset = 0x5a20, .filesz = 0x1800, .exec = true },
		{ .vaddr = 0x9220, .offset = 0x7220, .filesz = 0x100, .exec = true },
	};
	static const struct {
		uint64_t offset, sz, vaddr;
	} maps[] = {
		{ 0x1000, 0x5000, 0x1000 },
		{ 0x1000, 0x4000, 0x1000 },
		{ 0x5000, 0x3000, 0x6000 },
		{ 0x5000, 0x2000, 0x6000 },
		{ 0x6000, 0x2000, 0x7000 },
		/* whole, of one page */
		{ 0x7000, 0x1000, 0x9000 },
		/* it may be of either: whose byte is the first */
		{ 0x5000, 0x1000, 0x5000 },
		/* bytes */
		{ 0x5000, 0, 0x5000 },
		{ 0x5a1f, 0, 0x5a1f },
		{ 0x5a20, 0, 0x6a20 },
		{ 0x721f, 0, 0x821f },
		{ 0x7220, 0, 0x9220 },
		{ 0x7fff, 0, 0x8fff },
	};
	uint64_t vaddr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		assert_true(elf_segments__vaddr(both, ARRAY_SIZE(both), maps[i].offset, maps[i].sz,
						&vaddr));
		assert_int_equal(vaddr, maps[i].vaddr);
	}
	assert_false(elf_segments__vaddr(both, ARRAY_SIZE(both), 0x8000, 0x1000, &vaddr));
	assert_false(elf_segments__vaddr(both, ARRAY_SIZE(both), 0, 0x1000, &vaddr));
}

static void test_not_elf(void **state)
{
	static const char text[] = "#!/bin/sh\n";
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			  .e_type = ET_REL,
			  .e_machine = EM_X86_64 };
	int fd = open("/", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_null(elf_file__open(fd));
	assert_int_equal(errno, ENOEXEC);
	close(fd);
	assert_null(elf_file__open_memory(text, sizeof(text)));
	assert_int_equal(errno, ENOEXEC);
	assert_null(elf_file__open_memory(text, 0));
	assert_null(elf_file__open_memory(&eh, sizeof(eh)));
	assert_int_equal(errno, ENOEXEC);
	eh.e_type = ET_DYN;
	eh.e_ident[EI_CLASS] = ELFCLASS32;
	assert_null(elf_file__open_memory(&eh, sizeof(eh)));
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_machine = EM_AARCH64;
	assert_null(elf_file__open_memory(&eh, sizeof(eh)));
}

static void test_compressed(void **state)
{
	struct elf_section s, plain_s;
	struct elf_file *e, *plain;
	void *a, *b;
	size_t a_sz, b_sz;
	int fd, plain_fd;

	(void)state;
	if (!toolrun("objcopy --compress-debug-sections=zlib-gabi /proc/%d/exe z && objcopy "
		     "--decompress-debug-sections z plain",
		     getpid()))
		skip();
	e = open_path(toolrun_path("z"), &fd);
	plain = open_path(toolrun_path("plain"), &plain_fd);
	assert_true(elf_file__section(e, ".debug_info", &s));
	assert_true(s.flags & SHF_COMPRESSED);
	assert_true(elf_file__section(plain, ".debug_info", &plain_s));
	assert_int_equal(elf_file__read_section(e, &s, ELF_FILE_MAX_SECTION, &a, &a_sz), 0);
	assert_int_equal(elf_file__read_section(plain, &plain_s, ELF_FILE_MAX_SECTION, &b, &b_sz),
			 0);
	assert_true(a_sz > s.size);
	assert_int_equal(a_sz, b_sz);
	assert_memory_equal(a, b, a_sz);
	free(a);
	/* the limit is for what is expanded */
	assert_int_equal(elf_file__read_section(e, &s, b_sz, &a, &a_sz), 0);
	free(a);
	assert_int_equal(elf_file__read_section(e, &s, b_sz - 1, &a, &a_sz), -E2BIG);
	assert_int_equal(elf_file__read_section(plain, &plain_s, b_sz - 1, &a, &a_sz), -E2BIG);
	/* cut short: the stream ends too early */
	s.size /= 2;
	assert_int_equal(elf_file__read_section(e, &s, ELF_FILE_MAX_SECTION, &a, &a_sz), -EBADMSG);
	s.size = 3;
	assert_int_equal(elf_file__read_section(e, &s, ELF_FILE_MAX_SECTION, &a, &a_sz), -EBADMSG);
	free(b);
	close_both(e, fd);
	close_both(plain, plain_fd);
}

/* What is compressed is read behind what it becomes, as far as it may: no byte more is written. */
static void test_room(void **state)
{
	struct elf_section s;
	struct elf_file *e;
	uint8_t *got, *room;
	size_t sz, extra;
	int fd;

	(void)state;
	if (!toolrun("objcopy --compress-debug-sections=zlib-gabi /proc/%d/exe z", getpid()))
		skip();
	e = open_path(toolrun_path("z"), &fd);
	assert_true(elf_file__section(e, ".debug_info", &s));
	assert_int_equal(elf_file__read_section(e, &s, ELF_FILE_MAX_SECTION, (void **)&got, &sz),
			 0);
	assert_int_equal(elf_file__expanded_size(e, &s, false), sz);
	for (int i = 0; i < 3; i++) {
		extra = i * s.size;
		room = malloc(sz + extra + 1);
		assert_non_null(room);
		room[sz + extra] = 0xa5;
		assert_int_equal(elf_file__expand(e, &s, false, room, sz, sz + extra), 0);
		assert_memory_equal(room, got, sz);
		assert_int_equal(room[sz + extra], 0xa5);
		free(room);
	}
	free(got);
	close_both(e, fd);
}

static void test_debuglink(void **state)
{
	struct elf_section s;
	struct elf_file *e;
	char name[256], *buf;
	uint32_t crc, want = 0;
	size_t sz;
	int fd;

	(void)state;
	if (!toolrun("objcopy --only-keep-debug /proc/%d/exe x.debug && objcopy -g "
		     "--add-gnu-debuglink=x.debug /proc/%d/exe linked",
		     getpid(), getpid()))
		skip();
	e = open_path(toolrun_path("linked"), &fd);
	assert_true(elf_file__debuglink(e, name, &crc));
	assert_string_equal(name, "x.debug");
	assert_true(elf_file__section(e, ".gnu_debuglink", &s));
	assert_int_equal(elf_file__read(e, s.offset + s.size - 4, &want, 4), 0);
	assert_int_equal(crc, want);
	close_both(e, fd);
	/* a name with a way out of the folder */
	buf = toolrun_read(toolrun_path("linked"), &sz);
	buf[s.offset + 1] = '/';
	e = elf_file__open_memory(buf, sz);
	assert_false(elf_file__debuglink(e, name, &crc));
	elf_file__free(e);
	free(buf);
}

/* Asks for everything; what matters is that nothing is read that is not there (run with ASan). */
static void ask_everything(const void *data, size_t sz)
{
	static const char *const names[] = { ".text", ".symtab", ".eh_frame", ".gnu_debuglink",
					     ".debug_info" };
	struct elf_file *e = elf_file__open_memory(data, sz);
	const struct elf_segment *seg;
	struct elf_section s;
	uint64_t vaddr;
	char name[256];
	size_t i, cnt, buf_sz;
	uint32_t crc;
	void *buf;

	if (!e)
		return;
	seg = elf_file__segments(e, &cnt);
	for (i = 0; i < cnt; i++) {
		truth_vaddr(e, seg[i].offset, &vaddr);
		elf_file__read_vaddr(e, seg[i].vaddr, name, sizeof(name));
	}
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (elf_file__section(e, names[i], &s) &&
		    !elf_file__read_section(e, &s, ELF_FILE_MAX_SECTION, &buf, &buf_sz))
			free(buf);
	}
	elf_file__build_id(e, &buf_sz);
	assert_true(buf_sz <= ELF_FILE_MAX_BUILD_ID);
	elf_file__debuglink(e, name, &crc);
	elf_file__free(e);
}

static void test_damaged(void **state)
{
	size_t sz, i, k, shoff;
	uint8_t *good, *bad;

	(void)state;
	good = toolrun_read(self, &sz);
	memcpy(&shoff, good + offsetof(Elf64_Ehdr, e_shoff), 8);
	for (i = 0; i < 4096; i += 7) {
		/* an exact copy, so that ASan sees a read behind it */
		bad = malloc(i + 1);
		memcpy(bad, good, i);
		ask_everything(bad, i);
		free(bad);
	}
	srand(1);
	bad = malloc(sz);
	for (i = 0; i < 500; i++) {
		memcpy(bad, good, sz);
		for (k = 0; k < 4; k++) {
			size_t at = rand() & 1 ? (size_t)rand() % 1024 :
						 shoff + (size_t)rand() % (sz - shoff);

			bad[at] = rand() & 1 ? 0xff : rand();
		}
		ask_everything(bad, sz);
	}
	free(bad);
	free(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments), cmocka_unit_test(test_sections),
		cmocka_unit_test(test_build_id), cmocka_unit_test(test_no_section_headers),
		cmocka_unit_test(test_vaddr),	 cmocka_unit_test(test_shared_page),
		cmocka_unit_test(test_not_elf),	 cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_room),	 cmocka_unit_test(test_debuglink),
		cmocka_unit_test(test_damaged),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
