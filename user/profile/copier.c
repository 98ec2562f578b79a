/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/copier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "profile/profile.h"

static uint32_t *new_numbers(size_t cnt)
{
	return malloc((cnt + 1) * sizeof(uint32_t));
}

int copier__init(struct copier *c, const struct profile *p)
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

void copier__done(struct copier *c)
{
	free(c->strings);
	free(c->mappings);
	free(c->functions);
	free(c->locations);
	free(c->lines);
	free(c->locs);
	free(c->labels);
}

static void forget(uint32_t *numbers, size_t cnt)
{
	memset(numbers, 0xff, cnt * sizeof(*numbers));
}

void copier__begin(struct copier *c, struct profile *to)
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

uint32_t copier__string(struct copier *c, uint32_t id)
{
	if (c->strings[id] != PROFILE_NONE)
		return c->strings[id];
	return keep(c, &c->strings[id], profile__string(c->to, strtab__get(c->from->strings, id)));
}

uint32_t copier__mapping(struct copier *c, uint32_t i)
{
	struct profile_mapping m;

	if (i == PROFILE_NONE || c->mappings[i] != PROFILE_NONE)
		return i == PROFILE_NONE ? i : c->mappings[i];
	m = c->from->mappings[i];
	m.filename = copier__string(c, m.filename);
	m.build_id = copier__string(c, m.build_id);
	if (c->known)
		m.owner = 0;
	return keep(c, &c->mappings[i], c->failed ? PROFILE_NONE : profile__add_mapping(c->to, &m));
}

static uint32_t function(struct copier *c, uint32_t i)
{
	struct profile_function f;

	if (c->functions[i] != PROFILE_NONE)
		return c->functions[i];
	f = c->from->functions[i];
	f.name = copier__string(c, f.name);
	f.system_name = copier__string(c, f.system_name);
	f.filename = copier__string(c, f.filename);
	return keep(c, &c->functions[i],
		    c->failed ? PROFILE_NONE : profile__add_function(c->to, &f));
}

/* ---- locations: lines[] is what the one at hand has ---- */

/* Of interpreters all are at one address, and told apart by their lines alone. */
static uint64_t hash_location(const struct copier *c, const struct profile_location *l)
{
	uint64_t words[] = { l->mapping, l->address };
	uint64_t hash = util_hash(words, sizeof(words), c->known->seed);

	for (uint32_t i = 0; i < l->line_cnt; i++) {
		words[0] = c->lines[i].function;
		words[1] = (uint64_t)c->lines[i].line;
		hash = util_hash(words, sizeof(words), hash);
	}
	return hash;
}

static bool is_equal(const struct copier *c, uint32_t number, const struct profile_location *b)
{
	const struct profile_location *a = &c->to->locations[number];

	if (a->mapping != b->mapping || a->address != b->address || a->line_cnt != b->line_cnt)
		return false;
	for (uint32_t i = 0; i < b->line_cnt; i++) {
		const struct profile_line *line = &c->to->lines[a->line + i];

		if (line->function != c->lines[i].function || line->line != c->lines[i].line)
			return false;
	}
	return true;
}

static uint32_t append(struct copier *c, const struct profile_location *l)
{
	uint32_t ret = profile__append_location(c->to, l->mapping, l->address);

	if (ret == PROFILE_NONE || profile__set_lines(c->to, ret, c->lines, l->line_cnt))
		return PROFILE_NONE;
	return ret;
}

static uint32_t find_or_append(struct copier *c, const struct profile_location *l)
{
	uint64_t hash = hash_location(c, l);
	uint32_t *known, ret;

	for (known = hash__first(c->known, hash); known; known = hash__next(c->known, known))
		if (is_equal(c, *known, l))
			return *known;
	ret = append(c, l);
	known = ret == PROFILE_NONE ? NULL : hash__add(c->known, hash);
	if (!known)
		return PROFILE_NONE;
	*known = ret;
	return ret;
}

static uint32_t location(struct copier *c, uint32_t i)
{
	struct profile_location l = c->from->locations[i];

	if (c->locations[i] != PROFILE_NONE)
		return c->locations[i];
	l.mapping = copier__mapping(c, l.mapping);
	if (c->failed || util_reserve(&c->lines, &c->line_cap, l.line_cnt + 1, sizeof(*c->lines)))
		return keep(c, &c->locations[i], PROFILE_NONE);
	for (uint32_t k = 0; k < l.line_cnt; k++) {
		c->lines[k] = c->from->lines[l.line + k];
		c->lines[k].function = function(c, c->lines[k].function);
	}
	if (c->failed)
		return keep(c, &c->locations[i], PROFILE_NONE);
	return keep(c, &c->locations[i], c->known ? find_or_append(c, &l) : append(c, &l));
}

/* ---- samples ---- */

static size_t copy_labels(struct copier *c, const struct profile_sample *s)
{
	size_t cnt = 0, own;

	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *from = &c->from->labels[s->label + i];
		struct profile_label *l = &c->labels[cnt++];

		*l = *from;
		l->key = copier__string(c, l->key);
		l->str = copier__string(c, l->str);
		l->num_unit = copier__string(c, l->num_unit);
	}
	own = cnt;
	for (size_t i = 0; i < c->extra_cnt; i++) {
		size_t k = 0;

		while (k < own && c->labels[k].key != c->extra[i].key)
			k++;
		if (k == own)
			c->labels[cnt++] = c->extra[i];
	}
	return cnt;
}

void copier__sample(struct copier *c, const struct profile_sample *s)
{
	size_t label_cnt;

	if (util_reserve(&c->locs, &c->loc_cap, s->loc_cnt + 1, sizeof(*c->locs)) ||
	    util_reserve(&c->labels, &c->label_cap, s->label_cnt + c->extra_cnt + 1,
			 sizeof(*c->labels)))
		c->failed = true;
	for (uint32_t i = 0; i < s->loc_cnt && !c->failed; i++)
		c->locs[i] = location(c, c->from->loc_ids[s->loc + i]);
	if (c->failed)
		return;
	label_cnt = copy_labels(c, s);
	c->failed |=
		!c->failed && profile__add_sample(c->to, c->locs, s->loc_cnt, c->labels, label_cnt,
						  profile__values(c->from, s)) == PROFILE_NONE;
}
