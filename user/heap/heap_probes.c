// SPDX-License-Identifier: BSD-2-Clause
/* Which functions of which files are probed, in which processes. */
#include <linux/types.h>

#include "heap/heap_probes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "kernel/probe_heap.h"
#include "target/allocators.h"
#include "target/objects.h"

/* Points, as the kernel side takes them. */
struct point_set {
	struct uprobe_point *points; /* of all groups, one after the other */
	struct probe_heap_points by_group;
	size_t safe_cnt[PROBE_HEAP_NR_GROUPS]; /* the first ones: no exception leaves them */
};

/* Those of an object. */
struct object_points {
	uint64_t serial; /* of the object; 0: not known */
	struct point_set by_mode[HEAP_PROBES_NR_MODES];
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

struct heap_probes {
	enum uprobe_method method;
	bool usdt;
	struct session *session;
	struct objects *objects;
	struct object_points *points; /* by object */
	size_t point_cap;
	struct attachment *attachments;
	size_t attachment_cnt, attachment_cap;
	size_t cnt;    /* of points in all attachments there have been */
	bool attached; /* probes are set, or will be when files are added */
	enum heap_probes_mode mode;
};

/* Some links for each file in each process: as many as we may have. */
static void raise_fd_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

struct heap_probes *heap_probes__new(enum uprobe_method method, bool usdt, struct session *session,
				     struct objects *objects)
{
	struct heap_probes *hp = calloc(1, sizeof(*hp));

	if (!hp)
		return NULL;
	hp->method = method;
	hp->usdt = usdt;
	hp->session = session;
	hp->objects = objects;
	hp->attached = true;
	raise_fd_limit();
	return hp;
}

static void let_go(struct heap_probes *hp, struct attachment *a)
{
	objects__unref(hp->objects, a->object);
	close(a->fd);
	if (a->lock_fd >= 0)
		close(a->lock_fd);
}

static void forget_points(struct object_points *op)
{
	for (int m = 0; m < HEAP_PROBES_NR_MODES; m++)
		free(op->by_mode[m].points);
	memset(op, 0, sizeof(*op));
}

void heap_probes__free(struct heap_probes *hp)
{
	if (!hp)
		return;
	for (size_t i = 0; i < hp->attachment_cnt; i++) {
		probe_heap__detach(&hp->attachments[i].probes, 1);
		let_go(hp, &hp->attachments[i]);
	}
	for (size_t i = 0; i < hp->point_cap; i++)
		forget_points(&hp->points[i]);
	free(hp->points);
	free(hp->attachments);
	free(hp);
}

/* ---- what is there ---- */

static bool may_throw(const struct allocator_point *p)
{
	return p->group == ALLOCATOR_ALLOC && p->cookie & BPFPROF_COOKIE_THROWS;
}

/* Where every return is waited for, exceptions could not pass: see BPFPROF_COOKIE_THROWS. */
static bool usable(const struct heap_probes *hp, const struct allocator_point *p)
{
	return hp->method == UPROBES_SESSION || !may_throw(p);
}

static enum probe_heap_group group_of(const struct allocator_point *p, enum heap_probes_mode mode)
{
	switch (p->group) {
	case ALLOCATOR_ALLOC:
		return mode != HEAP_PROBES_ALWAYS && probe_heap__can_begin(p->cookie) ?
			       PROBE_HEAP_BEGIN :
			       PROBE_HEAP_ALLOC;
	case ALLOCATOR_FREE:
		return mode == HEAP_PROBES_SLICE ? PROBE_HEAP_NR_GROUPS : PROBE_HEAP_FREE;
	case ALLOCATOR_USDT_ALLOC:
		return PROBE_HEAP_USDT_ALLOC;
	default:
		return mode == HEAP_PROBES_ALWAYS ? PROBE_HEAP_USDT_FREE : PROBE_HEAP_NR_GROUPS;
	}
}

/* Those of a group that may throw, or those that may not. Returns how many. */
static size_t add_points(const struct heap_probes *hp, const struct allocator_points *found,
			 enum probe_heap_group group, enum heap_probes_mode mode, bool throws,
			 struct uprobe_point *ret)
{
	uint64_t how = group == PROBE_HEAP_BEGIN      ? BPFPROF_COOKIE_BEGIN :
		       group == PROBE_HEAP_USDT_ALLOC ? BPFPROF_COOKIE_USDT :
							0;
	size_t n = 0;

	for (size_t i = 0; i < found->cnt; i++) {
		const struct allocator_point *p = &found->points[i];

		if (group_of(p, mode) == group && may_throw(p) == throws && usable(hp, p))
			ret[n++] = (struct uprobe_point){ .offset = p->offset,
							  .ref_ctr = p->ref_ctr,
							  .cookie = p->cookie | how };
	}
	return n;
}

static int set_points(const struct heap_probes *hp, const struct allocator_points *found,
		      enum heap_probes_mode mode, struct point_set *set)
{
	size_t at = 0;

	set->points = calloc(found->cnt + 1, sizeof(*set->points));
	if (!set->points)
		return -ENOMEM;
	for (int g = 0; g < PROBE_HEAP_NR_GROUPS; g++) {
		struct uprobe_point *first = set->points + at;

		set->safe_cnt[g] = add_points(hp, found, g, mode, false, first);
		set->by_group.points[g] = first;
		set->by_group.cnt[g] = set->safe_cnt[g] + add_points(hp, found, g, mode, true,
								     first + set->safe_cnt[g]);
		at += set->by_group.cnt[g];
	}
	return 0;
}

/* The points of an object, found when it is first asked for. NULL: there is no memory. */
static const struct object_points *points_of(struct heap_probes *hp, uint32_t object)
{
	struct allocator_points found;
	uint64_t serial = objects__info(hp->objects, object)->serial;
	struct object_points *op;
	size_t left_out = 0;

	if (util_reserve_zeroed(&hp->points, &hp->point_cap, object, sizeof(*hp->points)))
		return NULL;
	op = &hp->points[object];
	if (op->serial == serial)
		return op;
	/* of one that had this number before */
	forget_points(op);
	op->serial = serial;
	if (objects__allocators(hp->objects, object, &found))
		return op;
	for (size_t i = 0; i < found.cnt; i++) {
		const struct allocator_point *p = &found.points[i];

		log_debug("%s: %s+%u: %s%s%s", objects__info(hp->objects, object)->path, p->name,
			  p->skew, p->insn, p->emulated ? "" : " (single-stepped)",
			  usable(hp, p) ? "" : " (left out: it may throw)");
		left_out += !usable(hp, p);
	}
	if (left_out)
		log_info(
			"%s: %zu C++ operators are not probed, since an exception could not pass a "
			"return probe of this kernel (Linux 6.13 can leave it out)",
			objects__info(hp->objects, object)->path, left_out);
	for (int m = 0; op && m < HEAP_PROBES_NR_MODES; m++)
		if (set_points(hp, &found, m, &op->by_mode[m]))
			op = NULL;
	allocator_points__done(&found);
	return op;
}

static bool has_usdt(const struct heap_probes *hp, const struct object_points *op)
{
	return hp->usdt && op->by_mode[HEAP_PROBES_ALWAYS].by_group.cnt[PROBE_HEAP_USDT_ALLOC] > 0;
}

static bool has_throwing(const struct object_points *op)
{
	const struct point_set *set = &op->by_mode[HEAP_PROBES_ALWAYS];

	return set->safe_cnt[PROBE_HEAP_ALLOC] < set->by_group.cnt[PROBE_HEAP_ALLOC];
}

enum heap_probes_has heap_probes__look(struct heap_probes *hp, uint32_t object)
{
	const struct object_points *op = points_of(hp, object);

	if (!op)
		return HEAP_PROBES_NOTHING;
	if (has_usdt(hp, op))
		return HEAP_PROBES_USDT;
	return op->by_mode[HEAP_PROBES_ALWAYS].by_group.cnt[PROBE_HEAP_ALLOC] ?
		       HEAP_PROBES_ALLOCATOR :
		       HEAP_PROBES_NOTHING;
}

/* ---- where it is probed ---- */

/* The points to be used: a program that samples by itself is not to be probed as well. */
static void choose(const struct heap_probes *hp, const struct object_points *op, bool throwing,
		   struct probe_heap_points *ret)
{
	const struct point_set *set = &op->by_mode[hp->mode];
	bool usdt = has_usdt(hp, op);

	*ret = set->by_group;
	for (int g = 0; g < PROBE_HEAP_NR_GROUPS; g++) {
		if ((g >= PROBE_HEAP_USDT_ALLOC) != usdt)
			ret->cnt[g] = 0;
		else if (!throwing)
			ret->cnt[g] = set->safe_cnt[g];
	}
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

static int attach(struct heap_probes *hp, struct attachment *a)
{
	struct probe_heap_points points;
	int err;

	choose(hp, &hp->points[a->object], a->lock_fd >= 0, &points);
	err = probe_heap__attach(hp->session, hp->method, a->fd, a->pid, &points, &a->probes);
	if (err && !a->failed && err != -ESRCH) {
		a->failed = true;
		log_error("cannot probe the allocator in '%s': %s",
			  objects__info(hp->objects, a->object)->path, strerror(-err));
	}
	if (!err && hp->mode == HEAP_PROBES_ALWAYS)
		log_debug("process %d: '%s' is probed", (int)a->pid,
			  objects__info(hp->objects, a->object)->path);
	return err;
}

static bool is_of(const struct attachment *a, dev_t dev, ino_t ino)
{
	return a->dev == dev && a->ino == ino;
}

int heap_probes__add(struct heap_probes *hp, pid_t pid, int fd, uint32_t object)
{
	struct probe_heap_points points;
	const struct object_points *op;
	struct attachment *a;
	struct stat st;
	bool throws;
	int err = fstat(fd, &st) ? -errno : 0;

	for (size_t i = 0; !err && i < hp->attachment_cnt; i++) {
		a = &hp->attachments[i];
		if ((a->pid == pid || !a->pid) && is_of(a, st.st_dev, st.st_ino)) {
			close(fd);
			return 0;
		}
	}
	if (!err)
		err = util_reserve(&hp->attachments, &hp->attachment_cap, hp->attachment_cnt + 1,
				   sizeof(*hp->attachments));
	if (err) {
		close(fd);
		return err;
	}
	a = &hp->attachments[hp->attachment_cnt++];
	*a = (struct attachment){
		.pid = pid, .dev = st.st_dev, .ino = st.st_ino, .fd = fd, .object = object
	};
	objects__ref(hp->objects, object);
	op = &hp->points[object];
	throws = has_throwing(op);
	a->lock_fd = throws ? lock_throwing(&st) : -1;
	if (throws && a->lock_fd < 0)
		log_info(
			"%s of process %d: C++ operators that may throw are not probed, since they "
			"are in another process already",
			objects__info(hp->objects, object)->path, (int)pid);
	choose(hp, op, a->lock_fd >= 0, &points);
	for (int g = 0; g < PROBE_HEAP_NR_GROUPS; g++)
		hp->cnt += points.cnt[g];
	if (hp->attached)
		(void)attach(hp, a);
	return 0;
}

size_t heap_probes__drop(struct heap_probes *hp, bool (*probed)(void *ctx, pid_t pid), void *ctx)
{
	struct probe_heap dropped[64];
	size_t kept = 0, cnt = 0;

	for (size_t i = 0; i < hp->attachment_cnt; i++) {
		struct attachment *a = &hp->attachments[i];

		if (!a->pid || cnt == ARRAY_SIZE(dropped) || probed(ctx, a->pid)) {
			hp->attachments[kept++] = *a;
			continue;
		}
		let_go(hp, a);
		dropped[cnt++] = a->probes;
	}
	hp->attachment_cnt = kept;
	if (cnt)
		probe_heap__detach(dropped, cnt);
	return cnt;
}

void heap_probes__attach(struct heap_probes *hp, enum heap_probes_mode mode)
{
	hp->attached = true;
	hp->mode = mode;
	for (size_t i = 0; i < hp->attachment_cnt; i++)
		(void)attach(hp, &hp->attachments[i]);
}

int heap_probes__detach(struct heap_probes *hp)
{
	struct probe_heap *probes = calloc(hp->attachment_cnt + 1, sizeof(*probes));

	if (!probes)
		return -ENOMEM;
	for (size_t i = 0; i < hp->attachment_cnt; i++) {
		probes[i] = hp->attachments[i].probes;
		memset(&hp->attachments[i].probes, 0, sizeof(hp->attachments[i].probes));
	}
	hp->attached = false;
	probe_heap__detach(probes, hp->attachment_cnt);
	free(probes);
	return 0;
}

void heap_probes__clean_children(struct heap_probes *hp)
{
	for (size_t i = 0; i < hp->attachment_cnt; i++)
		if (hp->attachments[i].pid)
			(void)probe_heap__clean_children(&hp->attachments[i].probes);
}

bool heap_probes__in(const struct heap_probes *hp, pid_t pid)
{
	for (size_t i = 0; i < hp->attachment_cnt; i++)
		if (!hp->attachments[i].pid || hp->attachments[i].pid == pid)
			return true;
	return false;
}

size_t heap_probes__sharing(const struct heap_probes *hp)
{
	size_t most = 0;

	for (size_t i = 0; i < hp->attachment_cnt; i++) {
		const struct attachment *a = &hp->attachments[i];
		size_t first = 0, cnt = 0;

		/* of few files */
		while (!is_of(&hp->attachments[first], a->dev, a->ino))
			first++;
		for (size_t j = i; first == i && j < hp->attachment_cnt; j++)
			cnt += is_of(&hp->attachments[j], a->dev, a->ino);
		most = MAX(most, cnt);
	}
	return most;
}

bool heap_probes__listens(const struct heap_probes *hp)
{
	for (size_t i = 0; i < hp->attachment_cnt; i++)
		if (has_usdt(hp, &hp->points[hp->attachments[i].object]))
			return true;
	return false;
}

size_t heap_probes__cnt(const struct heap_probes *hp)
{
	return hp->cnt;
}
