// SPDX-License-Identifier: BSD-2-Clause
/* The code of the profiled processes, and what the kernel side knows of it. */
#include <linux/types.h>

#include "capture/code_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "target/objects.h"
#include "target/perf_maps.h"
#include "target/unwind_build.h"

#define OPEN_AGAIN_NS 100000000ULL  /* through the same process */
#define LOAD_AGAIN_NS 1000000000ULL /* a table for which there was no memory, or no reader */

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
	hash__init(&c->own, sizeof(struct own_object), sizeof(((struct own_object *)0)->key),
		   HASH_MAX);
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
	hash__done(&c->own);
	free(c->files);
	free(c->states);
	free(c->procs_state);
	free(c->maps);
	free(c);
}

struct object_state *code_state_of(struct code *c, uint32_t object)
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

uint32_t code_known_object(const struct code *c, uint32_t proc, uint32_t file)
{
	struct own_object key = { .key = { proc, file } }, *own;

	own = c->own.cnt ? hash__lookup(&c->own, &key) : NULL;
	if (own)
		return own->object;
	return file < c->file_cap && c->files[file].object ? c->files[file].object - 1 :
							     OBJECTS_NONE;
}

/* Notes the object of a file in a process. The same number may be another file to another process if it was told by
 * path and build id: whoever has mounts of his own can put a file there, and a build id into it. */
static int keep_object(struct code *c, uint32_t proc, uint32_t file, uint32_t object)
{
	struct own_object key = { .key = { proc, file } }, *own;
	struct file_state *state = &c->files[file];
	struct proc_state *s;
	bool is_new;

	if (!procs__file(c->procs, file)->build_id_sz ||
	    objects__info(c->objects, object)->trusted) {
		state->object = object + 1;
	} else {
		s = code_proc_state(c, proc);
		own = s ? hash__insert(&c->own, &key, &is_new) : NULL;
		if (!own)
			return -ENOMEM;
		own->object = object;
		s->own_cnt++;
		state->own_cnt++;
		/* they were of this process */
		state->tries = state->tries_of_ended = 0;
	}
	objects__ref(c->objects, object);
	c->loads++;
	return 0;
}

/* Forgets those of a process, or of a file: the other one is UINT32_MAX. */
static void forget_own(struct code *c, uint32_t proc, uint32_t file)
{
	struct hash_iter it = hash__iter(&c->own);
	struct own_object *own;

	while ((own = hash_iter__next(&it))) {
		if (own->key.proc != proc && own->key.file != file)
			continue;
		objects__unref(c->objects, own->object);
		c->procs_state[own->key.proc].own_cnt--;
		c->files[own->key.file].own_cnt--;
		hash__remove(&c->own, own);
	}
}

void code_forget_own(struct code *c, uint32_t proc)
{
	forget_own(c, proc, UINT32_MAX);
}

/* Has the file been written over since the process has ended, which had another one then? Build ids would tell. */
static bool is_of_later(const struct code *c, uint32_t proc, const struct proc_file *f,
			uint32_t object)
{
	return !f->build_id_sz && !procs__lives(c->procs, proc) &&
	       objects__written_since(c->objects, object, procs__get(c->procs, proc)->to_ns);
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
	object = code_known_object(c, proc, map->file);
	if (object != OBJECTS_NONE)
		return is_of_later(c, proc, f, object) ? OBJECTS_NONE : object;
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
	return keep_object(c, proc, map->file, object) ? OBJECTS_NONE : object;
}

uint32_t code__own_object(struct code *c, uint32_t proc, const struct proc_map *map)
{
	struct own_object key = { .key = { proc, map->file } };
	uint32_t object = code__object(c, proc, map);

	return object != OBJECTS_NONE && c->own.cnt && hash__lookup(&c->own, &key) ? object :
										     OBJECTS_NONE;
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

/* By the clock algorithm: of tables that were all used those go that are met first the second time round. */
bool code_evict(struct code *c)
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
	code_republish(c, true);
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
	if (state->own_cnt)
		forget_own(c, UINT32_MAX, file);
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
	code_republish(c, false);
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
	while (err == -ENOSPC && code_evict(c))
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
	struct object_state *s = code_state_of(c, object);
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

int code__load_all(struct code *c, uint32_t proc)
{
	int err = 0;

	/* they may change while files are read */
	for (size_t i = 0; !err && i < procs__space(c->procs, proc)->map_cnt; i++)
		err = code__load(c, proc, &procs__space(c->procs, proc)->maps[i]);
	return err ? err : code__publish(c, proc);
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
		code_republish(c, true);
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
	if (object == OBJECTS_NONE ||
	    !objects__vaddr(c->objects, object, map->offset, map->end - map->start, &vaddr))
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
