/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profile/pprof_read: what was written is read and written again, to the same bytes; what pprof makes
 * of it is read as well; what refers to nothing, or is cut anywhere, is refused.
 */
#include "profile/pprof_read.h"

#include <errno.h>
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
#include "cpu_limit.h"
#include "golden.h"
#include "golden_profile.h"
#include "profile.pb-c.h"
#include "profile/merge.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/split.h"
#include "written.h"

typedef Perftools__Profiles__Profile pb_profile;

static struct profile *read_back(const void *data, size_t sz)
{
	struct profile *p;

	assert_int_equal(pprof_read(data, sz, &p), 0);
	assert_int_equal(profile__finish(p), 0);
	return p;
}

static void check_same(const struct bytes *want, const void *data, size_t sz)
{
	struct profile *p = read_back(data, sz);
	struct bytes got = written(p);

	assert_int_equal(got.sz, want->sz);
	assert_memory_equal(got.data, want->data, want->sz);
	free(got.data);
	profile__free(p);
}

/* What pprof makes of it has the same samples; some versions leave out what says nothing. */
static void check_theirs(const struct bytes *ours, const void *data, size_t sz)
{
	struct profile *p = read_back(ours->data, ours->sz), *q = read_back(data, sz);

	assert_int_equal(q->sample_cnt, p->sample_cnt);
	assert_int_equal(q->value_cnt, p->value_cnt);
	assert_int_equal(q->function_cnt, p->function_cnt);
	assert_int_equal(q->comment_cnt, p->comment_cnt);
	for (size_t v = 0; v < p->value_cnt; v++) {
		int64_t a = 0, b = 0;

		for (size_t i = 0; i < p->sample_cnt; i++) {
			a += profile__values(p, &p->samples[i])[v] * (1 + p->samples[i].loc_cnt);
			b += profile__values(q, &q->samples[i])[v] * (1 + q->samples[i].loc_cnt);
		}
		assert_int_equal(a, b);
	}
	profile__free(p);
	profile__free(q);
}

/* Takes p. */
static void check_round(struct profile *p)
{
	struct bytes b = written(p), theirs = { 0 };

	check_same(&b, b.data, b.sz);
	if (golden_have_pprof()) {
		theirs.data = golden_pprof("-proto -output=/dev/stdout", b.data, b.sz, &theirs.sz);
		check_theirs(&b, theirs.data, theirs.sz);
		free(theirs.data);
	}
	free(b.data);
	profile__free(p);
}

static void same_bytes(void **state)
{
	(void)state;
	check_round(golden_profile());
	check_round(golden_heap_profile());
	for (int kind = BPFPROF_BLOCK; kind <= BPFPROF_THREADS; kind++)
		check_round(golden_kind_profile(kind));
}

static void every_field(void **state)
{
	struct profile *p = golden_heap_profile(), *q;
	struct bytes b;

	(void)state;
	p->default_type = profile__string(p, p->value_types[1].type);
	b = written(p);
	q = read_back(b.data, b.sz);
	assert_int_equal(profile__default_value(q), 1);
	assert_int_equal(q->value_cnt, p->value_cnt);
	for (size_t i = 0; i < p->value_cnt; i++) {
		assert_string_equal(q->value_types[i].type, p->value_types[i].type);
		assert_string_equal(q->value_types[i].unit, p->value_types[i].unit);
	}
	assert_string_equal(q->period_type.type, p->period_type.type);
	assert_string_equal(q->period_type.unit, p->period_type.unit);
	assert_int_equal(q->period, p->period);
	assert_int_equal(q->time_ns, p->time_ns);
	assert_int_equal(q->duration_ns, p->duration_ns);
	assert_string_equal(strtab__get(q->strings, q->drop_frames),
			    strtab__get(p->strings, p->drop_frames));
	assert_string_equal(strtab__get(q->strings, q->keep_frames),
			    strtab__get(p->strings, p->keep_frames));
	assert_int_equal(q->comment_cnt, p->comment_cnt);
	free(b.data);
	profile__free(p);
	profile__free(q);
}

/* value_cnt values of so many samples, each of another type: that of sample i and type v is i * v + 1. */
static struct profile *many_values(size_t value_cnt, size_t sample_cnt)
{
	struct profile_value_type types[PROFILE_MAX_VALUES];
	int64_t values[PROFILE_MAX_VALUES];
	char names[PROFILE_MAX_VALUES][8];
	struct profile *p;

	for (size_t v = 0; v < value_cnt; v++) {
		snprintf(names[v], sizeof(names[v]), "t%02zu", v);
		types[v] = (struct profile_value_type){ names[v], v % 2 ? "count" : "bytes" };
	}
	p = profile__new(types, value_cnt, types[0], 1);
	assert_non_null(p);
	for (size_t i = 0; i < sample_cnt; i++) {
		char name[16];
		uint32_t loc;

		snprintf(name, sizeof(name), "f%06zu", i);
		loc = profile__add_marker(p, name);
		for (size_t v = 0; v < value_cnt; v++)
			values[v] = (int64_t)(i * v + 1);
		assert_int_equal(profile__add_sample(p, &loc, 1, NULL, 0, values), i);
	}
	assert_int_equal(profile__finish(p), 0);
	return p;
}

static void many_types(void **state)
{
	(void)state;
	for (size_t cnt = 5; cnt <= PROFILE_MAX_VALUES; cnt = cnt * 4 - 1) {
		struct profile *p = many_values(cnt, 100), *q;
		struct bytes b = written(p);

		q = read_back(b.data, b.sz);
		assert_int_equal(q->value_cnt, cnt);
		for (size_t v = 0; v < cnt; v++) {
			assert_string_equal(q->value_types[v].type, p->value_types[v].type);
			assert_string_equal(q->value_types[v].unit, p->value_types[v].unit);
			assert_int_equal(profile__total(q, v), 100 + 4950 * v);
		}
		free(b.data);
		profile__free(q);
		check_round(p);
	}
}

/* ---- what others write ---- */

/* A message with these tables, gzip'd or not. */
static struct bytes packed(const pb_profile *m)
{
	struct bytes b = { .sz = perftools__profiles__profile__get_packed_size(m) };

	b.data = malloc(b.sz + 1);
	assert_int_equal(perftools__profiles__profile__pack(m, (uint8_t *)b.data), b.sz);
	return b;
}

static struct bytes zipped(const struct bytes *in, size_t from, size_t to)
{
	struct bytes out = { malloc(in->sz + 1024), 0 };
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)in->data + from;
	z.avail_in = (uInt)(to - from);
	z.next_out = (Bytef *)out.data;
	z.avail_out = (uInt)in->sz + 1024;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out.sz = z.total_out;
	deflateEnd(&z);
	return out;
}

/* The smallest that has one of each, as an interpreter might write it: no mapping, no address. */
struct small {
	pb_profile m;
	char *strings[4];
	Perftools__Profiles__ValueType type, *type_ptr[1];
	Perftools__Profiles__Function fns[2], *fn_ptr[2];
	Perftools__Profiles__Line lines[2], *line_ptr[2];
	Perftools__Profiles__Location locs[2], *loc_ptr[2];
	Perftools__Profiles__Label label, *label_ptr[1];
	Perftools__Profiles__Sample samples[2], *sample_ptr[2];
	uint64_t ids[2];
	int64_t values[2];
};

static void init_small(struct small *s)
{
	*s = (struct small){ .strings = { "", "samples", "one", "two" }, .values = { 3, 4 } };
	perftools__profiles__profile__init(&s->m);
	s->m.n_string_table = 4;
	s->m.string_table = s->strings;
	perftools__profiles__value_type__init(&s->type);
	s->type.type = s->type.unit = 1;
	s->type_ptr[0] = &s->type;
	s->m.n_sample_type = 1;
	s->m.sample_type = s->type_ptr;
	perftools__profiles__label__init(&s->label);
	s->label.key = 1;
	s->label.str = 2;
	s->label_ptr[0] = &s->label;
	for (size_t i = 0; i < 2; i++) {
		perftools__profiles__function__init(&s->fns[i]);
		s->fns[i].id = 70 + i;
		s->fns[i].name = (int64_t)(2 + i);
		s->fn_ptr[i] = &s->fns[i];
		perftools__profiles__line__init(&s->lines[i]);
		s->lines[i].function_id = 70 + i;
		s->line_ptr[i] = &s->lines[i];
		perftools__profiles__location__init(&s->locs[i]);
		s->locs[i].id = 1ULL << 40 | i;
		s->locs[i].n_line = 1;
		s->locs[i].line = &s->line_ptr[i];
		s->loc_ptr[i] = &s->locs[i];
		perftools__profiles__sample__init(&s->samples[i]);
		s->ids[i] = s->locs[i].id;
		s->samples[i].n_location_id = 1;
		s->samples[i].location_id = &s->ids[i];
		s->samples[i].n_value = 1;
		s->samples[i].value = &s->values[i];
		s->samples[i].n_label = 1;
		s->samples[i].label = s->label_ptr;
		s->sample_ptr[i] = &s->samples[i];
	}
	s->m.n_function = s->m.n_location = s->m.n_sample = 2;
	s->m.function = s->fn_ptr;
	s->m.location = s->loc_ptr;
	s->m.sample = s->sample_ptr;
}

static int read_small(const struct small *s)
{
	struct bytes b = packed(&s->m);
	struct profile *p;
	int err = pprof_read(b.data, b.sz, &p);

	assert_true(err ? !p : p != NULL);
	profile__free(p);
	free(b.data);
	return err;
}

static void without_addresses(void **state)
{
	struct small s;
	struct bytes b, parts[2];
	struct profile *p;

	(void)state;
	init_small(&s);
	b = packed(&s.m);
	p = read_back(b.data, b.sz);
	assert_int_equal(p->sample_cnt, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct profile_location *l = &p->locations[p->loc_ids[p->samples[i].loc]];

		assert_string_equal(
			strtab__get(p->strings, p->functions[p->lines[l->line].function].name),
			i ? "two" : "one");
		assert_int_equal(profile__values(p, &p->samples[i])[0], 3 + i);
	}
	profile__free(p);
	/* two members of gzip are one file */
	parts[0] = zipped(&b, 0, b.sz / 2);
	parts[1] = zipped(&b, b.sz / 2, b.sz);
	parts[0].data = realloc(parts[0].data, parts[0].sz + parts[1].sz);
	memcpy(parts[0].data + parts[0].sz, parts[1].data, parts[1].sz);
	p = read_back(parts[0].data, parts[0].sz + parts[1].sz);
	assert_int_equal(p->sample_cnt, 2);
	profile__free(p);
	free(parts[0].data);
	free(parts[1].data);
	free(b.data);
}

#define REFUSED(change, err)                                    \
	do {                                                    \
		struct small s;                                 \
		init_small(&s);                                 \
		assert_int_equal(read_small(&s), 0);            \
		change;                                         \
		if (read_small(&s) != (err))                    \
			fail_msg("%s is not refused", #change); \
	} while (0)

static void refusals(void **state)
{
	Perftools__Profiles__ValueType *many[PROFILE_MAX_VALUES + 1];

	(void)state;
	REFUSED(s.m.n_string_table = 0, -EBADMSG);
	REFUSED(s.strings[0] = "x", -EBADMSG);
	REFUSED(s.m.n_sample_type = 0, -EBADMSG);
	for (size_t cnt = PROFILE_MAX_VALUES; cnt <= PROFILE_MAX_VALUES + 1; cnt++)
		REFUSED(for (size_t i = 0; i < cnt; i++) many[i] = &s.type; s.m.sample_type = many;
			s.m.n_sample_type = cnt, cnt > PROFILE_MAX_VALUES ? -E2BIG : -EBADMSG);
	REFUSED(s.type.unit = 4, -EBADMSG);
	REFUSED(s.type.type = -1, -EBADMSG);
	REFUSED(s.m.default_sample_type = 4, -EBADMSG);
	REFUSED(s.m.drop_frames = INT64_MAX, -EBADMSG);
	REFUSED(s.m.keep_frames = INT64_MIN, -EBADMSG);
	REFUSED(s.m.n_comment = 1; s.m.comment = (int64_t[]){ 4 }, -EBADMSG);
	REFUSED(s.m.period_type = &s.type; s.type.type = 9, -EBADMSG);
	REFUSED(s.fns[1].id = 70, -EBADMSG);
	REFUSED(s.fns[1].id = 0, -EBADMSG);
	REFUSED(s.fns[0].filename = 4, -EBADMSG);
	REFUSED(s.lines[1].function_id = 72, -EBADMSG);
	REFUSED(s.locs[1].id = s.locs[0].id, -EBADMSG);
	REFUSED(s.locs[1].mapping_id = 1, -EBADMSG);
	REFUSED(s.ids[1] = 5, -EBADMSG);
	REFUSED(s.ids[0] = 0, -EBADMSG);
	REFUSED(s.label.key = 4, -EBADMSG);
	REFUSED(s.label.str = -4, -EBADMSG);
	REFUSED(s.label.num_unit = 4, -EBADMSG);
	REFUSED(s.samples[1].n_value = 0, -EBADMSG);
}

/* Cut anywhere it is refused, or what is there is a profile by itself. */
static void cut(void **state)
{
	struct profile *p = golden_profile(), *q;
	struct bytes b = written(p);

	(void)state;
	for (size_t sz = 0; sz < b.sz; sz++) {
		char *copy = malloc(sz + 1); /* of just this size, for the sanitizer */

		memcpy(copy, b.data, sz);
		copy = realloc(copy, sz ? sz : 1);
		assert_int_equal(pprof_read(copy, sz, &q), -EBADMSG);
		assert_null(q);
		free(copy);
	}
	/* nor is what begins like gzip */
	b.data[b.sz / 2] ^= 0x55;
	assert_int_equal(pprof_read(b.data, b.sz, &q), -EBADMSG);
	assert_int_equal(pprof_read("hello, world", 12, &q), -EBADMSG);
	free(b.data);
	profile__free(p);
}

/* 300 MiB of zeros in 300 KiB. */
static void too_large(void **state)
{
	static char zeros[1 << 20];
	struct bytes out = { malloc(4 << 20), 0 };
	struct profile *p;
	z_stream z = { 0 };

	(void)state;
	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = (Bytef *)out.data;
	z.avail_out = 4 << 20;
	for (int i = 0; i < 300; i++) {
		z.next_in = (Bytef *)zeros;
		z.avail_in = sizeof(zeros);
		assert_int_equal(deflate(&z, i == 299 ? Z_FINISH : Z_NO_FLUSH),
				 i == 299 ? Z_STREAM_END : Z_OK);
	}
	out.sz = z.total_out;
	deflateEnd(&z);
	assert_int_equal(pprof_read(out.data, out.sz, &p), -E2BIG);
	free(out.data);
}

/* ---- the header of the gzip file ---- */

static void extra(void **state)
{
	static const char data[] = "service_name\0redis\0kind\0cpu";
	struct profile *p = golden_profile();
	struct bytes plain = written(p), b = { 0 };
	FILE *f = open_memstream(&b.data, &b.sz);
	char *big = calloc(1, PPROF_MAX_EXTRA + 1);
	const void *got;
	size_t sz;

	(void)state;
	assert_int_equal(pprof_write_extra(p, data, sizeof(data), 0, f), 0);
	fclose(f);
	assert_int_equal(pprof_extra(b.data, b.sz, &got, &sz), 0);
	assert_int_equal(sz, sizeof(data));
	assert_memory_equal(got, data, sz);
	/* to readers of profiles it is not there */
	check_same(&plain, b.data, b.sz);
	if (golden_have_pprof()) {
		char *text = golden_pprof("-comments", b.data, b.sz, NULL);

		assert_string_equal(text, "recorded 180 of 180 samples\n#bpfprof test\n");
		free(text);
	}
	/* the header may be cut, or another one's */
	for (size_t n = 0; n < 12 + 4 + sizeof(data); n++)
		assert_int_equal(pprof_extra(b.data, n, &got, &sz), -ENOENT);
	b.data[12] = 'x';
	assert_int_equal(pprof_extra(b.data, b.sz, &got, &sz), -ENOENT);
	assert_int_equal(pprof_extra(plain.data, plain.sz, &got, &sz), -ENOENT);
	free(b.data);
	f = open_memstream(&b.data, &b.sz);
	assert_int_equal(pprof_write_extra(p, big, PPROF_MAX_EXTRA, 0, f), 0);
	fclose(f);
	assert_int_equal(pprof_extra(b.data, b.sz, &got, &sz), 0);
	assert_int_equal(sz, PPROF_MAX_EXTRA);
	free(b.data);
	f = open_memstream(&b.data, &b.sz);
	assert_int_equal(pprof_write_extra(p, big, PPROF_MAX_EXTRA + 1, 0, f), -E2BIG);
	fclose(f);
	free(b.data);
	free(big);
	free(plain.data);
	profile__free(p);
}

/* A profile may have so many bytes before it is compressed, and not one less. */
static void bounded(void **state)
{
	struct profile *p = golden_profile();
	struct bytes plain = written(p), b;
	const uint8_t *end;
	size_t sz;

	(void)state;
	/* ISIZE, RFC 1952 */
	end = (const uint8_t *)plain.data + plain.sz - 4;
	sz = end[0] | end[1] << 8 | end[2] << 16 | (size_t)end[3] << 24;
	for (size_t less = 0; less < 2; less++) {
		FILE *f = open_memstream(&b.data, &b.sz);

		assert_int_equal(pprof_write_extra(p, NULL, 0, sz - less, f), less ? -EMSGSIZE : 0);
		fclose(f);
		if (!less) {
			assert_int_equal(b.sz, plain.sz);
			assert_memory_equal(b.data, plain.data, b.sz);
		}
		free(b.data);
	}
	free(plain.data);
	profile__free(p);
}

/* Messages of two bytes, each of which takes a hundred. */
static void memory_is_bounded(void **state)
{
	struct profile *p = golden_profile(), *q;
	struct bytes b = written(p), b64;
	enum {
		CNT = 10000
	};
	char *empty = malloc(2 * CNT);

	(void)state;
	assert_non_null(empty);
	for (size_t i = 0; i < CNT; i++)
		memcpy(empty + 2 * i, "\x12", 2);
	assert_int_equal(pprof_read_within(empty, 2 * CNT, 1 << 19, &q), -E2BIG);
	assert_int_equal(pprof_read_within(empty, 2 * CNT, 10 << 20, &q), -EBADMSG);
	free(empty);
	/* a value takes a byte in the file, and eight in memory */
	q = many_values(PROFILE_MAX_VALUES, 1000);
	b64 = written(q);
	profile__free(q);
	assert_int_equal(pprof_read_within(b64.data, b64.sz, 640 << 10, &q), -E2BIG);
	assert_int_equal(pprof_read_within(b64.data, b64.sz, 2 << 20, &q), 0);
	profile__free(q);
	free(b64.data);
	/* refused wherever memory ends, and read where it does not */
	for (size_t memory = 0; memory < 4000; memory += 7)
		assert_int_equal(pprof_read_within(b.data, b.sz, memory, &q), -E2BIG);
	assert_int_equal(pprof_read_within(b.data, b.sz, 1 << 20, &q), 0);
	assert_int_equal(q->sample_cnt, p->sample_cnt);
	profile__free(q);
	profile__free(p);
	free(b.data);
}

#define LONG (1U << 20) /* bytes of a string */

static char *long_text(void)
{
	char *text = malloc(LONG + 1);

	assert_non_null(text);
	memset(text, 'x', LONG);
	text[LONG] = '\0';
	return text;
}

/* A comment takes one byte in the file, however long its text is. */
static void comments_of_one_text(void **state)
{
	enum {
		CNT = 1 << 20
	};
	struct profile_merge *m = profile_merge__new();
	int64_t *ids = malloc(CNT * sizeof(*ids));
	struct profile *p, *sum, *part;
	struct small s;
	struct bytes b;

	(void)state;
	assert_non_null(ids);
	init_small(&s);
	s.strings[3] = long_text();
	for (size_t i = 0; i < CNT; i++)
		ids[i] = 3;
	s.m.n_comment = CNT;
	s.m.comment = ids;
	b = packed(&s.m);
	cpu_limit(60);
	assert_int_equal(pprof_read_within(b.data, b.sz, CNT, &p), -E2BIG);
	assert_int_equal(pprof_read(b.data, b.sz, &p), 0);
	assert_int_equal(p->comment_cnt, CNT);
	assert_int_equal(profile_split(p, (uint32_t[]){ 0, 0 }, 1, &part), 0);
	assert_int_equal(part->comment_cnt, CNT);
	assert_int_equal(profile_merge__add(m, p, NULL, 0), 0);
	sum = profile_merge__take(m);
	assert_int_equal(sum->comment_cnt, 1);
	assert_string_equal(strtab__get(sum->strings, sum->comments[0]),
			    "more comments were left out");
	cpu_limit_off();
	profile__free(part);
	profile__free(sum);
	profile__free(p);
	profile_merge__free(m);
	free(s.strings[3]);
	free(ids);
	free(b.data);
}

/* Labels are sorted by texts, which may be one for all of them. */
static void labels_of_one_key(void **state)
{
	enum {
		CNT = 1 << 16
	};
	Perftools__Profiles__Label *labels = calloc(CNT, sizeof(*labels)),
				   **ptrs = calloc(CNT, sizeof(*ptrs));
	struct profile *p;
	struct small s;
	struct bytes b;

	(void)state;
	assert_true(labels && ptrs);
	init_small(&s);
	s.strings[3] = long_text();
	for (size_t i = 0; i < CNT; i++) {
		perftools__profiles__label__init(&labels[i]);
		labels[i].key = labels[i].num_unit = 3;
		labels[i].num = CNT - (int64_t)i;
		ptrs[i] = &labels[i];
	}
	s.samples[0].n_label = CNT;
	s.samples[0].label = ptrs;
	b = packed(&s.m);
	cpu_limit(60);
	assert_int_equal(pprof_read(b.data, b.sz, &p), 0);
	cpu_limit_off();
	assert_int_equal(p->samples[0].label_cnt, CNT);
	for (size_t i = 0; i < CNT; i++)
		assert_int_equal(p->labels[p->samples[0].label + i].num, i + 1);
	profile__free(p);
	free(s.strings[3]);
	free(labels);
	free(ptrs);
	free(b.data);
}

/* The same of keys that differ at their end. */
static void labels_of_long_keys(void **state)
{
	enum {
		CNT = 1 << 17,
		SZ = 32 * LONG
	};
	Perftools__Profiles__Label labels[2], *ptrs[] = { &labels[0], &labels[1] };
	Perftools__Profiles__Sample *samples = calloc(CNT, sizeof(*samples)),
				    **sample_ptrs = calloc(CNT, sizeof(*sample_ptrs));
	char *keys[2] = { malloc(SZ), malloc(SZ) };
	struct profile *p;
	struct small s;
	struct bytes b;

	(void)state;
	assert_true(samples && sample_ptrs && keys[0] && keys[1]);
	init_small(&s);
	for (int i = 0; i < 2; i++) {
		memset(keys[i], 'x', SZ);
		strcpy(keys[i] + SZ - 2, i ? "a" : "b");
		s.strings[2 + i] = keys[i];
		perftools__profiles__label__init(&labels[i]);
		labels[i].key = 2 + i;
		labels[i].str = 1;
	}
	for (size_t i = 0; i < CNT; i++) {
		samples[i] = s.samples[0];
		samples[i].n_label = 2;
		samples[i].label = ptrs;
		sample_ptrs[i] = &samples[i];
	}
	s.m.n_sample = CNT;
	s.m.sample = sample_ptrs;
	b = packed(&s.m);
	cpu_limit(60);
	assert_int_equal(pprof_read(b.data, b.sz, &p), 0);
	cpu_limit_off();
	assert_int_equal(p->sample_cnt, 1);
	assert_int_equal(p->samples[0].label_cnt, 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_string_equal(strtab__get(p->strings, p->labels[i].key) + SZ - 2,
				    i ? "b" : "a");
	profile__free(p);
	for (int i = 0; i < 2; i++)
		free(keys[i]);
	free(samples);
	free(sample_ptrs);
	free(b.data);
}

/* Types have copies of their texts. */
static void types_of_one_text(void **state)
{
	struct profile *p;
	struct small s;
	struct bytes b;

	(void)state;
	init_small(&s);
	s.strings[1] = long_text();
	b = packed(&s.m);
	assert_int_equal(pprof_read_within(b.data, b.sz, 4 * LONG, &p), -E2BIG);
	assert_int_equal(pprof_read_within(b.data, b.sz, 6 * LONG, &p), 0);
	profile__free(p);
	free(s.strings[1]);
	free(b.data);
}

/* Without labels, what they alone tell apart stays apart. */
static void stacks(void **state)
{
	Perftools__Profiles__Label other;
	struct small s;
	struct bytes b;
	struct profile *p;

	(void)state;
	init_small(&s);
	perftools__profiles__label__init(&other);
	other.key = 1;
	other.str = 3;
	s.samples[1].label = (Perftools__Profiles__Label *[]){ &other };
	s.ids[1] = s.ids[0];
	b = packed(&s.m);
	assert_int_equal(pprof_read_stacks(b.data, b.sz, &p), 0);
	assert_int_equal(p->sample_cnt, 2);
	assert_int_equal(p->label_cnt, 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(p->samples[i].label_cnt, 0);
		assert_int_equal(p->samples[i].loc_cnt, 1);
		assert_int_equal(p->loc_ids[p->samples[i].loc], 0);
		assert_int_equal(profile__values(p, &p->samples[i])[0], 3 + i);
	}
	profile__free(p);
	free(b.data);
}

/* Numbers one by one, as proto2 has them, and a table in parts between others. */
static void not_packed(void **state)
{
	/* one string, a function, a location, a sample of two values, in the order that suits no one */
	static const char data[] =
		"\x12\x06\x08\x09\x10\x05\x10\x06"
		"\x22\x06\x08\x09\x22\x02\x08\x03"
		"\x32\x00"
		"\x0a\x04\x08\x01\x10\x01"
		"\x2a\x04\x08\x03\x10\x01"
		"\x32\x01x"
		"\x0a\x04\x08\x01\x10\x01"
		"\x68\x01";
	struct profile *p;

	(void)state;
	assert_int_equal(pprof_read(data, sizeof(data) - 1, &p), 0);
	assert_int_equal(p->value_cnt, 2);
	assert_int_equal(p->sample_cnt, 1);
	assert_int_equal(p->samples[0].loc_cnt, 1);
	assert_true(profile__values(p, &p->samples[0])[0] == 5 &&
		    profile__values(p, &p->samples[0])[1] == 6);
	assert_string_equal(strtab__get(p->strings, p->comments[0]), "x");
	profile__free(p);
}

static bool keeps_all(const char *key)
{
	(void)key;
	return true;
}

static bool keeps_comm(const char *key)
{
	return !strcmp(key, "comm");
}

static bool keeps_none(const char *key)
{
	(void)key;
	return false;
}

/* Two of its samples differ in their pid alone, and have 100 and 5. */
static void labels_are_left_out(void **state)
{
	static bool (*const keeps[])(const char *) = { keeps_comm, keeps_none };
	struct profile *golden = golden_profile(), *p;
	struct bytes b = written(golden), kept;

	(void)state;
	assert_int_equal(pprof_read_keeping(b.data, b.sz, keeps_all, &p), 0);
	assert_int_equal(profile__finish(p), 0);
	kept = written(p);
	assert_int_equal(kept.sz, b.sz);
	assert_memory_equal(kept.data, b.data, b.sz);
	free(kept.data);
	profile__free(p);
	for (size_t i = 0; i < ARRAY_SIZE(keeps); i++) {
		int64_t sum = 0, most = 0;

		assert_int_equal(pprof_read_keeping(b.data, b.sz, keeps[i], &p), 0);
		assert_int_equal(p->sample_cnt, golden->sample_cnt - 1);
		for (size_t k = 0; k < p->sample_cnt; k++) {
			assert_int_equal(p->samples[k].label_cnt, keeps[i] == keeps_comm);
			sum += profile__values(p, &p->samples[k])[0];
			most = profile__values(p, &p->samples[k])[0] > most ?
				       profile__values(p, &p->samples[k])[0] :
				       most;
		}
		assert_int_equal(sum, 180);
		assert_int_equal(most, 105);
		profile__free(p);
	}
	/* what is older than profile.proto has none of them */
	assert_int_equal(pprof_read_keeping("--- heapz 1 ---\n", 16, keeps_all, &p), -EBADMSG);
	free(b.data);
	profile__free(golden);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bytes),
		cmocka_unit_test(every_field),
		cmocka_unit_test(many_types),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(comments_of_one_text),
		cmocka_unit_test(labels_of_one_key),
		cmocka_unit_test(labels_of_long_keys),
		cmocka_unit_test(types_of_one_text),
		cmocka_unit_test(stacks),
		cmocka_unit_test(not_packed),
		cmocka_unit_test(without_addresses),
		cmocka_unit_test(refusals),
		cmocka_unit_test(cut),
		cmocka_unit_test(too_large),
		cmocka_unit_test(extra),
		cmocka_unit_test(bounded),
		cmocka_unit_test(labels_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
