/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent may cost its node, and what it does without to keep that: from window to window, in
 * steps. Each step costs less than the one before, and takes more from the profiles. Decides alone;
 * knows no clock and no process.
 */
#ifndef AGENT_NODE_BUDGET_H
#define AGENT_NODE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum node_budget_step {
	NODE_BUDGET_ALL,     /* nothing is given up */
	NODE_BUDGET_HALF,    /* of the CPU samples every other one */
	NODE_BUDGET_QUARTER, /* one of 4 */
	NODE_BUDGET_EIGHTH,  /* one of 8 */
	NODE_BUDGET_PLAIN,   /* and no names of inlined functions, no lines */
	NODE_BUDGET_FEW,     /* and neither waits nor the heap, nor what is recorded of targets */
	NODE_BUDGET_STEPS,
};

struct node_budget {
	/* limits; 0: none */
	double max_cpu;	     /* share of all CPUs of the machine */
	uint64_t max_memory; /* bytes */
	/* state, all 0 at first */
	enum node_budget_step step;
	unsigned int windows; /* so far */
	unsigned int above;   /* windows in a row that cost more than they may */
	unsigned int below;   /* that cost so little that the step before would hold as well */
	unsigned int
		patience; /* of those it takes so many to go back; 0: nothing was given up lately */
	bool came_back;	  /* the last change of the step was one back */
};

/* The first windows have files to read that later ones know already. */
#define NODE_BUDGET_SETTLE 3
#define NODE_BUDGET_ABOVE 2 /* windows above, until more is given up */
#define NODE_BUDGET_CALM \
	6 /* windows below, until less is; twice as many each time it was too early */
#define NODE_BUDGET_CALM_MAX 96

/* A window has ended, which took this share of all CPUs' time, and in which so much memory was held.
 * Returns whether the step is another one now. */
bool node_budget__window(struct node_budget *b, double cpu, uint64_t memory);

/* Of so many CPU samples one is taken. */
uint32_t node_budget_cpu_every(enum node_budget_step step);

#endif
