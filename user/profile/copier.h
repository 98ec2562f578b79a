/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies samples from one profile to another, and what they refer to when it is met first. For
 * split.c and merge.c alone. */
#ifndef PROFILE_COPIER_H
#define PROFILE_COPIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash;
struct profile;
struct profile_label;
struct profile_line;
struct profile_sample;

struct copier {
	const struct profile *from;
	struct profile *to;
	/* of `to`, which each sample gets that has none of the same key */
	const struct profile_label *extra;
	size_t extra_cnt;
	/*
	 * NULL: nothing in `to` is from another profile. Else its locations by what is in them, of
	 * uint32_t: an equal one is taken, and so is an equal mapping, whatever process owns it, since
	 * owners are numbers of one profile alone.
	 */
	struct hash *known;
	bool failed; /* for want of memory; nothing more is copied then */

	/* private: the number in `to` by that in `from`, PROFILE_NONE: not copied yet */
	uint32_t *strings, *mappings, *functions, *locations;
	struct profile_line *lines; /* scratch */
	uint32_t *locs;
	struct profile_label *labels;
	size_t line_cap, loc_cap, label_cap;
};

/* From p, which must not change as long as *c is used. 0 or -ENOMEM; either way *c is the caller's to
 * release. */
int copier__init(struct copier *c, const struct profile *p);
void copier__done(struct copier *c);

/* To this profile from now on. */
void copier__begin(struct copier *c, struct profile *to);

/* Each returns a number in `to`; PROFILE_NONE: it has failed, or is that of no mapping. */
uint32_t copier__string(struct copier *c, uint32_t id);
uint32_t copier__mapping(struct copier *c, uint32_t mapping);

void copier__sample(struct copier *c, const struct profile_sample *s);

#endif
