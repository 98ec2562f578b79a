/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that appear whole or not at all: written beside their name and renamed. Mode 0600, owned by
 * the user behind sudo. Links, FIFOs and sockets under the name are refused: somebody else may have
 * planted them. Character devices are written to.
 */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct output {
	FILE *f;
	char *path, *tmp; /* NULL for standard output */
	bool sync; /* written to the disk before it is put in its place; output_open sets it */
};

/* Could `path` be written? Without changing anything. 0 or -errno: -EISDIR, -ENOENT, -EACCES,
 * -EROFS… "-" is standard output. */
int output_probe(const char *path);

/* The same by doing: a file is made beside it, a page of it written, and removed. And no binary form goes
 * to a terminal. 0, or -errno with a sentence in text. */
int output_check(const char *path, bool binary, char *text, size_t text_sz);

/* What an error of any of these means, and what to do if that is not plain; static, or as strerror. */
const char *output_reason(int err);

/* Makes a folder, mode 0700, owned by the user behind sudo; one that is there is refused. Returns a descriptor of it,
 * the caller's, or -errno with a sentence in text. */
int output_make_folder(const char *path, char *text, size_t text_sz);

/* After writing, which returned err: commits, or aborts. 0 or -errno. */
int output_end(struct output *o, int err);

/* Writes a file that says what it could not be written for, in text. write returns 0 or -errno; so does
 * this. */
int output_write(const char *path, int (*write)(void *ctx, FILE *f), void *ctx, char *text,
		 size_t text_sz);

/* 0 or -errno. */
int output_open(const char *path, struct output *ret);
/* Puts the file in its place. On failure nothing stays. 0 or -errno. Releases in every case. */
int output_commit(struct output *o);
/* Removes what was begun. */
void output_abort(struct output *o);

#endif
