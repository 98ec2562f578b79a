/* SPDX-License-Identifier: BSD-2-Clause */
/* Goes through the symbols of an ELF file by their names. */
#ifndef TARGET_ELF_SYMBOLS_H
#define TARGET_ELF_SYMBOLS_H

#include <elf.h>
#include <stddef.h>

struct elf_file;

/* name: of the symbol, as its table has it, not empty; index: of the symbol in the table. 0, or -errno
 * to end the visit. */
typedef int (*elf_symbol_fn)(void *ctx, const Elf64_Sym *sym, const char *name, size_t index);

/*
 * Visits the symbols of a section, .symtab or .dynsym. 0; -ENOMEM; what reading the file or fn failed
 * with. A section that is none, damaged, or too large, has no symbols.
 */
int elf_symbols__visit(const struct elf_file *elf, const char *section, elf_symbol_fn fn,
		       void *ctx);

#endif
