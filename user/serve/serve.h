/* SPDX-License-Identifier: BSD-2-Clause */
/* /debug/pprof/ of processes, over HTTP: records what is asked for, while it is asked for. */
#ifndef SERVE_H
#define SERVE_H

struct options;

/* Returns the exit status of the program: 0 ended by a signal or with its process, 1 failed, 2 what was given
 * cannot be used. */
int serve(const struct options *opts);

#endif
