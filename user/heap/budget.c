// SPDX-License-Identifier: BSD-2-Clause
/* When probes are attached, so that they cost no more than they may, and what they have seen then.
 */
#include "heap/budget.h"

#include <string.h>

#include "base/util.h"

#define CHECK_NS 20000000ULL /* while they are attached all the time */
#define NEWS 0.05	     /* share of the newest slice in the means, once there are enough */
/* of the CPU time is the programs' own, whatever the hits are said to cost */
#define OWN_MIN 0.02

/* xorshift64* (Vigna 2016): in [0, 1) */
static double even(struct budget *b)
{
	b->random ^= b->random >> 12;
	b->random ^= b->random << 25;
	b->random ^= b->random >> 27;
	return (b->random * 0x2545f4914f6cdd1dULL >> 11) * 0x1p-53;
}

static double cost_of(const struct budget_time *t, double factor)
{
	return factor * t->hits + t->record;
}

/* What the share has to do for. */
static double spent_of(const struct budget_time *t, double factor)
{
	return cost_of(t, factor) + t->others;
}

/* The programs' own part. */
static double own_of(const struct budget_time *t, double factor)
{
	return MAX(t->cpu - cost_of(t, factor), OWN_MIN * t->cpu);
}

static struct budget_time sum(const struct budget_time *a, const struct budget_time *b, int sign)
{
	return (struct budget_time){ .cpu = a->cpu + sign * b->cpu,
				     .hits = a->hits + sign * b->hits,
				     .record = a->record + sign * b->record,
				     .others = a->others + sign * b->others,
				     .calls = a->calls + sign * b->calls };
}

/* Returns what there has been since the last look. */
static struct budget_time look(struct budget *b, const struct budget_figures *f)
{
	struct budget_time ret = sum(&f->so_far, &b->last.so_far, -1);
	double edge = f->edge_ns - b->last.edge_ns;

	b->last = *f;
	b->edges += edge;
	b->credit = MIN(b->credit + b->share * ret.cpu - spent_of(&ret, f->factor) - edge,
			BUDGET_CREDIT_NS);
	return ret;
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

void budget__resume(struct budget *b, const struct budget_figures *f)
{
	const struct budget before = *b;

	budget__start(b, before.share, before.random, f);
	b->on_ns = before.on_ns;
	b->attached = before.attached;
	memcpy(b->first, before.first, sizeof(b->first));
	b->all = before.all;
}

double budget__sliced(const struct budget *b)
{
	return MAX(BUDGET_SLICED * b->share, MIN(BUDGET_SLICED_MAX * b->share, BUDGET_SLICED_CPU));
}

double budget__hit_share(const struct budget *b, double factor)
{
	const struct budget_time *t = &b->attached;

	return t->cpu > 0 ? 1 - own_of(t, factor) / t->cpu : 0;
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
	if (b->state == BUDGET_FULL) {
		b->cost = cost * BUDGET_SLICE_NS / MAX(ns, 1ULL);
	} else {
		b->slices++;
		b->cost += MAX(NEWS, 1.0 / b->slices) * (cost + b->edges - b->cost);
	}
	b->edges = 0;
}

enum budget_state budget__check(struct budget *b, const struct budget_figures *f)
{
	struct budget_time t;
	double spent, own;
	uint64_t ns;

	if (f->now_ns < b->next_ns)
		return b->state;
	ns = f->now_ns - b->last.now_ns;
	t = look(b, f);
	spent = spent_of(&t, f->factor);
	own = own_of(&t, f->factor);
	if (b->state == BUDGET_OFF) {
		b->gap += own;
		b->edges += spent;
		b->rate += NEWS * (own / MAX(ns, 1ULL) - b->rate);
		b->state = BUDGET_ON;
		return b->state;
	}
	b->pending = sum(&b->pending, &t, 1);
	b->attached = sum(&b->attached, &t, 1);
	learn(b, spent, ns);
	/* what it would have been without probes */
	if (b->state == BUDGET_FULL)
		b->rate = (own + cost_of(&t, f->factor)) / MAX(ns, 1ULL);
	if (b->state == BUDGET_ON || b->credit < 0)
		go_off(b, f->now_ns);
	else
		b->next_ns = f->now_ns + CHECK_NS;
	return b->state;
}

static double weight_of(const struct budget_observation *s, double factor)
{
	double own = own_of(&s->observed, factor);

	/* a last moment is not to stand for everything before it */
	return (own + s->unobserved_ns) / MAX(own, BUDGET_MIN_OWN_NS);
}

/* What was seen until now stands for itself and for so much more. Returns its weight. */
static double weigh(struct budget *b, double unobserved_ns, double factor)
{
	struct budget_observation s = { .observed = b->pending, .unobserved_ns = unobserved_ns };

	s.weight = weight_of(&s, factor);
	if (b->all.observation_cnt < BUDGET_REVISED)
		b->first[b->all.observation_cnt] = s;
	b->all.observation_cnt++;
	b->all.calls += s.observed.calls * s.weight;
	b->pending = (struct budget_time){ 0 };
	return s.weight;
}

double budget__attached(struct budget *b, const struct budget_figures *f)
{
	struct budget_time t = look(b, f);
	double weight;

	b->gap += own_of(&t, f->factor);
	b->edges += spent_of(&t, f->factor);
	b->since_ns = f->now_ns;
	b->next_ns = f->now_ns + BUDGET_SLICE_NS;
	if (own_of(&b->pending, f->factor) < BUDGET_MIN_OWN_NS) {
		b->pending_unobserved_ns += b->gap;
		return 0;
	}
	weight = weigh(b, b->pending_unobserved_ns + b->gap / 2, f->factor);
	b->pending_unobserved_ns = b->gap / 2;
	return weight;
}

/* Looks at the last moment of a part. */
static void end_part(struct budget *b, const struct budget_figures *f)
{
	struct budget_time t = look(b, f);

	if (b->state == BUDGET_OFF) {
		b->pending_unobserved_ns += b->gap + own_of(&t, f->factor);
		b->gap = 0;
		b->edges += spent_of(&t, f->factor);
		return;
	}
	b->pending = sum(&b->pending, &t, 1);
	b->attached = sum(&b->attached, &t, 1);
	b->on_ns += f->now_ns - b->since_ns;
	b->since_ns = f->now_ns;
}

double budget__stop(struct budget *b, const struct budget_figures *f)
{
	end_part(b, f);
	return b->state == BUDGET_FULL ? 1 : weigh(b, b->pending_unobserved_ns, f->factor);
}

double budget__part(struct budget *b, const struct budget_figures *f)
{
	double weight;

	end_part(b, f);
	if (b->state == BUDGET_FULL) {
		b->all.calls += b->pending.calls;
		b->pending = (struct budget_time){ 0 };
		return 1;
	}
	if (own_of(&b->pending, f->factor) <= 0)
		return 1;
	weight = weigh(b, b->pending_unobserved_ns, f->factor);
	b->pending_unobserved_ns = 0;
	return weight;
}

double budget__revision(const struct budget *b, const struct budget_mark *from,
			const struct budget_mark *to, double factor)
{
	double weighed = to->calls - from->calls, calls = weighed;

	for (uint32_t i = from->observation_cnt;
	     i < MIN(to->observation_cnt, (uint32_t)BUDGET_REVISED); i++) {
		const struct budget_observation *s = &b->first[i];

		calls += s->observed.calls * (weight_of(s, factor) - s->weight);
	}
	return weighed > 0 ? calls / weighed : 1;
}
