/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions, inlined functions and source lines of addresses, from DWARF 2 to 5.
 *
 * The addresses asked for are known beforehand: only the units that hold one of them are walked,
 * once. Files that the DWARF names (split DWARF, a supplementary file) are never opened: the
 * supplementary file, and the one with split units, are what the caller found. Of split units that it
 * has not there are lines and no functions.
 */
#ifndef TARGET_DWARF_H
#define TARGET_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct strtab;

#define DWARF_MAX_INLINE 128 /* frames of one address; further ones are left out */

/* Ids of strings; 0: unknown. */
struct dwarf_frame {
	uint32_t name;	       /* DW_AT_name; unqualified in C++ and Rust */
	uint32_t linkage_name; /* as the linker has it, where that differs */
	uint32_t file;
	uint32_t line, start_line;
	/* C++ without a linkage name: some local classes and what is made of them */
	bool unqualified;
};

struct dwarf_answer {
	uint32_t first,
		cnt; /* of frames, innermost first; the last one may have no name but a line */
	uint64_t
		entry; /* where the function, or the part of it that holds the address, begins; 0: unknown */
};

struct dwarf_answers {
	struct dwarf_answer *answers; /* one for each address */
	struct dwarf_frame *frames;
	size_t frame_cnt, frame_cap;
};

/*
 * Answers for cnt ascending virtual addresses. alt: the supplementary file of elf (dwz), split: a
 * .dwp or .dwo of elf's, or NULL.
 * Names are added to strings. 0; -ENOENT without .debug_info, or without alt where elf refers to
 * one; -EBADMSG or -E2BIG if it cannot be read, -ENOMEM. *ret is the caller's after 0 only. What
 * takes unduly long (20 s) or is damaged on the way is answered as far as it got.
 */
int dwarf_resolve(const struct elf_file *elf, const struct elf_file *alt,
		  const struct elf_file *split, const uint64_t *vaddrs, size_t cnt,
		  struct strtab *strings, struct dwarf_answers *ret);
/* The same, but the only frame of an address is the path of the .dwo that its unit is split into, as
 * its name; without a frame it is in none. */
int dwarf_split_files(const struct elf_file *elf, const struct elf_file *alt,
		      const uint64_t *vaddrs, size_t cnt, struct strtab *strings,
		      struct dwarf_answers *ret);
void dwarf_answers__done(struct dwarf_answers *a);

#endif
