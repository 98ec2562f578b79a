/* SPDX-License-Identifier: BSD-2-Clause */
/* Names the frames of a profile's locations. */
#include "profile/frames.h"

#include <errno.h>
#include <inttypes.h>
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

int frames__make(const struct profile *p, bool no_semicolon, struct frames *ret)
{
	char address[2 + 16 + 1];
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
		snprintf(address, sizeof(address), "0x%" PRIx64, p->locations[i].address);
		ret->location[i] = strtab__add(ret->names, address);
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
