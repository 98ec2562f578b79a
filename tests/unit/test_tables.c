// SPDX-License-Identifier: BSD-2-Clause
/* group: waits */
/* seconds: 15 */
/* Table memory: the allocator against a model, and processes as the kernel side finds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "bpf_session.h"
#include "bpfprof.skel.h"
#include "kernel/tables.h"

#define CHUNKS 3
#define TOTAL ((uint64_t)CHUNKS * BPFPROF_CHUNK_SZ)
#define MAX_LIVE 4000

static struct session *session;
static struct tables *tables;
static uint8_t blob[BPFPROF_CHUNK_SZ];

static int group_setup(void **state)
{
	const struct session_opts opts = { .frequency = 99 };

	(void)state;
	session = bpf_session_open(&opts);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	session__free(session);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	if (session)
		tables = tables__new(session, CHUNKS);
	return session && !tables;
}

static int teardown(void **state)
{
	(void)state;
	tables__free(tables);
	tables = NULL;
	return 0;
}

#define NEED_SESSION()          \
	do {                    \
		if (!session)   \
			skip(); \
	} while (0)

/* A part whose bytes tell its number. */
static void make_blob(uint32_t sz, uint32_t number)
{
	struct bpfprof_part head = { .off_pos = 100, .rule_pos = 200, .rules_pos = 304 };

	memset(blob, (int)(number * 37 + 1), sz);
	memcpy(blob, &head, sizeof(head));
}

struct live {
	struct tables_extent e;
	uint32_t sz, number;
};

static void check_part(const struct live *l)
{
	const uint8_t *mem = tables__chunk(tables, l->e.chunk);
	struct bpfprof_part head;

	assert_non_null(mem);
	mem += l->e.pos;
	memcpy(&head, mem, sizeof(head));
	/* positions count from the start of the chunk now */
	assert_int_equal(head.off_pos, l->e.pos + 100);
	assert_int_equal(head.rule_pos, l->e.pos + 200);
	assert_int_equal(head.rules_pos, l->e.pos + 304);
	assert_int_equal(head.used, 1);
	for (uint32_t i = sizeof(head); i < l->sz; i++)
		if (mem[i] != (uint8_t)(l->number * 37 + 1))
			fail_msg("part %u was overwritten at byte %u", l->number, i);
}

static void test_one_part(void **state)
{
	struct tables_extent e;

	(void)state;
	NEED_SESSION();
	/* there from the start */
	assert_non_null(tables__chunk(tables, 0));
	assert_null(tables__chunk(tables, 1));
	assert_int_equal(tables__bytes(tables), 0);
	make_blob(1000, 1);
	assert_int_equal(tables__add_part(tables, blob, 1000, &e), 0);
	assert_int_equal(e.sz, 1008);
	assert_int_equal(e.pos % 16, 0);
	assert_int_equal(tables__bytes(tables), 1008);
	check_part(&(struct live){ e, 1000, 1 });
	/* new ones count as used, so that they are not evicted at once */
	assert_true(tables__test_and_clear_used(tables, &e));
	assert_false(tables__test_and_clear_used(tables, &e));
	tables__release(tables, &e);
	assert_int_equal(e.sz, 0);
	assert_null(tables__chunk(tables, 1));
	assert_null(tables__chunk(tables, UINT32_MAX));
	/* what is no part */
	assert_int_equal(tables__add_part(tables, blob, sizeof(struct bpfprof_part) - 1, &e),
			 -EINVAL);
	assert_int_equal(tables__add_part(tables, blob, 0, &e), -EINVAL);
	assert_int_equal(tables__add_part(tables, blob, BPFPROF_CHUNK_SZ + 1, &e), -EINVAL);
}

/* Does the kernel side have the chunk? */
static bool is_there(uint32_t chunk)
{
	int outer = bpf_map__fd(session__skel(session)->maps.bp_chunks);
	uint32_t id;

	assert_int_equal(tables__publish(tables), 0);
	return !bpf_map_lookup_elem(outer, &chunk, &id);
}

/* Memory is given back when nothing lies in it, and is there again when it is asked for. */
static void test_given_back(void **state)
{
	struct tables_extent all[CHUNKS], small, more;

	(void)state;
	NEED_SESSION();
	for (uint32_t i = 0; i < CHUNKS; i++) {
		make_blob(BPFPROF_CHUNK_SZ - 2048, i);
		assert_int_equal(tables__add_part(tables, blob, BPFPROF_CHUNK_SZ - 2048, &all[i]),
				 0);
		assert_int_equal(all[i].chunk, i);
	}
	make_blob(1000, 9);
	assert_int_equal(tables__add_part(tables, blob, 1000, &small), 0);
	assert_int_equal(small.chunk, 0);
	tables__settle(tables);
	assert_int_equal(tables__chunk_cnt(tables), CHUNKS);
	/* one is as good as empty: the others have no room */
	tables__release(tables, &all[1]);
	tables__settle(tables);
	assert_int_equal(tables__chunk_cnt(tables), CHUNKS);
	/* two, of which the first has something in it */
	tables__release(tables, &all[0]);
	tables__settle(tables);
	assert_int_equal(tables__chunk_cnt(tables), CHUNKS - 1);
	assert_null(tables__chunk(tables, 1));
	assert_false(is_there(1));
	assert_true(is_there(0) && is_there(2));
	check_part(&(struct live){ small, 1000, 9 });
	check_part(&(struct live){ all[2], BPFPROF_CHUNK_SZ - 2048, 2 });
	tables__settle(tables);
	assert_int_equal(tables__chunk_cnt(tables), CHUNKS - 1);
	/* room for two again */
	for (uint32_t i = 0; i < 2; i++) {
		make_blob(BPFPROF_CHUNK_SZ - 2048, 20 + i);
		assert_int_equal(tables__add_part(tables, blob, BPFPROF_CHUNK_SZ - 2048, &all[i]),
				 0);
		assert_int_equal(all[i].chunk, i);
	}
	assert_true(is_there(1));
	assert_int_equal(tables__add_part(tables, blob, BPFPROF_CHUNK_SZ - 2048, &more), -ENOSPC);
	check_part(&(struct live){ all[1], BPFPROF_CHUNK_SZ - 2048, 21 });
	check_part(&(struct live){ small, 1000, 9 });
	for (uint32_t i = 0; i < CHUNKS; i++)
		tables__release(tables, &all[i]);
	tables__release(tables, &small);
	/* one at a time, and one stays */
	for (uint32_t left = CHUNKS - 1; left > 0; left--) {
		tables__settle(tables);
		assert_int_equal(tables__chunk_cnt(tables), left);
	}
	tables__settle(tables);
	assert_int_equal(tables__chunk_cnt(tables), 1);
	assert_int_equal(tables__bytes(tables), 0);
	assert_true(is_there(0));
}

/* The kernel side finds the same memory that we see. */
static void test_shared(void **state)
{
	int outer, inner;
	struct tables_extent e;
	uint32_t id, zero = 0;
	void *copy;

	(void)state;
	NEED_SESSION();
	make_blob(500, 3);
	assert_int_equal(tables__add_part(tables, blob, 500, &e), 0);
	assert_int_equal(tables__publish(tables), 0);
	outer = bpf_map__fd(session__skel(session)->maps.bp_chunks);
	assert_int_equal(bpf_map_lookup_elem(outer, &e.chunk, &id), 0);
	inner = bpf_map_get_fd_by_id(id);
	assert_true(inner >= 0);
	copy = malloc(BPFPROF_CHUNK_SZ);
	assert_int_equal(bpf_map_lookup_elem(inner, &zero, copy), 0);
	assert_memory_equal((uint8_t *)copy + e.pos, tables__chunk(tables, e.chunk) + e.pos, 500);
	free(copy);
	close(inner);
}

static void test_not_reused_before_settled(void **state)
{
	struct tables_extent a, b;
	uint32_t pos, chunk;

	(void)state;
	NEED_SESSION();
	make_blob(BPFPROF_CHUNK_SZ, 1);
	for (int i = 0; i < CHUNKS; i++)
		assert_int_equal(tables__add_part(tables, blob, BPFPROF_CHUNK_SZ, &a), 0);
	assert_int_equal(tables__add_part(tables, blob, 64, &b), -ENOSPC);
	pos = a.pos;
	chunk = a.chunk;
	tables__release(tables, &a);
	/* a program may still be reading it */
	assert_int_equal(tables__add_part(tables, blob, 64, &b), -ENOSPC);
	assert_int_equal(tables__bytes(tables), TOTAL - BPFPROF_CHUNK_SZ);
	tables__settle(tables);
	assert_int_equal(tables__bytes(tables), TOTAL - BPFPROF_CHUNK_SZ);
	assert_int_equal(tables__add_part(tables, blob, BPFPROF_CHUNK_SZ, &b), 0);
	assert_int_equal(b.chunk, chunk);
	assert_int_equal(b.pos, pos);
	/* nothing is no extent */
	tables__release(tables, &a);
	tables__settle(tables);
	assert_int_equal(tables__bytes(tables), TOTAL);
}

static void no_overlap(const struct live *live, size_t cnt, const struct live *l)
{
	for (size_t i = 0; i < cnt; i++)
		if (&live[i] != l && live[i].e.chunk == l->e.chunk &&
		    live[i].e.pos < l->e.pos + l->e.sz && l->e.pos < live[i].e.pos + live[i].e.sz)
			fail_msg("part %u lies over part %u", l->number, live[i].number);
}

static uint32_t random_size(void)
{
	switch (rand() % 4) {
	case 0:
		return 32 + (uint32_t)rand() % 64;
	case 1:
		return 32 + (uint32_t)rand() % 200000;
	default:
		return 32 + (uint32_t)rand() % 8000;
	}
}

static void test_against_model(void **state)
{
	struct live *live;
	size_t cnt = 0, full = 0;
	uint64_t used = 0;

	(void)state;
	NEED_SESSION();
	live = calloc(MAX_LIVE, sizeof(*live));
	srand(11);
	for (uint32_t step = 0; step < 20000; step++) {
		/* fills up, then empties, over and over */
		bool grow = rand() % 16 < (step / 2500 % 2 ? 6 : 10);

		if (grow && cnt < MAX_LIVE) {
			struct live *l = &live[cnt];
			int err;

			*l = (struct live){ .sz = random_size(), .number = step };
			make_blob(l->sz, step);
			err = tables__add_part(tables, blob, l->sz, &l->e);
			if (err) {
				assert_int_equal(err, -ENOSPC);
				full++;
				continue;
			}
			assert_int_equal(l->e.pos % 16, 0);
			assert_true(l->e.sz >= l->sz && l->e.sz < l->sz + 16);
			assert_true(l->e.chunk < CHUNKS && l->e.pos + l->e.sz <= BPFPROF_CHUNK_SZ);
			no_overlap(live, cnt, l);
			used += l->e.sz;
			cnt++;
		} else if (cnt) {
			size_t i = (size_t)rand() % cnt;

			check_part(&live[i]);
			used -= live[i].e.sz;
			tables__release(tables, &live[i].e);
			live[i] = live[--cnt];
			if (rand() % 8 == 0) {
				tables__settle(tables);
				assert_int_equal(tables__bytes(tables), used);
			}
		}
	}
	for (size_t i = 0; i < cnt; i++) {
		check_part(&live[i]);
		tables__release(tables, &live[i].e);
	}
	free(live);
	assert_true(full > 10);
	/* all of it came back, in one piece */
	tables__settle(tables);
	assert_int_equal(tables__bytes(tables), 0);
	make_blob(BPFPROF_CHUNK_SZ, 1);
	for (int i = 0; i < CHUNKS; i++) {
		struct tables_extent e;

		assert_int_equal(tables__add_part(tables, blob, BPFPROF_CHUNK_SZ, &e), 0);
	}
}

/* ---- processes ---- */

static const struct bpfprof_proc_key key = { .tgid = 4000000, .exec_id = 7, .start_ns = 12345 };

static bool lookup(const struct bpfprof_proc_key *k, struct bpfprof_proc *ret)
{
	return !bpf_map_lookup_elem(bpf_map__fd(session__skel(session)->maps.bp_procs), k, ret);
}

static void check_list(const struct bpfprof_proc *p, const struct tables_map *maps, size_t cnt)
{
	const uint8_t *list = tables__chunk(tables, p->chunk);
	const uint8_t *at;

	assert_non_null(list);
	assert_int_equal(p->map_cnt, cnt);
	list += p->pos;
	assert_memory_equal(list, &key, sizeof(key));
	list += sizeof(key);
	at = list + ((cnt * 8 + 15) & ~(size_t)15);
	for (size_t i = 0; i < cnt; i++) {
		assert_memory_equal(list + i * 8, &maps[i].start, 8);
		assert_memory_equal(at + i * sizeof(maps[i].map), &maps[i].map,
				    sizeof(maps[i].map));
	}
}

static void test_set_proc(void **state)
{
	static struct tables_map maps[BPFPROF_MAX_MAPS];
	static const size_t counts[] = { 1, 2, 3, 0, 4, 100, BPFPROF_MAX_MAPS - 1, 1 };
	struct tables_extent list = { 0 };
	struct bpfprof_proc p, flagged;

	(void)state;
	NEED_SESSION();
	for (uint32_t i = 0; i < BPFPROF_MAX_MAPS; i++)
		maps[i] = (struct tables_map){ 0x1000 * (i + 1ULL), { 0x1000, i, i % 5, i * 16 } };
	assert_false(lookup(&key, &p));
	for (uint32_t i = 0; i < ARRAY_SIZE(counts); i++) {
		assert_int_equal(tables__set_proc(tables, &key, maps, counts[i], 100 + i, &list),
				 0);
		assert_true(lookup(&key, &p));
		assert_int_equal(p.gen, 100 + i);
		assert_int_equal(p.flags, 0);
		assert_int_equal(p.chunk, list.chunk);
		assert_int_equal(p.pos, list.pos);
		check_list(&p, maps, counts[i]);
		/* the former list was released: only this one is left */
		tables__settle(tables);
		assert_int_equal(tables__bytes(tables), list.sz);
	}
	/* too many: what was known stays */
	assert_int_equal(tables__set_proc(tables, &key, maps, BPFPROF_MAX_MAPS, 1, &list), -E2BIG);
	assert_true(lookup(&key, &flagged));
	assert_memory_equal(&flagged, &p, sizeof(p));

	p.flags = BPFPROF_PROC_NO_RAW;
	tables__update_proc(tables, &key, &p);
	assert_true(lookup(&key, &flagged));
	assert_int_equal(flagged.flags, BPFPROF_PROC_NO_RAW);
	check_list(&flagged, maps, 1);

	tables__del_proc(tables, &key, &list);
	assert_int_equal(list.sz, 0);
	assert_false(lookup(&key, &p));
	/* flags of who is gone bring nobody back */
	tables__update_proc(tables, &key, &p);
	assert_false(lookup(&key, &p));
	tables__settle(tables);
	assert_int_equal(tables__bytes(tables), 0);
	tables__del_proc(tables, &key, &list);
}

/* Equal numbers of another start or another program are other processes. */
static void test_keys(void **state)
{
	const struct tables_map map = { 0x1000, { 0x1000, 0, 0, 0 } };
	struct bpfprof_proc_key other[2] = { key, key };
	struct tables_extent lists[3] = { { 0 } };
	struct bpfprof_proc p;

	(void)state;
	NEED_SESSION();
	other[0].exec_id++;
	other[1].start_ns++;
	assert_int_equal(tables__set_proc(tables, &key, &map, 1, 1, &lists[2]), 0);
	for (int i = 0; i < 2; i++) {
		assert_false(lookup(&other[i], &p));
		assert_int_equal(tables__set_proc(tables, &other[i], &map, 1, 2 + i, &lists[i]), 0);
	}
	tables__del_proc(tables, &other[0], &lists[0]);
	assert_true(lookup(&key, &p));
	assert_int_equal(p.gen, 1);
	assert_true(lookup(&other[1], &p));
	assert_int_equal(p.gen, 3);
	tables__del_proc(tables, &other[1], &lists[1]);
	tables__del_proc(tables, &key, &lists[2]);
	assert_false(lookup(&key, &p));
}

/* No room for a new list: the process keeps the old one. */
static void test_set_proc_without_room(void **state)
{
	const struct tables_map map = { 0x1000, { 0x1000, 0, 0, 0 } };
	struct tables_extent list = { 0 }, rest, before;
	struct bpfprof_proc p;

	(void)state;
	NEED_SESSION();
	assert_int_equal(tables__set_proc(tables, &key, &map, 1, 1, &list), 0);
	before = list;
	make_blob(BPFPROF_CHUNK_SZ, 1);
	for (uint32_t sz = BPFPROF_CHUNK_SZ; sz >= 32; sz /= 2)
		while (!tables__add_part(tables, blob, sz, &rest))
			;
	/* the last crumbs */
	while (!tables__add_part(tables, blob, 32, &rest))
		;
	assert_int_equal(tables__set_proc(tables, &key, &map, 1, 2, &list), -ENOSPC);
	assert_memory_equal(&list, &before, sizeof(list));
	assert_true(lookup(&key, &p));
	assert_int_equal(p.gen, 1);
	check_list(&p, &map, 1);
	tables__del_proc(tables, &key, &list);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_part),	  TEST(test_given_back),
		TEST(test_shared),	  TEST(test_not_reused_before_settled),
		TEST(test_against_model), TEST(test_set_proc),
		TEST(test_keys),	  TEST(test_set_proc_without_room),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
