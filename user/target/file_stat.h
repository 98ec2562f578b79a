/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of a foreign file without asking whoever serves it. Such files are held by O_PATH
 * descriptors: opening, reading and closing others can take for ever, where the file system's
 * server is a program (FUSE) or another machine.
 */
#ifndef TARGET_FILE_STAT_H
#define TARGET_FILE_STAT_H

#include <stdbool.h>
#include <stdint.h>

struct file_stat {
	uint64_t dev, ino, size, mtime_ns;
	uint64_t ctime_ns; /* when it was written last at the latest, CLOCK_REALTIME */
	uint32_t uid, mode;
	uint32_t links; /* 0: it was deleted */
};

/* 0; -ENOTSUP if it is no regular file; -errno. */
int file_stat_regular(int fd, struct file_stat *ret);

/* May it have been written since then, CLOCK_MONOTONIC? The kernel stamps files by a clock that ticks. */
bool file_stat_written_since(const struct file_stat *st, uint64_t ns);

/* Are both the same file, which was not written to in between? */
bool file_stat_same(const struct file_stat *a, const struct file_stat *b);

/*
 * Only root, or we ourselves, can have written the file. What others write may carry the build id
 * of a system library, to give its functions other names in the profiles of everybody.
 */
bool file_stat_trusted(const struct file_stat *st);

#endif
