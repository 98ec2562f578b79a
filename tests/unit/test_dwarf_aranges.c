// SPDX-License-Identifier: BSD-2-Clause
/* Sections of .debug_aranges that are written here, whole and damaged: what they rule out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "target/dwarf_aranges.h"

static uint8_t section[4096];
static size_t section_sz;

static void put(const void *data, size_t sz)
{
	memcpy(section + section_sz, data, sz);
	section_sz += sz;
}

struct form {
	bool wide; /* offsets of 8 bytes */
	uint16_t version;
	uint8_t address_sz, segment_sz;
};

static const struct form usual = { false, 2, 8, 0 }, wide = { true, 2, 8, 0 };

/* Of cnt tuples, and the two zeros that end a set. */
static void put_set(const struct form *f, uint64_t unit, const uint64_t (*tuples)[2], size_t cnt)
{
	static const uint8_t zeros[16];
	size_t offset_sz = f->wide ? 8 : 4, header = (f->wide ? 12 : 4) + 2 + offset_sz + 2;
	size_t padding = (16 - header % 16) % 16;
	uint64_t len = 2 + offset_sz + 2 + padding + 16 * (cnt + 1);

	if (f->wide)
		put("\xff\xff\xff\xff", 4);
	put(&len, f->wide ? 8 : 4);
	put(&f->version, 2);
	put(&unit, offset_sz);
	put(&f->address_sz, 1);
	put(&f->segment_sz, 1);
	put(zeros, padding);
	put(tuples, 16 * cnt);
	put(zeros, 16);
}

/* Which of the units 0x10, 0x20, ... are ruled out, as bits. */
static unsigned int ruled_out(size_t sz, const uint64_t *vaddrs, size_t cnt)
{
	/* as long as it is: a sanitizer sees what is read behind it */
	uint8_t *copy = malloc(sz);
	Elf_Data data = { .d_buf = copy, .d_size = sz };
	struct dwarf_aranges a;
	unsigned int ret = 0;

	assert_true(copy || !sz);
	memcpy(copy, section, sz);
	assert_int_equal(dwarf_aranges__read(&a, &data, vaddrs, cnt), 0);
	for (unsigned int i = 0; i < 8; i++)
		ret |= (unsigned int)dwarf_aranges__rules_out(&a, 0x10 * (i + 1)) << i;
	dwarf_aranges__done(&a);
	free(copy);
	return ret;
}

static void make(void)
{
	static const uint64_t one[][2] = { { 0x1000, 0x100 }, { 0x5000, 0x10 } };
	static const uint64_t two[][2] = { { 0x2000, 0x100 } };
	/* left out by the linker, and something else behind it */
	static const uint64_t gone[][2] = { { 0, 0 }, { 0, 0x4000 }, { 0x3000, 1 } };
	static const uint64_t all_gone[][2] = { { 0, 0x100 },
						{ UINT64_MAX, 0x100 },
						{ 0x6000, 0 } };
	static const struct form old = { false, 1, 8, 0 }, small = { false, 2, 4, 0 },
				 segments = { false, 2, 8, 2 };

	section_sz = 0;
	put_set(&usual, 0x20, two, 1);
	put_set(&usual, 0x10, one, 1);
	put_set(&wide, 0x30, gone, 3);
	put_set(&usual, 0x10, one + 1, 1); /* more of the same */
	put_set(&usual, 0x40, all_gone, 3);
	put_set(&old, 0x50, two, 1);
	put_set(&small, 0x60, two, 1);
	put_set(&segments, 0x70, two, 1);
}

static void test_sets(void **state)
{
	static const struct {
		uint64_t vaddrs[4];
		size_t cnt;
		unsigned int ruled_out;
	} rows[] = {
		/* nothing is known of the others */
		{ { 0 }, 0, 7 },
		{ { 0xfff, 0x1100, 0x20ff }, 3, 5 },
		{ { 0x1000 }, 1, 6 },
		{ { 0x10ff }, 1, 6 },
		{ { 0x1100 }, 1, 7 },
		{ { 0x1100, 0x500f }, 2, 6 },
		{ { 0x3000 }, 1, 3 },
		{ { 0x3001, UINT64_MAX }, 2, 7 },
		{ { 0x10, 0x1001, 0x2001, 0x3000 }, 4, 0 },
	};

	(void)state;
	make();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(ruled_out(section_sz, rows[i].vaddrs, rows[i].cnt),
				 rows[i].ruled_out);
}

/* What is cut or damaged says less, or something else, and harms nobody. */
static void test_damaged(void **state)
{
	static const uint64_t vaddrs[] = { 0x1000, 0x2000, 0x3000 };
	struct dwarf_aranges none;

	(void)state;
	make();
	for (size_t sz = 0; sz <= section_sz; sz++)
		assert_int_equal(ruled_out(sz, vaddrs, 3), 0);
	for (size_t i = 0; i < section_sz; i++) {
		uint8_t was = section[i];

		for (unsigned int bit = 0; bit < 8; bit++) {
			section[i] = was ^ (uint8_t)(1U << bit);
			(void)ruled_out(section_sz, vaddrs, 3);
		}
		section[i] = 0xff;
		(void)ruled_out(section_sz, vaddrs, 3);
		section[i] = was;
	}
	assert_int_equal(dwarf_aranges__read(&none, NULL, vaddrs, 3), 0);
	assert_false(dwarf_aranges__rules_out(&none, 0x10));
	dwarf_aranges__done(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
