// SPDX-License-Identifier: BSD-2-Clause
/* The heap profile of a recording: where its probes are, when, and what comes of them. */
#include <linux/types.h>

#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "budget.h"
#include "code.h"
#include "collect.h"
#include "kernel/probe_heap.h"
#include "kernel/session.h"
#include "launch_heap.h"
#include "profile/profile.h"
#include "stacks.h"
#include "target/allocators.h"
#include "target/objects.h"
#include "target/procs.h"

#define IN_FLIGHT_US 1000  /* calls under way when recording stops still return to their probes */
#define UNMEASURED_NS 1000 /* of a hit, if it cannot be measured */
#define STACKS_MAX 100000  /* with their sizes, before these are rounded */
#define CLEAN_NS NSEC_PER_SEC /* between two looks after children that were forked */

/* The points of an object, as the kernel side takes them. */
struct object_points {
	bool known;
	struct uprobe_point *points; /* of all groups, one after the other */
	struct probe_heap_points by_group;
	size_t safe_cnt; /* of those that allocate, the first ones: no exception leaves them */
};

/* A file that is probed, in one process or in all. */
struct attachment {
	pid_t pid; /* 0: all */
	dev_t dev;
	ino_t ino;
	int fd;
	int lock_fd; /* of lock_throwing; -1: those functions are left out */
	uint32_t object;
	bool failed;
	struct probe_heap probes;
};

/* By number of a process. */
struct proc_seen {
	uint64_t maps; /* hash of the mappings that were looked at */
	uint32_t tgid;
};

struct heap {
	struct heap_opts opts;
	struct session *session;
	struct procs *procs;
	struct objects *objects;
	struct code *code;
	struct collect *collect;
	struct object_points *points; /* by object */
	size_t point_cap;
	struct attachment *attachments;
	size_t attachment_cnt, attachment_cap;
	struct proc_seen *seen;
	size_t seen_cap;
	uint32_t skip_proc; /* our own image, before the command has become another */
	bool preloaded;
	bool shared; /* a file is probed in several processes: see lock_throwing */
	struct budget budget;
	bool started, sliced;
	bool rounded; /* sizes, to 6 bits */
	uint64_t stopped_ns;
	double stop_weight;		      /* of what was recorded since the last commit */
	uint64_t first_hits[BPFPROF_NR_HITS]; /* of measuring */
	double hit_ns[BPFPROF_NR_HITS];
	uint64_t cpu_ns, first_cpu_ns, dead_cpu_ns;
	uint64_t forks, next_clean_ns;
	uint64_t swept; /* samples recorded when the live ones were last looked through */
	size_t point_cnt;
	uint64_t attach_ns; /* before the start */
};

bool heap_finds_usdt(struct objects *objects, const uint32_t *pids, size_t pid_cnt)
{
	struct procs *procs = procs__new("/proc");
	bool found = false;

	for (size_t i = 0; procs && i < pid_cnt && !found; i++) {
		uint32_t proc = procs__add(procs, pids[i], 0, 0, "", false, 0);
		const struct proc *p;

		if (proc == PROCS_NONE || procs__read_maps(procs, proc, 0))
			continue;
		p = procs__get(procs, proc);
		for (size_t j = 0; j < p->map_cnt && !found; j++) {
			int fd = procs__open(procs, objects, proc, &p->maps[j]);
			uint32_t object =
				fd < 0 ? OBJECTS_NONE :
					 objects__add(objects, fd,
						      procs__file(procs, p->maps[j].file)->path);

			found = object != OBJECTS_NONE && objects__has_usdt(objects, object);
		}
	}
	procs__free(procs);
	return found;
}

/* Some links for each file in each process: as many as we may have. */
static void raise_fd_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

struct heap *heap__new(const struct heap_opts *opts, struct session *session, struct procs *procs,
		       struct objects *objects, struct code *code, struct collect *collect)
{
	struct heap *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->opts = *opts;
	h->session = session;
	h->procs = procs;
	h->objects = objects;
	h->code = code;
	h->collect = collect;
	h->skip_proc = PROCS_NONE;
	raise_fd_limit();
	return h;
}

void heap__measure(struct heap *h)
{
	struct bpfprof_stats stats;

	if (probe_heap__measure(h->session, h->opts.method, h->hit_ns)) {
		log_debug("cannot measure what a probe costs");
		for (int i = 0; i < BPFPROF_NR_HITS; i++)
			h->hit_ns[i] = UNMEASURED_NS;
	}
	log_debug(
		"a probe's hit costs %.0f ns at an allocation, %.0f at its return, %.0f at a free",
		h->hit_ns[BPFPROF_HIT_ENTRY], h->hit_ns[BPFPROF_HIT_RETURN],
		h->hit_ns[BPFPROF_HIT_FREE]);
	if (!session__stats(h->session, BPFPROF_HEAP, &stats))
		memcpy(h->first_hits, stats.hits, sizeof(h->first_hits));
}

void heap__free(struct heap *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->attachment_cnt; i++) {
		probe_heap__detach(&h->attachments[i].probes, 1);
		close(h->attachments[i].fd);
		if (h->attachments[i].lock_fd >= 0)
			close(h->attachments[i].lock_fd);
	}
	for (size_t i = 0; i < h->point_cap; i++)
		free(h->points[i].points);
	free(h->points);
	free(h->attachments);
	free(h->seen);
	free(h);
}

/* ---- what is probed ---- */

/* Where every return is waited for, exceptions could not pass: see BPFPROF_COOKIE_THROWS. */
static bool usable(const struct heap *h, const struct allocator_point *p)
{
	return h->opts.method == UPROBES_SESSION || p->group != ALLOCATOR_ALLOC ||
	       !(p->cookie & BPFPROF_COOKIE_THROWS);
}

/* Those of a group that may throw, or those that may not. Returns how many. */
static size_t add_points(const struct heap *h, const struct allocator_points *found, int group,
			 bool throws, struct uprobe_point *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < found->cnt; i++) {
		const struct allocator_point *p = &found->points[i];
		bool may = p->group == ALLOCATOR_ALLOC && p->cookie & BPFPROF_COOKIE_THROWS;

		if ((int)p->group == group && may == throws && usable(h, p))
			ret[n++] = (struct uprobe_point){ .offset = p->offset,
							  .ref_ctr = p->ref_ctr,
							  .cookie = p->cookie };
	}
	return n;
}

static int set_points(const struct heap *h, struct object_points *op,
		      const struct allocator_points *found)
{
	size_t at = 0;

	op->points = calloc(found->cnt + 1, sizeof(*op->points));
	if (!op->points)
		return -ENOMEM;
	for (int g = 0; g < PROBE_HEAP_NR_GROUPS; g++) {
		op->by_group.points[g] = op->points + at;
		for (int throws = 0; throws < 2; throws++)
			at += add_points(h, found, g, throws, op->points + at);
		op->by_group.cnt[g] = op->points + at - op->by_group.points[g];
	}
	while (op->safe_cnt < op->by_group.cnt[PROBE_HEAP_ALLOC] &&
	       !(op->by_group.points[PROBE_HEAP_ALLOC][op->safe_cnt].cookie &
		 BPFPROF_COOKIE_THROWS))
		op->safe_cnt++;
	return 0;
}
_Static_assert((int)PROBE_HEAP_ALLOC == (int)ALLOCATOR_ALLOC &&
		       (int)PROBE_HEAP_FREE == (int)ALLOCATOR_FREE &&
		       (int)PROBE_HEAP_USDT_ALLOC == (int)ALLOCATOR_USDT_ALLOC &&
		       (int)PROBE_HEAP_USDT_FREE == (int)ALLOCATOR_USDT_FREE,
	       "the groups are the same");

/* The points of an object, found when it is first asked for. NULL: there is no memory. */
static const struct object_points *points_of(struct heap *h, uint32_t object)
{
	struct allocator_points found;
	struct object_points *op;
	size_t left_out = 0;

	if (util_reserve_zeroed(&h->points, &h->point_cap, object, sizeof(*h->points)))
		return NULL;
	op = &h->points[object];
	if (op->known)
		return op;
	op->known = true;
	if (objects__allocators(h->objects, object, &found))
		return op;
	for (size_t i = 0; i < found.cnt; i++) {
		const struct allocator_point *p = &found.points[i];

		log_debug("%s: %s+%u: %s%s%s", objects__info(h->objects, object)->path, p->name,
			  p->skew, p->insn, p->emulated ? "" : " (single-stepped)",
			  usable(h, p) ? "" : " (left out: it may throw)");
		left_out += !usable(h, p);
	}
	if (left_out)
		log_info(
			"%s: %zu C++ operators are not probed, since an exception could not pass a "
			"return probe of this kernel (Linux 6.13 can leave it out)",
			objects__info(h->objects, object)->path, left_out);
	if (set_points(h, op, &found))
		op = NULL;
	allocator_points__done(&found);
	return op;
}

static bool has_usdt(const struct heap *h, const struct object_points *op)
{
	return h->opts.usdt && op->by_group.cnt[PROBE_HEAP_USDT_ALLOC] > 0;
}

static bool has_any(const struct heap *h, const struct object_points *op)
{
	return has_usdt(h, op) || op->by_group.cnt[PROBE_HEAP_ALLOC];
}

/* The points to be used: a program that samples by itself is not to be probed as well. */
static void choose(const struct heap *h, const struct object_points *op, bool throwing,
		   struct probe_heap_points *ret)
{
	*ret = op->by_group;
	if (!throwing)
		ret->cnt[PROBE_HEAP_ALLOC] = op->safe_cnt;
	if (has_usdt(h, op))
		ret->cnt[PROBE_HEAP_ALLOC] = ret->cnt[PROBE_HEAP_FREE] = 0;
	else
		ret->cnt[PROBE_HEAP_USDT_ALLOC] = ret->cnt[PROBE_HEAP_USDT_FREE] = 0;
	/* in slices, what is still in use is not known */
	if (h->sliced)
		ret->cnt[PROBE_HEAP_FREE] = ret->cnt[PROBE_HEAP_USDT_FREE] = 0;
}

/*
 * Up to Linux 6.18 a session link that is not for this process waits for returns in it all the same
 * (uprobe_multi_link_handler), if another link has set a breakpoint there. Where a function may
 * throw, that must not be: so only one process of the machine is probed there at a time. Returns a
 * descriptor that keeps the others out, or -1. An abstract socket, unix(7), since it needs no place
 * and goes with us.
 */
static int lock_throwing(const struct stat *st)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "bpfprof-heap-%" PRIx64 "-%" PRIx64,
		 (uint64_t)st->st_dev, (uint64_t)st->st_ino);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int attach(struct heap *h, struct attachment *a)
{
	struct probe_heap_points points;
	int err;

	choose(h, &h->points[a->object], a->lock_fd >= 0, &points);
	err = probe_heap__attach(h->session, h->opts.method, a->fd, a->pid, &points, &a->probes);
	if (err && !a->failed && err != -ESRCH) {
		a->failed = true;
		log_error("cannot probe the allocator in '%s': %s",
			  objects__info(h->objects, a->object)->path, strerror(-err));
	}
	return err;
}

/* Adds a file to those that are probed, unless it is there already. Takes fd. 0 or -errno. */
static int add(struct heap *h, pid_t pid, int fd, uint32_t object)
{
	struct probe_heap_points points;
	const struct object_points *op;
	struct attachment *a;
	struct stat st;
	int err = fstat(fd, &st) ? -errno : 0;

	for (size_t i = 0; !err && i < h->attachment_cnt; i++) {
		a = &h->attachments[i];
		if ((a->pid == pid || !a->pid) && a->dev == st.st_dev && a->ino == st.st_ino) {
			close(fd);
			return 0;
		}
		h->shared |= a->dev == st.st_dev && a->ino == st.st_ino;
	}
	if (!err)
		err = util_reserve(&h->attachments, &h->attachment_cap, h->attachment_cnt + 1,
				   sizeof(*h->attachments));
	if (err) {
		close(fd);
		return err;
	}
	a = &h->attachments[h->attachment_cnt++];
	*a = (struct attachment){
		.pid = pid, .dev = st.st_dev, .ino = st.st_ino, .fd = fd, .object = object
	};
	op = &h->points[object];
	a->lock_fd = op->safe_cnt < op->by_group.cnt[PROBE_HEAP_ALLOC] ? lock_throwing(&st) : -1;
	if (a->lock_fd < 0 && op->safe_cnt < op->by_group.cnt[PROBE_HEAP_ALLOC])
		log_info(
			"%s of process %d: C++ operators that may throw are not probed, since they "
			"are in another process already",
			objects__info(h->objects, object)->path, (int)pid);
	choose(h, op, a->lock_fd >= 0, &points);
	for (int g = 0; g < PROBE_HEAP_NR_GROUPS; g++)
		h->point_cnt += points.cnt[g];
	if (!h->started || h->budget.state != BUDGET_OFF)
		(void)attach(h, a);
	return 0;
}

/* Has the main thread ended, and others go on? The kernel takes a process for its main thread's
 * memory, and there is none: it would set breakpoints and call no program. */
static bool leader_gone(pid_t pid)
{
	char path[64], *buf, *s;
	bool gone = false;
	size_t sz;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (util_read_file(path, 4096, &buf, &sz))
		return false;
	s = strrchr(buf, ')');
	gone = s && s[1] && s[2] == 'Z';
	free(buf);
	return gone;
}

/* Is the open file the one behind the object? In another mount namespace a path leads elsewhere,
 * and a build id can be forged. */
static bool is_object(struct heap *h, int fd, uint32_t object)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy >= 0 &&
	       objects__add(h->objects, copy, objects__info(h->objects, object)->path) == object;
}

/* Looks through what a process has mapped. */
static int look_at(struct heap *h, uint32_t proc)
{
	const struct proc *p = procs__get(h->procs, proc);
	bool usdt = false;
	int err = 0, fd;

	if (!h->opts.all && leader_gone(p->tgid)) {
		log_info(
			"no heap profile of process %u: its main thread has ended, by which the "
			"kernel finds its memory",
			p->tgid);
		return 0;
	}

	for (size_t i = 0; i < p->map_cnt && !usdt; i++) {
		uint32_t object = code__object(h->code, proc, &p->maps[i]);
		const struct object_points *op =
			object == OBJECTS_NONE ? NULL : points_of(h, object);

		usdt = op && has_usdt(h, op);
	}
	for (size_t i = 0; !err && i < p->map_cnt; i++) {
		uint32_t object = code__object(h->code, proc, &p->maps[i]);
		const struct object_points *op =
			object == OBJECTS_NONE ? NULL : points_of(h, object);

		if (!op || !has_any(h, op))
			continue;
		/*
		 * What the program samples by itself goes through its libraries; only an allocator
		 * of its own, in the program file, which is mapped lowest, may be another.
		 */
		if (usdt && !has_usdt(h, op) && p->maps[i].file != p->maps[0].file)
			continue;
		fd = procs__open(h->procs, h->objects, proc, &p->maps[i]);
		/* what was found in one file of that name must not be done to another */
		if (fd >= 0 && !is_object(h, fd, object)) {
			close(fd);
			continue;
		}
		if (fd >= 0)
			err = add(h, h->opts.all ? 0 : (pid_t)p->tgid, fd, object);
	}
	return err;
}

/* CPU time of everything, in ns; in ticks of 10 ms. */
static uint64_t system_cpu_ns(void)
{
	unsigned long long user = 0, nice = 0, sys = 0;
	char *buf;
	size_t sz;

	if (util_read_file("/proc/stat", 65536, &buf, &sz))
		return 0;
	(void)sscanf(buf, "cpu %llu %llu %llu", &user, &nice, &sys);
	free(buf);
	return (user + nice + sys) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/* CPU time of the children that a process has waited for, and of theirs: many live too shortly to
 * be asked themselves. In ticks of 10 ms. */
static uint64_t reaped_ns(pid_t pid)
{
	unsigned long long user = 0, sys = 0;
	char path[64], *buf, *s;
	size_t sz;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (util_read_file(path, 4096, &buf, &sz))
		return 0;
	s = strrchr(buf, ')');
	/* cutime and cstime, proc(5) */
	if (s)
		(void)sscanf(s + 1,
			     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu",
			     &user, &sys);
	free(buf);
	return (user + sys) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/* CPU time of the targets that live, and what those that ended had when they were last seen. */
static uint64_t cpu_ns(struct heap *h)
{
	uint64_t sum = 0;

	if (h->opts.all)
		return h->cpu_ns = system_cpu_ns();
	for (size_t i = 0; i < procs__cnt(h->procs); i++) {
		const struct proc *p = procs__get(h->procs, i);
		struct timespec ts;
		clockid_t clock;

		if (!p->tgid || p->kthread || p->to_ns != UINT64_MAX || i == h->skip_proc)
			continue;
		if (!clock_getcpuclockid(p->tgid, &clock) && !clock_gettime(clock, &ts))
			sum += ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
		if (h->opts.follow)
			sum += reaped_ns(p->tgid);
	}
	/* monotonic, though processes end */
	if (sum + h->dead_cpu_ns < h->cpu_ns)
		h->dead_cpu_ns = h->cpu_ns - sum;
	h->cpu_ns = sum + h->dead_cpu_ns;
	return h->cpu_ns;
}

/* Forgets what processes that have ended had attached. Returns how many files. */
static size_t drop_dead(struct heap *h)
{
	struct probe_heap dead[64];
	size_t kept = 0, cnt = 0;

	for (size_t i = 0; i < h->attachment_cnt; i++) {
		struct attachment *a = &h->attachments[i];

		if (!a->pid || cnt == ARRAY_SIZE(dead) ||
		    procs__find_live(h->procs, a->pid) != PROCS_NONE) {
			h->attachments[kept++] = *a;
			continue;
		}
		close(a->fd);
		if (a->lock_fd >= 0)
			close(a->lock_fd);
		dead[cnt++] = a->probes;
	}
	h->attachment_cnt = kept;
	if (cnt)
		probe_heap__detach(dead, cnt);
	return cnt;
}

/* Does the program that allocated it still run? */
static bool runs(const struct heap *h, const struct bpfprof_live_key *key)
{
	uint32_t proc = procs__find_live(h->procs, key->tgid);

	return proc != PROCS_NONE && (!procs__get(h->procs, proc)->exec_known ||
				      procs__get(h->procs, proc)->exec_id == key->exec_id);
}

/*
 * Makes room for what is in use, before what programs held that have ended fills it. Of processes
 * that were named, or started by such, it counts as in use what they held when they ended; of
 * the whole machine's, only of those that still run.
 */
static int sweep(struct heap *h)
{
	uint64_t now = util_monotonic_ns();
	struct probe_heap_live *live;
	struct bpfprof_stats stats;
	size_t cnt;
	int err;

	if (session__stats(h->session, BPFPROF_HEAP, &stats) ||
	    stats.recorded - h->swept < probe_heap__live_max(h->session) / 4)
		return 0;
	h->swept = stats.recorded;
	/* the stacks have to be known here */
	err = collect__drain(h->collect);
	if (!err)
		err = probe_heap__live(h->session, &live, &cnt);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		if (runs(h, &live[i].key))
			continue;
		if (!h->opts.all && live[i].live.time_ns + h->opts.min_age_ns <= now)
			(void)stacks__hold(collect__stacks(h->collect), &live[i].live.stack);
		probe_heap__forget(h->session, &live[i].key);
	}
	free(live);
	return 0;
}

/* Forked children that are not followed inherit breakpoints, which cost them time for nothing. */
static void clean_children(struct heap *h)
{
	uint64_t forks = collect__forks(h->collect), now = util_monotonic_ns();

	if (forks == h->forks || now < h->next_clean_ns)
		return;
	h->forks = forks;
	h->next_clean_ns = now + CLEAN_NS;
	for (size_t i = 0; i < h->attachment_cnt; i++)
		if (h->attachments[i].pid)
			(void)probe_heap__clean_children(&h->attachments[i].probes);
}

int heap__update(struct heap *h)
{
	uint64_t before = util_monotonic_ns();
	int err = 0;

	/* its number may be given to another */
	if (h->skip_proc != PROCS_NONE && procs__get(h->procs, h->skip_proc)->to_ns != UINT64_MAX)
		h->skip_proc = PROCS_NONE;
	for (size_t i = 0; !err && i < procs__cnt(h->procs); i++) {
		const struct proc *p = procs__get(h->procs, i);
		uint64_t maps;

		if (!p->tgid || p->kthread || p->to_ns != UINT64_MAX || i == h->skip_proc)
			continue;
		err = util_reserve_zeroed(&h->seen, &h->seen_cap, i, sizeof(*h->seen));
		if (err)
			break;
		maps = util_hash(p->maps, p->map_cnt * sizeof(*p->maps), p->tgid);
		if (h->seen[i].tgid == p->tgid && h->seen[i].maps == maps)
			continue;
		h->seen[i] = (struct proc_seen){ .maps = maps, .tgid = p->tgid };
		err = look_at(h, i);
	}
	if (!h->started)
		h->attach_ns += util_monotonic_ns() - before;
	/* while those that will have ended by the next time can still be asked */
	(void)cpu_ns(h);
	if (!h->rounded && stacks__cnt(collect__stacks(h->collect)) > STACKS_MAX) {
		h->rounded = true;
		probe_heap__round_sizes(h->session);
	}
	clean_children(h);
	if (!err && (drop_dead(h) || h->opts.all))
		err = sweep(h);
	return err;
}

int heap__prepare_command(struct heap *h, pid_t pid, int file_fd, const char *preload)
{
	const struct object_points *op;
	uint32_t object;
	int fd, copy;

	h->skip_proc = procs__find_live(h->procs, pid);
	fd = preload ? open(preload, O_RDONLY | O_CLOEXEC) : fcntl(file_fd, F_DUPFD_CLOEXEC, 0);
	copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0) {
		if (fd >= 0)
			close(fd);
		return -EMFILE;
	}
	object = objects__add(h->objects, copy, preload ? preload : "the command");
	op = object == OBJECTS_NONE ? NULL : points_of(h, object);
	if (!op || !has_any(h, op)) {
		close(fd);
		return 0;
	}
	h->preloaded = preload != NULL;
	return add(h, preload ? 0 : pid, fd, object);
}

void heap__complain(const struct heap *h)
{
	for (size_t i = 0; !h->opts.all && i < procs__cnt(h->procs); i++) {
		const struct proc *p = procs__get(h->procs, i);
		char in[512] = "";
		bool found = false;

		if (!p->tgid || p->kthread || i == h->skip_proc || p->to_ns != UINT64_MAX)
			continue;
		for (size_t j = 0; j < h->attachment_cnt && !found; j++)
			found = !h->attachments[j].pid || h->attachments[j].pid == (pid_t)p->tgid;
		if (found || leader_gone(p->tgid))
			continue;
		for (size_t j = 0; j < p->map_cnt; j++) {
			const struct proc_file *f = procs__file(h->procs, p->maps[j].file);
			const char *base = strrchr(f->path, '/');
			size_t len = strlen(in);

			if (f->kind == PROC_FILE_REGULAR &&
			    (!j || p->maps[j].file != p->maps[j - 1].file))
				snprintf(in + len, sizeof(in) - len, "%s%s", len ? ", " : "",
					 base ? base + 1 : f->path);
		}
		log_info("no memory allocator found in process %u: looked for %s in %s", p->tgid,
			 allocators_names(), *in ? in : "nothing, since it maps no file");
	}
}

/* ---- the budget ---- */

/* What hits and recording have cost the programs so far. */
static uint64_t cost_ns(const struct heap *h, uint64_t *ret_hits)
{
	struct bpfprof_stats stats;
	double ns;

	*ret_hits = 0;
	if (session__stats(h->session, BPFPROF_HEAP, &stats))
		return 0;
	ns = stats.record_ns;
	for (int i = 0; i < BPFPROF_NR_HITS; i++) {
		ns += (stats.hits[i] - h->first_hits[i]) * h->hit_ns[i];
		*ret_hits += stats.hits[i] - h->first_hits[i];
	}
	/* then every return is waited for, though not by the process's own link */
	if (h->shared && h->opts.method == UPROBES_SESSION)
		ns += (stats.hits[BPFPROF_HIT_ENTRY] - h->first_hits[BPFPROF_HIT_ENTRY]) *
		      h->hit_ns[BPFPROF_HIT_RETURN];
	return ns;
}

static struct budget_figures figures(struct heap *h)
{
	uint64_t hits;

	return (struct budget_figures){ .now_ns = util_monotonic_ns(),
					.cost_ns = cost_ns(h, &hits),
					.cpu_ns = cpu_ns(h) };
}

void heap__start(struct heap *h)
{
	struct budget_figures f = figures(h);
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) || !seed)
		seed = 1;
	h->first_cpu_ns = f.cpu_ns;
	/* what cannot be measured, such as page faults when breakpoints are set, has to fit in too
	 */
	budget__start(&h->budget, h->opts.budget < 1 ? 0.9 * h->opts.budget : 1, seed, &f);
	h->started = true;
	probe_heap__enable(h->session, true);
}

static int detach_all(struct heap *h)
{
	struct probe_heap *probes = calloc(h->attachment_cnt + 1, sizeof(*probes));

	probe_heap__enable(h->session, false);
	usleep(IN_FLIGHT_US);
	if (!probes)
		return -ENOMEM;
	for (size_t i = 0; i < h->attachment_cnt; i++) {
		probes[i] = h->attachments[i].probes;
		memset(&h->attachments[i].probes, 0, sizeof(h->attachments[i].probes));
	}
	probe_heap__detach(probes, h->attachment_cnt);
	free(probes);
	return 0;
}

static void begin_slice(struct heap *h)
{
	struct budget_figures f;
	double weight;

	for (size_t i = 0; i < h->attachment_cnt; i++)
		(void)attach(h, &h->attachments[i]);
	f = figures(h);
	weight = budget__attached(&h->budget, &f);
	if (weight > 0)
		stacks__commit(collect__stacks(h->collect), BPFPROF_HEAP, weight);
	probe_heap__enable(h->session, true);
}

int heap__tick(struct heap *h)
{
	enum budget_state was = h->budget.state, now;
	struct budget_figures f;
	int err;

	if (util_monotonic_ns() < h->budget.next_ns)
		return 0;
	f = figures(h);
	now = budget__check(&h->budget, &f);
	if (now == was)
		return 0;
	if (now == BUDGET_ON) {
		begin_slice(h);
		return 0;
	}
	if (!h->sliced)
		log_debug("the heap's probes cost more than they may: they are attached in slices");
	h->sliced = true;
	probe_heap__stop_tracking(h->session);
	err = detach_all(h);
	/* what this slice has counted is apart from what the next one will */
	return err ? err : collect__drain(h->collect);
}

uint64_t heap__next_ns(const struct heap *h)
{
	return h->started ? h->budget.next_ns : UINT64_MAX;
}

void heap__stop(struct heap *h)
{
	struct budget_figures f = figures(h);

	h->stopped_ns = f.now_ns;
	h->stop_weight = budget__stop(&h->budget, &f);
	(void)detach_all(h);
}

int heap__finish(struct heap *h, struct profile *p)
{
	struct stacks *stacks = collect__stacks(h->collect);
	struct probe_heap_live *live;
	size_t cnt;
	int err;

	stacks__commit(stacks, BPFPROF_HEAP, h->stop_weight);
	if (h->sliced) {
		p->value_cnt = 2;
		p->folded_value = 1;
		return stacks__finish(stacks, BPFPROF_HEAP, false);
	}
	err = probe_heap__live(h->session, &live, &cnt);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++)
		if (live[i].live.time_ns + h->opts.min_age_ns <= h->stopped_ns &&
		    (!h->opts.all || runs(h, &live[i].key)))
			(void)stacks__hold(stacks, &live[i].live.stack);
	free(live);
	return stacks__finish(stacks, BPFPROF_HEAP, h->opts.min_age_ns > 0);
}

/* Is every function that the location names one that only serves to allocate? */
static bool serves_to_allocate(const struct profile *p, const struct profile_location *l)
{
	const char *file;
	size_t len;

	if (l->mapping != PROFILE_NONE) {
		file = strtab__get(p->strings, p->mappings[l->mapping].filename);
		len = strlen(file);
		if (len >= strlen(LAUNCH_HEAP_LIBRARY) &&
		    !strcmp(file + len - strlen(LAUNCH_HEAP_LIBRARY), LAUNCH_HEAP_LIBRARY))
			return true;
	}
	for (uint32_t i = 0; i < l->line_cnt; i++) {
		const struct profile_function *f = &p->functions[p->lines[l->line + i].function];

		if (!allocators_is_name(strtab__get(p->strings, f->system_name)))
			return false;
	}
	return l->line_cnt > 0;
}

void heap__hide(struct profile *p)
{
	profile__hide_leaves(p, serves_to_allocate);
}

void heap__report(const struct heap *h, struct heap_report *ret)
{
	struct bpfprof_stats stats = { 0 };

	(void)session__stats(h->session, BPFPROF_HEAP, &stats);
	*ret = (struct heap_report){
		.method = h->preloaded ? "usdt" : uprobes_method_name(h->opts.method),
		.cpu_ns = h->cpu_ns - h->first_cpu_ns,
		.attach_ns = h->attach_ns,
		.attached_ns = h->budget.on_ns,
		.slowdown = h->budget.slice_own > 0 ?
				    1 + h->budget.slice_cost / h->budget.slice_own :
				    1,
		.sliced = h->sliced,
		.rounded = h->rounded,
		.untracked = stats.untracked,
		.points = h->point_cnt,
	};
	for (size_t i = 0; i < h->attachment_cnt && !h->preloaded; i++)
		ret->listens |= has_usdt(h, &h->points[h->attachments[i].object]);
	ret->cost_ns = cost_ns(h, &ret->hits);
}
