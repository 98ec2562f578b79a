/* SPDX-License-Identifier: BSD-2-Clause */
/* Which entries of its GOT an ELF file has the dynamic linker fill in with addresses of symbols:
 * R_X86_64_JUMP_SLOT and R_X86_64_GLOB_DAT (psABI, table 4.9). */
#ifndef TARGET_ELF_GOT_H
#define TARGET_ELF_GOT_H

#include <stdint.h>

struct elf_file;

/* got: virtual address of the entry; symbol: index in .dynsym, whatever the file says. 0, or -errno
 * to end the visit. */
typedef int (*elf_got_fn)(void *ctx, uint64_t got, uint32_t symbol);

/*
 * Visits the entries that .rela.plt names, then those of .rela.dyn. 0; -ENOMEM; what reading the
 * file or fn failed with. A section that is none, or too large, has no entries.
 */
int elf_got__visit(const struct elf_file *elf, elf_got_fn fn, void *ctx);

#endif
