// SPDX-License-Identifier: BSD-2-Clause
/* Links of BPF programs to instructions of user programs. */
#include "kernel/uprobes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw_call.h"
#include "base/util.h"
#include "kernel/cpus.h"
#include "kernel/uprobes_helpers.h"
#include "kernel/uprobes_parts.h"

#define MAX_POINTS 65536 /* of one attachment; the kernel takes 2^20 */
#define KTHREADD_PID 2	 /* rest_init in init/main.c; it has no memory of its own, ever */

/* Of an attachment that another process makes for us. */
enum {
	ATTACHING,
	ATTACHED, /* or not: it has done what it can */
	LEFT,	  /* nobody waits for it any more: it is to take back what it makes */
};

struct uprobes {
	enum uprobe_method method;
	enum uprobe_side side;
	pid_t pid;
	int prog_fd, file_fd; /* our own; -1: none */
	atomic_int state;
	/* what perf events are made with */
	struct perf_event_attr attr;
	uint64_t ref_ctr_shift; /* see uprobes_event_attr */
	int cpu;		/* -1: that of the process */
	int *prog_fds;		/* the caller's, for each point; NULL where prog_fd does for all */
	char path[32];		/* of the file, to us */
	/* as the kernel wants them */
	uint64_t *offsets, *ref_ctrs, *cookies;
	bool has_ref_ctr;
	size_t cnt;
	int *fds; /* a link for all points, or a link or a perf event for each one */
	size_t fd_cnt;
};

/* The same of bpf_link_create of a perf event. */
struct event_link_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t cookie;
};

static void raw_close(int fd)
{
	(void)raw_call(SYS_close, fd, 0, 0, 0, 0);
}

/* ---- Attaching ---- */

const char *uprobes_failure(int err)
{
	if (err == -ETIMEDOUT)
		return "some process keeps the kernel waiting for its memory: nothing can be "
		       "probed until "
		       "it ends (ps -eLo pid,stat,wchan shows threads in state D)";
	return strerror(-err);
}

static int link_multi(const struct uprobes *u, pid_t pid)
{
	struct multi_attr attr = {
		.prog_fd = (uint32_t)u->prog_fd,
		.attach_type = (uint32_t)uprobes_attach_type(u->method),
		.path = (uintptr_t)u->path,
		.offsets = (uintptr_t)u->offsets,
		.ref_ctr_offsets = u->has_ref_ctr ? (uintptr_t)u->ref_ctrs : 0,
		.cookies = (uintptr_t)u->cookies,
		.cnt = (uint32_t)u->cnt,
		.multi_flags = u->side == UPROBES_RETURN ? MULTI_RETURN : 0,
		.pid = (uint32_t)pid,
	};

	return uprobes_create_multi(&attr);
}

/* Any online CPU: an event that follows no task has to be on one, but the program runs on all. */
static int some_cpu(void)
{
	int cnt = cpus_possible(), ret = -ENODEV;
	bool *online;

	if (cnt <= 0)
		return -ENODEV;
	online = calloc((size_t)cnt, sizeof(*online));
	if (!online)
		return -ENOMEM;
	if (!cpus_online(online, (size_t)cnt))
		for (int i = cnt - 1; i >= 0; i--)
			if (online[i])
				ret = i;
	free(online);
	return ret;
}

/*
 * Ties a point's program to its event. Returns the descriptor that both hang on, or -errno; the
 * event's own is taken either way.
 *
 * The event stays disabled. The program is run before the kernel looks for events that count
 * (__uprobe_perf_func in kernel/trace/trace_uprobe.c), while 40 enabled ones made each context
 * switch of the target 6 us longer.
 */
static int link_event(const struct uprobes *u, size_t point, int event_fd)
{
	struct event_link_attr attr = { .prog_fd = (uint32_t)u->prog_fd,
					.target_fd = (uint32_t)event_fd,
					.attach_type = BPF_PERF_EVENT,
					.cookie = u->cookies[point] };
	int fd;

	if (u->method == UPROBES_PERF) {
		fd = (int)raw_call(SYS_bpf, BPF_LINK_CREATE, (long)&attr, sizeof(attr), 0, 0);
	} else {
		fd = (int)raw_call(SYS_ioctl, event_fd, PERF_EVENT_IOC_SET_BPF, u->prog_fds[point],
				   0, 0);
		if (!fd)
			return event_fd;
	}
	raw_close(event_fd);
	return fd;
}

/* Appends to u->fds. */
static int link_events(struct uprobes *u)
{
	struct perf_event_attr attr = u->attr;
	uint64_t shift = u->ref_ctr_shift;

	for (size_t i = 0; i < u->cnt && atomic_load(&u->state) != LEFT; i++) {
		int fd;

		if (u->ref_ctrs[i] && (shift >= 64 || u->ref_ctrs[i] > UINT64_MAX >> shift))
			return -EOPNOTSUPP;
		attr.config = u->attr.config | (u->ref_ctrs[i] ? u->ref_ctrs[i] << shift : 0);
		attr.probe_offset = u->offsets[i];
		fd = uprobes_open_event(&attr, u->pid ? u->pid : -1, u->cpu);
		if (fd >= 0)
			fd = link_event(u, i, fd);
		if (fd < 0)
			return fd;
		u->fds[u->fd_cnt++] = fd;
	}
	return 0;
}

/* What link_events takes: where it runs nothing can be asked for. */
static int prepare_events(struct uprobes *u, const int *prog_fds, size_t cnt)
{
	int err = uprobes_event_attr(u->side, &u->attr, &u->ref_ctr_shift);

	if (err)
		return err;
	u->attr.uprobe_path = (uintptr_t)u->path;
	u->cpu = u->pid ? -1 : some_cpu();
	if (!u->pid && u->cpu < 0)
		return u->cpu;
	if (u->method != UPROBES_EVENT)
		return 0;
	u->prog_fds = calloc(cnt, sizeof(*u->prog_fds));
	if (!u->prog_fds)
		return -ENOMEM;
	memcpy(u->prog_fds, prog_fds, cnt * sizeof(*prog_fds));
	return 0;
}

static int copy_points(struct uprobes *u, const struct uprobe_point *points, size_t cnt)
{
	u->offsets = calloc(cnt, sizeof(*u->offsets));
	u->ref_ctrs = calloc(cnt, sizeof(*u->ref_ctrs));
	u->cookies = calloc(cnt, sizeof(*u->cookies));
	u->fds = calloc(uprobes_by_events(u->method) ? cnt : 1, sizeof(*u->fds));
	if (!u->offsets || !u->ref_ctrs || !u->cookies || !u->fds)
		return -ENOMEM;
	u->cnt = cnt;
	for (size_t i = 0; i < cnt; i++) {
		u->offsets[i] = points[i].offset;
		u->ref_ctrs[i] = points[i].ref_ctr;
		u->cookies[i] = points[i].cookie;
		u->has_ref_ctr |= points[i].ref_ctr != 0;
	}
	return 0;
}

static void name_file(struct uprobes *u)
{
	snprintf(u->path, sizeof(u->path), "/proc/self/fd/%d", u->file_fd);
}

static int attach(struct uprobes *u)
{
	int fd;

	if (uprobes_by_events(u->method))
		return link_events(u);
	fd = link_multi(u, u->pid);
	if (fd < 0)
		return fd;
	u->fds[u->fd_cnt++] = fd;
	return 0;
}

static void free_set(struct uprobes *u)
{
	if (u->prog_fd >= 0)
		close(u->prog_fd);
	if (u->file_fd >= 0)
		close(u->file_fd);
	free(u->prog_fds);
	free(u->offsets);
	free(u->ref_ctrs);
	free(u->cookies);
	free(u->fds);
	free(u);
}

/* ---- Processes that do it for us ---- */

struct errand {
	struct uprobes_helpers helpers;
	int (*run)(struct uprobes *u);
	struct uprobes *u; /* NULL: the caller's */
	int ret;
	char stack[65536] __attribute__((aligned(16)));
};

static void free_errand(struct uprobes_helpers *h)
{
	struct errand *e = (struct errand *)h;

	if (e->u)
		free_set(e->u);
	free(e);
}

/* Nothing here may write to errno, or ask for memory: both are the caller's, who may have gone on. */
static int run_errand(void *arg)
{
	struct errand *e = arg;
	struct uprobes *u = e->u;

	uprobes_helper_begins();
	e->ret = e->run(u);
	if (atomic_exchange(&u->state, ATTACHED) == LEFT)
		for (size_t i = 0; i < u->fd_cnt; i++)
			raw_close(u->fds[i]);
	return 0;
}

/*
 * A process that is killed while it attaches leaves breakpoints behind for good: the kernel wants
 * to take back those that are there already, and gives up where a fatal signal is pending ("leaking
 * uprobe"). So another process does it, in our memory and with our descriptors. If we are killed it
 * goes on, and ends, which closes what it has opened. After -ETIMEDOUT *u is not the caller's any more.
 */
static int apart(int (*run)(struct uprobes *u), struct uprobes **u)
{
	struct errand *e;
	int ret;

	if (uprobes_are_late()) {
		free_set(*u);
		*u = NULL;
		return -ETIMEDOUT;
	}
	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->helpers = (struct uprobes_helpers){ .free = free_errand, .cnt = 1 };
	e->run = run;
	e->u = *u;
	e->ret = -ECHILD;
	e->helpers.pids[0] =
		clone(run_errand, e->stack + sizeof(e->stack), CLONE_VM | CLONE_FILES | SIGCHLD, e);
	if (e->helpers.pids[0] < 0) {
		free(e);
		return run(*u);
	}
	if (uprobes_helpers_await(&e->helpers, uprobes_by_events((*u)->method) ? (*u)->cnt : 0)) {
		ret = e->ret;
		free(e);
	} else if (atomic_exchange(&(*u)->state, LEFT) == ATTACHED) {
		ret = e->ret;
		e->u = NULL;
	} else {
		ret = -ETIMEDOUT;
		*u = NULL;
	}
	return ret;
}

/* A session's program may decline each return (UPROBES_ENTRY), but is never without entries. */
static bool has_side(enum uprobe_method m, enum uprobe_side side)
{
	return m == UPROBES_SESSION ? side != UPROBES_RETURN : side != UPROBES_BOTH;
}

struct uprobes *uprobes__attach(enum uprobe_method m, enum uprobe_side side, const int *prog_fds,
				int file_fd, pid_t pid, const struct uprobe_point *points,
				size_t cnt)
{
	struct uprobes *u = NULL;
	int err = -EINVAL;

	if (m >= UPROBES_NONE || !has_side(m, side) || pid < 0 || !cnt || cnt > MAX_POINTS)
		goto failed;
	err = -ENOMEM;
	u = calloc(1, sizeof(*u));
	if (!u)
		goto failed;
	u->method = m;
	u->side = side;
	u->pid = pid;
	u->file_fd = -1;
	u->prog_fd = fcntl(prog_fds[0], F_DUPFD_CLOEXEC, 0);
	if (u->prog_fd >= 0)
		u->file_fd = fcntl(file_fd, F_DUPFD_CLOEXEC, 0);
	err = u->file_fd < 0 ? -errno : copy_points(u, points, cnt);
	name_file(u);
	if (!err && uprobes_by_events(m))
		err = prepare_events(u, prog_fds, cnt);
	if (!err)
		err = apart(attach, &u);
	if (err)
		goto failed;
	return u;

failed:
	uprobes__detach(&u, 1);
	errno = -err;
	return NULL;
}

size_t uprobes__point_cnt(const struct uprobes *set)
{
	return set->cnt;
}

/* ---- Detaching ---- */

struct detach_helper {
	const struct detach_work *work;
	size_t idx;
	char stack[32768] __attribute__((aligned(16)));
};

struct detach_work {
	struct uprobes_helpers helpers;
	size_t cnt; /* of helpers: a descriptor belongs to that of its number modulo cnt */
	int go[2];
	int *fds;
	size_t fd_cnt;
	struct detach_helper each[UPROBES_MAX_HELPERS];
};

static void free_work(struct uprobes_helpers *h)
{
	struct detach_work *work = (struct detach_work *)h;

	free(work->fds);
	free(work);
}

/* Closes all descriptors but those of one helper; -1: all. */
static void close_others(const struct detach_work *work, ssize_t idx)
{
	for (size_t n = 0; n < work->fd_cnt; n++)
		if ((ssize_t)(n % work->cnt) != idx)
			raw_close(work->fds[n]);
}

/*
 * A barrier: a helper keeps its share of the descriptors until all have closed the pipe's other end,
 * and so have closed what is the others' share. All exit together then, and the kernel waits for
 * one RCU grace period for all of them; a helper that came late would close the rest alone, one
 * descriptor after the other.
 */
static int run_detach_helper(void *arg)
{
	struct detach_helper *helper = arg;
	char byte;

	uprobes_helper_begins();
	close_others(helper->work, (ssize_t)helper->idx);
	raw_close(helper->work->go[1]);
	return raw_call(SYS_read, helper->work->go[0], (long)&byte, 1, 0, 0) != 0;
}

/* With all descriptors of the sets. NULL: there is no memory, or no descriptor. */
static struct detach_work *new_work(struct uprobes **sets, size_t set_cnt, size_t fd_cnt)
{
	struct detach_work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->helpers.free = free_work;
	work->cnt = MIN(fd_cnt, (size_t)UPROBES_MAX_HELPERS);
	work->fds = calloc(fd_cnt, sizeof(*work->fds));
	if (!work->fds || pipe2(work->go, O_CLOEXEC)) {
		free_work(&work->helpers);
		return NULL;
	}
	for (size_t i = 0; i < set_cnt; i++)
		for (size_t j = 0; sets[i] && j < sets[i]->fd_cnt; j++)
			work->fds[work->fd_cnt++] = sets[i]->fds[j];
	return work;
}

static size_t count_events(struct uprobes **sets, size_t set_cnt)
{
	size_t ret = 0;

	for (size_t i = 0; i < set_cnt; i++)
		if (sets[i] && uprobes_by_events(sets[i]->method))
			ret += sets[i]->fd_cnt;
	return ret;
}

/*
 * To close the last descriptor of a link is to remove its breakpoints, which takes 5 ms, mostly for
 * the first, then to wait for grace periods of RCU, another 20 to 60 ms. Links closed at the same
 * time share these. Perf events do not: the kernel closes one after the other, whoever asks
 * (event_mutex).
 *
 * A process that is killed while it is at this leaves the breakpoints behind for good: the kernel
 * gives up where a fatal signal is pending ("leaking uprobe"). In a process that exits it does not.
 * So the last descriptors are left to processes that do nothing else, and exit as well if we are
 * killed. They have descriptors of their own, but our memory: to copy what maps it takes longer
 * than all that they do.
 */
static void close_all(struct uprobes **sets, size_t set_cnt, size_t fd_cnt)
{
	struct detach_work *work = new_work(sets, set_cnt, fd_cnt);

	if (!work) {
		for (size_t i = 0; i < set_cnt; i++)
			for (size_t j = 0; sets[i] && j < sets[i]->fd_cnt; j++)
				close(sets[i]->fds[j]);
		return;
	}
	for (size_t i = 0; i < work->cnt; i++) {
		struct detach_helper *h = &work->each[i];

		h->work = work;
		h->idx = i;
		work->helpers.pids[i] = clone(run_detach_helper, h->stack + sizeof(h->stack),
					      CLONE_VM | SIGCHLD, h);
	}
	work->helpers.cnt = work->cnt;
	close_others(work, -1);
	close(work->go[1]);
	close(work->go[0]);
	if (uprobes_helpers_await(&work->helpers, count_events(sets, set_cnt)))
		free_work(&work->helpers);
}

void uprobes__detach(struct uprobes **sets, size_t cnt)
{
	size_t fd_cnt = 0;

	for (size_t i = 0; i < cnt; i++)
		fd_cnt += sets[i] ? sets[i]->fd_cnt : 0;
	if (fd_cnt)
		close_all(sets, cnt, fd_cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (sets[i])
			free_set(sets[i]);
		sets[i] = NULL;
	}
}

/*
 * When the last user of a point in a process goes, the kernel looks at all processes that map the
 * file and takes the breakpoint out of those which no other link's filter wants
 * (register_for_each_vma in kernel/events/uprobes.c). So: a link that wants no process at all, made
 * and closed. Perf events need none of it: their handler asks for the breakpoint's removal at its
 * first hit in a process that its filter does not want (UPROBE_HANDLER_REMOVE).
 */
static int link_nobody(struct uprobes *set)
{
	int fd = link_multi(set, KTHREADD_PID);

	if (fd < 0)
		return fd;
	set->fds[set->fd_cnt++] = fd;
	return 0;
}

/* The same points, for entries alone and a program that does nothing. NULL with errno. */
static struct uprobes *copy_for_nobody(const struct uprobes *set)
{
	struct uprobes *u = calloc(1, sizeof(*u));
	size_t sz = set->cnt * sizeof(uint64_t);

	if (!u)
		return NULL;
	u->method = UPROBES_MULTI;
	u->side = UPROBES_ENTRY;
	u->has_ref_ctr = set->has_ref_ctr;
	u->cnt = set->cnt;
	u->offsets = malloc(sz);
	u->ref_ctrs = malloc(sz);
	u->cookies = malloc(sz);
	u->fds = calloc(1, sizeof(*u->fds));
	u->prog_fd = uprobes_load_empty(UPROBES_MULTI);
	u->file_fd = fcntl(set->file_fd, F_DUPFD_CLOEXEC, 0);
	if (!u->offsets || !u->ref_ctrs || !u->cookies || !u->fds || u->prog_fd < 0 ||
	    u->file_fd < 0) {
		free_set(u);
		errno = ENOMEM;
		return NULL;
	}
	memcpy(u->offsets, set->offsets, sz);
	memcpy(u->ref_ctrs, set->ref_ctrs, sz);
	memcpy(u->cookies, set->cookies, sz);
	name_file(u);
	return u;
}

/*
 * The link is for entries alone: one with a return probe, as that of a session, has the kernel
 * change the return address of every call in every process, also of those that its filter does not
 * want, and an exception that passes such a call ends the program.
 */
static int clean_children_of(const struct uprobes *set, struct uprobes **nobody)
{
	*nobody = copy_for_nobody(set);
	return *nobody ? apart(link_nobody, nobody) : -errno;
}

int uprobes__clean_children(struct uprobes *const *sets, size_t cnt)
{
	struct uprobes **nobodies = calloc(cnt + 1, sizeof(struct uprobes *));
	int err = 0;

	if (!nobodies)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		int err_of;

		if (!sets[i] || !sets[i]->pid || uprobes_by_events(sets[i]->method))
			continue;
		err_of = clean_children_of(sets[i], &nobodies[i]);
		err = err ? err : err_of;
	}
	/* all at once: the kernel waits as long for one */
	uprobes__detach(nobodies, cnt);
	free(nobodies);
	return err;
}
