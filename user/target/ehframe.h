/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind rows from call frame information: DWARF 5 section 6.4, and LSB Core 10.6 for what
 * .eh_frame does otherwise.
 */
#ifndef TARGET_EHFRAME_H
#define TARGET_EHFRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "target/unwind_build.h"

struct ehframe;
struct elf_file;

/*
 * Reads .eh_frame, by its section or, without section headers, by PT_GNU_EH_FRAME; or, if debug is
 * set, .debug_frame. Damaged entries are left out. NULL with errno: ENOENT if the object has none;
 * EBADMSG if nothing of it could be read; ENOMEM; E2BIG. Borrows elf until it is freed.
 */
struct ehframe *ehframe__open(const struct elf_file *elf, bool debug);
void ehframe__free(struct ehframe *e);

/* Lets its rules say where r12 is, which few ask for: tables are the larger for it. */
void ehframe__follow_r12(struct ehframe *e);

/* Its functions; borrows e. */
struct unwind_source ehframe__source(struct ehframe *e);
/* Bytes of call frame information read. */
size_t ehframe__size(const struct ehframe *e);

#endif
