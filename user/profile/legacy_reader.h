/* SPDX-License-Identifier: BSD-2-Clause */
/* What the readers of the legacy formats share: the profile that they make, and where its addresses are.
 * legacy_read.c puts it together. For them alone. */
#ifndef PROFILE_LEGACY_READER_H
#define PROFILE_LEGACY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/legacy_text.h"
#include "profile/profile.h"

/* A range of addresses of an object. */
struct legacy_map {
	uint64_t start, limit, offset; /* as in struct profile_mapping */
	struct legacy_text path;
	struct legacy_text build_id;
	uint32_t order;	  /* in the file, from 0 */
	uint32_t mapping; /* once there is a profile */
};

struct legacy_symbol {
	uint64_t address;
	struct legacy_text names; /* "caller--callee": what is inlined into what, or one name */
};

struct legacy_reader {
	struct legacy_text in; /* what is left of the file */
	struct profile *out;
	size_t memory;		 /* bytes that may still be taken */
	bool labels;		 /* are wanted */
	struct legacy_map *maps; /* by address */
	size_t map_cnt, map_cap;
	bool symbolized;	       /* it has a list of names */
	struct legacy_symbol *symbols; /* by address */
	size_t symbol_cnt, symbol_cap;
	struct legacy_text program; /* that the list of names is of; may be empty */
	bool less_one; /* callers' addresses are return addresses: the call is before them */
	/* the stack at hand */
	uint32_t *stack;
	size_t stack_cnt, stack_cap;
	char *text_buf; /* scratch */
	size_t text_cap;
};

#define LEGACY_INDEX_COST 32 /* bytes that finding an entry again takes */

/* Takes bytes of the memory. 0 or -E2BIG. */
int legacy_spend(struct legacy_reader *r, size_t bytes);
/* As the id of a string of r->out; PROFILE_NONE: no memory. */
uint32_t legacy_string(struct legacy_reader *r, const struct legacy_text *text);

/* ---- the profile: legacy_read.c ---- */

/* Makes it, and its mappings. 0 or -errno. */
int legacy_begin(struct legacy_reader *r, const struct profile_value_type *types, size_t cnt,
		 struct profile_value_type period_type, int64_t period);
/* An address of the file, the leaf first. exact: it is where the program was, else a return address. */
int legacy_add_frame(struct legacy_reader *r, uint64_t address, bool exact);
/* "0x1 0x2" up to the line's end, all of them return addresses. 0 or -errno. */
int legacy_add_frames(struct legacy_reader *r, struct legacy_text line);
/* The next line that may be a sample. 1; 0: there is none left; -EBADMSG: it is cut. */
int legacy_next(struct legacy_reader *r, struct legacy_text *ret);
/* A sample with the stack at hand, which is empty then. size: of each object, in a label; 0: no label. */
int legacy_add_sample(struct legacy_reader *r, const int64_t *values, int64_t size);

/* ---- mappings: legacy_read_maps.c ---- */

/* Reads the lines that are mappings; others are left out. 0 or -errno. */
int legacy_read_maps(struct legacy_reader *r, struct legacy_text in);
/* The same of the lines behind the heading, if there is one in the file. */
int legacy_find_maps(struct legacy_reader *r);
/* Adds them to the profile. */
int legacy_add_maps(struct legacy_reader *r);
/* Where the address is, or PROFILE_NONE. */
uint32_t legacy_map_at(const struct legacy_reader *r, uint64_t address);
/* Does a line begin them? */
bool legacy_is_maps_head(struct legacy_text line);

/* ---- names: legacy_read_symbols.c ---- */

/* Takes the list off the front of the file, if there is one. 0 or -errno. */
int legacy_read_symbols(struct legacy_reader *r);
bool legacy_has_symbol(const struct legacy_reader *r, uint64_t address);
/* Names a location. 0 or -errno. */
int legacy_name(struct legacy_reader *r, uint32_t location, uint64_t address);

/* ---- the formats: each says whether a file is one of it, and reads all of it. 0 or -errno. ---- */

bool legacy_is_cpu(struct legacy_text in);
int legacy_read_cpu(struct legacy_reader *r);
bool legacy_is_heap(struct legacy_text in);
int legacy_read_heap(struct legacy_reader *r);
bool legacy_is_contention(struct legacy_text in);
int legacy_read_contention(struct legacy_reader *r);
bool legacy_is_count(struct legacy_text in);
int legacy_read_count(struct legacy_reader *r);
bool legacy_is_threads(struct legacy_text in);
int legacy_read_threads(struct legacy_reader *r);

#endif
