/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of strings, found once: texts with a long beginning in common take long to compare, and a file may
 * refer to them millions of times. */
#ifndef PROFILE_RANKS_H
#define PROFILE_RANKS_H

#include <stdint.h>

struct strtab;

/* Of string i its place among all strings of the table, by bytes. For the caller to free; NULL: there is no
 * memory. */
uint32_t *ranks_make(const struct strtab *st);

#endif
