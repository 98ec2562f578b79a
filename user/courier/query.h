/* SPDX-License-Identifier: BSD-2-Clause */
/* The query of a URL, and forms, which look the same (WHATWG URL, application/x-www-form-urlencoded). */
#ifndef COURIER_QUERY_H
#define COURIER_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first value of a key, decoded; pairs that cannot be decoded, or have a ';' in them, are passed
 * over. False: there is none, or it has a NUL in it or no room in ret.
 */
bool query_get(const char *query, const char *key, char *ret, size_t ret_sz);

/* A decimal number as Go's strconv.ParseInt reads it, with a sign or none. False: it is none, or no int64. */
bool query_parse_int(const char *s, int64_t *ret);

#endif
