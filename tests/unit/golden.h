/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers of tests that compare with files of tests/golden, or with what `go tool pprof` reads.
 * After cmocka.h. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All of a stream, with a NUL, for the caller to free. */
static inline char *golden_slurp(FILE *f)
{
	char *text = NULL;
	size_t sz = 0, n;

	do {
		text = realloc(text, sz + 4097);
		assert_non_null(text);
		n = fread(text + sz, 1, 4096, f);
		sz += n;
	} while (n);
	text[sz] = '\0';
	return text;
}

/* Compares with tests/golden/NAME; the tests run in the top folder of the tree. */
static inline void golden_compare(const char *name, const char *text)
{
	char path[256], *want;
	FILE *f;

	snprintf(path, sizeof(path), "tests/golden/%s", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s cannot be opened: tests run in the top folder of the tree", path);
	want = golden_slurp(f);
	fclose(f);
	if (strcmp(want, text))
		print_message("%s differs from:\n%s", path, text);
	assert_string_equal(text, want);
	free(want);
}

static inline bool golden_have_pprof(void)
{
	if (!system("go tool -n pprof >/dev/null 2>&1"))
		return true;
	print_message("skipped: no `go tool pprof` here\n");
	return false;
}

/* What `go tool pprof OPTIONS` prints about a profile of sz bytes. For the caller to free. */
static inline char *golden_pprof(const char *options, const char *data, size_t sz)
{
	char dir[] = "/tmp/bpfprof-golden-XXXXXX", file[64], cmd[512], *text;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/p.pb.gz", dir);
	f = fopen(file, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, sz, f), sz);
	assert_int_equal(fclose(f), 0);
	snprintf(cmd, sizeof(cmd),
		 "HOME=%s PPROF_TMPDIR=%s TZ=UTC go tool pprof -symbolize=none %s %s 2>/dev/null",
		 dir, dir, options, file);
	f = popen(cmd, "r");
	assert_non_null(f);
	text = golden_slurp(f);
	assert_int_equal(pclose(f), 0);
	unlink(file);
	rmdir(dir);
	return text;
}

#endif
