// SPDX-License-Identifier: BSD-2-Clause
/* The probe of the CPU profile: a clock, or a counter of cycles, on every CPU. */
#include <linux/types.h>

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "kernel/perf_events.h"
#include "kernel/probes.h"
#include "kernel/session.h"

static void configure(struct session *s)
{
	bpf_program__set_autoload(session__skel(s)->progs.cpu_sample, true);
}

static struct perf_events *new_events(struct session *s)
{
	const struct session_opts *o = session__opts(s);
	struct perf_event_attr attr = {
		.type = o->hw_cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = o->hw_cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = o->frequency,
		.exclude_idle = 1,
	};

	return perf_events__new(session__skel(s)->progs.cpu_sample, &attr, "sampled");
}

static int arm(struct session *s, void **armed, char *err, size_t err_sz)
{
	int ret;

	if (!*armed)
		*armed = new_events(s);
	ret = *armed ? perf_events__sync(*armed, session__cpus_gone(s)) : -errno;
	if (ret == -EACCES || ret == -EPERM)
		snprintf(err, err_sz, "needs root or CAP_BPF+CAP_PERFMON (try sudo)");
	else if (session__opts(s)->hw_cycles && (ret == -ENOENT || ret == -EOPNOTSUPP))
		snprintf(err, err_sz, "this machine has no cycle counter (use --event cpu-clock)");
	else if (ret)
		snprintf(err, err_sz, "cannot open a sampling event on any CPU: %s",
			 strerror(-ret));
	return ret;
}

static void disarm(void *armed)
{
	perf_events__free(armed);
}

const struct probe probe_cpu = { .configure = configure, .arm = arm, .disarm = disarm };
