/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fixed profiles whose written forms lie in tests/golden.
 *
 * Everything that a writer has to take care of occurs once in the CPU profile: an inlined frame,
 * recursion, a kernel part, two processes with the same mapping, a mapping with and without names,
 * a marker, labels of both kinds, names that break lines, comments of both kinds.
 *
 * The heap profile has four values, a label that tells samples of one stack apart by their size,
 * samples that hold nothing any more, an allocation of no bytes, and names to hide and to keep.
 *
 * The profiles of waits and threads are made by their rows of kinds.c: values and labels of waits
 * of every reason and end, and of threads in different states.
 */
#ifndef TESTS_GOLDEN_PROFILE_H
#define TESTS_GOLDEN_PROFILE_H

#include <linux/types.h>
#include <stdint.h>
#include <stdlib.h>

#include "bpfprof.h"
#include "kinds.h"
#include "profile/profile.h"

#define GOLDEN_MS INT64_C(1000000)

static inline uint32_t golden_location(struct profile *p, uint32_t mapping, uint64_t address,
				       const char *name, const char *system_name, const char *file,
				       int64_t line)
{
	uint32_t loc = profile__add_location(p, mapping, address);
	struct profile_function f = { 0 };
	struct profile_line l = { .line = line };

	f.name = profile__string(p, name);
	f.system_name = profile__string(p, system_name);
	f.filename = profile__string(p, file);
	f.start_line = line ? line - line % 10 : 0;
	l.function = profile__add_function(p, &f);
	profile__set_lines(p, loc, &l, 1);
	p->locations[loc].from_entry = 1 + (address >> 4 & 0xff);
	return loc;
}

static inline void golden_sample(struct profile *p, const uint32_t *locs, size_t cnt,
				 const char *comm, int64_t pid, int64_t samples)
{
	struct profile_label labels[] = { { 0 }, { .num = pid } };
	int64_t values[] = { samples, samples * 10 * GOLDEN_MS };

	labels[0].key = profile__string(p, "comm");
	labels[0].str = profile__string(p, comm);
	labels[1].key = labels[1].num_unit = profile__string(p, "pid");
	profile__add_sample(p, locs, cnt, labels, 2, values);
}

/* Finished; NULL if there is no memory. */
static inline struct profile *golden_profile(void)
{
	static const struct profile_value_type types[] = { { "samples", "count" },
							   { "cpu", "nanoseconds" } };
	struct profile *p = profile__new(types, 2, types[1], 10 * GOLDEN_MS);
	struct profile_mapping app = { .start = 0x555555554000,
				       .limit = 0x555555556000,
				       .offset = 0x1000 };
	struct profile_mapping kernel = { .start = 0xffffffff81000000,
					  .limit = 0xffffffff82000000 };
	uint32_t m, other, k, start, fib, work, nameless, bare, sys, marker, odd;
	struct profile_function helper = { 0 };
	struct profile_line chain[2] = { 0 };

	if (!p)
		return NULL;
	p->time_ns = INT64_C(1700000000) * 1000 * GOLDEN_MS;
	p->duration_ns = 2500 * GOLDEN_MS;
	app.filename = profile__string(p, "/usr/bin/app");
	app.build_id = profile__string(p, "0123456789abcdef");
	kernel.filename = profile__string(p, "[kernel.kallsyms]");
	m = profile__add_mapping(p, &app);
	app.owner = 1;
	other = profile__add_mapping(p, &app);
	k = profile__add_mapping(p, &kernel);

	start = golden_location(p, m, 0x555555554100, "_start", "_start", "", 0);
	fib = golden_location(p, m, 0x555555554200, "ns::fib(int)", "_ZN2ns3fibEi", "/src/fib.cc",
			      12);
	work = golden_location(p, m, 0x555555554300, "work", "work", "/src/work.c", 34);
	helper.name = helper.system_name = profile__string(p, "helper");
	helper.filename = profile__string(p, "/src/work.h");
	helper.start_line = 5;
	chain[0].function = profile__add_function(p, &helper);
	chain[0].line = 7;
	chain[1] = p->lines[p->locations[work].line];
	profile__set_lines(p, work, chain, 2);
	nameless = golden_location(p, m, 0x555555554400, "app+0x1400", "", "", 0);
	bare = profile__add_location(p, PROFILE_NONE, 0xdead);
	sys = golden_location(p, k, 0xffffffff81234567, "do_syscall_64", "do_syscall_64", "", 0);
	marker = profile__add_marker(p, "[unwind: no table]");
	odd = golden_location(p, other, 0x555555554500, "evil;\x1b[2J\xff", "evil;\x1b[2J\xff", "",
			      0);

	golden_sample(p, (uint32_t[]){ fib, fib, fib, start }, 4, "app", 42, 100);
	golden_sample(p, (uint32_t[]){ work, start }, 2, "app", 42, 50);
	golden_sample(p, (uint32_t[]){ sys, work, start }, 3, "app", 42, 20);
	golden_sample(p, (uint32_t[]){ nameless, marker }, 2, "app", 42, 3);
	golden_sample(p, (uint32_t[]){ odd, bare }, 2, "bad;comm\n", 43, 2);
	golden_sample(p, (uint32_t[]){ fib, fib, fib, start }, 4, "app", 44, 5);
	profile__add_comment(p, "recorded 180 of 180 samples");
	profile__add_comment(p, "#bpfprof test");
	if (profile__finish(p)) {
		profile__free(p);
		return NULL;
	}
	return p;
}

static inline void golden_heap_sample(struct profile *p, const uint32_t *locs, size_t cnt,
				      int64_t size, int64_t objects, int64_t held)
{
	struct profile_label label = { .num = size };
	int64_t values[] = { objects, objects * size, held, held * size };

	label.key = label.num_unit = profile__string(p, "bytes");
	profile__add_sample(p, locs, cnt, &label, 1, values);
}

/* With the first so many of its values, finished; NULL if there is no memory. */
static inline struct profile *golden_heap_values(size_t value_cnt)
{
	static const struct profile_value_type types[] = { { "alloc_objects", "count" },
							   { "alloc_space", "bytes" },
							   { "inuse_objects", "count" },
							   { "inuse_space", "bytes" } };
	struct profile *p = profile__new(types, value_cnt,
					 (struct profile_value_type){ "space", "bytes" }, 524288);
	struct profile_mapping app = { .start = 0x555555554000, .limit = 0x555555556000 };
	uint32_t m, start, cache, parse, odd;

	if (!p)
		return NULL;
	p->folded_value = value_cnt - 1;
	p->time_ns = INT64_C(1700000000) * 1000 * GOLDEN_MS;
	p->duration_ns = 2500 * GOLDEN_MS;
	app.filename = profile__string(p, "/usr/bin/app");
	app.build_id = profile__string(p, "0123456789abcdef");
	m = profile__add_mapping(p, &app);
	start = golden_location(p, m, 0x555555554100, "main", "main", "/src/main.c", 21);
	cache = golden_location(p, m, 0x555555554200, "cache_put", "cache_put", "/src/cache.c", 12);
	parse = golden_location(p, m, 0x555555554300, "parse", "parse", "/src/parse.c", 34);
	odd = golden_location(p, m, 0x555555554400, "empty", "empty", "/src/parse.c", 56);

	golden_heap_sample(p, (uint32_t[]){ cache, start }, 2, 4096, 2570, 1285);
	golden_heap_sample(p, (uint32_t[]){ cache, start }, 2, 262144, 5, 3);
	golden_heap_sample(p, (uint32_t[]){ parse, start }, 2, 64, 81920, 0);
	golden_heap_sample(p, (uint32_t[]){ cache, parse, start }, 3, 1048576, 1, 1);
	golden_heap_sample(p, (uint32_t[]){ odd, start }, 2, 0, 524288, 524288);
	profile__add_comment(p, "8 probes (session), 100 hits");
	p->drop_frames = profile__string(p, "malloc|operator new(\\[\\])?");
	p->keep_frames = profile__string(p, "operator new\\[\\]");
	if (profile__finish(p)) {
		profile__free(p);
		return NULL;
	}
	return p;
}

static inline struct profile *golden_heap_profile(void)
{
	return golden_heap_values(4);
}

/* A record of the profile of a kind: a wait of `amount` ns in all, `units` times, at one of the
 * stacks below. */
struct golden_record {
	enum bpfprof_kind kind;
	int stack;
	uint32_t tid, wait;
	uint64_t units, amount;
};

#define GOLDEN_WAIT(syscall, state, wake) \
	BPFPROF_WAIT_PACK(syscall, BPFPROF_STATE_##state, BPFPROF_WAKE_##wake)

static const struct golden_record golden_records[] = {
	/* system calls: 0 read, 35 nanosleep, 74 fsync, 202 futex, 232 epoll_wait */
	{ BPFPROF_BLOCK, 0, 7, GOLDEN_WAIT(202, sleeping, PEER), 340, 1200 * GOLDEN_MS },
	{ BPFPROF_BLOCK, 1, 8, GOLDEN_WAIT(202, sleeping, TIMEOUT), 3, 30 * GOLDEN_MS },
	{ BPFPROF_BLOCK, 1, 8, GOLDEN_WAIT(202, sleeping, SIGNAL), 1, 2 * GOLDEN_MS },
	{ BPFPROF_BLOCK, 1, 8, GOLDEN_WAIT(202, sleeping, NOT_YET), 1, 2500 * GOLDEN_MS },
	{ BPFPROF_MUTEX, 0, 7, GOLDEN_WAIT(202, sleeping, PEER), 340, 1200 * GOLDEN_MS },
	{ BPFPROF_MUTEX, 1, 8, GOLDEN_WAIT(202, sleeping, REQUEUE), 2, 5 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 0, 7, GOLDEN_WAIT(202, sleeping, PEER), 340, 1200 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 0, 7, GOLDEN_WAIT(202, runnable, PEER), 340, 4 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 1, 8, GOLDEN_WAIT(35, sleeping, PEER), 10, 1000 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 1, 8, GOLDEN_WAIT(232, sleeping, PEER), 5, 500 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 1, 8, GOLDEN_WAIT(0, sleeping, PEER), 4, 40 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 1, 8, GOLDEN_WAIT(74, io, PEER), 2, 20 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 1, 8, GOLDEN_WAIT(BPFPROF_NO_SYSCALL, io, PEER), 1, 3 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 1, 8, GOLDEN_WAIT(BPFPROF_NO_SYSCALL, stopped, PEER), 1,
	  100 * GOLDEN_MS },
	{ BPFPROF_OFFCPU, 1, 8, GOLDEN_WAIT(BPFPROF_NO_SYSCALL, runnable, PEER), 9, GOLDEN_MS / 2 },
	{ BPFPROF_THREADCREATE, 0, 7, 0, 900, 0 },
	{ BPFPROF_THREADCREATE, 1, 7, 0, 100, 0 },
	{ BPFPROF_THREADS, 0, 7, GOLDEN_WAIT(202, sleeping, PEER), 1, 12000 * GOLDEN_MS },
	{ BPFPROF_THREADS, 0, 9, GOLDEN_WAIT(202, sleeping, PEER), 1, 90 * GOLDEN_MS },
	{ BPFPROF_THREADS, 1, 8, GOLDEN_WAIT(BPFPROF_NO_SYSCALL, running, PEER), 1, 0 },
};

/* Finished; NULL if there is no memory. */
static inline struct profile *golden_kind_profile(enum bpfprof_kind kind)
{
	const struct kind *k = &kinds[kind];
	struct profile *p = profile__new(k->value_types, k->value_cnt, k->period_type, 1);
	struct profile_mapping app = { .start = 0x555555554000, .limit = 0x555555556000 };
	uint32_t m, stacks[2][2];

	if (!p)
		return NULL;
	p->folded_value = k->folded_value;
	p->time_ns = INT64_C(1700000000) * 1000 * GOLDEN_MS;
	p->duration_ns = 2500 * GOLDEN_MS;
	app.filename = profile__string(p, "/usr/bin/app");
	m = profile__add_mapping(p, &app);
	stacks[0][1] = stacks[1][1] =
		golden_location(p, m, 0x555555554100, "worker", "worker", "/src/main.c", 21);
	stacks[0][0] = golden_location(p, m, 0x555555554200, "take", "take", "/src/queue.c", 12);
	stacks[1][0] = golden_location(p, m, 0x555555554300, "idle", "idle", "/src/idle.c", 34);
	for (size_t i = 0; i < sizeof(golden_records) / sizeof(*golden_records); i++) {
		const struct golden_record *g = &golden_records[i];
		struct bpfprof_rec rec = { .kind = kind,
					   .user_cnt = 2,
					   .tid = g->tid,
					   .wait = g->wait,
					   .amount = g->amount };
		struct kind_sums sums = { .total = g->units, .amount = g->amount };
		struct profile_label labels[KIND_MAX_LABELS + 1];
		struct kind_label own[KIND_MAX_LABELS];
		int64_t values[KIND_MAX_VALUES];
		size_t cnt;

		if (g->kind != kind)
			continue;
		cnt = k->labels ? k->labels(&rec, own) : 0;
		for (size_t j = 0; j < cnt; j++)
			labels[j] = (struct profile_label){
				.key = profile__string(p, own[j].key),
				.str = own[j].str ? profile__string(p, own[j].str) : 0,
				.num = own[j].num,
				.num_unit = own[j].str ? 0 : profile__string(p, own[j].unit),
			};
		labels[cnt++] = (struct profile_label){
			.key = profile__string(p, "thread"),
			.str = profile__string(p, g->tid == 8 ? "idler" : "worker")
		};
		k->values(&sums, 1, values);
		profile__add_sample(p, stacks[g->stack], 2, labels, cnt, values);
	}
	if (profile__finish(p)) {
		profile__free(p);
		return NULL;
	}
	return p;
}

/* Some KB in a file, and 200 million frames: a location of many lines, in samples that their labels tell apart. NULL:
 * there is no memory. */
static inline struct profile *golden_many_frames(const struct profile_value_type *types, size_t cnt)
{
	enum {
		LINES = 200000,
		SAMPLES = 1000
	};
	struct profile *p = profile__new(types, cnt, types[0], 1);
	struct profile_line *lines = calloc(LINES, sizeof(*lines));
	struct profile_function f = { .name = p ? profile__string(p, "f") : 0 };
	uint32_t loc = p ? profile__add_location(p, PROFILE_NONE, 1) : PROFILE_NONE;
	int64_t v[PROFILE_MAX_VALUES] = { 1, 1 };

	if (!p || !lines)
		return NULL;
	lines[0].function = profile__add_function(p, &f);
	for (size_t i = 0; i < LINES; i++)
		lines[i] =
			(struct profile_line){ .function = lines[0].function, .line = (int64_t)i };
	if (profile__set_lines(p, loc, lines, LINES))
		return NULL;
	free(lines);
	for (int64_t i = 0; i < SAMPLES; i++) {
		struct profile_label l = { .key = profile__string(p, "n"), .num = i + 1 };

		(void)profile__add_sample(p, &loc, 1, &l, 1, v);
	}
	return p;
}

#endif
