// SPDX-License-Identifier: BSD-2-Clause
#include "serve/kernel_addresses.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"

/* both fit into the kernel's half of the addresses, which is its mapping */
#define OFFSET_BITS 20 /* a function is shorter */
#define NAME_BITS 26

/* An offset in the mapping. */
static uint64_t made_of(const char *name, uint32_t from_entry)
{
	uint64_t hash = util_hash(name, strlen(name), 0) >> (64 - NAME_BITS);

	return (hash << OFFSET_BITS) + MIN(from_entry, (1U << OFFSET_BITS) - 1);
}

int kernel_addresses_hide(struct profile *p)
{
	/* of the mapping, and of what has no other */
	uint32_t kernel = profile__string(p, "[kernel.kallsyms]");

	if (kernel == PROFILE_NONE)
		return -ENOMEM;
	for (size_t i = 0; i < p->location_cnt; i++) {
		struct profile_location *l = &p->locations[i];
		struct profile_function *f;

		if (!l->line_cnt || l->mapping == PROFILE_NONE ||
		    p->mappings[l->mapping].filename != kernel)
			continue;
		f = &p->functions[p->lines[l->line].function];
		if (!f->system_name)
			f->name = kernel;
		l->address =
			p->mappings[l->mapping].start + made_of(strtab__get(p->strings, f->name),
								f->system_name ? l->from_entry : 0);
	}
	return 0;
}
