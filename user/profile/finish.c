/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a profile ready to be written: what is in it, and what its mappings can claim about their locations' names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

#define MAX_PLACE 1024 /* bytes: each of a file's name may have become the three of U+FFFD */

/* "object+0xoffset" or "0xaddress", which are ours where nothing has a name. */
static bool is_place(const char *name)
{
	const char *plus, *hex;

	/* it is asked of each location, whose names may all be one of many megabytes */
	if (strnlen(name, MAX_PLACE + 1) > MAX_PLACE)
		return false;
	plus = strrchr(name, '+');
	hex = plus ? plus + 1 : name;
	return !strncmp(hex, "0x", 2) && hex[2] &&
	       !hex[2 + strspn(hex + 2, "0123456789abcdefABCDEF")];
}

/* Has it a real name? Others leave system_name out where it is the same; a place never has one. */
static bool has_name(const struct profile *p, const struct profile_function *f)
{
	return f->name && (f->system_name || !is_place(strtab__get(p->strings, f->name)));
}

/* Does the location have real names throughout? */
static bool is_named(const struct profile *p, const struct profile_location *l)
{
	for (uint32_t i = 0; i < l->line_cnt; i++)
		if (!has_name(p, &p->functions[p->lines[l->line + i].function]))
			return false;
	return l->line_cnt;
}

/* Moves the nameless of the used locations that share an entry with named ones to an entry of their
 * own. */
static int split_mappings(struct profile *p, const bool *used)
{
	enum {
		NAMED = 1,
		NAMELESS = 2,
		MIXED = 3
	};
	size_t cnt = p->mapping_cnt, mixed = 0, i;
	unsigned char *has = calloc(cnt + 1, sizeof(*has));
	uint32_t *other = calloc(cnt + 1, sizeof(*other));
	struct profile_mapping *grown;
	struct profile_location *l;
	int err = -ENOMEM;

	if (!has || !other)
		goto out;
	for (i = 0; i < p->location_cnt; i++) {
		l = &p->locations[i];
		if (used[i] && l->mapping != PROFILE_NONE)
			has[l->mapping] |= is_named(p, l) ? NAMED : NAMELESS;
	}
	for (i = 0; i < cnt; i++)
		mixed += has[i] == MIXED;
	if (mixed >= PROFILE_NONE - cnt)
		goto out;
	grown = reallocarray(p->mappings, cnt + mixed + 1, sizeof(*grown));
	if (!grown)
		goto out;
	p->mappings = grown;
	for (i = 0; i < cnt; i++) {
		other[i] = (uint32_t)i;
		if (has[i] != MIXED)
			continue;
		other[i] = (uint32_t)p->mapping_cnt;
		grown[p->mapping_cnt++] = grown[i];
	}
	for (i = 0; i < p->location_cnt; i++) {
		l = &p->locations[i];
		if (used[i] && l->mapping != PROFILE_NONE && !is_named(p, l))
			l->mapping = other[l->mapping];
	}
	err = 0;
out:
	free(has);
	free(other);
	return err;
}

/* What the location has not, its mapping cannot claim. */
static void restrict_flags(const struct profile *p, const struct profile_location *l,
			   struct profile_mapping *m)
{
	const struct profile_line *line;
	bool named = is_named(p, l);
	uint32_t i;

	m->has_functions &= named;
	m->has_filenames &= named;
	m->has_lines &= named;
	for (i = 0; i < l->line_cnt; i++) {
		line = &p->lines[l->line + i];
		m->has_filenames &= p->functions[line->function].filename != 0;
		m->has_lines &= line->line != 0;
	}
	m->has_inlines |= named && l->line_cnt > 1;
}

static void set_flags(struct profile *p, const bool *used)
{
	const struct profile_location *l;
	struct profile_mapping *m;
	size_t i;

	for (i = 0; i < p->mapping_cnt; i++) {
		m = &p->mappings[i];
		m->has_functions = m->has_filenames = m->has_lines = m->has_inlines = false;
	}
	/* those that are used at all claim everything, until a location disproves it */
	for (i = 0; i < p->location_cnt; i++) {
		l = &p->locations[i];
		if (!used[i] || l->mapping == PROFILE_NONE)
			continue;
		m = &p->mappings[l->mapping];
		m->has_functions = m->has_filenames = m->has_lines = true;
	}
	for (i = 0; i < p->location_cnt; i++) {
		l = &p->locations[i];
		if (used[i] && l->mapping != PROFILE_NONE)
			restrict_flags(p, l, &p->mappings[l->mapping]);
	}
}

void profile__hide_leaves(struct profile *p,
			  bool (*hidden)(const struct profile *p, const struct profile_location *l))
{
	for (size_t i = 0; i < p->sample_cnt; i++) {
		struct profile_sample *s = &p->samples[i];
		uint32_t n = 0;

		while (n < s->loc_cnt && hidden(p, &p->locations[p->loc_ids[s->loc + n]]))
			n++;
		if (n == s->loc_cnt)
			continue;
		s->loc += n;
		s->loc_cnt -= n;
	}
}

/* Moves a sample with its values. */
static void move_sample(struct profile *p, size_t to, size_t from)
{
	p->samples[to] = p->samples[from];
	memmove(profile__values(p, &p->samples[to]), profile__values(p, &p->samples[from]),
		p->value_cnt * sizeof(*p->values));
}

static bool is_zero(const struct profile *p, const struct profile_sample *s)
{
	const int64_t *values = profile__values(p, s);

	for (size_t v = 0; v < p->value_cnt; v++)
		if (values[v])
			return false;
	return true;
}

void profile__drop_zeros(struct profile *p)
{
	size_t cnt = 0;

	for (size_t i = 0; i < p->sample_cnt; i++)
		if (!is_zero(p, &p->samples[i]))
			move_sample(p, cnt++, i);
	p->sample_cnt = cnt;
}

int profile__finish(struct profile *p)
{
	bool *used = calloc(p->location_cnt + 1, sizeof(*used));
	size_t i;
	int err;

	if (!used)
		return -ENOMEM;
	for (i = 0; i < p->sample_cnt; i++)
		for (uint32_t j = 0; j < p->samples[i].loc_cnt; j++)
			used[p->loc_ids[p->samples[i].loc + j]] = true;
	err = split_mappings(p, used);
	if (!err)
		set_flags(p, used);
	free(used);
	return err;
}
