// SPDX-License-Identifier: BSD-2-Clause
/* Our half in the kernel: opens, configures, loads, arms and removes the BPF programs. */
#include "kernel/session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
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
#include "kernel/grace.h"
#include "kernel/probe.h"
#include "kernel/probe_ops.h"
#include "kernel/skeleton.h"

#define SCAN_MAX_BYTES (64U << 20)
/* A raw stack takes up to 66 KiB, and many come while a table is built; where samples are dense, as
 * fast as the program makes them. */
#define RING_PER_CPU (2U << 20)
#define RING_PER_CPU_DENSE (16U << 20)
#define RING_MAX (64U << 20)
#define RING_CPUS_MAX 8
/* Distinct stacks that are counted, where a clock alone takes samples: so many at least, and twice what it takes in so
 * many seconds, which is the window of an agent */
#define COUNTS_MIN 2048
#define COUNTS_SECONDS 10
#define SLOTS_MIN 8 /* stacks that tasks may be taking at a time; as many as CPUs, but at least */
#define TIGHT_ENTRIES 16
#define MAX_COPIES 256	  /* of programs, where cookies are part of them */
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
	void *armed[BPFPROF_NR_KINDS]; /* see struct probe */
	unsigned int needs;	       /* SESSION_… */
	uint32_t counts_max;	       /* of bp_counts0 and bp_counts1, but for tests */
	int cpu_cnt;
	uint32_t cpu_changes; /* of bpfprof_state, when it was looked at */
	uint32_t *cpus_gone;  /* by CPU, since then */
	struct epochs *epochs;
	struct grace *grace;
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

static uint32_t counts_max(const struct session *s)
{
	uint64_t samples = (uint64_t)s->opts.frequency * (uint64_t)s->cpu_cnt * COUNTS_SECONDS;
	uint32_t ret = COUNTS_MIN;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (s->opts.kinds[i] && i != BPFPROF_CPU)
			return BPFPROF_MAX_COUNTS;
	while (ret < BPFPROF_MAX_COUNTS && ret < 2 * samples)
		ret *= 2;
	return ret;
}

void session__need(struct session *s, unsigned int needs)
{
	s->needs |= needs;
}

bool session__keep_states(struct session *s, struct bpf_map *storage, struct bpf_map *hash)
{
	struct bpfprof_config *cfg = session__config(s);

	if (!(s->needs & SESSION_STATES))
		cfg->hash_states = !features_task_storage();
	s->needs |= SESSION_STATES;
	bpf_map__set_autocreate(cfg->hash_states ? hash : storage, true);
	if (cfg->hash_states)
		bpf_map__set_max_entries(hash, HASH_STATES);
	return cfg->hash_states;
}

/* Where stacks are taken: see bpfprof_config. */
static void configure_slots(struct session *s)
{
	struct bpfprof_config *cfg = session__config(s);
	/* only where slots are not taken by an exchange: see stack.bpf.c */
	struct bpf_map *slots = bpf_object__find_map_by_name(s->skel->obj, "bp_slots");
	bool preempted = s->needs & SESSION_SLOTS;
	uint32_t cnt;

	cfg->trace_slot = s->cpu_cnt;
	cfg->fds_slot = cfg->trace_slot + (s->needs & SESSION_TRACE_SLOTS ? s->cpu_cnt : 0);
	cfg->first_slot = cfg->fds_slot + (s->needs & SESSION_FDS_SLOTS ? s->cpu_cnt : 0);
	cfg->slot_cnt = preempted ? MAX(s->cpu_cnt, SLOTS_MIN) : 0;
	if (slots) {
		bpf_map__set_autocreate(slots, preempted);
		bpf_map__set_max_entries(slots, MAX(cfg->slot_cnt, 1));
	}
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

/* Maps that nobody uses are not made: those that only some kinds use are off until a kind turns them
 * on, as all programs are. */
static void turn_off(struct session *s)
{
	struct bpf_map *const shared[] = {
		s->skel->maps.bp_chunks,    s->skel->maps.bp_procs,   s->skel->maps.bp_ring,
		s->skel->maps.bp_counts0,   s->skel->maps.bp_counts1, s->skel->maps.bp_stats,
		s->skel->maps.bp_scratch,   s->skel->maps.bp_raw,     s->skel->maps.bp_tgids,
		s->skel->maps.bp_tids,	    s->skel->maps.bp_chosen,  s->skel->maps.bp_cgroup,
		s->skel->maps.bp_ksyms,	    s->skel->maps.bp_ustacks, s->skel->maps.bp_thread,
		s->skel->maps.bp_cpus_gone,
	};
	struct bpf_program *prog;
	struct bpf_map *map;

	bpf_object__for_each_program(prog, s->skel->obj) bpf_program__set_autoload(prog, false);
	bpf_object__for_each_map(map, s->skel->obj)
		bpf_map__set_autocreate(map, bpf_map__is_internal(map));
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
		bpf_map__set_autocreate(shared[i], true);
}

/* What is sampled, of whom, for all kinds. */
static int configure_filter(struct session *s, char *err, size_t err_sz)
{
	const struct session_opts *o = &s->opts;
	struct bpfprof_config *cfg = session__config(s);
	bool any_chosen = false;
	int ret;

	cfg->filter_tgid = o->filter_tgid;
	cfg->filter_tid = o->filter_tid;
	cfg->filter_cgroup = o->cgroup != NULL;
	cfg->filter_comm = o->comm != NULL;
	cfg->user_only = o->user_only;
	cfg->kernel_only = o->kernel_only;
	cfg->thread_names = o->thread_names;
	cfg->cgroups = o->cgroups && features_cgroup_id();
	cfg->follow = o->follow;
	cfg->kthreads = o->kthreads;
	cfg->wake_at_fork = o->wake_at_fork;
	if (o->comm) {
		ret = glob_compile(o->comm, cfg);
		if (ret) {
			say(err, err_sz, "thread name pattern '%s' is too long", o->comm);
			return ret;
		}
	}
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		cfg->chosen[i] = o->chosen[i];
		any_chosen |= o->chosen[i];
	}
	if (!any_chosen)
		bpf_map__set_max_entries(s->skel->maps.bp_chosen, 1);
	if (!o->filter_tid)
		bpf_map__set_max_entries(s->skel->maps.bp_tids, 1);
	if (!o->filter_tgid)
		bpf_map__set_max_entries(s->skel->maps.bp_tgids, 1);
	return 0;
}

static int configure(struct session *s, char *err, size_t err_sz)
{
	const struct session_opts *o = &s->opts;
	struct bpfprof_config *cfg = session__config(s);
	int ret;

	if (getrandom(&cfg->seed, sizeof(cfg->seed), 0) != sizeof(cfg->seed))
		return -errno;
	ret = configure_filter(s, err, err_sz);
	if (ret)
		return ret;
	cfg->max_uframes = BPFPROF_MAX_UFRAMES;
	cfg->sample_seed = knobs.sample_seed;
	cfg->self_tgid = getpid();
	turn_off(s);
	bpf_program__set_autoload(s->skel->progs.proc_scan, true);
	bpf_program__set_autoload(s->skel->progs.ksyms_name, !o->user_only && features_ksyms());
	bpf_program__set_autoload(s->skel->progs.proc_follow, o->follow);
	bpf_program__set_autoload(s->skel->progs.cpu_changes, true);
	bpf_map__set_max_entries(s->skel->maps.bp_cpus_gone, s->cpu_cnt);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		cfg->record[i] = o->kinds[i];
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (o->kinds[i] && probes[i]->configure)
			probes[i]->configure(s);
	if (o->ops)
		probe_ops__configure(s);
	configure_slots(s);
	bpf_map__set_max_entries(s->skel->maps.bp_ring,
				 ring_size(s->cpu_cnt, s->needs & SESSION_DENSE));
	s->counts_max = counts_max(s);
	bpf_map__set_max_entries(s->skel->maps.bp_counts0, s->counts_max);
	bpf_map__set_max_entries(s->skel->maps.bp_counts1, s->counts_max);
	tighten(s);
	return 0;
}

int session__attach(struct bpf_program *prog, struct bpf_link **ret)
{
	bool traces = bpf_program__type(prog) == BPF_PROG_TYPE_TRACING;

	*ret = NULL;
	if (bpf_program__autoload(prog))
		*ret = traces ? bpf_program__attach_trace(prog) : bpf_program__attach(prog);
	return bpf_program__autoload(prog) && !*ret ? -errno : 0;
}

static int load(struct session *s, char *err, size_t err_sz)
{
	uint32_t zero = 0;
	char what[128];
	int ret;

	ret = skeleton__load(s->skel);
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
	ret = session__attach(s->skel->progs.proc_follow, &s->skel->links.proc_follow);
	if (ret) {
		say(err, err_sz, "cannot follow child processes: %s", strerror(-ret));
		return ret;
	}
	/* else they are looked at in every tick */
	if (session__attach(s->skel->progs.cpu_changes, &s->skel->links.cpu_changes))
		log_debug("the kernel does not tell of CPUs that come and go");
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (!s->opts.kinds[i] || !probes[i]->attach)
			continue;
		ret = probes[i]->attach(s, what, sizeof(what));
		if (ret) {
			say(err, err_sz, "%s: %s", what, strerror(-ret));
			return ret;
		}
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
	/* each CPU takes some, for the side band and for samples */
	util_raise_fd_limit();
	s->cgroup_fd = s->stats_fd = -1;
	libbpf_set_print(libbpf_print);
	s->cpu_cnt = cpus_possible();
	if (s->cpu_cnt <= 0) {
		ret = s->cpu_cnt ? s->cpu_cnt : -ENODEV;
		say(err, err_sz, "cannot read the list of CPUs from /sys: %s", strerror(-ret));
		s->cpu_cnt = 0;
		goto cleanup;
	}
	s->cpus_gone = calloc(s->cpu_cnt, sizeof(*s->cpus_gone));
	if (!s->cpus_gone)
		goto cleanup;
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
	s->grace = s->epochs ? grace__new() : NULL;
	if (s->grace)
		return s;
	ret = -errno;
	say(err, err_sz, "cannot wait for BPF programs to end: %s", strerror(-ret));

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
	grace__free(s->grace);
	epochs__free(s->epochs);
	for (size_t i = 0; i < s->copy_cnt; i++)
		close(s->copies[i].fd);
	free(s->copies);
	free(s->cpus_gone);
	bpfprof_bpf__destroy(s->skel);
	if (s->cgroup_fd >= 0)
		close(s->cgroup_fd);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
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

uint64_t session__tgid_start(struct session *s, uint32_t tgid)
{
	uint64_t start_ns;

	return bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.bp_tgids), &tgid, &start_ns) ?
		       0 :
		       start_ns;
}

/* The number may have been given to a child that is followed, which is in the filter from its fork on. */
void session__remove_tgid(struct session *s, uint32_t tgid, uint64_t start_ns)
{
	if (session__tgid_start(s, tgid) == start_ns)
		(void)bpf_map_delete_elem(bpf_map__fd(s->skel->maps.bp_tgids), &tgid);
}

int session__choose(struct session *s, uint32_t tgid, uint64_t start_ns, uint32_t kinds)
{
	struct bpfprof_chosen chosen = { .start_ns = start_ns, .kinds = kinds }, now;
	int fd = bpf_map__fd(s->skel->maps.bp_chosen);

	if (kinds)
		return bpf_map_update_elem(fd, &tgid, &chosen, BPF_ANY) ? -errno : 0;
	if (!bpf_map_lookup_elem(fd, &tgid, &now) && now.start_ns != start_ns)
		return 0;
	return bpf_map_delete_elem(fd, &tgid) && errno != ENOENT ? -errno : 0;
}

void session__limit(struct session *s, uint32_t cpu_every, uint32_t kinds_off)
{
	volatile struct bpfprof_control *control = &s->skel->bss->bp_control;

	control->cpu_every = cpu_every;
	control->kinds_off = kinds_off;
}

void session__prune_tgids(struct session *s)
{
	int fd = bpf_map__fd(s->skel->maps.bp_tgids);
	uint32_t tgid, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		uint64_t start_ns;

		tgid = next;
		more = !bpf_map_get_next_key(fd, &tgid, &next);
		start_ns = session__tgid_start(s, tgid);
		if (kill((pid_t)tgid, 0) && errno == ESRCH)
			session__remove_tgid(s, tgid, start_ns);
	}
}

int session__arm(struct session *s, char *err, size_t err_sz)
{
	int ret = 0;

	for (int i = 0; !ret && i < BPFPROF_NR_KINDS; i++)
		if (s->opts.kinds[i] && probes[i]->arm)
			ret = probes[i]->arm(s, &s->armed[i], err, err_sz);
	return ret;
}

void session__set_sampling(struct session *s, bool on)
{
	__atomic_store_n(&s->skel->bss->bp_control.sampling_on, on, __ATOMIC_SEQ_CST);
}

void session__disarm(struct session *s)
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (s->armed[i])
			probes[i]->disarm(s->armed[i]);
		s->armed[i] = NULL;
	}
}

bool session__cpus_changed(struct session *s)
{
	uint32_t changes = s->skel->bss->bp_state.cpu_changes;
	int fd;

	if (!s->skel->links.cpu_changes)
		return true;
	if (changes == s->cpu_changes)
		return false;
	s->cpu_changes = changes;
	fd = bpf_map__fd(s->skel->maps.bp_cpus_gone);
	for (int i = 0; i < s->cpu_cnt; i++)
		(void)bpf_map_lookup_elem(fd, &i, &s->cpus_gone[i]);
	return true;
}

const uint32_t *session__cpus_gone(const struct session *s)
{
	return s->cpus_gone;
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

uint64_t session__missed(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {};
	uint32_t sz = sizeof(info);
	int fd = bpf_program__fd(prog);

	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &sz) ? 0 : info.recursion_misses;
}

void session__count_not_followed(struct session *s)
{
	__sync_fetch_and_add(&s->skel->bss->bp_state.not_followed, 1);
}

uint32_t session__counts_max(const struct session *s)
{
	return s->counts_max;
}

uint64_t session__not_followed(const struct session *s)
{
	return s->skel->bss->bp_state.not_followed;
}

int session__program(struct session *s, const struct bpf_program *prog, uint64_t cookie)
{
	int fd = bpf_program__fd(prog);

	if (fd >= 0)
		return fd;
	for (size_t i = 0; i < s->copy_cnt; i++)
		if (s->copies[i].prog == prog && s->copies[i].cookie == cookie)
			return s->copies[i].fd;
	/* a file of anybody's says what cookies there are */
	if (s->copy_cnt == MAX_COPIES)
		return -E2BIG;
	if (util_reserve(&s->copies, &s->copy_cap, s->copy_cnt + 1, sizeof(*s->copies)))
		return -ENOMEM;
	fd = skeleton__load_copy(s->skel, prog, cookie);
	if (fd >= 0)
		s->copies[s->copy_cnt++] = (struct copy){ prog, cookie, fd };
	return fd;
}

struct uprobes *session__attach_points(struct session *s, enum uprobe_method m,
				       enum uprobe_side side, const struct bpf_program *prog,
				       int file_fd, pid_t pid, const struct uprobe_point *points,
				       size_t cnt)
{
	int *prog_fds = calloc(cnt, sizeof(*prog_fds));
	struct uprobes *ret = NULL;
	int err = prog_fds ? 0 : ENOMEM;

	for (size_t i = 0; i < cnt && !err; i++) {
		prog_fds[i] = session__program(s, prog, points[i].cookie);
		if (prog_fds[i] < 0)
			err = -prog_fds[i];
	}
	if (!err) {
		ret = uprobes__attach(m, side, prog_fds, file_fd, pid, points, cnt);
		err = errno;
	}
	free(prog_fds);
	errno = err;
	return ret;
}

struct epochs *session__epochs(struct session *s)
{
	return s->epochs;
}

struct grace *session__grace(struct session *s)
{
	return s->grace;
}

const struct session_opts *session__opts(const struct session *s)
{
	return &s->opts;
}

struct bpfprof_config *session__config(struct session *s)
{
	return (struct bpfprof_config *)&s->skel->rodata->bp_config;
}

struct bpfprof_bpf *session__skel(struct session *s)
{
	return s->skel;
}
