// SPDX-License-Identifier: BSD-2-Clause
/* The begin of a capture: the parts are made, and all that is named is attached. And its end. */
#include <linux/types.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/proc_status.h"
#include "base/util.h"
#include "capture/capture_parts.h"
#include "capture/stack_copies.h"
#include "heap/cpu_time.h"
#include "kernel/cpus.h"
#include "kernel/events.h"
#include "kernel/features.h"
#include "kernel/grace.h"
#include "kernel/ksyms.h"
#include "kernel/probe_waits.h"
#include "kernel/sample_rate.h"
#include "kernel/samples.h"
#include "kernel/session.h"
#include "kernel/tables.h"
#include "kinds.h"
#include "target/names_cache.h"
#include "target/proc_maps.h"
#include "target/procs.h"

#define POLL_NS 250000000ULL /* how much later a capture may stop for all that comes in */
#define EVENT_RING_PAGES 64  /* 256 KiB a CPU: some 1,200 process starts between two ticks */
#define TABLE_CHUNKS_PID 24  /* MiB of unwind tables at most */
#define TABLE_CHUNKS_ALL 64
/* Of what all of it may take: unwind tables, and records that wait; the least with which either works. */
#define SHARE 4
#define LEAST_SHARE (4U << 20)

/* ---- the parts ---- */

/* Nothing can be recorded: because of what the kernel or our rights lack, as `check` has it, else
 * of text. */
static void refuse(const char *text)
{
	const char *missing = features_missing();

	log_error("%s", missing ? missing : text);
}

/* Are threads of the kernel among those that are to be watched for waits? Each of them costs as others
 * do, and there are some hundred: only where they are named. */
static bool watches_kthreads(const struct capture_opts *o)
{
	bool named = o->all && o->comm;

	for (size_t i = 0; !named && i < o->pid_cnt; i++)
		named = proc_is_kthread("/proc", o->pids[i]);
	return named && !o->user_only;
}

static int open_session(struct capture *c)
{
	const struct capture_opts *o = &c->opts;
	struct session_opts s = {
		.frequency = c->frequency,
		.hw_cycles = o->hw_cycles,
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
		.thread_names = o->thread_labels,
		.cgroups = o->all,
		.filter_tgid = !o->all,
		.filter_tid = o->tid_cnt > 0,
		.kthreads = watches_kthreads(o),
		.follow = o->follow,
		.cgroup = o->cgroup,
		.comm = o->comm,
		.heap_rate = o->heap_rate,
		.heap_slices = o->heap_budget < 1,
		/* what has the preload library needs no probes of the heap */
		.wake_at_fork = o->follow && !o->all &&
				(c->kinds[BPFPROF_CUSTOM] ||
				 (c->kinds[BPFPROF_HEAP] && !*c->launch_heap.preload)),
		.ops = o->ops_probe != NULL,
		.uprobes = c->uprobes,
		.waits = c->waits_how,
		.fds = c->fds_how,
		.usdt = c->usdt,
		.run_time_stats = o->run_time_stats,
		.tight_maps = knobs.tight_maps,
		.tight_ring = knobs.tight_ring,
	};
	char err[512];
	int ret;

	memcpy(s.kinds, c->kinds, sizeof(s.kinds));
	memcpy(s.chosen, o->chosen, sizeof(s.chosen));
	memcpy(s.min_wait_ns, o->min_wait_ns, sizeof(s.min_wait_ns));
	c->session = session__open(&s, err, sizeof(err));
	if (c->session)
		return 0;
	ret = -errno;
	refuse(err);
	return ret;
}

static bool heap_is_chosen(void *ctx, uint32_t proc)
{
	const struct capture *c = ctx;

	return collect__chosen(c->collect, proc) & 1U << BPFPROF_HEAP;
}

static int open_heap(struct capture *c)
{
	struct heap_opts h = {
		.method = c->uprobes,
		.usdt = c->usdt,
		.all = c->opts.all,
		.chosen = c->opts.chosen[BPFPROF_HEAP],
		.one = c->opts.pid_cnt == 1 && !c->opts.follow,
		.budget = c->opts.heap_budget,
		.min_age_ns = c->opts.min_age_ns,
	};

	if (!c->kinds[BPFPROF_HEAP])
		return 0;
	if (h.chosen) {
		c->heap_cpu = cpu_time__new_of(c->procs, heap_is_chosen, c);
		if (!c->heap_cpu)
			return -errno;
	}
	c->heap = heap__new(&h, c->session, c->procs, c->objects, c->code, c->collect,
			    h.chosen ? c->heap_cpu : c->cpu_time);
	return c->heap ? 0 : -errno;
}

static int open_custom(struct capture *c)
{
	if (!c->kinds[BPFPROF_CUSTOM])
		return 0;
	c->custom = custom__new(c->opts.custom, c->uprobes, c->session, c->procs, c->objects,
				c->code, c->collect);
	return c->custom ? 0 : -errno;
}

static void meanwhile(void *ctx)
{
	capture__meanwhile(ctx);
}

uint64_t capture_share(uint64_t max_memory, uint64_t usual)
{
	uint64_t share = MAX(max_memory / SHARE, LEAST_SHARE);

	return max_memory ? MIN(share, usual) : usual;
}

static int open_parts(struct capture *c)
{
	const struct capture_opts *o = &c->opts;
	uint64_t tables =
		(o->all ? TABLE_CHUNKS_ALL : TABLE_CHUNKS_PID) * (uint64_t)BPFPROF_CHUNK_SZ;
	struct collect_opts opts = {
		.label_process = o->all,
		.label_thread = o->thread_labels,
		.label_service = o->service_labels,
		.follow = o->follow,
		.only_added = !o->all,
		.all_maps = c->kinds[BPFPROF_HEAP] && !o->chosen[BPFPROF_HEAP],
		.poll_ns = POLL_NS,
		.spill_max = capture_share(o->max_memory, COLLECT_SPILL_MAX),
		.meanwhile = meanwhile,
		.ctx = c,
	};
	int err;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		c->periods[i] = kinds[i].period ? kinds[i].period(c->frequency, o->heap_rate) : 1;
	memcpy(opts.periods, c->periods, sizeof(opts.periods));
	errno = ENOMEM;
	c->procs = procs__new("/proc");
	c->tables = tables__new(
		c->session, (uint32_t)(capture_share(o->max_memory, tables) / BPFPROF_CHUNK_SZ));
	c->samples = samples__new(c->session);
	c->events = events__new(knobs.tight_ring ? 1 : EVENT_RING_PAGES);
	if (!c->procs || !c->tables || !c->samples || !c->events)
		return -errno;
	c->names = names_cache__new();
	c->stack_copies = stack_copies__new(c->objects);
	if (!c->names || !c->stack_copies)
		return -errno;
	c->ksyms = ksyms__new(c->session);
	/* before the scan, so that nothing falls between the two */
	err = events__sync_cpus(c->events, session__cpus_gone(c->session));
	if (err)
		return err;
	c->code = code__new(c->procs, c->objects, c->tables);
	if (!c->code)
		return -errno;
	c->collect = collect__new(&opts, c->session, c->samples, c->events, c->procs, c->code);
	if (!c->collect)
		return -errno;
	objects__meanwhile(c->objects, meanwhile, c);
	c->cpu_time = cpu_time__new(c->procs, o->all, o->follow);
	if (!c->cpu_time)
		return -errno;
	err = open_heap(c);
	return err ? err : open_custom(c);
}

static int watch(struct capture *c, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* What reads, and what says when there is something to read. 0 or -errno, said. */
static int open_readers(struct capture *c)
{
	int err = open_parts(c);

	if (err == -EACCES || err == -EPERM) {
		refuse("needs root or CAP_BPF+CAP_PERFMON (try sudo)");
		return err;
	}
	if (!err) {
		c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (c->epoll_fd < 0 || c->timer_fd < 0)
			err = -errno;
	}
	if (!err)
		err = watch(c, c->timer_fd, EPOLLIN);
	/* see watch_epoch in capture.c */
	if (!err)
		err = watch(c, grace__fd(session__grace(c->session)), 0);
	if (!err)
		err = watch(c, samples__fd(c->samples), EPOLLIN);
	if (!err)
		err = watch(c, events__fd(c->events), EPOLLIN);
	if (err)
		log_error("cannot watch processes: %s", cpus_failure(err));
	return err;
}

/* ---- whom ---- */

/* The process of a thread, and the process's start, for the filter by thread. */
static int add_thread(struct capture *c, uint32_t tid)
{
	uint32_t proc, tgid = 0;
	char *text;
	int err = proc_status_read(PROC_STATUS_DIR, tid, &text);

	if (!err) {
		tgid = (uint32_t)proc_status_number(text, "Tgid");
		free(text);
	}
	proc = tgid ? procs__find_live(c->procs, tgid) : PROCS_NONE;
	if (proc == PROCS_NONE) {
		log_error("no thread %u%s", tid, c->opts.all ? "" : " in the processes named");
		return -ESRCH;
	}
	err = session__add_tid(c->session, tid, procs__get(c->procs, proc)->start_ns);
	if (err)
		log_error("cannot watch thread %u: %s", tid, strerror(-err));
	return err;
}

/* 0 or -errno, said. */
static int scan(struct capture *c, const uint32_t *pids, size_t cnt)
{
	int err = collect__scan(c->collect, pids, cnt);

	/* children that were forked before their parents were in the filter */
	if (!err && cnt && c->opts.follow)
		err = collect__scan(c->collect, pids, cnt);
	if (err)
		log_error("cannot read the list of processes: %s", strerror(-err));
	return err;
}

static int open_all(struct capture *c)
{
	int err = capture_choose(c);

	if (!err)
		err = open_session(c);
	if (!err)
		err = open_readers(c);
	if (!err && !c->opts.command)
		err = scan(c, c->opts.pids, c->opts.pid_cnt);
	return err;
}

int capture__open(const struct capture_opts *opts, struct capture **ret)
{
	struct capture *c = calloc(1, sizeof(*c));
	int err = c ? 0 : -ENOMEM;

	*ret = NULL;
	if (c) {
		c->opts = *opts;
		memcpy(c->kinds, opts->kinds, sizeof(c->kinds));
		c->epoll_fd = c->timer_fd = c->launch_heap.file_fd = c->ops_sites.fd = -1;
		c->objects = objects__new();
		err = c->objects ? 0 : -errno;
	}
	if (err)
		log_error("cannot read files: %s", strerror(-err));
	if (!err)
		err = open_all(c);
	if (err)
		capture__close(c);
	else
		*ret = c;
	return err;
}

bool capture__has_process(const struct capture *c, uint32_t pid)
{
	return procs__find_live(c->procs, pid) != PROCS_NONE;
}

char *const *capture__command_env(struct capture *c)
{
	return c->command_env[0] ? c->command_env : NULL;
}

int capture__add_command(struct capture *c, pid_t pid)
{
	const struct launch_heap *l = &c->launch_heap;
	uint32_t child = pid;
	int err = scan(c, &child, 1);

	if (!err && c->opts.ops_probe)
		err = capture_ops_open(c, pid);
	if (!err && c->custom) {
		err = custom__prepare_command(c->custom, pid, c->opts.command);
		if (err)
			log_error("cannot listen to custom profiles: %s", strerror(-err));
	}
	if (err || !c->heap)
		return err;
	if (l->file_fd < 0) {
		/* that there is none its start will say */
		if (!l->missing)
			log_info("the heap of '%s' is not recorded: %s", c->opts.command, l->why);
		return heap__prepare_command(c->heap, pid, -1, NULL);
	}
	if (!*l->preload && !l->samples_itself)
		log_info(
			"the heap of '%s' is sampled by probes, which cost more than the library "
			"that samples inside: %s",
			c->opts.command, l->why);
	err = heap__prepare_command(c->heap, pid, l->file_fd, *l->preload ? l->preload : NULL);
	if (err)
		log_error("cannot attach to the heap: %s", strerror(-err));
	return err;
}

/* ---- the start ---- */

/* Attaches to the heaps of the targets. 0 or -errno, said. */
static int prepare_heap(struct capture *c)
{
	int err;

	heap__measure(c->heap);
	err = heap__update(c->heap);
	/* a command has not been started yet */
	if (!err && !c->opts.command)
		heap__complain(c->heap);
	if (err)
		log_error("cannot attach to the heap: %s", strerror(-err));
	return err;
}

/* Listens to the custom profiles of the targets. 0 or -errno, said. */
static int prepare_custom(struct capture *c)
{
	int err = custom__update(c->custom);

	if (err)
		log_error("cannot listen to custom profiles: %s", strerror(-err));
	/* a command has not been started yet */
	return err || c->opts.command ? err : custom__check(c->custom);
}

/* Loads the tables of processes that were named. A command is still our own image: its tables are
 * loaded as it runs. 0 or -errno, said. */
static int prepare_code(struct capture *c)
{
	int err;

	if (!c->opts.pid_cnt)
		return 0;
	err = collect__prepare(c->collect);
	if (err)
		log_error("cannot read the code of the processes: %s", strerror(-err));
	return err;
}

/* Watches for waits and for new threads: whoever is in the filter by now. */
static int open_waits(struct capture *c)
{
	if (!c->kinds[BPFPROF_BLOCK] && !c->kinds[BPFPROF_MUTEX] && !c->kinds[BPFPROF_OFFCPU] &&
	    !c->kinds[BPFPROF_THREADCREATE])
		return 0;
	c->waits = probe_waits__new(c->session);
	if (c->waits)
		return 0;
	log_error("cannot watch threads: %s", strerror(errno));
	return -errno;
}

/* Other programs decide how long it takes to read what they have open: they are not to keep anybody from
 * recording other kinds. 0 or -errno, said. */
static int start_fds(struct capture *c)
{
	bool others = false;
	int err;

	if (!c->kinds[BPFPROF_FDS])
		return 0;
	err = probe_fds__start(c->session);
	if (!err)
		return 0;
	probe_fds__stop(c->session);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		others |= c->kinds[i] && i != BPFPROF_FDS;
	log_error("%s: what is open cannot be read: %s",
		  others ? "no fds profile" : "cannot watch descriptors", probe_fds__failure(err));
	if (!others)
		return err;
	c->kinds[BPFPROF_FDS] = false;
	c->fds_err = err;
	return 0;
}

/* Samples are taken from here on. 0 or -errno, said. */
static int arm(struct capture *c)
{
	char text[512];
	int err = collect__begin(c->collect);

	if (err) {
		log_error("cannot read what processes have done: %s", strerror(-err));
		return err;
	}
	err = session__arm(c->session, text, sizeof(text));
	if (err) {
		refuse(text);
		return err;
	}
	if (c->heap)
		heap__start(c->heap);
	if (c->custom)
		custom__start(c->custom);
	err = start_fds(c);
	if (err)
		return err;
	c->armed_ns = c->boundary_ns = util_monotonic_ns();
	session__set_sampling(c->session, true);
	c->start_shift_ns = c->shift_ns = util_realtime_shift_ns();
	capture_rate_start(c);
	err = capture_waits_start(c);
	if (err) {
		log_error("cannot watch threads: %s", strerror(-err));
		return err;
	}
	err = capture_start_ticks(c);
	if (err)
		log_error("cannot set a timer: %s", strerror(-err));
	return err;
}

int capture__start(struct capture *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->opts.tid_cnt; i++)
		err = add_thread(c, c->opts.tids[i]);
	if (!err)
		err = prepare_code(c);
	/* first: where probes of user programs are perf events, whoever waits to set one may hold the kernel's
	 * event_mutex, for which a kprobe waits, and nothing ends that wait */
	if (!err)
		err = open_waits(c);
	if (!err && c->heap)
		err = prepare_heap(c);
	if (!err && c->custom)
		err = prepare_custom(c);
	if (err)
		return err;
	if (c->kinds[BPFPROF_THREADCREATE])
		c->threads_at_start = procs__thread_cnt(c->procs);
	return arm(c);
}

/* ---- targets that come and go ---- */

int capture__add(struct capture *c, uint32_t pid)
{
	int err = collect__is_leaving(c->collect, pid) ? -EAGAIN : scan(c, &pid, 1);

	if (!err && !capture__has_process(c, pid))
		err = -ESRCH;
	if (!err && c->armed_ns)
		err = prepare_code(c);
	return err;
}

int capture__remove(struct capture *c, uint32_t pid)
{
	int err = collect__remove(c->collect, pid);

	if (err || !c->heap)
		return err;
	err = heap__remove(c->heap, pid);
	if (err)
		log_error("cannot forget the heap of process %u: %s", pid, strerror(-err));
	return err;
}

/* ---- processes that are chosen ---- */

int capture__processes(struct capture *c, struct bpfprof_task **ret, size_t *ret_cnt,
		       uint64_t *ret_ns)
{
	*ret_ns = util_monotonic_ns();
	return session__scan(c->session, ret, ret_cnt);
}

uint32_t capture__chosen(const struct capture *c, uint32_t pid)
{
	return collect__chosen(c->collect, procs__find_live(c->procs, pid));
}

int capture__choose(struct capture *c, const struct bpfprof_task *process, uint64_t listed_ns,
		    uint32_t chosen)
{
	uint32_t had = capture__chosen(c, process->key.tgid);
	int err = collect__choose(c->collect, process, listed_ns, chosen);

	if (err || !c->heap || !(had & ~chosen & 1U << BPFPROF_HEAP))
		return err;
	return heap__remove(c->heap, process->key.tgid);
}

bool capture__adds_perf_probes(const struct capture *c)
{
	return (c->heap || c->custom) && uprobes_by_events(c->uprobes);
}

/* ---- the end ---- */

void capture__close(struct capture *c)
{
	if (!c)
		return;
	capture_ops_close(c);
	probe_waits__free(c->waits);
	custom__free(c->custom);
	heap__free(c->heap);
	if (uprobes_are_late())
		log_error(
			"probes are not all taken back yet: some process keeps the kernel waiting "
			"for its "
			"memory; they go when it ends (ps -eLo pid,stat,wchan shows threads in "
			"state D)");
	for (size_t i = 0; i < CAPTURE_EPOCHS; i++)
		capture_boundary__done(&c->boundaries[i]);
	launch_heap__done(&c->launch_heap);
	cpu_time__free(c->heap_cpu);
	cpu_time__free(c->cpu_time);
	if (c->objects)
		objects__meanwhile(c->objects, NULL, NULL);
	collect__free(c->collect);
	code__free(c->code);
	ksyms__free(c->ksyms);
	names_cache__free(c->names);
	stack_copies__free(c->stack_copies);
	samples__free(c->samples);
	tables__free(c->tables);
	objects__free(c->objects);
	free(c->lacks);
	procs__free(c->procs);
	events__free(c->events);
	session__free(c->session);
	sample_rate__give(c->clock_hz);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	if (c->timer_fd >= 0)
		close(c->timer_fd);
	free(c);
}
