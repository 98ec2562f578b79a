/* SPDX-License-Identifier: BSD-2-Clause */
/* The page /debug/pprof/. */
#ifndef COURIER_INDEX_PAGE_H
#define COURIER_INDEX_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serve_custom;

struct index_page {
	uint32_t pid;		/* the process; 0: none was named */
	bool named;		/* it stands in the links */
	const uint64_t *counts; /* by endpoint */
	const struct serve_custom *custom;
	size_t custom_cnt;
};

/* HTML, the caller's; NULL: there is no memory. */
char *index_page(const struct index_page *page, size_t *ret_sz);

#endif
