/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large arrays in large pages, where the system has them: fewer page faults, and fewer misses of what jumps about
 * in them. For commands that read much and are gone soon: an array may take 2 MiB more.
 */
#ifndef BASE_LARGE_PAGES_H
#define BASE_LARGE_PAGES_H

#include <stddef.h>

/* Of all arrays from now on; before there are threads. */
void large_pages__prefer(void);

/* To be told of an array of so many bytes that was just allocated by malloc or realloc; util_reserve() does so.
 * Nothing without large_pages__prefer(), and for one of less than 4 MiB. */
void large_pages__use(void *array, size_t bytes);

#endif
