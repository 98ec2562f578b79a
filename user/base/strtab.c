/* SPDX-License-Identifier: BSD-2-Clause */
/* Interns strings: one buffer of bytes, one array of positions, one hash table of ids. */
#include "base/strtab.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

struct strtab {
	char *bytes; /* strings one behind the other, each with its NUL */
	size_t bytes_sz, bytes_cap;
	size_t *pos; /* of string i; pos[cnt] is bytes_sz */
	size_t pos_cap;
	uint32_t cnt;
	struct hash ids; /* of all but "", which is never looked up */
};

struct strtab *strtab__new(void)
{
	struct strtab *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	hash__init(&st->ids, sizeof(uint32_t), 0, HASH_MAX);
	if (util_reserve(&st->bytes, &st->bytes_cap, 1, 1) ||
	    util_reserve(&st->pos, &st->pos_cap, 2, sizeof(*st->pos))) {
		strtab__free(st);
		errno = ENOMEM;
		return NULL;
	}
	st->bytes[0] = '\0';
	st->bytes_sz = 1;
	st->pos[0] = 0;
	st->pos[1] = 1;
	st->cnt = 1;
	return st;
}

void strtab__free(struct strtab *st)
{
	if (!st)
		return;
	free(st->bytes);
	free(st->pos);
	hash__done(&st->ids);
	free(st);
}

static bool equal(const struct strtab *st, uint32_t id, const char *s, size_t sz)
{
	return st->pos[id + 1] - st->pos[id] == sz + 1 && !memcmp(st->bytes + st->pos[id], s, sz);
}

static int append(struct strtab *st, const char *s, size_t sz)
{
	/* s may be part of a string in this table, such as the base name of a path: it moves with
	 * the buffer */
	size_t off = (uintptr_t)s - (uintptr_t)st->bytes, need;
	bool own = off < st->bytes_sz;

	if (__builtin_add_overflow(st->bytes_sz, sz, &need) || need == SIZE_MAX ||
	    util_reserve(&st->bytes, &st->bytes_cap, need + 1, 1) ||
	    util_reserve(&st->pos, &st->pos_cap, (size_t)st->cnt + 2, sizeof(*st->pos)))
		return -ENOMEM;
	memcpy(st->bytes + st->bytes_sz, own ? st->bytes + off : s, sz);
	st->bytes[need] = '\0';
	st->bytes_sz = need + 1;
	st->cnt++;
	st->pos[st->cnt] = st->bytes_sz;
	return 0;
}

uint32_t strtab__add_n(struct strtab *st, const char *s, size_t sz)
{
	uint64_t hash;
	uint32_t *id;

	/* a string ends at its first NUL, however much was passed: else strtab__get would return
	 * less than was added */
	sz = s ? strnlen(s, sz) : 0;
	if (!sz)
		return 0;
	hash = util_hash(s, sz, st->ids.seed);
	for (id = hash__first(&st->ids, hash); id; id = hash__next(&st->ids, id))
		if (equal(st, *id, s, sz))
			return *id;
	id = hash__add(&st->ids, hash);
	if (id && !append(st, s, sz))
		return *id = st->cnt - 1;
	if (id)
		hash__remove(&st->ids, id);
	errno = ENOMEM;
	return UINT32_MAX;
}

uint32_t strtab__add(struct strtab *st, const char *s)
{
	return strtab__add_n(st, s, s ? strlen(s) : 0);
}

const char *strtab__get(const struct strtab *st, uint32_t id)
{
	return id < st->cnt ? st->bytes + st->pos[id] : "";
}

uint32_t strtab__cnt(const struct strtab *st)
{
	return st->cnt;
}

size_t strtab__bytes(const struct strtab *st)
{
	return st->bytes_sz;
}
