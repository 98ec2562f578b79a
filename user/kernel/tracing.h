/* SPDX-License-Identifier: BSD-2-Clause */
/* Can programs be attached to a function of the kernel, or to a tracepoint by its types? */
#ifndef KERNEL_TRACING_H
#define KERNEL_TRACING_H

#include <stdbool.h>

/*
 * Loads a program that does nothing for a function, or for a tracepoint, of that name and, of a
 * function, attaches it: types do not tell, it takes ftrace, too. libbpf's own probes of program
 * types go by the words of the verifier, which change.
 */
bool tracing_has_function(const char *name);
bool tracing_has_tracepoint(const char *name);

#endif
