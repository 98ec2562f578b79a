/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile as gzip'd profile.proto, the form `go tool pprof` reads. Equal profiles give
 * equal bytes. */
#ifndef PROFILE_PPROF_H
#define PROFILE_PPROF_H

#include <stdio.h>

struct profile;

/* Returns 0 or -errno. Does not close or flush f. */
int pprof_write(const struct profile *p, FILE *f);

#endif
