/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/hash against a truth that is an array: what is in the table, by key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/util.h"

#define KEYS 300
#define STEPS 60000

static bool no_memory;

void *__real_calloc(size_t cnt, size_t sz);
void *__wrap_calloc(size_t cnt, size_t sz);
void *__wrap_calloc(size_t cnt, size_t sz)
{
	return no_memory ? NULL : __real_calloc(cnt, sz);
}

struct entry {
	uint64_t key;
	uint32_t value;
	uint32_t rest; /* no padding */
};

/* The same numbers in each run. */
static uint32_t next_random(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(state >> 33);
}

/* ---- ways to hash ---- */

static uint64_t well_mixed(uint64_t key)
{
	return util_hash(&key, sizeof(key), 0);
}

/* All belong into the same slot. */
static uint64_t constant(uint64_t key)
{
	(void)key;
	return 5ULL << 32;
}

/* All belong into the last slot, however large the table is: all but one come over the end. */
static uint64_t last(uint64_t key)
{
	(void)key;
	return UINT64_MAX;
}

/* Runs of entries for neighbouring slots around the end of the array. */
static uint64_t around_the_end(uint64_t key)
{
	return (uint64_t)(uint32_t)((key & 7) - 4) << 32;
}

/* Of a tag that would be that of a free slot. */
static uint64_t zero(uint64_t key)
{
	(void)key;
	return 0;
}

static uint64_t (*const ways[])(uint64_t key) = { well_mixed, constant, last, around_the_end,
						  zero };

/* ---- the truth ---- */

struct truth {
	bool in[KEYS];
	uint32_t value[KEYS];
	size_t cnt;
};

static struct entry *find(const struct hash *h, uint64_t key, uint64_t hash)
{
	struct entry *e;

	for (e = hash__first(h, hash); e; e = hash__next(h, e))
		if (e->key == key)
			return e;
	return NULL;
}

static void check_walk(const struct hash *h, const struct truth *t)
{
	struct hash_iter it = hash__iter(h);
	bool met[KEYS] = { 0 };
	size_t cnt = 0;
	const struct entry *e;

	while ((e = hash_iter__next(&it))) {
		assert_true(e->key < KEYS);
		assert_true(t->in[e->key]);
		assert_false(met[e->key]);
		met[e->key] = true;
		cnt++;
	}
	assert_int_equal(cnt, t->cnt);
	assert_int_equal(h->cnt, t->cnt);
}

static void check_all(const struct hash *h, const struct truth *t, uint64_t (*way)(uint64_t))
{
	for (uint64_t key = 0; key < KEYS; key++) {
		const struct entry *e = find(h, key, way(key));

		assert_int_equal(!!e, t->in[key]);
		if (e)
			assert_int_equal(e->value, t->value[key]);
	}
	check_walk(h, t);
}

/* ---- tests ---- */

static void an_empty_table_has_nothing(void **state)
{
	uint64_t key = 7;
	struct hash_iter it;
	struct hash h;

	(void)state;
	hash__init(&h, sizeof(struct entry), sizeof(key), HASH_MAX);
	assert_null(hash__lookup(&h, &key));
	assert_null(hash__first(&h, 7));
	it = hash__iter(&h);
	assert_null(hash_iter__next(&it));
	hash__done(&h);
}

/* Adds and removes at random, for each way to hash; the numbers swing between few and many. */
static void random_steps_agree_with_the_truth(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
		struct truth t = { 0 };
		struct hash h;

		hash__init(&h, sizeof(struct entry), 0, HASH_MAX);
		for (size_t i = 0; i < STEPS; i++) {
			uint64_t key = next_random() % KEYS;
			struct entry *e = find(&h, key, ways[w](key));
			bool want = next_random() % 4 ? i / 1000 % 2 : i / 1000 % 2 == 0;

			assert_int_equal(!!e, t.in[key]);
			if (e)
				assert_int_equal(e->value, t.value[key]);
			if (want && !e) {
				e = hash__add(&h, ways[w](key));
				assert_non_null(e);
				assert_int_equal(e->key, 0);
				assert_int_equal(e->value, 0);
				*e = (struct entry){ .key = key, .value = i };
				t.value[key] = i;
				t.cnt++;
			} else if (!want && e) {
				hash__remove(&h, e);
				t.cnt--;
			}
			t.in[key] = want;
			if (i % 100 == 0)
				check_all(&h, &t, ways[w]);
		}
		check_all(&h, &t, ways[w]);
		hash__done(&h);
		assert_int_equal(h.cnt, 0);
	}
}

/* The same by keys. */
static void keys_find_their_entries(void **state)
{
	struct truth t = { 0 };
	struct entry *e;
	struct hash h;
	bool new;

	(void)state;
	hash__init(&h, sizeof(struct entry), sizeof(e->key), HASH_MAX);
	for (size_t i = 0; i < STEPS; i++) {
		uint64_t key = next_random() % KEYS;

		e = hash__lookup(&h, &key);
		assert_int_equal(!!e, t.in[key]);
		if (e && next_random() % 2) {
			hash__remove(&h, e);
			t.in[key] = false;
			t.cnt--;
			continue;
		}
		e = hash__insert(&h, &key, &new);
		assert_non_null(e);
		assert_int_equal(new, !t.in[key]);
		assert_int_equal(e->key, key);
		assert_int_equal(e->value, new ? 0 : t.value[key]);
		e->value = t.value[key] = i;
		t.cnt += new;
		t.in[key] = true;
		if (i % 100 == 0)
			check_walk(&h, &t);
	}
	hash__done(&h);
}

static void many_entries_stay_while_it_grows(void **state)
{
	const uint32_t cnt = 300000;
	const uint32_t *found;
	struct hash h;
	bool new;

	(void)state;
	hash__init(&h, sizeof(uint32_t), sizeof(uint32_t), HASH_MAX);
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < cnt; i++) {
			assert_non_null(hash__insert(&h, &i, &new));
			assert_int_equal(new, !round);
		}
	assert_int_equal(h.cnt, cnt);
	for (uint32_t i = 0; i < 2 * cnt; i++) {
		found = hash__lookup(&h, &i);
		assert_int_equal(!!found, i < cnt);
		assert_true(!found || *found == i);
	}
	hash__done(&h);
}

/* A walk that removes meets each entry once, and leaves the others findable. */
static void a_walk_may_remove(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++)
		for (uint64_t cnt = 0; cnt < KEYS; cnt += 7) {
			int met[KEYS] = { 0 };
			struct truth t = { 0 };
			struct hash_iter it;
			struct entry *e;
			struct hash h;

			hash__init(&h, sizeof(struct entry), 0, HASH_MAX);
			for (uint64_t key = 0; key < cnt; key++) {
				e = hash__add(&h, ways[w](key));
				assert_non_null(e);
				e->key = key;
				t.in[key] = true;
				t.cnt++;
			}
			it = hash__iter(&h);
			while ((e = hash_iter__next(&it))) {
				met[e->key]++;
				if (next_random() % 3)
					continue;
				t.in[e->key] = false;
				t.cnt--;
				hash__remove(&h, e);
			}
			for (uint64_t key = 0; key < KEYS; key++)
				assert_int_equal(met[key], key < cnt);
			check_all(&h, &t, ways[w]);
			hash__done(&h);
		}
}

/* Equal hashes: all of them come, those of others do not. */
static void entries_of_one_hash_come_together(void **state)
{
	const uint64_t hashes[] = { 3ULL << 32, 4ULL << 32 };
	uint32_t *e, sum[2] = { 0 };
	struct hash h;

	(void)state;
	hash__init(&h, sizeof(uint32_t), 0, HASH_MAX);
	for (uint32_t i = 0; i < 50; i++) {
		e = hash__add(&h, hashes[i % 2]);
		assert_non_null(e);
		*e = i;
	}
	for (size_t i = 0; i < 2; i++)
		for (e = hash__first(&h, hashes[i]); e; e = hash__next(&h, e)) {
			assert_int_equal(*e % 2, i);
			sum[i] += *e;
		}
	assert_int_equal(sum[0], 600); /* 0 + 2 + … + 48 */
	assert_int_equal(sum[1], 625);
	hash__done(&h);
}

/* Without memory nothing is added, and what was there stays; with memory it goes on. */
static void without_memory_it_stays_as_it_was(void **state)
{
	uint32_t failed_at[2], failures = 0;
	struct hash h;
	bool new;

	(void)state;
	hash__init(&h, sizeof(uint32_t), sizeof(uint32_t), HASH_MAX);
	for (uint32_t i = 0; i < 1000; i++) {
		size_t cnt = h.cnt;

		no_memory = true;
		errno = 0;
		if (!hash__insert(&h, &i, &new)) {
			no_memory = false;
			assert_int_equal(errno, ENOMEM);
			assert_int_equal(h.cnt, cnt);
			failed_at[MIN(failures++, 1)] = i;
			assert_null(hash__lookup(&h, &i));
			for (uint32_t k = 0; k < i; k++)
				assert_non_null(hash__lookup(&h, &k));
			assert_non_null(hash__insert(&h, &i, &new));
		}
		no_memory = false;
		assert_true(new);
		assert_int_equal(h.cnt, cnt + 1);
	}
	/* the first one, and whenever it grew */
	assert_int_equal(failed_at[0], 0);
	assert_true(failures > 2 && failures < 20);
	hash__done(&h);
}

static void no_more_than_was_agreed(void **state)
{
	struct hash h;
	bool new;

	(void)state;
	hash__init(&h, sizeof(uint32_t), sizeof(uint32_t), 100);
	for (uint32_t i = 0; i < 200; i++) {
		errno = 0;
		assert_int_equal(!!hash__insert(&h, &i, &new), i < 100);
		assert_int_equal(errno, i < 100 ? 0 : ENOSPC);
	}
	assert_int_equal(h.cnt, 100);
	for (uint32_t i = 0; i < 100; i++) {
		assert_non_null(hash__insert(&h, &i, &new)); /* is there */
		assert_false(new);
	}
	hash__remove(&h, hash__lookup(&h, &(uint32_t){ 5 }));
	assert_non_null(hash__insert(&h, &(uint32_t){ 150 }, &new));
	assert_true(new);
	assert_null(hash__insert(&h, &(uint32_t){ 5 }, &new));
	hash__done(&h);
}

/* Entries of any size are whole and aligned. */
static void entries_of_any_size(void **state)
{
	unsigned char want[80];

	(void)state;
	for (size_t sz = 1; sz <= sizeof(want); sz++) {
		size_t align = MIN(sz & -sz, (size_t)16);
		unsigned char *e;
		struct hash h;

		hash__init(&h, sz, 0, HASH_MAX);
		for (uint32_t i = 1; i <= 100; i++) {
			e = hash__add(&h, well_mixed(i));
			assert_non_null(e);
			assert_int_equal((uintptr_t)e % align, 0);
			memset(e, (int)i, sz);
		}
		for (uint32_t i = 1; i <= 100; i++) {
			memset(want, (int)i, sz);
			e = hash__first(&h, well_mixed(i));
			while (e && memcmp(e, want, sz))
				e = hash__next(&h, e);
			assert_non_null(e);
			hash__remove(&h, e);
		}
		assert_int_equal(h.cnt, 0);
		hash__done(&h);
	}
}

static void no_two_tables_have_one_seed(void **state)
{
	uint64_t seeds[100];

	(void)state;
	for (int i = 0; i < 100; i++) {
		seeds[i] = hash_seed();
		for (int j = 0; j < i; j++)
			assert_true(seeds[i] != seeds[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_table_has_nothing),
		cmocka_unit_test(random_steps_agree_with_the_truth),
		cmocka_unit_test(keys_find_their_entries),
		cmocka_unit_test(many_entries_stay_while_it_grows),
		cmocka_unit_test(a_walk_may_remove),
		cmocka_unit_test(entries_of_one_hash_come_together),
		cmocka_unit_test(without_memory_it_stays_as_it_was),
		cmocka_unit_test(no_more_than_was_agreed),
		cmocka_unit_test(entries_of_any_size),
		cmocka_unit_test(no_two_tables_have_one_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
