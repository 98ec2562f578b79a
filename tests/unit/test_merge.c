/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/merge: the parts of a profile are the whole again, in whatever order they come;
 * equal things are one, values are sums; what does not belong together is refused. */
#include "profile/merge.h"

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
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "profile/split.h"
#include "written.h"

#define MAX_SAMPLES 64
#define PARTS 3

static struct profile_merge *merger(void)
{
	struct profile_merge *m = profile_merge__new();

	assert_non_null(m);
	return m;
}

static void add(struct profile_merge *m, const struct profile *p)
{
	assert_int_equal(profile_merge__add(m, p, NULL, 0), 0);
}

static struct profile *taken(struct profile_merge *m)
{
	struct profile *p = profile_merge__take(m);

	assert_non_null(p);
	return p;
}

static void same(const struct profile *a, const struct profile *b)
{
	struct bytes x = written(a), y = written(b);

	assert_int_equal(x.sz, y.sz);
	assert_memory_equal(x.data, y.data, x.sz);
	free(x.data);
	free(y.data);
}

/* alone: what comes out if it alone is added. */
static void is_whole(struct profile_merge *m, const struct profile *whole,
		     const struct profile *alone)
{
	struct profile *p = taken(m);

	assert_int_equal(profile__finish(p), 0);
	same(p, alone);
	assert_int_equal(p->folded_value, whole->folded_value);
	profile__free(p);
}

/* What is written of it, read. */
static struct profile *read_back(const struct profile *p)
{
	struct bytes b = written(p);
	struct profile *ret;

	assert_int_equal(pprof_read(b.data, b.sz, &ret), 0);
	ret->folded_value = p->folded_value; /* is not written */
	free(b.data);
	return ret;
}

static struct profile *added_alone(const struct profile *p)
{
	struct profile_merge *m = merger();
	struct profile *ret;

	add(m, p);
	ret = taken(m);
	assert_int_equal(profile__finish(ret), 0);
	profile_merge__free(m);
	return ret;
}

static void parts_are_the_whole(void **state)
{
	struct profile *golden[] = {
		golden_heap_profile(),
		golden_kind_profile(BPFPROF_OFFCPU),
		golden_kind_profile(BPFPROF_THREADS),
		golden_profile(),
	};
	uint32_t part_of[MAX_SAMPLES];
	struct profile_merge *m = merger();

	(void)state;
	for (size_t i = 0; i < MAX_SAMPLES; i++)
		part_of[i] = (uint32_t)(i % PARTS);
	for (size_t i = 0; i < ARRAY_SIZE(golden); i++) {
		struct profile *parts[PARTS], *alone = added_alone(golden[i]);

		assert_in_range(golden[i]->sample_cnt, PARTS, MAX_SAMPLES);
		/* the last one has two processes with the same mapping, which become one */
		if (i + 1 < ARRAY_SIZE(golden))
			same(alone, golden[i]);
		assert_int_equal(profile_split(golden[i], part_of, PARTS, parts), 0);
		for (size_t k = 0; k < PARTS; k++)
			add(m, parts[k]);
		is_whole(m, golden[i], alone);
		/* the same by way of files, and backwards */
		for (size_t k = PARTS; k-- > 0;) {
			struct profile *p;

			assert_int_equal(profile__finish(parts[k]), 0);
			p = read_back(parts[k]);
			add(m, p);
			profile__free(p);
			profile__free(parts[k]);
		}
		is_whole(m, golden[i], alone);
		profile__free(alone);
		profile__free(golden[i]);
	}
	profile_merge__free(m);
}

static void values_are_sums(void **state)
{
	struct profile *golden = golden_profile(), *p;
	struct profile_merge *m = merger();
	struct profile first;

	(void)state;
	add(m, golden);
	first = *profile_merge__so_far(m);
	for (int i = 1; i < 5; i++) {
		p = read_back(golden);
		add(m, p);
		profile__free(p);
	}
	p = taken(m);
	/* nothing is there twice */
	assert_int_equal(p->mapping_cnt, first.mapping_cnt);
	assert_int_equal(p->function_cnt, first.function_cnt);
	assert_int_equal(p->location_cnt, first.location_cnt);
	assert_int_equal(p->line_cnt, first.line_cnt);
	assert_int_equal(p->sample_cnt, golden->sample_cnt);
	for (size_t i = 0; i < p->sample_cnt; i++)
		for (size_t k = 0; k < p->value_cnt; k++)
			assert_int_equal(profile__values(p, &p->samples[i])[k],
					 5 * profile__values(golden, &golden->samples[i])[k]);
	assert_int_equal(p->time_ns, golden->time_ns);
	assert_int_equal(p->duration_ns, golden->duration_ns);
	assert_int_equal(p->comment_cnt, golden->comment_cnt);
	profile__free(p);
	profile__free(golden);
	profile_merge__free(m);
}

/* ---- profiles of our own ---- */

static const struct profile_value_type types[] = { { "samples", "count" },
						   { "cpu", "nanoseconds" } };

static struct profile *make(void)
{
	struct profile *p = profile__new(types, 2, types[1], 1000);

	assert_non_null(p);
	return p;
}

/* A sample with one frame, in the file that is at that address; file NULL: as interpreters have it. */
static void put(struct profile *p, const char *file, uint64_t start, const char *name, int64_t line,
		int64_t value)
{
	struct profile_mapping m = { .start = start, .limit = start + 4096, .owner = 7 };
	struct profile_function f = { .name = profile__string(p, name) };
	struct profile_line l = { .line = line };
	uint32_t mapping = PROFILE_NONE, loc;

	if (file) {
		m.filename = profile__string(p, file);
		mapping = profile__add_mapping(p, &m);
	}
	f.system_name = f.name;
	l.function = profile__add_function(p, &f);
	loc = profile__append_location(p, mapping, start);
	assert_int_equal(profile__set_lines(p, loc, &l, 1), 0);
	profile__add_sample(p, &loc, 1, NULL, 0, (int64_t[]){ value, 10 * value });
}

static struct bytes merged(struct profile *const v[], const size_t *order, size_t cnt)
{
	struct profile_merge *m = merger();
	struct profile *p;
	struct bytes ret;

	for (size_t i = 0; i < cnt; i++) {
		char text[16];
		const struct profile_merge_label label = { "from", text };

		snprintf(text, sizeof(text), "%zu", order[i] % 2);
		assert_int_equal(profile_merge__add(m, v[order[i]], &label, 1), 0);
	}
	p = taken(m);
	assert_int_equal(profile__finish(p), 0);
	ret = written(p);
	profile__free(p);
	profile_merge__free(m);
	return ret;
}

static void order_is_nothing(void **state)
{
	static const size_t orders[][4] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 0, 3, 2 }, { 2, 3, 0, 1 },
		{ 0, 2, 1, 3 }, { 3, 1, 2, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 },
	};
	struct profile *v[4];
	struct bytes first;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		char text[32];

		v[i] = make();
		v[i]->time_ns = (int64_t)(1000 - 10 * i);
		v[i]->duration_ns = (int64_t)(5 * i);
		v[i]->period = (int64_t)(7 * i % 5);
		v[i]->drop_frames = profile__string(v[i], i == 2 ? "malloc" : "");
		snprintf(text, sizeof(text), "/bin/program%zu", i);
		put(v[i], text, 4096 * (9 - 2 * i), "main", 1, 1);
		put(v[i], "/lib/common", 1 << 20, "common", 2, 10);
		put(v[i], "/lib/common", 1 << 20, i % 2 ? "odd" : "even", 3, 100);
		/* more than fit, some of them everywhere, in other places */
		for (size_t k = 0; k < MERGE_MAX_COMMENTS; k++) {
			snprintf(text, sizeof(text), "%zu of %zu", k * (i + 1) % 40, k % 3 ? i : 9);
			assert_int_equal(profile__add_comment(v[i], text), 0);
		}
	}
	first = merged(v, orders[0], 4);
	for (size_t i = 1; i < ARRAY_SIZE(orders); i++) {
		struct bytes b = merged(v, orders[i], 4);

		assert_int_equal(b.sz, first.sz);
		assert_memory_equal(b.data, first.data, first.sz);
		free(b.data);
	}
	free(first.data);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		profile__free(v[i]);
}

static size_t with_name(const struct profile *p, const char *name, int64_t *ret_sum)
{
	size_t n = 0;

	*ret_sum = 0;
	for (size_t i = 0; i < p->sample_cnt; i++) {
		const struct profile_location *l = &p->locations[p->loc_ids[p->samples[i].loc]];
		const struct profile_function *f = &p->functions[p->lines[l->line].function];

		if (strcmp(strtab__get(p->strings, f->name), name) != 0)
			continue;
		n++;
		*ret_sum += profile__values(p, &p->samples[i])[0];
	}
	return n;
}

/* What has no address, or another name at the same one, is told by its lines. */
static void lines_tell_apart(void **state)
{
	struct profile *a = make(), *b = make(), *p;
	struct profile_merge *m = merger();
	int64_t sum;

	(void)state;
	put(a, NULL, 0, "parse", 1, 1);
	put(a, NULL, 0, "parse", 2, 10);
	put(a, NULL, 0, "eval", 1, 100);
	put(a, "/jit", 4096, "old", 1, 1000);
	put(b, NULL, 0, "eval", 1, 200);
	put(b, NULL, 0, "parse", 2, 20);
	put(b, "/jit", 4096, "new", 1, 2000);
	add(m, a);
	add(m, b);
	p = taken(m);
	assert_int_equal(p->sample_cnt, 5);
	assert_int_equal(p->location_cnt, 5);
	assert_int_equal(p->mapping_cnt, 1);
	assert_int_equal(with_name(p, "eval", &sum), 1);
	assert_int_equal(sum, 300);
	assert_int_equal(with_name(p, "parse", &sum), 2);
	assert_int_equal(sum, 31);
	assert_int_equal(with_name(p, "old", &sum), 1);
	assert_int_equal(sum, 1000);
	assert_int_equal(with_name(p, "new", &sum), 1);
	assert_int_equal(sum, 2000);
	profile__free(p);
	profile__free(a);
	profile__free(b);
	profile_merge__free(m);
}

static void others_are_refused(void **state)
{
	static const struct profile_value_type other[] = { { "samples", "count" },
							   { "cpu", "milliseconds" } };
	struct profile *p = make(), *sum;
	struct profile *wrong[] = {
		profile__new(types, 1, types[1], 1000),
		profile__new(other, 2, types[1], 1000),
		profile__new((struct profile_value_type[]){ types[1], types[0] }, 2, types[1],
			     1000),
		profile__new(types, 2, types[0], 1000),
		profile__new(types, 2, (struct profile_value_type){ 0 }, 1000),
	};
	struct profile_merge *m = merger();

	(void)state;
	put(p, "/bin/x", 4096, "x", 1, 1);
	add(m, p);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		put(wrong[i], "/bin/y", 8192, "y", 1, 1);
		assert_int_equal(profile__add_comment(wrong[i], "wrong"), 0);
		wrong[i]->time_ns = 5;
		assert_int_equal(profile_merge__add(m, wrong[i], NULL, 0), -EINVAL);
		profile__free(wrong[i]);
	}
	/* none of that is in it, and what belongs there may follow */
	add(m, p);
	sum = taken(m);
	assert_int_equal(sum->sample_cnt, 1);
	assert_int_equal(profile__values(sum, &sum->samples[0])[0], 2);
	assert_int_equal(sum->mapping_cnt, 1);
	assert_int_equal(sum->comment_cnt, 0);
	assert_int_equal(sum->time_ns, 0);
	profile__free(sum);
	profile__free(p);
	profile_merge__free(m);
}

/* "KEY=VALUE KEY=NUMBER", sorted. */
static const char *labels_of(const struct profile *p, size_t sample)
{
	static char text[256];
	const struct profile_sample *s = &p->samples[sample];
	size_t n = 0;

	*text = '\0';
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels[s->label + i];
		const char *key = strtab__get(p->strings, l->key);

		n += snprintf(text + n, sizeof(text) - n, "%s%s=", n ? " " : "", key);
		if (l->str)
			n += snprintf(text + n, sizeof(text) - n, "%s",
				      strtab__get(p->strings, l->str));
		else
			n += snprintf(text + n, sizeof(text) - n, "%d", (int)l->num);
	}
	return text;
}

static void labels_are_added(void **state)
{
	static const struct profile_merge_label one[] = { { "service_name", "one" },
							  { "unit", "a.service" } },
						two[] = { { "service_name", "two" },
							  { "pid", "x" } };
	struct profile *p = golden_profile(), *q = make(), *sum;
	struct profile_merge *m = merger();

	(void)state;
	assert_string_equal(labels_of(p, 0), "comm=app pid=42");
	assert_int_equal(profile_merge__add(m, p, one, 2), 0);
	assert_int_equal(profile_merge__add(m, p, two, 2), 0);
	sum = taken(m);
	assert_int_equal(sum->sample_cnt, 2 * p->sample_cnt);
	assert_string_equal(labels_of(sum, 0), "comm=app pid=42 service_name=one unit=a.service");
	/* what it has already stays, a number too */
	assert_string_equal(labels_of(sum, p->sample_cnt), "comm=app pid=42 service_name=two");
	profile__free(sum);
	/* the same, by what they have themselves and what they are given */
	put(q, "/bin/x", 4096, "x", 1, 1);
	assert_int_equal(profile_merge__add(m, q, one, 1), 0);
	sum = taken(m);
	assert_int_equal(profile_merge__add(m, sum, two, 1), 0);
	assert_int_equal(profile_merge__add(m, q, one, 1), 0);
	profile__free(sum);
	sum = taken(m);
	assert_int_equal(sum->sample_cnt, 1);
	assert_int_equal(profile__values(sum, &sum->samples[0])[0], 2);
	assert_string_equal(labels_of(sum, 0), "service_name=one");
	profile__free(sum);
	profile__free(p);
	profile__free(q);
	profile_merge__free(m);
}

static void times_are_a_span(void **state)
{
	static const struct {
		int64_t in[3][2], time_ns, duration_ns; /* each a time and a duration */
	} cases[] = {
		/* windows adjoin, groups are of the same one */
		{ { { 100, 10 }, { 110, 10 }, { 110, 10 } }, 100, 20 },
		{ { { 120, 10 }, { 100, 10 }, { 100, 3 } }, 100, 30 },
		/* one within another */
		{ { { 100, 50 }, { 110, 10 }, { 149, 1 } }, 100, 50 },
		/* no time is known */
		{ { { 0, 5 }, { 0, 7 }, { 0, 6 } }, 0, 7 },
		{ { { 100, 10 }, { 0, 7 }, { 0, 0 } }, 100, 10 },
		{ { { 100, 10 }, { 0, 70 }, { 0, 0 } }, 100, 70 },
		/* or what no clock says */
		{ { { INT64_MAX - 3, INT64_MAX }, { 100, -5 }, { INT64_MIN, INT64_MIN } },
		  100,
		  INT64_MAX - 100 },
	};
	struct profile_merge *m = merger();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile *p;

		for (size_t k = 0; k < 3; k++) {
			p = make();
			p->time_ns = cases[i].in[k][0];
			p->duration_ns = cases[i].in[k][1];
			add(m, p);
			profile__free(p);
		}
		p = taken(m);
		assert_int_equal(p->time_ns, cases[i].time_ns);
		assert_int_equal(p->duration_ns, cases[i].duration_ns);
		profile__free(p);
	}
	profile_merge__free(m);
}

static void comments_are_bounded(void **state)
{
	struct profile *p = make(), *q = make(), *sum;
	struct profile_merge *m = merger();
	char text[MERGE_MAX_COMMENT + 1];

	(void)state;
	for (size_t i = 0; i < 10 * MERGE_MAX_COMMENTS; i++) {
		snprintf(text, sizeof(text), "comment %03zu", i / 2);
		assert_int_equal(profile__add_comment(p, text), 0);
	}
	add(m, p);
	sum = taken(m);
	assert_int_equal(sum->comment_cnt, MERGE_MAX_COMMENTS + 1);
	for (size_t i = 0; i < MERGE_MAX_COMMENTS; i++) {
		snprintf(text, sizeof(text), "comment %03zu", i);
		assert_string_equal(strtab__get(sum->strings, sum->comments[i]), text);
	}
	assert_string_equal(strtab__get(sum->strings, sum->comments[MERGE_MAX_COMMENTS]),
			    "more comments were left out");
	profile__free(sum);
	/* one that is too long counts as left out; the one before it does not */
	memset(text, 'x', sizeof(text));
	text[MERGE_MAX_COMMENT - 1] = '\0';
	assert_int_equal(profile__add_comment(q, text), 0);
	add(m, q);
	add(m, q);
	sum = taken(m);
	assert_int_equal(sum->comment_cnt, 1);
	profile__free(sum);
	text[MERGE_MAX_COMMENT - 1] = 'x';
	text[MERGE_MAX_COMMENT] = '\0';
	assert_int_equal(profile__add_comment(q, text), 0);
	add(m, q);
	sum = taken(m);
	assert_int_equal(sum->comment_cnt, 2);
	/* that is said once, however often it is added up */
	add(m, sum);
	profile__free(sum);
	sum = taken(m);
	assert_int_equal(sum->comment_cnt, 2);
	profile__free(sum);
	profile__free(p);
	profile__free(q);
	profile_merge__free(m);
}

/* What is hidden has to be so for all. */
static void hidden_by_all(void **state)
{
	static const struct {
		const char *drop, *keep, *drops, *keeps;
	} cases[] = {
		{ "malloc", "own", "malloc", "own" },
		{ "malloc", "", "", "" },
		{ "free", "own", "", "" },
		{ "", "", "", "" },
	};
	struct profile_merge *m = merger();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile *p = make(), *q = make();

		p->drop_frames = profile__string(p, "malloc");
		p->keep_frames = profile__string(p, "own");
		p->period = 5;
		q->drop_frames = profile__string(q, cases[i].drop);
		q->keep_frames = profile__string(q, cases[i].keep);
		q->period = 6;
		add(m, p);
		add(m, q);
		profile__free(p);
		profile__free(q);
		p = taken(m);
		assert_string_equal(strtab__get(p->strings, p->drop_frames), cases[i].drops);
		assert_string_equal(strtab__get(p->strings, p->keep_frames), cases[i].keeps);
		assert_int_equal(p->period, 6);
		profile__free(p);
	}
	profile_merge__free(m);
}

static void shown_first_by_all(void **state)
{
	static const struct {
		const char *a, *b, *sum;
	} cases[] = {
		{ "first", "first", "first" },
		{ "first", "second", "" },
		{ "first", "", "" },
		{ "", "first", "" },
	};
	struct profile_merge *m = merger();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile *p = make(), *q = make();

		p->default_type = profile__string(p, cases[i].a);
		q->default_type = profile__string(q, cases[i].b);
		add(m, p);
		add(m, q);
		profile__free(p);
		profile__free(q);
		p = taken(m);
		assert_string_equal(strtab__get(p->strings, p->default_type), cases[i].sum);
		profile__free(p);
	}
	profile_merge__free(m);
}

static void the_lowest_comes_first(void **state)
{
	struct profile *p = make(), *q = make();
	struct profile_merge *m = merger();
	struct profile_mapping first;

	(void)state;
	/* not the lowest of all, but of those that are first */
	put(p, "/bin/b", 8 << 12, "b", 1, 1);
	put(p, "/lib/low", 1 << 12, "low", 1, 1);
	put(q, "/bin/a", 5 << 12, "a", 1, 1);
	put(q, "/lib/low", 1 << 12, "low", 1, 1);
	add(m, p);
	add(m, q);
	profile__free(p);
	profile__free(q);
	p = taken(m);
	first = p->mappings[0];
	assert_string_equal(strtab__get(p->strings, first.filename), "/bin/a");
	for (size_t i = 0; i < p->location_cnt; i++) {
		const struct profile_location *l = &p->locations[i];

		assert_int_equal(l->address, p->mappings[l->mapping].start);
	}
	/* it is found where it is now */
	for (uint32_t i = 0; i < p->mapping_cnt; i++) {
		struct profile_mapping same = p->mappings[i];

		assert_int_equal(profile__add_mapping(p, &same), i);
	}
	profile__free(p);
	profile_merge__free(m);
}

static void ends_of_the_range(void **state)
{
	struct profile *p = make(), *q = make(), *sum;
	struct profile_merge *m = merger();

	(void)state;
	put(p, "/bin/x", 4096, "x", 1, INT64_MAX / 10);
	put(q, "/bin/x", 4096, "x", 1, INT64_MIN / 10);
	for (int i = 0; i < 12; i++)
		add(m, p);
	sum = taken(m);
	assert_int_equal(profile__values(sum, &sum->samples[0])[0], INT64_MAX);
	assert_int_equal(profile__values(sum, &sum->samples[0])[1], INT64_MAX);
	profile__free(sum);
	for (int i = 0; i < 12; i++)
		add(m, q);
	sum = taken(m);
	assert_int_equal(profile__values(sum, &sum->samples[0])[1], INT64_MIN);
	profile__free(sum);
	profile__free(p);
	profile__free(q);
	profile_merge__free(m);
}

static void nothing(void **state)
{
	struct profile_merge *m = merger();
	struct profile *p = make();

	(void)state;
	assert_null(profile_merge__so_far(m));
	assert_null(profile_merge__take(m));
	assert_int_equal(errno, ENODATA);
	/* a profile without samples is one */
	add(m, p);
	profile__free(p);
	p = taken(m);
	assert_int_equal(p->sample_cnt, 0);
	assert_int_equal(profile__finish(p), 0);
	profile__free(p);
	assert_null(profile_merge__take(m));
	/* what was begun goes with it */
	p = golden_profile();
	add(m, p);
	profile__free(p);
	profile_merge__free(m);
	profile_merge__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_the_whole),
		cmocka_unit_test(values_are_sums),
		cmocka_unit_test(order_is_nothing),
		cmocka_unit_test(lines_tell_apart),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(labels_are_added),
		cmocka_unit_test(times_are_a_span),
		cmocka_unit_test(comments_are_bounded),
		cmocka_unit_test(hidden_by_all),
		cmocka_unit_test(shown_first_by_all),
		cmocka_unit_test(the_lowest_comes_first),
		cmocka_unit_test(ends_of_the_range),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
