/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/ID/status of a process or a thread: proc_pid_status(5). */
#ifndef BASE_PROC_STATUS_H
#define BASE_PROC_STATUS_H

#include <stdint.h>

#define PROC_STATUS_DIR "/proc"

/* Its text, which the caller frees. 0 or -errno: -ENOENT and -ESRCH where there is none of this id. */
int proc_status_read(const char *proc_dir, uint32_t id, char **ret);

/*
 * What stands behind "name:", from its blanks on, or NULL. The name of the process, which may be anything,
 * has its line breaks escaped: it cannot make a line of its own.
 */
const char *proc_status_line(const char *text, const char *name);

/* The number there; 0 if there is none. Memory is in KiB. */
uint64_t proc_status_number(const char *text, const char *name);

#endif
