// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples of a recording without a kernel: records made up, what they stand for by the formula of
 * Go's runtime, as Go itself computed it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "capture/count_keys.h"
#include "capture/stack_store.h"
#include "capture/window.h"
#include "capture/windows.h"
#include "capture/code.h"
#include "kinds.h"
#include "profile/profile.h"
#include "capture/symbolize.h"
#include "target/objects.h"
#include "target/procs.h"
#include "target/services.h"

#define RATE 524288
#define CPU_PERIOD 10101010

static struct objects *objects;
static struct procs *procs;
static struct code *code;
static struct windows *windows;
static struct window *window;
static struct profile *profiles[BPFPROF_NR_KINDS];
static struct symbolize_source *sources[BPFPROF_NR_KINDS];
static struct windows_opts opts;

static uint64_t table_bytes;

uint64_t __wrap_tables__bytes(const struct tables *t);

uint64_t __wrap_tables__bytes(const struct tables *t)
{
	assert_null(t);
	return table_bytes;
}

static void start_with(const struct stack_store_opts *stacks, int64_t rate)
{
	objects = objects__new();
	procs = procs__new("/proc");
	assert_true(objects && procs);
	code = code__new(procs, objects, NULL);
	assert_non_null(code);
	opts.stacks = *stacks;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		opts.periods[i] = i == BPFPROF_CPU ? CPU_PERIOD : i == BPFPROF_HEAP ? rate : 1;
	windows = windows__new(&opts, procs, code);
	assert_non_null(windows);
	window = windows__open(windows);
	assert_non_null(window);
}

static int setup(void **state)
{
	(void)state;
	start_with(&(struct stack_store_opts){ .label_thread = true }, RATE);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	windows__free(windows);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		profile__free(profiles[i]);
		profiles[i] = NULL;
		free(sources[i]);
		sources[i] = NULL;
	}
	code__free(code);
	procs__free(procs);
	objects__free(objects);
	return 0;
}

/* ---- records ---- */

#define TGID 4242

static struct bpfprof_rec heap_rec(uint64_t hash, uint64_t size)
{
	return (struct bpfprof_rec){ .type = BPFPROF_REC_SAMPLE,
				     .kind = BPFPROF_HEAP,
				     .user_cnt = 1,
				     .hash = hash,
				     .size = size,
				     .proc.tgid = TGID,
				     .comm = "worker" };
}

static struct bpfprof_count_key key_of(const struct bpfprof_rec *rec)
{
	bool sample = rec->type == BPFPROF_REC_SAMPLE;

	return (struct bpfprof_count_key){ .hash = rec->hash,
					   .tgid = rec->proc.tgid,
					   .kernel_cnt = sample ? rec->kernel_cnt : 0,
					   .user_cnt = sample ? rec->user_cnt : 0 };
}

/* One sample with a stack of one frame, of a process that is not known. */
static void add(const struct bpfprof_rec *rec, uint64_t pc)
{
	windows__add(windows, rec->side, PROCS_NONE, rec, NULL, &pc, 1, BPFPROF_STACK_complete);
}

static void count(const struct bpfprof_rec *rec, uint64_t n)
{
	struct bpfprof_count_key key = key_of(rec);

	windows__count(windows, rec->side, &key, &(struct bpfprof_count){ .count = n });
}

static bool hold(const struct bpfprof_rec *rec)
{
	struct bpfprof_count_key key = key_of(rec);

	return windows__hold(windows, window, &key);
}

static void end_epoch(uint32_t side)
{
	const struct bpfprof_stats stats[BPFPROF_NR_KINDS] = { 0 };

	assert_int_equal(windows__end_epoch(windows, side, stats), 0);
}

/* The profile of a window, in place of what another one was. */
static const struct profile *profile_without(struct window *w, enum bpfprof_kind kind,
					     bool only_held, struct window_left_out *left_out)
{
	const struct window_profile_opts o = { .period = opts.periods[kind],
					       .value_cnt = kinds[kind].value_cnt,
					       .folded_value = kinds[kind].folded_value,
					       .only_held = only_held,
					       .left_out = left_out };

	profile__free(profiles[kind]);
	free(sources[kind]);
	profiles[kind] = window__profile(w, kind, &o, &sources[kind]);
	assert_non_null(profiles[kind]);
	assert_int_equal(profiles[kind]->folded_value, kinds[kind].folded_value);
	return profiles[kind];
}

static const struct profile *profile_of(struct window *w, enum bpfprof_kind kind, bool only_held)
{
	return profile_without(w, kind, only_held, NULL);
}

static const struct profile *finish(enum bpfprof_kind kind, bool only_held)
{
	end_epoch(0);
	window__commit(window, kind, 1);
	return profile_of(window, kind, only_held);
}

/* ---- what is in the profile ---- */

static uint64_t leaf_of(const struct profile *p, const struct profile_sample *s)
{
	return p->locations[p->loc_ids[s->loc]].address;
}

static const struct profile_label *label_of(const struct profile *p, const struct profile_sample *s,
					    const char *key)
{
	for (uint32_t i = 0; i < s->label_cnt; i++)
		if (!strcmp(strtab__get(p->strings, p->labels[s->label + i].key), key))
			return &p->labels[s->label + i];
	return NULL;
}

/* The one sample with this leaf, and, of the heap, this size. */
static const struct profile_sample *sample_of(enum bpfprof_kind kind, uint64_t pc, int64_t size)
{
	const struct profile *p = profiles[kind];
	const struct profile_sample *found = NULL;

	for (size_t i = 0; i < p->sample_cnt; i++) {
		const struct profile_sample *s = &p->samples[i];

		if (leaf_of(p, s) != pc ||
		    (kind == BPFPROF_HEAP && label_of(p, s, "bytes")->num != size))
			continue;
		assert_null(found);
		found = s;
	}
	return found;
}

static const int64_t *values_of(enum bpfprof_kind kind, const struct profile_sample *s)
{
	return profile__values(profiles[kind], s);
}

static void check_heap(uint64_t pc, int64_t size, int64_t alloc_objects, int64_t alloc_space,
		       int64_t inuse_objects, int64_t inuse_space)
{
	const int64_t want[] = { alloc_objects, alloc_space, inuse_objects, inuse_space };
	const struct profile_sample *s = sample_of(BPFPROF_HEAP, pc, size);
	const int64_t *values;

	assert_non_null(s);
	values = values_of(BPFPROF_HEAP, s);
	for (int i = 0; i < 4; i++)
		/* Go cuts off what we round */
		if (values[i] != want[i] && values[i] != want[i] + 1)
			fail_msg("size %" PRId64 ", value %d: %" PRId64 " instead of %" PRId64,
				 size, i, values[i], want[i]);
}

/* ---- the tests ---- */

/* Made by scaleHeapSample of Go 1.19's runtime/pprof/protomem.go. */
static const struct {
	int64_t rate, size, cnt, objects, space;
} scaled[] = {
	{ 1, 1, 1, 1, 1 },
	{ 1, 64, 7, 7, 448 },
	{ 1, 524288, 2, 2, 1048576 },
	{ 4096, 1, 1, 4096, 4096 },
	{ 4096, 64, 7, 451, 28896 },
	{ 4096, 48, 1000, 85834, 4120046 },
	{ 4096, 4096, 3, 4, 19439 },
	{ 4096, 524288, 2, 2, 1048576 },
	{ 4096, 16777216, 5, 5, 83886080 },
	{ 4096, 100, 123456, 5118736, 511873692 },
	{ 524288, 1, 1, 524288, 524288 },
	{ 524288, 64, 7, 57347, 3670240 },
	{ 524288, 48, 1000, 10923166, 524312000 },
	{ 524288, 4096, 3, 385, 1579015 },
	{ 524288, 524288, 2, 3, 1658822 },
	{ 524288, 16777216, 5, 5, 83886080 },
	{ 524288, 100, 123456, 647326723, 64732672324 },
};

static void values_are_gos(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(scaled); i++) {
		struct bpfprof_rec rec = heap_rec(i + 1, scaled[i].size);

		start_with(&(struct stack_store_opts){ 0 }, scaled[i].rate);
		add(&rec, 0x1000);
		if (scaled[i].cnt > 1)
			count(&rec, scaled[i].cnt - 1);
		for (int64_t n = 0; n < scaled[i].cnt; n++)
			assert_true(hold(&rec));
		finish(BPFPROF_HEAP, false);
		check_heap(0x1000, scaled[i].size, scaled[i].objects, scaled[i].space,
			   scaled[i].objects, scaled[i].space);
		teardown(state);
	}
}

/* What a program that samples by itself says a sample stands for is taken at its word. */
static void weights_are_believed(void **state)
{
	struct bpfprof_rec rec = heap_rec(1, 1000);

	(void)state;
	rec.weight = 2500000;
	add(&rec, 0x1000);
	count(&rec, 3);
	assert_true(hold(&rec));
	finish(BPFPROF_HEAP, false);
	check_heap(0x1000, 1000, 10000, 10000000, 2500, 2500000);
}

static void empty_allocations_count(void **state)
{
	struct bpfprof_rec rec = heap_rec(1, 0);

	(void)state;
	add(&rec, 0x1000);
	assert_true(hold(&rec));
	finish(BPFPROF_HEAP, false);
	/* sampled as if they had a byte, of which they have none */
	check_heap(0x1000, 0, 524288, 0, 524288, 0);
}

static void what_is_held_is_in_use(void **state)
{
	struct bpfprof_rec kept = heap_rec(1, 1 << 24), freed = heap_rec(2, 1 << 24),
			   stranger = heap_rec(3, 1 << 24);

	(void)state;
	add(&kept, 0x1000);
	count(&kept, 9);
	add(&freed, 0x2000);
	for (int i = 0; i < 4; i++)
		assert_true(hold(&kept));
	assert_false(hold(&stranger));
	stranger = kept;
	stranger.proc.tgid++;
	assert_false(hold(&stranger));
	stranger = kept;
	stranger.user_cnt++;
	assert_false(hold(&stranger));
	finish(BPFPROF_HEAP, false);
	assert_int_equal(profiles[BPFPROF_HEAP]->sample_cnt, 2);
	check_heap(0x1000, 1 << 24, 10, 10 << 24, 4, 4 << 24);
	check_heap(0x2000, 1 << 24, 1, 1 << 24, 0, 0);
}

static void hold_in(struct window *w, const struct bpfprof_rec *rec, int n)
{
	struct bpfprof_count_key key = key_of(rec);

	while (n--)
		assert_true(windows__hold(windows, w, &key));
}

static void unhold_in(struct window *w, const struct bpfprof_rec *rec, int n)
{
	struct bpfprof_count_key key = key_of(rec);

	while (n--)
		windows__unhold(windows, w, &key);
}

/* What was there before a window, and still is, is nothing of it; what has gone since is below 0. */
static void changes_of_what_is_held(void **state)
{
	struct bpfprof_rec kept = heap_rec(1, 1 << 24), freed = heap_rec(2, 1 << 24),
			   new = heap_rec(3, 1 << 24);
	struct window *change;

	(void)state;
	add(&kept, 0x1000);
	count(&kept, 3);
	add(&freed, 0x2000);
	count(&freed, 2);
	end_epoch(0);
	window__commit(window, BPFPROF_HEAP, 1);
	change = windows__open(windows);
	unhold_in(change, &kept, 4);
	unhold_in(change, &freed, 3);
	new.side = 1;
	add(&new, 0x3000);
	count(&new, 4);
	end_epoch(1);
	window__commit(change, BPFPROF_HEAP, 1);
	hold_in(change, &kept, 4);
	hold_in(change, &freed, 1);
	hold_in(change, &new, 2);
	profile_of(change, BPFPROF_HEAP, false);
	assert_int_equal(profiles[BPFPROF_HEAP]->sample_cnt, 2);
	check_heap(0x2000, 1 << 24, 0, 0, -2, -(2 << 24));
	check_heap(0x3000, 1 << 24, 5, 5 << 24, 2, 2 << 24);
	windows__close(windows, change);
}

/* What a process held when it ended is in all windows that are open, unless they hold only what came since they began. */
static void held_by_what_has_ended(void **state)
{
	struct bpfprof_rec kept = heap_rec(1, 1 << 24);
	struct bpfprof_count_key key = key_of(&kept);
	struct window *other = windows__open(windows), *new = windows__open(windows);

	(void)state;
	window__set_since(new, 1000);
	add(&kept, 0x1000);
	count(&kept, 3);
	end_epoch(0);
	windows__commit(windows, BPFPROF_HEAP, 1);
	assert_true(windows__hold_ended(windows, &key, 999));
	assert_true(windows__hold_ended(windows, &key, 1000));
	key.tgid++;
	assert_false(windows__hold_ended(windows, &key, 1000));
	profile_of(window, BPFPROF_HEAP, false);
	check_heap(0x1000, 1 << 24, 4, 4 << 24, 2, 2 << 24);
	profile_of(other, BPFPROF_HEAP, false);
	check_heap(0x1000, 1 << 24, 4, 4 << 24, 2, 2 << 24);
	profile_of(new, BPFPROF_HEAP, false);
	check_heap(0x1000, 1 << 24, 4, 4 << 24, 1, 1 << 24);
	windows__close(windows, other);
	windows__close(windows, new);
}

/* What is held is added to a window: one that goes on is asked by its copies. */
static void copies_are_windows_of_their_own(void **state)
{
	struct bpfprof_rec kept = heap_rec(1, 1 << 24);
	struct window *copy;

	(void)state;
	add(&kept, 0x1000);
	count(&kept, 3);
	end_epoch(0);
	window__commit(window, BPFPROF_HEAP, 1);
	for (int i = 2; i < 4; i++) {
		copy = windows__copy(windows, window);
		hold_in(copy, &kept, i);
		profile_of(copy, BPFPROF_HEAP, false);
		check_heap(0x1000, 1 << 24, 4, 4 << 24, i, i << 24);
		windows__close(windows, copy);
	}
	profile_of(window, BPFPROF_HEAP, false);
	check_heap(0x1000, 1 << 24, 4, 4 << 24, 0, 0);
}

/* --min-age: what holds nothing is left out, and what stays has all its values. */
static void only_held(void **state)
{
	struct bpfprof_rec rec[10];

	(void)state;
	for (int i = 0; i < 10; i++) {
		rec[i] = heap_rec(i + 1, 1 << 24);
		add(&rec[i], 0x1000 + i);
		count(&rec[i], i);
		if (i % 3 == 2)
			assert_true(hold(&rec[i]));
	}
	finish(BPFPROF_HEAP, true);
	assert_int_equal(profiles[BPFPROF_HEAP]->sample_cnt, 3);
	for (int i = 2; i < 10; i += 3)
		check_heap(0x1000 + i, 1 << 24, i + 1, (int64_t)(i + 1) << 24, 1, 1 << 24);
}

/* Slices of time: what each has seen stands for something else. */
static void commits_scale(void **state)
{
	struct bpfprof_rec rec = heap_rec(1, 1 << 24), late = heap_rec(2, 1 << 24);

	(void)state;
	add(&rec, 0x1000);
	count(&rec, 9);
	end_epoch(0);
	windows__commit(windows, BPFPROF_HEAP, 2.5);
	windows__commit(windows, BPFPROF_HEAP, 100); /* nothing is new */
	add(&rec, 0x1000);
	count(&rec, 3);
	add(&late, 0x2000);
	end_epoch(0);
	windows__commit(windows, BPFPROF_CPU, 1000); /* another kind's */
	windows__commit(windows, BPFPROF_HEAP, 3);
	add(&rec, 0x1000);
	count(&rec, 6); /* not committed */
	end_epoch(0);
	window__revise(window, BPFPROF_HEAP, 2);
	window__revise(window, BPFPROF_CPU, 1000);
	(void)profile_of(window, BPFPROF_HEAP, false);
	check_heap(0x1000, 1 << 24, 2 * (25 + 12), (int64_t)2 * (25 + 12) << 24, 0, 0);
	check_heap(0x2000, 1 << 24, 2 * 3, (int64_t)2 * 3 << 24, 0, 0);
}

static void sizes_are_told_apart(void **state)
{
	struct bpfprof_rec small = heap_rec(1, 64), large = heap_rec(2, 1 << 24), again;
	const struct profile_label *l;

	(void)state;
	add(&small, 0x1000);
	add(&large, 0x1000);
	/* the same size and stack under another key, of another thread of that name: one sample */
	again = large;
	again.hash = 3;
	add(&again, 0x1000);
	count(&again, 2);
	count(&large, 1);
	/* of a thread with another name: another one */
	again.hash = 4;
	strcpy(again.comm, "other");
	add(&again, 0x2000);
	finish(BPFPROF_HEAP, false);
	assert_int_equal(profiles[BPFPROF_HEAP]->sample_cnt, 3);
	check_heap(0x1000, 64, 8192, 524320, 0, 0);
	check_heap(0x1000, 1 << 24, 5, 5 << 24, 0, 0);
	l = label_of(profiles[BPFPROF_HEAP], sample_of(BPFPROF_HEAP, 0x1000, 64), "bytes");
	assert_string_equal(strtab__get(profiles[BPFPROF_HEAP]->strings, l->num_unit), "bytes");
	l = label_of(profiles[BPFPROF_HEAP], sample_of(BPFPROF_HEAP, 0x2000, 1 << 24), "thread");
	assert_string_equal(strtab__get(profiles[BPFPROF_HEAP]->strings, l->str), "other");
}

/* Stacks that were walked here are known by a number of their own, if anything is to be joined. */
static void raw_records_are_joined(void **state)
{
	struct bpfprof_rec raw = heap_rec(77, 1 << 24), lone = heap_rec(0, 1 << 24);

	(void)state;
	raw.type = lone.type = BPFPROF_REC_RAW;
	raw.user_cnt = lone.user_cnt = 0;
	raw.kernel_cnt = 2; /* which the key does not have */
	windows__add(windows, 0, PROCS_NONE, &raw, (uint64_t[]){ ~0xfffUL, ~0xeffUL },
		     (uint64_t[]){ 0x1000, 0x2000 }, 2, BPFPROF_STACK_complete);
	add(&lone, 0x3000);
	assert_true(hold(&raw));
	assert_false(hold(&lone));
	assert_int_equal(windows__keys(windows, 0), 1);
	finish(BPFPROF_HEAP, false);
	check_heap(~0xfffUL, 1 << 24, 1, 1 << 24, 1, 1 << 24);
	check_heap(0x3000, 1 << 24, 1, 1 << 24, 0, 0);
}

static void cpu_counts_periods(void **state)
{
	const uint64_t kernel[] = { 0xffffffff81000010, 0xffffffff81000021 }, user = 0x1000;
	struct bpfprof_rec rec = { .type = BPFPROF_REC_SAMPLE,
				   .kind = BPFPROF_CPU,
				   .kernel_cnt = 2,
				   .user_cnt = 1,
				   .hash = 5,
				   .size = 99, /* of no meaning here */
				   .proc.tgid = TGID };
	const struct profile *p;
	const struct profile_sample *s;
	const struct window_account *a;

	(void)state;
	windows__add(windows, 0, PROCS_NONE, &rec, kernel, &user, 1, BPFPROF_STACK_no_table);
	count(&rec, 41);
	/* two of the same stack, each of which was taken for four */
	rec.hash = 6;
	rec.weight = 4;
	windows__add(windows, 0, PROCS_NONE, &rec, kernel, &user, 1, BPFPROF_STACK_no_table);
	count(&rec, 1);
	p = finish(BPFPROF_CPU, false);
	assert_int_equal(p->sample_cnt, 1);
	s = sample_of(BPFPROF_CPU, kernel[0], 0);
	assert_non_null(s);
	assert_int_equal(values_of(BPFPROF_CPU, s)[0], 50);
	assert_int_equal(values_of(BPFPROF_CPU, s)[1], 50LL * CPU_PERIOD);
	/* no thread name, no label; kernel return addresses name the call; a marker at the end */
	assert_int_equal(s->label_cnt, 0);
	assert_int_equal(s->loc_cnt, 4);
	assert_true(p->locations[p->loc_ids[s->loc + 1]].address == kernel[1] - 1);
	assert_int_equal(p->locations[p->loc_ids[s->loc + 2]].address, user);
	assert_string_equal(
		strtab__get(
			p->strings,
			p->functions[p->lines[p->locations[p->loc_ids[s->loc + 3]].line].function]
				.name),
		"[unwind: no unwind table and no frame pointer]");
	a = window__account(window, BPFPROF_CPU);
	assert_int_equal(a->total, 44);
	assert_int_equal(a->results[BPFPROF_STACK_no_table], 44);
	assert_int_equal(a->results[BPFPROF_STACK_complete], 0);
	assert_int_equal(a->no_memory, 0);
	a = window__account(window, BPFPROF_HEAP);
	assert_int_equal(a->total, 0);
}

/* ---- waits and threads ---- */

static struct bpfprof_rec wait_rec(enum bpfprof_kind kind, uint64_t hash, uint32_t wait,
				   double waits, uint64_t ns)
{
	return (struct bpfprof_rec){ .type = BPFPROF_REC_SAMPLE,
				     .kind = kind,
				     .user_cnt = 1,
				     .hash = hash,
				     .wait = wait,
				     .units = waits * BPFPROF_UNIT,
				     .amount = ns,
				     .proc.tgid = TGID,
				     .tid = TGID + 1,
				     .comm = "worker" };
}

static void count_waits(const struct bpfprof_rec *rec, uint64_t samples, double waits, uint64_t ns)
{
	struct bpfprof_count_key key = key_of(rec);
	struct bpfprof_count count = { .count = samples,
				       .units = waits * BPFPROF_UNIT,
				       .amount = ns };

	windows__count(windows, rec->side, &key, &count);
}

/* The text of a label; "" if there is none. */
static const char *text_of(const struct profile *p, const struct profile_sample *s, const char *key)
{
	const struct profile_label *l = label_of(p, s, key);

	return l ? strtab__get(p->strings, l->str) : "";
}

static void waits_are_added_up(void **state)
{
	static const enum bpfprof_kind of[] = { BPFPROF_BLOCK, BPFPROF_MUTEX, BPFPROF_OFFCPU };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		struct bpfprof_rec rec = wait_rec(of[i], i + 1, 0, 1, 1234567);
		const struct profile_sample *s;
		const struct window_account *a;

		add(&rec, 0x1000);
		count_waits(&rec, 2, 2, 1000);
		/* more than 32 bits of ns, to the ns */
		count_waits(&rec, 1, 1, 123456789012345);
		finish(of[i], false);
		s = sample_of(of[i], 0x1000, 0);
		assert_non_null(s);
		assert_int_equal(values_of(of[i], s)[0], 4);
		assert_int_equal(values_of(of[i], s)[1], 123456789012345 + 1000 + 1234567);
		a = window__account(window, of[i]);
		assert_int_equal(a->total, 4);
	}
}

/* --wait-rate: a sample stands for some waits and a fraction; the sum is rounded, not each. */
static void drawn_waits_are_rounded_once(void **state)
{
	struct bpfprof_rec rec = wait_rec(BPFPROF_BLOCK, 1, 0, 2.5, 100000);
	const struct profile_sample *s;
	const struct window_account *a;

	(void)state;
	add(&rec, 0x1000);
	for (int i = 0; i < 9; i++)
		count_waits(&rec, 1, 2.5, 100000);
	/* the same stack under another key */
	rec.hash = 2;
	rec.units = BPFPROF_UNIT / 4;
	add(&rec, 0x1000);
	finish(BPFPROF_BLOCK, false);
	assert_int_equal(profiles[BPFPROF_BLOCK]->sample_cnt, 1);
	s = sample_of(BPFPROF_BLOCK, 0x1000, 0);
	assert_int_equal(values_of(BPFPROF_BLOCK, s)[0], 25); /* of 25.25 */
	assert_int_equal(values_of(BPFPROF_BLOCK, s)[1], 1100000);
	a = window__account(window, BPFPROF_BLOCK);
	assert_int_equal(a->total, 11);
}

/* How a wait ended tells samples apart, but for a wake by a peer, which is what is expected. */
static void wakes_are_labels(void **state)
{
	const struct profile *p;
	const struct profile_sample *s;

	(void)state;
	for (int wake = 0; wake < BPFPROF_NR_WAKES; wake++) {
		struct bpfprof_rec rec =
			wait_rec(BPFPROF_BLOCK, wake + 1,
				 BPFPROF_WAIT_PACK(202, BPFPROF_STATE_sleeping, wake), 1, 5);

		add(&rec, 0x1000 + wake);
	}
	p = finish(BPFPROF_BLOCK, false);
	assert_int_equal(p->sample_cnt, BPFPROF_NR_WAKES);
	assert_null(label_of(p, sample_of(BPFPROF_BLOCK, 0x1000, 0), "woken"));
	s = sample_of(BPFPROF_BLOCK, 0x1000 + BPFPROF_WAKE_TIMEOUT, 0);
	assert_string_equal(text_of(p, s, "woken"), "time-out");
	assert_string_equal(text_of(p, s, "thread"), "worker");
	assert_null(label_of(p, s, "reason"));
	assert_null(label_of(p, s, "syscall"));
}

static void reasons_are_labels(void **state)
{
	const struct profile *p;
	struct bpfprof_rec rec = wait_rec(BPFPROF_OFFCPU, 1,
					  BPFPROF_WAIT_PACK(202, BPFPROF_STATE_sleeping, 0), 1, 5);
	const struct profile_sample *s;

	(void)state;
	add(&rec, 0x1000);
	rec.hash = 2;
	rec.wait = BPFPROF_WAIT_PACK(BPFPROF_NO_SYSCALL, BPFPROF_STATE_runnable, 0);
	add(&rec, 0x2000);
	/* a kernel thread */
	rec.hash = 3;
	rec.kernel_cnt = 1;
	rec.user_cnt = 0;
	rec.wait = BPFPROF_WAIT_PACK(BPFPROF_OF_KERNEL, BPFPROF_STATE_disk_sleep, 0);
	windows__add(windows, 0, PROCS_NONE, &rec, (uint64_t[]){ ~0xfffUL }, NULL, 0,
		     BPFPROF_STACK_complete);
	p = finish(BPFPROF_OFFCPU, false);
	s = sample_of(BPFPROF_OFFCPU, 0x1000, 0);
	assert_string_equal(text_of(p, s, "reason"), "futex");
	assert_string_equal(text_of(p, s, "syscall"), "futex");
	assert_null(label_of(p, s, "woken"));
	s = sample_of(BPFPROF_OFFCPU, 0x2000, 0);
	assert_string_equal(text_of(p, s, "reason"), "run queue");
	assert_null(label_of(p, s, "syscall"));
	s = sample_of(BPFPROF_OFFCPU, ~0xfffUL, 0);
	assert_string_equal(text_of(p, s, "reason"), "kernel");
}

/* Each is one sample, whatever it shares with others; for how long it waits is a label. */
static void threads_are_told_apart(void **state)
{
	const struct profile *p;
	struct bpfprof_rec rec =
		wait_rec(BPFPROF_THREADS, 0, BPFPROF_WAIT_PACK(202, BPFPROF_STATE_sleeping, 0), 0,
			 77000000000);

	(void)state;
	for (uint32_t tid = 100; tid < 200; tid++) {
		rec.tid = tid;
		add(&rec, 0x1000);
	}
	p = finish(BPFPROF_THREADS, false);
	assert_int_equal(p->sample_cnt, 100);
	for (size_t i = 0; i < 100; i++) {
		const struct profile_sample *s = &p->samples[i];
		const struct profile_label *since = label_of(p, s, "since");

		assert_int_equal(values_of(BPFPROF_THREADS, s)[0], 1);
		assert_in_range(label_of(p, s, "tid")->num, 100, 199);
		assert_string_equal(strtab__get(p->strings, label_of(p, s, "tid")->num_unit),
				    "tid");
		assert_string_equal(text_of(p, s, "thread"), "worker");
		assert_string_equal(text_of(p, s, "state"), "sleeping");
		assert_string_equal(text_of(p, s, "in"), "futex");
		assert_int_equal(since->num, 77000000000);
		assert_string_equal(strtab__get(p->strings, since->num_unit), "nanoseconds");
	}
}

static void creations_are_counted(void **state)
{
	struct bpfprof_rec rec = wait_rec(BPFPROF_THREADCREATE, 1, 0, 0, 0);

	(void)state;
	add(&rec, 0x1000);
	count(&rec, 499);
	rec.hash = 2;
	add(&rec, 0x2000);
	finish(BPFPROF_THREADCREATE, false);
	assert_int_equal(
		*values_of(BPFPROF_THREADCREATE, sample_of(BPFPROF_THREADCREATE, 0x1000, 0)), 500);
	assert_int_equal(
		*values_of(BPFPROF_THREADCREATE, sample_of(BPFPROF_THREADCREATE, 0x2000, 0)), 1);
	assert_int_equal(sample_of(BPFPROF_THREADCREATE, 0x2000, 0)->label_cnt, 1);
}

/* More stacks than any table begins with; each finds its own counts again. */
static void many_are_found_again(void **state)
{
	enum {
		CNT = 20000
	};
	const struct window_account *a;
	struct bpfprof_rec rec;

	(void)state;
	for (uint64_t i = 0; i < CNT; i++) {
		rec = heap_rec(i * 0x9e3779b97f4a7c15 + 1, 1 << 24);
		add(&rec, 0x1000 + i);
	}
	for (uint64_t i = 0; i < CNT; i++) {
		rec = heap_rec(i * 0x9e3779b97f4a7c15 + 1, 1 << 24);
		count(&rec, i % 7);
		if (i % 5 == 0)
			assert_true(hold(&rec));
		rec.hash++;
		count(&rec, 1000000);
		assert_false(hold(&rec));
	}
	assert_int_equal(windows__keys(windows, 0), CNT);
	assert_int_equal(windows__stacks(windows, BPFPROF_HEAP), CNT);
	finish(BPFPROF_HEAP, false);
	assert_int_equal(profiles[BPFPROF_HEAP]->sample_cnt, CNT);
	for (size_t i = 0; i < CNT; i++) {
		const struct profile_sample *s = &profiles[BPFPROF_HEAP]->samples[i];
		uint64_t n = leaf_of(profiles[BPFPROF_HEAP], s) - 0x1000;

		assert_int_equal(values_of(BPFPROF_HEAP, s)[0], n % 7 + 1);
		assert_int_equal(values_of(BPFPROF_HEAP, s)[2], n % 5 == 0);
	}
	a = window__account(window, BPFPROF_HEAP);
	assert_int_equal(a->total, CNT + CNT / 7 * 21); /* the last i is a multiple of 7 */
	assert_int_equal(a->results[BPFPROF_STACK_complete], a->total);
}

/* Addresses of a real process: this one. */
static void addresses_lie_in_mappings(void **state)
{
	uint64_t pc = (uintptr_t)addresses_lie_in_mappings + 1, libc = (uintptr_t)malloc + 1;
	struct bpfprof_rec rec = heap_rec(1, 64);
	const struct symbolize_source *source;
	const struct profile_mapping *m;
	const struct profile_sample *s;
	const struct profile_label *l;
	const struct profile *p;
	char exe[PATH_MAX];
	uint32_t proc;

	teardown(state);
	start_with(&(struct stack_store_opts){ .label_process = true }, RATE);
	rec.proc.tgid = getpid();
	proc = procs__add(procs, rec.proc.tgid, 0, 0, "tester", false, 0);
	assert_int_not_equal(proc, PROCS_NONE);
	assert_int_equal(procs__read_maps(procs, proc, 0), 0);
	rec.time_ns = util_monotonic_ns();
	windows__add(windows, 0, proc, &rec, NULL, (uint64_t[]){ libc, pc }, 2,
		     BPFPROF_STACK_complete);
	p = finish(BPFPROF_HEAP, false);
	s = sample_of(BPFPROF_HEAP, libc, 64);
	assert_non_null(s);
	m = &p->mappings[p->locations[p->loc_ids[s->loc + 1]].mapping];
	assert_in_range(pc, m->start, m->limit - 1);
	assert_non_null(strstr(strtab__get(p->strings, m->filename), "test_windows"));
	source = &sources[BPFPROF_HEAP][m - p->mappings];
	assert_int_equal(source->what, SYMBOLIZE_OBJECT);
	assert_string_equal(objects__info(objects, source->object)->build_id,
			    strtab__get(p->strings, m->build_id));
	/* the libraries' mapping is another */
	assert_int_not_equal(p->locations[p->loc_ids[s->loc]].mapping, m - p->mappings);
	l = label_of(p, s, "pid");
	assert_non_null(l);
	assert_int_equal(l->num, getpid());
	l = label_of(p, s, "comm");
	assert_non_null(l);
	assert_string_equal(strtab__get(p->strings, l->str), "tester");
	assert_null(label_of(p, s, "thread"));
	assert_true(realpath("/proc/self/exe", exe));
	l = label_of(p, s, "exe");
	assert_non_null(l);
	assert_string_equal(strtab__get(p->strings, l->str), exe);
}

static bool let_go(void *ctx, uint32_t file)
{
	return ctx && file != PROC_FILE_NONE;
}

/* Libraries may lie below the program, and so may what it has generated. Its path stays while a sample has
 * it; a process whose code is not known has none. */
static void samples_have_their_program(void **state)
{
	static const struct proc_file files[] = {
		{ .kind = PROC_FILE_ANON, .path = (char *)"" },
		{ .kind = PROC_FILE_REGULAR, .path = (char *)"/lib/libm.so.6", .ino = 1 },
		{ .kind = PROC_FILE_REGULAR, .path = (char *)"/memfd:jit", .ino = 2 },
		{ .kind = PROC_FILE_REGULAR, .path = (char *)"/opt/x.so (deleted)", .ino = 3 },
		{ .kind = PROC_FILE_REGULAR,
		  .path = (char *)"/opt/lib/server/classes.jsa",
		  .ino = 6 },
		{ .kind = PROC_FILE_REGULAR, .path = (char *)"/opt/x.so.d/run.sock", .ino = 4 },
		{ .kind = PROC_FILE_REGULAR, .path = (char *)"/opt/later", .ino = 5 },
	};
	struct bpfprof_rec known = heap_rec(1, 0), unknown = heap_rec(2, 0);
	const struct profile_label *l;
	const struct profile *p;
	uint32_t proc;

	known.kind = unknown.kind = BPFPROF_CPU;
	teardown(state);
	start_with(&(struct stack_store_opts){ .label_process = true }, RATE);
	assert_int_equal(procs__on_exec(procs, TGID, 1, "run"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_int_equal(
			procs__on_mmap(procs, TGID, 2, 0x1000 * (i + 1), 0x1000, 0, &files[i]), 0);
	proc = procs__find_live(procs, TGID);
	windows__add(windows, 0, proc, &known, NULL, (uint64_t[]){ 0x100000 }, 1,
		     BPFPROF_STACK_complete);
	proc = procs__add(procs, TGID + 1, 0, 0, "x", false, 0);
	windows__add(windows, 0, proc, &unknown, NULL, (uint64_t[]){ 0x200000 }, 1,
		     BPFPROF_STACK_complete);
	procs__remove(procs, procs__find_live(procs, TGID));
	assert_int_equal(procs__release_files(procs, let_go, procs), 0);
	p = finish(BPFPROF_CPU, false);
	l = label_of(p, sample_of(BPFPROF_CPU, 0x100000, 0), "exe");
	assert_non_null(l);
	assert_string_equal(strtab__get(p->strings, l->str), "/opt/x.so.d/run.sock");
	assert_null(label_of(p, sample_of(BPFPROF_CPU, 0x200000, 0), "exe"));
	/* it goes with the sample; the first mapping of the profile stays */
	window__clear(window);
	assert_int_equal(procs__release_files(procs, let_go, procs), 0);
	assert_int_equal(procs__file_cnt(procs), 1);
}

static bool is_named(void *ctx, int64_t pid, const char *comm)
{
	return pid == getpid() && !strcmp(comm, ctx);
}

/* Nothing of such a process is in the profile that would have to be named: neither code nor labels. */
static void processes_are_left_out(void **state)
{
	struct bpfprof_rec own = { .type = BPFPROF_REC_SAMPLE,
				   .kind = BPFPROF_CPU,
				   .user_cnt = 1,
				   .hash = 1,
				   .proc.tgid = getpid() };
	struct bpfprof_rec other = own;
	struct window_left_out left_out = { .is = is_named, .ctx = "tester" };
	const struct profile *p;

	(void)state;
	teardown(NULL);
	start_with(&(struct stack_store_opts){ .label_process = true }, RATE);
	other.hash = 2;
	other.proc.tgid = 1;
	windows__add(windows, 0, procs__add(procs, getpid(), 0, 0, "tester", false, 0), &own, NULL,
		     (uint64_t[]){ 0x1000 }, 1, BPFPROF_STACK_complete);
	windows__add(windows, 0, procs__add(procs, 1, 0, 0, "init", false, 0), &other, NULL,
		     (uint64_t[]){ 0x2000 }, 1, BPFPROF_STACK_complete);
	count(&own, 6);
	count(&other, 3);
	assert_int_equal(finish(BPFPROF_CPU, false)->sample_cnt, 2);
	p = profile_without(window, BPFPROF_CPU, false, &left_out);
	assert_int_equal(left_out.cnt, 7);
	assert_int_equal(p->sample_cnt, 1);
	assert_int_equal(p->location_cnt, 1);
	assert_int_equal(*values_of(BPFPROF_CPU, sample_of(BPFPROF_CPU, 0x2000, 0)), 4);
	for (uint32_t i = 0; i < strtab__cnt(p->strings); i++)
		assert_string_not_equal(strtab__get(p->strings, i), "tester");
}

/* Of a process that has gone before it was known its main thread tells the name, and no other one. */
static void the_unknown_have_the_name_of_their_main_thread(void **state)
{
	struct bpfprof_rec first = heap_rec(1, 64), other = heap_rec(2, 128);
	const struct profile_label *l;
	const struct profile *p;

	teardown(state);
	start_with(&(struct stack_store_opts){ .label_process = true }, RATE);
	first.tid = first.proc.tgid;
	other.tid = other.proc.tgid + 1;
	add(&first, 0x1000);
	add(&other, 0x2000);
	p = finish(BPFPROF_HEAP, false);
	l = label_of(p, sample_of(BPFPROF_HEAP, 0x1000, 64), "comm");
	assert_non_null(l);
	assert_string_equal(strtab__get(p->strings, l->str), "worker");
	assert_null(label_of(p, sample_of(BPFPROF_HEAP, 0x2000, 128), "comm"));
}

/* The process has changed its name since its main thread was sampled. Other threads have names of their
 * own, and records have none where threads are not told apart. */
static void main_threads_have_the_name_of_then(void **state)
{
	static const char *const expected[] = { "then", "now", "now" };
	uint32_t proc;

	teardown(state);
	start_with(&(struct stack_store_opts){ .label_process = true }, RATE);
	proc = procs__add(procs, TGID, 0, 0, "then", false, 0);
	assert_int_not_equal(proc, PROCS_NONE);
	procs__on_comm(procs, TGID, TGID, "now");
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct bpfprof_rec rec = heap_rec(i + 1, 64);
		const struct profile_label *l;
		const struct profile *p;

		rec.tid = rec.proc.tgid + (i == 1);
		strcpy(rec.comm, (const char *[]){ "then", "worker", "" }[i]);
		windows__add(windows, 0, proc, &rec, NULL, &(uint64_t){ 0x1000 * (i + 1) }, 1,
			     BPFPROF_STACK_complete);
		p = finish(BPFPROF_HEAP, false);
		l = label_of(p, sample_of(BPFPROF_HEAP, 0x1000 * (i + 1), 64), "comm");
		assert_non_null(l);
		assert_string_equal(strtab__get(p->strings, l->str), expected[i]);
	}
}

/* A program that this is the environment of, once it is. */
static pid_t start_with_environ(char *const env[])
{
	bool there = false;
	pid_t pid = fork();
	char path[64];

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execle("/bin/sleep", "sleep", "300", NULL, env);
		_exit(127);
	}
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	for (int i = 0; !there && i < 6000; i++) {
		char *text;
		size_t sz;

		assert_int_equal(util_read_file(path, 1 << 20, &text, &sz), 0);
		there = !strcmp(text, env[0]);
		free(text);
		if (!there)
			usleep(10000);
	}
	assert_true(there);
	return pid;
}

/* What a process says of its service is on its samples, and on nobody else's; also when it has ended. */
static void services_are_labels(void **state)
{
	char *const env[] = { "OTEL_SERVICE_NAME=shop",
			      "OTEL_RESOURCE_ATTRIBUTES=service.version=2", NULL };
	struct bpfprof_rec rec = { .type = BPFPROF_REC_SAMPLE, .kind = BPFPROF_CPU, .user_cnt = 1 };
	const struct profile_sample *s;
	const struct profile *p;
	const uint64_t pcs[] = { 0x1000, 0x2000, 0x3000 };
	uint32_t proc, other;
	pid_t pid;

	for (int asked = 0; asked < 2; asked++) {
		teardown(state);
		start_with(&(struct stack_store_opts){ .label_service = asked }, RATE);
		pid = start_with_environ(env);
		proc = procs__add(procs, (uint32_t)pid, 1, 0, "sleep", false, 0);
		other = procs__add(procs, (uint32_t)getpid(), 1, 0, "tester", false, 0);
		rec.proc.tgid = (uint32_t)pid;
		for (size_t i = 0; i < ARRAY_SIZE(pcs); i++) {
			rec.hash = i + 1;
			rec.time_ns = util_monotonic_ns();
			windows__add(windows, 0, i == 2 ? other : proc, &rec, NULL, &pcs[i], 1,
				     BPFPROF_STACK_complete);
			if (!i) {
				assert_int_equal(kill(pid, SIGKILL), 0);
				assert_int_equal(waitpid(pid, NULL, 0), pid);
				procs__end(procs, proc);
			}
		}
		p = finish(BPFPROF_CPU, false);
		for (size_t i = 0; i < ARRAY_SIZE(pcs); i++) {
			s = sample_of(BPFPROF_CPU, pcs[i], 0);
			assert_non_null(s);
			assert_string_equal(text_of(p, s, "service_name"),
					    asked && i < 2 ? "shop" : "");
			assert_string_equal(text_of(p, s, "service_version"),
					    asked && i < 2 ? "2" : "");
			assert_null(label_of(p, s, "service_namespace"));
		}
	}
}

/* A service is there for as long as a stack has it, and no longer: the process itself is one more. */
static void stacks_refer_to_services(void **state)
{
	const struct stack_store_opts both = { .label_process = true, .label_service = true };
	struct bpfprof_rec rec = { .type = BPFPROF_REC_SAMPLE, .kind = BPFPROF_CPU, .user_cnt = 1 };
	struct stack_store *store = stack_store__new(&both, procs, code);
	pid_t pid = start_with_environ((char *[]){ "OTEL_SERVICE_NAME=shop", NULL });
	uint32_t proc = procs__add(procs, (uint32_t)pid, 1, 0, "sleep", false, 0), stacks[4];
	const uint64_t pcs[] = { 0x1000, 0x1000, 0x2000 };
	const struct service *service;

	(void)state;
	assert_non_null(store);
	rec.proc.tgid = (uint32_t)pid;
	for (size_t i = 0; i < ARRAY_SIZE(pcs); i++)
		stacks[i] = stack_store__add(store, proc, &rec, NULL, &pcs[i], 1,
					     BPFPROF_STACK_complete);
	service = stack_store__get(store, stacks[0]).labels.service;
	assert_non_null(service);
	assert_int_equal(service->refs, 3);
	/* without its process it is another one; twice */
	for (int i = 0; i < 2; i++)
		stacks[3] = stack_store__without_pid(store, stacks[0]);
	assert_ptr_equal(stack_store__get(store, stacks[3]).labels.service, service);
	assert_int_equal(service->refs, 4);
	stack_store__unref(store, stacks[3]);
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++)
		stack_store__unref(store, stacks[i]);
	assert_int_equal(service->refs, 1);
	stack_store__free(store);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Where a file lies in another process does not make its functions others. */
static void equal_code_is_one_location(void **state)
{
	uint64_t pc = (uintptr_t)equal_code_is_one_location + 1, moved;
	const uint64_t shift = 0x10000000;
	struct bpfprof_rec rec = {
		.type = BPFPROF_REC_SAMPLE, .kind = BPFPROF_CPU, .user_cnt = 1, .hash = 1
	};
	const struct profile *p;
	const struct proc_map *map;
	uint32_t proc, other;

	(void)state;
	rec.proc.tgid = getpid();
	rec.time_ns = util_monotonic_ns();
	proc = procs__add(procs, getpid(), 0, 0, "tester", false, 0);
	assert_int_equal(procs__read_maps(procs, proc, 0), 0);
	map = procs__map_at_time(procs, proc, pc, rec.time_ns);
	assert_non_null(map);
	windows__add(windows, 0, proc, &rec, NULL, &pc, 1, BPFPROF_STACK_complete);
	other = procs__add(procs, TGID, 0, 0, "other", false, 0);
	assert_int_equal(procs__on_mmap(procs, TGID, rec.time_ns, map->start + shift,
					map->end - map->start, map->offset,
					procs__file(procs, map->file)),
			 0);
	moved = pc + shift;
	rec.proc.tgid = TGID;
	rec.hash = 2;
	rec.time_ns++;
	windows__add(windows, 0, other, &rec, NULL, &moved, 1, BPFPROF_STACK_complete);
	p = finish(BPFPROF_CPU, false);
	assert_int_equal(p->location_cnt, 1);
	assert_int_equal(p->locations[0].address, pc);
	assert_int_equal(p->sample_cnt, 1);
	assert_int_equal(profile__values(p, &p->samples[0])[0], 2);
}

/* Of processes that come and go by the thousand, what is told apart has a bound; nothing of what
 * they did is lost. */
static void the_dead_are_added_up(void **state)
{
	const uint32_t cnt = 20000;
	struct bpfprof_rec rec = { .type = BPFPROF_REC_SAMPLE, .kind = BPFPROF_CPU, .user_cnt = 1 };
	struct bpfprof_rec live = rec;
	const struct profile *p;
	const struct profile_sample *mine = NULL, *theirs = NULL;

	teardown(state);
	start_with(&(struct stack_store_opts){ .label_process = true }, RATE);
	live.hash = 1;
	live.proc.tgid = getpid();
	assert_int_not_equal(procs__add(procs, getpid(), 0, 0, "tester", false, 0), PROCS_NONE);
	add(&live, 0x1000);
	for (uint32_t i = 0; i < cnt; i++) {
		rec.hash = 2 + i;
		rec.proc.tgid = 1000000 + i;
		add(&rec, 0x1000);
		count(&rec, 1);
		if (i == cnt / 2) {
			end_epoch(0);
			assert_int_equal(windows__stacks(windows, BPFPROF_CPU), 2 + i);
		}
	}
	/* in an epoch that goes on, stacks are counted where they were moved to */
	live.side = 1;
	add(&live, 0x1000);
	rec.side = 1;
	add(&rec, 0x1000);
	end_epoch(0);
	assert_int_equal(windows__stacks(windows, BPFPROF_CPU), 2);
	count(&live, 3);
	count(&rec, 1);
	end_epoch(1);
	window__commit(window, BPFPROF_CPU, 1);
	p = profile_of(window, BPFPROF_CPU, false);
	assert_int_equal(p->sample_cnt, 2);
	for (size_t i = 0; i < p->sample_cnt; i++)
		*(label_of(p, &p->samples[i], "pid") ? &mine : &theirs) = &p->samples[i];
	assert_true(mine && theirs);
	assert_int_equal(*values_of(BPFPROF_CPU, mine), 5);
	assert_int_equal(*values_of(BPFPROF_CPU, theirs), 2 * cnt + 2);
}

/* ---- windows ---- */

static struct bpfprof_rec cpu_rec(uint64_t hash, uint8_t side)
{
	return (struct bpfprof_rec){ .type = BPFPROF_REC_SAMPLE,
				     .kind = BPFPROF_CPU,
				     .side = side,
				     .user_cnt = 1,
				     .hash = hash,
				     .proc.tgid = TGID };
}

/* n samples of a stack, in the epoch of a side. */
static void sample(uint8_t side, uint64_t pc, uint64_t n)
{
	struct bpfprof_rec rec = cpu_rec(pc, side);

	add(&rec, pc);
	if (n > 1)
		count(&rec, n - 1);
}

static void check_cpu(struct window *w, uint64_t pc, int64_t want)
{
	const struct profile_sample *s;

	window__commit(w, BPFPROF_CPU, 1);
	(void)profile_of(w, BPFPROF_CPU, false);
	s = sample_of(BPFPROF_CPU, pc, 0);
	assert_int_equal(s ? *values_of(BPFPROF_CPU, s) : 0, want);
}

/* What is in the epoch that goes on is in no window yet, whenever it arrives. */
static void epochs_are_apart(void **state)
{
	(void)state;
	sample(0, 0x1000, 3);
	sample(1, 0x1000, 10);
	sample(1, 0x2000, 1);
	sample(0, 0x1000, 4);
	end_epoch(0);
	check_cpu(window, 0x1000, 7);
	check_cpu(window, 0x2000, 0);
	assert_int_equal(window__account(window, BPFPROF_CPU)->total, 7);
	sample(0, 0x2000, 100);
	end_epoch(1);
	check_cpu(window, 0x1000, 17);
	check_cpu(window, 0x2000, 1);
	assert_int_equal(window__account(window, BPFPROF_CPU)->total, 18);
	end_epoch(0);
	check_cpu(window, 0x2000, 101);
}

/* A count is of the epoch that its stack was sent in. */
static void counts_need_their_epochs_stack(void **state)
{
	struct bpfprof_rec rec = cpu_rec(0x1000, 0);

	(void)state;
	add(&rec, 0x1000);
	rec.side = 1;
	count(&rec, 5);
	end_epoch(0);
	end_epoch(1);
	rec.side = 0;
	count(&rec, 5);
	end_epoch(0);
	check_cpu(window, 0x1000, 1);
}

/* Windows that overlap give what each would give alone. */
static void windows_overlap(void **state)
{
	struct window *other, *third;

	(void)state;
	sample(0, 0x1000, 3);
	end_epoch(0);
	other = windows__open(windows);
	assert_non_null(other);
	sample(1, 0x1000, 2);
	sample(1, 0x2000, 1);
	end_epoch(1);
	third = windows__open(windows);
	assert_non_null(third);
	check_cpu(window, 0x1000, 5);
	check_cpu(window, 0x2000, 1);
	windows__close(windows, window);
	sample(0, 0x2000, 5);
	end_epoch(0);
	check_cpu(other, 0x1000, 2);
	check_cpu(other, 0x2000, 6);
	check_cpu(third, 0x1000, 0);
	check_cpu(third, 0x2000, 5);
	assert_int_equal(window__account(other, BPFPROF_CPU)->total, 8);
	assert_int_equal(window__account(third, BPFPROF_CPU)->total, 5);
}

static void stats_are_the_windows(void **state)
{
	struct bpfprof_stats stats[BPFPROF_NR_KINDS] = { 0 };
	struct window *other;

	(void)state;
	stats[BPFPROF_CPU].seen = 10;
	stats[BPFPROF_CPU].lost[BPFPROF_LOST_ring_full] = 2;
	stats[BPFPROF_HEAP].untracked = 7;
	windows__account(windows, 0, BPFPROF_CPU)->no_memory++;
	windows__account(windows, 1, BPFPROF_CPU)->no_memory += 100;
	assert_int_equal(windows__end_epoch(windows, 0, stats), 0);
	other = windows__open(windows);
	assert_non_null(other);
	assert_int_equal(windows__end_epoch(windows, 1, stats), 0);
	assert_int_equal(window__account(window, BPFPROF_CPU)->stats.seen, 20);
	assert_int_equal(window__account(window, BPFPROF_CPU)->no_memory, 101);
	assert_int_equal(window__account(other, BPFPROF_CPU)->no_memory, 100);
	assert_int_equal(window__account(other, BPFPROF_CPU)->stats.lost[BPFPROF_LOST_ring_full],
			 2);
	assert_int_equal(window__account(other, BPFPROF_HEAP)->stats.untracked, 7);
}

/* What no window has and nobody holds is known no more; its number is given to another stack. */
static void stacks_go_with_their_windows(void **state)
{
	struct bpfprof_rec kept = heap_rec(1, 1 << 24), freed = heap_rec(2, 1 << 24);

	(void)state;
	for (uint8_t side = 0, round = 0; round < 10; round++, side = !side) {
		for (uint64_t i = 0; i < 100; i++)
			sample(side, (uint64_t)round << 20 | i << 8, 1);
		end_epoch(side);
		windows__close(windows, window);
		assert_int_equal(windows__stacks(windows, BPFPROF_CPU), 0);
		window = windows__open(windows);
		assert_non_null(window);
	}
	add(&kept, 0x1000);
	add(&freed, 0x2000);
	end_epoch(0);
	windows__close(windows, window);
	window = windows__open(windows);
	assert_non_null(window);
	assert_int_equal(windows__stacks(windows, BPFPROF_HEAP), 2);
	assert_true(hold(&kept));
	windows__drop_freed(windows, BPFPROF_HEAP);
	assert_int_equal(windows__stacks(windows, BPFPROF_HEAP), 1);
	assert_false(hold(&freed));
	/* in use in the window, though it was allocated before */
	assert_true(hold(&kept));
	(void)profile_of(window, BPFPROF_HEAP, false);
	check_heap(0x1000, 1 << 24, 0, 0, 2, 2 << 24);
	/* of the epoch that goes on, not all may have been there to be held */
	freed.side = 1;
	add(&freed, 0x2000);
	windows__drop_freed(windows, BPFPROF_HEAP);
	windows__drop_freed(windows, BPFPROF_HEAP);
	assert_false(hold(&kept));
	assert_true(hold(&freed));
}

/* Files come and go, enough of them to have what nobody needs released. */
static void churn_files(void)
{
	static unsigned int number;
	char path[32];
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = path };
	uint32_t proc = procs__add(procs, TGID, 0, 0, "churn", false, 0);

	for (uint64_t i = 1; i <= 3 * CODE_SPARE_FILES; i++) {
		snprintf(path, sizeof(path), "/memfd:%u", number++);
		assert_int_equal(procs__on_mmap(procs, TGID, i, i << 12, 1 << 12, 0, &f), 0);
	}
	assert_int_equal(procs__space(procs, proc)->map_cnt, 3 * CODE_SPARE_FILES);
	code__forget(code, proc);
	procs__remove(procs, proc);
	code__release_unused(code);
	assert_true(procs__file_cnt(procs) < CODE_SPARE_FILES);
}

/* A sample of this program, which is of no use any more afterwards, in an epoch of its own. */
static void sample_ourselves(uint64_t pc)
{
	struct bpfprof_rec rec = { .type = BPFPROF_REC_SAMPLE,
				   .kind = BPFPROF_CPU,
				   .user_cnt = 1,
				   .hash = 1,
				   .proc.tgid = getpid(),
				   .time_ns = util_monotonic_ns() };
	uint32_t proc = procs__add(procs, getpid(), 0, 0, "tester", false, 0);

	assert_int_equal(procs__read_maps(procs, proc, 0), 0);
	windows__add(windows, 0, proc, &rec, NULL, &pc, 1, BPFPROF_STACK_complete);
	end_epoch(0);
	code__forget(code, proc);
	procs__remove(procs, proc);
}

/* The object that the only sample of the window lies in. */
static uint32_t sampled_object(const char *name)
{
	const struct profile *p;
	const struct profile_mapping *m;
	const struct symbolize_source *source;

	window__commit(window, BPFPROF_CPU, 1);
	p = profile_of(window, BPFPROF_CPU, false);
	assert_int_equal(p->sample_cnt, 1);
	m = &p->mappings[p->locations[p->loc_ids[p->samples[0].loc]].mapping];
	source = &sources[BPFPROF_CPU][m - p->mappings];
	assert_int_equal(source->what, SYMBOLIZE_OBJECT);
	assert_non_null(strstr(strtab__get(p->strings, m->filename), name));
	assert_non_null(strstr(objects__info(objects, source->object)->path, name));
	assert_string_equal(objects__info(objects, source->object)->build_id,
			    strtab__get(p->strings, m->build_id));
	return source->object;
}

/* What a stack lies in stays as long as the stack; then others have its numbers, and their names. */
static void numbers_go_with_their_stacks(void **state)
{
	uint32_t libc, cmocka;

	(void)state;
	sample_ourselves((uintptr_t)getppid + 1);
	libc = sampled_object("libc");
	for (int i = 0; i < 2; i++) {
		churn_files();
		/* and the program itself, of which pprof is told */
		assert_int_equal(procs__file_cnt(procs), 2);
		assert_int_equal(objects__cnt(objects), 2);
		assert_int_equal(sampled_object("libc"), libc);
	}
	windows__close(windows, window);
	window = windows__open(windows);
	assert_non_null(window);
	assert_int_equal(windows__stacks(windows, BPFPROF_CPU), 0);
	/* a moment ago it was needed */
	churn_files();
	assert_int_equal(objects__cnt(objects), 2);
	churn_files();
	assert_int_equal(procs__file_cnt(procs), 1);
	assert_int_equal(objects__cnt(objects), 1);
	sample_ourselves((uintptr_t)_assert_true + 1);
	cmocka = sampled_object("libcmocka");
	assert_int_equal(cmocka, libc);
	sample_ourselves((uintptr_t)getppid + 1);
	assert_int_equal(windows__stacks(windows, BPFPROF_CPU), 2);
	assert_int_equal(objects__cnt(objects), 3);
}

#define FILES 64 /* that are mapped at a time */
#define PAGE 4096

static size_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t cnt = 0;

	assert_non_null(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt - 3; /* ., .. and its own */
}

/* The smallest program that there is; one of its own each time. */
static void *map_program(void)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr code;
	} image = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1 },
		.code = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_filesz = PAGE,
			  .p_memsz = PAGE,
			  .p_align = PAGE },
	};
	char path[] = "/tmp/bpfprof-test-XXXXXX";
	int fd = mkstemp(path);
	void *at;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &image, sizeof(image)), sizeof(image));
	assert_int_equal(ftruncate(fd, PAGE), 0);
	at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	unlink(path);
	return at;
}

/* A process with so many programs, all of which are looked at; then it ends. */
static void programs_come_and_go(int cnt)
{
	uint32_t proc = procs__add(procs, getpid(), 0, 0, "tester", false, 0);
	void *at[FILES];

	for (int i = 0; i < cnt; i++)
		at[i] = map_program();
	assert_int_equal(procs__read_maps(procs, proc, 0), 0);
	for (int i = 0; i < cnt; i++) {
		const struct proc_map *m = procs__map_at(procs, proc, (uintptr_t)at[i]);

		assert_non_null(m);
		assert_int_not_equal(code__object(code, proc, m), OBJECTS_NONE);
		munmap(at[i], PAGE);
	}
	code__forget(code, proc);
	procs__remove(procs, proc);
	code__release_unused(code);
}

/* Of files that nobody maps any more those that came last keep their descriptors, and no more of them
 * after twice as many. */
static void descriptors_are_bounded(void **state)
{
	size_t before = open_fds(), most[2] = { 0 };

	(void)state;
	for (int i = 0; i < 24; i++) {
		programs_come_and_go(FILES);
		most[i / 12] = MAX(most[i / 12], open_fds() - before);
	}
	assert_in_range(most[0], FILES, 2 * CODE_SPARE_FILES + FILES);
	assert_int_equal(most[1], most[0]);
}

/* The same of their tables, of which a few files may have much. */
static void tables_are_bounded(void **state)
{
	size_t cnt[12];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cnt); i++) {
		programs_come_and_go(2);
		cnt[i] = objects__cnt(objects);
		table_bytes += CODE_SPARE_BYTES / 2;
	}
	table_bytes = 0;
	assert_true(cnt[1] > cnt[0]);
	assert_int_equal(cnt[5], cnt[11]);
	assert_in_range(cnt[11], 4, 2 * 4 + 2);
}

/* A program that is started again and again stays, whatever else comes by. */
static void what_comes_back_stays(void **state)
{
	void *at = map_program();
	uint64_t serial = 0;

	(void)state;
	for (int i = 0; i < 12; i++) {
		uint32_t proc = procs__add(procs, getpid(), 0, 0, "tester", false, 0), object;

		assert_int_equal(procs__read_maps(procs, proc, 0), 0);
		object = code__object(code, proc, procs__map_at(procs, proc, (uintptr_t)at));
		assert_int_not_equal(object, OBJECTS_NONE);
		if (!serial)
			serial = objects__info(objects, object)->serial;
		assert_int_equal(objects__info(objects, object)->serial, serial);
		code__forget(code, proc);
		procs__remove(procs, proc);
		/* it maps that one, too, but nobody asks for it */
		programs_come_and_go(FILES);
	}
	munmap(at, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_gos),
		cmocka_unit_test_setup_teardown(weights_are_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(empty_allocations_count, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_held_is_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(changes_of_what_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(held_by_what_has_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(copies_are_windows_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(only_held, setup, teardown),
		cmocka_unit_test_setup_teardown(commits_scale, setup, teardown),
		cmocka_unit_test_setup_teardown(sizes_are_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(raw_records_are_joined, setup, teardown),
		cmocka_unit_test_setup_teardown(cpu_counts_periods, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_are_added_up, setup, teardown),
		cmocka_unit_test_setup_teardown(drawn_waits_are_rounded_once, setup, teardown),
		cmocka_unit_test_setup_teardown(wakes_are_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(reasons_are_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_are_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(creations_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(many_are_found_again, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_lie_in_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(processes_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(services_are_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_refer_to_services, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_have_their_program, setup, teardown),
		cmocka_unit_test_setup_teardown(main_threads_have_the_name_of_then, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_unknown_have_the_name_of_their_main_thread,
						setup, teardown),
		cmocka_unit_test_setup_teardown(equal_code_is_one_location, setup, teardown),
		cmocka_unit_test_setup_teardown(the_dead_are_added_up, setup, teardown),
		cmocka_unit_test_setup_teardown(epochs_are_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_need_their_epochs_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(windows_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(stats_are_the_windows, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks_go_with_their_windows, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_go_with_their_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(descriptors_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(what_comes_back_stays, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
