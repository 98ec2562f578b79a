/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds files of separate debug information. What an object says about their place is a hint of
 * somebody else's: only files below one root directory are opened, and only one that proves to
 * belong to the object is taken.
 */
#ifndef TARGET_DEBUGFILE_H
#define TARGET_DEBUGFILE_H

#include "target/elf_file.h"

#define DEBUGFILE_ROOT "/usr/lib/debug"

/* An opened file; elf is NULL if there is none. */
struct debugfile {
	struct elf_file *elf;
	int fd;
};

/*
 * The debug file of an object: ROOT/.build-id/xx/yyy.debug with the same build id; else, by
 * .gnu_debuglink, ROOT/DIR/NAME with the same CRC, DIR being that of the object's path. 0 or
 * -ENOENT, -ENOMEM; debugfile__close in any case.
 */
int debugfile__open(struct debugfile *d, const struct elf_file *elf, const char *path,
		    const char *root);

/* The supplementary file that dwz made for several debug files (.gnu_debugaltlink), by its build id
 * or below ROOT/.dwz. */
int debugfile__open_alt(struct debugfile *d, const struct elf_file *elf, const char *root);

void debugfile__close(struct debugfile *d);

#endif
