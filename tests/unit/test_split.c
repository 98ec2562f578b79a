/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/split: a part of all samples is written as the profile itself is; parts have their
 * samples, and nothing of the others'; without labels, what they told apart is added up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "golden_profile.h"
#include "profile/profile.h"
#include "profile/split.h"
#include "written.h"

#define MAX_SAMPLES 64
#define PARTS 3

static void same(const struct profile *a, const struct profile *b)
{
	struct bytes x = written(a), y = written(b);

	assert_int_equal(x.sz, y.sz);
	assert_memory_equal(x.data, y.data, x.sz);
	free(x.data);
	free(y.data);
}

static void all_in_one(void **state)
{
	struct profile *golden[] = {
		golden_profile(),
		golden_heap_profile(),
		golden_kind_profile(BPFPROF_OFFCPU),
		golden_kind_profile(BPFPROF_MUTEX),
	};
	uint32_t part_of[MAX_SAMPLES] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(golden); i++) {
		struct profile *part;

		assert_in_range(golden[i]->sample_cnt, 1, MAX_SAMPLES);
		assert_int_equal(profile_split(golden[i], part_of, 1, &part), 0);
		assert_int_equal(profile__finish(part), 0);
		same(part, golden[i]);
		assert_int_equal(part->folded_value, golden[i]->folded_value);
		profile__free(part);
		profile__free(golden[i]);
	}
}

/* A profile in which sample i has a stack of two functions, which only the others of i % PARTS have,
 * too; with labels. */
static struct profile *make(size_t cnt)
{
	static const struct profile_value_type types[] = { { "samples", "count" },
							   { "cpu", "nanoseconds" } };
	struct profile *p = profile__new(types, 2, types[1], 1000);

	assert_non_null(p);
	p->time_ns = 5;
	p->duration_ns = 6;
	for (size_t i = 0; i < cnt; i++) {
		struct profile_mapping m = { .start = 4096, .limit = 8192 };
		struct profile_label label = { .key = profile__string(p, "service") };
		int64_t values[] = { 1, (int64_t)i };
		uint32_t locs[2];
		char text[32];

		snprintf(text, sizeof(text), "/bin/part%zu", i % PARTS);
		m.filename = profile__string(p, text);
		for (size_t k = 0; k < ARRAY_SIZE(locs); k++) {
			snprintf(text, sizeof(text), "part%zu_f%zu", i % PARTS, k);
			locs[k] = golden_location(p, profile__add_mapping(p, &m), 4096 + 16 * k,
						  text, text, "x.c", 1);
		}
		snprintf(text, sizeof(text), "part%zu", i % PARTS);
		label.str = profile__string(p, text);
		profile__add_sample(p, locs, 1 + i / PARTS % 2, &label, 1, values);
	}
	assert_int_equal(profile__add_comment(p, "all of them"), 0);
	assert_int_equal(profile__finish(p), 0);
	return p;
}

static bool has_string(const struct profile *p, const char *part)
{
	for (uint32_t i = 0; i < strtab__cnt(p->strings); i++)
		if (strstr(strtab__get(p->strings, i), part))
			return true;
	return false;
}

static void parts_are_apart(void **state)
{
	struct profile *p = make(6 * PARTS), *parts[PARTS + 1];
	uint32_t part_of[MAX_SAMPLES];
	int64_t sum = 0;

	(void)state;
	/* two stacks for each part */
	assert_int_equal(p->sample_cnt, 2 * PARTS);
	for (size_t i = 0; i < p->sample_cnt; i++)
		part_of[i] = (uint32_t)(i % PARTS);
	assert_int_equal(profile_split(p, part_of, PARTS + 1, parts), 0);
	for (size_t i = 0; i < PARTS; i++) {
		const struct profile *part = parts[i];

		assert_int_equal(part->sample_cnt, 2);
		assert_int_equal(part->mapping_cnt, 1);
		assert_int_equal(part->function_cnt, 2);
		assert_int_equal(part->location_cnt, 2);
		assert_int_equal(profile__values(part, &part->samples[0])[0] +
					 profile__values(part, &part->samples[1])[0],
				 6);
		sum += profile__values(part, &part->samples[0])[1] +
		       profile__values(part, &part->samples[1])[1];
		assert_int_equal(part->time_ns, 5);
		assert_int_equal(part->duration_ns, 6);
		assert_int_equal(part->period, 1000);
		for (size_t k = 0; k < PARTS; k++) {
			char name[16];

			snprintf(name, sizeof(name), "part%zu", k);
			assert_int_equal(has_string(part, name), i == k);
		}
	}
	assert_int_equal(sum, 6 * PARTS * (6 * PARTS - 1) / 2);
	/* one that nothing belongs to */
	assert_int_equal(parts[PARTS]->sample_cnt, 0);
	for (size_t i = 0; i <= PARTS; i++) {
		assert_int_equal(parts[i]->comment_cnt, 1);
		assert_string_equal(strtab__get(parts[i]->strings, parts[i]->comments[0]),
				    "all of them");
		assert_int_equal(profile__add_comment(parts[i], "more"), 0);
		assert_int_equal(profile__finish(parts[i]), 0);
		profile__free(parts[i]);
	}
	profile__free(p);
}

static void samples_of_no_part(void **state)
{
	struct profile *p = make(6 * PARTS), *part;
	uint32_t part_of[MAX_SAMPLES];

	(void)state;
	for (size_t i = 0; i < p->sample_cnt; i++)
		part_of[i] = i % PARTS == 1 ? 0 : PROFILE_NONE;
	assert_int_equal(profile_split(p, part_of, 1, &part), 0);
	assert_int_equal(part->sample_cnt, 2);
	assert_true(has_string(part, "part1"));
	assert_false(has_string(part, "part0"));
	profile__free(part);
	profile__free(p);
}

/* Interpreters have no addresses: their locations differ in their lines alone. */
static void lines_stay_apart(void **state)
{
	static const struct profile_value_type types[] = { { "samples", "count" } };
	static const char *const names[] = { "parse", "eval", "print" };
	struct profile *p = profile__new(types, 1, types[0], 1), *part;
	const uint32_t part_of[] = { 0, 0, 0 };

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct profile_function f = { .name = profile__string(p, names[i]) };
		struct profile_line line = { .function = profile__add_function(p, &f) };
		uint32_t loc = profile__append_location(p, PROFILE_NONE, 0);

		assert_int_equal(profile__set_lines(p, loc, &line, 1), 0);
		profile__add_sample(p, &loc, 1, NULL, 0, (int64_t[]){ 1 });
	}
	assert_int_equal(profile_split(p, part_of, 1, &part), 0);
	assert_int_equal(part->sample_cnt, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint32_t loc = part->loc_ids[part->samples[i].loc];
		uint32_t function = part->lines[part->locations[loc].line].function;

		assert_string_equal(strtab__get(part->strings, part->functions[function].name),
				    names[i]);
	}
	profile__free(part);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_in_one),
		cmocka_unit_test(parts_are_apart),
		cmocka_unit_test(samples_of_no_part),
		cmocka_unit_test(lines_stay_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
