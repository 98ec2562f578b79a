/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The special functions and distributions that the judge needs. Relative error at most 1e-12 where
 * nothing else is said. Arguments outside of the range give NAN.
 *
 * Sources: NIST Digital Library of Mathematical Functions (DLMF), by section; C. Loader, Fast and
 * Accurate Computation of Binomial Probabilities (2000).
 */
#ifndef JUDGE_STATS_H
#define JUDGE_STATS_H

#include <stddef.h>
#include <stdint.h>

/* psi(x) and psi'(x), x > 0: DLMF 5.11.2, 5.15.8. digamma: absolute error, it has a zero. */
double stats_digamma(double x);
double stats_trigamma(double x);
/* x with psi'(x) = y, 0 < y < INFINITY */
double stats_trigamma_inverse(double y);

/* The regularized incomplete beta function I_x(a, b), DLMF 8.17; a, b > 0, y = 1 - x, both given
 * since the smaller one tells more. */
double stats_beta(double a, double b, double x, double y);

/* P(T > t) of Student's t with df degrees of freedom, above 0; INFINITY: the normal distribution */
double stats_t_upper(double t, double df);
/* t with P(T > t) = p, 0 < p < 1 */
double stats_t_quantile(double p, double df);

/* P(X >= k) of n trials of probability p in 0..1 */
double stats_binomial_upper(uint64_t k, uint64_t n, double p);

/* Standard deviation of cnt >= 2 values, as a share of their mean. */
double stats_variation(const double *values, size_t cnt);

/* Of cnt >= 1 values, which it sorts. The mean of the middle two if cnt is even. */
double stats_median(double *values, size_t cnt);

#endif
