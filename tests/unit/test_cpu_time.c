// SPDX-License-Identifier: BSD-2-Clause
/* The CPU time of real processes, as they work, end, and are reaped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "cpu_time.h"
#include "target/procs.h"

#define MS 1000000ULL
#define WORK_NS (200 * MS)
#define NEAR_NS (60 * MS) /* our own work, and ticks of what is reaped */
#define REAPED_US 1100000 /* in which somebody would have reaped it */

static struct procs *ps;
static struct cpu_time *c;

static void start(bool follow)
{
	ps = procs__new("/proc");
	c = ps ? cpu_time__new(ps, false, follow) : NULL;
	assert_non_null(c);
}

static void finish(void)
{
	cpu_time__free(c);
	procs__free(ps);
}

static uint32_t watch(pid_t pid)
{
	uint32_t ret = procs__add(ps, pid, 0, 0, "test", false, util_monotonic_ns());

	assert_int_not_equal(ret, PROCS_NONE);
	return ret;
}

static void work(uint64_t ns)
{
	struct timespec ts;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	while (ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec < ns);
}

/* A child that works once it is told to, says so, and is there until its pipe is closed. */
struct child {
	pid_t pid;
	int to, from;
};

static struct child begin(void)
{
	int to[2], from[2];
	struct child ret;
	char byte = 0;

	assert_int_equal(pipe(to) | pipe(from), 0);
	ret.pid = fork();
	assert_true(ret.pid >= 0);
	if (!ret.pid) {
		close(to[1]);
		if (read(to[0], &byte, 1) == 1) {
			work(WORK_NS);
			(void)!write(from[1], &byte, 1);
			(void)!read(to[0], &byte, 1);
		}
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	ret.to = to[1];
	ret.from = from[0];
	return ret;
}

static void let_work(const struct child *child)
{
	char byte = 0;

	assert_int_equal(write(child->to, &byte, 1), 1);
	assert_int_equal(read(child->from, &byte, 1), 1);
}

/* It has ended, and nobody has waited for it. */
static void end(const struct child *child)
{
	siginfo_t info;

	close(child->to);
	close(child->from);
	assert_int_equal(waitid(P_PID, child->pid, &info, WEXITED | WNOWAIT), 0);
}

static void about(uint64_t ns, uint64_t truth)
{
	if (ns + 10 * MS < truth || ns > truth + NEAR_NS)
		fail_msg("%.1f ms, truth %.1f", ns / 1e6, truth / 1e6);
}

/* A child that is watched counts once: while it lives, as a zombie, and with its parent. */
static void test_once(void **state)
{
	struct child child = begin();
	uint64_t base;
	uint32_t idx;

	(void)state;
	start(true);
	watch(getpid());
	idx = watch(child.pid);
	base = cpu_time__ns(c);
	let_work(&child);
	about(cpu_time__ns(c) - base, WORK_NS);
	end(&child);
	procs__end(ps, idx);
	about(cpu_time__ns(c) - base, WORK_NS);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	about(cpu_time__ns(c) - base, WORK_NS);
	usleep(REAPED_US);
	about(cpu_time__ns(c) - base, WORK_NS);
	finish();
}

/* One whose parent is not watched is kept, too. */
static void test_kept(void **state)
{
	(void)state;
	for (int follow = 0; follow < 2; follow++) {
		struct child child = begin();
		uint64_t base;
		uint32_t idx;

		start(follow);
		idx = watch(child.pid);
		base = cpu_time__ns(c);
		let_work(&child);
		end(&child);
		/* its clock can still be read */
		about(cpu_time__ns(c) - base, WORK_NS);
		procs__end(ps, idx);
		about(cpu_time__ns(c) - base, WORK_NS);
		usleep(REAPED_US);
		about(cpu_time__ns(c) - base, WORK_NS);
		assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
		/* what comes behind it counts */
		child = begin();
		watch(child.pid);
		let_work(&child);
		about(cpu_time__ns(c) - base, 2 * WORK_NS);
		end(&child);
		assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
		finish();
	}
}

/* One that nobody has seen is in what its parent has reaped, where children are followed. */
static void test_unseen(void **state)
{
	(void)state;
	for (int follow = 0; follow < 2; follow++) {
		struct child child;
		uint64_t base;

		start(follow);
		watch(getpid());
		base = cpu_time__ns(c);
		child = begin();
		let_work(&child);
		end(&child);
		assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
		usleep(REAPED_US);
		about(cpu_time__ns(c) - base, follow ? WORK_NS : 0);
		finish();
	}
}

static void test_recent(void **state)
{
	uint64_t then;

	(void)state;
	start(false);
	watch(getpid());
	then = cpu_time__ns(c);
	usleep(2000);
	assert_true(cpu_time__recent_ns(c) > then);
	/* unless a ms passes between the two, which may be once, not always */
	for (int i = 0; i < 100; i++) {
		then = cpu_time__ns(c);
		if (cpu_time__recent_ns(c) == then)
			break;
		assert_true(i < 99);
	}
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_recent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
