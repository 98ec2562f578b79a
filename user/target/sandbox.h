/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the rights of the calling process away, for good. */
#ifndef TARGET_SANDBOX_H
#define TARGET_SANDBOX_H

#include <sys/types.h>

enum sandbox {
	/*
	 * Computes, and talks through the descriptors that it has or is sent: no capability, no
	 * file by name, no new socket, process, program or executable memory.
	 */
	SANDBOX_READER,
	/* Opens files for reading and walks paths, also through other processes; computes nothing
	 * from what is in them. */
	SANDBOX_OPENER,
};

/*
 * Closes all descriptors but in and out, which become 0 and 1, and enters the sandbox. The process
 * dies with its parent, and by SIGSYS when it asks for more than it may. 0 or -errno; then it is
 * in some state between and has to end.
 */
int sandbox_enter(enum sandbox kind, int in, int out, pid_t parent);

#endif
