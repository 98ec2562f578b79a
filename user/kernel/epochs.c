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
#include "kernel/probe.h"
#include "kernel/session.h"

struct epochs {
	int cpu_cnt;
	struct bpfprof_stats *per_cpu; /* scratch: of one kind and side */
	/* by kind: of all epochs that have ended; and how many runs of programs were missed by then */
	struct bpfprof_stats ended[BPFPROF_NR_KINDS];
	uint64_t missed[BPFPROF_NR_KINDS];
	/* a map of maps whose update waits, and what it is updated with */
	int outer_fd, inner_fd;
};

/*
 * The kernel lets the update of a map of maps return only when the programs that may still use the
 * former inner map have ended: an RCU grace period (1ae80cf31938, Linux 4.20). membarrier(2) would
 * wait for one as well, but not where CPUs run without a tick (nohz_full).
 */
static int open_maps(struct epochs *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	e->inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bp_epoch", 4, 4, 1, NULL);
	if (e->inner_fd < 0)
		return -errno;
	opts.inner_map_fd = (uint32_t)e->inner_fd;
	e->outer_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "bp_epochs", 4, 4, 1, &opts);
	return e->outer_fd < 0 ? -errno : 0;
}

struct epochs *epochs__new(void)
{
	struct epochs *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return NULL;
	e->outer_fd = e->inner_fd = -1;
	e->cpu_cnt = cpus_possible();
	e->per_cpu = e->cpu_cnt > 0 ? calloc((size_t)e->cpu_cnt, sizeof(*e->per_cpu)) : NULL;
	err = e->per_cpu ? open_maps(e) : -ENOMEM;
	if (!err)
		return e;
	epochs__free(e);
	errno = -err;
	return NULL;
}

void epochs__free(struct epochs *e)
{
	if (!e)
		return;
	if (e->outer_fd >= 0)
		close(e->outer_fd);
	if (e->inner_fd >= 0)
		close(e->inner_fd);
	free(e->per_cpu);
	free(e);
}

int epochs__wait(struct session *s)
{
	const struct epochs *e = session__epochs(s);
	uint32_t key = 0;

	return bpf_map_update_elem(e->outer_fd, &key, &e->inner_fd, BPF_ANY) ? -errno : 0;
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

int epochs__next(struct session *s, struct bpfprof_stats ret[static BPFPROF_NR_KINDS])
{
	volatile __u32 *epoch = &session__skel(s)->bss->bp_control.epoch;
	uint32_t side = BPFPROF_SIDE(*epoch);
	int err;

	memset(ret, 0, BPFPROF_NR_KINDS * sizeof(*ret));
	__atomic_store_n(epoch, *epoch + 1, __ATOMIC_SEQ_CST);
	err = epochs__wait(s);
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		err = take_side(s, side, i, &ret[i]);
	return err ? err : (int)side;
}
