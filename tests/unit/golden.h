/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers of tests that compare with files of tests/golden, or with what Go's pprof reads.
 * After cmocka.h. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All of a stream, with a NUL, for the caller to free; ret_sz may be NULL. */
static inline char *golden_slurp(FILE *f, size_t *ret_sz)
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
	if (ret_sz)
		*ret_sz = sz;
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
	want = golden_slurp(f, NULL);
	fclose(f);
	/* cmocka's own messages are cut after 1 KiB */
	if (strcmp(want, text)) {
		fprintf(stderr, "%s differs from:\n%s", path, text);
		fail_msg("%s differs", path);
	}
	free(want);
}

/* The one that `make progs` has found or compiled, whatever Go's version. */
static inline const char *golden_pprof_path(void)
{
	const char *path = getenv("PPROF");

	return path ? path : "build/tests/progs/pprof";
}

static inline bool golden_have_pprof(void)
{
	if (!access(golden_pprof_path(), X_OK))
		return true;
	print_message("skipped: there is no %s: Go is missing\n", golden_pprof_path());
	return false;
}

/* What `pprof OPTIONS` prints about a profile of sz bytes; ret_sz may be NULL. For the caller to
 * free. */
static inline char *golden_pprof(const char *options, const char *data, size_t sz, size_t *ret_sz)
{
	char dir[] = "/tmp/bpfprof-golden-XXXXXX", file[64], *cmd, *text;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/p.pb.gz", dir);
	f = fopen(file, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, sz, f), sz);
	assert_int_equal(fclose(f), 0);
	assert_true(asprintf(&cmd,
			     "HOME=%s PPROF_TMPDIR=%s TZ=UTC '%s' -symbolize=none %s %s 2>%s/err",
			     dir, dir, golden_pprof_path(), options, file, dir) > 0);
	f = popen(cmd, "r");
	assert_non_null(f);
	text = golden_slurp(f, ret_sz);
	if (pclose(f))
		fail_msg("fails, see %s/err: %s", dir, cmd);
	free(cmd);
	assert_true(asprintf(&cmd, "rm -r %s", dir) > 0);
	assert_int_equal(system(cmd), 0);
	free(cmd);
	return text;
}

/* One space for each run of them, and none at the beginning of a line: how wide columns are, and
 * whether a number is set to the left, is up to the version. */
static inline void golden_squeeze(char *text)
{
	char *to = text, *from;

	for (from = text; *from; from++)
		if (*from != ' ' || (to > text && to[-1] != ' ' && to[-1] != '\n'))
			*to++ = *from;
	*to = '\0';
}

#endif
