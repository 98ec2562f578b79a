/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* A CPU's clock of the scheduler, how far it is from CLOCK_MONOTONIC, and its run queue. */
#ifndef SCHED_CPU_BPF_H
#define SCHED_CPU_BPF_H

#include "common.bpf.h"

/* ---- the time of a switch ---- */

static __always_inline struct sched_cpu *sched_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&bp_sched_cpus, &zero);
}

#define SCHED_CLOCK_MEASURE_NS 4000000
#define SCHED_CLOCK_VALID_NS 10000000
/* The two clocks drift by less than 2^-11 = 488 ppm; the kernel corrects CLOCK_MONOTONIC by at most
 * 500 (adjtimex(2)). */
#define SCHED_CLOCK_DRIFT 11

/* Measures how far CLOCK_MONOTONIC is from the scheduler's clock, which was just read as now. Too
 * far, if the CPU was taken away meanwhile, for an interrupt or from this machine: it can be no
 * further than the last result and the drift since. */
static __always_inline void measure_clock(struct sched_cpu *c, __u64 now)
{
	__s64 off = bpf_ktime_get_ns() - now,
	      most = c->off + (__s64)((now - c->measured) >> SCHED_CLOCK_DRIFT);

	c->off = c->measured && off > most ? most : off;
	c->measured = now;
}

/*
 * When the switch that is going on began, on CLOCK_MONOTONIC: from the clock that the scheduler has
 * read for it, for reading one takes a sixth of what a switch may cost. task leaves its CPU, in
 * favour of next, or is on it again, next: NULL. How far the clocks are apart is measured now and
 * then. A CPU that is about to be idle looks for work elsewhere between the two; there time is
 * plenty, too.
 */
static __always_inline __u64 switch_ns(struct task_struct *task, struct task_struct *next)
{
	struct sched_cpu *c;
	__u64 now;

	if (!bpf_core_field_exists(struct rq, clock) ||
	    !bpf_core_field_exists(struct sched_entity, cfs_rq) || (next && !next->pid))
		return bpf_ktime_get_ns();
	c = sched_cpu();
	if (!c)
		return bpf_ktime_get_ns();
	now = compat_have_task_btf() ? task->se.cfs_rq->rq->clock :
				       BPF_CORE_READ(task, se.cfs_rq, rq, clock);
	if (next && now - c->measured > SCHED_CLOCK_MEASURE_NS)
		measure_clock(c, now);
	return now - c->measured < SCHED_CLOCK_VALID_NS ? now + c->off : bpf_ktime_get_ns();
}

/* ---- the run queue ---- */

/* Of the CPU that a task is on, by an untrusted pointer: where a trusted one leads the verifier
 * looks up in all of the kernel's BTF, a ms for each. */
static __always_inline const struct rq *run_queue(struct task_struct *task)
{
	return compat_as_task((__u64)task)->se.cfs_rq->rq;
}

/* When the switch to task began, by the clock of the scheduler. 0: it was to the idle task, and the
 * CPU has been given something to do meanwhile. */
static __always_inline __u64 arrival_clock(const struct rq *rq, struct task_struct *task)
{
	return task->pid ? task->sched_info.last_arrival : rq->idle_stamp;
}

#endif
