/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the judge's statistics: functions and p-values are those of an independent implementation
 * (judge_tables.h), arrangements are all there, each once, and variances are borrowed rightly.
 */
#include "judge/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "judge/design.h"
#include "judge/maxt.h"
#include "judge/moderate.h"
#include "judge_tables.h"

#define EXACT 1e-12

static void check_close(const char *what, double got, double want, double scale)
{
	if (!(fabs(got - want) <= EXACT * scale))
		fail_msg("%s: %.17g, not %.17g", what, got, want);
}

static void check_same(const char *what, double got, double want)
{
	check_close(what, got, want, fabs(want));
}

static void special_functions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(digammas); i++) {
		double x = digammas[i].x;

		check_close("digamma", stats_digamma(x), digammas[i].psi,
			    fmax(1, fabs(digammas[i].psi)));
		check_same("trigamma", stats_trigamma(x), digammas[i].psi1);
		check_same("trigamma_inverse", stats_trigamma_inverse(digammas[i].psi1), x);
	}
	for (size_t i = 0; i < ARRAY_SIZE(betas); i++)
		check_same("beta", stats_beta(betas[i].a, betas[i].b, betas[i].x, 1 - betas[i].x),
			   betas[i].value);
}

static void distributions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		double t = tails[i].t, df = tails[i].df, p = tails[i].p;

		check_same("t_upper", stats_t_upper(t, df), p);
		/* near 1 the tail no longer tells one t from the next */
		if (p < 0.9)
			check_close("t_quantile", stats_t_quantile(p, df), t, fmax(1, fabs(t)));
	}
	for (size_t i = 0; i < ARRAY_SIZE(binomials); i++)
		check_same("binomial",
			   stats_binomial_upper((uint64_t)binomials[i].k, (uint64_t)binomials[i].n,
						binomials[i].prob),
			   binomials[i].p);
	check_same("all", stats_binomial_upper(0, 5, 0.5), 1);
	check_close("none", stats_binomial_upper(6, 5, 0.5), 0, 1);
	check_same("symmetry", stats_t_quantile(0.975, 7), -stats_t_quantile(0.025, 7));
	assert_true(stats_t_quantile(0.5, 3) == 0);
}

static void outside(void **state)
{
	(void)state;
	assert_true(isnan(stats_digamma(0)));
	assert_true(isnan(stats_trigamma(-1)));
	assert_true(isnan(stats_trigamma_inverse(0)));
	assert_true(isnan(stats_beta(0, 1, 0.5, 0.5)));
	assert_true(isnan(stats_t_upper(NAN, 3)));
	assert_true(isnan(stats_t_upper(1, 0)));
	assert_true(isnan(stats_t_quantile(0, 3)));
	assert_true(isnan(stats_binomial_upper(1, 2, 1.5)));
	assert_true(stats_t_upper(INFINITY, 3) == 0);
	assert_true(stats_t_upper(-INFINITY, 3) == 1);
}

static void medians(void **state)
{
	double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };

	(void)state;
	assert_true(stats_median(odd, 3) == 2);
	assert_true(stats_median(even, 4) == 2.5);
}

/* ---- arrangements ---- */

static void all_arrangements(void **state)
{
	static const uint8_t news[] = { 0, 1, 1, 0, 1, 0, 0, 0, 1 };
	static const size_t starts[] = { 0, 4, 6, 9 };
	const struct design d = { 9, 3, news, starts };
	bool seen[512] = { false };
	struct design_walk w;
	uint8_t at[9];
	int n = 0;

	(void)state;
	assert_int_equal(design_arrangements(&d), 6 * 2 * 3);
	design_walk__begin(&w, &d, 0, at);
	assert_true(w.exact);
	while (design_walk__next(&w)) {
		unsigned int bits = 0;

		for (int i = 0; i < 9; i++)
			bits |= (unsigned int)at[i] << i;
		/* the observed one is the first */
		assert_true(n || !memcmp(at, news, sizeof(at)));
		assert_int_equal(at[0] + at[1] + at[2] + at[3], 2);
		assert_int_equal(at[4] + at[5], 1);
		assert_int_equal(at[6] + at[7] + at[8], 1);
		assert_false(seen[bits]);
		seen[bits] = true;
		n++;
	}
	assert_int_equal(n, 36);
}

/* Of 12 against 12 so many are drawn, with the right number of each side, the same for a seed. */
static void drawn_arrangements(void **state)
{
	static const size_t starts[] = { 0, 24 };
	uint8_t news[24], a[24], b[24];
	const struct design d = { 24, 1, news, starts };
	struct design_walk w, v;
	uint64_t at_first = 0;
	int n = 0;

	(void)state;
	for (int i = 0; i < 24; i++)
		news[i] = i % 2;
	assert_int_equal(design_arrangements(&d), 2704156);
	design_walk__begin(&w, &d, 7, a);
	design_walk__begin(&v, &d, 7, b);
	assert_false(w.exact);
	while (design_walk__next(&w)) {
		int sum = 0;

		assert_true(design_walk__next(&v));
		assert_memory_equal(a, b, sizeof(a));
		for (int i = 0; i < 24; i++)
			sum += a[i];
		assert_int_equal(sum, 12);
		at_first += a[0];
		n++;
	}
	assert_int_equal(n, DESIGN_DRAWN);
	/* 10,000 are expected; 5 standard deviations are 354 */
	assert_in_range(at_first, 9646, 10354);
}

static void too_many(void **state)
{
	static const size_t starts[] = { 0, 100, 200 };
	uint8_t news[200];
	const struct design d = { 200, 2, news, starts };

	(void)state;
	for (int i = 0; i < 200; i++)
		news[i] = i % 2;
	assert_true(design_arrangements(&d) == UINT64_MAX);
}

static void differences(void **state)
{
	static const uint8_t news[] = { 0, 1, 1, 0, 1, 0 };
	static const size_t starts[] = { 0, 4, 6 };
	const struct design d = { 6, 2, news, starts };
	/* the blocks are at 100 and 7, the new side is 2 more */
	double v[] = { 100, 102, 102, 100, 9, 7 };

	(void)state;
	check_same("weight", design_weight(&d), 1.5);
	design_centre(&d, v);
	check_same("centred", v[0], -1);
	check_same("centred", v[4], 1);
	check_same("difference", design_difference(&d, v), 2);
}

/* Blocks that have one side say how much runs differ, and nothing of the sides. */
static void one_sided_blocks(void **state)
{
	static const uint8_t news[] = { 1, 0, 1, 1, 0, 1, 0, 0, 0 };
	static const size_t starts[] = { 0, 1, 5, 7, 9 };
	const struct design d = { 9, 4, news, starts };
	double v[] = { 500, 100, 102, 102, 100, 9, 7, 50, 54 }, means[2];
	uint8_t dealt[9];
	struct design_walk w;
	size_t cnt = 0;

	(void)state;
	check_same("weight", design_weight(&d), 1.5);
	assert_int_equal(design_arrangements(&d), 12);
	design_means(&d, v, means);
	check_same("base", means[0], 69);
	check_same("new", means[1], 71);
	design_centre(&d, v);
	assert_true(v[0] == 0);
	check_same("centred", v[7], -2);
	check_same("difference", design_difference(&d, v), 2);
	design_walk__begin(&w, &d, 1, dealt);
	while (design_walk__next(&w)) {
		assert_true(dealt[0] == 1 && !dealt[7] && !dealt[8]);
		cnt++;
	}
	assert_int_equal(cnt, 12);
}

/* ---- maxT ---- */

/* The p-values of a set, by our implementation. */
static void test_set(const struct set *s, double *p)
{
	static double values[SET_HYPOTHESES][SET_RUNS];
	const double *w[SET_HYPOTHESES];
	double scale[SET_HYPOTHESES], critical;
	size_t starts[7];
	const struct design d = { (size_t)s->runs, (size_t)s->blocks, s->news, starts };
	const struct maxt t = { &d, (size_t)s->hypotheses, w, scale, 1, 0 };
	bool exact;

	for (int b = 0; b <= s->blocks; b++)
		starts[b] = (size_t)s->starts[b];
	for (int h = 0; h < s->hypotheses; h++) {
		double sq = 0;

		memcpy(values[h], s->values[h], sizeof(values[h]));
		design_centre(&d, values[h]);
		for (int r = 0; r < s->runs; r++)
			sq += values[h][r] * values[h][r];
		w[h] = values[h];
		scale[h] = sqrt(sq / (s->runs - s->blocks));
		check_close("statistic", design_difference(&d, w[h]) / scale[h], s->statistic[h],
			    1);
	}
	assert_int_equal(maxt_test(&t, 0.05, p, &critical, &exact), 0);
	assert_true(exact);
	/* what is at the critical point has a p-value of at most the level, if any arrangement can */
	for (int h = 0; h < s->hypotheses; h++)
		if (s->statistic[h] > critical + 1e-9)
			assert_true(p[h] <=
				    fmax(0.05, 1.0 / (double)design_arrangements(&d)) + EXACT);
}

static void stored_sets(void **state)
{
	double p[SET_HYPOTHESES];

	(void)state;
	for (size_t i = 0; i < SETS; i++) {
		test_set(&sets[i], p);
		for (int h = 0; h < sets[i].hypotheses; h++)
			check_close("p", p[h], sets[i].p[h], 1);
	}
}

/* A difference of 12 against 12 that no other arrangement has: the least p that draws can give; and
 * the other way around the largest. */
static void drawn_p(void **state)
{
	static const size_t starts[] = { 0, 24 };
	uint8_t news[24];
	const struct design d = { 24, 1, news, starts };
	double v[24], scale = 1, p, critical;
	const double *w = v;
	struct maxt t = { &d, 1, &w, &scale, 1, 3 };
	bool exact;

	(void)state;
	for (int i = 0; i < 24; i++) {
		news[i] = i % 2;
		v[i] = 10 * news[i] + i / 100.0;
	}
	design_centre(&d, v);
	assert_int_equal(maxt_test(&t, 0.05, &p, &critical, &exact), 0);
	assert_false(exact);
	check_same("p", p, 1.0 / (DESIGN_DRAWN + 1));
	t.sign = -1;
	assert_int_equal(maxt_test(&t, 0.05, &p, &critical, &exact), 0);
	check_same("p", p, 1);
}

static void holm(void **state)
{
	double p[] = { 0.04, 0.01, 0.03, 0.9 };

	(void)state;
	assert_int_equal(maxt_holm(p, 4), 0);
	check_same("second", p[1], 0.04);
	check_same("third", p[2], 0.09);
	/* 2 * 0.04 is less than the one before */
	check_same("first", p[0], 0.09);
	check_same("fourth", p[3], 0.9);
}

/* ---- variances ---- */

/* All are exactly as the prior has them: all is borrowed, and tau is found. */
static void all_borrowed(void **state)
{
	double v[20], n[20];
	struct moderated m;

	(void)state;
	for (int i = 0; i < 20; i++) {
		n[i] = 50 * (i + 1);
		v[i] = 2 * (0.001 * 0.001 + 1 / n[i]);
	}
	assert_int_equal(moderate(v, n, 20, 9, &m), 0);
	assert_true(isinf(m.prior_df));
	check_same("tau", m.tau, 0.001);
	for (int i = 0; i < 20; i++) {
		double ratio = v[i] / (0.001 * 0.001 + 1 / n[i]);

		/* the mean of a logarithm is below the logarithm of the mean */
		check_same("variance", ratio, 2 * exp(log(4.5) - stats_digamma(4.5)));
	}
}

/* Far more apart than chance has them: a part is borrowed, the order stays. */
static void part_borrowed(void **state)
{
	double v[20], before[20], n[20];
	struct moderated m;

	(void)state;
	for (int i = 0; i < 20; i++) {
		n[i] = 1000;
		before[i] = v[i] = pow(4, i % 5);
	}
	assert_int_equal(moderate(v, n, 20, 9, &m), 0);
	assert_true(m.prior_df > 0 && m.prior_df < 9);
	for (int i = 0; i < 20; i++) {
		double of_prior = m.factor * (m.tau * m.tau + 1e-3);

		check_same("variance", v[i],
			   (m.prior_df * of_prior + 9 * before[i]) / (m.prior_df + 9));
	}
}

static void too_few(void **state)
{
	double v[9], n[9], zero[12] = { 0 }, of_zero[12];
	struct moderated m;

	(void)state;
	for (int i = 0; i < 9; i++)
		v[i] = n[i] = i + 1;
	assert_int_equal(moderate(v, n, 9, 9, &m), 0);
	assert_true(m.prior_df == 0);
	for (int i = 0; i < 9; i++)
		assert_true(v[i] == i + 1);
	/* most do not vary at all */
	for (int i = 0; i < 12; i++)
		of_zero[i] = 10;
	assert_int_equal(moderate(zero, of_zero, 12, 9, &m), 0);
	assert_true(m.prior_df == 0 && zero[3] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(special_functions),
		cmocka_unit_test(distributions),
		cmocka_unit_test(outside),
		cmocka_unit_test(medians),
		cmocka_unit_test(all_arrangements),
		cmocka_unit_test(drawn_arrangements),
		cmocka_unit_test(too_many),
		cmocka_unit_test(differences),
		cmocka_unit_test(stored_sets),
		cmocka_unit_test(drawn_p),
		cmocka_unit_test(holm),
		cmocka_unit_test(all_borrowed),
		cmocka_unit_test(part_borrowed),
		cmocka_unit_test(too_few),
		cmocka_unit_test(one_sided_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
