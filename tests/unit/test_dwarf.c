/* SPDX-License-Identifier: BSD-2-Clause */
/* seconds: 16 */
/* dwarf_resolve against addr2line on programs of several compilers and DWARF versions, on damaged
 * DWARF, and on DWARF that names other files. */
#include <elf.h>
#include <errno.h>
#include <dwarf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/strtab.h"
#include "base/util.h"
#include "target/dwarf.h"
#include "target/dwarf_split.h"
#include "target/elf_file.h"
#include "target/symtab.h"
#include "toolrun.h"

#define MAX_ADDRS 1500

static const char program[] =
	"#include <algorithm>\n#include <string>\n#include <vector>\n"
	"namespace app { namespace { int hidden(int x) { return x * 3 + 1; } }\n"
	"template <class T> struct Box { T v; T twice() const { return v + v; }\n"
	"  __attribute__((noinline)) T slow(T o) { T r = v; for (int i = 0; i < 10; i++) r += o; "
	"return r; } };\n"
	"struct Node { Node *l = nullptr, *r = nullptr; std::string s; Node(int n) : "
	"s(std::to_string(n)) {}\n"
	"  ~Node() { delete l; delete r; } int depth() const; };\n"
	"int Node::depth() const { return 1 + std::max(l ? l->depth() : 0, r ? r->depth() : 0); } "
	"}\n"
	"int main(int argc, char **argv) {\n"
	"  app::Box<std::string> bx{argv[0]}; app::Box<double> bd{1.5};\n"
	"  app::Node *n = new app::Node(3); n->l = new app::Node(4);\n"
	"  std::vector<int> v{3, 2, 1};\n"
	"  for (int i = 0; i < argc * 10; i++)\n    v.push_back(app::hidden(i));\n"
	"  std::sort(v.begin(), v.end());\n"
	"  int r = n->depth() + v[0] + bd.slow(2) + bx.slow(\"x\").size();\n"
	"  delete n; return r; }\n";

struct target {
	int fd;
	struct elf_file *elf;
	struct elf_section text;
	uint64_t addrs[MAX_ADDRS];
	size_t cnt;
	struct strtab *strings;
};

static int compare_addrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void target__open(struct target *t, const char *name)
{
	size_t i;

	t->fd = open(toolrun_path(name), O_RDONLY | O_CLOEXEC);
	assert_true(t->fd >= 0);
	t->elf = elf_file__open(t->fd);
	assert_non_null(t->elf);
	assert_true(elf_file__section(t->elf, ".text", &t->text));
	srand(3);
	for (i = 0; i < MAX_ADDRS; i++)
		t->addrs[i] = t->text.addr + (uint64_t)rand() % t->text.size;
	qsort(t->addrs, MAX_ADDRS, sizeof(t->addrs[0]), compare_addrs);
	for (i = t->cnt = 0; i < MAX_ADDRS; i++) {
		if (!t->cnt || t->addrs[t->cnt - 1] != t->addrs[i])
			t->addrs[t->cnt++] = t->addrs[i];
	}
	t->strings = strtab__new();
	assert_non_null(t->strings);
}

static void target__close(struct target *t)
{
	strtab__free(t->strings);
	elf_file__free(t->elf);
	close(t->fd);
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* One frame of addr2line. */
struct frame {
	char name[8192], file[8192];
	unsigned int line;
};

/* Reads the frames of the next address. *address is the line of the one after it. */
static size_t read_frames(FILE *f, struct frame *frames, size_t max, char *address, size_t sz)
{
	char where[8192], *colon;
	size_t cnt = 0;

	while (fgets(address, sz, f) && strncmp(address, "0x", 2)) {
		assert_true(cnt < max);
		address[strcspn(address, "\n")] = '\0';
		snprintf(frames[cnt].name, sizeof(frames[cnt].name), "%s", address);
		assert_non_null(fgets(where, sizeof(where), f));
		colon = strrchr(where, ':');
		assert_non_null(colon);
		*colon = '\0';
		frames[cnt].line = strtoul(colon + 1, NULL, 10);
		snprintf(frames[cnt].file, sizeof(frames[cnt].file), "%s", where);
		cnt++;
	}
	return cnt;
}

/*
 * binutils 2.40 gives lines of headers to the unit's own file where that is number 1 of a DWARF 5
 * table as well as number 0: line 229 of a file of 18 lines. So what it says of this file counts in
 * older versions only.
 */
static bool is_wrong_file(const char *build, const char *file)
{
	return !strcmp(base(file), "program.cc") && !strstr(build, "-3") && !strstr(build, "-4");
}

/*
 * Compares answers with addr2line's. Where DWARF has no linkage name (lambdas, some inlined
 * instances), addr2line puts that of the symbol around the address, of whatever frame: names are
 * not compared there.
 */
static void compare_with_addr2line(struct target *t, const struct dwarf_answers *r,
				   const char *name)
{
	static struct frame frames[DWARF_MAX_INLINE];
	size_t i, k, cnt, answered = 0, inlined = 0, names = 0;
	char address[8192];
	FILE *in, *f;

	in = fopen(toolrun_path("addrs"), "w");
	assert_non_null(in);
	for (i = 0; i < t->cnt; i++)
		fprintf(in, "%" PRIx64 "\n", t->addrs[i]);
	fclose(in);
	f = toolrun_open("addr2line -a -i -f -e %s < addrs", name);
	assert_non_null(fgets(address, sizeof(address), f));
	for (i = 0; i < t->cnt; i++) {
		const struct dwarf_answer *a = &r->answers[i];

		assert_int_equal(strtoull(address, NULL, 16), t->addrs[i]);
		cnt = read_frames(f, frames, ARRAY_SIZE(frames), address, sizeof(address));
		if (!a->cnt)
			continue;
		answered++;
		inlined += a->cnt > 1;
		assert_int_equal(a->cnt, cnt);
		for (k = 0; k < cnt; k++) {
			const struct dwarf_frame *have = &r->frames[a->first + k];

			assert_int_equal(have->line, frames[k].line);
			if (have->line && !is_wrong_file(name, frames[k].file))
				assert_string_equal(base(strtab__get(t->strings, have->file)),
						    base(frames[k].file));
			if (have->linkage_name) {
				assert_string_equal(strtab__get(t->strings, have->linkage_name),
						    frames[k].name);
				names++;
			}
		}
	}
	pclose(f);
	/* next to everything but the start files and the padding between functions */
	assert_true(answered > t->cnt * 9 / 10);
	assert_true(inlined > 10 || strstr(name, "O0"));
	assert_true(names > answered / 2);
}

/* Most of the time goes into compiling: all at once, as many at a time as there are processors. */
static const char *const builds[][2] = {
	{ "O2-5", "g++ -O2 -gdwarf-5" },
	{ "O2-4", "g++ -O2 -gdwarf-4 -no-pie" },
	{ "O2-3", "g++ -O2 -gdwarf-3 -gstrict-dwarf" },
	{ "O2-64", "g++ -O2 -gdwarf-5 -gdwarf64" },
	{ "O0-gc", "g++ -O0 -g -ffunction-sections -Wl,--gc-sections" },
	{ "clang-4", "clang++ -O2 -gdwarf-4" },
};

static int setup(void **state)
{
	FILE *f;
	size_t i;

	(void)state;
	toolrun_write("program.cc", program, sizeof(program) - 1);
	f = fopen(toolrun_path("builds"), "w");
	assert_non_null(f);
	for (i = 0; i < ARRAY_SIZE(builds); i++)
		fprintf(f, "%s program.cc -o %s 2>/dev/null || :\n", builds[i][1], builds[i][0]);
	fclose(f);
	/* a test whose program could not be built says so */
	return toolrun("xargs -P $(nproc) -I{} sh -c {} < builds") ? 0 : -1;
}

static bool have_file(const char *name)
{
	return access(toolrun_path(name), R_OK) == 0;
}

static void check_build(const char *name)
{
	struct dwarf_answers r;
	struct target t;

	if (!have_file(name)) {
		print_message("%s could not be compiled\n", name);
		skip();
	}
	target__open(&t, name);
	assert_int_equal(dwarf_resolve(t.elf, NULL, NULL, t.addrs, t.cnt, t.strings, &r), 0);
	compare_with_addr2line(&t, &r, name);
	dwarf_answers__done(&r);
	target__close(&t);
}

static void test_dwarf5(void **state)
{
	(void)state;
	check_build("O2-5");
}

static void test_dwarf4(void **state)
{
	(void)state;
	check_build("O2-4");
}

static void test_dwarf3(void **state)
{
	(void)state;
	check_build("O2-3");
}

/* Both runs have the same answers. */
static void check_equal(const struct target *t, const struct dwarf_answers *a,
			const struct target *u, const struct dwarf_answers *b)
{
	size_t i, k;

	for (i = 0; i < t->cnt; i++) {
		assert_int_equal(a->answers[i].cnt, b->answers[i].cnt);
		for (k = 0; k < a->answers[i].cnt; k++) {
			const struct dwarf_frame *x = &a->frames[a->answers[i].first + k];
			const struct dwarf_frame *y = &b->frames[b->answers[i].first + k];

			assert_string_equal(strtab__get(t->strings, x->linkage_name),
					    strtab__get(u->strings, y->linkage_name));
			assert_string_equal(strtab__get(t->strings, x->name),
					    strtab__get(u->strings, y->name));
			assert_string_equal(strtab__get(t->strings, x->file),
					    strtab__get(u->strings, y->file));
			assert_int_equal(x->line, y->line);
			assert_int_equal(x->start_line, y->start_line);
		}
	}
}

/* Offsets of 8 bytes, which the addr2line of binutils 2.40 cannot read: the same program with those
 * of 4 is the truth. */
static void test_dwarf64(void **state)
{
	struct dwarf_answers a, b;
	struct target t, u;

	(void)state;
	if (!have_file("O2-64")) {
		print_message("no compiler that knows -gdwarf64\n");
		skip();
	}
	target__open(&t, "O2-5");
	target__open(&u, "O2-64");
	assert_int_equal(dwarf_resolve(t.elf, NULL, NULL, t.addrs, t.cnt, t.strings, &a), 0);
	assert_int_equal(dwarf_resolve(u.elf, NULL, NULL, t.addrs, t.cnt, u.strings, &b), 0);
	check_equal(&t, &a, &u, &b);
	dwarf_answers__done(&a);
	dwarf_answers__done(&b);
	target__close(&t);
	target__close(&u);
}

/* What .debug_aranges rules out holds none of the addresses. */
static void test_aranges(void **state)
{
	static const char *const names[] = { "O2-5", "O2-4", "O0-gc" };
	struct dwarf_answers with, without;
	struct target t, u;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(
			toolrun("readelf -SW %s | grep -q debug_aranges && "
				"objcopy --remove-section=.debug_aranges %s bare",
				names[i], names[i]));
		target__open(&t, names[i]);
		target__open(&u, "bare");
		/* of all addresses, and of one at a time, for which other units are ruled out */
		for (size_t k = 0; k <= MIN(t.cnt, 100U); k++) {
			const uint64_t *addrs = t.addrs + (k ? k - 1 : 0);
			size_t all = t.cnt, cnt = k ? 1 : t.cnt;

			assert_int_equal(
				dwarf_resolve(t.elf, NULL, NULL, addrs, cnt, t.strings, &with), 0);
			assert_int_equal(
				dwarf_resolve(u.elf, NULL, NULL, addrs, cnt, u.strings, &without),
				0);
			t.cnt = cnt;
			check_equal(&t, &with, &u, &without);
			t.cnt = all;
			dwarf_answers__done(&with);
			dwarf_answers__done(&without);
		}
		target__close(&t);
		target__close(&u);
	}
}

static void test_compressed(void **state)
{
	(void)state;
	assert_true(toolrun("objcopy --compress-debug-sections=zlib O2-5 O2-z"));
	check_build("O2-z");
}

static void test_discarded(void **state)
{
	(void)state;
	check_build("O0-gc");
}

static void test_clang(void **state)
{
	(void)state;
	check_build("clang-4");
}

static const char c_program[] =
	"static inline __attribute__((always_inline)) int inner(int x)\n" /* 1 */
	"{\n"
	"	volatile int v = x;\n"
	"\n"
	"	return v * 7;\n" /* 5 */
	"}\n"
	"\n"
	"int outer(int x)\n"
	"{\n"
	"	return inner(x) + 1;\n" /* 10 */
	"}\n"
	"\n"
	"int main(int c, char **v)\n"
	"{\n"
	"	return outer(c);\n" /* 15 */
	"}\n";

static uint64_t symbol_address(const char *file, const char *symbol)
{
	char line[512], name[256];
	uint64_t addr, ret = 0;
	FILE *f = toolrun_open("nm %s", file);

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %*c %255s", &addr, name) == 2 &&
		    !strcmp(name, symbol))
			ret = addr;
	}
	pclose(f);
	assert_true(ret);
	return ret;
}

/* What we know ourselves, without addr2line: names, lines and files of a function with an inlined
 * one. */
static void check_c(const char *compiler, bool absolute)
{
	uint64_t addrs[64], start;
	struct dwarf_answers r;
	bool saw_inner = false;
	struct target t;
	size_t i;

	assert_true(toolrun("mkdir -p sub"));
	toolrun_write("sub/c.c", c_program, sizeof(c_program) - 1);
	assert_true(toolrun("%s -o c sub/c.c", compiler));
	target__open(&t, "c");
	start = symbol_address("c", "outer");
	for (i = 0; i < 12; i++)
		addrs[i] = start + i;
	assert_int_equal(dwarf_resolve(t.elf, NULL, NULL, addrs, 12, t.strings, &r), 0);
	for (i = 0; i < 12; i++) {
		const struct dwarf_frame *frames = &r.frames[r.answers[i].first];
		uint32_t cnt = r.answers[i].cnt;
		const char *file;

		assert_in_range(cnt, 1, 2);
		assert_string_equal(strtab__get(t.strings, frames[cnt - 1].name), "outer");
		assert_int_equal(frames[cnt - 1].linkage_name, 0);
		assert_int_equal(frames[cnt - 1].start_line, 8);
		assert_int_equal(r.answers[i].entry, start);
		file = strtab__get(t.strings, frames[cnt - 1].file);
		assert_string_equal(base(file), "c.c");
		/* no folder is not the root folder */
		assert_string_not_equal(file, "/sub/c.c");
		if (absolute)
			assert_string_equal(file, toolrun_path("sub/c.c"));
		if (cnt == 2) {
			assert_string_equal(strtab__get(t.strings, frames[0].name), "inner");
			assert_in_range(frames[0].line, 1, 6);
			assert_int_equal(frames[0].start_line, 1);
			assert_int_equal(frames[1].line, 10);
			saw_inner = true;
		}
	}
	assert_true(saw_inner);
	dwarf_answers__done(&r);
	target__close(&t);
}

static void test_c(void **state)
{
	(void)state;
	check_c("gcc -O1 -fno-inline-functions-called-once -gdwarf-5", true);
	check_c("gcc -O1 -gdwarf-4", true);
	check_c("gcc -O1 -gdwarf-2", true);
	check_c("gcc -O1 -g -ffile-prefix-map=$PWD=/nowhere", false);
	check_c("gcc -O1 -gdwarf-4 -ffile-prefix-map=$PWD=", false);
}

/* Resolves where a function begins, which is one frame. */
static const struct dwarf_frame *resolve_function(const struct target *t, const char *file,
						  const char *name, struct dwarf_answers *ret)
{
	uint64_t addr = symbol_address(file, name);

	assert_int_equal(dwarf_resolve(t->elf, NULL, NULL, &addr, 1, t->strings, ret), 0);
	assert_int_equal(ret->answers[0].cnt, 1);
	return &ret->frames[ret->answers[0].first];
}

/* Code of a function that stands in another one, outside of whose ranges it lies. */
static void test_nested(void **state)
{
	static const char nested[] =
		"int outer(int x)\n{\n"
		"	int __attribute__((noinline)) within(int y)\n"
		"	{\n		volatile int v = y * x;\n		return v;\n	}\n"
		"	return within(3) + within(4);\n}\n"
		"int main(int argc, char **argv)\n{\n	(void)argv;\n	return outer(argc);\n}\n";
	static const char *const functions[] = { "within.0", "outer" };
	struct dwarf_answers r;
	struct target t;

	(void)state;
	toolrun_write("nested.c", nested, sizeof(nested) - 1);
	assert_true(toolrun("gcc -O1 -g -fno-inline nested.c -o nested"));
	target__open(&t, "nested");
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		const struct dwarf_frame *frame = resolve_function(&t, "nested", functions[i], &r);

		assert_memory_equal(strtab__get(t.strings, frame->name), functions[i],
				    strcspn(functions[i], "."));
		dwarf_answers__done(&r);
	}
	target__close(&t);
}

/* A name that is longer than any is none. */
static void test_long_name(void **state)
{
	static const size_t lengths[] = { SYMTAB_MAX_NAME, SYMTAB_MAX_NAME + 1 };
	static char text[3 * SYMTAB_MAX_NAME], name[SYMTAB_MAX_NAME + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		const struct dwarf_frame *f;
		struct dwarf_answers r;
		struct target t;

		memset(name, 'n', lengths[i]);
		snprintf(text, sizeof(text),
			 "int %s(int x) __asm__(\"inside\");\nint %s(int x) { return x + 1; }\nint "
			 "main(void) { return 0; }\n",
			 name, name);
		toolrun_write("long.c", text, strlen(text));
		assert_true(toolrun("gcc -O1 -g -o long long.c"));
		target__open(&t, "long");
		f = resolve_function(&t, "long", "inside", &r);
		assert_int_equal(strlen(strtab__get(t.strings, f->name)), i ? 0 : lengths[i]);
		assert_string_equal(strtab__get(t.strings, f->linkage_name), "inside");
		dwarf_answers__done(&r);
		target__close(&t);
	}
}

/* Only of C++ a name without a linkage name may lack what it is qualified by. */
static void test_languages(void **state)
{
	static const char code[] =
		"extern \"C\" int plain(int x)\n{\n	return x * 3;\n}\n"
		"int main(int argc, char **argv)\n{\n	(void)argv;\n"
		"	return plain(argc);\n}\n";
	/* DW_LANG_… */
	static const struct {
		unsigned int language;
		bool cxx;
	} cases[] = {
		{ 0x04, true },	 /* C_plus_plus */
		{ 0x19, true },	 /* C_plus_plus_03 */
		{ 0x1a, true },	 /* C_plus_plus_11 */
		{ 0x21, true },	 /* C_plus_plus_14 */
		{ 0x2a, true },	 /* C_plus_plus_17 */
		{ 0x2b, true },	 /* C_plus_plus_20 */
		{ 0x0c, false }, /* C99 */
		{ 0x1d, false }, /* C11 */
		{ 0x2c, false }, /* C17 */
		{ 0x1c, false }, /* Rust */
	};
	struct dwarf_answers r;
	struct target t;

	(void)state;
	toolrun_write("language.cc", code, sizeof(code) - 1);
	assert_true(toolrun("g++ -O0 -gdwarf-5 -dA -S language.cc -o language.s"));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(
			toolrun("sed 's/\\(byte[[:space:]]*\\)0x[0-9a-f]*\\(.*DW_AT_language\\)/"
				"\\1%#x\\2/' language.s > as.s && gcc as.s -o language",
				cases[i].language));
		target__open(&t, "language");
		assert_int_equal(resolve_function(&t, "language", "plain", &r)->unqualified,
				 cases[i].cxx);
		dwarf_answers__done(&r);
		target__close(&t);
	}
}

/* The rows of a function that the linker has thrown away begin at 0 and reach over the others:
 * no line is better than a wrong one. */
static void test_discarded_rows(void **state)
{
	struct dwarf_answers r;
	struct target t;
	uint64_t addr;
	FILE *f;

	(void)state;
	f = fopen(toolrun_path("dead.c"), "w");
	assert_non_null(f);
	fputs(c_program, f);
	fputs("void dead(void)\n{\n", f);
	for (int i = 0; i < 8192; i++)
		fputs("\tasm volatile(\"nop\");\n", f);
	fputs("}\n", f);
	fclose(f);
	assert_true(
		toolrun("gcc -O1 -g -pie -ffunction-sections -Wl,--gc-sections -o dead dead.c"));
	target__open(&t, "dead");
	/* where a row of its own does not happen to begin */
	addr = symbol_address("dead", "outer") + 1;
	assert_in_range(addr, 1, 8192);
	assert_int_equal(dwarf_resolve(t.elf, NULL, NULL, &addr, 1, t.strings, &r), 0);
	assert_in_range(r.answers[0].cnt, 1, 2);
	assert_string_equal(strtab__get(t.strings, r.frames[r.answers[0].cnt - 1].name), "outer");
	assert_in_range(r.frames[0].line, 0, 11);
	dwarf_answers__done(&r);
	target__close(&t);
}

/* The line that a file gives for the middle of big(), 0: none. */
static uint32_t line_of_mid(const char *name, uint64_t addr)
{
	struct dwarf_answers r;
	struct target t;
	uint32_t line;

	target__open(&t, name);
	assert_int_equal(dwarf_resolve(t.elf, NULL, NULL, &addr, 1, t.strings, &r), 0);
	assert_int_equal(r.answers[0].cnt, 1);
	assert_string_equal(strtab__get(t.strings, r.frames[0].name), "big");
	line = r.frames[0].line;
	dwarf_answers__done(&r);
	target__close(&t);
	return line;
}

/* What a whole program that is compiled as one has: a line table of more than 10 MB; and as many bytes that each make
 * a row. */
static void test_large_line_table(void **state)
{
	const int rows = 1900000, step = 1299709, lines = 3999971, same_line = 0 + 5 + 14 * 1 + 13;
	struct elf_section sec;
	struct target t;
	uint8_t *buf;
	uint64_t addr;
	uint32_t line;
	int row;
	size_t sz, at;
	FILE *f;

	(void)state;
	f = fopen(toolrun_path("rows.inc"), "w");
	assert_non_null(f);
	for (int i = 0; i < rows; i++)
		fprintf(f, "%s.loc 1 %ld\nnop\n", i == rows / 2 ? "mid:\n" : "",
			1 + (long)i * step % lines);
	fclose(f);
	f = fopen(toolrun_path("large.c"), "w");
	assert_non_null(f);
	fputs("void big(void) { __asm__ volatile(\".include \\\"rows.inc\\\"\"); }\n"
	      "int main(void) { big(); return 0; }\n",
	      f);
	fclose(f);
	assert_true(toolrun("gcc -g -o large large.c"));
	target__open(&t, "large");
	assert_true(elf_file__section(t.elf, ".debug_line", &sec));
	target__close(&t);
	assert_in_range(sec.size, 10 << 20, 60 << 20);
	addr = symbol_address("large", "mid");
	assert_int_equal(line_of_mid("large", addr), 1 + (long)(rows / 2) * step % lines);
	buf = toolrun_read(toolrun_path("large"), &sz);
	/* from the beginning of a row up to DW_LNE_end_sequence: the address grows by 1, the line
	 * stays, with what binutils have as line_base, line_range and opcode_base: -5, 14, 13
	 * (DWARF 5, 6.2.5.1) */
	for (at = sec.offset + 1024; buf[at - 1] != same_line || buf[at] != DW_LNS_advance_line;)
		at++;
	memset(buf + at, same_line, sec.offset + sec.size - 3 - at);
	toolrun_write("large", buf, sz);
	free(buf);
	/* the last line before that, of one of the first rows: so many rows take time and no memory */
	line = line_of_mid("large", addr);
	for (row = 0; row < 1024 && 1 + (long)row * step % lines != line; row++)
		;
	assert_in_range(row, 1, 1023);
}

/* Split DWARF: the names are in a file that we do not open, the lines are in this one. */
static void test_split(void **state)
{
	struct dwarf_answers r;
	struct target t;
	uint64_t addr;

	(void)state;
	toolrun_write("s.c", c_program, sizeof(c_program) - 1);
	assert_true(toolrun("gcc -O1 -g -gsplit-dwarf -o s s.c"));
	target__open(&t, "s");
	addr = symbol_address("s", "outer");
	assert_int_equal(dwarf_resolve(t.elf, NULL, NULL, &addr, 1, t.strings, &r), 0);
	assert_int_equal(r.answers[0].cnt, 1);
	assert_int_equal(r.frames[0].name, 0);
	assert_in_range(r.frames[0].line, 1, 11);
	assert_string_equal(base(strtab__get(t.strings, r.frames[0].file)), "s.c");
	dwarf_answers__done(&r);
	target__close(&t);
}

/* Makes z1 of O2-5, with a part of it in the supplementary file "common". */
static void run_dwz(void)
{
	if (!toolrun_have("dwz") || !toolrun("cp O2-5 z1 && cp O0-gc z2 && "
					     "dwz -m common z1 z2 2>/dev/null")) {
		print_message("dwz is missing or failed\n");
		skip();
	}
}

/* Units that dwz has shortened, their common parts in a supplementary file. */
static void test_dwz(void **state)
{
	struct dwarf_answers whole, cut;
	struct elf_file *alt;
	struct target t, z;
	int alt_fd;

	(void)state;
	run_dwz();
	target__open(&t, "O2-5");
	target__open(&z, "z1");
	alt_fd = open(toolrun_path("common"), O_RDONLY | O_CLOEXEC);
	assert_true(alt_fd >= 0);
	assert_null(elf_file__open(alt_fd));
	alt = elf_file__open_debug(alt_fd);
	assert_non_null(alt);
	assert_int_equal(dwarf_resolve(t.elf, NULL, NULL, t.addrs, t.cnt, t.strings, &whole), 0);
	assert_int_equal(dwarf_resolve(z.elf, alt, NULL, t.addrs, t.cnt, z.strings, &cut), 0);
	check_equal(&t, &whole, &z, &cut);
	dwarf_answers__done(&whole);
	dwarf_answers__done(&cut);
	elf_file__free(alt);
	close(alt_fd);
	target__close(&t);
	target__close(&z);
}

/* ---- files that the DWARF names ---- */

/* What a child of strace does: names all of main in a file of the test's folder. */
static int resolve_main(const char *path)
{
	/* asks once which time namespace this is, and is not what is looked for */
	uint64_t begin_ns = util_monotonic_ns();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = fd >= 0 ? elf_file__open(fd) : NULL;
	struct strtab *strings = strtab__new();
	struct dwarf_answers r;
	struct elf_section text;
	uint64_t addrs[4096];
	size_t cnt = 0;
	int err;

	if (!begin_ns || !elf || !strings || !elf_file__section(elf, ".text", &text))
		return 1;
	for (; cnt < ARRAY_SIZE(addrs) && cnt < text.size; cnt++)
		addrs[cnt] = text.addr + cnt;
	err = dwarf_resolve(elf, NULL, NULL, addrs, cnt, strings, &r);
	if (!err)
		dwarf_answers__done(&r);
	strtab__free(strings);
	elf_file__free(elf);
	close(fd);
	return err && err != -ENOENT;
}

/* The files opened after the one that was asked for. */
static void check_opens_nothing(const char *name)
{
	char self[PATH_MAX], line[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	bool begun = false;
	FILE *f;

	assert_true(len > 0);
	self[len] = '\0';
	if (!toolrun_have("strace") || !toolrun("strace -o /dev/null true 2>/dev/null")) {
		print_message("strace is missing or may not trace\n");
		skip();
	}
	assert_true(
		toolrun("ASAN_OPTIONS=detect_leaks=0 strace -f -o opened "
			"-e trace=open,openat,openat2,connect '%s' resolve $PWD/%s",
			self, name));
	f = fopen(toolrun_path("opened"), "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (begun && strstr(line, "(")) {
			print_message("%s", line);
			fail();
		}
		if (strstr(line, toolrun_path(name)))
			begun = true;
	}
	fclose(f);
	assert_true(begun);
}

/* libdw itself would open s-s.dwo, and common, which lie where the file says. */
static void test_opens_no_split(void **state)
{
	(void)state;
	toolrun_write("s.c", c_program, sizeof(c_program) - 1);
	assert_true(toolrun("gcc -O1 -gdwarf-5 -gsplit-dwarf -o s5 s.c && test -e s5-s.dwo"));
	check_opens_nothing("s5");
	assert_true(toolrun("gcc -O1 -gdwarf-4 -gsplit-dwarf -o s4 s.c && test -e s4-s.dwo"));
	check_opens_nothing("s4");
}

static void test_opens_no_alt(void **state)
{
	struct dwarf_answers r;
	struct target z;

	(void)state;
	run_dwz();
	check_opens_nothing("z1");
	/* half of the names are worse than those of the symbol table */
	target__open(&z, "z1");
	assert_int_equal(dwarf_resolve(z.elf, NULL, NULL, z.addrs, z.cnt, z.strings, &r), -ENOENT);
	target__close(&z);
}

static void test_none(void **state)
{
	struct dwarf_answers r;
	struct target t;

	(void)state;
	toolrun_write("s.c", c_program, sizeof(c_program) - 1);
	assert_true(toolrun("gcc -O1 -s -o stripped s.c"));
	target__open(&t, "stripped");
	assert_int_equal(dwarf_resolve(t.elf, NULL, NULL, t.addrs, t.cnt, t.strings, &r), -ENOENT);
	target__close(&t);
}

/* Nonsense in every debug section: answers may be wrong, but they come, and soon, and nothing is
 * read that is not there. */
static void damage(const struct target *t, uint8_t *bad)
{
	static const char *const sections[] = { ".debug_info",	   ".debug_abbrev",
						".debug_line",	   ".debug_str",
						".debug_line_str", ".debug_rnglists",
						".debug_ranges" };
	size_t times = 1 + (size_t)rand() % 200, i;
	struct elf_section sec;

	for (i = 0; i < times; i++) {
		if (elf_file__section(t->elf, sections[(size_t)rand() % ARRAY_SIZE(sections)],
				      &sec) &&
		    sec.size)
			bad[sec.offset + (size_t)rand() % sec.size] = rand() & 1 ? 0xff : rand();
	}
	/* the first bytes are headers, and decide most */
	if (elf_file__section(t->elf, sections[rand() % 3], &sec) && sec.size > 64)
		bad[sec.offset + (size_t)rand() % 64] = rand();
}

static void test_damaged(void **state)
{
	size_t sz, i, good_cnt = 0;
	uint64_t ns, worst = 0;
	struct dwarf_answers r;
	uint8_t *good, *bad;
	struct elf_file *e;
	struct target t;
	int err, fd;

	(void)state;
	target__open(&t, "O2-5");
	good = toolrun_read(toolrun_path("O2-5"), &sz);
	bad = malloc(sz);
	assert_non_null(bad);
	srand(4);
	for (i = 0; i < 60; i++) {
		memcpy(bad, good, sz);
		damage(&t, bad);
		toolrun_write("bad", bad, sz);
		fd = open(toolrun_path("bad"), O_RDONLY | O_CLOEXEC);
		e = elf_file__open(fd);
		assert_non_null(e);
		ns = util_monotonic_ns();
		err = dwarf_resolve(e, NULL, NULL, t.addrs, t.cnt, t.strings, &r);
		ns = util_monotonic_ns() - ns;
		worst = MAX(worst, ns);
		good_cnt += !err;
		if (!err)
			dwarf_answers__done(&r);
		elf_file__free(e);
		close(fd);
	}
	assert_true(worst < 5 * NSEC_PER_SEC);
	assert_true(good_cnt > 30);
	free(bad);
	free(good);
	target__close(&t);
}

/* What dwarf_resolve returns for an address of t, whose functions are in the file `split`; *ret: the names of
 * its frames, innermost first, each with a blank behind. */
static int resolve_split(struct target *t, uint64_t addr, const char *split, char *ret)
{
	int fd = open(toolrun_path(split), O_RDONLY | O_CLOEXEC);
	struct elf_file *e = elf_file__open_debug(fd);
	struct dwarf_answers r;
	int err;

	ret[0] = '\0';
	if (!e) {
		close(fd);
		return -ENOEXEC;
	}
	err = dwarf_resolve(t->elf, NULL, e, &addr, 1, t->strings, &r);
	for (uint32_t i = 0; !err && i < r.answers[0].cnt; i++) {
		strncat(ret, strtab__get(t->strings, r.frames[i].name), 100);
		strcat(ret, " ");
	}
	if (!err)
		dwarf_answers__done(&r);
	elf_file__free(e);
	close(fd);
	return err;
}

/* Split units of DWARF 4 and 5, in a file of their own, one after the other, or packed; then each of
 * these files with a few bytes changed. */
static void test_split_file(void **state)
{
	static const struct {
		const char *flags, *file, *make;
	} made[] = {
		{ "-gdwarf-4", "s.dwo", "true" },
		{ "-gdwarf-5", "s.dwo", "true" },
		{ "-gdwarf-4", "s.dwp", "dwp -e s -o s.dwp" },
	};
	char names[DWARF_MAX_INLINE * 101];
	struct target t;
	uint8_t *good, *bad;
	uint64_t addr;
	size_t sz;

	(void)state;
	srand(5);
	toolrun_write("s.c", c_program, sizeof(c_program) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		assert_true(toolrun("gcc -O1 %s -gsplit-dwarf -o s s.c", made[i].flags));
		/* not every binutils has it */
		if (!strncmp(made[i].make, "dwp", 3) && !toolrun_have("dwp")) {
			print_message("no dwp: its file is left out\n");
			continue;
		}
		assert_true(toolrun("%s", made[i].make));
		target__open(&t, "s");
		addr = symbol_address("s", "outer");
		assert_int_equal(resolve_split(&t, addr, made[i].file, names), 0);
		assert_string_equal(names, "inner outer ");
		good = toolrun_read(toolrun_path(made[i].file), &sz);
		bad = malloc(sz);
		assert_non_null(bad);
		for (size_t k = 0; k < 60; k++) {
			memcpy(bad, good, sz);
			for (size_t n = 0; n < 1 + k % 8; n++)
				bad[64 + (size_t)rand() % (sz - 64)] = rand() & 1 ? 0xff : rand();
			toolrun_write("bad", bad, sz);
			(void)resolve_split(&t, addr, "bad", names);
		}
		free(good);
		free(bad);
		target__close(&t);
	}
}

/* A file is looked for only where a unit names one: clang's DWARF 5 has a table of addresses in any case. */
static void test_names_split(void **state)
{
	static const struct {
		const char *compiler;
		bool addr, split;
	} made[] = {
		{ "gcc -gdwarf-4 -gsplit-dwarf", true, true },
		{ "gcc -gdwarf-5 -gsplit-dwarf", true, true },
		{ "gcc -gdwarf-5 -gz -gsplit-dwarf", true, true },
		{ "clang -gdwarf-4 -gsplit-dwarf", true, true },
		{ "clang -gdwarf-5 -gsplit-dwarf", true, true },
		{ "clang -gdwarf-5", true, false },
		{ "clang -gdwarf-4", false, false },
		{ "gcc -gdwarf-5", false, false },
	};
	struct elf_section s;
	struct target t;

	(void)state;
	toolrun_write("s.c", c_program, sizeof(c_program) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		assert_true(toolrun("%s -O1 -o s s.c", made[i].compiler));
		target__open(&t, "s");
		assert_int_equal(elf_file__section(t.elf, ".debug_addr", &s), made[i].addr);
		assert_int_equal(dwarf_split__may_be(t.elf), made[i].split);
		target__close(&t);
	}
}

/* The string section's last string has no end: libdw reads on. */
static void test_endless_string(void **state)
{
	struct elf_section sec;
	struct dwarf_answers r;
	struct elf_file *e;
	struct target t;
	uint8_t *buf;
	size_t sz;
	int fd;

	(void)state;
	target__open(&t, "O2-5");
	assert_true(elf_file__section(t.elf, ".debug_line_str", &sec));
	buf = toolrun_read(toolrun_path("O2-5"), &sz);
	buf[sec.offset + sec.size - 1] = 'x';
	toolrun_write("bad", buf, sz);
	fd = open(toolrun_path("bad"), O_RDONLY | O_CLOEXEC);
	e = elf_file__open(fd);
	assert_non_null(e);
	assert_int_equal(dwarf_resolve(e, NULL, NULL, t.addrs, t.cnt, t.strings, &r), -EBADMSG);
	elf_file__free(e);
	close(fd);
	free(buf);
	target__close(&t);
}

/* Resolves O2-5 with a section that says of itself that it expands to more than is ever read. */
static int resolve_too_big(const char *section)
{
	const uint64_t huge = ELF_FILE_MAX_SECTION + 1;
	struct elf_section sec;
	struct dwarf_answers r;
	struct elf_file *e;
	struct target t;
	uint8_t *buf;
	int fd, err;
	size_t sz;

	target__open(&t, "O2-z");
	assert_true(elf_file__section(t.elf, section, &sec));
	buf = toolrun_read(toolrun_path("O2-z"), &sz);
	memcpy(buf + sec.offset + offsetof(Elf64_Chdr, ch_size), &huge, sizeof(huge));
	toolrun_write("bad", buf, sz);
	fd = open(toolrun_path("bad"), O_RDONLY | O_CLOEXEC);
	e = elf_file__open(fd);
	assert_non_null(e);
	err = dwarf_resolve(e, NULL, NULL, t.addrs, t.cnt, t.strings, &r);
	if (!err)
		dwarf_answers__done(&r);
	elf_file__free(e);
	close(fd);
	free(buf);
	target__close(&t);
	return err;
}

static void test_too_big(void **state)
{
	(void)state;
	assert_true(toolrun("objcopy --compress-debug-sections=zlib O2-5 O2-z"));
	assert_int_equal(resolve_too_big(".debug_rnglists"), -E2BIG);
	/* where variables lie is not read */
	assert_int_equal(resolve_too_big(".debug_loclists"), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dwarf5),
		cmocka_unit_test(test_dwarf4),
		cmocka_unit_test(test_dwarf3),
		cmocka_unit_test(test_dwarf64),
		cmocka_unit_test(test_aranges),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_discarded),
		cmocka_unit_test(test_clang),
		cmocka_unit_test(test_c),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_names_split),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_languages),
		cmocka_unit_test(test_discarded_rows),
		cmocka_unit_test(test_large_line_table),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_split_file),
		cmocka_unit_test(test_dwz),
		cmocka_unit_test(test_opens_no_split),
		cmocka_unit_test(test_opens_no_alt),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_endless_string),
		cmocka_unit_test(test_too_big),
	};
	int failed;

	if (argc == 3 && !strcmp(argv[1], "resolve"))
		return resolve_main(argv[2]);
	failed = cmocka_run_group_tests(tests, setup, NULL);
	toolrun_cleanup();
	return failed;
}
