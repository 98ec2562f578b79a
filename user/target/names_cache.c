/* SPDX-License-Identifier: BSD-2-Clause */
/* Two halves, each a log of fixed size, of answers and of strings, and two tables of their
 * positions in it. */
#include "target/names_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

#define MAX_ENTRIES (1U << 14) /* of a table, which has twice as many slots of eight bytes then */
#define TABLE_BYTES (MAX_ENTRIES * 16)
#define LOG_BYTES (NAMES_CACHE_BYTES / 2 - 2 * TABLE_BYTES - 256)

struct key {
	uint64_t object, vaddr;
};

struct answer {
	struct key key;
	uint32_t cnt;
	struct symbol_frame frames[];
};

struct half {
	struct hash answers, strings; /* uint32_t: positions in the log */
	size_t copied_cnt;	      /* answers that the younger half has, too */
	size_t used;		      /* bytes of the log */
	_Alignas(struct answer) char log[LOG_BYTES];
};

struct names_cache {
	struct half *young, *old;
	uint64_t evicted;
	uint64_t first_object; /* serial numbers in the young half begin about here */
	struct half halves[2];
};

_Static_assert(sizeof(struct names_cache) + 4 * TABLE_BYTES <= NAMES_CACHE_BYTES,
	       "the bound holds");
_Static_assert(NAMES_CACHE_MAX_ANSWER < LOG_BYTES &&
		       NAMES_CACHE_MAX_ANSWER / (sizeof(struct symbol_frame) + 3) * 3 <=
			       MAX_ENTRIES,
	       "an empty half has room for any answer");

static void clear(struct half *h)
{
	hash__done(&h->answers);
	hash__done(&h->strings);
	h->copied_cnt = 0;
	h->used = 1; /* "" is at 0 */
}

struct names_cache *names_cache__new(void)
{
	/* zeroed by the kernel, page by page, as it fills */
	struct names_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->young = &c->halves[0];
	c->old = &c->halves[1];
	for (size_t i = 0; i < ARRAY_SIZE(c->halves); i++) {
		hash__init(&c->halves[i].answers, sizeof(uint32_t), 0, MAX_ENTRIES);
		hash__init(&c->halves[i].strings, sizeof(uint32_t), 0, MAX_ENTRIES);
		clear(&c->halves[i]);
	}
	return c;
}

void names_cache__free(struct names_cache *c)
{
	if (!c)
		return;
	clear(c->young);
	clear(c->old);
	free(c);
}

/* ---- a half ---- */

static uint64_t hash_of(const struct half *h, const struct key *key)
{
	return util_hash(key, sizeof(*key), h->answers.seed);
}

static const struct answer *lookup(const struct half *h, const struct key *key)
{
	const uint32_t *pos = hash__first(&h->answers, hash_of(h, key));
	const struct answer *a;

	for (; pos; pos = hash__next(&h->answers, pos)) {
		a = (const struct answer *)(h->log + *pos);
		if (!memcmp(&a->key, key, sizeof(*key)))
			return a;
	}
	return NULL;
}

/* The position of a string, for which the log has room. False: no memory for the table */
static bool intern(struct half *h, const char *s, uint32_t *ret)
{
	size_t sz = strlen(s) + 1;
	uint64_t hash = util_hash(s, sz, h->strings.seed);
	uint32_t *pos = hash__first(&h->strings, hash);

	if (!*s) {
		*ret = 0;
		return true;
	}
	while (pos && strcmp(h->log + *pos, s))
		pos = hash__next(&h->strings, pos);
	if (!pos) {
		pos = hash__add(&h->strings, hash);
		if (!pos)
			return false;
		memcpy(h->log + h->used, s, sz);
		*pos = h->used;
		h->used += sz;
	}
	*ret = *pos;
	return true;
}

/* Bytes that an answer takes at most, if none of its strings is there. */
static size_t size_of(const struct symbol_frames *f)
{
	size_t sz = sizeof(struct answer) + _Alignof(struct answer) + f->cnt * sizeof(*f->frames);

	for (size_t i = 0; i < f->cnt; i++)
		sz += strlen(f->strings + f->frames[i].name) +
		      strlen(f->strings + f->frames[i].system_name) +
		      strlen(f->strings + f->frames[i].file) + 3;
	return sz;
}

static bool has_room(const struct half *h, const struct symbol_frames *f, size_t sz)
{
	return sz <= LOG_BYTES - h->used && h->answers.cnt < MAX_ENTRIES &&
	       h->strings.cnt + 3 * f->cnt <= MAX_ENTRIES;
}

/* There is room, and no answer for the key. False: no memory for a table */
static bool put(struct half *h, const struct key *key, const struct symbol_frames *f)
{
	size_t pos = (h->used + _Alignof(struct answer) - 1) & -_Alignof(struct answer);
	struct answer *a = (struct answer *)(h->log + pos);
	uint32_t *entry = hash__add(&h->answers, hash_of(h, key));
	bool whole = true;

	if (!entry)
		return false;
	*entry = pos;
	h->used = pos + sizeof(*a) + f->cnt * sizeof(*a->frames);
	*a = (struct answer){ .key = *key, .cnt = f->cnt };
	for (size_t i = 0; i < f->cnt && whole; i++) {
		const struct symbol_frame *from = &f->frames[i];
		struct symbol_frame *to = &a->frames[i];

		*to = *from;
		whole = intern(h, f->strings + from->name, &to->name) &&
			intern(h, f->strings + from->system_name, &to->system_name) &&
			intern(h, f->strings + from->file, &to->file);
	}
	if (!whole)
		hash__remove(&h->answers, entry);
	return whole;
}

/* ---- both ---- */

static struct symbol_frames frames_of(const struct half *h, const struct answer *a)
{
	return (struct symbol_frames){ .frames = a->frames, .cnt = a->cnt, .strings = h->log };
}

static void evict_old(struct names_cache *c)
{
	struct half *h = c->old;

	c->evicted += h->answers.cnt - h->copied_cnt;
	clear(h);
	c->old = c->young;
	c->young = h;
}

bool names_cache__lookup(struct names_cache *c, uint64_t object, uint64_t vaddr,
			 struct symbol_frames *ret)
{
	struct key key = { .object = object, .vaddr = vaddr };
	const struct answer *a = lookup(c->young, &key);

	if (a) {
		*ret = frames_of(c->young, a);
		return true;
	}
	a = lookup(c->old, &key);
	if (!a)
		return false;
	*ret = frames_of(c->old, a);
	/* where the young half is full, the next new answer makes room */
	if (has_room(c->young, ret, size_of(ret)))
		c->old->copied_cnt += put(c->young, &key, ret);
	return true;
}

void names_cache__insert(struct names_cache *c, uint64_t object, uint64_t vaddr,
			 const struct symbol_frames *answer)
{
	struct key key = { .object = object, .vaddr = vaddr };
	uint64_t serial = object & ((1ULL << NAMES_CACHE_SERIAL_BITS) - 1);
	size_t sz = size_of(answer);
	struct symbol_frames known;

	if (sz > NAMES_CACHE_MAX_ANSWER || names_cache__lookup(c, object, vaddr, &known))
		return;
	if (!has_room(c->young, answer, sz) ||
	    serial >= c->first_object + NAMES_CACHE_MAX_OBJECTS) {
		evict_old(c);
		c->first_object = MAX(c->first_object, serial);
	}
	(void)put(c->young, &key, answer);
}

uint64_t names_cache__evicted(const struct names_cache *c)
{
	return c->evicted;
}
