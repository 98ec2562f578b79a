// SPDX-License-Identifier: BSD-2-Clause
#include "profile/gzip_writer.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/gzip.h"

#define IN_SZ 32768 /* at first */
#define OUT_SZ 65536
#define AT_ONCE_SZ (1U << 20)
#define LEVEL Z_BEST_SPEED /* as Go does it: sorted samples compress well at any */
/* zlib.h, deflateInit2: 16 more for a gzip header, which has time 0 unless one is set */
#define WINDOW (15 + 16)
/* what zlib says by itself, in the header's last two bytes */
#define FASTEST 4
#define UNIX 3

int gzip_writer__init(struct gzip_writer *w, FILE *f, const void *extra, size_t extra_sz)
{
	*w = (struct gzip_writer){ .f = f };
	w->header = (gz_header){ .os = UNIX, .extra = (Bytef *)extra, .extra_len = extra_sz };
	return util_reserve(&w->in, &w->in_cap, IN_SZ, 1);
}

static int put_out(struct gzip_writer *w, const void *data, size_t sz)
{
	errno = 0;
	if (sz && fwrite(data, 1, sz, w->f) != sz)
		return errno ? -errno : -EIO;
	return 0;
}

/* ---- a stream ---- */

static int begin(struct gzip_writer *w)
{
	int err = util_reserve(&w->out, &w->out_cap, OUT_SZ, 1);

	if (err)
		return err;
	if (deflateInit2(&w->z, LEVEL, Z_DEFLATED, WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	w->streams = true;
	return w->header.extra && deflateSetHeader(&w->z, &w->header) != Z_OK ? -EINVAL : 0;
}

/* What is in w->in. */
static int stream(struct gzip_writer *w, int flush)
{
	int err = w->streams ? 0 : begin(w);

	w->z.next_in = w->in;
	w->z.avail_in = (uInt)w->in_sz;
	w->in_sz = 0;
	while (!err) {
		w->z.next_out = w->out;
		w->z.avail_out = (uInt)w->out_cap;
		if (deflate(&w->z, flush) == Z_STREAM_ERROR)
			return -EINVAL;
		err = put_out(w, w->out, w->out_cap - w->z.avail_out);
		if (w->z.avail_out)
			break;
	}
	return err;
}

/* ---- at once ---- */

/* It has 200 KB, which to get anew takes longer than to compress. */
static struct libdeflate_compressor *compressor(void)
{
	static _Thread_local struct libdeflate_compressor *kept;

	if (!kept)
		kept = libdeflate_alloc_compressor(LEVEL);
	return kept;
}

static uint8_t *put_le(uint8_t *to, uint32_t number, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*to++ = (uint8_t)(number >> 8 * i);
	return to;
}

static int put_header(struct gzip_writer *w)
{
	const gz_header *h = &w->header;
	uint8_t head[GZIP_HEAD_SZ + 2] = { GZIP_ID1,	  GZIP_ID2,
					   Z_DEFLATED,	  [GZIP_FLAGS] = h->extra ? GZIP_FEXTRA : 0,
					   [8] = FASTEST, [9] = UNIX };
	int err;

	if (!h->extra)
		return put_out(w, head, GZIP_HEAD_SZ);
	put_le(head + GZIP_HEAD_SZ, h->extra_len, 2);
	err = put_out(w, head, sizeof(head));
	return err ? err : put_out(w, h->extra, h->extra_len);
}

static int compress_at_once(struct gzip_writer *w)
{
	struct libdeflate_compressor *c = compressor();
	uint8_t tail[8];
	size_t sz;
	int err;

	if (!c)
		return -ENOMEM;
	err = util_reserve(&w->out, &w->out_cap, libdeflate_deflate_compress_bound(c, w->in_sz), 1);
	if (err)
		return err;
	sz = libdeflate_deflate_compress(c, w->in, w->in_sz, w->out, w->out_cap);
	if (!sz)
		return -EINVAL;
	put_le(put_le(tail, libdeflate_crc32(0, w->in, w->in_sz), 4), (uint32_t)w->in_sz, 4);
	err = put_header(w);
	if (!err)
		err = put_out(w, w->out, sz);
	return err ? err : put_out(w, tail, sizeof(tail));
}

/* ---- both ---- */

/* Room for at least one byte more. */
static int make_room(struct gzip_writer *w)
{
	if (w->in_sz < w->in_cap)
		return 0;
	if (!w->streams && w->in_cap < AT_ONCE_SZ)
		return util_reserve(&w->in, &w->in_cap, 2 * w->in_cap, 1);
	return stream(w, Z_NO_FLUSH);
}

int gzip_writer__put(struct gzip_writer *w, const void *data, size_t sz)
{
	const uint8_t *from = data;
	size_t part;
	int err = 0;

	w->total += sz;
	for (; !err && sz; from += part, sz -= part) {
		err = make_room(w);
		if (err)
			break;
		part = MIN(sz, w->in_cap - w->in_sz);
		memcpy(w->in + w->in_sz, from, part);
		w->in_sz += part;
	}
	return err;
}

int gzip_writer__finish(struct gzip_writer *w)
{
	return w->streams ? stream(w, Z_FINISH) : compress_at_once(w);
}

void gzip_writer__done(struct gzip_writer *w)
{
	if (w->streams)
		deflateEnd(&w->z);
	free(w->in);
	free(w->out);
}
