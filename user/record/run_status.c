// SPDX-License-Identifier: BSD-2-Clause
/* What the agent says of itself to those who watch it: metrics, as Prometheus reads them. Every
 * number is since the start, or as it is now. */
#include <linux/types.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/push.h"
#include "base/util.h"
#include "capture/capture.h"
#include "config.h"
#include "kinds.h"
#include "options.h"
#include "record/run_parts.h"
#include "report/report.h"
#include "spool/spool.h"

#define EVERY_NS (10 * NSEC_PER_SEC)

#define NAME_OF(name, text) #name,
static const char *const lost_names[] = { BPFPROF_LOST_REASONS(NAME_OF) };

static const char *const outcomes[WIRE_NR_OUTCOMES] = {
	[WIRE_DELIVERED] = "delivered",	  [WIRE_REFUSED] = "refused",
	[WIRE_FAILED] = "failed",	  [WIRE_UNANSWERED] = "unanswered",
	[WIRE_UNREADABLE] = "unreadable", [WIRE_MAYBE_DUPLICATE] = "maybe_duplicate",
	[WIRE_PARTIAL] = "partial",
};

#define REASON_OF(name, text) #name,
static const char *const reasons[WIRE_NR_REASONS] = { WIRE_REASONS(REASON_OF) };

void run_count_window(struct run *r, const struct report *report, bool written)
{
	struct run_totals *t = &r->totals;

	t->windows++;
	t->windows_failed += !written;
	t->late_ns = report->stats.late_ns;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		const struct collect_account *a = &report->accounts[i];

		if (!report->kinds[i])
			continue;
		t->seen[i] += a->seen;
		t->recorded[i] += a->recorded;
		t->whole[i] += a->stacks[BPFPROF_STACK_complete];
		for (int k = 0; k < BPFPROF_NR_LOST; k++)
			t->lost[i][k] += a->lost[k];
	}
}

/* ---- the text ---- */

/* name: without what all begin with */
static void begin(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP bpfprof_%s %s\n# TYPE bpfprof_%s %s\n", name, help, name, type);
}

static void write_kinds(const struct run *r, FILE *f)
{
	const bool *recorded = capture__kinds(r->capture);
	const struct run_totals *t = &r->totals;
	const struct {
		const char *name, *help;
		const uint64_t *of;
	} counts[] = {
		{ "samples_total", "Samples that were due.", t->seen },
		{ "recorded_samples_total", "Samples that are in a profile.", t->recorded },
		{ "whole_stacks_total", "Recorded samples whose stack is whole.", t->whole },
		{ "own_samples_total", "Samples of bpfprof itself, which are left out, estimated.",
		  t->own },
	};

	for (size_t k = 0; k < ARRAY_SIZE(counts); k++) {
		begin(f, counts[k].name, "counter", counts[k].help);
		for (int i = 0; i < BPFPROF_NR_KINDS; i++)
			if (recorded[i])
				fprintf(f, "bpfprof_%s{kind=\"%s\"} %" PRIu64 "\n", counts[k].name,
					kinds[i].name, counts[k].of[i]);
	}
	begin(f, "lost_samples_total", "counter", "Samples that are in no profile, by the reason.");
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		for (int k = 0; recorded[i] && k < BPFPROF_NR_LOST; k++)
			fprintf(f,
				"bpfprof_lost_samples_total{kind=\"%s\",reason=\"%s\"} %" PRIu64
				"\n",
				kinds[i].name, lost_names[k], t->lost[i][k]);
}

static void write_windows(const struct run *r, FILE *f)
{
	struct spool_stats s;

	spool__stats(r->spool, &s);
	begin(f, "windows_total", "counter", "Windows that have ended.");
	fprintf(f, "bpfprof_windows_total %" PRIu64 "\n", r->totals.windows);
	begin(f, "windows_failed_total", "counter",
	      "Windows of which not all profiles could be written.");
	fprintf(f, "bpfprof_windows_failed_total %" PRIu64 "\n", r->totals.windows_failed);
	begin(f, "profiles_total", "counter", "Profiles that were written to the spool.");
	fprintf(f, "bpfprof_profiles_total %" PRIu64 "\n", s.added);
	begin(f, "spool_bytes", "gauge", "Bytes of the spool.");
	fprintf(f, "bpfprof_spool_bytes %" PRIu64 "\n", s.bytes);
	begin(f, "spool_profiles", "gauge", "Profiles in the spool.");
	fprintf(f, "bpfprof_spool_profiles %" PRIu64 "\n", s.records);
	begin(f, "spool_dropped_profiles_total", "counter",
	      "Profiles that were removed from the spool to make room.");
	fprintf(f, "bpfprof_spool_dropped_profiles_total %" PRIu64 "\n", s.dropped);
}

static void write_targets(const struct run *r, FILE *f)
{
	const struct config *c = run_config(r);

	if (!c || !c->target_cnt)
		return;
	begin(f, "target_processes", "gauge",
	      "Processes that a target of the configuration means.");
	for (size_t i = 0; i < c->target_cnt; i++)
		fprintf(f, "bpfprof_target_processes{target=\"%s\"} %zu\n", c->targets[i].name,
			run_target_processes(r, i));
}

/* Names of destinations are letters, digits and the like: nothing in them has to be quoted. */
static void write_push(const struct run *r, FILE *f)
{
	const struct config *c = run_config(r);
	struct push_stats s;

	begin(f, "push_profiles_total", "counter",
	      "Profiles that are settled for a destination, by what has become of them.");
	for (size_t i = 0; c && i < c->push_cnt; i++) {
		const char *name = c->push[i].name;

		if (!push__stats(r->push, name, &s))
			continue;
		for (int k = 0; k < WIRE_NR_OUTCOMES; k++)
			fprintf(f,
				"bpfprof_push_profiles_total{destination=\"%s\",outcome=\"%s\"} "
				"%" PRIu64 "\n",
				name, outcomes[k], s.outcome[k]);
		fprintf(f,
			"bpfprof_push_profiles_total{destination=\"%s\",outcome=\"too_old\"} "
			"%" PRIu64
			"\n"
			"bpfprof_push_profiles_total{destination=\"%s\",outcome=\"dropped\"} "
			"%" PRIu64 "\n",
			name, s.too_old, name, s.dropped);
	}
	begin(f, "push_failures_total", "counter", "Attempts that have failed, by the reason.");
	for (size_t i = 0; c && i < c->push_cnt; i++)
		for (int k = 0; push__stats(r->push, c->push[i].name, &s) && k < WIRE_NR_REASONS;
		     k++)
			fprintf(f,
				"bpfprof_push_failures_total{destination=\"%s\",reason=\"%s\"} "
				"%" PRIu64 "\n",
				c->push[i].name, reasons[k], s.failures[k]);
	begin(f, "push_bytes_total", "counter",
	      "Bytes of requests that were sent, without their heads.");
	for (size_t i = 0; c && i < c->push_cnt; i++)
		if (push__stats(r->push, c->push[i].name, &s))
			fprintf(f, "bpfprof_push_bytes_total{destination=\"%s\"} %" PRIu64 "\n",
				c->push[i].name, s.bytes);
	begin(f, "push_pending_profiles", "gauge", "Profiles that are not settled yet.");
	for (size_t i = 0; c && i < c->push_cnt; i++)
		if (push__stats(r->push, c->push[i].name, &s))
			fprintf(f,
				"bpfprof_push_pending_profiles{destination=\"%s\"} %" PRIu64 "\n",
				c->push[i].name, s.pending);
}

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	char *buf;
	size_t sz;

	if (util_read_file("/proc/self/statm", 256, &buf, &sz))
		return 0;
	(void)sscanf(buf, "%*u %llu", &pages);
	free(buf);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_cpu(FILE *f, const char *process, uint64_t ns)
{
	fprintf(f, "bpfprof_cpu_seconds_total{process=\"%s\"} %.3f\n", process,
		(double)ns / NSEC_PER_SEC);
}

/* others: dumps, and those that open what the readers may not. */
static void write_processes(struct run *r, FILE *f)
{
	struct run_totals *t = &r->totals;
	pid_t children[RUN_MAX_CHILDREN], courier;
	ssize_t found = run_children(children);
	size_t cnt = found < 0 ? 0 : (size_t)found;
	uint64_t own_ns = run_own_ns(), all_ns = run_processes_ns(children, cnt), courier_ns;
	uint64_t known_ns, helpers = 0;
	struct capture_files_stats files;
	struct run_budget_state budget;

	courier = push__courier(r->push, &courier_ns);
	capture__files_stats(r->capture, &files);
	known_ns = own_ns + courier_ns + files.objects.readers_cpu_ns;
	/* each was looked at a moment after the other, and a counter does not fall */
	if (all_ns > known_ns)
		t->others_ns = MAX(t->others_ns, all_ns - known_ns);
	begin(f, "cpu_seconds_total", "counter",
	      "CPU time of the agent's processes, and of its BPF programs where --max-cpu asks for "
	      "it.");
	write_cpu(f, "collector", own_ns);
	write_cpu(f, "readers", files.objects.readers_cpu_ns);
	write_cpu(f, "courier", courier_ns);
	write_cpu(f, "others", t->others_ns);
	if (r->opts->max_cpu > 0 && run_budget_get(r, &budget))
		write_cpu(f, "bpf", budget.bpf_ns);
	begin(f, "memory_bytes", "gauge",
	      "Memory of the agent's processes that they have for themselves, without BPF maps.");
	for (size_t i = 0; i < cnt; i++)
		helpers += children[i] == courier ? 0 : run_memory_of(children[i]);
	fprintf(f,
		"bpfprof_memory_bytes{process=\"collector\"} %" PRIu64
		"\n"
		"bpfprof_memory_bytes{process=\"courier\"} %" PRIu64
		"\n"
		"bpfprof_memory_bytes{process=\"others\"} %" PRIu64 "\n",
		run_memory_of(getpid()), courier ? run_memory_of(courier) : 0, helpers);
}

static void write_itself(const struct run *r, FILE *f)
{
	const struct run_totals *t = &r->totals;
	struct run_budget_state budget;

	if (run_budget_get(r, &budget)) {
		begin(f, "budget_step", "gauge",
		      "What is given up for --max-cpu and --max-memory, 0: nothing.");
		fprintf(f, "bpfprof_budget_step %u\n", budget.step);
		begin(f, "budget_cpu_ratio", "gauge",
		      "Share of all CPUs that the last window took, with the BPF programs.");
		fprintf(f, "bpfprof_budget_cpu_ratio %.6f\n", budget.cpu);
		begin(f, "budget_memory_bytes", "gauge", "Memory of all processes and BPF maps.");
		fprintf(f, "bpfprof_budget_memory_bytes %" PRIu64 "\n", budget.memory);
	}
	begin(f, "loop_late_seconds", "gauge",
	      "The longest time that the collector came too late to look, in the last window.");
	fprintf(f, "bpfprof_loop_late_seconds %.6f\n", (double)t->late_ns / NSEC_PER_SEC);
	begin(f, "resident_bytes", "gauge", "Memory of the collector.");
	fprintf(f, "bpfprof_resident_bytes %" PRIu64 "\n", resident_bytes());
	begin(f, "config_last_reload_successful", "gauge",
	      "Was the configuration right when it was read last?");
	fprintf(f, "bpfprof_config_last_reload_successful %d\n", !t->reload_failed);
	begin(f, "config_last_reload_success_timestamp_seconds", "gauge",
	      "When the configuration in force was read.");
	fprintf(f, "bpfprof_config_last_reload_success_timestamp_seconds %" PRIu64 "\n",
		t->reload_ns / NSEC_PER_SEC);
	begin(f, "build_info", "gauge", "The version.");
	fprintf(f, "bpfprof_build_info{version=\"%s\"} 1\n", BPFPROF_VERSION);
}

void run_tell_status(struct run *r)
{
	char *text = NULL;
	size_t sz = 0;
	FILE *f = r->push ? open_memstream(&text, &sz) : NULL;

	r->next_status_ns = util_monotonic_ns() + EVERY_NS;
	if (!f)
		return;
	write_windows(r, f);
	write_kinds(r, f);
	write_targets(r, f);
	write_push(r, f);
	write_processes(r, f);
	write_itself(r, f);
	if (!fclose(f))
		push__status(r->push, text, sz);
	free(text);
}
