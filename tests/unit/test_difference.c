/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/difference: samples of both sides are there, those of the base with the sign turned and
 * the label of pprof, and what cannot be compared is refused. */
#include "profile/difference.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profile/profile.h"

static struct profile *make(const char *unit)
{
	const struct profile_value_type type = { "cpu", unit };
	struct profile *p = profile__new(&type, 1, type, 1);

	assert_non_null(p);
	return p;
}

/* key "": no label. */
static void add(struct profile *p, const char *name, const char *key, const char *text, int64_t n)
{
	struct profile_label label = { .key = profile__string(p, key),
				       .str = profile__string(p, text) };
	uint32_t loc = profile__add_marker(p, name);

	assert_int_not_equal(profile__add_sample(p, &loc, 1, &label, *key != '\0', &n),
			     PROFILE_NONE);
}

/* The value of the sample of this function on this side; 0: there is none. */
static int64_t value_of(const struct profile *p, const char *name, bool of_base)
{
	for (size_t i = 0; i < p->sample_cnt; i++) {
		const struct profile_sample *s = &p->samples[i];
		const struct profile_line *l = &p->lines[p->locations[p->loc_ids[s->loc]].line];

		if (difference_of_base(p, s) == of_base &&
		    !strcmp(strtab__get(p->strings, p->functions[l->function].name), name))
			return profile__values(p, s)[0];
	}
	return 0;
}

static void both_sides_are_there(void **state)
{
	struct profile *base = make("milliseconds"), *now = make("nanoseconds"), *p;
	char text[256];

	(void)state;
	add(base, "same", "", "", 2);
	add(base, "gone", "comm", "x", 3);
	add(base, "extreme", "", "", INT64_MIN);
	add(now, "same", "", "", 2000000);
	add(now, "fresh", "comm", "x", 5);
	base->time_ns = 10;
	base->duration_ns = 7;
	now->time_ns = 30;
	now->duration_ns = 4;
	assert_int_equal(profile__finish(base), 0);
	assert_int_equal(profile__finish(now), 0);
	assert_int_equal(difference_make(base, now, &p, text, sizeof(text)), 0);
	assert_true(difference_is(p));
	assert_false(difference_is(now));
	assert_string_equal(p->value_types[0].unit, "nanoseconds");
	assert_int_equal(p->sample_cnt, 5);
	assert_int_equal(value_of(p, "same", true), -2000000);
	assert_int_equal(value_of(p, "same", false), 2000000);
	assert_int_equal(value_of(p, "gone", true), -3000000);
	assert_int_equal(value_of(p, "gone", false), 0);
	assert_int_equal(value_of(p, "fresh", false), 5);
	assert_int_equal(value_of(p, "extreme", true), INT64_MAX);
	assert_int_equal(p->time_ns, 30);
	assert_int_equal(p->duration_ns, 4);
	profile__free(base);
	profile__free(now);
	profile__free(p);
}

static void no_difference_of_what_does_not_fit(void **state)
{
	struct profile *base = make("nanoseconds"), *bytes = make("bytes"),
		       *made = make("nanoseconds"), *other = make("nanoseconds"), *p;
	char text[256];

	(void)state;
	add(base, "f", "", "", 1);
	add(made, "f", "pprof::base", "true", -1);
	add(other, "f", "pprof::base", "false", 1);
	assert_false(difference_is(other));
	assert_int_equal(difference_make(base, bytes, &p, text, sizeof(text)), -EINVAL);
	assert_non_null(strstr(text, "cpu"));
	assert_int_equal(difference_make(made, base, &p, text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "the base is a difference already");
	assert_int_equal(difference_make(base, made, &p, text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "the new side is a difference already");
	profile__free(base);
	profile__free(bytes);
	profile__free(made);
	profile__free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_are_there),
		cmocka_unit_test(no_difference_of_what_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
