/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of an ELF file's PLT around given addresses, and the dynamic symbols that they jump to.
 */
#ifndef TARGET_PLT_H
#define TARGET_PLT_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct plt_stub { /* around addresses first … first + cnt - 1 */
	uint64_t start;
	uint64_t got; /* the address of the GOT entry that it jumps through */
	size_t first, cnt;
	uint32_t symbol; /* index in .dynsym; 0: unknown */
};

/* The stubs around cnt ascending virtual addresses, in no order; *ret is the caller's to free. 0 or
 * -errno. */
int plt_find(const struct elf_file *elf, const uint64_t *vaddrs, size_t cnt, struct plt_stub **ret,
	     size_t *ret_cnt);

#endif
