/* SPDX-License-Identifier: BSD-2-Clause */
/* demangle against c++filt on the names of a large library, and on hostile names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "base/util.h"
#include "target/demangle.h"
#include "toolrun.h"

static void check(const char *name, const char *want)
{
	char *have = demangle(name);

	if (want)
		assert_string_equal(have ? have : "(none)", want);
	else
		assert_null(have);
	free(have);
}

static void test_known(void **state)
{
	(void)state;
	check("_ZNSt6vectorIiSaIiEE9push_backERKi",
	      "std::vector<int, std::allocator<int> >::push_back(int const&)");
	check("_ZN3fooEv.isra.0", "foo() [clone .isra.0]");
	check("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	check("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123456", "core::fmt::write");
	check("_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$"
	      "3fmt17h0123456789abcdefE",
	      "<alloc::string::String as core::fmt::Display>::fmt");
	check("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	check("main", NULL);
	check("", NULL);
	check("_", NULL);
	check("_Z", NULL);
	check("_R", NULL);
	check("_ZN", NULL);
	check("_Z!!", NULL);
	check("_start", NULL);
}

static void test_library(void **state)
{
	static char name[8192], want[65536];
	size_t cnt = 0;
	char *have;
	FILE *f;

	(void)state;
	/* nm asks the same library, but in its own way */
	f = toolrun_open(
		"L=$(g++ -print-file-name=libstdc++.so); "
		"nm -D --defined-only --without-symbol-versions $L | cut -d' ' -f3- > mangled; "
		"nm -C -D --defined-only --without-symbol-versions $L | cut -d' ' -f3- > names; "
		"paste -d '\\n' mangled names");
	while (fgets(name, sizeof(name), f) && fgets(want, sizeof(want), f)) {
		name[strcspn(name, "\n")] = want[strcspn(want, "\n")] = '\0';
		have = demangle(name);
		assert_string_equal(have ? have : name, want);
		free(have);
		cnt++;
	}
	pclose(f);
	if (!cnt)
		skip();
	assert_true(cnt > 1000);
}

/* The library has a limit of 1 KiB of its own, ours is higher. */
static void test_long(void **state)
{
	static char name[8192], want[8192];
	char *have;
	int i;

	(void)state;
	strcpy(name, "_Z1f");
	strcpy(want, "f(");
	for (i = 0; i < 300; i++) {
		sprintf(name + strlen(name), "5t%04d", i);
		sprintf(want + strlen(want), "%st%04d", i ? ", " : "", i);
	}
	strcat(want, ")");
	have = demangle(name);
	assert_non_null(have);
	assert_string_equal(have, want);
	free(have);
	for (i = 300; strlen(name) <= DEMANGLE_MAX; i++)
		sprintf(name + strlen(name), "5t%04d", i % 10000);
	assert_null(demangle(name));
}

/* Substitution number n, counted from 0, as <seq-id>. */
static const char *seq_id(int n, char buf[static 8])
{
	char digits[8];
	int cnt = 0, i = 0;

	for (n--; n >= 0; n = n / 36 - (n < 36)) {
		digits[cnt++] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 36];
		if (n < 36)
			break;
	}
	while (cnt)
		buf[i++] = digits[--cnt];
	buf[i] = '\0';
	return buf;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static void check_bounded(const char *name)
{
	uint64_t start = cpu_ns();
	char *have = demangle(name);
	uint64_t ns = cpu_ns() - start;

	assert_true(!have || strlen(have) < 65536);
	/* it takes some milliseconds; what grows with a power of the length would take hours */
	assert_true(ns < NSEC_PER_SEC);
	free(have);
}

/* Types that are twice the last one each: as parameters, and as a pack that is searched before
 * anything is printed. */
static void test_doubling(void **state)
{
	char params[8192] = "_Z1f1AIiiE", pack[8192] = "_Z1fI1AIiiE", id[8];
	int n;

	(void)state;
	for (n = 0; n < 60; n++) {
		sprintf(params + strlen(params), "S_IS%s_S%s_E", seq_id(n + 1, id),
			seq_id(n + 1, id));
		sprintf(pack + strlen(pack), "S0_IS%s_S%s_E", seq_id(n + 2, id), seq_id(n + 2, id));
		check_bounded(params);
	}
	sprintf(pack + strlen(pack), "EDpS%s_v", seq_id(n + 2, id));
	check_bounded(pack);
}

static void test_repeated(void **state)
{
	static const char *const parts[] = { "P",  "NK",  "1a", "1AI", "F",	"Dp", "DpT_",
					     "St", "S_",  "T_", "FG_", "TB_B_", "B_", "Z",
					     "X",  "sr",  "cv", "L",   "J",	"IJ", "DTsZ",
					     "fL", "U1a", "A_", "M",   "C",	"R",  "S" };
	static const char *const heads[] = { "_Z1f",   "_ZN",	 "_Z",	  "_R",	  "_RM",
					     "_RIC1a", "_RYFG_", "_Z1fI", "_ZNSt" };
	char name[DEMANGLE_MAX + 1];
	size_t h, p, i, k;

	(void)state;
	for (h = 0; h < ARRAY_SIZE(heads); h++) {
		for (p = 0; p < ARRAY_SIZE(parts); p++) {
			strcpy(name, heads[h]);
			for (i = strlen(name), k = 0; i < DEMANGLE_MAX; i++, k++)
				name[i] = parts[p][k % strlen(parts[p])];
			name[i] = '\0';
			check_bounded(name);
		}
	}
}

static void test_random(void **state)
{
	static const char letters[] = "NESTIiKPRFvabcd0123456789_DpXLcvsrtlJZCUwn";
	char name[512];
	int i, k, len;

	(void)state;
	srand(1);
	for (i = 0; i < 20000; i++) {
		len = rand() % 400;
		strcpy(name, rand() & 1 ? "_Z" : "_R");
		for (k = 2; k < len + 2; k++)
			name[k] = letters[rand() % (sizeof(letters) - 1)];
		name[k] = '\0';
		check_bounded(name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),	 cmocka_unit_test(test_library),
		cmocka_unit_test(test_long),	 cmocka_unit_test(test_doubling),
		cmocka_unit_test(test_repeated), cmocka_unit_test(test_random),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
