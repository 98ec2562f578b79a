/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Futexes: which call a thread is in, what ended its wait, and what each wake is charged for. What
 * is waited for is told by the registers with which the thread entered the kernel, so that no
 * system call is traced.
 */
#ifndef FUTEX_BPF_H
#define FUTEX_BPF_H

#include "common.bpf.h"
#include "futex_charge.h"

/* include/linux/sched.h: flags */
#define PF_EXITING 0x04
#define PF_KTHREAD 0x00200000

/* include/linux/sched/jobctl.h: to stop, to tell a tracer of it, to be frozen */
#define JOBCTL_PENDING_MASK (1UL << 17 | 1UL << 19 | 1UL << 20 | 1UL << 23)

/* include/uapi/linux/futex.h */
#define FUTEX_WAIT_BIT (1 << 0)
#define FUTEX_WAIT_BITSET_BIT (1 << 9)
#define FUTEX_CLOCK_REALTIME 256
#define FUTEX_WAKE_OP 5
#define FUTEX_LOCK_PI 6
/* also LOCK_PI, WAIT_REQUEUE_PI, LOCK_PI2 */
#define FUTEX_WAITS (FUTEX_WAIT_BIT | 1 << 6 | FUTEX_WAIT_BITSET_BIT | 1 << 11 | 1 << 13)
/* WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, UNLOCK_PI, WAKE_BITSET, CMP_REQUEUE_PI */
#define FUTEX_WAKES (1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 10 | 1 << 12)

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAKE 454
#define NR_FUTEX_WAIT 455
#define NR_FUTEX_REQUEUE 456

/* From setting its timer to leaving its CPU, for a thread that is not interrupted there. */
#define TIMEOUT_SLACK_NS 20000

/* ---- calls ---- */

/* A futex system call that a task is in. */
struct futex {
	__u64 addr;  /* that is waited for or woken; 0: one of several */
	__u64 addr2; /* that is woken too, or 0 */
	/* address of a struct timespec, or 0; if it is restarted, when the time is out, in ns */
	__u64 timeout;
	__u16 syscall;
	/* Not 0: it is so. Bits as they come, for the verifier would follow each choice; waits: of
	 * FUTEX_WAITS, or FUTEX_RESTARTED. */
	__u16 waits, wakes;
	__u16 realtime; /* the clock of the time-out */
};
/* In waits: it was interrupted, by a stop as a rule, and goes on until the same time. */
#define FUTEX_RESTARTED (1 << 15)

/* The registers with which a task has entered the kernel; the task may be freed by now. copy:
 * memory for them if they cannot be read in their place. NULL: they cannot be read. */
static __always_inline const struct pt_regs *wait_regs(struct task_struct *task,
						       struct pt_regs *copy)
{
	if (bp_config.rdonly_cast)
		return compat_as_regs(task->stack + bp_state.regs_off);
	return task_regs(task, copy) ? NULL : copy;
}

/* Not inlined: see syscall_of. */
static __noinline void read_futex(struct task_struct *task, struct futex *ret)
{
	const struct pt_regs *regs;
	struct pt_regs copy;
	__u32 cmd;

	ret->addr = ret->addr2 = ret->timeout = 0;
	ret->waits = ret->wakes = ret->realtime = 0;
	ret->syscall = BPFPROF_NO_SYSCALL;
	regs = wait_regs(task, &copy);
	if (!regs)
		return;
	ret->syscall = regs_syscall(regs);
	switch (ret->syscall) {
	case NR_RESTART_SYSCALL:
		ret->timeout = restarted_until(task, regs);
		if (!ret->timeout)
			break;
		ret->syscall = NR_FUTEX;
		ret->addr = regs->di;
		ret->waits = FUTEX_RESTARTED;
		ret->realtime = regs->si & FUTEX_CLOCK_REALTIME;
		break;
	case NR_FUTEX:
		cmd = 1 << (regs->si & FUTEX_CMD_MASK & 31);
		ret->addr = regs->di;
		ret->waits = cmd & FUTEX_WAITS;
		ret->timeout = regs->r10;
		ret->realtime = (regs->si & FUTEX_CLOCK_REALTIME) | (cmd & 1 << FUTEX_LOCK_PI);
		ret->wakes = cmd & FUTEX_WAKES;
		if ((regs->si & FUTEX_CMD_MASK) == FUTEX_WAKE_OP)
			ret->addr2 = regs->r8;
		break;
	case NR_FUTEX_WAITV:
		ret->waits = FUTEX_WAIT_BITSET_BIT;
		ret->timeout = regs->r10;
		ret->realtime = !regs->r8;
		break;
	case NR_FUTEX_WAIT:
		ret->addr = regs->di;
		ret->waits = FUTEX_WAIT_BITSET_BIT;
		ret->timeout = regs->r8;
		ret->realtime = !regs->r9;
		break;
	case NR_FUTEX_WAKE:
		ret->addr = regs->di;
		ret->wakes = 1;
		break;
	case NR_FUTEX_REQUEUE:
		ret->wakes = 1;
		break;
	}
}

/* Where registers are in a stack: the distance between two pointers, of which none can be made a
 * number. task: one whose stack stays. */
static __always_inline __u64 regs_offset(struct task_struct *task)
{
	return (const char *)bpf_task_pt_regs(task) - (const char *)compat_as_regs(task->stack);
}

static __always_inline bool is_futex_call(__u64 nr)
{
	return nr == NR_FUTEX || nr == NR_RESTART_SYSCALL ||
	       (nr >= NR_FUTEX_WAITV && nr <= NR_FUTEX_WAIT);
}

/* The same as may_be_futex of a thread with that stack in the kernel, with bpf_rdonly_cast. */
static __always_inline bool stack_may_be_futex(const void *stack)
{
	return is_futex_call(compat_as_regs(stack + bp_state.regs_off)->orig_ax);
}

/* Might it be in a futex system call? One field of its registers, which costs less than all. */
static __always_inline bool may_be_futex(struct task_struct *task)
{
	const struct pt_regs *regs;
	__u64 nr = 0;

	if (bp_config.rdonly_cast)
		return stack_may_be_futex(task->stack);
	if (compat_have_task_pt_regs()) {
		nr = ((struct pt_regs *)bpf_task_pt_regs(task))->orig_ax;
	} else {
		regs = BPF_CORE_READ(task, stack) + COMPAT_THREAD_SIZE - sizeof(*regs);
		bpf_probe_read_kernel(&nr, sizeof(nr), &regs->orig_ax);
	}
	return is_futex_call(nr);
}

/* ---- what ended a wait ---- */

/* Has it a signal to handle, or to stop for one that another thread has taken? (The flag that says
 * so has different numbers on different kernels.) */
static __always_inline bool has_signal(struct task_struct *task)
{
	__u64 sent = BPF_CORE_READ(task, pending.signal.sig[0]) |
		     BPF_CORE_READ(task, signal, shared_pending.signal.sig[0]);

	return (sent & ~BPF_CORE_READ(task, blocked.sig[0])) |
	       (BPF_CORE_READ(task, jobctl) & JOBCTL_PENDING_MASK);
}

/* What has ended the wait of `sleeper` for `wait`; in the waker's context. */
static __always_inline enum bpfprof_wake woken_by(struct task_struct *sleeper,
						  const struct futex *wait)
{
	struct task_struct *me = compat_current();
	__u32 flags = COMPAT_TASK(me, flags), tgid = COMPAT_TASK(me, tgid);
	bool interrupt = in_interrupt();
	struct futex wake;

	if (!interrupt && !(flags & (PF_EXITING | PF_KTHREAD))) {
		read_futex(me, &wake);
		if (!wake.wakes)
			return BPFPROF_WAKE_SIGNAL;
		/* the same memory may be at other addresses in another process */
		return !wait->addr || !wake.addr || wake.addr == wait->addr ||
				       wake.addr2 == wait->addr || tgid != (__u32)sleeper->tgid ?
			       BPFPROF_WAKE_PEER :
			       BPFPROF_WAKE_REQUEUE;
	}
	if (has_signal(sleeper))
		return BPFPROF_WAKE_SIGNAL;
	/* timers run in threads of the kernel where all is preemptible */
	if (interrupt || flags & PF_KTHREAD)
		return BPFPROF_WAKE_TIMEOUT;
	/* a thread that ends wakes those that wait for its id, and for locks that it held */
	return tgid == (__u32)sleeper->tgid ? BPFPROF_WAKE_PEER : BPFPROF_WAKE_SIGNAL;
}

/* The same where the wake was not seen: what the time and the thread itself tell. What a peer did
 * just before the time-out is taken for it. */
static __always_inline enum bpfprof_wake
woken_how(struct task_struct *task, const struct futex *wait, __u64 off_ns, __u64 wake_ns)
{
	__u64 ts[2], end_ns = wait->timeout;

	if (has_signal(task))
		return BPFPROF_WAKE_SIGNAL;
	if (!(wait->waits & FUTEX_RESTARTED)) {
		/* for ever, or nearly */
		if (!end_ns || bpf_probe_read_user(ts, sizeof(ts), (const void *)end_ns) ||
		    ts[0] >> 33)
			return BPFPROF_WAKE_PEER;
		end_ns = ts[0] * 1000000000 + ts[1];
	}
	/* the only one whose time-out is relative */
	if (wait->waits & FUTEX_WAIT_BIT)
		end_ns += off_ns;
	else if (wait->realtime)
		end_ns -= bp_control.realtime_off;
	return wake_ns + TIMEOUT_SLACK_NS >= end_ns ? BPFPROF_WAKE_TIMEOUT : BPFPROF_WAKE_PEER;
}

/* FUT_OFF_INODE, kernel/futex/futex.h: the key of a futex in a file that is shared */
#define FUTEX_KEY_INODE 1

/* The same by the thread's entry in the futex's queue: the waker has taken the entry out, and its
 * key is that of the futex that the thread waited for last. */
static __always_inline enum bpfprof_wake woken_from(const struct futex_q *q,
						    struct task_struct *task,
						    const struct futex *wait, __u64 off_ns,
						    __u64 wake_ns)
{
	__u32 offset = BPF_CORE_READ(q, key.both.offset);
	enum bpfprof_wake ret = BPFPROF_WAKE_PEER;

	if (BPF_CORE_READ(q, lock_ptr)) {
		/* of several futexes another one may have been woken; a thread that has got a
		 * futex with priority inheritance leaves its queue by itself, too */
		if (wait->addr && wait->timeout && !BPF_CORE_READ(q, pi_state) && !has_signal(task))
			return BPFPROF_WAKE_TIMEOUT;
		ret = woken_how(task, wait, off_ns, wake_ns);
	}
	/* its two lowest bits are flags */
	if (ret == BPFPROF_WAKE_PEER && wait->addr && !(offset & FUTEX_KEY_INODE) &&
	    BPF_CORE_READ(q, key.private.address) + (offset & ~3U) != wait->addr)
		ret = BPFPROF_WAKE_REQUEUE;
	return ret;
}

/* ---- what a waker is charged for ---- */

/* In units of 64 ns since the start: see futex_charge.h. */
#define FUTEX_TIME(ns) ((__s64)((ns)-bp_control.start_ns) >> 6)
#define FUTEX_NS(time) ((__u64)(time) << 6)

static __always_inline struct futex_waiters *waiters_of(struct task_struct *task, __u64 addr,
							struct futex_id *key)
{
	key->addr = addr;
	key->tgid = COMPAT_TASK(task, tgid);
	key->pad = 0;
	return bpf_map_lookup_elem(&bp_futexes, key);
}

/*
 * Counts a task among the waiters of its futex, unless it is counted already: the program of a
 * successor may be late, and count a wait that the task has taken by now. Then the next wait goes
 * on with that. Only the task, or its waker, counts it out, so that it is never done twice. What
 * goes with the address is there before it is.
 */
static __noinline void note_waiter(struct task_struct *task, struct wait_task *w, __u64 since)
{
	struct futex_waiters none = { .create_ns = since }, *f;
	struct futex_id key;
	struct futex wait;

	if (WAIT_GET(w->futex))
		return;
	read_futex(task, &wait);
	if (!wait.waits || !wait.addr)
		return;
	f = waiters_of(task, wait.addr, &key);
	if (!f) {
		bpf_map_update_elem(&bp_futexes, &key, &none, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&bp_futexes, &key);
	}
	if (!f)
		return;
	WAIT_PUT(w->futex_create_ns, f->create_ns);
	WAIT_PUT(w->futex_ns, since);
	WAIT_PUT(w->futex, wait.addr);
	futex_come(&f->sum, FUTEX_TIME(since));
}

/* A task has switched out or queued itself at a futex, or had when the run began: if it waits for a
 * futex, it is one of its waiters from then on. */
static __always_inline void note_futex(struct task_struct *task, struct wait_task *w, __u64 since)
{
	if (w->state == BPFPROF_STATE_sleeping && bp_config.record[BPFPROF_MUTEX] &&
	    may_be_futex(task))
		note_waiter(task, w, since);
}

/* How long w had waited at end_ns, which the waker has read from the clock. The sleeper may have woken
 * and fallen asleep again since: then off_ns is later, and that wait has not begun. */
static __always_inline __u64 waited_ns(const struct wait_task *w, __u64 end_ns)
{
	__u64 off_ns = WAIT_GET(w->off_ns);

	return end_ns > off_ns ? end_ns - off_ns : 0;
}

/*
 * The wait that w describes ends at end_ns. Returns the ns that the waker is charged for, if it is
 * a peer; waits that end otherwise are charged to nobody.
 */
static __always_inline __u64 charge(struct task_struct *task, struct wait_task *w, __u64 end_ns,
				    bool peer)
{
	__u64 addr = WAIT_GET(w->futex), since_ns, create_ns, due;
	struct futex_waiters *f;
	struct futex_id key;

	if (!addr)
		return waited_ns(w, end_ns);
	since_ns = WAIT_GET(w->futex_ns);
	create_ns = WAIT_GET(w->futex_create_ns);
	WAIT_PUT(w->futex, 0);
	f = waiters_of(task, addr, &key);
	/* dropped since, for want of room, and perhaps made anew */
	if (!f || f->create_ns != create_ns)
		return waited_ns(w, end_ns);
	if (!peer) {
		if (f->woken_ns > since_ns)
			since_ns = f->woken_ns;
		futex_go(&f->sum, FUTEX_TIME(since_ns));
		return 0;
	}
	due = futex_charge(&f->sum, FUTEX_TIME(since_ns), FUTEX_TIME(end_ns));
	f->woken_ns = end_ns;
	return FUTEX_NS(due);
}

static __noinline void leave_waiters(struct task_struct *task, struct wait_task *w)
{
	charge(task, w, w->off_ns, false);
}

/* The wait that w describes is over, and no waker was seen. */
static __always_inline void leave_futex(struct task_struct *task, struct wait_task *w)
{
	if (bp_config.record[BPFPROF_MUTEX] && w->futex)
		leave_waiters(task, w);
}

#endif
