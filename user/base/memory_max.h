/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much memory control groups leave this process and those beside it, all together. Who takes
 * more has one of them killed, and in Kubernetes all of them: memory.oom.group.
 */
#ifndef BASE_MEMORY_MAX_H
#define BASE_MEMORY_MAX_H

#include <stdint.h>
#include <sys/types.h>

/* Bytes, by the own group and those above it, as they were when this was asked first; UINT64_MAX: no
 * limit, or none that can be seen here. */
uint64_t memory_max(void);

/*
 * The same of a process by its /proc/PID/cgroup. mount: where the hierarchies are, version 2 itself
 * or the one of version 1 in the folder `memory`. In a namespace the whole machine's hierarchy may
 * be mounted, in which the path is none: the group is looked for by the process in it.
 */
uint64_t memory_max_of(const char *mount, const char *groups, pid_t pid);

/* What one may take that takes `usual` bytes at most: of a limit that part, but 64 MiB in any case. */
uint64_t memory_max_share(uint64_t max, unsigned int part, uint64_t usual);

#endif
