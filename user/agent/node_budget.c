/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/node_budget.h"

#include "base/util.h"

/* Parts of the limits. A step before at most twice as much is done, which takes at most twice the CPU time. Most of
 * the memory is there whatever is done: where it does not hold with this margin, the patience keeps the step from
 * swinging. */
#define CPU_ROOM 0.5
#define MEMORY_ROOM 0.9

static bool exceeds(const struct node_budget *b, double cpu, uint64_t memory, double cpu_part,
		    double memory_part)
{
	return (b->max_cpu > 0 && cpu > cpu_part * b->max_cpu) ||
	       (b->max_memory && (double)memory > memory_part * (double)b->max_memory);
}

static bool go_on(struct node_budget *b)
{
	b->above = b->below = 0;
	if (b->step + 1 == NODE_BUDGET_STEPS)
		return false;
	/* it came back too early: next time it waits longer */
	if (b->came_back)
		b->patience *= 2;
	b->patience = MIN(MAX(b->patience, NODE_BUDGET_CALM), NODE_BUDGET_CALM_MAX);
	b->came_back = false;
	b->step++;
	return true;
}

static bool go_back(struct node_budget *b)
{
	b->above = b->below = 0;
	b->came_back = true;
	b->step--;
	return true;
}

bool node_budget__window(struct node_budget *b, double cpu, uint64_t memory)
{
	if (b->windows++ < NODE_BUDGET_SETTLE)
		return false;
	b->above = exceeds(b, cpu, memory, 1, 1) ? b->above + 1 : 0;
	b->below = exceeds(b, cpu, memory, CPU_ROOM, MEMORY_ROOM) ? 0 : b->below + 1;
	if (b->above >= NODE_BUDGET_ABOVE)
		return go_on(b);
	if (b->step && b->below >= b->patience)
		return go_back(b);
	/* what was above was long ago */
	if (!b->step && b->below >= NODE_BUDGET_CALM_MAX)
		b->patience = 0;
	return false;
}

uint32_t node_budget_cpu_every(enum node_budget_step step)
{
	return 1U << MIN(step, NODE_BUDGET_EIGHTH);
}
