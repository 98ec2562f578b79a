/* SPDX-License-Identifier: BSD-2-Clause */
/* allocators, probe_point and usdt: on real allocators against readelf and objdump, on assembly
 * written for each rule, and on files that are damaged. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/allocators.h"
#include "target/elf_file.h"
#include "target/objects.h"
#include "target/usdt.h"
#include "toolrun.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"
#define MUSL "/lib/ld-musl-x86_64.so.1"

/* ---- helpers ---- */

/* Finds the points of a file, which have to be ordered and unequal; false if it cannot be opened.
 */
static bool find(const char *path, struct allocator_points *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = fd >= 0 ? elf_file__open(fd) : NULL;
	size_t i;

	*ret = (struct allocator_points){};
	if (elf) {
		assert_int_equal(allocators_find(elf, ret), 0);
		assert_true(ret->cnt <= ALLOCATORS_MAX_POINTS);
		for (i = 1; i < ret->cnt; i++)
			assert_true(ret->points[i].offset > ret->points[i - 1].offset);
	}
	elf_file__free(elf);
	if (fd >= 0)
		close(fd);
	return elf;
}

static const struct allocator_point *point(const struct allocator_points *p, const char *name)
{
	size_t i;

	for (i = 0; i < p->cnt; i++) {
		if (!strcmp(p->points[i].name, name))
			return &p->points[i];
	}
	return NULL;
}

static bool is_wrapper(const struct allocator_point *p)
{
	return p->cookie & BPFPROF_COOKIE_WRAPPER;
}

static unsigned int op_of(const struct allocator_point *p)
{
	return BPFPROF_COOKIE_OP(p->cookie);
}

/* One of the words in a list like " a b c "? */
static bool is_one_of(const char *list, const char *word, size_t len)
{
	char padded[80];

	snprintf(padded, sizeof(padded), " %.*s ", (int)len, word);
	return strstr(list, padded);
}

/* ---- against objdump ---- */

/* Where readelf says that an address of executable code lies in the file. */
static uint64_t file_offset(const char *path, uint64_t vaddr)
{
	FILE *f = toolrun_open("readelf -lW %s", path);
	uint64_t off, addr, sz, ret = UINT64_MAX;
	char line[512];

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " LOAD %" SCNx64 " %" SCNx64 " %*x %" SCNx64, &off, &addr, &sz) ==
			    3 &&
		    strstr(line, " E ") && vaddr - addr < sz)
			ret = off + (vaddr - addr);
	}
	pclose(f);
	return ret;
}

static const char *const argument_names[] = {
	" rdi edi di dil ",
	" rsi esi si sil ",
	" rdx edx dx dl dh ",
};

/* Does the probe need the n-th argument to be in its register? */
static bool needs(const struct allocator_point *p, int n)
{
	static const char *const by_op[] = {
		[BPFPROF_ALLOC_MALLOC] = "0",	[BPFPROF_ALLOC_CALLOC] = "01",
		[BPFPROF_ALLOC_ALIGNED] = "1",	[BPFPROF_ALLOC_POSIX_MEMALIGN] = "02",
		[BPFPROF_ALLOC_REALLOC] = "01", [BPFPROF_ALLOC_REALLOCARRAY] = "012",
		[BPFPROF_ALLOC_XALLOCX] = "01", [BPFPROF_ALLOC_FREE] = "0",
	};

	return strchr(by_op[op_of(p)], '0' + n);
}

/* An instruction before the probe's must not change what the probe reads. */
static void check_before(const struct allocator_point *p, const char *text)
{
	size_t word = strcspn(text, " "), reg;
	const char *ops = text + word + strspn(text + word, " ");
	bool reads_only = is_one_of(" cmp test nop push endbr64 ", text, word);
	int i;

	assert_false(text[0] == 'j' || !strncmp(text, "call", 4) || !strncmp(text, "ret", 3));
	reg = strcspn(ops, ",");
	for (i = 0; i < 3; i++)
		assert_false(!reads_only && needs(p, i) && is_one_of(argument_names[i], ops, reg) &&
			     /* the one exception: malloc's size goes where memalign's is */
			     !(i == 1 && !strncmp(ops, "rsi,rdi", 7)));
	assert_false(needs(p, 2) && is_one_of(" mul div idiv cqo cdq rdtsc cpuid ", text, word));
	if (p->group == ALLOCATOR_ALLOC) {
		assert_false(is_one_of(" push pop enter leave ", text, word));
		assert_false(!reads_only && is_one_of(" rsp esp ", ops, reg));
	}
}

/* objdump's view of a point: the start of an instruction of the kind that was chosen. */
static void check_point(const char *path, const struct allocator_point *p)
{
	FILE *f = toolrun_open("objdump -d -M intel --no-show-raw-insn --start-address=%" PRIu64
			       " --stop-address=%" PRIu64 " %s",
			       p->vaddr, p->vaddr + p->skew + 16, path);
	char line[512], text[256];
	bool found = false;
	uint64_t addr;

	assert_int_equal(file_offset(path, p->vaddr + p->skew), p->offset);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %" SCNx64 ": %255[^#\n]", &addr, text) != 2)
			continue;
		if (addr < p->vaddr + p->skew)
			check_before(p, text);
		if (addr != p->vaddr + p->skew)
			continue;
		found = true;
		if (p->emulated)
			assert_true(text[0] == 'j' || !strncmp(text, "push ", 5) ||
				    !strncmp(text, "call ", 5) || !strncmp(text, "nop", 3));
		assert_int_equal(strcspn(text, " \n"), strcspn(p->insn, " "));
		assert_memory_equal(text, p->insn, strcspn(p->insn, " "));
		assert_null(strstr(text, "rip"));
		assert_true(strncmp(text, "ret", 3));
	}
	pclose(f);
	assert_true(found);
}

/* Is a symbol of that name at the point's function, by readelf? */
static void check_symbol(const char *path, const struct allocator_point *p)
{
	FILE *f = toolrun_open("readelf -W --symbols --dyn-syms %s", path);
	char line[1024], name[256];
	bool found = false;
	uint64_t addr;

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*d: %" SCNx64 " %*s FUNC %*s %*s %*s %255s", &addr, name) != 2)
			continue;
		name[strcspn(name, "@")] = '\0';
		found |= addr == p->vaddr && !strcmp(name, p->name);
	}
	pclose(f);
	assert_true(found);
}

/* Finds and checks all points of a file; false if there is no such file. */
static bool check_file(const char *path, struct allocator_points *ret)
{
	size_t i;

	if (!find(path, ret))
		return false;
	for (i = 0; i < ret->cnt; i++) {
		check_point(path, &ret->points[i]);
		check_symbol(path, &ret->points[i]);
		assert_true(allocators_is_name(ret->points[i].name));
	}
	return true;
}

struct want {
	const char *name;
	enum bpfprof_alloc_op op;
	bool wrapper;
};

static void check_wanted(const struct allocator_points *p, const struct want *want, size_t cnt)
{
	const struct allocator_point *found;
	size_t i;

	for (i = 0; i < cnt; i++) {
		found = point(p, want[i].name);
		if (!found)
			fail_msg("%s was not found", want[i].name);
		assert_int_equal(op_of(found), want[i].op);
		assert_int_equal(is_wrapper(found), want[i].wrapper);
		assert_int_equal(found->group, want[i].op == BPFPROF_ALLOC_FREE ? ALLOCATOR_FREE :
										  ALLOCATOR_ALLOC);
	}
}

static const struct want glibc_wanted[] = {
	{ "malloc", BPFPROF_ALLOC_MALLOC, false },
	{ "free", BPFPROF_ALLOC_FREE, false },
	{ "calloc", BPFPROF_ALLOC_CALLOC, false },
	{ "realloc", BPFPROF_ALLOC_REALLOC, true },
	{ "memalign", BPFPROF_ALLOC_ALIGNED, true },
	{ "posix_memalign", BPFPROF_ALLOC_POSIX_MEMALIGN, true },
	{ "valloc", BPFPROF_ALLOC_MALLOC, true },
	{ "pvalloc", BPFPROF_ALLOC_MALLOC, true },
};

static void test_glibc(void **state)
{
	struct allocator_points p;
	size_t i;

	(void)state;
	if (!check_file(LIB "libc.so.6", &p))
		skip();
	check_wanted(&p, glibc_wanted, ARRAY_SIZE(glibc_wanted));
	/* it calls realloc, and nothing else */
	assert_null(point(&p, "reallocarray"));
	for (i = 0; i < p.cnt; i++)
		assert_true(p.points[i].emulated);
	allocator_points__done(&p);
}

static void test_static_glibc(void **state)
{
	static const char source[] =
		"#include <cstdlib>\n#include <new>\n"
		"int main(int c, char **v) {\n"
		"  int *a = new int[c]; void *b = operator new(c, std::align_val_t(64));\n"
		"  void *d = calloc(c, 2), *e; d = realloc(d, c * 9);\n"
		"  int r = posix_memalign(&e, 64, c); d = aligned_alloc(64, 64);\n"
		"  r += a == b || d == e || v == d; delete[] a; operator delete(b, "
		"std::align_val_t(64));\n"
		"  free(e); return r; }\n";
	struct allocator_points p;
	size_t i;

	(void)state;
	toolrun_write("cxx.cc", source, sizeof(source) - 1);
	if (!toolrun("g++ -std=c++17 -O1 -w -static -o static-cxx cxx.cc 2>/dev/null"))
		skip();
	assert_true(check_file(toolrun_path("static-cxx"), &p));
	check_wanted(&p, glibc_wanted, 6);
	for (i = 0; i < p.cnt; i++) {
		assert_true(strncmp(p.points[i].name, "_Z", 2));
		assert_true(p.points[i].emulated);
	}
	allocator_points__done(&p);
}

static void test_musl(void **state)
{
	static const char source[] =
		"#define _GNU_SOURCE\n#include <stdlib.h>\n#include <malloc.h>\n"
		"int main(int c, char **v) { void *p = calloc(c, 8), *q; (void)v; p = realloc(p, "
		"99);"
		" if (posix_memalign(&q, 64, c)) return 1; free(q); return p == memalign(64, 9); "
		"}\n";
	static const struct want wanted[] = {
		{ "malloc", BPFPROF_ALLOC_MALLOC, false },
		{ "calloc", BPFPROF_ALLOC_CALLOC, true },
		{ "posix_memalign", BPFPROF_ALLOC_POSIX_MEMALIGN, true },
		{ "aligned_alloc", BPFPROF_ALLOC_ALIGNED, false },
	};
	static const struct want internal[] = {
		{ "__libc_realloc", BPFPROF_ALLOC_REALLOC, false },
		{ "__libc_free", BPFPROF_ALLOC_FREE, false },
	};
	struct allocator_points p;

	(void)state;
	toolrun_write("musl.c", source, sizeof(source) - 1);
	if (!toolrun("musl-gcc -O1 -w -static -o static-musl musl.c 2>/dev/null"))
		skip();
	assert_true(check_file(toolrun_path("static-musl"), &p));
	check_wanted(&p, wanted, ARRAY_SIZE(wanted));
	check_wanted(&p, internal, ARRAY_SIZE(internal));
	/* these do nothing but jump to the internal ones; memalign to aligned_alloc */
	assert_null(point(&p, "free"));
	assert_null(point(&p, "realloc"));
	assert_null(point(&p, "memalign"));
	allocator_points__done(&p);
	/* its library has no symbols for the internal ones */
	if (check_file(MUSL, &p)) {
		check_wanted(&p, wanted, ARRAY_SIZE(wanted));
		assert_non_null(point(&p, "free"));
		assert_non_null(point(&p, "realloc"));
	}
	allocator_points__done(&p);
}

/* Calls are recorded at their entry; frees, and what may call another one, are left out. */
static void check_sanitizer(const char *path)
{
	static const char *const names[] = { "malloc", "calloc", "realloc", "posix_memalign" };
	struct allocator_points p;

	assert_true(check_file(path, &p));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_non_null(point(&p, names[i]));
	for (size_t i = 0; i < p.cnt; i++) {
		assert_int_equal(p.points[i].group, ALLOCATOR_ALLOC);
		assert_true(p.points[i].cookie & BPFPROF_COOKIE_BEGIN);
		assert_false(is_wrapper(&p.points[i]));
	}
	allocator_points__done(&p);
}

static void test_sanitizers(void **state)
{
	static const char source[] = "#include <stdlib.h>\nint main(void) { free(malloc(1)); }\n";
	static const char *const libraries[] = { "asan", "tsan", "lsan" };
	struct allocator_points p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		assert_true(toolrun("cp -L \"$(gcc -print-file-name=lib%s.so)\" sanitizer.so",
				    libraries[i]));
		check_sanitizer(toolrun_path("sanitizer.so"));
	}
	toolrun_write("built.c", source, sizeof(source) - 1);
	/* what clang links statically */
	assert_true(toolrun("clang -fsanitize=address -o built built.c"));
	check_sanitizer(toolrun_path("built"));
	/* what only refers to the run-time has an allocator elsewhere */
	assert_true(toolrun("gcc -fsanitize=address -o built built.c"));
	assert_true(find(toolrun_path("built"), &p));
	assert_int_equal(p.cnt, 0);
	allocator_points__done(&p);
}

static void test_jemalloc(void **state)
{
	static const struct want wanted[] = {
		{ "malloc", BPFPROF_ALLOC_MALLOC, false },
		{ "calloc", BPFPROF_ALLOC_CALLOC, false },
		{ "realloc", BPFPROF_ALLOC_REALLOC, false },
		{ "aligned_alloc", BPFPROF_ALLOC_ALIGNED, false },
		{ "memalign", BPFPROF_ALLOC_ALIGNED, false },
		{ "posix_memalign", BPFPROF_ALLOC_POSIX_MEMALIGN, false },
		{ "mallocx", BPFPROF_ALLOC_MALLOC, false },
		{ "rallocx", BPFPROF_ALLOC_REALLOC, false },
		{ "xallocx", BPFPROF_ALLOC_XALLOCX, false },
		{ "free", BPFPROF_ALLOC_FREE, false },
		{ "dallocx", BPFPROF_ALLOC_FREE, false },
		{ "sdallocx", BPFPROF_ALLOC_FREE, false },
		/* these allocate by themselves, and call malloc only once memory is exhausted */
		{ "_Znwm", BPFPROF_ALLOC_MALLOC, false },
		{ "_ZnwmRKSt9nothrow_t", BPFPROF_ALLOC_MALLOC, false },
		{ "_ZdlPvm", BPFPROF_ALLOC_FREE, false },
	};
	struct allocator_points p;

	(void)state;
	if (!check_file(LIB "libjemalloc.so.2", &p))
		skip();
	check_wanted(&p, wanted, ARRAY_SIZE(wanted));
	/* jumps to _Znwm, to free, and with a pointer that is not null to sdallocx */
	assert_null(point(&p, "_Znam"));
	assert_null(point(&p, "_ZdlPv"));
	assert_null(point(&p, "_ZdlPvmSt11align_val_t"));
	allocator_points__done(&p);
}

static void test_tcmalloc(void **state)
{
	static const struct want wanted[] = {
		{ "malloc", BPFPROF_ALLOC_MALLOC, false },
		{ "calloc", BPFPROF_ALLOC_CALLOC, false },
		{ "realloc", BPFPROF_ALLOC_REALLOC, false },
		{ "memalign", BPFPROF_ALLOC_ALIGNED, false },
		{ "posix_memalign", BPFPROF_ALLOC_POSIX_MEMALIGN, true },
		{ "free", BPFPROF_ALLOC_FREE, false },
	};
	struct allocator_points p;
	size_t i, operators = 0;

	(void)state;
	if (!check_file(LIB "libtcmalloc_minimal.so.4", &p))
		skip();
	check_wanted(&p, wanted, ARRAY_SIZE(wanted));
	for (i = 0; i < p.cnt; i++) {
		operators += !strncmp(p.points[i].name, "_Zn", 3);
		assert_true(p.points[i].emulated);
	}
	assert_true(operators >= 4);
	allocator_points__done(&p);
}

static void test_mimalloc(void **state)
{
	static const struct want wanted[] = {
		/* its size is in rsi by the first branch */
		{ "malloc", BPFPROF_ALLOC_ALIGNED, false },
		{ "calloc", BPFPROF_ALLOC_CALLOC, false },
		{ "realloc", BPFPROF_ALLOC_REALLOC, false },
		{ "mi_mallocn", BPFPROF_ALLOC_CALLOC, false },
		{ "mi_recalloc", BPFPROF_ALLOC_REALLOCARRAY, false },
		{ "free", BPFPROF_ALLOC_FREE, false },
	};
	struct allocator_points p;

	(void)state;
	if (!check_file(LIB "libmimalloc.so.2", &p))
		skip();
	check_wanted(&p, wanted, ARRAY_SIZE(wanted));
	assert_true(point(&p, "malloc")->emulated);
	assert_null(point(&p, "posix_memalign")); /* jumps to mi_posix_memalign */
	allocator_points__done(&p);
}

static void test_none(void **state)
{
	struct allocator_points p;

	(void)state;
	if (find(LIB "libstdc++.so.6", &p))
		assert_int_equal(p.cnt, 0);
	allocator_points__done(&p);
	assert_true(find("/bin/sh", &p));
	assert_int_equal(p.cnt, 0);
	allocator_points__done(&p);
}

/* ---- each rule ---- */

/* A function's body in assembly, and what is to be found. */
struct rule {
	const char *name, *body;
	const char *insn; /* NULL: no point */
	uint32_t skew;
	bool emulated, wrapper;
};

static const struct rule rules[] = {
	/* the instruction */
	{ "malloc", "endbr64; push %rbx; mov %rdi, %rbx; pop %rbx; ret", "push rbx", 4, true, 0 },
	{ "calloc", "mov %rdi, %rax; test %rsi, %rsi; je 1f; nop; 1: ret", "je", 6, true, 0 },
	{ "valloc", "push %rsp; pop %rax; ret", "push rsp", 0, false, 0 },
	{ "pvalloc", "mov $1, %edi; push %rbx; pop %rbx; ret", "mov edi", 0, false, 0 },
	{ "memalign", "mov $1, %sil; push %rbx; pop %rbx; ret", "mov sil", 0, false, 0 },
	{ "aligned_alloc", "xchg %rax, %rsi; push %rbx; pop %rbx; ret", "xchg", 0, false, 0 },
	{ "posix_memalign", "mul %rsi; push %rbx; pop %rbx; ret", "mul rsi", 0, false, 0 },
	{ "realloc", "sub $8, %rsp; je 1f; 1: add $8, %rsp; ret", "sub rsp", 0, false, 0 },
	{ "reallocarray", ".byte 0x0f,0x1f,0x44,0,0; xor %edx, %edx; ret", "xor edx", 5, false, 0 },
	{ "mallocx", "mov %rdi, %rax; jmp *%rax", "mov rax", 0, false, 0 },
	{ "rallocx", "nopw 8(%rax,%rax); xor %esi, %esi; ret", "nop", 0, false, 0 },
	{ "xallocx", ".byte 0x2e,0x0f,0x1f,4,0; xor %esi, %esi; ret", "xor esi", 5, false, 0 },
	{ "free", "sub $8, %rsp; test %rdi, %rdi; je 1f; 1: add $8, %rsp; ret", "je", 7, true, 0 },
	{ "cfree", "ret", NULL, 0, 0, 0 },
	{ "free_sized", "endbr64; ret", NULL, 0, 0, 0 },
	{ "free_aligned_sized", "endbr64; xor %edi, %edi; ret", "xor edi", 4, false, 0 },
	{ "dallocx", "mov 9f(%rip), %rax; 9: mov %rdi, (%rax); ret", "mov qword", 7, false, 0 },
	/* hit once */
	{ "je_malloc", "1: push %rbx; pop %rbx; dec %edi; jne 1b; ret", NULL, 0, 0, 0 },
	{ "je_calloc", "mov %rdi, %rax; 1: push %rbx; pop %rbx; dec %eax; jne 1b; ret", "mov rax",
	  0, false, 0 },
	{ "je_valloc",
	  "mov %rdi, %rax; 2: push %rbx; pop %rbx; cmp $9, %eax; jb 1f; ret;"
	  "1: jmp *%rax; dec %eax; jmp 2b",
	  "mov rax", 0, false, 0 },
	/* in rsi, as memalign has it */
	{ "je_mallocx", "mov %rdi, %rsi; mov %fs:0, %rdi; cmp $9, %rsi; ja 1f; 1: ret", "ja", 16,
	  true, 0 },
	{ "je_pvalloc", "mov %rdi, %rsi; xor %edi, %edi; xor %esi, %esi; ja 1f; 1: ret", "mov rsi",
	  0, false, 0 },
	/* what calls others */
	{ "_Znwm", "push %rdi; call malloc@plt; pop %rdi; ret", NULL, 0, 0, 0 },
	{ "_Znam", "jmp _Znwm@plt", NULL, 0, 0, 0 },
	{ "_ZnwmRKSt9nothrow_t",
	  "push %rbx; cmp $9, %rdi; ja 1f; pop %rbx; ret;"
	  "1: call *malloc@GOTPCREL(%rip); pop %rbx; ret",
	  "push rbx", 0, true, true },
	{ "_ZnamRKSt9nothrow_t",
	  "push %rbx; call fast; test %rax, %rax; je 1f; pop %rbx; ret;"
	  "1: call _ZSt15get_new_handlerv@plt; call *%rax; call malloc@plt;"
	  "pop %rbx; ret",
	  "push rbx", 0, true, false },
	{ "_ZdlPv", "endbr64; jmp free@plt", NULL, 0, 0, 0 },
	{ "_ZdlPvm", "test %rdi, %rdi; je 1f; jmp free@plt; 1: ret", NULL, 0, 0, 0 },
	{ "_ZdaPv", "cmp $9, %rdi; je 1f; jmp free@plt; 1: ret", "je", 4, true, false },
	{ "_ZdaPvm", "jmp *free@GOTPCREL(%rip)", NULL, 0, 0, 0 },
	{ "tc_calloc", "push %rbx; call deeper; pop %rbx; ret", "push rbx", 0, true, true },
	{ "tc_malloc", "push %rbx; call deeper; pop %rbx; ret", "push rbx", 0, true, true },
	{ "tc_realloc", "push %rbx; call free@plt; pop %rbx; ret", "push rbx", 0, true, false },
	{ "tc_valloc", "push %rbx; call abort@plt; call malloc@plt; ret", "push rbx", 0, true, 0 },
	/* the one that it hands on to cannot be probed */
	{ "tc_free", "cmp $9, %rdi; jmp tc_cfree", "jmp", 4, true, 0 },
	{ "tc_cfree", "ret", NULL, 0, 0, 0 },
};

static const char rules_tail[] =
	"fast: xor %eax, %eax; ret\n"
	"deeper: push %rbx; call malloc@plt; pop %rbx; ret\n"
	/* neither a function, nor one that is known */
	".globl sdallocx, malloc_hook\nsdallocx: push %rbx; ret\n"
	".type malloc_hook, @function\nmalloc_hook: push %rbx; ret\n";

static void build_asm(const char *name, const char *source)
{
	char file[64];

	snprintf(file, sizeof(file), "%s.s", name);
	toolrun_write(file, source, strlen(source));
	assert_true(toolrun("gcc -shared -nostdlib -Wl,-z,notext -o %s %s", name, file));
}

static void test_rules(void **state)
{
	const struct allocator_point *found;
	struct allocator_points p;
	size_t i, sz, wanted = 0;
	char *source;
	FILE *f = open_memstream(&source, &sz);

	(void)state;
	fputs(".text\n", f);
	for (i = 0; i < ARRAY_SIZE(rules); i++)
		fprintf(f,
			".globl %1$s\n.type %1$s, @function\n.align 16\n%1$s: %2$s\n.size %1$s, . "
			"- %1$s\n",
			rules[i].name, rules[i].body);
	fputs(rules_tail, f);
	fclose(f);
	build_asm("rules.so", source);
	free(source);
	assert_true(find(toolrun_path("rules.so"), &p));
	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *r = &rules[i];

		found = point(&p, r->name);
		if (!found != !r->insn)
			fail_msg("%s: %s", r->name, found ? found->insn : "no point");
		if (!found)
			continue;
		wanted++;
		if (strncmp(found->insn, r->insn, strlen(r->insn)) || found->skew != r->skew ||
		    found->emulated != r->emulated || is_wrapper(found) != r->wrapper)
			fail_msg("%s: %s +%u%s%s", r->name, found->insn, found->skew,
				 found->emulated ? " emulated" : "",
				 is_wrapper(found) ? " wrapper" : "");
	}
	assert_int_equal(p.cnt, wanted);
	assert_int_equal(op_of(point(&p, "je_mallocx")), BPFPROF_ALLOC_ALIGNED);
	allocator_points__done(&p);
}

/* Of the names of one address the plainest. */
static void test_aliases(void **state)
{
	struct allocator_points p;

	(void)state;
	build_asm("aliases.so",
		  ".globl malloc, __libc_malloc, tc_malloc, je_malloc, _Znwm, free, cfree\n"
		  ".type malloc, @function; .type __libc_malloc, @function\n"
		  ".type tc_malloc, @function; .type je_malloc, @function\n"
		  ".type _Znwm, @function; .type free, @function; .type cfree, @function\n"
		  "__libc_malloc: tc_malloc: je_malloc: malloc: _Znwm: push %rbx; pop %rbx; ret\n"
		  "cfree: free: push %rbx; pop %rbx; ret\n");
	assert_true(find(toolrun_path("aliases.so"), &p));
	assert_int_equal(p.cnt, 2);
	assert_string_equal(p.points[0].name, "malloc");
	assert_string_equal(p.points[1].name, "free");
	allocator_points__done(&p);
}

/* ---- names ---- */

static void test_names(void **state)
{
	static const char *const yes[] = { "malloc",
					   "free",
					   "_Znwm",
					   "_ZdaPvmSt11align_val_t",
					   "je_calloc",
					   "_rjem_sdallocx",
					   "mi_zalloc",
					   "mi_heap_malloc",
					   "tc_newarray_nothrow",
					   "__libc_memalign",
					   "__GI___libc_malloc",
					   "__rust_alloc",
					   "malloc.part.0",
					   "cfree@GLIBC_2.2.5",
					   "_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t" };
	static const char *const no[] = {
		"",	   "mallocs",	       "mallo",	    "xmalloc",	      "mi_",	     "_Znw",
		"_Znwj",   "_ZnwmPv",	       "_ZdlPvS_",  "abort",	      "je_",	     "main",
		".malloc", "_ZN3app6mallocEv", "tc_zalloc", "runtime.malloc", "__GI_strdup", "__GI_"
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(yes); i++)
		if (!allocators_is_name(yes[i]))
			fail_msg("%s", yes[i]);
	for (i = 0; i < ARRAY_SIZE(no); i++)
		if (allocators_is_name(no[i]))
			fail_msg("%s", no[i]);
	assert_non_null(strstr(allocators_names(), "posix_memalign"));
}

/* ---- USDT ---- */

struct usdt_arg {
	unsigned int reg;
	bool deref, narrow;
	int off;
};

static void check_arg(uint64_t cookie, int n, struct usdt_arg want)
{
	uint64_t arg = cookie >> (n * BPFPROF_USDT_ARG_BITS);

	assert_int_equal(BPFPROF_USDT_REG(arg), want.reg);
	assert_int_equal(BPFPROF_USDT_DEREF(arg), want.deref);
	assert_int_equal(BPFPROF_USDT_NARROW(arg), want.narrow);
	assert_int_equal(BPFPROF_USDT_OFF(arg), want.off);
}

static void test_usdt_args(void **state)
{
	static const char *const bad[] = {
		"",
		"8@",
		"8",
		"8@%rdi 8@%rsi",
		"8@%foo %rdi 8@%rsi",
		"8@%rip 8@%rsi 8@%rdx",
		"8@(%rax,%rbx,8) 8@%rsi 8@%rdx",
		"8@sym(%rip) 8@%rsi 8@%rdx",
		"2@%ax 8@%rsi 8@%rdx",
		"1@%al 8@%rsi 8@%rdx",
		"8@8(%eax) 8@%rsi 8@%rdx",
		"8@$8192 8@%rsi 8@%rdx",
		"8@-8193(%rsp) 8@%rsi 8@%rdx",
		"8@%rdi8@%rsi 8@%rdx",
		"8@%rdi, 8@%rsi 8@%rdx",
		"8@$99999999999999999999 8@%rsi 8@%rdx",
		"8@%fs:8 8@%rsi 8@%rdx",
		"8@- 8@%rsi 8@%rdx",
		"8@8(%rsp 8@%rsi 8@%rdx",
		"8@(",
		"8@(%",
		"8@%",
		"8@$",
		"-@%rdi 8@%rsi 8@%rdx",
		" 8@  %rdi 8@%rsi 8@%rdx",
		"8@$ 5 8@%rsi 8@%rdx",
	};
	static const char *const names[] = {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};
	uint64_t cookie;
	char text[32];
	size_t i;

	(void)state;
	assert_int_equal(usdt_parse_args("8@%rdi -8@16(%rsp) 4@%r9d", 3, &cookie), 0);
	check_arg(cookie, 0, (struct usdt_arg){ 5, false, false, 0 });
	check_arg(cookie, 1, (struct usdt_arg){ 7, true, false, 16 });
	check_arg(cookie, 2, (struct usdt_arg){ 9, false, true, 0 });
	assert_int_equal(usdt_parse_args("8@-24(%rbp) 8@$512 -4@$-8192 4@9", 3, &cookie), 0);
	check_arg(cookie, 0, (struct usdt_arg){ 6, true, false, -24 });
	check_arg(cookie, 1, (struct usdt_arg){ BPFPROF_USDT_CONST, false, false, 512 });
	check_arg(cookie, 2, (struct usdt_arg){ BPFPROF_USDT_CONST, false, true, -8192 });
	assert_int_equal(usdt_parse_args("4@8191(%r15) 8@(%rax) 8@$0", 3, &cookie), 0);
	check_arg(cookie, 0, (struct usdt_arg){ 15, true, true, 8191 });
	check_arg(cookie, 1, (struct usdt_arg){ 0, true, false, 0 });
	assert_int_equal(cookie >> 63, 0);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "8@%%%s", names[i]);
		assert_int_equal(usdt_parse_args(text, 1, &cookie), 0);
		check_arg(cookie, 0, (struct usdt_arg){ i, false, false, 0 });
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (usdt_parse_args(bad[i], 3, &cookie) != -EINVAL)
			fail_msg("%s", bad[i]);
}

/* A note as sys/sdt.h has the assembler make it. */
#define NOTE(label, semaphore, provider, name, args)                                            \
	".pushsection .note.stapsdt,\"\",\"note\"; .balign 4; .4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte " label                           \
	", _.stapsdt.base, " semaphore "\n.asciz \"" provider "\"; .asciz \"" name              \
	"\"; .asciz \"" args "\"\n994: .balign 4; .popsection\n"

static const char usdt_source[] =
	".section .probes,\"aw\"; sema: .2byte 0, 0\n"
	".section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	".weak _.stapsdt.base; .hidden _.stapsdt.base; _.stapsdt.base: .space 1\n"
	".text; .globl probes; .type probes, @function\n"
	"probes: push %rbx\n"
	"a: nop\nb: nop\nc: .byte 0x0f,0x1f,0x44,0,0\nd: mov %rax, %rbx\ne: nop\nf: nop\ng: "
	"nop\nh: nop\n"
	"i: nopw (%rax)\nret\n" NOTE("a", "sema", "otel_memory", "alloc",
				     "8@%rdi 8@%rsi 8@24(%rsp)")
		NOTE("b", "0", "otel_memory", "free", "8@%r12")
			NOTE("c", "0", "otel_memory", "free", "8@%rdi") /* nop of 5 bytes */
	NOTE("d", "0", "otel_memory", "free", "8@%rdi")			/* no nop */
	NOTE("e", "0", "otel_memory", "alloc", "8@%rdi 8@%rsi")		/* too few */
	NOTE("f", "0", "libc", "alloc", "8@%rdi 8@%rsi 8@%rdx")		/* another's */
	NOTE("g", "0", "otel_memory", "realloc", "8@%rdi")		/* another */
	NOTE("0x7fffffff0000", "0", "otel_memory", "free", "8@%rdi")	/* nowhere */
	NOTE("h", "0", "otel_memory", "free", "8@foo(%rip)")
		NOTE("i", "0", "otel_memory", "free", "4@%edi");

static uint64_t symbol_address(const char *file, const char *symbol)
{
	FILE *f = toolrun_open("nm %s", file);
	char line[512], name[256];
	uint64_t addr, ret = 0;

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %*c %255s", &addr, name) == 2 &&
		    !strcmp(name, symbol))
			ret = addr;
	}
	pclose(f);
	assert_true(ret);
	return ret;
}

static void test_usdt(void **state)
{
	static const char *const labels[] = { "a", "b", "i" };
	struct allocator_points p;
	uint64_t sema;
	size_t i;

	(void)state;
	build_asm("usdt.so", usdt_source);
	assert_true(find(toolrun_path("usdt.so"), &p));
	assert_int_equal(p.cnt, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(p.points[i].vaddr, symbol_address("usdt.so", labels[i]));
		assert_int_equal(p.points[i].offset, file_offset("usdt.so", p.points[i].vaddr));
		assert_int_equal(p.points[i].skew, 0);
		assert_int_equal(p.points[i].emulated, i < 2);
		assert_int_equal(p.points[i].group, i ? ALLOCATOR_USDT_FREE : ALLOCATOR_USDT_ALLOC);
		assert_string_equal(p.points[i].name, i ? "otel_memory:free" : "otel_memory:alloc");
	}
	/* .probes is writable data, in a segment whose offset differs from its address */
	sema = symbol_address("usdt.so", "sema");
	assert_true(p.points[0].ref_ctr && p.points[0].ref_ctr < sema);
	assert_int_equal((sema - p.points[0].ref_ctr) & 0xfff, 0);
	assert_int_equal(p.points[1].ref_ctr, 0);
	check_arg(p.points[0].cookie, 2, (struct usdt_arg){ 7, true, false, 24 });
	check_arg(p.points[1].cookie, 0, (struct usdt_arg){ 12, false, false, 0 });
	check_arg(p.points[2].cookie, 0, (struct usdt_arg){ 5, false, true, 0 });
	allocator_points__done(&p);
}

/* The place of a section's header in a file that was read. */
static Elf64_Shdr *section_header(char *buf, const char *name)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)buf;
	Elf64_Shdr *sh = (Elf64_Shdr *)(buf + eh->e_shoff);
	size_t i;

	for (i = 0; i < eh->e_shnum; i++) {
		if (!strcmp(buf + sh[eh->e_shstrndx].sh_offset + sh[i].sh_name, name))
			return &sh[i];
	}
	fail_msg("no section %s", name);
	return NULL;
}

/* An object that prelink has moved: its section of the base says by how much. */
static void test_usdt_moved(void **state)
{
	struct allocator_points p, moved;
	size_t sz, pos;
	Elf64_Shdr *sh;
	uint64_t v[3];
	char *buf;

	(void)state;
	build_asm("usdt.so", usdt_source);
	assert_true(find(toolrun_path("usdt.so"), &p));
	buf = toolrun_read(toolrun_path("usdt.so"), &sz);
	sh = section_header(buf, ".note.stapsdt");
	for (pos = 0; pos < sh->sh_size;) {
		Elf64_Nhdr *nh = (Elf64_Nhdr *)(buf + sh->sh_offset + pos);

		memcpy(v, (char *)nh + sizeof(*nh) + 8, sizeof(v));
		v[0] -= 0x5000;
		v[1] -= 0x5000;
		v[2] -= v[2] ? 0x5000 : 0;
		memcpy((char *)nh + sizeof(*nh) + 8, v, sizeof(v));
		pos += sizeof(*nh) + 8 + ((nh->n_descsz + 3) & ~3U);
	}
	toolrun_write("moved.so", buf, sz);
	free(buf);
	assert_true(find(toolrun_path("moved.so"), &moved));
	assert_int_equal(moved.cnt, p.cnt);
	assert_memory_equal(moved.points, p.points, p.cnt * sizeof(*p.points));
	allocator_points__done(&p);
	allocator_points__done(&moved);
}

/* ---- what is damaged ---- */

/* Finds points in bytes, whatever they are; not for long. */
static void find_in(const void *data, size_t sz)
{
	uint64_t start = util_monotonic_ns();
	struct elf_file *elf = elf_file__open_memory(data, sz);
	struct allocator_points p;

	if (elf) {
		/* any error will do, and points that cannot be true */
		if (!allocators_find(elf, &p))
			assert_true(p.cnt <= ALLOCATORS_MAX_POINTS);
		allocator_points__done(&p);
	}
	elf_file__free(elf);
	assert_true(util_monotonic_ns() - start < 20 * NSEC_PER_SEC);
}

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void damage(const char *file, int rounds)
{
	size_t sz, i, k;
	char *buf = toolrun_read(toolrun_path(file), &sz), *copy = malloc(sz), *cut;

	for (i = 0; i < 64; i++) {
		/* a buffer of its own, so that ASan sees its end */
		cut = malloc(sz * i / 64 + 1);
		memcpy(cut, buf, sz * i / 64 + 1);
		find_in(cut, sz * i / 64 + 1);
		free(cut);
	}
	for (i = 0; i < (size_t)rounds; i++) {
		memcpy(copy, buf, sz);
		for (k = 0; k < 1 + i % 16; k++)
			copy[next_random() % sz] = (char)next_random();
		find_in(copy, sz);
	}
	free(copy);
	free(buf);
}

static void test_damaged(void **state)
{
	static const char *const sections[] = { ".symtab",	".dynsym",   ".strtab",
						".dynstr",	".rela.plt", ".note.stapsdt",
						".stapsdt.base" };
	static const uint64_t sizes[] = {
		0, 1, 23, UINT32_MAX, 1ULL << 40, UINT64_MAX, 24ULL << 58
	};
	char *source;
	size_t i, k, sz;
	char *buf;

	(void)state;
	if (asprintf(&source,
		     "%s.globl malloc; .type malloc, @function; malloc: push %%rbx\n"
		     "call _Znwm@plt; ret\n",
		     usdt_source) < 0)
		fail();
	build_asm("damaged.so", source);
	free(source);
	damage("damaged.so", 3000);
	buf = toolrun_read(toolrun_path("damaged.so"), &sz);
	for (i = 0; i < ARRAY_SIZE(sections); i++) {
		Elf64_Shdr *sh = section_header(buf, sections[i]), saved = *sh;

		for (k = 0; k < ARRAY_SIZE(sizes); k++) {
			sh->sh_size = sizes[k];
			find_in(buf, sz);
			*sh = saved;
			sh->sh_offset += sizes[k];
			find_in(buf, sz);
			*sh = saved;
			sh->sh_link = (uint32_t)sizes[k];
			find_in(buf, sz);
			*sh = saved;
		}
	}
	free(buf);
}

/* Notes whose sizes are not those of what they hold. */
static void test_damaged_notes(void **state)
{
	size_t sz, pos, k;
	Elf64_Shdr *sh;
	char *buf;

	(void)state;
	build_asm("usdt.so", usdt_source);
	buf = toolrun_read(toolrun_path("usdt.so"), &sz);
	sh = section_header(buf, ".note.stapsdt");
	for (pos = 0; pos + 12 <= sh->sh_size; pos += 4) {
		static const uint32_t values[] = { 0, 3, 7, 9, 24, 25, 0x7fffffff, UINT32_MAX };
		uint32_t *word = (uint32_t *)(buf + sh->sh_offset + pos), saved = *word;

		for (k = 0; k < ARRAY_SIZE(values); k++) {
			*word = values[k];
			find_in(buf, sz);
		}
		*word = saved;
	}
	free(buf);
}

/* Random bytes, and jumps all over the place, as the code of very many functions. */
static void test_damaged_code(void **state)
{
	size_t sz, i, k, text;
	char *source, *buf;
	FILE *f = open_memstream(&source, &sz);
	Elf64_Shdr *sh;

	(void)state;
	fputs(".text\n", f);
	/* more symbols than points are allowed, by names that are local */
	for (i = 0; i < 1500; i++)
		fprintf(f, ".type m%zu, @function; m%zu: .skip 64\n.size m%zu, 99999999\n", i, i,
			i);
	fputs(".globl malloc; .type malloc, @function; malloc: .skip 4096\n", f);
	fclose(f);
	build_asm("code.so", source);
	free(source);
	buf = toolrun_read(toolrun_path("code.so"), &sz);
	/* all of them get the last one's name */
	sh = section_header(buf, ".symtab");
	for (i = 0; i < sh->sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym *sym = (Elf64_Sym *)(buf + sh->sh_offset) + i;
		const Elf64_Sym *last = (Elf64_Sym *)(buf + sh->sh_offset + sh->sh_size) - 1;

		if (ELF64_ST_TYPE(sym->st_info) == STT_FUNC)
			sym->st_name = last->st_name;
	}
	sh = section_header(buf, ".text");
	for (k = 0; k < 4; k++) {
		for (text = 0; text < sh->sh_size; text++)
			buf[sh->sh_offset + text] =
				k == 0 ? (char)next_random() :
				k == 1 ? "\x70\x75\xeb\xe8"[next_random() & 3] :
				k == 2 ? '\x74' :
					 "\x0f\x85\x10\xff\xff\xff\xe8\x10\x01\0\0"[text % 11];
		find_in(buf, sz);
	}
	free(buf);
}

/* ---- by the door ---- */

static void test_objects(void **state)
{
	struct objects *o = objects__new();
	struct allocator_points p;
	uint32_t id, vdso;
	int fd;

	(void)state;
	build_asm("door.so", ".globl malloc; .type malloc, @function; malloc: push %rbx; ret\n");
	fd = open(toolrun_path("door.so"), O_RDWR | O_CLOEXEC);
	id = objects__add(o, fd, "door.so");
	assert_int_equal(objects__allocators(o, id, &p), 0);
	assert_int_equal(p.cnt, 1);
	allocator_points__done(&p);
	/* no longer the file that it was */
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(objects__allocators(o, id, &p), -ESTALE);
	assert_int_equal(p.cnt, 0);
	vdso = objects__add_vdso(o);
	if (vdso != OBJECTS_NONE) {
		assert_int_equal(objects__allocators(o, vdso, &p), 0);
		assert_int_equal(p.cnt, 0);
	}
	id = objects__add(o, open("/etc/passwd", O_RDONLY | O_CLOEXEC), "/etc/passwd");
	assert_int_equal(objects__allocators(o, id, &p), -ENOEXEC);
	objects__free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	     cmocka_unit_test(test_glibc),
		cmocka_unit_test(test_static_glibc), cmocka_unit_test(test_musl),
		cmocka_unit_test(test_sanitizers),   cmocka_unit_test(test_jemalloc),
		cmocka_unit_test(test_tcmalloc),     cmocka_unit_test(test_mimalloc),
		cmocka_unit_test(test_none),	     cmocka_unit_test(test_rules),
		cmocka_unit_test(test_aliases),	     cmocka_unit_test(test_usdt_args),
		cmocka_unit_test(test_usdt),	     cmocka_unit_test(test_usdt_moved),
		cmocka_unit_test(test_damaged),	     cmocka_unit_test(test_damaged_notes),
		cmocka_unit_test(test_damaged_code), cmocka_unit_test(test_objects),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
