/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds files of separate debug information. What an object says about their place is a hint of
 * somebody else's: only files below one root directory are opened, and only one that proves to
 * belong to the object is taken.
 */
#ifndef TARGET_DEBUGFILE_H
#define TARGET_DEBUGFILE_H

#include "target/reader.h"

#define DEBUGFILE_ROOT "/usr/lib/debug"

/* fd is -1 if there is none. */
struct debugfile {
	int fd; /* O_PATH */
	struct reader_file file;
};

/*
 * The debug file of an object: ROOT/.build-id/xx/yyy.debug with the same build id; else, by
 * .gnu_debuglink, ROOT/DIR/NAME with the same CRC, DIR being that of the object's path. 0 or
 * -ENOENT, -ENOMEM; debugfile__close in any case.
 */
int debugfile__open(struct debugfile *d, struct reader *r, const struct reader_file *object,
		    const char *path, const char *root);

/* The supplementary file that dwz made for several debug files (.gnu_debugaltlink), by its build id
 * or below ROOT/.dwz. of: what refers to it. */
int debugfile__open_alt(struct debugfile *d, struct reader *r, const struct reader_file *of,
			const char *root);

void debugfile__close(struct debugfile *d);

#endif
