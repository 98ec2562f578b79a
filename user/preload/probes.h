/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's two probe sites, in heap.c. */
#ifndef PRELOAD_PROBES_H
#define PRELOAD_PROBES_H

#include <stddef.h>
#include <stdint.h>

void probe_alloc(const void *ptr, size_t size, uint64_t weight);
/* NULL: from here on, something is not seen (loads.c). */
void probe_free(const void *ptr);

#endif
