/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the pictures of `bpfprof diff`: whose values they have, and what the page says of functions. */
#include "diff_pictures.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "judge/judge.h"
#include "judge/picture.h"
#include "profile/difference.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "written.h"

#define MAX_STACK 8

static const struct profile_value_type bytes[] = { { "alloc_space", "bytes" } };
static const struct profile_value_type cpu[] = { { "alloc_space", "bytes" },
						 { "cpu", "nanoseconds" } };

static const struct profile_value_type heap[] = { { "alloc_objects", "count" },
						  { "alloc_space", "bytes" } };

/* A stack from the root on, with a blank between two functions, and its values. */
struct cost {
	const char *stack;
	int64_t values[2];
};

static void add_cost(struct profile *p, const struct cost *c)
{
	char *words = strdup(c->stack), *rest = words, *word;
	uint32_t locs[MAX_STACK], at = MAX_STACK;

	assert_non_null(words);
	while ((word = strsep(&rest, " "))) {
		assert_true(at > 0);
		locs[--at] = profile__add_marker(p, word);
	}
	free(words);
	assert_int_not_equal(profile__add_sample(p, locs + at, MAX_STACK - at, NULL, 0, c->values),
			     PROFILE_NONE);
}

/* costs end with a stack of NULL; fact: a comment, NULL: none. */
static void add_run(struct runs *runs, enum runs_side side, const struct profile_value_type *types,
		    size_t type_cnt, const char *fact, const struct cost *costs)
{
	struct profile *p = profile__new(types, type_cnt, types[type_cnt - 1], 0);
	char err[256] = "";
	struct bytes b;

	assert_non_null(p);
	for (; costs->stack; costs++)
		add_cost(p, costs);
	if (fact)
		assert_int_equal(profile__add_comment(p, fact), 0);
	assert_int_equal(profile__finish(p), 0);
	b = written(p);
	profile__free(p);
	assert_int_equal(runs__add(runs, side, "x", b.data, b.sz, err, sizeof(err)), 0);
	free(b.data);
}

static struct judge_result *judged(struct runs *runs)
{
	struct judge_options options = JUDGE_DEFAULTS;
	struct judge_result *r;
	char err[512] = "";

	if (runs__finish(runs, err, sizeof(err)) || judge(runs, &options, &r, err, sizeof(err)))
		fail_msg("%s", err);
	return r;
}

static char *picture(const struct judge_result *r, enum judge_shape shape, size_t *ret_sz)
{
	char *text;
	FILE *f = open_memstream(&text, ret_sz);

	assert_non_null(f);
	assert_int_equal(diff_picture_write(r, shape, f), 0);
	assert_int_equal(fclose(f), 0);
	return text;
}

/* Frees all of it. */
static void folds_to(struct runs *runs, const char *want)
{
	struct judge_result *r = judged(runs);
	size_t sz;
	char *text = picture(r, JUDGE_FOLDED, &sz);

	assert_string_equal(text, want);
	free(text);
	judge_free(r);
	runs__free(runs);
}

static void means_of_runs(void **state)
{
	struct runs *runs = runs__new();

	(void)state;
	add_run(runs, RUNS_BASE, bytes, 1, NULL,
		(struct cost[]){ { "main a", { 10 } }, { "main b", { 20 } }, { NULL, { 0 } } });
	add_run(runs, RUNS_BASE, bytes, 1, NULL,
		(struct cost[]){ { "main a", { 30 } }, { "main f", { 1 } }, { NULL, { 0 } } });
	/* compilers number clones; what calls itself is there once */
	add_run(runs, RUNS_NEW, bytes, 1, NULL,
		(struct cost[]){ { "main main a.part.0", { 20 } },
				 { "main c;d", { 5 } },
				 { "main \x1b[2J", { 4 } },
				 { NULL, { 0 } } });
	/* half a byte is rounded up */
	folds_to(runs,
		 "main;a 20 20\n"
		 "main;b 10 0\n"
		 "main;c:d 0 5\n"
		 "main;f 1 0\n"
		 "main;\xef\xbf\xbd[2J 0 4\n");
}

static void runs_of_equal_work(void **state)
{
	struct runs *runs = runs__new();
	struct judge_result *r;
	char side[128];

	(void)state;
	add_run(runs, RUNS_BASE, bytes, 1, FACTS_OPS "=2",
		(struct cost[]){ { "main", { 10 } }, { NULL, { 0 } } });
	add_run(runs, RUNS_NEW, bytes, 1, FACTS_OPS "=6",
		(struct cost[]){ { "main", { 60 } }, { NULL, { 0 } } });
	r = judged(runs);
	assert_string_equal(judge_picture_side(r, RUNS_NEW, side, sizeof(side)),
			    "new: 1 run, each of 4 operations");
	judge_free(r);
	/* 5 and 10 an operation */
	folds_to(runs, "main 20 40\n");
}

/* The total of a run is exact, samples say how it falls to stacks. */
static void exact_totals(void **state)
{
	struct runs *runs = runs__new();

	(void)state;
	for (int i = 0; i < 2; i++)
		add_run(runs, i ? RUNS_NEW : RUNS_BASE, cpu + 1, 1, FACTS_CPU "=1000",
			(struct cost[]){ { "main a", { 30 } },
					 { "main b", { i ? 10 : 20 } },
					 { NULL, { 0 } } });
	folds_to(runs, "main;a 600 750\nmain;b 400 250\n");
}

static void all_metrics_in_pprof(void **state)
{
	struct runs *runs = runs__new();
	struct judge_result *r;
	struct profile *p;
	size_t sz;
	char *data;

	(void)state;
	for (int i = 0; i < 2; i++)
		add_run(runs, i ? RUNS_NEW : RUNS_BASE, cpu, 2, NULL,
			(struct cost[]){ { "main", { 7 + i, 3000 } }, { NULL, { 0 } } });
	r = judged(runs);
	data = picture(r, JUDGE_PPROF, &sz);
	assert_int_equal(pprof_read(data, sz, &p), 0);
	free(data);
	assert_int_equal(p->value_cnt, 2);
	assert_string_equal(p->value_types[0].type, "cpu");
	assert_string_equal(p->value_types[1].type, "alloc_space");
	assert_int_equal(profile__default_value(p), 0);
	assert_int_equal(p->sample_cnt, 2);
	for (size_t i = 0; i < 2; i++) {
		bool of_base = difference_of_base(p, &p->samples[i]);

		assert_int_equal(profile__values(p, &p->samples[i])[0], of_base ? -3000 : 3000);
		assert_int_equal(profile__values(p, &p->samples[i])[1], of_base ? -7 : 8);
	}
	assert_true(difference_is(p));
	profile__free(p);
	/* the page has what is judged first alone */
	data = picture(r, JUDGE_PAGE, &sz);
	assert_non_null(strstr(data,
			       "\"types\":[{\"type\":\"cpu\",\"unit\":\"nanoseconds\","
			       "\"scale\":3000}],"));
	free(data);
	judge_free(r);
	runs__free(runs);
}

/* Exact counters: a is the same in all runs, b differs, and both together are main's. */
static void notes_of_functions(void **state)
{
	struct runs *runs = runs__new();
	struct judge_result *r;
	size_t sz;
	char *text;

	(void)state;
	for (int i = 0; i < 8; i++)
		add_run(runs, i % 2 ? RUNS_NEW : RUNS_BASE, heap, 2, NULL,
			(struct cost[]){ { "main same", { 100, 1000 } },
					 { "main call worse", { 100, i % 2 ? 3000 : 1000 } },
					 { "main </script>", { 100, i % 2 ? 500 : 1000 } },
					 { NULL, { 0 } } });
	r = judged(runs);
	text = picture(r, JUDGE_PAGE, &sz);
	assert_non_null(strstr(text,
			       "\"names\":[\"\\u003c/script\\u003e\",\"call\",\"main\","
			       "\"same\",\"worse\"]"));
	assert_non_null(
		strstr(text, "\"sides\":[\"base: mean of 4 runs\",\"new: mean of 4 runs\"]"));
	/* less; a caller stands for what it calls; more; the total, which is main's */
	assert_non_null(strstr(text, "{\"frame\":0,\"cum\":{\"sign\":-1,"));
	assert_non_null(
		strstr(text, "{\"frame\":1,\"cum\":{\"sign\":1,\"common\":1,\"text\":\"worse: "));
	assert_non_null(
		strstr(text, "{\"frame\":2,\"cum\":{\"sign\":1,\"common\":1,\"text\":\"total: "));
	assert_non_null(strstr(text, "{\"frame\":3,\"cum\":{\"sign\":0,"));
	assert_non_null(strstr(text, "{\"frame\":4,\"cum\":{\"sign\":1,"));
	assert_non_null(strstr(text, ",{\"cum\":{\"sign\":1,\"common\":1,\"text\":\"total: "));
	free(text);
	judge_free(r);
	runs__free(runs);
}

/* One run a side has no intervals: nothing is certain, and that is said. */
static void one_run_is_a_hint(void **state)
{
	struct runs *runs = runs__new();
	struct judge_result *r;
	size_t sz;
	char *text;

	(void)state;
	for (int i = 0; i < 2; i++)
		add_run(runs, i ? RUNS_NEW : RUNS_BASE, bytes, 1, NULL,
			(struct cost[]){ { "main", { i ? 9000 : 10 } }, { NULL, { 0 } } });
	r = judged(runs);
	text = picture(r, JUDGE_PAGE, &sz);
	assert_null(strstr(text, "\"sign\":1"));
	assert_null(strstr(text, "\"sign\":-1"));
	assert_non_null(strstr(text, "\"warning\":\"alloc_space: one run a side"));
	free(text);
	judge_free(r);
	runs__free(runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_of_runs),      cmocka_unit_test(runs_of_equal_work),
		cmocka_unit_test(exact_totals),	      cmocka_unit_test(all_metrics_in_pprof),
		cmocka_unit_test(notes_of_functions), cmocka_unit_test(one_run_is_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
