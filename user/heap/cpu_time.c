// SPDX-License-Identifier: BSD-2-Clause
/* The CPU time of processes, and of the children that they have reaped. */
#include <linux/types.h>

#include "heap/cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/cpus.h"
#include "target/proc_text.h"
#include "target/procs.h"

#define RECENT_NS 1000000
#define REAP_NS NSEC_PER_SEC /* in which a process is waited for that has ended, as a rule */
#define REAP_ASK_NS (REAP_NS / 4)

/* By number of a process. */
struct reaped {
	uint32_t tgid; /* 0: none that lived when that was last asked for */
	uint64_t ns;   /* CPU time of its children, when that was last asked for */
};

/* By number of a process, of one that counts. */
struct counted {
	uint64_t from_ns; /* of the entry that it is of */
	uint64_t ns;	  /* its CPU time, when that was last asked for */
	bool now;	  /* it counted then */
};

struct cpu_time {
	struct procs *procs;
	bool all, follow;
	bool (*counts)(void *ctx, uint32_t proc); /* NULL: all do */
	void *ctx;
	struct counted *counted;
	size_t counted_cap;
	struct reaped *reaped;
	size_t reaped_cap;
	uint64_t ns, asked_ns; /* what was found last, and when */
	uint64_t dead_ns;      /* of those that nobody whom we watch will reap */
	uint64_t zombie_ns;    /* of those that have ended, and may still be reaped */
	uint64_t reaped_ns;    /* by all that live */
	uint64_t reap_until_ns, reap_asked_ns;
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

struct cpu_time *cpu_time__new_of(struct procs *procs, bool (*counts)(void *ctx, uint32_t proc),
				  void *ctx)
{
	struct cpu_time *c = cpu_time__new(procs, false, false);

	if (!c)
		return NULL;
	c->counts = counts;
	c->ctx = ctx;
	return c;
}

void cpu_time__free(struct cpu_time *c)
{
	if (!c)
		return;
	free(c->counted);
	free(c->reaped);
	free(c);
}

/* CPU time of the children that a process has waited for, and of theirs. In ticks of 10 ms. */
static uint64_t reaped_ns(pid_t pid)
{
	unsigned long long user = 0, sys = 0;
	char path[64], *buf, *s;
	size_t sz;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (proc_text_read(path, 4096, &buf, &sz))
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
 * Is the time of reaped children to be asked for again? That takes some 50 us for each process. So, now and
 * then, some times a second since one has ended, for as long as it may take to be reaped, and once more when
 * that is over. What a process has had that ended counts meanwhile (zombie_ns). ended: one has, by its clock.
 */
static bool may_have_reaped(struct cpu_time *c, bool ended, uint64_t now)
{
	for (size_t i = 0; i < MIN(procs__cnt(c->procs), c->reaped_cap); i++) {
		struct reaped *r = &c->reaped[i];

		if (!r->tgid ||
		    (procs__lives(c->procs, i) && procs__get(c->procs, i)->tgid == r->tgid))
			continue;
		r->tgid = 0;
		ended = true;
	}
	if (ended)
		c->reap_until_ns = now + REAP_NS;
	if (now < c->reap_until_ns ? now < c->reap_asked_ns + REAP_ASK_NS :
				     now < c->reap_asked_ns + REAP_NS && !c->zombie_ns)
		return false;
	c->reap_asked_ns = now;
	return true;
}

static uint64_t all_reaped_ns(struct cpu_time *c, bool ended, uint64_t now)
{
	bool ask = may_have_reaped(c, ended, now);
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

/* What has been reaped comes with its parent's, and is no longer missing. */
static void note_reaped(struct cpu_time *c, uint64_t reaped, uint64_t now)
{
	if (reaped > c->reaped_ns)
		c->zombie_ns -= MIN(reaped - c->reaped_ns, c->zombie_ns);
	c->reaped_ns = reaped;
	if (now < c->reap_until_ns)
		return;
	c->dead_ns += c->zombie_ns;
	c->zombie_ns = 0;
}

/* Of a living process. False: it has ended. */
static bool clock_of(pid_t pid, uint64_t *ret_ns)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return false;
	*ret_ns = ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
	return true;
}

/* What those that count have had since they were last asked, of one that is new nothing. */
static uint64_t counted_ns(struct cpu_time *c)
{
	uint64_t sum = 0, ns;

	for (size_t i = 0; i < procs__cnt(c->procs); i++) {
		const struct proc *p = procs__get(c->procs, i);
		struct counted *e;

		if (util_reserve_zeroed(&c->counted, &c->counted_cap, i, sizeof(*c->counted)))
			break;
		e = &c->counted[i];
		if (!procs__lives(c->procs, i) || !c->counts(c->ctx, i) ||
		    !clock_of(p->tgid, &ns)) {
			e->now = false;
			continue;
		}
		if (e->now && e->from_ns == p->from_ns)
			sum += ns - MIN(ns, e->ns);
		*e = (struct counted){ .from_ns = p->from_ns, .ns = ns, .now = true };
	}
	return sum;
}

uint64_t cpu_time__ns(struct cpu_time *c)
{
	uint64_t now = util_monotonic_ns(), sum = 0, reaped = 0;
	struct cpus_work work;
	bool ended = false;

	c->asked_ns = now;
	if (c->all) {
		if (!cpus_work(&work))
			c->ns = MAX(work.busy_ns, c->ns);
		return c->ns;
	}
	if (c->counts) {
		c->ns += counted_ns(c);
		return c->ns;
	}
	for (size_t i = 0; i < procs__cnt(c->procs); i++) {
		uint64_t ns;

		if (!procs__lives(c->procs, i))
			continue;
		if (clock_of(procs__get(c->procs, i)->tgid, &ns))
			sum += ns;
		else
			ended = true;
	}
	if (c->follow) {
		reaped = all_reaped_ns(c, ended, now);
		note_reaped(c, reaped, now);
	}
	sum += reaped + c->dead_ns + c->zombie_ns;
	/* monotonic, though processes end */
	if (sum < c->ns)
		*(c->follow ? &c->zombie_ns : &c->dead_ns) += c->ns - sum;
	c->ns = MAX(sum, c->ns);
	return c->ns;
}

uint64_t cpu_time__recent_ns(struct cpu_time *c)
{
	bool recent = c->asked_ns && util_monotonic_ns() - c->asked_ns < RECENT_NS;

	return recent ? c->ns : cpu_time__ns(c);
}
