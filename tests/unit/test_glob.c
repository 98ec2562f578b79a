// SPDX-License-Identifier: BSD-2-Clause
/* Thread name patterns: the automaton, run as the BPF filter runs it, against fnmatch(3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/glob.h"

/* As comm_wanted() in record.bpf.c: from state 0, one byte a step, up to the NUL. */
static bool accepts(const struct bpfprof_config *cfg, const char *name)
{
	uint64_t state = 1;

	for (int i = 0; i < BPFPROF_COMM_SZ && name[i]; i++)
		state = ((state & cfg->comm_match[(uint8_t)name[i]]) << 1) |
			(state & cfg->comm_loop);
	return state & cfg->comm_accept;
}

static bool matches(const char *pattern, const char *name)
{
	static struct bpfprof_config cfg;

	assert_int_equal(glob_compile(pattern, &cfg), 0);
	return accepts(&cfg, name);
}

static void test_examples(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool match;
	} rows[] = {
		{ "nginx", "nginx", true },
		{ "nginx", "nginx2", false },
		{ "nginx", "ngin", false },
		{ "", "", true },
		{ "", "a", false },
		{ "*", "", true },
		{ "*", "anything at all", true },
		{ "**", "x", true },
		{ "?", "", false },
		{ "?", "x", true },
		{ "?", "xy", false },
		{ "a*b", "ab", true },
		{ "a*b", "aXXbXb", true },
		{ "a*b", "aXXbX", false },
		{ "*/*", "kworker/0:1", true },
		{ "*worker*", "kworker/0:1", true },
		{ ".*", ".hidden", true },
		{ "*hidden", ".hidden", true },
		{ "\\*", "*", true },
		{ "\\*", "x", false },
		{ "\\?", "?", true },
		{ "\\?", "x", false },
		{ "\\\\", "\\", true },
		{ "a\\*b", "a*b", true },
		{ "a\\*b", "aXb", false },
		{ "[ab]", "[ab]", true },
		{ "[ab]", "a", false },
		{ "?", "\xff", true },
		{ "\xc3*", "\xc3\xbc", true },
		{ "*a?", "aaaaaaaaaaaaaaa", true },
		{ "trailing\\", "trailing\\", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (matches(rows[i].pattern, rows[i].name) != rows[i].match)
			fail_msg("'%s' and '%s' should%s match", rows[i].pattern, rows[i].name,
				 rows[i].match ? "" : " not");
}

/* A word over few letters, so that matches are as frequent as misses. */
static void word(char *out, size_t max, const char *letters)
{
	size_t n = (size_t)rand() % (max + 1), cnt = strlen(letters);

	for (size_t i = 0; i < n; i++)
		out[i] = letters[(size_t)rand() % cnt];
	out[n] = '\0';
}

/* A backslash at the end quotes nothing: POSIX leaves open what it means, and fnmatch differs. */
static bool ends_in_lone_backslash(const char *pattern)
{
	size_t n = strlen(pattern), k = 0;

	while (k < n && pattern[n - 1 - k] == '\\')
		k++;
	return k % 2;
}

static void test_against_fnmatch(void **state)
{
	static struct bpfprof_config cfg;
	char pattern[24], name[BPFPROF_COMM_SZ];
	size_t matched = 0, compared = 0;

	(void)state;
	srand(20);
	for (int i = 0; i < 20000; i++) {
		word(pattern, 9, i % 2 ? "ab*?" : "ab*?\\/.");
		if (ends_in_lone_backslash(pattern))
			continue;
		assert_int_equal(glob_compile(pattern, &cfg), 0);
		for (int j = 0; j < 20; j++) {
			bool want;

			word(name, j % 2 ? 4 : BPFPROF_COMM_SZ - 1, i % 2 ? "ab" : "ab*?\\/.");
			want = fnmatch(pattern, name, 0) == 0;
			if (accepts(&cfg, name) != want)
				fail_msg("pattern '%s', name '%s': fnmatch says %d", pattern, name,
					 want);
			matched += want;
			compared++;
		}
	}
	/* the comparison is worth nothing if it is always the same answer */
	assert_true(matched > compared / 20 && matched < compared - compared / 20);
}

/* Every pattern of up to four letters against every name of up to four. */
static void test_exhaustive(void **state)
{
	static const char pat_letters[] = "ab*?", name_letters[] = "abc";
	static struct bpfprof_config cfg;

	(void)state;
	for (int p = 0; p < 4 * 4 * 4 * 4; p++) {
		for (int len = 0; len <= 4; len++) {
			char pattern[5] = { pat_letters[p & 3], pat_letters[p >> 2 & 3],
					    pat_letters[p >> 4 & 3], pat_letters[p >> 6] };

			pattern[len] = '\0';
			assert_int_equal(glob_compile(pattern, &cfg), 0);
			for (int n = 0; n < 3 * 3 * 3 * 3 * 5; n++) {
				char name[5] = { name_letters[n % 3], name_letters[n / 3 % 3],
						 name_letters[n / 9 % 3],
						 name_letters[n / 27 % 3] };

				name[n / 81] = '\0';
				if (accepts(&cfg, name) != !fnmatch(pattern, name, 0))
					fail_msg("pattern '%s', name '%s'", pattern, name);
			}
		}
	}
}

static void test_length(void **state)
{
	static struct bpfprof_config cfg;
	char pattern[3 * (BPFPROF_GLOB_MAX + 2)] = "";

	(void)state;
	memset(pattern, '?', BPFPROF_GLOB_MAX);
	assert_int_equal(glob_compile(pattern, &cfg), 0);
	pattern[BPFPROF_GLOB_MAX] = '?';
	assert_int_equal(glob_compile(pattern, &cfg), -E2BIG);
	pattern[BPFPROF_GLOB_MAX] = 'a';
	assert_int_equal(glob_compile(pattern, &cfg), -E2BIG);

	/* stars and the backslash of a quoted byte take no state */
	pattern[0] = '\0';
	for (int i = 0; i < BPFPROF_GLOB_MAX; i++)
		strcat(pattern, i % 2 ? "*a" : "\\*");
	strcat(pattern, "*");
	assert_int_equal(glob_compile(pattern, &cfg), 0);
	strcat(pattern, "\\*");
	assert_int_equal(glob_compile(pattern, &cfg), -E2BIG);
}

/* The struct may be used again: nothing of the former pattern stays. */
static void test_compiled_twice(void **state)
{
	static struct bpfprof_config cfg;

	(void)state;
	assert_int_equal(glob_compile("*x*y*", &cfg), 0);
	assert_int_equal(glob_compile("ab", &cfg), 0);
	assert_true(accepts(&cfg, "ab"));
	assert_false(accepts(&cfg, "xy"));
	assert_false(accepts(&cfg, "aab"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),       cmocka_unit_test(test_against_fnmatch),
		cmocka_unit_test(test_exhaustive),     cmocka_unit_test(test_length),
		cmocka_unit_test(test_compiled_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
