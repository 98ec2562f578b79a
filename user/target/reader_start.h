/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts the processes behind a reader by executing this program anew: see target/reader.h. */
#ifndef TARGET_READER_START_H
#define TARGET_READER_START_H

#include <sys/types.h>

#include "helper/sandbox.h"

/*
 * A child in the sandbox, SANDBOX_READER or SANDBOX_OPENER, that serves requests from `in`, and
 * `out`, until it is told to end; both stay the caller's, too. Whatever program this is linked into
 * takes it on before its main. Its id, or -errno.
 */
pid_t reader_start(enum sandbox kind, int in, int out);

#endif
