// SPDX-License-Identifier: BSD-2-Clause
/* Compares memory of processes with the files that it may be a copy of. */
#include "target/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/util.h"
#include "target/copy.h"
#include "target/objects.h"
#include "target/procs.h"

#define WINDOWS 16 /* units that are compared of a range */
#define BLOCK (64 * COPY_PAGE)
#define MAX_BLOCKS 8192 /* of a process: 2 GiB of code */
#define MAX_RANGES 128	/* of a process that are compared */

_Static_assert(PROOF_UNIT <= OBJECTS_MAX_READ, "a unit is read at once");

/* Pages that are the file's, by the number of the page within the block. */
struct block {
	uint64_t start, same;
};

struct process {
	struct block *blocks;
	size_t block_cnt, block_cap;
	size_t range_cnt;
	bool silent; /* its memory is better not asked for again */
};

struct proofs {
	struct procs *procs;
	struct objects *objects;
	struct process *processes; /* by their numbers in procs */
	size_t cap;
	uint8_t memory[PROOF_UNIT], file[PROOF_UNIT]; /* scratch */
};

struct proofs *proofs__new(struct procs *procs, struct objects *objects)
{
	struct proofs *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->procs = procs;
	p->objects = objects;
	return p;
}

void proofs__forget(struct proofs *p, uint32_t proc)
{
	if (proc >= p->cap)
		return;
	free(p->processes[proc].blocks);
	p->processes[proc] = (struct process){};
}

void proofs__free(struct proofs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->cap; i++)
		free(p->processes[i].blocks);
	free(p->processes);
	free(p);
}

/* ---- pages that are known to be the same ---- */

static struct block *find_block(const struct process *proc, uint64_t addr)
{
	for (size_t i = 0; i < proc->block_cnt; i++)
		if (addr - proc->blocks[i].start < BLOCK)
			return &proc->blocks[i];
	return NULL;
}

static uint64_t page_bit(const struct block *b, uint64_t addr)
{
	return 1ULL << (addr - b->start) / COPY_PAGE;
}

static bool is_same(const struct process *proc, uint64_t addr)
{
	const struct block *b = find_block(proc, addr);

	return b && b->same & page_bit(b, addr);
}

static void set_same(struct process *proc, uint64_t addr)
{
	struct block *b = find_block(proc, addr);

	if (!b) {
		if (proc->block_cnt >= MAX_BLOCKS ||
		    util_reserve(&proc->blocks, &proc->block_cap, proc->block_cnt + 1, sizeof(*b)))
			return;
		b = &proc->blocks[proc->block_cnt++];
		*b = (struct block){ .start = addr & ~(BLOCK - 1) };
	}
	b->same |= page_bit(b, addr);
}

/* What was known of [start, end) is no more. */
static void clear_same(struct process *proc, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < proc->block_cnt; i++) {
		struct block *b = &proc->blocks[i];

		for (uint64_t at = MAX(start, b->start); at < MIN(end, b->start + BLOCK);
		     at += COPY_PAGE)
			b->same &= ~page_bit(b, at);
	}
}

bool proofs__has(const struct proofs *p, uint32_t proc, uint64_t addr)
{
	return proc < p->cap && is_same(&p->processes[proc], addr);
}

/* ---- the memory of a process ---- */

struct memory {
	struct process *process;
	uint32_t proc;
	int fd; /* see procs__open_memory */
};

/* 0 or -errno; close_memory has to follow after 0 only. */
static int open_memory(struct proofs *p, uint32_t proc, struct memory *ret)
{
	if (util_reserve_zeroed(&p->processes, &p->cap, proc, sizeof(*p->processes)))
		return -ENOMEM;
	*ret = (struct memory){ .process = &p->processes[proc], .proc = proc };
	if (ret->process->silent)
		return -ETIMEDOUT;
	ret->fd = procs__open_memory(p->procs, proc);
	return MIN(ret->fd, 0);
}

/* What was read is the process's if it is still the same. Returns err, or the one that there is
 * now. */
static int close_memory(struct proofs *p, const struct memory *m, int err)
{
	close(m->fd);
	m->process->silent |= err == -ETIMEDOUT;
	if (!err && (!procs__lives(p->procs, m->proc) || procs__is_gone(p->procs, m->proc)))
		err = -ESRCH;
	return err;
}

int proofs__read(struct proofs *p, uint32_t proc, uint64_t addr, void *buf, size_t sz)
{
	struct memory m;
	int err = open_memory(p, proc, &m);

	if (!err) {
		err = objects__read_memory(p->objects, m.fd, addr, buf, sz);
		err = close_memory(p, &m, err);
	}
	return err;
}

/* ---- comparing ---- */

bool proof_is_telling(const uint8_t *bytes, size_t sz)
{
	return sz > 1 && memcmp(bytes, bytes + 1, sz - 1);
}

/* The part of a unit that lies in the map. */
static struct proof_unit unit_in(const struct proc_map *map, uint64_t addr)
{
	uint64_t unit = addr & ~(PROOF_UNIT - 1);

	return (struct proof_unit){ .start = MAX(unit, map->start),
				    .end = MIN(unit + PROOF_UNIT, map->end) };
}

/* Compares a unit, as far as the file has it, and keeps which pages are the same. Where something
 * is, that is more than one byte over and over, *ret_telling becomes true. 0 or -errno. */
static int compare(struct proofs *p, const struct memory *m, uint32_t object,
		   const struct proc_map *map, struct proof_unit *unit, bool *ret_telling)
{
	uint64_t lo = unit->start, hi = unit->end, vaddr;
	const struct elf_segment *segments;
	size_t cnt;
	int err;

	segments = objects__segments(p->objects, object, &cnt);
	if (!copy_file_part(segments, cnt, map, &lo, &hi, &vaddr))
		return 0;
	err = objects__read(p->objects, object, vaddr, p->file, hi - lo);
	if (!err)
		err = objects__read_memory(p->objects, m->fd, lo, p->memory, hi - lo);
	for (uint64_t page = unit->start; !err && page < unit->end; page += COPY_PAGE) {
		uint64_t from = MAX(page, lo), to = MIN(page + COPY_PAGE, hi);

		if (from >= to || memcmp(p->file + (from - lo), p->memory + (from - lo), to - from))
			continue;
		unit->same |= proof_bit(unit, page);
		set_same(m->process, page);
		*ret_telling |= proof_is_telling(p->file + (from - lo), to - from);
	}
	return err;
}

/* The i-th unit to be compared of cnt: each, or both ends and one of each stretch in between. */
static uint64_t pick(uint64_t cnt, size_t i)
{
	uint64_t from, to;
	uint32_t random = 0;

	if (cnt <= WINDOWS || !i)
		return i;
	if (i == WINDOWS - 1)
		return cnt - 1;
	from = 1 + (i - 1) * (cnt - 2) / (WINDOWS - 2);
	to = 1 + i * (cnt - 2) / (WINDOWS - 2);
	/* each page that matters is compared later on, also where there is no chance to be had */
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	return from + random % (to - from);
}

static int compare_windows(struct proofs *p, const struct memory *m, uint32_t object,
			   const struct proc_map *map)
{
	uint64_t first = map->start & ~(PROOF_UNIT - 1);
	uint64_t cnt = (map->end - first + PROOF_UNIT - 1) / PROOF_UNIT;
	bool telling = false;

	clear_same(m->process, map->start, map->end);
	for (size_t i = 0; i < MIN(cnt, WINDOWS); i++) {
		struct proof_unit unit = unit_in(map, first + pick(cnt, i) * PROOF_UNIT);
		int err = compare(p, m, object, map, &unit, &telling);

		if (err)
			return err;
		if (unit.same != proof_bit(&unit, unit.end) - 1)
			return -EBADMSG;
	}
	return telling ? 0 : -EBADMSG;
}

int proofs__range(struct proofs *p, uint32_t proc, uint32_t object, const struct proc_map *map)
{
	struct memory m;
	int err = open_memory(p, proc, &m);

	if (err)
		return err;
	err = ++m.process->range_cnt > MAX_RANGES ? -E2BIG : compare_windows(p, &m, object, map);
	return close_memory(p, &m, err);
}

int proofs__unit(struct proofs *p, uint32_t proc, uint32_t object, const struct proc_map *map,
		 uint64_t addr, struct proof_unit *ret)
{
	struct memory m;
	bool telling = false;
	int err = open_memory(p, proc, &m);

	*ret = unit_in(map, addr);
	if (!err) {
		err = compare(p, &m, object, map, ret, &telling);
		err = close_memory(p, &m, err);
	}
	return err;
}
