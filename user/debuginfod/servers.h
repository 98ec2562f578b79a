/* SPDX-License-Identifier: BSD-2-Clause */
/* Which servers there are: what DEBUGINFOD_URLS says (debuginfod(8)). */
#ifndef DEBUGINFOD_SERVERS_H
#define DEBUGINFOD_SERVERS_H

#include <stddef.h>

#define SERVERS_VARIABLE "DEBUGINFOD_URLS"

/*
 * value: of the variable, or NULL. ret: its URLs, separated by blanks, without "ima:…", which says
 * whose signatures are to be checked: ours is no check of them. 0; -EINVAL with a sentence in text:
 * it names no server, or one that is asked by other means than HTTP, or too many.
 */
int servers_parse(const char *value, char *ret, size_t ret_sz, char *text, size_t text_sz);

#endif
