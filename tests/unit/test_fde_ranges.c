/* SPDX-License-Identifier: BSD-2-Clause */
/* fde_ranges against readelf's listing of the FDEs of real files, and on damaged ones. */
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
#include "target/fde_ranges.h"
#include "toolrun.h"

struct fdes {
	struct fde_range *v; /* start and end of each */
	size_t cnt, cap;
};

static int compare_start(const void *a, const void *b)
{
	uint64_t x = ((const struct fde_range *)a)->start, y = ((const struct fde_range *)b)->start;

	return x < y ? -1 : x > y;
}

static int compare_vaddr(const void *a, const void *b)
{
	uint64_t x = ((const struct fde_range *)a)->vaddr, y = ((const struct fde_range *)b)->vaddr;

	return x < y ? -1 : x > y;
}

static void read_fdes(struct fdes *f, const char *name)
{
	FILE *p = toolrun_open("readelf -wF %s 2>/dev/null", name);
	struct fde_range r = {};
	char line[512], *pc;

	while (fgets(line, sizeof(line), p)) {
		pc = strstr(line, " FDE ") ? strstr(line, "pc=") : NULL;
		if (!pc || sscanf(pc, "pc=%" SCNx64 "..%" SCNx64, &r.start, &r.end) != 2 ||
		    !r.start || r.start == r.end)
			continue;
		assert_int_equal(util_reserve(&f->v, &f->cap, f->cnt + 1, sizeof(r)), 0);
		f->v[f->cnt++] = r;
	}
	pclose(p);
	qsort(f->v, f->cnt, sizeof(*f->v), compare_start);
}

/* What readelf's list says of an address. */
static struct fde_range expected(const struct fdes *f, uint64_t vaddr)
{
	struct fde_range r = { .vaddr = vaddr, .next = UINT64_MAX };
	size_t lo = 0, hi = f->cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->v[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo && vaddr < f->v[lo - 1].end) {
		r.start = f->v[lo - 1].start;
		r.end = f->v[lo - 1].end;
	}
	if (lo < f->cnt)
		r.next = f->v[lo].start;
	return r;
}

/* Addresses around both ends of each FDE, every fifth of which is asked for. */
static struct fde_range *pick(const struct fdes *f, size_t *ret_cnt)
{
	struct fde_range *r = calloc(f->cnt * 4, sizeof(*r));
	size_t i, cnt = 0, n = 0;

	for (i = 0; i < f->cnt; i++) {
		r[cnt++].vaddr = f->v[i].start - 1;
		r[cnt++].vaddr = f->v[i].start;
		r[cnt++].vaddr = f->v[i].end - 1;
		r[cnt++].vaddr = f->v[i].end;
	}
	qsort(r, cnt, sizeof(*r), compare_vaddr);
	for (i = 0; i < cnt; i += 5) {
		if (!n || r[n - 1].vaddr != r[i].vaddr)
			r[n++] = r[i];
	}
	*ret_cnt = n;
	return r;
}

static void check_file(const char *name, size_t at_least)
{
	struct elf_file *elf;
	struct fdes f = {};
	struct fde_range *r, want;
	size_t cnt, i;
	int fd;

	read_fdes(&f, name);
	assert_true(f.cnt >= at_least);
	r = pick(&f, &cnt);
	fd = open(toolrun_path(name), O_RDONLY | O_CLOEXEC);
	elf = elf_file__open(fd);
	assert_non_null(elf);
	assert_int_equal(fde_ranges_find(elf, NULL, r, cnt), 0);
	for (i = 0; i < cnt; i++) {
		want = expected(&f, r[i].vaddr);
		assert_int_equal(r[i].start, want.start);
		assert_int_equal(r[i].end, want.end);
		assert_int_equal(r[i].next, want.next);
	}
	elf_file__free(elf);
	close(fd);
	free(r);
	free(f.v);
}

static void test_libc(void **state)
{
	(void)state;
	assert_true(toolrun("cp -L $(gcc -print-file-name=libc.so.6) libc.so"));
	check_file("libc.so", 2000);
}

static const char SRC[] =
	"int f(int x) { return x + 1; }\n"
	"__attribute__((section(\".other\"))) int g(int x) { return f(x) + f(2); }\n"
	"int main(void) { return g(3); }\n";

/* Without .eh_frame_hdr, and with .debug_frame only. */
static void test_kinds(void **state)
{
	(void)state;
	toolrun_write("kinds.c", SRC, sizeof(SRC) - 1);
	assert_true(toolrun("gcc -O1 -Wl,--no-eh-frame-hdr -o no_header kinds.c"));
	check_file("no_header", 3);
	assert_true(
		toolrun("gcc -O1 -g -fno-asynchronous-unwind-tables -fno-exceptions -nostdlib "
			"-Wl,-e,main -o debug_frame kinds.c"));
	check_file("debug_frame", 3);
}

/* The file of debug information has it. */
static void test_debug(void **state)
{
	struct elf_file *elf, *debug;
	struct fde_range r = {};
	struct fdes f = {};
	int fd, debug_fd;

	(void)state;
	toolrun_write("kinds.c", SRC, sizeof(SRC) - 1);
	assert_true(
		toolrun("gcc -O1 -g -fno-asynchronous-unwind-tables -fno-exceptions -nostdlib "
			"-Wl,-e,main -o both kinds.c && objcopy --only-keep-debug both both.debug "
			"&& objcopy --strip-debug both stripped"));
	read_fdes(&f, "both");
	fd = open(toolrun_path("stripped"), O_RDONLY | O_CLOEXEC);
	debug_fd = open(toolrun_path("both.debug"), O_RDONLY | O_CLOEXEC);
	elf = elf_file__open(fd);
	debug = elf_file__open_debug(debug_fd);
	assert_non_null(elf);
	assert_non_null(debug);
	r.vaddr = f.v[0].start;
	assert_int_equal(fde_ranges_find(elf, NULL, &r, 1), 0);
	assert_int_equal(r.start, 0);
	assert_int_equal(r.next, UINT64_MAX);
	assert_int_equal(fde_ranges_find(elf, debug, &r, 1), 0);
	assert_int_equal(r.start, f.v[0].start);
	assert_int_equal(r.end, f.v[0].end);
	elf_file__free(elf);
	elf_file__free(debug);
	close(fd);
	close(debug_fd);
	free(f.v);
}

/* An FDE whose CIE would lie just before the section. */
static void test_no_cie(void **state)
{
	static const struct {
		uint32_t len, back;
		uint64_t start, size;
		uint32_t end;
	} __attribute__((packed)) fde = { .len = 20, .back = 5, .start = 0x1000, .size = 16 };
	struct fde_range r = { .vaddr = 0x1008 };
	struct elf_section sec;
	struct elf_file *elf;
	uint8_t *image;
	size_t sz;

	(void)state;
	toolrun_write("kinds.c", SRC, sizeof(SRC) - 1);
	assert_true(toolrun("gcc -O1 -o no_cie kinds.c"));
	image = toolrun_read(toolrun_path("no_cie"), &sz);
	elf = elf_file__open_memory(image, sz);
	assert_true(elf_file__section(elf, ".eh_frame", &sec));
	assert_true(sec.size >= sizeof(fde));
	memset(image + sec.offset, 0, sec.size);
	memcpy(image + sec.offset, &fde, sizeof(fde));
	assert_int_equal(fde_ranges_find(elf, NULL, &r, 1), -EBADMSG);
	elf_file__free(elf);
	free(image);
}

/* What cannot be read is not taken for "there is none". */
static void test_damaged(void **state)
{
	struct fde_range r[2] = { { .vaddr = 0x1000 }, { .vaddr = 0x2000 } };
	struct elf_section sec;
	struct elf_file *elf;
	uint32_t len = 0x7fffffff;
	uint8_t *image;
	size_t sz, i;

	(void)state;
	toolrun_write("kinds.c", SRC, sizeof(SRC) - 1);
	assert_true(toolrun("gcc -O1 -o damaged kinds.c"));
	image = toolrun_read(toolrun_path("damaged"), &sz);
	elf = elf_file__open_memory(image, sz);
	assert_true(elf_file__section(elf, ".eh_frame", &sec));
	memcpy(image + sec.offset, &len, sizeof(len));
	assert_int_equal(fde_ranges_find(elf, NULL, r, 2), -EBADMSG);
	srand(1);
	for (i = 0; i < 2000; i++) {
		image[sec.offset + (size_t)rand() % sec.size] = rand();
		(void)fde_ranges_find(elf, NULL, r, 2);
	}
	elf_file__free(elf);
	free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),	cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_debug),	cmocka_unit_test(test_no_cie),
		cmocka_unit_test(test_damaged),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
