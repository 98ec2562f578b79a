// SPDX-License-Identifier: BSD-2-Clause
#include "view/write_file.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/output.h"

/* What is to be in a file, or why it could not be made. */
struct made {
	char *data;
	size_t sz;
	int err;
};

static void make(struct made *m, int (*write)(void *ctx, FILE *f), void *ctx)
{
	FILE *f = open_memstream(&m->data, &m->sz);

	m->err = f ? write(ctx, f) : -ENOMEM;
	/* all that a stream in memory can lack */
	if (f && (ferror(f) | fclose(f)))
		m->err = -ENOMEM;
}

static int write_made(void *ctx, FILE *f)
{
	const struct made *m = ctx;

	if (!m->err)
		fwrite(m->data, 1, m->sz, f);
	return m->err;
}

/* To make it may take long, and is left to signals: they are blocked as long as there is half a file. */
static int write_whole(const char *path, int (*write)(void *ctx, FILE *f), void *ctx, char *text,
		       size_t text_sz)
{
	struct made made = { 0 };
	sigset_t stops, before;
	int err;

	make(&made, write, ctx);
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &stops, &before);
	err = output_write(path, write_made, &made, text, text_sz);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	free(made.data);
	return err;
}

int write_file(const char *path, int (*write)(void *ctx, FILE *f), void *ctx)
{
	char text[512];
	int err;

	/* whoever reads from us may let us wait */
	if (!strcmp(path, "-"))
		err = output_write(path, write, ctx, text, sizeof(text));
	else
		err = write_whole(path, write, ctx, text, sizeof(text));
	/* a pager that has seen enough is no fault that anybody wants to read of */
	if (err && err != -EPIPE && err != -EMSGSIZE)
		log_error("%s", text);
	return err;
}

int write_file_check(const char *path, bool binary)
{
	char text[512];
	int err = output_check(path, binary, text, sizeof(text));

	if (err)
		log_error("%s", text);
	return err;
}
