// SPDX-License-Identifier: BSD-2-Clause
/* Process events: what we do and what our children do is told, once, in the order of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/events.h"
#include "toolrun.h"

#define PAGES 64
#define MAX_EVENTS 4096

static struct events *events;
static uint32_t gone[1024]; /* by CPU */

/* What was read so far, with the paths. */
static struct event all[MAX_EVENTS];
static char paths[MAX_EVENTS][256];
static size_t cnt;

static int setup(void **state)
{
	int err;

	(void)state;
	cnt = 0;
	events = events__new(PAGES);
	if (!events)
		return 1;
	err = events__sync_cpus(events, gone);
	if (!err)
		return 0;
	print_message("no process events: %s\n", strerror(-err));
	events__free(events);
	events = NULL;
	return err == -EPERM || err == -EACCES ? 0 : 1;
}

static int teardown(void **state)
{
	(void)state;
	events__free(events);
	events = NULL;
	return 0;
}

#define NEED_EVENTS()           \
	do {                    \
		if (!events)    \
			skip(); \
	} while (0)

/* Reads what there is; other programs of the machine are heard as well. */
static void read_all(void)
{
	const struct event *ev;
	size_t n;

	assert_int_equal(events__read(events, UINT64_MAX, &ev, &n), 0);
	for (size_t i = 0; i < n; i++) {
		/* in order within a reading; another CPU may have been late for the one before */
		assert_true(!i || ev[i - 1].time_ns <= ev[i].time_ns);
		if (cnt == MAX_EVENTS)
			continue;
		all[cnt] = ev[i];
		if (ev[i].type == EVENT_MMAP) {
			assert_non_null(ev[i].path);
			snprintf(paths[cnt], sizeof(paths[cnt]), "%s", ev[i].path);
		}
		cnt++;
	}
}

/* The index of the next event of this type and process from `from` on; the test fails without it.
 */
static size_t find(enum event_type type, uint32_t pid, size_t from)
{
	for (size_t i = from; i < cnt; i++)
		if (all[i].type == type && all[i].pid == pid)
			return i;
	fail_msg("no event %d of process %u among %zu", type, pid, cnt - from);
	return 0;
}

static void test_life_of_a_child(void **state)
{
	uint64_t before = util_monotonic_ns(), after;
	size_t fork_at, exec_at, map_at, exit_at;
	bool program = false;
	pid_t pid;

	(void)state;
	NEED_EVENTS();
	pid = fork();
	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	after = util_monotonic_ns();
	read_all();
	fork_at = find(EVENT_FORK, pid, 0);
	exec_at = find(EVENT_EXEC, pid, fork_at);
	map_at = find(EVENT_MMAP, pid, exec_at);
	exit_at = find(EVENT_EXIT, pid, map_at);
	assert_int_equal(all[fork_at].ppid, getpid());
	assert_int_equal(all[fork_at].tid, pid);
	assert_string_equal(all[exec_at].comm, "true");
	assert_int_equal(all[exit_at].tid, pid);
	assert_true(all[fork_at].time_ns >= before && all[exit_at].time_ns <= after);
	for (size_t i = map_at; i < exit_at; i++) {
		if (all[i].type != EVENT_MMAP || all[i].pid != (uint32_t)pid)
			continue;
		assert_true(all[i].len > 0 && all[i].addr + all[i].len > all[i].addr);
		program |= strstr(paths[i], "/true") != NULL;
		/* something tells the file apart, if it is one */
		if (paths[i][0] == '/' && paths[i][1] != '/')
			assert_true(all[i].build_id_sz > 0 || all[i].ino);
	}
	assert_true(program);
}

static void test_own_mapping(void **state)
{
	char path[] = "/proc/self/exe", real[256] = "";
	struct stat st;
	uint64_t offset = 0;
	size_t at;
	void *mem;
	int fd;

	(void)state;
	NEED_EVENTS();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && readlink(path, real, sizeof(real) - 1) > 0);
	assert_int_equal(fstat(fd, &st), 0);
	offset = (st.st_size - 1) / 4096 * 4096;
	/* data is not told of, code is */
	mem = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	munmap(mem, 4096);
	mem = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);
	assert_ptr_not_equal(mem, MAP_FAILED);
	read_all();
	at = find(EVENT_MMAP, getpid(), 0);
	assert_int_equal(all[at].addr, (uintptr_t)mem);
	assert_int_equal(all[at].len, 4096);
	assert_int_equal(all[at].pgoff, offset);
	assert_string_equal(paths[at], real);
	if (!all[at].build_id_sz) {
		assert_int_equal(all[at].ino, st.st_ino);
		assert_int_equal(all[at].maj, major(st.st_dev));
		assert_int_equal(all[at].min, minor(st.st_dev));
	}
	munmap(mem, 4096);
	close(fd);
	/* once */
	cnt = 0;
	read_all();
	for (size_t i = 0; i < cnt; i++)
		assert_false(all[i].type == EVENT_MMAP && all[i].pid == (uint32_t)getpid());
}

/* As a JIT compiler does: memory that is filled first and made executable then. */
static void test_made_executable(void **state)
{
	void *mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at;

	(void)state;
	NEED_EVENTS();
	assert_int_equal(mprotect(mem, 4096, PROT_READ | PROT_EXEC), 0);
	read_all();
	at = find(EVENT_MMAP, getpid(), 0);
	assert_int_equal(all[at].addr, (uintptr_t)mem);
	assert_string_equal(paths[at], "//anon");
	assert_int_equal(all[at].ino, 0);
	assert_int_equal(all[at].build_id_sz, 0);
	munmap(mem, 8192);
}

/* Names that a file may have, and that end up in front of people. */
static void test_odd_path(void **state)
{
	size_t at;
	void *mem;
	int fd;

	(void)state;
	NEED_EVENTS();
	toolrun_write("a b\nc", "x", 1);
	fd = open(toolrun_path("a b\nc"), O_RDONLY);
	mem = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	if (mem == MAP_FAILED) {
		print_message("the folder for temporary files is mounted noexec\n");
		skip();
	}
	read_all();
	at = find(EVENT_MMAP, getpid(), 0);
	assert_int_equal(all[at].addr, (uintptr_t)mem);
	assert_non_null(strstr(paths[at], "/a b"));
	munmap(mem, 4096);
}

static void *thread_main(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "named\n)thread");
	return (void *)(uintptr_t)gettid();
}

static void test_thread(void **state)
{
	size_t fork_at, comm_at, exit_at;
	pthread_t thread;
	char path[64];
	void *tid;

	(void)state;
	NEED_EVENTS();
	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	assert_int_equal(pthread_join(thread, &tid), 0);
	/* joined is not yet gone */
	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)(uintptr_t)tid);
	while (!access(path, F_OK))
		sched_yield();
	read_all();
	fork_at = find(EVENT_FORK, getpid(), 0);
	comm_at = find(EVENT_COMM, getpid(), fork_at);
	exit_at = find(EVENT_EXIT, getpid(), comm_at);
	assert_int_equal(all[fork_at].ppid, getpid());
	assert_int_equal(all[fork_at].tid, (uintptr_t)tid);
	assert_int_equal(all[comm_at].tid, (uintptr_t)tid);
	assert_string_equal(all[comm_at].comm, "named\n)thread");
	assert_int_equal(all[exit_at].tid, (uintptr_t)tid);
}

static size_t own(const struct event *ev, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += ev[i].type == EVENT_COMM && ev[i].pid == (uint32_t)getpid();
	return sum;
}

/* More than a ring holds: that something is missing is told, and reading goes on afterwards. */
static void test_lost(void **state)
{
	cpu_set_t before, one;
	struct events *small;
	const struct event *ev;
	size_t n, lost = 0;
	struct pollfd p;

	(void)state;
	NEED_EVENTS();
	/* on one CPU, and so in one ring */
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	small = events__new(1);
	assert_non_null(small);
	assert_int_equal(events__sync_cpus(small, gone), 0);
	for (int i = 0; i < 400; i++)
		prctl(PR_SET_NAME, i % 2 ? "one" : "two");
	p = (struct pollfd){ .fd = events__fd(small), .events = POLLIN };
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_int_equal(events__read(small, UINT64_MAX, &ev, &n), 0);
	assert_true(own(ev, n) > 10 && own(ev, n) < 400);
	/* the record of the loss is written before the next event that fits */
	prctl(PR_SET_NAME, "three");
	assert_int_equal(events__read(small, UINT64_MAX, &ev, &n), 0);
	for (size_t i = 0; i < n; i++)
		lost += ev[i].type == EVENT_LOST;
	assert_true(lost > 0);
	assert_true(own(ev, n) > 0);
	events__free(small);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* What is asked for up to a time comes then, and the rest with the next call: nothing twice. */
static void test_until(void **state)
{
	char name[16], want[16];
	const struct event *ev;
	uint64_t until, last = 0;
	size_t n, next = 0;

	(void)state;
	NEED_EVENTS();
	for (int i = 0; i < 60; i++) {
		until = util_monotonic_ns();
		snprintf(name, sizeof(name), "name-%d", i);
		prctl(PR_SET_NAME, name);
		if (i % 3 == 1)
			continue;
		assert_int_equal(events__read(events, i < 59 ? until : UINT64_MAX, &ev, &n), 0);
		for (size_t j = 0; j < n; j++) {
			assert_true(i == 59 || ev[j].time_ns <= until);
			assert_true(ev[j].time_ns >= last);
			last = ev[j].time_ns;
			if (ev[j].type != EVENT_COMM || ev[j].pid != (uint32_t)getpid())
				continue;
			snprintf(want, sizeof(want), "name-%zu", next++);
			assert_string_equal(ev[j].comm, want);
		}
		/* the one that was made after `until` is not among them */
		assert_int_equal(next, i < 59 ? i : 60);
	}
}

/* Many processes, read now and then: every one of them is heard of, with its end. */
static void test_many(void **state)
{
	static pid_t pids[200];

	(void)state;
	NEED_EVENTS();
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(0);
		assert_true(pids[i] > 0);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		if (i % 50 == 0)
			read_all();
	}
	read_all();
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		find(EVENT_EXIT, pids[i], find(EVENT_FORK, pids[i], 0));
	/* again when nothing came and went: still open, no second time */
	assert_int_equal(events__sync_cpus(events, gone), 0);
}

/* A CPU that is said to have gone, and is there, is watched anew; what had arrived is not lost. */
static void test_cpus_back(void **state)
{
	static pid_t pids[2];

	(void)state;
	NEED_EVENTS();
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(0);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		for (size_t j = 0; !i && j < ARRAY_SIZE(gone); j++)
			gone[j]++;
		assert_int_equal(events__sync_cpus(events, gone), 0);
	}
	read_all();
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		find(EVENT_EXIT, pids[i], find(EVENT_FORK, pids[i], 0));
	for (size_t i = 0; i < cnt; i++)
		for (size_t j = 0; j < i; j++)
			assert_false(all[i].type == EVENT_FORK && all[j].type == EVENT_FORK &&
				     all[i].tid == all[j].tid);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_cpus_back),	TEST(test_life_of_a_child),
		TEST(test_own_mapping), TEST(test_made_executable),
		TEST(test_odd_path),	TEST(test_thread),
		TEST(test_lost),	TEST(test_until),
		TEST(test_many),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
