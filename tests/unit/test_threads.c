// SPDX-License-Identifier: BSD-2-Clause
/*
 * kernel/threads and snapshot: what they say of the threads of a child that are parked in known
 * places since known times, and of one that runs. Records are caught here instead of by collect.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "bpf_session.h"
#include "capture/collect.h"
#include "kernel/probe_waits.h"
#include "kernel/samples.h"
#include "kernel/session.h"
#include "kernel/threads.h"
#include "capture/snapshot.h"
#include "capture/stack_copies.h"
#include "target/objects.h"

#define PARKED 48
#define SPINNER PARKED /* number of the thread that runs, if there is one */
#define MARK 0xb0f5b0f500000000ULL
#define HANGS_NS (60 * NSEC_PER_SEC)

/* ---- the child ---- */

enum place {
	PLACE_READ,
	PLACE_FUTEX,
	PLACE_SLEEP,
	NR_PLACES
};
static const uint32_t place_syscall[] = { SYS_read, SYS_futex, SYS_clock_nanosleep };

struct parked {
	uint32_t tid;
	uint64_t since_ns; /* it came to a CPU later, for the last time */
	uint64_t seen_ns;  /* and was asleep by then */
	uint64_t mark_at;  /* MARK plus its number stands there, on its stack */
};

struct shared {
	struct parked threads[PARKED + 1];
	_Atomic int ready;
	_Atomic uint32_t futex;
	int pipe[2];
};

static struct shared *shared;
static struct stack_copies *stacks;
static pid_t child;

static void __attribute__((noipa)) park(int i, volatile uint64_t *mark)
{
	struct timespec ever = { .tv_sec = 10000 };
	char c;

	*mark = MARK + i;
	shared->threads[i].tid = gettid();
	shared->threads[i].mark_at = (uintptr_t)mark;
	shared->threads[i].since_ns = util_monotonic_ns();
	/* what a virtual machine loses before the last time on a CPU is none of its sleep */
	usleep(1);
	shared->ready++;
	switch (i % NR_PLACES) {
	case PLACE_READ:
		if (read(shared->pipe[0], &c, 1) < 0)
			_exit(1);
		break;
	case PLACE_FUTEX:
		syscall(SYS_futex, &shared->futex, FUTEX_WAIT, 0, NULL, NULL, 0);
		break;
	case PLACE_SLEEP:
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ever, NULL);
	}
	for (;;)
		pause();
}

static void *parked_thread(void *arg)
{
	volatile uint64_t mark;
	int i = (int)(intptr_t)arg;
	char name[16];

	snprintf(name, sizeof(name), "park)\n%d", i);
	prctl(PR_SET_NAME, name);
	park(i, &mark);
	return NULL;
}

static void *spinner(void *arg)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(*(int *)arg, &set);
	sched_setaffinity(0, sizeof(set), &set);
	shared->threads[SPINNER].tid = gettid();
	shared->ready++;
	for (;;)
		__asm__ volatile("");
	return NULL;
}

/* The system call in which a thread of the child has left its CPU, or -1: it has not. */
static long asleep_in(uint32_t tid)
{
	char path[64], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/syscall", child, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return *text >= '0' && *text <= '9' ? atol(text) : -1;
}

static bool is_parked(int i)
{
	return asleep_in(shared->threads[i].tid) == place_syscall[i % NR_PLACES];
}

static bool main_sleeps(int unused)
{
	(void)unused;
	return asleep_in(child) == SYS_pause;
}

static bool are_ready(int want)
{
	return shared->ready == want;
}

/* One of those that read has got something, and sleeps elsewhere. */
static bool one_has_gone_on(int unused)
{
	(void)unused;
	for (int i = PLACE_READ; i < PARKED; i += NR_PLACES)
		if (asleep_in(shared->threads[i].tid) == SYS_pause)
			return true;
	return false;
}

static void wait_until(bool (*is_so)(int), int arg)
{
	uint64_t begin = util_monotonic_ns();

	while (!is_so(arg)) {
		assert_true(util_monotonic_ns() - begin < HANGS_NS);
		usleep(1000);
	}
}

/* Starts it and waits until all of its threads are where they stay. spin_cpu: -1 without. */
static void start_child(int spin_cpu)
{
	int want = PARKED + (spin_cpu >= 0);
	pthread_t t;

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(pipe(shared->pipe), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (intptr_t i = 0; i < PARKED; i++)
			if (pthread_create(&t, NULL, parked_thread, (void *)i))
				_exit(1);
		if (spin_cpu >= 0 && pthread_create(&t, NULL, spinner, &spin_cpu))
			_exit(1);
		for (;;)
			pause();
	}
	wait_until(are_ready, want);
	wait_until(main_sleeps, 0);
	for (int i = 0; i < PARKED; i++) {
		wait_until(is_parked, i);
		shared->threads[i].seen_ns = util_monotonic_ns();
	}
}

static void end_child(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(shared->pipe[0]);
	close(shared->pipe[1]);
}

static int parked_number(uint32_t tid)
{
	for (int i = 0; i <= PARKED; i++)
		if (shared->threads[i].tid == tid)
			return i;
	return -1;
}

/* ---- what would go to collect ---- */

static struct {
	uint32_t threads[PARKED + 1], others, main; /* records of each */
	uint32_t lost[BPFPROF_NR_KINDS];
	uint32_t parts[BPFPROF_NR_KINDS];
	uint64_t amount[BPFPROF_NR_KINDS];
	uint32_t below[BPFPROF_NR_KINDS];
	uint64_t below_ns[BPFPROF_NR_KINDS];
	uint64_t stopped_ns;
} got;

static uint64_t word_at(const struct bpfprof_raw *raw, const uint8_t *stack, uint64_t addr)
{
	uint64_t word = 0;

	assert_true(addr >= raw->stack_addr && addr + 8 <= raw->stack_addr + raw->stack_sz);
	memcpy(&word, stack + (addr - raw->stack_addr), sizeof(word));
	return word;
}

static void check_raw(const struct bpfprof_rec *rec, size_t sz, int i)
{
	const struct bpfprof_raw *raw = (const void *)(rec + 1);
	const uint64_t *kernel = (const uint64_t *)(raw + 1);
	const struct parked *p = &shared->threads[i];

	assert_int_equal(rec->type, BPFPROF_REC_RAW);
	assert_int_equal(rec->user_cnt, 0);
	assert_int_equal(sz, sizeof(*rec) + sizeof(*raw) + rec->kernel_cnt * 8 + raw->stack_sz);
	assert_int_equal(raw->holes, 0);
	assert_int_equal(raw->ra, 1);
	assert_int_equal(raw->stack_addr, raw->regs[7] - BPFPROF_RED_ZONE);
	assert_true(word_at(raw, (const uint8_t *)(kernel + rec->kernel_cnt), p->mark_at) ==
		    MARK + i);
	assert_int_equal(BPFPROF_WAIT_SYSCALL(rec->wait), place_syscall[i % NR_PLACES]);
	for (int j = 0; j < rec->kernel_cnt; j++)
		assert_true(kernel[j] >> 63);
}

int collect__inject(struct collect *c, const struct bpfprof_rec *rec, size_t sz)
{
	int i = parked_number(rec->tid);

	(void)c;
	assert_int_equal(rec->proc.tgid, child);
	assert_int_equal(rec->hash, 0);
	if (i >= 0 && i < PARKED)
		check_raw(rec, sz, i);
	if (rec->kind != BPFPROF_THREADS) {
		assert_int_equal(rec->units, BPFPROF_UNIT);
		assert_int_equal(rec->kernel_cnt > 0, rec->kind == BPFPROF_OFFCPU);
		got.parts[rec->kind]++;
		got.amount[rec->kind] += rec->amount;
		return 0;
	}
	assert_int_equal(rec->units, 0);
	if (i >= 0)
		got.threads[i]++;
	else if (rec->tid == (uint32_t)child)
		got.main++;
	else
		got.others++;
	return 0;
}

void collect__lose(struct collect *c, enum bpfprof_kind kind, enum bpfprof_lost why)
{
	(void)c;
	assert_int_equal(why, BPFPROF_LOST_ran_on);
	got.lost[kind]++;
}

void collect__leave_out(struct collect *c, enum bpfprof_kind kind, uint32_t cnt, uint64_t ns)
{
	(void)c;
	got.below[kind] += cnt;
	got.below_ns[kind] += ns;
}

static void take_from_ring(void *ctx, const struct bpfprof_rec *rec, size_t sz)
{
	(void)sz;
	if (rec->kind != BPFPROF_THREADS)
		return;
	(*(int *)ctx)++;
	assert_int_equal(parked_number(rec->tid), SPINNER);
	assert_int_equal(BPFPROF_WAIT_STATE(rec->wait), BPFPROF_STATE_running);
	assert_int_equal(BPFPROF_WAIT_SYSCALL(rec->wait), BPFPROF_NO_SYSCALL);
	got.threads[SPINNER]++;
}

/* ---- sessions ---- */

static struct session *open_session(struct session_opts o)
{
	struct bpfprof_task *tasks;
	struct session *s;
	size_t cnt;

	o.frequency = 99;
	o.filter_tgid = true;
	s = bpf_session_open(&o);
	if (!s)
		skip();
	assert_int_equal(session__scan(s, &tasks, &cnt), 0);
	for (size_t i = 0; i < cnt; i++)
		if (tasks[i].key.tgid == (uint32_t)child)
			assert_int_equal(session__add_tgid(s, child, tasks[i].key.start_ns), 0);
	free(tasks);
	return s;
}

static struct session_opts of_threads(void)
{
	struct session_opts o = { .kinds[BPFPROF_THREADS] = true };

	return o;
}

/* ---- tests ---- */

static void threads_are_told(void **state)
{
	const struct bpfprof_thread *t;
	const uint64_t *kernel;
	struct threads threads;
	int seen[PARKED] = { 0 };
	struct session *s;
	size_t pos = 0, cnt = 0;
	uint64_t before, after;
	char name[16];

	(void)state;
	start_child(-1);
	s = open_session(of_threads());
	before = util_monotonic_ns();
	/* for how long others have not run is told from when we came to a CPU, at least */
	usleep(1);
	assert_int_equal(threads__read(s, 0, &threads), 0);
	after = util_monotonic_ns();
	for (; (t = threads__next(&threads, &pos, &kernel)); cnt++) {
		int i = parked_number(t->tid);

		assert_int_equal(t->key.tgid, child);
		assert_false(t->on_cpu);
		assert_true(t->has_user && t->ra && !t->compat32);
		assert_int_equal(BPFPROF_WAIT_STATE(t->wait), BPFPROF_STATE_sleeping);
		assert_true(t->switches > 0);
		if (i < 0)
			continue;
		seen[i]++;
		snprintf(name, sizeof(name), "park)\n%d", i);
		assert_string_equal(t->comm, name);
		assert_int_equal(BPFPROF_WAIT_SYSCALL(t->wait), place_syscall[i % NR_PLACES]);
		assert_true(t->kernel_cnt > 2);
		assert_in_range(t->since_ns, before - shared->threads[i].seen_ns,
				after - shared->threads[i].since_ns);
	}
	assert_int_equal(pos, threads.sz);
	assert_int_equal(cnt, PARKED + 1);
	for (int i = 0; i < PARKED; i++)
		assert_int_equal(seen[i], 1);
	threads__done(&threads);
	session__free(s);
	end_child();
}

/* How many are told of; tid: all of them are to be this one, unless it is 0. */
static size_t count(struct session *s, uint32_t read_tid, uint32_t tid)
{
	const struct bpfprof_thread *t;
	const uint64_t *kernel;
	struct threads threads;
	size_t pos = 0, cnt = 0;

	assert_int_equal(threads__read(s, read_tid, &threads), 0);
	while ((t = threads__next(&threads, &pos, &kernel))) {
		if (tid)
			assert_int_equal(t->tid, tid);
		cnt++;
	}
	threads__done(&threads);
	return cnt;
}

static void filters_hold(void **state)
{
	struct session_opts o = of_threads();
	struct session *s;

	(void)state;
	start_child(-1);
	s = open_session(o);
	/* before 6.1, all are read */
	assert_int_equal(count(s, shared->threads[3].tid, shared->threads[3].tid), 1);
	assert_int_equal(count(s, 0, 0), PARKED + 1);
	session__free(s);

	o.comm = "*\n1?";
	s = open_session(o);
	assert_int_equal(count(s, 0, 0), 10);
	session__free(s);
	end_child();
}

/* A new directory in a cgroup v2, or false. */
static bool make_cgroup(char path[static 128])
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(path, 128, "%s/cgroup.procs", roots[i]);
		if (access(path, W_OK))
			continue;
		snprintf(path, 128, "%s/bpfprof-test-%d", roots[i], getpid());
		if (!mkdir(path, 0700))
			return true;
	}
	return false;
}

static void cgroup_filter_holds(void **state)
{
	struct session_opts o = of_threads();
	char path[128], below[140], procs[160];
	struct session *s;
	int fd;

	(void)state;
	if (!make_cgroup(path)) {
		print_message("no cgroup v2 to test with\n");
		skip();
	}
	snprintf(below, sizeof(below), "%s/below", path);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", below);
	assert_int_equal(mkdir(below, 0700), 0);
	start_child(-1);
	o.cgroup = path;
	s = open_session(o);
	assert_int_equal(count(s, 0, 0), 0);
	fd = open(procs, O_WRONLY);
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%d", child) > 0);
	close(fd);
	assert_int_equal(count(s, 0, 0), PARKED + 1);
	session__free(s);
	end_child();
	/* the kernel takes its time to see that it is empty */
	for (int i = 0; i < 100 && rmdir(below); i++)
		usleep(10000);
	rmdir(path);
}

static void snapshot_has_all(void **state)
{
	struct snapshot_opts opts = { .stacks = stacks, .threads = true };
	struct snapshot_result result;
	struct session *s;

	(void)state;
	start_child(-1);
	s = open_session(of_threads());
	for (int run = 0; run < 3; run++) {
		memset(&got, 0, sizeof(got));
		assert_int_equal(snapshot_take(&opts, s, NULL, &result), 0);
		assert_int_equal(result.threads, PARKED + 1);
		for (int i = 0; i < PARKED; i++)
			assert_int_equal(got.threads[i], 1);
		assert_int_equal(got.main, 1);
		assert_int_equal(got.others, 0);
		assert_int_equal(got.lost[BPFPROF_THREADS], 0);
	}
	session__free(s);
	end_child();
}

/* It comes either from the sampler or, where it has to share its CPU, from its memory. */
static void running_thread_is_met(void **state)
{
	struct snapshot_opts opts = { .stacks = stacks, .threads = true };
	struct snapshot_result result;
	struct samples *samples;
	struct session *s;
	cpu_set_t all, set;
	uint64_t begin;
	int spin_cpu = 0, sampled = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2)
		skip();
	while (!CPU_ISSET(spin_cpu, &all))
		spin_cpu++;
	start_child(spin_cpu);
	set = all;
	CPU_CLR(spin_cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	s = open_session(of_threads());
	samples = samples__new(s);
	assert_non_null(samples);
	/* on a busy machine it is often not on its CPU */
	begin = util_monotonic_ns();
	for (int run = 0; run < 10 || (!sampled && util_monotonic_ns() - begin < HANGS_NS); run++) {
		memset(&got, 0, sizeof(got));
		assert_int_equal(snapshot_take(&opts, s, NULL, &result), 0);
		assert_true(samples__read(samples, take_from_ring, &sampled) >= 0);
		assert_int_equal(result.threads, PARKED + 2);
		for (int i = 0; i < PARKED; i++)
			assert_int_equal(got.threads[i], 1);
		/* it may have run at each look, and not have been met */
		assert_int_equal(got.threads[SPINNER] + got.lost[BPFPROF_THREADS], 1);
		assert_int_equal(got.main, 1);
		assert_int_equal(got.others, 0);
	}
	assert_true(sampled > 0);
	samples__free(samples);
	session__free(s);
	sched_setaffinity(0, sizeof(all), &all);
	end_child();
}

/* Each waits from before the beginning until after the end: they count for all of the time between.
 */
static void waits_in_progress_count(void **state)
{
	struct session_opts o = { .kinds[BPFPROF_BLOCK] = true, .kinds[BPFPROF_OFFCPU] = true };
	struct snapshot_opts opts = {
		.stacks = stacks, .block = true, .offcpu = true, .min_wait_ns = { 1000, 0 }
	};
	struct snapshot_result result;
	struct probe_waits *waits;
	uint64_t start_ns, len;
	struct session *s;

	(void)state;
	start_child(-1);
	s = open_session(o);
	waits = probe_waits__new(s);
	assert_non_null(waits);
	start_ns = util_monotonic_ns();
	assert_int_equal(probe_waits__start(waits, start_ns), 0);
	usleep(1);
	opts.stopped_ns = util_monotonic_ns();
	probe_waits__stop(waits, opts.stopped_ns);
	opts.waits = waits;
	len = opts.stopped_ns - start_ns;

	memset(&got, 0, sizeof(got));
	assert_int_equal(snapshot_take(&opts, s, NULL, &result), 0);
	assert_int_equal(got.parts[BPFPROF_BLOCK], PARKED / NR_PLACES);
	assert_int_equal(got.amount[BPFPROF_BLOCK], PARKED / NR_PLACES * len);
	assert_int_equal(got.parts[BPFPROF_OFFCPU], PARKED + 1);
	assert_int_equal(got.amount[BPFPROF_OFFCPU], (PARKED + 1) * len);
	assert_int_equal(got.parts[BPFPROF_THREADS], 0);
	assert_int_equal(got.main + got.others, 0);
	assert_int_equal(got.below[BPFPROF_BLOCK] + got.below[BPFPROF_OFFCPU], 0);

	/* nobody waited as long as that */
	opts.waits = NULL;
	opts.min_wait_ns[0] = opts.min_wait_ns[1] = len + 1;
	memset(&got, 0, sizeof(got));
	assert_int_equal(snapshot_take(&opts, s, NULL, &result), 0);
	assert_int_equal(got.parts[BPFPROF_BLOCK] + got.parts[BPFPROF_OFFCPU], 0);
	assert_int_equal(got.below[BPFPROF_BLOCK], PARKED / NR_PLACES);
	assert_int_equal(got.below_ns[BPFPROF_BLOCK], PARKED / NR_PLACES * len);
	assert_int_equal(got.below[BPFPROF_OFFCPU], PARKED + 1);
	assert_int_equal(got.below_ns[BPFPROF_OFFCPU], (PARKED + 1) * len);

	/* who has gone on since is lost, and said to be */
	opts.min_wait_ns[0] = opts.min_wait_ns[1] = 0;
	assert_int_equal(write(shared->pipe[1], "x", 1), 1);
	wait_until(one_has_gone_on, 0);
	memset(&got, 0, sizeof(got));
	assert_int_equal(snapshot_take(&opts, s, NULL, &result), 0);
	assert_int_equal(got.parts[BPFPROF_OFFCPU], PARKED);
	assert_int_equal(got.lost[BPFPROF_OFFCPU], 1);
	probe_waits__free(waits);
	session__free(s);
	end_child();
}

/* Of each process at a time, by whichever of its threads is there; what cannot be read is empty. */
static void stacks_are_copied(void **state)
{
	struct stack_copy copies[PARKED + 3] = { 0 }, *order[PARKED + 3];
	const uint8_t *data;
	uint64_t mark;

	(void)state;
	start_child(-1);
	for (int i = 0; i < PARKED; i++)
		copies[i] = (struct stack_copy){ .proc.tgid = child,
						 .tid = shared->threads[i].tid,
						 .addr = shared->threads[i].mark_at };
	/* a thread that is not there, and nothing where its stack should be; it is the first one */
	copies[PARKED] = (struct stack_copy){ .proc.tgid = child, .tid = 0, .addr = 1 };
	/* our own, and a process that is not there */
	mark = MARK + PARKED;
	copies[PARKED + 1] = (struct stack_copy){ .proc.tgid = getpid(),
						  .tid = gettid(),
						  .addr = (uintptr_t)&mark };
	copies[PARKED + 2] =
		(struct stack_copy){ .proc.tgid = INT32_MAX, .tid = INT32_MAX, .addr = 4096 };
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		order[i] = &copies[i];
	stack_copies__begin(stacks);
	for (int run = 0; run < 2; run++) {
		assert_false(stack_copies__make(stacks, order, ARRAY_SIZE(order)));
		data = stack_copies__data(stacks);
		for (int i = 0; i <= PARKED + 1; i++) {
			assert_true(copies[i].made);
			if (i == PARKED)
				continue;
			assert_in_range(copies[i].sz, sizeof(mark), BPFPROF_RAW_STACK_SZ);
			memcpy(&mark, data + copies[i].at, sizeof(mark));
			assert_int_equal(mark, MARK + MIN(i, PARKED));
		}
		assert_true(copies[PARKED + 2].made);
		assert_int_equal(copies[PARKED].sz + copies[PARKED + 2].sz, 0);
	}
	/* none is no mistake */
	assert_false(stack_copies__make(stacks, order, 0));
	stack_copies__end(stacks);
	end_child();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_told),	 cmocka_unit_test(filters_hold),
		cmocka_unit_test(cgroup_filter_holds),	 cmocka_unit_test(snapshot_has_all),
		cmocka_unit_test(running_thread_is_met), cmocka_unit_test(waits_in_progress_count),
		cmocka_unit_test(stacks_are_copied),
	};
	struct objects *objects;
	int failed;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	objects = objects__new();
	stacks = objects ? stack_copies__new(objects) : NULL;
	if (!stacks)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	stack_copies__free(stacks);
	objects__free(objects);
	return failed;
}
