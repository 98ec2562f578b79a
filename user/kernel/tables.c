// SPDX-License-Identifier: BSD-2-Clause
/* Table memory shared with the kernel side: an allocator over mmapable chunks. */
#include "kernel/tables.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/dontfork.h"
#include "kernel/grace.h"
#include "kernel/session.h"

#define ALIGN 16U
#define LIMBO_SHARE 8 /* of what is in use; less need not be had back soon */

struct hole {
	uint32_t pos, sz;
};

struct chunk {
	int fd;
	uint8_t *mem;	      /* NULL: there is none of this number */
	uint32_t used, limbo; /* bytes of extents, and of those that are in limbo */
	struct hole *holes;   /* free extents, ascending, never adjacent */
	size_t hole_cnt, hole_cap;
};

struct tables {
	struct session *session;
	struct chunk *chunks;
	uint32_t chunk_end, chunk_cnt, chunk_max; /* numbers; chunks that there are, at most */
	struct tables_extent *limbo;		  /* freed, but perhaps still being read */
	size_t limbo_cnt, limbo_cap;
	/* Those that a grace period is waited for, the first ones; a chunk, or NULL; its number, 0:
	 * nothing is waited for. */
	size_t waiting_cnt;
	struct chunk *leaving;
	uint64_t waiting;
	uint64_t adding;	 /* the same for the chunk that was added last */
	uint64_t used, limbo_sz; /* bytes, as of a chunk */
};

static void free_chunk(struct chunk *c)
{
	munmap(c->mem, BPFPROF_CHUNK_SZ);
	close(c->fd);
	free(c->holes);
	memset(c, 0, sizeof(*c));
}

void tables__free(struct tables *t)
{
	if (!t)
		return;
	/* until then its descriptor is in use */
	(void)tables__publish(t);
	for (uint32_t i = 0; i < t->chunk_end; i++)
		if (t->chunks[i].mem)
			free_chunk(&t->chunks[i]);
	free(t->chunks);
	free(t->limbo);
	free(t);
}

static int outer_fd(const struct tables *t)
{
	return bpf_map__fd(session__skel(t->session)->maps.bp_chunks);
}

int tables__publish(struct tables *t)
{
	int err = t->adding ? grace__passed(session__grace(t->session), t->adding, true) : 0;

	if (err < 0)
		return err;
	t->adding = 0;
	return 0;
}

/*
 * The kernel waits for a grace period, some 10 to 60 ms, each time a map of maps is changed
 * (maybe_wait_bpf_programs): a thread waits in our place while the chunk is filled.
 */
static int add_chunk(struct tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct chunk *c = t->chunks;
	uint32_t idx = 0;
	int err;

	while (idx < t->chunk_end && t->chunks[idx].mem)
		idx++;
	if (idx == t->chunk_max)
		return -ENOSPC;
	c = &t->chunks[idx];
	err = tables__publish(t);
	if (!err)
		err = util_reserve(&c->holes, &c->hole_cap, 16, sizeof(*c->holes));
	if (err)
		return err;
	c->mem = MAP_FAILED;
	c->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bp_chunk", sizeof(uint32_t), BPFPROF_CHUNK_SZ,
			       1, &opts);
	if (c->fd < 0) {
		err = -errno;
		goto cleanup;
	}
	c->mem = mmap(NULL, BPFPROF_CHUNK_SZ, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	err = c->mem == MAP_FAILED ? -errno : dontfork();
	if (err)
		goto cleanup;
	t->adding = grace__put(session__grace(t->session), outer_fd(t), idx, c->fd);
	c->holes[0] = (struct hole){ .pos = 0, .sz = BPFPROF_CHUNK_SZ };
	c->hole_cnt = 1;
	t->chunk_end = MAX(t->chunk_end, idx + 1);
	t->chunk_cnt++;
	return 0;

cleanup:
	if (c->mem != MAP_FAILED)
		munmap(c->mem, BPFPROF_CHUNK_SZ);
	if (c->fd >= 0)
		close(c->fd);
	free(c->holes);
	memset(c, 0, sizeof(*c));
	return err;
}

struct tables *tables__new(struct session *s, uint32_t max_chunks)
{
	struct tables *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return NULL;
	t->session = s;
	t->chunk_max = MIN(max_chunks, BPFPROF_MAX_CHUNKS);
	t->chunks = calloc(t->chunk_max, sizeof(*t->chunks));
	if (!t->chunks) {
		free(t);
		errno = ENOMEM;
		return NULL;
	}
	/* now, so that the first process need not wait for it */
	err = t->chunk_max ? add_chunk(t) : 0;
	if (err) {
		tables__free(t);
		errno = -err;
		return NULL;
	}
	return t;
}

/* First fit: extents are few and live long. */
static int take(struct tables *t, uint32_t sz, struct tables_extent *ret)
{
	sz = (sz + ALIGN - 1) & ~(ALIGN - 1);
	if (!sz || sz > BPFPROF_CHUNK_SZ)
		return -EINVAL;
	for (;;) {
		for (uint32_t i = 0; i < t->chunk_end; i++) {
			struct chunk *c = &t->chunks[i];

			for (size_t j = 0; j < c->hole_cnt; j++) {
				struct hole *h = &c->holes[j];

				if (h->sz < sz)
					continue;
				*ret = (struct tables_extent){ .chunk = i,
							       .pos = h->pos,
							       .sz = sz };
				h->pos += sz;
				h->sz -= sz;
				if (!h->sz) {
					c->hole_cnt--;
					memmove(h, h + 1, (c->hole_cnt - j) * sizeof(*h));
				}
				t->used += sz;
				c->used += sz;
				return 0;
			}
		}
		int err = add_chunk(t);

		if (err)
			return err;
	}
}

static void give_back(struct tables *t, const struct tables_extent *e)
{
	struct chunk *c = &t->chunks[e->chunk];
	struct hole *h;
	size_t i = 0;

	while (i < c->hole_cnt && c->holes[i].pos < e->pos)
		i++;
	t->used -= e->sz;
	c->used -= e->sz;
	if (i && c->holes[i - 1].pos + c->holes[i - 1].sz == e->pos) {
		h = &c->holes[i - 1];
		h->sz += e->sz;
		if (i < c->hole_cnt && h->pos + h->sz == c->holes[i].pos) {
			h->sz += c->holes[i].sz;
			c->hole_cnt--;
			memmove(&c->holes[i], &c->holes[i + 1],
				(c->hole_cnt - i) * sizeof(*c->holes));
		}
		return;
	}
	if (i < c->hole_cnt && e->pos + e->sz == c->holes[i].pos) {
		c->holes[i].pos = e->pos;
		c->holes[i].sz += e->sz;
		return;
	}
	/* without memory for the note the extent is lost to us, which harms nobody */
	if (util_reserve(&c->holes, &c->hole_cap, c->hole_cnt + 1, sizeof(*c->holes)))
		return;
	memmove(&c->holes[i + 1], &c->holes[i], (c->hole_cnt - i) * sizeof(*c->holes));
	c->holes[i] = (struct hole){ .pos = e->pos, .sz = e->sz };
	c->hole_cnt++;
}

void tables__release(struct tables *t, struct tables_extent *e)
{
	if (e->sz && !util_reserve(&t->limbo, &t->limbo_cap, t->limbo_cnt + 1, sizeof(*t->limbo))) {
		t->limbo[t->limbo_cnt++] = *e;
		t->limbo_sz += e->sz;
		t->chunks[e->chunk].limbo += e->sz;
	}
	memset(e, 0, sizeof(*e));
}

/* A chunk in which nothing lies, while the others have as much room as it has. NULL: none */
static struct chunk *spare_chunk(const struct tables *t)
{
	uint64_t needed = t->used - t->limbo_sz + 2 * (uint64_t)BPFPROF_CHUNK_SZ;
	uint32_t i = t->chunk_end;

	if (t->chunk_cnt * (uint64_t)BPFPROF_CHUNK_SZ < needed)
		return NULL;
	while (i-- > 0)
		if (t->chunks[i].mem && t->chunks[i].used == t->chunks[i].limbo)
			return &t->chunks[i];
	return NULL;
}

/* What was freed by now is to be used again, and a chunk that is not needed to go. */
static void begin_wait(struct tables *t)
{
	struct grace *grace = session__grace(t->session);

	t->leaving = spare_chunk(t);
	t->waiting_cnt = t->limbo_cnt;
	if (t->leaving) {
		/* nothing is put there any more */
		t->leaving->hole_cnt = 0;
		t->waiting = grace__remove(grace, outer_fd(t), (uint32_t)(t->leaving - t->chunks));
	} else if (t->waiting_cnt) {
		t->waiting = grace__ask(grace);
	}
}

static void end_wait(struct tables *t)
{
	for (size_t i = 0; i < t->waiting_cnt; i++) {
		t->chunks[t->limbo[i].chunk].limbo -= t->limbo[i].sz;
		t->limbo_sz -= t->limbo[i].sz;
		give_back(t, &t->limbo[i]);
	}
	t->limbo_cnt -= t->waiting_cnt;
	if (t->limbo_cnt)
		memmove(t->limbo, t->limbo + t->waiting_cnt, t->limbo_cnt * sizeof(*t->limbo));
	if (t->leaving) {
		free_chunk(t->leaving);
		t->chunk_cnt--;
	}
	t->waiting = 0;
}

/* Ends the wait that goes on, if it can. */
static void settle(struct tables *t, bool wait)
{
	if (t->waiting && grace__passed(session__grace(t->session), t->waiting, wait) == 1)
		end_wait(t);
}

void tables__tend(struct tables *t)
{
	settle(t, false);
	/* to ask costs as much as 20 lists of processes that have ended */
	if (!t->waiting && (t->limbo_sz > t->used / LIMBO_SHARE || spare_chunk(t)))
		begin_wait(t);
}

void tables__settle(struct tables *t)
{
	settle(t, true);
	if (!t->waiting)
		begin_wait(t);
	settle(t, true);
}

int tables__add_part(struct tables *t, const void *blob, uint32_t sz, struct tables_extent *ret)
{
	struct bpfprof_part *part;
	int err;

	if (sz < sizeof(*part))
		return -EINVAL;
	err = take(t, sz, ret);
	if (err)
		return err;
	part = (struct bpfprof_part *)(t->chunks[ret->chunk].mem + ret->pos);
	memcpy(part, blob, sz);
	part->off_pos += ret->pos;
	part->rule_pos += ret->pos;
	part->rules_pos += ret->pos;
	part->used = 1;
	return 0;
}

int tables__test_and_clear_used(struct tables *t, const struct tables_extent *e)
{
	struct bpfprof_part *part;

	part = (struct bpfprof_part *)(t->chunks[e->chunk].mem + e->pos);
	return __atomic_exchange_n(&part->used, 0, __ATOMIC_RELAXED) != 0;
}

int tables__set_proc(struct tables *t, const struct bpfprof_proc_key *key,
		     const struct tables_map *maps, size_t cnt, uint32_t gen,
		     struct tables_extent *list)
{
	size_t maps_at =
		sizeof(*key) + ((cnt * sizeof(uint64_t) + ALIGN - 1) & ~(size_t)(ALIGN - 1));
	int procs = bpf_map__fd(session__skel(t->session)->maps.bp_procs);
	struct tables_extent fresh;
	struct bpfprof_proc value;
	uint8_t *mem;
	int err;

	if (cnt >= BPFPROF_MAX_MAPS)
		return -E2BIG;
	err = take(t, (uint32_t)(maps_at + cnt * sizeof(struct bpfprof_map)), &fresh);
	if (err)
		return err;
	err = tables__publish(t);
	if (err) {
		give_back(t, &fresh);
		return err;
	}
	mem = t->chunks[fresh.chunk].mem + fresh.pos;
	for (size_t i = 0; i < cnt; i++) {
		memcpy(mem + sizeof(*key) + i * sizeof(uint64_t), &maps[i].start, sizeof(uint64_t));
		memcpy(mem + maps_at + i * sizeof(struct bpfprof_map), &maps[i].map,
		       sizeof(maps[i].map));
	}
	memcpy(mem, key, sizeof(*key));
	value = (struct bpfprof_proc){
		.chunk = fresh.chunk,
		.pos = fresh.pos,
		.map_cnt = cnt,
		.gen = gen,
	};
	/* what was written above has to be seen before what points to it: the system call orders it
	 */
	if (bpf_map_update_elem(procs, key, &value, BPF_ANY)) {
		err = -errno;
		give_back(t, &fresh);
		return err;
	}
	tables__release(t, list);
	*list = fresh;
	return 0;
}

void tables__update_proc(struct tables *t, const struct bpfprof_proc_key *key,
			 const struct bpfprof_proc *value)
{
	(void)bpf_map_update_elem(bpf_map__fd(session__skel(t->session)->maps.bp_procs), key, value,
				  BPF_EXIST);
}

void tables__del_proc(struct tables *t, const struct bpfprof_proc_key *key,
		      struct tables_extent *list)
{
	(void)bpf_map_delete_elem(bpf_map__fd(session__skel(t->session)->maps.bp_procs), key);
	tables__release(t, list);
}

const uint8_t *tables__chunk(const struct tables *t, uint32_t idx)
{
	return idx < t->chunk_end ? t->chunks[idx].mem : NULL;
}

uint32_t tables__chunk_cnt(const struct tables *t)
{
	return t->chunk_cnt;
}

uint64_t tables__bytes(const struct tables *t)
{
	return t->used - t->limbo_sz;
}
