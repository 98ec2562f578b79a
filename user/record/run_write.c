// SPDX-License-Identifier: BSD-2-Clause
/* The end of a window: profiles are put together, get their names, and become files. */
#include <linux/types.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "capture/window.h"
#include "capture/code.h"
#include "capture/collect.h"
#include "report/formats.h"
#include "heap/heap.h"
#include "kernel/cpus.h"
#include "kernel/session.h"
#include "kinds.h"
#include "options.h"
#include "record/output.h"
#include "profile/go_frames.h"
#include "profile/machinery.h"
#include "profile/profile.h"
#include "report/report.h"
#include "record/rights.h"
#include "record/run_parts.h"
#include "capture/symbolize.h"
#include "target/objects.h"
#include "target/perf_maps.h"

/* ---- profiles ---- */

/* A disk may take a second to sync a file: the next windows would end late for it. */
static int open_file(const struct run *r, const char *path, struct output *ret)
{
	int err = output_open(path, ret);

	ret->sync = !r->window_number;
	return err;
}

static int write_profile(struct run *r, const struct report *report, int kind)
{
	const struct profile *p = r->profiles[kind];
	struct output out;
	char path[PATH_MAX];
	int err;

	run_output_path(r, kind, r->window_number, path);
	err = open_file(r, path, &out);
	if (!err) {
		err = r->opts->format->write(p, &kinds[kind], out.f);
		if (err)
			output_abort(&out);
		else
			err = output_commit(&out);
	}
	if (err) {
		log_error("cannot write '%s': %s", path, strerror(-err));
		return err;
	}
	report_summary(report, kind, p, path);
	return 0;
}

static int write_stats(const struct run *r, const struct report *report)
{
	struct output out;
	char path[PATH_MAX];
	int err;

	run_stats_path(r, r->window_number, path);
	err = open_file(r, path, &out);
	if (!err) {
		report_stats(report, out.f);
		err = output_commit(&out);
	}
	if (err)
		log_error("cannot write '%s': %s", path, strerror(-err));
	return err;
}

/* The profile of a kind, as it was sampled. NULL with errno. */
static struct profile *profile_of(struct run *r, const struct report *report, int kind,
				  const struct heap_part *part,
				  struct symbolize_source **ret_sources)
{
	struct window_profile_opts opts = { .period = r->periods[kind],
					    .value_cnt = kinds[kind].value_cnt,
					    .folded_value = kinds[kind].folded_value };
	struct profile *p;
	int err = 0;

	if (kind == BPFPROF_HEAP)
		err = heap__finish(r->heap, r->window, part, &opts);
	else
		window__commit(r->window, kind, 1);
	errno = -err;
	p = err ? NULL : window__profile(r->window, kind, &opts, ret_sources);
	if (p) {
		p->time_ns = r->start_ns + (int64_t)(r->window_from_ns - r->armed_ns);
		p->duration_ns = (int64_t)report->duration_ns;
	}
	return p;
}

/* What became of the window's samples. */
static void set_account(struct run *r, int kind, struct collect_account *ret)
{
	collect__account(r->collect, r->window, kind, ret);
	ret->events_lost -= r->events_lost;
	ret->not_followed -= r->not_followed;
}

static int finish_kind(struct run *r, struct report *report, int kind, const struct heap_part *part)
{
	struct symbolize_source *sources;
	struct profile *p = profile_of(r, report, kind, part, &sources);
	int err;

	if (!p)
		return -errno;
	r->profiles[kind] = p;
	set_account(r, kind, &report->accounts[kind]);
	err = report_comment(report, kind, p);
	if (!err)
		err = symbolize(p, r->objects, r->names, code__perf_maps(r->code), r->ksyms,
				sources, p->mapping_cnt, &report->symbols[kind]);
	free(sources);
	if (!err)
		go_frames__elide(p);
	if (!err && r->opts->format->like_pprof)
		go_frames__like_pprof(p);
	if (!err && kinds[kind].hide)
		kinds[kind].hide(p);
	if (!err && kinds[kind].drops)
		err = machinery_hide(p, kinds[kind].drops);
	if (!err)
		err = profile__finish(p);
	report->samples[kind] = p->sample_cnt;
	return err;
}

/* Asked to stop a second time? */
static bool aborted(struct run *r)
{
	run_read_signals(r);
	return r->stops > 1;
}

/* ret_written: which files are in place now. */
static int write_files(struct run *r, const struct report *report,
		       bool ret_written[BPFPROF_NR_KINDS])
{
	int err = 0;

	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (!r->profiles[i])
			continue;
		run_meanwhile(r);
		err = aborted(r) ? -EINTR : write_profile(r, report, i);
		ret_written[i] = !err;
	}
	if (!err && r->opts->stats)
		err = write_stats(r, report);
	return err;
}

static int remove_profile(const struct run *r, int kind, unsigned int number)
{
	char path[PATH_MAX];

	run_output_path(r, kind, number, path);
	return run_remove_file(path);
}

/* A set is whole, or it is not there. */
static void take_back(const struct run *r, const bool written[BPFPROF_NR_KINDS])
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (written[i])
			(void)remove_profile(r, i, r->window_number);
}

/* --keep: the set that is one too many. */
static int drop_oldest(const struct run *r)
{
	unsigned int number = r->window_number - r->opts->keep;
	char path[PATH_MAX];
	int err = 0;

	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i])
			err = remove_profile(r, i, number);
	if (err || !r->opts->stats)
		return err;
	run_stats_path(r, number, path);
	return run_remove_file(path);
}

/* The files of a window, as its number has them. 0 or -errno, said. */
static int write_set(struct run *r, const struct report *report)
{
	bool written[BPFPROF_NR_KINDS] = { false }, any = false;
	int err = write_files(r, report, written);

	if (!err && r->opts->keep && r->window_number > r->opts->keep)
		return drop_oldest(r);
	if (!err)
		return 0;
	if (r->window_number) {
		take_back(r, written);
		log_error("%swindow %u is missing", err == -EINTR ? "aborted: " : "",
			  r->window_number);
		return err;
	}
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		any |= written[i];
	if (err == -EINTR)
		log_error("aborted: %s",
			  any ? "not all files were written" : "nothing was written");
	return err;
}

/* What there is to say about names that are missing. */
static void say_unnamed(const struct report *report)
{
	if (report->perf_maps.refused)
		log_info("%" PRIu64
			 " perf maps (/tmp/perf-PID.map) are not read: they are no regular files, "
			 "or not the process's own, or not from its time",
			 report->perf_maps.refused);
	if (report->objects.set_aside)
		log_info("%" PRIu64
			 " files have no names here: they ended what read them, or kept "
			 "it waiting",
			 report->objects.set_aside);
	if (report->objects.lost)
		log_info("%" PRIu64
			 " files have no names here: there were too many to keep all of them "
			 "open, and they are gone",
			 report->objects.lost);
	if (report->code.unopened)
		log_info("%" PRIu64
			 " files have no names here: they were gone when they were to be opened",
			 report->code.unopened);
}

/* Makes the profiles of the window that has ended, with their names. 0 or -errno, said. */
static int finish_kinds(struct run *r, struct report *report, const struct heap_part *part)
{
	int err = 0;

	session__run_time(r->session, "", &report->bpf_ns, &report->bpf_runs);
	code__stats(r->code, &report->code);
	if (r->heap)
		heap__report(r->heap, &report->heap);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		report->wait_cost_ns[i] = (uint64_t)r->wait_costs[i].ns;
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (!r->kinds[i])
			continue;
		run_meanwhile(r);
		err = finish_kind(r, report, i, part);
	}
	if (err) {
		log_error("cannot put the profile together: %s", strerror(-err));
		return err;
	}
	/* once more: names may be of files that nothing else asked for */
	code__stats(r->code, &report->code);
	objects__stats(r->objects, &report->objects);
	perf_maps__stats(code__perf_maps(r->code), &report->perf_maps);
	return 0;
}

int run_write_window(struct run *r, const struct heap_part *part, uint64_t to_ns)
{
	struct report report = {
		.opts = r->opts,
		.target = r->target,
		.kinds = r->kinds,
		.frequency = r->frequency,
		.cpus = cpus_possible(),
		.is_window = r->window_number,
		.duration_ns = to_ns - r->window_from_ns,
		.run_ns = to_ns - r->armed_ns,
		.startup_ns = r->startup_ns,
		.late_ns = r->late_ns,
		.snapshot_ns = r->snapshot.ns,
		.threads_at_start = r->threads_at_start,
		.wait_rate_ns = wait_budget__mean_rate(&r->wait_budget),
		.limited_ns = r->wait_budget.limited_ns,
	};
	struct collect_account so_far;
	char text[1024];
	int err = finish_kinds(r, &report, part);

	r->late_ns = 0;
	if (err)
		return err;
	if (r->stopped_ns)
		say_unnamed(&report);
	rights_to_write(true);
	err = write_set(r, &report);
	rights_to_write(false);
	if (!err && r->opts->strict) {
		err = report_strict(&report, text, sizeof(text));
		if (err)
			log_error("--strict: %s", text);
	}
	/* of the run, whichever kind is asked for */
	collect__account(r->collect, r->window, BPFPROF_CPU, &so_far);
	r->events_lost = so_far.events_lost;
	r->not_followed = so_far.not_followed;
	return err;
}
