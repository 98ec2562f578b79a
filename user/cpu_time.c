// SPDX-License-Identifier: BSD-2-Clause
/* The CPU time of processes, and of the children that they have reaped. */
#include <linux/types.h>

#include "cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "target/procs.h"

#define REAP_NS NSEC_PER_SEC /* in which a process is waited for that has ended, as a rule */

/* By number of a process. */
struct reaped {
	uint32_t tgid;
	uint64_t ns; /* CPU time of its children, when that was last asked for */
};

struct cpu_time {
	struct procs *procs;
	bool all, follow;
	struct reaped *reaped;
	size_t reaped_cap;
	uint64_t ns, dead_ns;
	uint64_t living; /* hash of the processes that live */
	uint64_t reap_until_ns, next_reap_ns;
};

struct cpu_time *cpu_time__new(struct procs *procs, bool all, bool follow)
{
	struct cpu_time *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->procs = procs;
	c->all = all;
	c->follow = follow;
	return c;
}

void cpu_time__free(struct cpu_time *c)
{
	if (!c)
		return;
	free(c->reaped);
	free(c);
}

/* CPU time of everything, in ns; in ticks of 10 ms. */
static uint64_t system_ns(void)
{
	unsigned long long user = 0, nice = 0, sys = 0;
	FILE *f = fopen("/proc/stat", "re");

	if (!f)
		return 0;
	/* the first line; others may be long */
	(void)fscanf(f, "cpu %llu %llu %llu", &user, &nice, &sys);
	fclose(f);
	return (user + nice + sys) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/* CPU time of the children that a process has waited for, and of theirs. In ticks of 10 ms. */
static uint64_t reaped_ns(pid_t pid)
{
	unsigned long long user = 0, sys = 0;
	char path[64], *buf, *s;
	size_t sz;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (util_read_file(path, 4096, &buf, &sz))
		return 0;
	s = strrchr(buf, ')');
	/* cutime and cstime, proc(5) */
	if (s)
		(void)sscanf(s + 1,
			     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu",
			     &user, &sys);
	free(buf);
	return (user + sys) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/*
 * Is the time of reaped children to be asked for again? That takes the kernel 20 us for each
 * process. So, now and then, and each time while processes begin and end. ended: one has, by its
 * clock.
 */
static bool may_have_reaped(struct cpu_time *c, bool ended)
{
	uint64_t now = util_monotonic_ns(), living = 0;

	for (size_t i = 0; i < procs__cnt(c->procs); i++) {
		const struct proc *p = procs__get(c->procs, i);

		if (procs__lives(c->procs, i))
			living += util_hash(&p->from_ns, sizeof(p->from_ns), p->tgid);
	}
	if (ended || living != c->living)
		c->reap_until_ns = now + REAP_NS;
	c->living = living;
	if (now >= c->reap_until_ns && now < c->next_reap_ns)
		return false;
	c->next_reap_ns = now + REAP_NS;
	return true;
}

static uint64_t all_reaped_ns(struct cpu_time *c, bool ended)
{
	bool ask = may_have_reaped(c, ended);
	uint64_t sum = 0;

	for (size_t i = 0; i < procs__cnt(c->procs); i++) {
		uint32_t tgid = procs__get(c->procs, i)->tgid;

		if (!procs__lives(c->procs, i))
			continue;
		/* without memory nothing is kept */
		if (util_reserve_zeroed(&c->reaped, &c->reaped_cap, i, sizeof(*c->reaped))) {
			sum += reaped_ns(tgid);
			continue;
		}
		if (ask || c->reaped[i].tgid != tgid)
			c->reaped[i] = (struct reaped){ .tgid = tgid, .ns = reaped_ns(tgid) };
		sum += c->reaped[i].ns;
	}
	return sum;
}

uint64_t cpu_time__ns(struct cpu_time *c)
{
	bool ended = false;
	uint64_t sum = 0;

	if (c->all) {
		c->ns = MAX(system_ns(), c->ns);
		return c->ns;
	}
	for (size_t i = 0; i < procs__cnt(c->procs); i++) {
		const struct proc *p = procs__get(c->procs, i);
		struct timespec ts;
		clockid_t clock;

		if (!procs__lives(c->procs, i))
			continue;
		if (!clock_getcpuclockid(p->tgid, &clock) && !clock_gettime(clock, &ts))
			sum += ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
		else
			ended = true;
	}
	if (c->follow)
		sum += all_reaped_ns(c, ended);
	/* monotonic, though processes end */
	if (sum + c->dead_ns < c->ns)
		c->dead_ns = c->ns - sum;
	c->ns = sum + c->dead_ns;
	return c->ns;
}
