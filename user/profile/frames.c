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

uint32_t frames__clean(struct frames *fr, const char *name, bool no_semicolon)
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
	for (at = clean; no_semicolon && (at = strchr(at, ';')); at++)
		*at = ':';
	id = strtab__add(fr->names, clean);
	free(clean);
	return id;
}

static bool needs_address(const struct frames *fr, const struct profile_location *l)
{
	uint32_t i;

	for (i = 0; i < l->line_cnt; i++)
		if (!fr->function[fr->profile->lines[l->line + i].function])
			return true;
	return !l->line_cnt;
}

/* "object+0xoffset" in its file, or the address where no file is known. */
static uint32_t place_of(struct frames *fr, const struct profile_location *l, bool no_semicolon)
{
	const struct profile *p = fr->profile;
	const struct profile_mapping *m = NULL;
	char place[NAME_MAX + 32];
	const char *file = "", *slash;

	if (l->mapping != PROFILE_NONE) {
		m = &p->mappings[l->mapping];
		file = strtab__get(p->strings, m->filename);
	}
	slash = strrchr(file, '/');
	/* "//anon" is no file's name */
	if (*file && strncmp(file, "//", 2) != 0)
		snprintf(place, sizeof(place), "%.*s+0x%" PRIx64, NAME_MAX,
			 slash && slash[1] ? slash + 1 : file, l->address - m->start + m->offset);
	else
		snprintf(place, sizeof(place), "0x%" PRIx64, l->address);
	return frames__clean(fr, place, no_semicolon);
}

int frames__make(const struct profile *p, bool no_semicolon, struct frames *ret)
{
	size_t i;

	ret->profile = p;
	ret->names = strtab__new();
	ret->function = calloc(p->function_cnt + 1, sizeof(*ret->function));
	ret->location = calloc(p->location_cnt + 1, sizeof(*ret->location));
	if (!ret->names || !ret->function || !ret->location)
		goto no_memory;
	for (i = 0; i < p->function_cnt; i++) {
		ret->function[i] = frames__clean(ret, strtab__get(p->strings, p->functions[i].name),
						 no_semicolon);
		if (ret->function[i] == UINT32_MAX)
			goto no_memory;
	}
	for (i = 0; i < p->location_cnt; i++) {
		if (!needs_address(ret, &p->locations[i]))
			continue;
		ret->location[i] = place_of(ret, &p->locations[i], no_semicolon);
		if (ret->location[i] == UINT32_MAX)
			goto no_memory;
	}
	return 0;
no_memory:
	frames__done(ret);
	return -ENOMEM;
}

void frames__done(struct frames *fr)
{
	strtab__free(fr->names);
	free(fr->function);
	free(fr->location);
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
