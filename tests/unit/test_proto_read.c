/* SPDX-License-Identifier: BSD-2-Clause */
/* profile/proto_read: numbers of every length, and fields that are cut or none are refused. */
#include "profile/proto_read.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A copy of just this size, for the sanitizer. */
static struct proto copied(const void *data, size_t sz, uint8_t **ret)
{
	*ret = malloc(sz ? sz : 1);
	assert_non_null(*ret);
	memcpy(*ret, data, sz);
	return (struct proto){ *ret, *ret + sz };
}

static size_t put_number(uint8_t *to, uint64_t value)
{
	size_t sz = 0;

	for (; value >> 7; value >>= 7)
		to[sz++] = (uint8_t)(value | 0x80);
	to[sz++] = (uint8_t)value;
	return sz;
}

static void numbers(void **unused)
{
	(void)unused;
	for (unsigned int bits = 0; bits <= 64; bits++) {
		uint64_t value = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX, got;
		uint8_t wire[20], *own;
		size_t sz = put_number(wire, value), after = put_number(wire + sz, 5);

		for (size_t cut = 0; cut < sz; cut++) {
			struct proto p = copied(wire, cut, &own);

			assert_int_equal(proto_number(&p, &got), cut ? -EBADMSG : 0);
			free(own);
		}
		for (size_t more = 0; more <= after; more++) {
			struct proto p = copied(wire, sz + more, &own);

			assert_int_equal(proto_number(&p, &got), 1);
			assert_true(got == value);
			assert_int_equal(proto_left(&p), more);
			free(own);
		}
	}
}

/* A number has ten bytes at most. */
static void too_long(void **unused)
{
	uint8_t *own;
	struct proto p = copied("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, &own);
	uint64_t got;

	(void)unused;
	assert_int_equal(proto_number(&p, &got), -EBADMSG);
	free(own);
}

static int next(const char *data, size_t sz, struct proto_field *ret)
{
	uint8_t *own;
	struct proto p = copied(data, sz, &own);
	int more = proto_next(&p, ret);

	if (more > 0)
		assert_int_equal(proto_left(&p), 0);
	free(own);
	return more;
}

#define NEXT(text, f) next(text, sizeof(text) - 1, f)

static void fields(void **unused)
{
	struct proto_field f;

	(void)unused;
	assert_int_equal(NEXT("", &f), 0);
	assert_int_equal(NEXT("\x08\x96\x01", &f), 1);
	assert_true(f.number == 1 && f.kind == PROTO_NUMBER && f.value == 150);
	assert_int_equal(NEXT("\x12\x02hi", &f), 1);
	assert_true(f.number == 2 && f.kind == PROTO_BYTES && proto_left(&f.bytes) == 2);
	assert_int_equal(NEXT("\x19"
			      "12345678",
			      &f),
			 1);
	assert_int_equal(NEXT("\x1d"
			      "1234",
			      &f),
			 1);
	/* the largest number of a field, and one more */
	assert_int_equal(NEXT("\xf8\xff\xff\xff\x0f\x01", &f), 1);
	assert_int_equal(f.number, (1 << 29) - 1);
	assert_int_equal(NEXT("\x80\x80\x80\x80\x10\x01", &f), -EBADMSG);
	/* field 0, groups, kinds that there are not, and what is cut */
	assert_int_equal(NEXT("\x00\x01", &f), -EBADMSG);
	assert_int_equal(NEXT("\x0b", &f), -EBADMSG);
	assert_int_equal(NEXT("\x0c", &f), -EBADMSG);
	assert_int_equal(NEXT("\x0f\x01", &f), -EBADMSG);
	assert_int_equal(NEXT("\x08", &f), -EBADMSG);
	assert_int_equal(NEXT("\x12", &f), -EBADMSG);
	assert_int_equal(NEXT("\x12\x03hi", &f), -EBADMSG);
	assert_int_equal(NEXT("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01hi", &f), -EBADMSG);
	assert_int_equal(NEXT("\x19"
			      "1234567",
			      &f),
			 -EBADMSG);
	assert_int_equal(NEXT("\x1d"
			      "123",
			      &f),
			 -EBADMSG);
}

static int read_numbers(const char *data, size_t sz, uint64_t values[3], uint32_t others)
{
	uint8_t *own;
	struct proto p = copied(data, sz, &own);
	int err = proto_numbers(p, values, 3, others);

	free(own);
	return err;
}

static void messages(void **unused)
{
	uint64_t v[3] = { 7, 8, 9 };

	(void)unused;
	/* the last one counts, others are not read */
	assert_int_equal(read_numbers("\x08\x01\x08\x02\x18\x05\x22\x00", 8, v, 0), 0);
	assert_true(v[0] == 7 && v[1] == 2 && v[2] == 9);
	assert_int_equal(read_numbers("\x12\x00", 2, v, 0), -EBADMSG);
	assert_int_equal(read_numbers("\x12\x00\x08\x04", 4, v, 1 << 2), 0);
	assert_true(v[1] == 4 && v[2] == 9);
	assert_int_equal(read_numbers("\x08\x04\x22\x05", 4, v, 0), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(too_long),
		cmocka_unit_test(fields),
		cmocka_unit_test(messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
