/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of what is made of names that a file refers to many times: each is read once. */
#include "profile/frames.h"

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
#include "cpu_limit.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "view/page.h"
#include "view/stacks.h"
#include "view/tree.h"

#define LONG (1U << 20) /* bytes of a string */
#define CNT (1U << 16)	/* references to it */
#define LONGER (16 * LONG)
#define SECONDS 60

static struct profile *new_profile(void)
{
	static const struct profile_value_type type = { "cpu", "nanoseconds" };
	struct profile *p = profile__new(&type, 1, type, 1);

	assert_non_null(p);
	return p;
}

/* So many 'x's, and an end. */
static uint32_t string_of(struct profile *p, size_t cnt, const char *end)
{
	size_t sz = strlen(end);
	char *text = malloc(cnt + sz + 1);
	uint32_t id;

	assert_non_null(text);
	memset(text, 'x', cnt);
	memcpy(text + cnt, end, sz + 1);
	id = profile__string(p, text);
	free(text);
	assert_int_not_equal(id, PROFILE_NONE);
	return id;
}

static uint32_t long_string(struct profile *p, const char *end)
{
	return string_of(p, LONG, end);
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

/* Names that differ at their end, of many frames. */
static void sorted_frames(void **state)
{
	struct profile *p = new_profile();
	uint32_t *locs = malloc(CNT * sizeof(*locs)), name[2], file[2];
	struct stacks st;

	(void)state;
	assert_non_null(locs);
	for (int i = 0; i < 2; i++) {
		name[i] = string_of(p, LONGER, i ? "a" : "b");
		file[i] = string_of(p, LONGER, i ? "c" : "d");
	}
	for (uint32_t i = 0; i < CNT; i++) {
		struct profile_function f = { .name = name[i % 2], .filename = file[i / 2 % 2] };
		char object[16];

		snprintf(object, sizeof(object), "%05u", i / 4);
		locs[i] = add_location(p, add_mapping(p, profile__string(p, object), i), &f);
	}
	add_sample(p, locs, CNT, NULL, 0);
	cpu_limit(SECONDS);
	assert_int_equal(stacks__make(p, &st), 0);
	cpu_limit_off();
	assert_int_equal(st.frame_cnt, CNT / 2);
	for (size_t i = 0; i < st.frame_cnt; i += CNT / 4) {
		const char *end = strtab__get(st.frames.names, st.frame[i].name) + LONGER;

		assert_string_equal(end, i < CNT / 4 ? "a" : "b");
		/* the first of both */
		end = strtab__get(st.frames.names, st.frame[i].file) + LONGER;
		assert_string_equal(end, "c");
		assert_string_equal(strtab__get(st.frames.names, st.frame[i].object), "00000");
	}
	stacks__done(&st);
	profile__free(p);
	free(locs);
}

/* The same as branches of many functions. */
static void sorted_branches(void **state)
{
	struct profile *p = new_profile();
	struct profile_function f[2] = { { .name = string_of(p, LONGER, "a") },
					 { .name = string_of(p, LONGER, "b") } };
	uint32_t leaf[] = { add_location(p, PROFILE_NONE, &f[0]),
			    add_location(p, PROFILE_NONE, &f[1]) };
	struct tree_options o = { .limit = 1 };
	FILE *out = fopen("/dev/null", "w");
	struct frames fr;

	(void)state;
	assert_non_null(out);
	for (uint32_t i = 0; i < 4 * CNT; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i / 2);
		add_sample(p, (uint32_t[]){ leaf[i % 2], profile__add_marker(p, name) }, 2, NULL,
			   0);
	}
	cpu_limit(SECONDS);
	assert_int_equal(frames__make(p, false, &fr), 0);
	assert_int_equal(tree_write(&fr, &o, out), 0);
	cpu_limit_off();
	assert_int_equal(fclose(out), 0);
	frames__done(&fr);
	profile__free(p);
}

/* A tree and a page have a name once for each of its places, and each of its objects. */
static void too_much_text(void **state)
{
	struct profile *p = new_profile();
	struct profile_function f = { .name = long_string(p, "") };
	uint32_t locs[(TREE_MAX_NAMES / LONG) + 1];
	struct tree_options o = { .limit = 1 };
	struct page_facts facts = { .title = "x" };
	FILE *out = fopen("/dev/null", "w");
	struct frames fr;

	(void)state;
	assert_non_null(out);
	for (uint32_t i = 0; i < ARRAY_SIZE(locs); i++) {
		char object[16];

		snprintf(object, sizeof(object), "%u", i);
		locs[i] = add_location(p, add_mapping(p, profile__string(p, object), i), &f);
	}
	add_sample(p, locs, ARRAY_SIZE(locs), NULL, 0);
	assert_int_equal(frames__make(p, false, &fr), 0);
	assert_int_equal(tree_write(&fr, &o, out), 0);
	o.limit = 0;
	assert_int_equal(tree_write(&fr, &o, out), -E2BIG);
	assert_int_equal(page_write(p, &facts, out), -E2BIG);
	assert_int_equal(fclose(out), 0);
	frames__done(&fr);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),	   cmocka_unit_test(labels),
		cmocka_unit_test(roots),	   cmocka_unit_test(sorted_frames),
		cmocka_unit_test(sorted_branches), cmocka_unit_test(too_much_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
