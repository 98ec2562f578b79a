// SPDX-License-Identifier: BSD-2-Clause
/* What is said in profiles and at the end of a run alike. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"
#include "kinds.h"
#include "options.h"
#include "profile/profile.h"
#include "report_parts.h"

#define ROUGH_SLOWDOWN 2 /* times: what is wrong in the cost of hits is as wrong in the figures */
#define EVENTS_LOST_TEXT \
	"process events were lost %" PRIu64 " times, and all processes looked at anew"
#define CUT_MAPS_TEXT \
	"a process has %" PRIu64 " ranges of code more than there is room for: stacks end there"
#define COPIES_TEXT                                                              \
	"code in memory, where a file's code was, but not named by it: %" PRIu64 \
	" pieces that are not what the file has, %" PRIu64 " that could not be compared"
#define NOT_FOLLOWED_TEXT \
	"not followed, for want of room: %" PRIu64 " child processes, and what these started"

#define TEXT_OF(name, text) text,
const char *const report_lost_text[] = { BPFPROF_LOST_REASONS(TEXT_OF) };
static const char *const result_text[] = { BPFPROF_STACK_RESULTS(TEXT_OF) };

uint64_t report_lost(const struct collect_account *a)
{
	uint64_t total = 0;

	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		total += a->lost[i];
	return total;
}

double report_whole_percent(const struct collect_account *a)
{
	return a->recorded ? 100.0 * a->stacks[BPFPROF_STACK_complete] / a->recorded : 100.0;
}

const struct collect_account *report_any_account(const struct report *r)
{
	const struct collect_account *ret = &r->accounts[0];

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i])
			ret = &r->accounts[i];
	return ret;
}

const char *report_time_text(uint64_t ns, char *buf, size_t buf_sz)
{
	static const struct {
		double ns;
		const char *unit;
	} scales[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	size_t i = 0;

	while (ns && ns < scales[i].ns)
		i++;
	snprintf(buf, buf_sz, "%.4g %s", ns / scales[i].ns, scales[i].unit);
	return buf;
}

static int __attribute__((format(printf, 2, 3))) say(struct profile *to, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (to)
		return profile__add_comment(to, line);
	fprintf(stderr, "  %s\n", line);
	return 0;
}

int report_say_lost(const struct collect_account *a, struct profile *to)
{
	int err = 0;

	for (int i = 0; !err && i < BPFPROF_NR_LOST; i++)
		if (a->lost[i])
			err = say(to, "lost %" PRIu64 ": %s", a->lost[i], report_lost_text[i]);
	return err;
}

int report_say_cut(const struct collect_account *a, struct profile *to)
{
	int err = 0;

	for (int i = BPFPROF_STACK_complete + 1; !err && i < BPFPROF_NR_RESULTS; i++)
		if (a->stacks[i])
			err = say(to, "cut short %" PRIu64 ": %s", a->stacks[i], result_text[i]);
	return err;
}

/* ---- notes ---- */

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

static int heap_notes(const struct report *r, struct profile *to)
{
	const struct heap_report *h = &r->heap;
	int err = say(to,
		      "%zu probes (%s), %" PRIu64
		      " hits, which took %.2f %% of the program's CPU "
		      "time",
		      h->points, h->method, h->hits, heap_share(h));

	if (!err && h->sliced)
		err = say(to,
			  "in use is left out: probes were attached %.1f %% of the time only, to "
			  "stay within --heap-budget %g; alloc is scaled up%s (--heap-budget 100 "
			  "lifts the limit)",
			  r->duration_ns ? 100.0 * h->attached_ns / r->duration_ns : 0.0,
			  r->opts->heap_budget, heap_trust(h));
	if (!err && h->untracked)
		err = say(to,
			  "in use is not complete: the frees of %" PRIu64
			  " samples were not followed, the table was full (a larger --heap-rate "
			  "needs less)",
			  h->untracked);
	if (!err && h->rounded)
		err = say(to,
			  "sizes are rounded to 6 bits (1.6 %%): there were too many different "
			  "ones");
	if (!err && r->opts->min_age_ns)
		err = say(to, "only what was held for at least %g s at the end",
			  (double)r->opts->min_age_ns / NSEC_PER_SEC);
	return err;
}

static int wait_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	const struct collect_account *a = &r->accounts[kind];
	uint64_t min_wait = options_min_wait_ns(r->opts, kind);
	char text[32], together[32];
	int err = 0;

	/* of waits without any length nobody wants to hear */
	if (a->below && min_wait)
		err = say(to, "left out: %" PRIu64 " waits shorter than %s, together %s", a->below,
			  report_time_text(min_wait, text, sizeof(text)),
			  report_time_text(a->below_ns, together, sizeof(together)));
	if (!err && r->limited_ns)
		err = say(
			to,
			"to stay within --wait-budget %g, %.1f %% of the time a wait shorter than "
			"a limit, %s on average, was recorded with the probability length / limit, "
			"and weighted accordingly (--wait-budget 100 lifts the limit)",
			r->opts->wait_budget,
			r->duration_ns ? 100.0 * r->limited_ns / r->duration_ns : 0.0,
			report_time_text(r->wait_rate_ns, text, sizeof(text)));
	if (!err && r->opts->wait_rate_ns) {
		report_time_text(r->opts->wait_rate_ns, text, sizeof(text));
		err = say(to,
			  "a wait shorter than %s was recorded with the probability length / %s, "
			  "and weighted accordingly",
			  text, text);
	}
	return err;
}

static int thread_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	if (kind == BPFPROF_THREADCREATE && r->threads_at_start)
		return say(to, "threads alive at the start: %" PRIu64, r->threads_at_start);
	if (kind == BPFPROF_THREADS)
		return say(to, "the stacks were read within %.1f ms", r->snapshot_ns / 1e6);
	return 0;
}

static int process_notes(const struct report *r, const struct collect_account *a,
			 struct profile *to)
{
	int err = a->events_lost ? say(to, EVENTS_LOST_TEXT, a->events_lost) : 0;

	if (!err && a->not_followed)
		err = say(to, NOT_FOLLOWED_TEXT, a->not_followed);
	if (!err && r->code.cut_maps)
		err = say(to, CUT_MAPS_TEXT, r->code.cut_maps);
	if (!err && (r->code.copies.differ || r->code.copies.unread))
		err = say(to, COPIES_TEXT, r->code.copies.differ, r->code.copies.unread);
	return err;
}

int report_say_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	int err = process_notes(r, &r->accounts[kind], to);

	if (err)
		return err;
	if (kind == BPFPROF_HEAP)
		return heap_notes(r, to);
	if (kinds[kind].waits)
		return wait_notes(r, kind, to);
	return thread_notes(r, kind, to);
}
