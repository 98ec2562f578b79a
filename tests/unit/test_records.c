// SPDX-License-Identifier: BSD-2-Clause
/* Records that wait: none is lost, changed or moved out of its place, across blocks and queues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/util.h"
#include "capture/records.h"

#define SMALL (sizeof(struct bpfprof_rec))

static uint8_t bytes[RECORDS_MAX_SZ + 1];

/* Record nr of sz bytes, whose last ones tell its number, too. */
static int put(struct records *r, uint32_t nr, size_t sz)
{
	struct bpfprof_rec *rec = (struct bpfprof_rec *)bytes;

	memset(bytes, (int)nr, sz);
	rec->tid = nr;
	return records__put(r, rec, sz, ~nr);
}

static void take(struct records *r, uint32_t nr, size_t sz)
{
	size_t got;
	uint32_t number;
	const struct bpfprof_rec *rec = records__first(r, &got, &number);

	assert_non_null(rec);
	assert_int_equal(rec->tid, nr);
	assert_int_equal(number, ~nr);
	assert_int_equal(got, sz);
	assert_int_equal((uintptr_t)rec % 8, 0);
	for (size_t i = offsetof(struct bpfprof_rec, tid) + sizeof(rec->tid); i < sz; i++)
		if (((const uint8_t *)rec)[i] != (uint8_t)nr)
			fail_msg("record %u, byte %zu: %u", nr, i, ((const uint8_t *)rec)[i]);
	records__drop(r);
}

static void see(void *ctx, const struct bpfprof_rec *rec)
{
	assert_int_equal(rec->tid, (*(uint32_t *)ctx)++);
}

static void test_order(void **state)
{
	struct records r = {};
	uint32_t in = 0, out = 0, seen;
	size_t sizes[4096];

	(void)state;
	srand48(1);
	/* up to some blocks, and down to nothing, several times over */
	for (int round = 0; round < 8; round++) {
		while (r.sz < (8U << 20) && in - out < ARRAY_SIZE(sizes)) {
			size_t sz = SMALL + lrand48() % (lrand48() % 4 ? 300 : 70000);

			sizes[in % ARRAY_SIZE(sizes)] = sz;
			assert_int_equal(put(&r, in++, sz), 0);
			if (lrand48() % 4 == 0) {
				take(&r, out, sizes[out % ARRAY_SIZE(sizes)]);
				out++;
			}
		}
		seen = out;
		records__each(&r, see, &seen);
		assert_int_equal(seen, in);
		while (out < in) {
			take(&r, out, sizes[out % ARRAY_SIZE(sizes)]);
			out++;
		}
		assert_int_equal(r.sz, 0);
		assert_null(records__first(&r, &(size_t){ 0 }, &(uint32_t){ 0 }));
	}
	records__free(&r);
}

static void test_sizes(void **state)
{
	struct records r = {};

	(void)state;
	assert_int_equal(put(&r, 0, RECORDS_MAX_SZ + 1), -E2BIG);
	assert_null(records__first(&r, &(size_t){ 0 }, &(uint32_t){ 0 }));
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(put(&r, i, i % 2 ? SMALL : RECORDS_MAX_SZ), 0);
	for (uint32_t i = 0; i < 50; i++)
		take(&r, i, i % 2 ? SMALL : RECORDS_MAX_SZ);
	records__free(&r);
}

/* The one queue before the other one, whichever of them is empty, and all that comes later behind
 * them. */
static void test_join(void **state)
{
	(void)state;
	for (int both = 0; both < 4; both++) {
		struct records r = {}, other = {};
		uint32_t in = 0, out = 0;

		for (int i = 0; both & 1 && i < 5000; i++)
			assert_int_equal(put(&r, in++, SMALL), 0);
		for (int i = 0; both & 2 && i < 5000; i++)
			assert_int_equal(put(&other, in++, SMALL), 0);
		records__join(&r, &other);
		assert_null(records__first(&other, &(size_t){ 0 }, &(uint32_t){ 0 }));
		assert_int_equal(other.sz, 0);
		assert_int_equal(put(&r, in++, SMALL), 0);
		assert_int_equal(put(&other, 7, SMALL), 0);
		take(&other, 7, SMALL);
		while (out < in)
			take(&r, out++, SMALL);
		assert_int_equal(r.sz, 0);
		records__free(&r);
		records__free(&other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
