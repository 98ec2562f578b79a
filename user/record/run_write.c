// SPDX-License-Identifier: BSD-2-Clause
/* The end of a window: profiles are put together, get their names, and become files. */
#include <linux/types.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "base/util.h"
#include "capture/capture.h"
#include "report/formats.h"
#include "kernel/cpus.h"
#include "kernel/machine.h"
#include "kernel/probe_fds.h"
#include "kinds.h"
#include "options.h"
#include "profile/profile.h"
#include "report/finish_profile.h"
#include "report/report.h"
#include "record/rights.h"
#include "record/run_parts.h"

#define ROOM_WINDOWS 100 /* until it is tried again whether the disk has room for a set more */

/* ---- profiles ---- */

/* A disk may take a second to sync a file: the next windows would end late for it. */
static int open_file(const struct run *r, const char *path, struct output *ret)
{
	int err = output_open(path, ret);

	ret->sync = !r->window_number;
	return err;
}

/* The process that is recorded, if it is one without its children; 0: it is not, or has ended. */
static pid_t only_process(const struct run *r)
{
	const struct options *o = r->opts;

	if (o->follow || o->all)
		return 0;
	if (o->argv)
		return r->launch.reaped ? 0 : r->launch.pid;
	return o->pids.cnt == 1 && r->alive ? (pid_t)o->pids.ids[0] : 0;
}

static int write_profile(struct run *r, const struct report *report, int profile)
{
	const struct profile *p = r->profiles[profile];
	int kind = RUN_KIND(profile);
	struct output out;
	char path[PATH_MAX];
	int err;

	run_output_path(r, profile, r->window_number, path);
	err = open_file(r, path, &out);
	if (!err)
		err = output_end(&out,
				 r->opts->format->write(p, &kinds[kind], only_process(r), out.f));
	if (err) {
		log_error("cannot write '%s': %s", path, output_reason(err));
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
		log_error("cannot write '%s': %s", path, output_reason(err));
	return err;
}

/* Of those that a kind has several of, the account is that of all, and what was named adds up. */
static int finish_taken(struct run *r, struct report *report, int profile,
			struct capture_profile *p)
{
	int kind = RUN_KIND(profile), err;
	struct symbolize_stats symbols;

	r->profiles[profile] = p->profile;
	report->accounts[kind] = p->account;
	report->left_out[kind] += p->left_out;
	err = report_comment(report, kind, p->profile);
	if (!err)
		err = capture__name(r->capture, p, &symbols);
	free(p->sources);
	if (!err) {
		util_add_counters(&report->symbols[kind], &symbols, sizeof(symbols));
		err = finish_profile(r->opts->format, kind, p->profile);
	}
	report->samples[kind] += p->profile->sample_cnt;
	return err;
}

static int finish_kind(struct run *r, struct report *report, int kind,
		       const struct capture_boundary *to)
{
	struct capture_profile p;
	int err = capture__profile(r->capture, r->window, to, kind, &p);

	return err ? err : finish_taken(r, report, kind, &p);
}

static int finish_custom(struct run *r, struct report *report, const struct capture_boundary *to)
{
	struct capture_profile p;
	int err = 0;

	for (uint32_t i = 1; !err && i <= capture__custom_cnt(r->capture); i++) {
		capture__meanwhile(r->capture);
		err = capture__custom_profile(r->capture, r->window, to, i, &p);
		if (!err)
			err = finish_taken(r, report, RUN_CUSTOM(i), &p);
	}
	return err;
}

/* ret_written: which files are in place now. */
static int write_files(struct run *r, const struct report *report,
		       bool ret_written[RUN_MAX_PROFILES])
{
	int err = 0;

	for (int i = 0; !err && i < RUN_MAX_PROFILES; i++) {
		if (!r->profiles[i])
			continue;
		capture__meanwhile(r->capture);
		err = run_is_aborted(r) ? -EINTR : write_profile(r, report, i);
		ret_written[i] = !err;
	}
	if (!err && r->opts->stats)
		err = write_stats(r, report);
	return err;
}

static int remove_profile(const struct run *r, int profile, unsigned int number)
{
	char path[PATH_MAX];

	run_output_path(r, profile, number, path);
	return run_remove_file(path);
}

/* A set is whole, or it is not there. */
static void take_back(const struct run *r, const bool written[RUN_MAX_PROFILES])
{
	for (int i = 0; i < RUN_MAX_PROFILES; i++)
		if (written[i])
			(void)remove_profile(r, i, r->window_number);
}

static int remove_set(const struct run *r, unsigned int number)
{
	const bool *recorded = capture__kinds(r->capture);
	char path[PATH_MAX];
	int err = 0;

	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		if (recorded[i] && i != BPFPROF_CUSTOM)
			err = remove_profile(r, i, number);
	for (uint32_t i = 1; !err && i <= capture__custom_cnt(r->capture); i++)
		err = remove_profile(r, RUN_CUSTOM(i), number);
	if (err || !r->opts->stats)
		return err;
	run_stats_path(r, number, path);
	return run_remove_file(path);
}

/* --keep: the oldest sets, until no more than that are left. */
static int drop_oldest(struct run *r, size_t left)
{
	int err = 0;

	while (!err && r->set_cnt > left) {
		err = remove_set(r, r->sets[0]);
		if (!err)
			memmove(r->sets, r->sets + 1, --r->set_cnt * sizeof(*r->sets));
	}
	return err;
}

/* --keep: one more set is there. */
static int keep_set(struct run *r)
{
	int err = util_reserve(&r->sets, &r->set_cap, r->set_cnt + 1, sizeof(*r->sets));

	if (err)
		return err;
	r->sets[r->set_cnt++] = r->window_number;
	return drop_oldest(r, r->opts->keep);
}

/* The files of a window, as its number has them. 0 or -errno, said. */
static int write_set(struct run *r, const struct report *report)
{
	bool written[RUN_MAX_PROFILES] = { false }, any = false;
	int err;

	if (r->no_room && r->set_cnt)
		(void)drop_oldest(r, r->set_cnt - 1);
	err = write_files(r, report, written);
	if (!err) {
		r->no_room -= r->no_room > 0;
		return r->opts->keep ? keep_set(r) : 0;
	}
	if (r->window_number) {
		if (err == -ENOSPC || err == -EDQUOT)
			r->no_room = ROOM_WINDOWS;
		take_back(r, written);
		log_error("%swindow %u is missing", err == -EINTR ? "aborted: " : "",
			  r->window_number);
		return err;
	}
	for (int i = 0; i < RUN_MAX_PROFILES; i++)
		any |= written[i];
	if (err == -EINTR)
		log_error("aborted: %s",
			  any ? "not all files were written" : "nothing was written");
	return err;
}

/* What there is to say about names that are missing. */
static void say_unnamed(const struct report *report)
{
	if (report->files.perf_maps.refused)
		log_info("%" PRIu64
			 " perf maps (/tmp/perf-PID.map) are not read: they are no regular files, "
			 "or not the process's own, or not from its time",
			 report->files.perf_maps.refused);
	if (report->files.objects.set_aside)
		log_info("%" PRIu64
			 " files have no names here: they ended what read them, or kept "
			 "it waiting",
			 report->files.objects.set_aside);
	if (report->files.objects.lost)
		log_info("%" PRIu64
			 " files have no names here: there were too many to keep all of them "
			 "open, and they are gone",
			 report->files.objects.lost);
	if (report->files.code.unopened)
		log_info("%" PRIu64
			 " files have no names here: they were gone when they were to be opened",
			 report->files.code.unopened);
}

/* Makes the profiles of the window that has ended, with their names. 0 or -errno, said. */
static int finish_kinds(struct run *r, struct report *report, bool kept[BPFPROF_NR_KINDS],
			const struct capture_boundary *to)
{
	size_t cnt = 0;
	int err = 0;

	capture__stats(r->capture, &report->stats);
	capture__files_stats(r->capture, &report->files);
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (!report->kinds[i])
			continue;
		capture__meanwhile(r->capture);
		err = i == BPFPROF_CUSTOM ? finish_custom(r, report, to) :
					    finish_kind(r, report, i, to);
		if (!err || i != BPFPROF_FDS || err == -ENOMEM) {
			cnt += !err;
			continue;
		}
		/* that is in others' hands, who are not to take away the other kinds as well */
		log_error("no fds profile: what is open could not be read: %s",
			  probe_fds__failure(err));
		kept[i] = false;
		err = 0;
	}
	if (!err && !cnt)
		return -EIO;
	if (err) {
		log_error("cannot put the profile together: %s", strerror(-err));
		return err;
	}
	/* and once more: names may be of files that nothing else has asked for */
	capture__files_stats(r->capture, &report->files);
	return 0;
}

/* What whoever compares runs has to know. The cost of a command that was recorded as a whole. */
static void tell_facts(const struct run *r, struct run_facts *ret)
{
	const struct options *o = r->opts;
	bool whole = !o->window_ns && !o->tids.cnt && !o->cgroup && !o->comm;

	facts_clear(ret);
	/* a process begins one window at a time */
	snprintf(ret->run, sizeof(ret->run), "%d-%" PRIu64, (int)getpid(),
		 capture__window_start_ns(r->capture, r->window));
	machine_text(ret->machine, sizeof(ret->machine));
	if (!whole || !r->cost.ended)
		return;
	ret->ops = r->ops ?: FACTS_NONE;
	ret->cpu_ns = r->cost.cpu_ns ?: FACTS_NONE;
	ret->wall_ns = r->cost.wall_ns;
	ret->other_ns = r->cost.other_ns;
}

int run_write_window(struct run *r, const struct capture_boundary *to)
{
	bool kept[BPFPROF_NR_KINDS];
	struct report report = {
		.opts = r->opts,
		.target = r->target,
		.kinds = kept,
		.cpus = cpus_possible(),
		.is_window = r->window_number,
		.duration_ns = to->ns - capture__window_start_ns(r->capture, r->window),
		.run_ns = to->ns - capture__start_ns(r->capture),
		.startup_ns = r->startup_ns,
	};
	struct report_debuginfod debuginfod;
	struct run_facts facts;
	char text[1024];
	int err;

	if (run_debuginfod_stats(r, &debuginfod))
		report.debuginfod = &debuginfod;

	if (r->opts->command != OPTIONS_AGENT) {
		tell_facts(r, &facts);
		report.facts = &facts;
	}
	run_forget_own(r);
	memcpy(kept, capture__kinds(r->capture), sizeof(kept));
	err = finish_kinds(r, &report, kept, to);

	if (err)
		return err;
	if (r->stopped)
		say_unnamed(&report);
	if (r->opts->command == OPTIONS_AGENT)
		return run_spool_window(r, &report);
	if (r->opts->stats)
		report.readers_peak_rss = capture__readers_peak_rss(r->capture);
	rights_to_write(true);
	err = write_set(r, &report);
	rights_to_write(false);
	if (!err && r->opts->strict) {
		err = report_strict(&report, text, sizeof(text));
		if (err)
			log_error("--strict: %s", text);
	}
	return err;
}
