/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions the call frame information of an object says to be around given addresses: its
 * FDEs, of which compilers write one for each function and part of one (DWARF 5, 6.4; LSB Core
 * 10.6.1 for .eh_frame).
 *
 * One pass over the sections, in the file's order. The search table of .eh_frame_hdr would be
 * quicker, but not every object has one, and .debug_frame never does.
 */
#ifndef TARGET_FDE_RANGES_H
#define TARGET_FDE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct fde_range {
	uint64_t vaddr;	     /* asked for */
	uint64_t start, end; /* of the FDE around it, end exclusive; both 0: none is */
	uint64_t next;	     /* where the first FDE behind it begins; UINT64_MAX: there is none */
	bool signal;	     /* the FDE around it is of a signal frame */
};

/*
 * Fills in cnt ranges, whose vaddr ascend. elf: the object; debug: its file of debug information,
 * for .debug_frame, or NULL. 0, also if the object has no call frame information; -EBADMSG if there
 * is any that cannot be read, so that nothing is known; -E2BIG; -ENOMEM; or what reading the file
 * failed with.
 */
int fde_ranges_find(const struct elf_file *elf, const struct elf_file *debug,
		    struct fde_range *ranges, size_t cnt);

#endif
