// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our half in the kernel, seen from outside: the scan, the filters, and that every sample is either
 * recorded or lost for a reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "bpf_session.h"
#include "bpfprof.skel.h"
#include "kernel/cpus.h"
#include "kernel/samples.h"
#include "kernel/epochs.h"
#include "kernel/session.h"
#include "kernel/tables.h"
#include "target/proc_maps.h"

#define HZ 997
#define SPIN_MS 200

static const struct session_opts plain = {
	.kinds = { true }, .frequency = HZ, .filter_tgid = true, .thread_names = true
};

/* ---- work to be sampled ---- */

static __attribute__((noipa)) uint64_t work(uint64_t rounds)
{
	uint64_t x = rounds;

	for (uint64_t i = 0; i < rounds; i++)
		x = x * 6364136223846793005ULL + i;
	return x;
}

static uint64_t thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Of CPU time, however busy the machine is. */
static void spin(unsigned int ms)
{
	uint64_t end = thread_ns() + ms * 1000000ULL;

	while (thread_ns() < end)
		work(20000);
}

/* How many take so long, without a system call among them. */
static uint64_t rounds_in(unsigned int ms)
{
	uint64_t begin = thread_ns();

	work(1000000);
	return ms * 1000000ULL * 1000000 / (thread_ns() - begin);
}

/* ---- how many samples there have to be ---- */

/* CPU time, how often the CPU was lost, and in which time it was not there for what ran on it. */
struct had {
	uint64_t ns, switches, away_ns;
};

/* Serving interrupts, or at work for another machine; of all CPUs, in ticks. */
static uint64_t away_ns(void)
{
	unsigned long long irq = 0, soft = 0, steal = 0;
	FILE *f = fopen("/proc/stat", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "cpu %*u %*u %*u %*u %*u %llu %llu %llu", &irq, &soft, &steal),
			 3);
	fclose(f);
	return (irq + soft + steal) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/* By this process, and by the children that it has waited for, or without those. */
static struct had had(bool children)
{
	struct had ret = { .away_ns = away_ns() };

	for (int i = 0; i <= children; i++) {
		struct rusage r;

		getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &r);
		ret.ns += (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * NSEC_PER_SEC +
			  (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
		ret.switches += r.ru_nvcsw + r.ru_nivcsw;
	}
	return ret;
}

/*
 * A clock that ticks once in a period ticks as often as there are periods in a time, but for one
 * tick more or less in each of the stretches of which that consists, and for those ticks that come
 * while the CPU is away. So many more or less there may be.
 */
static uint64_t slack(const struct had *from, const struct had *to)
{
	uint64_t away = to->away_ns - from->away_ns + 2 * NSEC_PER_SEC / sysconf(_SC_CLK_TCK);

	/* one for the last stretch of each thread, of which there are no more than three */
	return to->switches - from->switches + 3 + away * HZ / NSEC_PER_SEC;
}

/* No more samples than ticks in the CPU time since. */
static void at_most(uint64_t samples, const struct had *from, bool children)
{
	struct had to = had(children);
	uint64_t most = (to.ns - from->ns) * HZ / NSEC_PER_SEC + slack(from, &to);

	if (samples > most)
		fail_msg("%llu samples, not up to %llu", (unsigned long long)samples,
			 (unsigned long long)most);
}

/* And as many as in so much CPU time, which is among it. */
static void about(uint64_t samples, unsigned int ms, const struct had *from)
{
	struct had to = had(true);

	at_most(samples, from, true);
	if (samples + slack(from, &to) < (uint64_t)ms * HZ / 1000)
		fail_msg("%llu samples in %u ms of CPU time, %llu times without a CPU",
			 (unsigned long long)samples, ms,
			 (unsigned long long)(to.switches - from->switches));
}

/* ---- what was recorded ---- */

struct seen {
	uint64_t records, raw, with_kernel, with_user;
	uint64_t codes; /* raw ones with the code at their rip, as it is now */
	uint32_t tids[64];
	size_t tid_cnt;
	struct bpfprof_rec last;
	uint64_t last_user, last_sp;
	struct bpfprof_count_key keys[4096];
	size_t key_cnt;
	uint32_t strangers; /* records of other processes than `pid` */
	uint32_t pid;
};

static struct seen seen;
static uint64_t records_of[BPFPROF_SIDES]; /* of the epoch that goes on, or begins */

static bool is_code_of(uint32_t pid, const struct bpfprof_raw_code *code, uint64_t addr)
{
	uint8_t now[sizeof(code->bytes)];
	struct iovec local = { now, sizeof(now) }, remote = { (void *)addr, sizeof(now) };

	return code->addr == addr &&
	       process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == sizeof(now) &&
	       !memcmp(code->bytes, now, sizeof(now));
}

static bool saw_tid(uint32_t tid)
{
	for (size_t i = 0; i < seen.tid_cnt; i++)
		if (seen.tids[i] == tid)
			return true;
	return false;
}

static void take(void *ctx, const struct bpfprof_rec *rec, size_t sz)
{
	const uint64_t *user = (const uint64_t *)(rec + 1);
	const struct bpfprof_raw *raw = (const void *)(rec + 1);

	assert_ptr_equal(ctx, &seen);
	seen.records++;
	assert_true(rec->side < BPFPROF_SIDES);
	records_of[rec->side]++;
	seen.raw += rec->type == BPFPROF_REC_RAW;
	seen.with_kernel += rec->kernel_cnt > 0;
	seen.with_user += rec->type == BPFPROF_REC_RAW || rec->user_cnt > 0;
	seen.strangers += rec->proc.tgid != seen.pid;
	seen.last = *rec;
	assert_int_equal(rec->kind, BPFPROF_CPU);
	assert_true(rec->time_ns <= util_monotonic_ns());
	if (!saw_tid(rec->tid) && seen.tid_cnt < ARRAY_SIZE(seen.tids))
		seen.tids[seen.tid_cnt++] = rec->tid;
	if (rec->type == BPFPROF_REC_RAW) {
		assert_true(sz >= sizeof(*rec) + sizeof(*raw) + raw->stack_sz);
		seen.last_user = raw->regs[16];
		seen.last_sp = raw->regs[7];
		seen.codes += is_code_of(seen.pid, &raw->codes[0], raw->regs[16]);
		return;
	}
	seen.last_user = rec->user_cnt ? user[0] : 0;
	if (seen.key_cnt < ARRAY_SIZE(seen.keys))
		seen.keys[seen.key_cnt++] =
			(struct bpfprof_count_key){ rec->hash, rec->proc.tgid, rec->kernel_cnt,
						    rec->user_cnt };
}

static uint64_t counted;

/* Takes everything in, as collect does: counts first, then the records that explain them. What was
 * seen in the epoch that ends is what has arrived of it. */
static void drain(struct session *session, struct samples *s)
{
	struct bpfprof_stats stats[BPFPROF_NR_KINDS];
	struct samples_count *counts;
	uint64_t in_epoch = 0, lost = 0;
	size_t cnt;
	uint32_t side = epochs__end(session);

	assert_in_range(side, 0, BPFPROF_SIDES - 1);
	assert_int_equal(epochs__has_ended(session, true), 1);
	assert_int_equal(epochs__take(session, side, stats), 0);
	assert_int_equal(samples__drain_counts(s, side, &counts, &cnt), 0);
	assert_true(samples__read(s, take, &seen) >= 0);
	for (size_t i = 0; i < cnt; i++) {
		size_t j = 0;

		counted += counts[i].count.count;
		in_epoch += counts[i].count.count;
		while (j < seen.key_cnt &&
		       memcmp(&seen.keys[j], &counts[i].key, sizeof(seen.keys[j])))
			j++;
		/* no count without its stack */
		if (seen.key_cnt < ARRAY_SIZE(seen.keys))
			assert_true(j < seen.key_cnt);
	}
	free(counts);
	in_epoch += records_of[side];
	records_of[side] = 0;
	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		lost += stats[BPFPROF_CPU].lost[i];
	assert_int_equal(stats[BPFPROF_CPU].recorded, in_epoch);
	assert_int_equal(stats[BPFPROF_CPU].seen, in_epoch + lost);
}

/* What we had had when the session was opened. */
static struct had before;

static struct session *open_armed(const struct session_opts *opts, struct samples **ret)
{
	struct session *s = bpf_session_open(opts);
	char err[256];

	memset(&seen, 0, sizeof(seen));
	seen.pid = getpid();
	counted = 0;
	if (!s)
		return NULL;
	*ret = samples__new(s);
	assert_non_null(*ret);
	before = had(true);
	assert_int_equal(session__arm(s, err, sizeof(err)), 0);
	session__set_sampling(s, true);
	return s;
}

/* Ends it and checks the account: seen = recorded + lost, recorded = records + counts. */
static uint64_t finish(struct session *s, struct samples *samples)
{
	struct bpfprof_stats st;
	uint64_t lost = 0;

	session__disarm(s);
	drain(s, samples);
	drain(s, samples);
	assert_int_equal(epochs__stats(s, BPFPROF_CPU, &st), 0);
	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		lost += st.lost[i];
	assert_int_equal(st.seen, st.recorded + lost);
	assert_int_equal(st.recorded, seen.records + counted);
	/* and it is quiet from now on */
	spin(20);
	assert_int_equal(epochs__stats(s, BPFPROF_CPU, &st), 0);
	assert_int_equal(st.recorded + lost, st.seen);
	assert_int_equal(st.recorded, seen.records + counted);
	samples__free(samples);
	session__free(s);
	return st.seen;
}

static struct bpfprof_task task_of(struct session *s, uint32_t pid)
{
	struct bpfprof_task *tasks, found = { 0 };
	size_t cnt, hits = 0;

	assert_int_equal(session__scan(s, &tasks, &cnt), 0);
	for (size_t i = 0; i < cnt; i++) {
		if (tasks[i].key.tgid != pid)
			continue;
		found = tasks[i];
		hits++;
	}
	assert_int_equal(hits, 1);
	free(tasks);
	return found;
}

static void add_self(struct session *s)
{
	struct bpfprof_task self = task_of(s, getpid());

	assert_int_equal(session__add_tgid(s, self.key.tgid, self.key.start_ns), 0);
}

/* ---- the scan ---- */

static void test_scan_self(void **state)
{
	struct session *s = bpf_session_open(&plain);
	struct bpfprof_task self;
	char name[32] = "";
	uint64_t ns;

	(void)state;
	if (!s)
		skip();
	prctl(PR_SET_NAME, "scan)me\n");
	self = task_of(s, getpid());
	prctl(PR_GET_NAME, name);
	assert_string_equal(self.comm, name);
	assert_int_equal(self.ppid, getppid());
	assert_false(self.kthread);
	assert_int_equal(proc_stat_start("/proc", getpid(), &ns), 0);
	assert_int_equal(self.key.start_ns / 10000000, ns / 10000000);
	session__free(s);
}

/* Does the kernel let nobody look into it? A security module may keep it from iterators, too. */
static bool is_hidden(uint32_t pid)
{
	char path[64], to[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return readlink(path, to, sizeof(to)) < 0 && errno == EACCES;
}

/* Is there a process that had begun by then? One that ends now is given the time to. */
static bool lives_since(uint32_t pid, uint64_t boot_ns)
{
	uint64_t start_ns;
	int err = 0;

	for (int i = 0; i < 60000 && !err; i++) {
		err = proc_stat_start("/proc", pid, &start_ns);
		if (!err && start_ns >= boot_ns)
			return false;
		usleep(err ? 0 : 1000);
	}
	return !err;
}

static void test_scan_all(void **state)
{
	struct session *s = bpf_session_open(&plain);
	struct bpfprof_task *tasks;
	size_t cnt, kthreads = 0;
	struct timespec begin;
	struct dirent *e;
	DIR *d;

	(void)state;
	if (!s)
		skip();
	clock_gettime(CLOCK_BOOTTIME, &begin);
	assert_int_equal(session__scan(s, &tasks, &cnt), 0);
	for (size_t i = 0; i < cnt; i++) {
		assert_true(tasks[i].key.tgid > 0);
		assert_true(!i || tasks[i - 1].key.tgid < tasks[i].key.tgid);
		assert_true(memchr(tasks[i].comm, 0, sizeof(tasks[i].comm)) != NULL);
		kthreads += tasks[i].kthread != 0;
	}
	/* what is in /proc, and started before by its clock of 10 ms, is in the scan */
	d = opendir("/proc");
	while ((e = readdir(d))) {
		uint32_t pid = atoi(e->d_name);
		bool found = !pid || is_hidden(pid);

		for (size_t i = 0; i < cnt && !found; i++)
			found = tasks[i].key.tgid == pid;
		if (!found)
			assert_false(lives_since(pid, begin.tv_sec * NSEC_PER_SEC + begin.tv_nsec -
							      10000000));
	}
	closedir(d);
	assert_true(kthreads > 0 && kthreads < cnt);
	free(tasks);
	session__free(s);
}

static void test_scan_exec_id(void **state)
{
	struct session *s = bpf_session_open(&plain);
	struct bpfprof_task self, child;
	pid_t pid;

	(void)state;
	if (!s)
		skip();
	self = task_of(s, getpid());
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	child = task_of(s, pid);
	assert_int_equal(child.key.exec_id, self.key.exec_id);
	assert_true(child.key.start_ns > self.key.start_ns);
	assert_int_equal(child.ppid, getpid());
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	pid = fork();
	if (!pid) {
		execlp("sleep", "sleep", "1000", (char *)NULL);
		_exit(1);
	}
	/* it is not long until then */
	for (int i = 0; i < 60000 && strcmp(task_of(s, pid).comm, "sleep"); i++)
		usleep(1000);
	child = task_of(s, pid);
	assert_string_equal(child.comm, "sleep");
	assert_int_equal(child.key.exec_id, self.key.exec_id + 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	session__free(s);
}

/* ---- sampling ---- */

static void test_self(void **state)
{
	struct samples *samples;
	struct session *s = open_armed(&plain, &samples);
	struct bpfprof_task self;
	char here;

	(void)state;
	if (!s)
		skip();
	self = task_of(s, getpid());
	spin(20);
	drain(s, samples);
	/* nobody was asked for yet */
	assert_int_equal(seen.records + counted, 0);
	assert_int_equal(session__add_tgid(s, self.key.tgid, self.key.start_ns), 0);
	spin(SPIN_MS);
	session__disarm(s);
	drain(s, samples);
	assert_int_equal(seen.strangers, 0);
	assert_int_equal(seen.last.tid, getpid());
	assert_memory_equal(&seen.last.proc, &self.key, sizeof(self.key));
	/* no table is known: registers and stack arrive instead, and they are ours */
	assert_true(seen.raw > 0);
	assert_int_equal(seen.codes, seen.raw);
	assert_true(seen.last_sp - (uintptr_t)&here + 65536 < 131072);
	about(finish(s, samples), SPIN_MS, &before);
}

/* Events are open before a window begins, and after it has ended. */
static void test_outside_window(void **state)
{
	struct samples *samples;
	struct session *s = open_armed(&plain, &samples);
	uint64_t in_window;

	(void)state;
	if (!s)
		skip();
	session__set_sampling(s, false);
	add_self(s);
	spin(20);
	drain(s, samples);
	assert_int_equal(seen.records + counted, 0);
	session__set_sampling(s, true);
	spin(20);
	session__set_sampling(s, false);
	drain(s, samples);
	in_window = seen.records + counted;
	assert_true(in_window > 0);
	spin(20);
	assert_int_equal(finish(s, samples), in_window);
}

/* Once the process is known, equal stacks are sent once and counted then. */
static void test_counts(void **state)
{
	struct tables_extent list = { 0 };
	struct samples *samples;
	struct session *s = open_armed(&plain, &samples);
	struct bpfprof_proc value;
	struct bpfprof_task self;
	struct tables *t;

	(void)state;
	if (!s)
		skip();
	self = task_of(s, getpid());
	t = tables__new(s, 1);
	assert_non_null(t);
	assert_int_equal(tables__set_proc(t, &self.key, NULL, 0, 1, &list), 0);
	value = (struct bpfprof_proc){
		.chunk = list.chunk, .pos = list.pos, .gen = 1, .flags = BPFPROF_PROC_NO_RAW
	};
	tables__update_proc(t, &self.key, &value);
	assert_int_equal(session__add_tgid(s, self.key.tgid, self.key.start_ns), 0);
	for (int i = 0; i < 4; i++) {
		spin(SPIN_MS / 4);
		drain(s, samples);
	}
	session__disarm(s);
	drain(s, samples);
	assert_int_equal(seen.raw, 0);
	/* nothing is mapped there: the pc alone, which is a fact */
	assert_int_equal(seen.last.result, BPFPROF_STACK_no_mapping);
	assert_int_equal(seen.last.user_cnt, 1);
	assert_true(counted > 0);
	about(finish(s, samples), SPIN_MS, &before);
	tables__free(t);
}

/* Of the map that the kernel has. */
static uint32_t counts_of(const struct session_opts *opts)
{
	struct session *s = bpf_session_open(opts);
	uint32_t ret;

	if (!s)
		return 0;
	ret = bpf_map__max_entries(session__skel(s)->maps.bp_counts1);
	assert_int_equal(bpf_map__max_entries(session__skel(s)->maps.bp_counts0), ret);
	if (!opts->tight_maps)
		assert_int_equal(session__counts_max(s), ret);
	else
		assert_true(session__counts_max(s) > ret);
	session__free(s);
	return ret;
}

/* A clock alone has room for what it can meet; another kind, for as much as there may be. */
static void test_room_of_counts(void **state)
{
	struct session_opts opts = plain;
	uint64_t in_a_window = (uint64_t)cpus_possible() * 10;

	(void)state;
	opts.frequency = 19;
	if (!counts_of(&opts))
		skip();
	assert_in_range(counts_of(&opts), 2 * MIN(19 * in_a_window, BPFPROF_MAX_COUNTS / 2),
			MAX(4 * 19 * in_a_window, 2048));
	opts.frequency = 99999;
	assert_int_equal(counts_of(&opts), BPFPROF_MAX_COUNTS);
	opts.frequency = 19;
	opts.kinds[BPFPROF_THREADCREATE] = true;
	assert_int_equal(counts_of(&opts), BPFPROF_MAX_COUNTS);
	opts.tight_maps = true;
	assert_int_equal(counts_of(&opts), 16);
}

static void test_user_only(void **state)
{
	struct session_opts opts = plain;
	struct samples *samples;
	uint64_t ns, runs, begin = util_monotonic_ns();
	struct session *s;

	(void)state;
	opts.user_only = true;
	opts.run_time_stats = true;
	s = open_armed(&opts, &samples);
	if (!s)
		skip();
	add_self(s);
	/* much of it in the kernel */
	for (uint64_t end = thread_ns() + SPIN_MS * 1000000ULL; thread_ns() < end;)
		for (int i = 0; i < 100; i++)
			(void)!access("/no/such/file", F_OK);
	session__disarm(s);
	drain(s, samples);
	assert_int_equal(seen.with_kernel, 0);
	assert_int_equal(seen.with_user, seen.records);
	session__run_time(s, "cpu_", &ns, &runs);
	/* it runs for the samples of others, too, and for no longer than there are CPUs */
	assert_true(runs >= seen.records + counted);
	assert_in_range(ns, 1, (util_monotonic_ns() - begin) * sysconf(_SC_NPROCESSORS_ONLN));
	about(finish(s, samples), SPIN_MS, &before);
}

static void test_kernel_only(void **state)
{
	struct session_opts opts = plain;
	struct samples *samples;
	struct bpfprof_stats st;
	struct had user, after;
	struct session *s;
	uint64_t rounds;

	(void)state;
	opts.kernel_only = true;
	rounds = rounds_in(SPIN_MS);
	s = open_armed(&opts, &samples);
	if (!s)
		skip();
	add_self(s);
	user = had(false);
	work(rounds);
	after = had(false);
	assert_int_equal(epochs__stats(s, BPFPROF_CPU, &st), 0);
	/* not what runs in user mode: only what comes over it there, and add_self before */
	if (st.seen > slack(&before, &after))
		fail_msg("%llu samples in %.0f ms of user mode", (unsigned long long)st.seen,
			 (after.ns - user.ns) / 1e6);
	for (uint64_t end = thread_ns() + SPIN_MS * 1000000ULL; thread_ns() < end;)
		for (int i = 0; i < 100; i++)
			(void)!access("/no/such/file/anywhere", F_OK);
	session__disarm(s);
	drain(s, samples);
	assert_int_equal(seen.raw, 0);
	assert_int_equal(seen.with_user, 0);
	assert_int_equal(seen.with_kernel, seen.records);
	/* a twentieth of them */
	assert_true(finish(s, samples) >= st.seen + SPIN_MS / 20);
}

/* A thread of this name that spins; tells its number. */
static void *named_thread(void *arg)
{
	prctl(PR_SET_NAME, arg);
	spin(SPIN_MS);
	return (void *)(uintptr_t)gettid();
}

static void test_thread_name(void **state)
{
	struct session_opts opts = plain;
	struct samples *samples;
	struct session *s;
	pthread_t yes, no;
	void *yes_tid, *no_tid;

	(void)state;
	opts.comm = "wor?er-*";
	s = open_armed(&opts, &samples);
	if (!s)
		skip();
	add_self(s);
	pthread_create(&yes, NULL, named_thread, (void *)"worker-1");
	pthread_create(&no, NULL, named_thread, (void *)"worker");
	pthread_join(yes, &yes_tid);
	pthread_join(no, &no_tid);
	session__disarm(s);
	drain(s, samples);
	assert_true(saw_tid((uintptr_t)yes_tid));
	assert_false(saw_tid((uintptr_t)no_tid));
	assert_string_equal(seen.last.comm, "worker-1");
	about(finish(s, samples), SPIN_MS, &before);
}

static void test_thread_filter(void **state)
{
	struct session_opts opts = plain;
	struct samples *samples;
	struct bpfprof_task self;
	struct session *s;
	pthread_t other;
	void *other_tid;

	(void)state;
	opts.filter_tid = true;
	opts.thread_names = false;
	s = open_armed(&opts, &samples);
	if (!s)
		skip();
	add_self(s);
	self = task_of(s, getpid());
	assert_int_equal(session__add_tid(s, gettid(), self.key.start_ns), 0);
	pthread_create(&other, NULL, named_thread, (void *)"other");
	spin(SPIN_MS);
	pthread_join(other, &other_tid);
	session__disarm(s);
	drain(s, samples);
	assert_true(saw_tid(gettid()));
	assert_false(saw_tid((uintptr_t)other_tid));
	/* names were not asked for */
	assert_string_equal(seen.last.comm, "");
	about(finish(s, samples), SPIN_MS, &before);
}

static void spin_in_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		spin(SPIN_MS);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	seen.pid = pid;
}

static void test_children(void **state)
{
	struct session_opts opts = plain;

	(void)state;
	for (int follow = 0; follow < 2; follow++) {
		struct samples *samples;
		struct session *s;
		struct had ours;
		uint64_t total;

		opts.follow = follow;
		s = open_armed(&opts, &samples);
		if (!s)
			skip();
		ours = had(false);
		add_self(s);
		spin_in_child();
		session__disarm(s);
		drain(s, samples);
		assert_int_equal(saw_tid(seen.pid), follow);
		total = finish(s, samples);
		if (follow)
			about(total, SPIN_MS, &before);
		else
			at_most(total, &ours, false);
	}
}

/* The number alone is not enough: a later process by it is not meant; and who is taken out is out.
 */
static void test_other_start(void **state)
{
	struct samples *samples;
	struct session *s = open_armed(&plain, &samples);
	struct bpfprof_task self;
	struct had from, to;
	uint64_t between_ns;

	(void)state;
	if (!s)
		skip();
	self = task_of(s, getpid());
	assert_int_equal(session__add_tgid(s, self.key.tgid, self.key.start_ns - 1), 0);
	spin(50);
	from = had(false);
	between_ns = util_monotonic_ns();
	assert_int_equal(session__add_tgid(s, self.key.tgid, self.key.start_ns), 0);
	session__remove_tgid(s, self.key.tgid, self.key.start_ns);
	/* meanwhile it is meant, and a machine that is held up makes it long */
	between_ns = util_monotonic_ns() - between_ns;
	to = had(false);
	spin(50);
	assert_true(finish(s, samples) <=
		    1 + between_ns * HZ / NSEC_PER_SEC + to.switches - from.switches);
}

/* Who goes is the process that has begun then, and not whoever has its number now. */
static void test_remove(void **state)
{
	struct session_opts opts = plain;
	struct bpfprof_chosen chosen;
	struct session *s;
	uint32_t pid = getpid(), nobody = 4194305; /* above the highest that there may be */
	int fd;

	(void)state;
	opts.chosen[BPFPROF_CPU] = true;
	opts.follow = true;
	s = bpf_session_open(&opts);
	if (!s)
		skip();
	assert_int_equal(session__tgid_start(s, pid), 0);
	assert_int_equal(session__add_tgid(s, pid, 20), 0);
	assert_int_equal(session__add_tgid(s, nobody, 20), 0);
	session__remove_tgid(s, pid, 10);
	assert_int_equal(session__tgid_start(s, pid), 20);
	session__prune_tgids(s);
	assert_int_equal(session__tgid_start(s, pid), 20);
	assert_int_equal(session__tgid_start(s, nobody), 0);
	session__remove_tgid(s, pid, 20);
	assert_int_equal(session__tgid_start(s, pid), 0);
	fd = bpf_map__fd(session__skel(s)->maps.bp_chosen);
	assert_int_equal(session__choose(s, pid, 20, 1U << BPFPROF_CPU), 0);
	assert_int_equal(session__choose(s, pid, 10, 0), 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &pid, &chosen), 0);
	assert_int_equal(chosen.start_ns, 20);
	assert_int_equal(session__choose(s, pid, 20, 0), 0);
	assert_int_not_equal(bpf_map_lookup_elem(fd, &pid, &chosen), 0);
	/* it has gone already */
	assert_int_equal(session__choose(s, pid, 20, 0), 0);
	session__free(s);
}

/* ---- what cannot be had ---- */

static void refused(const struct session_opts *opts, const char *word)
{
	char err[256] = "";

	assert_null(session__open(opts, err, sizeof(err)));
	assert_int_not_equal(errno, 0);
	if (!strstr(err, word))
		fail_msg("'%s' does not say '%s'", err, word);
}

static void test_refused(void **state)
{
	struct session *s = bpf_session_open(&plain);
	struct session_opts opts = plain;
	char pattern[100];

	(void)state;
	if (!s)
		skip();
	session__free(s);
	session__free(NULL);
	opts.cgroup = "/no/such/cgroup";
	refused(&opts, "/no/such/cgroup");
	opts.cgroup = "/tmp";
	refused(&opts, "cgroup");
	opts = plain;
	memset(pattern, 'x', sizeof(pattern));
	pattern[sizeof(pattern) - 1] = '\0';
	opts.comm = pattern;
	refused(&opts, "too long");
}

/* There are so many descriptors as may be had: a machine of many CPUs takes more than 1024. */
static void test_fd_limit(void **state)
{
	struct rlimit had, now;
	struct session *s;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	now = (struct rlimit){ .rlim_cur = MIN(had.rlim_max - 1, 512), .rlim_max = had.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	s = bpf_session_open(&plain);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
	assert_int_equal(now.rlim_cur, had.rlim_max);
	session__free(s);
}

/* Without rights: one sentence with the remedy, and nothing left open. */
static void test_no_rights(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid()) {
		print_message("needs root: gives its rights up in a child\n");
		skip();
	}
	pid = fork();
	if (!pid) {
		char err[256] = "";

		if (setgid(65534) || setuid(65534) || session__open(&plain, err, sizeof(err)))
			_exit(1);
		_exit(strstr(err, "root") ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan_self),      cmocka_unit_test(test_scan_all),
		cmocka_unit_test(test_scan_exec_id),   cmocka_unit_test(test_self),
		cmocka_unit_test(test_room_of_counts), cmocka_unit_test(test_counts),
		cmocka_unit_test(test_user_only),      cmocka_unit_test(test_kernel_only),
		cmocka_unit_test(test_thread_name),    cmocka_unit_test(test_thread_filter),
		cmocka_unit_test(test_children),       cmocka_unit_test(test_other_start),
		cmocka_unit_test(test_refused),	       cmocka_unit_test(test_no_rights),
		cmocka_unit_test(test_outside_window), cmocka_unit_test(test_fd_limit),
		cmocka_unit_test(test_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
