/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code addresses from the symbol tables of an ELF file, .symtab and .dynsym, and from its
 * PLT, whose entries are named "function@plt".
 *
 * As with DWARF, the addresses are known beforehand: tables are read in pieces, nothing is kept of
 * a symbol that none of the addresses needs, and only the names of the chosen ones are read.
 */
#ifndef TARGET_SYMTAB_H
#define TARGET_SYMTAB_H

#include <stddef.h>
#include <stdint.h>

#define SYMTAB_MAX_NAME 65536 /* bytes; a longer one is none */

struct elf_file;

struct symtab_symbol {
	uint64_t start;
	uint32_t
		name; /* offset in names, without version; 0: the address is in no symbol's range */
};

struct symtab_answers {
	struct symtab_symbol *symbols; /* one for each address */
	char *names;
};

/*
 * Answers for cnt ascending virtual addresses. Of the symbols around an address the one that begins
 * last is chosen, of several that begin there the one that symtab_prefer says. A symbol without a
 * size reaches to the next symbol or to the end of its section at most, and names there what is
 * proved to be its code (target/label_proof.h); inside of one with a size it is a mere label, without
 * range.
 *
 * debug: the file of separate debug information, or NULL; its .symtab serves if elf has none,
 * and else what elf has in .gnu_debugdata (target/minidebug.h). 0,
 * also if there are no symbols at all; -ENOMEM, or what reading the file failed with. *ret is the
 * caller's after 0 only.
 */
int symtab_resolve(const struct elf_file *elf, const struct elf_file *debug, const uint64_t *vaddrs,
		   size_t cnt, struct symtab_answers *ret);
void symtab_answers__done(struct symtab_answers *a);

/*
 * Which of two names of one address to show: <0 if a, >0 if b. The higher rank (global over weak
 * over local), then fewer leading underscores, then the shorter one, then by strcmp.
 */
int symtab_prefer(const char *a, int rank_a, const char *b, int rank_b);

#endif
