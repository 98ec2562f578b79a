// SPDX-License-Identifier: BSD-2-Clause
/* What a wait is called, and which frames of it say nothing. */
#include <linux/types.h>

#include "capture/waits.h"

#include <asm/unistd.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bpfprof.h"
#include "profile/profile.h"

/* Made by scripts/gen-syscalls of the headers that it is compiled with; what these do not know yet
 * and we have to is added. */
static const char *const syscall_names[] = {
#include "syscalls.h"
#ifndef __NR_futex_waitv /* 5.16, bf69bad38cf6 */
	[449] = "futex_waitv",
#endif
#ifndef __NR_futex_wake /* 6.7, 9f6c532f59b2, cb8c4312afca, 0f4b5f972216 */
	[454] = "futex_wake",
	[455] = "futex_wait",
	[456] = "futex_requeue",
#endif
};

/* System calls whose wait has a reason of its own, by name: numbers differ between machines. */
static const struct {
	const char *reason, *syscalls; /* each with a blank on either side */
} reasons[] = {
	{ "futex", " futex futex_wait futex_waitv futex_wake futex_requeue " },
	{ "sleep", " nanosleep clock_nanosleep " },
	{ "poll",
	  " poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 epoll_wait_old " },
	{ "child", " wait4 waitid vfork clone clone3 " }, /* clone: with CLONE_VFORK */
	{ "signal", " pause rt_sigsuspend rt_sigtimedwait " },
	{ "lock", " flock fcntl semop semtimedop " },
	{ "disk", " fsync fdatasync sync syncfs msync sync_file_range " },
	{ "io",
	  " read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 sendfile "
	  "splice "
	  "tee vmsplice copy_file_range recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg accept "
	  "accept4 connect io_uring_enter io_getevents io_pgetevents io_submit open openat openat2 "
	  "close ioctl msgrcv msgsnd mq_timedsend mq_timedreceive getdents getdents64 getrandom " },
};

static const char *const states[] = {
#define STATE_TEXT(name, text) text,
	BPFPROF_THREAD_STATES(STATE_TEXT)
};

const char *waits_syscall(uint32_t wait)
{
	uint32_t nr = BPFPROF_WAIT_SYSCALL(wait);

	return nr < ARRAY_SIZE(syscall_names) ? syscall_names[nr] : NULL;
}

static const char *syscall_reason(uint32_t wait)
{
	const char *name = waits_syscall(wait), *at;

	for (size_t i = 0; name && i < ARRAY_SIZE(reasons); i++) {
		at = reasons[i].syscalls;
		while ((at = strstr(at + 1, name)))
			if (at[-1] == ' ' && at[strlen(name)] == ' ')
				return reasons[i].reason;
	}
	/* a thread that cannot be interrupted waits for the kernel itself */
	return BPFPROF_WAIT_STATE(wait) == BPFPROF_STATE_disk_sleep ? "kernel" : "other";
}

/* In none of a program's: neither in its code nor in one of its system calls. */
static bool of_kernel(uint32_t wait)
{
	return BPFPROF_WAIT_SYSCALL(wait) == BPFPROF_OF_KERNEL ||
	       BPFPROF_WAIT_SYSCALL(wait) == BPFPROF_EXITING;
}

const char *waits_reason(uint32_t wait)
{
	bool in_syscall = BPFPROF_WAIT_IN_SYSCALL(wait), kernel = of_kernel(wait);

	switch (BPFPROF_WAIT_STATE(wait)) {
	case BPFPROF_STATE_running:
	case BPFPROF_STATE_runnable:
		return "run queue";
	case BPFPROF_STATE_stopped:
	case BPFPROF_STATE_traced:
		return "stopped";
	case BPFPROF_STATE_io:
		return in_syscall || kernel ? "disk" : "page fault";
	case BPFPROF_STATE_dead:
		return "kernel";
	default:
		if (in_syscall)
			return syscall_reason(wait);
		return kernel ? "kernel" : "page fault";
	}
}

const char *waits_in(uint32_t wait)
{
	const char *name = waits_syscall(wait);

	if (name)
		return name;
	if (BPFPROF_WAIT_SYSCALL(wait) == BPFPROF_OF_KERNEL)
		return "kernel thread";
	if (BPFPROF_WAIT_SYSCALL(wait) == BPFPROF_EXITING)
		return "exit";
	if (BPFPROF_WAIT_IN_SYSCALL(wait))
		return "system call";
	switch (BPFPROF_WAIT_STATE(wait)) {
	case BPFPROF_STATE_sleeping:
	case BPFPROF_STATE_disk_sleep:
	case BPFPROF_STATE_io:
		return "page fault";
	default:
		return "user code";
	}
}

const char *waits_woken(uint32_t wait)
{
	static const char *const texts[BPFPROF_NR_WAKES] = {
		[BPFPROF_WAKE_REQUEUE] = "requeue",
		[BPFPROF_WAKE_TIMEOUT] = "time-out",
		[BPFPROF_WAKE_SIGNAL] = "signal",
		[BPFPROF_WAKE_NOT_YET] = "not yet",
	};
	uint32_t wake = BPFPROF_WAIT_WAKE(wait);

	return wake < BPFPROF_NR_WAKES ? texts[wake] : NULL;
}

const char *waits_state(uint32_t wait)
{
	uint32_t state = BPFPROF_WAIT_STATE(wait);

	return state < BPFPROF_NR_STATES ? states[state] : "unknown";
}

/* ---- frames that every wait has ---- */

/* Kernel functions that lead to the record, not to the wait. '*' at the end: any that begins so. */
static const char *const hidden_names[] = {
	/* the program, and what calls it: tracepoint, kprobe, fprobe, trampoline */
	"bpf_prog_*",
	"bpf_trampoline_*",
	"bpf_trace_run*",
	"__bpf_prog_*",
	"__bpf_trace_*",
	"__traceiter_*",
	"trace_*",
	"__trace_*",
	"perf_trace_*",
	"trampoline_*",
	"kprobe_*",
	"kretprobe_*",
	"__kretprobe_*",
	"arch_rethook_*",
	"rethook_*",
	"ftrace_*",
	"fprobe_*",
	"optimized_callback",
	"opt_pre_handler",
	"aggr_pre_handler",
	"bpf_get_stack*",
	"bpf_get_task_stack*",
	"exc_int3",
	"asm_exc_int3",
	"do_int3",
	"exc_debug*",
	"asm_exc_debug",
	/* the scheduler */
	"finish_task_switch*",
	"context_switch",
	"__switch_to*",
	"prepare_task_switch",
	"__schedule",
	"__schedule_loop",
	"schedule",
	"preempt_schedule*",
	"__cond_resched",
	"schedule_preempt_disabled",
	"schedule_idle",
};

static bool is_hidden_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(hidden_names); i++) {
		const char *h = hidden_names[i];
		size_t len = strcspn(h, "*");

		if (!strncmp(h, name, len) && (h[len] || !name[len]))
			return true;
	}
	return false;
}

/* Is the location of the kernel, and every function in it one that says nothing? */
static bool is_hidden(const struct profile *p, const struct profile_location *l)
{
	/* the kernel's half of the addresses: the program may have a schedule() of its own */
	if (l->mapping == PROFILE_NONE || !(l->address >> 63))
		return false;
	for (uint32_t i = 0; i < l->line_cnt; i++) {
		const struct profile_function *f = &p->functions[p->lines[l->line + i].function];

		if (!is_hidden_name(strtab__get(p->strings, f->system_name)))
			return false;
	}
	return l->line_cnt > 0;
}

void waits_hide(struct profile *p)
{
	profile__hide_leaves(p, is_hidden);
}
