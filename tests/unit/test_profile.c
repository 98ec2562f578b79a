/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/profile and profile/finish: what is merged, what mappings claim. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "profile/profile.h"

static const struct profile_value_type types[] = { { "samples", "count" },
						   { "cpu", "nanoseconds" } };

#define MANY 300000 /* labels of one sample */

static uint64_t gets, max_gets; /* strings looked at, and how many at most; 0: any number */

const char *__real_strtab__get(const struct strtab *st, uint32_t id);
const char *__wrap_strtab__get(const struct strtab *st, uint32_t id);
const char *__wrap_strtab__get(const struct strtab *st, uint32_t id)
{
	if (max_gets && ++gets > max_gets) {
		max_gets = 0;
		fail_msg("%" PRIu64 " strings were looked at", gets);
	}
	return __real_strtab__get(st, id);
}

static struct profile *make(void)
{
	struct profile *p = profile__new(types, 2, types[1], 10000000);

	assert_non_null(p);
	return p;
}

static uint32_t function(struct profile *p, const char *name, const char *system_name,
			 const char *file)
{
	struct profile_function f = { 0 };

	f.name = profile__string(p, name);
	f.system_name = profile__string(p, system_name);
	f.filename = profile__string(p, file);
	return profile__add_function(p, &f);
}

static void name(struct profile *p, uint32_t loc, uint32_t f, int64_t line)
{
	struct profile_line l = { .function = f, .line = line };

	assert_int_equal(profile__set_lines(p, loc, &l, 1), 0);
}

static void arguments_are_checked(void **state)
{
	(void)state;
	errno = 0;
	assert_null(profile__new(types, 0, types[1], 1));
	assert_int_equal(errno, EINVAL);
	assert_null(profile__new(types, PROFILE_MAX_VALUES + 1, types[1], 1));
	profile__free(NULL);
}

static void strings_are_utf8(void **state)
{
	struct profile *p = make();

	(void)state;
	assert_int_equal(profile__string(p, NULL), 0);
	assert_int_equal(profile__string(p, ""), 0);
	assert_string_equal(strtab__get(p->strings, profile__string(p,
								    "a\xff"
								    "b\xc3")),
			    "a\xef\xbf\xbd"
			    "b\xef\xbf\xbd");
	assert_string_equal(strtab__get(p->strings, profile__string(p, "gr\xc3\xbc\xc3\x9f\n")),
			    "gr\xc3\xbc\xc3\x9f\n");
	assert_int_equal(profile__string(p, "x\xfe"), profile__string(p, "x\xff"));
	profile__free(p);
}

static void equal_entries_are_one(void **state)
{
	struct profile *p = make();
	struct profile_mapping m = { .start = 4096, .limit = 8192, .has_functions = true };
	uint32_t a, b;

	(void)state;
	m.filename = profile__string(p, "/bin/x");
	a = profile__add_mapping(p, &m);
	assert_int_equal(a, 0);
	assert_false(p->mappings[0].has_functions);
	assert_int_equal(profile__add_mapping(p, &m), a);
	m.owner = 1;
	b = profile__add_mapping(p, &m);
	assert_int_equal(b, 1);
	m.build_id = profile__string(p, "ab");
	assert_int_equal(profile__add_mapping(p, &m), 2);

	assert_int_equal(function(p, "f", "f", "f.c"), 0);
	assert_int_equal(function(p, "f", "f", "f.c"), 0);
	assert_int_equal(function(p, "f", "f", "g.c"), 1);
	assert_int_equal(function(p, "f", "", "f.c"), 2);

	assert_int_equal(profile__add_location(p, a, 5000), 0);
	assert_int_equal(profile__add_location(p, b, 5000), 1);
	assert_int_equal(profile__add_location(p, a, 5001), 2);
	assert_int_equal(profile__add_location(p, PROFILE_NONE, 5000), 3);
	assert_int_equal(profile__add_location(p, a, 5000), 0);
	assert_int_equal(p->location_cnt, 4);
	profile__free(p);
}

static void markers_are_their_names(void **state)
{
	struct profile *p = make(), *q = make();
	uint32_t a = profile__add_marker(p, "[unwind: no table]"), b, c;

	(void)state;
	b = profile__add_marker(p, "[unwind: too deep]");
	assert_int_not_equal(a, b);
	assert_int_equal(profile__add_marker(p, "[unwind: no table]"), a);
	assert_int_equal(p->locations[a].mapping, PROFILE_NONE);
	assert_int_equal(p->locations[a].line_cnt, 1);
	assert_string_equal(
		strtab__get(p->strings, p->functions[p->lines[p->locations[b].line].function].name),
		"[unwind: too deep]");
	/* the address does not depend on the run, and is none that code can have */
	profile__add_marker(q, "[other]");
	c = profile__add_marker(q, "[unwind: no table]");
	assert_true(q->locations[c].address == p->locations[a].address);
	assert_true(p->locations[a].address >> 47 == 0x10000);
	profile__free(p);
	profile__free(q);
}

static void lines_are_replaced(void **state)
{
	struct profile *p = make();
	uint32_t loc = profile__add_location(p, PROFILE_NONE, 1), f = function(p, "f", "f", ""), g;
	struct profile_line lines[] = { { f, 10 }, { f, 20 }, { f, 30 } };
	uint32_t other = profile__add_location(p, PROFILE_NONE, 2);

	(void)state;
	g = function(p, "g", "g", "");
	name(p, loc, g, 5);
	name(p, other, g, 7);
	assert_int_equal(profile__set_lines(p, loc, lines, 3), 0);
	assert_int_equal(p->locations[loc].line_cnt, 3);
	assert_int_equal(p->lines[p->locations[loc].line + 2].line, 30);
	assert_int_equal(profile__set_lines(p, loc, lines + 1, 1), 0);
	assert_int_equal(p->locations[loc].line_cnt, 1);
	assert_int_equal(p->lines[p->locations[loc].line].line, 20);
	assert_int_equal(p->lines[p->locations[other].line].line, 7);
	assert_int_equal(profile__set_lines(p, loc, NULL, 0), 0);
	assert_int_equal(p->locations[loc].line_cnt, 0);
	profile__free(p);
}

static void samples_are_merged(void **state)
{
	struct profile *p = make();
	uint32_t locs[] = { profile__add_location(p, PROFILE_NONE, 1),
			    profile__add_location(p, PROFILE_NONE, 2),
			    profile__add_location(p, PROFILE_NONE, 1) };
	uint32_t pid = profile__string(p, "pid"), comm = profile__string(p, "comm"),
		 x = profile__string(p, "x");
	struct profile_label labels[] = { { .key = pid, .num = 7, .num_unit = pid },
					  { .key = comm, .str = x } };
	struct profile_label swapped[] = { labels[1], labels[0] },
			     more[] = { labels[0], { .key = comm, .str = pid } };
	int64_t v[] = { 1, 10 };

	(void)state;
	assert_int_equal(profile__add_sample(p, locs, 3, labels, 2, v), 0);
	assert_int_equal(profile__add_sample(p, locs, 3, swapped, 2, v), 0);
	assert_int_equal(profile__add_sample(p, locs, 3, more, 2, v), 1);
	assert_int_equal(profile__add_sample(p, locs, 3, labels, 1, v), 2);
	assert_int_equal(profile__add_sample(p, locs, 2, labels, 2, v), 3);
	assert_int_equal(profile__add_sample(p, locs, 3, NULL, 0, v), 4);
	assert_int_equal(profile__add_sample(p, NULL, 0, NULL, 0, v), 5);
	assert_int_equal(profile__add_sample(p, NULL, 0, NULL, 0, v), 5);
	assert_int_equal(p->sample_cnt, 6);
	assert_int_equal(profile__values(p, &p->samples[0])[0], 2);
	assert_int_equal(profile__values(p, &p->samples[0])[1], 20);
	assert_int_equal(profile__values(p, &p->samples[1])[0], 1);
	assert_int_equal(profile__values(p, &p->samples[5])[0], 2);
	/* what was merged left nothing behind; labels stand in the order of their keys */
	assert_int_equal(p->loc_id_cnt, 3 + 3 + 3 + 2 + 3);
	assert_int_equal(p->label_cnt, 2 + 2 + 1 + 2);
	assert_int_equal(p->labels[p->samples[0].label].key, comm);
	assert_int_equal(p->labels[p->samples[0].label + 1].key, pid);
	assert_memory_equal(p->loc_ids + p->samples[3].loc, locs, 2 * sizeof(*locs));
	profile__free(p);
}

static void labels_are_normalised(void **state)
{
	struct profile *p = make();
	uint32_t k = profile__string(p, "bytes"), s = profile__string(p, "s");
	struct profile_label unitless = { .key = k, .num = 64 },
			     with_unit = { .key = k, .num = 64, .num_unit = k };
	struct profile_label nothing = { .key = k },
			     both = { .key = k, .str = s, .num = 3, .num_unit = s };
	struct profile_label only = { .key = k, .str = s }, zero = { .key = k, .num_unit = s };
	int64_t v[] = { 1, 1 };

	(void)state;
	assert_int_equal(profile__add_sample(p, NULL, 0, &unitless, 1, v), 0);
	assert_int_equal(profile__add_sample(p, NULL, 0, &with_unit, 1, v), 0);
	assert_int_equal(profile__add_sample(p, NULL, 0, &nothing, 1, v), 1);
	assert_int_equal(profile__add_sample(p, NULL, 0, NULL, 0, v), 1);
	assert_int_equal(profile__add_sample(p, NULL, 0, &both, 1, v), 2);
	assert_int_equal(profile__add_sample(p, NULL, 0, &only, 1, v), 2);
	assert_int_equal(profile__add_sample(p, NULL, 0, &zero, 1, v), 3);
	assert_int_equal(p->samples[3].label_cnt, 1);
	profile__free(p);
}

/* Of as many as a file has that is to keep its reader busy, each is compared with a few others; their order
 * is the same, whatever it was before. */
static void many_labels_are_sorted(void **state)
{
	struct profile_label *labels = calloc(MANY, sizeof(*labels));
	struct profile *p = make();
	uint32_t keys[2] = { profile__string(p, "a"), profile__string(p, "b") };
	int64_t v[] = { 1, 1 };

	(void)state;
	assert_non_null(labels);
	for (uint32_t cnt = 1; cnt <= MANY; cnt = cnt == 100 ? MANY : cnt + 1) {
		uint32_t before = (uint32_t)p->sample_cnt, label = (uint32_t)p->label_cnt;

		for (uint32_t i = 0; i < cnt; i++)
			labels[i] = (struct profile_label){ .key = keys[i < cnt / 2],
							    .num = (int64_t)cnt - i,
							    .num_unit = keys[0] };
		gets = 0;
		max_gets = 100 * (uint64_t)cnt;
		assert_int_equal(profile__add_sample(p, NULL, 0, labels, cnt, v), before);
		for (uint32_t i = 0; i < cnt / 2; i++) {
			struct profile_label l = labels[i];

			labels[i] = labels[cnt - 1 - i];
			labels[cnt - 1 - i] = l;
		}
		gets = 0;
		assert_int_equal(profile__add_sample(p, NULL, 0, labels, cnt, v), before);
		max_gets = 0;
		assert_int_equal(p->label_cnt, label + cnt);
		/* as they are now: those of "a" before those of "b", numbers rising */
		assert_memory_equal(p->labels + label, labels, cnt * sizeof(*labels));
	}
	assert_int_equal(p->labels[p->label_cnt - 1].num, 300000);
	free(labels);
	profile__free(p);
}

static void values_saturate(void **state)
{
	struct profile *p = make();
	int64_t v[] = { INT64_MAX, INT64_MIN };

	(void)state;
	profile__add_sample(p, NULL, 0, NULL, 0, v);
	profile__add_sample(p, NULL, 0, NULL, 0, v);
	assert_true(profile__values(p, &p->samples[0])[0] == INT64_MAX);
	assert_true(profile__values(p, &p->samples[0])[1] == INT64_MIN);
	profile__free(p);
}

static uint32_t mapping(struct profile *p, const char *file, uint64_t start)
{
	struct profile_mapping m = { .start = start, .limit = start + 4096 };

	m.filename = profile__string(p, file);
	return profile__add_mapping(p, &m);
}

static void sample(struct profile *p, uint32_t loc)
{
	int64_t v[] = { 1, 1 };

	profile__add_sample(p, &loc, 1, NULL, 0, v);
}

static void finish_splits_mixed_mappings(void **state)
{
	struct profile *p = make();
	uint32_t mixed = mapping(p, "/bin/mixed", 0x10000), named, unused, l[6], i;

	(void)state;
	named = mapping(p, "/bin/named", 0x20000);
	for (i = 0; i < 5; i++)
		l[i] = profile__add_location(p, mixed, 0x10000 + i);
	l[5] = profile__add_location(p, named, 0x20000);
	name(p, l[0], function(p, "f", "f", "f.c"), 3);
	name(p, l[1], function(p, "mixed+0x1", "", ""), 0);
	/* l[2] has no line at all */
	name(p, l[3], function(p, "g", "g", "g.c"), 4);
	/* l[4]: without a name too, but in no sample */
	name(p, l[5], function(p, "h", "h", "h.c"), 5);
	for (i = 0; i < 6; i++)
		if (i != 4)
			sample(p, l[i]);
	unused = mapping(p, "/lib/unused", 0x30000);

	assert_int_equal(profile__finish(p), 0);
	assert_int_equal(p->mapping_cnt, 4);
	assert_int_equal(p->locations[l[0]].mapping, mixed);
	assert_int_equal(p->locations[l[3]].mapping, mixed);
	assert_int_equal(p->locations[l[1]].mapping, 3);
	assert_int_equal(p->locations[l[2]].mapping, 3);
	assert_int_equal(p->locations[l[5]].mapping, named);
	assert_true(p->mappings[mixed].has_functions && p->mappings[mixed].has_filenames &&
		    p->mappings[mixed].has_lines);
	assert_false(p->mappings[mixed].has_inlines);
	assert_true(p->mappings[named].has_functions);
	assert_false(p->mappings[unused].has_functions || p->mappings[unused].has_filenames);
	assert_false(p->mappings[3].has_functions || p->mappings[3].has_filenames ||
		     p->mappings[3].has_lines || p->mappings[3].has_inlines);
	assert_true(p->mappings[3].start == 0x10000 && p->mappings[3].limit == 0x11000);
	assert_int_equal(p->mappings[3].filename, p->mappings[mixed].filename);
	/* a second call finds nothing to do */
	assert_int_equal(profile__finish(p), 0);
	assert_int_equal(p->mapping_cnt, 4);
	profile__free(p);
}

static void finish_claims_what_all_have(void **state)
{
	struct profile *p = make();
	uint32_t file = mapping(p, "/a", 0x10000), inlined = mapping(p, "/b", 0x20000),
		 none = mapping(p, "/c", 0x30000);
	uint32_t f = function(p, "f", "f", "f.c"), no_file = function(p, "g", "g", ""), l;
	uint32_t offset = function(p, "b+0x3", "", "");
	struct profile_line chain[] = { { f, 3 }, { f, 9 } }, half[] = { { f, 3 }, { offset, 0 } };

	(void)state;
	l = profile__add_location(p, file, 0x10001);
	name(p, l, f, 1);
	sample(p, l);
	l = profile__add_location(p, file, 0x10002);
	name(p, l, no_file, 2);
	sample(p, l);
	l = profile__add_location(p, inlined, 0x20001);
	profile__set_lines(p, l, chain, 2);
	sample(p, l);
	l = profile__add_location(p, inlined, 0x20002);
	name(p, l, f, 0);
	sample(p, l);
	l = profile__add_location(p, none, 0x30001);
	profile__set_lines(p, l, half, 2);
	sample(p, l);
	sample(p, profile__add_marker(p, "[unwind: gone]"));
	sample(p, profile__add_location(p, PROFILE_NONE, 5));

	assert_int_equal(profile__finish(p), 0);
	assert_int_equal(p->mapping_cnt, 3);
	assert_true(p->mappings[file].has_functions);
	assert_false(p->mappings[file].has_filenames);
	assert_true(p->mappings[file].has_lines);
	assert_false(p->mappings[file].has_inlines);
	assert_true(p->mappings[inlined].has_functions);
	assert_true(p->mappings[inlined].has_filenames);
	assert_false(p->mappings[inlined].has_lines);
	assert_true(p->mappings[inlined].has_inlines);
	assert_false(p->mappings[none].has_functions || p->mappings[none].has_filenames ||
		     p->mappings[none].has_lines || p->mappings[none].has_inlines);
	profile__free(p);
}

static void empty_can_be_finished(void **state)
{
	struct profile *p = make();

	(void)state;
	assert_int_equal(profile__finish(p), 0);
	assert_int_equal(profile__add_comment(p, "c"), 0);
	assert_int_equal(p->comment_cnt, 1);
	profile__free(p);
}

/* 100,000 samples of 40 frames: the model itself must stay out of the way. */
static void many_samples_are_fast(void **state)
{
	struct profile *p = make();
	uint32_t locs[40], i, j, x = 1;
	int64_t v[] = { 1, 1 };
	uint64_t start;

	(void)state;
	for (i = 0; i < 20000; i++)
		profile__add_location(p, PROFILE_NONE, i);
	start = util_monotonic_ns();
	for (i = 0; i < 100000; i++) {
		for (j = 0; j < 40; j++) {
			x = x * 1664525 + 1013904223;
			locs[j] = (x >> 8) % 20000;
		}
		assert_int_equal(profile__add_sample(p, locs, 40, NULL, 0, v), i);
	}
	print_message("100000 samples of 40 frames: %.0f ms\n",
		      (double)(util_monotonic_ns() - start) / 1e6);
	assert_true(util_monotonic_ns() - start < 10 * NSEC_PER_SEC);
	profile__free(p);
}

/* All that an interpreter runs is at one address: nothing is looked up among such locations. */
static void equal_locations_are_fast(void **state)
{
	struct profile *p = make();
	uint64_t start = util_monotonic_ns();

	(void)state;
	for (uint32_t i = 0; i < 300000; i++)
		assert_int_equal(profile__append_location(p, PROFILE_NONE, 0), i);
	print_message("300000 locations at one address: %.0f ms\n",
		      (double)(util_monotonic_ns() - start) / 1e6);
	assert_true(util_monotonic_ns() - start < 10 * NSEC_PER_SEC);
	assert_int_equal(profile__add_location(p, PROFILE_NONE, 1), 300000);
	assert_int_equal(profile__add_location(p, PROFILE_NONE, 1), 300000);
	profile__free(p);
}

/* As pprof has it, which says "64 bytes" of request=64. */
static void units_of_numbers(void **state)
{
	static const char *const units[][2] = { { "bytes", "bytes" },
						{ "request", "bytes" },
						{ "alignment", "bytes" },
						{ "requests", "requests" } };
	struct profile *p = make();
	uint32_t loc = profile__add_location(p, PROFILE_NONE, 1);
	int64_t v[] = { 1, 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		struct profile_label l = { .key = profile__string(p, units[i][0]), .num = 64 };

		assert_int_equal(profile__add_sample(p, &loc, 1, &l, 1, v), i);
		assert_string_equal(
			strtab__get(p->strings, p->labels[p->samples[i].label].num_unit),
			units[i][1]);
	}
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(strings_are_utf8),
		cmocka_unit_test(equal_entries_are_one),
		cmocka_unit_test(markers_are_their_names),
		cmocka_unit_test(lines_are_replaced),
		cmocka_unit_test(samples_are_merged),
		cmocka_unit_test(labels_are_normalised),
		cmocka_unit_test(many_labels_are_sorted),
		cmocka_unit_test(values_saturate),
		cmocka_unit_test(finish_splits_mixed_mappings),
		cmocka_unit_test(finish_claims_what_all_have),
		cmocka_unit_test(empty_can_be_finished),
		cmocka_unit_test(many_samples_are_fast),
		cmocka_unit_test(equal_locations_are_fast),
		cmocka_unit_test(units_of_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
