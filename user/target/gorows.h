/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind rows from the tables of Go's runtime, exact at every instruction: how far rsp has moved
 * (pcsp) is known by address, so that no frame pointer is needed; where Go's assembly sets rsp, the
 * frame pointer that it has saved is; and the functions that switch stacks have rules of their own.
 * Go's .debug_frame says less: nothing of rbp and of switches, and stripped programs have none.
 */
#ifndef TARGET_GOROWS_H
#define TARGET_GOROWS_H

#include <stdbool.h>

#include "target/unwind_build.h"

struct elf_file;
struct gorows;

/* NULL with errno: as gopclntab__open, and ENOENT also for Go up to 1.16, or if a table of the form of
 * 1.16 and 1.17 does not say which made it. Borrows elf. */
struct gorows *gorows__open(const struct elf_file *elf);
void gorows__free(struct gorows *g);

/* Are there functions that leave rsp in r12 while C runs on another stack? Their callers are found if
 * the rules of that C say where r12 is. */
bool gorows__leaves_sp_in_r12(const struct gorows *g);

/* Functions of Go; C that was linked in is none. Borrows g. */
struct unwind_source gorows__source(struct gorows *g);

#endif
