/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF of a foreign file, opened by libdw so that it opens no other file and ends no program, and
 * strings, whose damage libdw does not catch.
 *
 * libdw reads all debug sections of a file at once, with pread (ELF_C_READ maps nothing), and
 * expands what is compressed; the sizes that the file claims are checked before. What it makes of
 * them it keeps until the file is closed.
 */
#ifndef TARGET_DWARF_FILE_H
#define TARGET_DWARF_FILE_H

#include <elfutils/libdw.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/dwarf_image.h"

struct elf_file;

struct dwarf_file {
	Elf *elf;
	Dwarf *dbg;
	const Elf_Data *info;		/* .debug_info */
	const Elf_Data *line;		/* .debug_line, or NULL */
	const Elf_Data *addr, *ranges;	/* .debug_addr, .debug_ranges, or NULL */
	const Elf_Data *aranges;	/* .debug_aranges, or NULL */
	const Elf_Data *str, *line_str; /* .debug_…, whose last strings have ends, or NULL */
	struct dwarf_image image;	/* what elf and dbg read, if it is not the file */
	uint64_t total;			/* bytes of all that libdw has read */
	struct dwarf_file *alt;		/* the supplementary file (dwz), or NULL; borrowed */
};

/* Where libdw goes when it is out of memory: to be set before anything but open and close. */
extern __thread jmp_buf dwarf_file_no_memory;

/*
 * Borrows elf's descriptor. 0, with *f to be closed before alt; -ENOENT without .debug_info, or
 * without alt where elf has a supplementary file, for which libdw would look; -EBADMSG, -E2BIG.
 */
int dwarf_file__open(struct dwarf_file *f, const struct elf_file *elf, struct dwarf_file *alt);
void dwarf_file__close(struct dwarf_file *f);

/* From now on it does without the descriptor that it was opened with. */
void dwarf_file__detach(struct dwarf_file *f);

/* As dwarf_begin_elf; out of memory it goes to dwarf_file_no_memory. */
Dwarf *dwarf_file_begin(Elf *elf);

/* The value of an attribute, as dwarf_formstring has it; NULL if attr is, or if it has no end. */
const char *dwarf_file__string(const struct dwarf_file *f, Dwarf_Attribute *attr);

/* Linkers give code that they discard the address 0, or -1 or -2. */
static inline bool dwarf_is_discarded(uint64_t addr)
{
	return !addr || addr >= (uint64_t)-2;
}

#endif
