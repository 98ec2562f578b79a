// SPDX-License-Identifier: BSD-2-Clause
/* What the agent costs its node (--max-cpu, --max-memory): measured with each window, all of its
 * processes, BPF programs and maps together. */
#include <linux/types.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/node_budget.h"
#include "base/log.h"
#include "base/util.h"
#include "capture/capture.h"
#include "options.h"
#include "profile/profile.h"
#include "record/run_parts.h"

#define WAITS (1U << BPFPROF_OFFCPU | 1U << BPFPROF_BLOCK | 1U << BPFPROF_MUTEX)
#define HEAP (1U << BPFPROF_HEAP)
/* The kernel writes half a page of text for each of some 70 BPF maps and programs, which takes longer than
 * to look at all else, and what they are charged with changes with the tables of new programs alone. */
#define BPF_MEMORY_NS (60 * NSEC_PER_SEC)

struct run_budget {
	struct node_budget budget;
	uint64_t cpu_ns, at_ns; /* by the last window */
	uint64_t bpf_ns;	/* of the former, in BPF programs */
	double cpu;		/* share of all CPUs, of the last window */
	uint64_t memory;
	uint64_t bpf_memory, bpf_next_ns; /* when to look again */
	uint32_t off, off_in_window; /* kinds: now, and at some time of the window that goes on */
};

static const char *const given_up[NODE_BUDGET_STEPS] = {
	[NODE_BUDGET_HALF] = "every other CPU sample",
	[NODE_BUDGET_QUARTER] = "3 of 4 CPU samples",
	[NODE_BUDGET_EIGHTH] = "7 of 8 CPU samples",
	[NODE_BUDGET_PLAIN] = "7 of 8 CPU samples, inlined functions and lines",
	[NODE_BUDGET_FEW] =
		"7 of 8 CPU samples, inlined functions and lines, waits, heap, and targets",
};

/* ---- what it takes ---- */

/* Of a descriptor's information (bpf(2)): what its BPF map or program is charged with; 0: it is neither. */
static uint64_t charged(int folder, const char *file)
{
	int fd = openat(folder, file, O_RDONLY | O_CLOEXEC);
	uint64_t ret = 0;
	char *buf, *at;
	size_t sz;

	if (fd < 0)
		return 0;
	if (!util_read_fd(fd, 4096, &buf, &sz)) {
		at = strstr(buf, "\nmemlock:");
		ret = at ? strtoull(at + strlen("\nmemlock:"), NULL, 10) : 0;
		free(buf);
	}
	close(fd);
	return ret;
}

/* BPF maps, and programs, by the descriptors that we have. */
static uint64_t bpf_memory(void)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	uint64_t sum = 0;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		sum += *e->d_name == '.' ? 0 : charged(dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	return sum;
}

static void measure(struct run *r)
{
	const struct options *o = r->opts;
	struct run_budget *b = r->budget;
	pid_t children[RUN_MAX_CHILDREN];
	ssize_t found = run_children(children);
	size_t cnt = found < 0 ? 0 : (size_t)found;
	uint64_t now = util_monotonic_ns(), ns = run_processes_ns(children, cnt);
	struct capture_stats stats;

	capture__stats(r->capture, &stats);
	/* it is told once */
	r->totals.late_ns = MAX(r->totals.late_ns, stats.late_ns);
	ns += stats.bpf_ns;
	b->bpf_ns = stats.bpf_ns;
	b->memory = run_memory_of(getpid());
	for (size_t i = 0; i < cnt; i++)
		b->memory += run_memory_of(children[i]);
	/* nothing is given up for what is no more */
	if (now >= b->bpf_next_ns || (o->max_memory && b->memory + b->bpf_memory > o->max_memory)) {
		b->bpf_memory = bpf_memory();
		b->bpf_next_ns = now + BPF_MEMORY_NS;
	}
	b->memory += b->bpf_memory;
	if (b->at_ns && now > b->at_ns && ns > b->cpu_ns)
		b->cpu = (double)(ns - b->cpu_ns) / (double)(now - b->at_ns) /
			 (double)sysconf(_SC_NPROCESSORS_ONLN);
	b->cpu_ns = ns;
	b->at_ns = now;
}

/* ---- what is given up ---- */

/* Where probes of allocators are in targets alone they go with these. */
static uint32_t kinds_to_give_up(const struct run *r)
{
	return r->opts->chosen[BPFPROF_HEAP] ? WAITS : WAITS | HEAP;
}

static void apply(struct run *r)
{
	struct run_budget *b = r->budget;
	enum node_budget_step step = b->budget.step;
	struct capture_limits limits = {
		.cpu_every = node_budget_cpu_every(step),
		.plain_names = step >= NODE_BUDGET_PLAIN,
		.kinds_off = step >= NODE_BUDGET_FEW ? kinds_to_give_up(r) : 0,
	};

	b->off = limits.kinds_off;
	if (step >= NODE_BUDGET_FEW)
		b->off |= HEAP;
	b->off_in_window |= b->off;
	capture__limit(r->capture, &limits);
}

static void say(const struct run_budget *b)
{
	enum node_budget_step step = b->budget.step;

	log_info("it takes %.2f %% of the CPU time of this machine, and %.0f MiB: %s%s",
		 100 * b->cpu, (double)b->memory / (1 << 20),
		 step ? "from now on without " : "nothing is given up any more",
		 step ? given_up[step] : "");
}

int run_open_budget(struct run *r)
{
	const struct options *o = r->opts;

	if (!(o->max_cpu > 0) && !o->max_memory)
		return 0;
	r->budget = calloc(1, sizeof(*r->budget));
	if (!r->budget)
		return -ENOMEM;
	r->budget->budget.max_cpu = o->max_cpu / 100;
	r->budget->budget.max_memory = o->max_memory;
	return 0;
}

void run_close_budget(struct run *r)
{
	free(r->budget);
	r->budget = NULL;
}

void run_budget_window(struct run *r)
{
	struct run_budget *b = r->budget;

	if (!b)
		return;
	measure(r);
	b->off_in_window = b->off;
	if (!node_budget__window(&b->budget, b->cpu, b->memory))
		return;
	apply(r);
	say(b);
}

uint32_t run_budget_off(const struct run *r)
{
	return r->budget ? r->budget->off : 0;
}

uint32_t run_budget_off_in_window(const struct run *r)
{
	return r->budget ? r->budget->off_in_window : 0;
}

int run_budget_comment(const struct run *r, struct profile *p)
{
	const struct run_budget *b = r->budget;
	char text[256];

	if (!b || !b->budget.step)
		return 0;
	snprintf(text, sizeof(text), "given up by now, for --max-cpu and --max-memory: %s",
		 given_up[b->budget.step]);
	return profile__add_comment(p, text);
}

bool run_budget_get(const struct run *r, struct run_budget_state *ret)
{
	const struct run_budget *b = r->budget;

	if (!b)
		return false;
	*ret = (struct run_budget_state){
		.step = b->budget.step, .cpu = b->cpu, .memory = b->memory, .bpf_ns = b->bpf_ns
	};
	return true;
}
