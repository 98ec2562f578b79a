// SPDX-License-Identifier: BSD-2-Clause
/* Which frames of a heap profile are the allocator's own. */
#include <linux/types.h>

#include "heap/heap_frames.h"

#include <stdbool.h>
#include <string.h>

#include "heap/launch_heap.h"
#include "profile/profile.h"
#include "target/allocators.h"

/* Is every function that the location names one that only serves to allocate? */
static bool serves_to_allocate(const struct profile *p, const struct profile_location *l)
{
	const char *file;
	size_t len;

	if (l->mapping != PROFILE_NONE) {
		file = strtab__get(p->strings, p->mappings[l->mapping].filename);
		len = strlen(file);
		if (len >= strlen(LAUNCH_HEAP_LIBRARY) &&
		    !strcmp(file + len - strlen(LAUNCH_HEAP_LIBRARY), LAUNCH_HEAP_LIBRARY))
			return true;
	}
	for (uint32_t i = 0; i < l->line_cnt; i++) {
		const struct profile_function *f = &p->functions[p->lines[l->line + i].function];

		if (!allocators_is_name(strtab__get(p->strings, f->system_name)))
			return false;
	}
	return l->line_cnt > 0;
}

void heap_frames_hide(struct profile *p)
{
	profile__hide_leaves(p, serves_to_allocate);
}
