/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of profile/legacy: the exact text, what go tool pprof reads of it, and what must not harm. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "golden.h"
#include "golden_profile.h"
#include "profile/legacy.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"

#define MEMORY "# /proc/42/status, in bytes\n# VmRSS = 4096\n"

static const struct profile_value_type count = { "things", "count" };
static const struct legacy things = { .form = LEGACY_COUNT, .name = "things" };

typedef int (*write_fn)(const struct profile *p, const struct legacy *what, FILE *f);

/* For the caller to free; ret_sz may be NULL. */
static char *written(const struct profile *p, const struct legacy *what, write_fn write,
		     size_t *ret_sz)
{
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	assert_int_equal(write(p, what, f), 0);
	assert_int_equal(fclose(f), 0);
	if (ret_sz)
		*ret_sz = sz;
	return text;
}

static struct profile *kind_profile(enum bpfprof_kind kind)
{
	struct profile *p = kind == BPFPROF_CPU	 ? golden_profile() :
			    kind == BPFPROF_HEAP ? golden_heap_profile() :
						   golden_kind_profile(kind);

	assert_non_null(p);
	return p;
}

static struct legacy form_of(enum bpfprof_kind kind)
{
	return (struct legacy){ .form = kinds[kind].legacy,
				.name = kinds[kind].name,
				.memory = kind == BPFPROF_HEAP ? MEMORY : NULL };
}

/* ---- the text ---- */

static void texts_are_golden(void **state)
{
	static const enum bpfprof_kind all[] = { BPFPROF_CPU,	 BPFPROF_HEAP,
						 BPFPROF_BLOCK,	 BPFPROF_MUTEX,
						 BPFPROF_OFFCPU, BPFPROF_THREADCREATE,
						 BPFPROF_THREADS };
	char name[64], *text;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct profile *p = kind_profile(all[i]);
		struct legacy what = form_of(all[i]);

		text = written(p, &what, debug1_write, NULL);
		snprintf(name, sizeof(name), "%s.debug1", kinds[all[i]].name);
		golden_compare(name, text);
		free(text);
		if (all[i] != BPFPROF_CPU) {
			text = written(p, &what, legacy_write, NULL);
			snprintf(name, sizeof(name), "%s.legacy", kinds[all[i]].name);
			golden_compare(name, text);
			free(text);
		}
		profile__free(p);
	}
}

/* ---- the binary form ---- */

static uint64_t word(const char *data, size_t sz, size_t i)
{
	uint64_t ret;

	assert_true((i + 1) * sizeof(ret) <= sz);
	memcpy(&ret, data + i * sizeof(ret), sizeof(ret));
	return le64toh(ret);
}

static void cpu_is_gperftools_words(void **state)
{
	static const uint64_t head[] = { 0, 3, 0, 10000, 0 };
	/* fib three times, its leaf as it is, the others behind their calls; and one without weight */
	static const uint64_t first[] = {
		105, 4, 0x555555554200, 0x555555554201, 0x555555554201, 0x555555554101,
		0,   1, 0x555555554200
	};
	struct profile *p = golden_profile();
	struct legacy what = form_of(BPFPROF_CPU);
	uint64_t total = 0, n;
	size_t sz, i;
	char *data, *maps;

	(void)state;
	assert_non_null(p);
	data = written(p, &what, legacy_write, &sz);
	for (i = 0; i < ARRAY_SIZE(head); i++)
		assert_int_equal(word(data, sz, i), head[i]);
	for (i = 0; i < ARRAY_SIZE(first); i++)
		assert_int_equal(word(data, sz, ARRAY_SIZE(head) + i), first[i]);
	for (i = ARRAY_SIZE(head); word(data, sz, i) || word(data, sz, i + 2); i += 2 + n) {
		total += word(data, sz, i);
		n = word(data, sz, i + 1);
		assert_in_range(n, 1, 4);
	}
	assert_int_equal(total, 180);
	assert_int_equal(word(data, sz, i + 1), 1);
	maps = data + (i + 3) * 8;
	assert_string_equal(maps,
			    "\nMAPPED_LIBRARIES:\n"
			    "555555554000-555555556000 r-xp 00001000 00:00 0 /usr/bin/app\n"
			    "ffffffff81000000-ffffffff82000000 r-xp 00000000 00:00 0 "
			    "[kernel.kallsyms]\n");
	free(data);
	profile__free(p);
}

/* ---- what go tool pprof makes of it ---- */

static void expect_read(const struct profile *p, const struct legacy *what, write_fn write,
			const char *options, const char *const *lines)
{
	size_t sz;
	char *data = written(p, what, write, &sz), *text;

	text = golden_pprof(options, data, sz, NULL);
	golden_squeeze(text);
	for (; *lines; lines++)
		if (!strstr(text, *lines))
			fail_msg("%s lacks '%s':\n%s", options, *lines, text);
	free(text);
	free(data);
}

static void pprof_reads_all(void **state)
{
	static const char *const heap[] = {
		"PeriodType: space bytes\n",
		"alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes\n",
		"\n1 1048576 1 1048576: ",
		"\nbytes:[1048576]\n",
		"\n2570 10526720 1285 5263360: ",
		": 0x555555554200 M=1 ",
		NULL,
	};
	static const char *const contention[] = {
		"contentions/count delay/nanoseconds\n", "\n340 1200000000: ", "\n5 2532000000: ",
		"1: 0x555555554000/0x555555556000/0x0 /usr/bin/app", NULL
	};
	static const char *const mutex[] = { "contentions/count delay/nanoseconds\n",
					     "\n340 1200000000: ", "\n2 5000000: ", NULL };
	static const char *const counts[] = { "threadcreate/count\n", "\n900: ", "\n100: ", NULL };
	static const char *const cpu[] = { "Period: 10000000\n", "samples/count cpu/nanoseconds\n",
					   "\n105 1050000000: ", "\n50 500000000: ",
					   "\n20 200000000: ",	 "\n3 30000000: ",
					   "\n2 20000000: ",	 NULL };
	static const struct {
		enum bpfprof_kind kind;
		const char *const *lines;
	} all[] = { { BPFPROF_HEAP, heap },   { BPFPROF_BLOCK, contention },
		    { BPFPROF_MUTEX, mutex }, { BPFPROF_OFFCPU, contention + 1 },
		    { BPFPROF_CPU, cpu },     { BPFPROF_THREADCREATE, counts } };

	(void)state;
	if (!golden_have_pprof())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct profile *p = kind_profile(all[i].kind);
		struct legacy what = form_of(all[i].kind);

		if (all[i].kind != BPFPROF_OFFCPU)
			expect_read(p, &what, legacy_write, "-raw", all[i].lines);
		expect_read(p, &what, debug1_write, "-raw",
			    (const char *const[]){ "Samples:\n", NULL });
		profile__free(p);
	}
}

/* ---- addresses ---- */

static struct profile *new_profile(void)
{
	struct profile *p = profile__new(&count, 1, count, 1);

	assert_non_null(p);
	return p;
}

static uint32_t new_mapping(struct profile *p, uint64_t start, uint64_t limit, const char *file)
{
	struct profile_mapping m = { .start = start, .limit = limit };

	m.filename = profile__string(p, file);
	return profile__add_mapping(p, &m);
}

static void add(struct profile *p, const uint32_t *locs, size_t cnt, int64_t value)
{
	assert_int_not_equal(profile__add_sample(p, locs, cnt, NULL, 0, &value), PROFILE_NONE);
}

static void expect(struct profile *p, write_fn write, const char *want)
{
	char *text;

	assert_int_equal(profile__finish(p), 0);
	text = written(p, &things, write, NULL);
	assert_string_equal(text, want);
	free(text);
	profile__free(p);
}

/* A program that becomes another one at the same addresses. */
static void overlapping_ranges_are_moved(void **state)
{
	struct profile *p = new_profile();
	uint32_t a = new_mapping(p, 0x400000, 0x402000, "/bin/a");
	uint32_t b = new_mapping(p, 0x401000, 0x403000, "/bin/b");
	uint32_t c = new_mapping(p, 0x500000, 0x501000, "/lib/c.so");
	uint32_t locs[3];

	(void)state;
	locs[0] = profile__add_location(p, a, 0x401100);
	locs[1] = profile__add_location(p, b, 0x401100);
	locs[2] = profile__add_location(p, c, 0x500100);
	add(p, locs, 3, 5);
	expect(p, legacy_write,
	       "things profile: total 5\n"
	       "5 @ 0x401101 0x501101 0x500101\n"
	       "--- Memory map: ---\n"
	       "00400000-00402000 r-xp 00000000 00:00 0 /bin/a\n"
	       "00501000-00503000 r-xp 00000000 00:00 0 /bin/b\n"
	       "00500000-00501000 r-xp 00000000 00:00 0 /lib/c.so\n");
}

/* The program comes first, wherever it is; an entry that profile__finish has split once, and code
 * without a file has no name. */
static void mappings_are_told_once(void **state)
{
	struct profile *p = new_profile();
	uint32_t main = new_mapping(p, 0x7000000, 0x7001000, "/bin/main");
	uint32_t code = new_mapping(p, 0x1000, 0x2000, "//anon");
	uint32_t locs[3];

	(void)state;
	locs[0] = golden_location(p, main, 0x7000100, "f", "f", "", 0);
	locs[1] = profile__add_location(p, main, 0x7000200);
	locs[2] = profile__add_location(p, code, 0x1800);
	add(p, locs, 3, 1);
	expect(p, legacy_write,
	       "things profile: total 1\n"
	       "1 @ 0x7000101 0x7000201 0x1801\n"
	       "--- Memory map: ---\n"
	       "07000000-07001000 r-xp 00000000 00:00 0 /bin/main\n"
	       "00001000-00002000 r-xp 00000000 00:00 0\n");
}

/* ---- columns ---- */

static void columns_are_tabwriters(void **state)
{
	struct profile *p = new_profile();
	uint32_t m = new_mapping(p, 0x1000, 0x900000000, "/bin/main");
	uint32_t locs[6];

	(void)state;
	/* the run of lines with three cells ends at one that has no name, or no place */
	locs[0] = golden_location(p, m, 0x1100, "main.a", "main.a", "/a.go", 1);
	locs[1] = golden_location(p, m, 0x1200, "main.longer.name.here", "x", "/a.go", 2);
	locs[2] = profile__add_location(p, m, 0x1300);
	locs[3] = golden_location(p, m, 0x812345678, "sieben\xc3\xa4\xc3\xa4", "x", "/a.go", 3);
	locs[4] = golden_location(p, m, 0x1500, "f", "f", "", 0);
	locs[5] = profile__add_marker(p, "[unwind: no table]");
	p->locations[locs[0]].from_entry = 0x20;
	p->locations[locs[1]].from_entry = 0x20;
	p->locations[locs[3]].from_entry = 0;
	p->locations[locs[4]].from_entry = 0x20;
	add(p, locs, 5, 1);
	add(p, locs + 5, 1, 2);
	expect(p, debug1_write,
	       "things profile: total 3\n"
	       "2 @ 0x80001b7ecc445830\n"
	       "#\t0x80001b7ecc44582f\t[unwind: no table]\n"
	       "\n"
	       "1 @ 0x1101 0x1201 0x1301 0x812345679 0x1501\n"
	       "#\t0x1100\tmain.a+0x1f\t\t\t/a.go:1\n"
	       "#\t0x1200\tmain.longer.name.here+0x1f\t/a.go:2\n"
	       "#\t0x1300\n"
	       "#\t0x812345678\tsiebenää\t/a.go:3\n"
	       "#\t0x1500\t\tf+0x1f\t\t/bin/main+0x500\n"
	       "\n");
}

/* Go's runtime at the leaf is left out, but where there is nothing else. */
static void runtime_leaves_are_hidden(void **state)
{
	struct profile *p = new_profile();
	uint32_t m = new_mapping(p, 0x1000, 0x2000, "/bin/main");
	uint32_t locs[4];

	(void)state;
	locs[0] = golden_location(p, m, 0x1100, "runtime.gopark", "runtime.gopark", "/r.go", 1);
	locs[1] = golden_location(p, m, 0x1200, "main.f", "main.f", "/a.go", 2);
	locs[2] = golden_location(p, m, 0x1300, "runtime.main", "runtime.main", "/r.go", 3);
	locs[3] = golden_location(p, m, 0x1400, "runtime.goexit", "runtime.goexit", "/r.go", 4);
	for (size_t i = 0; i < 4; i++)
		p->locations[locs[i]].from_entry = 0;
	add(p, locs, 4, 2);
	add(p, (uint32_t[]){ locs[0], locs[3] }, 2, 1);
	expect(p, debug1_write,
	       "things profile: total 3\n"
	       "2 @ 0x1101 0x1201 0x1301 0x1401\n"
	       "#\t0x1200\tmain.f\t\t/a.go:2\n"
	       "#\t0x1300\truntime.main\t/r.go:3\n"
	       "\n"
	       "1 @ 0x1101 0x1401\n"
	       "#\t0x1100\truntime.gopark\t/r.go:1\n"
	       "\n");
}

/* ---- the heap's scale ---- */

static struct profile *heap_of(int64_t rate, int64_t size, int64_t objects, size_t value_cnt)
{
	struct profile *p = profile__new(kinds[BPFPROF_HEAP].value_types, value_cnt,
					 kinds[BPFPROF_HEAP].period_type, rate);
	uint32_t loc;

	assert_non_null(p);
	loc = profile__add_location(p, new_mapping(p, 0x1000, 0x2000, "/bin/main"), 0x1100);
	golden_heap_sample(p, &loc, 1, size, objects, objects / 2);
	assert_int_equal(profile__finish(p), 0);
	return p;
}

static void expect_heap(struct profile *p, const char *want)
{
	static const struct legacy heap = { .form = LEGACY_HEAP, .name = "heap" };
	char *text = written(p, &heap, debug1_write, NULL);

	if (strncmp(text, want, strlen(want)) != 0)
		fail_msg("not '%s': %s", want, text);
	free(text);
	profile__free(p);
}

static void heap_is_scaled_down_if_it_can_be(void **state)
{
	(void)state;
	/* 20 and 10 samples of 4096 bytes, each of which stands for 128.5 */
	expect_heap(heap_of(524288, 4096, 2570, 4),
		    "heap profile: 10: 40960 [20: 81920] @ heap/1048576\n"
		    "10: 40960 [20: 81920] @ 0x1101\n");
	/* each stands for more than that: 100 are no whole number of samples */
	expect_heap(heap_of(524288, 4096, 200, 4),
		    "heap profile: 100: 409600 [200: 819200] @ heap/2\n"
		    "100: 409600 [200: 819200] @ 0x1101\n");
	/* all were sampled */
	expect_heap(heap_of(1, 24, 200, 4), "heap profile: 100: 2400 [200: 4800] @ heap/2\n");
	/* what is in use is not known: the reader is not told of two */
	expect_heap(heap_of(1, 24, 200, 2),
		    "heap profile: 200: 4800 [200: 4800] @ heap/2\n"
		    "200: 4800 [200: 4800] @ 0x1101\n");
	/* both are the same: it is */
	expect_heap(heap_of(1, 24, 0, 4), "heap profile: 0: 0 [0: 1] @ heap/2\n");
	expect_heap(heap_of(524288, INT64_MAX / 4, 3, 4), "heap profile: ");
	expect_heap(heap_of(524288, -5, 3, 4), "heap profile: ");
}

/* People are told that what is in use is not known, or nothing; readers get the values that are there. */
static void heap_says_what_is_not_known(void **state)
{
	static const char *const lines[] = { "objects/count space/bytes\n", "\n200 4800: ", NULL };
	static const struct legacy heap = {
		.form = LEGACY_HEAP,
		.name = "heap",
		.memory = "# VmRSS = 4096\n",
	};
	static const write_fn writers[] = { legacy_write, debug1_write };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++)
		for (size_t cnt = 2; cnt <= 4; cnt += 2) {
			struct profile *p = heap_of(1, 24, 200, cnt), *q;
			size_t sz;
			char *text = written(p, &heap, writers[i], &sz),
			     *said = strstr(text, "\n\n# what is in use is not known: ");

			assert_int_equal(said != NULL, cnt == 2);
			assert_true(!said || strstr(said, "\n\n# VmRSS = 4096\n"));
			assert_int_equal(pprof_read(text, sz, &q), 0);
			assert_int_equal(q->value_cnt, cnt);
			assert_int_equal(q->sample_cnt, 1);
			assert_int_equal(profile__values(q, q->samples)[1], 4800);
			if (cnt == 2 && golden_have_pprof())
				expect_read(p, &heap, writers[i], "-raw", lines);
			free(text);
			profile__free(p);
			profile__free(q);
		}
}

/* Each reader gets what the profile has, but for what it cuts off in the end. */
static void heap_is_scaled_up_again(void **state)
{
	static const char *const lines[] = { "Period: 524288\n",
					     "\n2570 10526773 1285 5263386: ", NULL };
	static const struct legacy heap = { .form = LEGACY_HEAP, .name = "heap" };
	struct profile *p;
	char *text;

	(void)state;
	if (!golden_have_pprof())
		skip();
	p = heap_of(524288, 4096, 2570, 4);
	text = written(p, &heap, legacy_write, NULL);
	assert_non_null(strstr(text, "heap profile: 10: 40960 [20: 81920] @ heap_v2/524288\n"));
	free(text);
	expect_read(p, &heap, legacy_write, "-raw", lines);
	expect_read(p, &heap, debug1_write, "-raw", lines);
	profile__free(p);
}

/* ---- what must not harm ---- */

static void hostile_names_are_harmless(void **state)
{
	static const char evil[] = "evil\x1b[2J\n--- Memory map: ---\t\xff";
	struct profile *p = new_profile();
	uint32_t m = new_mapping(p, 0x1000, 0x2000, evil), loc;
	struct profile_label label = { 0 };
	int64_t one = 1;

	(void)state;
	loc = golden_location(p, m, 0x1100, evil, evil, evil, 7);
	p->locations[loc].from_entry = 0;
	label.key = profile__string(p, "thread");
	label.str = profile__string(p, "a\"b\\\n");
	profile__add_sample(p, &loc, 1, &label, 1, &one);
	assert_int_equal(profile__finish(p), 0);
	for (size_t i = 0; i < 2; i++) {
		char *text = written(p, &things, i ? debug1_write : legacy_write, NULL);

		assert_null(strchr(text, '\x1b'));
		if (i)
			assert_string_equal(text,
					    "things profile: total 1\n1 @ 0x1101\n"
					    "# labels: {\"thread\":\"a\\\"b\\\\�\"}\n"
					    "#\t0x1100\tevil�[2J�--- Memory map: ---��\t"
					    "evil�[2J�--- Memory map: ---��:7\n\n");
		else
			assert_string_equal(text,
					    "things profile: total 1\n1 @ 0x1101\n"
					    "--- Memory map: ---\n"
					    "00001000-00002000 r-xp 00000000 00:00 0 "
					    "evil�[2J�--- Memory map: ---��\n");
		free(text);
	}
	profile__free(p);
}

/* go tool pprof reads no line of 64 KiB. */
static void lines_are_bounded(void **state)
{
	enum {
		DEEP = 640,
		LONG = 70000
	};
	struct profile *p = new_profile();
	uint32_t m = new_mapping(p, 0x7f0000000000, 0x7fffffffffff, "/bin/main");
	uint32_t locs[DEEP];
	char *name = malloc(LONG + 1), *text, *line, *end;
	size_t lines = 0;

	(void)state;
	assert_non_null(name);
	for (size_t i = 0; i < LONG; i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	name[LONG] = '\0';
	for (size_t i = 0; i < DEEP; i++)
		locs[i] = golden_location(p, m, 0x7ffff0000000 + i * 16, name, name, "/src/a.c", 1);
	add(p, locs, DEEP, 1);
	assert_int_equal(profile__finish(p), 0);
	text = written(p, &things, debug1_write, NULL);
	for (line = text; (end = strchr(line, '\n')); line = end + 1, lines++)
		assert_true(end - line < 65536);
	assert_int_equal(lines, DEEP + 3);
	assert_null(strstr(text, "\xc3\n"));
	free(text);
	if (golden_have_pprof())
		expect_read(p, &things, debug1_write, "-raw",
			    (const char *const[]){ "640: 0x7ffff00027f0 ", NULL });
	free(name);
	profile__free(p);
}

static void empty_profiles_are_read(void **state)
{
	static const char *const none[] = { "Samples:\n", NULL };

	(void)state;
	expect(new_profile(), legacy_write, "things profile: total 0\n--- Memory map: ---\n");
	expect(new_profile(), debug1_write, "things profile: total 0\n");
	if (!golden_have_pprof())
		skip();
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		const struct kind *k = &kinds[i];
		struct profile *p = profile__new(k->value_types, k->value_cnt, k->period_type, 1);
		struct legacy what = { .form = k->legacy, .name = k->name };

		assert_non_null(p);
		assert_int_equal(profile__finish(p), 0);
		expect_read(p, &what, legacy_write, "-raw", none);
		expect_read(p, &what, debug1_write, "-raw", none);
		profile__free(p);
	}
}

/* One that has lost its frames counts all the same. */
static void samples_without_frames_count(void **state)
{
	struct profile *p = new_profile();
	static const struct legacy cpu = { .form = LEGACY_CPU, .name = "cpu" };
	static const char *const total[] = { "\n7 7000: ", NULL };

	(void)state;
	add(p, NULL, 0, 7);
	add(p, NULL, 0, 0);
	assert_int_equal(profile__finish(p), 0);
	if (golden_have_pprof())
		expect_read(p, &cpu, legacy_write, "-raw", total);
	expect(p, debug1_write, "things profile: total 7\n7 @ 0x1\n\n");
}

/* go tool pprof takes a second frame that nearly all have for a signal handler's. */
static void second_frames_stay(void **state)
{
	static const struct legacy cpu = { .form = LEGACY_CPU, .name = "cpu" };

	(void)state;
	if (!golden_have_pprof())
		skip();
	for (uint32_t cnt = 1; cnt < 1500; cnt = cnt * 7 / 2 + 1) {
		struct profile *p = new_profile();
		uint32_t m = new_mapping(p, 0x1000, 0x900000, "/bin/main"), locs[3];

		locs[1] = profile__add_location(p, m, 0x1100);
		locs[2] = profile__add_location(p, m, 0x1200);
		for (uint32_t i = 0; i < cnt; i++) {
			locs[0] = profile__add_location(p, m, 0x2000 + 16 * i);
			add(p, locs, 3, 1 + i);
		}
		assert_int_equal(profile__finish(p), 0);
		expect_read(p, &cpu, legacy_write, "-raw",
			    (const char *const[]){ ": 0x1100 M=1", NULL });
		profile__free(p);
	}
}

static void full_device_is_told(void **state)
{
	struct profile *p = golden_heap_profile();
	struct legacy what = form_of(BPFPROF_HEAP);
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(p);
	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	assert_int_equal(legacy_write(p, &what, f), -EIO);
	assert_int_equal(debug1_write(p, &what, f), -EIO);
	fclose(f);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_golden),
		cmocka_unit_test(cpu_is_gperftools_words),
		cmocka_unit_test(pprof_reads_all),
		cmocka_unit_test(overlapping_ranges_are_moved),
		cmocka_unit_test(mappings_are_told_once),
		cmocka_unit_test(columns_are_tabwriters),
		cmocka_unit_test(runtime_leaves_are_hidden),
		cmocka_unit_test(heap_is_scaled_down_if_it_can_be),
		cmocka_unit_test(heap_is_scaled_up_again),
		cmocka_unit_test(heap_says_what_is_not_known),
		cmocka_unit_test(hostile_names_are_harmless),
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(empty_profiles_are_read),
		cmocka_unit_test(samples_without_frames_count),
		cmocka_unit_test(second_frames_stay),
		cmocka_unit_test(full_device_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
