/* SPDX-License-Identifier: BSD-2-Clause */
/* Can programs be attached to a function of the kernel, or to a tracepoint by its types? */
#ifndef KERNEL_TRACING_H
#define KERNEL_TRACING_H

#include <stdbool.h>

/*
 * Loads a program that does nothing for a function, or for a tracepoint, of these types' id (0 or below:
 * there is none) and, of a function, attaches it: types do not tell, it takes ftrace, too. libbpf's
 * own probes of program types go by the words of the verifier, which change.
 */
bool tracing_has_function(int btf_id);
bool tracing_has_tracepoint(int btf_id);

#endif
