// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records of mappings that lie unread: whenever they are asked for, and in whatever process they
 * have come to be by then, the answers are those of a book in which each record was entered as it
 * came.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/map_log.h"
#include "target/procs.h"
#include "toolrun.h"

#define TICK (NSEC_PER_SEC / 100)
#define PG 4096ULL
#define PAGES 24
#define BASE 0x400000ULL

static const struct proc_file files[] = {
	{ .kind = PROC_FILE_REGULAR, .path = (char *)"/lib/a", .ino = 1 },
	{ .kind = PROC_FILE_REGULAR, .path = (char *)"/lib/b", .maj = 8, .min = 1, .ino = 2 },
	{ .kind = PROC_FILE_REGULAR,
	  .path = (char *)"/lib/b",
	  .build_id = { 1, 2 },
	  .build_id_sz = 20 },
	{ .kind = PROC_FILE_ANON, .path = (char *)"//anon" },
	{ .kind = PROC_FILE_VDSO, .path = (char *)"[vdso]" },
	{ .kind = PROC_FILE_REGULAR, .path = (char *)"" },
};

static const struct proc_file *any_file(void)
{
	return &files[(size_t)rand() % ARRAY_SIZE(files)];
}

/* ---- the log ---- */

static struct map_record nth(uint64_t n)
{
	return (struct map_record){ .time_ns = n,
				    .start = n * 3,
				    .len = n * 5,
				    .offset = n * 7,
				    .file = files[n % ARRAY_SIZE(files)] };
}

static void need_nth(const struct map_record *r, uint64_t n)
{
	struct map_record want = nth(n);

	assert_int_equal(r->time_ns, want.time_ns);
	assert_int_equal(r->start, want.start);
	assert_int_equal(r->len, want.len);
	assert_int_equal(r->offset, want.offset);
	assert_int_equal(r->file.kind, want.file.kind);
	assert_int_equal(r->file.maj, want.file.maj);
	assert_int_equal(r->file.min, want.file.min);
	assert_int_equal(r->file.ino, want.file.ino);
	assert_int_equal(r->file.build_id_sz, want.file.build_id_sz);
	assert_memory_equal(r->file.build_id, want.file.build_id, sizeof(want.file.build_id));
	assert_string_equal(r->file.path, want.file.path);
}

static void test_log(void **state)
{
	struct map_log log = {}, copy = {};
	struct map_record r;
	size_t pos = 0;

	(void)state;
	assert_false(map_log__next(&log, &pos, &r));
	assert_int_equal(map_log__copy(&copy, &log), 0);
	for (uint64_t i = 0; i < 500; i++) {
		r = nth(i);
		assert_int_equal(map_log__put(&log, &r), 0);
		assert_true(log.sz <= (i + 1) * 128);
	}
	assert_int_equal(map_log__copy(&copy, &log), 0);
	r = nth(500);
	assert_int_equal(map_log__put(&log, &r), 0);
	for (uint64_t i = 0; i < 501; i++) {
		assert_true(map_log__next(&log, &pos, &r));
		need_nth(&r, i);
	}
	assert_false(map_log__next(&log, &pos, &r));
	map_log__clear(&log);
	pos = 0;
	assert_false(map_log__next(&log, &pos, &r));
	for (uint64_t i = 0; i < 500; i++) {
		assert_true(map_log__next(&copy, &pos, &r));
		need_nth(&r, i);
	}
	assert_false(map_log__next(&copy, &pos, &r));
	map_log__clear(&copy);
}

/* The kernel cuts paths at PATH_MAX; whatever comes, the next record is found. */
static void test_log_long_paths(void **state)
{
	static const size_t lens[] = {
		0, 1, 7, 8, 4095, MAP_LOG_MAX_PATH, MAP_LOG_MAX_PATH + 1, 3
	};
	char *path = calloc(1, MAP_LOG_MAX_PATH + 2);
	struct map_record r = { .time_ns = 1 };
	struct map_log log = {};
	size_t pos = 0;

	(void)state;
	assert_non_null(path);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		memset(path, 'a' + (int)i, lens[i]);
		path[lens[i]] = '\0';
		r.file.path = path;
		assert_int_equal(map_log__put(&log, &r), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		assert_true(map_log__next(&log, &pos, &r));
		assert_int_equal(strlen(r.file.path), MIN(lens[i], MAP_LOG_MAX_PATH));
		assert_true(!lens[i] || r.file.path[0] == 'a' + (int)i);
	}
	assert_false(map_log__next(&log, &pos, &r));
	map_log__clear(&log);
	free(path);
}

/* ---- two books of the same processes ---- */

#define PIDS 14 /* from 100 on */
#define THREADS 3

/* In `eager` everything is asked for after each event, in `lazy` only what a query needs. */
static struct procs *lazy, *eager;

static int setup(void **state)
{
	(void)state;
	if (!toolrun("rm -rf proc && mkdir proc"))
		return 1;
	lazy = procs__new(toolrun_path("proc"));
	eager = procs__new(toolrun_path("proc"));
	return !lazy || !eager;
}

static int teardown(void **state)
{
	(void)state;
	procs__free(lazy);
	procs__free(eager);
	return 0;
}

static void read_all(void)
{
	for (size_t i = 0; i < procs__cnt(eager); i++)
		(void)procs__space(eager, i);
}

/* Bytes that lie unread, those of a space that several have counted for each. */
static size_t unread(void)
{
	size_t sum = 0;

	for (size_t i = 0; i < procs__cnt(lazy); i++)
		sum += procs__peek(lazy, i)->unread.sz;
	return sum;
}

/* A process of the test's own making, of which maps can be read. */
static void make_proc(uint32_t pid, const char *maps)
{
	char name[64], text[256];
	int n;

	assert_true(toolrun("mkdir -p proc/%u", pid));
	n = snprintf(text, sizeof(text), "%u (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0 0\n",
		     pid, pid);
	snprintf(name, sizeof(name), "proc/%u/stat", pid);
	toolrun_write(name, text, n);
	snprintf(name, sizeof(name), "proc/%u/maps", pid);
	toolrun_write(name, maps, strlen(maps));
}

static void both_mmap(uint32_t pid, uint64_t time, uint64_t start, uint64_t len, uint64_t offset,
		      const struct proc_file *f)
{
	assert_int_equal(procs__on_mmap(lazy, pid, time, start, len, offset, f), 0);
	assert_int_equal(procs__on_mmap(eager, pid, time, start, len, offset, f), 0);
}

static void both_fork(uint32_t pid, uint32_t parent, uint64_t time)
{
	assert_int_equal(procs__on_fork(lazy, pid, parent, time), 0);
	assert_int_equal(procs__on_fork(eager, pid, parent, time), 0);
}

static void both_exec(uint32_t pid, uint64_t time)
{
	assert_int_equal(procs__on_exec(lazy, pid, time, "new"), 0);
	assert_int_equal(procs__on_exec(eager, pid, time, "new"), 0);
}

static void both_exit(uint32_t pid, uint32_t tid, uint64_t time)
{
	procs__on_exit(lazy, pid, tid, time);
	procs__on_exit(eager, pid, tid, time);
}

static void both_read_maps(uint32_t pid)
{
	uint32_t idx = procs__find_live(lazy, pid);

	if (idx == PROCS_NONE)
		return;
	assert_int_equal(procs__read_maps(lazy, idx, 0), procs__read_maps(eager, idx, 0));
}

static void both_judge(uint32_t pid)
{
	struct proc_map piece = { .start = BASE + (uint64_t)rand() % PAGES * PG };
	uint32_t idx = procs__find_live(lazy, pid);

	if (idx == PROCS_NONE)
		return;
	piece.end = piece.start + PG;
	switch (rand() % 3) {
	case 0:
		procs__judge_memory(lazy, idx, piece.start, piece.end, PROC_MAP_NO_COPY);
		procs__judge_memory(eager, idx, piece.start, piece.end, PROC_MAP_NO_COPY);
		break;
	case 1:
		if (!procs__map_at(lazy, idx, piece.start))
			break;
		piece.file = procs__map_at(lazy, idx, piece.start)->file;
		assert_int_equal(procs__add_copy(lazy, idx, &piece), 0);
		piece.file = procs__map_at(eager, idx, piece.start)->file;
		assert_int_equal(procs__add_copy(eager, idx, &piece), 0);
		break;
	default:
		assert_int_equal(
			procs__drop_copy(lazy, idx, piece.start, piece.end, PROC_MAP_UNREAD), 0);
		assert_int_equal(
			procs__drop_copy(eager, idx, piece.start, piece.end, PROC_MAP_UNREAD), 0);
	}
}

static void compare_map(const struct proc_map *a, const struct proc_map *b)
{
	const struct proc_file *fa, *fb;

	assert_int_equal(!a, !b);
	if (!a)
		return;
	fa = procs__file(lazy, a->file);
	fb = procs__file(eager, b->file);
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(a->copy, b->copy);
	assert_int_equal(fa->kind, fb->kind);
	assert_int_equal(fa->ino, fb->ino);
	assert_int_equal(fa->build_id_sz, fb->build_id_sz);
	assert_string_equal(fa->path, fb->path);
}

/* Everything that can be asked about one entry, at any time. */
static void compare(uint32_t idx, const uint64_t *times, size_t time_cnt)
{
	const struct proc *a = procs__get(lazy, idx), *b = procs__get(eager, idx);
	struct proc same = *a;
	const struct proc_space *sa, *sb;

	/* by the clock */
	same.met_ns = b->met_ns;
	assert_memory_equal(&same, b, sizeof(same));
	if (!a->tgid)
		return;
	sa = procs__space(lazy, idx);
	sb = procs__space(eager, idx);
	assert_int_equal(sa->known, sb->known);
	assert_int_equal(sa->gen, sb->gen);
	assert_int_equal(sa->map_cnt, sb->map_cnt);
	assert_int_equal(sa->beside_cnt, sb->beside_cnt);
	assert_int_equal(sa->has_copies, sb->has_copies);
	for (uint64_t page = 0; page < PAGES; page++) {
		uint64_t addr = BASE + page * PG;

		compare_map(procs__map_at(lazy, idx, addr), procs__map_at(eager, idx, addr));
		compare_map(procs__map_from(lazy, idx, addr), procs__map_from(eager, idx, addr));
		for (size_t i = 0; i < time_cnt; i++)
			compare_map(procs__map_at_time(lazy, idx, addr, times[i]),
				    procs__map_at_time(eager, idx, addr, times[i]));
	}
}

/* A sample finds the same process, whose key it may be the first to tell. */
static void both_find(uint32_t pid, const uint64_t *times, size_t time_cnt)
{
	uint64_t time = times[(size_t)rand() % time_cnt], start = pid * TICK;
	uint32_t exec_id = (uint32_t)rand() % 4;

	assert_int_equal(procs__find(lazy, pid, exec_id, start, time),
			 procs__find(eager, pid, exec_id, start, time));
}

static void both_remove_one(void)
{
	size_t cnt;
	const uint32_t *ended = procs__ended(lazy, &cnt);
	uint32_t idx = cnt ? ended[(size_t)rand() % cnt] : PROCS_NONE;

	if (!cnt)
		return;
	assert_int_not_equal(procs__get(eager, idx)->to_ns, UINT64_MAX);
	procs__remove(lazy, idx);
	procs__remove(eager, idx);
}

static void random_mmap(uint32_t pid, uint64_t time)
{
	uint64_t first = (uint64_t)rand() % PAGES,
		 cnt = 1 + (uint64_t)rand() % MIN(PAGES - first, 6);
	uint64_t offset = (rand() % 2 ? first : (uint64_t)rand() % 3) * PG;

	both_mmap(pid, time, BASE + first * PG, cnt * PG, offset, any_file());
}

static void random_step(uint64_t time, const uint64_t *times, size_t time_cnt)
{
	uint32_t pid = 100 + (uint32_t)rand() % PIDS, other = 100 + (uint32_t)rand() % PIDS;
	uint32_t idx = procs__find_live(lazy, pid);

	switch (rand() % 24) {
	case 0:
	case 1:
		both_fork(pid, other, time);
		break;
	case 2:
		both_exec(pid, time);
		break;
	case 3:
		both_exit(pid, rand() % 2 ? pid : pid + 1000, time);
		break;
	case 4:
		procs__drop_retired(lazy, times[time_cnt - MIN(time_cnt, 8)]);
		procs__drop_retired(eager, times[time_cnt - MIN(time_cnt, 8)]);
		break;
	case 5:
		both_read_maps(pid);
		break;
	case 6:
		both_judge(pid);
		break;
	case 7:
		both_find(pid, times, time_cnt);
		break;
	case 8:
		both_remove_one();
		break;
	case 9:
		if (rand() % 8)
			break;
		procs__on_lost(lazy);
		procs__on_lost(eager);
		break;
	case 10:
		procs__on_comm(lazy, pid, pid, "named");
		procs__on_comm(eager, pid, pid, "named");
		break;
	case 11:
		if (idx != PROCS_NONE)
			compare(idx, times, time_cnt);
		break;
	default:
		random_mmap(pid, time);
	}
}

static void test_lazy_is_eager(void **state)
{
	enum {
		STEPS = 160
	};
	uint64_t times[STEPS], kept;
	size_t most = 0;

	(void)state;
	srand(11);
	/* half of them have been there before, and can be read */
	for (uint32_t pid = 100; pid < 100 + PIDS; pid += 2)
		make_proc(pid,
			  "400000-404000 r-xp 00000000 08:01 2 /lib/b\n"
			  "408000-409000 r-xp 00000000 00:00 0 \n");
	for (int round = 0; round < 120; round++) {
		procs__free(lazy);
		procs__free(eager);
		lazy = procs__new(toolrun_path("proc"));
		eager = procs__new(toolrun_path("proc"));
		assert_true(lazy && eager);
		for (uint32_t pid = 100; pid < 100 + PIDS; pid += 2) {
			procs__add(lazy, pid, 1, pid * TICK, "old", false, 1);
			procs__add(eager, pid, 1, pid * TICK, "old", false, 1);
		}
		for (size_t i = 0; i < STEPS; i++) {
			times[i] = util_monotonic_ns();
			random_step(times[i], times, i + 1);
			read_all();
			most = MAX(most, unread());
		}
		assert_int_equal(procs__cnt(lazy), procs__cnt(eager));
		/* what was replaced longer ago than that is not asked for */
		kept = STEPS - 8;
		for (size_t i = 0; i < procs__cnt(lazy); i++)
			compare(i, times + kept, STEPS - kept);
		assert_int_equal(unread(), 0);
	}
	assert_true(most > 1000);
}

/* A child has what its parent had when it was forked, unread or not, and from there each its own. */
static void test_inherited_unread(void **state)
{
	uint32_t parent, child;

	(void)state;
	assert_int_equal(procs__on_exec(lazy, 10, 1, "sh"), 0);
	assert_int_equal(procs__on_mmap(lazy, 10, 2, BASE, PG, 0, &files[0]), 0);
	assert_int_equal(procs__on_fork(lazy, 20, 10, 3), 0);
	assert_int_equal(procs__on_mmap(lazy, 10, 4, BASE, PG, 0, &files[1]), 0);
	assert_int_equal(procs__on_mmap(lazy, 20, 5, BASE + PG, PG, 0, &files[1]), 0);
	parent = procs__find_live(lazy, 10);
	child = procs__find_live(lazy, 20);
	assert_true(procs__peek(lazy, parent)->unread.sz > 0);
	assert_true(procs__peek(lazy, child)->unread.sz > 0);
	assert_int_equal(procs__peek(lazy, child)->map_cnt, 0);
	assert_string_equal(procs__file(lazy, procs__map_at(lazy, child, BASE)->file)->path,
			    "/lib/a");
	assert_int_equal(procs__space(lazy, child)->map_cnt, 2);
	assert_string_equal(procs__file(lazy, procs__map_at(lazy, parent, BASE)->file)->path,
			    "/lib/b");
	assert_int_equal(procs__space(lazy, parent)->map_cnt, 1);
	assert_string_equal(
		procs__file(lazy, procs__map_at_time(lazy, parent, BASE, 3)->file)->path, "/lib/a");
}

/* Thousands of processes that nobody asks for: no file of theirs is remembered, and when they have
 * ended nothing is left. */
static void test_nothing_is_left(void **state)
{
	uint32_t idx;

	(void)state;
	assert_int_equal(procs__on_exec(lazy, 10, 1, "x"), 0);
	for (uint32_t i = 0; i < 3000; i++) {
		char path[32];
		struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = path, .ino = i };
		uint64_t time = 10 * i;

		snprintf(path, sizeof(path), "/tmp/%u", i);
		assert_int_equal(procs__on_fork(lazy, 1000 + i, 10, time + 1), 0);
		assert_int_equal(procs__on_exec(lazy, 1000 + i, time + 2, "short"), 0);
		assert_int_equal(procs__on_mmap(lazy, 1000 + i, time + 3, BASE, PG, 0, &f), 0);
		procs__on_exit(lazy, 1000 + i, 1000 + i, time + 4);
		for (size_t cnt = 1; cnt;) {
			const uint32_t *ended = procs__ended(lazy, &cnt);

			if (cnt)
				procs__remove(lazy, ended[0]);
		}
		assert_int_equal(unread(), 0);
	}
	assert_true(procs__cnt(lazy) < 8);
	assert_int_equal(procs__on_mmap(lazy, 10, UINT64_MAX - 1, BASE, PG, 0, &files[0]), 0);
	idx = procs__find_live(lazy, 10);
	assert_int_equal(procs__map_at(lazy, idx, BASE)->file, 0);
	assert_string_equal(procs__file(lazy, 0)->path, "/lib/a");
}

/* What lies unread is bounded, of one process and of all, and nothing is lost by that. */
static void test_bounds(void **state)
{
	uint32_t idx;

	(void)state;
	assert_int_equal(procs__on_exec(lazy, 10, 1, "maps much"), 0);
	idx = procs__find_live(lazy, 10);
	for (uint64_t i = 0; i < 5000; i++) {
		assert_int_equal(
			procs__on_mmap(lazy, 10, 2 + i, BASE + 2 * i * PG, PG, 0, &files[i % 2]),
			0);
		assert_true(procs__peek(lazy, idx)->unread.sz <= PROC_SPACE_MAX_UNREAD + 256);
	}
	assert_int_equal(procs__space(lazy, idx)->map_cnt, 5000);
	assert_int_equal(procs__space(lazy, idx)->unread.sz, 0);
	for (uint32_t pid = 100; pid < 2500; pid++) {
		assert_int_equal(procs__on_exec(lazy, pid, 1, "x"), 0);
		for (uint64_t i = 0; i < 60; i++)
			assert_int_equal(procs__on_mmap(lazy, pid, 2 + i, BASE + 2 * i * PG, PG, 0,
							&files[i % 2]),
					 0);
	}
	assert_true(unread() > PROC_SPACES_MAX_UNREAD / 2);
	assert_true(unread() <= PROC_SPACES_MAX_UNREAD);
	for (uint32_t pid = 100; pid < 2500; pid++)
		assert_int_equal(procs__space(lazy, procs__find_live(lazy, pid))->map_cnt, 60);
	assert_int_equal(unread(), 0);
}

/* ---- maps that are read when a process is sampled ---- */

static const char *path_at_time(uint32_t idx, uint64_t addr, uint64_t time)
{
	const struct proc_map *m = procs__map_at_time(lazy, idx, addr, time);

	return m ? procs__file(lazy, m->file)->path : "";
}

/* What /proc shows is what is there now. What an event tells to have been mapped between the sample
 * and the reading was something else before: better no name than that one. */
static void test_read_after_sample(void **state)
{
	uint64_t sampled, mapped, pending;
	uint32_t idx;

	(void)state;
	idx = procs__add(lazy, 10, 1, 10 * TICK, "old", false, 1);
	make_proc(10,
		  "400000-401000 r-xp 00000000 08:01 1 /lib/old\n"
		  "402000-403000 r-xp 00000000 00:00 1 /lib/a\n"
		  "404000-405000 r-xp 00000000 00:00 1 /lib/a\n");
	sampled = util_monotonic_ns();
	mapped = sampled + 1;
	pending = sampled + 2;
	assert_int_equal(procs__on_mmap(lazy, 10, mapped, 0x402000, PG, 0, &files[0]), 0);
	assert_int_equal(procs__read_maps(lazy, idx, 0), 0);
	assert_true(procs__read_ns(lazy) > pending);
	/* the event of this one has still been on its way */
	assert_string_equal(path_at_time(idx, 0x404000, sampled), "/lib/a");
	assert_int_equal(procs__on_mmap(lazy, 10, pending, 0x404000, PG, 0, &files[0]), 0);
	assert_string_equal(path_at_time(idx, 0x400000, sampled), "/lib/old");
	assert_string_equal(path_at_time(idx, 0x402000, sampled), "");
	assert_string_equal(path_at_time(idx, 0x402000, mapped), "/lib/a");
	assert_string_equal(path_at_time(idx, 0x404000, sampled), "");
	assert_string_equal(path_at_time(idx, 0x404000, pending), "/lib/a");
}

/* As long as nothing was read, what was somewhere before the first record of it is not known. */
static void test_before_first_record(void **state)
{
	uint32_t idx = procs__add(lazy, 10, 1, 10 * TICK, "old", false, 1);

	(void)state;
	assert_int_equal(procs__on_mmap(lazy, 10, 5, BASE + PG, PG, PG, &files[0]), 0);
	assert_int_equal(procs__on_mmap(lazy, 10, 7, BASE, 3 * PG, 0, &files[1]), 0);
	assert_string_equal(path_at_time(idx, BASE + PG, 4), "");
	assert_string_equal(path_at_time(idx, BASE + PG, 6), "/lib/a");
	assert_string_equal(path_at_time(idx, BASE, 6), "");
	assert_string_equal(path_at_time(idx, BASE + 2 * PG, 6), "");
	for (uint64_t page = 0; page < 3; page++)
		assert_string_equal(path_at_time(idx, BASE + page * PG, 7), "/lib/b");
}

/* The parent is read for the child's sake, later than it was forked: what the parent has mapped in
 * between is not the child's. */
static void test_read_for_child(void **state)
{
	uint64_t forked = util_monotonic_ns();
	uint32_t parent, child;

	(void)state;
	parent = procs__add(lazy, 10, 1, 10 * TICK, "old", false, 1);
	make_proc(10,
		  "400000-401000 r-xp 00000000 08:01 1 /lib/old\n"
		  "402000-403000 r-xp 00000000 00:00 1 /lib/a\n");
	assert_int_equal(procs__on_fork(lazy, 20, 10, forked), 0);
	child = procs__find_live(lazy, 20);
	/* it was short, and cannot be asked any more */
	assert_string_equal(path_at_time(child, 0x400000, forked + 1), "/lib/old");
	assert_true(procs__space(lazy, child)->known);
	assert_int_equal(procs__on_mmap(lazy, 10, forked + 2, 0x402000, PG, 0, &files[0]), 0);
	assert_string_equal(path_at_time(parent, 0x402000, forked + 3), "/lib/a");
	assert_string_equal(path_at_time(child, 0x402000, forked + 3), "");
	assert_string_equal(path_at_time(child, 0x400000, forked + 3), "/lib/old");
	/* what the child maps is no matter of the parent's */
	assert_int_equal(procs__on_fork(lazy, 30, 10, forked + 4), 0);
	assert_int_equal(procs__on_mmap(lazy, 30, forked + 5, 0x402000, PG, PG, &files[1]), 0);
	assert_string_equal(path_at_time(parent, 0x402000, forked + 6), "/lib/a");
	/* an exec of the parent that was on its way: what was read is another program's */
	assert_int_equal(procs__on_fork(lazy, 40, 10, forked + 7), 0);
	assert_int_equal(procs__on_exec(lazy, 10, forked + 8, "new"), 0);
	child = procs__find_live(lazy, 40);
	assert_string_equal(path_at_time(child, 0x400000, forked + 9), "");
	assert_false(procs__space(lazy, child)->known);
}

/* The child's exec is no exec of the parent, with which it has the space until then. */
static void test_exec_of_child(void **state)
{
	uint64_t forked = util_monotonic_ns();
	uint32_t parent;

	(void)state;
	parent = procs__add(lazy, 10, 1, 10 * TICK, "old", false, 1);
	make_proc(10, "400000-401000 r-xp 00000000 08:01 1 /lib/old\n");
	assert_int_equal(procs__on_fork(lazy, 20, 10, forked), 0);
	assert_int_equal(procs__on_exec(lazy, 20, forked + 1, "new"), 0);
	assert_string_equal(path_at_time(parent, 0x400000, forked + 2), "/lib/old");
	assert_true(procs__space(lazy, parent)->known);
}

/* After a loss what was known stays, and is to be read anew; of kernel threads there is nothing. */
static void test_lost(void **state)
{
	uint32_t a, b;

	(void)state;
	b = procs__add(lazy, 11, 1, 11 * TICK, "kthread", true, 1);
	assert_true(procs__space(lazy, b)->known);
	assert_int_equal(procs__on_exec(lazy, 10, 1, "x"), 0);
	a = procs__find_live(lazy, 10);
	assert_int_equal(procs__on_mmap(lazy, 10, 2, BASE, PG, 0, &files[0]), 0);
	procs__on_lost(lazy);
	assert_false(procs__space(lazy, a)->known);
	assert_true(procs__space(lazy, b)->known);
	assert_string_equal(path_at_time(a, BASE, 3), "/lib/a");
	make_proc(10,
		  "400000-401000 r-xp 00000000 00:00 1 /lib/a\n"
		  "402000-403000 r-xp 00000000 08:01 1 /lib/missed\n");
	assert_int_equal(procs__read_maps(lazy, a, 0), 0);
	assert_true(procs__space(lazy, a)->known);
	assert_string_equal(path_at_time(a, 0x402000, util_monotonic_ns()), "/lib/missed");
	/* nobody knows how many threads there are now: /proc does */
	procs__on_exit(lazy, 10, 10, 4);
	assert_int_equal(procs__get(lazy, a)->to_ns, UINT64_MAX);
	assert_true(toolrun("rm -r proc/10"));
	procs__on_exit(lazy, 10, 10, 5);
	assert_int_equal(procs__get(lazy, a)->to_ns, 5);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_log_long_paths),
		TEST(test_lazy_is_eager),
		TEST(test_inherited_unread),
		TEST(test_nothing_is_left),
		TEST(test_bounds),
		TEST(test_read_after_sample),
		TEST(test_before_first_record),
		TEST(test_read_for_child),
		TEST(test_exec_of_child),
		TEST(test_lost),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
