/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/gzip_writer: zlib reads back what was put, in files of all sizes around its buffer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "profile/gzip_writer.h"

#define AT_ONCE (1 << 20) /* at most; above it streams */
#define LARGEST (3 << 20)

static uint8_t given[LARGEST], got[LARGEST + 1];

static void fill(bool by_chance)
{
	uint32_t number = 1;

	for (size_t i = 0; i < LARGEST; i++) {
		number = number * 1664525 + 1013904223;
		given[i] = by_chance ? (uint8_t)(number >> 24) : (uint8_t)(i / 7);
	}
}

/* The file of the first sz bytes, put in pieces of this many. */
static char *written(size_t sz, size_t piece, const void *extra, size_t extra_sz, size_t *ret_sz)
{
	struct gzip_writer w;
	char *file;
	FILE *f = open_memstream(&file, ret_sz);

	assert_non_null(f);
	assert_int_equal(gzip_writer__init(&w, f, extra, extra_sz), 0);
	for (size_t at = 0; at < sz; at += piece)
		assert_int_equal(gzip_writer__put(&w, given + at, MIN(piece, sz - at)), 0);
	assert_int_equal(w.total, sz);
	assert_int_equal(gzip_writer__finish(&w), 0);
	gzip_writer__done(&w);
	fclose(f);
	return file;
}

static void need_read_back(const char *file, size_t file_sz, size_t sz, const void *extra,
			   size_t extra_sz)
{
	uint8_t have[256] = { 0 };
	gz_header header = { .extra = have, .extra_max = sizeof(have) };
	z_stream z = { .next_in = (Bytef *)file,
		       .avail_in = (uInt)file_sz,
		       .next_out = got,
		       .avail_out = sizeof(got) };

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflateGetHeader(&z, &header), Z_OK);
	/* which compares the sum and the size behind it */
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	assert_int_equal(z.total_out, sz);
	assert_memory_equal(got, given, sz);
	assert_int_equal(header.time, 0);
	assert_int_equal(header.os, 3);
	assert_int_equal(header.extra_len, extra_sz);
	assert_memory_equal(have, extra ? extra : "", extra_sz);
	inflateEnd(&z);
}

static void all_sizes(void **state)
{
	static const size_t sizes[] = { 0,     1,	    100,     32767,	  32768,  32769,
					65536, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, LARGEST };
	static const char extra[] = "bp\4\0data";

	(void)state;
	for (int by_chance = 0; by_chance < 2; by_chance++) {
		fill(by_chance);
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t sz, again_sz;
			char *file = written(sizes[i], 1000, NULL, 0, &sz), *again;

			need_read_back(file, sz, sizes[i], NULL, 0);
			/* the same, however it comes */
			again = written(sizes[i], 77, NULL, 0, &again_sz);
			assert_int_equal(again_sz, sz);
			assert_memory_equal(again, file, sz);
			free(again);
			free(file);
			file = written(sizes[i], LARGEST, extra, sizeof(extra) - 1, &sz);
			need_read_back(file, sz, sizes[i], extra, sizeof(extra) - 1);
			free(file);
		}
	}
}

static void full_disk(void **state)
{
	static const size_t sizes[] = { 10, LARGEST };

	(void)state;
	fill(true);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		FILE *f = fopen("/dev/full", "w");
		struct gzip_writer w;
		int err;

		assert_non_null(f);
		setbuf(f, NULL);
		assert_int_equal(gzip_writer__init(&w, f, NULL, 0), 0);
		err = gzip_writer__put(&w, given, sizes[i]);
		if (!err)
			err = gzip_writer__finish(&w);
		assert_int_equal(err, -ENOSPC);
		gzip_writer__done(&w);
		fclose(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sizes),
		cmocka_unit_test(full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
