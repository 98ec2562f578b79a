/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts processes that have fewer rights than this one (helper/sandbox.h), by executing a program.
 * What fork copies would be theirs: the caller's memory, secrets and all, its BPF maps and rings,
 * and where everything lies. So they begin with an empty heap and addresses of their own.
 */
#ifndef HELPER_HELPER_H
#define HELPER_HELPER_H

#include <sys/types.h>

#include "helper/sandbox.h"

/* This program, also if its file was replaced, or is out of reach in this mount namespace: proc(5) */
#define HELPER_SELF "/proc/self/exe"

/*
 * A child that runs `program` under its kind's name, with `in` and `out`, which stay the caller's,
 * too. env: names of the variables that it gets, as far as they are set, NULL ends them; where the
 * libraries are (ld.so(8)) is always told. Its id, or -errno.
 */
pid_t helper_start(enum sandbox kind, const char *program, const char *const *env, int in, int out);

/*
 * In main of that program, or before it: is this process one of that kind? Enters the sandbox then,
 * with `in` and `out` as descriptors 0 and 1. 1; 0, it is none; -errno: it has to end.
 */
int helper_enter(enum sandbox kind, int argc, char **argv);

/*
 * A child that runs this program anew with these arguments, without any capability now or later, and
 * with nothing of ours but standard error: no other descriptor, no signal held back, of the environment
 * where the libraries are. Its id, or -errno.
 */
pid_t helper_start_self(const char *const *argv);

#endif
