// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel side knows of each process: the list of its ranges, with the table of each. */
#include <linux/types.h>

#include "capture/code_parts.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "target/objects.h"
#include "target/perf_maps.h"

#define MAX_LIST (BPFPROF_MAX_MAPS - 1) /* ranges of a process that the kernel side is told */
#define MAX_MAP (1ULL << 31)		/* bytes of one */
#define MAX_SKIPS 16 /* of these, ranges at either end that do not fit: to try each takes some us */

static void add_map(struct code *c, size_t *cnt, uint64_t start, uint64_t end, uint32_t skew,
		    const struct tables_extent *part, uint32_t chunk)
{
	/* a part covers less; the memory of a JIT compiler may be larger than an entry says */
	for (; !part && start < end && end - start > MAX_MAP; start += MAX_MAP)
		add_map(c, cnt, start, start + MAX_MAP, 0, NULL, chunk);
	if (start >= end)
		return;
	if (*cnt >= MAX_LIST || util_reserve(&c->maps, &c->map_cap, *cnt + 1, sizeof(*c->maps))) {
		c->full = true;
		return;
	}
	c->maps[(*cnt)++] = (struct tables_map){
		.start = start,
		.map = {
			.size = (uint32_t)(end - start),
			.skew = skew,
			.chunk = part ? part->chunk : chunk,
			.pos = part ? part->pos : 0,
		},
	};
}

/* The range's entries: one for each part that covers some of it, and for what lies between. */
static void add_range(struct code *c, uint32_t proc, const struct proc_map *map, size_t *cnt)
{
	struct object_state *s = NULL;
	uint64_t vaddr, at = map->start;
	uint32_t object;

	if (procs__file(c->procs, map->file)->kind == PROC_FILE_ANON) {
		add_map(c, cnt, map->start, map->end, 0, NULL,
			map->copy == PROC_MAP_MAYBE_COPY ? BPFPROF_CHUNK_NOT_LOADED :
							   BPFPROF_CHUNK_NO_TABLE);
		return;
	}
	object = code_known_object(c, proc, map->file);
	if (object != OBJECTS_NONE) {
		c->files[map->file].spare = false;
		s = code_state_of(c, object);
	}
	if (!s || s->table == NOT_LOADED) {
		bool given_up =
			!s && map->file < c->file_cap && c->files[map->file].tries >= OPEN_TRIES;

		add_map(c, cnt, map->start, map->end, 0, NULL,
			given_up ? BPFPROF_CHUNK_NO_TABLE : BPFPROF_CHUNK_NOT_LOADED);
		return;
	}
	if (s->table == LOADED &&
	    objects__vaddr(c->objects, object, map->offset, map->end - map->start, &vaddr)) {
		for (size_t i = 0; i < s->part_cnt; i++) {
			const struct part_state *p = &s->parts[i];
			uint64_t lo = MAX(p->vaddr, vaddr);
			uint64_t hi = MIN(p->vaddr + p->text_sz, vaddr + (map->end - map->start));

			if (lo >= hi)
				continue;
			add_map(c, cnt, at, map->start + (lo - vaddr), 0, NULL,
				BPFPROF_CHUNK_NO_TABLE);
			add_map(c, cnt, map->start + (lo - vaddr), map->start + (hi - vaddr),
				lo - p->vaddr, &p->extent, 0);
			at = map->start + (hi - vaddr);
		}
	}
	add_map(c, cnt, at, map->end, 0, NULL, BPFPROF_CHUNK_NO_TABLE);
}

struct proc_state *code_proc_state(struct code *c, uint32_t proc)
{
	if (util_reserve_zeroed(&c->procs_state, &c->proc_cap, proc, sizeof(*c->procs_state)))
		return NULL;
	return &c->procs_state[proc];
}

/* One more range, if all of it fits below the limit. */
static bool add_whole(struct code *c, uint32_t proc, const struct proc_map *map, size_t limit,
		      size_t *cnt)
{
	size_t before = *cnt;

	c->full = false;
	add_range(c, proc, map, cnt);
	if (!c->full && *cnt <= limit)
		return true;
	*cnt = before;
	return false;
}

/* Chooses ranges from one on in steps of 1 or -1, up to `end`, that fit into half of the list, which is
 * written over. Some that do not are passed over. Returns how many. */
static size_t choose(struct code *c, uint32_t proc, size_t from, size_t end, int step,
		     uint32_t ret[MAX_LIST / 2])
{
	const struct proc_space *s = procs__space(c->procs, proc);
	size_t cnt = 0, chosen = 0, skips = 0;

	for (size_t i = from; i != end && skips <= MAX_SKIPS; i += (size_t)step)
		if (add_whole(c, proc, &s->maps[i], MAX_LIST / 2, &cnt))
			ret[chosen++] = (uint32_t)i;
		else
			skips++;
	return chosen;
}

/*
 * A process has more ranges than there is room for: takes those at both ends. Its program lies
 * below what it maps by itself, its libraries above, and what it has mapped last at either end, or
 * in a gap beside what it has mapped first.
 */
static size_t add_ends(struct code *c, uint32_t proc)
{
	const struct proc_space *s = procs__space(c->procs, proc);
	uint32_t low[MAX_LIST / 2], high[MAX_LIST / 2];
	size_t cnt = 0, highs = choose(c, proc, s->map_cnt - 1, SIZE_MAX, -1, high);
	size_t lows = choose(c, proc, 0, highs ? high[highs - 1] : s->map_cnt, 1, low);

	for (size_t i = 0; i < lows; i++)
		add_range(c, proc, &s->maps[low[i]], &cnt);
	for (size_t i = highs; i-- > 0;)
		add_range(c, proc, &s->maps[high[i]], &cnt);
	c->stats.cut_maps = MAX(c->stats.cut_maps, s->map_cnt - lows - highs + s->cut_cnt);
	return cnt;
}

/* Makes the list of a process anew and puts it into table memory. */
static int set_list(struct code *c, uint32_t proc, const struct bpfprof_proc_key *key,
		    size_t *ret_cnt)
{
	const struct proc_space *s = procs__space(c->procs, proc);
	size_t i = 0;

	*ret_cnt = 0;
	while (i < s->map_cnt && add_whole(c, proc, &s->maps[i], MAX_LIST, ret_cnt))
		i++;
	if (i < s->map_cnt)
		*ret_cnt = add_ends(c, proc);
	return tables__set_proc(c->tables, key, c->maps, *ret_cnt, s->gen,
				&c->procs_state[proc].list);
}

/* Changes when a process maps anything else. */
static uint64_t ranges_of(const struct proc_space *s)
{
	return util_hash(s->maps, s->map_cnt * sizeof(*s->maps), s->gen);
}

/*
 * The kernel side's table of processes is full: lets it forget one in turn, whose next stack comes
 * raw and brings it back. Returns false if it knows no other.
 */
static bool displace(struct code *c, uint32_t proc)
{
	for (size_t step = 0; step < c->proc_cap; step++) {
		size_t i = c->proc_hand++ % c->proc_cap;
		struct proc_state *s = &c->procs_state[i];

		if (i == proc || !s->list.sz)
			continue;
		tables__del_proc(c->tables, &s->key, &s->list);
		return true;
	}
	return false;
}

int code__publish(struct code *c, uint32_t proc)
{
	const struct proc *p = procs__get(c->procs, proc);
	const struct proc_space *space = procs__space(c->procs, proc);
	struct proc_state *s = code_proc_state(c, proc);
	struct bpfprof_proc_key key = { .tgid = p->tgid,
					.exec_id = p->exec_id,
					.start_ns = p->start_ns };
	uint64_t ranges = ranges_of(space);
	size_t cnt;
	int err;

	if (!s)
		return -ENOMEM;
	if (s->list.sz && s->ranges == ranges && s->loads == c->loads)
		return 0;
	if (s->list.sz && memcmp(&s->key, &key, sizeof(key)))
		tables__del_proc(c->tables, &s->key, &s->list);
	err = set_list(c, proc, &key, &cnt);
	if (err == -ENOSPC) {
		tables__settle(c->tables);
		err = set_list(c, proc, &key, &cnt);
	}
	while ((err == -ENOSPC && !c->evicting && code_evict(c)) ||
	       (err == -E2BIG && displace(c, proc)))
		err = set_list(c, proc, &key, &cnt);
	if (err)
		return err;
	/* what was evicted changed the list, and the array of states may have moved */
	s = &c->procs_state[proc];
	s->key = key;
	s->ranges = ranges_of(space);
	s->loads = c->loads;
	s->value = (struct bpfprof_proc){
		.chunk = s->list.chunk,
		.pos = s->list.pos,
		.map_cnt = cnt,
		.gen = space->gen,
	};
	return 0;
}

/* The kernel side is to know nothing of the process. */
static void unpublish(struct code *c, struct proc_state *s)
{
	if (s->list.sz)
		tables__del_proc(c->tables, &s->key, &s->list);
	s->list = (struct tables_extent){ 0 };
}

void code_republish(struct code *c, bool all)
{
	for (size_t i = 0; i < c->proc_cap && i < procs__cnt(c->procs); i++) {
		struct proc_state *s = &c->procs_state[i];

		if (!s->list.sz || (!all && s->ranges == ranges_of(procs__space(c->procs, i))))
			continue;
		if (code__publish(c, i))
			unpublish(c, &c->procs_state[i]);
	}
}

bool code__published(const struct code *c, uint32_t proc, struct bpfprof_proc *ret)
{
	if (proc >= c->proc_cap || !c->procs_state[proc].list.sz)
		return false;
	*ret = c->procs_state[proc].value;
	return true;
}

void code__want_raw(struct code *c, uint32_t proc, bool wanted)
{
	struct proc_state *s = code_proc_state(c, proc);

	if (!s || !s->list.sz || wanted == !(s->value.flags & BPFPROF_PROC_NO_RAW))
		return;
	s->value.flags ^= BPFPROF_PROC_NO_RAW;
	tables__update_proc(c->tables, &s->key, &s->value);
}

void code__forget(struct code *c, uint32_t proc)
{
	struct proc_state *s = code_proc_state(c, proc);

	perf_maps__end(c->perf_maps, proc);
	copies__forget(c->copies, proc);
	if (!s)
		return;
	if (s->own_cnt)
		code_forget_own(c, proc);
	unpublish(c, s);
	memset(s, 0, sizeof(*s));
}
