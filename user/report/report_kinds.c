// SPDX-License-Identifier: BSD-2-Clause
/* What only some kinds say of themselves. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/util.h"
#include "kinds.h"
#include "options.h"
#include "report/report_parts.h"

#define KEPT_RATE 0.85	 /* what falls short of it is said */
#define ROUGH_SLOWDOWN 2 /* times: what is wrong in the cost of hits is as wrong in the figures */

/* Behind what is counted from the start of the run, in the profile of a window. */
static const char *since_start(const struct report *r)
{
	return r->is_window ? " since the start of the run" : "";
}

/* ---- cpu ---- */

static void cpu_how(const struct report *r, enum bpfprof_kind kind, char *buf, size_t buf_sz)
{
	(void)kind;
	snprintf(buf, buf_sz, ", event %s, %u Hz",
		 r->opts->event == OPTIONS_CYCLES ? "cycles" : "cpu-clock", r->stats.frequency);
}

/* How far n samples may be from what is due: four standard deviations. */
static double by_chance(double n)
{
	return 4 * sqrt(n);
}

static int cpu_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	double cpu_s = (double)r->stats.target_cpu_ns / NSEC_PER_SEC;
	double due = cpu_s * r->stats.frequency, got = r->stats.cpu_samples;

	(void)kind;
	if (got >= due * KEPT_RATE || due - got <= by_chance(due))
		return 0;
	return report_say(
		to,
		"%u Hz were not kept%s: of %.2f s of CPU time %.2f s were sampled, %.0f Hz "
		"on average (a lower --frequency can be kept)",
		r->stats.frequency, since_start(r), cpu_s, got / r->stats.frequency, got / cpu_s);
}

static void cpu_stats(const struct report *r, enum bpfprof_kind kind, struct json *j)
{
	(void)kind;
	json__u64(j, "period_ns", NSEC_PER_SEC / r->stats.frequency);
	json__u64(j, "target_cpu_ns", r->stats.target_cpu_ns);
}

/* ---- heap ---- */

static void heap_how(const struct report *r, enum bpfprof_kind kind, char *buf, size_t buf_sz)
{
	(void)kind;
	snprintf(buf, buf_sz, ", rate %" PRIu64 " bytes", r->opts->heap_rate);
}

/* Share of the targets' CPU time that the heap's probes took, in percent. */
static double heap_share(const struct heap_report *h)
{
	return h->cpu_ns ? MIN(100.0 * h->cost_ns / h->cpu_ns, 100.0) : 0;
}

/* How far the scaling up can be trusted: an error in what hits cost is one in what was left for the
 * program itself, the larger the less that was. */
static const char *heap_trust(const struct heap_report *h)
{
	return h->slowdown > ROUGH_SLOWDOWN ?
		       ", roughly, since hits take most of the time while it is probed" :
		       "";
}

/* How much of the time so far that is, in percent. */
static double share_of_run(const struct report *r, uint64_t ns)
{
	return r->run_ns ? 100.0 * ns / r->run_ns : 0;
}

static int heap_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	const struct heap_report *h = &r->stats.heap;
	char text[32];
	int err = report_say(to,
			     "%zu probes (%s), %" PRIu64
			     " hits, which took %.2f %% of the program's CPU time%s",
			     h->points, h->method, h->hits, heap_share(h), since_start(r));

	(void)kind;
	if (!err && h->sliced)
		err = report_say(
			to,
			"in use is left out: probes were attached %.1f %% of the time only%s, to "
			"stay within --heap-budget %g; alloc is scaled up%s (--heap-budget 100 "
			"lifts the limit)",
			share_of_run(r, h->attached_ns), since_start(r), r->opts->heap_budget,
			heap_trust(h));
	if (!err && h->untracked)
		err = report_say(
			to,
			"in use is not complete: the frees of %" PRIu64
			" samples were not followed, the table was full (a larger --heap-rate "
			"needs less)",
			h->untracked);
	if (!err && h->unseen)
		err = report_say(
			to,
			"%" PRIu64
			" times a library was loaded with RTLD_DEEPBIND or dlmopen: what such a "
			"one "
			"allocates is missing, and what it frees of others counts as in use (-p "
			"PID sees it)",
			h->unseen);
	if (!err && h->sanitizers && !h->sliced)
		err = report_say(to,
				 "in use leaves out what the allocators of %zu sanitizers hold: "
				 "their calls are recorded as they begin",
				 h->sanitizers);
	if (!err && h->late)
		err = report_say(to,
				 "%zu processes that were started meanwhile ran for %s before they "
				 "were probed%s: what they allocated until then is missing",
				 h->late, report_time_text(h->late_ns, text, sizeof(text)),
				 since_start(r));
	if (!err && h->other_hits)
		err = report_say(to,
				 "a file that many of the processes map is probed in all processes "
				 "of the machine: others have hit the probes %" PRIu64
				 " times, which took them %s%s",
				 h->other_hits, report_time_text(h->other_ns, text, sizeof(text)),
				 since_start(r));
	/* the messages have said it of each */
	if (!err && to && h->unreached)
		err = report_say(
			to,
			"the heap of %zu processes is missing: their main thread had ended, "
			"by which the kernel finds a process's memory",
			h->unreached);
	if (!err && h->rounded)
		err = report_say(
			to,
			"sizes are rounded to 6 bits (1.6 %%): there were too many different "
			"ones");
	if (!err && r->opts->min_age_ns)
		err = report_say(to, "only what was held for at least %g s at the end",
				 (double)r->opts->min_age_ns / NSEC_PER_SEC);
	return err;
}

static void heap_stats(const struct report *r, enum bpfprof_kind kind, struct json *j)
{
	const struct heap_report *h = &r->stats.heap;

	(void)kind;
	json__u64(j, "period_bytes", r->opts->heap_rate);
	json__begin_object(j, "heap");
	json__string(j, "method", h->method);
	json__u64(j, "probes", h->points);
	json__u64(j, "hits", h->hits);
	json__u64(j, "cost_ns", h->cost_ns);
	json__u64(j, "bpf_ns", h->bpf_ns);
	json__u64(j, "target_cpu_ns", h->cpu_ns);
	json__u64(j, "attach_ns", h->attach_ns);
	json__u64(j, "attached_ns", h->attached_ns);
	json__bool(j, "sliced", h->sliced);
	json__u64(j, "untracked", h->untracked);
	json__u64(j, "unseen", h->unseen);
	json__u64(j, "sanitizers", h->sanitizers);
	json__u64(j, "unreached", h->unreached);
	json__u64(j, "unprobed", h->unprobed);
	json__u64(j, "late", h->late);
	json__u64(j, "late_ns", h->late_ns);
	json__u64(j, "shared", h->shared);
	json__u64(j, "other_hits", h->other_hits);
	json__u64(j, "other_ns", h->other_ns);
	json__end_object(j);
}

/* ---- waits ---- */

static void wait_how(const struct report *r, enum bpfprof_kind kind, char *buf, size_t buf_sz)
{
	uint64_t min_wait = options_min_wait_ns(r->opts, kind);
	char text[32];

	if (min_wait)
		snprintf(buf, buf_sz, ", waits of %s and more",
			 report_time_text(min_wait, text, sizeof(text)));
	else
		snprintf(buf, buf_sz, ", waits of any length");
}

static int wait_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	const struct collect_account *a = &r->accounts[kind];
	uint64_t min_wait = options_min_wait_ns(r->opts, kind);
	char text[32], together[32];
	int err = 0;

	/* of waits without any length nobody wants to hear */
	if (a->below && min_wait)
		err = report_say(to, "left out: %" PRIu64 " waits shorter than %s, together %s",
				 a->below, report_time_text(min_wait, text, sizeof(text)),
				 report_time_text(a->below_ns, together, sizeof(together)));
	if (!err && r->stats.limited_ns)
		err = report_say(
			to,
			"to stay within --wait-budget %g, %.1f %% of the time%s a wait shorter "
			"than "
			"a limit, %s on average, was recorded with the probability length / limit, "
			"and weighted accordingly (--wait-budget 100 lifts the limit)",
			r->opts->wait_budget, share_of_run(r, r->stats.limited_ns), since_start(r),
			report_time_text(r->stats.wait_rate_ns, text, sizeof(text)));
	if (!err && r->opts->wait_rate_ns) {
		report_time_text(r->opts->wait_rate_ns, text, sizeof(text));
		err = report_say(
			to,
			"a wait shorter than %s was recorded with the probability length / %s, "
			"and weighted accordingly",
			text, text);
	}
	return err;
}

static void wait_stats(const struct report *r, enum bpfprof_kind kind, struct json *j)
{
	const struct collect_account *a = &r->accounts[kind];

	json__u64(j, "below", a->below);
	json__u64(j, "below_ns", a->below_ns);
	json__u64(j, "min_wait_ns", options_min_wait_ns(r->opts, kind));
	json__u64(j, "wait_rate_ns", r->stats.wait_rate_ns);
	json__u64(j, "limited_ns", r->stats.limited_ns);
	json__u64(j, "cost_ns", r->stats.wait_cost_ns[kind]);
	report_stats_cache(j, "kernel_stacks", &a->kernel_stacks);
	report_stats_cache(j, "user_stacks", &a->user_stacks);
}

/* ---- threads ---- */

static int created_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	(void)kind;
	return !r->stats.threads_at_start ? 0 :
					    report_say(to, "threads alive at the start: %" PRIu64,
						       r->stats.threads_at_start);
}

static void created_stats(const struct report *r, enum bpfprof_kind kind, struct json *j)
{
	(void)kind;
	if (r->stats.threads_at_start)
		json__u64(j, "threads_at_start", r->stats.threads_at_start);
}

static int snapshot_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	(void)kind;
	return report_say(to, "the stacks were read within %.1f ms", r->stats.snapshot_ns / 1e6);
}

static void snapshot_stats(const struct report *r, enum bpfprof_kind kind, struct json *j)
{
	(void)kind;
	json__u64(j, "snapshot_ns", r->stats.snapshot_ns);
}

/* ---- custom ---- */

static int custom_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	const struct collect_account *a = &r->accounts[kind];
	int err = report_say(to,
			     "all custom profiles together: %" PRIu64 " added, %" PRIu64 " removed",
			     a->seen, a->removed);

	if (!err && a->duplicates)
		err = report_say(to,
				 "%" PRIu64
				 " added once more while they were there: the first time counts",
				 a->duplicates);
	if (!err && a->unknown)
		err = report_say(
			to, "%" PRIu64 " removed that had not been added, or before the run began",
			a->unknown);
	if (!err && a->untracked)
		err = report_say(to,
				 "what is held is not complete: there was no room for %" PRIu64
				 " values that were added",
				 a->untracked);
	return err;
}

static void custom_stats(const struct report *r, enum bpfprof_kind kind, struct json *j)
{
	const struct collect_account *a = &r->accounts[kind];

	json__u64(j, "removed", a->removed);
	json__u64(j, "duplicates", a->duplicates);
	json__u64(j, "unknown_removes", a->unknown);
	json__u64(j, "untracked", a->untracked);
	report_stats_cache(j, "user_stacks", &a->user_stacks);
}

/* ---- fds ---- */

static int fds_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	const struct collect_account *a = &r->accounts[kind];
	int err = 0;

	if (a->open_before)
		err = report_say(
			to,
			"%" PRIu64
			" more descriptors were open before: where they were opened is not "
			"known",
			a->open_before);
	if (!err && a->open_unknown)
		err = report_say(
			to,
			"%" PRIu64
			" more descriptors are open that were inherited, or opened in a way "
			"that is not seen",
			a->open_unknown);
	if (!err && a->untracked)
		err = report_say(to,
				 "what is open is not complete: there was no room for %" PRIu64
				 " descriptors that were opened",
				 a->untracked);
	return err;
}

static void fds_stats(const struct report *r, enum bpfprof_kind kind, struct json *j)
{
	const struct collect_account *a = &r->accounts[kind];

	json__u64(j, "open_before", a->open_before);
	json__u64(j, "open_unknown", a->open_unknown);
	json__u64(j, "untracked", a->untracked);
	report_stats_cache(j, "user_stacks", &a->user_stacks);
}

/* ---- the table ---- */

#define WAITS                                                             \
	{                                                                 \
		.how = wait_how, .notes = wait_notes, .stats = wait_stats \
	}

const struct report_kind report_kinds[BPFPROF_NR_KINDS] = {
	[BPFPROF_CPU] = { .how = cpu_how, .notes = cpu_notes, .stats = cpu_stats },
	[BPFPROF_HEAP] = { .how = heap_how, .notes = heap_notes, .stats = heap_stats },
	[BPFPROF_BLOCK] = WAITS,
	[BPFPROF_MUTEX] = WAITS,
	[BPFPROF_OFFCPU] = WAITS,
	[BPFPROF_THREADCREATE] = { .notes = created_notes, .stats = created_stats },
	[BPFPROF_CUSTOM] = { .notes = custom_notes, .stats = custom_stats },
	[BPFPROF_FDS] = { .notes = fds_notes, .stats = fds_stats },
	[BPFPROF_THREADS] = { .notes = snapshot_notes, .stats = snapshot_stats },
};
