/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code that was made at run time, as its compiler wrote them into /tmp/perf-PID.map
 * (Linux, tools/perf/Documentation/jit-interface.txt): lines "START SIZE name", both numbers
 * hexadecimal, with or without 0x, the name up to the end of the line.
 *
 * Compilers append, and use the memory of code that is gone again: an address belongs to the last
 * line whose range holds it. The file has no times. So code that took another's place between the
 * sample and the reading gives it its own name; nothing in the file could tell.
 */
#ifndef TARGET_PERF_MAP_H
#define TARGET_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "target/names.h"

#define PERF_MAP_MAX_READ (128U << 20) /* bytes; of a larger file the end, which is the latest */
#define PERF_MAP_MAX_LINE 16384U       /* bytes; the range of a longer one is nobody's */
#define PERF_MAP_MAX_NAMES (32U << 20) /* bytes of all names; further ones are left out */

struct perf_map_names {
	struct symbols symbols; /* one frame, or none, for each address */
	uint64_t ignored;	/* lines that are none, or whose range there cannot be */
	uint64_t unread;	/* bytes before the end that was read */
};

/* Names cnt ascending addresses. fd: a regular file, open for reading. 0, -ENOMEM or -errno; *ret
 * is the caller's after 0 only. */
int perf_map_find(int fd, const uint64_t *addrs, size_t cnt, struct perf_map_names *ret);

#endif
