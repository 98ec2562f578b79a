/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table: open addressing, linear probing, at most half full. It keeps entries of one size,
 * chosen by its user, and the upper half of each entry's hash. There are two ways to use it:
 *
 *  - entries that begin with their key, the same number of bytes in each, compared by memcmp:
 *    hash__lookup(), hash__insert(). Padding is compared too, so it has to be zeroed.
 *  - entries of any other kind, such as indices into an array: the user hashes and compares.
 *
 *	for (e = hash__first(&h, hash); e; e = hash__next(&h, e))
 *		if (things[*e].name == name)
 *			return *e;
 *	e = hash__add(&h, hash);
 *
 * An entry is aligned to the largest power of two that divides its size, 16 at most: enough for any
 * type. Entries move when one is added or removed: a pointer to an entry is valid until then.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_MAX (1U << 30) /* entries; a table has at most 2^31 slots */

struct hash {
	uint64_t seed; /* secret (see hash_seed), as keys may be chosen by others */
	size_t cnt;    /* entries */
	/* private */
	size_t max, entry_sz, key_sz, tag_off, slot_sz;
	size_t cap; /* slots: 0 or a power of two */
	unsigned char *slots;
};

/*
 * An empty table, which takes no memory yet. entry_sz: above 0; key_sz: bytes at the start of an
 * entry that are its key, 0 if hash__lookup() and hash__insert() are not used; max: entries, no
 * more than HASH_MAX.
 */
void hash__init(struct hash *h, size_t entry_sz, size_t key_sz, size_t max);

/* Frees what the table owns. It is empty afterwards, and may be used again. */
void hash__done(struct hash *h);

/* The entry with this key; NULL if there is none. */
void *hash__lookup(const struct hash *h, const void *key);

/*
 * The entry with this key; *ret_new says whether it is a new one, of which all but the key is
 * zeroed. NULL if there is no memory (errno is ENOMEM) or the table has its `max` entries (ENOSPC):
 * the table is as it was. A key that is there is found even then.
 */
void *hash__insert(struct hash *h, const void *key, bool *ret_new);

/* The entries that may have this hash, as the upper 32 bits of theirs are the same, one after the
 * other. NULL behind the last one. */
void *hash__first(const struct hash *h, uint64_t hash);
void *hash__next(const struct hash *h, const void *entry);

/* A new entry, zeroed, whether or not there is an equal one. NULL as from hash__insert(). */
void *hash__add(struct hash *h, uint64_t hash);

/* Removes an entry, which may be the current one of a hash_iter. */
void hash__remove(struct hash *h, void *entry);

/*
 * A walk over all entries, each once, in an order that means nothing and differs between runs.
 * During a walk nothing may be added, and no entry but the current one be removed.
 *
 *	struct hash_iter it = hash__iter(&h);
 *
 *	while ((e = hash_iter__next(&it)))
 *		if (is_old(e))
 *			hash__remove(&h, e);
 */
struct hash_iter {
	const struct hash *h;
	size_t at, left;
};

struct hash_iter hash__iter(const struct hash *h);
/* NULL behind the last entry. */
void *hash_iter__next(struct hash_iter *it);

/* A number that others do not know, another one each time, to hash what they choose; without entropy,
 * early at boot, ones that they can guess. */
uint64_t hash_seed(void);

#endif
