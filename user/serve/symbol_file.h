/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions at addresses, as net/http/pprof has them: what readers ask that have found none themselves. */
#ifndef SERVE_SYMBOL_FILE_H
#define SERVE_SYMBOL_FILE_H

#include <stddef.h>
#include <stdint.h>

struct capture;

/* "num_symbols: 1", then a line for each address that has a name. A sealed file in memory, or -errno. */
int symbol_file(struct capture *c, uint32_t pid, const uint64_t *addresses, size_t cnt);

#endif
