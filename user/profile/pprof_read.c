/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/pprof_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/hash.h"
#include "base/util.h"
#include "profile.pb-c.h"
#include "profile/profile.h"

#define GZIP_WINDOW (15 + 16) /* zlib.h, inflateInit2: gzip alone */
#define FIRST_SZ 65536
#define ALLOC_COST 16 /* bytes of malloc's own for each piece */

typedef Perftools__Profiles__Profile pb_profile;

/* Where an id of the file leads. */
struct entry {
	uint64_t id;
	uint32_t to;
};

struct reader {
	const pb_profile *in;
	struct profile *out;
	uint32_t *strings;			    /* by index in the file: id */
	struct hash mappings, functions, locations; /* of struct entry */
	/* scratch */
	struct profile_line *lines;
	struct profile_label *labels;
	uint32_t *locs;
	size_t line_cap, label_cap, loc_cap;
};

/* ---- gzip ---- */

static bool is_gzip(const uint8_t *data, size_t sz)
{
	return sz >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

/* One member after the other, as gzip has it. *ret is the caller's also if it fails. */
static int expand(z_stream *z, uint8_t **ret, size_t *ret_sz)
{
	size_t cap = 0, have = 0;
	int rc = Z_OK;

	while (rc == Z_OK || (rc == Z_STREAM_END && is_gzip(z->next_in, z->avail_in))) {
		if (rc == Z_STREAM_END && inflateReset(z) != Z_OK)
			return -EBADMSG;
		if (have == PPROF_READ_MAX)
			return -E2BIG;
		if (have == cap && util_reserve(ret, &cap, MAX(2 * have, FIRST_SZ), 1))
			return -ENOMEM;
		z->next_out = *ret + have;
		z->avail_out = (uInt)MIN(cap - have, PPROF_READ_MAX - have);
		rc = inflate(z, Z_NO_FLUSH);
		have = (size_t)(z->next_out - *ret);
		/* nothing more to read: it is cut */
		if (rc == Z_BUF_ERROR || (rc == Z_OK && !z->avail_in && z->avail_out))
			return -EBADMSG;
	}
	*ret_sz = have;
	return rc == Z_STREAM_END ? 0 : rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

/* ---- messages, within a limit ---- */

struct memory {
	size_t left;
	int err; /* why something was not given; 0: nothing was asked for in vain */
};

static void *memory_alloc(void *data, size_t sz)
{
	struct memory *m = data;
	void *ret;

	if (m->left < ALLOC_COST || m->left - ALLOC_COST < sz) {
		m->err = -E2BIG;
		return NULL;
	}
	ret = malloc(sz);
	if (ret)
		m->left -= sz + ALLOC_COST;
	else
		m->err = -ENOMEM;
	return ret;
}

static void memory_free(void *data, void *p)
{
	(void)data;
	free(p);
}

static int unpack_plain(const uint8_t *data, size_t sz, size_t memory, pb_profile **ret)
{
	struct memory m = { .left = memory };
	ProtobufCAllocator allocator = { memory_alloc, memory_free, &m };

	*ret = perftools__profiles__profile__unpack(&allocator, sz, data);
	if (*ret)
		return 0;
	return m.err ? m.err : -EBADMSG;
}

static int unpack(const uint8_t *data, size_t sz, size_t memory, pb_profile **ret)
{
	z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)sz };
	uint8_t *plain = NULL;
	int err;

	if (sz > PPROF_READ_MAX)
		return -E2BIG;
	if (!is_gzip(data, sz))
		return unpack_plain(data, sz, memory, ret);
	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	err = expand(&z, &plain, &sz);
	inflateEnd(&z);
	if (!err)
		err = unpack_plain(plain, sz, memory, ret);
	free(plain);
	return err;
}

/* ---- what refers to what ---- */

/* False if there is no such string. */
static bool string(const struct reader *r, int64_t index, uint32_t *ret)
{
	if (index < 0 || (uint64_t)index >= r->in->n_string_table)
		return false;
	*ret = r->strings[index];
	return true;
}

static bool text(const struct reader *r, int64_t index, const char **ret)
{
	if (index < 0 || (uint64_t)index >= r->in->n_string_table)
		return false;
	*ret = r->in->string_table[index];
	return true;
}

/* Ids are not 0, and no two are the same. */
static int note(struct hash *ids, uint64_t id, uint32_t to)
{
	struct entry *e;
	bool is_new;

	if (to == PROFILE_NONE)
		return -ENOMEM;
	e = hash__insert(ids, &id, &is_new);
	if (!e)
		return -ENOMEM;
	if (!id || !is_new)
		return -EBADMSG;
	e->to = to;
	return 0;
}

static bool find(const struct hash *ids, uint64_t id, uint32_t *ret)
{
	const struct entry *e = hash__lookup(ids, &id);

	if (e)
		*ret = e->to;
	return e != NULL;
}

/* ---- the tables ---- */

static int read_strings(struct reader *r)
{
	const pb_profile *in = r->in;

	if (!in->n_string_table || *in->string_table[0])
		return -EBADMSG;
	r->strings = malloc(in->n_string_table * sizeof(*r->strings));
	if (!r->strings)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_string_table; i++) {
		r->strings[i] = profile__string(r->out, in->string_table[i]);
		if (r->strings[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

static bool value_type(const struct reader *r, const Perftools__Profiles__ValueType *t,
		       struct profile_value_type *ret)
{
	return text(r, t->type, &ret->type) && text(r, t->unit, &ret->unit);
}

/* Makes the profile, which is empty. */
static int read_types(struct reader *r)
{
	const pb_profile *in = r->in;
	struct profile_value_type types[PROFILE_MAX_VALUES], period = { 0 };

	if (!in->n_sample_type)
		return -EBADMSG;
	if (in->n_sample_type > PROFILE_MAX_VALUES)
		return -E2BIG;
	for (size_t i = 0; i < in->n_sample_type; i++)
		if (!value_type(r, in->sample_type[i], &types[i]))
			return -EBADMSG;
	if (in->period_type && !value_type(r, in->period_type, &period))
		return -EBADMSG;
	r->out = profile__new(types, in->n_sample_type, period, in->period);
	if (!r->out)
		return -ENOMEM;
	r->out->time_ns = in->time_nanos;
	r->out->duration_ns = in->duration_nanos;
	return 0;
}

static int read_mappings(struct reader *r)
{
	int err = 0;

	for (size_t i = 0; !err && i < r->in->n_mapping; i++) {
		const Perftools__Profiles__Mapping *m = r->in->mapping[i];
		struct profile_mapping to = {
			.start = m->memory_start,
			.limit = m->memory_limit,
			.offset = m->file_offset,
			.owner = (uint32_t)i, /* each is one of its own */
		};

		if (!string(r, m->filename, &to.filename) || !string(r, m->build_id, &to.build_id))
			return -EBADMSG;
		err = note(&r->mappings, m->id, profile__add_mapping(r->out, &to));
	}
	return err;
}

static int read_functions(struct reader *r)
{
	int err = 0;

	for (size_t i = 0; !err && i < r->in->n_function; i++) {
		const Perftools__Profiles__Function *f = r->in->function[i];
		struct profile_function to = { .start_line = f->start_line };

		if (!string(r, f->name, &to.name) || !string(r, f->system_name, &to.system_name) ||
		    !string(r, f->filename, &to.filename))
			return -EBADMSG;
		err = note(&r->functions, f->id, profile__add_function(r->out, &to));
	}
	return err;
}

static int read_lines(struct reader *r, uint32_t location, const Perftools__Profiles__Location *l)
{
	if (util_reserve(&r->lines, &r->line_cap, l->n_line, sizeof(*r->lines)))
		return -ENOMEM;
	for (size_t i = 0; i < l->n_line; i++) {
		r->lines[i].line = l->line[i]->line;
		if (!find(&r->functions, l->line[i]->function_id, &r->lines[i].function))
			return -EBADMSG;
	}
	return profile__set_lines(r->out, location, r->lines, l->n_line);
}

static int read_locations(struct reader *r)
{
	int err = 0;

	for (size_t i = 0; !err && i < r->in->n_location; i++) {
		const Perftools__Profiles__Location *l = r->in->location[i];
		uint32_t mapping = PROFILE_NONE, to;

		if (l->mapping_id && !find(&r->mappings, l->mapping_id, &mapping))
			return -EBADMSG;
		/* interpreters have no addresses: what is equal is told by its lines */
		to = profile__append_location(r->out, mapping, l->address);
		err = note(&r->locations, l->id, to);
		if (!err)
			err = read_lines(r, to, l);
	}
	return err;
}

static int read_labels(struct reader *r, const Perftools__Profiles__Sample *s)
{
	if (util_reserve(&r->labels, &r->label_cap, s->n_label, sizeof(*r->labels)))
		return -ENOMEM;
	for (size_t i = 0; i < s->n_label; i++) {
		const Perftools__Profiles__Label *l = s->label[i];
		struct profile_label *to = &r->labels[i];

		to->num = l->num;
		if (!string(r, l->key, &to->key) || !string(r, l->str, &to->str) ||
		    !string(r, l->num_unit, &to->num_unit))
			return -EBADMSG;
	}
	return 0;
}

static int read_sample(struct reader *r, const Perftools__Profiles__Sample *s)
{
	int err = read_labels(r, s);

	if (err)
		return err;
	if (s->n_value != r->out->value_cnt)
		return -EBADMSG;
	if (util_reserve(&r->locs, &r->loc_cap, s->n_location_id, sizeof(*r->locs)))
		return -ENOMEM;
	for (size_t i = 0; i < s->n_location_id; i++)
		if (!find(&r->locations, s->location_id[i], &r->locs[i]))
			return -EBADMSG;
	return profile__add_sample(r->out, r->locs, s->n_location_id, r->labels, s->n_label,
				   s->value) == PROFILE_NONE ?
		       -ENOMEM :
		       0;
}

static int read_samples(struct reader *r)
{
	int err = 0;

	for (size_t i = 0; !err && i < r->in->n_sample; i++)
		err = read_sample(r, r->in->sample[i]);
	return err;
}

static int read_texts(struct reader *r)
{
	const pb_profile *in = r->in;
	const char *comment;
	uint32_t type;
	int err = 0;

	if (!string(r, in->drop_frames, &r->out->drop_frames) ||
	    !string(r, in->keep_frames, &r->out->keep_frames) ||
	    !string(r, in->default_sample_type, &type))
		return -EBADMSG;
	for (size_t i = 0; i < r->out->value_cnt; i++) {
		if (strcmp(r->out->value_types[i].type, strtab__get(r->out->strings, type)) != 0)
			continue;
		r->out->folded_value = i;
		r->out->default_type = type;
	}
	for (size_t i = 0; !err && i < in->n_comment; i++)
		err = text(r, in->comment[i], &comment) ? profile__add_comment(r->out, comment) :
							  -EBADMSG;
	return err;
}

int pprof_read(const void *data, size_t sz, struct profile **ret)
{
	return pprof_read_within(data, sz, PPROF_READ_MEMORY, ret);
}

int pprof_read_within(const void *data, size_t sz, size_t memory, struct profile **ret)
{
	static int (*const steps[])(struct reader *) = {
		read_types,	read_strings, read_mappings, read_functions,
		read_locations, read_samples, read_texts,
	};
	pb_profile *in = NULL;
	struct reader r = { 0 };
	int err = unpack(data, sz, memory, &in);

	*ret = NULL;
	if (err)
		return err;
	r.in = in;
	hash__init(&r.mappings, sizeof(struct entry), sizeof(uint64_t), HASH_MAX);
	hash__init(&r.functions, sizeof(struct entry), sizeof(uint64_t), HASH_MAX);
	hash__init(&r.locations, sizeof(struct entry), sizeof(uint64_t), HASH_MAX);
	for (size_t i = 0; !err && i < ARRAY_SIZE(steps); i++)
		err = steps[i](&r);
	if (err)
		profile__free(r.out);
	else
		*ret = r.out;
	hash__done(&r.mappings);
	hash__done(&r.functions);
	hash__done(&r.locations);
	free(r.strings);
	free(r.lines);
	free(r.labels);
	free(r.locs);
	perftools__profiles__profile__free_unpacked(in, NULL);
	return err;
}
