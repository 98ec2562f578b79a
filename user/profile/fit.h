/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of the same values, which their producers name or count in other units. */
#ifndef PROFILE_FIT_H
#define PROFILE_FIT_H

#include <stddef.h>

struct profile;

/*
 * Gives two profiles the same value types, so that they can be added up (merge.h), where that takes no
 * more than another order of them and another unit (units.h): values are the same if their types have
 * the same names. Each then has the finer of two units, in which no value has to be rounded, and which
 * holds values at the ends of the range; and the order that sorts first. The same with the period.
 *
 * What comes out does not depend on which of the two is a. Both keep what they have where they are the
 * same already.
 *
 * 0; -EINVAL: they cannot be made the same, and text says why, without full stop; -ENOMEM.
 */
int profile_fit(struct profile *a, struct profile *b, char *text, size_t text_sz);

#endif
