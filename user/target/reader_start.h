/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts the processes behind a reader by executing this program anew: see target/reader.h. What
 * fork copies would be theirs: the caller's memory, secrets and all, its BPF maps and rings, and
 * where everything lies. So they begin with an empty heap and addresses of their own.
 */
#ifndef TARGET_READER_START_H
#define TARGET_READER_START_H

#include <sys/types.h>

#include "target/sandbox.h"

/*
 * A child in the sandbox that serves requests from `in`, and `out`, until it is told to end; both
 * stay the caller's, too. Whatever program this is linked into takes it on before its main. Its id,
 * or -errno.
 */
pid_t reader_start(enum sandbox kind, int in, int out);

#endif
