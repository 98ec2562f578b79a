/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of addresses whose functions are in files of split DWARF: in one that has those of the whole
 * program, NAME.dwp, or in a .dwo for each unit, where the program says. Both may be beside it, beside its
 * debug file or where debug files are, as gdb has it. They are looked for in the same roots as debug files,
 * and may be read by the same rules.
 */
#ifndef TARGET_SPLIT_NAMES_H
#define TARGET_SPLIT_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct debugfile;
struct debugfile_object;
struct symbols;

/* As reader__names, with debug information. debug, alt: what was found for the object. */
int split_names(const struct debugfile_object *o, int fd, const struct debugfile *debug,
		const struct debugfile *alt, const uint64_t *vaddrs, size_t cnt,
		struct symbols *ret);

#endif
