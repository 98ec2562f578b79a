/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of /proc/PID that have to do with the memory of the process: maps, cmdline, stat, exe. To open one waits for the end of an
 * exec, to read it for the memory map, and a process may withhold either for ever, by a FUSE file whose server does not
 * answer; stat is held by an exec, too, by some kernels. So a thread does both. Where it takes too long, the process whose
 * files these are is left alone for a while (base/rest.h), and another thread does it for the next ones: a thread that
 * waits so cannot be ended but with all of us. To be called by one thread.
 */
#ifndef TARGET_PROC_TEXT_H
#define TARGET_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * All of a file, with a NUL behind it, as util_read_file: 0 or -errno; -EFBIG: it has more than max bytes; -ETIMEDOUT: it
 * is better not asked for again. Elsewhere than below /proc it is an ordinary file.
 */
int proc_text_read(const char *path, size_t max, char **ret, size_t *ret_sz);
/* The same of its first max bytes: the rest is not read. ret_more: there is one. */
int proc_text_begin(const char *path, size_t max, char **ret, size_t *ret_sz, bool *ret_more);

/* As readlink(2), of what is below /proc, but for -errno where that has -1. */
ssize_t proc_text_link(const char *path, char *ret, size_t sz);

/* A thread has the capabilities that we had when it was started: from here on one that has today's. */
void proc_text_restart(void);

#endif
