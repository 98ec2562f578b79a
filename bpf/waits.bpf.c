// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Time that threads spend off a CPU: why (offcpu), waiting for another thread (block), and which
 * one ended that wait (mutex).
 *
 * A switch-out notes the time and the thread's state, in the scheduler and with nothing to
 * allocate. At the switch-in, in the thread's own context, its stack can be read, and it is known
 * whether the wait was long enough to be recorded. How much of a wait the thread was on a run queue
 * the scheduler has counted. Only the mutex profile looks at the wake, too, in the waker's context:
 * each program costs every context switch some 0.1 us. Where offcpu is not wanted, switches are not
 * looked at if the kernel's futex code can be watched; else, from 6.15 on, one program at switch-in
 * sees both ends of a wait. wait_machine.h has the states.
 *
 * Only futex waits are synchronization, and of these only ones that slept: an uncontended lock does
 * not come here.
 *
 * A thread is watched if it has a state, made by the iterator when the run begins or when the
 * thread is created; the others cost one lookup, and without offcpu not even that, unless they are
 * in a futex. Where only futexes are watched, a missing state is made at the first futex wait.
 */
#include "common.bpf.h"
#include "futex.bpf.h"
#include "sched_cpu.bpf.h"
#include "wait_record.bpf.h"
#include "wait_state.bpf.h"
#include "wait_watch.bpf.h"

/* ---- switch-out ---- */

/*
 * A thread switches out, and the end of its last wait was not seen: the kernel leaves a kprobe out
 * where another BPF program or a change of a map is going on on the CPU (bpf_prog_active in
 * trace_call_bpf), and it was preempted there. A wait that has the start of the run for its
 * beginning is not counted: see wait_begin.
 */
static __noinline void lose_end(struct task_struct *task, const struct wait_task *w)
{
	if (w->off_ns == bp_control.start_ns ||
	    (bp_control.stop_ns && w->off_ns >= bp_control.stop_ns) || !record_wanted_more())
		return;
	if (bp_config.record[BPFPROF_OFFCPU])
		lose(BPFPROF_OFFCPU, BPFPROF_LOST_missed);
	if (bp_config.record[BPFPROF_BLOCK] && w->state == BPFPROF_STATE_sleeping && w->may_futex &&
	    is_chosen(BPFPROF_BLOCK, task))
		lose(BPFPROF_BLOCK, BPFPROF_LOST_missed);
}

/* In the context of the thread that switches out. */
SEC("?tp_btf/sched_switch")
int wait_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	enum bpfprof_thread_state state;
	struct wait_task *w;
	bool matters;
	__u32 tid;

	if (!bp_control.waits_on || is_other(prev))
		return 0;
	matters = !is_no_matter(prev);
	/* a thread that exits may have a state in the hash */
	if (!bp_config.hash_states && !matters)
		return 0;
	state = task_state(prev, ctx[0],
			   bp_config.switch_state ? (__u32)ctx[3] : compat_task_state(prev));
	if (state != BPFPROF_STATE_dead && !matters)
		return 0;
	w = wait_state_of(prev);
	if (!w) {
		if (lacks_state(prev) && record_wanted_more())
			lose_wait(prev, state);
		return 0;
	}
	/* of a wait whose end was not seen */
	if (w->off_ns)
		lose_end(prev, w);
	leave_futex(prev, w);
	wait_note(prev, w, state, wait_switch_outs(prev), queued_ns(prev),
		  switch_ns(prev, (void *)ctx[2]), true);
	if (state != BPFPROF_STATE_dead)
		return 0;
	w->off_ns = 0;
	/* a state in the hash is deleted when its thread exits */
	if (bp_config.hash_states) {
		tid = prev->pid;
		bpf_map_delete_elem(&bp_wait_hash, &tid);
	}
	return 0;
}

/* ---- the wake ---- */

/* The waker, which is the current task, has ended a wait of a sleeper without a state. */
static __always_inline void lose_wake(void)
{
	struct task_facts task;

	task_facts(&task);
	if (record_wanted(&task) && is_chosen(BPFPROF_MUTEX, compat_current()))
		lose(BPFPROF_MUTEX, BPFPROF_LOST_no_state);
}

/* Has the task slept since it queued itself at a futex? */
static __always_inline bool has_slept(struct task_struct *task, const struct wait_task *w)
{
	return COMPAT_TASK(task, nvcsw) > w->sleeps;
}

/* A sleeper that may wait for a futex is woken. Inline: up to 6.12 all functions that are active
 * share 512 bytes of stack. */
static __always_inline void record_mutex(void *ctx, struct task_struct *sleeper)
{
	struct record_what what = { .kind = BPFPROF_MUTEX };
	struct wait_task *w = wait_state_of(sleeper);
	enum bpfprof_wake woken;
	struct futex wait;
	__u64 now, due_ns;
	bool peer;

	if (w &&
	    (!wait_ends_sleep(sleeper, w) || (bp_config.futex_probes && !has_slept(sleeper, w)))) {
		wait_note_early(w);
		return;
	}
	if (!w && (!lacks_state(sleeper) || compat_on_cpu(sleeper)))
		return;
	read_futex(sleeper, &wait);
	if (!wait.waits)
		return;
	now = bpf_ktime_get_ns();
	woken = woken_by(sleeper, &wait);
	peer = woken <= BPFPROF_WAKE_REQUEUE;
	if (!w) {
		if (peer)
			lose_wake();
		return;
	}
	wait_note_wake(w, woken, now);
	due_ns = charge(sleeper, w, w->wake_ns, peer);
	if (!peer || !is_chosen(BPFPROF_MUTEX, compat_current()))
		return;
	/* it is the wait itself that counts as long or short */
	if (!weigh_any(BPFPROF_MUTEX, slept_ns(w, waited_ns(w, w->wake_ns)), &w->waits[0]))
		return;
	w->waits[0].amount = (w->waits[0].units >> 8) * due_ns >> 8;
	w->waits[0].wait = BPFPROF_WAIT_PACK(wait.syscall, w->state, w->woken);
	w->waits[1].units = 0;
	what.waits = w->waits;
	record(ctx, &what, RECORD_USER_ONLY | RECORD_CACHED);
}

/* For the mutex profile. In the waker's context, which may be an interrupt. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(wait_waking, struct task_struct *sleeper)
{
	if (bp_control.waits_on && !bp_control.stop_ns && !is_other(sleeper) &&
	    may_be_futex(sleeper))
		record_mutex(ctx, sleeper);
	return 0;
}

/* ---- switch-in ---- */

/*
 * The switch-out was not published when the thread switched in. Returns whether it is now; else the
 * wait is counted as missed. One that came to its end before all were known is not: wait_begin
 * leaves out a thread that it finds on a CPU, and this program may be late there.
 */
static __noinline bool look_up(struct task_struct *task, struct wait_task *w, __s64 off)
{
	__u64 all_ns = bp_control.waits_all_ns;

	if (wait_look_up(task, w, off))
		return true;
	if (!all_ns || task->sched_info.last_arrival + off < all_ns || !record_wanted_more())
		return false;
	if (bp_config.record[BPFPROF_OFFCPU])
		lose(BPFPROF_OFFCPU, BPFPROF_LOST_missed);
	if (bp_config.record[BPFPROF_BLOCK] && may_be_futex(task) && is_chosen(BPFPROF_BLOCK, task))
		lose(BPFPROF_BLOCK, BPFPROF_LOST_missed);
	return false;
}

static __noinline int resumed_apart(void *ctx, struct task_struct *task, struct wait_task *w,
				    __u64 now)
{
	resumed_at(ctx, task, w, now);
	return 0;
}

/* task has switched in. */
static __always_inline void resumed(void *ctx, struct task_struct *task, struct sched_cpu *c)
{
	struct wait_task *w = wait_state_of(task);
	__u64 switch_outs = wait_switch_outs(task), now;

	/* it is new: the tracepoint is in schedule_tail, too */
	if (!w || !switch_outs)
		return;
	if (!wait_is_known(w, switch_outs) && !look_up(task, w, c->off))
		return;
	now = task->sched_info.last_arrival + c->off;
	if (!bp_config.record[BPFPROF_OFFCPU] || !was_short(w, now))
		resumed_apart(ctx, task, w, now);
}

/* After a switch to task. out: the predecessor may be watched, in: task may be. */
static __always_inline void switched(void *ctx, struct task_struct *task, struct sched_cpu *c,
				     bool out, bool in)
{
	struct wait_switch s = { .c = c, .rq = run_queue(task), .next = task };

	if (s.rq->clock - c->measured > SCHED_CLOCK_MEASURE_NS)
		measure_clock(c, s.rq->clock);
	if (out)
		wait_publish_prev(&s, &c->here);
	if (in)
		resumed(ctx, task, c);
}

static __always_inline void arrived(struct sched_cpu *c, struct task_struct *task)
{
	wait_arrive(&c->here, task, run_queue(task)->nr_switches, !is_other(task));
}

static __noinline int switched_apart(void *ctx, bool out, bool in)
{
	struct sched_cpu *c = sched_cpu();

	if (c)
		switched(ctx, bpf_get_current_task_btf(), c, out, in);
	return 0;
}

/*
 * In place of wait_switch and wait_resumed: see switch_in_only. Called for every pass of the
 * scheduler, the last thing that it does (6.15, 4ba7518327c6). What few threads need is in
 * functions of its own: the program is paid for by the cache lines of its code and stack.
 */
SEC("?tp_btf/sched_exit_tp")
int wait_switched(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sched_cpu *c = sched_cpu();
	bool out, in;

	/* is_switch */
	if (!(__u8)ctx[0] || !c)
		return 0;
	out = c->here.stack && stack_may_be_futex((void *)c->here.stack);
	in = !is_other(task) && stack_may_be_futex(task->stack);
	if ((out || in) && bp_control.waits_on)
		switched_apart(ctx, out, in);
	arrived(c, task);
	return 0;
}

/* The same for offcpu, to which every switch matters. */
SEC("?tp_btf/sched_exit_tp")
int wait_switched_any(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sched_cpu *c = sched_cpu();

	/* is_switch */
	if (!(__u8)ctx[0] || !c)
		return 0;
	if (bp_control.waits_on)
		switched(ctx, task, c, c->here.stack, !is_other(task));
	arrived(c, task);
	return 0;
}

/* The switch-in that belongs to wait_switch. Inline, see record_mutex. */
static __always_inline int resumed_own(void *ctx)
{
	struct task_struct *task = compat_current();
	struct wait_task *w;

	/* lose_end counts a wait whose end was not seen */
	if (!bp_control.waits_on || is_other(task) || is_no_matter(task))
		return 0;
	w = wait_state_of(task);
	if (w && w->off_ns)
		resumed_at(ctx, task, w, switch_ns(task, NULL));
	return 0;
}

/* Where both ends of a wait cannot be seen at switch-in: see switch_in_only. */
SEC("?tp_btf/sched_exit_tp")
int wait_resumed(__u64 *ctx)
{
	return (__u8)ctx[0] ? resumed_own(ctx) : 0;
}

/* finish_task_switch: the first thing that a thread does on its CPU again. */
SEC("?kprobe")
int wait_resumed_kprobe(struct pt_regs *ctx)
{
	return resumed_own(ctx);
}

/* ---- waits for a futex alone ---- */

/*
 * Where offcpu is not wanted, no switch needs to be looked at: a thread that waits for a futex
 * queues itself, in __futex_queue, and calls futex_unqueue once the wait is over, or
 * futex_unqueue_pi for a futex with priority inheritance (kernel/futex, 5.16). The thread that
 * waits calls all three, also if it has waited since before the run. For the mutex profile
 * wait_waking sees the waker, as elsewhere: the futex's own functions would not do, since locks
 * with priority inheritance have others.
 */
SEC("?fentry/__futex_queue")
int wait_queue(__u64 *ctx)
{
	struct task_struct *task = compat_current();
	struct wait_task *w;

	if (!bp_control.waits_on || is_other(task))
		return 0;
	w = wait_state_of(task);
	/* by 7.3 its creation may have been missed: see missed in session.c */
	if (!w && watchable(task))
		w = wait_state_make(task);
	if (!w) {
		if (lacks_state(task) && record_wanted_more() && is_chosen(BPFPROF_BLOCK, task))
			lose(BPFPROF_BLOCK, BPFPROF_LOST_no_state);
		return 0;
	}
	leave_futex(task, w);
	w->state = BPFPROF_STATE_sleeping;
	w->may_futex = true;
	w->early = false;
	w->queued_ns = queued_ns(task);
	w->sleeps = task->nvcsw;
	/* of its next switch-out, once it sleeps */
	wait_publish(w, wait_switch_outs(task) + 1);
	w->off_ns = bpf_ktime_get_ns();
	note_futex(task, w, w->off_ns);
	return 0;
}

static __always_inline int unqueued(__u64 *ctx)
{
	struct task_struct *task = compat_current();
	struct wait_task *w;

	if (!bp_control.waits_on || is_other(task))
		return 0;
	w = wait_state_of(task);
	if (!w || !w->off_ns)
		return 0;
	if (has_slept(task, w)) {
		resumed_at(ctx, task, w, bpf_ktime_get_ns());
	} else {
		leave_futex(task, w);
		w->off_ns = 0;
	}
	return 0;
}

SEC("?fentry/futex_unqueue")
int wait_unqueue(__u64 *ctx)
{
	return unqueued(ctx);
}

SEC("?fentry/futex_unqueue_pi")
int wait_unqueue_pi(__u64 *ctx)
{
	return unqueued(ctx);
}

/* ---- watched threads ---- */

/* Fills the record of task's CPU, which may not have switched yet since the programs are
 * attached. */
static __always_inline void note_running(struct task_struct *task)
{
	const struct rq *rq = run_queue(task);
	__u32 zero = 0, cpu = rq->cpu;
	struct sched_cpu *c = bpf_map_lookup_percpu_elem(&bp_sched_cpus, &zero, cpu);

	if (c && !c->here.switches)
		wait_arrive(&c->here, task, rq->nr_switches, !is_other(task));
}

/*
 * Makes the states of the threads that exist. Once waits are recorded, a wait that is under way is
 * given the start of the run for its beginning. If the thread switches in at the same moment, that
 * time is overwritten at its next switch-out, and not read before.
 */
SEC("?iter/task")
int wait_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	enum bpfprof_thread_state state;
	struct wait_task *w;

	if (!task)
		return 0;
	if (bp_config.rdonly_cast && !bp_state.regs_off)
		bp_state.regs_off = regs_offset(bpf_get_current_task_btf());
	if (!watchable(task))
		return 0;
	w = wait_state_make(task);
	if (bp_config.switch_in_only && bp_control.waits_on && compat_on_cpu(task))
		note_running(task);
	if (!bp_control.waits_on || (w && (w->switch_outs || w->off_ns)) || compat_on_cpu(task) ||
	    is_no_matter(task))
		return 0;
	state = task_state(task, false, compat_task_state(task));
	if (!w) {
		if (passes(task))
			lose_wait(task, state);
		return 0;
	}
	w->state = state;
	w->may_futex = may_be_futex(task);
	w->queued_ns = queued_ns(task);
	w->sleeps = task->nvcsw - 1;
	if (state != BPFPROF_STATE_dead) {
		w->off_ns = bp_control.start_ns;
		note_futex(task, w, bp_control.start_ns);
	}
	wait_publish(w, wait_switch_outs(task));
	return 0;
}

/* Threads of watched processes are watched, and children where they are followed. */
static __always_inline void watch_new(struct task_struct *task, bool thread)
{
	if (task->flags & unwanted_flags() || bp_config.filter_tid)
		return;
	if (!bp_config.filter_tgid ||
	    ((thread || bp_config.follow) && wait_state_of(compat_current())))
		wait_state_make(task);
}

SEC("?tp_btf/task_newtask")
int BPF_PROG(wait_newtask, struct task_struct *task, __u64 clone_flags)
{
	/* of a thread that had the address before, if it was not seen to be freed */
	if (bp_config.wait_slots)
		wait_slot_release(task);
	watch_new(task, clone_flags & CLONE_THREAD);
	return 0;
}

/* Once more, before the thread first runs: the kernel may have skipped wait_newtask, see missed in
 * session.c, but hardly both (and hardly wait_free, too, of a thread that had the address
 * before). */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(wait_fork, struct task_struct *parent, struct task_struct *task)
{
	watch_new(task, task->tgid == parent->tgid);
	return 0;
}

/* Where states are in a hash by thread id: of several threads the one that execs goes on under the number of
 * the first one, whose own state may be there yet. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(wait_exec, struct task_struct *task, pid_t old_tid)
{
	__u32 old = old_tid, tid = task->pid;

	if (old == tid || !bpf_map_lookup_elem(&bp_wait_hash, &old))
		return 0;
	bpf_map_delete_elem(&bp_wait_hash, &old);
	bpf_map_delete_elem(&bp_wait_hash, &tid);
	wait_state_make(task);
	return 0;
}

/* One RCU grace period after the thread's last switch-out. */
SEC("?tp_btf/sched_process_free")
int BPF_PROG(wait_free, struct task_struct *task)
{
	wait_slot_release(task);
	return 0;
}
