/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that attach and detach for us.
 *
 * To set a breakpoint, or to take it back, the kernel waits for each process that maps the file to let go of its memory
 * map, and cannot be interrupted. A process may keep it for ever: by a page of a FUSE file whose server does not answer.
 * So these processes are waited for with patience, but not for ever. Those that are left behind go on in our memory; what
 * they use of it is freed when they have ended.
 */
#ifndef KERNEL_UPROBES_HELPERS_H
#define KERNEL_UPROBES_HELPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define UPROBES_MAX_HELPERS 16

/* That work together. */
struct uprobes_helpers {
	struct uprobes_helpers *next; /* of those that are left behind */
	/* frees all that they use, and this */
	void (*free)(struct uprobes_helpers *h);
	size_t cnt;
	/* children of ours; 0: it has ended; -1: it was not started */
	pid_t pids[UPROBES_MAX_HELPERS];
};

/* What a helper does first: it leaves our process group. It shares our memory, so that it may neither write to errno nor
 * allocate, then or later. */
void uprobes_helper_begins(void);

/*
 * event_cnt: the perf events that they make or close. True: all have ended, and h is the caller's. Else they are left
 * behind (uprobes_are_late), at once where others are: it is the same that these wait for.
 */
bool uprobes_helpers_await(struct uprobes_helpers *h, size_t event_cnt);

#endif
