// SPDX-License-Identifier: BSD-2-Clause
#include "judge/moderate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/stats.h"

#define TAU_MIN 0.001
#define TAU_MAX 0.25
#define TAU_STEPS 40

/* A variance that is 0 by chance has a logarithm that outweighs all others: limma's rule. */
#define FLOOR 1e-5

static double tau_of(int step)
{
	return step ? TAU_MIN * pow(TAU_MAX / TAU_MIN, (step - 1) / (TAU_STEPS - 1.0)) : 0;
}

static double prior(double tau, double samples)
{
	return tau * tau + 1 / samples;
}

/* Mean and variance of the logarithms' distance from the prior. */
static void distance(const double *logs, const double *samples, size_t cnt, double tau,
		     double *ret_mean, double *ret_variance)
{
	double mean = 0, sq = 0;

	for (size_t i = 0; i < cnt; i++)
		mean += logs[i] - log(prior(tau, samples[i]));
	mean /= (double)cnt;
	for (size_t i = 0; i < cnt; i++) {
		double e = logs[i] - log(prior(tau, samples[i])) - mean;

		sq += e * e;
	}
	*ret_mean = mean;
	*ret_variance = sq / (double)(cnt - 1);
}

int moderate(double *variances, const double *samples, size_t cnt, double df, struct moderated *ret)
{
	double best = INFINITY, mean = 0, m, v, least, *logs;

	*ret = (struct moderated){ 0 };
	if (cnt < MODERATE_MIN || !(df > 0))
		return 0;
	logs = malloc(cnt * sizeof(*logs));
	if (!logs)
		return -ENOMEM;
	memcpy(logs, variances, cnt * sizeof(*logs));
	least = FLOOR * stats_median(logs, cnt);
	if (!(least > 0)) {
		free(logs);
		return 0;
	}
	for (size_t i = 0; i < cnt; i++)
		logs[i] = log(fmax(variances[i], least)) - stats_digamma(df / 2) + log(df / 2);
	for (int step = 0; step <= TAU_STEPS; step++) {
		distance(logs, samples, cnt, tau_of(step), &m, &v);
		if (v < best) {
			best = v;
			mean = m;
			ret->tau = tau_of(step);
		}
	}
	free(logs);
	v = best - stats_trigamma(df / 2);
	ret->prior_df = v > 0 ? 2 * stats_trigamma_inverse(v) : INFINITY;
	ret->factor = exp(mean);
	if (isfinite(ret->prior_df))
		ret->factor *= exp(stats_digamma(ret->prior_df / 2) - log(ret->prior_df / 2));
	for (size_t i = 0; i < cnt; i++) {
		double of_prior = ret->factor * prior(ret->tau, samples[i]), d0 = ret->prior_df;

		variances[i] =
			isinf(d0) ? of_prior : (d0 * of_prior + df * variances[i]) / (d0 + df);
	}
	return 0;
}
