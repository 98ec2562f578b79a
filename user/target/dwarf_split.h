/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Units of split DWARF (DWARF 5, 7.3.2; GNU's of DWARF 4), whose functions are in another file than
 * their addresses: in a .dwo, or in a .dwp, which has those of a whole program. libdw would open
 * such files by itself; here it gets the DIEs of one unit as a file of their own, and what these
 * refer to by number, strings, addresses and ranges, is looked up without it.
 */
#ifndef TARGET_DWARF_SPLIT_H
#define TARGET_DWARF_SPLIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/dwarf_bytes.h"
#include "target/dwarf_image.h"

struct dwarf_file;
struct elf_file;

enum {
	DWARF_SPLIT_INFO,
	DWARF_SPLIT_ABBREV,
	DWARF_SPLIT_STR_OFFSETS,
	DWARF_SPLIT_RNGLISTS,
	DWARF_SPLIT_STR,
	DWARF_SPLIT_INDEX,
	DWARF_SPLIT_NR
};

/* Does a unit of the file name a .dwo file, which has the rest of it? Also true where that cannot be read. */
bool dwarf_split__may_be(const struct elf_file *elf);

/* The sections of a .dwo or .dwp, expanded. */
struct dwarf_split_file {
	void *data[DWARF_SPLIT_NR];
	size_t sz[DWARF_SPLIT_NR];
};

/* 0; -ENOENT if it has no split unit; -E2BIG, -EBADMSG, -ENOMEM, -errno. *f is empty after a failure. */
int dwarf_split_file__open(struct dwarf_split_file *f, const struct elf_file *elf);
void dwarf_split_file__close(struct dwarf_split_file *f);

struct dwarf_split {
	struct dwarf_image image;
	Elf *elf;
	Dwarf *dbg; /* NULL: none is open */
	Dwarf_Die unit;
	struct dwarf_bytes info; /* of the image */
	struct dwarf_bytes str, str_offsets, rnglists;
	struct dwarf_bytes addr, ranges; /* of the skeleton's file, from the unit's base on */
	uint64_t base;			 /* where the unit begins, or 0 */
	int version;
};

/* The unit that belongs to a skeleton of `of`. 0; -ENOENT if f has it not; -EBADMSG, -ENOMEM. */
int dwarf_split__open(struct dwarf_split *s, const struct dwarf_split_file *f,
		      const struct dwarf_file *of, Dwarf_Die *skeleton);
void dwarf_split__close(struct dwarf_split *s);

/* The value of a string attribute of the unit's; NULL if attr is, or if it has none that ends. */
const char *dwarf_split__string(const struct dwarf_split *s, Dwarf_Attribute *attr);

/* The ranges of a DIE of the unit's, one after the other. */
struct dwarf_split_ranges {
	const struct dwarf_split *s;
	struct dwarf_bytes list; /* what is left of it */
	uint64_t base;
	uint64_t lo, hi; /* of a DIE without a list, until it is taken: lo < hi */
};

void dwarf_split_ranges__init(struct dwarf_split_ranges *r, const struct dwarf_split *s,
			      Dwarf_Die *die);
bool dwarf_split_ranges__next(struct dwarf_split_ranges *r, uint64_t *lo, uint64_t *hi);

#endif
