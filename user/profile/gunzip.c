/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/gunzip.h"

#include <endian.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/util.h"
#include "profile/gzip.h"

#define GZIP_WINDOW (15 + 16) /* zlib.h, inflateInit2: gzip alone */
#define FIRST_SZ 65536
#define MAX_RATIO 1032 /* zlib_tech.html: of deflate */

bool gunzip_is(const uint8_t *data, size_t sz)
{
	return sz >= 2 && data[0] == GZIP_ID1 && data[1] == GZIP_ID2;
}

/* *ret is the caller's also if it fails. */
static int expand(z_stream *z, size_t max, uint8_t **ret, size_t *ret_sz)
{
	size_t cap = 0, have = 0;
	int rc = Z_OK;

	while (rc == Z_OK || (rc == Z_STREAM_END && gunzip_is(z->next_in, z->avail_in))) {
		if (rc == Z_STREAM_END && inflateReset(z) != Z_OK)
			return -EBADMSG;
		if (have == max)
			return -E2BIG;
		if (have == cap && util_reserve(ret, &cap, MAX(2 * have, FIRST_SZ), 1))
			return -ENOMEM;
		z->next_out = *ret + have;
		z->avail_out = (uInt)MIN(cap - have, max - have);
		rc = inflate(z, Z_NO_FLUSH);
		have = (size_t)(z->next_out - *ret);
		/* nothing more to read: it is cut */
		if (rc == Z_BUF_ERROR || (rc == Z_OK && !z->avail_in && z->avail_out))
			return -EBADMSG;
	}
	*ret_sz = have;
	return rc == Z_STREAM_END ? 0 : rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

/* One member that is as large as its last four bytes say (RFC 1952, ISIZE), as nearly all are: libdeflate is
 * faster, and puts it where it is to be. 0; else it is for zlib to say what it is. */
static int expand_one(const uint8_t *data, size_t sz, size_t max, uint8_t **ret, size_t *ret_sz)
{
	struct libdeflate_decompressor *d;
	size_t want, in = 0;
	uint32_t isize;
	bool done;

	if (sz < sizeof(isize))
		return -EBADMSG;
	memcpy(&isize, data + sz - sizeof(isize), sizeof(isize));
	want = le32toh(isize);
	if (!want || want > max || want / MAX_RATIO > sz)
		return -E2BIG;
	d = libdeflate_alloc_decompressor();
	*ret = d ? malloc(want) : NULL;
	done = *ret && libdeflate_gzip_decompress_ex(d, data, sz, *ret, want, &in, ret_sz) ==
			       LIBDEFLATE_SUCCESS;
	libdeflate_free_decompressor(d);
	if (done && in == sz && *ret_sz == want)
		return 0;
	free(*ret);
	*ret = NULL;
	return -EBADMSG;
}

int gunzip(const void *data, size_t sz, size_t max, uint8_t **ret, size_t *ret_sz)
{
	z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)sz };
	int err;

	*ret = NULL;
	if (!expand_one(data, sz, max, ret, ret_sz))
		return 0;
	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	err = expand(&z, max, ret, ret_sz);
	inflateEnd(&z);
	if (err) {
		free(*ret);
		*ret = NULL;
	}
	return err;
}
