// SPDX-License-Identifier: BSD-2-Clause
/* The code of the profiled processes, and what the kernel side knows of it. */
#include <linux/types.h>

#include "capture/code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rest.h"
#include "base/util.h"
#include "kernel/tables.h"
#include "target/objects.h"
#include "target/perf_maps.h"
#include "target/unwind_build.h"

/* How often a file is tried to be opened, through whichever process, before it is given up; as often through
 * such as have ended, before that is left to those that live. Stacks may enter a file many times. */
#define OPEN_TRIES 8
#define OPEN_AGAIN_NS 100000000ULL	/* through the same process */
#define LOAD_AGAIN_NS 1000000000ULL	/* a table for which there was no memory, or no reader */
#define PIECES 256			/* of code that are kept */
#define MAX_LIST (BPFPROF_MAX_MAPS - 1) /* ranges of a process that the kernel side is told */
#define MAX_MAP (1ULL << 31)		/* bytes of one */
#define MAX_SKIPS 16 /* of these, ranges at either end that do not fit: to try each takes some us */

/* By number of a proc_file. */
struct file_state {
	uint32_t object;
	uint8_t tries, tries_of_ended;
	uint32_t tried; /* the last process that it was tried through */
	uint64_t tried_ns;
	struct rest rest; /* it could not be had in time, and is given up as long */
	bool gone;	  /* or replaced, when it was to be opened */
	bool spare;	  /* was not needed at the last look, and nobody asked since */
};

struct part_state {
	uint64_t vaddr;
	uint32_t text_sz;
	struct tables_extent extent;
};

/* By number of an object. */
struct object_state {
	enum {
		NOT_LOADED,
		LOADED,
		NO_TABLE,
		RESTS, /* the same for the time being: see objects__unanswered */
	} table;
	struct part_state *parts;
	size_t part_cnt;
	uint64_t rows;
	uint64_t again_ns; /* NOT_LOADED: not before */
	bool built;	   /* counted in the statistics */
};

/* By number of a process. */
struct proc_state {
	struct tables_extent list; /* sz 0: the kernel side knows nothing */
	struct bpfprof_proc_key key;
	struct bpfprof_proc value;
	uint64_t ranges, loads; /* what was published: as ranges_of and code.loads were then */
};

/* A few bytes of code that were read: raw stacks that come together ask for the same ones. */
struct piece {
	uint64_t vaddr;
	uint32_t object;
	uint8_t sz; /* 0: nothing */
	uint8_t bytes[8];
};

struct code {
	struct procs *procs;
	struct objects *objects;
	struct tables *tables;
	struct perf_maps *perf_maps;
	struct copies *copies;
	struct file_state *files;
	size_t file_cap;
	struct object_state *states;
	size_t state_cap;
	struct proc_state *procs_state;
	size_t proc_cap;
	struct piece pieces[PIECES]; /* by a hash of where they are */
	struct tables_map *maps;     /* scratch */
	size_t map_cap;
	bool full;	/* the range being added does not fit */
	uint64_t loads; /* counts what may change a list: objects found, tables loaded, evicted,
			   given up */
	uint64_t wakes; /* objects__wakes, when ask_again looked last */
	bool evicting;
	size_t look_at_files;	 /* for what nobody needs, when there are so many */
	uint64_t look_at_bytes;	 /* the same of tables */
	size_t hand;		 /* of the clock by which tables are evicted */
	size_t proc_hand;	 /* the same of processes */
	struct code_stats stats; /* unopened: of files that were released */
};

static uint32_t object_of(void *ctx, uint32_t proc, const struct proc_map *map)
{
	return code__object(ctx, proc, map);
}

/* Then what is mapped now has another table and other names. */
static bool is_rewritten(void *ctx, uint32_t file)
{
	const struct code *c = ctx;
	uint32_t object = file < c->file_cap ? c->files[file].object : 0;

	return object && objects__rewritten(c->objects, object - 1);
}

struct code *code__new(struct procs *procs, struct objects *objects, struct tables *tables)
{
	struct code *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->procs = procs;
	c->objects = objects;
	c->tables = tables;
	c->perf_maps = perf_maps__new(procs, objects);
	c->copies = copies__new(procs, objects, object_of, c);
	c->look_at_files = CODE_SPARE_FILES;
	c->look_at_bytes = CODE_SPARE_BYTES;
	procs__on_rewritten(procs, is_rewritten, c);
	if (c->perf_maps && c->copies)
		return c;
	code__free(c);
	errno = ENOMEM;
	return NULL;
}

void code__free(struct code *c)
{
	if (!c)
		return;
	procs__on_rewritten(c->procs, NULL, NULL);
	for (size_t i = 0; i < c->state_cap; i++)
		free(c->states[i].parts);
	perf_maps__free(c->perf_maps);
	copies__free(c->copies);
	free(c->files);
	free(c->states);
	free(c->procs_state);
	free(c->maps);
	free(c);
}

static struct object_state *state_of(struct code *c, uint32_t object)
{
	if (util_reserve_zeroed(&c->states, &c->state_cap, object, sizeof(*c->states)))
		return NULL;
	return &c->states[object];
}

/* ---- objects ---- */

static bool right_build_id(const struct proc_file *f, const struct object_info *info)
{
	char hex[2 * sizeof(f->build_id) + 1] = "";

	for (int i = 0; i < f->build_id_sz; i++)
		snprintf(hex + 2 * i, 3, "%02x", f->build_id[i]);
	return !f->build_id_sz || !strcmp(hex, info->build_id);
}

static void give_up(struct code *c, struct file_state *state)
{
	state->tries = OPEN_TRIES;
	/* lists made before say that a table may still come */
	c->loads++;
}

/* Is the file to be opened through this process now? */
static bool may_try(const struct code *c, struct file_state *state, uint32_t proc)
{
	uint64_t now;

	if (rest__ends(&state->rest))
		state->tries = 0;
	if (state->tries >= OPEN_TRIES ||
	    (!procs__lives(c->procs, proc) && state->tries_of_ended >= OPEN_TRIES))
		return false;
	now = util_monotonic_ns();
	if (state->tried == proc && now < state->tried_ns + OPEN_AGAIN_NS)
		return false;
	state->tried = proc;
	state->tried_ns = now;
	return true;
}

static void count_try(struct code *c, struct file_state *state, uint32_t proc)
{
	if (!procs__lives(c->procs, proc))
		state->tries_of_ended++;
	else if (++state->tries == OPEN_TRIES)
		give_up(c, state);
}

uint32_t code__object(struct code *c, uint32_t proc, const struct proc_map *map)
{
	const struct proc_file *f = procs__file(c->procs, map->file);
	struct file_state *state;
	uint32_t object;
	int fd;

	if (f->kind == PROC_FILE_ANON)
		return OBJECTS_NONE;
	if (util_reserve_zeroed(&c->files, &c->file_cap, map->file, sizeof(*c->files)))
		return OBJECTS_NONE;
	state = &c->files[map->file];
	state->spare = false;
	if (state->object)
		return state->object - 1;
	if (!may_try(c, state, proc))
		return OBJECTS_NONE;
	if (f->kind == PROC_FILE_VDSO) {
		object = objects__add_vdso(c->objects);
		count_try(c, state, proc);
	} else {
		fd = procs__open(c->procs, c->objects, proc, map);
		/* without a reader it was not tried */
		if (fd != -EAGAIN)
			count_try(c, state, proc);
		if (fd == -ETIMEDOUT) {
			rest__begin(&state->rest);
			objects__wake_at(c->objects, state->rest.until_ns);
			give_up(c, state);
		}
		state->gone |= fd == -ENOENT || fd == -ESRCH || fd == -ESTALE;
		if (fd < 0) {
			log_debug("cannot open '%s' of process %u: %s; its frames have no names",
				  f->path, procs__get(c->procs, proc)->tgid, strerror(-fd));
			return OBJECTS_NONE;
		}
		object = objects__add(c->objects, fd, f->path);
	}
	if (object == OBJECTS_NONE)
		return OBJECTS_NONE;
	if (!right_build_id(f, objects__info(c->objects, object))) {
		log_debug("'%s' is not the file that process %u mapped", f->path,
			  procs__get(c->procs, proc)->tgid);
		return OBJECTS_NONE;
	}
	if (objects__wants_root(c->objects, object))
		objects__set_root(c->objects, object, procs__open_root(c->procs, c->objects, proc));
	state->object = object + 1;
	objects__ref(c->objects, object);
	c->loads++;
	return object;
}

bool code__is_generated(struct code *c, uint32_t proc, const struct proc_map *map)
{
	const struct proc_file *f = procs__file(c->procs, map->file);
	uint32_t object;

	if (f->kind == PROC_FILE_ANON || !proc_file_is_memory(f))
		return f->kind == PROC_FILE_ANON;
	/* a program or a library in a memfd has names of its own */
	object = code__object(c, proc, map);
	return object != OBJECTS_NONE && !objects__info(c->objects, object)->readable;
}

struct objects *code__objects(struct code *c)
{
	return c->objects;
}

struct perf_maps *code__perf_maps(struct code *c)
{
	return c->perf_maps;
}

const struct object_info *code__object_info(const struct code *c, uint32_t object)
{
	return objects__info(c->objects, object);
}

const uint8_t *code__chunk(const struct code *c, uint32_t idx)
{
	return tables__chunk(c->tables, idx);
}

static void release_parts(struct code *c, struct object_state *s)
{
	for (size_t i = 0; i < s->part_cnt; i++)
		tables__release(c->tables, &s->parts[i].extent);
	free(s->parts);
	s->parts = NULL;
	s->part_cnt = 0;
}

/* The kernel side is to know nothing of the process. */
static void unpublish(struct code *c, struct proc_state *s)
{
	if (s->list.sz)
		tables__del_proc(c->tables, &s->key, &s->list);
	memset(s, 0, sizeof(*s));
}

/* Changes when a process maps anything else. */
static uint64_t ranges_of(const struct proc_space *s)
{
	return util_hash(s->maps, s->map_cnt * sizeof(*s->maps), s->gen);
}

/* Publishes processes anew, lest their lists name a table that is going away: all of them, or those
 * that map anything else by now. */
static void republish(struct code *c, bool all)
{
	for (size_t i = 0; i < c->proc_cap && i < procs__cnt(c->procs); i++) {
		struct proc_state *s = &c->procs_state[i];

		if (!s->list.sz || (!all && s->ranges == ranges_of(procs__space(c->procs, i))))
			continue;
		if (code__publish(c, i))
			unpublish(c, &c->procs_state[i]);
	}
}

/*
 * Makes room: lets go of the tables that no stack went through since the last time, or, if all were
 * used, of those that are met first the second time round (the clock algorithm). Returns false if
 * there was nothing to let go of.
 */
static bool evict(struct code *c)
{
	size_t evicted = 0, cnt = MIN(objects__end(c->objects), c->state_cap);
	uint64_t freed = 0, enough = tables__bytes(c->tables) / 4;

	/*
	 * The hand goes on from where it stopped: once round to see which are used, and once more
	 * to find those that no longer are.
	 */
	for (size_t step = 0; step < 2 * cnt && freed < enough; step++) {
		struct object_state *s = &c->states[c->hand++ % cnt];
		bool used = false;

		if (s->table != LOADED)
			continue;
		for (size_t j = 0; j < s->part_cnt; j++)
			used |= tables__test_and_clear_used(c->tables, &s->parts[j].extent);
		if (used)
			continue;
		for (size_t j = 0; j < s->part_cnt; j++)
			freed += s->parts[j].extent.sz;
		s->table = NOT_LOADED;
		c->stats.rows -= s->rows;
		c->loads++;
		evicted++;
	}
	if (!evicted)
		return false;
	c->stats.evicted += evicted;
	c->evicting = true;
	republish(c, true);
	c->evicting = false;
	for (size_t i = 0; i < cnt; i++)
		if (c->states[i].table != LOADED)
			release_parts(c, &c->states[i]);
	tables__settle(c->tables);
	return true;
}

/* ---- what nobody needs ---- */

static bool let_go_of_file(void *ctx, uint32_t file)
{
	struct code *c = ctx;
	struct file_state *state = file < c->file_cap ? &c->files[file] : NULL;

	if (!state)
		return true;
	if (state->object && !state->spare) {
		state->spare = true;
		return false;
	}
	if (state->object)
		objects__unref(c->objects, state->object - 1);
	else
		c->stats.unopened += state->gone;
	memset(state, 0, sizeof(*state));
	return true;
}

static void forget_object(void *ctx, uint32_t object)
{
	struct code *c = ctx;
	struct object_state *s = object < c->state_cap ? &c->states[object] : NULL;

	for (size_t i = 0; i < PIECES; i++)
		if (c->pieces[i].object == object)
			c->pieces[i].sz = 0;
	if (!s)
		return;
	if (s->table == LOADED)
		c->stats.rows -= s->rows;
	release_parts(c, s);
	memset(s, 0, sizeof(*s));
}

void code__release_unused(struct code *c)
{
	size_t cnt = procs__file_cnt(c->procs);

	if (cnt < c->look_at_files && tables__bytes(c->tables) < c->look_at_bytes)
		return;
	/* then a list names the tables of what its process maps, and of nothing that goes */
	republish(c, false);
	if (procs__release_files(c->procs, let_go_of_file, c))
		return;
	objects__release_unused(c->objects, forget_object, c);
	cnt = procs__file_cnt(c->procs);
	c->look_at_files = cnt + MAX(CODE_SPARE_FILES, cnt / 4);
	c->look_at_bytes = tables__bytes(c->tables) + CODE_SPARE_BYTES;
}

static int add_part(struct code *c, const struct unwind_part *part, struct tables_extent *ret)
{
	int err = tables__add_part(c->tables, part->blob, part->blob_sz, ret);

	if (err != -ENOSPC)
		return err;
	/* what was freed but not settled may do */
	tables__settle(c->tables);
	err = tables__add_part(c->tables, part->blob, part->blob_sz, ret);
	while (err == -ENOSPC && evict(c))
		err = tables__add_part(c->tables, part->blob, part->blob_sz, ret);
	return err;
}

/* There is no table. Where memory is short, or no reader can be started, that tells nothing of the file, nor does it if
 * the file takes too long; but that may be often, and no stacks are to be copied for it meanwhile. */
static int fail_to_load(struct code *c, uint32_t object, int err)
{
	struct object_state *s = &c->states[object];

	if (err == -ENOMEM || err == -EAGAIN) {
		s->again_ns = util_monotonic_ns() + LOAD_AGAIN_NS;
		return err == -ENOMEM ? err : 0;
	}
	s->table = objects__unanswered(c->objects, object, err) ? RESTS : NO_TABLE;
	c->loads++;
	return 0;
}

static int load_table(struct code *c, uint32_t object)
{
	struct object_state *s = state_of(c, object);
	uint64_t before = util_monotonic_ns();
	struct unwind_table t;
	size_t part_cnt = 0;
	struct part_state *parts = NULL;
	int err;

	if (!s)
		return -ENOMEM;
	if (s->table != NOT_LOADED || before < s->again_ns)
		return 0;
	err = objects__unwind_table(c->objects, object, &t);
	if (err || !t.part_cnt)
		return fail_to_load(c, object, err);
	parts = calloc(t.part_cnt, sizeof(*parts));
	if (!parts)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < t.part_cnt; i++) {
		err = add_part(c, &t.parts[i], &parts[i].extent);
		if (err)
			break;
		parts[i].vaddr = t.parts[i].vaddr;
		parts[i].text_sz = t.parts[i].text_sz;
		part_cnt++;
	}
	/* adding may have evicted, which moves nothing but may have grown the array */
	s = &c->states[object];
	s->parts = parts;
	s->part_cnt = part_cnt;
	if (err) {
		/* -ENOSPC: larger than all the room there is. Its frames are followed by frame pointer */
		release_parts(c, s);
		err = fail_to_load(c, object, err);
	} else {
		s->table = LOADED;
		s->rows = t.row_cnt;
		c->stats.rows += t.row_cnt;
		c->stats.objects += !s->built;
		c->stats.cfi_bytes += t.cfi_sz;
		s->built = true;
		c->loads++;
	}
	unwind_table__done(&t);
	c->stats.build_ns += util_monotonic_ns() - before;
	return err;
}

static int load_range(struct code *c, uint32_t proc, const struct proc_map *map)
{
	uint32_t object = code__object(c, proc, map);

	return object == OBJECTS_NONE ? 0 : load_table(c, object);
}

int code__load(struct code *c, uint32_t proc, const struct proc_map *map)
{
	uint64_t at = map->start, end = map->end;
	int err;

	if (map->copy != PROC_MAP_MAYBE_COPY)
		return load_range(c, proc, map);
	err = copies__settle(c->copies, proc);
	for (; !err && at < end && (map = procs__map_at(c->procs, proc, at)); at = map->end)
		err = load_range(c, proc, map);
	return err;
}

size_t code__vouch(struct code *c, uint32_t proc, const uint64_t *frames, size_t cnt,
		   uint64_t time_ns)
{
	struct bpfprof_proc published;
	size_t known = copies__vouch(c->copies, proc, frames, cnt, time_ns);

	/* the kernel side is to find no callers by that code's table any more */
	if (known < cnt && procs__lives(c->procs, proc) && code__published(c, proc, &published))
		(void)code__publish(c, proc);
	return known;
}

void code__ask_again(struct code *c)
{
	uint64_t wakes = objects__wakes(c->objects), loads = c->loads;

	if (wakes == c->wakes)
		return;
	c->wakes = wakes;
	for (size_t i = 0; i < c->state_cap; i++) {
		if (c->states[i].table != RESTS || objects__rests(c->objects, i))
			continue;
		c->states[i].table = NOT_LOADED;
		c->loads++;
	}
	for (size_t i = 0; i < c->file_cap; i++) {
		struct file_state *state = &c->files[i];

		if (rest__ends(&state->rest)) {
			state->tries = 0;
			c->loads++;
		} else if (state->rest.until_ns) {
			objects__wake_at(c->objects, state->rest.until_ns);
		}
	}
	if (c->loads != loads)
		republish(c, true);
}

/* ---- lists ---- */

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
static void add_range(struct code *c, const struct proc_map *map, size_t *cnt)
{
	struct object_state *s = NULL;
	uint64_t vaddr, at = map->start;
	uint32_t object = OBJECTS_NONE;

	if (procs__file(c->procs, map->file)->kind == PROC_FILE_ANON) {
		add_map(c, cnt, map->start, map->end, 0, NULL,
			map->copy == PROC_MAP_MAYBE_COPY ? BPFPROF_CHUNK_NOT_LOADED :
							   BPFPROF_CHUNK_NO_TABLE);
		return;
	}
	if (map->file < c->file_cap && c->files[map->file].object) {
		object = c->files[map->file].object - 1;
		c->files[map->file].spare = false;
	}
	if (object != OBJECTS_NONE)
		s = state_of(c, object);
	if (!s || s->table == NOT_LOADED) {
		bool given_up =
			!s && map->file < c->file_cap && c->files[map->file].tries >= OPEN_TRIES;

		add_map(c, cnt, map->start, map->end, 0, NULL,
			given_up ? BPFPROF_CHUNK_NO_TABLE : BPFPROF_CHUNK_NOT_LOADED);
		return;
	}
	if (s->table == LOADED && objects__vaddr(c->objects, object, map->offset, &vaddr)) {
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

static struct proc_state *proc_state(struct code *c, uint32_t proc)
{
	if (util_reserve_zeroed(&c->procs_state, &c->proc_cap, proc, sizeof(*c->procs_state)))
		return NULL;
	return &c->procs_state[proc];
}

/* One more range, if all of it fits below the limit. */
static bool add_whole(struct code *c, const struct proc_map *map, size_t limit, size_t *cnt)
{
	size_t before = *cnt;

	c->full = false;
	add_range(c, map, cnt);
	if (!c->full && *cnt <= limit)
		return true;
	*cnt = before;
	return false;
}

/* Chooses ranges from one on in steps of 1 or -1, up to `end`, that fit into half of the list, which is
 * written over. Some that do not are passed over. Returns how many. */
static size_t choose(struct code *c, const struct proc_space *s, size_t from, size_t end, int step,
		     uint32_t ret[MAX_LIST / 2])
{
	size_t cnt = 0, chosen = 0, skips = 0;

	for (size_t i = from; i != end && skips <= MAX_SKIPS; i += (size_t)step)
		if (add_whole(c, &s->maps[i], MAX_LIST / 2, &cnt))
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
static size_t add_ends(struct code *c, const struct proc_space *s)
{
	uint32_t low[MAX_LIST / 2], high[MAX_LIST / 2];
	size_t cnt = 0, highs = choose(c, s, s->map_cnt - 1, SIZE_MAX, -1, high);
	size_t lows = choose(c, s, 0, highs ? high[highs - 1] : s->map_cnt, 1, low);

	for (size_t i = 0; i < lows; i++)
		add_range(c, &s->maps[low[i]], &cnt);
	for (size_t i = highs; i-- > 0;)
		add_range(c, &s->maps[high[i]], &cnt);
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
	while (i < s->map_cnt && add_whole(c, &s->maps[i], MAX_LIST, ret_cnt))
		i++;
	if (i < s->map_cnt)
		*ret_cnt = add_ends(c, s);
	return tables__set_proc(c->tables, key, c->maps, *ret_cnt, s->gen,
				&c->procs_state[proc].list);
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
	struct proc_state *s = proc_state(c, proc);
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
	while ((err == -ENOSPC && !c->evicting && evict(c)) || (err == -E2BIG && displace(c, proc)))
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

int code__load_all(struct code *c, uint32_t proc)
{
	int err = 0;

	/* they may change while files are read */
	for (size_t i = 0; !err && i < procs__space(c->procs, proc)->map_cnt; i++)
		err = code__load(c, proc, &procs__space(c->procs, proc)->maps[i]);
	return err ? err : code__publish(c, proc);
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
	struct proc_state *s = proc_state(c, proc);

	if (!s || !s->list.sz || wanted == !(s->value.flags & BPFPROF_PROC_NO_RAW))
		return;
	s->value.flags ^= BPFPROF_PROC_NO_RAW;
	tables__update_proc(c->tables, &s->key, &s->value);
}

void code__forget(struct code *c, uint32_t proc)
{
	struct proc_state *s = proc_state(c, proc);

	perf_maps__end(c->perf_maps, proc);
	copies__forget(c->copies, proc);
	if (s)
		unpublish(c, s);
}

void code__begin_looks(struct code *c)
{
	copies__begin_looks(c->copies);
}

int code__read(struct code *c, uint32_t proc, uint64_t addr, const uint8_t *then, void *buf,
	       size_t sz)
{
	const struct proc_map *map = procs__map_at(c->procs, proc, addr);
	struct piece *piece;
	uint32_t object;
	uint64_t vaddr;
	int err;

	if (!map || sz > map->end - addr)
		return -EFAULT;
	if (code__is_generated(c, proc, map)) {
		if (!then)
			return copies__look(c->copies, proc, addr, buf, sz) ? -ESRCH : 0;
		memcpy(buf, then, sz);
		return 0;
	}
	object = code__object(c, proc, map);
	if (object == OBJECTS_NONE || !objects__vaddr(c->objects, object, map->offset, &vaddr))
		return -EFAULT;
	vaddr += addr - map->start;
	piece = &c->pieces[util_hash(&vaddr, sizeof(vaddr), object) % PIECES];
	if (piece->sz == sz && piece->object == object && piece->vaddr == vaddr) {
		memcpy(buf, piece->bytes, sz);
		return 0;
	}
	err = objects__read(c->objects, object, vaddr, buf, sz);
	if (!err && sz <= sizeof(piece->bytes)) {
		*piece = (struct piece){ .vaddr = vaddr, .object = object, .sz = sz };
		memcpy(piece->bytes, buf, sz);
	}
	return err;
}

void code__stats(const struct code *c, struct code_stats *ret)
{
	*ret = c->stats;
	for (size_t i = 0; i < c->file_cap; i++)
		ret->unopened += c->files[i].gone && !c->files[i].object;
	ret->bytes = tables__bytes(c->tables);
	copies__stats(c->copies, &ret->copies);
}
