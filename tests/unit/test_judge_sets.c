/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of runs as people have them: interrupted, several together, of builds, with files that say less than
 * others. What is judged of them, and by what.
 */
#include "judge/judge.h"

#include <errno.h>
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
#include "judge/write.h"
#include "profile/facts.h"
#include "profile/profile.h"
#include "written.h"

#define FUNCTIONS 12
#define PERIOD 1000000

/* ---- runs ---- */

struct run {
	enum runs_side side;
	double cost;  /* CPU time in seconds; 0: 1 */
	double of_f0; /* its first function costs so many times as much as the others; 0: 1 */
	const char *name;
	const char *machine;
	int64_t time_ns;
	uint64_t block, seed, build, wall_ns; /* 0: not said, but see `blocks` */
};

struct set {
	struct runs *runs;
	bool blocks;	  /* runs say their block */
	const char *type; /* NULL: "cpu" */
	size_t added;
	char err[512];
};

static void begin(struct set *s)
{
	s->runs = runs__new();
	assert_non_null(s->runs);
}

static void done(struct set *s)
{
	runs__free(s->runs);
}

static uint64_t or_none(uint64_t n)
{
	return n ? n : FACTS_NONE;
}

/* main calls f0, f1 and so on, each of which has samples. */
static struct profile *made(const struct set *s, const struct run *run)
{
	struct profile_value_type types[] = { { "samples", "count" },
					      { s->type ? s->type : "cpu", "nanoseconds" } };
	struct profile *p = profile__new(types, 2, types[1], PERIOD);
	uint32_t locs[FUNCTIONS + 1];
	struct run_facts f;

	assert_non_null(p);
	for (int i = 0; i <= FUNCTIONS; i++) {
		struct profile_function of = { 0 };
		struct profile_line l = { .line = 1 };
		char name[16];

		snprintf(name, sizeof(name), i < FUNCTIONS ? "f%d" : "main", i);
		of.name = of.system_name = profile__string(p, name);
		l.function = profile__add_function(p, &of);
		locs[i] = profile__add_location(p, PROFILE_NONE, (uint64_t)i + 1);
		assert_int_equal(profile__set_lines(p, locs[i], &l, 1), 0);
	}
	for (int i = 0; i < FUNCTIONS; i++) {
		uint32_t stack[] = { locs[i], locs[FUNCTIONS] };
		/* no two runs are the same */
		int noise = (i + 3) * (int)(s->added + 5) * 7 % 31;
		int64_t n = (int64_t)(1000 * (i || !(run->of_f0 > 0) ? 1 : run->of_f0)) + noise;
		const int64_t values[] = { n, n * PERIOD };

		assert_int_not_equal(profile__add_sample(p, stack, 2, NULL, 0, values),
				     PROFILE_NONE);
	}
	facts_clear(&f);
	snprintf(f.run, sizeof(f.run), "%s", run->name ? run->name : "");
	snprintf(f.machine, sizeof(f.machine), "%s", run->machine ? run->machine : "");
	f.block = s->blocks ? run->block : FACTS_NONE;
	f.seed = or_none(run->seed);
	f.build = or_none(run->build);
	f.wall_ns = or_none(run->wall_ns);
	f.cpu_ns = (uint64_t)(1e9 * (run->cost > 0 ? run->cost : 1));
	assert_int_equal(facts_write(p, &f), 0);
	p->time_ns = run->time_ns;
	assert_int_equal(profile__finish(p), 0);
	return p;
}

static int add(struct set *s, const struct run *run)
{
	struct profile *p = made(s, run);
	struct bytes b = written(p);
	int err;

	s->added++;
	err = runs__add(s->runs, run->side, run->name ? run->name : "x", b.data, b.sz, s->err,
			sizeof(s->err));

	profile__free(p);
	free(b.data);
	return err;
}

static int finish(struct set *s)
{
	return runs__finish(s->runs, s->err, sizeof(s->err)) ?: runs__join_builds(s->runs);
}

static struct judge_result *judged(struct set *s, const struct judge_options *o)
{
	const struct judge_options defaults = JUDGE_DEFAULTS;
	struct judge_result *res;

	if (finish(s) || judge(s->runs, o ? o : &defaults, &res, s->err, sizeof(s->err)))
		fail_msg("%s", s->err);
	return res;
}

/* ---- files that say less ---- */

/* A file that does not say when it was made is no reason to believe the others less. */
static void without_a_time(void **unused)
{
	(void)unused;
	for (int without = 0; without <= 12; without++) {
		struct judge_result *res;
		struct set s = { 0 };

		begin(&s);
		for (int i = 0; i < 12; i++) {
			struct run run = { .side = i < 6 ? RUNS_BASE : RUNS_NEW,
					   .cost = 1 + 0.001 * (i * 5 % 7),
					   .time_ns = i < without ? 0 : 1000 + i };

			assert_int_equal(add(&s, &run), 0);
		}
		res = judged(&s, NULL);
		/* of a whole side without a time nothing is known */
		assert_int_equal(res->metrics[0].confounded, without < 6);
		judge_free(res);
		done(&s);
	}
}

static void without_a_machine(void **unused)
{
	static const char *const machines[][3] = { { "a", "b", NULL },
						   { NULL, "a", "b" },
						   { "a", NULL, "b" } };

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		for (int let_in = 0; let_in < 2; let_in++) {
			struct set s = { 0 };

			begin(&s);
			s.runs->cross_machine = let_in;
			for (int k = 0; k < 6; k++) {
				struct run run = { .side = k % 2 ? RUNS_NEW : RUNS_BASE,
						   .machine = machines[i][k % 3],
						   .time_ns = k + 1 };

				assert_int_equal(add(&s, &run), 0);
			}
			assert_int_equal(finish(&s), let_in ? 0 : -EINVAL);
			assert_true(let_in ? s.runs->machines_differ :
					     !!strstr(s.err, "different machines"));
			done(&s);
		}
}

/* ---- interrupted sets ---- */

/* Three blocks of four, between which the machine changes, and `more` runs of the base in a block that was
 * interrupted. The new side costs 5 % more. */
static struct judge_result *interrupted(struct set *s, int more)
{
	*s = (struct set){ .blocks = true };
	begin(s);
	for (int i = 0; i < 12 + more; i++) {
		bool is_new = i < 12 && (i + i / 2) % 2;
		struct run run = { .side = is_new ? RUNS_NEW : RUNS_BASE,
				   .cost = (1 + 0.4 * (i / 4)) * (is_new ? 1.05 : 1) *
					   (1 + 0.002 * (i * 5 % 7)),
				   .block = (uint64_t)i / 4 };

		assert_int_equal(add(s, &run), 0);
	}
	return judged(s, NULL);
}

static void one_side_of_a_block(void **unused)
{
	struct judge_result *whole, *res;
	struct set s, of_whole;

	(void)unused;
	whole = interrupted(&of_whole, 0);
	assert_int_equal(whole->verdict, JUDGE_REGRESSED);
	assert_true(whole->metrics[0].rows[0].df == 8);
	for (int more = 1; more <= 3; more++) {
		const struct judge_row *of = &whole->metrics[0].rows[0], *row;
		const struct judge_metric *m;

		res = interrupted(&s, more);
		m = &res->metrics[0];
		row = &m->rows[0];
		assert_int_equal(m->block_cnt, 4);
		assert_int_equal(m->arrangements, 216);
		assert_int_equal(res->verdict, JUDGE_REGRESSED);
		/* one run alone says nothing, each further one how much they differ */
		assert_true(row->df == of->df + more - 1);
		assert_true(fabs(row->change - of->change) < 1e-12);
		assert_true((fabs(row->error - of->error) < 1e-12) == (more == 1));
		assert_true(fabs(row->of_program - of->of_program) < 1e-12);
		judge_free(res);
		done(&s);
	}
	judge_free(whole);
	done(&of_whole);
}

/* Where no block has both sides, or none is left to tell how much runs differ, there are no blocks. */
static void blocks_of_one_side(void **unused)
{
	static const char *const sides[] = { "bbnn", "bnbn" };
	static const uint64_t numbers[][4] = { { 0, 0, 1, 1 }, { 0, 0, 1, 2 } };

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
		struct set s = { .blocks = true };
		struct judge_result *res;

		begin(&s);
		for (int k = 0; k < 4; k++) {
			struct run run = { .side = sides[i][k] == 'n' ? RUNS_NEW : RUNS_BASE,
					   .cost = 1 + 0.001 * (k * 3 % 4),
					   .block = numbers[i][k] };

			assert_int_equal(add(&s, &run), 0);
		}
		res = judged(&s, NULL);
		assert_int_equal(res->metrics[0].block_cnt, 1);
		assert_true(res->metrics[0].rows[0].df == 2);
		judge_free(res);
		done(&s);
	}
}

/* ---- several sets ---- */

/* Sets of bench number their runs and blocks alike, and are drawn by other seeds. */
static void two_sets(void **unused)
{
	static const char *const names[] = { "0001", "0002", "0003", "0004" };
	struct set s = { .blocks = true };
	struct judge_result *res;

	(void)unused;
	begin(&s);
	for (uint64_t seed = 1; seed <= 2; seed++)
		for (int i = 0; i < 4; i++) {
			struct run run = { .side = i % 2 ? RUNS_NEW : RUNS_BASE,
					   .name = names[i],
					   .cost = 1 + 0.01 * i + 0.1 * (double)seed,
					   .seed = seed };

			if (add(&s, &run))
				fail_msg("%s", s.err);
		}
	res = judged(&s, NULL);
	assert_int_equal(s.runs->run_cnt, 8);
	assert_int_equal(res->metrics[0].block_cnt, 2);
	judge_free(res);
	done(&s);
}

/* What was recorded in another set has its own CPU time, also where it is of another kind. */
static void kinds_of_two_sets(void **unused)
{
	struct set s = { .blocks = true };

	(void)unused;
	begin(&s);
	for (uint64_t seed = 1; seed <= 2; seed++)
		for (int i = 0; i < 4; i++) {
			struct run run = { .side = i % 2 ? RUNS_NEW : RUNS_BASE,
					   .name = i < 2 ? "0001" : "0003",
					   .cost = (double)seed,
					   .seed = seed };

			s.type = seed == 1 ? "cpu" : "delay";
			assert_int_equal(add(&s, &run), 0);
		}
	assert_int_equal(finish(&s), 0);
	assert_int_equal(s.runs->run_cnt, 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(s.runs->runs[i].facts.cpu_ns,
				 s.runs->runs[i].facts.seed * 1000000000);
	done(&s);
}

/* Files of a run say the same of it. */
static void kinds_of_a_run(void **unused)
{
	struct set s = { .blocks = true };

	(void)unused;
	begin(&s);
	for (int kind = 0; kind < 2; kind++)
		for (int i = 0; i < 4; i++) {
			struct run run = { .side = i % 2 ? RUNS_NEW : RUNS_BASE,
					   .name = i < 2 ? "0001" : "0003",
					   .seed = 1 };

			s.type = kind ? "delay" : "cpu";
			assert_int_equal(add(&s, &run), 0);
		}
	assert_int_equal(finish(&s), 0);
	assert_int_equal(s.runs->run_cnt, 4);
	done(&s);
}

/* ---- looks ---- */

/* A look has its share of the chance that OK is wrong; the interval that is shown is the same. */
static void ok_of_a_look(void **unused)
{
	const double shares[] = { 1, 1 / 3.0 };
	struct judge_result *res[2];
	struct set s = { .blocks = true };
	double effect = 0;

	(void)unused;
	begin(&s);
	for (int i = 0; i < 12; i++) {
		struct run run = { .side = i % 2 ? RUNS_NEW : RUNS_BASE,
				   .cost = 1 + 0.001 * (i * i % 11),
				   .block = (uint64_t)i / 4 };

		assert_int_equal(add(&s, &run), 0);
	}
	assert_int_equal(finish(&s), 0);
	/* the second time with a gate between both bounds */
	for (int pass = 0; pass < 2; pass++) {
		const struct judge_row *rows[2];

		for (int i = 0; i < 2; i++) {
			struct judge_options o = JUDGE_DEFAULTS;

			o.ok_share = shares[i];
			o.gate_cnt = pass;
			o.gates[0] = (struct judge_gate){ .metric = "cpu", .effect = effect };
			assert_int_equal(judge(s.runs, &o, &res[i], s.err, sizeof(s.err)), 0);
			rows[i] = &res[i]->metrics[0].rows[0];
			assert_int_equal(rows[i]->what, JUDGE_TOTAL);
		}
		assert_true(rows[0]->low == rows[1]->low && rows[0]->high == rows[1]->high);
		assert_true(rows[0]->at_most == rows[0]->high);
		assert_true(rows[1]->at_most > rows[1]->high);
		assert_int_equal(rows[0]->verdict, JUDGE_OK);
		assert_int_equal(rows[1]->verdict, pass ? JUDGE_CANNOT_TELL : JUDGE_OK);
		effect = expm1((rows[0]->at_most + rows[1]->at_most) / 2);
		judge_free(res[0]);
		judge_free(res[1]);
	}
	done(&s);
}

/* ---- few runs ---- */

/* Is it remarked that so few cannot show a regression? */
static bool are_few(const struct judge_result *res)
{
	char text[WRITE_SZ];
	bool ret = false;

	for (int i = 0; write_remark(res, &res->metrics[0], i, text, sizeof(text)); i++)
		ret |= !!strstr(text, "cannot show a regression");
	return ret;
}

/* `a_side` of each side, in blocks of four, of `parts` runs each; the new side costs more. The total alone is
 * compared. */
static struct judge_result *judged_few(struct set *s, int a_side, int parts, double more)
{
	struct judge_options o = JUDGE_DEFAULTS;

	o.min_share = 1;
	*s = (struct set){ .blocks = true };
	begin(s);
	for (int pass = 0; pass < parts; pass++)
		for (int i = 0; i < 2 * a_side; i++) {
			bool is_new = i % 2;
			struct run run = { .side = is_new ? RUNS_NEW : RUNS_BASE,
					   .cost = (is_new ? 1 + more : 1) *
						   (1 + 0.002 * (i * 3 % 5) + 0.0003 * pass),
					   .build = parts > 1 ? (uint64_t)i / 2 + 1 : 0,
					   .block = (uint64_t)(i / 4 + pass * (a_side + 1) / 2) };

			assert_int_equal(add(s, &run), 0);
		}
	return judged(s, &o);
}

/* What the t-test shows can be shown. */
static void few_runs(void **unused)
{
	struct judge_result *res;
	struct set s;

	(void)unused;
	for (int a_side = 2; a_side <= 4; a_side++) {
		res = judged_few(&s, a_side, 1, 0.2);
		assert_int_equal(res->metrics[0].model, a_side < 4);
		assert_int_equal(res->verdict, JUDGE_REGRESSED);
		assert_false(are_few(res));
		assert_true(isfinite(res->metrics[0].rows[0].detectable));
		judge_free(res);
		done(&s);
	}
}

/* What few layouts have in common may be chance, however well they agree. */
static void few_builds(void **unused)
{
	struct judge_result *res;
	struct set s;

	(void)unused;
	for (int a_side = 2; a_side <= 4; a_side++) {
		res = judged_few(&s, a_side, 3, 0.2);
		assert_int_equal(res->metrics[0].cnt[0], a_side);
		assert_false(res->metrics[0].model);
		assert_int_equal(res->verdict, a_side < 4 ? JUDGE_CANNOT_TELL : JUDGE_REGRESSED);
		assert_int_equal(are_few(res), a_side < 4);
		judge_free(res);
		done(&s);
	}
}

/* ---- gates ---- */

/* All functions of the new side cost 20 % more, and one of them is gated. */
static struct judge_result *all_slower(struct set *s, bool in_turns, bool machines)
{
	struct judge_options o = JUDGE_DEFAULTS;

	*s = (struct set){ 0 };
	begin(s);
	s->runs->cross_machine = machines;
	for (int i = 0; i < 16; i++) {
		bool is_new = in_turns ? i % 2 : i >= 8;
		struct run run = { .side = is_new ? RUNS_NEW : RUNS_BASE,
				   .cost = (is_new ? 1.2 : 1) * (1 + 0.01 * (i * 7 % 11)),
				   .machine = machines && is_new ? "b" : "a",
				   .time_ns = 1 + i };

		assert_int_equal(add(s, &run), 0);
	}
	o.gate_cnt = 1;
	o.gates[0] = (struct judge_gate){ .metric = "cpu", .function = "f1", .effect = 0.05 };
	return judged(s, &o);
}

static const struct judge_row *find_row(const struct judge_result *res, const char *function)
{
	const struct judge_metric *m = &res->metrics[0];
	const struct judge_row *ret = NULL;

	for (size_t i = 0; i < m->row_cnt; i++) {
		const struct judge_row *row = &m->rows[i];

		if (row->what != JUDGE_SELF ||
		    strcmp(runs__name(res->runs, row->function), function) != 0)
			continue;
		/* each is there once */
		assert_null(ret);
		ret = row;
	}
	assert_non_null(ret);
	return ret;
}

/* No function is slower than the others, and what a gate names is slower than it was. */
static void all_functions(void **unused)
{
	struct judge_result *res;
	struct set s;

	(void)unused;
	res = all_slower(&s, true, false);
	assert_true(res->metrics[0].relative);
	assert_int_equal(res->verdict, JUDGE_REGRESSED);
	assert_true(find_row(res, "f1")->as_is && !find_row(res, "f1")->relative);
	assert_true(fabs(expm1(find_row(res, "f1")->change) - 0.2) < 0.03);
	assert_int_equal(find_row(res, "f2")->verdict, JUDGE_OK);
	assert_true(find_row(res, "f2")->relative);
	judge_free(res);
	done(&s);
	/* it may be the machine that is slower, later or another one */
	res = all_slower(&s, false, false);
	assert_true(res->metrics[0].confounded);
	assert_int_not_equal(res->verdict, JUDGE_REGRESSED);
	judge_free(res);
	done(&s);
	res = all_slower(&s, true, true);
	assert_true(res->metrics[0].cross_machine);
	assert_int_not_equal(res->verdict, JUDGE_REGRESSED);
	judge_free(res);
	done(&s);
}

/* No function has a share of how long a run took. */
static void whole_metrics(void **unused)
{
	struct judge_options o = JUDGE_DEFAULTS;
	struct set s = { .blocks = true };
	struct judge_result *res;

	(void)unused;
	begin(&s);
	for (int i = 0; i < 12; i++) {
		/* it does not look as if it ended by the clock */
		struct run run = { .side = i % 2 ? RUNS_NEW : RUNS_BASE,
				   .block = (uint64_t)i / 4,
				   .wall_ns = 1000000000 + 10000000 * (uint64_t)i };

		assert_int_equal(add(&s, &run), 0);
	}
	assert_int_equal(finish(&s), 0);
	o.gate_cnt = 1;
	o.gates[0] = (struct judge_gate){ .metric = RUNS_WALL, .function = "f1", .effect = 0.05 };
	assert_int_equal(judge(s.runs, &o, &res, s.err, sizeof(s.err)), -EINVAL);
	assert_non_null(strstr(s.err, "'wall' is of whole runs"));
	assert_null(res);
	*o.gates[0].function = '\0';
	assert_int_equal(judge(s.runs, &o, &res, s.err, sizeof(s.err)), 0);
	judge_free(res);
	done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_time),     cmocka_unit_test(without_a_machine),
		cmocka_unit_test(two_sets),	      cmocka_unit_test(kinds_of_two_sets),
		cmocka_unit_test(kinds_of_a_run),     cmocka_unit_test(whole_metrics),
		cmocka_unit_test(ok_of_a_look),	      cmocka_unit_test(one_side_of_a_block),
		cmocka_unit_test(blocks_of_one_side), cmocka_unit_test(few_runs),
		cmocka_unit_test(few_builds),	      cmocka_unit_test(all_functions)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
