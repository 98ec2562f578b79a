/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target/dwarf_kept: a file that stays the same is opened once, whatever descriptor it comes with;
 * one that has changed, or may be changing, is opened anew; no more is kept than there may be.
 */
#include "target/dwarf_kept.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strtab.h"
#include "base/util.h"
#include "target/dwarf.h"
#include "target/elf_file.h"
#include "toolrun.h"

static unsigned int opened;
static time_t ahead_s; /* of the clock */
static int looks =
	-1; /* at the monotonic clock, until a minute has passed by this one and that of CPU time; -1: none will */
static uint64_t pretended;

int __real_dwarf_file__open(struct dwarf_file *f, const struct elf_file *elf,
			    struct dwarf_file *alt);
int __wrap_dwarf_file__open(struct dwarf_file *f, const struct elf_file *elf,
			    struct dwarf_file *alt);

int __wrap_dwarf_file__open(struct dwarf_file *f, const struct elf_file *elf,
			    struct dwarf_file *alt)
{
	int err = __real_dwarf_file__open(f, elf, alt);

	opened++;
	if (!err && pretended)
		f->total = pretended;
	return err;
}

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int err = __real_clock_gettime(clock, ret);

	if (clock == CLOCK_REALTIME)
		ret->tv_sec += ahead_s;
	if (clock == CLOCK_MONOTONIC && looks > 0)
		looks--;
	if (clock != CLOCK_REALTIME && !looks)
		ret->tv_sec += 60;
	return err;
}

/* A program with one function of this name, compressed as distributions do it. */
static void make_file(const char *path, const char *function)
{
	assert_true(
		toolrun("printf 'int %s(int x) {\\n return x * 3; }\\n"
			"int main(void) { return %s(2); }\\n' > p.c && "
			"gcc -O0 -g -gz -o new p.c && cat new > %s",
			function, function, path));
}

/* The name of the function at the beginning of the file's first one; how often it was opened for it. */
static unsigned int named(const char *path, char ret[static 64])
{
	unsigned int before = opened;
	struct strtab *strings = strtab__new();
	int fd = open(toolrun_path(path), O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = elf_file__open(fd);
	struct dwarf_answers a;
	struct elf_section text;
	uint64_t *all, found = 0;

	assert_non_null(elf);
	assert_true(elf_file__section(elf, ".text", &text));
	all = test_calloc(text.size, sizeof(*all));
	for (uint64_t i = 0; i < text.size; i++)
		all[i] = text.addr + i;
	assert_int_equal(dwarf_resolve(elf, NULL, NULL, all, text.size, strings, &a), 0);
	*ret = '\0';
	for (uint64_t i = 0; i < text.size && !found; i++) {
		if (!a.answers[i].cnt)
			continue;
		found = all[i];
		snprintf(ret, 64, "%s", strtab__get(strings, a.frames[a.answers[i].first].name));
	}
	dwarf_answers__done(&a);
	test_free(all);
	strtab__free(strings);
	elf_file__free(elf);
	close(fd);
	return opened - before;
}

#define NAMED(path, want, times)                            \
	do {                                                \
		char have[64];                              \
		assert_int_equal(named(path, have), times); \
		assert_string_equal(have, want);            \
	} while (0)

static void only_where_it_is_wanted(void **state)
{
	(void)state;
	make_file("one", "alpha");
	ahead_s = 10;
	NAMED("one", "alpha", 1);
	NAMED("one", "alpha", 1);
	dwarf_kept_enable();
	NAMED("one", "alpha", 1);
	for (int i = 0; i < 20; i++)
		NAMED("one", "alpha", 0);
}

static void changed(void **state)
{
	(void)state;
	ahead_s = 10;
	make_file("one", "alpha");
	NAMED("one", "alpha", 1);
	NAMED("one", "alpha", 0);
	/* in its place, and of the same size */
	make_file("one", "bravo");
	NAMED("one", "bravo", 1);
	NAMED("one", "bravo", 0);
	/* another one with its name */
	make_file("two", "delta");
	assert_true(toolrun("mv two one"));
	NAMED("one", "delta", 1);
}

/* Its times are those of now: it may be written to without a sign. */
static void changing(void **state)
{
	(void)state;
	ahead_s = 0;
	make_file("one", "alpha");
	NAMED("one", "alpha", 1);
	NAMED("one", "alpha", 1);
	ahead_s = 10;
	NAMED("one", "alpha", 1);
	NAMED("one", "alpha", 0);
}

static void several(void **state)
{
	static const char *const names[] = { "f1", "f2", "f3", "f4", "f5", "f6" };

	(void)state;
	ahead_s = 10;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		make_file(names[i], names[i]);
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			NAMED(names[i], names[i], !round);
	/* the least recently used make room; what is too large by itself is not kept */
	pretended = DWARF_KEPT_MAX / 10 * 3;
	make_file("large", "large");
	NAMED("large", "large", 1);
	NAMED("large", "large", 0);
	make_file("other", "other");
	NAMED("other", "other", 1);
	NAMED("other", "other", 0);
	NAMED("large", "large", 0);
	NAMED("f6", "f6", 0);
	make_file("third", "third");
	NAMED("third", "third", 1);
	NAMED("third", "third", 0);
	NAMED("large", "large", 0);
	NAMED("f5", "f5", 1);
	pretended = DWARF_KEPT_MAX / 10 * 9;
	make_file("larger", "larger");
	NAMED("larger", "larger", 1);
	NAMED("larger", "larger", 1);
	pretended = 0;
}

/* Programs of a node, all of which are asked for names with each window: none pushes another one out. */
static void as_many_as_a_node_runs(void **state)
{
	enum {
		CNT = 60
	};
	char name[16];

	(void)state;
	ahead_s = 10;
	make_file("one", "alpha");
	assert_true(toolrun("seq %d | xargs -I{} cp one n{}", CNT));
	for (int round = 0; round < 2; round++)
		for (int i = 1; i <= CNT; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			NAMED(name, "alpha", !round);
		}
	dwarf_kept_drop();
}

static void dropped(void **state)
{
	(void)state;
	ahead_s = 10;
	make_file("one", "alpha");
	make_file("two", "bravo");
	NAMED("one", "alpha", 1);
	NAMED("two", "bravo", 1);
	for (int i = 0; i < 2; i++)
		dwarf_kept_drop();
	NAMED("one", "alpha", 1);
	NAMED("two", "bravo", 1);
	NAMED("one", "alpha", 0);
	dwarf_kept_drop();
}

struct resolved {
	struct strtab *strings;
	struct dwarf_answers a;
	size_t cnt;
};

/* All addresses of the code. */
static void resolve_all(const char *path, struct resolved *ret)
{
	int fd = open(toolrun_path(path), O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = elf_file__open(fd);
	struct elf_section text;
	uint64_t *all;

	assert_non_null(elf);
	assert_true(elf_file__section(elf, ".text", &text));
	ret->strings = strtab__new();
	ret->cnt = text.size;
	all = test_calloc(text.size, sizeof(*all));
	for (uint64_t i = 0; i < text.size; i++)
		all[i] = text.addr + i;
	assert_int_equal(dwarf_resolve(elf, NULL, NULL, all, text.size, ret->strings, &ret->a), 0);
	test_free(all);
	elf_file__free(elf);
	close(fd);
}

static void release(struct resolved *r)
{
	dwarf_answers__done(&r->a);
	strtab__free(r->strings);
}

/* As many frames, with the same names and lines. */
static void same_answer(const struct resolved *x, const struct resolved *y, size_t i)
{
	const struct dwarf_answer *a = &x->a.answers[i], *b = &y->a.answers[i];

	assert_int_equal(a->cnt, b->cnt);
	for (uint32_t k = 0; k < a->cnt; k++) {
		const struct dwarf_frame *f = &x->a.frames[a->first + k];
		const struct dwarf_frame *g = &y->a.frames[b->first + k];

		assert_int_equal(f->line, g->line);
		assert_string_equal(strtab__get(x->strings, f->name),
				    strtab__get(y->strings, g->name));
	}
}

/* What there was no time for has no answer: a function that was found has the lines of what is inlined into it, which
 * was not. */
static void out_of_time(void **state)
{
	struct resolved whole, cut;
	size_t some = 0, none = 0, answered = 0, all = 1;

	(void)state;
	dwarf_kept_drop();
	/* two units, of functions into which two others are inlined, one into the other */
	assert_true(toolrun(
		"true; for u in a b; do { echo 'static inline __attribute__((always_inline)) int "
		"in(int "
		"x) {\n"
		" return x * x; }\n"
		"static inline __attribute__((always_inline)) int mid(int x) {\n"
		" return in(x) + 1; }'; for i in $(seq 200); do "
		"echo \"int f_${u}_$i(int x) {\n return mid(x) + $i; }\"; done; } > $u.c; done; "
		"echo 'int main(void) { return 0; }' > m.c; gcc -O1 -g -o many a.c b.c m.c"));
	resolve_all("many", &whole);
	/* until there is time for everything */
	for (int n = 2; n < 2000 && answered < all; n++) {
		answered = all = 0;
		looks = n;
		resolve_all("many", &cut);
		looks = -1;
		assert_int_equal(cut.cnt, whole.cnt);
		for (size_t i = 0; i < cut.cnt; i++) {
			all += whole.a.answers[i].cnt > 0;
			answered += cut.a.answers[i].cnt > 0;
			if (cut.a.answers[i].cnt)
				same_answer(&cut, &whole, i);
		}
		some += answered && answered < all;
		none += !answered;
		release(&cut);
	}
	assert_true(some > 0);
	assert_true(none > 0);
	assert_int_equal(answered, all);
	release(&whole);
}

static int teardown(void **state)
{
	(void)state;
	toolrun_cleanup();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_where_it_is_wanted),
		cmocka_unit_test(changed),
		cmocka_unit_test(out_of_time),
		cmocka_unit_test(changing),
		cmocka_unit_test(several),
		cmocka_unit_test(as_many_as_a_node_runs),
		cmocka_unit_test(dropped),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
