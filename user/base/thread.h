/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that take no signals: those are for the thread that has started them. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * As pthread_create(3), with all signals blocked. stack_sz: bytes, at least PTHREAD_STACK_MIN; 0: as much
 * as threads have by default. 0 or -errno.
 */
int thread_start(pthread_t *ret, size_t stack_sz, void *(*run)(void *arg), void *arg);

#endif
