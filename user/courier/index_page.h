/* SPDX-License-Identifier: BSD-2-Clause */
/* The page /debug/pprof/. */
#ifndef COURIER_INDEX_PAGE_H
#define COURIER_INDEX_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pid: the process; 0: none was named. named: it stands in the links. counts: by endpoint. HTML, the
 * caller's; NULL: there is no memory. */
char *index_page(uint32_t pid, bool named, const uint64_t *counts, size_t *ret_sz);

#endif
