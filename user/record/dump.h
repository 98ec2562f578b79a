/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `bpfprof agent --dump TIME`: has the agent end its window, adds up what the folder has of the last
 * minutes, and writes that to a folder within it. The agent itself does nothing else for it.
 */
#ifndef DUMP_H
#define DUMP_H

struct options;

#define DUMP_BY_SIGNAL "5m" /* of an agent that gets SIGUSR2 */

/* Prints the folder's path. 0; 1: nothing was dumped, said; 2: the folder cannot be used, said. */
int run_dump(const struct options *opts);

#endif
