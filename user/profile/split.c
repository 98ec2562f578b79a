/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies samples from profile to profile, and what they refer to at its first use. */
#include "profile/split.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"

/* What has been copied to the part at hand: its number there, PROFILE_NONE if it was not yet. */
struct copier {
	const struct profile *from;
	struct profile *to;
	bool (*keeps)(const char *label); /* NULL: all */
	uint32_t *strings, *mappings, *functions, *locations;
	struct profile_line *lines; /* scratch */
	uint32_t *locs;
	struct profile_label *labels;
	size_t line_cap, loc_cap, label_cap;
	bool failed; /* no memory */
};

static void forget(uint32_t *numbers, size_t cnt)
{
	memset(numbers, 0xff, cnt * sizeof(*numbers));
}

static void begin(struct copier *c, struct profile *to)
{
	const struct profile *p = c->from;

	c->to = to;
	forget(c->strings, strtab__cnt(p->strings));
	forget(c->mappings, p->mapping_cnt);
	forget(c->functions, p->function_cnt);
	forget(c->locations, p->location_cnt);
}

static uint32_t keep(struct copier *c, uint32_t *number, uint32_t copied)
{
	c->failed |= copied == PROFILE_NONE;
	*number = copied;
	return copied;
}

static uint32_t string(struct copier *c, uint32_t id)
{
	if (c->strings[id] != PROFILE_NONE)
		return c->strings[id];
	return keep(c, &c->strings[id], profile__string(c->to, strtab__get(c->from->strings, id)));
}

static uint32_t mapping(struct copier *c, uint32_t i)
{
	struct profile_mapping m;

	if (i == PROFILE_NONE || c->mappings[i] != PROFILE_NONE)
		return i == PROFILE_NONE ? i : c->mappings[i];
	m = c->from->mappings[i];
	m.filename = string(c, m.filename);
	m.build_id = string(c, m.build_id);
	return keep(c, &c->mappings[i], c->failed ? PROFILE_NONE : profile__add_mapping(c->to, &m));
}

static uint32_t function(struct copier *c, uint32_t i)
{
	struct profile_function f;

	if (c->functions[i] != PROFILE_NONE)
		return c->functions[i];
	f = c->from->functions[i];
	f.name = string(c, f.name);
	f.system_name = string(c, f.system_name);
	f.filename = string(c, f.filename);
	return keep(c, &c->functions[i],
		    c->failed ? PROFILE_NONE : profile__add_function(c->to, &f));
}

static uint32_t location(struct copier *c, uint32_t i)
{
	const struct profile_location *l = &c->from->locations[i];
	uint32_t in, ret;

	if (c->locations[i] != PROFILE_NONE)
		return c->locations[i];
	in = mapping(c, l->mapping);
	if (c->failed || util_reserve(&c->lines, &c->line_cap, l->line_cnt + 1, sizeof(*c->lines)))
		return keep(c, &c->locations[i], PROFILE_NONE);
	ret = profile__add_location(c->to, in, l->address);
	for (uint32_t k = 0; k < l->line_cnt; k++) {
		c->lines[k] = c->from->lines[l->line + k];
		c->lines[k].function = function(c, c->lines[k].function);
	}
	if (ret == PROFILE_NONE || c->failed ||
	    profile__set_lines(c->to, ret, c->lines, l->line_cnt))
		ret = PROFILE_NONE;
	return keep(c, &c->locations[i], ret);
}

static void sample(struct copier *c, const struct profile_sample *s)
{
	size_t label_cnt = 0;

	if (util_reserve(&c->locs, &c->loc_cap, s->loc_cnt + 1, sizeof(*c->locs)) ||
	    util_reserve(&c->labels, &c->label_cap, s->label_cnt + 1, sizeof(*c->labels))) {
		c->failed = true;
		return;
	}
	for (uint32_t i = 0; i < s->loc_cnt; i++)
		c->locs[i] = location(c, c->from->loc_ids[s->loc + i]);
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *from = &c->from->labels[s->label + i];
		struct profile_label *l = &c->labels[label_cnt];

		if (c->keeps && !c->keeps(strtab__get(c->from->strings, from->key)))
			continue;
		label_cnt++;
		*l = *from;
		l->key = string(c, l->key);
		l->str = string(c, l->str);
		l->num_unit = string(c, l->num_unit);
	}
	c->failed |= !c->failed && profile__add_sample(c->to, c->locs, s->loc_cnt, c->labels,
						       label_cnt, s->value) == PROFILE_NONE;
}

/* Everything but samples. */
static struct profile *new_part(const struct profile *p)
{
	struct profile *to = profile__new(p->value_types, p->value_cnt, p->period_type, p->period);

	if (!to)
		return NULL;
	to->folded_value = p->folded_value;
	to->time_ns = p->time_ns;
	to->duration_ns = p->duration_ns;
	return to;
}

static void copy_texts(struct copier *c)
{
	const struct profile *p = c->from;

	c->to->drop_frames = string(c, p->drop_frames);
	c->to->keep_frames = string(c, p->keep_frames);
	for (size_t i = 0; i < p->comment_cnt && !c->failed; i++)
		c->failed = profile__add_comment(c->to, strtab__get(p->strings, p->comments[i]));
}

/* The samples of the part are those of order[0..cnt). */
static int copy_part(struct copier *c, const uint32_t *order, size_t cnt, struct profile **ret)
{
	struct profile *to = new_part(c->from);

	*ret = to;
	if (!to)
		return -ENOMEM;
	begin(c, to);
	for (size_t i = 0; i < cnt && !c->failed; i++)
		sample(c, &c->from->samples[order[i]]);
	if (!c->failed)
		copy_texts(c);
	return c->failed ? -ENOMEM : 0;
}

/* Numbers of samples by part, and where each part's begin: first[part_cnt] is the end. */
static void sort_by_part(const uint32_t *part_of, size_t sample_cnt, size_t part_cnt, size_t *first,
			 uint32_t *order)
{
	for (size_t i = 0; i < sample_cnt; i++)
		if (part_of[i] != PROFILE_NONE)
			first[part_of[i] + 1]++;
	for (size_t i = 0; i < part_cnt; i++)
		first[i + 1] += first[i];
	for (size_t i = 0; i < sample_cnt; i++)
		if (part_of[i] != PROFILE_NONE)
			order[first[part_of[i]]++] = (uint32_t)i;
	for (size_t i = part_cnt; i > 0; i--)
		first[i] = first[i - 1];
	first[0] = 0;
}

static uint32_t *new_numbers(size_t cnt)
{
	return malloc((cnt + 1) * sizeof(uint32_t));
}

/* 0 or -ENOMEM; either way it is the caller's to release. */
static int copier__init(struct copier *c, const struct profile *p)
{
	*c = (struct copier){
		.from = p,
		.strings = new_numbers(strtab__cnt(p->strings)),
		.mappings = new_numbers(p->mapping_cnt),
		.functions = new_numbers(p->function_cnt),
		.locations = new_numbers(p->location_cnt),
	};
	return c->strings && c->mappings && c->functions && c->locations ? 0 : -ENOMEM;
}

static void copier__done(struct copier *c)
{
	free(c->strings);
	free(c->mappings);
	free(c->functions);
	free(c->locations);
	free(c->lines);
	free(c->locs);
	free(c->labels);
}

int profile_split(const struct profile *p, const uint32_t *part_of, size_t part_cnt,
		  struct profile **ret_parts)
{
	struct copier c;
	uint32_t *order = new_numbers(p->sample_cnt);
	size_t *first = calloc(part_cnt + 1, sizeof(*first)), n = 0;
	int err = copier__init(&c, p);

	if (!order || !first)
		err = -ENOMEM;
	if (!err)
		sort_by_part(part_of, p->sample_cnt, part_cnt, first, order);
	for (; !err && n < part_cnt; n++)
		err = copy_part(&c, order + first[n], first[n + 1] - first[n], &ret_parts[n]);
	while (err && n > 0) {
		profile__free(ret_parts[--n]);
		ret_parts[n] = NULL;
	}
	copier__done(&c);
	free(order);
	free(first);
	return err;
}

int profile_without_labels(const struct profile *p, bool (*keeps)(const char *key),
			   struct profile **ret)
{
	uint32_t *order = new_numbers(p->sample_cnt);
	struct copier c;
	int err = copier__init(&c, p);

	*ret = NULL;
	c.keeps = keeps;
	if (!order)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < p->sample_cnt; i++)
		order[i] = (uint32_t)i;
	if (!err)
		err = copy_part(&c, order, p->sample_cnt, ret);
	if (err) {
		profile__free(*ret);
		*ret = NULL;
	}
	copier__done(&c);
	free(order);
	return err;
}
