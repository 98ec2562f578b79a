// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Time that threads spend off a CPU: why (offcpu), waiting for another thread (block), and which
 * one ended that wait (mutex).
 *
 * Leaving the CPU notes the time and the state, in the scheduler and with nothing to allocate. Back
 * on the CPU, in its own context, is where a thread's stack can be read, and by then it is known
 * whether the wait was long enough to be worth it. How much of a wait the thread was ready, and
 * waited for a CPU, the scheduler has counted. Only the mutex profile looks at the wake, too, in
 * the context of who wakes: each program costs every context switch some 0.1 us. Where offcpu is
 * not wanted, leaving and coming back are not looked at if the kernel's futex code can be watched;
 * else, from 6.15 on, one program does for both.
 *
 * Only futex waits are synchronization, and of these only ones that slept: an uncontended lock does
 * not come here.
 *
 * A thread is watched if it has a state, made by the iterator when the run begins or when it is
 * created; all that the others cost is to look for one, and without offcpu not even that, unless
 * they are in a futex. Where only futexes are watched, that is where one which is missing is made.
 */
#include "common.bpf.h"
#include "futex.bpf.h"
#include "sched_cpu.bpf.h"
#include "wait_leave.bpf.h"
#include "wait_record.bpf.h"
#include "wait_state.bpf.h"
#include "wait_watch.bpf.h"

/* ---- leaving the CPU ---- */

/*
 * A thread leaves, and the end of its last wait was not seen: the kernel leaves a kprobe out where
 * another BPF program or a change of a map is going on on the CPU (bpf_prog_active in
 * trace_call_bpf), and it was preempted there. A wait that has the start of the run for its
 * beginning is not looked at: see wait_begin.
 */
static __noinline void lose_end(const struct wait_task *w)
{
	if (w->off_ns == bp_control.start_ns ||
	    (bp_control.stop_ns && w->off_ns >= bp_control.stop_ns) || !record_wanted_more())
		return;
	if (bp_config.record[BPFPROF_OFFCPU])
		lose(BPFPROF_OFFCPU, BPFPROF_LOST_missed);
	if (bp_config.record[BPFPROF_BLOCK] && w->state == BPFPROF_STATE_sleeping && w->may_futex)
		lose(BPFPROF_BLOCK, BPFPROF_LOST_missed);
}

/* In the context of the thread that leaves. */
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
	/* of one that ends there may be something left in the hash */
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
		lose_end(w);
	leave_futex(prev, w);
	note_leave(prev, w, state, leaves_of(prev), queued_ns(prev),
		   switch_ns(prev, (void *)ctx[2]), true);
	if (state != BPFPROF_STATE_dead)
		return 0;
	w->off_ns = 0;
	/* one in a hash is to go when its thread ends */
	if (bp_config.hash_states) {
		tid = prev->pid;
		bpf_map_delete_elem(&bp_wait_hash, &tid);
	}
	return 0;
}

/* ---- the wake ---- */

/* Who has just ended a wait that there is no state of is to be recorded. */
static __always_inline void lose_wake(void)
{
	struct task_facts task;

	task_facts(&task);
	if (record_wanted(&task))
		lose(BPFPROF_MUTEX, BPFPROF_LOST_no_state);
}

/* Since it queued itself at a futex. */
static __always_inline bool has_slept(struct task_struct *task, const struct wait_task *w)
{
	return COMPAT_TASK(task, nvcsw) > w->sleeps;
}

/* Who may wait for a futex is woken. Inline: up to 6.12 all functions that are active share 512
 * bytes of stack. */
static __always_inline void record_mutex(void *ctx, struct task_struct *sleeper)
{
	struct record_what what = { .kind = BPFPROF_MUTEX };
	struct wait_task *w = wait_state_of(sleeper);
	enum bpfprof_wake woken;
	struct futex wait;
	__u64 now, due_ns;
	bool peer;

	if (bp_config.one_sided && w && !compat_on_cpu(sleeper) && !is_told(w, leaves_of(sleeper)))
		find_leave_of_sleeper(sleeper, w);
	if (w ? !w->off_ns || w->wake_ns || w->state != BPFPROF_STATE_sleeping ||
			    (bp_config.futex_probes && !has_slept(sleeper, w)) :
		!lacks_state(sleeper) || compat_on_cpu(sleeper))
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
	w->wake_ns = now;
	w->woken = woken;
	due_ns = charge(sleeper, w, w->wake_ns, peer);
	/* it is the wait itself that counts as long or short */
	if (!peer || !weigh_any(BPFPROF_MUTEX, w->wake_ns - w->off_ns, &w->waits[0]))
		return;
	w->waits[0].amount = (w->waits[0].units >> 8) * due_ns >> 8;
	w->waits[0].wait = BPFPROF_WAIT_PACK(wait.syscall, w->state, w->woken);
	w->waits[1].units = 0;
	what.waits = w->waits;
	record(ctx, &what, RECORD_USER_ONLY | RECORD_MEMO);
}

/* For the mutex profile. In the context of who wakes, which may be an interrupt. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(wait_waking, struct task_struct *sleeper)
{
	if (bp_control.waits_on && !bp_control.stop_ns && !is_other(sleeper) &&
	    may_be_futex(sleeper))
		record_mutex(ctx, sleeper);
	return 0;
}

/* ---- back on the CPU ---- */

/* When its last wait began was not told. Returns whether it is by now, else it is lost: who
 * followed it may do so while it looks where it was. */
static __noinline bool find_begin(struct task_struct *task, struct wait_task *w, __s64 off)
{
	find_leave(task, w, off);
	if (is_told(w, leaves_of(task)) && w->off_ns)
		return true;
	leave_futex(task, w);
	w->off_ns = 0;
	if (bp_control.waits_on != BPFPROF_WAITS_ALL || !record_wanted_more())
		return false;
	if (bp_config.record[BPFPROF_OFFCPU])
		lose(BPFPROF_OFFCPU, BPFPROF_LOST_missed);
	if (bp_config.record[BPFPROF_BLOCK] && may_be_futex(task))
		lose(BPFPROF_BLOCK, BPFPROF_LOST_missed);
	return false;
}

static __noinline int resumed_apart(void *ctx, struct task_struct *task, struct wait_task *w,
				    __u64 now)
{
	resumed_at(ctx, task, w, now);
	return 0;
}

/* task has come. */
static __always_inline void resumed(void *ctx, struct task_struct *task, struct sched_cpu *c)
{
	struct wait_task *w = wait_state_of(task);
	__u64 leaves = leaves_of(task), now;

	/* it is new: the tracepoint is in schedule_tail, too */
	if (!w || !leaves)
		return;
	if ((!is_told(w, leaves) || !w->off_ns) && !find_begin(task, w, c->off))
		return;
	now = task->sched_info.last_arrival + c->off;
	if (!bp_config.record[BPFPROF_OFFCPU] || !was_short(w, now))
		resumed_apart(ctx, task, w, now);
}

/* Behind a switch: who has left, or who has come, matters. */
static __always_inline void switched(void *ctx, struct task_struct *task, struct sched_cpu *c,
				     bool left, bool came)
{
	const struct rq *rq = run_queue(task);

	if (rq->clock - c->measured > SCHED_CLOCK_MEASURE_NS)
		measure_clock(c, rq->clock);
	if (left)
		leave_for(c, rq, task);
	if (came)
		resumed(ctx, task, c);
}

static __noinline int switched_apart(void *ctx, bool left, bool came)
{
	struct sched_cpu *c = sched_cpu();

	if (c)
		switched(ctx, bpf_get_current_task_btf(), c, left, came);
	return 0;
}

/*
 * In place of wait_switch and wait_resumed: see one_sided. Called for every pass of the
 * scheduler, the last thing that it does (6.15, 4ba7518327c6). What few threads want is apart: the
 * program is paid for by the cache lines of its code and stack.
 */
SEC("?tp_btf/sched_exit_tp")
int wait_switched(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sched_cpu *c = sched_cpu();
	bool left, came;

	/* is_switch */
	if (!(__u8)ctx[0] || !c)
		return 0;
	left = c->here.stack && stack_may_be_futex((void *)c->here.stack);
	came = !is_other(task) && stack_may_be_futex(task->stack);
	if ((left || came) && bp_control.waits_on)
		switched_apart(ctx, left, came);
	note_here(c, task, run_queue(task)->nr_switches);
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
	note_here(c, task, run_queue(task)->nr_switches);
	return 0;
}

/* Behind wait_switch. Inline, see record_mutex. */
static __always_inline int resumed_own(void *ctx)
{
	struct task_struct *task = compat_current();
	struct wait_task *w;

	/* what is left of a wait whose end was not seen is for lose_end to count */
	if (!bp_control.waits_on || is_other(task) || is_no_matter(task))
		return 0;
	w = wait_state_of(task);
	if (w && w->off_ns)
		resumed_at(ctx, task, w, switch_ns(task, NULL));
	return 0;
}

/* Where a switch cannot be seen from one side: see one_sided. */
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
 * Where offcpu is not wanted, no switch needs to be looked at: each wait for a futex begins by
 * queueing itself, in __futex_queue, and once it is over goes through futex_unqueue, whoever has
 * ended it; those for one with priority inheritance through futex_unqueue_pi (kernel/futex, 5.16).
 * All three are entered by the thread that waits, also if it has waited since before the run. Who
 * wakes it for the mutex profile is told by wait_waking, as elsewhere: not by the futex's own
 * functions, since locks with priority inheritance have others.
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
		w = make_state(task);
	if (!w) {
		if (lacks_state(task) && record_wanted_more())
			lose(BPFPROF_BLOCK, BPFPROF_LOST_no_state);
		return 0;
	}
	leave_futex(task, w);
	w->state = BPFPROF_STATE_sleeping;
	w->may_futex = true;
	w->wake_ns = 0;
	w->woken = BPFPROF_WAKE_PEER;
	w->queued_ns = queued_ns(task);
	w->sleeps = task->nvcsw;
	/* once it sleeps */
	w->switches = leaves_of(task) + 1;
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

/* ---- who is watched ---- */

/* Its CPU may not have switched since it is watched. */
static __always_inline void note_running(struct task_struct *task)
{
	const struct rq *rq = run_queue(task);
	__u32 zero = 0, cpu = rq->cpu;
	struct sched_cpu *c = bpf_map_lookup_percpu_elem(&bp_sched_cpus, &zero, cpu);

	if (c && !c->here.switches)
		note_here(c, task, rq->nr_switches);
}

/*
 * Makes the states of the threads there are; once waits are recorded, those that wait already are
 * given the start of the run for the beginning of their wait. If one of them goes on at the same
 * moment, the time that it is given stands for nothing: it is set anew when the thread leaves its
 * CPU, and not looked at before that.
 */
SEC("?iter/task")
int wait_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	enum bpfprof_thread_state state;
	struct wait_task *w;

	if (!task)
		return 0;
	if (bp_config.rdonly_cast && !bp_control.regs_off)
		bp_control.regs_off = regs_offset(bpf_get_current_task_btf());
	if (!watchable(task))
		return 0;
	w = make_state(task);
	if (bp_config.one_sided && bp_control.waits_on && compat_on_cpu(task))
		note_running(task);
	if (!bp_control.waits_on || (w && (w->switches || w->off_ns)) || compat_on_cpu(task) ||
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
	tell(w, leaves_of(task));
	return 0;
}

/* Threads of watched processes are watched, and children where they are followed. */
static __always_inline void watch_new(struct task_struct *task, bool thread)
{
	if (task->flags & COMPAT_PF_WORKER || bp_config.filter_tid)
		return;
	if (!bp_config.filter_tgid ||
	    ((thread || bp_config.follow) && wait_state_of(compat_current())))
		make_state(task);
}

SEC("?tp_btf/task_newtask")
int BPF_PROG(wait_newtask, struct task_struct *task, __u64 clone_flags)
{
	/* of one that had the address before, if it was not seen to be freed */
	if (bp_config.wait_places)
		leave_place(task);
	watch_new(task, clone_flags & CLONE_THREAD);
	return 0;
}

/* Once more, before it first runs: the kernel may have left the former out, see missed in
 * session.c, but hardly both (and hardly wait_free, too, of one that had the address before). */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(wait_fork, struct task_struct *parent, struct task_struct *task)
{
	watch_new(task, task->tgid == parent->tgid);
	return 0;
}

/* Behind its last switch. */
SEC("?tp_btf/sched_process_free")
int BPF_PROG(wait_free, struct task_struct *task)
{
	leave_place(task);
	return 0;
}
