// SPDX-License-Identifier: BSD-2-Clause
/* What a capture can have of what was asked for: on this kernel, with these programs. */
#include <linux/types.h>

#include <errno.h>
#include <string.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/util.h"
#include "capture/capture_parts.h"
#include "kernel/features.h"
#include "kernel/probe_fds.h"
#include "kernel/probe_waits.h"
#include "kernel/sample_rate.h"
#include "kernel/uprobes.h"

static void choose_frequency(struct capture *c)
{
	uint32_t allowed = sample_rate__allowed();
	double percent;

	c->frequency = c->opts.frequency;
	if (!c->kinds[BPFPROF_CPU])
		return;
	if (c->frequency > allowed) {
		log_info(
			"%u Hz is above this kernel's limit: sampling at %u Hz "
			"(kernel.perf_event_max_sample_rate)",
			c->frequency, allowed);
		c->frequency = allowed;
	}
	if (c->opts.hw_cycles)
		return;
	c->clock_hz = sample_rate__take(c->frequency, &percent);
	if (c->clock_hz < c->frequency)
		log_info(
			"sampling at %u Hz instead of %u, with which it would take "
			"%.0f %% of each CPU (kernel.perf_cpu_time_max_percent)",
			c->clock_hz, c->frequency, percent);
	c->frequency = c->clock_hz;
}

/* By what the heap's probes, and those of operations, are attached. Takes the kind out where there is
 * nothing, unless it was named. */
static int choose_uprobes(struct capture *c)
{
	static const char *const names[] = { "session", "multi", "perf", "event" };
	enum uprobe_method best = UPROBES_SESSION;
	struct feature_result uprobes;

	c->uprobes = UPROBES_NONE;
	if (!c->kinds[BPFPROF_HEAP] && !c->kinds[BPFPROF_CUSTOM] && !c->opts.ops_probe)
		return 0;
	for (size_t i = 0; knobs.uprobes && i < ARRAY_SIZE(names); i++)
		if (!strcmp(knobs.uprobes, names[i]))
			best = (enum uprobe_method)i;
	c->uprobes = uprobes_probe(best);
	if (c->uprobes != UPROBES_NONE)
		return 0;
	if (c->opts.ops_probe) {
		log_error("cannot count operations: %s", uprobes_refused());
		return -ENOTSUP;
	}
	uprobes = features_probe(FEATURE_UPROBES);
	if (c->opts.kinds_given) {
		log_error("%s", uprobes.text);
		return -ENOTSUP;
	}
	log_info("%s", uprobes.text);
	c->kinds[BPFPROF_HEAP] = c->kinds[BPFPROF_CUSTOM] = false;
	return 0;
}

static bool ends_are_seen(const struct capture *c)
{
	if (c->waits_how.resume != WAITS_RESUME_NONE)
		return true;
	if (c->kinds[BPFPROF_OFFCPU])
		return false;
	return !c->kinds[BPFPROF_BLOCK] || c->waits_how.futex;
}

/* Takes out waits where their end cannot be seen, unless they were named. */
static int choose_waits(struct capture *c)
{
	static const char why[] = "this kernel has neither sched_exit_tp (6.15) nor kprobes";

	if (!c->kinds[BPFPROF_BLOCK] && !c->kinds[BPFPROF_MUTEX] && !c->kinds[BPFPROF_OFFCPU])
		return 0;
	waits_how__probe(&c->waits_how);
	if (ends_are_seen(c))
		return 0;
	if (c->opts.kinds_given) {
		log_error("cannot record waits: %s", why);
		return -ENOTSUP;
	}
	log_info("no block profile: %s", why);
	c->kinds[BPFPROF_BLOCK] = c->kinds[BPFPROF_OFFCPU] = false;
	return 0;
}

static int choose_fds(struct capture *c)
{
	if (!c->kinds[BPFPROF_FDS])
		return 0;
	c->fds_how = probe_fds__how();
	if (c->fds_how != FDS_NONE)
		return 0;
	log_error("%s", features_probe(FEATURE_FDS).text);
	return -ENOTSUP;
}

/* Is there anything to listen to? Programs that are not needed take time to load. */
static void choose_usdt(struct capture *c)
{
	const struct capture_opts *o = &c->opts;

	if (!c->kinds[BPFPROF_HEAP])
		return;
	if (o->command)
		launch_heap(o->command, o->heap_rate, c->objects, &c->launch_heap);
	c->usdt = o->all || *c->launch_heap.preload || c->launch_heap.samples_itself ||
		  heap_finds_usdt(c->objects, o->pids, o->pid_cnt);
	if (*c->launch_heap.preload) {
		c->command_env[0] = c->launch_heap.preload_env;
		c->command_env[1] = c->launch_heap.rate_env;
	}
}

int capture_choose(struct capture *c)
{
	int err;

	choose_frequency(c);
	err = choose_uprobes(c);
	if (!err)
		err = capture_ops_choose(c);
	if (!err)
		err = choose_waits(c);
	if (!err)
		err = choose_fds(c);
	if (!err)
		choose_usdt(c);
	return err;
}
