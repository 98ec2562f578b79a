// SPDX-License-Identifier: BSD-2-Clause
/* The end of a recording: profiles are put together, get their names, and become files. */
#include <linux/types.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/window.h"
#include "capture/windows.h"
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

static int write_profile(struct run *r, const struct report *report, int kind)
{
	const struct profile *p = r->profiles[kind];
	struct output out;
	char path[PATH_MAX];
	int err;

	run_output_path(r, kind, r->window_number, path);
	err = output_open(path, &out);
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
	err = output_open(path, &out);
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
				  struct heap_part *part, struct symbolize_source **ret_sources)
{
	struct window_profile_opts opts = { .period = r->periods[kind],
					    .value_cnt = kinds[kind].value_cnt,
					    .folded_value = kinds[kind].folded_value };
	struct profile *p;
	int err = 0;

	if (kind == BPFPROF_HEAP)
		err = heap__finish(r->heap, r->window, part,
				   r->window_from_ns + report->duration_ns, &opts);
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

static int finish_kind(struct run *r, struct report *report, int kind, struct heap_part *part)
{
	struct symbolize_source *sources;
	struct profile *p = profile_of(r, report, kind, part, &sources);
	int err;

	if (!p)
		return -errno;
	r->profiles[kind] = p;
	err = collect__account(r->collect, r->window, kind, &report->accounts[kind]);
	if (!err)
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

/* Asked to stop a second time? Nothing has been put in place before the files are renamed. */
static bool aborted(struct run *r)
{
	run_read_signals(r);
	return r->stops > 1;
}

static int write_files(struct run *r, const struct report *report)
{
	int err = 0;

	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (aborted(r)) {
			log_error("aborted: nothing was written");
			return -EINTR;
		}
		if (r->profiles[i])
			err = write_profile(r, report, i);
	}
	if (!err && r->opts->stats)
		err = write_stats(r, report);
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
static int finish_kinds(struct run *r, struct report *report, struct heap_part *part)
{
	int err = 0;

	session__run_time(r->session, "", &report->bpf_ns, &report->bpf_runs);
	code__stats(r->code, &report->code);
	if (r->heap)
		heap__report(r->heap, &report->heap);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		report->wait_cost_ns[i] = (uint64_t)r->wait_costs[i].ns;
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i])
			err = finish_kind(r, report, i, part);
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

/* Writes the files of the window that has ended at to_ns; part: NULL of the last one. 0 or -errno,
 * said. */
static int write_window(struct run *r, struct heap_part *part, uint64_t to_ns)
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
		.snapshot_ns = r->snapshot.ns,
		.threads_at_start = r->threads_at_start,
		.wait_rate_ns = wait_budget__mean_rate(&r->wait_budget),
		.limited_ns = r->wait_budget.limited_ns,
	};
	char text[1024];
	int err = finish_kinds(r, &report, part);

	if (err)
		return err;
	if (!part)
		say_unnamed(&report);
	rights_to_write(true);
	err = write_files(r, &report);
	if (err && err != -EINTR && r->window_number) {
		/* a set is whole, or it is not there */
		(void)run_remove_files(r, r->window_number);
		log_error("window %u is missing", r->window_number);
	} else if (!err && r->opts->keep && r->window_number > r->opts->keep) {
		err = run_remove_files(r, r->window_number - r->opts->keep);
	}
	rights_to_write(false);
	if (!err && r->opts->strict) {
		err = report_strict(&report, text, sizeof(text));
		if (err)
			log_error("--strict: %s", text);
	}
	return err;
}

static void free_profiles(struct run *r)
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		profile__free(r->profiles[i]);
		r->profiles[i] = NULL;
	}
}

/* Windows are as long as they are to be, all together, also if one is late. */
uint64_t run_next_window_ns(const struct run *r)
{
	uint64_t len = r->opts->window_ns;

	return r->armed_ns + ((r->boundary_ns - r->armed_ns) / len + 1) * len;
}

int run_end_window(struct run *r)
{
	struct heap_part *part = &r->heap_parts[r->ended_windows % CAPTURE_EPOCHS];
	uint64_t now = util_monotonic_ns();
	int err;

	if (r->heap)
		heap__end_part(r->heap, part);
	err = collect__end_epoch(r->collect, true);
	if (err)
		return err;
	if (r->heap)
		heap__read_live(r->heap, part);
	r->boundary_ns = now;
	r->ended_windows++;
	return 0;
}

/* The first window that has ended. */
static int write_first(struct run *r)
{
	struct windows *windows = collect__windows(r->collect);
	struct heap_part *part = &r->heap_parts[r->written_windows % CAPTURE_EPOCHS];
	uint64_t to_ns;
	int err = collect__settle_boundary(r->collect, &to_ns);

	if (err)
		return err;
	err = write_window(r, part, to_ns);
	free_profiles(r);
	heap_part__done(part);
	/* what was not written is said to be missing, and the run goes on */
	r->failed |= err != 0;
	if (err == -ENOMEM || err == -EINTR)
		return err;
	windows__close(windows, r->window);
	r->window = windows__open(windows);
	if (!r->window)
		return -errno;
	r->window_from_ns = to_ns;
	r->window_number++;
	r->written_windows++;
	return 0;
}

int run_write_windows(struct run *r)
{
	int err = 0;

	while (!err && collect__has_boundary(r->collect))
		err = write_first(r);
	return err;
}

int run_write(struct run *r)
{
	int err = collect__cut(r->collect);

	if (err)
		log_error("cannot take in what was sampled last: %s", strerror(-err));
	else
		err = write_window(r, NULL, r->stopped_ns);
	free_profiles(r);
	return err ? err : r->failed ? -EIO : 0;
}
