/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of what a process has mapped, as they came, one behind the other: kept for as long as
 * nobody asks for the process's mappings. Some 110 bytes each, paths included.
 */
#ifndef TARGET_MAP_LOG_H
#define TARGET_MAP_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/proc_file.h"

/* Code was mapped at [start, start + len). */
struct map_record {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t start, len, offset;
	struct proc_file file; /* path not longer than MAP_LOG_MAX_PATH */
};

#define MAP_LOG_MAX_PATH 65535 /* bytes; what is longer is cut */

/* Zero is an empty one. */
struct map_log {
	uint8_t *buf;
	size_t sz, cap; /* bytes */
};

/* Appends a record. 0 or -ENOMEM, and then the log is as it was. */
int map_log__put(struct map_log *l, const struct map_record *r);

/* The record at *pos, which goes on to the next; from 0 on. The path is borrowed until the log
 * changes. False: that was all. */
bool map_log__next(const struct map_log *l, size_t *pos, struct map_record *ret);

/* Makes *to, which is empty, the same as *from. 0 or -ENOMEM. */
int map_log__copy(struct map_log *to, const struct map_log *from);

/* Forgets all records, and gives the memory back. */
void map_log__clear(struct map_log *l);

#endif
