/* SPDX-License-Identifier: BSD-2-Clause */
/* "heap profile: 1: 64 [2: 128] @ heap_v2/524288", then "1: 64 [2: 128] @ 0x1 0x2" for each stack: in use, and
 * allocated. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "profile/legacy_reader.h"

enum {
	ALLOC_OBJECTS,
	ALLOC_SPACE,
	INUSE_OBJECTS,
	INUSE_SPACE,
	HEAP_VALUES
};

struct heap {
	int64_t values[HEAP_VALUES]; /* of the head */
	int64_t rate;		     /* mean distance of samples in bytes; 1: all are there */
	bool allocs;		     /* there are values of what was allocated, too */
};

/* "1: 64 [2: 128] @" */
static bool take_values(struct legacy_text *line, int64_t values[HEAP_VALUES])
{
	if (!legacy_take_signed(line, &values[INUSE_OBJECTS]) || !legacy_take(line, ":") ||
	    !legacy_take_signed(line, &values[INUSE_SPACE]))
		return false;
	legacy_skip_blanks(line);
	if (!legacy_take(line, "[") || !legacy_take_number(line, &values[ALLOC_OBJECTS]) ||
	    !legacy_take(line, ":") || !legacy_take_number(line, &values[ALLOC_SPACE]))
		return false;
	legacy_skip_blanks(line);
	if (!legacy_take(line, "]"))
		return false;
	legacy_skip_blanks(line);
	return legacy_take(line, "@");
}

static bool is_word(const struct legacy_text *word, const char *text)
{
	return legacy_left(word) == strlen(text) && !memcmp(word->at, text, strlen(text));
}

/* What stands behind the '@' of the head. */
static bool take_kind(struct legacy_text *line, int64_t *ret_rate)
{
	static const char *const unsampled[] = { "heapprofile", "growth", "growthz",
						 "fragmentation", "fragmentationz" };
	struct legacy_text word;
	int64_t divisor = 1;

	legacy_skip_blanks(line);
	word = *line;
	*ret_rate = 1;
	for (size_t i = 0; i < ARRAY_SIZE(unsampled); i++)
		if (is_word(&word, unsampled[i]))
			return true;
	if (legacy_take(line, "heap/"))
		divisor = 2; /* its writers double it */
	else if (!legacy_take(line, "heap_v2/") && !legacy_take(line, "heapz_v2/"))
		return false;
	if (!legacy_take_number(line, ret_rate) || line->at < line->end)
		return false;
	*ret_rate /= divisor;
	return true;
}

static bool take_head(struct legacy_text in, struct heap *ret)
{
	struct legacy_text line;

	if (!legacy_line(&in, &line) || !legacy_take(&line, "heap profile:") ||
	    !take_values(&line, ret->values) || !take_kind(&line, &ret->rate))
		return false;
	for (int i = 0; i < 2; i++)
		ret->allocs |= ret->values[i] && ret->values[i] != ret->values[INUSE_OBJECTS + i];
	return true;
}

bool legacy_is_heap(struct legacy_text in)
{
	return legacy_take(&in, "heap profile:");
}

static int64_t whole(double value)
{
	return value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

/* Of objects of one size each is sampled with the chance 1 - exp(-size / rate). */
static int scale(int64_t *count, int64_t *space, int64_t rate)
{
	double factor;

	if (!*count)
		return *space ? -EBADMSG : 0;
	if (rate <= 1)
		return 0;
	if ((*count < 0) != (*space < 0) && *space)
		return -EBADMSG;
	factor = *space ? 1 / (1 - exp(-((double)*space / (double)*count) / (double)rate)) : 0;
	*count = whole((double)*count * factor);
	*space = whole((double)*space * factor);
	return 0;
}

static int add_line(struct legacy_reader *r, const struct heap *h, struct legacy_text line)
{
	int64_t values[HEAP_VALUES], size = 0;
	int err = take_values(&line, values) ? 0 : -EBADMSG;

	for (int i = h->allocs ? ALLOC_OBJECTS : INUSE_OBJECTS; !err && i < HEAP_VALUES; i += 2) {
		if (values[i] > 0)
			size = values[i + 1] / values[i];
		err = scale(&values[i], &values[i + 1], h->rate);
	}
	return err				  ?:
		       legacy_add_frames(r, line) ?:
		       legacy_add_sample(r, values + (h->allocs ? ALLOC_OBJECTS : INUSE_OBJECTS),
					 size);
}

int legacy_read_heap(struct legacy_reader *r)
{
	static const struct profile_value_type all[] = { { "alloc_objects", "count" },
							 { "alloc_space", "bytes" },
							 { "inuse_objects", "count" },
							 { "inuse_space", "bytes" } };
	static const struct profile_value_type one[] = { { "objects", "count" },
							 { "space", "bytes" } };
	static const struct profile_value_type space = { "space", "bytes" };
	struct legacy_text line;
	struct heap h = { 0 };
	int err, more = 0;

	if (!take_head(r->in, &h))
		return -EBADMSG;
	err = legacy_find_maps(r) ?:
				    legacy_begin(r, h.allocs ? all : one,
					 h.allocs ? ARRAY_SIZE(all) : ARRAY_SIZE(one), space, h.rate);
	legacy_line(&r->in, &line);
	while (!err && (more = legacy_next(r, &line)) > 0)
		err = add_line(r, &h, line);
	return err ?: more;
}
