// SPDX-License-Identifier: BSD-2-Clause
/* What waits cost in a recording, and how many of them are recorded for that. */
#include <linux/types.h>

#include "base/util.h"
#include "heap/cpu_time.h"
#include "kernel/cpus.h"
#include "kernel/probe_waits.h"
#include "kernel/epochs.h"
#include "kernel/session.h"
#include "kinds.h"
#include "options.h"
#include "record/run_parts.h"

#define FIRST_NS 2000 /* of a sample, while none has been timed */
#define AROUND_NS 500 /* the same, outside of what is timed: to find the wait and its futex */
/* A program at a context switch, nearly all of it to get there and back: 20 to 140 have been
 * measured. */
#define SWITCH_NS 100
#define FIRST_LOOK_NS (NSEC_PER_SEC / 10)

static void add_cost(const struct run *r, enum bpfprof_kind kind, struct wait_cost *c)
{
	struct bpfprof_stats now;
	uint64_t samples;

	if (epochs__stats(r->session, kind, &now))
		return;
	/* what a full ring has lost has been taken, too */
	samples = now.recorded + now.lost[BPFPROF_LOST_ring_full];
	if (now.timed > c->timed)
		c->mean_ns = (double)(now.timed_ns - c->timed_ns) / (now.timed - c->timed);
	c->ns += (samples - c->samples) * ((c->mean_ns > 0 ? c->mean_ns : FIRST_NS) + AROUND_NS);
	c->samples = samples;
	c->timed = now.timed;
	c->timed_ns = now.timed_ns;
}

/* Once a second: see cpus_work. */
static double switch_share(struct run *r, uint64_t now)
{
	struct switch_cost *c = &r->switch_cost;
	struct cpus_work work;
	uint64_t ns;

	if (now < c->next_ns)
		return c->share;
	c->next_ns = now + (c->known ? NSEC_PER_SEC : FIRST_LOOK_NS);
	if (cpus_work(&work))
		return c->share;
	ns = (work.switches - c->work.switches) * SWITCH_NS *
	     probe_waits__switch_programs(r->waits);
	if (c->known && work.busy_ns > c->work.busy_ns)
		c->share = MIN((double)ns / (work.busy_ns - c->work.busy_ns), 1);
	c->work = work;
	c->known = true;
	return c->share;
}

static struct wait_budget_figures figures(struct run *r)
{
	struct wait_budget_figures ret = { .now_ns = util_monotonic_ns() };

	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (!r->kinds[i] || !kinds[i].waits)
			continue;
		add_cost(r, i, &r->wait_costs[i]);
		ret.cost_ns += (uint64_t)r->wait_costs[i].ns;
	}
	ret.cpu_ns = cpu_time__ns(r->cpu_time);
	ret.switch_share = switch_share(r, ret.now_ns);
	return ret;
}

static bool have_waits(const struct run *r)
{
	return r->kinds[BPFPROF_BLOCK] || r->kinds[BPFPROF_MUTEX] || r->kinds[BPFPROF_OFFCPU];
}

int run_waits_start(struct run *r)
{
	struct wait_budget_figures f;

	if (!r->waits)
		return 0;
	if (have_waits(r)) {
		f = figures(r);
		wait_budget__start(&r->wait_budget, r->opts->wait_budget / 100,
				   r->opts->wait_rate_ns, &f);
		probe_waits__set_rate(r->waits, r->wait_budget.rate_ns);
	}
	return probe_waits__start(r->waits, r->armed_ns);
}

void run_waits_tick(struct run *r)
{
	struct wait_budget_figures f;

	if (!r->waits)
		return;
	probe_waits__sync_clock(r->waits);
	if (!have_waits(r))
		return;
	f = figures(r);
	probe_waits__set_rate(r->waits, wait_budget__check(&r->wait_budget, &f));
}
