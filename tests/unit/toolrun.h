/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests that ask other programs (readelf, nm, addr2line, compilers) for the truth: run them, in
 * a folder of the test's own. */
#ifndef TESTS_TOOLRUN_H
#define TESTS_TOOLRUN_H

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char toolrun_dir[64];

/* The test's folder, made at first use. */
static inline const char *toolrun_folder(void)
{
	if (!toolrun_dir[0]) {
		strcpy(toolrun_dir, "/tmp/bpfprof-test-XXXXXX");
		if (!mkdtemp(toolrun_dir))
			abort();
	}
	return toolrun_dir;
}

__attribute__((format(printf, 1, 0))) static inline char *toolrun_command(const char *fmt,
									  va_list ap)
{
	char *cmd, *full;

	if (vasprintf(&cmd, fmt, ap) < 0 ||
	    asprintf(&full, "cd %s && LC_ALL=C %s", toolrun_folder(), cmd) < 0)
		abort();
	free(cmd);
	return full;
}

/* Runs a command of the shell in the test's folder; true if it succeeded. */
__attribute__((format(printf, 1, 2))) static inline bool toolrun(const char *fmt, ...)
{
	va_list ap;
	char *cmd;
	bool ok;

	va_start(ap, fmt);
	cmd = toolrun_command(fmt, ap);
	va_end(ap);
	ok = system(cmd) == 0;
	free(cmd);
	return ok;
}

/* The same, to read what it prints. */
__attribute__((format(printf, 1, 2))) static inline FILE *toolrun_open(const char *fmt, ...)
{
	va_list ap;
	char *cmd;
	FILE *f;

	va_start(ap, fmt);
	cmd = toolrun_command(fmt, ap);
	va_end(ap);
	f = popen(cmd, "r");
	free(cmd);
	if (!f)
		abort();
	return f;
}

static inline bool toolrun_have(const char *tool)
{
	return toolrun("command -v %s >/dev/null", tool);
}

/* A file of the test's folder. Valid until the next call but seven. */
static inline const char *toolrun_path(const char *name)
{
	static char paths[8][128];
	static unsigned int next;
	char *p = paths[next++ % 8];

	snprintf(p, sizeof(paths[0]), "%s/%s", toolrun_folder(), name);
	return p;
}

static inline void toolrun_write(const char *name, const void *data, size_t sz)
{
	FILE *f = fopen(toolrun_path(name), "w");

	if (!f || fwrite(data, 1, sz, f) != sz || fclose(f))
		abort();
}

/* Reads a whole file into a buffer for the caller to free. */
static inline void *toolrun_read(const char *path, size_t *ret_sz)
{
	FILE *f = fopen(path, "r");
	char *buf = NULL;
	long sz;

	if (!f || fseek(f, 0, SEEK_END) || (sz = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) ||
	    !(buf = malloc(sz + 1)) || fread(buf, 1, sz, f) != (size_t)sz)
		abort();
	fclose(f);
	*ret_sz = sz;
	return buf;
}

static inline void toolrun_cleanup(void)
{
	char cmd[128];

	if (toolrun_dir[0]) {
		snprintf(cmd, sizeof(cmd), "rm -rf %s", toolrun_dir);
		if (system(cmd))
			abort();
	}
}

#endif
