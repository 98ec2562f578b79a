/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache of names: what was put into it comes out of it or has gone, and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/names_cache.h"

#define LIBC 3
#define PROGRAM 7

/* Memory is refused to all but so many requests. */
static uint64_t allowed = UINT64_MAX;

void *__real_calloc(size_t cnt, size_t sz);
void *__wrap_calloc(size_t cnt, size_t sz);
void *__real_realloc(void *old, size_t sz);
void *__wrap_realloc(void *old, size_t sz);

static bool refuse(void)
{
	if (allowed == UINT64_MAX)
		return false;
	errno = ENOMEM;
	return !allowed || !allowed--;
}

void *__wrap_calloc(size_t cnt, size_t sz)
{
	return refuse() ? NULL : __real_calloc(cnt, sz);
}

void *__wrap_realloc(void *old, size_t sz)
{
	return refuse() ? NULL : __real_realloc(old, sz);
}

static struct names_cache *new_cache(void)
{
	struct names_cache *c = names_cache__new();

	assert_non_null(c);
	return c;
}

/* An answer of one frame, whose name is made of the address, with this much behind it. */
static void add(struct names_cache *c, uint64_t object, uint64_t vaddr, const char *more)
{
	struct symbol_frame frame = { .name = 1, .system_name = 1, .line = 5 };
	size_t sz = strlen(more) + 64;
	char *strings = malloc(sz);

	assert_non_null(strings);
	*strings = '\0';
	snprintf(strings + 1, sz - 1, "%lu:%lx%s", object, vaddr, more);
	names_cache__insert(c, object, vaddr, &(struct symbol_frames){ &frame, 1, strings });
	free(strings);
}

/* Does the cache know it? Then it is what was added. */
static bool knows(struct names_cache *c, uint64_t object, uint64_t vaddr, const char *more)
{
	size_t sz = strlen(more) + 64;
	struct symbol_frames answer;
	char *want;

	if (!names_cache__lookup(c, object, vaddr, &answer))
		return false;
	want = malloc(sz);
	assert_non_null(want);
	snprintf(want, sz, "%lu:%lx%s", object, vaddr, more);
	assert_int_equal(answer.cnt, 1);
	assert_string_equal(answer.strings + answer.frames->name, want);
	assert_string_equal(answer.strings + answer.frames->system_name, want);
	assert_string_equal(answer.strings + answer.frames->file, "");
	assert_int_equal(answer.frames->line, 5);
	free(want);
	return true;
}

static void test_answers(void **state)
{
	struct names_cache *c = new_cache();
	struct symbol_frames answer;

	(void)state;
	assert_false(names_cache__lookup(c, PROGRAM, 0x1000, &answer));
	add(c, PROGRAM, 0x1000, "");
	/* the same number elsewhere is something else */
	assert_false(names_cache__lookup(c, LIBC, 0x1000, &answer));
	assert_false(names_cache__lookup(c, PROGRAM, 0x1001, &answer));
	add(c, LIBC, 0x1000, "");
	add(c, 0, 0, "");
	add(c, UINT32_MAX, UINT64_MAX, "");
	assert_true(knows(c, PROGRAM, 0x1000, ""));
	assert_true(knows(c, LIBC, 0x1000, ""));
	assert_true(knows(c, 0, 0, ""));
	assert_true(knows(c, UINT32_MAX, UINT64_MAX, ""));
	/* the first of two stays */
	add(c, PROGRAM, 0x1000, " again");
	assert_true(knows(c, PROGRAM, 0x1000, ""));
	assert_int_equal(names_cache__evicted(c), 0);
	names_cache__free(c);
	names_cache__free(NULL);
}

static void test_no_name(void **state)
{
	struct names_cache *c = new_cache();
	struct symbol_frames answer = { NULL, 99, NULL };

	(void)state;
	names_cache__insert(c, PROGRAM, 0x2000, &(struct symbol_frames){});
	assert_true(names_cache__lookup(c, PROGRAM, 0x2000, &answer));
	assert_int_equal(answer.cnt, 0);
	assert_false(names_cache__lookup(c, PROGRAM, 0x2001, &answer));
	names_cache__free(c);
}

static void test_inlined(void **state)
{
	static const char strings[] =
		"\0inner()\0_Z5innerv\0a.h\0outer()\0_Z5outerv\0a.cc\0main.main";
	static const struct symbol_frame chain[] = {
		{ .name = 1, .system_name = 9, .file = 19, .line = 11, .start_line = 10 },
		{ .name = 23, .system_name = 31, .file = 41, .line = 22, .start_line = 20 },
	};
	static const struct symbol_frame wrapper = { .name = 46, .system_name = 46, .wrapper = 1 };
	struct names_cache *c = new_cache();
	struct symbol_frames first, second;

	(void)state;
	names_cache__insert(c, PROGRAM, 1, &(struct symbol_frames){ chain, 2, strings });
	names_cache__insert(c, PROGRAM, 2, &(struct symbol_frames){ chain + 1, 1, strings });
	names_cache__insert(c, PROGRAM, 3, &(struct symbol_frames){ &wrapper, 1, strings });
	assert_true(names_cache__lookup(c, PROGRAM, 1, &first));
	assert_int_equal(first.cnt, 2);
	for (int i = 0; i < 2; i++) {
		const struct symbol_frame *f = &first.frames[i];

		assert_string_equal(first.strings + f->name, strings + chain[i].name);
		assert_string_equal(first.strings + f->system_name, strings + chain[i].system_name);
		assert_string_equal(first.strings + f->file, strings + chain[i].file);
		assert_int_equal(f->line, chain[i].line);
		assert_int_equal(f->start_line, chain[i].start_line);
		assert_int_equal(f->wrapper, 0);
	}
	/* strings are there once */
	assert_true(names_cache__lookup(c, PROGRAM, 2, &second));
	assert_ptr_equal(second.strings, first.strings);
	assert_int_equal(second.frames->name, first.frames[1].name);
	assert_int_equal(second.frames->file, first.frames[1].file);
	assert_true(names_cache__lookup(c, PROGRAM, 3, &second));
	assert_int_equal(second.frames->wrapper, 1);
	assert_int_equal(second.frames->name, second.frames->system_name);
	names_cache__free(c);
}

/* More than it can hold: each answer is there or was counted, and the youngest are there. */
static void flood(const char *more, uint64_t cnt, uint64_t least)
{
	struct names_cache *c = new_cache();
	uint64_t known = 0, v;

	for (v = 0; v < cnt; v++) {
		add(c, PROGRAM, v, more);
		assert_true(knows(c, PROGRAM, v, more));
	}
	assert_true(names_cache__evicted(c) > 0);
	for (v = 0; v < cnt; v++)
		known += knows(c, PROGRAM, v, more);
	assert_int_equal(known + names_cache__evicted(c), cnt);
	for (v = cnt - least; v < cnt; v++)
		assert_true(knows(c, PROGRAM, v, more));
	names_cache__free(c);
}

/* The same of addresses that no symbol covers, which take no string. */
static void flood_without_names(uint64_t cnt)
{
	struct names_cache *c = new_cache();
	struct symbol_frames answer;
	uint64_t known = 0, v;

	for (v = 0; v < cnt; v++)
		names_cache__insert(c, PROGRAM, v, &(struct symbol_frames){});
	for (v = 0; v < cnt; v++)
		known += names_cache__lookup(c, PROGRAM, v, &answer);
	assert_true(known < cnt);
	assert_int_equal(known + names_cache__evicted(c), cnt);
	names_cache__free(c);
}

static void test_bounds(void **state)
{
	char name[10001];

	(void)state;
	flood_without_names(200000);
	/* short ones fill the tables, long ones the memory: a half has 16,384 answers, and 4 MiB */
	flood("", 200000, 16384);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	flood(name, 3000, 180);
}

/* What is asked for again and again stays, whatever else comes by. */
static void test_in_use(void **state)
{
	struct names_cache *c = new_cache();
	uint64_t hot = 5000, v;

	(void)state;
	for (v = 0; v < hot; v++)
		add(c, LIBC, v, "");
	names_cache__insert(c, LIBC, hot, &(struct symbol_frames){});
	for (uint64_t round = 0; round < 40; round++) {
		struct symbol_frames answer;

		for (v = 0; v < 10000; v++)
			add(c, PROGRAM, round * 10000 + v, "");
		for (v = 0; v < hot; v++)
			assert_true(knows(c, LIBC, v, ""));
		assert_true(names_cache__lookup(c, LIBC, hot, &answer));
		assert_int_equal(answer.cnt, 0);
	}
	/* the first of the others have gone, and are not counted twice */
	assert_false(knows(c, PROGRAM, 0, ""));
	assert_in_range(names_cache__evicted(c), 1, 400000);
	names_cache__free(c);
}

/* What may be in both halves is one answer: all of it is there or counted as gone, once. */
static void test_copied(void **state)
{
	struct names_cache *c = new_cache();
	uint64_t known = 0, cnt = 90000, v, again;

	(void)state;
	for (v = 0; v < cnt; v++) {
		add(c, PROGRAM, v, "");
		for (again = v / 2; again < v / 2 + 3; again++)
			(void)knows(c, PROGRAM, again, "");
	}
	for (v = 0; v < cnt; v++)
		known += knows(c, PROGRAM, v, "");
	assert_true(known < cnt);
	assert_int_equal(known + names_cache__evicted(c), cnt);
	names_cache__free(c);
}

/* Answers that are too long are not kept, and push nothing out. */
static void test_too_long(void **state)
{
	static struct symbol_frame frames[NAMES_CACHE_MAX_ANSWER / sizeof(struct symbol_frame)];
	struct names_cache *c = new_cache();
	struct symbol_frames answer;
	char *name = malloc(NAMES_CACHE_MAX_ANSWER);

	(void)state;
	assert_non_null(name);
	add(c, LIBC, 1, "");
	memset(name, 'n', NAMES_CACHE_MAX_ANSWER);
	name[NAMES_CACHE_MAX_ANSWER - 1] = '\0';
	for (uint64_t v = 0; v < 100; v++) {
		add(c, PROGRAM, v, name);
		names_cache__insert(
			c, PROGRAM, 1000 + v,
			&(struct symbol_frames){ frames, sizeof(frames) / sizeof(*frames), "" });
		assert_false(names_cache__lookup(c, PROGRAM, v, &answer));
		assert_false(names_cache__lookup(c, PROGRAM, 1000 + v, &answer));
	}
	assert_true(knows(c, LIBC, 1, ""));
	assert_int_equal(names_cache__evicted(c), 0);
	/* long ones that are kept */
	name[NAMES_CACHE_MAX_ANSWER / 2 - 128] = '\0';
	for (uint64_t v = 0; v < 100; v++) {
		add(c, PROGRAM, v, name);
		assert_true(knows(c, PROGRAM, v, name));
	}
	free(name);
	names_cache__free(c);
}

/* An answer of as many different strings as there can be. */
static void test_many_strings(void **state)
{
	size_t cnt = NAMES_CACHE_MAX_ANSWER / 48, i;
	struct symbol_frame *frames = calloc(cnt, sizeof(*frames));
	struct names_cache *c = new_cache();
	char *strings = calloc(cnt, 3 * 6 + 1);
	struct symbol_frames answer;
	uint32_t at = 1;

	(void)state;
	assert_non_null(frames);
	assert_non_null(strings);
	for (uint64_t v = 0; v < 20; v++) {
		at = 1;
		for (i = 0; i < cnt; i++) {
			frames[i].name = at;
			at += sprintf(strings + at, "%c%04zx", 'a' + (char)v, i) + 1;
			frames[i].file = at;
			at += sprintf(strings + at, "%c%04zx", 'A' + (char)v, i) + 1;
		}
		names_cache__insert(c, PROGRAM, v, &(struct symbol_frames){ frames, cnt, strings });
		assert_true(names_cache__lookup(c, PROGRAM, v, &answer));
		assert_int_equal(answer.cnt, cnt);
		for (i = 0; i < cnt; i++) {
			assert_string_equal(answer.strings + answer.frames[i].name,
					    strings + frames[i].name);
			assert_string_equal(answer.strings + answer.frames[i].file,
					    strings + frames[i].file);
		}
	}
	assert_true(names_cache__evicted(c) > 0);
	free(frames);
	free(strings);
	names_cache__free(c);
}

/* Serial numbers go on beyond 32 bits. */
static void test_serials(void **state)
{
	struct names_cache *c = new_cache();

	(void)state;
	add(c, PROGRAM, 1, "");
	assert_false(knows(c, PROGRAM + (1ULL << 32), 1, ""));
	add(c, PROGRAM + (1ULL << 32), 1, " new");
	assert_true(knows(c, PROGRAM + (1ULL << 32), 1, " new"));
	assert_true(knows(c, PROGRAM, 1, ""));
	names_cache__free(c);
}

/* Of objects that come and go little is kept: what is in use all the time, and what came last. */
static void test_many_objects(void **state)
{
	const uint64_t last = 10 * NAMES_CACHE_MAX_OBJECTS;
	struct names_cache *c = new_cache();
	uint64_t known = 0, object;

	(void)state;
	add(c, LIBC, 1, "");
	/* answers of another kind are not of objects that came long after */
	add(c, (LIBC | 1ULL << 63), 1, "");
	add(c, (LIBC | 1ULL << 48), 1, "");
	for (object = PROGRAM; object <= last; object++) {
		add(c, object, 1, "");
		assert_true(knows(c, LIBC, 1, ""));
		assert_true(knows(c, object, 1, ""));
	}
	for (object = PROGRAM; object <= last; object++)
		known += knows(c, object, 1, "");
	assert_in_range(known, NAMES_CACHE_MAX_OBJECTS, 2 * NAMES_CACHE_MAX_OBJECTS + 2);
	assert_true(knows(c, last - NAMES_CACHE_MAX_OBJECTS + 1, 1, ""));
	assert_int_equal(names_cache__evicted(c), last - PROGRAM + 1 + 2 - known);
	names_cache__free(c);
}

static void test_no_memory(void **state)
{
	struct names_cache *c;

	(void)state;
	allowed = 0;
	c = names_cache__new();
	allowed = UINT64_MAX;
	assert_null(c);
	assert_int_equal(errno, ENOMEM);
}

/* What the tables had no memory for is not there, and is kept the next time. */
static void test_no_memory_for_tables(void **state)
{
	const uint64_t cnt = 200;

	(void)state;
	for (uint64_t growths = 0; growths < 10; growths++) {
		struct names_cache *c = new_cache();
		uint64_t known = 0, v;

		allowed = growths;
		for (v = 0; v < cnt; v++) {
			add(c, PROGRAM, v, "");
			known += knows(c, PROGRAM, v, "");
		}
		allowed = UINT64_MAX;
		assert_true(known < cnt);
		for (v = 0; v < cnt; v++)
			known -= knows(c, PROGRAM, v, "");
		assert_int_equal(known, 0);
		for (v = 0; v < cnt; v++) {
			add(c, PROGRAM, v, "");
			assert_true(knows(c, PROGRAM, v, ""));
		}
		assert_int_equal(names_cache__evicted(c), 0);
		names_cache__free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),	  cmocka_unit_test(test_no_name),
		cmocka_unit_test(test_inlined),	  cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_in_use),	  cmocka_unit_test(test_copied),
		cmocka_unit_test(test_too_long),  cmocka_unit_test(test_many_strings),
		cmocka_unit_test(test_serials),	  cmocka_unit_test(test_many_objects),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_no_memory_for_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
