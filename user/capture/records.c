// SPDX-License-Identifier: BSD-2-Clause
#include "capture/records.h"

#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Bytes. Of the first block no more is touched than is needed; those of a rush are of one huge
 * page, where there are such, since the first touch of each page costs a trap: in a virtual
 * machine 6 ms for 2 MB of small ones, 0.1 ms for one. */
#define FIRST_BLOCK (256U << 10)
#define NEXT_BLOCK (2U << 20)

struct records_block {
	struct records_block *next;
	size_t cap;		   /* bytes, all together */
	size_t begin, end;	   /* of those that wait, from the start of data */
	alignas(8) uint8_t data[]; /* of each a struct header, and the record */
};

struct header {
	uint32_t sz, number;
};

/* Bytes that a record of sz takes. */
static size_t room_of(size_t sz)
{
	return sizeof(struct header) + ((sz + 7) & ~(size_t)7);
}

/* A small one is kept: most of the time there is one at a time, and to map it anew costs more than what
 * is done with it. */
static void free_first(struct records *r)
{
	struct records_block *b = r->first;

	r->first = b->next;
	if (!r->first)
		r->last = NULL;
	if (b->cap == FIRST_BLOCK && !r->spare)
		r->spare = b;
	else
		munmap(b, b->cap);
}

void records__free(struct records *r)
{
	while (r->first)
		free_first(r);
	if (r->spare)
		munmap(r->spare, r->spare->cap);
	r->spare = NULL;
	r->sz = 0;
}

/* Memory of cap bytes, aligned to as many. NULL: there is none. */
static void *map_aligned(size_t cap)
{
	uint8_t *p =
		mmap(NULL, 2 * cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p & (cap - 1);
	if (before)
		munmap(p, before);
	munmap(p + before + cap, cap - before);
	return p + before;
}

/* NULL: there is no memory. */
static struct records_block *new_block(struct records *r)
{
	size_t cap = r->first ? NEXT_BLOCK : FIRST_BLOCK;
	struct records_block *b = cap == FIRST_BLOCK ? r->spare : NULL;

	if (b) {
		r->spare = NULL;
	} else {
		b = map_aligned(cap);
		if (b && cap == NEXT_BLOCK)
			(void)madvise(b, cap, MADV_HUGEPAGE);
	}
	if (b)
		*b = (struct records_block){ .cap = cap };
	return b;
}

/* An empty block at the end. 0 or -ENOMEM. */
static int add_block(struct records *r)
{
	struct records_block *b = new_block(r);

	if (!b)
		return -ENOMEM;
	if (r->last)
		r->last->next = b;
	else
		r->first = b;
	r->last = b;
	return 0;
}

int records__put(struct records *r, const struct bpfprof_rec *rec, size_t sz, uint32_t number)
{
	size_t room = room_of(sz);
	struct records_block *b = r->last;
	struct header h = { (uint32_t)sz, number };

	if (sz > RECORDS_MAX_SZ)
		return -E2BIG;
	if ((!b || sizeof(*b) + b->end + room > b->cap) && add_block(r))
		return -ENOMEM;
	b = r->last;
	memcpy(b->data + b->end, &h, sizeof(h));
	memcpy(b->data + b->end + sizeof(h), rec, sz);
	b->end += room;
	r->sz += room;
	return 0;
}

/* Of the record that has waited longest in a block. */
static struct header first_header(const struct records_block *b)
{
	struct header h;

	memcpy(&h, b->data + b->begin, sizeof(h));
	return h;
}

const struct bpfprof_rec *records__first(const struct records *r, size_t *ret_sz,
					 uint32_t *ret_number)
{
	const struct records_block *b = r->first;
	struct header h;

	if (!b)
		return NULL;
	h = first_header(b);
	*ret_sz = h.sz;
	*ret_number = h.number;
	return (const void *)(b->data + b->begin + sizeof(h));
}

void records__drop(struct records *r)
{
	struct records_block *b = r->first;
	size_t room = room_of(first_header(b).sz);

	b->begin += room;
	r->sz -= room;
	if (b->begin == b->end)
		free_first(r);
}

void records__each(const struct records *r, void (*f)(void *ctx, const struct bpfprof_rec *rec),
		   void *ctx)
{
	for (const struct records_block *b = r->first; b; b = b->next)
		for (size_t at = b->begin; at < b->end;) {
			const struct header *h = (const void *)(b->data + at);

			f(ctx, (const void *)(h + 1));
			at += room_of(h->sz);
		}
}

void records__join(struct records *r, struct records *from)
{
	if (!from->first)
		return;
	if (r->last)
		r->last->next = from->first;
	else
		r->first = from->first;
	r->last = from->last;
	r->sz += from->sz;
	from->first = from->last = NULL;
	from->sz = 0;
}
