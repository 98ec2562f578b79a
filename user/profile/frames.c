/* SPDX-License-Identifier: BSD-2-Clause */
/* Names the frames of a profile's locations. */
#include "profile/frames.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"

uint32_t frames__clean(struct frames *fr, const char *name)
{
	/* at worst each byte becomes the three of U+FFFD */
	size_t sz = strlen(name) * 3 + 1;
	char *clean = malloc(sz), *at;
	uint32_t id;

	if (!clean) {
		errno = ENOMEM;
		return UINT32_MAX;
	}
	util_printable(clean, sz, name);
	for (at = clean; fr->no_semicolon && (at = strchr(at, ';')); at++)
		*at = ':';
	id = strtab__add(fr->names, clean);
	free(clean);
	return id;
}

uint32_t frames__string(struct frames *fr, uint32_t string)
{
	if (fr->known[string] == UINT32_MAX)
		fr->known[string] = frames__clean(fr, strtab__get(fr->profile->strings, string));
	return fr->known[string];
}

static bool needs_address(const struct frames *fr, const struct profile_location *l)
{
	uint32_t i;

	for (i = 0; i < l->line_cnt; i++)
		if (!fr->function[fr->profile->lines[l->line + i].function])
			return true;
	return !l->line_cnt;
}

/* The last part of a path. bases: of the profile's string i, NULL: not yet known. */
static const char *base_of(const struct profile *p, uint32_t path, const char **bases)
{
	if (!bases[path]) {
		const char *text = strtab__get(p->strings, path), *slash = strrchr(text, '/');

		bases[path] = slash && slash[1] ? slash + 1 : text;
	}
	return bases[path];
}

/* "object+0xoffset" in its file, or the address where no file is known. */
static uint32_t place_of(struct frames *fr, const struct profile_location *l, const char **bases)
{
	const struct profile *p = fr->profile;
	const struct profile_mapping *m = NULL;
	char place[NAME_MAX + 32];
	const char *file = "";

	if (l->mapping != PROFILE_NONE) {
		m = &p->mappings[l->mapping];
		file = strtab__get(p->strings, m->filename);
	}
	/* "//anon" is no file's name */
	if (*file && strncmp(file, "//", 2) != 0)
		snprintf(place, sizeof(place), "%.*s+0x%" PRIx64, NAME_MAX,
			 base_of(p, m->filename, bases), l->address - m->start + m->offset);
	else
		snprintf(place, sizeof(place), "0x%" PRIx64, l->address);
	return frames__clean(fr, place);
}

static int name_functions(struct frames *fr)
{
	const struct profile *p = fr->profile;

	for (size_t i = 0; i < p->function_cnt; i++) {
		fr->function[i] = frames__string(fr, p->functions[i].name);
		if (fr->function[i] == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

static int name_locations(struct frames *fr)
{
	const struct profile *p = fr->profile;
	const char **bases = calloc(strtab__cnt(p->strings), sizeof(*bases));
	int err = bases ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < p->location_cnt; i++) {
		if (!needs_address(fr, &p->locations[i]))
			continue;
		fr->location[i] = place_of(fr, &p->locations[i], bases);
		if (fr->location[i] == UINT32_MAX)
			err = -ENOMEM;
	}
	free(bases);
	return err;
}

int frames__make(const struct profile *p, bool no_semicolon, struct frames *ret)
{
	size_t strings = strtab__cnt(p->strings);
	int err = -ENOMEM;

	*ret = (struct frames){ .profile = p, .no_semicolon = no_semicolon };
	ret->names = strtab__new();
	ret->function = calloc(p->function_cnt + 1, sizeof(*ret->function));
	ret->location = calloc(p->location_cnt + 1, sizeof(*ret->location));
	ret->known = malloc(strings * sizeof(*ret->known));
	if (ret->names && ret->function && ret->location && ret->known) {
		memset(ret->known, 0xff, strings * sizeof(*ret->known));
		err = name_functions(ret) ?: name_locations(ret);
	}
	if (err)
		frames__done(ret);
	return err;
}

void frames__done(struct frames *fr)
{
	strtab__free(fr->names);
	free(fr->function);
	free(fr->location);
	free(fr->known);
	*fr = (struct frames){ 0 };
}

uint32_t frames__cnt(const struct frames *fr, uint32_t location)
{
	return MAX(fr->profile->locations[location].line_cnt, 1U);
}

uint32_t frames__name(const struct frames *fr, uint32_t location, uint32_t i)
{
	const struct profile_location *l = &fr->profile->locations[location];
	uint32_t name = 0;

	if (i < l->line_cnt)
		name = fr->function[fr->profile->lines[l->line + i].function];
	return name ? name : fr->location[location];
}
