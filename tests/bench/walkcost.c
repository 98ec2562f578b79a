// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures walks of user stacks beside each other: walkcost PID:BPFPROF...
 *
 * Each process in turn runs for a slice of SLICE_NS while the others are stopped, so that what else
 * happens on the machine meets all of them alike. Its stacks are walked by the cpu_sample of the
 * bpfprof with that pid, or where that is 0 by the kernel, by frame pointers (fpwalk). The kernel
 * adds up how long a program has run; it is asked so often that most sums have grown by one run.
 *
 * Prints "frames N", of a stack by frame pointers; then, until it is ended, a line for each slice: the
 * place of the process on the command line, the runs that were met, the median of their ns.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fpwalk.skel.h"

#define SLICE_NS 15000000
#define POLL_US 40 /* a sixth of the time from sample to sample */
#define HZ 3999
#define MAX_WALKS 8
#define MAX_FDS 256
#define START_S 20 /* for bpfprof to start, at most */
#define WARM_S 2
#define MAX_RUNS 256  /* of a slice */
#define OTHER_NS 1000 /* a run that met another process returns before that; no walk does */

struct walk {
	pid_t pid;
	int prog;
	struct fpwalk *fp; /* NULL: it is walked by bpfprof */
};

struct runs {
	__u64 cnt, ns;
};

static struct runs runs_of(int prog)
{
	struct bpf_prog_info info = { 0 };
	unsigned int sz = sizeof(info);

	if (bpf_obj_get_info_by_fd(prog, &info, &sz))
		exit(1);
	return (struct runs){ info.run_cnt, info.run_time_ns };
}

/* The program that a descriptor of another process stands for, if it has that name: a descriptor of
 * one's own, or -1. */
static int prog_at(pid_t pid, int at, const char *name)
{
	struct bpf_prog_info info = { 0 };
	unsigned int id = 0, sz = sizeof(info);
	char line[128];
	FILE *f;
	int fd;

	snprintf(line, sizeof(line), "/proc/%d/fdinfo/%d", pid, at);
	f = fopen(line, "r");
	while (f && !id && fgets(line, sizeof(line), f))
		sscanf(line, "prog_id: %u", &id);
	if (f)
		fclose(f);
	fd = id ? bpf_prog_get_fd_by_id(id) : -1;
	if (fd < 0 || (!bpf_obj_get_info_by_fd(fd, &info, &sz) && !strcmp(info.name, name)))
		return fd;
	close(fd);
	return -1;
}

/* Walks the stacks of a process by frame pointers. */
static struct fpwalk *walk_by_fp(pid_t pid)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.freq = 1,
					.sample_freq = HZ,
					.exclude_idle = 1 };
	struct fpwalk *skel = fpwalk__open();

	if (!skel)
		return NULL;
	skel->rodata->target = pid;
	if (fpwalk__load(skel))
		return NULL;
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0);

		if (fd >= 0)
			bpf_program__attach_perf_event(skel->progs.fpwalk, fd);
	}
	return skel;
}

static int open_walk(struct walk *w, const char *arg)
{
	int owner;

	w->prog = -1;
	if (sscanf(arg, "%d:%d", &w->pid, &owner) != 2)
		return 1;
	if (!owner) {
		w->fp = walk_by_fp(w->pid);
		w->prog = w->fp ? bpf_program__fd(w->fp->progs.fpwalk) : -1;
	}
	for (int i = 0; owner && i < START_S * 10 && w->prog < 0; i++) {
		usleep(100000);
		for (int fd = 0; fd < MAX_FDS && w->prog < 0; fd++)
			w->prog = prog_at(owner, fd, "cpu_sample");
	}
	return w->prog < 0;
}

static int by_value(const void *a, const void *b)
{
	__u64 va = *(const __u64 *)a, vb = *(const __u64 *)b;

	return va < vb ? -1 : va > vb;
}

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000 + (__u64)t.tv_nsec;
}

static void run_slice(const struct walk *w, int place)
{
	__u64 end = now_ns() + SLICE_NS, ns[MAX_RUNS];
	struct runs last = runs_of(w->prog), now;
	int cnt = 0;

	kill(w->pid, SIGCONT);
	for (; now_ns() < end && cnt < MAX_RUNS; last = now) {
		usleep(POLL_US);
		now = runs_of(w->prog);
		if (now.cnt == last.cnt + 1 && now.ns - last.ns >= OTHER_NS)
			ns[cnt++] = now.ns - last.ns;
	}
	kill(w->pid, SIGSTOP);
	qsort(ns, cnt, sizeof(ns[0]), by_value);
	printf("%d %d %llu\n", place, cnt, cnt ? (unsigned long long)ns[cnt / 2] : 0);
}

int main(int argc, char **argv)
{
	struct walk walks[MAX_WALKS] = { 0 };
	int cnt = argc - 1;

	if (cnt < 1 || cnt > MAX_WALKS || bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		return 2;
	prctl(PR_SET_TIMERSLACK, 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < cnt; i++)
		if (open_walk(&walks[i], argv[i + 1]))
			return 1;
	/* until the tables are there */
	sleep(WARM_S);
	for (int i = 0; i < cnt; i++) {
		kill(walks[i].pid, SIGSTOP);
		if (walks[i].fp && walks[i].fp->bss->runs)
			printf("frames %llu\n", (unsigned long long)(walks[i].fp->bss->frames /
								     walks[i].fp->bss->runs));
	}
	for (;;)
		for (int i = 0; i < cnt; i++)
			run_slice(&walks[i], i);
}
