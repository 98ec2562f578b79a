/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The step-down maxT test: P. H. Westfall, S. S. Young, Resampling-Based Multiple Testing (1993). The
 * chance of one false alarm or more among all hypotheses is at most the level that the adjusted
 * p-values are compared with, however they depend on each other.
 */
#ifndef JUDGE_MAXT_H
#define JUDGE_MAXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/design.h"

struct maxt {
	const struct design *design;
	size_t cnt;		/* hypotheses */
	const double *const *w; /* of each its centred values, one for each run */
	const double *scale;	/* what its difference is divided by, above 0: the same for every
				   arrangement */
	double sign;		/* 1: large differences count; -1: small ones */
	uint64_t seed;
};

/*
 * Fills p[cnt], and in *ret_critical the (1 - level) point of the largest scaled difference over the
 * arrangements. *ret_exact: all arrangements were looked at, else those that were drawn and the
 * observed one. 0 or -ENOMEM.
 */
int maxt_test(const struct maxt *t, double level, double *p, double *ret_critical, bool *ret_exact);

/* Holm's adjustment of p[cnt], in place: S. Holm, A Simple Sequentially Rejective Multiple Test
 * Procedure (1979). 0 or -ENOMEM. */
int maxt_holm(double *p, size_t cnt);

#endif
