/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc says of a process. */
#ifndef SERVE_PROCESS_H
#define SERVE_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Its arguments, each with a NUL behind it but the last one. The caller frees *ret. 0 or -errno. */
int process_cmdline(pid_t pid, char **ret, size_t *ret_sz);

/* How many threads it has. 0; -ESRCH: it is not there, or a thread's id. */
int process_threads(pid_t pid, uint64_t *ret);

/* How many descriptors it has open; more than 65536 where the kernel does not say it (6.2) are not all counted. */
uint64_t process_fds(pid_t pid);

#endif
