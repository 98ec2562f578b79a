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
#include "capture/capture_parts.h"

#define FIRST_NS 2000 /* of a sample, while none has been timed */
#define AROUND_NS 500 /* the same, outside of what is timed: to find the wait and its futex */
/* A program at a context switch, nearly all of it to get there and back: 20 to 140 have been
 * measured. */
#define SWITCH_NS 100
#define FIRST_LOOK_NS (NSEC_PER_SEC / 10)

static void add_cost(const struct capture *c, enum bpfprof_kind kind, struct wait_cost *cost)
{
	struct bpfprof_stats now;
	uint64_t samples;

	if (epochs__stats(c->session, kind, &now))
		return;
	/* what a full ring has lost has been taken, too */
	samples = now.recorded + now.lost[BPFPROF_LOST_ring_full];
	if (now.timed > cost->timed)
		cost->mean_ns = (double)(now.timed_ns - cost->timed_ns) / (now.timed - cost->timed);
	cost->ns += (samples - cost->samples) *
		    ((cost->mean_ns > 0 ? cost->mean_ns : FIRST_NS) + AROUND_NS);
	cost->samples = samples;
	cost->timed = now.timed;
	cost->timed_ns = now.timed_ns;
}

/* Once a second: see cpus_work. */
static double switch_share(struct capture *c, uint64_t now)
{
	struct switch_cost *cost = &c->switch_cost;
	struct cpus_work work;
	uint64_t ns;

	if (now < cost->next_ns)
		return cost->share;
	cost->next_ns = now + (cost->known ? NSEC_PER_SEC : FIRST_LOOK_NS);
	if (cpus_work(&work))
		return cost->share;
	ns = (work.switches - cost->work.switches) * SWITCH_NS *
	     probe_waits__switch_programs(c->waits);
	if (cost->known && work.busy_ns > cost->work.busy_ns)
		cost->share = MIN((double)ns / (work.busy_ns - cost->work.busy_ns), 1);
	cost->work = work;
	cost->known = true;
	return cost->share;
}

static struct wait_budget_figures figures(struct capture *c)
{
	struct wait_budget_figures ret = { .now_ns = util_monotonic_ns() };

	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (!c->kinds[i] || !kinds[i].waits)
			continue;
		add_cost(c, i, &c->wait_costs[i]);
		ret.cost_ns += (uint64_t)c->wait_costs[i].ns;
	}
	ret.cpu_ns = cpu_time__ns(c->cpu_time);
	ret.switch_share = switch_share(c, ret.now_ns);
	return ret;
}

static bool have_waits(const struct capture *c)
{
	return c->kinds[BPFPROF_BLOCK] || c->kinds[BPFPROF_MUTEX] || c->kinds[BPFPROF_OFFCPU];
}

int capture_waits_start(struct capture *c)
{
	struct wait_budget_figures f;

	if (!c->waits)
		return 0;
	if (have_waits(c)) {
		f = figures(c);
		wait_budget__start(&c->wait_budget, c->opts.wait_budget, c->opts.wait_rate_ns, &f);
		probe_waits__set_rate(c->waits, c->wait_budget.rate_ns);
	}
	return probe_waits__start(c->waits, c->armed_ns);
}

void capture_waits_tick(struct capture *c)
{
	struct wait_budget_figures f;

	if (!c->waits)
		return;
	probe_waits__sync_clock(c->waits);
	if (!have_waits(c))
		return;
	f = figures(c);
	probe_waits__set_rate(c->waits, wait_budget__check(&c->wait_budget, &f));
}
