/* SPDX-License-Identifier: BSD-2-Clause */
/* gperftools' CPU profile: words 0, 3, 0, us, 0, then stacks, then 0, 1, 0 and the mappings. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "profile/legacy_reader.h"

#define HEAD_WORDS 5
#define WRITTEN_BY_PPROF 1 /* us: what google-pprof --raw says, whatever the distance was */

struct words {
	struct legacy_text in;
	size_t sz; /* of a word */
	bool big;
};

static size_t words_left(const struct words *w)
{
	return legacy_left(&w->in) / w->sz;
}

/* There is one. */
static uint64_t take(struct words *w)
{
	uint64_t wide;
	uint32_t narrow;

	if (w->sz == sizeof(wide)) {
		memcpy(&wide, w->in.at, sizeof(wide));
		wide = w->big ? be64toh(wide) : le64toh(wide);
	} else {
		memcpy(&narrow, w->in.at, sizeof(narrow));
		wide = w->big ? be32toh(narrow) : le32toh(narrow);
	}
	w->in.at += w->sz;
	return wide;
}

/* us between two samples; 0: it is no such file. */
static uint64_t take_head(struct words *w)
{
	uint64_t head[HEAD_WORDS];

	if (words_left(w) < HEAD_WORDS)
		return 0;
	for (size_t i = 0; i < HEAD_WORDS; i++)
		head[i] = take(w);
	return !head[0] && head[1] == 3 && !head[2] && !head[4] ? head[3] : 0;
}

/* Finds out of which words it is. *ret stands behind the head; the same as take_head(). */
static uint64_t open_words(struct legacy_text in, struct words *ret)
{
	uint64_t us = 0;

	for (int i = 0; i < 4 && !us; i++) {
		*ret = (struct words){ in, i & 1 ? sizeof(uint32_t) : sizeof(uint64_t), i & 2 };
		us = take_head(ret);
	}
	return us;
}

bool legacy_is_cpu(struct legacy_text in)
{
	struct words w;

	return open_words(in, &w);
}

struct record {
	uint64_t count;
	struct words stack;
	uint64_t depth;
};

/* 1; 0: it was the last one; -EBADMSG. */
static int take_record(struct words *w, bool may_end, struct record *ret)
{
	struct words leaf;

	if (may_end && w->in.at == w->in.end)
		return 0;
	if (words_left(w) < 3)
		return -EBADMSG;
	ret->count = take(w);
	ret->depth = take(w);
	leaf = ret->stack = *w;
	if (!ret->depth || ret->depth > words_left(w) || ret->count > INT64_MAX)
		return -EBADMSG;
	w->in.at += ret->depth * w->sz;
	return ret->count || ret->depth > 1 || take(&leaf);
}

/* Finds the end, and in a file with names whether its callers' addresses are return addresses: they are those
 * that have names, or those behind. *w stands at the mappings then. */
static int scan(struct legacy_reader *r, struct words *w)
{
	size_t at = 0, before = 0;
	struct record rec;
	int more;

	while ((more = take_record(w, r->symbolized, &rec)) > 0) {
		take(&rec.stack);
		for (uint64_t i = 1; r->symbolized && i < rec.depth; i++) {
			uint64_t address = take(&rec.stack);

			at += legacy_has_symbol(r, address);
			before += legacy_has_symbol(r, address - 1);
		}
	}
	r->less_one = !r->symbolized || before > at;
	return more;
}

static int add_record(struct legacy_reader *r, struct record *rec, int64_t period)
{
	int64_t values[2] = { (int64_t)rec->count };
	uint64_t leaf = take(&rec->stack);
	int err = legacy_add_frame(r, leaf, true);

	if (__builtin_mul_overflow(values[0], period, &values[1]))
		values[1] = INT64_MAX;
	for (uint64_t i = 1; !err && i < rec->depth; i++) {
		uint64_t address = take(&rec->stack);

		/* an unwinder may have found the leaf once more */
		if (i > 1 || address != leaf)
			err = legacy_add_frame(r, address, false);
	}
	return err ?: legacy_add_sample(r, values, 0);
}

static int begin(struct legacy_reader *r, int64_t us)
{
	static const struct profile_value_type types[] = { { "samples", "count" },
							   { "cpu", "nanoseconds" } };
	static const struct profile_value_type none = { "", "" };

	if (r->symbolized && us == WRITTEN_BY_PPROF)
		return legacy_begin(r, types, 1, none, 0);
	return legacy_begin(r, types, ARRAY_SIZE(types), types[1], us * 1000);
}

int legacy_read_cpu(struct legacy_reader *r)
{
	struct words w, records;
	uint64_t us = open_words(r->in, &w);
	struct record rec;
	int more, err;

	if (us > INT64_MAX / 1000)
		return -EBADMSG;
	records = w;
	err = scan(r, &w) ?: legacy_read_maps(r, w.in) ?: begin(r, (int64_t)us);
	while (!err && (more = take_record(&records, r->symbolized, &rec)) != 0)
		err = more < 0 ? more : add_record(r, &rec, r->out->period);
	return err;
}
