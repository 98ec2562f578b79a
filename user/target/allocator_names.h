/* SPDX-License-Identifier: BSD-2-Clause */
/* What the name of a function says about memory allocation: the operation of each allocator entry
 * that is known, and which functions a path does not come back from. */
#ifndef TARGET_ALLOCATOR_NAMES_H
#define TARGET_ALLOCATOR_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#define ALLOCATOR_NAME_MAX 63 /* bytes; what is longer is none of these names */

enum allocator_role {
	ALLOCATOR_ENTRY, /* allocates or frees */
	ALLOCATOR_END,	 /* throws, aborts, or is only asked when memory is exhausted */
};

struct allocator_name {
	enum allocator_role role;
	uint8_t op;   /* of an entry: enum bpfprof_alloc_op */
	uint8_t rank; /* of an entry: the higher, the plainer */
	bool throws;  /* of an entry: an exception may leave it */
};

/* False if the name, which may end in a version ("@@V"), is none of them. */
bool allocator_name__find(const char *name, struct allocator_name *ret);

/* Has it the prefix of an allocator's own build ("je_malloc"), by which those call it that mean this one? */
bool allocator_name__is_prefixed(const char *name);

#endif
