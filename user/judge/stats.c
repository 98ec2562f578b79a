// SPDX-License-Identifier: BSD-2-Clause
#include "judge/stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/util.h"

#define ASYMPTOTIC 12.0 /* from here on the series below have converged to 1e-16 */
#define BISECTIONS 200	/* enough for any double: it ends where nothing lies between the ends */
#define BETA_TERMS 20000
#define BETA_TINY 1e-300

/* ---- gamma ---- */

double stats_digamma(double x)
{
	/* -B(2k)/2k, k = 1..7 */
	static const double c[] = { -1 / 12.0,	1 / 120.0,     -1 / 252.0, 1 / 240.0,
				    -1 / 132.0, 691 / 32760.0, -1 / 12.0 };
	double below = 0, sum = 0, r;

	if (!(x > 0))
		return NAN;
	for (; x < ASYMPTOTIC; x++)
		below -= 1 / x;
	r = 1 / (x * x);
	for (size_t k = ARRAY_SIZE(c); k--;)
		sum = r * (c[k] + sum);
	return below + log(x) - 0.5 / x + sum;
}

double stats_trigamma(double x)
{
	/* B(2k), k = 1..7 */
	static const double b[] = { 1 / 6.0,  -1 / 30.0,     1 / 42.0, -1 / 30.0,
				    5 / 66.0, -691 / 2730.0, 7 / 6.0 };
	double below = 0, sum = 0, r;

	if (!(x > 0))
		return NAN;
	for (; x < ASYMPTOTIC; x++)
		below += 1 / (x * x);
	r = 1 / (x * x);
	for (size_t k = ARRAY_SIZE(b); k--;)
		sum = r * (b[k] + sum);
	return below + (1 + 0.5 / x + sum) / x;
}

/* Where a falling function has the value y: between lo and hi, by halves. */
static double invert(double (*f)(double x, double ctx), double ctx, double y, double lo, double hi)
{
	double mid = lo;

	for (int i = 0; i < BISECTIONS; i++) {
		mid = lo + (hi - lo) / 2;
		if (mid <= lo || mid >= hi)
			break;
		if (f(mid, ctx) > y)
			lo = mid;
		else
			hi = mid;
	}
	return mid;
}

static double trigamma_of(double x, double ctx)
{
	(void)ctx;
	return stats_trigamma(x);
}

double stats_trigamma_inverse(double y)
{
	if (!(y > 0) || isinf(y))
		return NAN;
	/* 1/x < psi'(x) < 1/x + 1/x^2, which is below 2 max(1/x, 1/x^2) */
	return invert(trigamma_of, 0, y, fmin(1 / y, sqrt(1 / y)), fmax(2 / y, sqrt(2 / y)));
}

/* ---- beta ---- */

/* log(n!) less Stirling's formula: Loader's delta */
static double stirling_rest(double n)
{
	double r = 1 / (n * n);

	if (n < 16)
		return lgamma(n + 1) - (n + 0.5) * log(n) + n - 0.5 * log(2 * M_PI);
	return (1 / 12.0 - r * (1 / 360.0 - r * (1 / 1260.0 - r * (1 / 1680.0 - r / 1188)))) / n;
}

/* x log(x/m) + m - x, without cancellation: Loader's D0 */
static double deviance(double x, double m)
{
	double v = (x - m) / (x + m), s, term = 2 * x * v, next;

	if (fabs(x - m) > 0.1 * (x + m))
		return x * log(x / m) + m - x;
	s = (x - m) * v;
	for (int j = 1; j < 1000; j++) {
		term *= v * v;
		next = s + term / (2 * j + 1);
		if (next == s)
			break;
		s = next;
	}
	return s;
}

/* x^a y^b / B(a, b) */
static double beta_front(double a, double b, double x, double y)
{
	double n = a + b;

	return exp(stirling_rest(n) - stirling_rest(a) - stirling_rest(b) - deviance(a, n * x) -
		   deviance(b, n * y)) *
	       sqrt(a * b / (2 * M_PI * n));
}

/* The continued fraction of DLMF 8.17.22, by Lentz's method (DLMF 3.10(iii)). */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < BETA_TINY ? BETA_TINY : d);
	f = d;
	for (int m = 1; m < BETA_TERMS; m++) {
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));

		for (int i = 0; i < 2; i++) {
			double e = i ? odd : even;

			d = 1 + e * d;
			d = 1 / (fabs(d) < BETA_TINY ? BETA_TINY : d);
			c = 1 + e / c;
			c = fabs(c) < BETA_TINY ? BETA_TINY : c;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1) < 1e-16)
			break;
	}
	return f;
}

double stats_beta(double a, double b, double x, double y)
{
	if (!(a > 0 && b > 0 && x >= 0 && y >= 0) || isinf(a) || isinf(b))
		return NAN;
	if (x == 0 || y == 0)
		return x == 0 ? 0 : 1;
	/* where the fraction converges fast */
	if (x < (a + 1) / (a + b + 2))
		return beta_front(a, b, x, y) * beta_fraction(a, b, x) / a;
	return 1 - beta_front(b, a, y, x) * beta_fraction(b, a, y) / b;
}

/* ---- distributions ---- */

double stats_t_upper(double t, double df)
{
	double tail, sq = t * t;

	if (isnan(t) || !(df > 0))
		return NAN;
	if (isinf(df))
		return 0.5 * erfc(t / M_SQRT2);
	tail = isinf(sq) ? 0 : 0.5 * stats_beta(df / 2, 0.5, df / (df + sq), sq / (df + sq));
	return t < 0 ? 1 - tail : tail;
}

double stats_t_quantile(double p, double df)
{
	double hi = 1;

	if (!(p > 0 && p < 1 && df > 0))
		return NAN;
	if (p > 0.5)
		return -stats_t_quantile(1 - p, df);
	while (stats_t_upper(hi, df) > p)
		hi *= 2;
	return p == 0.5 ? 0 : invert(stats_t_upper, df, p, 0, hi);
}

double stats_binomial_upper(uint64_t k, uint64_t n, double p)
{
	if (!(p >= 0 && p <= 1))
		return NAN;
	if (!k)
		return 1;
	return k > n ? 0 : stats_beta((double)k, (double)(n - k) + 1, p, 1 - p);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_median(double *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), compare);
	return cnt % 2 ? values[cnt / 2] : (values[cnt / 2 - 1] + values[cnt / 2]) / 2;
}

double stats_variation(const double *values, size_t cnt)
{
	double mean = 0, sq = 0;

	for (size_t i = 0; i < cnt; i++)
		mean += values[i] / (double)cnt;
	for (size_t i = 0; i < cnt; i++)
		sq += (values[i] - mean) * (values[i] - mean);
	return sqrt(sq / (double)(cnt - 1)) / mean;
}
