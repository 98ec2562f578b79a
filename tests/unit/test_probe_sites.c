/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes that somebody names: their names, and where they go, in files made for it and in damaged ones. */
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
#include "capture/ops.h"
#include "target/elf_file.h"
#include "target/objects.h"
#include "target/probe_sites.h"
#include "toolrun.h"

/* ---- names ---- */

static void assert_probe(const char *text, const char *file, const char *provider, const char *name)
{
	struct ops_probe p;

	if (ops_probe_parse(text, &p))
		fail_msg("'%s' is refused", text);
	assert_string_equal(p.file, file);
	assert_string_equal(p.provider, provider);
	assert_string_equal(p.name, name);
}

static void test_names(void **state)
{
	static const char *const bad[] = {
		"",	    "f",       "uprobe",    "uprobe:",	"uprobe::f", "uprobe:a:",
		"usdt:",    "usdt:a",  "usdt:a:",   "usdt::b",	"usdt::a:b", "usdt:a::b",
		"kprobe:f", "usdt:::", " uprobe:f", "Uprobe:f",
	};
	char *longest = malloc(2 * PATH_MAX);
	struct ops_probe p;

	(void)state;
	assert_probe("uprobe:f", "", "", "f");
	assert_probe("uprobe:/a/b:f", "/a/b", "", "f");
	assert_probe("uprobe:ns::f(int, char)", "", "", "ns::f(int, char)");
	assert_probe("uprobe:./lib.so:ns::sub::f", "./lib.so", "", "ns::sub::f");
	assert_probe("usdt:a:b", "", "a", "b");
	assert_probe("usdt:/x:y:a:b", "/x:y", "a", "b");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!ops_probe_parse(bad[i], &p))
			fail_msg("'%s' is not refused", bad[i]);
	assert_non_null(longest);
	memset(longest, 'x', 2 * PATH_MAX);
	memcpy(longest, "uprobe:", 7);
	longest[7 + PROBE_SITES_MAX_NAME] = '\0';
	assert_int_equal(ops_probe_parse(longest, &p), -EINVAL);
	longest[7 + PROBE_SITES_MAX_NAME - 1] = '\0';
	assert_int_equal(ops_probe_parse(longest, &p), 0);
	memset(longest, 'x', 2 * PATH_MAX);
	memcpy(longest, "uprobe:", 7);
	strcpy(longest + 7 + PATH_MAX, ":f");
	assert_int_equal(ops_probe_parse(longest, &p), -EINVAL);
	free(longest);
}

/* ---- functions ---- */

static int find_in(const char *file, const char *debug, const char *provider, const char *name,
		   struct probe_sites *ret)
{
	int fd = open(toolrun_path(file), O_RDONLY | O_CLOEXEC);
	int debug_fd = debug ? open(toolrun_path(debug), O_RDONLY | O_CLOEXEC) : -1, err;
	struct elf_file *elf = elf_file__open(fd);
	struct elf_file *more = debug ? elf_file__open_debug(debug_fd) : NULL;

	assert_non_null(elf);
	err = probe_sites_find(elf, more, provider, name, PROBE_SITES_HIT, ret);
	elf_file__free(elf);
	elf_file__free(more);
	close(fd);
	if (debug)
		close(debug_fd);
	return err;
}

static uint64_t address_of(const char *file, const char *symbol)
{
	FILE *f = toolrun_open("nm %s", file);
	char line[512], name[256];
	uint64_t addr, ret = 0;

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %*c %255s", &addr, name) == 2 &&
		    !strcmp(name, symbol))
			ret = addr;
	pclose(f);
	assert_true(ret);
	return ret;
}

/* Where an address lies in the file, as readelf has it. */
static uint64_t offset_of(const char *file, uint64_t vaddr)
{
	FILE *f = toolrun_open("readelf -lW %s", file);
	uint64_t off, addr, sz, ret = UINT64_MAX;
	char line[512];

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " LOAD %" SCNx64 " %" SCNx64 " %*x %" SCNx64, &off, &addr, &sz) ==
			    3 &&
		    vaddr - addr < sz)
			ret = off + (vaddr - addr);
	pclose(f);
	return ret;
}

/* It is probed so many bytes behind the symbol. */
static void assert_site(const char *file, const char *debug, const char *name, const char *symbol,
			uint64_t behind)
{
	struct probe_sites s;
	int err = find_in(file, debug, "", name, &s);

	if (err)
		fail_msg("'%s': %s", name, strerror(-err));
	assert_int_equal(s.cnt, 1);
	assert_int_equal(s.sites[0].ref_ctr, 0);
	assert_int_equal(s.sites[0].offset,
			 offset_of("functions.so", address_of("functions.so", symbol)) + behind);
	probe_sites__done(&s);
}

static int refusal(const char *file, const char *provider, const char *name)
{
	struct probe_sites s;
	int err = find_in(file, NULL, provider, name, &s);

	assert_int_equal(s.cnt, 0);
	assert_null(s.sites);
	return err;
}

static void build_asm(const char *name, const char *source)
{
	toolrun_write("made.s", source, strlen(source));
	assert_true(toolrun("gcc -shared -nostdlib -fPIC -Wl,--build-id -o %s made.s", name));
}

#define FUNCTION(name, code)                                                          \
	".globl " name "; .type " name ", @function; " name ": " code "\n.size " name \
	", . - " name "\n"

static const char functions[] = ".text\n" FUNCTION("plain", "push %rbx; pop %rbx; ret")
	/* the first instruction is single-stepped, the next one is not */
	FUNCTION("marked", "endbr64; push %rbx; pop %rbx; ret")
	/* the next one is hit more often than the first */
	FUNCTION("loops", "endbr64; 1: nop; dec %edi; jne 1b; ret")
		FUNCTION("again", "endbr64; push %rbx; pop %rbx; dec %edi; jne again; ret")
			/* as Go's: it begins anew, with more stack */
	FUNCTION("grows", "cmp 16(%r14), %rsp; jbe 1f; push %rbp; mov %rsp, %rbp; pop %rbp; ret\n"
			  "1: mov %rax, 8(%rsp); call plain@plt; mov 8(%rsp), %rax; jmp grows")
	FUNCTION("grows_far", "lea -4096(%rsp), %r12; cmp 16(%r14), %r12; jbe 1f; sub $8192, %rsp\n"
			      "add $8192, %rsp; ret; 1: call plain@plt; jmp grows_far")
	FUNCTION("grows_huge", "mov %rsp, %r12; sub $8192, %r12; jb 1f; cmp 16(%r14), %r12; jbe 1f\n"
			       "push %rbp; pop %rbp; ret; 1: call plain@plt; jmp grows_huge")
	/* as them, but for one thing */
	FUNCTION("no_call", "cmp 16(%r14), %rsp; jbe 1f; push %rbp; pop %rbp; ret; 1: nop; jmp no_call")
	FUNCTION("no_frame", "cmp 16(%r14), %rsp; jbe 1f; ret; 1: call plain@plt; jmp no_frame")
	FUNCTION("forked", "cmp 16(%r14), %rsp; jbe 1f; push %rbp; pop %rbp; ret\n"
			   "1: call plain@plt; je 2f; jmp forked; 2: ret")
	FUNCTION("_ZN2ns1fEi", "push %rbx; pop %rbx; ret") /* ns::f(int) */
	FUNCTION("_ZN2ns1fEi.cold", "push %rbx; pop %rbx; ret")		   /* a part of it */
	FUNCTION("_ZN2ns1gEi", "push %rbx; pop %rbx; ret")
		FUNCTION("_ZN2ns1gEc", "push %rbx; pop %rbx; ret")
			FUNCTION("_ZN2nsplEi", "push %rbx; pop %rbx; ret") /* ns::operator+(int) */
	FUNCTION("_ZN2ns1TcvbEv", "push %rbx; pop %rbx; ret") /* ns::T::operator bool() */
	FUNCTION("_Z5plainv", "push %rbx; pop %rbx; ret")		   /* plain() */
	FUNCTION("_ZN3foo3bar17h05af221e174051e9E", "push %rbx; pop %rbx; ret") /* foo::bar */
	FUNCTION("secret", ".hidden secret; endbr64; push %rbx; pop %rbx; ret")
	".type chosen, @gnu_indirect_function; .globl chosen; chosen: ret\n"
	".globl label; label: ret\n"
	"call elsewhere@plt\n.type elsewhere, @function\n"
	".data; .globl data; .type data, @object; data: .long 0\n"
	".type in_data, @function; .globl in_data; in_data: .long 0\n"
	".text; .type also, @function; .globl also; .set also, plain\n";

static void test_functions(void **state)
{
	(void)state;
	build_asm("functions.so", functions);
	assert_site("functions.so", NULL, "plain", "plain", 0);
	assert_site("functions.so", NULL, "also", "plain", 0);
	assert_site("functions.so", NULL, "marked", "marked", 4);
	assert_site("functions.so", NULL, "loops", "loops", 0);
	assert_site("functions.so", NULL, "again", "again", 0);
	assert_site("functions.so", NULL, "grows", "grows", 6);
	assert_site("functions.so", NULL, "grows_far", "grows_far", 14);
	assert_site("functions.so", NULL, "grows_huge", "grows_huge", 18);
	assert_site("functions.so", NULL, "no_call", "no_call", 0);
	assert_site("functions.so", NULL, "no_frame", "no_frame", 0);
	assert_site("functions.so", NULL, "forked", "forked", 0);
	assert_site("functions.so", NULL, "_ZN2ns1fEi", "_ZN2ns1fEi", 0);
	assert_site("functions.so", NULL, "ns::f(int)", "_ZN2ns1fEi", 0);
	assert_site("functions.so", NULL, "ns::f", "_ZN2ns1fEi", 0);
	assert_site("functions.so", NULL, "ns::g(char)", "_ZN2ns1gEc", 0);
	assert_site("functions.so", NULL, "ns::operator+", "_ZN2nsplEi", 0);
	assert_site("functions.so", NULL, "ns::T::operator bool", "_ZN2ns1TcvbEv", 0);
	assert_site("functions.so", NULL, "plain()", "_Z5plainv", 0);
	assert_site("functions.so", NULL, "foo::bar", "_ZN3foo3bar17h05af221e174051e9E", 0);
	assert_int_equal(refusal("functions.so", "", "ns::g"), -ENOTUNIQ);
	assert_int_equal(refusal("functions.so", "", "nothing"), -ENOENT);
	assert_int_equal(refusal("functions.so", "", "ns::"), -ENOENT);
	assert_int_equal(refusal("functions.so", "", "pl"), -ENOENT);
	assert_int_equal(refusal("functions.so", "", "chosen"), -ENOENT);
	assert_int_equal(refusal("functions.so", "", "elsewhere"), -ENOENT);
	assert_int_equal(refusal("functions.so", "", "data"), -ENOENT);
	assert_int_equal(refusal("functions.so", "", "in_data"), -ENOENT);
	assert_int_equal(refusal("functions.so", "plain", "plain"), -ENOENT);
}

/* Names that only a file of debug information has, or only the dynamic symbols. */
static void test_tables(void **state)
{
	(void)state;
	build_asm("functions.so", functions);
	assert_true(
		toolrun("objcopy --only-keep-debug functions.so functions.debug && "
			"strip -o stripped.so functions.so"));
	assert_site("stripped.so", NULL, "plain", "plain", 0);
	assert_site("stripped.so", "functions.debug", "plain", "plain", 0);
	assert_int_equal(refusal("stripped.so", "", "secret"), -ENOENT);
	assert_site("stripped.so", "functions.debug", "secret", "secret", 4);
}

/* A library keeps what programs of former times are linked with. */
static void test_versions(void **state)
{
	static const char source[] =
		".text\n" FUNCTION("old", "push %rbx; pop %rbx; ret")
			FUNCTION("new", "push %rbx; pop %rbx; ret")
		".symver old, versioned@V1; .symver new, versioned@@V2\n";
	static const char script[] = "V1 { }; V2 { old; new; } V1;";
	struct probe_sites s;

	(void)state;
	toolrun_write("versions", script, strlen(script));
	toolrun_write("made.s", source, strlen(source));
	assert_true(toolrun(
		"gcc -shared -nostdlib -Wl,--version-script=versions -o versions.so made.s && "
		"strip -o stripped.so versions.so"));
	for (int i = 0; i < 2; i++) {
		const char *file = i ? "stripped.so" : "versions.so";

		assert_int_equal(find_in(file, NULL, "", "versioned", &s), 0);
		assert_int_equal(s.cnt, 1);
		assert_int_equal(s.sites[0].offset,
				 offset_of("versions.so", address_of("versions.so", "new")));
		probe_sites__done(&s);
	}
}

/* Functions of one name in two files that make one. */
static void test_several(void **state)
{
	static const char one[] =
		".text; .type same, @function; same: push %rbx; pop %rbx; ret\n.globl a; a: ret\n";
	static const char two[] =
		".text; .type same, @function; same: push %rbx; pop %rbx; ret\n.globl b; b: ret\n";

	(void)state;
	toolrun_write("one.s", one, strlen(one));
	toolrun_write("two.s", two, strlen(two));
	assert_true(toolrun("gcc -shared -nostdlib -o several.so one.s two.s"));
	assert_int_equal(refusal("several.so", "", "same"), -ENOTUNIQ);
}

/* ---- USDT probes ---- */

#define NOTE(label, semaphore, provider, name)                                                  \
	".pushsection .note.stapsdt,\"\",\"note\"; .balign 4; .4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte " label                           \
	", _.stapsdt.base, " semaphore "\n.asciz \"" provider "\"; .asciz \"" name              \
	"\"; .asciz \"\"\n994: .balign 4; .popsection\n"

#define USDT_BEGIN                                                          \
	".section .probes,\"aw\"; sema: .2byte 0, 0\n"                      \
	".section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	".weak _.stapsdt.base; .hidden _.stapsdt.base; _.stapsdt.base: .space 1\n.text\n"

static const char usdt[] =
	USDT_BEGIN "a: nop\nb: nop\nc: .byte 0x0f,0x1f,0x44,0,0\nd: mov %rax, %rbx\ne: nop\nret\n"
	/* in the order of the file: whoever links may have another one */
	NOTE("b", "sema", "p", "n") NOTE("a", "sema", "p", "n")
	/* the same once more, as copies of templates have it */
	NOTE("a", "sema", "p", "n") NOTE("e", "0", "p", "other") NOTE("e", "0", "other", "n")
		NOTE("0x7fffffff0000", "0", "p", "n") /* nowhere */
	NOTE("c", "0", "p", "five") NOTE("d", "0", "p", "no_nop")
		NOTE("e", "0x7fffffff0000", "p", "semaphore");

static void test_usdt(void **state)
{
	struct probe_sites s;
	uint64_t sema;

	(void)state;
	build_asm("usdt.so", usdt);
	sema = offset_of("usdt.so", address_of("usdt.so", "sema"));
	assert_int_equal(find_in("usdt.so", NULL, "p", "n", &s), 0);
	assert_int_equal(s.cnt, 2);
	assert_int_equal(s.sites[0].offset, offset_of("usdt.so", address_of("usdt.so", "a")));
	assert_int_equal(s.sites[1].offset, offset_of("usdt.so", address_of("usdt.so", "b")));
	assert_int_equal(s.sites[0].ref_ctr, sema);
	assert_int_equal(s.sites[1].ref_ctr, sema);
	probe_sites__done(&s);
	assert_int_equal(find_in("usdt.so", NULL, "p", "other", &s), 0);
	assert_int_equal(s.cnt, 1);
	assert_int_equal(s.sites[0].ref_ctr, 0);
	probe_sites__done(&s);
	assert_int_equal(refusal("usdt.so", "p", "nothing"), -ENOENT);
	assert_int_equal(refusal("usdt.so", "nobody", "n"), -ENOENT);
	assert_int_equal(refusal("usdt.so", "", "n"), -ENOENT);
	assert_int_equal(refusal("usdt.so", "p", "five"), -EOPNOTSUPP);
	assert_int_equal(refusal("usdt.so", "p", "no_nop"), -EOPNOTSUPP);
	assert_int_equal(refusal("usdt.so", "p", "semaphore"), -EOPNOTSUPP);
}

/* What is left out would not be counted. */
static void test_too_many(void **state)
{
	static const char begin[] = USDT_BEGIN
		".macro site label; \\label: nop\n" NOTE("\\label", "0", "p", "n") ".endm\n";
	char *source = malloc(1 << 20);
	struct probe_sites s;

	(void)state;
	assert_non_null(source);
	for (int more = 0; more < 2; more++) {
		char *at = source + sprintf(source, "%s", begin);

		for (int i = 0; i < PROBE_SITES_MAX + more; i++)
			at += sprintf(at, "site l%d\n", i);
		build_asm("many.so", source);
		assert_int_equal(find_in("many.so", NULL, "p", "n", &s), more ? -EOVERFLOW : 0);
		assert_int_equal(s.cnt, more ? 0 : PROBE_SITES_MAX);
		probe_sites__done(&s);
	}
	free(source);
}

/* ---- by those without rights ---- */

static void test_objects(void **state)
{
	struct objects *o = objects__new();
	char probe[PATH_MAX + 16], err[512];
	struct ops_sites s;

	(void)state;
	assert_non_null(o);
	build_asm("functions.so", functions);
	build_asm("usdt.so", usdt);
	toolrun_write("script", "#!/bin/sh\n", 10);
	snprintf(probe, sizeof(probe), "uprobe:%s:ns::f", toolrun_path("functions.so"));
	assert_int_equal(ops_sites__find(&s, o, probe, "nothing", err, sizeof(err)), 0);
	assert_string_equal(s.path, toolrun_path("functions.so"));
	assert_int_equal(s.sites.cnt, 1);
	assert_int_equal(s.sites.sites[0].offset,
			 offset_of("functions.so", address_of("functions.so", "_ZN2ns1fEi")));
	ops_sites__done(&s);
	/* of the command's program */
	assert_int_equal(
		ops_sites__find(&s, o, "usdt:p:n", toolrun_path("usdt.so"), err, sizeof(err)), 0);
	assert_int_equal(s.sites.cnt, 2);
	ops_sites__done(&s);
	assert_int_not_equal(
		ops_sites__find(&s, o, "uprobe:nothing", toolrun_path("usdt.so"), err, sizeof(err)),
		0);
	assert_non_null(strstr(err, "no function 'nothing'"));
	assert_int_not_equal(
		ops_sites__find(&s, o, "usdt:a:b", toolrun_path("usdt.so"), err, sizeof(err)), 0);
	assert_non_null(strstr(err, "no USDT probe 'a:b'"));
	assert_int_not_equal(ops_sites__find(&s, o, "uprobe:ns::g", toolrun_path("functions.so"),
					     err, sizeof(err)),
			     0);
	assert_non_null(strstr(err, "several functions"));
	assert_int_not_equal(
		ops_sites__find(&s, o, "usdt:p:five", toolrun_path("usdt.so"), err, sizeof(err)),
		0);
	assert_non_null(strstr(err, "harm"));
	assert_int_not_equal(
		ops_sites__find(&s, o, "uprobe:f", toolrun_path("script"), err, sizeof(err)), 0);
	assert_non_null(strstr(err, "no ELF file"));
	assert_int_not_equal(ops_sites__find(&s, o, "uprobe:f", toolrun_folder(), err, sizeof(err)),
			     0);
	assert_non_null(strstr(err, "no regular file"));
	assert_int_not_equal(
		ops_sites__find(&s, o, "uprobe:/nonexistent:f", "sh", err, sizeof(err)), 0);
	assert_non_null(strstr(err, "cannot open '/nonexistent'"));
	assert_int_not_equal(
		ops_sites__find(&s, o, "uprobe:f", "nonexistent-program", err, sizeof(err)), 0);
	assert_non_null(strstr(err, "in PATH"));
	objects__free(o);
}

/* ---- what is damaged ---- */

static void find_all(const void *data, size_t sz)
{
	static const char *const names[][2] = { { "", "plain" }, { "", "ns::f" }, { "p", "n" } };
	struct elf_file *elf = elf_file__open_memory(data, sz);
	struct probe_sites s;

	for (size_t i = 0; elf && i < ARRAY_SIZE(names); i++) {
		int err = probe_sites_find(elf, elf, names[i][0], names[i][1], PROBE_SITES_HIT, &s);

		assert_true(err || (s.cnt && s.cnt <= PROBE_SITES_MAX));
		assert_true(!err || !s.sites);
		probe_sites__done(&s);
	}
	elf_file__free(elf);
}

static void damage(const char *file)
{
	uint64_t random = 88172645463325252ULL;
	size_t sz;
	char *buf = toolrun_read(toolrun_path(file), &sz), *copy = malloc(sz);

	assert_non_null(copy);
	for (size_t i = 0; i < 64; i++) {
		/* a buffer of its own, so that ASan sees its end */
		char *cut = malloc(sz * i / 64 + 1);

		assert_non_null(cut);
		memcpy(cut, buf, sz * i / 64 + 1);
		find_all(cut, sz * i / 64 + 1);
		free(cut);
	}
	for (size_t round = 0; round < 2000; round++) {
		memcpy(copy, buf, sz);
		for (size_t i = 0; i < 1 + round % 16; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			copy[random % sz] = (char)(random >> 32);
		}
		find_all(copy, sz);
	}
	free(copy);
	free(buf);
}

static void test_damaged(void **state)
{
	(void)state;
	build_asm("functions.so", functions);
	build_asm("usdt.so", usdt);
	damage("functions.so");
	damage("usdt.so");
}

static int clean_up(void **state)
{
	(void)state;
	toolrun_cleanup();
	return 0;
}

/* ---- what a probe is for ---- */

/* How far behind the symbol it is probed, or -errno. */
static int64_t behind(const char *name, enum probe_sites_use use)
{
	int fd = open(toolrun_path("uses.so"), O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = elf_file__open(fd);
	struct probe_sites s;
	int64_t ret;

	assert_non_null(elf);
	ret = probe_sites_find(elf, NULL, "", name, use, &s);
	if (!ret)
		ret = (int64_t)s.sites[0].offset -
		      (int64_t)offset_of("uses.so", address_of("uses.so", name));
	probe_sites__done(&s);
	elf_file__free(elf);
	close(fd);
	return ret;
}

static void test_uses(void **state)
{
	static const char source[] = ".text\n" FUNCTION(
		"takes", "endbr64; xor %edi, %edi; push %rbx; pop %rbx; ret")
		FUNCTION("fourth", "endbr64; mov $1, %ecx; push %rbx; pop %rbx; ret") FUNCTION(
			"fifth", "endbr64; xor %r8d, %r8d; push %rbx; pop %rbx; ret")
			FUNCTION("sixth", "endbr64; mov %rdi, %r9; push %rbx; pop %rbx; ret")
				FUNCTION("deep", "endbr64; sub $8, %rsp; push %rbx; pop %rbx; ret")
					FUNCTION("_ZN2ns1fEi", "endbr64; push %rbx; pop %rbx; ret");
	const enum probe_sites_use arg1 = PROBE_SITES_ARG, arg2 = arg1 + 1, arg4 = arg1 + 3,
				   arg5 = arg1 + 4, arg6 = PROBE_SITES_ARG_LAST;

	(void)state;
	build_asm("uses.so", source);
	assert_int_equal(behind("takes", PROBE_SITES_HIT), 6);
	assert_int_equal(behind("takes", PROBE_SITES_RETURN), 6);
	assert_int_equal(behind("takes", arg1), 0);
	assert_int_equal(behind("takes", arg2), 6);
	assert_int_equal(behind("fourth", arg4), 0);
	assert_int_equal(behind("fourth", arg5), 9);
	assert_int_equal(behind("fifth", arg5), 0);
	assert_int_equal(behind("fifth", arg6), 7);
	assert_int_equal(behind("sixth", arg6), 0);
	assert_int_equal(behind("sixth", arg1), 7);
	/* where the return address lies is known at the beginning alone */
	assert_int_equal(behind("deep", PROBE_SITES_RETURN), 0);
	assert_int_equal(behind("deep", PROBE_SITES_HIT), 8);
	/* an exception may pass it */
	assert_int_equal(behind("_ZN2ns1fEi", PROBE_SITES_RETURN), -EOPNOTSUPP);
	assert_int_equal(behind("_ZN2ns1fEi", arg1), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	 cmocka_unit_test(test_functions),
		cmocka_unit_test(test_tables),	 cmocka_unit_test(test_several),
		cmocka_unit_test(test_versions), cmocka_unit_test(test_usdt),
		cmocka_unit_test(test_too_many), cmocka_unit_test(test_objects),
		cmocka_unit_test(test_damaged),	 cmocka_unit_test(test_uses),
	};

	return cmocka_run_group_tests(tests, NULL, clean_up);
}
