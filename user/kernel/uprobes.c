// SPDX-License-Identifier: BSD-2-Clause
/* Links of BPF programs to instructions of user programs. */
#include "kernel/uprobes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/raw_call.h"
#include "base/util.h"
#include "kernel/cpus.h"

#define MAX_POINTS 65536      /* of one attachment; the kernel takes 2^20 */
#define MAX_DETACH_HELPERS 16 /* processes that uprobes__detach starts */
#define PATIENCE_TIGHT_NS (NSEC_PER_SEC / 2)
#define PATIENCE_NS (10 * NSEC_PER_SEC)	     /* with processes that attach and detach for us */
#define PATIENCE_EVENT_NS (NSEC_PER_SEC / 4) /* more, for each perf event */
#define PATIENCE_MAX_NS (60 * NSEC_PER_SEC)  /* in all */
#define TICK_MS 5			     /* where the kernel cannot tell when a process ends */
#define KTHREADD_PID 2 /* rest_init in init/main.c; it has no memory of its own, ever */
#define EVENT_SOURCE "/sys/bus/event_source/devices/uprobe/"

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
	uint64_t ref_ctr_shift; /* see event_attr */
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

/*
 * The part of union bpf_attr that BPF_LINK_CREATE of these links reads: link_create.uprobe_multi,
 * which the headers of kernels before 6.6 do not have.
 */
struct multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t pad;
};
#define MULTI_RETURN 1 /* BPF_F_UPROBE_MULTI_RETURN */

const char *uprobes_method_name(enum uprobe_method m)
{
	static const char *const names[] = {
		[UPROBES_SESSION] = "session", [UPROBES_MULTI] = "multi", [UPROBES_PERF] = "perf",
		[UPROBES_EVENT] = "event",     [UPROBES_NONE] = "none",
	};

	return names[m];
}

bool uprobes_by_events(enum uprobe_method m)
{
	return m == UPROBES_PERF || m == UPROBES_EVENT;
}

int uprobes_attach_type(enum uprobe_method m)
{
	switch (m) {
	case UPROBES_SESSION:
		return UPROBES_ATTACH_SESSION;
	case UPROBES_MULTI:
		return UPROBES_ATTACH_MULTI;
	default:
		return 0;
	}
}

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

/* A descriptor, or -errno. */
static int create_multi(const struct multi_attr *attr)
{
	return (int)raw_call(SYS_bpf, BPF_LINK_CREATE, (long)attr, sizeof(*attr), 0, 0);
}

/* ---- What this kernel can do ---- */

static int load_empty(enum uprobe_method m)
{
	/* r0 = 1, which of a session says that the return is of no interest; exit */
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)uprobes_attach_type(m));

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "bpfprof_probe", "GPL", insns, ARRAY_SIZE(insns),
			     &opts);
}

/*
 * Is there such a link, and does its filter by process mean the process? Until 46ba0e49b642 (6.10,
 * 6.9.5, 6.6.34) the program ran only for the one thread that the pid names. That commit also made
 * a negative pid an error of its own, ahead of all others, for this question to be asked. So, of a
 * file that cannot be probed: without a pid, EBADF where there are such links; with pid -1, EINVAL
 * where they filter well. Nothing is attached by any kernel, so none waits 40 ms to detach it.
 */
static bool filters_process(enum uprobe_method m, int prog_fd)
{
	const uint64_t offset = 0;
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = (uint32_t)uprobes_attach_type(m),
		.path = (uintptr_t) "/",
		.offsets = (uintptr_t)&offset,
		.cnt = 1,
	};

	if (create_multi(&attr) != -EBADF)
		return false;
	attr.pid = UINT32_MAX;
	return create_multi(&attr) == -EINVAL;
}

static int open_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return (int)raw_call(SYS_perf_event_open, (long)attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Reads a number of sysfs, behind a prefix. */
static int read_number(const char *path, const char *prefix, uint64_t max, uint64_t *ret)
{
	size_t sz, len = strlen(prefix);
	char *buf;
	int err;

	err = util_read_file(path, 4096, &buf, &sz);
	if (err)
		return err;
	buf[strcspn(buf, "\n-")] = '\0';
	err = strncmp(buf, prefix, len) ? -EINVAL : util_parse_u64(buf + len, 0, max, ret);
	free(buf);
	return err;
}

/*
 * A perf event for one side, but for its point. ref_ctr_shift: where in config the semaphore's
 * offset goes; 64 where the kernel has no place for it (before 4.20). See
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-format.
 */
static int event_attr(enum uprobe_side side, struct perf_event_attr *ret, uint64_t *ret_shift)
{
	uint64_t type, bit;
	int err;

	err = read_number(EVENT_SOURCE "type", "", UINT32_MAX, &type);
	if (!err)
		err = read_number(EVENT_SOURCE "format/retprobe", "config:", 63, &bit);
	if (err)
		return err;
	if (read_number(EVENT_SOURCE "format/ref_ctr_offset", "config:", 63, ret_shift))
		*ret_shift = 64;
	*ret = (struct perf_event_attr){
		.size = sizeof(*ret),
		.type = (uint32_t)type,
		.config = side == UPROBES_RETURN ? UINT64_C(1) << bit : 0,
		.disabled = 1,
	};
	return 0;
}

/* Are there perf events at points? 0: yes; -ENODEV: the kernel has none; else what it says. It looks
 * for the file only once all else is found good. */
static int try_event(void)
{
	struct perf_event_attr attr;
	uint64_t shift;
	int fd;

	if (event_attr(UPROBES_ENTRY, &attr, &shift))
		return -ENODEV;
	attr.uprobe_path = (uintptr_t) "/proc/self/fd/-1";
	fd = open_event(&attr, getpid(), -1);
	if (fd >= 0)
		close(fd);
	return fd == -ENOENT || fd >= 0 ? 0 : fd;
}

static bool have_events(void)
{
	return !try_event();
}

/* Are there links from perf events? A kernel without them calls it no valid type before it looks at
 * the event. */
static bool have_event_links(int prog_fd)
{
	int fd = bpf_link_create(prog_fd, -1, BPF_PERF_EVENT, NULL);

	if (fd >= 0)
		close(fd);
	return fd == -EBADF;
}

bool uprobes_have_links(void)
{
	int fd = load_empty(UPROBES_PERF);
	bool ret = fd >= 0 && have_event_links(fd);

	if (fd >= 0)
		close(fd);
	return ret;
}

static bool can(enum uprobe_method m, int prog_fd)
{
	switch (m) {
	case UPROBES_PERF:
		return have_events() && have_event_links(prog_fd) &&
		       libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie,
					       NULL) == 1;
	case UPROBES_EVENT:
		return have_events();
	default:
		return filters_process(m, prog_fd);
	}
}

enum uprobe_method uprobes_probe(enum uprobe_method at_best)
{
	for (enum uprobe_method m = at_best; m < UPROBES_NONE; m++) {
		int fd = load_empty(m);
		bool good;

		if (fd < 0)
			continue;
		good = can(m, fd);
		close(fd);
		if (good)
			return m;
	}
	return UPROBES_NONE;
}

const char *uprobes_refused_by(int program, int event)
{
	if (program == -EPERM || program == -EACCES)
		return "run as root, or give CAP_BPF and CAP_PERFMON";
	if (program < 0)
		return "the kernel has no BPF programs for them (CONFIG_BPF_EVENTS)";
	if (event == -ENODEV)
		return "the kernel needs CONFIG_UPROBE_EVENTS: there is no " EVENT_SOURCE "type";
	if (event == -EPERM || event == -EACCES)
		return "run as root, or give CAP_SYS_ADMIN, which this kernel wants for uprobes";
	return "the kernel refuses perf events for them";
}

const char *uprobes_refused(void)
{
	int program = load_empty(UPROBES_EVENT);

	if (program >= 0)
		close(program);
	return uprobes_refused_by(program, try_event());
}

const char *uprobes_failure(int err)
{
	if (err == -ETIMEDOUT)
		return "some process keeps the kernel waiting for its memory: nothing can be "
		       "probed until "
		       "it ends (ps -eLo pid,stat,wchan shows threads in state D)";
	return strerror(-err);
}

/* Who is killed as a group, as a shell's job is, is killed without the processes that let go of its
 * probes. */
static void leave_group(void)
{
	(void)raw_call(SYS_setpgid, 0, 0, 0, 0, 0);
}

/* ---- Attaching ---- */

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

	return create_multi(&attr);
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
		fd = open_event(&attr, u->pid ? u->pid : -1, u->cpu);
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
	int err = event_attr(u->side, &u->attr, &u->ref_ctr_shift);

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

/*
 * To set a breakpoint, or to take it back, the kernel waits for each process that maps the file to let go of its memory
 * map, and cannot be interrupted. A process may keep it for ever: by a page of a FUSE file whose server does not answer.
 * So these processes are waited for with patience, but not for ever. Those that are left behind go on in our memory; what
 * they use of it is freed when they have ended.
 */
struct helpers {
	struct helpers *next; /* in left_behind */
	void (*free)(struct helpers *h);
	size_t cnt;
	pid_t pids[MAX_DETACH_HELPERS]; /* 0: it has ended */
};

static struct helpers *left_behind;

static bool have_ended(struct helpers *h)
{
	bool all = true;

	for (size_t i = 0; i < h->cnt; i++) {
		if (h->pids[i] > 0 && waitpid(h->pids[i], NULL, WNOHANG))
			h->pids[i] = 0;
		all &= h->pids[i] <= 0;
	}
	return all;
}

bool uprobes_are_late(void)
{
	struct helpers **at = &left_behind;

	while (*at) {
		struct helpers *h = *at;

		if (!have_ended(h)) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		h->free(h);
	}
	return left_behind;
}

/* Until one of them has ended, or for so long. */
static void wait_for_one(const struct helpers *h, uint64_t ns)
{
	struct pollfd p = { .fd = -1, .events = POLLIN };
	int ms = (int)(ns / 1000000 + 1);

	for (size_t i = 0; p.fd < 0 && i < h->cnt; i++)
		if (h->pids[i] > 0)
			p.fd = util_pidfd_open(h->pids[i]);
	(void)poll(&p, 1, p.fd < 0 ? MIN(ms, TICK_MS) : ms);
	if (p.fd >= 0)
		close(p.fd);
}

/* True: all have ended. Else they are left behind, at once where others are: it is the same that these wait for. */
static bool await_helpers(struct helpers *h, uint64_t ns)
{
	uint64_t patience = knobs.tight_patience ? PATIENCE_TIGHT_NS : ns;
	uint64_t deadline_ns = util_monotonic_ns() + (uprobes_are_late() ? 0 : patience), now;

	while (!have_ended(h)) {
		now = util_monotonic_ns();
		if (now >= deadline_ns) {
			h->next = left_behind;
			left_behind = h;
			return false;
		}
		wait_for_one(h, deadline_ns - now);
	}
	return true;
}

struct errand {
	struct helpers helpers;
	int (*run)(struct uprobes *u);
	struct uprobes *u; /* NULL: the caller's */
	int ret;
	char stack[65536] __attribute__((aligned(16)));
};

static void free_errand(struct helpers *h)
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

	leave_group();
	e->ret = e->run(u);
	if (atomic_exchange(&u->state, ATTACHED) == LEFT)
		for (size_t i = 0; i < u->fd_cnt; i++)
			raw_close(u->fds[i]);
	return 0;
}

/* With one that makes, or closes, so many perf events. */
static uint64_t patience_ns(size_t event_cnt)
{
	return MIN(PATIENCE_NS + event_cnt * PATIENCE_EVENT_NS, PATIENCE_MAX_NS);
}

/*
 * A process that is killed while it attaches leaves breakpoints behind for good: the kernel wants
 * to take back those that are there already, and gives up where a fatal signal is pending ("leaking
 * uprobe"). So another process does it, in our memory and with our descriptors. If we are killed it
 * goes on, and ends, which closes what it has opened. After -ETIMEDOUT *u is not the caller's any more.
 */
static int apart(int (*run)(struct uprobes *u), struct uprobes **u)
{
	struct errand *e = uprobes_are_late() ? NULL : malloc(sizeof(*e));
	int ret;

	if (!e) {
		ret = left_behind ? -ETIMEDOUT : -ENOMEM;
		if (left_behind) {
			free_set(*u);
			*u = NULL;
		}
		return ret;
	}
	e->helpers = (struct helpers){ .free = free_errand, .cnt = 1 };
	e->run = run;
	e->u = *u;
	e->ret = -ECHILD;
	e->helpers.pids[0] =
		clone(run_errand, e->stack + sizeof(e->stack), CLONE_VM | CLONE_FILES | SIGCHLD, e);
	if (e->helpers.pids[0] < 0) {
		free(e);
		return run(*u);
	}
	if (await_helpers(&e->helpers,
			  patience_ns(uprobes_by_events((*u)->method) ? (*u)->cnt : 0))) {
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
	struct helpers helpers;
	size_t cnt; /* of helpers: a descriptor belongs to that of its number modulo cnt */
	int go[2];
	int *fds;
	size_t fd_cnt;
	struct detach_helper each[MAX_DETACH_HELPERS];
};

static void free_work(struct helpers *h)
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

	leave_group();
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
	work->cnt = MIN(fd_cnt, (size_t)MAX_DETACH_HELPERS);
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

static uint64_t detach_patience_ns(struct uprobes **sets, size_t set_cnt)
{
	size_t event_cnt = 0;

	for (size_t i = 0; i < set_cnt; i++)
		if (sets[i] && uprobes_by_events(sets[i]->method))
			event_cnt += sets[i]->fd_cnt;
	return patience_ns(event_cnt);
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
	if (await_helpers(&work->helpers, detach_patience_ns(sets, set_cnt)))
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
	u->prog_fd = load_empty(UPROBES_MULTI);
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
int uprobes__clean_children(struct uprobes *set)
{
	struct uprobes *nobody;
	int err;

	if (!set->pid || uprobes_by_events(set->method))
		return 0;
	nobody = copy_for_nobody(set);
	if (!nobody)
		return -errno;
	err = apart(link_nobody, &nobody);
	uprobes__detach(&nobody, 1);
	return err;
}
