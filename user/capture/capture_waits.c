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
/* At the whole machine */
#define FIRST_LOOK_NS (NSEC_PER_SEC / 10)
#define LOOK_NS NSEC_PER_SEC

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

/*
 * The kernel goes through all CPUs and interrupts for /proc/stat: 0.1 ms with two CPUs. So it is read more and
 * more seldom at first, then once in LOOK_NS.
 */
static void look_at_machine(struct capture *c, uint64_t now)
{
	struct machine_work *m = &c->machine;
	struct cpus_work work;
	uint64_t busy, ns;

	if (now < m->next_ns)
		return;
	m->next_ns = now + MIN(MAX(now - c->armed_ns, FIRST_LOOK_NS), LOOK_NS);
	if (cpus_work(&work))
		return;
	busy = work.busy_ns - MIN(m->work.busy_ns, work.busy_ns);
	ns = (work.switches - m->work.switches) * SWITCH_NS *
	     probe_waits__switch_programs(c->waits);
	if (m->look_ns && now > m->look_ns)
		m->cpus = (double)busy / (now - m->look_ns);
	if (m->look_ns && busy)
		m->switch_share = MIN((double)ns / busy, 1);
	m->look_ns = now;
	m->work = work;
}

/* Of all CPUs, so far. */
static uint64_t busy_ns(struct machine_work *m, uint64_t now)
{
	uint64_t since_look = (uint64_t)(m->cpus * (now - m->look_ns));

	return m->busy_ns = MAX(m->work.busy_ns + since_look, m->busy_ns);
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
	look_at_machine(c, ret.now_ns);
	ret.cpu_ns = c->opts.all ? busy_ns(&c->machine, ret.now_ns) : cpu_time__ns(c->cpu_time);
	ret.switch_share = c->machine.switch_share;
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
