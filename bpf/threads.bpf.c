// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * What threads are doing: an iterator that tells it of those that wait, without stopping or even
 * touching them, and a sampler for those that run.
 */
#include "perf_event.bpf.h"
#include "wait_state.bpf.h"

/* include/uapi/linux/sched.h: SCHED_NORMAL, SCHED_BATCH, SCHED_IDLE */
#define FAIR_POLICIES (1 << 0 | 1 << 3 | 1 << 5)

/* ---- filters: those of record_wanted, for another task ---- */

static __always_inline bool wanted(struct task_struct *task, const struct bpfprof_thread *t)
{
	if (bp_config.filter_tgid && !in_set(&bp_tgids, t->key.tgid, t->key.start_ns))
		return false;
	if (bp_config.filter_tid && !in_set(&bp_tids, t->tid, t->key.start_ns))
		return false;
	if (bp_config.user_only && !t->has_user)
		return false;
	if (bp_config.filter_cgroup && !in_cgroup(task))
		return false;
	return !bp_config.filter_comm || comm_matches(t->comm);
}

/* ---- a thread ---- */

static __always_inline bool has_user(struct task_struct *task)
{
	return BPF_CORE_READ(task, mm) && !(BPF_CORE_READ(task, flags) & compat_workers()) &&
	       !(bpf_core_field_exists(task->in_execve) &&
		 BPF_CORE_READ_BITFIELD_PROBED(task, in_execve));
}

static __always_inline __u64 switches_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

/*
 * When a thread was last taken off a CPU, or charged for running on it, by the clock of the
 * scheduler, which is the same on all CPUs: it is known when it began to run (last_arrival), and
 * for how long it then did (sum_exec_runtime, which leaves out what interrupts and other virtual
 * machines took). Real-time classes do not keep the latter apart; they run briefly, as a rule. A
 * kernel without CONFIG_SCHED_INFO does not know the former; exec_start is by a clock of the CPU
 * that stands still in interrupts. 0: it has not run yet.
 */
static __always_inline __u64 ran_until(struct task_struct *task)
{
	__u64 arrival;

	if (!bpf_core_field_exists(struct sched_info, last_arrival))
		return BPF_CORE_READ(task, se.exec_start);
	arrival = BPF_CORE_READ(task, sched_info.last_arrival);
	if (!arrival || 1U << (BPF_CORE_READ(task, policy) & 31) & ~FAIR_POLICIES)
		return arrival;
	return arrival + BPF_CORE_READ(task, se.sum_exec_runtime) -
	       BPF_CORE_READ(task, se.prev_sum_exec_runtime);
}

/* For how long a thread has not run. Our own was charged a tick ago at most. */
static __always_inline __u64 since_ns(struct task_struct *task)
{
	__u64 left = ran_until(task), now = ran_until((void *)bpf_get_current_task());

	if (!left)
		return 0;
	return now > left ? now - left : 1;
}

static __always_inline void set_regs(struct bpfprof_thread *t, const struct pt_regs *regs)
{
	t->regs[0] = regs->ax;
	t->regs[1] = regs->dx;
	t->regs[2] = regs->cx;
	t->regs[3] = regs->bx;
	t->regs[4] = regs->si;
	t->regs[5] = regs->di;
	t->regs[6] = regs->bp;
	t->regs[7] = regs->sp;
	t->regs[8] = regs->r8;
	t->regs[9] = regs->r9;
	t->regs[10] = regs->r10;
	t->regs[11] = regs->r11;
	t->regs[12] = regs->r12;
	t->regs[13] = regs->r13;
	t->regs[14] = regs->r14;
	t->regs[15] = regs->r15;
	t->regs[16] = regs->ip;
	/* in a system call, and not in an execve that is over: that leaves these two 0 */
	t->ra = (long)regs->orig_ax >= 0 && (regs->cx || regs->r11);
	t->compat32 = regs->cs == CS_USER32;
}

/* Return addresses that return probes have replaced: see undo_uprobes in stack.bpf.c. */
static __always_inline void set_urets(struct bpfprof_thread *t, struct task_struct *task)
{
	struct return_instance *ri;
	struct uprobe_task *utask;

	if (!bpf_core_field_exists(struct task_struct, utask))
		return;
	utask = BPF_CORE_READ(task, utask);
	if (!utask)
		return;
	t->uret_pc = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	ri = BPF_CORE_READ(utask, return_instances);
	for (int i = 0; i < BPFPROF_MAX_URETS; i++) {
		t->uret[i].at = BPF_CORE_READ(ri, stack);
		t->uret[i].ra = BPF_CORE_READ(ri, orig_ret_vaddr);
		ri = BPF_CORE_READ(ri, next);
	}
}

/* The wait that it is in, or was in when waits were last recorded. Returns its state, if that is
 * the state of now. */
static __always_inline __u32 set_wait(struct bpfprof_thread *t, struct task_struct *task,
				      __u32 state)
{
	struct wait_task *w;

	if (!bp_config.record[BPFPROF_BLOCK] && !bp_config.record[BPFPROF_OFFCPU])
		return state;
	w = wait_state_of(task);
	if (!w || !w->off_ns)
		return state;
	t->off_ns = w->off_ns;
	if (wait_is_woken(w) && w->wake_ns > w->off_ns) {
		t->wake_ns = w->wake_ns;
		t->woken = w->woken;
	}
	t->off_state = w->state;
	t->same = !t->on_cpu && wait_is_current(w, t->switches);
	/* see lose_end in waits.bpf.c */
	t->ended = !t->same && w->off_ns != bp_control.start_ns &&
		   (!bp_config.futex_probes || BPF_CORE_READ(task, nvcsw) > w->sleeps);
	t->may_futex = w->may_futex;
	return t->same && state != BPFPROF_STATE_runnable ? t->off_state : state;
}

/* What can be read of a thread that does not run; if it did meanwhile, it counts as running.
 * Returns the size of its kernel frames. */
static __always_inline __u32 read_waiting(struct task_struct *task, struct thread_buf *b)
{
	struct bpfprof_thread *t = &b->head;
	__u32 syscall = no_syscall(BPF_CORE_READ(task, flags));
	struct pt_regs regs;
	long sz = 0;

	if (syscall != BPFPROF_OF_KERNEL && !task_regs(task, &regs)) {
		set_regs(t, &regs);
		if (syscall == BPFPROF_NO_SYSCALL)
			syscall = task_syscall(task, &regs);
	}
	if (t->has_user)
		set_urets(t, task);
	t->since_ns = since_ns(task);
	t->wait = BPFPROF_WAIT_PACK(
		syscall, set_wait(t, task, task_state(task, false, compat_task_state(task))),
		t->woken);
	if (!bp_config.user_only)
		sz = bpf_get_task_stack(task, b->kernel, BPFPROF_MAX_KFRAMES * 8, 0);
	t->on_cpu = compat_on_cpu(task) || switches_of(task) != t->switches;
	if (sz < 0 || t->on_cpu)
		sz = 0;
	return (__u32)sz & (BPFPROF_MAX_KFRAMES * 8);
}

/* Writes a struct bpfprof_thread for each thread that passes the filters. */
SEC("?iter/task")
int threads_read(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct bpfprof_thread *t;
	struct thread_buf *b;
	__u32 zero = 0, sz = 0;

	b = bpf_map_lookup_elem(&bp_thread, &zero);
	/* what has ended has no stack, even if it has not been waited for */
	if (!task || !b || BPF_CORE_READ(task, exit_state))
		return 0;
	t = &b->head;
	__builtin_memset(t, 0, sizeof(*t));
	t->key.tgid = BPF_CORE_READ(task, tgid);
	t->key.exec_id = (__u32)BPF_CORE_READ(task, self_exec_id);
	t->key.start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	t->tid = BPF_CORE_READ(task, pid);
	t->has_user = has_user(task);
	t->block = is_chosen(BPFPROF_BLOCK, task);
	bpf_probe_read_kernel_str(t->comm, sizeof(t->comm), task->comm);
	if (!wanted(task, t))
		return 0;
	if (bp_config.cgroups)
		t->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	t->switches = switches_of(task);
	t->on_cpu = compat_on_cpu(task);
	t->wait = BPFPROF_WAIT_PACK(BPFPROF_NO_SYSCALL, BPFPROF_STATE_running, 0);
	if (t->on_cpu)
		set_wait(t, task, 0);
	else
		sz = read_waiting(task, b);
	t->kernel_cnt = sz / 8;
	bpf_seq_write(ctx->meta->seq, b, sizeof(*t) + sz);
	return 0;
}

/* Samples threads that are due, each of them once. */
SEC("?perf_event")
int threads_sample(struct bpf_perf_event_data *ctx)
{
	struct record_what what = {
		.kind = BPFPROF_THREADS,
		.wait = BPFPROF_WAIT_PACK(BPFPROF_NO_SYSCALL, BPFPROF_STATE_running, 0),
	};
	struct task_facts task;
	bool user_mode = perf_event_in_user(ctx);
	__u32 syscall;

	task_facts(&task);
	if (bpf_map_delete_elem(&bp_threads_due, &task.tid))
		return 0;
	if (bp_config.kernel_only && user_mode)
		return 0;
	if (!user_mode) {
		syscall = no_syscall(COMPAT_TASK(compat_current(), flags));
		if (syscall == BPFPROF_NO_SYSCALL && compat_have_task_btf())
			syscall = syscall_of(bpf_get_current_task_btf());
		what.wait = BPFPROF_WAIT_PACK(syscall, BPFPROF_STATE_running, 0);
	}
	what.size = task.tid;
	/* joined: not to be merged with another thread's */
	record_sample(ctx, bpf_get_smp_processor_id(), &task, &what,
		      RECORD_JOINED | (user_mode ? RECORD_USER_MODE : 0));
	return 0;
}
