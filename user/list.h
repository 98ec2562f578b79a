/* SPDX-License-Identifier: BSD-2-Clause */
/* What `bpfprof list` prints: the profile kinds, and how much of each is there in a process. */
#ifndef LIST_H
#define LIST_H

#include <stdint.h>
#include <stdio.h>

/* pid 0: the kinds alone. 0 or -errno, said. */
int list_print(uint32_t pid, FILE *f);

#endif
