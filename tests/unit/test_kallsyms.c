/* SPDX-License-Identifier: BSD-2-Clause */
/* kallsyms on made-up texts and on this kernel's own. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/util.h"
#include "target/kallsyms.h"
#include "toolrun.h"

static struct kallsyms *parse(const char *text)
{
	return kallsyms__parse(strdup(text), strlen(text));
}

static void check(const struct kallsyms *k, uint64_t addr, const char *name, const char *module,
		  uint64_t end)
{
	struct kallsyms_symbol s;

	assert_int_equal(kallsyms__find(k, addr, &s), 0);
	assert_string_equal(s.name, name);
	assert_string_equal(s.module ? s.module : "", module);
	assert_true(s.start <= addr && addr < s.end);
	assert_int_equal(s.end, end);
}

static void test_find(void **state)
{
	struct kallsyms *k =
		parse("0000000000000000 A fixed_percpu_data\n"
		      "ffffffff81000000 T _stext\n"
		      "ffffffff81000000 T _text\n"
		      "ffffffff81000100 T vfs_read\n"
		      "ffffffff81000180 D not_code\n"
		      "ffffffff81000200 t __local\n"
		      "ffffffff81000200 W weak_one\n"
		      "ffffffff81000300 T _etext\n"
		      "ffffffffc0003000 t second\t[mod_b]\n"
		      "ffffffffc0003800 T third\t[mod_b]\n"
		      "ffffffffc0001000 t first\t[mod_a]\n"
		      "ffffffffc0009010 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n"
		      "ffffffffc0001080 t last_without_newline\t[mod_a]");
	struct kallsyms_symbol s;

	(void)state;
	assert_non_null(k);
	check(k, 0xffffffff81000000, "_text", "", 0xffffffff81000100);
	check(k, 0xffffffff810001ff, "vfs_read", "", 0xffffffff81000200);
	check(k, 0xffffffff81000200, "weak_one", "", 0xffffffff81000300);
	check(k, 0xffffffffc0001000, "first", "mod_a", 0xffffffffc0001080);
	/* the last one of a module ends with its page, wherever the next module is */
	check(k, 0xffffffffc0001fff, "last_without_newline", "mod_a", 0xffffffffc0002000);
	assert_int_equal(kallsyms__find(k, 0xffffffffc0002000, &s), -ENOENT);
	check(k, 0xffffffffc0003000, "second", "mod_b", 0xffffffffc0003800);
	check(k, 0xffffffffc0009fff, "bpf_prog_6deef7357e7b4530_x", "bpf", 0xffffffffc000a000);
	assert_int_equal(kallsyms__find(k, 0xffffffffc000a000, &s), -ENOENT);
	assert_int_equal(kallsyms__find(k, UINT64_MAX, &s), -ENOENT);
	assert_int_equal(kallsyms__find(k, 0xffffffff80ffffff, &s), -ENOENT);
	assert_int_equal(kallsyms__find(k, 0, &s), -ENOENT);
	kallsyms__free(k);
}

/* No program has the addresses up to the next one, which is elsewhere. */
static void test_made(void **state)
{
	struct kallsyms *k =
		parse("ffffffffc0001100 t bpf_prog_1111111111111111_a\t[bpf]\n"
		      "ffffffffc0001200 t bpf_prog_2222222222222222_b\t[bpf]\n"
		      "ffffffffc0008000 t bpf_trampoline_6442\t[bpf]\n"
		      "ffffffffc0010000 t ftrace_trampoline\t[__builtin__ftrace]\n"
		      "ffffffffc0020000 t ftrace_trampoline\t[__builtin__ftrace]\n"
		      "ffffffffc0030000 t kprobe_insn_page\t[__builtin__kprobes]\n"
		      "ffffffffc0040000 t kprobe_insn_page\t[__builtin__kprobes]\n");
	struct kallsyms_symbol s;

	(void)state;
	assert_non_null(k);
	check(k, 0xffffffffc00011ff, "bpf_prog_1111111111111111_a", "bpf", 0xffffffffc0001200);
	check(k, 0xffffffffc0001fff, "bpf_prog_2222222222222222_b", "bpf", 0xffffffffc0002000);
	assert_int_equal(kallsyms__find(k, 0xffffffffc0002000, &s), -ENOENT);
	assert_int_equal(kallsyms__find(k, 0xffffffffc0007fff, &s), -ENOENT);
	check(k, 0xffffffffc0010fff, "ftrace_trampoline", "__builtin__ftrace", 0xffffffffc0011000);
	assert_int_equal(kallsyms__find(k, 0xffffffffc0011000, &s), -ENOENT);
	assert_int_equal(kallsyms__find(k, 0xffffffffc0031000, &s), -ENOENT);
	kallsyms__free(k);
}

static void test_hidden(void **state)
{
	(void)state;
	assert_null(parse("0000000000000000 T _stext\n0000000000000000 T vfs_read\n"));
	assert_int_equal(errno, EPERM);
	assert_null(parse(""));
	assert_int_equal(errno, EPERM);
}

static void test_strange(void **state)
{
	struct kallsyms *k =
		parse("\n\n \nxyz\nffffffff81000000\nffffffff81000000 \nffffffff81000000 "
		      "T\nffffffff81000000 T \n"
		      "ffffffff81000010 T a\t\nffffffff81000020 T b\t[\nffffffff81000030 T c\t[]\n"
		      "fffffffffffffffffffff81000040 T too_many_digits\n");
	struct kallsyms_symbol s;

	(void)state;
	assert_non_null(k);
	assert_int_equal(kallsyms__find(k, 0xffffffff81000010, &s), 0);
	assert_string_equal(s.name, "a");
	kallsyms__free(k);
}

/* Every text symbol of this kernel is found at its address, under a name that /proc/kallsyms gives
 * this address. */
static void test_own_kernel(void **state)
{
	char name[512], type, *line, *rest, *copy;
	struct kallsyms_symbol s;
	struct kallsyms *k;
	size_t cnt = 0, same = 0;
	uint64_t addr, ns;
	char *text;
	size_t sz;

	(void)state;
	if (util_read_file("/proc/kallsyms", 256U << 20, &text, &sz))
		skip();
	/* not read twice: BPF programs come and go */
	copy = malloc(sz + 1);
	assert_non_null(copy);
	memcpy(copy, text, sz);
	copy[sz] = '\0';
	ns = util_monotonic_ns();
	k = kallsyms__parse(text, sz);
	ns = util_monotonic_ns() - ns;
	if (!k) {
		free(copy);
		skip();
	}
	print_message("parsing %zu bytes took %.1f ms\n", sz, (double)ns / 1e6);
	for (line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "%" SCNx64 " %c %511s", &addr, &type, name) != 3 ||
		    !strchr("tTwW", type))
			continue;
		assert_int_equal(kallsyms__find(k, addr, &s), 0);
		assert_int_equal(s.start, addr);
		assert_true(s.end > addr);
		same += !strcmp(s.name, name);
		cnt++;
	}
	free(copy);
	assert_true(cnt > 1000);
	/* the others are aliases */
	assert_true(same > cnt * 8 / 10);
	kallsyms__free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),	   cmocka_unit_test(test_made),
		cmocka_unit_test(test_hidden),	   cmocka_unit_test(test_strange),
		cmocka_unit_test(test_own_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
