// SPDX-License-Identifier: BSD-2-Clause
/* The begin of a recording, and its end. */
#include <linux/types.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/ask.h"
#include "agent/push.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "base/util.h"
#include "capture/capture.h"
#include "kernel/features.h"
#include "options.h"
#include "record/inherited.h"
#include "record/ready.h"
#include "record/rights.h"
#include "record/run_parts.h"
#include "spool/spool.h"
#include "target/cgroups.h"

static void describe_target(struct run *r)
{
	const struct options *o = r->opts;
	size_t n = 0;
	const char *base;

	if (o->all) {
		snprintf(r->target, sizeof(r->target), "all");
		snprintf(r->file_target, sizeof(r->file_target), "all");
		return;
	}
	if (o->argv) {
		base = strrchr(o->argv[0], '/');
		base = base ? base + 1 : o->argv[0];
		snprintf(r->target, sizeof(r->target), "command:%s", base);
		snprintf(r->file_target, sizeof(r->file_target), "%s", base);
		return;
	}
	n = snprintf(r->target, sizeof(r->target), "pid:");
	for (size_t i = 0; i < o->pids.cnt && n < sizeof(r->target) - 12; i++)
		n += snprintf(r->target + n, sizeof(r->target) - n, "%s%u", i ? "," : "",
			      o->pids.ids[i]);
	snprintf(r->file_target, sizeof(r->file_target), "%u", o->pids.ids[0]);
	if (o->pids.cnt > 1)
		snprintf(r->file_target, sizeof(r->file_target), "%u+%zu", o->pids.ids[0],
			 o->pids.cnt - 1);
}

/* What an agent's profiles are to be sorted by. */
static void say_missing_groups(void)
{
	const char *missing = cgroups_missing();

	if (missing)
		log_info("%s", missing);
}

/* What has to be true before anything is opened. 0 or -errno, said. */
static int check(struct run *r)
{
	struct feature_result ns;
	int err;

	if (r->opts->command != OPTIONS_AGENT)
		err = run_check_outputs(r);
	else
		err = run_open_spool(r) ?: run_open_push(r);
	if (!err)
		err = run_check_targets(r);
	if (!err)
		err = run_open_debuginfod(r);
	if (!err)
		err = inherited_check();
	if (err)
		return err;
	ns = features_probe(FEATURE_PID_NAMESPACE);
	if (!ns.ok) {
		log_error("%s", ns.text);
		return -ENOTSUP;
	}
	if (r->opts->command == OPTIONS_AGENT)
		say_missing_groups();
	return 0;
}

static int watch(struct run *r, int fd, uint64_t id)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = id };

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Signals arrive as reads of a descriptor; SIGCHLD tells of the command's end. Whoever finds that the
 * agent has its folder may ask it for something, which must not end it. 0 or -errno, said. */
static int open_signals(struct run *r)
{
	sigset_t set;
	int err;

	stop_signals(&set);
	sigaddset(&set, SIGCHLD);
	if (r->opts->command == OPTIONS_AGENT) {
		/* it is to read its configuration again */
		sigaddset(&set, SIGHUP);
		sigaddset(&set, ASK_SIGNAL);
		sigaddset(&set, SIGUSR2);
	}
	err = sigprocmask(SIG_BLOCK, &set, NULL) ? -errno : 0;
	if (!err) {
		r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
		err = r->signal_fd < 0 ? -errno : 0;
	}
	if (err)
		log_error("cannot set up signals: %s", strerror(-err));
	return err;
}

/* 0 or -errno, said. */
static int open_loop(struct run *r)
{
	int err;

	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = r->epoll_fd < 0 ? -errno : watch(r, r->signal_fd, WATCH_SIGNAL);
	if (err)
		log_error("cannot wait for signals: %s", strerror(-err));
	if (!err && r->fetch) {
		err = watch(r, run_debuginfod_fd(r), WATCH_FETCH);
		if (err)
			log_error("cannot wait for what fetches debug information: %s",
				  strerror(-err));
	}
	return err ? err : run_watch_push(r);
}

int run_watch_push(struct run *r)
{
	int err = r->push ? watch(r, push__fd(r->push), WATCH_PUSH) : 0;

	if (err)
		log_error("cannot wait for the courier: %s", strerror(-err));
	return err;
}

/* Machines do not end their windows all at the same moment: somewhere within one, and the same after
 * each start. */
static uint64_t window_offset_ns(const struct options *o)
{
	uint64_t hash = 0;
	char *id;
	size_t sz;

	if (!util_read_file("/etc/machine-id", 256, &id, &sz)) {
		hash = util_hash(id, sz, 0);
		free(id);
	}
	return hash % o->window_ns;
}

/* 0 or -errno, said. */
static int open_capture(struct run *r)
{
	const struct options *o = r->opts;
	struct capture_opts c = {
		.all = o->all,
		.pids = o->pids.ids,
		.pid_cnt = o->pids.cnt,
		.command = o->argv ? o->argv[0] : NULL,
		.ops_probe = o->bench.ops_probe,
		.follow = o->follow,
		.tids = o->tids.ids,
		.tid_cnt = o->tids.cnt,
		.cgroup = o->cgroup,
		.comm = o->comm,
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
		.kinds_given = o->kinds_given,
		.frequency = o->frequency,
		.hw_cycles = o->event == OPTIONS_CYCLES,
		.heap_rate = o->heap_rate,
		.custom = &o->custom,
		.heap_budget = o->heap_budget / 100,
		.min_age_ns = o->min_age_ns,
		.wait_budget = o->wait_budget / 100,
		.wait_rate_ns = o->wait_rate_ns,
		.thread_labels = o->thread_labels,
		.window_ns = o->window_ns,
		.duration_ns = o->duration_ns,
		.max_memory = o->max_memory,
		.run_time_stats = o->stats != NULL || o->max_cpu > 0,
	};
	int err;

	if (o->command == OPTIONS_AGENT) {
		c.windows_by_clock = true;
		c.service_labels = true;
		c.leave_out = o->own_samples ? NULL : run_is_own;
		c.leave_out_ctx = r;
		c.window_offset_ns = window_offset_ns(o);
	}
	memcpy(c.kinds, o->kinds, sizeof(c.kinds));
	memcpy(c.chosen, o->chosen, sizeof(c.chosen));
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		c.min_wait_ns[i] = options_min_wait_ns(o, i);
	err = capture__open(&c, &r->capture);
	if (err)
		return err;
	err = watch(r, capture__fd(r->capture), WATCH_CAPTURE);
	if (!err) {
		r->window = capture__open_window(r->capture, NULL);
		err = r->window ? 0 : -errno;
	}
	if (err)
		log_error("cannot begin a recording: %s", strerror(-err));
	return err;
}

/* Their ends end the run. 0 or -errno, said. */
static int open_pids(struct run *r)
{
	const struct options_ids *pids = &r->opts->pids;
	int err;

	r->pidfds = calloc(pids->cnt + 1, sizeof(*r->pidfds));
	if (!r->pidfds) {
		log_error("cannot watch processes: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (size_t i = 0; i < pids->cnt; i++)
		r->pidfds[i] = -1;
	for (size_t i = 0; i < pids->cnt; i++) {
		r->pidfds[i] = util_pidfd_open(pids->ids[i]);
		if (r->pidfds[i] < 0 && errno == ENOSYS)
			continue;
		if (r->pidfds[i] < 0 || !capture__has_process(r->capture, pids->ids[i])) {
			log_error("no process %u", pids->ids[i]);
			return -ESRCH;
		}
		err = watch(r, r->pidfds[i], WATCH_PID + i);
		if (err) {
			log_error("cannot watch process %u: %s", pids->ids[i], strerror(-err));
			return err;
		}
		r->alive++;
	}
	return 0;
}

/* Forks the command, which waits. 0 or -errno, said. */
static int open_command(struct run *r)
{
	char *const *argv = r->opts->argv;
	struct launch_settings how = { 0 };
	int err;

	if (r->opts->launch)
		how = *r->opts->launch;
	how.more_env = capture__command_env(r->capture);
	err = launch_prepare(argv, &how, &r->launch);
	if (err) {
		log_error("cannot start '%s': %s", argv[0], strerror(-err));
		return err;
	}
	command_cost__open(&r->cost, r->launch.pid);
	return capture__add_command(r->capture, r->launch.pid);
}

/* Those that run already are recorded from the beginning. 0 or -errno, said. */
static int open_targets(struct run *r)
{
	int err = run_open_targets(r);

	if (!err)
		err = run_choose_targets(r);
	if (err)
		log_error("cannot look for targets: %s", strerror(-err));
	return err;
}

/* Time since this process was started, which its own entry in the scan would tell as well. */
static uint64_t since_exec_ns(void)
{
	struct timespec now;
	char *buf, *s;
	size_t sz;
	unsigned long long ticks = 0;

	if (util_read_file("/proc/self/stat", 4096, &buf, &sz))
		return 0;
	s = strrchr(buf, ')');
	for (int i = 0; s && i < 20; i++)
		s = strchr(s + 1, ' ');
	if (s)
		ticks = strtoull(s, NULL, 10);
	free(buf);
	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec -
	       ticks * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

int run_open(struct run *r)
{
	int err;

	describe_target(r);
	err = open_signals(r);
	if (!err)
		err = check(r);
	if (!err)
		err = open_loop(r);
	if (!err)
		err = open_capture(r);
	if (!err)
		err = r->opts->argv ? open_command(r) : open_pids(r);
	if (!err)
		err = run_open_budget(r);
	if (!err)
		err = open_targets(r);
	if (!err)
		err = capture__start(r->capture);
	if (err)
		return err;
	/* the command, if there is one, has been forked with all that it may */
	err = rights_reduce(capture__adds_perf_probes(r->capture));
	if (err)
		log_info("all rights are kept, since they cannot be given up: %s", strerror(-err));
	r->startup_ns = since_exec_ns();
	if (r->opts->window_ns)
		r->window_number = 1;
	ready_tell(r->opts->ready_fd);
	return 0;
}

void run_close(struct run *r)
{
	if (r->capture)
		capture__close_window(r->capture, r->window);
	capture__close(r->capture);
	run_close_targets(r);
	run_close_budget(r);
	run_close_push(r);
	run_close_debuginfod(r);
	command_cost__close(&r->cost);
	spool__close(r->spool);
	for (size_t i = 0; r->pidfds && i < r->opts->pids.cnt; i++)
		if (r->pidfds[i] >= 0)
			close(r->pidfds[i]);
	free(r->pidfds);
	free(r->sets);
	for (int *fd = (int[]){ r->epoll_fd, r->signal_fd, -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
}
