/* SPDX-License-Identifier: BSD-2-Clause */
/* The perf maps of the profiled processes. */
#include "target/perf_maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "target/file_stat.h"
#include "target/objects.h"
#include "target/perf_map.h"
#include "target/proc_maps.h"
#include "target/procs.h"

/* The time of a file is that of the last tick of the clock. */
#define TICK_NS 10000000ULL
#define CLOCKS_NS 1000000ULL /* that two clocks may drift apart meanwhile */
/* for reading all of them, in so much time */
#define MAX_NS (30 * NSEC_PER_SEC)
#define SPAN_NS (60 * NSEC_PER_SEC)

struct map {
	enum {
		HOLDS_ROOT, /* the process is in procs */
		HOLDS_FILE, /* it is not */
		NOTHING
	} state;
	int fd; /* O_PATH; -1: there were too many */
	uint32_t refs;
	uint32_t proc; /* PROCS_NONE: it is no more in procs */
	struct proc_ids ids;
	uint64_t since_ns;   /* CLOCK_REALTIME: when the process became this program */
	struct file_stat st; /* of the file that is held: it is to be what it was */
	bool counted, complained;
};

struct perf_maps {
	struct procs *procs;
	struct objects *objects;
	struct map *maps;
	size_t end, cap;
	uint32_t *unused; /* numbers */
	size_t unused_cnt, unused_cap;
	uint32_t *by_proc; /* 1 + the number of the map; 0: none */
	size_t by_proc_cap;
	size_t open_cnt;
	uint64_t spent_ns, spent_since_ns;
	struct perf_maps_stats stats;
};

struct perf_maps *perf_maps__new(struct procs *procs, struct objects *objects)
{
	struct perf_maps *pm = calloc(1, sizeof(*pm));

	if (!pm)
		return NULL;
	pm->procs = procs;
	pm->objects = objects;
	return pm;
}

static void let_go(struct perf_maps *pm, struct map *m)
{
	if (m->fd >= 0) {
		close(m->fd);
		pm->open_cnt--;
	}
	m->fd = -1;
}

void perf_maps__free(struct perf_maps *pm)
{
	if (!pm)
		return;
	for (size_t i = 0; i < pm->end; i++)
		let_go(pm, &pm->maps[i]);
	free(pm->maps);
	free(pm->unused);
	free(pm->by_proc);
	free(pm);
}

/* The map is to have this descriptor from now on, if no more than `most` others have one. */
static void keep(struct perf_maps *pm, struct map *m, int fd, size_t most)
{
	let_go(pm, m);
	if (pm->open_cnt >= most || !objects__may_keep(fd)) {
		close(fd);
		return;
	}
	m->fd = fd;
	pm->open_cnt++;
}

static void give_up(struct perf_maps *pm, struct map *m)
{
	let_go(pm, m);
	m->state = NOTHING;
}

/* ---- processes ---- */

/* When the process became the program that it is, by the clock of files. */
static uint64_t since_ns(const struct proc *p)
{
	/* what a scan has met may have begun before the first event of it */
	uint64_t age = p->scanned_ns || !p->from_ns ? util_boottime_ns() - p->start_ns :
						      util_monotonic_ns() - p->from_ns;

	return util_realtime_ns() - age - TICK_NS;
}

/* By when the process had ended; UINT64_MAX: it lives. */
static uint64_t until_ns(const struct proc *p)
{
	return p->to_ns == UINT64_MAX ?
		       UINT64_MAX :
		       util_realtime_ns() - (util_monotonic_ns() - p->to_ns) + CLOCKS_NS;
}

static void hold_root(struct perf_maps *pm, struct map *m)
{
	const struct proc *p = procs__get(pm->procs, m->proc);
	int err = procs__ids(pm->procs, m->proc, &m->ids), fd;

	fd = err ? err : procs__open_root(pm->procs, pm->objects, m->proc);
	if (fd < 0) {
		pm->stats.lost++;
		give_up(pm, m);
		return;
	}
	m->since_ns = since_ns(p);
	keep(pm, m, fd, PERF_MAPS_MAX_FDS);
}

/* With room to note that it is unused again; PERF_MAPS_NONE: out of memory. */
static uint32_t take_number(struct perf_maps *pm)
{
	if (pm->unused_cnt)
		return pm->unused[--pm->unused_cnt];
	if (pm->end >= INT32_MAX ||
	    util_reserve(&pm->maps, &pm->cap, pm->end + 1, sizeof(*pm->maps)) ||
	    util_reserve(&pm->unused, &pm->unused_cap, pm->end + 1, sizeof(*pm->unused)))
		return PERF_MAPS_NONE;
	return (uint32_t)pm->end++;
}

uint32_t perf_maps__of(struct perf_maps *pm, uint32_t proc)
{
	uint32_t ret;

	if (util_reserve_zeroed(&pm->by_proc, &pm->by_proc_cap, proc, sizeof(*pm->by_proc)))
		return PERF_MAPS_NONE;
	if (pm->by_proc[proc])
		return pm->by_proc[proc] - 1;
	ret = take_number(pm);
	if (ret == PERF_MAPS_NONE)
		return ret;
	pm->maps[ret] = (struct map){ .state = HOLDS_ROOT, .fd = -1, .proc = proc };
	hold_root(pm, &pm->maps[ret]);
	pm->by_proc[proc] = ret + 1;
	return ret;
}

void perf_maps__ref(struct perf_maps *pm, uint32_t map)
{
	pm->maps[map].refs++;
}

/* Gives the number of a map back that nobody can ask for any more. */
static void release_unused(struct perf_maps *pm, uint32_t map)
{
	struct map *m = &pm->maps[map];

	if (m->refs || m->proc != PROCS_NONE)
		return;
	give_up(pm, m);
	pm->unused[pm->unused_cnt++] = map;
}

void perf_maps__unref(struct perf_maps *pm, uint32_t map)
{
	pm->maps[map].refs--;
	release_unused(pm, map);
}

size_t perf_maps__cnt(const struct perf_maps *pm)
{
	return pm->end - pm->unused_cnt;
}

/* ---- files ---- */

static bool is_believed(const struct map *m, const struct file_stat *st, uint64_t until)
{
	return (st->uid == m->ids.euid || !st->uid) && !(st->mode & S_IWOTH) && st->links <= 1 &&
	       st->mtime_ns >= m->since_ns && st->mtime_ns <= until;
}

/* The map's file, as O_PATH, whatever it is. */
static int open_file(struct perf_maps *pm, const struct map *m)
{
	int root = m->fd, tmp, fd;
	char name[32];

	/* the process may still be there to be asked */
	if (root < 0)
		root = procs__open_root(pm->procs, pm->objects, m->proc);
	if (root < 0)
		return root;
	snprintf(name, sizeof(name), "perf-%u.map", m->ids.ns_pid);
	tmp = objects__open_at(pm->objects, root, "tmp");
	fd = tmp < 0 ? tmp : objects__open_at(pm->objects, tmp, name);
	if (tmp >= 0)
		close(tmp);
	if (root != m->fd)
		close(root);
	return fd;
}

/* Counts a map once, whatever becomes of it afterwards. */
static void count(struct map *m, uint64_t *counter)
{
	*counter += !m->complained;
	m->complained = true;
}

/* From the root to the file: what is there now is the process's map. Returns its descriptor, or
 * -errno. */
static int find_file(struct perf_maps *pm, struct map *m, struct file_stat *ret_st)
{
	uint64_t until = until_ns(procs__get(pm->procs, m->proc));
	int fd = open_file(pm, m), err = fd < 0 ? fd : file_stat_regular(fd, ret_st);

	if (!err && !is_believed(m, ret_st, until))
		err = -EPERM;
	if (err && fd >= 0)
		close(fd);
	/* no folder: a link */
	if (err == -EPERM || err == -ENOTSUP || err == -ENOTDIR)
		count(m, &pm->stats.refused);
	else if (err && err != -ENOENT)
		count(m, &pm->stats.lost);
	return err ? err : fd;
}

/* Holds the file instead of the root: others may write it from now on. */
static void hold_file(struct perf_maps *pm, struct map *m)
{
	int fd = find_file(pm, m, &m->st);

	if (fd < 0) {
		give_up(pm, m);
		return;
	}
	m->state = HOLDS_FILE;
	keep(pm, m, fd, PERF_MAPS_MAX_FDS);
	if (m->fd >= 0)
		return;
	count(m, &pm->stats.lost);
	give_up(pm, m);
}

void perf_maps__end(struct perf_maps *pm, uint32_t proc)
{
	struct map *m;
	uint32_t map;

	if (proc >= pm->by_proc_cap || !pm->by_proc[proc])
		return;
	map = pm->by_proc[proc] - 1;
	m = &pm->maps[map];
	if (m->refs && m->state == HOLDS_ROOT)
		hold_file(pm, m);
	pm->by_proc[proc] = 0;
	m->proc = PROCS_NONE;
	release_unused(pm, map);
}

/* ---- names ---- */

static bool was_changed(const struct map *m)
{
	struct file_stat st;

	return file_stat_regular(m->fd, &st) || !file_stat_same(&st, &m->st);
}

/* The file to read, as of now, or -errno. One that is not m->fd is the caller's. */
static int file_to_read(struct perf_maps *pm, struct map *m)
{
	struct file_stat st;

	if (m->state == HOLDS_FILE && was_changed(m)) {
		count(m, &pm->stats.refused);
		give_up(pm, m);
	}
	if (m->state == NOTHING)
		return -ENOENT;
	return m->state == HOLDS_FILE ? m->fd : find_file(pm, m, &st);
}

static bool has_time(struct perf_maps *pm, uint64_t now)
{
	if (now - pm->spent_since_ns >= SPAN_NS) {
		pm->spent_since_ns = now;
		pm->spent_ns = 0;
	}
	return pm->spent_ns <= MAX_NS;
}

int perf_maps__symbolize(struct perf_maps *pm, uint32_t map, const uint64_t *addrs, size_t cnt,
			 struct symbols *ret)
{
	struct map *m = &pm->maps[map];
	struct perf_map_names names;
	uint64_t start = util_monotonic_ns();
	int fd, err;

	if (m->state != NOTHING && !has_time(pm, start)) {
		count(m, &pm->stats.lost);
		return -ENOENT;
	}
	fd = file_to_read(pm, m);
	if (fd < 0)
		return -ENOENT;
	err = objects__perf_map(pm->objects, fd, addrs, cnt, &names);
	if (fd != m->fd)
		close(fd);
	pm->spent_ns += util_monotonic_ns() - start;
	if (err) {
		/* what harms a reader does so the next time; that none could be started says nothing of the file */
		if (err != -ENOMEM && err != -EAGAIN)
			give_up(pm, m);
		return err;
	}
	pm->stats.ignored += names.ignored;
	pm->stats.read += !m->counted;
	pm->stats.cut += !m->counted && names.unread;
	m->counted = true;
	*ret = names.symbols;
	return 0;
}

void perf_maps__stats(const struct perf_maps *pm, struct perf_maps_stats *ret)
{
	*ret = pm->stats;
}
