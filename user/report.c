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

/* A string of JSON (RFC 8259, section 7); what is no UTF-8 was made harmless before. */
static void json_string(FILE *f, const char *s)
{
	char clean[1024];

	util_printable(clean, sizeof(clean), s);
	putc('"', f);
	for (s = clean; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', f);
		putc(*s, f);
	}
	putc('"', f);
}

static void stats_names(FILE *f, const char *const *names, const uint64_t *values, int from, int to)
{
	for (int i = from; i < to; i++)
		fprintf(f, "%s\"%s\":%" PRIu64, i > from ? "," : "", names[i], values[i]);
}

static void stats_heap(const struct report *r, FILE *f)
{
	const struct heap_report *h = &r->heap;

	fprintf(f,
		",\"period_bytes\":%" PRIu64
		",\"heap\":{\"method\":\"%s\",\"probes\":%zu,\"hits\":%" PRIu64
		",\"cost_ns\":%" PRIu64 ",\"bpf_ns\":%" PRIu64 ",\"target_cpu_ns\":%" PRIu64
		",\"attach_ns\":%" PRIu64 ",\"attached_ns\":%" PRIu64
		",\"sliced\":%s,\"untracked\":%" PRIu64 "}",
		r->opts->heap_rate, h->method, h->points, h->hits, h->cost_ns, h->bpf_ns, h->cpu_ns,
		h->attach_ns, h->attached_ns, h->sliced ? "true" : "false", h->untracked);
}

static void stats_cache(const struct bpfprof_cache_stats *cache, const char *name, FILE *f)
{
	fprintf(f,
		",\"%s\":{\"cached\":%" PRIu64 ",\"checked\":%" PRIu64 ",\"mismatched\":%" PRIu64
		"}",
		name, (uint64_t)cache->cached, (uint64_t)cache->checked,
		(uint64_t)cache->mismatched);
}

static void stats_kind(const struct report *r, int kind, FILE *f)
{
	const struct collect_account *a = &r->accounts[kind];

	fprintf(f, "\"%s\":{\"seen\":%" PRIu64 ",\"recorded\":%" PRIu64 ",\"lost\":{",
		kinds[kind].name, a->seen, a->recorded);
	stats_names(f, lost_name, a->lost, 0, BPFPROF_NR_LOST);
	fprintf(f, "},\"samples\":%zu", r->samples[kind]);
	if (kind == BPFPROF_HEAP)
		stats_heap(r, f);
	if (kinds[kind].timed)
		fprintf(f, ",\"period_ns\":%" PRIu64, (uint64_t)(NSEC_PER_SEC / r->frequency));
	if (kinds[kind].waits) {
		fprintf(f,
			",\"below\":%" PRIu64 ",\"below_ns\":%" PRIu64 ",\"min_wait_ns\":%" PRIu64
			",\"wait_rate_ns\":%" PRIu64 ",\"limited_ns\":%" PRIu64
			",\"cost_ns\":%" PRIu64,
			a->below, a->below_ns, options_min_wait_ns(r->opts, kind), r->wait_rate_ns,
			r->limited_ns, r->wait_cost_ns[kind]);
		stats_cache(&a->kernel_stacks, "kernel_stacks", f);
		stats_cache(&a->user_stacks, "user_stacks", f);
	}
	if (kind == BPFPROF_THREADCREATE && r->threads_at_start)
		fprintf(f, ",\"threads_at_start\":%" PRIu64, r->threads_at_start);
	if (kind == BPFPROF_THREADS)
		fprintf(f, ",\"snapshot_ns\":%" PRIu64, r->snapshot_ns);
	fprintf(f, ",\"stacks\":{\"complete\":%" PRIu64 ",\"truncated\":{",
		a->stacks[BPFPROF_STACK_complete]);
	stats_names(f, result_name, a->stacks, BPFPROF_STACK_complete + 1, BPFPROF_NR_RESULTS);
	fprintf(f,
		"},\"raw\":%" PRIu64 "},\"unwind\":{\"frames\":%" PRIu64 ",\"bpf_ns\":%" PRIu64
		",\"runs\":%" PRIu64,
		a->raw, a->frames, r->bpf_ns, a->unwinds);
	if (!kinds[kind].waits)
		stats_cache(&a->rules, "rules", f);
	fprintf(f, "}}");
}

void report_stats(const struct report *r, FILE *f)
{
	struct symbolize_stats symbols = { 0 };
	uint64_t cpu_ns;
	struct rusage usage;
	struct utsname uts;
	bool first = true;

	uname(&uts);
	getrusage(RUSAGE_SELF, &usage);
	cpu_ns = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
		 (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ULL;
	fprintf(f, "{\"schema\":1,\"version\":\"%s\",\"kernel\":", BPFPROF_VERSION);
	json_string(f, uts.release);
	fprintf(f, ",\"target\":");
	json_string(f, r->target);
	fprintf(f, ",\"duration_ns\":%" PRIu64 ",\"startup_ns\":%" PRIu64 ",\"kinds\":{",
		r->duration_ns, r->startup_ns);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (!r->kinds[i])
			continue;
		if (!first)
			putc(',', f);
		first = false;
		stats_kind(r, i, f);
		symbols.locations += r->symbols[i].locations;
		symbols.named += r->symbols[i].named;
		symbols.with_line += r->symbols[i].with_line;
		symbols.ns += r->symbols[i].ns;
	}
	fprintf(f,
		"},\"tables\":{\"objects\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64
		",\"build_ns\":%" PRIu64 ",\"cfi_bytes\":%" PRIu64 ",\"evicted\":%" PRIu64
		",\"cut_maps\":%" PRIu64 "}",
		r->code.objects, r->code.rows, r->code.bytes, r->code.build_ns, r->code.cfi_bytes,
		r->code.evicted, r->code.cut_maps);
	fprintf(f,
		",\"symbols\":{\"locations\":%" PRIu64 ",\"named\":%" PRIu64
		",\"with_line\":%" PRIu64 ",\"ns\":%" PRIu64 "}",
		symbols.locations, symbols.named, symbols.with_line, symbols.ns);
	fprintf(f,
		",\"readers\":{\"died\":%" PRIu64 ",\"timed_out\":%" PRIu64 ",\"lied\":%" PRIu64
		",\"set_aside\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"unopened\":%" PRIu64
		",\"cpu_ns\":%" PRIu64 ",\"peak_rss\":%" PRIu64 "}",
		r->objects.readers_died, r->objects.readers_timed_out, r->objects.readers_lied,
		r->objects.set_aside, r->objects.lost, r->code.unopened, r->objects.readers_cpu_ns,
		r->objects.readers_peak_rss);
	fprintf(f,
		",\"perf_maps\":{\"read\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"lost\":%" PRIu64
		",\"cut\":%" PRIu64 ",\"ignored\":%" PRIu64 "}",
		r->perf_maps.read, r->perf_maps.refused, r->perf_maps.lost, r->perf_maps.cut,
		r->perf_maps.ignored);
	fprintf(f,
		",\"copies\":{\"proved\":%" PRIu64 ",\"differ\":%" PRIu64 ",\"unread\":%" PRIu64
		"}",
		r->code.copies.proved, r->code.copies.differ, r->code.copies.unread);
	fprintf(f,
		",\"events_lost\":%" PRIu64 ",\"not_followed\":%" PRIu64
		",\"self\":{\"cpu_ns\":%" PRIu64 ",\"bpf_ns\":%" PRIu64 ",\"peak_rss\":%" PRIu64
		"}}\n",
		any_account(r)->events_lost, any_account(r)->not_followed, cpu_ns, r->bpf_ns,
		util_peak_rss(getpid()));
}
