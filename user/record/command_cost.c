// SPDX-License-Identifier: BSD-2-Clause
#include "record/command_cost.h"

#include <unistd.h>

#include "base/util.h"
#include "kernel/cpus.h"
#include "kernel/task_clock.h"

/* Of all CPUs; 0: not known. */
static uint64_t work_ns(void)
{
	struct cpus_work work;

	return cpus_work(&work) ? 0 : work.busy_ns + work.stolen_ns;
}

void command_cost__open(struct command_cost *c, pid_t pid)
{
	c->clock = task_clock_open(pid);
}

void command_cost__begin(struct command_cost *c, uint64_t own_ns)
{
	c->begin_work_ns = work_ns();
	c->begin_own_ns = own_ns;
	c->begin_ns = util_monotonic_ns();
}

void command_cost__end(struct command_cost *c, uint64_t own_ns)
{
	uint64_t ours, work;

	if (c->ended)
		return;
	c->wall_ns = MAX(util_monotonic_ns() - c->begin_ns, UINT64_C(1));
	if (c->clock < 0 || task_clock_read(c->clock, &c->cpu_ns))
		c->cpu_ns = 0;
	work = work_ns() - c->begin_work_ns;
	ours = own_ns - c->begin_own_ns + c->cpu_ns;
	/* ticks are coarser than what is exact */
	c->other_ns = work > ours ? work - ours : 0;
	c->ended = true;
}

void command_cost__close(struct command_cost *c)
{
	if (c->clock >= 0)
		close(c->clock);
	c->clock = -1;
}
