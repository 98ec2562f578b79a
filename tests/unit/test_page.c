/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of view/stacks and view/page: what stacks and labels become, and that the page has all of it
 * and runs none of it. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/util.h"
#include "golden_profile.h"
#include "profile/difference.h"
#include "profile/profile.h"
#include "report/formats.h"
#include "view/page.h"
#include "view/stacks.h"

static const struct profile_value_type types[] = { { "samples", "count" },
						   { "delay", "nanoseconds" } };

static struct profile *new_profile(void)
{
	struct profile *p = profile__new(types, 2, types[1], 1);

	assert_non_null(p);
	return p;
}

static uint32_t frame(struct profile *p, const char *object, const char *name, const char *file)
{
	struct profile_mapping m = { .start = 4096, .limit = 8192 };
	uint32_t mapping = PROFILE_NONE, loc;
	struct profile_function f = { 0 };
	struct profile_line l = { 0 };

	if (*object) {
		m.filename = profile__string(p, object);
		mapping = profile__add_mapping(p, &m);
	}
	f.name = profile__string(p, name);
	f.filename = profile__string(p, file);
	l.function = profile__add_function(p, &f);
	loc = profile__append_location(p, mapping, 4096);
	assert_int_equal(profile__set_lines(p, loc, &l, 1), 0);
	return loc;
}

/* stack: a letter is a frame, root first; comm "": no label. */
static void add(struct profile *p, const char *stack, const char *comm, int64_t count,
		int64_t delay)
{
	struct profile_label labels[] = { { .key = profile__string(p, "comm"),
					    .str = profile__string(p, comm) },
					  { .key = profile__string(p, "bytes"),
					    .num = 48,
					    .num_unit = profile__string(p, "kB") } };
	int64_t values[] = { count, delay };
	size_t cnt = strlen(stack);
	uint32_t locs[16];

	assert_in_range(cnt, 0, ARRAY_SIZE(locs));
	for (size_t i = 0; i < cnt; i++)
		locs[cnt - 1 - i] = frame(p, "/bin/app", (char[]){ stack[i], 0 }, "app.c");
	profile__add_sample(p, locs, cnt, labels, *comm ? 2 : 0, values);
}

static char *page(const struct profile *p, const char *title)
{
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	assert_int_equal(page_write(p, &(struct page_facts){ .title = title, .value = 1 }, f), 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(strlen(text), sz);
	return text;
}

static const char *string(const struct stacks *st, uint32_t id)
{
	return strtab__get(st->frames.names, id);
}

/* "a;b;c comm=x,bytes=48 kB 1 2 common 1" for each sample. */
static char *described(const struct stacks *st)
{
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	for (size_t i = 0; i < st->sample_cnt; i++) {
		const struct stacks_sample *s = &st->sample[i];
		const struct stacks_set *set = &st->set[s->set];

		for (uint32_t k = 0; k < s->cnt; k++)
			fprintf(f, "%s%s", k ? ";" : "",
				string(st, st->frame[st->stack_frames[s->first + k]].name));
		for (uint32_t k = 0; k < set->cnt; k++) {
			const struct stacks_label *l = &st->label[st->set_labels[set->first + k]];

			fprintf(f, "%s%s=%s", k ? "," : " ", string(st, l->key),
				string(st, l->value));
		}
		fprintf(f, " %" PRId64 " %" PRId64 " common %u\n", st->values[s->value],
			st->values[s->value + 1], s->common);
	}
	assert_int_equal(fclose(f), 0);
	return text;
}

static void stacks_are_sorted_and_added_up(void **state)
{
	struct profile *p = new_profile();
	struct stacks st;
	char *text;

	(void)state;
	add(p, "ad", "", 1, 10);
	add(p, "abc", "y", 2, 20);
	add(p, "ab", "", 3, 30);
	add(p, "abc", "x", 4, 40);
	add(p, "", "", 5, 50);
	add(p, "abc", "y", 6, -60); /* of other locations with the same names */
	add(p, "abe", "", 0, 0);    /* nothing */
	assert_int_equal(stacks__make(p, &st), 0);
	text = described(&st);
	assert_string_equal(text,
			    "[no stack] 5 50 common 0\n"
			    "a;b 3 30 common 0\n"
			    "a;b;c bytes=48 kB,comm=x 4 40 common 2\n"
			    "a;b;c bytes=48 kB,comm=y 8 -40 common 3\n"
			    "a;d 1 10 common 1\n");
	assert_int_equal(st.frame_cnt, 5); /* not e */
	assert_int_equal(st.label_cnt, 3);
	assert_int_equal(st.set_cnt, 3);
	free(text);
	stacks__done(&st);
	profile__free(p);
}

static void frames_are_told_apart_by_object(void **state)
{
	struct profile *p = new_profile();
	int64_t values[] = { 1, 1 };
	uint32_t locs[] = {
		frame(p, "/lib/libc.so.6", "read", "z.c"),
		frame(p, "[kernel.kallsyms]", "read", ""),
		frame(p, "/lib/libc.so.6", "read", "a.c"),
		frame(p, "", "read", ""),
	};
	struct stacks st;

	(void)state;
	profile__add_sample(p, locs, 4, NULL, 0, values);
	assert_int_equal(stacks__make(p, &st), 0);
	assert_int_equal(st.frame_cnt, 3);
	assert_string_equal(string(&st, st.frame[0].object), "");
	assert_string_equal(string(&st, st.frame[1].object), "/lib/libc.so.6");
	assert_string_equal(string(&st, st.frame[1].file), "a.c");
	assert_string_equal(string(&st, st.frame[2].object), "[kernel.kallsyms]");
	assert_int_equal(st.sample[0].cnt, 4);
	assert_int_equal(st.stack_frames[3], 1);
	stacks__done(&st);
	profile__free(p);
}

/* Of the page's data, what follows "key": up to the end of its value; for the caller to free. */
static char *field(const char *text, const char *key)
{
	const char *begin = strstr(text, "<script type=\"application/json\" id=\"profile\">");
	const char *end;
	char *quoted;

	assert_non_null(begin);
	assert_true(asprintf(&quoted, "\"%s\":", key) > 0);
	begin = strstr(begin, quoted);
	assert_non_null(begin);
	begin += strlen(quoted);
	free(quoted);
	if (*begin == '[') {
		int depth = 0;

		for (end = begin; end == begin || depth; end++)
			depth += *end == '[' ? 1 : *end == ']' ? -1 : 0;
	} else {
		end = begin + strcspn(begin, ",}");
	}
	return strndup(begin, (size_t)(end - begin));
}

static void has(const char *text, const char *key, const char *want)
{
	char *got = field(text, key);

	assert_string_equal(got, want);
	free(got);
}

/* "A" is 0, "B" 1, "C" 2 … "g" 32 with more to follow, as in source maps. */
static void all_of_it_is_there(void **state)
{
	struct profile *p = new_profile();
	char *text;

	(void)state;
	p->time_ns = INT64_C(1700000000123456789);
	p->duration_ns = 2500000000;
	profile__add_comment(p, "said");
	profile__add_comment(p, "#not said");
	add(p, "ab", "x", 1, 3000);
	add(p, "ab", "", 2, -6000);
	add(p, "acc", "", 33, 102000);
	text = page(p, "title");
	has(text, "title", "\"title\"");
	has(text, "time_ms", "1700000000123");
	has(text, "duration_ns", "2500000000");
	has(text, "comments", "[\"said\"]");
	has(text, "types",
	    "[{\"type\":\"samples\",\"unit\":\"count\",\"scale\":1},"
	    "{\"type\":\"delay\",\"unit\":\"nanoseconds\",\"scale\":3000}]");
	has(text, "show", "1");
	has(text, "names", "[\"a\",\"b\",\"c\"]");
	has(text, "places", "[\"\",\"/bin/app\",\"app.c\"]");
	has(text, "frames", "\"BCBCBC\"");
	has(text, "keys", "[\"bytes\",\"comm\"]");
	has(text, "values", "[[\"48 kB\"],[\"x\"]]");
	/* no labels; two of them, the first of the first key, the first of the second */
	has(text, "sets", "\"ACAABA\"");
	/* nothing left; two more, new ones, a and b; two samples: without labels 2 and -2, with labels
	 * 1 and 1. One left; two more, c and c, both new where they are called; one sample: without
	 * labels 33 (2 + 2 * 32 as doubled) and 34. */
	has(text, "stacks", "\"ACAAABCAEFBCCBCACACBAiCkC\"");
	free(text);
	profile__free(p);
}

static size_t count(const char *text, const char *what)
{
	size_t cnt = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		cnt++;
	return cnt;
}

static void names_are_inert(void **state)
{
	static const char evil[] =
		"</script><script>alert(1)</script><!-- <script> &lt; "
		"\xe2\x80\xa8\xe2\x80\xa9 \"\\ \x1b[2J";
	struct profile *p = new_profile(), *tame = new_profile();
	struct profile_label label = { .key = profile__string(p, evil),
				       .str = profile__string(p, evil) };
	int64_t values[] = { 1, 1 };
	uint32_t loc = frame(p, evil, evil, evil);
	const char *data;
	char *text, *other;

	(void)state;
	profile__add_comment(p, evil);
	profile__add_sample(p, &loc, 1, &label, 1, values);
	add(tame, "a", "x", 1, 1);
	text = page(p, evil);
	other = page(tame, "tame");
	assert_int_equal(count(text, "<script"), count(other, "<script"));
	assert_int_equal(count(text, "</script"), count(other, "</script"));
	assert_int_equal(count(text, "<!--"), count(other, "<!--"));
	data = strstr(text, "id=\"profile\">") + strlen("id=\"profile\">");
	/* up to the end of the element there is nothing that HTML knows */
	assert_true(!strncmp(data + strcspn(data, "<>&\x1b"), "</script>\n<script>", 18));
	/* title, comment, name, place, key, value */
	assert_int_equal(count(data, "\\u003c/script\\u003e\\u003cscript\\u003ealert(1)"), 6);
	assert_null(strstr(data, "\xe2\x80\xa8"));
	/* what may run is named by hash, and nothing may be fetched */
	assert_int_equal(count(text, "default-src 'none'; script-src 'sha256-"), 1);
	assert_null(strstr(text, "unsafe-"));
	assert_null(strstr(text, "http://"));
	assert_null(strstr(text, "https://"));
	free(text);
	free(other);
	profile__free(p);
	profile__free(tame);
}

static void equal_profiles_give_equal_bytes(void **state)
{
	static const char *const stacks[] = { "abc", "abd", "ae", "abc", "f", "fab" };
	struct profile *a = new_profile(), *b = new_profile();
	size_t n = ARRAY_SIZE(stacks);
	char *x, *y;

	(void)state;
	for (size_t i = 0; i < n; i++)
		add(a, stacks[i], i % 2 ? "x" : "y", i + 1, 7);
	frame(b, "/lib/unused", "unused", "unused.c");
	for (size_t i = n; i-- > 0;)
		add(b, stacks[i], i % 2 ? "x" : "y", i + 1, 7);
	x = page(a, "t");
	y = page(b, "t");
	assert_string_equal(x, y);
	free(x);
	free(y);
	profile__free(a);
	profile__free(b);
}

static void extremes_are_written(void **state)
{
	struct profile *empty = new_profile(), *p = new_profile();
	char *text = page(empty, "");

	(void)state;
	has(text, "stacks", "\"\"");
	has(text, "names", "[]");
	has(text, "keys", "[]");
	has(text, "values", "[]");
	free(text);
	add(p, "a", "", INT64_MAX, INT64_MIN);
	add(p, "b", "", 1, 1);
	text = page(p, "");
	/* 2^63 - 1 and, one off, -(2^63 - 1): the lowest five bits of 64, eleven times five, four */
	has(text, "stacks",
	    "\"ABAABA"
	    "+///////////P"
	    "////////////P"
	    "BBABBACC\"");
	free(text);
	profile__free(empty);
	profile__free(p);
}

/* What `record -f flamegraph` writes: the heap as it is held, or, if nothing is, as it was allocated. */
static void records_are_written(void **state)
{
	struct profile *p = golden_heap_profile();
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	(void)state;
	assert_non_null(f);
	assert_int_equal(formats_find("flamegraph")->write(p, &kinds[BPFPROF_HEAP], 0, f), 0);
	assert_int_equal(fclose(f), 0);
	has(text, "title", "\"heap\"");
	has(text, "show", "3");
	free(text);
	for (size_t i = 0; i < p->sample_cnt; i++)
		profile__values(p, &p->samples[i])[2] = profile__values(p, &p->samples[i])[3] = 0;
	f = open_memstream(&text, &sz);
	assert_non_null(f);
	assert_int_equal(formats_find("flamegraph")->write(p, &kinds[BPFPROF_HEAP], 0, f), 0);
	assert_int_equal(fclose(f), 0);
	has(text, "show", "1");
	free(text);
	profile__free(p);
}

/* A frame with a function of this name, of this side's build. */
static void add_side(struct profile *p, bool base, const char *name, int64_t n)
{
	struct profile_label label = { .key = profile__string(p, DIFFERENCE_KEY),
				       .str = profile__string(p, DIFFERENCE_VALUE) };
	uint32_t loc = frame(p, base ? "/old/app" : "/new/app-2", name, "app.c");
	int64_t values[] = { base ? -n : n, base ? -10 * n : 10 * n };

	profile__add_sample(p, &loc, 1, &label, base, values);
}

static char *difference_page(const struct profile *p, const struct page_facts *facts)
{
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	assert_int_equal(page_write(p, facts, f), 0);
	assert_int_equal(fclose(f), 0);
	return text;
}

/* Builds lie in different folders: what has one name is one function. */
static void sides_and_notes_are_written(void **state)
{
	static const struct page_note notes[] = {
		{ .cum = { 1, 1, "all" } },
		{ "g", { -1, 0.5, "cum" }, { 1, 1, "self" } },
		{ "not there", { 1, 1, "no" }, { 0 } },
		{ "f", { 0 }, { 0, 1, "</script>\n" } },
	};
	struct page_facts facts = { .title = "t", .sides = { "old", "new<" } };
	struct profile *p = new_profile();
	struct stacks st;
	char *text;

	(void)state;
	add_side(p, true, "f", 3);
	add_side(p, false, "f", 4);
	add_side(p, true, "g", 5);
	assert_int_equal(stacks__make(p, &st), 0);
	assert_int_equal(st.frame_cnt, 2);
	assert_int_equal(st.sample_cnt, 3);
	assert_string_equal(string(&st, st.frame[0].object), "/new/app-2");
	stacks__done(&st);
	text = difference_page(p, &facts);
	has(text, "sides", "[\"old\",\"new\\u003c\"]");
	has(text, "keys", "[\"pprof::base\"]");
	has(text, "values", "[[\"true\"]]");
	assert_null(strstr(text, "\"judged\":"));
	assert_null(strstr(text, "\"warning\":"));
	free(text);
	facts.warning = "beware";
	facts.notes = notes;
	facts.note_cnt = ARRAY_SIZE(notes);
	text = difference_page(p, &facts);
	has(text, "warning", "\"beware\"");
	has(text, "judged",
	    "[{\"cum\":{\"sign\":1,\"common\":1,\"text\":\"all\"}},"
	    "{\"frame\":1,\"cum\":{\"sign\":-1,\"common\":0.5,\"text\":\"cum\"},"
	    "\"self\":{\"sign\":1,\"common\":1,\"text\":\"self\"}},"
	    "{\"frame\":0,\"self\":{\"sign\":0,\"common\":1,"
	    "\"text\":\"\\u003c/script\\u003e\xef\xbf\xbd\"}}]");
	free(text);
	profile__free(p);
}

static uint32_t chance(uint64_t *state, uint32_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*state >> 33) % n;
}

/* A program in which each function calls six others, the first ones most often. */
static uint32_t callee(uint64_t *state, uint32_t caller, uint32_t functions)
{
	uint32_t which = 0;
	uint64_t h;

	while (which < 5 && chance(state, 100) < 58)
		which++;
	h = (uint64_t)caller * 6 + which;
	return (uint32_t)(util_hash(&h, sizeof(h), 1) % functions);
}

/* 50,000 of 28 frames, which have few of them in common: more than a real program has. */
static void many_stacks_take_3_mb(void **state)
{
	enum {
		FUNCTIONS = 10000,
		STACKS = 50000,
		DEPTH = 28
	};
	static uint32_t loc[FUNCTIONS];
	struct profile *p = new_profile();
	struct profile_label labels[2] = { { .key = profile__string(p, "comm") },
					   { .key = profile__string(p, "thread") } };
	uint64_t random = 7;
	struct stacks st;
	size_t nodes = 0;
	char name[64], *text;

	(void)state;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "std::__detail::server<int>::function_%u(char const*)",
			 i);
		loc[i] = frame(p, i % 3 ? "/usr/bin/server" : "/lib/libserver.so", name,
			       "server.cc");
	}
	while (p->sample_cnt < STACKS) {
		uint32_t locs[DEPTH], function = chance(&random, 4);
		int64_t n = 1 + chance(&random, 50000) / (1 + chance(&random, 5000));
		int64_t values[] = { n, n * 10000000 };

		for (size_t i = DEPTH; i-- > 0;) {
			locs[i] = loc[function];
			function = callee(&random, function, FUNCTIONS);
		}
		for (size_t i = 0; i < 2; i++) {
			snprintf(name, sizeof(name), "%c%u", "ct"[i], chance(&random, i ? 160 : 8));
			labels[i].str = profile__string(p, name);
		}
		profile__add_sample(p, locs, DEPTH, labels, 2, values);
	}
	assert_int_equal(stacks__make(p, &st), 0);
	assert_int_equal(st.sample_cnt, STACKS);
	for (size_t i = 0; i < STACKS; i++)
		nodes += DEPTH - st.sample[i].common;
	assert_in_range(nodes, 700000, SIZE_MAX);
	stacks__done(&st);
	text = page(p, "");
	assert_in_range(strlen(text), 1000000, 3000000);
	free(text);
	profile__free(p);
}

/* A location of many lines, in many samples: some MB in the file, 800 as stacks. */
static void too_many_frames(void **state)
{
	struct profile *p = golden_many_frames(types, 2);
	struct stacks st;

	(void)state;
	assert_non_null(p);
	assert_int_equal(stacks__make(p, &st), -E2BIG);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_sorted_and_added_up),
		cmocka_unit_test(frames_are_told_apart_by_object),
		cmocka_unit_test(all_of_it_is_there),
		cmocka_unit_test(names_are_inert),
		cmocka_unit_test(equal_profiles_give_equal_bytes),
		cmocka_unit_test(extremes_are_written),
		cmocka_unit_test(sides_and_notes_are_written),
		cmocka_unit_test(records_are_written),
		cmocka_unit_test(many_stacks_take_3_mb),
		cmocka_unit_test(too_many_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
