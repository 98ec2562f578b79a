// SPDX-License-Identifier: BSD-2-Clause
/* When probes are attached, so that they cost no more than they may, and what they have seen then.
 */
#include "budget.h"

#include "base/util.h"

#define CHECK_NS 20000000ULL /* while they are attached all the time */
#define NEWS 0.05	     /* share of the newest slice in the means, once there are enough */
#define OWN_MIN                                                                          \
	0.02 /* of the CPU time is the programs' own, whatever the hits are said to cost \
	      */

/* xorshift64* (Vigna 2016): in [0, 1) */
static double even(struct budget *b)
{
	b->random ^= b->random >> 12;
	b->random ^= b->random << 25;
	b->random ^= b->random >> 27;
	return (b->random * 0x2545f4914f6cdd1dULL >> 11) * 0x1p-53;
}

/* Returns the programs' own CPU time since the last look. */
static double look(struct budget *b, const struct budget_figures *f, double *ret_cost)
{
	double cost = f->cost_ns - b->last.cost_ns, cpu = f->cpu_ns - b->last.cpu_ns;
	double own = MAX(cpu - cost, OWN_MIN * cpu), edge = f->edge_ns - b->last.edge_ns;

	b->last = *f;
	b->edges += edge;
	b->credit = MIN(b->credit + b->share * cpu - cost - edge, BUDGET_CREDIT_NS);
	*ret_cost = cost;
	return own;
}

void budget__start(struct budget *b, double share, uint64_t seed, const struct budget_figures *f)
{
	*b = (struct budget){
		.share = share,
		.state = BUDGET_FULL,
		.next_ns = share < 1 ? f->now_ns + CHECK_NS : UINT64_MAX,
		.last = *f,
		.since_ns = f->now_ns,
		.credit = BUDGET_CREDIT_NS,
		.random = seed,
	};
}

double budget__sliced(const struct budget *b)
{
	return MAX(BUDGET_SLICED * b->share, MIN(BUDGET_SLICED_MAX * b->share, BUDGET_SLICED_CPU));
}

/* The mean distance of slices, in ns: the cost of one, shared out over all the time that it stands
 * for; early excess is paid back. */
static double mean_gap(const struct budget *b)
{
	double mean = BUDGET_MAX_GAP_NS;

	if (b->rate > 0)
		mean = (b->cost - MIN(b->credit, 0) * NEWS) / budget__sliced(b) / b->rate -
		       BUDGET_SLICE_NS;
	return MIN(MAX(mean, (double)BUDGET_MIN_GAP_NS), (double)BUDGET_MAX_GAP_NS);
}

static void go_off(struct budget *b, uint64_t now_ns)
{
	/* the first part ends where much is allocated: it is to stand for little more than itself
	 */
	if (b->state == BUDGET_FULL)
		b->mean_gap = BUDGET_MIN_GAP_NS;
	b->next_ns = now_ns + (uint64_t)(b->mean_gap * (0.5 + even(b)));
	b->mean_gap = mean_gap(b);
	b->on_ns += now_ns - b->since_ns;
	b->since_ns = now_ns;
	b->state = BUDGET_OFF;
	b->gap = 0;
}

/* What a slice costs, with the hits while it is attached and detached. The first part, of ns, is
 * taken as some slices. */
static void learn(struct budget *b, double cost, uint64_t ns)
{
	if (b->state == BUDGET_FULL)
		b->cost = cost * BUDGET_SLICE_NS / MAX(ns, 1ULL);
	else
		b->cost += MAX(NEWS, 1.0 / ++b->slices) * (cost + b->edges - b->cost);
	b->edges = 0;
}

enum budget_state budget__check(struct budget *b, const struct budget_figures *f)
{
	double cost, own;
	uint64_t ns;

	if (f->now_ns < b->next_ns)
		return b->state;
	ns = f->now_ns - b->last.now_ns;
	own = look(b, f, &cost);
	if (b->state == BUDGET_OFF) {
		b->gap += own;
		b->edges += cost;
		b->rate += NEWS * (own / MAX(ns, 1ULL) - b->rate);
		b->state = BUDGET_ON;
		return b->state;
	}
	b->seen += own;
	b->slice_cost += cost;
	b->slice_own += own;
	learn(b, cost, ns);
	/* what it would have been without probes */
	if (b->state == BUDGET_FULL)
		b->rate = (own + cost) / MAX(ns, 1ULL);
	if (b->state == BUDGET_ON || b->credit < 0)
		go_off(b, f->now_ns);
	else
		b->next_ns = f->now_ns + CHECK_NS;
	return b->state;
}

double budget__attached(struct budget *b, const struct budget_figures *f)
{
	double weight = 0, cost;

	b->gap += look(b, f, &cost);
	b->edges += cost;
	b->since_ns = f->now_ns;
	b->next_ns = f->now_ns + BUDGET_SLICE_NS;
	if (b->seen < BUDGET_MIN_OWN_NS) {
		b->unseen += b->gap;
		return 0;
	}
	weight = (b->seen + b->unseen + b->gap / 2) / b->seen;
	b->seen = 0;
	b->unseen = b->gap / 2;
	return weight;
}

double budget__stop(struct budget *b, const struct budget_figures *f)
{
	double cost, own = look(b, f, &cost);

	if (b->state == BUDGET_OFF) {
		b->unseen += b->gap + own;
	} else {
		b->seen += own;
		b->on_ns += f->now_ns - b->since_ns;
	}
	if (b->state == BUDGET_FULL)
		return 1;
	/* a last moment is not to stand for everything before it */
	return (b->seen + b->unseen) / MAX(b->seen, BUDGET_MIN_OWN_NS);
}
