/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiles a thread name pattern into the automaton that the BPF filter runs (struct
 * bpfprof_config). */
#ifndef KERNEL_GLOB_H
#define KERNEL_GLOB_H

#include <linux/types.h>

#include "bpfprof.h"

/* '*' any bytes, '?' any one byte, '\\' before one of them that byte. 0, or -E2BIG above
 * BPFPROF_GLOB_MAX. */
int glob_compile(const char *pattern, struct bpfprof_config *cfg);

#endif
