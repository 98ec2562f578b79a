// SPDX-License-Identifier: BSD-2-Clause
/* Finds out which memory of processes is a copy of a file's code. */
#include "capture/copies.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "target/copy.h"
#include "target/elf_file.h"
#include "target/objects.h"
#include "target/procs.h"
#include "target/proof.h"

#define MAX_OF_FILE 8 /* places of code of one file */
#define MAX_PLACES (PROCS_MAX_BESIDE * MAX_OF_FILE)
#define MAX_MOVED 8		 /* ranges of a process that are looked for in a file at a time */
#define LOOKED_AT 16		 /* pages of generated code that are kept for a stack */
#define MAX_SEARCHED (256 << 20) /* bytes of code that these are looked for in, of a process */

struct copies {
	struct procs *procs;
	struct objects *objects;
	struct proofs *proofs;
	uint32_t (*object)(void *ctx, uint32_t proc, const struct proc_map *map);
	void *ctx;
	uint32_t *searched; /* bytes, by the numbers of processes */
	size_t searched_cap;
	struct copies_stats removed; /* of processes that are no more in procs */
	/* by page */
	struct looked_at {
		uint64_t stack; /* that it was read for */
		int err;
		uint32_t proc;
		uint64_t page;
		uint8_t bytes[COPY_PAGE];
	} looked_at[LOOKED_AT];
	uint64_t stack;	 /* that is unwound: from 1 on */
	size_t look_cnt; /* pages that were read for it */
};

struct copies *copies__new(struct procs *procs, struct objects *objects,
			   uint32_t (*object)(void *ctx, uint32_t proc, const struct proc_map *map),
			   void *ctx)
{
	struct copies *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->procs = procs;
	c->objects = objects;
	c->object = object;
	c->ctx = ctx;
	c->proofs = proofs__new(procs, objects);
	if (c->proofs)
		return c;
	free(c);
	return NULL;
}

void copies__free(struct copies *c)
{
	if (!c)
		return;
	proofs__free(c->proofs);
	free(c->searched);
	free(c);
}

/* Adds what a process has of each. */
static void count(struct copies *c, uint32_t proc, struct copies_stats *s)
{
	const struct proc_space *space = procs__peek(c->procs, proc);

	for (size_t i = 0; i < space->map_cnt; i++) {
		s->proved += space->maps[i].copy == PROC_MAP_COPY;
		s->differ += space->maps[i].copy == PROC_MAP_NO_COPY;
		s->unread += space->maps[i].copy == PROC_MAP_UNREAD;
	}
}

/* Is something there, that is not 0? */
static bool has_any(const uint8_t *bytes, size_t sz)
{
	for (size_t i = 0; i < sz; i++)
		if (bytes[i])
			return true;
	return false;
}

int copies__read(struct copies *c, uint32_t proc, uint64_t addr, void *buf, size_t sz)
{
	int err = proofs__read(c->proofs, proc, addr, buf, sz);

	return err ?: has_any(buf, sz) ? 0 : -ENODATA;
}

void copies__begin_looks(struct copies *c)
{
	c->look_cnt = 0;
	c->stack++;
}

/* The page of a process as it was when it was first looked at. 0 or -errno, as copies__look. */
static int look_at(struct copies *c, uint32_t proc, uint64_t page, const uint8_t **ret)
{
	struct looked_at *l = &c->looked_at[page / COPY_PAGE % LOOKED_AT];

	*ret = l->bytes;
	if (l->stack == c->stack && l->page == page && l->proc == proc)
		return l->err;
	if (c->look_cnt == COPIES_LOOKS)
		return -EBUSY;
	c->look_cnt++;
	l->stack = c->stack;
	l->page = page;
	l->proc = proc;
	l->err = proofs__read(c->proofs, proc, page, l->bytes, sizeof(l->bytes));
	return l->err;
}

int copies__look(struct copies *c, uint32_t proc, uint64_t addr, void *buf, size_t sz)
{
	uint8_t *to = buf;
	size_t done = 0;

	while (done < sz) {
		uint64_t at = (addr + done) & (COPY_PAGE - 1);
		size_t n = MIN(sz - done, COPY_PAGE - at);
		const uint8_t *page;
		int err = look_at(c, proc, addr + done - at, &page);

		if (err)
			return err;
		memcpy(to + done, page + at, n);
		done += n;
	}
	return has_any(buf, sz) ? 0 : -ENODATA;
}

void copies__forget(struct copies *c, uint32_t proc)
{
	count(c, proc, &c->removed);
	proofs__forget(c->proofs, proc);
	if (proc < c->searched_cap)
		c->searched[proc] = 0;
}

void copies__stats(struct copies *c, struct copies_stats *ret)
{
	*ret = c->removed;
	for (size_t i = 0; i < procs__cnt(c->procs); i++)
		count(c, i, ret);
}

/* Is the range, as *map claims, a copy of that code? 0 if procs has it as one now; -errno as
 * proofs__range. */
static int prove(struct copies *c, uint32_t proc, uint32_t object, const struct proc_map *map)
{
	int err = proofs__range(c->proofs, proc, object, map);

	if (!err)
		err = procs__add_copy(c->procs, proc, map);
	log_debug("process %u: memory at 0x%" PRIx64 " is%s the code of '%s' at 0x%" PRIx64 "%s%s",
		  procs__get(c->procs, proc)->tgid, map->start, err ? " not" : "",
		  objects__info(c->objects, object)->path, map->offset, err ? ": " : "",
		  err ? strerror(-err) : "");
	return err;
}

/* ---- copies where the code was ---- */

/* Code of a file, where it would be mapped. */
struct place {
	uint32_t object, file;
	struct copy_place at;
};

static bool is_among(const struct place *places, size_t cnt, const struct place *one)
{
	for (size_t i = 0; i < cnt; i++)
		if (!memcmp(&places[i], one, sizeof(*one)))
			return true;
	return false;
}

/* All that the process's files tell of: once for all ranges, of which there may be thousands.
 * Returns how many there are. */
static size_t find_places(struct copies *c, uint32_t proc, struct place places[static MAX_PLACES])
{
	size_t n = 0;

	for (size_t i = 0; i < procs__space(c->procs, proc)->beside_cnt; i++) {
		const struct proc_map beside = procs__space(c->procs, proc)->beside[i];
		uint32_t object = c->object(c->ctx, proc, &beside);
		struct copy_place at[MAX_OF_FILE];
		const struct elf_segment *segments;
		size_t cnt;

		if (object == OBJECTS_NONE)
			continue;
		segments = objects__segments(c->objects, object, &cnt);
		cnt = copy_places(segments, cnt, &beside, at, MAX_OF_FILE);
		for (size_t j = 0; j < cnt; j++) {
			places[n] = (struct place){ object, beside.file, at[j] };
			n += !is_among(places, n, &places[n]);
		}
	}
	return n;
}

/* A file that is no object, or memory of one, may hold copied code; an object is what it is. */
static bool is_object(struct copies *c, uint32_t proc, const struct proc_map *map)
{
	uint32_t object = procs__file(c->procs, map->file)->kind == PROC_FILE_ANON ?
				  OBJECTS_NONE :
				  c->object(c->ctx, proc, map);

	return object != OBJECTS_NONE && objects__info(c->objects, object)->readable;
}

static bool has_copy(struct copies *c, uint32_t proc, uint64_t start, uint64_t end)
{
	const struct proc_map *map;

	while (start < end && (map = procs__map_from(c->procs, proc, start))) {
		if (map->copy == PROC_MAP_COPY && map->start < end)
			return true;
		start = map->end;
	}
	return false;
}

/* Is the process about to copy code to the range, and has not got to the end of it yet? What follows
 * the code in its last page is zeros anyway. */
static bool is_being_filled(struct copies *c, uint32_t proc, uint64_t start, uint64_t end)
{
	uint8_t page[COPY_PAGE];

	return end - start >= 3 * COPY_PAGE &&
	       copies__read(c, proc, end - 2 * COPY_PAGE, page, sizeof(page)) == -ENODATA;
}

/* Is the range, or part of it, the code of that place? 0 also if it is some other's already; -EAGAIN:
 * it may become that. */
static int settle_place(struct copies *c, uint32_t proc, const struct proc_map *range,
			const struct place *place, bool *ret_could_be)
{
	const struct elf_segment *segments;
	struct copy_place at = place->at;
	struct proc_map map;
	bool filling;
	size_t cnt;
	int err;

	segments = objects__segments(c->objects, place->object, &cnt);
	if (!copy_cut(segments, cnt, range, &at) || is_object(c, proc, range))
		return 0;
	*ret_could_be = true;
	map = (struct proc_map){
		.start = at.start, .end = at.end, .offset = at.offset, .file = place->file
	};
	if (has_copy(c, proc, map.start, map.end))
		return 0;
	/* asked before: it may be done while it is compared */
	filling = is_being_filled(c, proc, map.start, map.end);
	err = prove(c, proc, place->object, &map);
	return err == -EBADMSG && filling ? -EAGAIN : err;
}

/* Finds out about one range, and whether there was anything that it could be. 0 or -ENOMEM. */
static int settle_range(struct copies *c, uint32_t proc, const struct proc_map *range,
			const struct place *places, size_t cnt, bool *ret_could_be)
{
	enum proc_map_copy rest = PROC_MAP_AS_IS;

	for (size_t i = 0; i < cnt; i++) {
		int err = settle_place(c, proc, range, &places[i], ret_could_be);

		/* its next stack asks anew */
		if (err == -ENOMEM || err == -EAGAIN)
			return err == -ENOMEM ? err : 0;
		if (err)
			rest = err == -EBADMSG ? PROC_MAP_NO_COPY : PROC_MAP_UNREAD;
	}
	procs__judge_memory(c->procs, proc, range->start, range->end, rest);
	return 0;
}

/* ---- copies at another place ---- */

struct moved { /* what is looked for */
	struct proc_map map;
	uint8_t page[COPY_PAGE]; /* the first one */
};

/* Reads the first pages; what cannot be looked for is left out. Returns how many are left. */
static size_t read_pages(struct copies *c, uint32_t proc, struct moved *moved, size_t cnt)
{
	size_t n = 0;

	for (size_t i = 0; i < cnt; i++) {
		struct moved *m = &moved[n];

		m->map = moved[i].map;
		n += !proofs__read(c->proofs, proc, m->map.start, m->page, COPY_PAGE) &&
		     proof_is_telling(m->page, COPY_PAGE);
	}
	return n;
}

/* Code of a file that is looked through. */
struct searched {
	uint32_t proc, object, file;
};

/* A page of it, at offset: is it the first one of something? What is found is looked for no more. 0
 * or -ENOMEM. */
static int match_page(struct copies *c, const struct searched *in, uint64_t offset,
		      const uint8_t *page, struct moved *moved, size_t *cnt)
{
	for (size_t i = 0; i < *cnt; i++) {
		struct proc_map map = moved[i].map;
		int err;

		if (memcmp(moved[i].page, page, COPY_PAGE))
			continue;
		map.file = in->file;
		map.offset = offset;
		err = prove(c, in->proc, in->object, &map);
		/* it may end within its last page, which then stays what it is */
		map.end -= COPY_PAGE;
		if (err == -EBADMSG)
			err = prove(c, in->proc, in->object, &map);
		if (!err)
			moved[i] = moved[--*cnt];
		if (err != -EBADMSG)
			return err == -ENOMEM ? err : 0;
	}
	return 0;
}

static int search_segment(struct copies *c, const struct searched *in,
			  const struct elf_segment *code, struct moved *moved, size_t *cnt)
{
	uint64_t vaddr = (code->vaddr + COPY_PAGE - 1) & ~(COPY_PAGE - 1);
	uint64_t end = code->vaddr + code->filesz;
	uint8_t unit[OBJECTS_MAX_READ];
	int err = 0;

	for (; !err && *cnt && vaddr + COPY_PAGE <= end; vaddr += sizeof(unit)) {
		size_t sz = MIN(end - vaddr, sizeof(unit));

		if (c->searched[in->proc] >= MAX_SEARCHED)
			return 0;
		c->searched[in->proc] += sizeof(unit);
		err = objects__read(c->objects, in->object, vaddr, unit, sz);
		for (size_t at = 0; !err && at + COPY_PAGE <= sz; at += COPY_PAGE)
			err = match_page(c, in, code->offset + (vaddr + at - code->vaddr),
					 unit + at, moved, cnt);
	}
	return err == -ENOMEM ? err : 0;
}

/* Looks for memory in the code of the files that the process has copies of. */
static int search(struct copies *c, uint32_t proc, struct moved *moved, size_t cnt)
{
	struct searched in = { .proc = proc, .file = PROCS_NONE };
	const struct proc_map *map;
	int err = util_reserve_zeroed(&c->searched, &c->searched_cap, proc, sizeof(*c->searched));

	if (err || c->searched[proc] >= MAX_SEARCHED)
		return err;
	cnt = read_pages(c, proc, moved, cnt);
	/* by address, as what is found changes the ranges */
	for (uint64_t at = 0; !err && cnt && (map = procs__map_from(c->procs, proc, at));) {
		const struct elf_segment *segments;
		size_t segment_cnt;

		at = map->end;
		if (map->copy != PROC_MAP_COPY || map->file == in.file)
			continue;
		in.file = map->file;
		in.object = c->object(c->ctx, proc, map);
		if (in.object == OBJECTS_NONE)
			continue;
		segments = objects__segments(c->objects, in.object, &segment_cnt);
		for (size_t i = 0; !err && i < segment_cnt; i++)
			if (segments[i].exec)
				err = search_segment(c, &in, &segments[i], moved, &cnt);
	}
	return err;
}

/* ---- all of it ---- */

int copies__settle(struct copies *c, uint32_t proc)
{
	struct place *places = calloc(MAX_PLACES, sizeof(*places));
	struct moved *moved = calloc(MAX_MOVED, sizeof(*moved));
	size_t moved_cnt = 0, cnt = 0;
	const struct proc_map *map;
	int err = places && moved ? 0 : -ENOMEM;

	if (!err)
		cnt = find_places(c, proc, places);
	/* by address, as ranges fall into parts */
	for (uint64_t at = 0; !err && (map = procs__map_from(c->procs, proc, at));) {
		struct proc_map range = *map;
		bool somewhere = false;

		at = range.end;
		if (range.copy != PROC_MAP_MAYBE_COPY)
			continue;
		err = settle_range(c, proc, &range, places, cnt, &somewhere);
		if (!somewhere && moved_cnt < MAX_MOVED &&
		    range.end - range.start >= COPY_MIN_MOVED)
			moved[moved_cnt++].map = range;
	}
	if (!err && moved_cnt && procs__space(c->procs, proc)->has_copies)
		err = search(c, proc, moved, moved_cnt);
	free(moved);
	free(places);
	return err;
}

static void drop(struct copies *c, uint32_t proc, uint64_t start, uint64_t end,
		 enum proc_map_copy why)
{
	if (procs__drop_copy(c->procs, proc, start, end, why))
		log_debug("out of memory: code that is not its file's may have its names");
}

/* Compares the unit of a copy that holds addr, in which what is not the same is no copy any more.
 * Returns whether the page of addr is the same. */
static bool compare_unit(struct copies *c, uint32_t proc, const struct proc_map *copy,
			 uint64_t addr)
{
	struct proc_map map = *copy;
	uint32_t object = c->object(c->ctx, proc, &map);
	struct proof_unit unit = { .start = addr & ~(COPY_PAGE - 1) };
	int err = -ENOENT;

	unit.end = unit.start + COPY_PAGE;
	if (object != OBJECTS_NONE)
		err = proofs__unit(c->proofs, proc, object, &map, addr, &unit);
	if (err) {
		drop(c, proc, unit.start, unit.end, PROC_MAP_UNREAD);
		return false;
	}
	for (uint64_t page = unit.start; page < unit.end; page += COPY_PAGE)
		if (!(unit.same & proof_bit(&unit, page)))
			drop(c, proc, page, page + COPY_PAGE, PROC_MAP_NO_COPY);
	return unit.same & proof_bit(&unit, addr);
}

/* Finds out about what the frames stand in, where the kernel side has not heard yet that it is
 * memory now. */
static void settle_frames(struct copies *c, uint32_t proc, const uint64_t *frames, size_t cnt,
			  uint64_t time_ns)
{
	const struct proc_map *map = NULL;

	for (size_t i = 0; i < cnt; i++) {
		if (map && frames[i] >= map->start && frames[i] < map->end)
			continue;
		map = procs__map_at_time(c->procs, proc, frames[i], time_ns);
		if (map && map->copy == PROC_MAP_MAYBE_COPY) {
			(void)copies__settle(c, proc);
			return;
		}
	}
}

size_t copies__vouch(struct copies *c, uint32_t proc, const uint64_t *frames, size_t cnt,
		     uint64_t time_ns)
{
	const struct proc_space *space = procs__space(c->procs, proc);
	const struct proc_map *map = NULL;

	if (!space->beside_cnt && !space->has_copies)
		return cnt;
	settle_frames(c, proc, frames, cnt, time_ns);
	for (size_t i = 0; i < cnt; i++) {
		if (!map || frames[i] < map->start || frames[i] >= map->end)
			map = procs__map_at_time(c->procs, proc, frames[i], time_ns);
		if (!map || map->copy != PROC_MAP_COPY || proofs__has(c->proofs, proc, frames[i]))
			continue;
		if (!compare_unit(c, proc, map, frames[i]))
			return i;
		/* pages beside it may have been dropped: the ranges are others by now */
		map = NULL;
	}
	return cnt;
}
