/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes from whoever starts this program, and is changed for itself: resource limits, signals that
 * are ignored or blocked, standard descriptors. A command that it starts gets what there was.
 */
#ifndef INHERITED_H
#define INHERITED_H

/*
 * To be called before any file is opened. Takes the place of standard descriptors that are closed, so that
 * no other file gets their numbers; what is written to standard output fails with EBADF all the same.
 * SIGPIPE and SIGXFSZ become errors of write(2), SIGCHLD is no longer ignored. Raises low limits of memory,
 * open files and CPU time, which helpers inherit, as far as it may.
 */
void inherited_adapt(void);

/* Says which limits are low all the same. 0; -ENOMEM: so low that nothing can be recorded, said. */
int inherited_check(void);

/* In a child, before its exec. */
void inherited_restore(void);

#endif
