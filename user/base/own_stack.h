/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a function on a stack that is large enough, whatever the process may have (RLIMIT_STACK). */
#ifndef BASE_OWN_STACK_H
#define BASE_OWN_STACK_H

/* Bytes: what nearly every system gives, and libdw and demanglers are used to. */
#define OWN_STACK_SZ (8U << 20)

/*
 * Calls run(arg) and returns when it does: on a mapping of OWN_STACK_SZ where the limit is lower and the
 * mapping can be had, else on the caller's stack. New threads get as much where the limit is lower.
 */
void own_stack_run(void (*run)(void *arg), void *arg);

#endif
