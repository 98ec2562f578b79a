/* SPDX-License-Identifier: BSD-2-Clause */
/* What waits are called: system calls as the C library numbers them, and which frames are hidden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/util.h"
#include "bpfprof.h"
#include "profile/profile.h"
#include "capture/waits.h"

static uint32_t wait_in(long syscall, enum bpfprof_thread_state state)
{
	return BPFPROF_WAIT_PACK(syscall, state, BPFPROF_WAKE_PEER);
}

static void syscalls_have_names(void **state)
{
	static const struct {
		long nr;
		const char *name;
	} rows[] = {
		{ SYS_read, "read" },
		{ SYS_futex, "futex" },
		{ SYS_clock_nanosleep, "clock_nanosleep" },
		{ SYS_epoll_wait, "epoll_wait" },
		{ SYS_wait4, "wait4" },
		{ SYS_pselect6, "pselect6" },
		{ SYS_io_uring_enter, "io_uring_enter" },
		{ 449, "futex_waitv" },
		{ 455, "futex_wait" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(waits_syscall(wait_in(rows[i].nr, BPFPROF_STATE_sleeping)),
				    rows[i].name);
	assert_null(waits_syscall(wait_in(BPFPROF_NO_SYSCALL, BPFPROF_STATE_sleeping)));
	assert_null(waits_syscall(wait_in(60000, BPFPROF_STATE_sleeping)));
	assert_null(waits_syscall(wait_in(BPFPROF_CALL32, BPFPROF_STATE_sleeping)));
	/* a hole in the numbers */
	assert_null(waits_syscall(wait_in(400, BPFPROF_STATE_sleeping)));
	/* the rest of the word does not matter */
	assert_string_equal(waits_syscall(0xffff0000U | SYS_read), "read");
}

static void reasons(void **state)
{
	static const struct {
		long nr;
		enum bpfprof_thread_state state;
		const char *reason;
	} rows[] = {
		{ SYS_futex, BPFPROF_STATE_sleeping, "futex" },
		{ 455, BPFPROF_STATE_sleeping, "futex" },
		{ 449, BPFPROF_STATE_sleeping, "futex" },
		{ SYS_nanosleep, BPFPROF_STATE_sleeping, "sleep" },
		{ SYS_clock_nanosleep, BPFPROF_STATE_sleeping, "sleep" },
		{ SYS_poll, BPFPROF_STATE_sleeping, "poll" },
		{ SYS_select, BPFPROF_STATE_sleeping, "poll" },
		{ SYS_epoll_pwait, BPFPROF_STATE_sleeping, "poll" },
		{ SYS_read, BPFPROF_STATE_sleeping, "io" },
		{ SYS_recvfrom, BPFPROF_STATE_sleeping, "io" },
		{ SYS_read, BPFPROF_STATE_io, "disk" },
		{ SYS_fsync, BPFPROF_STATE_disk_sleep, "disk" },
		{ SYS_wait4, BPFPROF_STATE_sleeping, "child" },
		{ SYS_clone, BPFPROF_STATE_disk_sleep, "child" },
		{ SYS_flock, BPFPROF_STATE_sleeping, "lock" },
		{ SYS_pause, BPFPROF_STATE_sleeping, "signal" },
		/* no part of another name */
		{ SYS_dup, BPFPROF_STATE_sleeping, "other" },
		{ SYS_mmap, BPFPROF_STATE_disk_sleep, "kernel" },
		{ 60000, BPFPROF_STATE_sleeping, "other" },
		/* whatever it was in when it was sent off its CPU */
		{ SYS_read, BPFPROF_STATE_runnable, "run queue" },
		{ BPFPROF_NO_SYSCALL, BPFPROF_STATE_running, "run queue" },
		{ SYS_read, BPFPROF_STATE_stopped, "stopped" },
		{ BPFPROF_NO_SYSCALL, BPFPROF_STATE_traced, "stopped" },
		{ BPFPROF_NO_SYSCALL, BPFPROF_STATE_io, "page fault" },
		{ BPFPROF_NO_SYSCALL, BPFPROF_STATE_disk_sleep, "page fault" },
		{ BPFPROF_OF_KERNEL, BPFPROF_STATE_disk_sleep, "kernel" },
		{ BPFPROF_OF_KERNEL, BPFPROF_STATE_sleeping, "kernel" },
		{ BPFPROF_OF_KERNEL, BPFPROF_STATE_io, "disk" },
		{ BPFPROF_EXITING, BPFPROF_STATE_sleeping, "kernel" },
		{ BPFPROF_EXITING, BPFPROF_STATE_io, "disk" },
		{ BPFPROF_EXITING, BPFPROF_STATE_runnable, "run queue" },
		{ BPFPROF_CALL32, BPFPROF_STATE_sleeping, "other" },
		{ BPFPROF_CALL32, BPFPROF_STATE_disk_sleep, "kernel" },
		{ BPFPROF_CALL32, BPFPROF_STATE_io, "disk" },
		{ BPFPROF_CALL32, BPFPROF_STATE_stopped, "stopped" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *got = waits_reason(wait_in(rows[i].nr, rows[i].state));

		if (strcmp(got, rows[i].reason))
			fail_msg("row %zu: '%s' instead of '%s'", i, got, rows[i].reason);
	}
}

static void what_threads_are_in(void **state)
{
	const long none = BPFPROF_NO_SYSCALL;

	(void)state;
	assert_string_equal(waits_in(wait_in(SYS_futex, BPFPROF_STATE_sleeping)), "futex");
	assert_string_equal(waits_in(wait_in(none, BPFPROF_STATE_running)), "user code");
	assert_string_equal(waits_in(wait_in(none, BPFPROF_STATE_runnable)), "user code");
	assert_string_equal(waits_in(wait_in(none, BPFPROF_STATE_stopped)), "user code");
	assert_string_equal(waits_in(wait_in(none, BPFPROF_STATE_io)), "page fault");
	assert_string_equal(waits_in(wait_in(BPFPROF_OF_KERNEL, BPFPROF_STATE_io)),
			    "kernel thread");
	assert_string_equal(waits_in(wait_in(BPFPROF_EXITING, BPFPROF_STATE_io)), "exit");
	assert_string_equal(waits_in(wait_in(BPFPROF_EXITING, BPFPROF_STATE_running)), "exit");
	assert_string_equal(waits_in(wait_in(60000, BPFPROF_STATE_sleeping)), "system call");
	assert_string_equal(waits_in(wait_in(BPFPROF_CALL32, BPFPROF_STATE_io)), "system call");
}

static void states_and_wakes(void **state)
{
	static const char *const wakes[] = { NULL, "requeue", "time-out", "signal", "not yet" };

	(void)state;
	assert_int_equal(ARRAY_SIZE(wakes), BPFPROF_NR_WAKES);
	for (int i = 0; i < BPFPROF_NR_WAKES; i++) {
		const char *got = waits_woken(BPFPROF_WAIT_PACK(0xffff, 0xff, i));

		if (wakes[i])
			assert_string_equal(got, wakes[i]);
		else
			assert_null(got);
	}
	assert_null(waits_woken(BPFPROF_WAIT_PACK(0, 0, BPFPROF_NR_WAKES)));
	assert_null(waits_woken(UINT32_MAX));
	assert_string_equal(waits_state(wait_in(0, BPFPROF_STATE_sleeping)), "sleeping");
	assert_string_equal(waits_state(wait_in(0xffff, BPFPROF_STATE_disk_sleep)), "disk sleep");
	assert_string_equal(waits_state(UINT32_MAX), "unknown");
	assert_non_null(waits_reason(UINT32_MAX));
	assert_non_null(waits_in(UINT32_MAX));
}

/* ---- hidden frames ---- */

#define KERNEL 0xffffffff81000000UL

/* Adds a stack of functions, leaf first, separated by blanks. Upper case: of the program. */
static void add_stack(struct profile *p, uint32_t kernel, uint32_t user, const char *text)
{
	static const int64_t value = 1;
	char copy[512], *rest = copy;
	uint32_t locs[32], n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *name; (name = strsep(&rest, " ")); n++) {
		bool own = *name >= 'A' && *name <= 'Z';
		struct profile_function f = { 0 };
		struct profile_line line;

		/* names may be the same on both sides */
		f.name = f.system_name = profile__string(p, own ? name + 1 : name);
		line = (struct profile_line){ .function = profile__add_function(p, &f) };
		locs[n] = profile__add_location(
			p, own ? user : kernel,
			(own ? 0x1000 : KERNEL) + util_hash(name, strlen(name), 0) % 0x100000);
		assert_int_equal(profile__set_lines(p, locs[n], &line, 1), 0);
	}
	assert_int_not_equal(profile__add_sample(p, locs, n, NULL, 0, &value), PROFILE_NONE);
}

static const char *stack_text(const struct profile *p, const struct profile_sample *s, char *buf,
			      size_t sz)
{
	size_t at = 0;

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		const struct profile_location *l = &p->locations[p->loc_ids[s->loc + i]];

		at += snprintf(
			buf + at, sz - at, "%s%s", i ? " " : "",
			strtab__get(p->strings, p->functions[p->lines[l->line].function].name));
	}
	return buf;
}

static void leaves_are_hidden(void **state)
{
	static const struct {
		const char *stack, *left;
	} rows[] = {
		/* as Linux 6.18 and 6.1 have them, by tracepoint and by kprobe */
		{ "bpf_prog_1234abcd_waits_resumed bpf_trace_run1 __bpf_trace_sched_exit_tp "
		  "__traceiter_sched_exit_tp __schedule schedule futex_do_wait __futex_wait "
		  "futex_wait do_futex __x64_sys_futex do_syscall_64 Xpthread_mutex_lock Xmain",
		  "futex_do_wait __futex_wait futex_wait do_futex __x64_sys_futex do_syscall_64 "
		  "pthread_mutex_lock main" },
		{ "kprobe_ftrace_handler finish_task_switch.isra.0 __schedule schedule "
		  "schedule_hrtimeout_range_clock do_epoll_wait Xepoll_wait",
		  "schedule_hrtimeout_range_clock do_epoll_wait epoll_wait" },
		{ "finish_task_switch __schedule schedule_timeout kauditd_thread",
		  "schedule_timeout kauditd_thread" },
		{ "__schedule schedule io_schedule folio_wait_bit_common Xread",
		  "io_schedule folio_wait_bit_common read" },
		{ "__schedule preempt_schedule_irq asm_sysvec_apic_timer_interrupt Xspin",
		  "asm_sysvec_apic_timer_interrupt spin" },
		{ "__schedule schedule pipe_read schedule vfs_read",
		  "pipe_read schedule vfs_read" },
		/* what begins like one of them and is none */
		{ "schedule_timeout do_poll", "schedule_timeout do_poll" },
		{ "__schedule_x y", "__schedule_x y" },
		{ "tracefs_open vfs_open", "tracefs_open vfs_open" },
		/* the program's own */
		{ "Xschedule Xbpf_prog_1 Xmain", "schedule bpf_prog_1 main" },
		{ "__schedule schedule Xschedule Xmain", "schedule main" },
		/* nothing else: it stays */
		{ "__schedule schedule", "__schedule schedule" },
	};
	struct profile_value_type type = { "events", "count" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct profile *p = profile__new(&type, 1, type, 1);
		struct profile_mapping km = { .start = 0xffff800000000000UL, .limit = UINT64_MAX };
		struct profile_mapping um = { .start = 0x1000, .limit = 0x200000 };
		char buf[512];

		assert_non_null(p);
		km.filename = profile__string(p, "[kernel.kallsyms]");
		um.filename = profile__string(p, "/bin/prog");
		add_stack(p, profile__add_mapping(p, &km), profile__add_mapping(p, &um),
			  rows[i].stack);
		waits_hide(p);
		assert_int_equal(p->sample_cnt, 1);
		assert_string_equal(stack_text(p, p->samples, buf, sizeof(buf)), rows[i].left);
		profile__free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syscalls_have_names), cmocka_unit_test(reasons),
		cmocka_unit_test(what_threads_are_in), cmocka_unit_test(states_and_wakes),
		cmocka_unit_test(leaves_are_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
