/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/strtab. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strtab.h"

static void empty_is_zero(void **state)
{
	struct strtab *st = strtab__new();

	(void)state;
	assert_non_null(st);
	assert_int_equal(strtab__cnt(st), 1);
	assert_int_equal(strtab__add(st, ""), 0);
	assert_int_equal(strtab__add(st, NULL), 0);
	assert_int_equal(strtab__add_n(st, "abc", 0), 0);
	assert_int_equal(strtab__add_n(st, NULL, 0), 0);
	assert_int_equal(strtab__add_n(st, "\0abc", 4), 0);
	assert_string_equal(strtab__get(st, 0), "");
	assert_string_equal(strtab__get(st, 1), "");
	assert_string_equal(strtab__get(st, UINT32_MAX), "");
	assert_int_equal(strtab__cnt(st), 1);
	strtab__free(st);
	strtab__free(NULL);
}

static void ids_count_up(void **state)
{
	struct strtab *st = strtab__new();

	(void)state;
	assert_int_equal(strtab__add(st, "b"), 1);
	assert_int_equal(strtab__add(st, "a"), 2);
	assert_int_equal(strtab__add(st, "b"), 1);
	assert_int_equal(strtab__add_n(st, "abc", 1), 2);
	assert_int_equal(strtab__add_n(st, "abc", 2), 3);
	assert_int_equal(strtab__add_n(st, "ab\0c", 4), 3);
	assert_int_equal(strtab__add(st, "abc"), 4);
	assert_string_equal(strtab__get(st, 3), "ab");
	assert_int_equal(strtab__cnt(st), 5);
	strtab__free(st);
}

static void many_strings_stay(void **state)
{
	struct strtab *st = strtab__new();
	char text[64];
	uint32_t i, round;

	(void)state;
	for (round = 0; round < 2; round++)
		for (i = 0; i < 200000; i++) {
			snprintf(text, sizeof(text), "_ZN4name%uEv", i);
			assert_int_equal(strtab__add(st, text), i + 1);
		}
	assert_int_equal(strtab__cnt(st), 200001);
	for (i = 0; i < 200000; i += 77) {
		snprintf(text, sizeof(text), "_ZN4name%uEv", i);
		assert_string_equal(strtab__get(st, i + 1), text);
	}
	strtab__free(st);
}

/* A part of a string of the same table may be added, although its buffer moves meanwhile. */
static void own_parts_can_be_added(void **state)
{
	struct strtab *st = strtab__new();
	char text[5000];
	const char *own;
	uint32_t id, i;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	id = strtab__add(st, text);
	for (i = 1; i < sizeof(text) - 1; i++) {
		own = strtab__get(st, id) + i;
		assert_int_equal(strtab__add(st, own), i + 1);
		assert_int_equal(strlen(strtab__get(st, i + 1)), sizeof(text) - 1 - i);
	}
	strtab__free(st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_is_zero),
		cmocka_unit_test(ids_count_up),
		cmocka_unit_test(many_strings_stay),
		cmocka_unit_test(own_parts_can_be_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
