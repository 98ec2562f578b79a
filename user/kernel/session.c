// SPDX-License-Identifier: BSD-2-Clause
/* Our half in the kernel: opens, configures, loads, arms and removes the BPF programs. */
#include "kernel/session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/cpus.h"
#include "kernel/dontfork.h"
#include "kernel/epochs.h"
#include "kernel/features.h"
#include "kernel/glob.h"
#include "kernel/probe_waits.h"
#include "kernel/skeleton.h"

#define SCAN_MAX_BYTES (64U << 20)
/* A raw stack takes up to 66 KiB, and many come while a table is built; where nearly every
 * allocation is sampled, as fast as the program makes them. */
#define RING_PER_CPU (2U << 20)
#define RING_PER_CPU_DENSE (16U << 20)
#define RING_MAX (64U << 20)
/* Bytes between heap samples, below which they come so fast. Each MiB of tables that a program is
 * the first to need takes the kernel 10 to 40 ms (tables.c): a compiler was seen to fill 4 MiB by
 * then. */
#define DENSE_RATE 262144
#define RING_CPUS_MAX 8
#define SLOTS_MIN 8 /* stacks that tasks may be taking at a time; as many as CPUs, but at least */
/* Sampled allocations that are followed until they are freed: those of a heap of 16 GiB, some 110
 * bytes each */
#define LIVE_HEAP (16ULL << 30)
#define LIVE_MIN (1U << 16)
#define LIVE_MAX (1U << 20)
#define TIGHT_ENTRIES 16
#define HASH_STATES 65536 /* threads that have a state, at most, where there is no task storage */

/* A program that was loaded for one cookie. */
struct copy {
	const struct bpf_program *prog;
	uint64_t cookie;
	int fd;
};

struct session {
	struct bpfprof_bpf *skel;
	struct session_opts opts;
	struct copy *copies;
	size_t copy_cnt, copy_cap;
	struct bpf_link **cpus; /* sampler of each CPU, NULL: none; owns its perf event */
	bool *online;
	int cpu_cnt;
	struct epochs *epochs;
	int cgroup_fd;
	int stats_fd;
	bool any_tgid; /* one was added */
};

static void __attribute__((format(printf, 3, 4)))
say(char *err, size_t err_sz, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, err_sz, fmt, ap);
	va_end(ap);
}

/* libbpf speaks up for itself only when the user wants to see everything. */
static int libbpf_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *text, *line, *rest;

	if (level == LIBBPF_DEBUG || log_get_level() < LOG_DEBUG || vasprintf(&text, fmt, ap) < 0)
		return 0;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log_debug("%s", line);
	free(text);
	return 0;
}

static uint32_t ring_size(int cpu_cnt, bool dense)
{
	uint32_t cpus = 1;

	while (cpus < RING_CPUS_MAX && cpus < (uint32_t)cpu_cnt)
		cpus *= 2;
	return MIN(cpus * (dense ? RING_PER_CPU_DENSE : RING_PER_CPU), RING_MAX);
}

/* Which allocations do not fail for want of memory (vm.overcommit_memory, proc(5)): with the
 * heuristic, what is more than all memory is refused; without overcommitting, anything may be. */
static void set_sure_sizes(struct bpfprof_config *cfg)
{
	char *buf;
	size_t sz;

	cfg->heap_sure = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
	cfg->heap_strict = 1;
	if (util_read_file("/proc/sys/vm/overcommit_memory", 64, &buf, &sz))
		return;
	cfg->heap_strict = buf[0] == '2';
	free(buf);
}

/* What only the heap profile uses. Maps that nobody uses are not made. */
static void configure_heap(struct session *s)
{
	const struct session_opts *o = &s->opts;
	struct bpfprof_config *cfg = (struct bpfprof_config *)&s->skel->rodata->bp_config;
	bool wanted = o->kinds[BPFPROF_HEAP], session = o->uprobes == UPROBES_SESSION;
	/* else there will be copies */
	bool cookies = o->uprobes != UPROBES_EVENT;
	struct {
		struct bpf_program *prog;
		bool load;
	} progs[] = {
		{ s->skel->progs.heap_session, session },
		{ s->skel->progs.heap_entry, !session && cookies },
		{ s->skel->progs.heap_return, !session },
		{ s->skel->progs.heap_free, true },
		{ s->skel->progs.heap_begin, o->heap_slices && cookies },
		{ s->skel->progs.heap_usdt_alloc, o->usdt && cookies },
		{ s->skel->progs.heap_usdt_free, o->usdt && cookies },
	};

	bpf_map__set_autocreate(s->skel->maps.bp_live, wanted);
	session__keep_states(s, s->skel->maps.bp_heap_tasks, s->skel->maps.bp_heap_hash, wanted);
	bpf_program__set_autoload(s->skel->progs.heap_exit, wanted && cfg->hash_states);
	bpf_program__set_autoload(s->skel->progs.heap_exec, wanted && cfg->hash_states);
	if (!wanted)
		return;
	s->skel->bss->bp_control.heap_off = 1;
	cfg->heap_rate = o->heap_rate;
	set_sure_sizes(cfg);
	bpf_map__set_max_entries(s->skel->maps.bp_live,
				 MIN(MAX(LIVE_HEAP / o->heap_rate, LIVE_MIN), LIVE_MAX));
	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		bpf_program__set_autoload(progs[i].prog, progs[i].load);
		/* the session program alone may say that it does not want a return */
		bpf_program__set_expected_attach_type(
			progs[i].prog, uprobes_attach_type(i || o->uprobes != UPROBES_SESSION ?
								   MAX(o->uprobes, UPROBES_MULTI) :
								   UPROBES_SESSION));
	}
}

void session__keep_states(struct session *s, struct bpf_map *storage, struct bpf_map *hash,
			  bool wanted)
{
	bool hashed = s->skel->rodata->bp_config.hash_states;

	bpf_map__set_autocreate(storage, wanted && !hashed);
	bpf_map__set_autocreate(hash, wanted && hashed);
	if (hashed)
		bpf_map__set_max_entries(hash, HASH_STATES);
}

/* Where stacks are taken: see bpfprof_config. */
static void configure_slots(struct session *s)
{
	const bool *kinds = s->opts.kinds;
	struct bpfprof_config *cfg = (struct bpfprof_config *)&s->skel->rodata->bp_config;
	bool traced = kinds[BPFPROF_BLOCK] || kinds[BPFPROF_MUTEX] || kinds[BPFPROF_OFFCPU] ||
		      kinds[BPFPROF_THREADCREATE];
	bool preempted = kinds[BPFPROF_HEAP] || probe_waits__by_futex(&s->opts);
	uint32_t cnt;

	cfg->trace_slot = s->cpu_cnt;
	cfg->first_slot = cfg->trace_slot + (traced ? s->cpu_cnt : 0);
	cfg->slot_cnt = preempted ? MAX(s->cpu_cnt, SLOTS_MIN) : 0;
	bpf_map__set_autocreate(s->skel->maps.bp_slots, preempted);
	bpf_map__set_max_entries(s->skel->maps.bp_slots, MAX(cfg->slot_cnt, 1));
	cnt = cfg->first_slot + cfg->slot_cnt;
	bpf_map__set_max_entries(s->skel->maps.bp_scratch, cnt);
	bpf_map__set_max_entries(s->skel->maps.bp_raw, cnt);
}

/* For tests: so little room that everything that can be full will be. What the user has named has
 * its place, but beside followed children. */
static void tighten(struct session *s)
{
	struct bpf_map *map;

	if (s->opts.tight_ring)
		bpf_map__set_max_entries(s->skel->maps.bp_ring, sysconf(_SC_PAGESIZE));
	bpf_object__for_each_map(map, s->skel->obj)
	{
		enum bpf_map_type type = bpf_map__type(map);

		if (s->opts.tight_maps &&
		    (type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_LRU_HASH) &&
		    (map != s->skel->maps.bp_tgids || s->opts.follow) &&
		    map != s->skel->maps.bp_tids)
			bpf_map__set_max_entries(
				map, MIN(bpf_map__max_entries(map), (uint32_t)TIGHT_ENTRIES));
	}
}

static int configure(struct session *s, char *err, size_t err_sz)
{
	const struct session_opts *o = &s->opts;
	struct bpfprof_config *cfg = (struct bpfprof_config *)&s->skel->rodata->bp_config;
	struct bpf_program *prog;
	int ret;

	if (getrandom(&cfg->seed, sizeof(cfg->seed), 0) != sizeof(cfg->seed))
		return -errno;
	cfg->filter_tgid = o->filter_tgid;
	cfg->filter_tid = o->filter_tid;
	cfg->filter_cgroup = o->cgroup != NULL;
	cfg->filter_comm = o->comm != NULL;
	cfg->user_only = o->user_only;
	cfg->kernel_only = o->kernel_only;
	cfg->thread_names = o->thread_names;
	cfg->max_uframes = BPFPROF_MAX_UFRAMES;
	if (o->comm) {
		ret = glob_compile(o->comm, cfg);
		if (ret) {
			say(err, err_sz, "thread name pattern '%s' is too long", o->comm);
			return ret;
		}
	}
	cfg->sample_seed = knobs.sample_seed;
	cfg->follow = o->follow;
	cfg->self_tgid = getpid();
	cfg->hash_states = (o->kinds[BPFPROF_HEAP] || o->kinds[BPFPROF_BLOCK] ||
			    o->kinds[BPFPROF_MUTEX] || o->kinds[BPFPROF_OFFCPU]) &&
			   !features_task_storage();
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		cfg->record[i] = o->kinds[i];
	configure_slots(s);
	bpf_map__set_max_entries(
		s->skel->maps.bp_ring,
		ring_size(s->cpu_cnt, o->kinds[BPFPROF_HEAP] && o->heap_rate < DENSE_RATE));
	if (!o->filter_tid)
		bpf_map__set_max_entries(s->skel->maps.bp_tids, 1);
	if (!o->filter_tgid)
		bpf_map__set_max_entries(s->skel->maps.bp_tgids, 1);

	bpf_object__for_each_program(prog, s->skel->obj) bpf_program__set_autoload(prog, false);
	bpf_program__set_autoload(s->skel->progs.proc_scan, true);
	/* BPF_PROG_TYPE_SYSCALL: 5.14 (79a7f8bdb159), which is younger than all that it calls */
	bpf_program__set_autoload(
		s->skel->progs.ksyms_name,
		!o->user_only && libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SYSCALL, NULL) == 1);
	bpf_program__set_autoload(s->skel->progs.proc_follow, o->follow);
	bpf_program__set_autoload(s->skel->progs.cpu_sample, o->kinds[BPFPROF_CPU]);
	bpf_program__set_autoload(s->skel->progs.threads_read, o->kinds[BPFPROF_THREADS] ||
								       o->kinds[BPFPROF_BLOCK] ||
								       o->kinds[BPFPROF_OFFCPU]);
	bpf_program__set_autoload(s->skel->progs.threads_sample, o->kinds[BPFPROF_THREADS]);
	bpf_map__set_autocreate(s->skel->maps.bp_threads_due, o->kinds[BPFPROF_THREADS]);
	configure_heap(s);
	probe_waits__configure(s, o);
	tighten(s);
	return 0;
}

/* Attaches a program that the kernel calls by itself, if it was loaded. */
static int attach(struct bpf_program *prog, struct bpf_link **ret)
{
	*ret = bpf_program__autoload(prog) ? bpf_program__attach(prog) : NULL;
	return bpf_program__autoload(prog) && !*ret ? -errno : 0;
}

static int load(struct session *s, char *err, size_t err_sz)
{
	uint32_t zero = 0;
	int ret;

	ret = bpfprof_bpf__load(s->skel);
	if (ret) {
		/* EACCES would be the verifier's */
		if (ret == -EPERM)
			say(err, err_sz, "needs root or CAP_BPF+CAP_PERFMON (try sudo)");
		else if (access("/sys/kernel/btf/vmlinux", R_OK))
			say(err, err_sz,
			    "this kernel has no type information (/sys/kernel/btf/vmlinux): it "
			    "needs "
			    "CONFIG_DEBUG_INFO_BTF");
		else
			say(err, err_sz, "cannot load the BPF programs: %s (-v shows more)",
			    strerror(-ret));
		return ret;
	}
	ret = dontfork();
	if (ret) {
		say(err, err_sz, "cannot keep memory from child processes: %s", strerror(-ret));
		return ret;
	}
	if (s->opts.cgroup) {
		s->cgroup_fd = open(s->opts.cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ret = s->cgroup_fd < 0 ? -errno :
					 bpf_map_update_elem(bpf_map__fd(s->skel->maps.bp_cgroup),
							     &zero, &s->cgroup_fd, BPF_ANY);
		if (ret) {
			say(err, err_sz, "cannot use '%s' as a cgroup (v2): %s", s->opts.cgroup,
			    strerror(-ret));
			return ret;
		}
	}
	ret = attach(s->skel->progs.proc_follow, &s->skel->links.proc_follow);
	if (ret) {
		say(err, err_sz, "cannot follow child processes: %s", strerror(-ret));
		return ret;
	}
	ret = attach(s->skel->progs.heap_exit, &s->skel->links.heap_exit);
	if (!ret)
		ret = attach(s->skel->progs.heap_exec, &s->skel->links.heap_exec);
	if (ret) {
		say(err, err_sz, "cannot see threads end: %s", strerror(-ret));
		return ret;
	}
	/* for as long as the descriptor is open; failure leaves the figures at 0 */
	if (s->opts.run_time_stats)
		s->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return 0;
}

struct session *session__open(const struct session_opts *opts, char *err, size_t err_sz)
{
	struct session *s = calloc(1, sizeof(*s));
	int ret = -ENOMEM;

	say(err, err_sz, "out of memory");
	if (!s)
		return NULL;
	s->opts = *opts;
	s->cgroup_fd = s->stats_fd = -1;
	libbpf_set_print(libbpf_print);
	s->cpu_cnt = cpus_possible();
	if (s->cpu_cnt <= 0) {
		ret = s->cpu_cnt ? s->cpu_cnt : -ENODEV;
		say(err, err_sz, "cannot read the list of CPUs from /sys: %s", strerror(-ret));
		s->cpu_cnt = 0;
		goto cleanup;
	}
	s->cpus = calloc(s->cpu_cnt, sizeof(*s->cpus));
	s->online = calloc(s->cpu_cnt, sizeof(*s->online));
	if (!s->cpus || !s->online) {
		s->cpu_cnt = 0;
		goto cleanup;
	}
	s->skel = skeleton__open();
	if (!s->skel) {
		ret = -errno;
		say(err, err_sz, "cannot open the BPF programs: %s", strerror(-ret));
		goto cleanup;
	}
	ret = configure(s, err, err_sz);
	if (ret)
		goto cleanup;
	ret = load(s, err, err_sz);
	if (ret)
		goto cleanup;
	s->epochs = epochs__new();
	if (s->epochs)
		return s;
	ret = -errno;
	say(err, err_sz, "cannot make a map of maps: %s", strerror(-ret));

cleanup:
	session__free(s);
	errno = -ret;
	return NULL;
}

void session__free(struct session *s)
{
	if (!s)
		return;
	session__disarm(s);
	epochs__free(s->epochs);
	for (size_t i = 0; i < s->copy_cnt; i++)
		close(s->copies[i].fd);
	free(s->copies);
	bpfprof_bpf__destroy(s->skel);
	if (s->cgroup_fd >= 0)
		close(s->cgroup_fd);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	free(s->cpus);
	free(s->online);
	free(s);
}

int session__scan(struct session *s, struct bpfprof_task **ret, size_t *ret_cnt)
{
	struct bpf_link *link;
	size_t sz = 0;
	char *buf;
	int fd, err;

	link = bpf_program__attach_iter(s->skel->progs.proc_scan, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? -errno : util_read_fd(fd, SCAN_MAX_BYTES, &buf, &sz);
	if (!err) {
		*ret = (struct bpfprof_task *)buf;
		*ret_cnt = sz / sizeof(**ret);
	}
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

static int add(struct bpf_map *map, uint32_t id, uint64_t start_ns)
{
	return bpf_map_update_elem(bpf_map__fd(map), &id, &start_ns, BPF_ANY) ? -errno : 0;
}

int session__add_tgid(struct session *s, uint32_t tgid, uint64_t start_ns)
{
	volatile __u32 *only = &s->skel->bss->bp_control.only_tgid;

	if (!s->any_tgid && !s->opts.follow)
		*only = tgid;
	else if (*only != tgid)
		*only = 0;
	s->any_tgid = true;
	return add(s->skel->maps.bp_tgids, tgid, start_ns);
}

int session__add_tid(struct session *s, uint32_t tid, uint64_t start_ns)
{
	return add(s->skel->maps.bp_tids, tid, start_ns);
}

void session__remove_tgid(struct session *s, uint32_t tgid)
{
	(void)bpf_map_delete_elem(bpf_map__fd(s->skel->maps.bp_tgids), &tgid);
}

void session__prune_tgids(struct session *s)
{
	int fd = bpf_map__fd(s->skel->maps.bp_tgids);
	uint32_t tgid, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		tgid = next;
		more = !bpf_map_get_next_key(fd, &tgid, &next);
		if (kill((pid_t)tgid, 0) && errno == ESRCH)
			session__remove_tgid(s, tgid);
	}
}

static void disarm_cpu(struct session *s, int cpu)
{
	bpf_link__destroy(s->cpus[cpu]);
	s->cpus[cpu] = NULL;
}

int session__clock(struct bpf_program *prog, int cpu, bool cycles, uint64_t frequency,
		   struct bpf_link **ret)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = frequency,
		.exclude_idle = 1,
		.disabled = 1,
	};
	int fd, err;

	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* enables the event too */
	*ret = bpf_program__attach_perf_event(prog, fd);
	if (*ret)
		return 0;
	err = -errno;
	close(fd);
	return err;
}

static int arm_cpu(struct session *s, int cpu)
{
	return session__clock(s->skel->progs.cpu_sample, cpu, s->opts.hw_cycles, s->opts.frequency,
			      &s->cpus[cpu]);
}

int session__arm(struct session *s, char *err, size_t err_sz)
{
	int ret, last = -ENODEV, armed = 0;

	if (!s->opts.kinds[BPFPROF_CPU])
		return 0;
	ret = cpus_online(s->online, s->cpu_cnt);
	if (ret) {
		say(err, err_sz, "cannot read the list of CPUs from /sys: %s", strerror(-ret));
		return ret;
	}
	for (int i = 0; i < s->cpu_cnt; i++) {
		/* an event of a CPU that went away never counts again, even if the CPU returns */
		if (!s->online[i])
			disarm_cpu(s, i);
		else if (!s->cpus[i] && (ret = arm_cpu(s, i)))
			last = ret;
		armed += s->cpus[i] != NULL;
	}
	if (armed)
		return 0;
	if (last == -EACCES || last == -EPERM)
		say(err, err_sz, "needs root or CAP_BPF+CAP_PERFMON (try sudo)");
	else if (s->opts.hw_cycles && (last == -ENOENT || last == -EOPNOTSUPP))
		say(err, err_sz, "this machine has no cycle counter (use --event cpu-clock)");
	else
		say(err, err_sz, "cannot open a sampling event on any CPU: %s", strerror(-last));
	return last;
}

void session__disarm(struct session *s)
{
	for (int i = 0; i < s->cpu_cnt; i++)
		disarm_cpu(s, i);
}

static void add_run_time(int fd, uint64_t *ns, uint64_t *runs)
{
	struct bpf_prog_info info = {};
	uint32_t sz = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &sz))
		return;
	*ns += info.run_time_ns;
	*runs += info.run_cnt;
}

static bool begins(const struct bpf_program *prog, const char *begin)
{
	return !strncmp(bpf_program__name(prog), begin, strlen(begin));
}

void session__run_time(struct session *s, const char *begin, uint64_t *ret_ns, uint64_t *ret_runs)
{
	struct bpf_program *prog;

	*ret_ns = *ret_runs = 0;
	if (s->stats_fd < 0)
		return;
	bpf_object__for_each_program(prog, s->skel->obj)
	{
		if (begins(prog, begin))
			add_run_time(bpf_program__fd(prog), ret_ns, ret_runs);
	}
	for (size_t i = 0; i < s->copy_cnt; i++)
		if (begins(s->copies[i].prog, begin))
			add_run_time(s->copies[i].fd, ret_ns, ret_runs);
}

uint64_t session__not_followed(const struct session *s)
{
	return s->skel->bss->bp_control.not_followed;
}

int session__program(struct session *s, const struct bpf_program *prog, uint64_t cookie)
{
	int fd = bpf_program__fd(prog);

	if (fd >= 0)
		return fd;
	for (size_t i = 0; i < s->copy_cnt; i++)
		if (s->copies[i].prog == prog && s->copies[i].cookie == cookie)
			return s->copies[i].fd;
	if (util_reserve(&s->copies, &s->copy_cap, s->copy_cnt + 1, sizeof(*s->copies)))
		return -ENOMEM;
	fd = skeleton__load_copy(s->skel, prog, cookie);
	if (fd >= 0)
		s->copies[s->copy_cnt++] = (struct copy){ prog, cookie, fd };
	return fd;
}

struct epochs *session__epochs(struct session *s)
{
	return s->epochs;
}

struct bpfprof_bpf *session__skel(struct session *s)
{
	return s->skel;
}
