/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which files are mapped next to memory with code, as the lines of /proc/PID/maps go by: if it was
 * put in the place of a file's code, the file's other segments are there (target/copy.h).
 */
#ifndef TARGET_BESIDE_H
#define TARGET_BESIDE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "target/proc_maps.h"

/* The last lines of the last two files, the later one first. */
struct beside {
	struct proc_maps_line lines[2]; /* end 0: there was none */
	char paths[2][PATH_MAX];	/* which are theirs */
	unsigned int next_path;
	bool memory; /* with code, since the last file */
};

struct beside_found {
	const struct proc_maps_line *file; /* that is next to such memory; NULL: none */
	/* where code of a file begins that stands in the middle of another file: huge pages can be
	 * such; 0: nowhere */
	uint64_t doubtful;
};

void beside__init(struct beside *b);
/* Takes the next line. What *ret points to is that line or an earlier one, until the next call. */
void beside__take(struct beside *b, const struct proc_maps_line *line, struct beside_found *ret);

#endif
