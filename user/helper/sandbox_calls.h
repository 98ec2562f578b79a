/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of helper/sandbox.c. */
#ifndef HELPER_SANDBOX_CALLS_H
#define HELPER_SANDBOX_CALLS_H

#include "helper/sandbox.h"

/* From now on the process dies of any system call that its kind has no use for. 0 or -errno. */
int sandbox_filter_calls(enum sandbox kind);

#endif
