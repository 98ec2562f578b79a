/* SPDX-License-Identifier: BSD-2-Clause */
/* What this kernel and these rights allow: `bpfprof check`. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

/* A line for each need, with the remedy where it is not met. Returns 0 if a recording can run, else
 * -EPERM. */
int check_print(FILE *f);

#endif
