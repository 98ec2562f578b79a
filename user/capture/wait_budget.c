// SPDX-License-Identifier: BSD-2-Clause
/* The rate that keeps what waits cost within a share of CPU time. */
#include "capture/wait_budget.h"

#include "base/util.h"

#define PAY_BACK 0.9  /* of what may be spent, while there is a debt */
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
	return rate;
}

/* Of the rates that the budget sets. */
static double lowest(const struct wait_budget *b)
{
	return MAX(b->least_ns + 1.0, WAIT_BUDGET_FIRST_NS / FAR);
}

/* A clock that goes back says nothing. */
static double since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

uint64_t wait_budget__check(struct wait_budget *b, const struct wait_budget_figures *f)
{
	double ns = since(f->now_ns, b->last.now_ns), spent = since(f->cost_ns, b->last.cost_ns);
	double cpu = since(f->cpu_ns, b->last.cpu_ns), all = b->share * MAX(cpu, ns);
	double may = MAX(all - f->switch_share * cpu, all * WAIT_BUDGET_LEFT);
	double rate = b->rate_ns;

	if (b->share >= 1 || ns <= 0)
		return b->rate_ns;
	b->last = *f;
	b->credit += may - spent;
	b->credit = MAX(MIN(b->credit, WAIT_BUDGET_CREDIT_NS), -WAIT_BUDGET_CREDIT_NS);
	if (b->rate_ns > b->least_ns) {
		b->limited_ns += ns;
		b->rate_sum += ns * b->rate_ns;
		rate = next_rate(rate, spent / (b->credit < 0 ? PAY_BACK * may : may));
		/* so low that it leaves out next to nothing */
		if (rate < lowest(b))
			rate = b->credit < 0 ? lowest(b) : b->least_ns;
	} else if (b->credit < 0) {
		rate = FAR * lowest(b);
	}
	b->rate_ns = MIN(rate, (double)WAIT_BUDGET_MAX_NS);
	return b->rate_ns;
}

uint64_t wait_budget__mean_rate(const struct wait_budget *b)
{
	return b->limited_ns ? b->rate_sum / b->limited_ns : b->least_ns;
}
