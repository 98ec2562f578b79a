/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of debug information that are asked again and again, such as the C library's: their sections
 * are read, and what is compressed is expanded, once and not for each request. The last few are kept,
 * as far as they are small together, and if their times leave no doubt that they are still the same;
 * until nobody has asked for a while.
 */
#ifndef TARGET_DWARF_KEPT_H
#define TARGET_DWARF_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "target/dwarf_file.h"

/* Bytes of memory of those that are kept: of their sections, once these are expanded, and of what libdw
 * has made of them: 10 MiB of the C library's, 16 of those of an interpreter such as python. */
#define DWARF_KEPT_MAX (32U << 20)

struct elf_file;

struct dwarf_kept {
	struct dwarf_file file, alt; /* alt: if there is one */
};

/* Keeps files from one request to the next, from now on. Else, and in tests and fuzzers, each is
 * opened anew. */
void dwarf_kept_enable(void);

/* As dwarf_file__open, of elf and of its supplementary file, or NULL. */
int dwarf_kept__open(const struct elf_file *elf, const struct elf_file *alt,
		     struct dwarf_kept **ret);

/* The request is done. broken: libdw has left something half done. */
void dwarf_kept__close(struct dwarf_kept *k, bool broken);

/* Lets go of all that is kept. */
void dwarf_kept_drop(void);

#endif
