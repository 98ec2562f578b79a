// SPDX-License-Identifier: BSD-2-Clause
#include "view/write_file.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "base/output.h"

int write_file(const char *path, int (*write)(void *ctx, FILE *f), void *ctx)
{
	sigset_t stops, before;
	char text[512];
	int err;

	sigemptyset(&stops);
	/* whoever reads from us may let us wait */
	if (strcmp(path, "-") != 0) {
		sigaddset(&stops, SIGINT);
		sigaddset(&stops, SIGTERM);
		sigaddset(&stops, SIGHUP);
	}
	(void)sigprocmask(SIG_BLOCK, &stops, &before);
	err = output_write(path, write, ctx, text, sizeof(text));
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
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
