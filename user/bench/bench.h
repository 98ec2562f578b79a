/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets two commands run in turns, records each run, and says which one costs more: see bpfprof-bench(8). */
#ifndef BENCH_H
#define BENCH_H

struct options;

/* Returns the exit status of the program, as diff_sides does. */
int bench_sides(const struct options *opts);

#endif
