// SPDX-License-Identifier: BSD-2-Clause
#include "heap/heap_account.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "kernel/epochs.h"
#include "kernel/uprobes.h"

#define UNMEASURED_NS 1000 /* of a hit, if it cannot be measured */
#define GAP_CALLS 64	   /* that tell how far apart they are */
#define UNKNOWN_GAP_NS 1e6 /* the costs of hits that are far from each other */

void heap_account__begin(struct heap_account *a, struct session *session, enum uprobe_method method,
			 bool one)
{
	*a = (struct heap_account){ .session = session,
				    .method = method,
				    .gap_ns = UNKNOWN_GAP_NS };
	a->cost_fd = heap_cost__begin(session, method, one);
}

void heap_account__end(struct heap_account *a)
{
	if (a->cost_fd >= 0)
		close(a->cost_fd);
	a->cost_fd = -1;
}

void heap_account__measure(struct heap_account *a)
{
	struct bpfprof_stats stats;
	int err = a->cost_fd < 0 ? a->cost_fd : heap_cost__end(a->session, a->cost_fd, &a->cost);

	a->cost_fd = -1;
	if (err) {
		log_debug("cannot measure what a probe costs");
		for (int i = 0; i < BPFPROF_NR_HITS; i++)
			a->cost.points[0].hit[i] = UNMEASURED_NS;
		for (int i = 1; i < HEAP_COST_POINTS; i++)
			a->cost.points[i] = a->cost.points[0];
	}
	for (int i = 0; i < HEAP_COST_POINTS; i++) {
		const struct heap_cost_point *p = &a->cost.points[i];

		log_debug(
			"behind %.1f us of other code a probe's hit costs %.0f ns at an "
			"allocation, %.0f at its return, %.0f where that is not waited for, %.0f "
			"at a free; for each further process %.0f, %.0f, %.0f, %.0f",
			p->after_ns / 1e3, p->hit[BPFPROF_HIT_ENTRY], p->hit[BPFPROF_HIT_RETURN],
			p->hit[BPFPROF_HIT_BEGIN], p->hit[BPFPROF_HIT_FREE],
			p->link[BPFPROF_HIT_ENTRY], p->link[BPFPROF_HIT_RETURN],
			p->link[BPFPROF_HIT_BEGIN], p->link[BPFPROF_HIT_FREE]);
	}
	if (!epochs__stats(a->session, BPFPROF_HEAP, &stats))
		memcpy(a->hits, stats.hits, sizeof(a->hits));
}

/* Learns how far apart calls are, from time in which probes were attached: so many of them, and so
 * much CPU time. */
static void learn_gap(struct heap_account *a, uint64_t calls, double cpu_ns)
{
	a->gap_calls += calls;
	a->gap_cpu_ns += cpu_ns;
	if (a->gap_calls < GAP_CALLS)
		return;
	a->gap_ns = a->gap_cpu_ns / a->gap_calls;
	a->gap_calls = 0;
	a->gap_cpu_ns = 0;
}

double heap_account__factor(const struct heap_account *a)
{
	double error;

	return heap_factor__get(&a->factor, &error);
}

/* From a slice that is over: what it has counted; hits: of probes. */
static void learn_factor(struct heap_account *a, const struct budget_time *before, uint64_t hits)
{
	struct heap_factor_slice slice = {
		.cpu_ns = a->so_far.cpu - before->cpu - (a->so_far.record - before->record),
		.hits_ns = a->so_far.hits - before->hits,
		.calls = a->so_far.calls - before->calls,
	};

	heap_factor__add(&a->factor, &slice);
	log_debug("slice: %.1f ms, %.0f calls, %" PRIu64
		  " hits, %.0f ns from call to call, hits cost %.0f of them or %.2f times that",
		  slice.cpu_ns / 1e6, slice.calls, hits, slice.cpu_ns / MAX(slice.calls, 1),
		  slice.hits_ns / MAX(slice.calls, 1), heap_account__factor(a));
}

bool heap_account__is_settled(const struct heap_account *a, const struct budget *b)
{
	return uprobes_by_events(a->method) ||
	       heap_factor__settled(&a->factor, budget__hit_share(b, heap_account__factor(a)));
}

/* What hits in processes that are not profiled have cost these, which is not in what the others do. */
static void account_others(struct heap_account *a, uint64_t hits)
{
	struct heap_cost_point p;

	heap_cost__after(&a->cost, a->gap_ns, &p);
	a->other_hits += hits;
	a->so_far.others += hits * p.hit[BPFPROF_HIT_OTHER];
}

void heap_account__add(struct heap_account *a, enum heap_account_of of, double cpu_ns, size_t most)
{
	uint64_t since[BPFPROF_NR_HITS], cnt = 0;
	struct budget_time before = a->so_far;
	struct bpfprof_stats stats;

	a->so_far.cpu = cpu_ns;
	if (epochs__stats(a->session, BPFPROF_HEAP, &stats))
		return;
	for (int i = 0; i < BPFPROF_NR_HITS; i++) {
		since[i] = stats.hits[i] - a->hits[i];
		a->hits[i] = stats.hits[i];
		cnt += since[i];
	}
	account_others(a, since[BPFPROF_HIT_OTHER]);
	cnt -= since[BPFPROF_HIT_OTHER];
	since[BPFPROF_HIT_OTHER] = 0;
	a->hit_cnt += cnt;
	if (of != HEAP_ACCOUNT_DETACHED)
		learn_gap(a, heap_cost__calls(since), cpu_ns - before.cpu);
	a->so_far.calls += since[BPFPROF_HIT_ENTRY] + since[BPFPROF_HIT_BEGIN];
	a->so_far.record = stats.record_ns;
	a->so_far.hits += heap_cost__ns(&a->cost, a->method, since, most, a->gap_ns);
	if (of == HEAP_ACCOUNT_SLICE)
		learn_factor(a, &before, cnt);
}
