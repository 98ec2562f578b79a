// SPDX-License-Identifier: BSD-2-Clause
/* Programs that work for a given time, such as load generators, do more the faster they are, and their CPU
 * time stays the same: it says nothing. */
#include <linux/types.h>

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "bench/parts.h"
#include "judge/judge.h"
#include "judge/stats.h"
#include "options.h"

/* The median time of the side's runs in nanoseconds, 0: not known. */
static double median_wall(const struct runs *runs, enum runs_side side)
{
	double *walls = calloc(runs->run_cnt, sizeof(*walls)), median;
	size_t cnt = 0;

	for (size_t i = 0; walls && i < runs->run_cnt; i++)
		if (runs->runs[i].side == side && runs->runs[i].facts.wall_ns != FACTS_NONE)
			walls[cnt++] = (double)runs->runs[i].facts.wall_ns;
	median = cnt ? stats_median(walls, cnt) : 0;
	free(walls);
	return median;
}

int bench_find_boxed(struct bench *b, const struct runs *runs)
{
	double usual = median_wall(runs, RUNS_BASE);
	struct bench_run run = { .side = RUNS_BASE, .pause_ns = (uint64_t)(usual / 3) };
	struct run_facts facts;
	int err;

	if (!run.pause_ns)
		return 0;
	log_info(
		"all runs take the same time: one is stopped for a while, to see whether it ends "
		"by the clock");
	err = bench_one_run(b, &run, &facts);
	err = err ?: bench_set_peek(b, RUNS_BASE, &facts);
	bench_set_drop(b);
	if (err || (double)facts.wall_ns > usual + (double)run.pause_ns / 2)
		return err;
	log_error(
		"the command ends after %.2f s, however much it has done: its CPU time says "
		"nothing (say how much it does, with --ops-regex or --ops-probe)",
		usual / 1e9);
	return -EINVAL;
}
