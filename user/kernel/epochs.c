// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/epochs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/cpus.h"
#include "kernel/grace.h"
#include "kernel/probe.h"
#include "kernel/session.h"

struct epochs {
	int cpu_cnt;
	struct bpfprof_stats *per_cpu; /* scratch: of one kind and side */
	/* by kind: of all epochs that have ended; and how many runs of programs were missed by then */
	struct bpfprof_stats ended[BPFPROF_NR_KINDS];
	uint64_t missed[BPFPROF_NR_KINDS];
	uint64_t end; /* of the epoch before: number of a grace period */
};

struct epochs *epochs__new(void)
{
	struct epochs *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->cpu_cnt = cpus_possible();
	e->per_cpu = e->cpu_cnt > 0 ? calloc((size_t)e->cpu_cnt, sizeof(*e->per_cpu)) : NULL;
	if (e->per_cpu)
		return e;
	epochs__free(e);
	errno = ENOMEM;
	return NULL;
}

void epochs__free(struct epochs *e)
{
	if (!e)
		return;
	free(e->per_cpu);
	free(e);
}

/* ---- counters ---- */

static uint64_t missed_of(struct session *s, enum bpfprof_kind kind)
{
	const struct probe *p = probes[kind];

	return session__opts(s)->kinds[kind] && p->missed ? p->missed(s) : 0;
}

static void add(struct bpfprof_stats *sum, const struct bpfprof_stats *stats)
{
	util_add_counters(sum, stats, sizeof(*sum));
}

/* Adds what was counted on a side, over all CPUs. */
static int add_side(struct session *s, uint32_t side, enum bpfprof_kind kind,
		    struct bpfprof_stats *sum)
{
	struct epochs *e = session__epochs(s);
	uint32_t key = BPFPROF_STATS_KEY(side, kind);

	if (bpf_map_lookup_elem(bpf_map__fd(session__skel(s)->maps.bp_stats), &key, e->per_cpu))
		return -errno;
	for (int i = 0; i < e->cpu_cnt; i++)
		add(sum, &e->per_cpu[i]);
	return 0;
}

static void add_missed(struct bpfprof_stats *sum, uint64_t cnt)
{
	sum->lost[BPFPROF_LOST_missed] += cnt;
	sum->seen += cnt;
}

int epochs__stats(struct session *s, enum bpfprof_kind kind, struct bpfprof_stats *ret)
{
	struct epochs *e = session__epochs(s);
	int err = 0;

	*ret = e->ended[kind];
	for (uint32_t side = 0; !err && side < BPFPROF_SIDES; side++)
		err = add_side(s, side, kind, ret);
	add_missed(ret, missed_of(s, kind) - e->missed[kind]);
	return err;
}

/* The programs do not use this side: takes what was counted there, so that it is empty for the epoch
 * after next. */
static int take_side(struct session *s, uint32_t side, enum bpfprof_kind kind,
		     struct bpfprof_stats *ret)
{
	struct epochs *e = session__epochs(s);
	uint64_t missed = missed_of(s, kind);
	uint32_t key = BPFPROF_STATS_KEY(side, kind);
	int err = add_side(s, side, kind, ret);

	if (err)
		return err;
	memset(e->per_cpu, 0, (size_t)e->cpu_cnt * sizeof(*e->per_cpu));
	if (bpf_map_update_elem(bpf_map__fd(session__skel(s)->maps.bp_stats), &key, e->per_cpu,
				BPF_ANY))
		return -errno;
	add_missed(ret, missed - e->missed[kind]);
	e->missed[kind] = missed;
	add(&e->ended[kind], ret);
	return 0;
}

uint32_t epochs__end(struct session *s)
{
	volatile __u32 *epoch = &session__skel(s)->bss->bp_control.epoch;
	uint32_t side = BPFPROF_SIDE(*epoch);

	__atomic_store_n(epoch, *epoch + 1, __ATOMIC_SEQ_CST);
	session__epochs(s)->end = grace__ask(session__grace(s));
	return side;
}

int epochs__has_ended(struct session *s, bool wait)
{
	return grace__passed(session__grace(s), session__epochs(s)->end, wait);
}

int epochs__take(struct session *s, uint32_t side,
		 struct bpfprof_stats ret[static BPFPROF_NR_KINDS])
{
	int err = 0;

	memset(ret, 0, BPFPROF_NR_KINDS * sizeof(*ret));
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		err = session__opts(s)->kinds[i] ? take_side(s, side, i, &ret[i]) : 0;
	return err;
}
