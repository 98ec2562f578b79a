/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile: plain tables, as profile.proto has them. Knows no BPF, no ELF, no /proc and no clock.
 *
 * Entries refer to each other by index, counted from 0; strings by id in `strings`. PROFILE_NONE
 * says "none". Equal entries are merged as they are added: strings, mappings, functions, locations
 * by (mapping, address), samples by stack and labels. The order in which things were added does not
 * show in what the writers print: they sort.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strtab.h"

#define PROFILE_NONE UINT32_MAX
#define PROFILE_MAX_VALUES 64

struct profile_value_type {
	const char *type; /* [a-z0-9_]: "samples", "cpu" */
	const char *unit; /* "count", "nanoseconds", "bytes" */
};

struct profile_mapping {
	uint64_t start, limit; /* address range in the process, page-aligned, limit exclusive */
	uint64_t offset;       /* in the file, of start */
	uint32_t filename;     /* path, or "[kernel.kallsyms]", "[vdso]", "//anon" */
	uint32_t build_id;     /* lower-case hex, or 0 */
	uint32_t owner; /* process that it belongs to, as the caller numbers them: equal ranges of
			   two are two mappings */
	/* every location of the mapping that a sample uses has them; set by profile__finish from
	 * the locations */
	bool has_functions, has_filenames, has_lines, has_inlines;
};

struct profile_function {
	uint32_t name;	      /* for people: demangled where it was mangled */
	uint32_t system_name; /* as the linker knows it */
	uint32_t filename;    /* or 0 */
	int64_t start_line;   /* or 0 */
	bool wrapper;	      /* of Go's: see go_frames__elide() */
};

struct profile_line {
	uint32_t function; /* index */
	int64_t line;	   /* or 0 */
};

struct profile_location {
	uint32_t mapping; /* index, or PROFILE_NONE */
	/* Of the address, from where the function begins that the code was made for, plus 1; 0: not
	 * known. No file of profile.proto has it. */
	uint32_t from_entry;
	uint64_t address; /* inside the instruction that was executing: return address less one for
			     callers */
	uint32_t line; /* index of the first of line_cnt lines, innermost inlined function first */
	uint32_t line_cnt; /* 0: no name is known */
};

struct profile_label {
	uint32_t key; /* string */
	uint32_t str; /* string, or 0 if it is a number */
	int64_t num;
	uint32_t num_unit; /* string; pprof forgets a 0 without a unit */
};

struct profile_sample {
	uint32_t loc, loc_cnt;	   /* into loc_ids, leaf first */
	uint32_t label, label_cnt; /* into labels, sorted by key */
};

struct profile {
	struct strtab *strings;
	struct profile_value_type value_types[PROFILE_MAX_VALUES];
	size_t value_cnt;    /* as profile__new() was told */
	size_t folded_value; /* that formats with one value show; 0 unless it is set */
	uint32_t
		default_type; /* string, of value_types: what readers show first. 0: the last one */
	struct profile_value_type period_type;
	int64_t period;
	int64_t time_ns; /* start of the window, since the epoch */
	int64_t duration_ns;
	/* strings, regular expressions of whole names: what a reader hides, with all that it called,
	 * and what it does not hide in spite of the former. 0: nothing */
	uint32_t drop_frames, keep_frames;

	struct profile_mapping *mappings;
	struct profile_function *functions;
	struct profile_line *lines;
	struct profile_location *locations;
	struct profile_label *labels;
	uint32_t *loc_ids;
	struct profile_sample *samples;
	int64_t *values; /* value_cnt of each sample, in their order: profile__values() */
	uint32_t *comments;
	size_t mapping_cnt, function_cnt, line_cnt, location_cnt, label_cnt, loc_id_cnt, sample_cnt,
		comment_cnt;

	struct profile_index *index; /* private: hashes and capacities */
	char *type_texts;	     /* private: what the value types point to */
};

/* value_cnt in 1..PROFILE_MAX_VALUES. Copies the types' texts. NULL with errno if there is no
 * memory. */
struct profile *profile__new(const struct profile_value_type *value_types, size_t value_cnt,
			     struct profile_value_type period_type, int64_t period);
void profile__free(struct profile *p);

/* Others in their place, from 1 on to as many as there are, and the period's; values stay where they are, which
 * is the caller's to mend if there are fewer. 0 or -ENOMEM. */
int profile__set_types(struct profile *p, const struct profile_value_type *value_types,
		       size_t value_cnt, struct profile_value_type period_type);

/* Drops samples whose values are all 0. Nothing is added to the profile any more then. */
void profile__drop_zeros(struct profile *p);

/* The values of a sample, which is one of p's. */
static inline int64_t *profile__values(const struct profile *p, const struct profile_sample *s)
{
	return p->values + (size_t)(s - p->samples) * p->value_cnt;
}

/* The value that readers show first, as an index. */
size_t profile__default_value(const struct profile *p);

/*
 * Each returns an index (profile__string: an id), or PROFILE_NONE with errno ENOMEM.
 * profile__string makes valid UTF-8 of s: each byte that is none becomes U+FFFD.
 */
uint32_t profile__string(struct profile *p, const char *s);
uint32_t profile__add_mapping(struct profile *p, const struct profile_mapping *m);
uint32_t profile__add_function(struct profile *p, const struct profile_function *f);
uint32_t profile__add_location(struct profile *p, uint32_t mapping, uint64_t address);

/* A new one, whether or not there is an equal one: where an address does not tell what is there. It is not found by
 * profile__add_location: any number may have the same address, as in a profile of an interpreter. */
uint32_t profile__append_location(struct profile *p, uint32_t mapping, uint64_t address);

/* Makes it the first mapping, which readers take for the program's. It is as it was added. */
void profile__put_first(struct profile *p, uint32_t mapping);

/*
 * A location that is no code: a marker such as "[unwind: no table]", with one line naming it. No
 * mapping, an address that is made from the name, so that it is the same in every run. Equal names
 * give the same location.
 */
uint32_t profile__add_marker(struct profile *p, const char *name);

/* Names a location; replaces what it had. lines[].function are indices. 0 or -ENOMEM. */
int profile__set_lines(struct profile *p, uint32_t location, const struct profile_line *lines,
		       size_t cnt);

/*
 * Adds values to the sample with this stack (locations, leaf first) and these labels. The arrays
 * stay the caller's. A number without a unit gets its key as the unit, which is how pprof reads it;
 * a label without any value is left out. Returns its index, or PROFILE_NONE with errno ENOMEM.
 */
uint32_t profile__add_sample(struct profile *p, const uint32_t *locs, size_t loc_cnt,
			     const struct profile_label *labels, size_t label_cnt,
			     const int64_t *values);

/* A new one without labels, whether or not there is an equal one, that profile__add_sample() does not find. 0
 * or -ENOMEM. */
int profile__append_sample(struct profile *p, const uint32_t *locs, size_t loc_cnt,
			   const int64_t *values);

/* A line for people: pprof -comments prints it, and the reports' header too unless it begins with
 * '#'. 0 or -ENOMEM. */
int profile__add_comment(struct profile *p, const char *text);
/* The same of one of p's strings: it is not read again. */
int profile__add_comment_id(struct profile *p, uint32_t string);

/* The last value of which there is anything; of all, if there is nothing. */
size_t profile__last_value(const struct profile *p);

/* The sum of a value over all samples. */
int64_t profile__total(const struct profile *p, size_t value);

/* Frames in the stacks of all samples, those of inlined functions too. */
uint64_t profile__frames(const struct profile *p);

/* Of all that it has. Memory takes half as much again: room to grow, and indices. */
size_t profile__bytes(const struct profile *p);

/*
 * Takes the frames that `hidden` wants hidden off the leaf end of every stack, up to the first that
 * it does not; a stack of nothing else stays as it is. To be called once names are set.
 */
void profile__hide_leaves(struct profile *p, bool (*hidden)(const struct profile *p,
							    const struct profile_location *l));

/*
 * To be called once before writing: sets the has_* flags. A mapping some of whose locations have
 * names while others have none is split in two entries of the same range, since pprof believes
 * has_functions for all of an entry. Nothing may be added afterwards. 0 or -ENOMEM.
 */
int profile__finish(struct profile *p);

#endif
