/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of the folder, written once. */
#ifndef SPOOL_NEW_FILE_H
#define SPOOL_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

/*
 * Makes a file that only its owner may read, and has write(ctx) write it. sync: it is on the disk then. *ret: what it is
 * by then. 0, or -errno of write or of the file, which may be there in part.
 */
int new_file_write(int folder, const char *name, bool sync, int (*write)(void *ctx, FILE *f),
		   void *ctx, struct stat *ret);

#endif
