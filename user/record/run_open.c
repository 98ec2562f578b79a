// SPDX-License-Identifier: BSD-2-Clause
/* The begin of a recording: what the kernel has is chosen, the parts are made, and all that is
 * named is attached. */
#include <linux/types.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/util.h"
#include "capture/windows.h"
#include "capture/code.h"
#include "capture/collect.h"
#include "heap/cpu_time.h"
#include "heap/heap.h"
#include "kernel/events.h"
#include "kernel/features.h"
#include "kernel/ksyms.h"
#include "kernel/probe_waits.h"
#include "kernel/samples.h"
#include "kernel/session.h"
#include "kernel/tables.h"
#include "kernel/waits_how.h"
#include "kinds.h"
#include "options.h"
#include "profile/profile.h"
#include "record/ready.h"
#include "record/rights.h"
#include "record/run_parts.h"
#include "target/names_cache.h"
#include "target/objects.h"
#include "target/procs.h"

#define POLL_NS 250000000ULL /* how much later a run may end for all that comes in */
#define EVENT_RING_PAGES 64  /* 256 KiB a CPU: some 1,200 process starts between two ticks */
#define TABLE_CHUNKS_PID 24  /* MiB of unwind tables at most */
#define TABLE_CHUNKS_ALL 64

/* ---- what can be had ---- */

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
	return;
}

/* The kernel refuses more than this sysctl says, and lowers it by itself when sampling takes too
 * long. */
static void clamp_frequency(struct run *r)
{
	uint64_t limit;
	char *buf;
	size_t sz;

	r->frequency = r->opts->frequency;
	if (util_read_file("/proc/sys/kernel/perf_event_max_sample_rate", 64, &buf, &sz))
		return;
	buf[strcspn(buf, "\n")] = '\0';
	if (!util_parse_u64(buf, 1, UINT32_MAX, &limit) && r->frequency > limit) {
		log_info("%u Hz is above this kernel's limit: sampling at %" PRIu64
			 " Hz (kernel.perf_event_max_sample_rate)",
			 r->frequency, limit);
		r->frequency = limit;
	}
	free(buf);
}

/* By what the heap's probes are attached. Takes the kind out where there is nothing, unless it was
 * named. */
static int choose_uprobes(struct run *r)
{
	static const char *const names[] = { "session", "multi", "perf", "event" };
	enum uprobe_method best = UPROBES_SESSION;
	struct feature_result uprobes;

	r->uprobes = UPROBES_NONE;
	if (!r->kinds[BPFPROF_HEAP])
		return 0;
	for (size_t i = 0; knobs.uprobes && i < ARRAY_SIZE(names); i++)
		if (!strcmp(knobs.uprobes, names[i]))
			best = (enum uprobe_method)i;
	r->uprobes = uprobes_probe(best);
	if (r->uprobes != UPROBES_NONE)
		return 0;
	uprobes = features_probe(FEATURE_UPROBES);
	if (r->opts->kinds_given) {
		log_error("%s", uprobes.text);
		return -ENOTSUP;
	}
	log_info("%s", uprobes.text);
	r->kinds[BPFPROF_HEAP] = false;
	return 0;
}

static bool ends_are_seen(const struct run *r)
{
	if (r->waits_how.resume != WAITS_RESUME_NONE)
		return true;
	if (r->kinds[BPFPROF_OFFCPU])
		return false;
	return !r->kinds[BPFPROF_BLOCK] || r->waits_how.futex;
}

/* Takes out waits where their end cannot be seen, unless they were named. */
static int choose_waits(struct run *r)
{
	static const char why[] = "this kernel has neither sched_exit_tp (6.15) nor kprobes";

	if (!r->kinds[BPFPROF_BLOCK] && !r->kinds[BPFPROF_MUTEX] && !r->kinds[BPFPROF_OFFCPU])
		return 0;
	waits_how__probe(&r->waits_how);
	if (ends_are_seen(r))
		return 0;
	if (r->opts->kinds_given) {
		log_error("cannot record waits: %s", why);
		return -ENOTSUP;
	}
	log_info("no block profile: %s", why);
	r->kinds[BPFPROF_BLOCK] = r->kinds[BPFPROF_OFFCPU] = false;
	return 0;
}

/* Is there anything to listen to? Programs that are not needed take time to load. */
static void choose_usdt(struct run *r)
{
	const struct options *o = r->opts;

	if (o->argv)
		launch_heap(o->argv[0], o->heap_rate, r->objects, &r->launch_heap);
	r->usdt = o->all || *r->launch_heap.preload ||
		  heap_finds_usdt(r->objects, o->pids.ids, o->pids.cnt);
}

/* ---- the parts ---- */

/* Nothing can be recorded: because of what the kernel or our rights lack, as `check` has it, else
 * of text. */
static void refuse(const char *text)
{
	const char *missing = features_missing();

	log_error("%s", missing ? missing : text);
}

static int open_session(struct run *r)
{
	const struct options *o = r->opts;
	struct session_opts s = {
		.frequency = r->frequency,
		.hw_cycles = o->event == OPTIONS_CYCLES,
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
		.thread_names = o->thread_labels,
		.filter_tgid = !o->all,
		.filter_tid = o->tids.cnt > 0,
		.follow = o->follow || o->argv,
		.cgroup = o->cgroup,
		.comm = o->comm,
		.heap_rate = o->heap_rate,
		.heap_slices = o->heap_budget < 100,
		.uprobes = r->uprobes,
		.waits = r->waits_how,
		.usdt = r->usdt,
		.run_time_stats = o->stats != NULL,
		.tight_maps = knobs.tight_maps,
		.tight_ring = knobs.tight_ring,
	};
	char err[512];
	int ret;

	memcpy(s.kinds, r->kinds, sizeof(s.kinds));
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		s.min_wait_ns[i] = options_min_wait_ns(o, i);
	r->session = session__open(&s, err, sizeof(err));
	if (r->session)
		return 0;
	ret = -errno;
	refuse(err);
	return ret;
}

static int open_heap(struct run *r)
{
	struct heap_opts h = {
		.method = r->uprobes,
		.usdt = r->usdt,
		.all = r->opts->all,
		.budget = r->opts->heap_budget / 100,
		.min_age_ns = r->opts->min_age_ns,
	};

	if (!r->kinds[BPFPROF_HEAP])
		return 0;
	r->heap = heap__new(&h, r->session, r->procs, r->objects, r->code, r->collect, r->cpu_time);
	return r->heap ? 0 : -errno;
}

static void meanwhile(void *ctx)
{
	run_meanwhile(ctx);
}

static int open_parts(struct run *r)
{
	const struct options *o = r->opts;
	struct collect_opts c = {
		.label_process = o->all,
		.label_thread = o->thread_labels,
		.follow = o->follow || o->argv,
		.only_added = !o->all,
		.all_maps = r->kinds[BPFPROF_HEAP],
		.poll_ns = POLL_NS,
		.meanwhile = meanwhile,
		.ctx = r,
	};
	int err;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		c.periods[i] = kinds[i].period ? kinds[i].period(r->frequency, o->heap_rate) : 1;
	memcpy(r->periods, c.periods, sizeof(r->periods));
	errno = ENOMEM;
	r->procs = procs__new("/proc");
	r->tables = tables__new(r->session, o->all ? TABLE_CHUNKS_ALL : TABLE_CHUNKS_PID);
	r->samples = samples__new(r->session);
	r->events = events__new(knobs.tight_ring ? 1 : EVENT_RING_PAGES);
	if (!r->procs || !r->tables || !r->samples || !r->events)
		return -errno;
	r->names = names_cache__new();
	if (!r->names)
		return -errno;
	r->ksyms = ksyms__new(r->session);
	/* before the scan, so that nothing falls between the two */
	err = events__sync_cpus(r->events);
	if (err)
		return err;
	r->code = code__new(r->procs, r->objects, r->tables);
	if (!r->code)
		return -errno;
	r->collect = collect__new(&c, r->session, r->samples, r->events, r->procs, r->code);
	if (!r->collect)
		return -errno;
	r->window = windows__open(collect__windows(r->collect));
	if (!r->window)
		return -errno;
	objects__meanwhile(r->objects, meanwhile, r);
	r->cpu_time = cpu_time__new(r->procs, o->all, o->follow || o->argv);
	if (!r->cpu_time)
		return -errno;
	return open_heap(r);
}

/* The process of a thread, and the process's start, for the filter by thread. */
static int add_thread(struct run *r, uint32_t tid)
{
	char path[64], *buf, *s;
	size_t sz;
	uint32_t proc;
	int err, tgid = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	err = util_read_file(path, 65536, &buf, &sz);
	if (!err) {
		s = strstr(buf, "\nTgid:");
		if (s)
			tgid = atoi(s + 6);
		free(buf);
	}
	proc = tgid ? procs__find_live(r->procs, tgid) : PROCS_NONE;
	if (proc == PROCS_NONE) {
		log_error("no thread %u%s", tid, r->opts->all ? "" : " in the processes named");
		return -ESRCH;
	}
	err = session__add_tid(r->session, tid, procs__get(r->procs, proc)->start_ns);
	if (err)
		log_error("cannot watch thread %u: %s", tid, strerror(-err));
	return err;
}

static int watch(struct run *r, int fd, uint64_t id)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = id };

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int open_pids(struct run *r)
{
	const struct options_ids *pids = &r->opts->pids;
	int err;

	r->pidfds = calloc(pids->cnt, sizeof(*r->pidfds));
	if (!r->pidfds)
		return -ENOMEM;
	for (size_t i = 0; i < pids->cnt; i++)
		r->pidfds[i] = -1;
	for (size_t i = 0; i < pids->cnt; i++) {
		r->pidfds[i] = (int)syscall(SYS_pidfd_open, pids->ids[i], 0);
		if (r->pidfds[i] < 0 && errno == ENOSYS)
			continue;
		if (r->pidfds[i] < 0 || procs__find_live(r->procs, pids->ids[i]) == PROCS_NONE) {
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

/* Forks the command, which waits, and says how its heap will be sampled. */
static int prepare_command(struct run *r)
{
	struct launch_heap *l = &r->launch_heap;
	char *env[] = { l->preload_env, l->rate_env, NULL };
	char *const *argv = r->opts->argv;
	int err;

	if (r->heap && !*l->preload)
		log_info(
			"the heap of '%s' is sampled by probes, which cost more than the library "
			"that samples inside: %s",
			argv[0], l->why);
	err = launch_prepare(argv, *l->preload ? env : NULL, &r->launch);
	if (err)
		log_error("cannot start '%s': %s", argv[0], strerror(-err));
	return err;
}

static int add_targets(struct run *r)
{
	const struct options *o = r->opts;
	uint32_t child;
	int err;

	if (o->argv) {
		err = prepare_command(r);
		if (err)
			return err;
		child = r->launch.pid;
		err = collect__scan(r->collect, &child, 1);
		if (!err && r->heap)
			err = heap__prepare_command(
				r->heap, r->launch.pid, r->launch_heap.file_fd,
				*r->launch_heap.preload ? r->launch_heap.preload : NULL);
	} else {
		err = collect__scan(r->collect, o->pids.ids, o->pids.cnt);
		/* children that were forked before their parents were in the filter */
		if (!err && o->follow)
			err = collect__scan(r->collect, o->pids.ids, o->pids.cnt);
	}
	if (err) {
		log_error("cannot read the list of processes: %s", strerror(-err));
		return err;
	}
	if (o->pids.cnt)
		err = open_pids(r);
	for (size_t i = 0; !err && i < o->tids.cnt; i++)
		err = add_thread(r, o->tids.ids[i]);
	/* a command is still our own image: its tables are loaded as it runs */
	if (err || !o->pids.cnt)
		return err;
	err = collect__prepare(r->collect);
	if (err)
		log_error("cannot read the code of the processes: %s", strerror(-err));
	return err;
}

/* Attaches to the heaps of the targets. 0 or -errno, said. */
static int prepare_heap(struct run *r)
{
	int err;

	heap__measure(r->heap);
	err = heap__update(r->heap);
	/* a command has not been started yet */
	if (!err && !r->opts->argv)
		heap__complain(r->heap);
	if (err)
		log_error("cannot attach to the heap: %s", strerror(-err));
	return err;
}

/* Watches for waits and for new threads: whoever is in the filter by now. */
static int open_waits(struct run *r)
{
	if (!r->kinds[BPFPROF_BLOCK] && !r->kinds[BPFPROF_MUTEX] && !r->kinds[BPFPROF_OFFCPU] &&
	    !r->kinds[BPFPROF_THREADCREATE])
		return 0;
	r->waits = probe_waits__new(r->session);
	if (r->waits)
		return 0;
	log_error("cannot watch threads: %s", strerror(errno));
	return -errno;
}

/* Signals arrive as reads of a descriptor; SIGCHLD tells of the command's end. */
static int open_loop(struct run *r)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->epoll_fd < 0 || r->signal_fd < 0 || r->timer_fd < 0)
		return -errno;
	err = watch(r, r->signal_fd, WATCH_SIGNAL);
	if (!err)
		err = watch(r, r->timer_fd, WATCH_TIMER);
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

/* What has to be true before anything is opened. 0 or -errno, said. */
static int check(struct run *r)
{
	struct feature_result ns;
	int err = ready_check(r->opts->ready_fd);

	if (err) {
		log_error("--ready-fd %d is not open", r->opts->ready_fd);
		return err;
	}
	err = run_check_outputs(r);
	if (err)
		return err;
	ns = features_probe(FEATURE_PID_NAMESPACE);
	if (!ns.ok) {
		log_error("%s", ns.text);
		return -ENOTSUP;
	}
	return 0;
}

/* What reads, and what says when there is something to read. 0 or -errno, said. */
static int open_readers(struct run *r)
{
	int err = open_parts(r);

	if (err == -EACCES || err == -EPERM) {
		refuse("needs root or CAP_BPF+CAP_PERFMON (try sudo)");
		return err;
	}
	if (!err)
		err = watch(r, samples__fd(r->samples), WATCH_RING);
	if (!err)
		err = watch(r, events__fd(r->events), WATCH_EVENTS);
	if (err)
		log_error("cannot watch processes: %s", strerror(-err));
	return err;
}

/* Samples are taken from here on. 0 or -errno, said. */
static int arm(struct run *r)
{
	char text[512];
	int err = session__arm(r->session, text, sizeof(text));

	if (err) {
		refuse(text);
		return err;
	}
	if (r->heap)
		heap__start(r->heap);
	r->armed_ns = util_monotonic_ns();
	err = run_waits_start(r);
	if (err) {
		log_error("cannot watch threads: %s", strerror(-err));
		return err;
	}
	err = run_start_ticks(r);
	if (err)
		log_error("cannot set a timer: %s", strerror(-err));
	return err;
}

int run_open(struct run *r)
{
	int err;

	describe_target(r);
	err = check(r);
	if (err)
		return err;
	r->objects = objects__new();
	if (!r->objects) {
		err = -errno;
		log_error("cannot read files: %s", strerror(-err));
		return err;
	}
	clamp_frequency(r);
	err = open_loop(r);
	if (err) {
		log_error("cannot set up signals and timers: %s", strerror(-err));
		return err;
	}
	err = choose_uprobes(r);
	if (!err)
		err = choose_waits(r);
	if (!err && r->kinds[BPFPROF_HEAP])
		choose_usdt(r);
	if (!err)
		err = open_session(r);
	if (!err)
		err = open_readers(r);
	if (!err)
		err = add_targets(r);
	if (!err && r->heap)
		err = prepare_heap(r);
	if (!err)
		err = open_waits(r);
	if (err)
		return err;
	if (r->kinds[BPFPROF_THREADCREATE])
		r->threads_at_start = procs__thread_cnt(r->procs);
	err = arm(r);
	if (err)
		return err;
	/* the command, if there is one, has been forked with all that it may */
	err = rights_reduce(r->heap && uprobes_by_events(r->uprobes));
	if (err)
		log_info("all rights are kept, since they cannot be given up: %s", strerror(-err));
	r->startup_ns = since_exec_ns();
	r->start_ns = util_realtime_ns();
	r->window_from_ns = r->boundary_ns = r->armed_ns;
	if (r->opts->window_ns)
		r->window_number = r->current_number = 1;
	ready_tell(r->opts->ready_fd);
	return 0;
}

void run_close(struct run *r)
{
	probe_waits__free(r->waits);
	heap__free(r->heap);
	for (size_t i = 0; i < CAPTURE_EPOCHS; i++)
		heap_part__done(&r->heap_parts[i]);
	cpu_time__free(r->cpu_time);
	if (r->objects)
		objects__meanwhile(r->objects, NULL, NULL);
	collect__free(r->collect);
	code__free(r->code);
	ksyms__free(r->ksyms);
	names_cache__free(r->names);
	samples__free(r->samples);
	tables__free(r->tables);
	objects__free(r->objects);
	procs__free(r->procs);
	events__free(r->events);
	session__free(r->session);
	for (size_t i = 0; r->pidfds && i < r->opts->pids.cnt; i++)
		if (r->pidfds[i] >= 0)
			close(r->pidfds[i]);
	free(r->pidfds);
	for (int *fd = (int[]){ r->epoll_fd, r->signal_fd, r->timer_fd, -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
}
