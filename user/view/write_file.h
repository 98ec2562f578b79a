/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of commands that end when they have written one. */
#ifndef WRITE_FILE_H
#define WRITE_FILE_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Writes a file (output_write, "-" is standard output), which no signal of a terminal or a service
 * manager leaves half: once all of it is in memory, a signal is dealt with afterwards. write returns 0 or -errno. 0; or -errno, after the
 * reason was said, but for -EMSGSIZE, which is the caller's to tell, and -EPIPE, for nobody listens.
 */
int write_file(const char *path, int (*write)(void *ctx, FILE *f), void *ctx);

/* Could it be, as output_check has it? Before there is anything to be written. 0; or -errno, after the
 * reason was said. */
int write_file_check(const char *path, bool binary);

#endif
