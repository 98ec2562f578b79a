// SPDX-License-Identifier: BSD-2-Clause
/* What bpfprof/profile.h leaves in a file, this one, and what others may have left there. */
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/util.h"
#include "bpfprof.h"
#include "bpfprof/profile.h"
#include "custom/custom_wanted.h"
#include "target/custom_sites.h"
#include "target/elf_file.h"

/* ---- sites ---- */

/* A note that no header of ours has made. */
#define FOREIGN(insn, provider, name, args)                             \
	__asm__ volatile("990: " insn                                   \
			 "\n"                                           \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n" \
			 ".balign 4\n"                                  \
			 ".long 992f - 991f, 994f - 993f, 3\n"          \
			 "991: .asciz \"stapsdt\"\n"                    \
			 "992: .balign 4\n"                             \
			 "993: .quad 990b, _.stapsdt.base, 0\n"         \
			 ".asciz \"" provider                           \
			 "\"\n"                                         \
			 ".asciz \"" name                               \
			 "\"\n"                                         \
			 ".asciz \"" args                               \
			 "\"\n"                                         \
			 "994: .balign 4\n"                             \
			 ".popsection\n")
#define NAME_63 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz01234567890"

static __attribute__((noipa)) void uses(long value)
{
	BPFPROF_ADD("a", value);
	BPFPROF_ADD("example.org/a_b-c::d", value + 1);
	BPFPROF_REMOVE("a", value);
	FOREIGN("nop", "bpfprof_add", NAME_63, "-4@%edi");
	/* each of these is refused */
	FOREIGN("nop", "bpfprof_add", NAME_63 "x", "8@%rdi");
	FOREIGN("nop", "bpfprof_add", "", "8@%rdi");
	FOREIGN("nop", "bpfprof_add", "a b", "8@%rdi");
	FOREIGN("nop", "bpfprof_remove", "a\\033[2J", "8@%rdi");
	FOREIGN("nop", "bpfprof_add", "%n", "8@%rdi");
	FOREIGN("nop", "bpfprof_add", "a", "");
	FOREIGN("nop", "bpfprof_add", "a", "2@%di");
	FOREIGN("mov %edi, %edi", "bpfprof_add", "a", "8@%rdi");
	FOREIGN(".byte 0x0f, 0x1f, 0x44, 0, 0", "bpfprof_add", "a", "8@%rdi");
	/* and these are somebody else's */
	FOREIGN("nop", "bpfprof", "a", "8@%rdi");
	FOREIGN("nop", "bpfprof_add_", "a", "8@%rdi");
}
#define REFUSED 9

static size_t count(const struct custom_sites *s, const char *name, uint32_t removes)
{
	size_t n = 0;

	for (size_t i = 0; i < s->cnt; i++)
		n += !strcmp(s->sites[i].name, name) && s->sites[i].removes == removes;
	return n;
}

static void test_sites(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = elf_file__open(fd);
	struct custom_sites s;

	(void)state;
	uses(1);
	assert_non_null(elf);
	assert_int_equal(custom_sites_find(elf, &s), 0);
	assert_int_equal(s.cnt, 4);
	assert_int_equal(s.refused, REFUSED);
	assert_int_equal(count(&s, "a", 0), 1);
	assert_int_equal(count(&s, "a", 1), 1);
	assert_int_equal(count(&s, "example.org/a_b-c::d", 0), 1);
	assert_int_equal(count(&s, NAME_63, 0), 1);
	for (size_t i = 0; i < s.cnt; i++) {
		unsigned char code;

		assert_int_equal(elf_file__read(elf, s.sites[i].offset, &code, 1), 0);
		assert_int_equal(code, 0x90);
		assert_int_equal(s.sites[i].ref_ctr, 0);
		assert_true(BPFPROF_USDT_REG(s.sites[i].value) < 16);
		assert_int_equal(BPFPROF_USDT_NARROW(s.sites[i].value),
				 !strcmp(s.sites[i].name, NAME_63));
	}
	custom_sites__done(&s);
	elf_file__free(elf);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(custom_name_ok("a"));
	assert_true(custom_name_ok(NAME_63));
	assert_true(custom_name_ok("../../etc/passwd"));
	assert_false(custom_name_ok(""));
	assert_false(custom_name_ok(NAME_63 "x"));
	assert_false(custom_name_ok("a,b"));
	assert_false(custom_name_ok("a\n"));
	assert_false(custom_name_ok("\xc3\xa4"));
}

/* ---- which are wanted ---- */

static char err[256];

static int want(struct custom_wanted *w, const char *text)
{
	size_t len = custom_wanted_length(text);

	assert_true(custom_wanted_is(text, len));
	return custom_wanted__add(w, text, len, err, sizeof(err));
}

static void test_wanted(void **state)
{
	struct custom_wanted w = { 0 };

	(void)state;
	assert_false(custom_wanted_is("cpu", 3));
	assert_false(custom_wanted_is("customs", 7));
	assert_int_equal(want(&w, "custom:net::conn,heap"), 0);
	assert_true(custom_wanted__has(&w, "net::conn"));
	assert_false(custom_wanted__has(&w, "net"));
	assert_int_equal(want(&w, "custom"), 0);
	assert_true(custom_wanted__has(&w, "net"));
	assert_int_equal(custom_wanted__cnt(&w), 1);
	assert_string_equal(custom_wanted__name(&w, 0), "net::conn");
	assert_null(custom_wanted__name(&w, 1));
	custom_wanted__done(&w);
	assert_false(custom_wanted__has(&w, "net"));
}

static void test_pair(void **state)
{
	static const char text[] = "x=add:/lib/a.so:ns::f(int, ret:ret,remove:b:g:arg6,cpu";
	struct custom_wanted w = { 0 };

	(void)state;
	/* a comma in it ends it */
	assert_int_equal(want(&w, text), -EINVAL);
	assert_int_equal(want(&w, "x=add:/lib/a.so:ns::f:ret,remove:b:g:arg6,cpu"), 0);
	assert_int_equal(w.pair_cnt, 1);
	assert_string_equal(w.pairs[0].name, "x");
	assert_string_equal(w.pairs[0].add.file, "/lib/a.so");
	assert_string_equal(w.pairs[0].add.function, "ns::f");
	assert_int_equal(w.pairs[0].add.arg, 0);
	assert_string_equal(w.pairs[0].remove.file, "b");
	assert_string_equal(w.pairs[0].remove.function, "g");
	assert_int_equal(w.pairs[0].remove.arg, 6);
	assert_true(custom_wanted__has(&w, "x"));
	assert_int_equal(want(&w, "x=add:a:f:ret,remove:b:g:arg1"), -EINVAL);
	assert_non_null(strstr(err, "there twice"));
	custom_wanted__done(&w);
}

static void test_wrong(void **state)
{
	static const char *const wrong[] = {
		"=",
		"x=",
		"x=add:a:f:ret",
		"x=remove:a:f:ret,remove:a:f:arg1",
		"x=add:a:f,remove:a:f:arg1",
		"x=add:a:f:arg0,remove:a:f:arg1",
		"x=add:a:f:arg,remove:a:f:arg1",
		"x=add:a:f:arg1,remove:a:f:arg7",
		"x=add::f:arg1,remove:a:f:arg1",
		"x=add:a::arg1,remove:a:f:arg1",
		"x=add:a:f:returns,remove:a:f:arg1",
		"x y=add:a:f:ret,remove:a:f:arg1",
		"=add:a:f:ret,remove:a:f:arg1",
		"custom:",
		"custom:a b",
		"custom:" NAME_63 "x",
	};
	struct custom_wanted w = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(want(&w, wrong[i]), -EINVAL);
	custom_wanted__done(&w);
	for (int i = 0; i < CUSTOM_WANTED_MAX; i++)
		assert_int_equal(want(&w, "custom:a"), 0);
	assert_int_equal(want(&w, "custom:a"), -EINVAL);
	custom_wanted__done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sites),  cmocka_unit_test(test_names),
		cmocka_unit_test(test_wanted), cmocka_unit_test(test_pair),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
