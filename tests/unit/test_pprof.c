/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of profile/pprof: read back by protobuf-c's decoder, and by pprof, which writes what it has
 * read for that decoder: compared with the model. Equal bytes for equal content whatever the order
 * in which it was added.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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
#include "profile.pb-c.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "written.h"

typedef Perftools__Profiles__Profile pb_profile;

static const struct profile_value_type types[] = { { "samples", "count" },
						   { "cpu", "nanoseconds" } };

/* Decompresses: one gzip member, without a time or a name, and nothing behind it. */
static struct bytes inflated(const struct bytes *in)
{
	struct bytes out = { malloc(64 << 20), 0 };
	z_stream z = { 0 };

	assert_true(in->sz > 18);
	assert_memory_equal(in->data, "\x1f\x8b\x08\0\0\0\0\0", 8);
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	z.next_in = (Bytef *)in->data;
	z.avail_in = (uInt)in->sz;
	z.next_out = (Bytef *)out.data;
	z.avail_out = 64 << 20;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	out.sz = z.total_out;
	inflateEnd(&z);
	return out;
}

static pb_profile *decoded(const struct bytes *in)
{
	struct bytes raw = inflated(in);
	pb_profile *m = perftools__profiles__profile__unpack(NULL, raw.sz, (uint8_t *)raw.data);

	free(raw.data);
	assert_non_null(m);
	return m;
}

/* ---- One text for both: what belongs to a sample, by value and not by id; sorted ---- */

/* Text labels come before numbers, as pprof writes them: their order means nothing. */
static void print_label(FILE *f, bool numbers, const char *key, const char *str, int64_t num,
			const char *unit)
{
	if (numbers && !*str)
		fprintf(f, "{%s=%" PRId64 " %s} ", key, num, unit);
	else if (!numbers && *str)
		fprintf(f, "{%s=%s} ", key, str);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *joined(char **lines, size_t cnt)
{
	struct bytes b = { 0 };
	FILE *f = open_memstream(&b.data, &b.sz);
	size_t i;

	qsort(lines, cnt, sizeof(*lines), compare_text);
	for (i = 0; i < cnt; i++) {
		fprintf(f, "%s\n", lines[i]);
		free(lines[i]);
	}
	free(lines);
	fclose(f);
	return b.data;
}

static char *model_text(const struct profile *p)
{
	char **lines = calloc(p->sample_cnt + 1, sizeof(*lines));
	size_t sz, i, j, k;

	for (i = 0; i < p->sample_cnt; i++) {
		const struct profile_sample *s = &p->samples[i];
		FILE *f = open_memstream(&lines[i], &sz);

		for (j = 0; j < p->value_cnt; j++)
			fprintf(f, "%" PRId64 " ", profile__values(p, s)[j]);
		for (j = 0; j < 2 * s->label_cnt; j++) {
			const struct profile_label *l = &p->labels[s->label + j % s->label_cnt];

			print_label(f, j >= s->label_cnt, strtab__get(p->strings, l->key),
				    strtab__get(p->strings, l->str), l->num,
				    strtab__get(p->strings, l->num_unit));
		}
		for (j = 0; j < s->loc_cnt; j++) {
			const struct profile_location *l = &p->locations[p->loc_ids[s->loc + j]];

			fprintf(f, "\n\t%" PRIx64, l->address);
			if (l->mapping != PROFILE_NONE) {
				const struct profile_mapping *m = &p->mappings[l->mapping];

				fprintf(f, " in %s %s %" PRIx64 "-%" PRIx64 "+%" PRIx64,
					strtab__get(p->strings, m->filename),
					strtab__get(p->strings, m->build_id), m->start, m->limit,
					m->offset);
			}
			for (k = 0; k < l->line_cnt; k++) {
				const struct profile_line *line = &p->lines[l->line + k];
				const struct profile_function *fn = &p->functions[line->function];

				fprintf(f, " %s=%s@%s:%" PRId64 ":%" PRId64,
					strtab__get(p->strings, fn->name),
					strtab__get(p->strings, fn->system_name),
					strtab__get(p->strings, fn->filename), fn->start_line,
					line->line);
			}
		}
		fclose(f);
	}
	return joined(lines, p->sample_cnt);
}

static const char *string(const pb_profile *m, int64_t idx)
{
	assert_in_range(idx, 0, m->n_string_table - 1);
	return m->string_table[idx];
}

static void print_decoded_mapping(const pb_profile *m, uint64_t id, FILE *f)
{
	const Perftools__Profiles__Mapping *map;

	assert_in_range(id, 1, m->n_mapping);
	map = m->mapping[id - 1];
	fprintf(f, " in %s %s %" PRIx64 "-%" PRIx64 "+%" PRIx64, string(m, map->filename),
		string(m, map->build_id), map->memory_start, map->memory_limit, map->file_offset);
}

static void print_decoded_location(const pb_profile *m, uint64_t id, FILE *f)
{
	const Perftools__Profiles__Location *l;
	size_t k;

	assert_in_range(id, 1, m->n_location);
	l = m->location[id - 1];
	fprintf(f, "\n\t%" PRIx64, l->address);
	if (l->mapping_id)
		print_decoded_mapping(m, l->mapping_id, f);
	for (k = 0; k < l->n_line; k++) {
		const Perftools__Profiles__Function *fn;

		assert_in_range(l->line[k]->function_id, 1, m->n_function);
		fn = m->function[l->line[k]->function_id - 1];
		fprintf(f, " %s=%s@%s:%" PRId64 ":%" PRId64, string(m, fn->name),
			string(m, fn->system_name), string(m, fn->filename), fn->start_line,
			l->line[k]->line);
	}
}

static char *decoded_text(const pb_profile *m)
{
	char **lines = calloc(m->n_sample + 1, sizeof(*lines));
	size_t sz, i, j;

	for (i = 0; i < m->n_sample; i++) {
		const Perftools__Profiles__Sample *s = m->sample[i];
		FILE *f = open_memstream(&lines[i], &sz);

		for (j = 0; j < s->n_value; j++)
			fprintf(f, "%" PRId64 " ", s->value[j]);
		for (j = 0; j < 2 * s->n_label; j++) {
			const Perftools__Profiles__Label *l = s->label[j % s->n_label];

			print_label(f, j >= s->n_label, string(m, l->key), string(m, l->str),
				    l->num, string(m, l->num_unit));
		}
		for (j = 0; j < s->n_location_id; j++)
			print_decoded_location(m, s->location_id[j], f);
		fclose(f);
	}
	return joined(lines, m->n_sample);
}

/* All of a file: what stands in it once, and its samples. */
static char *content_text(const pb_profile *m)
{
	char *samples = decoded_text(m);
	struct bytes b = { 0 };
	FILE *f = open_memstream(&b.data, &b.sz);
	size_t i;

	for (i = 0; i < m->n_comment; i++)
		fprintf(f, "comment: %s\n", string(m, m->comment[i]));
	fprintf(f,
		"period: %" PRId64 " %s %s\ntime: %" PRId64 " for %" PRId64 "\nvalues:", m->period,
		string(m, m->period_type->type), string(m, m->period_type->unit), m->time_nanos,
		m->duration_nanos);
	for (i = 0; i < m->n_sample_type; i++)
		fprintf(f, " %s/%s", string(m, m->sample_type[i]->type),
			string(m, m->sample_type[i]->unit));
	fprintf(f, "\nshown: %s\n", string(m, m->default_sample_type));
	if (m->drop_frames)
		fprintf(f, "hidden: %s\nbut not: %s\n", string(m, m->drop_frames),
			string(m, m->keep_frames));
	fputs(samples, f);
	free(samples);
	fclose(f);
	return b.data;
}

/* What is known of each mapping; pprof merges two of one file. */
static void print_mappings(const pb_profile *m, FILE *f)
{
	size_t i;

	for (i = 0; i < m->n_mapping; i++) {
		const Perftools__Profiles__Mapping *map = m->mapping[i];

		fprintf(f, "mapping:%s%s%s%s", map->has_functions ? " functions" : "",
			map->has_filenames ? " files" : "", map->has_line_numbers ? " lines" : "",
			map->has_inline_frames ? " inlined" : "");
		print_decoded_mapping(m, i + 1, f);
		fputc('\n', f);
	}
}

/* What every reader may rely on. */
static void check_form(const pb_profile *m)
{
	uint32_t cp;
	size_t i, j;

	assert_true(m->n_string_table > 0);
	assert_string_equal(m->string_table[0], "");
	for (i = 0; i < m->n_string_table; i++) {
		const char *s = m->string_table[i];

		for (; *s; s += util_utf8(s, &cp))
			assert_true(util_utf8(s, &cp) > 0);
		for (j = 0; j < i; j++)
			assert_string_not_equal(m->string_table[i], m->string_table[j]);
	}
	for (i = 0; i < m->n_mapping; i++)
		assert_int_equal(m->mapping[i]->id, i + 1);
	for (i = 0; i < m->n_location; i++)
		assert_int_equal(m->location[i]->id, i + 1);
	for (i = 0; i < m->n_function; i++)
		assert_int_equal(m->function[i]->id, i + 1);
	for (i = 0; i < m->n_sample; i++)
		assert_int_equal(m->sample[i]->n_value, m->n_sample_type);
}

/* How often a field stands in the message itself: 9, the time, must not be repeated. */
static size_t count_field(const struct bytes *raw, unsigned int field)
{
	const uint8_t *p = (uint8_t *)raw->data, *end = p + raw->sz;
	size_t cnt = 0, shift;
	uint64_t tag, len;

	while (p < end) {
		for (tag = 0, shift = 0;; shift += 7) {
			tag |= (uint64_t)(*p & 0x7f) << shift;
			if (!(*p++ & 0x80))
				break;
		}
		for (len = 0, shift = 0;; shift += 7) {
			len |= (uint64_t)(*p & 0x7f) << shift;
			if (!(*p++ & 0x80))
				break;
		}
		cnt += tag >> 3 == field;
		if ((tag & 7) == 2)
			p += len;
		else
			assert_int_equal(tag & 7, 0);
	}
	assert_ptr_equal(p, end);
	return cnt;
}

static void empty_is_valid(void **state)
{
	struct profile *p = profile__new(types, 1, types[1], 1);
	struct bytes b, raw;
	pb_profile *m;

	(void)state;
	p->time_ns = 5;
	assert_int_equal(profile__finish(p), 0);
	b = written(p);
	m = decoded(&b);
	raw = inflated(&b);
	check_form(m);
	assert_int_equal(m->n_sample_type, 1);
	assert_string_equal(string(m, m->sample_type[0]->type), "samples");
	assert_int_equal(m->n_sample + m->n_mapping + m->n_location + m->n_function + m->n_comment,
			 0);
	assert_int_equal(m->time_nanos, 5);
	assert_int_equal(count_field(&raw, 9), 1);
	perftools__profiles__profile__free_unpacked(m, NULL);
	free(raw.data);
	free(b.data);
	profile__free(p);
}

static void content_is_the_models(void **state)
{
	struct profile *p = golden_profile();
	struct bytes b = written(p), raw = inflated(&b);
	pb_profile *m = decoded(&b);
	char *want = model_text(p), *got = decoded_text(m);

	(void)state;
	check_form(m);
	assert_string_equal(got, want);
	assert_int_equal(m->n_sample_type, 2);
	assert_string_equal(string(m, m->sample_type[1]->type), "cpu");
	assert_string_equal(string(m, m->sample_type[1]->unit), "nanoseconds");
	assert_string_equal(string(m, m->period_type->type), "cpu");
	assert_string_equal(string(m, m->period_type->unit), "nanoseconds");
	assert_int_equal(m->period, 10 * GOLDEN_MS);
	assert_int_equal(m->time_nanos, p->time_ns);
	assert_int_equal(m->duration_nanos, p->duration_ns);
	assert_int_equal(m->n_comment, 2);
	assert_string_equal(string(m, m->comment[1]), "#bpfprof test");
	assert_string_equal(string(m, m->mapping[0]->filename), "/usr/bin/app");
	assert_int_equal(count_field(&raw, 9), 1);
	assert_int_equal(count_field(&raw, 11), 1);
	perftools__profiles__profile__free_unpacked(m, NULL);
	free(want);
	free(got);
	free(raw.data);
	free(b.data);
	profile__free(p);
}

static void unused_entries_are_left_out(void **state)
{
	struct profile *p = profile__new(types, 2, types[1], 1);
	struct profile_mapping first = { .start = 0x9000, .limit = 0xa000 },
			       unused = { .start = 0x1000, .limit = 0x2000 };
	struct bytes b;
	pb_profile *m;
	uint32_t loc;

	(void)state;
	first.filename = profile__string(p, "/main");
	unused.filename = profile__string(p, "/unused");
	profile__add_mapping(p, &first);
	golden_location(p, profile__add_mapping(p, &unused), 0x1000, "unused", "unused", "unused.c",
			1);
	loc = profile__add_marker(p, "[used]");
	profile__add_sample(p, &loc, 1, NULL, 0, (int64_t[]){ 1, 2 });
	assert_int_equal(profile__finish(p), 0);
	b = written(p);
	m = decoded(&b);
	check_form(m);
	assert_int_equal(m->n_mapping, 1);
	assert_string_equal(string(m, m->mapping[0]->filename), "/main");
	assert_int_equal(m->n_location, 1);
	assert_int_equal(m->n_function, 1);
	/* "", [used], /main, samples, count, cpu, nanoseconds */
	assert_int_equal(m->n_string_table, 7);
	perftools__profiles__profile__free_unpacked(m, NULL);
	free(b.data);
	profile__free(p);
}

/* ---- The same content, added in any order ---- */

#define NR_LOCS 60
#define NR_SAMPLES 300

static uint32_t next_random(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

static void shuffle(uint32_t *a, uint32_t n, uint32_t *seed)
{
	uint32_t i, j, t;

	for (i = 0; i < n; i++)
		a[i] = i;
	for (i = n; seed && i > 1; i--) {
		j = next_random(seed) % i;
		t = a[i - 1];
		a[i - 1] = a[j];
		a[j] = t;
	}
}

/* Location i: a pure function of i, and of nothing that was added before. Mapping 5 and 6 differ
 * only in their owner. */
static uint32_t varied_location(struct profile *p, uint32_t i, uint32_t owner_seed)
{
	struct profile_mapping m = { 0 };
	uint32_t which = i % 7 >= 5 ? 5 : i % 7, k = i / 7 % 5, loc;
	char text[64];

	if (i % 11 == 10) {
		snprintf(text, sizeof(text), "[marker %u]", k % 3);
		return profile__add_marker(p, text);
	}
	snprintf(text, sizeof(text), "/lib/lib%u.so", which);
	m.filename = profile__string(p, text);
	m.start = 0x1000000 - which * 0x10000;
	m.limit = m.start + 0x8000;
	m.owner = i % 7 == 6 ? owner_seed + 1 : owner_seed;
	snprintf(text, sizeof(text), k % 4 ? "function\xff%u" : "lib+0x%x", k);
	loc = golden_location(p, profile__add_mapping(p, &m), m.start + k * 16, text,
			      k % 4 ? text : "", k % 4 == 3 ? "f.c" : "", k * 10);
	return loc;
}

static void varied_sample(struct profile *p, const uint32_t *locs, uint32_t i, uint32_t *seed)
{
	uint32_t r = i, stack[8], cnt = next_random(&r) % 8, label_cnt = next_random(&r) % 3, j;
	struct profile_label labels[2] = { 0 }, t;
	int64_t values[2], part;

	for (j = 0; j < cnt; j++)
		stack[j] = locs[next_random(&r) % NR_LOCS];
	labels[0].key = profile__string(p, "thread");
	labels[0].str = profile__string(p, next_random(&r) % 2 ? "one" : "two\xc3");
	labels[1].key = profile__string(p, "pid");
	labels[1].num = next_random(&r) % 3;
	labels[1].num_unit = labels[1].key;
	values[0] = next_random(&r) % 100 + 2;
	values[1] = values[0] * 1000;
	if (seed && label_cnt == 2 && next_random(seed) % 2) {
		t = labels[0];
		labels[0] = labels[1];
		labels[1] = t;
	}
	part = seed ? next_random(seed) % values[0] : 0;
	profile__add_sample(p, stack, cnt, labels, label_cnt, (int64_t[]){ part, part });
	profile__add_sample(p, stack, cnt, labels, label_cnt,
			    (int64_t[]){ values[0] - part, values[1] - part });
}

static struct profile *varied_profile(uint32_t *seed)
{
	struct profile *p = profile__new(types, 2, types[1], 1);
	uint32_t order[NR_SAMPLES], locs[NR_LOCS], i, owner = seed ? next_random(seed) % 2 : 0;
	struct profile_mapping first = { .start = 0x2000000,
					 .limit = 0x2001000,
					 .filename = profile__string(p, "/main") };

	if (seed && *seed % 2)
		profile__string(p, "never used");
	profile__add_mapping(p, &first);
	shuffle(order, NR_LOCS, seed);
	for (i = 0; i < NR_LOCS; i++)
		locs[order[i]] = varied_location(p, order[i], owner);
	shuffle(order, NR_SAMPLES, seed);
	for (i = 0; i < NR_SAMPLES; i++)
		varied_sample(p, locs, order[i], seed);
	assert_int_equal(profile__finish(p), 0);
	return p;
}

static struct bytes varied_text(const struct profile *p)
{
	struct bytes b = { 0 };
	FILE *f = open_memstream(&b.data, &b.sz);

	assert_int_equal(folded_write(p, f), 0);
	assert_int_equal(text_write(p, f, 0), 0);
	fclose(f);
	return b;
}

static void order_does_not_show(void **state)
{
	struct profile *p = varied_profile(NULL);
	struct bytes first = written(p), text = varied_text(p), b;
	pb_profile *m = decoded(&first);
	uint32_t round, seed;

	(void)state;
	check_form(m);
	assert_true(m->n_sample > 100);
	/* six libraries, some in two halves, and /main; the twin that only its owner tells apart is
	 * no entry */
	assert_in_range(m->n_mapping, 8, 13);
	/* what was added first stays first, although its address is the highest */
	assert_string_equal(string(m, m->mapping[0]->filename), "/main");
	perftools__profiles__profile__free_unpacked(m, NULL);
	profile__free(p);
	for (round = 1; round <= 20; round++) {
		seed = round * 7919;
		p = varied_profile(&seed);
		b = written(p);
		assert_int_equal(b.sz, first.sz);
		assert_memory_equal(b.data, first.data, b.sz);
		free(b.data);
		b = varied_text(p);
		assert_string_equal(b.data, text.data);
		free(b.data);
		/* and it is not that everything gives these bytes */
		profile__add_sample(p, NULL, 0, NULL, 0, (int64_t[]){ 1, 1 });
		b = written(p);
		assert_true(b.sz != first.sz || memcmp(b.data, first.data, b.sz));
		free(b.data);
		profile__free(p);
	}
	free(text.data);
	free(first.data);
}

/* Equal stacks of two processes in mappings that only their owner tells apart are one sample in the
 * file. */
static void owners_do_not_show(void **state)
{
	struct profile *p = profile__new(types, 1, types[1], 1);
	struct profile_mapping m = { .start = 0x1000, .limit = 0x2000 };
	struct bytes b;
	pb_profile *pb;
	uint32_t loc;

	(void)state;
	for (m.owner = 0; m.owner < 3; m.owner++) {
		loc = golden_location(p, profile__add_mapping(p, &m), 0x1800, "f", "f", "f.c", 1);
		profile__add_sample(p, &loc, 1, NULL, 0, (int64_t[]){ 2 });
	}
	assert_int_equal(p->sample_cnt, 3);
	assert_int_equal(profile__finish(p), 0);
	b = written(p);
	pb = decoded(&b);
	check_form(pb);
	assert_int_equal(pb->n_mapping, 1);
	assert_int_equal(pb->n_location, 1);
	assert_int_equal(pb->n_sample, 1);
	assert_int_equal(pb->sample[0]->value[0], 6);
	perftools__profiles__profile__free_unpacked(pb, NULL);
	free(b.data);
	profile__free(p);
}

/* ---- Hostile content, and failures ---- */

static void hostile_names_survive(void **state)
{
	struct profile *p = profile__new(types, 1, types[1], 1);
	struct profile_label label = { 0 };
	char *want, *got, *big = malloc(200001);
	struct bytes b;
	pb_profile *m;
	uint32_t loc[3];

	(void)state;
	memset(big, '\xff', 200000);
	big[200000] = '\0';
	loc[0] = golden_location(p, PROFILE_NONE, 0, big, "\xed\xa0\x80", "\n\xc0\x80", INT64_MAX);
	loc[1] = golden_location(p, PROFILE_NONE, UINT64_MAX, "(.*)\\", "%n%s", "\x01", INT64_MIN);
	loc[2] = profile__add_location(p, PROFILE_NONE, 1);
	profile__set_lines(p, loc[2], (struct profile_line[600]){ { 0 } }, 600);
	label.key = profile__string(p, "thread");
	label.str = profile__string(p, "a)\n\xff");
	profile__add_sample(p, loc, 3, &label, 1, (int64_t[]){ INT64_MIN });
	profile__add_sample(p, NULL, 0, &label, 1, (int64_t[]){ -1 });
	assert_int_equal(profile__finish(p), 0);
	b = written(p);
	m = decoded(&b);
	check_form(m);
	want = model_text(p);
	got = decoded_text(m);
	assert_string_equal(got, want);
	perftools__profiles__profile__free_unpacked(m, NULL);
	free(want);
	free(got);
	free(b.data);
	free(big);
	profile__free(p);
}

static void large_profiles_pass_through(void **state)
{
	struct profile *p = profile__new(types, 2, types[1], 1);
	uint32_t locs[40], i, j, x = 3;
	struct bytes b;
	pb_profile *m;

	(void)state;
	for (i = 0; i < 5000; i++)
		profile__add_location(p, PROFILE_NONE, i * 16);
	for (i = 0; i < 20000; i++) {
		for (j = 0; j < 40; j++)
			locs[j] = next_random(&x) % 5000;
		profile__add_sample(p, locs, 40, NULL, 0, (int64_t[]){ 1, i });
	}
	assert_int_equal(profile__finish(p), 0);
	b = written(p);
	/* more than one buffer of output */
	assert_true(b.sz > 1 << 20);
	m = decoded(&b);
	assert_int_equal(m->n_sample, 20000);
	for (i = 0, x = 0; i < 20000; i++)
		x += m->sample[i]->value[1] + (uint32_t)m->sample[i]->n_location_id;
	assert_int_equal(x, 19999 * 10000 + 20000 * 40);
	perftools__profiles__profile__free_unpacked(m, NULL);
	free(b.data);
	profile__free(p);
}

static void full_disk_is_reported(void **state)
{
	struct profile *p = golden_profile();
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	assert_int_equal(pprof_write(p, f), -ENOSPC);
	fclose(f);
	profile__free(p);
}

/* ---- What lies in tests/golden: the content, and a checksum of each byte of the message ---- */

static void check_golden(const struct profile *p, const char *name, FILE *sums)
{
	struct bytes b = written(p), raw = inflated(&b);
	struct bytes all = { 0 };
	pb_profile *m = decoded(&b);
	char *text = content_text(m), file[64];
	FILE *f = open_memstream(&all.data, &all.sz);

	check_form(m);
	print_mappings(m, f);
	fputs(text, f);
	fclose(f);
	snprintf(file, sizeof(file), "%s.content", name);
	golden_compare(file, all.data);
	free(all.data);
	fprintf(sums, "%s: %zu bytes, crc32 %08lx\n", name, raw.sz,
		crc32(0, (const Bytef *)raw.data, (uInt)raw.sz));
	perftools__profiles__profile__free_unpacked(m, NULL);
	free(text);
	free(raw.data);
	free(b.data);
}

static void golden_bytes(void **state)
{
	struct profile *p = golden_profile();
	struct bytes sums = { 0 };
	FILE *f = open_memstream(&sums.data, &sums.sz);

	(void)state;
	check_golden(p, "basic", f);
	profile__free(p);
	p = golden_heap_profile();
	check_golden(p, "heap", f);
	profile__free(p);
	for (int kind = BPFPROF_BLOCK; kind <= BPFPROF_THREADS; kind++) {
		p = golden_kind_profile(kind);
		check_golden(p, kinds[kind].name, f);
		profile__free(p);
	}
	fclose(f);
	golden_compare("bytes.txt", sums.data);
	free(sums.data);
}

/* ---- The reference reader ---- */

/* pprof reads it, and writes what it has read: versions differ in how they print that, and in the
 * ids that they give. */
static void check_reread(const struct bytes *b)
{
	struct bytes again = { 0 };
	pb_profile *ours = decoded(b), *theirs;
	char *want = content_text(ours), *got;

	again.data = golden_pprof("-proto -output=/dev/stdout", b->data, b->sz, &again.sz);
	theirs = decoded(&again);
	got = content_text(theirs);
	if (strcmp(got, want))
		fprintf(stderr, "pprof has read:\n%sof:\n%s", got, want);
	assert_string_equal(got, want);
	perftools__profiles__profile__free_unpacked(ours, NULL);
	perftools__profiles__profile__free_unpacked(theirs, NULL);
	free(again.data);
	free(want);
	free(got);
}

static void go_reads_it(void **state)
{
	struct profile *p;
	struct bytes b;
	char *text;

	(void)state;
	if (!golden_have_pprof())
		skip();
	p = golden_profile();
	b = written(p);
	check_reread(&b);
	text = golden_pprof("-comments", b.data, b.sz, NULL);
	assert_string_equal(text, "recorded 180 of 180 samples\n#bpfprof test\n");
	free(text);
	free(b.data);
	profile__free(p);
}

/* Does pprof print this line, when asked for a table of that value? Columns are one space apart. */
static void check_top(const struct bytes *b, const char *options, const char *line)
{
	char all[128], *text;

	snprintf(all, sizeof(all), "-top -nodefraction=0 %s", options);
	text = golden_pprof(all, b->data, b->sz, NULL);
	golden_squeeze(text);
	if (!strstr(text, line))
		fail_msg("pprof %s does not print '%s' but:\n%s", all, line, text);
	free(text);
}

static void go_reads_a_heap(void **state)
{
	struct profile *p;
	struct bytes b;

	(void)state;
	if (!golden_have_pprof())
		skip();
	p = golden_heap_profile();
	b = written(p);
	check_reread(&b);
	/* what is in use is shown where nothing else is asked for: 1285 * 4096 + 3 * 256 KiB +
	 * 1 MiB */
	check_top(&b, "", "Type: inuse_space\n");
	check_top(&b, "-unit=B", "7098368B 100% 100% 7098368B 100% cache_put\n");
	check_top(&b, "-unit=B -sample_index=inuse_space", "7098368B 100% main\n");
	check_top(&b, "-unit=B -sample_index=alloc_space", "5242880B 28.92% 100% 6291456B");
	check_top(&b, "-sample_index=alloc_objects", "81920 13.46% 99.58% 81921 13.46% parse\n");
	check_top(&b, "-sample_index=inuse_objects", "1289 0.25% 100% 1289 0.25% cache_put\n");
	check_top(&b, "-sample_index=inuse_space -tagfocus=4096b:4096b",
		  "5.02MB 74.15% cache_put\n");
	free(b.data);
	profile__free(p);
}

static void go_reads_waits_and_threads(void **state)
{
	(void)state;
	if (!golden_have_pprof())
		skip();
	for (int kind = BPFPROF_BLOCK; kind <= BPFPROF_THREADS; kind++) {
		struct profile *p = golden_kind_profile(kind);
		struct bytes b = written(p);

		check_reread(&b);
		if (kind == BPFPROF_OFFCPU) {
			check_top(&b, "", "Type: delay\n");
			check_top(&b, "-unit=ms '-tagfocus=reason=^run queue$'",
				  "4ms 0.14% 0.14% 4ms 0.14% take\n");
		}
		free(b.data);
		profile__free(p);
	}
}

/* The same without what is in use, which bpfprof leaves out where probes were not attached all the
 * time. */
static void go_reads_a_sliced_heap(void **state)
{
	struct profile *p;
	struct bytes b;
	pb_profile *m;

	(void)state;
	if (!golden_have_pprof())
		skip();
	p = golden_heap_values(2);
	b = written(p);
	m = decoded(&b);
	check_form(m);
	assert_int_equal(m->n_sample_type, 2);
	perftools__profiles__profile__free_unpacked(m, NULL);
	check_top(&b, "", "Type: alloc_space\n");
	check_top(&b, "-sample_index=alloc_objects", "81920 13.46% 99.58% 81921 13.46% parse\n");
	free(b.data);
	profile__free(p);
}

static void go_reads_empty(void **state)
{
	struct profile *p;
	struct bytes b;

	(void)state;
	if (!golden_have_pprof())
		skip();
	p = profile__new(types, 2, types[1], 7);
	assert_int_equal(profile__finish(p), 0);
	b = written(p);
	check_reread(&b);
	free(b.data);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_is_valid),
		cmocka_unit_test(content_is_the_models),
		cmocka_unit_test(unused_entries_are_left_out),
		cmocka_unit_test(order_does_not_show),
		cmocka_unit_test(owners_do_not_show),
		cmocka_unit_test(hostile_names_survive),
		cmocka_unit_test(large_profiles_pass_through),
		cmocka_unit_test(full_disk_is_reported),
		cmocka_unit_test(golden_bytes),
		cmocka_unit_test(go_reads_it),
		cmocka_unit_test(go_reads_a_heap),
		cmocka_unit_test(go_reads_a_sliced_heap),
		cmocka_unit_test(go_reads_waits_and_threads),
		cmocka_unit_test(go_reads_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
