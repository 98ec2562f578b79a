/* SPDX-License-Identifier: BSD-2-Clause */
/* What a wait is called: the names for bpfprof_rec.wait, in labels and in the dump of threads. */
#ifndef WAITS_H
#define WAITS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

/* Why a thread was off its CPU: "futex", "sleep", "poll", "io", "disk", "page fault", "run queue",
 * "child", "lock", "signal", "stopped", "kernel", "other"; static. */
const char *waits_reason(uint32_t wait);
/* Name of the system call, as in syscalls(2), or NULL if it was in none that is known; static. */
const char *waits_syscall(uint32_t wait);
/* What a thread is in: the system call, else "user code", "page fault", "exit", "kernel thread";
 * static. */
const char *waits_in(uint32_t wait);
/* How a wait for a futex ended, if not by a peer: "time-out", "signal", "requeue", "not yet"; else
 * NULL. Static. */
const char *waits_woken(uint32_t wait);
/* The state of a thread, as BPFPROF_THREAD_STATES has it; static. */
const char *waits_state(uint32_t wait);

/*
 * Hides the kernel frames at the leaf that every wait has: of the tracing that recorded it, and of
 * the scheduler. What is left begins with the function that wanted to wait. To be called once names
 * are set.
 */
void waits_hide(struct profile *p);

#endif
