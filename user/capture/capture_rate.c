// SPDX-License-Identifier: BSD-2-Clause
/*
 * Is the rate of CPU samples kept? The kernel does not tell of ticks that it leaves out: for
 * kernel.perf_event_max_sample_rate, and where a timer is due again before it has been served
 * (hrtimer_forward in perf_swevent_hrtimer). But it knows how much CPU time the programs had, whose share
 * of it the samples are. That time is read inside of the one in which samples are taken, so that it is
 * rather too short.
 */
#include <linux/types.h>

#include "base/util.h"
#include "capture/capture_parts.h"
#include "heap/cpu_time.h"
#include "kernel/cpus.h"
#include "kernel/epochs.h"

/* Are samples due for all that they run? The agent may take fewer, to keep its budget. */
static bool is_all_of_them(const struct capture_opts *o)
{
	return !o->tid_cnt && !o->cgroup && !o->comm && !o->user_only && !o->kernel_only &&
	       !o->windows_by_clock;
}

static uint64_t cpu_ns(struct capture *c)
{
	struct cpus_work work;

	if (!c->opts.all)
		return cpu_time__ns(c->cpu_time);
	return cpus_work(&work) ? 0 : work.task_ns;
}

void capture_rate_start(struct capture *c)
{
	if (c->kinds[BPFPROF_CPU] && is_all_of_them(&c->opts))
		c->cpu_from_ns = cpu_ns(c);
}

void capture_rate_stop(struct capture *c)
{
	uint64_t now;

	if (!c->kinds[BPFPROF_CPU] || !is_all_of_them(&c->opts))
		return;
	now = cpu_ns(c);
	c->cpu_ns = now > c->cpu_from_ns ? now - c->cpu_from_ns : 0;
}

void capture_rate_stats(struct capture *c, struct capture_stats *ret)
{
	struct bpfprof_stats stats;

	if (!c->cpu_ns || epochs__stats(c->session, BPFPROF_CPU, &stats))
		return;
	ret->target_cpu_ns = c->cpu_ns;
	ret->cpu_samples = stats.seen;
}
