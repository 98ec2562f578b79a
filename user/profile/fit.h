/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of the same values, which their producers order, name or count in other units. */
#ifndef PROFILE_FIT_H
#define PROFILE_FIT_H

#include <stddef.h>

struct profile;
struct strtab;

/*
 * Gives two profiles the same value types, so that they can be added up (merge.h): those that both have, by
 * name, as pprof does. Each then has the finer of two units (units.h), in which no value has to be rounded, and
 * which holds values at the ends of the range; and the order that sorts first. The same with the period.
 * The names of what only one of them has, and which is gone then, are added to left_out.
 *
 * What comes out does not depend on which of the two is a. Both keep what they have where they are the
 * same already.
 *
 * 0; -EINVAL: they have no values in common, or values of one name in units that do not fit, and text says
 * so, without full stop; -ENOMEM.
 */
int profile_fit(struct profile *a, struct profile *b, struct strtab *left_out, char *text,
		size_t text_sz);

/* Says in the sum or difference, p, what was left out, which may be nothing; text gets the names, "" if there
 * are none. 0 or -ENOMEM. */
int profile_fit_say(struct profile *p, const struct strtab *left_out, char *text, size_t text_sz);

#endif
