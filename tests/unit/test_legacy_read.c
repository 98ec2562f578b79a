/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profile/legacy_read: what is written in the formats before profile.proto is read again, and written to the
 * same bytes; what gperftools writes is read as go tool pprof reads it; what is cut, or is none, is refused.
 */
#include "profile/legacy_read.h"

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
#include <zlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "golden.h"
#include "golden_profile.h"
#include "profile/frames.h"
#include "profile/legacy.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "written.h"

#define MAPS                                                        \
	"00400000-00402000 r-xp 00001000 fe:01 12    /bin/an app\n" \
	"00402000-00403000 rw-p 00003000 fe:01 12    /bin/an app\n" \
	"7f0000000000-7f0000100000 r-xp 00028000 fe:01 13    /lib/libc.so.6\n"
#define LIBRARIES "\nMAPPED_LIBRARIES:\n" MAPS
#define MEMORY_MAP "--- Memory map: ---\n" MAPS

static struct profile *read_all(const void *data, size_t sz)
{
	struct profile *p;

	assert_int_equal(pprof_read(data, sz, &p), 0);
	return p;
}

static struct profile *read_text(const char *text)
{
	return read_all(text, strlen(text));
}

/* "leaf caller 3 30 bytes=8", a line for each sample in their order; for the caller to free. */
static char *told(const struct profile *p)
{
	struct frames fr;
	char *text;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	assert_non_null(f);
	assert_int_equal(frames__make(p, false, &fr), 0);
	for (size_t i = 0; i < p->sample_cnt; i++) {
		const struct profile_sample *s = &p->samples[i];

		for (uint32_t l = 0; l < s->loc_cnt; l++)
			for (uint32_t k = 0; k < frames__cnt(&fr, p->loc_ids[s->loc + l]); k++)
				fprintf(f, "%s ",
					strtab__get(fr.names,
						    frames__name(&fr, p->loc_ids[s->loc + l], k)));
		for (size_t v = 0; v < p->value_cnt; v++)
			fprintf(f, "%s%" PRId64, v ? " " : "", profile__values(p, s)[v]);
		for (uint32_t l = 0; l < s->label_cnt; l++)
			fprintf(f, " %s=%" PRId64,
				strtab__get(p->strings, p->labels[s->label + l].key),
				p->labels[s->label + l].num);
		fputc('\n', f);
	}
	assert_int_equal(fclose(f), 0);
	frames__done(&fr);
	return text;
}

/* Takes p. */
static void expect(struct profile *p, const char *types, int64_t period, const char *want)
{
	char got[256] = "", *text = told(p);

	for (size_t v = 0; v < p->value_cnt; v++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s/%s", v ? " " : "",
			 p->value_types[v].type, p->value_types[v].unit);
	assert_string_equal(got, types);
	assert_int_equal(p->period, period);
	assert_string_equal(text, want);
	free(text);
	profile__free(p);
}

static int64_t weight(const struct profile *p, size_t value)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->sample_cnt; i++)
		sum += profile__values(p, &p->samples[i])[value] * (1 + p->samples[i].loc_cnt);
	return sum;
}

/* As pprof reads it: the same values at the same depths. */
static void expect_theirs(const void *data, size_t sz)
{
	struct profile *p = read_all(data, sz), *q;
	char *theirs;
	size_t theirs_sz;

	if (golden_have_pprof()) {
		theirs = golden_pprof("-proto -output=/dev/stdout", data, sz, &theirs_sz);
		q = read_all(theirs, theirs_sz);
		assert_int_equal(p->value_cnt, q->value_cnt);
		assert_int_equal(p->period, q->period);
		for (size_t v = 0; v < p->value_cnt; v++) {
			assert_string_equal(p->value_types[v].type, q->value_types[v].type);
			assert_string_equal(p->value_types[v].unit, q->value_types[v].unit);
			assert_int_equal(weight(p, v), weight(q, v));
		}
		free(theirs);
		profile__free(q);
	}
	profile__free(p);
}

/* ---- what we write ---- */

static char *legacy_bytes(const struct profile *p, const struct legacy *what, size_t *ret_sz)
{
	char *data;
	FILE *f = open_memstream(&data, ret_sz);

	assert_non_null(f);
	assert_int_equal(legacy_write(p, what, f), 0);
	assert_int_equal(fclose(f), 0);
	return data;
}

static void written_again(void **state)
{
	static const enum bpfprof_kind all[] = { BPFPROF_CPU,	       BPFPROF_HEAP,
						 BPFPROF_BLOCK,	       BPFPROF_MUTEX,
						 BPFPROF_THREADCREATE, BPFPROF_THREADS };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct legacy what = { .form = kinds[all[i]].legacy, .name = kinds[all[i]].name };
		struct profile *p = all[i] == BPFPROF_CPU  ? golden_profile() :
				    all[i] == BPFPROF_HEAP ? golden_heap_profile() :
							     golden_kind_profile((int)all[i]);
		size_t sz, again_sz;
		char *data = legacy_bytes(p, &what, &sz), *again;
		struct profile *q = read_all(data, sz);

		assert_int_equal(profile__finish(q), 0);
		again = legacy_bytes(q, &what, &again_sz);
		assert_int_equal(again_sz, sz);
		assert_memory_equal(again, data, sz);
		free(data);
		free(again);
		profile__free(p);
		profile__free(q);
	}
}

/* ---- CPU time ---- */

static const uint32_t cpu_words[] = { 0, 3, 0, 10000, 0,
				      /* a leaf twice */
				      5, 3, 0x400100, 0x400100, 0x400201,
				      /* no code */
				      1, 1, 1, 2, 2, 0x400300, 0x999,
				      /* the end */
				      0, 1, 0 };
#define CPU_WANT \
	"an app+0x1100 an app+0x1200 5 50000000\n1 10000000\nan app+0x1300 0x998 2 20000000\n"
#define CPU_TYPES "samples/count cpu/nanoseconds"

static size_t make_words(size_t word_sz, bool big, const uint32_t *words, size_t cnt, char *to)
{
	for (size_t i = 0; i < cnt; i++, to += word_sz) {
		uint64_t wide = big ? htobe64(words[i]) : htole64(words[i]);
		uint32_t narrow = big ? htobe32(words[i]) : htole32(words[i]);

		memcpy(to, word_sz == 8 ? (void *)&wide : (void *)&narrow, word_sz);
	}
	return cnt * word_sz;
}

static void cpu_of_all_words(void **state)
{
	char data[1024];

	(void)state;
	for (int i = 0; i < 4; i++) {
		size_t sz =
			make_words(i & 1 ? 8 : 4, i & 2, cpu_words, ARRAY_SIZE(cpu_words), data);

		/* gperftools has no heading */
		strcpy(data + sz, MAPS);
		expect(read_all(data, sz + strlen(MAPS)), CPU_TYPES, 10000000, CPU_WANT);
		strcpy(data + sz, LIBRARIES);
		expect(read_all(data, sz + strlen(LIBRARIES)), CPU_TYPES, 10000000, CPU_WANT);
		/* cut before its end, or within a record */
		for (size_t cut = 1; cut < sz; cut++) {
			struct profile *p;

			assert_int_equal(pprof_read(data, cut, &p), -EBADMSG);
		}
	}
}

static void cpu_is_theirs(void **state)
{
	char data[1024];
	size_t sz = make_words(8, false, cpu_words, ARRAY_SIZE(cpu_words), data);

	(void)state;
	if (!golden_have_pprof())
		skip();
	/* pprof makes a frame of address 1: another one in its place */
	memcpy(data + (5 + 5 + 2) * 8, &(uint64_t){ htole64(0x400123) }, 8);
	strcpy(data + sz, MAPS);
	expect_theirs(data, sz + strlen(MAPS));
}

/* ---- memory ---- */

#define ALL "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes"
#define ONE "objects/count space/bytes"
#define STACK "@ 0x400101 0x7f0000000101\n"
#define FRAMES "an app+0x1100 libc.so.6+0x28100 "

static void heap_kinds(void **state)
{
	static const struct {
		const char *head, *lines, *types;
		int64_t period;
		const char *want;
	} all[] = {
		{ "2: 10 [4: 20] @ heapprofile", "2: 10 [4: 20] " STACK, ALL, 1,
		  FRAMES "4 20 2 10 bytes=5\n" },
		{ "2: 10 [2: 10] @ heapprofile", "2: 10 [2: 10] " STACK, ONE, 1,
		  FRAMES "2 10 bytes=5\n" },
		{ "1: 512 [0: 0] @ heap_v2/512", "1: 512 [1: 512] " STACK, ONE, 512,
		  FRAMES "1 809 bytes=512\n" },
		{ "1: 512 [2: 1024] @ heap/1024", "1: 512 [2: 1024] " STACK, ALL, 512,
		  FRAMES "3 1619 1 809 bytes=512\n" },
		{ " 3: 96 [ 3: 96] @ growthz", "3: 96 [ 3: 96] " STACK, ONE, 1,
		  FRAMES "3 96 bytes=32\n" },
		{ "0: 0 [9: 9] @ heapprofile",
		  "-1: -8 [9: 9] " STACK "\n# note\n0: 0 [0: 0] " STACK, ALL, 1,
		  FRAMES "9 9 -1 -8 bytes=1\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		char text[2048];

		snprintf(text, sizeof(text), "heap profile: %s\n%s%s", all[i].head, all[i].lines,
			 LIBRARIES);
		expect(read_text(text), all[i].types, all[i].period, all[i].want);
		expect_theirs(text, strlen(text));
	}
}

/* Sizes keep samples apart, but where labels are not wanted. */
static void heap_sizes(void **state)
{
	static const char text[] =
		"heap profile: 5: 40 [5: 40] @ heapprofile\n"
		"2: 10 [2: 10] " STACK "3: 30 [3: 30] " STACK "1: 5 [1: 5] " STACK LIBRARIES;
	struct profile *p;

	(void)state;
	expect(read_text(text), ONE, 1, FRAMES "3 15 bytes=5\n" FRAMES "3 30 bytes=10\n");
	assert_int_equal(pprof_read_stacks(text, strlen(text), &p), 0);
	expect(p, ONE, 1, FRAMES "2 10\n" FRAMES "3 30\n" FRAMES "1 5\n");
}

/* ---- lines of numbers ---- */

static void contention(void **state)
{
	static const char ours[] =
		"--- contentionz 1 ---\ncycles/second = 2000000000\n"
		"sampling period = 10\nms since reset = 1500\ndiscarded samples = 3\n"
		"100 2 @ 0x400101\n" MEMORY_MAP;
	static const char gos[] =
		"--- mutex:\ncycles/second=1000000000\nsampling period=1\n"
		"100 2 @ 0x400101 0x7f0000000101\n#\t0x400100\tmain+0x1\ta.c:3\n\n";
	struct profile *p = read_text(ours);

	(void)state;
	assert_int_equal(p->duration_ns, 1500000000);
	expect(p, "contentions/count delay/nanoseconds", 10, "an app+0x1100 20 500\n");
	expect(read_text(gos), "contentions/count delay/nanoseconds", 1,
	       "0x400100 0x7f0000000100 2 100\n");
	expect_theirs(ours, strlen(ours));
	expect_theirs(gos, strlen(gos));
}

static void counts(void **state)
{
	static const char text[] =
		"# said before\n\nmy.count profile: total 7\n5 @ 0x400101 0x7f0000000101\n"
		"# labels: {\"k\":\"v\"}\n#\t0x400100\n\n2 @ 0x400101\n" MEMORY_MAP;

	(void)state;
	expect(read_text(text), "my.count/count", 1, FRAMES "5\nan app+0x1100 2\n");
	expect_theirs(text, strlen(text));
	/* Go's threads have no stack: go tool pprof refuses them */
	expect(read_text("threadcreate profile: total 7\n7 @\n"), "threadcreate/count", 1, "7\n");
	expect(read_text("goroutine profile: total 0\n"), "goroutine/count", 1, "");
}

static void threads(void **state)
{
	static const char text[] =
		"--- threadz 1 ---\n\n"
		"--- Thread 7f1 (name: main/1) stack: ---\n  @ 0x400101 0x7f0000000101\n"
		"--- Thread 7f2 (name: a/2) stack: ---\n  same as previous thread\n"
		"--- Thread 7f3 (name: b/3) stack: ---\n  @ 0x400101\n"
		"---- no stack trace for 7f4\n" LIBRARIES;

	(void)state;
	expect(read_text(text), "thread/count", 1,
	       "an app+0x1101 libc.so.6+0x28100 2\nan app+0x1101 1\n");
	expect_theirs(text, strlen(text));
}

/* As programs of C++ write them: addresses anywhere in lines, which may begin with the first thread. */
static void threads_with_words(void **state)
{
	static const char text[] =
		"--- threadz 1 ---\n\nall of them:\n"
		"--- Thread 7f1 (name: main/1) stack: ---\n"
		"  PC: 0x00400101 0x7f0000000101\n"
		"    0x400201: ns::f(int, 0x) at f.cc:10\n\n# 0x400301\n"
		"--- Thread 7f2 (name: a/2) stack: ---\n"
		"  [0x400101]0x7f0000000101\n" MEMORY_MAP;

	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *from = i ? strstr(text, "--- Thread") : text;

		expect(read_text(from), "thread/count", 1,
		       "an app+0x1101 libc.so.6+0x28100 an app+0x1200 an app+0x1300 1\n"
		       "an app+0x1101 libc.so.6+0x28100 1\n");
		expect_theirs(from, strlen(from));
	}
}

/* ---- mappings, names ---- */

static void mappings(void **state)
{
	static const char text[] =
		"x profile: total 1\n1 @ 0x1001 0x2001 0x3001 0x4001 0x5001\n"
		"--- Memory map: ---\n"
		"  0x1000-0x2000: /a\n"
		"2000-3000 r-xp /lib/b.so (@10) 0123abcd\n"
		"3000-4000 r--p 00000000 00:00 0 /no/code\n"
		"4000-5000 r-xp 00000000 00:00 0 \n"
		"no mapping\n9-1 /x\n"
		"5000-6000 r-xp 00000200 00:00 7 /bin/c (deleted)\n";
	struct profile *p = read_text(text);

	(void)state;
	assert_string_equal(strtab__get(p->strings, p->mappings[0].filename), "/bin/c");
	assert_string_equal(strtab__get(p->strings, p->mappings[1].build_id), "0123abcd");
	expect(p, "x/count", 1, "0x1000 b.so+0x10 0x3000 0x4000 c+0x200 1\n");
}

static void names(void **state)
{
	static const char list[] =
		"--- symbol\nbinary=/bin/app\n0x0000000000400100 leaf<0000000000001100>\n"
		"0x400200 outer--inner\n0x400300 0x400300\n---\n--- profile\n";
	/* google-pprof --raw: callers as they are, no end; and what a program sent */
	static const uint32_t raw[] = { 0, 3, 0, 1, 0, 5, 2, 0x400100, 0x400200, 2, 1, 0x400300 };
	static const uint32_t sent[] = { 0, 3, 0, 10, 0, 5, 2, 0x400100, 0x400201, 0, 1, 0 };
	char data[1024];
	size_t sz = strlen(list);
	struct profile *p;

	(void)state;
	strcpy(data, list);
	p = read_all(data, sz + make_words(8, false, raw, ARRAY_SIZE(raw), data + sz));
	assert_string_equal(strtab__get(p->strings, p->mappings[0].filename), "/bin/app");
	expect(p, "samples/count", 0, "leaf inner outer 5\n0x400300 2\n");
	p = read_all(data, sz + make_words(8, false, sent, ARRAY_SIZE(sent), data + sz));
	expect(p, CPU_TYPES, 10000, "leaf inner outer 5 50000\n");
	strcpy(data + sz - strlen("--- profile\n"),
	       "--- heap\nheap profile: 1: 8 [1: 8] @ heapprofile\n"
	       "1: 8 [1: 8] @ 0x400101 0x400201\n");
	expect(read_text(data), ONE, 1, "leaf inner outer 1 8 bytes=8\n");
}

/* ---- bounds ---- */

static void refused(void **state)
{
	static const char *const bad[] = {
		"heap profile:",
		"heap profile: 1: 1 [1: 1] @ heapster\n",
		"heap profile: 1: 1 [1: 1] @ heap_v2/x\n",
		"heap profile: 1: 1 [1: 1] @ heapprofile\n0: 5 [1: 1] @ 0x1\n",
		"heap profile: 1: 1 [1: 1] @ heapprofile\n1: 1 [1: 1] @ 0x12",
		"heap profile: 1: 1 [1: 1] @ heapprofile\n1: 1 [1: 1] @ 0x12 main\n",
		"heap profile: 1: 1 [1: 1] @ heapprofile\n1: 99999999999999999999 [1: 1] @ 0x12\n",
		"heap profile: 1: 1 [1: 1] @ heapprofile\n1: 1 [1: 1] @ 0x12345678901234567\n",
		"heap profile: 1: 1 [1: 1] @ heap_v2/524288\n t*: 1: 1 [0: 0]\n",
		"--- contention:\nresolution=9\n",
		"--- contention:\n-1 2 @ 0x1\n",
		"--- contention:\nms since reset=9999999999999999\n",
		"x profile: total 1\none @ 0x1\n",
		"x profile: total 1\n1 0x1\n",
		"x profile: total\n1 @ 0x1\n",
		"x y profile: total 1\n1 @ 0x1\n",
		"x profile: total 1\n1 @ 0x1\n--- Memory map: ---\n1000-2000 r-xp 0 0:0 0 /lib/lib",
		"--- symbol\n0x1 a\n",
		"--- symbol\n0x1 a\n---\nnothing\n",
		"--- threadz 1 ---\n--- Thread 1 (name: a/1) stack: ---\n @ 0x40",
		"--- threadz 1 ---\n--- Thread 1 (name: a/1) stack: ---\n 0x12345678123456781\n",
	};
	struct profile *p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(pprof_read(bad[i], strlen(bad[i]), &p), -EBADMSG);
		assert_null(p);
	}
}

static void values_are_held_at_the_end(void **state)
{
	static const char heap[] =
		"heap profile: 1: 1 [2: 2] @ heap_v2/9223372036854775807\n"
		"9223372036854775807: 9223372036854775807 [1: 1] @ 0x400101\n";
	static const char waits[] =
		"--- contention:\ncycles/second=1\nsampling period=9223372036854775807\n"
		"9223372036854775807 3 @ 0x400101\n";

	(void)state;
	expect(read_text(heap), ALL, INT64_MAX,
	       "0x400100 9223372036854775807 9223372036854775807 9223372036854775807 "
	       "9223372036854775807 "
	       "bytes=1\n");
	expect(read_text(waits), "contentions/count delay/nanoseconds", INT64_MAX,
	       "0x400100 9223372036854775807 9223372036854775807\n");
}

static void memory_is_bounded(void **state)
{
	char *text = NULL;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);
	struct profile *p;

	(void)state;
	assert_non_null(f);
	fputs("x profile: total 1\n", f);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "1 @ 0x%x\n", 0x1000 + i);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(pprof_read_within(text, sz, 50000, &p), -E2BIG);
	assert_int_equal(pprof_read_within(text, sz, 1000000, &p), 0);
	assert_int_equal(p->sample_cnt, 1000);
	profile__free(p);
	free(text);
}

static void zipped(void **state)
{
	static const char text[] = "x profile: total 1\n1 @ 0x400101\n" MEMORY_MAP;
	char data[1024];
	z_stream z = { .next_in = (Bytef *)text,
		       .avail_in = sizeof(text) - 1,
		       .next_out = (Bytef *)data,
		       .avail_out = sizeof(data) };

	(void)state;
	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	expect(read_all(data, z.total_out), "x/count", 1, "an app+0x1100 1\n");
	deflateEnd(&z);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_again),
		cmocka_unit_test(cpu_of_all_words),
		cmocka_unit_test(cpu_is_theirs),
		cmocka_unit_test(heap_kinds),
		cmocka_unit_test(heap_sizes),
		cmocka_unit_test(contention),
		cmocka_unit_test(counts),
		cmocka_unit_test(threads),
		cmocka_unit_test(threads_with_words),
		cmocka_unit_test(mappings),
		cmocka_unit_test(names),
		cmocka_unit_test(refused),
		cmocka_unit_test(values_are_held_at_the_end),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(zipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
