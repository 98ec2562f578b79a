/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPU time of a command and of all that it starts: perf_event_open(2), PERF_COUNT_SW_TASK_CLOCK
 * with inherit. wait4(2) would miss children that nobody waits for. It is no sample: what it leaves
 * out are the few microseconds of each context switch.
 */
#ifndef KERNEL_TASK_CLOCK_H
#define KERNEL_TASK_CLOCK_H

#include <stdint.h>
#include <sys/types.h>

/* Of a process that will exec its program, from then on. A descriptor or -errno. */
int task_clock_open(pid_t pid);

/* So far, in nanoseconds; also once all have ended. 0 or -errno. */
int task_clock_read(int fd, uint64_t *ret_ns);

#endif
