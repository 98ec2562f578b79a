// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Descriptors: who has opened those that are open. Which are, the iterator reads from the kernel's
 * own tables: so it does not matter in which of many ways one is closed. A number that is given out
 * again replaces what was known of it. What is open and was not seen to be opened is told apart from
 * the others.
 *
 * Openings are seen where the kernel puts a file into a table: fd_install, and do_dup2, which puts
 * it where another one may be. There, all of them are, and no other system call costs anything. Where
 * programs cannot be attached to functions of the kernel, they are seen as system calls return, by
 * what is known of each; every system call then costs the test whether it is one of these.
 */
#include "common.bpf.h"
#include "user_task.bpf.h"

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define NR_OPEN 2
#define NR_CLOSE 3
#define NR_IOCTL 16
#define NR_PIPE 22
#define NR_DUP 32
#define NR_DUP2 33
#define NR_SOCKET 41
#define NR_ACCEPT 43
#define NR_RECVMSG 47
#define NR_SOCKETPAIR 53
#define NR_CLONE 56
#define NR_FCNTL 72
#define NR_CREAT 85
#define NR_EPOLL_CREATE 213
#define NR_MQ_OPEN 240
#define NR_INOTIFY_INIT 253
#define NR_OPENAT 257
#define NR_SIGNALFD 282
#define NR_TIMERFD_CREATE 283
#define NR_EVENTFD 284
#define NR_ACCEPT4 288
#define NR_SIGNALFD4 289
#define NR_EVENTFD2 290
#define NR_EPOLL_CREATE1 291
#define NR_DUP3 292
#define NR_PIPE2 293
#define NR_INOTIFY_INIT1 294
#define NR_PERF_EVENT_OPEN 298
#define NR_FANOTIFY_INIT 300
#define NR_OPEN_BY_HANDLE_AT 304
#define NR_SECCOMP 317
#define NR_MEMFD_CREATE 319
#define NR_BPF 321
#define NR_USERFAULTFD 323
#define NR_IO_URING_SETUP 425
#define NR_OPEN_TREE 428
#define NR_FSOPEN 430
#define NR_FSMOUNT 432
#define NR_FSPICK 433
#define NR_PIDFD_OPEN 434
#define NR_CLONE3 435
#define NR_OPENAT2 437
#define NR_PIDFD_GETFD 438
#define NR_LANDLOCK_CREATE_RULESET 444
#define NR_MEMFD_SECRET 447
#define NR_OPEN_TREE_ATTR 467

/* include/uapi/linux/fcntl.h, sched.h; include/linux/socket.h; include/net/scm.h */
#define F_DUPFD 0
#define F_DUPFD_CLOEXEC 1030
#define CLONE_PIDFD 0x1000
#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define SCM_MAX_FD 253

#define EBADF 9
#define MAX_CMSGS 4

/* ---- files and tables ---- */

/* Tells files apart whose memory has been used again, as long as they are of different kinds. address:
 * of a struct file, as a number. */
static __always_inline __u64 file_id(__u64 address)
{
	const struct file *file = (const struct file *)address;
	__u64 inode = (__u64)BPF_CORE_READ(file, f_inode), op = (__u64)BPF_CORE_READ(file, f_op);

	return unw_mix(unw_mix(address, inode), op) | 1;
}

/* The address that a pointer has which may be dereferenced: the verifier follows no arithmetic with
 * such. */
static __always_inline __u64 address_of(const void *pointer)
{
	const void *volatile from = pointer;
	__u64 ret = 0;

	bpf_probe_read_kernel(&ret, sizeof(ret), (const void *)&from);
	return ret;
}

static __always_inline void fd_key(struct bpfprof_fd_key *key, const struct files_struct *files,
				   __u32 fd)
{
	key->files = (__u64)files;
	key->fd = fd;
	key->pad = 0;
}

static __always_inline struct files_struct *current_files(void)
{
	struct task_struct *task = compat_current();

	return COMPAT_TASK(task, files);
}

/* The file in this place of the current task's table, the address of a struct file; 0: there is none. */
static __always_inline __u64 file_at(__u32 fd)
{
	struct files_struct *files = current_files();
	bool typed = compat_have_task_btf();
	struct file **places = typed ? files->fdt->fd : BPF_CORE_READ(files, fdt, fd);
	__u32 cnt = typed ? files->fdt->max_fds : BPF_CORE_READ(files, fdt, max_fds);
	__u64 file = 0;

	if (fd >= cnt || bpf_probe_read_kernel(&file, sizeof(file), &places[fd]))
		return 0;
	return file;
}

/* What is known of this place of the current task's table. */
static __always_inline struct bpfprof_fd *known_at(__u32 fd)
{
	struct bpfprof_fd_key key;

	fd_key(&key, current_files(), fd);
	return bpf_map_lookup_elem(&bp_fds, &key);
}

/* A file comes there without a record: it is not to be taken for the one that was there, whose memory it may
 * have. */
static __noinline int forget(__u32 fd)
{
	struct bpfprof_fd *known = known_at(fd);

	if (known)
		known->file = 0;
	return 0;
}

/* ---- who opens ---- */

/* Is nothing recorded, or is the current task of another process than the only one that is watched?
 * Cheaper than to look for what is. */
static __always_inline bool is_other(void)
{
	__u32 only = bp_control.only_tgid;

	return !bp_control.fds_on || (only && bpf_get_current_pid_tgid() >> 32 != only);
}

/* Is what the current task opens recorded? Whichever it is: workers of io_uring open files, too. */
static __always_inline bool wanted(void)
{
	struct task_facts task;

	task_facts(&task);
	return task.has_user && record_wanted(&task);
}

/* The same of one that ends a system call. */
static __always_inline bool caller_wanted(void)
{
	struct task_facts task;

	user_task_facts(&task);
	return record_wanted(&task);
}

/*
 * The current task and its stack, which the caller's slot has from then on; asked: what it opens is
 * known to be recorded. If it is not, the slot has no process. What is opened with a stack that is lost,
 * which was counted, is opened all the same.
 */
__noinline int fds_take_stack(__u32 slot, int asked)
{
	struct record_what what = { .kind = BPFPROF_FDS };
	struct bpfprof_count_key none = {};
	struct task_facts task;
	struct scratch *s;
	__u64 now = bpf_ktime_get_ns();
	int lost;

	s = bpf_map_lookup_elem(&bp_scratch, &slot);
	if (!s)
		return 0;
	s->opened.tgid = 0;
	user_task_facts(&task);
	if (!asked && !record_wanted(&task))
		return 0;
	/* there are no kernel frames, for which alone the context would be asked */
	lost = record_sample(NULL, slot, &task, &what,
			     RECORD_USER_ONLY | RECORD_JOINED | RECORD_CACHED);
	s->opened.live.stack = lost ? none : what.ret_key;
	s->opened.live.time_ns = now;
	s->opened.start_ns = task.key.start_ns;
	s->opened.tgid = task.key.tgid;
	return 0;
}

/* The file, by its address, is in this place of the current task's table: opened as the slot has it. */
__noinline int fds_put(__u32 slot, __u32 fd, __u64 file)
{
	struct scratch *s = bpf_map_lookup_elem(&bp_scratch, &slot);
	struct bpfprof_fd_key key;
	struct bpfprof_stats *stats;

	if (!s || !s->opened.tgid)
		return forget(fd);
	s->opened.file = file_id(file);
	fd_key(&key, current_files(), fd);
	if (!bpf_map_update_elem(&bp_fds, &key, &s->opened, BPF_ANY))
		return 0;
	stats = stats_of(BPFPROF_FDS);
	if (stats)
		STATS_ADD(stats->untracked, 1);
	return 0;
}

/*
 * A slot of fds_install or fds_exit, of which only one is loaded. They can be preempted, but the
 * kernel runs a program that can be once at a time on a CPU: so its slot is free, and to own it costs
 * nothing, where locks are dear.
 */
static __always_inline __u32 own_slot(void)
{
	return bp_config.fds_slot + bpf_get_smp_processor_id();
}

/* ---- in the functions that do it ---- */

/* Before the file can be seen in its place: so nobody has closed it yet. */
SEC("?fentry/fd_install")
int BPF_PROG(fds_install, __u32 fd, struct file *file)
{
	__u64 address = address_of(file);

	if (is_other())
		return 0;
	if (!wanted())
		return forget(fd);
	fds_take_stack(own_slot(), 1);
	fds_put(own_slot(), fd, address);
	return 0;
}

/* Behind it, since it begins with the table locked. */
SEC("?fexit/do_dup2")
int BPF_PROG(fds_dup, struct files_struct *files, struct file *file, __u32 fd, __u32 flags, int ret)
{
	__u64 address = address_of(file);
	__u32 slot;
	int taken;

	/* somebody may have been faster, and have closed it, and opened another one */
	if (ret < 0 || is_other() || file_at(fd) != address)
		return 0;
	if (!wanted())
		return forget(fd);
	taken = stack_take_slot();
	if (taken < 0) {
		lose(BPFPROF_FDS, BPFPROF_LOST_no_slot);
		return forget(fd);
	}
	slot = taken;
	fds_take_stack(slot, 1);
	fds_put(slot, fd, address);
	stack_give_slot(slot);
	return 0;
}

/* ---- as system calls return ---- */

enum way {
	WAY_NONE,
	WAY_RETURNED, /* it returns the number */
	WAY_MAYBE,    /* what it returns may be the number: if a file is there that was not */
	WAY_CLOSED,
	/* as the first, if */
	WAY_SIGNALFD,
	WAY_FCNTL,
	WAY_DUP2,
	/* it writes numbers to memory */
	WAY_PIPE,
	WAY_SOCKETPAIR,
	WAY_RECVMSG,
	WAY_CLONE,
	WAY_CLONE3,
};

static __always_inline enum way way_of(__u64 nr)
{
	switch (nr) {
	case NR_OPEN:
	case NR_DUP:
	case NR_SOCKET:
	case NR_ACCEPT:
	case NR_CREAT:
	case NR_EPOLL_CREATE:
	case NR_MQ_OPEN:
	case NR_INOTIFY_INIT:
	case NR_OPENAT:
	case NR_TIMERFD_CREATE:
	case NR_EVENTFD:
	case NR_ACCEPT4:
	case NR_EVENTFD2:
	case NR_EPOLL_CREATE1:
	case NR_INOTIFY_INIT1:
	case NR_PERF_EVENT_OPEN:
	case NR_FANOTIFY_INIT:
	case NR_OPEN_BY_HANDLE_AT:
	case NR_MEMFD_CREATE:
	case NR_USERFAULTFD:
	case NR_IO_URING_SETUP:
	case NR_OPEN_TREE:
	case NR_FSOPEN:
	case NR_FSMOUNT:
	case NR_FSPICK:
	case NR_PIDFD_OPEN:
	case NR_OPENAT2:
	case NR_PIDFD_GETFD:
	case NR_MEMFD_SECRET:
	case NR_OPEN_TREE_ATTR:
		return WAY_RETURNED;
	case NR_IOCTL:
	case NR_SECCOMP:
	case NR_BPF:
	case NR_LANDLOCK_CREATE_RULESET:
		return WAY_MAYBE;
	case NR_CLOSE:
		return WAY_CLOSED;
	case NR_SIGNALFD:
	case NR_SIGNALFD4:
		return WAY_SIGNALFD;
	case NR_FCNTL:
		return WAY_FCNTL;
	case NR_DUP2:
	case NR_DUP3:
		return WAY_DUP2;
	case NR_PIPE:
	case NR_PIPE2:
		return WAY_PIPE;
	case NR_SOCKETPAIR:
		return WAY_SOCKETPAIR;
	case NR_RECVMSG:
		return WAY_RECVMSG;
	case NR_CLONE:
		return WAY_CLONE;
	case NR_CLONE3:
		return WAY_CLONE3;
	}
	return WAY_NONE;
}

/* Descriptors that a system call has given: one, or cnt of them as ints at an address. */
struct given {
	__u64 at;
	__u32 cnt;
	__u32 fd;
	bool maybe;
};

/* include/linux/socket.h: struct user_msghdr, struct cmsghdr */
struct msghdr_end {
	__u64 control;
	__u64 control_sz;
};
struct cmsghdr_start {
	__u64 len;
	__s32 level, type;
};
#define MSG_CONTROL 32 /* where the former begins */

static __always_inline void given_in_message(__u64 msg, struct given *ret)
{
	struct cmsghdr_start cmsg;
	struct msghdr_end end;
	__u64 at, cnt;

	if (bpf_probe_read_user(&end, sizeof(end), (const void *)(msg + MSG_CONTROL)))
		return;
	at = end.control;
	end.control += end.control_sz;
	for (int i = 0; i < MAX_CMSGS && at && at + sizeof(cmsg) <= end.control; i++) {
		if (bpf_probe_read_user(&cmsg, sizeof(cmsg), (const void *)at) ||
		    cmsg.len < sizeof(cmsg))
			return;
		if (cmsg.level == SOL_SOCKET && cmsg.type == SCM_RIGHTS) {
			cnt = (cmsg.len - sizeof(cmsg)) / sizeof(__u32);
			ret->at = at + sizeof(cmsg);
			ret->cnt = cnt < SCM_MAX_FD ? cnt : SCM_MAX_FD;
			return;
		}
		at += (cmsg.len + 7) & ~7ULL;
	}
}

/* Not inlined: see syscall_of. way: neither WAY_NONE nor WAY_CLOSED. The call has not failed. */
static __noinline int find_given(const struct pt_regs *regs, __u32 way, __u64 value,
				 struct given *ret)
{
	__u64 args[2] = {};

	ret->fd = value;
	switch (way) {
	case WAY_RETURNED:
		ret->cnt = 1;
		break;
	case WAY_MAYBE:
		ret->cnt = value > 0;
		ret->maybe = true;
		break;
	case WAY_SIGNALFD:
		ret->cnt = (__s32)regs->di == -1;
		break;
	case WAY_FCNTL:
		ret->cnt = (__u32)regs->si == F_DUPFD || (__u32)regs->si == F_DUPFD_CLOEXEC;
		break;
	case WAY_DUP2:
		ret->cnt = (__u32)regs->di != (__u32)regs->si;
		break;
	case WAY_PIPE:
		ret->at = regs->di;
		ret->cnt = 2;
		break;
	case WAY_SOCKETPAIR:
		ret->at = regs->r10;
		ret->cnt = 2;
		break;
	case WAY_RECVMSG:
		given_in_message(regs->si, ret);
		break;
	case WAY_CLONE: /* in the child it returns 0 */
		ret->at = regs->dx;
		ret->cnt = value && regs->di & CLONE_PIDFD;
		break;
	case WAY_CLONE3:
		bpf_probe_read_user(args, sizeof(args), (const void *)regs->di);
		ret->at = args[1];
		ret->cnt = value && args[0] & CLONE_PIDFD;
		break;
	}
	return 0;
}

/* Is it one that was opened just now, in a call that opens now and then only? Of a process that is younger
 * than the recording it is not known what it has inherited: a place that nothing is known of may have
 * been taken all along. */
static __noinline int is_new(__u32 fd)
{
	struct bpfprof_fd *known = known_at(fd);
	__u64 file = file_at(fd);
	struct task_facts task;

	if (!file || (known && known->file == file_id(file)))
		return 0;
	user_task_facts(&task);
	return task.key.start_ns < bp_config.fds_since_ns ||
	       (known && known->tgid == task.key.tgid && known->start_ns == task.key.start_ns);
}

/* A number that is free, and is given out again by such a call, is not to be taken for what it was. One
 * that somebody else has been given by now is his. */
static __noinline int forget_closed(__u32 fd)
{
	struct bpfprof_fd *known = known_at(fd);
	__u64 file = known ? file_at(fd) : 0;

	if (known && (!file || known->file != file_id(file)))
		known->file = 0;
	return 0;
}

/* Records the opening of what is in place fd, or, unless `at` is 0, in the place whose number a program has at
 * this address. Returns 1 if it cannot be read. A global function, which the verifier follows once and
 * not for each of a message's descriptors: each field behind such a pointer takes it a ms. */
__noinline int fds_put_at(__u32 slot, __u64 at, __u32 fd)
{
	__u64 file;

	if (at && bpf_probe_read_user(&fd, sizeof(fd), (const void *)at))
		return 1;
	file = file_at(fd);
	if (file)
		fds_put(slot, fd, file);
	return 0;
}

__noinline int fds_put_given(__u32 slot, __u64 at, __u32 cnt, __u32 fd)
{
	for (__u32 i = 0; i < SCM_MAX_FD && i < cnt; i++)
		if (fds_put_at(slot, at ? at + i * sizeof(fd) : 0, fd))
			return 0;
	return 0;
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(fds_exit, struct pt_regs *regs, long value)
{
	struct given given = {};
	enum way way;

	if (is_other())
		return 0;
	way = way_of(regs->orig_ax);
	if (way == WAY_NONE || (value < 0 && way != WAY_CLOSED) || value == -EBADF ||
	    regs->cs == CS_USER32)
		return 0;
	if (way == WAY_CLOSED)
		return forget_closed(regs->di);
	/* most of those who call what hardly ever opens open nothing: they are asked first */
	if (way == WAY_MAYBE && !caller_wanted())
		return 0;
	find_given(regs, way, value, &given);
	if (!given.cnt || (given.maybe && !is_new(given.fd)))
		return 0;
	fds_take_stack(own_slot(), given.maybe);
	fds_put_given(own_slot(), given.at, given.cnt, given.fd);
	return 0;
}

/* ---- what is open ---- */

static __always_inline bool is_watched(struct task_struct *task, __u64 start_ns)
{
	if (bp_config.filter_tgid && !in_set(&bp_tgids, BPF_CORE_READ(task, tgid), start_ns))
		return false;
	return !bp_config.filter_cgroup || in_cgroup(task);
}

/*
 * Is it not known from a thread before? One that has taken a table of its own (unshare) has one more than its main thread, and
 * where that has taken another, or has ended, the kernel goes through the same table for each of the others, one after the
 * other, as many as an unprivileged program likes. The last place may come again, since there was no room to
 * write it.
 */
static __always_inline bool is_news(const struct bpf_iter__task_file *ctx,
				    const struct task_struct *task,
				    const struct files_struct *files)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 session = ctx->meta->session_id;

	if (task == leader)
		return true;
	if (files == BPF_CORE_READ(leader, files))
		return false;
	if (bp_state.fds_session == session && bp_state.fds_files == (__u64)(long)files &&
	    ctx->fd < bp_state.fds_at)
		return false;
	bp_state.fds_session = session;
	bp_state.fds_files = (__u64)(long)files;
	bp_state.fds_at = ctx->fd;
	return true;
}

/* Called for each descriptor of each thread that there is. */
SEC("?iter/task_file")
int fds_read(struct bpf_iter__task_file *ctx)
{
	struct bpfprof_fd_open out = { .origin = BPFPROF_FD_UNKNOWN };
	struct task_struct *task = ctx->task;
	struct bpfprof_fd before = {}, *known;
	struct file *file = ctx->file;
	struct files_struct *files;

	if (!task || !file)
		return 0;
	before.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	if (!is_watched(task, before.start_ns))
		return 0;
	files = BPF_CORE_READ(task, files);
	if (!is_news(ctx, task, files))
		return 0;
	before.tgid = BPF_CORE_READ(task, tgid);
	before.file = file_id(address_of(file));
	fd_key(&out.key, files, ctx->fd);
	if (bp_control.fds_on == BPFPROF_FDS_BEGIN) {
		bpf_map_update_elem(&bp_fds, &out.key, &before, BPF_NOEXIST);
		return 0;
	}
	known = bpf_map_lookup_elem(&bp_fds, &out.key);
	if (known && known->file == before.file && known->tgid == before.tgid &&
	    known->start_ns == before.start_ns) {
		out.origin = known->live.time_ns ? BPFPROF_FD_OPENED : BPFPROF_FD_BEFORE;
		out.stack = known->live.stack;
		out.time_ns = known->live.time_ns;
	}
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}
