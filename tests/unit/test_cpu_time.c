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
#include "heap/cpu_time.h"
#include "target/procs.h"

#define MS 1000000ULL
#define WORK_NS (50 * MS)
/* what is reaped is known in whole ticks, of user and of system time */
#define TICKS_NS (20 * MS)
#define REAPED_NS (1100 * MS) /* in which somebody would have reaped it */

/* The clock stands still, but for where a test moves it. */
static uint64_t clock_ns = NSEC_PER_SEC;

uint64_t __wrap_util_monotonic_ns(void);
uint64_t __wrap_util_monotonic_ns(void)
{
	return clock_ns;
}

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
	uint32_t ret = procs__add(ps, pid, 0, 0, "test", false, clock_ns);

	assert_int_not_equal(ret, PROCS_NONE);
	return ret;
}

/* CPU time of a process, by its own clock. */
static uint64_t cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ts), 0);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* A child that works until it has had WORK_NS once it is told to, says so, and is there until its
 * pipe is closed. */
struct child {
	pid_t pid;
	int to, from;
	uint64_t whole_ns; /* CPU time, once it has ended */
};

static struct child begin(void)
{
	int to[2], from[2];
	struct child ret = { 0 };
	char byte = 0;

	assert_int_equal(pipe(to) | pipe(from), 0);
	ret.pid = fork();
	assert_true(ret.pid >= 0);
	if (!ret.pid) {
		close(to[1]);
		if (read(to[0], &byte, 1) == 1) {
			while (cpu_ns(0) < WORK_NS)
				;
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
static void end(struct child *child)
{
	siginfo_t info;

	close(child->to);
	close(child->from);
	assert_int_equal(waitid(P_PID, child->pid, &info, WEXITED | WNOWAIT), 0);
	child->whole_ns = cpu_ns(child->pid);
}

/* What was there at first, and the least and the most that has come since from children that are no
 * longer looked at. */
struct truth {
	uint64_t base_ns, own_ns, low_ns, high_ns;
};

/* Of the child is there what it had by then. */
static struct truth begin_with(const struct child *child)
{
	struct truth ret = { .own_ns = cpu_ns(0), .base_ns = cpu_time__ns(c) };

	/* it works for less then: until it has had WORK_NS */
	ret.low_ns = child ? -cpu_ns(child->pid) : 0;
	return ret;
}

/* child: one that has worked; NULL: none that counts. watched: our own work counts, too. */
static void check(const struct truth *truth, const struct child *child, bool watched)
{
	uint64_t ns = cpu_time__ns(c) - truth->base_ns;
	uint64_t low = truth->low_ns + (child ? WORK_NS : 0), high = truth->high_ns;

	if (child)
		high += child->whole_ns ? child->whole_ns : cpu_ns(child->pid);
	if (watched)
		high += cpu_ns(0) - truth->own_ns;
	if (ns + TICKS_NS < low || ns > high + TICKS_NS)
		fail_msg("%.1f ms, truth %.1f to %.1f", ns / 1e6, low / 1e6, high / 1e6);
}

/* A child that is watched counts once: while it lives, as a zombie, and with its parent. */
static void test_once(void **state)
{
	struct child child = begin();
	struct truth truth;
	uint32_t idx;

	(void)state;
	start(true);
	watch(getpid());
	idx = watch(child.pid);
	truth = begin_with(&child);
	let_work(&child);
	check(&truth, &child, true);
	end(&child);
	procs__end(ps, idx);
	check(&truth, &child, true);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	check(&truth, &child, true);
	clock_ns += REAPED_NS;
	check(&truth, &child, true);
	finish();
}

/* One whose parent is not watched is kept, too. */
static void test_kept(void **state)
{
	(void)state;
	for (int follow = 0; follow < 2; follow++) {
		struct child child = begin(), other;
		struct truth truth;
		uint32_t idx;

		start(follow);
		idx = watch(child.pid);
		truth = begin_with(&child);
		let_work(&child);
		end(&child);
		/* its clock can still be read */
		check(&truth, &child, false);
		procs__end(ps, idx);
		check(&truth, &child, false);
		clock_ns += REAPED_NS;
		check(&truth, &child, false);
		assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
		/* what comes behind it counts */
		truth.low_ns += WORK_NS;
		truth.high_ns += child.whole_ns;
		other = begin();
		watch(other.pid);
		let_work(&other);
		check(&truth, &other, false);
		end(&other);
		assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
		finish();
	}
}

/* One that nobody has seen is in what its parent has reaped, where children are followed. */
static void test_unseen(void **state)
{
	(void)state;
	for (int follow = 0; follow < 2; follow++) {
		struct truth truth;
		struct child child;

		start(follow);
		watch(getpid());
		truth = begin_with(NULL);
		child = begin();
		let_work(&child);
		end(&child);
		assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
		clock_ns += REAPED_NS;
		check(&truth, follow ? &child : NULL, true);
		finish();
	}
}

static bool is_counted(void *ctx, uint32_t proc)
{
	return *(uint32_t *)ctx == proc;
}

/* One of several counts, from when it does to when it does not any more. */
static void test_of_some(void **state)
{
	struct child child = begin(), other = begin();
	uint32_t counted = PROCS_NONE, idx, other_idx;
	uint64_t before, has, now;

	(void)state;
	ps = procs__new("/proc");
	c = ps ? cpu_time__new_of(ps, is_counted, &counted) : NULL;
	assert_non_null(c);
	idx = watch(child.pid);
	other_idx = watch(other.pid);
	let_work(&other);
	assert_int_equal(cpu_time__ns(c), 0);
	/* what it had before does not count */
	counted = other_idx;
	assert_int_equal(cpu_time__ns(c), 0);
	counted = idx;
	assert_int_equal(cpu_time__ns(c), 0);
	before = cpu_ns(child.pid);
	let_work(&child);
	now = cpu_time__ns(c);
	has = cpu_ns(child.pid);
	/* it waits: its clock stands still, but for a moment at either end */
	assert_true(now + MS >= has - before && now <= has);
	counted = PROCS_NONE;
	assert_int_equal(cpu_time__ns(c), now);
	/* nor what it has while it does not count */
	counted = idx;
	assert_int_equal(cpu_time__ns(c), now);
	/* the other one has inherited what keeps the child */
	end(&other);
	end(&child);
	procs__end(ps, idx);
	assert_int_equal(cpu_time__ns(c), now);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
	finish();
}

static void test_recent(void **state)
{
	uint64_t then;

	(void)state;
	start(false);
	watch(getpid());
	then = cpu_time__ns(c);
	assert_int_equal(cpu_time__recent_ns(c), then);
	clock_ns += MS - 1;
	assert_int_equal(cpu_time__recent_ns(c), then);
	clock_ns += 1;
	assert_true(cpu_time__recent_ns(c) > then);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),   cmocka_unit_test(test_kept),
		cmocka_unit_test(test_unseen), cmocka_unit_test(test_of_some),
		cmocka_unit_test(test_recent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
