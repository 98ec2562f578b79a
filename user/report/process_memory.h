/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says of a process's memory. */
#ifndef PROCESS_MEMORY_H
#define PROCESS_MEMORY_H

#include <sys/types.h>

/*
 * Lines as Go prints those of its runtime.MemStats, "# VmRSS = 4096": bytes, by the names of
 * proc_pid_status(5). For the caller to free. NULL: there is no such process, or it has ended.
 */
char *process_memory(pid_t pid);

#endif
