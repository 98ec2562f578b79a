// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "capture/count_keys.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "capture/stack_store.h"

struct entry {
	struct bpfprof_count_key key;
	struct count_key_stack stack;
	/* of what may be held */
	bool used;
	uint8_t slot; /* set in the epoch of this slot; ENDED: in one that has ended */
};

#define ENDED CAPTURE_EPOCHS

struct count_keys {
	struct stack_store *store;
	struct hash epochs[CAPTURE_EPOCHS];
	struct hash live;
};

struct count_keys *count_keys__new(struct stack_store *store)
{
	struct count_keys *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->store = store;
	for (int i = 0; i < CAPTURE_EPOCHS; i++)
		hash__init(&k->epochs[i], sizeof(struct entry), sizeof(struct bpfprof_count_key),
			   STACK_STORE_MAX);
	hash__init(&k->live, sizeof(struct entry), sizeof(struct bpfprof_count_key),
		   STACK_STORE_MAX);
	return k;
}

static void clear(struct count_keys *k, struct hash *h)
{
	struct hash_iter it = hash__iter(h);
	struct entry *e;

	while ((e = hash_iter__next(&it)))
		stack_store__unref(k->store, e->stack.stack);
	hash__done(h);
}

void count_keys__free(struct count_keys *k)
{
	if (!k)
		return;
	for (int i = 0; i < CAPTURE_EPOCHS; i++)
		clear(k, &k->epochs[i]);
	clear(k, &k->live);
	free(k);
}

static struct entry *set(struct count_keys *k, struct hash *h, const struct bpfprof_count_key *key,
			 const struct count_key_stack *stack)
{
	bool is_new;
	struct entry *e = hash__insert(h, key, &is_new);

	if (!e)
		return NULL;
	stack_store__ref(k->store, stack->stack);
	if (!is_new)
		stack_store__unref(k->store, e->stack.stack);
	e->stack = *stack;
	return e;
}

int count_keys__set(struct count_keys *k, uint32_t slot, bool live,
		    const struct bpfprof_count_key *key, const struct count_key_stack *stack)
{
	struct entry *e;

	if (!set(k, &k->epochs[slot], key, stack))
		return -ENOMEM;
	if (!live)
		return 0;
	e = set(k, &k->live, key, stack);
	if (!e)
		return -ENOMEM;
	e->slot = (uint8_t)slot;
	return 0;
}

const struct count_key_stack *count_keys__find(const struct count_keys *k, uint32_t slot,
					       const struct bpfprof_count_key *key)
{
	const struct entry *e = hash__lookup(&k->epochs[slot], key);

	return e ? &e->stack : NULL;
}

const struct count_key_stack *count_keys__find_live(struct count_keys *k,
						    const struct bpfprof_count_key *key)
{
	struct entry *e = hash__lookup(&k->live, key);

	if (!e)
		return NULL;
	e->used = true;
	return &e->stack;
}

size_t count_keys__cnt(const struct count_keys *k, uint32_t slot)
{
	return k->epochs[slot].cnt;
}

void count_keys__end(struct count_keys *k, uint32_t slot)
{
	struct hash_iter it = hash__iter(&k->live);
	struct entry *e;

	clear(k, &k->epochs[slot]);
	while ((e = hash_iter__next(&it)))
		if (e->slot == slot)
			e->slot = ENDED;
}

void count_keys__drop_unused(struct count_keys *k, enum bpfprof_kind kind)
{
	struct hash_iter it = hash__iter(&k->live);
	struct entry *e;

	while ((e = hash_iter__next(&it))) {
		if (stack_store__get(k->store, e->stack.stack).kind != kind)
			continue;
		if (!e->used && e->slot == ENDED) {
			stack_store__unref(k->store, e->stack.stack);
			hash__remove(&k->live, e);
			continue;
		}
		e->used = false;
	}
}

static void move(struct count_keys *k, struct hash *h, const uint32_t *moved, size_t cnt)
{
	struct hash_iter it = hash__iter(h);
	struct entry *e;

	while ((e = hash_iter__next(&it))) {
		uint32_t from = e->stack.stack, to = from < cnt ? moved[from] : STACK_NONE;

		if (to == STACK_NONE)
			continue;
		stack_store__ref(k->store, to);
		stack_store__unref(k->store, from);
		e->stack.stack = to;
	}
}

void count_keys__move(struct count_keys *k, const uint32_t *moved, size_t cnt)
{
	for (int i = 0; i < CAPTURE_EPOCHS; i++)
		move(k, &k->epochs[i], moved, cnt);
}
