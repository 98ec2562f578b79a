/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of a unit, of DWARF 2 to 5 (DWARF 5, 6.2). The line number program runs once for all addresses that are
 * asked for, and none of its rows is kept: libdw makes all of them, 150 bytes each, and sorts them, which takes
 * most of the time in which a few addresses are named.
 */
#ifndef TARGET_DWARF_LINES_H
#define TARGET_DWARF_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/dwarf_bytes.h"

struct dwarf_file;

/* Folders or files of a unit by number, as its table has them. */
struct dwarf_line_paths {
	struct dwarf_line_path {
		const char *name; /* NULL: none */
		uint64_t folder;  /* of a file: number */
	} * v;
	size_t cnt, cap;
};

/* Begins with zeros. Its strings are the file's. */
struct dwarf_lines {
	const struct dwarf_file *file;
	struct dwarf_bytes program; /* empty: the unit has no lines, or damaged ones */
	unsigned int version, offset_sz, min_insn, line_range, opcode_base;
	int line_base;
	const unsigned char *lengths; /* how many numbers follow each standard opcode, from 1 on */
	const char *comp_dir;	      /* or NULL */
	struct dwarf_line_paths folders, files;
};

struct dwarf_row {
	uint64_t lo; /* address */
	uint32_t file, line;
};

/* Reads the table's header, instead of any that was read before. 0, also if there are no lines; -ENOMEM. */
int dwarf_lines__open(struct dwarf_lines *l, const struct dwarf_file *f, Dwarf_Die *unit);
void dwarf_lines__done(struct dwarf_lines *l);

/*
 * Calls found for each of the addresses, which ascend, that a row holds for, with its index, until it returns false.
 * Of several rows for one address, which follow each other in no order, the one that begins last is meant. Rows of
 * code that the linker has discarded are left out.
 */
void dwarf_lines__find(const struct dwarf_lines *l, const uint64_t *addrs, size_t cnt,
		       bool (*found)(void *ctx, size_t idx, const struct dwarf_row *row),
		       void *ctx);

/* The path of a file, absolute if a directory is known; "" if there is none, or if it is longer than
 * buf, which it is in. */
const char *dwarf_lines__path(const struct dwarf_lines *l, uint64_t file, char *buf, size_t sz);

#endif
