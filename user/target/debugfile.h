/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds files of separate debug information, in the places where gdb looks for them. What an object
 * says about their place is a hint of somebody else's: only a file that proves to belong to the
 * object is taken, and only one that whoever has written the object could have read, as far as its
 * mode and those of the folders on the way say so, so that no object makes us read what is a secret. For an object that only root or we can have written it has
 * to be a file that only root or we can have written.
 */
#ifndef TARGET_DEBUGFILE_H
#define TARGET_DEBUGFILE_H

#include <limits.h>
#include <stdbool.h>

#include "target/file_stat.h"
#include "target/reader.h"

#define DEBUGFILE_FOLDER "/usr/lib/debug"
#define DEBUGFILE_MAX_ROOTS 2

struct fetched_files;

/* What a file of debug information is looked for. All of it is borrowed. */
struct debugfile_object {
	struct reader *reader;
	const struct reader_file *file;
	const struct file_stat *st; /* NULL: the vDSO */
	const char *path;	    /* seen from either root; may be none */
	/* Where to look, O_PATH: our own root folder, that of a process which has mapped it. */
	int roots[DEBUGFILE_MAX_ROOTS];
	size_t root_cnt;
	/* what came from elsewhere and counts where there is nothing in the roots, NULL: nothing; and who
	 * reads that: whoever has sent it may have meant harm */
	const struct fetched_files *fetched;
	struct reader *fetched_reader;
};

/* fd is -1 if there is none. */
struct debugfile {
	int fd; /* O_PATH */
	struct file_stat st;
	struct reader_file file;
	int root;     /* where it was found, one of the object's; -1: it was fetched */
	bool fetched; /* has no path */
	char path[PATH_MAX];
};

/*
 * The debug file of an object. In each root FOLDER/.build-id/xx/yyy.debug with the same build id;
 * else, by .gnu_debuglink, NAME and .debug/NAME in the object's folder DIR, and FOLDER/DIR/NAME, with
 * the same build id or, where either has none, with the CRC that the link says; else what was fetched
 * for its build id, and has it. 0 or -ENOENT, -ENOMEM; debugfile__close in any case.
 */
int debugfile__open(struct debugfile *d, const struct debugfile_object *o);

/*
 * The supplementary file that dwz made for several debug files (.gnu_debugaltlink), by its build id:
 * FOLDER/.build-id/xx/yyy.debug, where the link leads from the file that has it, or FOLDER/.dwz/…;
 * or as fetched.
 * of: the debug file that refers to it; without one (fd -1) the object itself.
 */
int debugfile__open_alt(struct debugfile *d, const struct debugfile_object *o,
			const struct debugfile *of);

/* A file of split DWARF, a .dwo or .dwp: at path with its ending, seen from either root. What proves
 * that it belongs to the object is in its units. */
int debugfile__open_split(struct debugfile *d, const struct debugfile_object *o, const char *path,
			  const char *ending);

void debugfile__close(struct debugfile *d);

#endif
