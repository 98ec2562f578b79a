/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slot is an entry and, behind it, a tag: the upper half of its hash, and 0 where the slot is
 * free. The tag tells where an entry belongs, so that a table grows without hashing again, and
 * spares most comparisons of unequal keys.
 */
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/large_pages.h"
#include "base/util.h"

#define FIRST_SLOTS 16
#define MAX_ALIGN 16 /* of entries: what calloc gives */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* The kernel is asked once in each thread: to ask takes 2 us, and a profile has a dozen tables. */
uint64_t hash_seed(void)
{
	static _Thread_local uint64_t secret, cnt;

	if (!secret && getrandom(&secret, sizeof(secret), GRND_NONBLOCK) != sizeof(secret))
		secret = util_monotonic_ns();
	cnt++;
	return util_hash(&cnt, sizeof(cnt), secret);
}

void hash__init(struct hash *h, size_t entry_sz, size_t key_sz, size_t max)
{
	/* the alignment of a type divides its size */
	size_t align = MIN(entry_sz & -entry_sz, (size_t)MAX_ALIGN);
	size_t tag_off = round_up(entry_sz, sizeof(uint32_t));

	*h = (struct hash){
		.seed = hash_seed(),
		.max = MIN(max, (size_t)HASH_MAX),
		.entry_sz = entry_sz,
		.key_sz = key_sz,
		.tag_off = tag_off,
		.slot_sz = round_up(tag_off + sizeof(uint32_t), MAX(align, sizeof(uint32_t))),
	};
}

void hash__done(struct hash *h)
{
	free(h->slots);
	h->slots = NULL;
	h->cap = h->cnt = 0;
}

static unsigned char *slot(const struct hash *h, size_t at)
{
	return h->slots + at * h->slot_sz;
}

static uint32_t *tag(const struct hash *h, const void *entry)
{
	return (uint32_t *)((unsigned char *)entry + h->tag_off);
}

static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32) ?: 1;
}

static size_t index_of(const struct hash *h, const void *entry)
{
	return (size_t)((const unsigned char *)entry - h->slots) / h->slot_sz;
}

/* The slot behind this one, in a ring. */
static unsigned char *behind(const struct hash *h, const unsigned char *s)
{
	s += h->slot_sz;
	return s == slot(h, h->cap) ? h->slots : (unsigned char *)s;
}

/* The first entry with this tag in the slots from s to the next free one. */
static void *probe(const struct hash *h, uint32_t wanted, unsigned char *s)
{
	for (; *tag(h, s); s = behind(h, s))
		if (*tag(h, s) == wanted)
			return s;
	return NULL;
}

/* The free slot for a new entry. */
static unsigned char *free_slot(const struct hash *h, uint32_t its_tag)
{
	unsigned char *s = slot(h, its_tag & (h->cap - 1));

	while (*tag(h, s))
		s = behind(h, s);
	return s;
}

static int grow(struct hash *h)
{
	struct hash grown = *h;
	size_t bytes;

	grown.cap = h->cap ? h->cap * 2 : FIRST_SLOTS;
	if (__builtin_mul_overflow(grown.cap, h->slot_sz, &bytes))
		return -ENOMEM;
	grown.slots = calloc(1, bytes);
	if (!grown.slots)
		return -ENOMEM;
	large_pages__use(grown.slots, bytes);
	for (size_t i = 0; i < h->cap; i++) {
		const unsigned char *old = slot(h, i);

		if (*tag(h, old))
			memcpy(free_slot(&grown, *tag(h, old)), old, h->slot_sz);
	}
	free(h->slots);
	*h = grown;
	return 0;
}

void *hash__first(const struct hash *h, uint64_t hash)
{
	uint32_t wanted = tag_of(hash);

	return h->cap ? probe(h, wanted, slot(h, wanted & (h->cap - 1))) : NULL;
}

void *hash__next(const struct hash *h, const void *entry)
{
	return probe(h, *tag(h, entry), behind(h, entry));
}

void *hash__add(struct hash *h, uint64_t hash)
{
	unsigned char *s;

	if (h->cnt >= h->max) {
		errno = ENOSPC;
		return NULL;
	}
	if ((h->cnt + 1) * 2 > h->cap && grow(h)) {
		errno = ENOMEM;
		return NULL;
	}
	s = free_slot(h, tag_of(hash));
	*tag(h, s) = tag_of(hash);
	h->cnt++;
	return s;
}

static void *find(const struct hash *h, const void *key, uint64_t hash)
{
	void *e = hash__first(h, hash);

	while (e && memcmp(e, key, h->key_sz))
		e = hash__next(h, e);
	return e;
}

void *hash__lookup(const struct hash *h, const void *key)
{
	return h->cnt ? find(h, key, util_hash(key, h->key_sz, h->seed)) : NULL;
}

void *hash__insert(struct hash *h, const void *key, bool *ret_new)
{
	uint64_t hash = util_hash(key, h->key_sz, h->seed);
	void *e = find(h, key, hash);

	*ret_new = !e;
	if (e)
		return e;
	e = hash__add(h, hash);
	if (e)
		memcpy(e, key, h->key_sz);
	return e;
}

/*
 * The entries behind the hole, up to the next free slot, were put there because the slots before
 * were taken. Each that the hole would suit, as its way from where it belongs leads over it, moves
 * there and leaves the hole where it was.
 */
void hash__remove(struct hash *h, void *entry)
{
	size_t mask = h->cap - 1, hole = index_of(h, entry), at = hole;

	while (*tag(h, slot(h, at = (at + 1) & mask))) {
		size_t home = *tag(h, slot(h, at));

		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		memcpy(slot(h, hole), slot(h, at), h->slot_sz);
		hole = at;
	}
	memset(slot(h, hole), 0, h->slot_sz);
	h->cnt--;
}

/*
 * Downwards from a free slot, once around: what moves when the current entry is removed lies behind
 * it, up to the next free slot, where the walk has been. Upwards, the walk would miss what moves
 * into the current slot; from any other slot, what moves over the end of the array.
 */
struct hash_iter hash__iter(const struct hash *h)
{
	struct hash_iter it = { .h = h, .left = h->cnt ? h->cap : 0 };

	while (it.left && *tag(h, slot(h, it.at)))
		it.at++;
	return it;
}

void *hash_iter__next(struct hash_iter *it)
{
	unsigned char *s;

	while (it->left) {
		it->left--;
		it->at = (it->at - 1) & (it->h->cap - 1);
		s = slot(it->h, it->at);
		if (*tag(it->h, s))
			return s;
	}
	return NULL;
}
