/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * R_X86_64_RELATIVE relocations (psABI, table 4.9) of a foreign file. In position-independent code
 * a word that holds an address is zero in the file, and the relocation's addend is the address: what
 * reads such words has to take them from there.
 */
#ifndef TARGET_ELF_RELATIVE_H
#define TARGET_ELF_RELATIVE_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

/*
 * Puts into buf, the file's sz bytes from vaddr on, the words of 8 bytes that the relocations have
 * there: addresses as the file's own, without load address. 0 or -errno of reading. A file without
 * such relocations, or with damaged ones, leaves buf as it is.
 */
int elf_relative__apply(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t sz);

/* The places, max at most, that are given the address `addend`. */
int elf_relative__find(const struct elf_file *elf, uint64_t addend, uint64_t *ret_places,
		       size_t max, size_t *ret_cnt);

#endif
