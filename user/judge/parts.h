/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of judge() share. */
#ifndef JUDGE_PARTS_H
#define JUDGE_PARTS_H

#include "judge/design.h"
#include "judge/judge.h"
#include "judge/stack_index.h"

/* A run's cost of a stack. */
struct stack_cost {
	uint32_t run;
	double value; /* in the metric's unit */
	double count; /* samples */
};

/* Costs of a metric, as matrices: of each function those of all runs. */
struct measure {
	const struct runs *runs;
	const struct stack_index *index;
	const struct judge_options *options;
	struct judge_metric *m;
	struct design design;
	double *totals; /* of each run, per operation, in the metric's unit */
	double *sums;	/* of each run: of what was sampled */
	double *halves; /* of each run: of half a sample */
	double *self, *cum;
	double *self_samples, *cum_samples; /* the same of samples, until there are rows */
	double *weights;		    /* of each stack: sum of its shares of the runs */
	size_t *starts;			    /* of each stack, into costs; one more */
	struct stack_cost *costs;
	size_t self_cnt;	    /* functions that have something in common */
	uint32_t *self_ids;	    /* of each the function */
	double *self_shares;	    /* of each its mean share */
	double *deviations;	    /* of each run and each: logarithm less the function's mean */
	uint32_t *sorted;	    /* of each run: the functions by that, the least first */
	double *scratch, *common;   /* for one function: run_cnt values */
	double *leaves, *leaves_in; /* of each function */
};

/* Fills ms and the rows of ms->m, whose metric is set: what is looked at, and its costs. Goes by no
 * label. 0, -EINVAL or -ENOMEM. */
int measure_fill(struct measure *ms, char *err, size_t err_sz);
void measure_done(struct measure *ms);

/* The rows of ms->m, once all costs are there. 0 or -ENOMEM. */
int measure_rows(struct measure *ms);

/* The metric that a gate is of; -1: there is none. */
int judge_gate_metric(const struct runs *runs, const struct judge_gate *g);

/* Per operation, of a value that was sampled in a run. */
double measure_cost(const struct measure *ms, size_t run, double value);

/* The column of the i-th run. */
const struct runs_column *measure_column(const struct measure *ms, size_t run);

/* Chooses the scale of the functions: with what all functions of a run have in common, or without it. */
int scale_choose(struct measure *ms);

/*
 * Logarithms of a cost of each run, less what the other functions of the run have in common, if functions
 * are judged so. `in`: the stacks that the cost is of: these are not the others. Where too little is
 * left, and if in is NULL, the logarithms are as they are. Returns whether they are relative.
 */
bool scale_logs(const struct measure *ms, const double *costs, const struct stack_set *in,
		double *z);

/* Has what gates name judged as it is, too, where functions are judged on the relative scale: rows behind the
 * total. 0 or -ENOMEM. */
int as_is_add(struct measure *ms);

/* Leaves one row of both, once there are verdicts. */
void as_is_merge(struct judge_metric *m);

/* The stacks that a row is of, which is not the total. */
struct stack_set measure_stacks(const struct measure *ms, const struct judge_row *row);

/* From logarithms to change and levels, with the variance of these alone. Fills w: centred. */
struct estimate {
	double change, variance, df, level[2];
};
struct estimate scale_estimate(const struct measure *ms, const double *z, double *w);

/* The p-values that one run a side of such samples allows; of others none. 0 or -ENOMEM. */
int by_chance_test(struct measure *ms);

/* Changes, intervals, p-values of all rows. 0 or -ENOMEM. */
int compare_rows(struct measure *ms, uint64_t seed);

/* Is the cost that this row has more somewhere else less? Sets what the row has of it. 0, 1: it is;
 * -ENOMEM. */
int moved_find(const struct measure *ms, struct judge_row *row);

/* Fills ms->m->health; before the rows are put in their order. 0 or -ENOMEM. */
int health_check(struct measure *ms);

/* Verdicts of all rows and of the metric. 0 or -ENOMEM. */
int verdict_rows(struct measure *ms);

#endif
