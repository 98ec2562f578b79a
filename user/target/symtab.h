/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols of code of an ELF file, from .symtab and .dynsym, and the entries of its PLT, named
 * "function@plt". */
#ifndef TARGET_SYMTAB_H
#define TARGET_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct symtab;

struct symtab_symbol {
	const char *name;    /* without version; borrowed until symtab__free */
	uint64_t start, end; /* end is exclusive; of a symbol without size, the next symbol or the
				end of its section */
};

/* debug: the file of separate debug information, or NULL; its .symtab serves if elf has none. NULL
 * with errno ENOMEM. */
struct symtab *symtab__load(const struct elf_file *elf, const struct elf_file *debug);
void symtab__free(struct symtab *st);
size_t symtab__cnt(const struct symtab *st);

/* The symbol whose range holds addr; 0 or -ENOENT: never the nearest one. */
int symtab__find(const struct symtab *st, uint64_t addr, struct symtab_symbol *ret);

/*
 * Which of two names of one address to show: <0 if a, >0 if b. The higher rank (global over weak
 * over local), then fewer leading underscores, then the shorter one, then by strcmp.
 */
int symtab_prefer(const char *a, int rank_a, const char *b, int rank_b);

#endif
