/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the table in probe.h, each from the file that is called like it or its group. */
#ifndef KERNEL_PROBES_H
#define KERNEL_PROBES_H

#include "kernel/probe.h"

extern const struct probe probe_cpu;
extern const struct probe probe_heap;				  /* probe_heap.c */
extern const struct probe probe_block, probe_mutex, probe_offcpu; /* probe_waits.c */
extern const struct probe probe_threadcreate;
extern const struct probe probe_threads; /* threads.c */
extern const struct probe probe_faults;
extern const struct probe probe_custom;
extern const struct probe probe_fds;

#endif
