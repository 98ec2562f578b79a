// SPDX-License-Identifier: BSD-2-Clause
/* The JSON object of --stats. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "base/util.h"
#include "kinds.h"
#include "report/report_parts.h"

#define NAME_OF(name, text) #name,
static const char *const lost_name[] = { BPFPROF_LOST_REASONS(NAME_OF) };
static const char *const result_name[] = { BPFPROF_STACK_RESULTS(NAME_OF) };

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

void report_stats_cache(struct json *j, const char *key, const struct bpfprof_cache_stats *cache)
{
	json__begin_object(j, key);
	json__u64(j, "cached", cache->cached);
	json__u64(j, "checked", cache->checked);
	json__u64(j, "mismatched", cache->mismatched);
	json__end_object(j);
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
	json__u64(j, "bpf_ns", r->stats.bpf_ns);
	json__u64(j, "runs", a->unwinds);
	if (!kinds[kind].waits)
		report_stats_cache(j, "rules", &a->rules);
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
	if (report_kinds[kind].stats)
		report_kinds[kind].stats(r, kind, j);
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
		sum_of.hits += r->symbols[i].hits;
		sum_of.misses += r->symbols[i].misses;
		sum_of.evicted += r->symbols[i].evicted;
	}
	json__begin_object(j, "symbols");
	json__u64(j, "locations", sum_of.locations);
	json__u64(j, "named", sum_of.named);
	json__u64(j, "with_line", sum_of.with_line);
	json__u64(j, "ns", sum_of.ns);
	json__u64(j, "hits", sum_of.hits);
	json__u64(j, "misses", sum_of.misses);
	json__u64(j, "evicted", sum_of.evicted);
	json__end_object(j);
}

static void stats_readers(const struct report *r, struct json *j)
{
	const struct objects_stats *o = &r->files.objects;

	json__begin_object(j, "readers");
	json__u64(j, "died", o->readers_died);
	json__u64(j, "timed_out", o->readers_timed_out);
	json__u64(j, "lied", o->readers_lied);
	json__u64(j, "set_aside", o->set_aside);
	json__u64(j, "lost", o->lost);
	json__u64(j, "unopened", r->files.code.unopened);
	json__u64(j, "cpu_ns", o->readers_cpu_ns);
	json__u64(j, "peak_rss", r->readers_peak_rss);
	json__end_object(j);
}

static void stats_debuginfod(const struct report_debuginfod *d, struct json *j)
{
	json__begin_object(j, "debuginfod");
	json__u64(j, "asked", d->asked);
	json__u64(j, "cached", d->cached);
	json__u64(j, "fetched", d->fetched);
	json__u64(j, "bytes", d->bytes);
	json__u64(j, "missing", d->missing);
	json__u64(j, "late", d->late);
	json__u64(j, "refused", d->refused);
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
	stats_tables(&r->files.code, &j);
	stats_symbols(r, &j);
	stats_readers(r, &j);
	if (r->debuginfod)
		stats_debuginfod(r->debuginfod, &j);
	stats_perf_maps(&r->files.perf_maps, &j);
	stats_copies(&r->files.code.copies, &j);
	json__u64(&j, "events_lost", report_any_account(r)->events_lost);
	json__u64(&j, "not_followed", report_any_account(r)->not_followed);
	json__begin_object(&j, "self");
	json__u64(&j, "cpu_ns", cpu_ns);
	json__u64(&j, "bpf_ns", r->stats.bpf_ns);
	json__u64(&j, "peak_rss", util_peak_rss(getpid()));
	json__u64(&j, "late_ns", r->stats.late_ns);
	json__end_object(&j);
	json__end_object(&j);
	putc('\n', f);
}
