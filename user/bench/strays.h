/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command leaves running. */
#ifndef BENCH_STRAYS_H
#define BENCH_STRAYS_H

#include <stddef.h>

/* From now on processes whose parent has ended become children of this one (PR_SET_CHILD_SUBREAPER). 0 or
 * -errno. */
int strays_adopt(void);

/* Ends all children but other processes of this program, and waits for all. Those that end by themselves just
 * now are given time to. Returns how many had to be ended. */
size_t strays_end(void);

#endif
