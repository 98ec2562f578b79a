/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the legacy formats apart, and makes the profile of what their readers find. */
#include "profile/legacy_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/legacy_reader.h"

#define GROWN 3 / 2 /* times what is in it is the size of an array that grows */
#define NO_CODE 2   /* addresses below are none: writers put them where there is no stack */
#define SYMBOLS "--- symbol"

static const struct {
	bool (*is)(struct legacy_text in);
	int (*read)(struct legacy_reader *r);
} formats[] = {
	{ legacy_is_cpu, legacy_read_cpu },
	{ legacy_is_heap, legacy_read_heap },
	{ legacy_is_contention, legacy_read_contention },
	{ legacy_is_count, legacy_read_count },
	{ legacy_is_threads, legacy_read_threads },
};

int legacy_spend(struct legacy_reader *r, size_t bytes)
{
	if (bytes > r->memory)
		return -E2BIG;
	r->memory -= bytes;
	return 0;
}

uint32_t legacy_string(struct legacy_reader *r, const struct legacy_text *text)
{
	size_t sz = legacy_left(text);

	if (util_reserve(&r->text_buf, &r->text_cap, sz + 1, 1))
		return PROFILE_NONE;
	if (sz)
		memcpy(r->text_buf, text->at, sz);
	r->text_buf[sz] = '\0';
	return profile__string(r->out, r->text_buf);
}

/* ---- the profile ---- */

int legacy_begin(struct legacy_reader *r, const struct profile_value_type *types, size_t cnt,
		 struct profile_value_type period_type, int64_t period)
{
	r->out = profile__new(types, cnt, period_type, period);
	return r->out ? legacy_add_maps(r) : -errno;
}

static int add_location(struct legacy_reader *r, uint64_t address, uint32_t *ret)
{
	size_t before = r->out->location_cnt;
	int err = 0;

	*ret = profile__add_location(r->out, legacy_map_at(r, address), address);
	if (*ret == PROFILE_NONE)
		return -ENOMEM;
	if (r->out->location_cnt > before)
		err = legacy_spend(r, sizeof(struct profile_location) + 2 * LEGACY_INDEX_COST) ?:
			      legacy_name(r, *ret, address);
	return err;
}

int legacy_add_frame(struct legacy_reader *r, uint64_t address, bool exact)
{
	if (address < NO_CODE)
		return 0;
	if (r->stack_cnt >= r->memory / sizeof(*r->stack))
		return -E2BIG;
	if (util_reserve(&r->stack, &r->stack_cap, r->stack_cnt + 1, sizeof(*r->stack)))
		return -ENOMEM;
	return add_location(r, address - (exact || !r->less_one ? 0 : 1),
			    &r->stack[r->stack_cnt++]);
}

int legacy_add_frames(struct legacy_reader *r, struct legacy_text line)
{
	uint64_t address;
	int err = 0;

	for (legacy_skip_blanks(&line); !err && line.at < line.end; legacy_skip_blanks(&line)) {
		if (!legacy_take_hex(&line, &address))
			return -EBADMSG;
		err = legacy_add_frame(r, address, false);
	}
	return err;
}

int legacy_next(struct legacy_reader *r, struct legacy_text *ret)
{
	while (legacy_line(&r->in, ret)) {
		struct legacy_text line = *ret;

		if (legacy_is_comment(&line))
			continue;
		if (legacy_take(&line, "---") || legacy_is_maps_head(line))
			return 0;
		return r->in.at[-1] == '\n' ? 1 : -EBADMSG;
	}
	return 0;
}

static bool is_nothing(const struct legacy_reader *r, const int64_t *values)
{
	for (size_t i = 0; i < r->out->value_cnt; i++)
		if (values[i])
			return false;
	return true;
}

int legacy_add_sample(struct legacy_reader *r, const int64_t *values, int64_t size)
{
	struct profile_label label = { .num = size };
	size_t cnt = r->stack_cnt, grows;
	int err;

	r->stack_cnt = 0;
	if (is_nothing(r, values))
		return 0;
	grows = sizeof(struct profile_sample) + r->out->value_cnt * sizeof(*values) +
		cnt * sizeof(*r->stack);
	err = legacy_spend(r, grows * GROWN + sizeof(label) + LEGACY_INDEX_COST);
	if (err)
		return err;
	if (!r->labels)
		return profile__append_sample(r->out, r->stack, cnt, values);
	label.key = profile__string(r->out, "bytes");
	if (label.key == PROFILE_NONE || profile__add_sample(r->out, r->stack, cnt, &label,
							     size ? 1 : 0, values) == PROFILE_NONE)
		return -ENOMEM;
	return 0;
}

/* ---- all of it ---- */

static bool has_symbols(struct legacy_text in)
{
	return legacy_take(&in, SYMBOLS);
}

bool legacy_is(const void *data, size_t sz)
{
	struct legacy_text in = { data, (const char *)data + sz };

	if (!sz)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].is(in))
			return true;
	return has_symbols(in);
}

static int read_format(struct legacy_reader *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].is(r->in))
			return formats[i].read(r);
	return -EBADMSG;
}

int legacy_read(const void *data, size_t sz, size_t memory, bool labels, struct profile **ret)
{
	struct legacy_reader r = { .in = { data, (const char *)data + sz },
				   .memory = memory,
				   .labels = labels,
				   .less_one = true };
	int err = has_symbols(r.in) ? legacy_read_symbols(&r) : 0;

	err = err ?: read_format(&r);
	free(r.maps);
	free(r.symbols);
	free(r.stack);
	free(r.text_buf);
	if (err)
		profile__free(r.out);
	*ret = err ? NULL : r.out;
	return err;
}
