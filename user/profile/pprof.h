/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile as gzip'd profile.proto, the form `go tool pprof` reads. Equal profiles give
 * equal bytes. */
#ifndef PROFILE_PPROF_H
#define PROFILE_PPROF_H

#include <stddef.h>
#include <stdio.h>

struct profile;

/* Returns 0 or -errno. Does not close or flush f. */
int pprof_write(const struct profile *p, FILE *f);

/*
 * The same with something in the header of the gzip file, which readers of the profile do not see
 * (RFC 1952, 2.3.1.1: at most PPROF_MAX_EXTRA bytes): data of its own, without the id and length
 * that the format asks for. max_sz: bytes that the profile may have before it is compressed, else
 * -EMSGSIZE; 0: any.
 */
#define PPROF_MAX_EXTRA 65000
int pprof_write_extra(const struct profile *p, const void *extra, size_t extra_sz, size_t max_sz,
		      FILE *f);

/* Where that lies in a file that begins with these bytes. 0; -ENOENT: there is none. */
int pprof_extra(const void *file, size_t sz, const void **ret, size_t *ret_sz);

#endif
