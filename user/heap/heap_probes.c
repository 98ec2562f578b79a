// SPDX-License-Identifier: BSD-2-Clause
/* Which functions of which files are probed, in which processes. */
#include <linux/types.h>

#include "heap/heap_probes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/attachments.h"
#include "kernel/probe_heap.h"
#include "kernel/return_probes.h"
#include "kernel/uprobes.h"
#include "target/allocator_names.h"
#include "target/allocators.h"
#include "target/objects.h"

#define LOCK_FILE "/run/bpfprof-heap.lock"

/* Points, as the kernel side takes them. */
struct point_set {
	struct uprobe_point *points; /* of all groups, one after the other */
	struct probe_heap_points by_group;
	size_t plain_cnt[PROBE_HEAP_NR_GROUPS]; /* the first ones: they need not spare returns */
};

/* Those of an object. */
struct object_points {
	uint64_t serial; /* of the object; 0: not known */
	bool sanitizer;	 /* its calls are recorded at their entry */
	bool apart;	 /* see HEAP_PROBES_APART */
	struct point_set by_mode[HEAP_PROBES_NR_MODES];
};

/* Of a file's functions that have to spare returns: see lock_sparing. */
struct lock {
	bool held;
	int fd;
	pid_t pid; /* of the process whose links are there; 0: those in all processes */
	int err;   /* why it could not even be tried; 0: it could */
};

struct heap_probes {
	enum uprobe_method method;
	bool usdt;
	struct session *session;
	struct objects *objects;
	struct object_points *points; /* by object */
	size_t point_cap;
	struct attachments *attachments;
	struct lock *locks; /* by number of a file */
	size_t lock_cap;
	size_t cnt;	   /* of points in all attachments there have been */
	size_t shared;	   /* how often a file has become so */
	size_t sanitizers; /* files that have the functions of one, which are probed */
	size_t failed;	   /* to be probed, each time that was said */
	enum heap_probes_mode mode;
};

static int attach(void *ctx, const struct attachments_file *f, pid_t pid, bool shared, bool first,
		  struct uprobes *ret[ATTACHMENTS_SETS]);
static void failed(void *ctx, const struct attachments_file *f, pid_t pid, int err);
static void released(void *ctx, const struct attachments_file *f, pid_t pid);
static bool may_share(void *ctx, const struct attachments_file *f);
static void share(void *ctx, const struct attachments_file *f, bool shared);
static void share_done(void *ctx, const struct attachments_file *f);

static const struct attachments_ops ops = {
	.attach = attach,
	.failed = failed,
	.released = released,
	.may_share = may_share,
	.share = share,
	.share_done = share_done,
};

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
	hp->attachments = attachments__new(&ops, hp, objects);
	if (!hp->attachments) {
		free(hp);
		return NULL;
	}
	return hp;
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
	attachments__free(hp->attachments);
	for (size_t i = 0; i < hp->point_cap; i++)
		forget_points(&hp->points[i]);
	free(hp->points);
	free(hp->locks);
	free(hp);
}

/* ---- what is there ---- */

/* Is a return to stay as it is, at least where it may matter? See BPFPROF_COOKIE_THROWS, and _BEGIN. */
static bool spares_returns(const struct allocator_point *p)
{
	return p->group == ALLOCATOR_ALLOC &&
	       p->cookie & (BPFPROF_COOKIE_THROWS | BPFPROF_COOKIE_BEGIN);
}

/* Other methods wait for every return, or have not loaded what serves entries alone. */
static bool usable(const struct heap_probes *hp, const struct allocator_point *p)
{
	return hp->method == UPROBES_SESSION || !spares_returns(p);
}

static enum probe_heap_group group_of(const struct allocator_point *p, enum heap_probes_mode mode)
{
	switch (p->group) {
	case ALLOCATOR_ALLOC:
		return p->cookie & BPFPROF_COOKIE_BEGIN || (mode != HEAP_PROBES_ALWAYS &&
							    probe_heap__can_begin(p->cookie)) ?
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

/* Those of a group that have to spare returns, or those that have not. Returns how many. */
static size_t add_points(const struct heap_probes *hp, const struct allocator_points *found,
			 enum probe_heap_group group, enum heap_probes_mode mode, bool spare,
			 struct uprobe_point *ret)
{
	uint64_t how = group == PROBE_HEAP_BEGIN      ? BPFPROF_COOKIE_BEGIN :
		       group == PROBE_HEAP_USDT_ALLOC ? BPFPROF_COOKIE_USDT :
							0;
	size_t n = 0;

	for (size_t i = 0; i < found->cnt; i++) {
		const struct allocator_point *p = &found->points[i];

		if (group_of(p, mode) == group && spares_returns(p) == spare && usable(hp, p))
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

		set->plain_cnt[g] = add_points(hp, found, g, mode, false, first);
		set->by_group.points[g] = first;
		set->by_group.cnt[g] = set->plain_cnt[g] + add_points(hp, found, g, mode, true,
								      first + set->plain_cnt[g]);
		at += set->by_group.cnt[g];
	}
	return 0;
}

/* The points of an object, found when it is first asked for. NULL: they are not known. */
static const struct object_points *points_of(struct heap_probes *hp, uint32_t object)
{
	struct allocator_points found;
	uint64_t serial = objects__info(hp->objects, object)->serial;
	struct object_points *op;
	size_t left_out = 0;
	int err;

	if (util_reserve_zeroed(&hp->points, &hp->point_cap, object, sizeof(*hp->points)))
		return NULL;
	op = &hp->points[object];
	if (op->serial == serial)
		return op;
	/* of one that had this number before */
	forget_points(op);
	err = objects__allocators(hp->objects, object, &found);
	if (objects__unanswered(hp->objects, object, err))
		return NULL;
	op->serial = serial;
	if (err)
		return op;
	op->apart = true;
	for (size_t i = 0; i < found.cnt; i++) {
		const struct allocator_point *p = &found.points[i];

		op->apart &= allocator_name__is_prefixed(p->name);
		log_debug("%s: %s+%u: %s%s%s", objects__info(hp->objects, object)->path, p->name,
			  p->skew, p->insn, p->emulated ? "" : " (single-stepped)",
			  usable(hp, p) ? "" : " (left out: its return is not to be probed)");
		left_out += !usable(hp, p);
		op->sanitizer |= p->group == ALLOCATOR_ALLOC && p->cookie & BPFPROF_COOKIE_BEGIN;
	}
	if (op->sanitizer)
		log_info(
			"%s: a sanitizer's allocator reports the stack of each call, which a "
			"return probe would cut short: %s",
			objects__info(hp->objects, object)->path,
			left_out ? "it is not probed (Linux 6.13 can leave such a probe out)" :
				   "what it allocates is counted as it begins, and what is in use "
				   "of it is not known");
	else if (left_out)
		log_info(
			"%s: %zu C++ operators are not probed, since an exception could not pass a "
			"return probe of this kernel (Linux 6.13 can leave it out)",
			objects__info(hp->objects, object)->path, left_out);
	hp->sanitizers += op->sanitizer && !left_out;
	for (int m = 0; !err && m < HEAP_PROBES_NR_MODES; m++)
		err = set_points(hp, &found, m, &op->by_mode[m]);
	allocator_points__done(&found);
	if (!objects__unanswered(hp->objects, object, err))
		return op;
	forget_points(op);
	return NULL;
}

static bool has_usdt(const struct heap_probes *hp, const struct object_points *op)
{
	return hp->usdt && op->by_mode[HEAP_PROBES_ALWAYS].by_group.cnt[PROBE_HEAP_USDT_ALLOC] > 0;
}

static bool has_sparing(const struct object_points *op)
{
	const struct point_set *set = &op->by_mode[HEAP_PROBES_ALWAYS];

	return set->plain_cnt[PROBE_HEAP_ALLOC] < set->by_group.cnt[PROBE_HEAP_ALLOC] ||
	       set->plain_cnt[PROBE_HEAP_BEGIN] < set->by_group.cnt[PROBE_HEAP_BEGIN];
}

enum heap_probes_has heap_probes__look(struct heap_probes *hp, uint32_t object)
{
	const struct object_points *op = points_of(hp, object);

	if (!op)
		return HEAP_PROBES_UNKNOWN;
	if (has_usdt(hp, op))
		return HEAP_PROBES_USDT;
	if (!op->by_mode[HEAP_PROBES_ALWAYS].by_group.cnt[PROBE_HEAP_ALLOC] &&
	    !op->by_mode[HEAP_PROBES_ALWAYS].by_group.cnt[PROBE_HEAP_BEGIN])
		return HEAP_PROBES_NOTHING;
	return op->apart ? HEAP_PROBES_APART : HEAP_PROBES_ALLOCATOR;
}

/* ---- where it is probed ---- */

/* The points to be used: a program that samples by itself is not to be probed as well. */
static void choose(const struct heap_probes *hp, const struct object_points *op, bool sparing,
		   struct probe_heap_points *ret)
{
	const struct point_set *set = &op->by_mode[hp->mode];
	bool usdt = has_usdt(hp, op);

	*ret = set->by_group;
	for (int g = 0; g < PROBE_HEAP_NR_GROUPS; g++) {
		if ((g >= PROBE_HEAP_USDT_ALLOC) != usdt)
			ret->cnt[g] = 0;
		else if (!sparing)
			ret->cnt[g] = set->plain_cnt[g];
	}
}

/*
 * Nobody but root can open it, nor keep others from it by a lock of his own. That of the first process's root folder is
 * the same for all mount namespaces, as long as that process can be seen.
 */
static int open_lock_file(void)
{
	static const char *const paths[] = { "/proc/1/root" LOCK_FILE, LOCK_FILE };
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(paths); i++)
		fd = open(paths[i], O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/*
 * Up to Linux 6.18 a session link that is not for this process waits for returns in it all the same
 * (uprobe_multi_link_handler), if another link has set a breakpoint there. Where returns have to be
 * spared, that must not be: so only one process of the machine is probed there at a time. Returns a
 * descriptor that keeps the others out, -EAGAIN: one of them is there, or -errno. A byte of the lock file stands for
 * a file, an open file description lock, fcntl(2), on it goes with us.
 */
static int lock_sparing(const uint64_t inode[static 2])
{
	struct flock byte = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = (off_t)(util_hash(inode, 2 * sizeof(*inode), 0) >> 2),
			      .l_len = 1 };
	int fd = open_lock_file(), err;

	if (fd < 0 || !fcntl(fd, F_OFD_SETLK, &byte))
		return fd;
	err = errno == EACCES ? -EAGAIN : -errno;
	close(fd);
	return err;
}

/* May a link be put on those functions of a file? In all processes not while there are links in some,
 * which wait for returns in all of them then. */
static bool may_probe_sparing(struct heap_probes *hp, const struct attachments_file *f, pid_t pid,
			      bool shared)
{
	struct lock *l;

	if (util_reserve_zeroed(&hp->locks, &hp->lock_cap, f->number, sizeof(*hp->locks)))
		return false;
	l = &hp->locks[f->number];
	if (!l->held && !(shared && f->own)) {
		l->fd = lock_sparing(f->inode);
		l->held = l->fd >= 0;
		l->err = l->held || l->fd == -EAGAIN ? 0 : l->fd;
		l->pid = pid;
	}
	return l->held && l->pid == pid;
}

static void released(void *ctx, const struct attachments_file *f, pid_t pid)
{
	struct heap_probes *hp = ctx;
	struct lock *l = f->number < hp->lock_cap ? &hp->locks[f->number] : NULL;

	if (!l || !l->held || l->pid != pid)
		return;
	close(l->fd);
	*l = (struct lock){ 0 };
}

/* Can cookies tell which file it is? The last number stands for all other files, which share no
 * link. */
static bool has_number(const struct attachments_file *f)
{
	return f->number < BPFPROF_SHARED_FILES - 1;
}

/* A copy with cookies that tell a shared link from others, and of which file it is. NULL: there is
 * no memory. */
static struct uprobe_point *mark(const struct attachments_file *f, bool shared,
				 struct probe_heap_points *points)
{
	uint32_t number = has_number(f) ? f->number : BPFPROF_SHARED_FILES - 1;
	uint64_t cookie = BPFPROF_COOKIE_OF_FILE(number) | (shared ? BPFPROF_COOKIE_SHARED : 0);
	struct uprobe_point *ret, *to;
	size_t cnt = 0;

	for (int g = 0; g < PROBE_HEAP_USDT_ALLOC; g++)
		cnt += points->cnt[g];
	ret = to = calloc(cnt + 1, sizeof(*ret));
	for (int g = 0; ret && g < PROBE_HEAP_USDT_ALLOC; g++) {
		for (size_t i = 0; i < points->cnt[g]; i++) {
			to[i] = points->points[g][i];
			to[i].cookie |= cookie;
		}
		points->points[g] = to;
		to += points->cnt[g];
	}
	return ret;
}

static void note_first(struct heap_probes *hp, const struct attachments_file *f, pid_t pid,
		       const struct probe_heap_points *points, bool left_out)
{
	const char *what = hp->points[f->object].sanitizer ? "the functions of a sanitizer" :
							     "C++ operators that may throw";
	const char *path = objects__info(hp->objects, f->object)->path;
	const struct lock *l = f->number < hp->lock_cap ? &hp->locks[f->number] : NULL;

	for (int g = 0; g < PROBE_HEAP_NR_GROUPS; g++)
		hp->cnt += points->cnt[g];
	if (left_out && l && l->err)
		log_info(
			"%s: %s are not probed, since no other bpfprof can be kept from it: "
			"%s: %s (run as root)",
			path, what, LOCK_FILE, strerror(-l->err));
	else if (left_out && !pid)
		log_info("%s: %s are not probed, since they are in a process already", path, what);
	else if (left_out)
		log_info(
			"%s of process %d: %s are not probed, since they are in another process "
			"already",
			path, (int)pid, what);
}

static int attach(void *ctx, const struct attachments_file *f, pid_t pid, bool shared, bool first,
		  struct uprobes *ret[ATTACHMENTS_SETS])
{
	struct heap_probes *hp = ctx;
	const struct object_points *op = &hp->points[f->object];
	bool spares = has_sparing(op), sparing = spares && may_probe_sparing(hp, f, pid, shared);
	const char *path = objects__info(hp->objects, f->object)->path;
	struct probe_heap_points points;
	struct uprobe_point *marked = NULL;
	struct probe_heap probes;
	int err = 0;

	choose(hp, op, sparing, &points);
	if (first)
		note_first(hp, f, pid, &points, spares && !sparing);
	if (hp->method == UPROBES_SESSION) {
		marked = mark(f, shared, &points);
		err = marked ? 0 : -ENOMEM;
	}
	if (!err)
		err = probe_heap__attach(hp->session, hp->method, f->fd, pid, &points, &probes);
	free(marked);
	if (!err)
		memcpy(ret, probes.sets, sizeof(probes.sets));
	if (!err && hp->mode == HEAP_PROBES_ALWAYS)
		log_debug("process %d: '%s' is probed", (int)pid, path);
	return err;
}
_Static_assert(sizeof(struct probe_heap) == ATTACHMENTS_SETS * sizeof(struct uprobes *),
	       "the sets of a file in a process");

static void failed(void *ctx, const struct attachments_file *f, pid_t pid, int err)
{
	struct heap_probes *hp = ctx;

	(void)pid;
	if (err == -ESRCH)
		return;
	hp->failed++;
	log_error("cannot probe the allocator in '%s': %s",
		  objects__info(hp->objects, f->object)->path, uprobes_failure(err));
}

static bool samples_itself(void *ctx, uint32_t object)
{
	const struct heap_probes *hp = ctx;

	return has_usdt(hp, &hp->points[object]);
}

/*
 * Only where a program may decline a return: else each call in each process of the machine would
 * have its return address replaced. And not beside a process that samples by itself, whose
 * libraries are not to be probed.
 */
static bool may_share(void *ctx, const struct attachments_file *f)
{
	struct heap_probes *hp = ctx;

	/* the link for all would return in processes, too, that filter their system calls */
	return hp->method == UPROBES_SESSION && has_number(f) && !heap_probes__listens(hp) &&
	       !return_probes_harm();
}

static void share(void *ctx, const struct attachments_file *f, bool shared)
{
	struct heap_probes *hp = ctx;

	probe_heap__share(hp->session, f->number, shared);
	hp->shared += shared;
}

static void share_done(void *ctx, const struct attachments_file *f)
{
	const struct heap_probes *hp = ctx;

	(void)f;
	probe_heap__share_done(hp->session);
}

int heap_probes__add(struct heap_probes *hp, pid_t pid, int fd, uint32_t object)
{
	return attachments__add(hp->attachments, pid, fd, object);
}

void heap_probes__settle(struct heap_probes *hp)
{
	attachments__settle(hp->attachments);
}

size_t heap_probes__drop(struct heap_probes *hp, bool (*probed)(void *ctx, pid_t pid), void *ctx)
{
	return attachments__drop(hp->attachments, probed, ctx);
}

void heap_probes__attach(struct heap_probes *hp, enum heap_probes_mode mode)
{
	hp->mode = mode;
	attachments__attach(hp->attachments);
}

int heap_probes__detach(struct heap_probes *hp)
{
	return attachments__detach(hp->attachments);
}

void heap_probes__relink(struct heap_probes *hp, pid_t pid)
{
	attachments__relink(hp->attachments, pid);
}

void heap_probes__clean_children(struct heap_probes *hp, const struct target_forks *forks)
{
	attachments__clean_children(hp->attachments, forks);
}

uint64_t heap_probes__shared_ns(const struct heap_probes *hp, uint32_t object)
{
	return attachments__shared_ns(hp->attachments, object);
}

bool heap_probes__in(const struct heap_probes *hp, pid_t pid, uint32_t object)
{
	return attachments__in(hp->attachments, pid, object);
}

size_t heap_probes__most(const struct heap_probes *hp)
{
	return attachments__most(hp->attachments);
}

size_t heap_probes__shared(const struct heap_probes *hp)
{
	return hp->shared;
}

bool heap_probes__listens(struct heap_probes *hp)
{
	return attachments__any(hp->attachments, samples_itself, hp);
}

size_t heap_probes__sanitizers(const struct heap_probes *hp)
{
	return hp->sanitizers;
}

size_t heap_probes__failed(const struct heap_probes *hp)
{
	return hp->failed;
}

size_t heap_probes__cnt(const struct heap_probes *hp)
{
	return hp->cnt;
}
