/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams a profile as gzip'd profile.proto. A message of protobuf is the sequence of its fields,
 * so the outer Profile is written in pieces: its scalars as two Profile messages that hold nothing
 * else, the rest as one packed message after the other behind its tag and length. Nothing but the
 * message at hand is in memory.
 */
#include "profile/pprof.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile.pb-c.h"
#include "profile/canon.h"
#include "profile/gzip.h"
#include "profile/gzip_writer.h"
#include "profile/profile.h"

#define EXTRA_ID "bp"
#define EXTRA_HEAD 4
#define WIRE_BYTES 2 /* protobuf encoding: length-delimited */

/* Field numbers of Profile (profile.proto). */
enum field {
	FIELD_SAMPLE = 2,
	FIELD_MAPPING = 3,
	FIELD_LOCATION = 4,
	FIELD_FUNCTION = 5,
	FIELD_STRING = 6,
};

typedef Perftools__Profiles__Profile pb_profile;
typedef Perftools__Profiles__ValueType pb_value_type;
typedef Perftools__Profiles__Sample pb_sample;
typedef Perftools__Profiles__Label pb_label;
typedef Perftools__Profiles__Mapping pb_mapping;
typedef Perftools__Profiles__Location pb_location;
typedef Perftools__Profiles__Line pb_line;
typedef Perftools__Profiles__Function pb_function;

struct writer {
	const struct profile *p;
	struct canon canon;
	struct gzip_writer gzip;
	size_t max_sz; /* of all that is compressed; 0: any */
	uint8_t *extra;
	uint8_t *msg; /* the message at hand, packed */
	size_t msg_cap;

	/* the parts of the message at hand that it points to; the pointers lead to the elements */
	uint64_t *loc_ids;
	pb_label *labels, **label_ptrs;
	pb_line *lines, **line_ptrs;
	size_t loc_id_cap, label_cap, label_ptr_cap, line_cap, line_ptr_cap;
};

static int writer__put(struct writer *w, const void *data, size_t sz)
{
	if (w->max_sz && w->gzip.total + sz > w->max_sz)
		return -EMSGSIZE;
	return gzip_writer__put(&w->gzip, data, sz);
}

/* Writes the tag and length of a field whose sz bytes follow. */
static int writer__head(struct writer *w, enum field field, size_t sz)
{
	uint8_t head[1 + 10], *p = head;

	*p++ = (uint8_t)(field << 3 | WIRE_BYTES);
	for (; sz >= 0x80; sz >>= 7)
		*p++ = (uint8_t)(sz | 0x80);
	*p++ = (uint8_t)sz;
	return writer__put(w, head, (size_t)(p - head));
}

static int writer__message(struct writer *w, enum field field, const ProtobufCMessage *m)
{
	size_t sz = protobuf_c_message_get_packed_size(m);
	int err = util_reserve(&w->msg, &w->msg_cap, sz, 1);

	if (err)
		return err;
	protobuf_c_message_pack(m, w->msg);
	err = writer__head(w, field, sz);
	return err ? err : writer__put(w, w->msg, sz);
}

/* Writes fields of Profile itself. */
static int writer__fields(struct writer *w, const pb_profile *m)
{
	size_t sz = protobuf_c_message_get_packed_size(&m->base);
	int err = util_reserve(&w->msg, &w->msg_cap, sz, 1);

	if (err)
		return err;
	protobuf_c_message_pack(&m->base, w->msg);
	return writer__put(w, w->msg, sz);
}

static void fill_value_type(const struct writer *w, const struct profile_value_type *t,
			    pb_value_type *ret)
{
	perftools__profiles__value_type__init(ret);
	ret->type = canon__string(&w->canon, t->type ? t->type : "");
	ret->unit = canon__string(&w->canon, t->unit ? t->unit : "");
}

static int write_value_types(struct writer *w)
{
	pb_profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	pb_value_type types[PROFILE_MAX_VALUES], *ptrs[PROFILE_MAX_VALUES];
	size_t i;

	for (i = 0; i < w->p->value_cnt; i++) {
		fill_value_type(w, &w->p->value_types[i], &types[i]);
		ptrs[i] = &types[i];
	}
	m.n_sample_type = w->p->value_cnt;
	m.sample_type = ptrs;
	return writer__fields(w, &m);
}

static int write_rest(struct writer *w)
{
	pb_profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	const struct profile *p = w->p;
	pb_value_type period;
	int64_t *comments;
	size_t i;
	int err;

	comments = calloc(p->comment_cnt + 1, sizeof(*comments));
	if (!comments)
		return -ENOMEM;
	for (i = 0; i < p->comment_cnt; i++)
		comments[i] = w->canon.string_number[p->comments[i]];
	fill_value_type(w, &p->period_type, &period);
	m.drop_frames = w->canon.string_number[p->drop_frames];
	m.keep_frames = w->canon.string_number[p->keep_frames];
	m.time_nanos = p->time_ns;
	m.duration_nanos = p->duration_ns;
	m.period_type = &period;
	m.period = p->period;
	m.n_comment = p->comment_cnt;
	m.comment = comments;
	m.default_sample_type = w->canon.string_number[p->default_type];
	err = writer__fields(w, &m);
	free(comments);
	return err;
}

static int fill_labels(struct writer *w, const struct profile_sample *s, pb_sample *m)
{
	const uint32_t *string = w->canon.string_number;
	const struct profile_label *l;
	size_t cnt = s->label_cnt, i;

	if (util_reserve(&w->labels, &w->label_cap, cnt, sizeof(*w->labels)) ||
	    util_reserve(&w->label_ptrs, &w->label_ptr_cap, cnt, sizeof(*w->label_ptrs)))
		return -ENOMEM;
	for (i = 0; i < cnt; i++) {
		l = &w->p->labels[s->label + i];
		perftools__profiles__label__init(&w->labels[i]);
		w->labels[i].key = string[l->key];
		w->labels[i].str = string[l->str];
		w->labels[i].num = l->num;
		w->labels[i].num_unit = string[l->num_unit];
		w->label_ptrs[i] = &w->labels[i];
	}
	m->n_label = cnt;
	m->label = w->label_ptrs;
	return 0;
}

/* Writes the samples from the i-th on that have the same content; *ret_next is the first that has
 * not. */
static int write_sample(struct writer *w, uint32_t i, uint32_t *ret_next)
{
	const struct canon *c = &w->canon;
	const struct profile_sample *s = &w->p->samples[c->samples[i]];
	pb_sample m = PERFTOOLS__PROFILES__SAMPLE__INIT;
	int64_t values[PROFILE_MAX_VALUES];
	const int64_t *same;
	uint32_t next, k;
	size_t j;

	memcpy(values, profile__values(w->p, s), w->p->value_cnt * sizeof(*values));
	for (next = i + 1; next < c->sample_cnt; next++) {
		if (!canon__same_sample(c, c->samples[i], c->samples[next]))
			break;
		same = profile__values(w->p, &w->p->samples[c->samples[next]]);
		for (j = 0; j < w->p->value_cnt; j++)
			values[j] = util_add_saturated(values[j], same[j]);
	}
	*ret_next = next;
	if (util_reserve(&w->loc_ids, &w->loc_id_cap, s->loc_cnt, sizeof(*w->loc_ids)) ||
	    fill_labels(w, s, &m))
		return -ENOMEM;
	for (k = 0; k < s->loc_cnt; k++)
		w->loc_ids[k] = c->locations.number[w->p->loc_ids[s->loc + k]];
	m.n_location_id = s->loc_cnt;
	m.location_id = w->loc_ids;
	m.n_value = w->p->value_cnt;
	m.value = values;
	return writer__message(w, FIELD_SAMPLE, &m.base);
}

static int write_samples(struct writer *w)
{
	uint32_t i = 0;
	int err = 0;

	while (!err && i < w->canon.sample_cnt)
		err = write_sample(w, i, &i);
	return err;
}

static int write_mappings(struct writer *w)
{
	const struct canon *c = &w->canon;
	const struct profile_mapping *from;
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < c->mappings.cnt; i++) {
		pb_mapping m = PERFTOOLS__PROFILES__MAPPING__INIT;

		from = &w->p->mappings[c->mappings.entry[i]];
		m.id = i + 1;
		m.memory_start = from->start;
		m.memory_limit = from->limit;
		m.file_offset = from->offset;
		m.filename = c->string_number[from->filename];
		m.build_id = c->string_number[from->build_id];
		m.has_functions = from->has_functions;
		m.has_filenames = from->has_filenames;
		m.has_line_numbers = from->has_lines;
		m.has_inline_frames = from->has_inlines;
		err = writer__message(w, FIELD_MAPPING, &m.base);
	}
	return err;
}

static int write_locations(struct writer *w)
{
	const struct canon *c = &w->canon;
	const struct profile_location *from;
	const struct profile_line *line;
	uint32_t i, j;
	int err = 0;

	for (i = 0; !err && i < c->locations.cnt; i++) {
		pb_location m = PERFTOOLS__PROFILES__LOCATION__INIT;

		from = &w->p->locations[c->locations.entry[i]];
		if (util_reserve(&w->lines, &w->line_cap, from->line_cnt, sizeof(*w->lines)) ||
		    util_reserve(&w->line_ptrs, &w->line_ptr_cap, from->line_cnt,
				 sizeof(*w->line_ptrs)))
			return -ENOMEM;
		for (j = 0; j < from->line_cnt; j++) {
			line = &w->p->lines[from->line + j];
			perftools__profiles__line__init(&w->lines[j]);
			w->lines[j].function_id = c->functions.number[line->function];
			w->lines[j].line = line->line;
			w->line_ptrs[j] = &w->lines[j];
		}
		m.id = i + 1;
		m.mapping_id =
			from->mapping == PROFILE_NONE ? 0 : c->mappings.number[from->mapping];
		m.address = from->address;
		m.n_line = from->line_cnt;
		m.line = w->line_ptrs;
		err = writer__message(w, FIELD_LOCATION, &m.base);
	}
	return err;
}

static int write_functions(struct writer *w)
{
	const struct canon *c = &w->canon;
	const struct profile_function *from;
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < c->functions.cnt; i++) {
		pb_function m = PERFTOOLS__PROFILES__FUNCTION__INIT;

		from = &w->p->functions[c->functions.entry[i]];
		m.id = i + 1;
		m.name = c->string_number[from->name];
		m.system_name = c->string_number[from->system_name];
		m.filename = c->string_number[from->filename];
		m.start_line = from->start_line;
		err = writer__message(w, FIELD_FUNCTION, &m.base);
	}
	return err;
}

static int write_strings(struct writer *w)
{
	const char *s;
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < w->canon.string_cnt; i++) {
		s = w->canon.strings[i];
		err = writer__head(w, FIELD_STRING, strlen(s));
		if (!err)
			err = writer__put(w, s, strlen(s));
	}
	return err;
}

static int write_all(struct writer *w)
{
	static int (*const steps[])(struct writer *) = {
		write_value_types, write_samples, write_mappings, write_locations,
		write_functions,   write_strings, write_rest,
	};
	size_t i;
	int err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(steps); i++)
		err = steps[i](w);
	return err ? err : gzip_writer__finish(&w->gzip);
}

/* The subfield as the header has it: two letters, the length, the data. */
static int set_extra(struct writer *w, const void *extra, size_t sz)
{
	uint8_t *to;

	if (sz > PPROF_MAX_EXTRA)
		return -E2BIG;
	to = malloc(EXTRA_HEAD + sz);
	if (!to)
		return -ENOMEM;
	w->extra = to;
	memcpy(to, EXTRA_ID, 2);
	to[2] = (uint8_t)sz;
	to[3] = (uint8_t)(sz >> 8);
	memcpy(to + EXTRA_HEAD, extra, sz);
	return 0;
}

int pprof_extra(const void *file, size_t sz, const void **ret, size_t *ret_sz)
{
	const uint8_t *p = file, *end;
	size_t len;

	if (sz < GZIP_HEAD_SZ + 2 || p[0] != GZIP_ID1 || p[1] != GZIP_ID2 ||
	    !(p[GZIP_FLAGS] & GZIP_FEXTRA))
		return -ENOENT;
	len = p[GZIP_HEAD_SZ] | (size_t)p[GZIP_HEAD_SZ + 1] << 8;
	p += GZIP_HEAD_SZ + 2;
	if (len > sz - GZIP_HEAD_SZ - 2)
		return -ENOENT;
	for (end = p + len; end - p >= EXTRA_HEAD; p += EXTRA_HEAD + len) {
		len = p[2] | (size_t)p[3] << 8;
		if (len > (size_t)(end - p) - EXTRA_HEAD)
			break;
		if (memcmp(p, EXTRA_ID, 2))
			continue;
		*ret = p + EXTRA_HEAD;
		*ret_sz = len;
		return 0;
	}
	return -ENOENT;
}

int pprof_write(const struct profile *p, FILE *f)
{
	return pprof_write_extra(p, NULL, 0, 0, f);
}

int pprof_write_extra(const struct profile *p, const void *extra, size_t extra_sz, size_t max_sz,
		      FILE *f)
{
	struct writer w = { .p = p, .max_sz = max_sz };
	int err = canon__make(p, &w.canon);

	if (err)
		return err;
	if (extra_sz)
		err = set_extra(&w, extra, extra_sz);
	if (!err)
		err = gzip_writer__init(&w.gzip, f, w.extra, extra_sz ? EXTRA_HEAD + extra_sz : 0);
	if (!err)
		err = write_all(&w);
	gzip_writer__done(&w.gzip);
	canon__done(&w.canon);
	free(w.extra);
	free(w.msg);
	free(w.loc_ids);
	free(w.labels);
	free(w.label_ptrs);
	free(w.lines);
	free(w.line_ptrs);
	return err;
}
