/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The canonical order of a profile: numbers for everything that its samples use, made from content
 * alone, so that neither the order in which things were added nor the processes that owned them
 * show. Entries of equal content get the same number.
 */
#ifndef PROFILE_CANON_H
#define PROFILE_CANON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

/* One table of the profile in canonical order. */
struct canon_table {
	uint32_t *number; /* of entry i, from 1; 0: not used by any sample */
	uint32_t *entry;  /* an entry with number i + 1 */
	uint32_t cnt;	  /* numbers given */
};

struct canon {
	const struct profile *profile;
	const char **strings; /* sorted, [0] is ""; borrowed from the profile */
	uint32_t string_cnt;
	uint32_t *string_number; /* of string id i, from 0; "" if not used */
	/* the profile's first mapping stays first and is there even if unused */
	struct canon_table mappings;
	struct canon_table functions, locations;
	uint32_t *samples; /* all, sorted by stack, then labels */
	uint32_t sample_cnt;
};

/* Returns 0 or -ENOMEM. The profile must not change as long as *ret lives. */
int canon__make(const struct profile *p, struct canon *ret);
void canon__done(struct canon *c);

/* The number of a string that is in use, such as a value type's. */
uint32_t canon__string(const struct canon *c, const char *s);

/* Do two samples have the same stack and labels, by content? */
bool canon__same_sample(const struct canon *c, uint32_t a, uint32_t b);

#endif
