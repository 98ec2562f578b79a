/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variances that borrow from each other: a few runs tell little of the variance of one function, and
 * much of that of all. G. K. Smyth, Linear Models and Empirical Bayes Methods (2004), section 6, with
 * a prior that follows from how often a function was sampled.
 */
#ifndef JUDGE_MODERATE_H
#define JUDGE_MODERATE_H

#include <stddef.h>

#define MODERATE_MIN 10 /* variances that there have to be: fewer stay as they are */

struct moderated {
	double prior_df; /* 0: nothing was borrowed; INFINITY: all are as the prior has them */
	double tau;	 /* standard deviation between runs, of the logarithm */
	double factor;	 /* the prior is factor * (tau^2 + 1 / samples) */
};

/*
 * Replaces variances[cnt], of df degrees of freedom each, by moderated ones, of df + prior_df.
 * samples[cnt]: of each the mean number in a run, above 0. 0 or -ENOMEM.
 */
int moderate(double *variances, const double *samples, size_t cnt, double df,
	     struct moderated *ret);

#endif
