/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code addresses: Go's own table where there is one, then DWARF, .symtab, .dynsym. An
 * address in no symbol's range gets no frame: never the name of the nearest one.
 */
#ifndef TARGET_NAMES_H
#define TARGET_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct strtab;

struct symbol_frame {
	uint32_t name;	      /* offset in strings: demangled, full */
	uint32_t system_name; /* as the linker has it */
	uint32_t file;	      /* 0 ("") if unknown */
	uint32_t
		line; /* of the address, or of the call of the inlined frame before; 0 if unknown */
	uint32_t start_line; /* of the function's declaration; 0 if unknown */
	/* Go: the only frame of an address; not shown, unless it has called one of the functions
	 * that begin a panic */
	uint32_t wrapper;
	/* Of the address, from where the function begins that the code was made for, plus 1; 0 if
	 * unknown. The same in all frames of an address. */
	uint32_t from_entry;
};

static inline uint32_t symbol_from_entry(uint64_t address, uint64_t entry)
{
	return address >= entry && address - entry < UINT32_MAX ? (uint32_t)(address - entry) + 1 :
								  0;
}

struct symbols {
	/* for address i: frames[first[i]] … frames[first[i + 1] - 1], innermost inlined function
	 * first; none: no name */
	uint32_t *first; /* cnt + 1 entries */
	size_t cnt;
	struct symbol_frame *frames;
	size_t frame_cnt;
	char *strings; /* NUL-terminated, strings[0] == 0 */
	size_t strings_sz;
};

/* The frames of one address: borrowed. */
struct symbol_frames {
	const struct symbol_frame *frames; /* innermost inlined function first */
	size_t cnt;			   /* 0: no name */
	const char *strings;		   /* that the frames' offsets lead into */
};

static inline struct symbol_frames symbols__of(const struct symbols *s, size_t i)
{
	return (struct symbol_frames){
		.frames = s->frames + s->first[i],
		.cnt = s->first[i + 1] - s->first[i],
		.strings = s->strings,
	};
}

/*
 * Names cnt ascending virtual addresses. debug: the file of separate debug information, alt: the
 * supplementary file of whichever has the DWARF, split: a .dwp or .dwo of it; NULL where there is none. Debug sections are read,
 * used and given back within the call; plain: they are not, and there are no inlined functions and no
 * lines, but Go's. 0 or -ENOMEM; *ret is the caller's after 0 only.
 */
int names_find(const struct elf_file *elf, const struct elf_file *debug, const struct elf_file *alt,
	       const struct elf_file *split, const uint64_t *vaddrs, size_t cnt, bool plain,
	       struct symbols *ret);
/* Which .dwo files the addresses' units are split into: of each that has one a frame, whose name is
 * the path, absolute if the unit knows its folder. 0, -ENOMEM, or as dwarf_resolve. */
int names_split_files(const struct elf_file *elf, const struct elf_file *debug,
		      const struct elf_file *alt, const uint64_t *vaddrs, size_t cnt,
		      struct symbols *ret);
void symbols__done(struct symbols *s);

/* The frames have ids of `strings`: replaces them by offsets into one block, which has those that
 * are used. 0 or -ENOMEM. */
int symbols__set_strings(struct symbols *s, const struct strtab *strings);

#endif
