/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/fit and profile/units: the same values in other units and orders are made the same,
 * whichever comes first, without a rounding; what is not the same stays as it is, with a reason. */
#include "profile/fit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "profile/profile.h"
#include "profile/units.h"

struct made {
	struct profile_value_type types[PROFILE_MAX_VALUES];
	struct profile_value_type period_type;
	int64_t period;
	int64_t values[PROFILE_MAX_VALUES];
};

/* A profile of one sample. */
static struct profile *make(const struct made *m)
{
	struct profile *p;
	size_t cnt = 0;

	while (cnt < PROFILE_MAX_VALUES && m->types[cnt].type)
		cnt++;
	p = profile__new(m->types, cnt, m->period_type, m->period);
	assert_non_null(p);
	assert_int_not_equal(profile__add_sample(p, NULL, 0, NULL, 0, m->values), PROFILE_NONE);
	return p;
}

static void is_made(const struct profile *p, const struct made *want)
{
	for (size_t i = 0; i < p->value_cnt; i++) {
		assert_non_null(want->types[i].type);
		assert_string_equal(p->value_types[i].type, want->types[i].type);
		assert_string_equal(p->value_types[i].unit, want->types[i].unit);
		assert_int_equal(profile__values(p, &p->samples[0])[i], want->values[i]);
	}
	assert_int_equal(p->period, want->period);
	if (want->period_type.type) {
		assert_string_equal(p->period_type.type, want->period_type.type);
		assert_string_equal(p->period_type.unit, want->period_type.unit);
	}
}

/* left_out: what profile_fit_say says. */
static void fits_without(const struct made *a, const struct made *b, const struct made *a_then,
			 const struct made *b_then, const char *left_out)
{
	char text[256];

	for (int swapped = 0; swapped < 2; swapped++) {
		struct profile *p = make(a), *q = make(b);
		struct strtab *names = strtab__new();

		assert_non_null(names);
		assert_int_equal(
			profile_fit(swapped ? q : p, swapped ? p : q, names, text, sizeof(text)),
			0);
		is_made(p, a_then);
		is_made(q, b_then);
		assert_int_equal(profile_fit_say(p, names, text, sizeof(text)), 0);
		assert_string_equal(text, left_out);
		assert_int_equal(p->comment_cnt, *left_out != '\0');
		strtab__free(names);
		profile__free(p);
		profile__free(q);
	}
}

static void fits(const struct made *a, const struct made *b, const struct made *a_then,
		 const struct made *b_then)
{
	fits_without(a, b, a_then, b_then, "");
}

static void refuses(const struct made *a, const struct made *b, const char *why)
{
	struct profile *p = make(a), *q = make(b);
	struct strtab *names = strtab__new();
	char text[256] = "";

	assert_non_null(names);
	assert_int_equal(profile_fit(p, q, names, text, sizeof(text)), -EINVAL);
	assert_string_equal(text, why);
	is_made(p, a);
	is_made(q, b);
	strtab__free(names);
	profile__free(p);
	profile__free(q);
}

static void finer_units(void **state)
{
	static const struct made ms = { { { "samples", "count" }, { "cpu", "milliseconds" } },
					{ "cpu", "us" },
					10000,
					{ 3, 30 } },
				 ns = { { { "samples", "count" }, { "cpu", "nanoseconds" } },
					{ "cpu", "ms" },
					10,
					{ 2, 20000001 } },
				 ms_then = { { { "samples", "count" }, { "cpu", "nanoseconds" } },
					     { "cpu", "us" },
					     10000,
					     { 3, 30000000 } },
				 ns_then = { { { "samples", "count" }, { "cpu", "nanoseconds" } },
					     { "cpu", "us" },
					     10000,
					     { 2, 20000001 } },
				 kb = { .types = { { "space", "kB" } }, .values = { 3 } },
				 bytes = { .types = { { "space", "bytes" } }, .values = { 5 } },
				 kb_then = { .types = { { "space", "bytes" } },
					     .values = { 3072 } };

	(void)state;
	fits(&ms, &ns, &ms_then, &ns_then);
	fits(&kb, &bytes, &kb_then, &bytes);
}

static void names_of_a_unit(void **state)
{
	static const struct made a = { .types = { { "cpu", "ns" } }, .values = { 1 } },
				 b = { .types = { { "cpu", "nanoseconds" } }, .values = { 2 } },
				 a_then = { .types = { { "cpu", "nanoseconds" } },
					    .values = { 1 } };

	(void)state;
	fits(&a, &b, &a_then, &b);
}

static void orders(void **state)
{
	static const struct made
		a = { .types = { { "samples", "count" }, { "cpu", "ms" }, { "wall", "ns" } },
		      .values = { 1, 2, 3 } },
		b = { .types = { { "cpu", "ns" }, { "wall", "ns" }, { "samples", "count" } },
		      .values = { 10, 20, 30 } },
		a_then = { .types = { { "cpu", "ns" }, { "wall", "ns" }, { "samples", "count" } },
			   .values = { 2000000, 3, 1 } };
	struct profile *p = make(&a), *q = make(&b);
	struct strtab *names = strtab__new();
	char text[256];

	(void)state;
	assert_non_null(names);
	fits(&a, &b, &a_then, &b);
	/* what is shown first is another place, and the same value */
	p->folded_value = 1;
	p->default_type = profile__string(p, "cpu");
	assert_int_equal(profile__default_value(p), 1);
	assert_int_equal(profile_fit(p, q, names, text, sizeof(text)), 0);
	assert_int_equal(p->folded_value, 0);
	assert_int_equal(profile__default_value(p), 0);
	assert_int_equal(profile__default_value(q), 2);
	strtab__free(names);
	profile__free(p);
	profile__free(q);
}

/* What both have stays, wherever it stands, with all samples; what shows first is the last one where it is gone. */
static void common_ones(void **state)
{
	static const struct made
		heap = { { { "alloc_objects", "count" },
			   { "alloc_space", "bytes" },
			   { "inuse_objects", "count" },
			   { "inuse_space", "bytes" } },
			 { "space", "bytes" },
			 512,
			 { 1, 20, 3, 40 } },
		allocs = { { { "alloc_objects", "count" }, { "alloc_space", "kB" } },
			   { "space", "bytes" },
			   512,
			   { 5, 6 } },
		heap_then = { { { "alloc_objects", "count" }, { "alloc_space", "bytes" } },
			      { "space", "bytes" },
			      512,
			      { 1, 20 } },
		allocs_then = { { { "alloc_objects", "count" }, { "alloc_space", "bytes" } },
				{ "space", "bytes" },
				512,
				{ 5, 6144 } },
		a = { .types = { { "x", "count" }, { "b", "ns" }, { "a", "ns" } },
		      .values = { 1, 2, 3 } },
		b = { .types = { { "a", "ns" }, { "y", "count" }, { "b", "us" } },
		      .values = { 10, 20, 30 } },
		a_then = { .types = { { "a", "ns" }, { "b", "ns" } }, .values = { 3, 2 } },
		b_then = { .types = { { "a", "ns" }, { "b", "ns" } }, .values = { 10, 30000 } };
	struct profile *p = make(&heap), *q = make(&allocs);
	struct strtab *names = strtab__new();
	char text[256];

	(void)state;
	assert_non_null(names);
	fits_without(&heap, &allocs, &heap_then, &allocs_then, "inuse_objects, inuse_space");
	fits_without(&a, &b, &a_then, &b_then, "x, y");
	for (int64_t i = 0; i < 100; i++)
		assert_int_not_equal(profile__add_sample(p,
							 &(uint32_t){ profile__add_marker(p, "f") },
							 1, NULL, 0, (int64_t[]){ i, 2 * i, i, i }),
				     PROFILE_NONE);
	p->folded_value = 3;
	p->default_type = profile__string(p, "inuse_space");
	assert_int_equal(profile_fit(q, p, names, text, sizeof(text)), 0);
	assert_int_equal(profile__total(p, 0), 1 + 4950);
	assert_int_equal(profile__total(p, 1), 20 + 9900);
	assert_int_equal(p->folded_value, 1);
	assert_int_equal(p->default_type, 0);
	/* and goes on to grow */
	assert_int_not_equal(profile__add_sample(p, NULL, 0, NULL, 0, (int64_t[]){ 1, 1 }),
			     PROFILE_NONE);
	assert_int_equal(profile__total(p, 1), 20 + 9900 + 1);
	strtab__free(names);
	profile__free(p);
	profile__free(q);
}

/* A name twice, with other units. */
static void twice(void **state)
{
	static const struct made a = { .types = { { "alloc", "count" }, { "alloc", "kB" } },
				       .values = { 1, 2 } },
				 b = { .types = { { "alloc", "bytes" }, { "alloc", "count" } },
				       .values = { 7, 8 } },
				 a_then = { .types = { { "alloc", "bytes" }, { "alloc", "count" } },
					    .values = { 2048, 1 } };

	(void)state;
	fits(&a, &b, &a_then, &b);
}

static void ends_of_the_range(void **state)
{
	static const struct made a = { .types = { { "a", "s" }, { "b", "s" } },
				       .values = { INT64_MAX / 2, INT64_MIN / 2 } },
				 b = { .types = { { "a", "ns" }, { "b", "ns" } },
				       .values = { 1, 1 } },
				 a_then = { .types = { { "a", "ns" }, { "b", "ns" } },
					    .values = { INT64_MAX, INT64_MIN } };

	(void)state;
	fits(&a, &b, &a_then, &b);
}

static void refused(void **state)
{
	static const struct made cpu = { { { "samples", "count" }, { "cpu", "ns" } },
					 { "cpu", "ns" },
					 1,
					 { 1, 2 } },
				 by_cycles = { { { "samples", "count" }, { "cpu", "ms" } },
					       { "cycles", "count" },
					       1,
					       { 1, 2 } },
				 by_nothing = { { { "samples", "count" }, { "cpu", "ns" } },
						{ "", "" },
						0,
						{ 1, 2 } },
				 other = { .types = { { "events", "count" } }, .values = { 1 } },
				 sizes = { { { "samples", "count" }, { "cpu", "kB" } },
					   { "cpu", "ns" },
					   1,
					   { 1, 2 } },
				 size = { .types = { { "cpu", "kB" } }, .values = { 1 } },
				 time = { .types = { { "cpu", "s" } }, .values = { 1 } },
				 unknown = { .types = { { "cpu", "jiffies" } }, .values = { 1 } },
				 none = { .types = { { "cpu", "" } }, .values = { 1 } };

	(void)state;
	refuses(&cpu, &other, "its values are events/count, and not samples/count cpu/ns");
	refuses(&other, &cpu, "its values are samples/count cpu/ns, and not events/count");
	/* beside one that fits */
	refuses(&cpu, &sizes, "its values are samples/count cpu/kB, and not samples/count cpu/ns");
	refuses(&cpu, &by_cycles, "its samples are taken by cycles/count, and not by cpu/ns");
	refuses(&cpu, &by_nothing, "its samples are taken by nothing, and not by cpu/ns");
	refuses(&size, &time, "its values are cpu/s, and not cpu/kB");
	refuses(&time, &unknown, "its values are cpu/jiffies, and not cpu/s");
	refuses(&unknown, &none, "its values are cpu/, and not cpu/jiffies");
}

static void unit_names(void **state)
{
	static const char *const times[] = { "ns", "Nanosecond", "NANOSECONDS" },
				 *const micros[] = { "us", "\u00b5s", "\u03bcs", "microseconds" },
				 *const megabytes[] = { "mb", "MB", "MBytes", "megabytes" },
				 *const none[] = { "",	   "count", "n",     "m",   "kilo",
						   "bits", "kib",   "byte ", "ms/s" };
	const struct units_scale *list, *time_list, *found;

	(void)state;
	found = units_find("ns", &time_list);
	assert_int_equal(found->factor, 1);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		assert_ptr_equal(units_find(times[i], &list), found);
		assert_ptr_equal(list, time_list);
	}
	for (size_t i = 0; i < ARRAY_SIZE(micros); i++) {
		found = units_find(micros[i], &list);
		assert_non_null(found);
		assert_int_equal(found->factor, 1000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(megabytes); i++) {
		assert_int_equal(units_find(megabytes[i], &list)->factor, 1 << 20);
		assert_ptr_not_equal(list, time_list);
	}
	assert_int_equal(units_find("ms", &list)->factor, 1000000);
	assert_int_equal(units_find("s", &list)->factor, 1000000000);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_null(units_find(none[i], &list));
}

static void unit_texts(void **state)
{
	static const struct {
		int64_t value;
		const char *unit, *text;
	} rows[] = {
		{ 0, "nanoseconds", "0" },
		{ 999, "nanoseconds", "999ns" },
		{ 1500000000, "nanoseconds", "1.50s" },
		{ 1500, "milliseconds", "1.50s" },
		{ 7200, "seconds", "2hrs" },
		{ -1536, "bytes", "-1.50kB" },
		{ 3, "MB", "3MB" },
		{ 4096, "kilobytes", "4MB" },
		{ 1234567, "count", "1234567" },
		{ 12, "jiffies", "12jiffies" },
		{ 0, "jiffies", "0" },
		{ -12, "counts", "-12counts" },
		{ 12, "Count", "12Count" },
		{ 12, "sample", "12" },
		{ 12, "unit", "12" },
		{ 12, "", "12" },
		{ 12, "a\tb", "12a\uFFFDb" },
		/* no character is cut */
		{ INT64_MIN, "1234567890123456789012345678901\u00b5s",
		  "-92233720368547758081234567890123456789012345678901" },
		{ INT64_MAX, "PB", "9223372036854775808PB" },
	};
	char buf[UNITS_SZ];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(units_text(buf, rows[i].value, rows[i].unit,
					       units_pick(rows[i].unit, (double)rows[i].value)),
				    rows[i].text);
	/* of a table whose smallest value is 1 ns */
	assert_string_equal(units_pick_for_table("ns", 1, 50)->suffix, "ns");
	assert_string_equal(units_pick_for_table("ns", 100, 1e9)->suffix, "us");
	assert_string_equal(units_pick_for_table("us", 100, 1e9)->suffix, "ms");
	assert_string_equal(units_pick_for_table("bytes", 0, 1 << 20)->suffix, "MB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finer_units),
		cmocka_unit_test(names_of_a_unit),
		cmocka_unit_test(orders),
		cmocka_unit_test(common_ones),
		cmocka_unit_test(twice),
		cmocka_unit_test(refused),
		cmocka_unit_test(ends_of_the_range),
		cmocka_unit_test(unit_names),
		cmocka_unit_test(unit_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
