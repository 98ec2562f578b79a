// SPDX-License-Identifier: BSD-2-Clause
/* profile/change: the second profile less the first. */
#include "profile/change.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profile/profile.h"

static struct profile *make(const char *name, int64_t time_ns)
{
	const struct profile_value_type type = { name, "count" };
	struct profile *p = profile__new(&type, 1, type, 1);

	assert_non_null(p);
	p->time_ns = time_ns;
	return p;
}

/* A thread in a function, since some ns. */
static void add(struct profile *p, const char *name, int64_t tid, int64_t since, int64_t n)
{
	const uint32_t ns = profile__string(p, "nanoseconds");
	const struct profile_label labels[] = {
		{ .key = profile__string(p, "since"), .num = since, .num_unit = ns },
		{ .key = profile__string(p, "tid"), .num = tid, .num_unit = ns },
	};
	uint32_t loc = profile__add_marker(p, name);

	assert_int_not_equal(profile__add_sample(p, &loc, 1, labels, 2, &n), PROFILE_NONE);
}

/* The value of the sample of this function; 0: there is none. */
static int64_t value_of(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->sample_cnt; i++) {
		const struct profile_sample *s = &p->samples[i];
		const struct profile_line *l = &p->lines[p->locations[p->loc_ids[s->loc]].line];

		assert_int_equal(s->label_cnt, 1);
		if (!strcmp(strtab__get(p->strings, p->functions[l->function].name), name))
			return profile__values(p, s)[0];
	}
	return 0;
}

static void test_change(void **state)
{
	struct profile *before = make("threads", 100), *after = make("threads", 175), *p;

	(void)state;
	add(before, "waits", 1, 5, 1);
	add(before, "left", 2, 6, 1);
	add(before, "ended", 3, 7, 1);
	add(before, "less", 5, 7, 9);
	add(after, "waits", 1, 80, 1);
	add(after, "come", 2, 9, 1);
	add(after, "begun", 4, 0, 1);
	add(after, "less", 5, 3, 2);
	assert_int_equal(profile__finish(before), 0);
	assert_int_equal(profile__finish(after), 0);
	assert_int_equal(change_make(before, after, "since", &p), 0);
	assert_int_equal(p->sample_cnt, 5);
	assert_int_equal(value_of(p, "left"), -1);
	assert_int_equal(value_of(p, "ended"), -1);
	assert_int_equal(value_of(p, "come"), 1);
	assert_int_equal(value_of(p, "begun"), 1);
	assert_int_equal(value_of(p, "less"), -7);
	assert_int_equal(p->time_ns, 175);
	assert_int_equal(p->duration_ns, 75);
	profile__free(p);
	profile__free(before);
	profile__free(after);
}

/* What is left of a profile of two values keeps both. */
static void test_two_values(void **state)
{
	const struct profile_value_type types[] = { { "objects", "count" }, { "space", "bytes" } };
	const int64_t equal[] = { 3, 30 }, less[] = { INT64_MIN, 0 }, more[] = { 0, 70 };
	struct profile *before = profile__new(types, 2, types[1], 1);
	struct profile *after = profile__new(types, 2, types[1], 1), *p;
	uint32_t loc;

	(void)state;
	assert_true(before && after);
	loc = profile__add_marker(before, "equal");
	assert_int_not_equal(profile__add_sample(before, &loc, 1, NULL, 0, equal), PROFILE_NONE);
	loc = profile__add_marker(before, "least");
	assert_int_not_equal(profile__add_sample(before, &loc, 1, NULL, 0, less), PROFILE_NONE);
	loc = profile__add_marker(after, "equal");
	assert_int_not_equal(profile__add_sample(after, &loc, 1, NULL, 0, equal), PROFILE_NONE);
	loc = profile__add_marker(after, "more");
	assert_int_not_equal(profile__add_sample(after, &loc, 1, NULL, 0, more), PROFILE_NONE);
	assert_int_equal(profile__finish(before), 0);
	assert_int_equal(profile__finish(after), 0);
	assert_int_equal(change_make(before, after, "since", &p), 0);
	assert_int_equal(p->sample_cnt, 2);
	for (size_t i = 0; i < 2; i++) {
		const int64_t *values = profile__values(p, &p->samples[i]);
		bool is_more = values[1] == 70;

		assert_int_equal(values[0], is_more ? 0 : INT64_MAX);
		assert_int_equal(values[1], is_more ? 70 : 0);
	}
	assert_int_equal(
		profile__values(p, &p->samples[0])[1] + profile__values(p, &p->samples[1])[1], 70);
	profile__free(p);
	profile__free(before);
	profile__free(after);
}

static void test_others(void **state)
{
	struct profile *before = make("threads", 1), *after = make("samples", 2), *p;

	(void)state;
	assert_int_equal(change_make(before, after, "since", &p), -EINVAL);
	profile__free(before);
	profile__free(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_two_values),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
