/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket that listens where an option says. */
#ifndef BASE_LISTEN_H
#define BASE_LISTEN_H

#include <stddef.h>

/*
 * Listens at HOST:PORT, "[HOST]:PORT" with IPv6: numbers, or localhost; no name is looked up. A
 * descriptor; -EINVAL: that is no such address; -errno as bind(2) has it. Either with a sentence in
 * text.
 */
int listen_open(const char *address, char *text, size_t text_sz);

#endif
