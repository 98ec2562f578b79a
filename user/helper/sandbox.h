/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the rights of the calling process away, for good. */
#ifndef HELPER_SANDBOX_H
#define HELPER_SANDBOX_H

#include <stdint.h>
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
	/* Speaks to other machines: no capability, no descriptor but those that it is sent, no
	 * file by name but what tells of machines and whom to trust, no new process or program or
	 * executable memory, no port to listen at but one that it is sent. */
	SANDBOX_COURIER,
	/* The same, and writes into files that it is sent, up to so many bytes each. */
	SANDBOX_FETCHER,
	/* Answers those who connect to the socket that it is sent: no capability, no file by name, no
	 * connection to anybody, no new process, program, thread or executable memory. */
	SANDBOX_SERVER,
};

/* What its process is called. */
const char *sandbox_name(enum sandbox kind);

/* The capabilities that entering takes, and those that are kept. */
uint64_t sandbox_rights(enum sandbox kind);

/*
 * Closes all descriptors but in and out, which become 0 and 1, and enters the sandbox. Of
 * capabilities there are those that the parent has handed on (base/caps.h): a program whose file
 * has some would else lend them to whoever calls it. memory_max: bytes that it and all beside it may
 * have together (base/memory_max.h), of which it takes half at most. The process dies with its parent, and by
 * SIGSYS when it asks for more than it may. 0 or -errno; then it is in some state between and has
 * to end.
 */
int sandbox_enter(enum sandbox kind, int in, int out, pid_t parent, uint64_t memory_max);

/* If memory gets short, this process is to go first: it must not be what we serve. */
void sandbox_end_first(void);

#endif
