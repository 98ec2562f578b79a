// SPDX-License-Identifier: BSD-2-Clause
/* The rate that keeps what waits cost within a share of CPU time. */
#include "wait_budget.h"

#include "base/util.h"

#define AIM 0.9	      /* of what may be spent, so that a debt is paid back */
#define STEP_UP 8.0   /* at most */
#define STEP_DOWN 0.5 /* at most */
#define FAR 2.0	      /* times too high: most waits may be longer than the rate, then more helps */

void wait_budget__start(struct wait_budget *b, double share, uint64_t least_ns,
			const struct wait_budget_figures *f)
{
	*b = (struct wait_budget){
		.share = share,
		.least_ns = least_ns,
		.rate_ns = least_ns,
		.credit = WAIT_BUDGET_CREDIT_NS,
		.last = *f,
	};
}

/* ratio: what is spent, in times of what is aimed at */
static double next_rate(double rate, double ratio)
{
	if (ratio > FAR)
		rate *= MIN(FAR * ratio, STEP_UP);
	else
		rate *= MAX(ratio, STEP_DOWN);
	return MIN(rate, (double)WAIT_BUDGET_MAX_NS);
}

uint64_t wait_budget__check(struct wait_budget *b, const struct wait_budget_figures *f)
{
	double ns = f->now_ns - b->last.now_ns, spent = f->cost_ns - b->last.cost_ns;
	double may = b->share * MAX((double)(f->cpu_ns - b->last.cpu_ns), ns);
	double rate = b->rate_ns;

	if (b->share >= 1 || ns <= 0)
		return b->rate_ns;
	b->last = *f;
	b->credit = MIN(b->credit + may - spent, WAIT_BUDGET_CREDIT_NS);
	if (b->rate_ns > b->least_ns) {
		b->limited_ns += ns;
		b->rate_sum += ns * b->rate_ns;
		rate = next_rate(rate, spent / (AIM * may));
		/* so that what is easily afforded is recorded whole again */
		if (rate < MAX(b->least_ns, WAIT_BUDGET_FIRST_NS) / 2.0)
			rate = b->least_ns;
	} else if (b->credit < 0) {
		rate = MAX(b->least_ns * FAR, (double)WAIT_BUDGET_FIRST_NS);
	}
	b->rate_ns = MIN(MAX(rate, b->least_ns), WAIT_BUDGET_MAX_NS);
	return b->rate_ns;
}

uint64_t wait_budget__mean_rate(const struct wait_budget *b)
{
	return b->limited_ns ? b->rate_sum / b->limited_ns : b->least_ns;
}
