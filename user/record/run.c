// SPDX-License-Identifier: BSD-2-Clause
/* One recording: the loop, and when it ends. */
#include <linux/types.h>

#include "record/run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/ask.h"
#include "agent/push.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "base/util.h"
#include "capture/capture.h"
#include "kinds.h"
#include "options.h"
#include "record/launch.h"
#include "record/ready.h"
#include "record/run_parts.h"

#define CUT_AGAIN_NS (NSEC_PER_SEC / 50)

/* ---- the loop ---- */

static void progress(struct run *r)
{
	uint64_t now = util_monotonic_ns();
	const bool *recorded = capture__kinds(r->capture);

	if (now < r->next_progress_ns)
		return;
	r->next_progress_ns = now + NSEC_PER_SEC;
	if (log_get_level() < LOG_INFO || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%6" PRIu64 " s", (now - capture__start_ns(r->capture)) / NSEC_PER_SEC);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (recorded[i])
			fprintf(stderr, "  %s: %" PRIu64 " samples", kinds[i].name,
				capture__recorded(r->capture, i));
	r->progress_shown = true;
}

void run_end_progress(struct run *r)
{
	if (r->progress_shown)
		fprintf(stderr, "\r%40s\r", "");
	r->progress_shown = false;
}

/* What comes from the terminal, the command gets as well; its code is that of the kernel. */
static void count_stop(struct run *r, int signal, int code)
{
	/* SIGXCPU comes again while the result is written; SIGHUP comes from a shell that ends, and from the kernel once
	 * it has ended */
	if ((signal == SIGXCPU || signal == SIGHUP) && r->stops)
		return;
	if (signal == SIGXCPU)
		log_info("the recording ends at its limit of CPU time (ulimit -t)");
	else
		r->told |= code != SI_KERNEL;
	r->stops++;
}

void run_read_signals(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP && r->opts->command == OPTIONS_AGENT)
			r->reload = true;
		else if (info.ssi_signo == ASK_SIGNAL)
			r->cut = true;
		else if (info.ssi_signo == SIGUSR2)
			run_want_dump(r);
		else if (info.ssi_signo == SIGCHLD)
			run_end_dump(r);
		else
			count_stop(r, (int)info.ssi_signo, info.ssi_code);
	}
}

bool run_is_aborted(struct run *r)
{
	run_read_signals(r);
	return r->stops > 1;
}

/* When it is to end, CLOCK_MONOTONIC; UINT64_MAX: the user or the target decides. */
static uint64_t end_ns(const struct run *r)
{
	return r->opts->duration_ns ? capture__start_ns(r->capture) + r->opts->duration_ns :
				      UINT64_MAX;
}

/* Has the command ended? What it has cost is told by its end. */
static bool command_ended(struct run *r)
{
	if (!launch_ended(&r->launch))
		return false;
	if (r->cost.ended)
		return true;
	command_cost__end(&r->cost, run_besides_ns(r->launch.pid));
	if (r->opts->bench.ops_probe)
		r->ops_lost = capture__ops(r->capture, &r->ops);
	return true;
}

static bool finished(struct run *r)
{
	const struct options *o = r->opts;

	if (r->stops || util_monotonic_ns() >= end_ns(r))
		return true;
	if (r->only_threads && !o->window_ns && !o->duration_ns && !o->argv)
		return true;
	if (o->argv)
		return command_ended(r);
	return o->pids.cnt && !r->alive;
}

static int timeout_ms(const struct run *r)
{
	uint64_t now = util_monotonic_ns(), end = MIN(end_ns(r), capture__next_ns(r->capture));

	/* asked for while a window was written, or another one has ended meanwhile */
	if (r->reload || r->dump || capture__has_boundary(r->capture))
		return 0;
	if (r->cut)
		end = MIN(end, now + CUT_AGAIN_NS);
	/* the line that shows how far it is goes on, if there is one */
	if (end == UINT64_MAX)
		return 1000;
	return now >= end ? 0 : (int)MIN((end - now + 999999) / 1000000, 1000);
}

static void handle(struct run *r, uint64_t id)
{
	if (id == WATCH_SIGNAL) {
		run_read_signals(r);
		/* how long it took is known now, before what has been recorded is looked at */
		if (r->opts->argv)
			(void)command_ended(r);
	} else if (id == WATCH_PUSH) {
		push__handle(r->push);
	} else if (id == WATCH_FETCH) {
		run_handle_debuginfod(r);
	} else if (id >= WATCH_PID && r->pidfds[id - WATCH_PID] >= 0) {
		close(r->pidfds[id - WATCH_PID]);
		r->pidfds[id - WATCH_PID] = -1;
		r->alive--;
	}
}

static int loop(struct run *r)
{
	struct epoll_event ev[8];
	int n, err = 0;

	while (!err && !finished(r)) {
		n = epoll_wait(r->epoll_fd, ev, ARRAY_SIZE(ev), timeout_ms(r));
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			handle(r, ev[i].data.u64);
		ready_alive(r->watchdog_ns);
		err = r->reload ? run_reload(r) : 0;
		if (!err && r->dump)
			run_start_dump(r);
		if (!err)
			err = capture__poll(r->capture);
		if (!err && r->cut)
			err = run_end_window(r);
		if (!err)
			err = run_choose_targets(r);
		if (!err)
			run_tend_debuginfod(r);
		if (!err)
			err = run_write_next(r);
		if (!err && r->push && util_monotonic_ns() >= r->next_status_ns)
			run_tell_status(r);
		if (!err)
			progress(r);
	}
	return err;
}

/* ---- all of it ---- */

static void tell_started(const struct run *r)
{
	int fd = r->opts->launch ? r->opts->launch->tell_fd : 0;

	if (fd > 0 && write(fd, &r->launch.pid, sizeof(pid_t)) < 0)
		log_debug("nobody is told that the command has been started: %s", strerror(errno));
}

/* 0, or -errno, said. */
static int start_command(struct run *r)
{
	int err;

	/* it has not got what was sent to us */
	run_read_signals(r);
	if (r->stops) {
		log_error("interrupted before '%s' was started", r->opts->argv[0]);
		return -EINTR;
	}
	command_cost__begin(&r->cost, run_besides_ns(r->launch.pid));
	err = launch_go(&r->launch);
	if (err)
		log_error("cannot start '%s': %s", r->opts->argv[0], strerror(-err));
	else
		tell_started(r);
	return err;
}

static int record(struct run *r)
{
	int err = run_open(r);

	if (err)
		return err;
	if (r->opts->argv)
		err = start_command(r);
	if (err)
		return err;
	err = loop(r);
	ready_say("STOPPING=1");
	r->over = !err && !r->stops;
	if (!err && r->ops_lost) {
		log_error(
			"operations are not counted: there are more processes than can be "
			"followed");
		return -ENODATA;
	}
	if (!err)
		err = run_write_ended(r);
	if (!err) {
		err = run_write_last(r);
		run_flush_push(r);
		return err;
	}
	run_end_progress(r);
	/* an abort was said */
	if (err != -EINTR)
		log_error("the recording failed: %s", strerror(-err));
	return err;
}

/*
 * Only at the end that was asked for it is for us to end the command. One that was interrupted ends by itself,
 * however long that takes, or goes on, as debuggers do; one whose recording has failed need not know. A second
 * signal ends it.
 */
static void wait_for_command(struct run *r)
{
	struct launch *l = &r->launch;
	bool asked = false;
	siginfo_t info;
	sigset_t set;

	/* but one of a measurement, which nobody else ends, or that was not let go */
	if (r->opts->launch || !l->pid || l->go_fd >= 0 || launch_wait(l))
		return;
	if (r->stops < 2)
		log_error("'%s' still runs, and is waited for (interrupt again to end it)",
			  r->opts->argv[0]);
	stop_signals(&set);
	sigaddset(&set, SIGCHLD);
	while (r->stops < 2 && !launch_ended(l)) {
		if (r->told && !asked)
			launch_ask(l);
		asked |= r->told;
		/* they are blocked */
		if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD)
			count_stop(r, info.si_signo, info.si_code);
	}
}

int run_record(const struct options *opts)
{
	struct run r = { .opts = opts,
			 .epoll_fd = -1,
			 .signal_fd = -1,
			 .ops = FACTS_NONE,
			 .watchdog_ns = ready_watchdog_ns() };
	int err, status;

	r.launch.go_fd = r.launch.error_fd = r.cost.clock = -1;
	r.only_threads = true;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		r.only_threads &= !opts->kinds[i] || i == BPFPROF_THREADS;
	err = record(&r);
	status = r.wrong_setup ? 2 : err ? 1 : 0;
	/* what waits for a command records nothing of it any more */
	run_close(&r);
	if (!r.over)
		wait_for_command(&r);
	launch_done(&r.launch);
	if (!err && opts->argv)
		status = launch_exit_status(&r.launch);
	return status;
}
