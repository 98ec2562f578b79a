/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps what waits cost the profiled programs within a share of their CPU time, or of one CPU where
 * they use less, since programs that mostly wait use little. Two things cost: the programs at each
 * context switch, whose cost is fixed, and recording a wait. Recording may take what the switches
 * leave of the share, and a quarter of it in any case.
 *
 * A multiplicative controller: it adapts the sampling threshold (the rate), below which a wait is
 * recorded with probability length / rate and then stands for rate / length waits, so that the
 * measured cost converges to the budget. How long waits will be is not known before. Sums stay
 * unbiased whatever the rate is, since it does not depend on the wait that is looked at.
 *
 * The share is a credit, with room for a burst; as long as it lasts, all waits are recorded. Pure:
 * the figures come from the caller.
 */
#ifndef WAIT_BUDGET_H
#define WAIT_BUDGET_H

#include <stdint.h>

/* At first, and at most: a burst of some 8,000 waits. The debt is no larger either. */
#define WAIT_BUDGET_CREDIT_NS 20000000.0
#define WAIT_BUDGET_FIRST_NS 10000ULL /* the rate that is tried first */
#define WAIT_BUDGET_LEFT 0.25	      /* of the share, for recording in any case */
#define WAIT_BUDGET_MAX_NS UINT32_MAX /* that the programs in the kernel can work with */

/* At one moment: the clock; what recording waits has cost the programs so far, and their CPU time
 * so far, which includes it. All in ns, monotonic. And the share of what CPUs are busy that looking
 * at switches takes of late, 0..1: of the programs' time, as of everybody's. */
struct wait_budget_figures {
	uint64_t now_ns, cost_ns, cpu_ns;
	double switch_share;
};

struct wait_budget {
	double share;			 /* of CPU time or of one CPU, 0..1; 1: no limit */
	uint64_t least_ns;		 /* rate that is asked for in any case; 0: none */
	uint64_t rate_ns;		 /* now; 0: all are recorded */
	uint64_t limited_ns;		 /* how long it has been above least_ns */
	double rate_sum;		 /* of it, of ns of rate_ns then */
	double credit;			 /* ns of cost that may still be caused */
	struct wait_budget_figures last; /* at the last look */
};

void wait_budget__start(struct wait_budget *b, double share, uint64_t least_ns,
			const struct wait_budget_figures *f);
/* To be called some ten times a second. Returns rate_ns, as it is to be from now on. */
uint64_t wait_budget__check(struct wait_budget *b, const struct wait_budget_figures *f);

/* The mean rate of the time in which the budget has set one; else the one that was asked for. ns */
uint64_t wait_budget__mean_rate(const struct wait_budget *b);

#endif
