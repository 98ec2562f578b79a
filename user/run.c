// SPDX-License-Identifier: BSD-2-Clause
/* One recording, from the options to the files: owns the clock and the loop. */
#include <linux/types.h>

#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "code.h"
#include "collect.h"
#include "heap.h"
#include "kernel/cpus.h"
#include "kernel/events.h"
#include "kernel/features.h"
#include "kernel/ksyms.h"
#include "kernel/probe_waits.h"
#include "kernel/samples.h"
#include "kernel/session.h"
#include "kernel/tables.h"
#include "kinds.h"
#include "launch.h"
#include "launch_heap.h"
#include "options.h"
#include "output.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "report.h"
#include "rights.h"
#include "snapshot.h"
#include "stacks.h"
#include "symbolize.h"
#include "target/objects.h"
#include "target/perf_maps.h"
#include "target/procs.h"
#include "waits.h"

#define TICK_NS                                                                                   \
	100000000ULL /* how often the rings are read; a process that lived shorter is still known \
			by events */
#define EVENT_RING_PAGES 64 /* 256 KiB a CPU: some 1,200 process starts between two ticks */
#define STALL_US 100000
#define TABLE_CHUNKS_PID 24 /* MiB of unwind tables at most */
#define TABLE_CHUNKS_ALL 64

struct run {
	const struct options *opts;
	bool kinds[BPFPROF_NR_KINDS]; /* that are recorded */
	uint32_t frequency;
	enum uprobe_method uprobes;
	struct probe_waits_how waits_how;
	bool only_threads;     /* no kind takes time */
	bool usdt;	       /* some program may sample its heap by itself */
	char target[256];      /* for people and --stats */
	char file_target[256]; /* as it stands in file names */
	struct launch launch;
	struct launch_heap launch_heap;
	struct session *session;
	struct events *events;
	struct procs *procs;
	struct objects *objects;
	struct tables *tables;
	struct code *code;
	struct samples *samples;
	struct ksyms *ksyms; /* NULL where the kernel cannot be asked: symbolize reads kallsyms */
	struct collect *collect;
	struct heap *heap;	   /* NULL: not recorded */
	struct probe_waits *waits; /* NULL: neither waits nor new threads are recorded */
	struct snapshot_result snapshot;
	uint64_t threads_at_start; /* of the targets; 0: not counted */
	struct profile *profiles[BPFPROF_NR_KINDS];
	int *pidfds; /* of the processes named, -1: ended */
	size_t alive;
	int epoll_fd, signal_fd, timer_fd;
	uint64_t armed_ns, stopped_ns, startup_ns, next_progress_ns;
	bool progress_shown;
	int stops; /* signals that asked to stop */
};

/* ---- before anything is attached ---- */

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

/* Several kinds were asked for: then each has a name of its own, also if one cannot be had. */
static bool several_kinds(const struct options *o)
{
	size_t n = 0;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		n += o->kinds[i];
	return n > 1;
}

static void output_path(const struct run *r, int kind, char path[PATH_MAX])
{
	const struct options *o = r->opts;
	const char *ext = options_format_ext(o->format);

	if (!o->output)
		snprintf(path, PATH_MAX, "bpfprof.%s.%s.%s", r->file_target, kinds[kind].name, ext);
	else if (!several_kinds(o))
		snprintf(path, PATH_MAX, "%s", o->output);
	else
		snprintf(path, PATH_MAX, "%s.%s.%s", o->output, kinds[kind].name, ext);
}

static int check_output(const char *path)
{
	int err = output_probe(path);

	if (err == -ELOOP)
		log_error("cannot write '%s': it is a symbolic link (name the file itself)", path);
	else if (err)
		log_error("cannot write '%s': %s", path, strerror(-err));
	else if (!strcmp(path, "-") && isatty(STDOUT_FILENO))
		log_error("'-o -' writes to standard output, which is a terminal (redirect it)");
	else
		return 0;
	return err ? err : -EINVAL;
}

static int check_outputs(const struct run *r)
{
	char path[PATH_MAX];
	int err = 0;

	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (!r->opts->kinds[i])
			continue;
		output_path(r, i, path);
		/* text for people may go to a terminal */
		if (strcmp(path, "-") || r->opts->format == OPTIONS_PPROF)
			err = check_output(path);
	}
	if (!err && r->opts->stats && strcmp(r->opts->stats, "-"))
		err = check_output(r->opts->stats);
	return err;
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

/* ---- setting up ---- */

/* By what the heap's probes are attached. Takes the kind out where there is nothing, unless it was
 * named. */
static int choose_uprobes(struct run *r)
{
	static const char *const names[] = { "session", "multi", "perf", "event" };
	const char *at_best = getenv("BPFPROF_UPROBES"); /* for tests */
	enum uprobe_method best = UPROBES_SESSION;
	struct feature_result uprobes;

	r->uprobes = UPROBES_NONE;
	if (!r->kinds[BPFPROF_HEAP])
		return 0;
	for (size_t i = 0; at_best && i < ARRAY_SIZE(names); i++)
		if (!strcmp(at_best, names[i]))
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
	if (r->waits_how.resume != PROBE_WAITS_NONE)
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
	probe_waits__probe(&r->waits_how);
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

/* For tests: is there to be too little of this? maps, ring, time. */
static bool tight(const char *what)
{
	const char *words = getenv("BPFPROF_TIGHT");

	return words && strstr(words, what);
}

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
		.uprobes = r->uprobes,
		.waits = r->waits_how,
		.wait_rate_ns = o->wait_rate_ns,
		.usdt = r->usdt,
		.run_time_stats = o->stats != NULL,
		.tight_maps = tight("maps"),
		.tight_ring = tight("ring"),
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
		.follow = r->opts->follow || r->opts->argv,
		.budget = r->opts->heap_budget / 100,
		.min_age_ns = r->opts->min_age_ns,
	};

	if (!r->kinds[BPFPROF_HEAP])
		return 0;
	r->heap = heap__new(&h, r->session, r->procs, r->objects, r->code, r->collect);
	return r->heap ? 0 : -errno;
}

/* While a file is read the rings fill. */
static void hold(void *ctx)
{
	collect__hold(((struct run *)ctx)->collect);
}

static int open_parts(struct run *r)
{
	const struct options *o = r->opts;
	struct collect_opts c = {
		.label_process = o->all,
		.label_thread = o->thread_labels,
		.follow = o->follow || o->argv,
		.only_added = !o->all,
	};
	int err;

	errno = ENOMEM;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (!r->kinds[i])
			continue;
		r->profiles[i] = profile__new(
			kinds[i].value_types, kinds[i].value_cnt, kinds[i].period_type,
			kinds[i].period ? kinds[i].period(r->frequency, o->heap_rate) : 1);
		if (!r->profiles[i])
			return -errno;
		r->profiles[i]->folded_value = kinds[i].folded_value;
	}
	r->procs = procs__new("/proc");
	r->tables = tables__new(r->session, o->all ? TABLE_CHUNKS_ALL : TABLE_CHUNKS_PID);
	r->samples = samples__new(r->session);
	r->events = events__new(tight("ring") ? 1 : EVENT_RING_PAGES);
	if (!r->procs || !r->tables || !r->samples || !r->events)
		return -errno;
	r->ksyms = ksyms__new(r->session);
	/* before the scan, so that nothing falls between the two */
	err = events__sync_cpus(r->events);
	if (err)
		return err;
	r->code = code__new(r->procs, r->objects, r->tables);
	if (!r->code)
		return -errno;
	r->collect =
		collect__new(&c, r->session, r->samples, r->events, r->procs, r->code, r->profiles);
	if (!r->collect)
		return -errno;
	objects__meanwhile(r->objects, hold, r);
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
	return session__add_tid(r->session, tid, procs__get(r->procs, proc)->start_ns);
}

static int watch(struct run *r, int fd, uint64_t id)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = id };

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

enum {
	WATCH_SIGNAL,
	WATCH_TIMER,
	WATCH_RING,
	WATCH_EVENTS,
	WATCH_PID
};

static int open_pids(struct run *r)
{
	const struct options_ids *pids = &r->opts->pids;

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
		if (watch(r, r->pidfds[i], WATCH_PID + i))
			return -errno;
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
	if (!err && o->pids.cnt)
		err = collect__prepare(r->collect);
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
	struct itimerspec tick = { .it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS };
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
	if (r->epoll_fd < 0 || r->signal_fd < 0 || r->timer_fd < 0 ||
	    timerfd_settime(r->timer_fd, 0, &tick, NULL))
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

static int set_up(struct run *r)
{
	struct feature_result ns;
	char text[512];
	int err;

	err = open_loop(r);
	if (err) {
		log_error("cannot set up signals and timers: %s", strerror(-err));
		return err;
	}
	ns = features_probe(FEATURE_PID_NAMESPACE);
	if (!ns.ok) {
		log_error("%s", ns.text);
		return -ENOTSUP;
	}
	r->objects = objects__new();
	err = r->objects ? choose_uprobes(r) : -ENOMEM;
	if (!err)
		err = choose_waits(r);
	if (!err && r->kinds[BPFPROF_HEAP])
		choose_usdt(r);
	if (!err)
		err = open_session(r);
	if (err)
		return err;
	err = open_parts(r);
	if (err == -EACCES || err == -EPERM) {
		refuse("needs root or CAP_BPF+CAP_PERFMON (try sudo)");
		return err;
	}
	if (!err)
		err = watch(r, samples__fd(r->samples), WATCH_RING);
	if (!err)
		err = watch(r, events__fd(r->events), WATCH_EVENTS);
	if (err) {
		log_error("cannot watch processes: %s", strerror(-err));
		return err;
	}
	err = add_targets(r);
	if (err)
		return err;
	if (r->heap) {
		heap__measure(r->heap);
		err = heap__update(r->heap);
		if (err)
			return err;
		if (!r->opts->argv)
			heap__complain(r->heap);
	}
	err = open_waits(r);
	if (err)
		return err;
	if (r->kinds[BPFPROF_THREADCREATE])
		r->threads_at_start = procs__thread_cnt(r->procs);
	err = session__arm(r->session, text, sizeof(text));
	if (err) {
		refuse(text);
		return err;
	}
	if (r->heap)
		heap__start(r->heap);
	r->armed_ns = util_monotonic_ns();
	if (r->waits) {
		err = probe_waits__start(r->waits, r->armed_ns);
		if (err) {
			log_error("cannot watch threads: %s", strerror(-err));
			return err;
		}
	}
	/* the command, if there is one, has been forked with all that it may */
	err = rights_reduce(r->heap && uprobes_by_events(r->uprobes));
	if (err)
		log_info("all rights are kept, since they cannot be given up: %s", strerror(-err));
	r->startup_ns = since_exec_ns();
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->profiles[i])
			r->profiles[i]->time_ns = util_realtime_ns();
	return 0;
}

/* ---- the loop ---- */

static void progress(struct run *r, uint64_t now)
{
	struct bpfprof_stats stats;

	if (log_get_level() < LOG_INFO || !isatty(STDERR_FILENO) || now < r->next_progress_ns)
		return;
	r->next_progress_ns = now + NSEC_PER_SEC;
	fprintf(stderr, "\r%6" PRIu64 " s", (now - r->armed_ns) / NSEC_PER_SEC);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i] && !session__stats(r->session, i, &stats))
			fprintf(stderr, "  %s: %" PRIu64 " samples", kinds[i].name,
				(uint64_t)stats.recorded);
	r->progress_shown = true;
}

static void on_signal(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			r->stops++;
}

static int on_tick(struct run *r)
{
	uint64_t expirations, now = util_monotonic_ns();
	char text[512];

	if (read(r->timer_fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		return -errno;
	/* each time, or a CPU might go and come back unseen; one that cannot be watched now is
	 * tried again the next time */
	if (session__arm(r->session, text, sizeof(text)))
		log_debug("%s", text);
	(void)events__sync_cpus(r->events);
	if (r->waits)
		probe_waits__sync_clock(r->waits);
	progress(r, now);
	tables__settle(r->tables);
	return 0;
}

static bool finished(struct run *r)
{
	const struct options *o = r->opts;
	uint64_t now = util_monotonic_ns();

	if (r->stops || r->only_threads || (o->duration_ns && now - r->armed_ns >= o->duration_ns))
		return true;
	if (o->argv)
		return launch_ended(&r->launch);
	return o->pids.cnt && !r->alive;
}

static int timeout_ms(const struct run *r)
{
	uint64_t now = util_monotonic_ns(), end = UINT64_MAX;

	if (r->opts->duration_ns)
		end = r->armed_ns + r->opts->duration_ns;
	if (r->heap)
		end = MIN(end, heap__next_ns(r->heap));
	if (end == UINT64_MAX)
		return -1;
	return now >= end ? 0 : (int)MIN((end - now + 999999) / 1000000, 1000);
}

static int loop(struct run *r)
{
	struct epoll_event ev[8];
	int n, err = 0;

	while (!err && !finished(r)) {
		if (tight("time"))
			usleep(STALL_US);
		n = epoll_wait(r->epoll_fd, ev, ARRAY_SIZE(ev), timeout_ms(r));
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			uint64_t id = ev[i].data.u64;

			if (id == WATCH_SIGNAL) {
				on_signal(r);
			} else if (id == WATCH_TIMER) {
				err = on_tick(r);
			} else if (id >= WATCH_PID && r->pidfds[id - WATCH_PID] >= 0) {
				close(r->pidfds[id - WATCH_PID]);
				r->pidfds[id - WATCH_PID] = -1;
				r->alive--;
			}
		}
		if (!err)
			err = collect__poll(r->collect);
		if (!err && r->heap)
			err = heap__update(r->heap);
		if (!err && r->heap)
			err = heap__tick(r->heap);
		if (!err && collect__wants_drain(r->collect))
			err = collect__drain(r->collect);
	}
	return err;
}

/* ---- afterwards ---- */

static int write_profile(struct run *r, const struct report *report, int kind)
{
	const struct profile *p = r->profiles[kind];
	struct output out;
	char path[PATH_MAX];
	int err;

	output_path(r, kind, path);
	err = output_open(path, &out);
	if (!err) {
		switch (r->opts->format) {
		case OPTIONS_PPROF:
			err = pprof_write(p, out.f);
			break;
		case OPTIONS_FOLDED:
			err = folded_write(p, out.f);
			break;
		case OPTIONS_TEXT:
			err = kind == BPFPROF_THREADS ? threads_text_write(p, out.f) :
							text_write(p, out.f, 0);
			break;
		}
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
	int err = output_open(r->opts->stats, &out);

	if (!err) {
		report_stats(report, out.f);
		err = output_commit(&out);
	}
	if (err)
		log_error("cannot write '%s': %s", r->opts->stats, strerror(-err));
	return err;
}

static int finish_kind(struct run *r, struct report *report, int kind)
{
	struct stacks *stacks = collect__stacks(r->collect);
	struct profile *p = r->profiles[kind];
	int err;

	p->duration_ns = r->stopped_ns - r->armed_ns;
	if (kind == BPFPROF_HEAP) {
		err = heap__finish(r->heap, p);
	} else {
		stacks__commit(stacks, kind, 1);
		err = stacks__finish(stacks, kind, false);
	}
	if (!err)
		err = collect__account(r->collect, kind, &report->accounts[kind]);
	if (!err)
		err = report_comment(report, kind, p);
	if (!err)
		err = symbolize(p, r->objects, code__perf_maps(r->code), r->ksyms,
				stacks__sources(stacks, kind), p->mapping_cnt,
				&report->symbols[kind]);
	if (!err && kind == BPFPROF_HEAP)
		heap__hide(p);
	if (!err && kind == BPFPROF_OFFCPU)
		waits_hide(p);
	if (!err)
		err = profile__finish(p);
	report->samples[kind] = p->sample_cnt;
	return err;
}

/* Asked to stop a second time? Nothing has been put in place before the files are renamed. */
static bool aborted(struct run *r)
{
	on_signal(r);
	return r->stops > 1;
}

static int finish(struct run *r)
{
	struct report report = {
		.opts = r->opts,
		.target = r->target,
		.kinds = r->kinds,
		.frequency = r->frequency,
		.cpus = cpus_possible(),
		.duration_ns = r->stopped_ns - r->armed_ns,
		.startup_ns = r->startup_ns,
		.snapshot_ns = r->snapshot.ns,
		.threads_at_start = r->threads_at_start,
	};
	char text[1024];
	int err;

	err = collect__drain(r->collect);
	session__run_time(r->session, &report.bpf_ns, &report.bpf_runs);
	code__stats(r->code, &report.code);
	if (r->heap)
		heap__report(r->heap, &report.heap);
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		if (r->profiles[i])
			err = finish_kind(r, &report, i);
	if (err) {
		log_error("cannot put the profile together: %s", strerror(-err));
		return err;
	}
	objects__stats(r->objects, &report.objects);
	perf_maps__stats(code__perf_maps(r->code), &report.perf_maps);
	if (report.perf_maps.refused)
		log_info("%" PRIu64
			 " perf maps (/tmp/perf-PID.map) are not read: they are no regular files, "
			 "or not the process's own, or not from its time",
			 report.perf_maps.refused);
	if (report.objects.set_aside)
		log_info("%" PRIu64
			 " files have no names here: they ended what read them, or kept "
			 "it waiting",
			 report.objects.set_aside);
	if (report.objects.lost)
		log_info("%" PRIu64
			 " files have no names here: there were too many to keep all of them "
			 "open, and they are gone",
			 report.objects.lost);
	rights_to_write(true);
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (aborted(r)) {
			log_error("aborted: nothing was written");
			return -EINTR;
		}
		if (r->profiles[i])
			err = write_profile(r, &report, i);
	}
	if (!err && r->opts->stats)
		err = write_stats(r, &report);
	rights_to_write(false);
	if (!err && r->opts->strict) {
		err = report_strict(&report, text, sizeof(text));
		if (err)
			log_error("--strict: %s", text);
	}
	return err;
}

static void tear_down(struct run *r)
{
	probe_waits__free(r->waits);
	heap__free(r->heap);
	if (r->objects)
		objects__meanwhile(r->objects, NULL, NULL);
	collect__free(r->collect);
	code__free(r->code);
	ksyms__free(r->ksyms);
	samples__free(r->samples);
	tables__free(r->tables);
	objects__free(r->objects);
	procs__free(r->procs);
	events__free(r->events);
	session__free(r->session);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		profile__free(r->profiles[i]);
	for (size_t i = 0; r->pidfds && i < r->opts->pids.cnt; i++)
		if (r->pidfds[i] >= 0)
			close(r->pidfds[i]);
	free(r->pidfds);
	for (int *fd = (int[]){ r->epoll_fd, r->signal_fd, r->timer_fd, -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
}

/* What threads are doing when the run ends: as a profile of its own, and where waits are in
 * progress. */
static int take_snapshot(struct run *r)
{
	const struct options *o = r->opts;
	struct snapshot_opts s = {
		.threads = r->kinds[BPFPROF_THREADS],
		.block = r->kinds[BPFPROF_BLOCK],
		.offcpu = r->kinds[BPFPROF_OFFCPU],
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
		.min_wait_ns = { options_min_wait_ns(o, BPFPROF_BLOCK),
				 options_min_wait_ns(o, BPFPROF_OFFCPU) },
		.waits = r->waits,
		.stopped_ns = r->stopped_ns,
	};

	if (!s.threads && !s.block && !s.offcpu)
		return 0;
	return snapshot_take(&s, r->session, r->collect, &r->snapshot);
}

static int record(struct run *r)
{
	int err = set_up(r);

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
	r->stopped_ns = util_monotonic_ns();
	session__disarm(r->session);
	if (r->waits)
		probe_waits__stop(r->waits, r->stopped_ns);
	if (r->heap)
		heap__stop(r->heap);
	if (!err)
		err = take_snapshot(r);
	probe_waits__free(r->waits);
	r->waits = NULL;
	if (r->progress_shown)
		fprintf(stderr, "\r%40s\r", "");
	if (err) {
		log_error("the recording failed: %s", strerror(-err));
		return err;
	}
	return finish(r);
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
	describe_target(&r);
	err = check_outputs(&r);
	if (!err) {
		clamp_frequency(&r);
		err = record(&r);
	}
	status = err ? 1 : 0;
	/* Ctrl-C reached the command too; at a time limit it is for us to end it */
	if (r.stops)
		launch_wait(&r.launch);
	launch_done(&r.launch);
	launch_heap__done(&r.launch_heap);
	if (!err && opts->argv)
		status = launch_exit_status(&r.launch);
	tear_down(&r);
	return status;
}
