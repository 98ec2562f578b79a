/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/go_frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "profile/profile.h"

static const struct profile_function *outermost(const struct profile *p, uint32_t location)
{
	const struct profile_location *l = &p->locations[location];

	return l->line_cnt ? &p->functions[p->lines[l->line + l->line_cnt - 1].function] : NULL;
}

static bool is_named(const struct profile *p, uint32_t location, const char *name)
{
	const struct profile_function *f = outermost(p, location);

	return f && !strcmp(strtab__get(p->strings, f->system_name), name);
}

static bool begins_panic(const struct profile *p, uint32_t location)
{
	return is_named(p, location, "runtime.gopanic") ||
	       is_named(p, location, "runtime.sigpanic") ||
	       is_named(p, location, "runtime.panicwrap");
}

/* Is the i-th location of a stack, leaf first, left out? */
static bool is_elided(const struct profile *p, const uint32_t *locs, uint32_t i)
{
	const struct profile_function *f = outermost(p, locs[i]);

	return f && f->wrapper && (!i || !begins_panic(p, locs[i - 1]));
}

static uint32_t count_elided(const struct profile *p, const struct profile_sample *s)
{
	uint32_t cnt = 0, i;

	for (i = 0; i < s->loc_cnt; i++)
		cnt += is_elided(p, p->loc_ids + s->loc, i);
	return cnt;
}

void go_frames__elide(struct profile *p)
{
	for (size_t i = 0; i < p->sample_cnt; i++) {
		struct profile_sample *s = &p->samples[i];
		uint32_t *locs = p->loc_ids + s->loc, cnt = count_elided(p, s), kept, k;

		if (!cnt || cnt == s->loc_cnt)
			continue;
		/* from the outermost on: a frame's callee is looked at before it moves */
		for (kept = k = s->loc_cnt; k--;) {
			if (!is_elided(p, locs, k))
				locs[--kept] = locs[k];
		}
		s->loc += kept;
		s->loc_cnt -= kept;
	}
}

/* Is the name the system name, but for its type arguments? */
static bool lacks_arguments(const char *name, const char *system_name)
{
	const char *dots = strstr(name, "[...]"), *close = strrchr(system_name, ']');
	size_t head = dots ? (size_t)(dots - name) + 1 : 0;

	return dots && close && !strncmp(name, system_name, head) && close >= system_name + head &&
	       !strcmp(dots + strlen("[...]"), close + 1);
}

void go_frames__like_pprof(struct profile *p)
{
	for (size_t i = 0; i < p->function_cnt; i++) {
		struct profile_function *f = &p->functions[i];

		if (lacks_arguments(strtab__get(p->strings, f->name),
				    strtab__get(p->strings, f->system_name)))
			f->name = f->system_name;
	}
	for (size_t i = 0; i < p->sample_cnt; i++) {
		struct profile_sample *s = &p->samples[i];

		if (s->loc_cnt > 1 &&
		    is_named(p, p->loc_ids[s->loc + s->loc_cnt - 1], "runtime.goexit"))
			s->loc_cnt--;
	}
}
