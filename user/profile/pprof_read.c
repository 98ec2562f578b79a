/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/pprof_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/gunzip.h"
#include "profile/id_map.h"
#include "profile/legacy_read.h"
#include "profile/pprof_fields.h"
#include "profile/profile.h"
#include "profile/proto_read.h"

#define INDEX_COST 32 /* bytes that finding an entry again takes */
#define GROWN 3 / 2   /* times what is in it is the size of an array that grows */

struct reader {
	struct proto in;
	struct profile *out;
	size_t memory;			/* bytes that may still be taken */
	bool labels;			/* are wanted */
	bool (*keeps)(const char *key); /* which; NULL: all */
	uint64_t numbers[PROFILE_FIELDS];
	size_t counts[PROFILE_FIELDS];	    /* of messages */
	struct proto spans[PROFILE_FIELDS]; /* from the first one to behind the last one */
	struct proto *texts;		    /* the strings of the file */
	uint32_t *strings;		    /* of each its id in `out` */
	size_t text_cap, string_cnt;
	struct id_map mappings, functions, locations;
	/* scratch */
	struct profile_line *line_buf;
	struct profile_label *label_buf;
	uint32_t *loc_buf;
	int64_t value_buf[PROFILE_MAX_VALUES];
	char *text_buf;
	size_t line_cap, label_cap, loc_cap, buf_cap;
};

/* ---- walks over the file ---- */

static int spend(struct reader *r, size_t bytes)
{
	if (bytes > r->memory)
		return -E2BIG;
	r->memory -= bytes;
	return 0;
}

/* What a message of the file takes, without what is in it. */
static size_t cost_of(uint32_t number)
{
	switch (number) {
	case PROFILE_SAMPLE:
		return sizeof(struct profile_sample) * GROWN + INDEX_COST;
	case PROFILE_MAPPING:
		return sizeof(struct profile_mapping) + 2 * INDEX_COST;
	case PROFILE_LOCATION:
		return sizeof(struct profile_location) + 2 * INDEX_COST;
	case PROFILE_FUNCTION:
		return sizeof(struct profile_function) + 2 * INDEX_COST;
	case PROFILE_STRING_TABLE:
		return sizeof(struct proto) + sizeof(size_t) + INDEX_COST;
	default:
		return 0;
	}
}

static bool is_message(uint32_t number)
{
	return number <= PROFILE_STRING_TABLE || number == PROFILE_PERIOD_TYPE;
}

static int scan_field(struct reader *r, const struct proto_field *f)
{
	int err;

	if (f->number >= PROFILE_FIELDS)
		return 0;
	if (f->number != PROFILE_COMMENT &&
	    f->kind != (is_message(f->number) ? PROTO_BYTES : PROTO_NUMBER))
		return -EBADMSG;
	r->numbers[f->number] = f->value;
	r->counts[f->number]++;
	err = spend(r, cost_of(f->number));
	if (err || f->number != PROFILE_STRING_TABLE)
		return err;
	err = spend(r, proto_left(&f->bytes)) ?:
		      util_reserve(&r->texts, &r->text_cap, r->string_cnt + 1, sizeof(*r->texts));
	if (!err)
		r->texts[r->string_cnt++] = f->bytes;
	return err;
}

/* Which messages there are, where the strings stand, and all numbers: no field of the file is damaged, or of
 * another kind than it should be. */
static int scan(struct reader *r)
{
	struct proto in = r->in;
	struct proto_field f;
	int more, err = 0;

	do {
		const uint8_t *at = in.at;

		more = proto_next(&in, &f);
		if (more <= 0)
			break;
		err = scan_field(r, &f);
		if (f.number >= PROFILE_FIELDS)
			continue;
		r->spans[f.number].at = r->spans[f.number].at ?: at;
		r->spans[f.number].end = in.at;
	} while (!err);
	return err ?: more;
}

/* Reads all messages of a field, in the order of the file. */
static int each(struct reader *r, uint32_t number, int (*read)(struct reader *, struct proto))
{
	struct proto in = r->spans[number];
	struct proto_field f;
	int err = 0;

	while (!err && proto_next(&in, &f) > 0)
		if (f.number == number)
			err = read(r, f.bytes);
	return err;
}

/* ---- what refers to what ---- */

/* False if there is no such string. */
static bool string(const struct reader *r, uint64_t index, uint32_t *ret)
{
	if (index >= r->string_cnt)
		return false;
	*ret = r->strings[index];
	return true;
}

/* A string by itself, up to its first NUL; valid until the next call. NULL if there is no memory. */
static const char *take_text(struct reader *r, const struct proto *text)
{
	size_t sz = proto_left(text);

	if (util_reserve(&r->text_buf, &r->buf_cap, sz + 1, 1))
		return NULL;
	if (sz)
		memcpy(r->text_buf, text->at, sz);
	r->text_buf[sz] = '\0';
	return r->text_buf;
}

/* ---- the tables ---- */

/* Its texts are copied: the caller frees them. */
static int read_type(struct reader *r, const uint64_t fields[TYPE_FIELDS], char *ret[2])
{
	for (int i = 0; i < 2; i++) {
		uint64_t index = fields[i ? TYPE_UNIT : TYPE_TYPE];
		const char *text;

		if (index >= r->string_cnt)
			return -EBADMSG;
		/* here, and in the profile */
		if (spend(r, 2 * proto_left(&r->texts[index])))
			return -E2BIG;
		text = take_text(r, &r->texts[index]);
		ret[i] = text ? strdup(text) : NULL;
		if (!ret[i])
			return -ENOMEM;
	}
	return 0;
}

/* Of the value types and, last, of the period, which may be in parts. */
static int scan_types(struct reader *r, uint64_t fields[][TYPE_FIELDS])
{
	struct proto in = r->in;
	struct proto_field f;
	size_t cnt = 0;
	int err = 0;

	while (!err && proto_next(&in, &f) > 0) {
		bool period = f.number == PROFILE_PERIOD_TYPE;

		if (!period && f.number != PROFILE_SAMPLE_TYPE)
			continue;
		err = proto_numbers(f.bytes, fields[period ? PROFILE_MAX_VALUES : cnt++],
				    TYPE_FIELDS, 0);
	}
	return err;
}

/* Makes the profile, which is empty. */
static int read_types(struct reader *r)
{
	uint64_t fields[PROFILE_MAX_VALUES + 1][TYPE_FIELDS] = { 0 };
	struct profile_value_type types[PROFILE_MAX_VALUES + 1] = { 0 };
	char *texts[PROFILE_MAX_VALUES + 1][2] = { 0 };
	size_t cnt = r->counts[PROFILE_SAMPLE_TYPE];
	int err;

	if (!r->string_cnt || (proto_left(&r->texts[0]) && *r->texts[0].at) || !cnt)
		return -EBADMSG;
	if (cnt > PROFILE_MAX_VALUES)
		return -E2BIG;
	err = spend(r, r->counts[PROFILE_SAMPLE] * cnt * sizeof(*r->value_buf) * GROWN) ?:
		      scan_types(r, fields);
	for (size_t i = 0; !err && i < ARRAY_SIZE(types); i++) {
		if (i < PROFILE_MAX_VALUES ? i >= cnt : !r->counts[PROFILE_PERIOD_TYPE])
			continue;
		err = read_type(r, fields[i], texts[i]);
		types[i] = (struct profile_value_type){ texts[i][0], texts[i][1] };
	}
	if (!err)
		r->out = profile__new(types, cnt, types[PROFILE_MAX_VALUES],
				      (int64_t)r->numbers[PROFILE_PERIOD]);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		free(texts[i][0]);
		free(texts[i][1]);
	}
	if (!err && !r->out)
		return -ENOMEM;
	return err;
}

static int read_strings(struct reader *r)
{
	r->strings = malloc(r->string_cnt * sizeof(*r->strings));
	if (!r->strings)
		return -ENOMEM;
	for (size_t i = 0; i < r->string_cnt; i++) {
		const char *text = take_text(r, &r->texts[i]);

		r->strings[i] = text ? profile__string(r->out, text) : PROFILE_NONE;
		if (r->strings[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int read_mapping(struct reader *r, struct proto in)
{
	uint64_t f[MAPPING_FIELDS] = { 0 };
	struct profile_mapping to = { 0 };

	if (proto_numbers(in, f, MAPPING_FIELDS, 0) ||
	    !string(r, f[MAPPING_FILENAME], &to.filename) ||
	    !string(r, f[MAPPING_BUILD_ID], &to.build_id))
		return -EBADMSG;
	to.start = f[MAPPING_START];
	to.limit = f[MAPPING_LIMIT];
	to.offset = f[MAPPING_OFFSET];
	to.owner = (uint32_t)r->out->mapping_cnt; /* each is one of its own */
	return id_map__note(&r->mappings, f[MAPPING_ID], profile__add_mapping(r->out, &to));
}

static int read_function(struct reader *r, struct proto in)
{
	uint64_t f[FUNCTION_FIELDS] = { 0 };
	struct profile_function to = { 0 };

	if (proto_numbers(in, f, FUNCTION_FIELDS, 0) || !string(r, f[FUNCTION_NAME], &to.name) ||
	    !string(r, f[FUNCTION_SYSTEM_NAME], &to.system_name) ||
	    !string(r, f[FUNCTION_FILENAME], &to.filename))
		return -EBADMSG;
	to.start_line = (int64_t)f[FUNCTION_START_LINE];
	return id_map__note(&r->functions, f[FUNCTION_ID], profile__add_function(r->out, &to));
}

static int read_line(struct reader *r, struct proto in, struct profile_line *ret)
{
	uint64_t f[LINE_FIELDS] = { 0 };

	if (proto_numbers(in, f, LINE_FIELDS, 0) ||
	    !id_map__find(&r->functions, f[LINE_FUNCTION], &ret->function))
		return -EBADMSG;
	ret->line = (int64_t)f[LINE_LINE];
	return 0;
}

static int read_lines(struct reader *r, uint32_t location, struct proto in)
{
	struct proto_field f;
	size_t cnt = 0;

	while (proto_next(&in, &f) > 0) {
		int err;

		if (f.number != LOCATION_LINE)
			continue;
		if (f.kind != PROTO_BYTES)
			return -EBADMSG;
		err = spend(r, sizeof(*r->line_buf)) ?:
			      util_reserve(&r->line_buf, &r->line_cap, cnt + 1, sizeof(*r->line_buf)) ?:
			      read_line(r, f.bytes, &r->line_buf[cnt++]);
		if (err)
			return err;
	}
	return profile__set_lines(r->out, location, r->line_buf, cnt);
}

static int read_location(struct reader *r, struct proto in)
{
	uint64_t f[LOCATION_FIELDS] = { 0 };
	uint32_t mapping = PROFILE_NONE, to;
	int err;

	if (proto_numbers(in, f, LOCATION_FIELDS, 1 << LOCATION_LINE) ||
	    (f[LOCATION_MAPPING] && !id_map__find(&r->mappings, f[LOCATION_MAPPING], &mapping)))
		return -EBADMSG;
	/* interpreters have no addresses: what is equal is told by its lines */
	to = profile__append_location(r->out, mapping, f[LOCATION_ADDRESS]);
	err = id_map__note(&r->locations, f[LOCATION_ID], to);
	return err ?: read_lines(r, to, in);
}

static int read_label(struct reader *r, struct proto in, struct profile_label *to)
{
	uint64_t f[LABEL_FIELDS] = { 0 };

	if (proto_numbers(in, f, LABEL_FIELDS, 0) || !string(r, f[LABEL_KEY], &to->key) ||
	    !string(r, f[LABEL_STR], &to->str) || !string(r, f[LABEL_NUM_UNIT], &to->num_unit))
		return -EBADMSG;
	to->num = (int64_t)f[LABEL_NUM];
	return 0;
}

/* What there is of a sample so far, in loc_buf, value_buf and label_buf. */
struct row {
	size_t loc_cnt, value_cnt, label_cnt;
};

static int add_location(struct reader *r, struct row *row, uint64_t id)
{
	return id_map__find(&r->locations, id, &r->loc_buf[row->loc_cnt++]) ? 0 : -EBADMSG;
}

static int add_value(struct reader *r, struct row *row, uint64_t value)
{
	if (row->value_cnt == r->out->value_cnt)
		return -EBADMSG;
	r->value_buf[row->value_cnt++] = (int64_t)value;
	return 0;
}

/* Locations or values, packed or one by one. */
static int add_numbers(struct reader *r, struct row *row, const struct proto_field *f)
{
	bool values = f->number == SAMPLE_VALUE;
	struct proto packed = f->bytes;
	uint64_t value = f->value;
	int more = 1, err = 0;

	/* a number has a byte or more */
	if (!values &&
	    util_reserve(&r->loc_buf, &r->loc_cap,
			 row->loc_cnt + MAX(proto_left(&packed), (size_t)1), sizeof(*r->loc_buf)))
		return -ENOMEM;
	if (f->kind == PROTO_NUMBER)
		return values ? add_value(r, row, value) : add_location(r, row, value);
	if (f->kind != PROTO_BYTES)
		return -EBADMSG;
	while (!err && (more = proto_number(&packed, &value)) > 0)
		err = values ? add_value(r, row, value) : add_location(r, row, value);
	return err ?: more;
}

static bool is_kept(const struct reader *r, const struct profile_label *label)
{
	return !r->keeps || r->keeps(strtab__get(r->out->strings, label->key));
}

static int add_label(struct reader *r, struct row *row, const struct proto_field *f)
{
	int err;

	if (f->kind != PROTO_BYTES)
		return -EBADMSG;
	if (!r->labels)
		return 0;
	err = spend(r, sizeof(*r->label_buf)) ?:
		      util_reserve(&r->label_buf, &r->label_cap, row->label_cnt + 1,
				   sizeof(*r->label_buf));
	err = err ?: read_label(r, f->bytes, &r->label_buf[row->label_cnt]);
	if (!err)
		row->label_cnt += is_kept(r, &r->label_buf[row->label_cnt]);
	return err;
}

static int read_sample(struct reader *r, struct proto in)
{
	struct row row = { 0 };
	struct proto_field f;
	int more, err = 0;

	while (!err && (more = proto_next(&in, &f)) > 0)
		if (f.number == SAMPLE_LABEL)
			err = add_label(r, &row, &f);
		else if (f.number == SAMPLE_LOCATION || f.number == SAMPLE_VALUE)
			err = add_numbers(r, &row, &f);
	err = err ?: more;
	if (!err && row.value_cnt != r->out->value_cnt)
		err = -EBADMSG;
	err = err ?: spend(r, row.loc_cnt * sizeof(*r->loc_buf));
	if (err)
		return err;
	if (!r->labels)
		return profile__append_sample(r->out, r->loc_buf, row.loc_cnt, r->value_buf);
	return profile__add_sample(r->out, r->loc_buf, row.loc_cnt, r->label_buf, row.label_cnt,
				   r->value_buf) == PROFILE_NONE ?
		       -ENOMEM :
		       0;
}

static int read_tables(struct reader *r)
{
	int err = id_map__init(&r->mappings, r->counts[PROFILE_MAPPING]);

	err = err ?: id_map__init(&r->functions, r->counts[PROFILE_FUNCTION]);
	err = err ?: id_map__init(&r->locations, r->counts[PROFILE_LOCATION]);
	err = err ?: each(r, PROFILE_MAPPING, read_mapping);
	err = err ?: each(r, PROFILE_FUNCTION, read_function);
	err = err ?: each(r, PROFILE_LOCATION, read_location);
	return err ?: each(r, PROFILE_SAMPLE, read_sample);
}

/* ---- the rest ---- */

static int add_comment(struct reader *r, uint64_t index)
{
	uint32_t id;

	if (!string(r, index, &id))
		return -EBADMSG;
	return spend(r, sizeof(id) * GROWN) ?: profile__add_comment_id(r->out, id);
}

static int read_comments(struct reader *r)
{
	struct proto in = r->spans[PROFILE_COMMENT];
	struct proto_field f;
	uint64_t index;
	int more, err = 0;

	while (!err && proto_next(&in, &f) > 0) {
		if (f.number != PROFILE_COMMENT)
			continue;
		if (f.kind == PROTO_NUMBER) {
			err = add_comment(r, f.value);
			continue;
		}
		while (!err && (more = proto_number(&f.bytes, &index)) > 0)
			err = add_comment(r, index);
		err = err ?: more;
	}
	return err;
}

static int read_texts(struct reader *r)
{
	struct profile *out = r->out;
	uint32_t type;

	out->time_ns = (int64_t)r->numbers[PROFILE_TIME_NANOS];
	out->duration_ns = (int64_t)r->numbers[PROFILE_DURATION_NANOS];
	if (!string(r, r->numbers[PROFILE_DROP_FRAMES], &out->drop_frames) ||
	    !string(r, r->numbers[PROFILE_KEEP_FRAMES], &out->keep_frames) ||
	    !string(r, r->numbers[PROFILE_DEFAULT_SAMPLE_TYPE], &type))
		return -EBADMSG;
	for (size_t i = 0; i < out->value_cnt; i++) {
		if (strcmp(out->value_types[i].type, strtab__get(out->strings, type)) != 0)
			continue;
		out->folded_value = i;
		out->default_type = type;
	}
	return read_comments(r);
}

static void reader_done(struct reader *r)
{
	id_map__done(&r->mappings);
	id_map__done(&r->functions);
	id_map__done(&r->locations);
	free(r->texts);
	free(r->strings);
	free(r->line_buf);
	free(r->label_buf);
	free(r->loc_buf);
	free(r->text_buf);
}

static int read_message(struct reader *r, struct profile **ret)
{
	int err = scan(r);

	err = err ?: read_types(r);
	err = err ?: read_strings(r);
	err = err ?: read_tables(r);
	err = err ?: read_texts(r);
	reader_done(r);
	if (err)
		profile__free(r->out);
	*ret = err ? NULL : r->out;
	return err;
}

static int read_all(const void *data, size_t sz, struct reader *r, struct profile **ret)
{
	uint8_t *own = NULL;
	int err = sz > PPROF_READ_MAX ? -E2BIG : 0;

	if (!err && gunzip_is(data, sz)) {
		err = gunzip(data, sz, PPROF_READ_MAX, &own, &sz);
		data = own;
	}
	*ret = NULL;
	r->in = (struct proto){ data, data ? (const uint8_t *)data + sz : NULL };
	if (!err && legacy_is(data, sz))
		err = r->keeps ? -EBADMSG : legacy_read(data, sz, r->memory, r->labels, ret);
	else if (!err)
		err = read_message(r, ret);
	free(own);
	return err;
}

int pprof_read(const void *data, size_t sz, struct profile **ret)
{
	return pprof_read_within(data, sz, PPROF_READ_MEMORY, ret);
}

int pprof_read_within(const void *data, size_t sz, size_t memory, struct profile **ret)
{
	struct reader r = { .memory = memory, .labels = true };

	return read_all(data, sz, &r, ret);
}

int pprof_read_keeping(const void *data, size_t sz, bool (*keeps)(const char *key),
		       struct profile **ret)
{
	struct reader r = { .memory = PPROF_READ_MEMORY, .labels = true, .keeps = keeps };

	return read_all(data, sz, &r, ret);
}

int pprof_read_stacks(const void *data, size_t sz, struct profile **ret)
{
	struct reader r = { .memory = PPROF_READ_MEMORY };

	return read_all(data, sz, &r, ret);
}
