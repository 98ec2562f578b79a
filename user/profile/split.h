/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes other profiles of one: several, each with a part of its samples and with what these refer to;
 * one that tells fewer samples apart. */
#ifndef PROFILE_SPLIT_H
#define PROFILE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

/*
 * part_of[i], below part_cnt: the part that has sample i of p; PROFILE_NONE: none has. The parts have
 * the types, times and comments of p, which may be finished; they are not, and are the caller's to
 * finish and free. A part without samples is there, too. 0; or -ENOMEM, and those that had been made
 * are NULL.
 */
int profile_split(const struct profile *p, const uint32_t *part_of, size_t part_cnt,
		  struct profile **ret_parts);

#endif
