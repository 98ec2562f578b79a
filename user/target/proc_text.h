/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of /proc/PID that have to do with the memory of the process: maps, cmdline, stat, exe. To open one waits for the end of an
 * exec, to read it for the memory map, and a process may withhold either for ever, by a FUSE file whose server does not
 * answer; stat is held by an exec, too, by some kernels. So another process does both, in our memory, and is killed where
 * it takes too long; the process whose files these are is left alone for a while then (base/rest.h). To read a file so
 * takes 25 us longer.
 */
#ifndef TARGET_PROC_TEXT_H
#define TARGET_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * For reading from the beginning to the end, or to wherever. NULL with errno; ETIMEDOUT, as also fgets(3) says of it
 * later on: it is better not asked for again. Elsewhere than below /proc it is an ordinary file.
 */
FILE *proc_text_open(const char *path);

/* All of it, with a NUL behind it; as util_read_file. */
int proc_text_read(const char *path, size_t max, char **ret, size_t *ret_sz);

/* As readlink(2), of what is below /proc. */
ssize_t proc_text_link(const char *path, char *ret, size_t sz);

/* Was it one of the last 4096 processes that have read for us? */
bool proc_text_had_helper(pid_t pid);

#endif
