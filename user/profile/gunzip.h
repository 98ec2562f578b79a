/* SPDX-License-Identifier: BSD-2-Clause */
/* Expands what gzip has compressed, within a limit. */
#ifndef PROFILE_GUNZIP_H
#define PROFILE_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does it begin like a file of gzip? */
bool gunzip_is(const uint8_t *data, size_t sz);

/*
 * One member after the other. sz: up to UINT_MAX. *ret is the caller's; NULL if it fails. 0; -EBADMSG: it is
 * damaged, or cut; -E2BIG: it has more than max bytes; -ENOMEM.
 */
int gunzip(const void *data, size_t sz, size_t max, uint8_t **ret, size_t *ret_sz);

#endif
