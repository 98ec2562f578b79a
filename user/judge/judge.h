/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says of the runs of two sides what got worse and whether that is real: bpfprof-diff(8) has the method
 * in words. The same input gives the same result.
 */
#ifndef JUDGE_JUDGE_H
#define JUDGE_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/names.h"
#include "judge/runs.h"

#define JUDGE_GATES_MAX 16
#define JUDGE_NONE SIZE_MAX
#define JUDGE_MANY 10000 /* runs more that are no number any longer */

/* What is to be caught: a true change of this size. */
struct judge_gate {
	char metric[64];	 /* "": the one that the files are of, "cpu" where it is there */
	char function[NAMES_SZ]; /* canonical; "": the total, and every function */
	double effect;		 /* above 0: 0.05 is 5 % more */
};

struct judge_options {
	struct judge_gate gates[JUDGE_GATES_MAX];
	size_t gate_cnt;   /* 0: 5 % of the metric that the files are of */
	double alpha;	   /* chance of a false alarm in the whole, 0 to 0.5 */
	double ok_share;   /* what this verdict has of the 5 % that OK may be wrong in, up to 1 */
	double min_share;  /* functions below this share of the total are left out */
	double min_effect; /* smaller changes of the total are none; twice that of a function */
	uint64_t seed;	   /* of the draws; 0: it follows from the input */
	const char *
		source_root; /* folder of the sources: paths in annotations are below it; or NULL */
};

#define JUDGE_DEFAULTS                                                               \
	{                                                                            \
		.alpha = 0.05, .ok_share = 1, .min_share = 0.005, .min_effect = 0.01 \
	}

enum judge_verdict {
	JUDGE_OK,
	JUDGE_IMPROVED,
	JUDGE_MOVED,
	JUDGE_CANNOT_TELL,
	JUDGE_REGRESSED,
};

enum judge_what {
	JUDGE_TOTAL,
	JUDGE_SELF, /* in the function itself */
	JUDGE_CUM,  /* with all that it calls */
};

/* One thing that is compared. Changes are of the logarithm: expm1() of them is the share. */
struct judge_row {
	enum judge_what what;
	uint32_t function;
	uint32_t *chain; /* callers of the same cost, which it stands for */
	size_t chain_cnt;
	double *costs;	  /* of each run, per operation, in the metric's unit */
	double *z;	  /* logarithms of them, on the scale that it is judged on */
	double *w;	  /* the same, centred */
	double samples;	  /* mean number in a run */
	double base, now; /* medians of the costs */
	double level[2];  /* of each side: exp of the mean of z */
	double change;	  /* on the scale that it is judged on */
	double absolute;  /* on the absolute scale */
	double low, high; /* of `change`, 90 %; NAN: one run a side tells none */
	double at_most;	  /* the same, what OK goes by: above `high` if it has a share of its 5 % */
	double error, df; /* standard error of `change`, its degrees of freedom */
	double detectable;   /* a `change` of this is found nine times out of ten; NAN: none is */
	double of_program;   /* what it costs more, as a share of the base's total */
	double p, p_better;  /* adjusted; NAN: not tested */
	double target;	     /* the gate's effect; 0: not gated */
	bool named;	     /* by a gate */
	double least;	     /* smaller estimates of `change` are no regression */
	bool relative;	     /* less what the others have in common */
	bool as_is;	     /* it is not, as a gate names it, though others are */
	bool exact;	     /* all runs of a side agree: the difference is one, without doubt */
	bool appeared, gone; /* one side has next to nothing of it */
	bool exact_differs;  /* of the sides */
	enum judge_verdict verdict;
	uint64_t more;	       /* for JUDGE_CANNOT_TELL: runs a side that are missing */
	uint32_t moved_from;   /* for JUDGE_MOVED: the function that lost it; UINT32_MAX: several */
	uint32_t moved_within; /* the function that holds both, UINT32_MAX: none */
	const char *moved_why;
	size_t because; /* the row that explains this one; JUDGE_NONE */
};

/* What the total's runs have that should not be there, one of these at most, as a change; NAN: nothing, or no
 * more than chance. */
struct judge_health {
	double first; /* the first run of a block costs so much more than the others */
	double trend; /* the last run costs so much more than the first */
	double humps; /* the runs fall into two groups, so far apart */
};

struct judge_metric {
	int metric;   /* of runs */
	size_t *runs; /* those that have it, in blocks; indices into runs->runs */
	uint8_t *news;
	size_t *starts;
	size_t run_cnt, block_cnt, cnt[2];
	bool gated, one_run;
	bool counted;	     /* nothing was sampled */
	bool exact_totals;   /* the costs' sum is known, not sampled */
	bool relative;	     /* functions are judged on the relative scale */
	double common_shift; /* of all functions together */
	bool common_changed; /* the same, by more than chance */
	bool confounded;     /* one side was recorded before the other one */
	bool cross_machine; /* runs are of different machines: only what is relative says something */
	bool model;	    /* too few arrangements: p-values are of a t-test */
	bool binomial;	    /* one run a side: p-values are of the numbers of samples */
	bool listed;	    /* all arrangements were looked at */
	uint64_t arrangements;
	double alpha, critical, least_p;
	double prior_df, tau;
	struct judge_health health; /* no verdict depends on it */
	struct judge_row *rows;	    /* the total, then functions, by verdict and impact */
	size_t row_cnt;
	enum judge_verdict verdict;
};

struct judge_result {
	const struct runs *runs;
	struct judge_options options;
	struct judge_metric *metrics;
	size_t metric_cnt;
	uint64_t seed;
	enum judge_verdict verdict; /* of the gated metrics */
};

/* *ret borrows from runs. 0; -EINVAL or -ENOMEM with a sentence in err. */
int judge(const struct runs *runs, const struct judge_options *options, struct judge_result **ret,
	  char *err, size_t err_sz);
void judge_free(struct judge_result *r);

/* Do all runs take the same time, and with busy_too keep the processor equally busy, without saying how much
 * they did? They may end by the clock; judge() refuses those that do both. */
bool judge_may_be_boxed(const struct runs *runs, bool busy_too);

/* Another name for a value type: that of the files. */
struct judge_alias {
	const char *name;
	const char *type;   /* which is meant */
	const char *beside; /* which has to be there, too */
};

/* NULL: it is none. */
const struct judge_alias *judge_find_alias(const char *name);

/* Is each function that a gate names in any of the runs, whatever it costs? 0; -EINVAL with a sentence in
 * err. */
int judge_check_functions(const struct runs *runs, const struct judge_options *options, char *err,
			  size_t err_sz);

const char *judge_verdict_name(enum judge_verdict v);

#endif
