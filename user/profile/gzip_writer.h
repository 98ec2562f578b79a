/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a gzip file (RFC 1952) of bytes that come piece by piece. Equal bytes give equal files: there is no
 * time in it.
 *
 * What has no more than 1 MiB is compressed at once, by libdeflate: an agent writes dozens of profiles of a few
 * KB at a time, and zlib, which clears 200 KB of tables for each, takes two to four times as long. The rest
 * streams through zlib.
 */
#ifndef PROFILE_GZIP_WRITER_H
#define PROFILE_GZIP_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

struct gzip_writer {
	uint64_t total; /* bytes that were put */
	/* private */
	FILE *f;
	gz_header header;
	uint8_t *in; /* to be compressed: pieces are small, and a call takes longer than they do */
	size_t in_sz, in_cap;
	uint8_t *out;
	size_t out_cap;
	z_stream z;
	bool streams; /* through z */
};

/*
 * extra: what the header carries (RFC 1952, 2.3.1.1), subfields with their ids and lengths, below 64 KiB;
 * borrowed. NULL: nothing. 0 or -ENOMEM; gzip_writer__done in any case.
 */
int gzip_writer__init(struct gzip_writer *w, FILE *f, const void *extra, size_t extra_sz);
/* 0 or -errno. */
int gzip_writer__put(struct gzip_writer *w, const void *data, size_t sz);
/* Nothing more comes. Does not close or flush the file. 0 or -errno. */
int gzip_writer__finish(struct gzip_writer *w);
void gzip_writer__done(struct gzip_writer *w);

#endif
