// SPDX-License-Identifier: BSD-2-Clause
/* What a run says about itself. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/util.h"
#include "kinds.h"
#include "options.h"
#include "profile/profile.h"
#include "profile/text.h"

#define ROUGH_SLOWDOWN 2 /* times: what is wrong in the cost of hits is as wrong in the figures */
#define STRICT_CUT 100	 /* one stack of so many may be cut short with --strict */
#define EVENTS_LOST_TEXT \
	"process events were lost %" PRIu64 " times, and all processes looked at anew"
#define CUT_MAPS_TEXT \
	"a process has %" PRIu64 " ranges of code more than there is room for: stacks end there"
#define COPIES_TEXT                                                              \
	"code in memory, where a file's code was, but not named by it: %" PRIu64 \
	" pieces that are not what the file has, %" PRIu64 " that could not be compared"
#define NOT_FOLLOWED_TEXT \
	"not followed, for want of room: %" PRIu64 " child processes, and what these started"
#define OWN_TEXT                                                      \
	"  %s, each at its innermost function that is no library's, " \
	"runtime's or allocator's, if it has one:\n"

#define NAME_OF(name, text) #name,
#define TEXT_OF(name, text) text,
static const char *const lost_name[] = { BPFPROF_LOST_REASONS(NAME_OF) };
static const char *const lost_text[] = { BPFPROF_LOST_REASONS(TEXT_OF) };
static const char *const result_name[] = { BPFPROF_STACK_RESULTS(NAME_OF) };
static const char *const result_text[] = { BPFPROF_STACK_RESULTS(TEXT_OF) };

static uint64_t sum(const uint64_t *v, size_t cnt)
{
	uint64_t total = 0;

	for (size_t i = 0; i < cnt; i++)
		total += v[i];
	return total;
}

/* Share of whole stacks in percent; 100 of nothing is whole. */
static double whole_percent(const struct collect_account *a)
{
	return a->recorded ? 100.0 * a->stacks[BPFPROF_STACK_complete] / a->recorded : 100.0;
}

static const char *event_name(const struct options *o)
{
	return o->event == OPTIONS_CYCLES ? "cycles" : "cpu-clock";
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

/* A time as --min-wait takes it. */
static const char *time_text(uint64_t ns, char *buf, size_t buf_sz)
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

/* How this kind was sampled: ", " and a few words, or nothing if there is nothing to be said. */
static void how_text(const struct report *r, enum bpfprof_kind kind, char *line, size_t line_sz)
{
	uint64_t min_wait = options_min_wait_ns(r->opts, kind);
	char text[32];

	*line = '\0';
	if (kind == BPFPROF_HEAP)
		snprintf(line, line_sz, ", rate %" PRIu64 " bytes", r->opts->heap_rate);
	else if (kinds[kind].timed)
		snprintf(line, line_sz, ", event %s, %u Hz", event_name(r->opts), r->frequency);
	else if (kinds[kind].waits && min_wait)
		snprintf(line, line_sz, ", waits of %s and more",
			 time_text(min_wait, text, sizeof(text)));
	else if (kinds[kind].waits)
		snprintf(line, line_sz, ", waits of any length");
}

/* ---- what only some kinds have to say, in the profile and at the end of the run ---- */

/* A line for people: a comment of the profile, or, if it is NULL, on standard error. 0 or -ENOMEM.
 */
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
			  time_text(min_wait, text, sizeof(text)),
			  time_text(a->below_ns, together, sizeof(together)));
	if (!err && r->limited_ns)
		err = say(
			to,
			"to stay within --wait-budget %g, %.1f %% of the time a wait shorter than "
			"a limit, %s on average, was recorded with the probability length / limit, "
			"and weighted accordingly (--wait-budget 100 lifts the limit)",
			r->opts->wait_budget,
			r->duration_ns ? 100.0 * r->limited_ns / r->duration_ns : 0.0,
			time_text(r->wait_rate_ns, text, sizeof(text)));
	if (!err && r->opts->wait_rate_ns) {
		time_text(r->opts->wait_rate_ns, text, sizeof(text));
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

static int notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	if (kind == BPFPROF_HEAP)
		return heap_notes(r, to);
	if (kinds[kind].waits)
		return wait_notes(r, kind, to);
	return thread_notes(r, kind, to);
}

int report_comment(const struct report *r, enum bpfprof_kind kind, struct profile *p)
{
	const struct collect_account *a = &r->accounts[kind];
	struct utsname uts;
	char line[512], how[128];
	int err;

	uname(&uts);
	how_text(r, kind, how, sizeof(how));
	snprintf(line, sizeof(line), "bpfprof %s on Linux %s, %s of %s%s, %d CPUs", BPFPROF_VERSION,
		 uts.release, kinds[kind].name, r->target, how, r->cpus);
	err = profile__add_comment(p, line);
	snprintf(line, sizeof(line),
		 "samples: %" PRIu64 " seen, %" PRIu64 " recorded, %" PRIu64 " lost", a->seen,
		 a->recorded, sum(a->lost, BPFPROF_NR_LOST));
	if (!err)
		err = profile__add_comment(p, line);
	for (int i = 0; !err && i < BPFPROF_NR_LOST; i++) {
		if (!a->lost[i])
			continue;
		snprintf(line, sizeof(line), "lost %" PRIu64 ": %s", a->lost[i], lost_text[i]);
		err = profile__add_comment(p, line);
	}
	snprintf(line, sizeof(line), "stacks: %" PRIu64 " whole (%.2f %%), %" PRIu64 " cut short",
		 a->stacks[BPFPROF_STACK_complete], whole_percent(a),
		 a->recorded - a->stacks[BPFPROF_STACK_complete]);
	if (!err)
		err = profile__add_comment(p, line);
	for (int i = BPFPROF_STACK_complete + 1; !err && i < BPFPROF_NR_RESULTS; i++) {
		if (!a->stacks[i])
			continue;
		snprintf(line, sizeof(line), "cut short %" PRIu64 ": %s", a->stacks[i],
			 result_text[i]);
		err = profile__add_comment(p, line);
	}
	if (!err)
		err = process_notes(r, a, p);
	return err ? err : notes(r, kind, p);
}

/* What is the same for all kinds: the account of one that is recorded, the last one. */
static const struct collect_account *any_account(const struct report *r)
{
	const struct collect_account *ret = &r->accounts[0];

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i])
			ret = &r->accounts[i];
	return ret;
}

int report_strict(const struct report *r, char *text, size_t text_sz)
{
	FILE *f = fmemopen(text, text_sz - 1, "w");
	const struct collect_account *any = any_account(r);
	const char *sep = "";

	if (!f)
		return -errno;
	/* what is too long for it is cut, without the end of a string */
	memset(text, 0, text_sz);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		const struct collect_account *a = &r->accounts[i];
		uint64_t cut = a->recorded - a->stacks[BPFPROF_STACK_complete];

		if (!r->kinds[i])
			continue;
		for (int j = 0; j < BPFPROF_NR_LOST; j++) {
			if (!a->lost[j])
				continue;
			fprintf(f, "%s%s: %" PRIu64 " of %" PRIu64 " samples lost (%s)", sep,
				kinds[i].name, a->lost[j], a->seen, lost_text[j]);
			sep = "; ";
		}
		if (cut > a->recorded / STRICT_CUT) {
			fprintf(f, "%s%s: %" PRIu64 " of %" PRIu64 " stacks cut short", sep,
				kinds[i].name, cut, a->recorded);
			sep = "; ";
		}
	}
	if (r->kinds[BPFPROF_HEAP] && r->heap.untracked) {
		fprintf(f, "%sheap: the frees of %" PRIu64 " samples were not followed", sep,
			r->heap.untracked);
		sep = "; ";
	}
	if (any->events_lost) {
		fprintf(f, "%sprocess events lost %" PRIu64 " times", sep, any->events_lost);
		sep = "; ";
	}
	if (any->not_followed) {
		fprintf(f, "%s%" PRIu64 " child processes were not followed", sep,
			any->not_followed);
		sep = "; ";
	}
	fclose(f);
	return *sep ? -ENODATA : 0;
}

/* The sum of a value over a profile, for people. */
static void quantity_text(const struct profile *p, size_t value, char *buf, size_t buf_sz)
{
	const char *unit = p->value_types[value].unit;
	int64_t total = 0;
	int scale = 0;
	double v;

	for (size_t i = 0; i < p->sample_cnt; i++)
		total = util_add_saturated(total, p->samples[i].value[value]);
	v = total;
	if (!strcmp(unit, "count")) {
		snprintf(buf, buf_sz, "%" PRId64, total);
		return;
	}
	if (!strcmp(unit, "nanoseconds")) {
		/* CPU time comes in steps of 10 ms, waits may be much shorter together */
		if (total > 0 && v < 0.1 * NSEC_PER_SEC)
			time_text(total, buf, buf_sz);
		else
			snprintf(buf, buf_sz, "%.2f s", v / NSEC_PER_SEC);
		return;
	}
	for (; v >= 1024 && scale < 4; scale++)
		v /= 1024;
	snprintf(buf, buf_sz, scale ? "%.2f %s" : "%.0f %s", v,
		 (const char *[]){ "B", "KiB", "MiB", "GiB", "TiB" }[scale]);
}

void report_summary(const struct report *r, enum bpfprof_kind kind, const struct profile *p,
		    const char *path)
{
	const struct collect_account *a = &r->accounts[kind];
	uint64_t lost = sum(a->lost, BPFPROF_NR_LOST);
	char shown[1024], quantity[64];

	if (log_get_level() < LOG_INFO)
		return;
	util_printable(shown, sizeof(shown), strcmp(path, "-") ? path : "standard output");
	fprintf(stderr, "%s: %" PRIu64 " samples, ", shown, a->recorded);
	for (size_t v = 0; v < p->value_cnt; v++) {
		if (!kinds[kind].quantities[v])
			continue;
		quantity_text(p, v, quantity, sizeof(quantity));
		fprintf(stderr, "%s %s, ", quantity, kinds[kind].quantities[v]);
	}
	fprintf(stderr, "%.2f %% of stacks whole, %" PRIu64 " lost\n", whole_percent(a), lost);
	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		if (a->lost[i])
			fprintf(stderr, "  lost %" PRIu64 ": %s\n", a->lost[i], lost_text[i]);
	for (int i = BPFPROF_STACK_complete + 1; i < BPFPROF_NR_RESULTS; i++)
		if (a->stacks[i])
			fprintf(stderr, "  cut short %" PRIu64 ": %s\n", a->stacks[i],
				result_text[i]);
	(void)process_notes(r, a, NULL);
	(void)notes(r, kind, NULL);
	if (!a->recorded) {
		fprintf(stderr, "  %s\n",
			kind == BPFPROF_HEAP && r->heap.listens ?
				"the program samples its allocations by itself, and has told of "
				"none" :
				kinds[kind].nothing);
		return;
	}
	fprintf(stderr, "\n");
	if (kinds[kind].at_own)
		fprintf(stderr, OWN_TEXT, kinds[kind].at_own);
	(void)text_write_top(p, stderr, 10, kinds[kind].at_own);
	if (r->opts->format == OPTIONS_PPROF && strcmp(path, "-"))
		fprintf(stderr, "\nLook further with: go tool pprof -http=: %s\n", shown);
}

/* Names that others chose, which are harmless on a terminal, too. */
static void stats_text(struct json *j, const char *key, const char *s)
{
	char clean[1024];

	json__string(j, key, util_printable(clean, sizeof(clean), s));
}

static void stats_counts(struct json *j, const char *key, const char *const *names,
			 const uint64_t *values, int from, int to)
{
	json__begin_object(j, key);
	for (int i = from; i < to; i++)
		json__u64(j, names[i], values[i]);
	json__end_object(j);
}

static void stats_cache(struct json *j, const char *key, const struct bpfprof_cache_stats *cache)
{
	json__begin_object(j, key);
	json__u64(j, "cached", cache->cached);
	json__u64(j, "checked", cache->checked);
	json__u64(j, "mismatched", cache->mismatched);
	json__end_object(j);
}

static void stats_heap(const struct report *r, struct json *j)
{
	const struct heap_report *h = &r->heap;

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
	json__end_object(j);
}

static void stats_waits(const struct report *r, int kind, struct json *j)
{
	const struct collect_account *a = &r->accounts[kind];

	json__u64(j, "below", a->below);
	json__u64(j, "below_ns", a->below_ns);
	json__u64(j, "min_wait_ns", options_min_wait_ns(r->opts, kind));
	json__u64(j, "wait_rate_ns", r->wait_rate_ns);
	json__u64(j, "limited_ns", r->limited_ns);
	json__u64(j, "cost_ns", r->wait_cost_ns[kind]);
	stats_cache(j, "kernel_stacks", &a->kernel_stacks);
	stats_cache(j, "user_stacks", &a->user_stacks);
}

static void stats_stacks(const struct report *r, int kind, struct json *j)
{
	const struct collect_account *a = &r->accounts[kind];

	json__begin_object(j, "stacks");
	json__u64(j, "complete", a->stacks[BPFPROF_STACK_complete]);
	stats_counts(j, "truncated", result_name, a->stacks, BPFPROF_STACK_complete + 1,
		     BPFPROF_NR_RESULTS);
	json__u64(j, "raw", a->raw);
	json__end_object(j);
	json__begin_object(j, "unwind");
	json__u64(j, "frames", a->frames);
	json__u64(j, "bpf_ns", r->bpf_ns);
	json__u64(j, "runs", a->unwinds);
	if (!kinds[kind].waits)
		stats_cache(j, "rules", &a->rules);
	json__end_object(j);
}

static void stats_kind(const struct report *r, int kind, struct json *j)
{
	const struct collect_account *a = &r->accounts[kind];

	json__begin_object(j, kinds[kind].name);
	json__u64(j, "seen", a->seen);
	json__u64(j, "recorded", a->recorded);
	stats_counts(j, "lost", lost_name, a->lost, 0, BPFPROF_NR_LOST);
	json__u64(j, "samples", r->samples[kind]);
	if (kind == BPFPROF_HEAP)
		stats_heap(r, j);
	if (kinds[kind].timed)
		json__u64(j, "period_ns", NSEC_PER_SEC / r->frequency);
	if (kinds[kind].waits)
		stats_waits(r, kind, j);
	if (kind == BPFPROF_THREADCREATE && r->threads_at_start)
		json__u64(j, "threads_at_start", r->threads_at_start);
	if (kind == BPFPROF_THREADS)
		json__u64(j, "snapshot_ns", r->snapshot_ns);
	stats_stacks(r, kind, j);
	json__end_object(j);
}

static void stats_kinds(const struct report *r, struct json *j)
{
	json__begin_object(j, "kinds");
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i])
			stats_kind(r, i, j);
	json__end_object(j);
}

static void stats_tables(const struct code_stats *c, struct json *j)
{
	json__begin_object(j, "tables");
	json__u64(j, "objects", c->objects);
	json__u64(j, "rows", c->rows);
	json__u64(j, "bytes", c->bytes);
	json__u64(j, "build_ns", c->build_ns);
	json__u64(j, "cfi_bytes", c->cfi_bytes);
	json__u64(j, "evicted", c->evicted);
	json__u64(j, "cut_maps", c->cut_maps);
	json__end_object(j);
}

static void stats_symbols(const struct report *r, struct json *j)
{
	struct symbolize_stats sum_of = { 0 };

	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (!r->kinds[i])
			continue;
		sum_of.locations += r->symbols[i].locations;
		sum_of.named += r->symbols[i].named;
		sum_of.with_line += r->symbols[i].with_line;
		sum_of.ns += r->symbols[i].ns;
	}
	json__begin_object(j, "symbols");
	json__u64(j, "locations", sum_of.locations);
	json__u64(j, "named", sum_of.named);
	json__u64(j, "with_line", sum_of.with_line);
	json__u64(j, "ns", sum_of.ns);
	json__end_object(j);
}

static void stats_readers(const struct report *r, struct json *j)
{
	const struct objects_stats *o = &r->objects;

	json__begin_object(j, "readers");
	json__u64(j, "died", o->readers_died);
	json__u64(j, "timed_out", o->readers_timed_out);
	json__u64(j, "lied", o->readers_lied);
	json__u64(j, "set_aside", o->set_aside);
	json__u64(j, "lost", o->lost);
	json__u64(j, "unopened", r->code.unopened);
	json__u64(j, "cpu_ns", o->readers_cpu_ns);
	json__u64(j, "peak_rss", o->readers_peak_rss);
	json__end_object(j);
}

static void stats_perf_maps(const struct perf_maps_stats *m, struct json *j)
{
	json__begin_object(j, "perf_maps");
	json__u64(j, "read", m->read);
	json__u64(j, "refused", m->refused);
	json__u64(j, "lost", m->lost);
	json__u64(j, "cut", m->cut);
	json__u64(j, "ignored", m->ignored);
	json__end_object(j);
}

static void stats_copies(const struct copies_stats *c, struct json *j)
{
	json__begin_object(j, "copies");
	json__u64(j, "proved", c->proved);
	json__u64(j, "differ", c->differ);
	json__u64(j, "unread", c->unread);
	json__end_object(j);
}

static uint64_t own_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ULL;
}

void report_stats(const struct report *r, FILE *f)
{
	uint64_t cpu_ns = own_cpu_ns(); /* before this costs any */
	struct json j = { .f = f };
	struct utsname uts;

	uname(&uts);
	json__begin_object(&j, NULL);
	json__u64(&j, "schema", 1);
	json__string(&j, "version", BPFPROF_VERSION);
	stats_text(&j, "kernel", uts.release);
	stats_text(&j, "target", r->target);
	json__u64(&j, "duration_ns", r->duration_ns);
	json__u64(&j, "startup_ns", r->startup_ns);
	stats_kinds(r, &j);
	stats_tables(&r->code, &j);
	stats_symbols(r, &j);
	stats_readers(r, &j);
	stats_perf_maps(&r->perf_maps, &j);
	stats_copies(&r->code.copies, &j);
	json__u64(&j, "events_lost", any_account(r)->events_lost);
	json__u64(&j, "not_followed", any_account(r)->not_followed);
	json__begin_object(&j, "self");
	json__u64(&j, "cpu_ns", cpu_ns);
	json__u64(&j, "bpf_ns", r->bpf_ns);
	json__u64(&j, "peak_rss", util_peak_rss(getpid()));
	json__end_object(&j);
	json__end_object(&j);
	putc('\n', f);
}
