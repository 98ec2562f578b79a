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
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/util.h"
#include "capture/collect.h"
#include "heap/heap.h"
#include "kernel/events.h"
#include "kernel/probe_waits.h"
#include "kernel/epochs.h"
#include "kernel/session.h"
#include "kernel/tables.h"
#include "kinds.h"
#include "record/launch.h"
#include "heap/launch_heap.h"
#include "options.h"
#include "record/run_parts.h"
#include "capture/snapshot.h"

/* how often the rings are read; a process that lived shorter is still known by events */
#define TICK_NS 100000000ULL
#define STALL_US 100000
#define POLLS 4 /* at a time, at most */

/* ---- the loop ---- */

static void progress(struct run *r, uint64_t now)
{
	struct bpfprof_stats stats;

	if (log_get_level() < LOG_INFO || !isatty(STDERR_FILENO) || now < r->next_progress_ns)
		return;
	r->next_progress_ns = now + NSEC_PER_SEC;
	fprintf(stderr, "\r%6" PRIu64 " s", (now - r->armed_ns) / NSEC_PER_SEC);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i] && !epochs__stats(r->session, i, &stats))
			fprintf(stderr, "  %s: %" PRIu64 " samples", kinds[i].name,
				(uint64_t)stats.recorded);
	r->progress_shown = true;
}

void run_read_signals(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			r->stops++;
}

int run_start_ticks(struct run *r)
{
	struct itimerspec tick = { .it_interval.tv_nsec = TICK_NS };

	r->tick_ns = util_monotonic_ns() + TICK_NS;
	tick.it_value.tv_sec = r->tick_ns / NSEC_PER_SEC;
	tick.it_value.tv_nsec = r->tick_ns % NSEC_PER_SEC;
	return timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME, &tick, NULL) ? -errno : 0;
}

/* Does what is due. Returns whether something was. */
static bool tick(struct run *r)
{
	uint64_t expirations, now = util_monotonic_ns();
	char text[512];

	if (read(r->timer_fd, &expirations, sizeof(expirations)) != sizeof(expirations))
		return false;
	r->late_ns = MAX(r->late_ns, now - MIN(now, r->tick_ns));
	r->tick_ns += expirations * TICK_NS;
	/* each time, or a CPU might go and come back unseen; one that cannot be watched now is
	 * tried again the next time */
	if (session__arm(r->session, text, sizeof(text)))
		log_debug("%s", text);
	(void)events__sync_cpus(r->events);
	run_waits_tick(r);
	return true;
}

void run_meanwhile(struct run *r)
{
	collect__hold(r->collect);
	if (!r->tick_ns || r->stopped_ns)
		return;
	(void)tick(r);
	/* what fails here fails again where it is said */
	if (r->heap)
		(void)heap__end_slice(r->heap);
	/* a snapshot of threads would have to be taken first */
	if (r->window_number && !r->kinds[BPFPROF_THREADS] &&
	    util_monotonic_ns() >= run_next_window_ns(r))
		(void)run_end_window(r);
}

static bool finished(struct run *r)
{
	const struct options *o = r->opts;
	uint64_t now = util_monotonic_ns();

	if (r->stops || (r->only_threads && !o->window_ns) ||
	    (o->duration_ns && now - r->armed_ns >= o->duration_ns))
		return true;
	if (o->argv)
		return launch_ended(&r->launch);
	return o->pids.cnt && !r->alive;
}

static int timeout_ms(const struct run *r)
{
	uint64_t now = util_monotonic_ns(), end = UINT64_MAX;

	if (collect__is_behind(r->collect))
		return 0;
	if (r->opts->duration_ns)
		end = r->armed_ns + r->opts->duration_ns;
	if (r->opts->window_ns)
		end = MIN(end, run_next_window_ns(r));
	if (r->heap)
		end = MIN(end, heap__next_ns(r->heap));
	if (end == UINT64_MAX)
		return -1;
	return now >= end ? 0 : (int)MIN((end - now + 999999) / 1000000, 1000);
}

/* What threads are doing when a window ends: as a profile of its own; last: and where waits are in
 * progress, which belong to the window in which they end. */
static int take_snapshot(struct run *r, bool last)
{
	const struct options *o = r->opts;
	struct snapshot_opts s = {
		.threads = r->kinds[BPFPROF_THREADS],
		.block = last && r->kinds[BPFPROF_BLOCK],
		.offcpu = last && r->kinds[BPFPROF_OFFCPU],
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
		.min_wait_ns = { options_min_wait_ns(o, BPFPROF_BLOCK),
				 options_min_wait_ns(o, BPFPROF_OFFCPU) },
		.waits = last ? r->waits : NULL,
		.stopped_ns = last ? r->stopped_ns : util_monotonic_ns(),
	};

	if (!s.threads && !s.block && !s.offcpu)
		return 0;
	return snapshot_take(&s, r->session, r->collect, &r->snapshot);
}

/* Ends the window when it is time, and writes what has ended. */
static int tend_windows(struct run *r)
{
	int err = 0;

	if (!r->opts->window_ns)
		return 0;
	if (util_monotonic_ns() >= run_next_window_ns(r) && !finished(r) &&
	    collect__can_end(r->collect)) {
		err = take_snapshot(r, false);
		if (!err)
			err = run_end_window(r);
	}
	if (err)
		return err;
	if (collect__has_boundary(r->collect) && r->progress_shown) {
		fprintf(stderr, "\r%40s\r", "");
		r->progress_shown = false;
	}
	return run_write_windows(r);
}

static int loop(struct run *r)
{
	struct epoll_event ev[8];
	bool ticked;
	int n, err = 0;

	while (!err && !finished(r)) {
		if (knobs.tight_time)
			usleep(STALL_US);
		n = epoll_wait(r->epoll_fd, ev, ARRAY_SIZE(ev), timeout_ms(r));
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			uint64_t id = ev[i].data.u64;

			if (id == WATCH_SIGNAL) {
				run_read_signals(r);
			} else if (id >= WATCH_PID && r->pidfds[id - WATCH_PID] >= 0) {
				close(r->pidfds[id - WATCH_PID]);
				r->pidfds[id - WATCH_PID] = -1;
				r->alive--;
			}
		}
		ticked = tick(r);
		/* the tables that stacks ask for come first: without them, all are copied */
		for (int i = 0; !err && i < POLLS; i++) {
			err = collect__poll(r->collect);
			if (collect__is_calm(r->collect) || collect__is_behind(r->collect))
				break;
		}
		if (!err)
			err = tend_windows(r);
		if (!err && r->heap)
			err = heap__update(r->heap);
		if (!err && r->heap)
			err = heap__tick(r->heap);
		if (!err && collect__wants_cut(r->collect))
			err = collect__cut(r->collect);
		if (!ticked)
			continue;
		progress(r, util_monotonic_ns());
		/* it waits, for 10 to 40 ms, in which copies of stacks could fill the ring */
		if (collect__is_calm(r->collect))
			tables__settle(r->tables);
	}
	return err;
}

/* ---- all of it ---- */

static int record(struct run *r)
{
	int err = run_open(r);

	if (err)
		return err;
	if (r->opts->argv) {
		err = launch_go(&r->launch);
		if (err) {
			log_error("cannot start '%s': %s", r->opts->argv[0], strerror(-err));
			return err;
		}
	}
	err = loop(r);
	/* that have ended while the loop waited */
	if (!err)
		err = run_write_windows(r);
	run_waits_tick(r);
	r->stopped_ns = util_monotonic_ns();
	session__disarm(r->session);
	if (r->waits)
		probe_waits__stop(r->waits, r->stopped_ns);
	if (r->heap)
		heap__stop(r->heap, &r->heap_parts[r->current_number % CAPTURE_EPOCHS]);
	if (!err)
		err = take_snapshot(r, true);
	probe_waits__free(r->waits);
	r->waits = NULL;
	if (r->progress_shown)
		fprintf(stderr, "\r%40s\r", "");
	/* an abort was said */
	if (err && err != -EINTR)
		log_error("the recording failed: %s", strerror(-err));
	return err ? err : run_write(r);
}

int run_record(const struct options *opts)
{
	struct run r = { .opts = opts, .epoll_fd = -1, .signal_fd = -1, .timer_fd = -1 };
	int err, status;

	r.launch.go_fd = r.launch.error_fd = r.launch_heap.file_fd = -1;
	memcpy(r.kinds, opts->kinds, sizeof(r.kinds));
	r.only_threads = true;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		r.only_threads &= !r.kinds[i] || i == BPFPROF_THREADS;
	err = record(&r);
	status = err ? 1 : 0;
	/* Ctrl-C reached the command too; at a time limit it is for us to end it */
	if (r.stops)
		launch_wait(&r.launch);
	launch_done(&r.launch);
	launch_heap__done(&r.launch_heap);
	if (!err && opts->argv)
		status = launch_exit_status(&r.launch);
	run_close(&r);
	return status;
}
