// SPDX-License-Identifier: BSD-2-Clause
/* What waits cost in a recording, and how many of them are recorded for that. */
#include <linux/types.h>

#include "cpu_time.h"
#include "kernel/probe_waits.h"
#include "kernel/session.h"
#include "kinds.h"
#include "options.h"
#include "run_parts.h"

#include "base/util.h"

/* Of a wait that is recorded, outside of what is timed: to find it and the futex. */
#define AROUND_NS 500

uint64_t run_waits_cost_ns(const struct run *r, enum bpfprof_kind kind)
{
	struct bpfprof_stats stats;

	if (!kinds[kind].waits || session__stats(r->session, kind, &stats) || !stats.timed)
		return 0;
	return stats.recorded * ((double)stats.timed_ns / stats.timed + AROUND_NS);
}

static struct wait_budget_figures figures(const struct run *r)
{
	struct wait_budget_figures ret = { .now_ns = util_monotonic_ns() };

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i])
			ret.cost_ns += run_waits_cost_ns(r, i);
	ret.cpu_ns = cpu_time__ns(r->cpu_time);
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
