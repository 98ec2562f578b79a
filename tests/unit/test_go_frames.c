/* SPDX-License-Identifier: BSD-2-Clause */
/* What is left out of stacks of Go, and how profiles write its names. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "profile/go_frames.h"
#include "profile/profile.h"

#define MAX_DEPTH 8

static struct profile *new_profile(void)
{
	const struct profile_value_type type = { "samples", "count" };
	struct profile *p = profile__new(&type, 1, type, 1);

	assert_non_null(p);
	return p;
}

static struct profile_line line_of(struct profile *p, const char *name)
{
	struct profile_function f = { .wrapper = *name == '~' };
	char whole[64];
	const char *dots;

	name += f.wrapper;
	f.name = profile__string(p, name);
	dots = strstr(name, "[...]");
	if (dots)
		snprintf(whole, sizeof(whole), "%.*s[int]%s", (int)(dots - name), name, dots + 5);
	f.system_name = profile__string(p, dots ? whole : name);
	return (struct profile_line){ .function = profile__add_function(p, &f), .line = 1 };
}

/* A stack, innermost first. "a<b": a is inlined in b; "~": a wrapper. */
static void add_stack(struct profile *p, const char *const *names)
{
	uint32_t locs[MAX_DEPTH], n = 0;
	int64_t one = 1;

	for (; names[n]; n++) {
		struct profile_line lines[2];
		char buf[64], *outer;

		snprintf(buf, sizeof(buf), "%s", names[n]);
		outer = strchr(buf, '<');
		if (outer)
			*outer++ = '\0';
		lines[0] = line_of(p, buf);
		if (outer)
			lines[1] = line_of(p, outer);
		locs[n] = profile__add_location(p, PROFILE_NONE,
						util_hash(names[n], strlen(names[n]), 0));
		assert_int_equal(profile__set_lines(p, locs[n], lines, outer ? 2 : 1), 0);
	}
	assert_int_not_equal(profile__add_sample(p, locs, n, NULL, 0, &one), PROFILE_NONE);
}

static void check_stack(const struct profile *p, size_t i, const char *const *names)
{
	const struct profile_sample *s = &p->samples[i];
	uint32_t n;

	for (n = 0; n < s->loc_cnt; n++) {
		const struct profile_location *l = &p->locations[p->loc_ids[s->loc + n]];
		const struct profile_function *f = &p->functions[p->lines[l->line].function];

		assert_non_null(names[n]);
		assert_string_equal(strtab__get(p->strings, f->name), names[n]);
	}
	assert_null(names[n]);
}

static void test_wrappers(void **state)
{
	static const struct {
		const char *stack[MAX_DEPTH], *want[MAX_DEPTH];
	} cases[] = {
		{ { "a", "~w", "b" }, { "a", "b" } },
		{ { "~w", "b" }, { "b" } },
		{ { "a", "~w" }, { "a" } },
		{ { "a", "~w", "~v", "b", "~u", "c" }, { "a", "b", "c" } },
		/* what it has called tells */
		{ { "a", "runtime.gopanic", "~w", "b" }, { "a", "runtime.gopanic", "w", "b" } },
		{ { "runtime.sigpanic", "~w" }, { "runtime.sigpanic", "w" } },
		{ { "a", "runtime.panicwrap", "~w", "~v" }, { "a", "runtime.panicwrap", "w" } },
		{ { "a<runtime.gopanic", "~w" }, { "a", "w" } },
		{ { "runtime.gopanic<a", "~w" }, { "runtime.gopanic" } },
		/* something stays */
		{ { "~w" }, { "w" } },
		{ { "~w", "~v" }, { "w", "v" } },
		{ { "a", "b" }, { "a", "b" } },
	};
	struct profile *p = new_profile();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		add_stack(p, cases[i].stack);
	/* one without names, as everything is where no symbols are */
	profile__add_sample(p, (uint32_t[]){ profile__add_location(p, PROFILE_NONE, 1) }, 1, NULL,
			    0, &(int64_t){ 1 });
	go_frames__elide(p);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_stack(p, i, cases[i].want);
	assert_int_equal(p->samples[ARRAY_SIZE(cases)].loc_cnt, 1);
	profile__free(p);
}

static void test_goexit(void **state)
{
	static const struct {
		const char *stack[MAX_DEPTH], *want[MAX_DEPTH];
	} cases[] = {
		{ { "a", "runtime.goexit" }, { "a" } },
		{ { "a", "runtime.goexit", "b" }, { "a", "runtime.goexit", "b" } },
		{ { "runtime.goexit", "a" }, { "runtime.goexit", "a" } },
		{ { "runtime.goexit" }, { "runtime.goexit" } },
		{ { "a", "runtime.goexit0" }, { "a", "runtime.goexit0" } },
	};
	struct profile *p = new_profile();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		add_stack(p, cases[i].stack);
	go_frames__like_pprof(p);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_stack(p, i, cases[i].want);
	profile__free(p);
}

static void add_function(struct profile *p, const char *name, const char *system_name)
{
	struct profile_function f = { .name = profile__string(p, name),
				      .system_name = profile__string(p, system_name) };

	assert_int_not_equal(profile__add_function(p, &f), PROFILE_NONE);
}

static void test_type_arguments(void **state)
{
	static const struct {
		const char *name, *system_name, *want;
	} cases[] = {
		{ "main.f[...]", "main.f[go.shape.int]", "main.f[go.shape.int]" },
		{ "main.(*T[...]).M.func1", "main.(*T[a[b]]).M.func1", "main.(*T[a[b]]).M.func1" },
		{ "main.f[...]", "main.f[...]", "main.f[...]" },
		/* those that differ for other reasons */
		{ "operator[](int)", "_ZixEi", "operator[](int)" },
		{ "f[...]", "g[int]", "f[...]" },
		{ "f[...].a", "f[int].b", "f[...].a" },
		{ "f[...]", "f", "f[...]" },
		{ "f[...]", "f]", "f[...]" },
	};
	struct profile *p = new_profile();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		add_function(p, cases[i].name, cases[i].system_name);
	go_frames__like_pprof(p);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(strtab__get(p->strings, p->functions[i].name), cases[i].want);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrappers),
		cmocka_unit_test(test_goexit),
		cmocka_unit_test(test_type_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
