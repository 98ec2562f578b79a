/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of what is made of names that a file refers to many times: each is read once. */
#include "profile/frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu_limit.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "view/stacks.h"

#define LONG (1U << 20) /* bytes of a string */
#define CNT (1U << 16)	/* references to it */
#define SECONDS 60

static struct profile *new_profile(void)
{
	static const struct profile_value_type type = { "cpu", "nanoseconds" };
	struct profile *p = profile__new(&type, 1, type, 1);

	assert_non_null(p);
	return p;
}

/* 'x's, and an end. */
static uint32_t long_string(struct profile *p, const char *end)
{
	size_t sz = strlen(end);
	char *text = malloc(LONG + sz + 1);
	uint32_t id;

	assert_non_null(text);
	memset(text, 'x', LONG);
	memcpy(text + LONG, end, sz + 1);
	id = profile__string(p, text);
	free(text);
	assert_int_not_equal(id, PROFILE_NONE);
	return id;
}

static uint32_t add_mapping(struct profile *p, uint32_t filename, uint32_t owner)
{
	struct profile_mapping m = { .start = 4096, .limit = 8192, .filename = filename };

	m.owner = owner;
	return profile__add_mapping(p, &m);
}

static uint32_t add_location(struct profile *p, uint32_t mapping, const struct profile_function *f)
{
	struct profile_line line = { .function = profile__add_function(p, f) };
	uint32_t loc = profile__append_location(p, mapping, 4096);

	assert_int_equal(profile__set_lines(p, loc, &line, 1), 0);
	return loc;
}

static void add_sample(struct profile *p, const uint32_t *locs, size_t cnt,
		       const struct profile_label *labels, size_t label_cnt)
{
	assert_int_not_equal(profile__add_sample(p, locs, cnt, labels, label_cnt, (int64_t[]){ 1 }),
			     PROFILE_NONE);
}

/* A long name, and paths, of many functions, locations and objects. */
static void names(void **state)
{
	struct profile *p = new_profile();
	uint32_t *locs = malloc(CNT * sizeof(*locs));
	uint32_t name = long_string(p, "f;"), file = long_string(p, ".c"),
		 object = long_string(p, "/a");
	struct frames fr;
	struct stacks st;

	(void)state;
	assert_non_null(locs);
	for (uint32_t i = 0; i < CNT; i++) {
		/* every other one has no name */
		struct profile_function f = { .name = i % 2 ? name : 0,
					      .filename = file,
					      .start_line = i };

		locs[i] = add_location(p, add_mapping(p, object, i), &f);
	}
	add_sample(p, locs, CNT, NULL, 0);
	cpu_limit(SECONDS);
	assert_int_equal(profile__finish(p), 0);
	assert_int_equal(frames__make(p, true, &fr), 0);
	assert_string_equal(strtab__get(fr.names, frames__name(&fr, 0, 0)), "a+0x0");
	assert_string_equal(strtab__get(fr.names, frames__name(&fr, 1, 0)) + LONG, "f:");
	assert_int_equal(frames__name(&fr, CNT - 1, 0), frames__name(&fr, 1, 0));
	frames__done(&fr);
	assert_int_equal(stacks__make(p, &st), 0);
	assert_int_equal(st.frame_cnt, 2);
	stacks__done(&st);
	cpu_limit_off();
	profile__free(p);
	free(locs);
}

/* A long text as a label's key, value and unit. */
static void labels(void **state)
{
	struct profile *p = new_profile();
	uint32_t text = long_string(p, ""), other = profile__string(p, "key");
	struct profile_label *l = calloc(CNT, sizeof(*l));
	struct stacks st;

	(void)state;
	assert_non_null(l);
	for (uint32_t i = 0; i < CNT; i++)
		if (i % 2)
			l[i] = (struct profile_label){ .key = other, .num = i, .num_unit = text };
		else
			l[i] = (struct profile_label){ .key = text, .str = text };
	cpu_limit(SECONDS);
	add_sample(p, NULL, 0, l, CNT);
	assert_int_equal(stacks__make(p, &st), 0);
	cpu_limit_off();
	assert_int_equal(st.label_cnt, CNT / 2 + 1);
	assert_string_equal(strtab__get(st.frames.names, st.label[0].key), "key");
	assert_string_equal(strtab__get(st.frames.names, st.label[0].value),
			    "1 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	stacks__done(&st);
	profile__free(p);
	free(l);
}

/* A long name of the process, in the samples of many. */
static void roots(void **state)
{
	struct profile *p = new_profile();
	uint32_t comm = profile__string(p, "comm"), pid = profile__string(p, "pid"),
		 text = long_string(p, "");
	struct profile_function f = { .name = profile__string(p, "f") };
	uint32_t loc = add_location(p, PROFILE_NONE, &f);
	char *folded;
	size_t sz;
	FILE *out = open_memstream(&folded, &sz);

	(void)state;
	assert_non_null(out);
	for (uint32_t i = 0; i < CNT; i++) {
		struct profile_label l[] = { { .key = comm, .str = text },
					     { .key = pid, .num = i + 1, .num_unit = pid } };

		add_sample(p, &loc, 1, l, 2);
	}
	cpu_limit(SECONDS);
	assert_int_equal(folded_write(p, out), 0);
	cpu_limit_off();
	assert_int_equal(fclose(out), 0);
	assert_string_equal(folded + LONG, ";f 65536\n");
	profile__free(p);
	free(folded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(labels),
		cmocka_unit_test(roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
