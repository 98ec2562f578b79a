/* SPDX-License-Identifier: BSD-2-Clause */
/* Interns strings: one buffer of bytes, one array of positions, one open-addressing table of ids.
 */
#include "base/strtab.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/util.h"

#define FIRST_SLOTS 256 /* a power of two */

struct slot {
	uint32_t id;   /* 0: free, as "" is never looked up */
	uint32_t hash; /* upper half: spares most comparisons, and hashing again when the table
			  grows */
};

struct strtab {
	char *bytes; /* strings one behind the other, each with its NUL */
	size_t bytes_sz, bytes_cap;
	size_t *pos; /* of string i; pos[cnt] is bytes_sz */
	size_t pos_cap;
	uint32_t cnt;
	struct slot *slots;
	size_t slot_cnt;
	uint64_t seed; /* secret: the strings are chosen by other people's programs */
};

struct strtab *strtab__new(void)
{
	struct strtab *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	/* without entropy, early at boot, tables work just as well */
	if (getrandom(&st->seed, sizeof(st->seed), GRND_NONBLOCK) < 0)
		st->seed = util_monotonic_ns();
	st->slot_cnt = FIRST_SLOTS;
	st->slots = calloc(st->slot_cnt, sizeof(*st->slots));
	if (!st->slots || util_reserve(&st->bytes, &st->bytes_cap, 1, 1) ||
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
	free(st->slots);
	free(st);
}

/* Doubles the table before it is more than half full. */
static int grow_slots(struct strtab *st)
{
	size_t cnt = st->slot_cnt * 2, i, at;
	struct slot *slots;

	if ((size_t)st->cnt * 2 < st->slot_cnt)
		return 0;
	slots = calloc(cnt, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (i = 0; i < st->slot_cnt; i++) {
		if (!st->slots[i].id)
			continue;
		for (at = st->slots[i].hash & (cnt - 1); slots[at].id; at = (at + 1) & (cnt - 1))
			;
		slots[at] = st->slots[i];
	}
	free(st->slots);
	st->slots = slots;
	st->slot_cnt = cnt;
	return 0;
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

	if (st->cnt == UINT32_MAX || __builtin_add_overflow(st->bytes_sz, sz, &need) ||
	    need == SIZE_MAX || util_reserve(&st->bytes, &st->bytes_cap, need + 1, 1) ||
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
	uint32_t hash;
	size_t at;

	/* a string ends at its first NUL, however much was passed: else strtab__get would return
	 * less than was added */
	sz = s ? strnlen(s, sz) : 0;
	if (!sz)
		return 0;
	if (grow_slots(st))
		goto no_memory;
	hash = (uint32_t)(util_hash(s, sz, st->seed) >> 32);
	for (at = hash & (st->slot_cnt - 1); st->slots[at].id; at = (at + 1) & (st->slot_cnt - 1))
		if (st->slots[at].hash == hash && equal(st, st->slots[at].id, s, sz))
			return st->slots[at].id;
	if (append(st, s, sz))
		goto no_memory;
	st->slots[at] = (struct slot){ .id = st->cnt - 1, .hash = hash };
	return st->cnt - 1;
no_memory:
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
