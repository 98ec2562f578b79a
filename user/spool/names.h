/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of records, each kept once, however many records have it, and as long as one has it: a million
 * records have some hundreds, and others every day. */
#ifndef SPOOL_NAMES_H
#define SPOOL_NAMES_H

#include <stdint.h>

#include "base/hash.h"

struct name {
	uint32_t refs;
	char text[];
};

struct names {
	struct hash by_text; /* struct name * */
};

void names__init(struct names *n);
/* References are void then. */
void names__done(struct names *n);

/* A reference to the name of this text, which the caller gives back. NULL: there is no memory. */
struct name *names__take(struct names *n, const char *text);
void names__give_back(struct names *n, struct name *name);

#endif
