/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signals that tell a program to end, for those who block them and ask for them. SIGHUP is none if
 * whoever started it has it ignored, as nohup(1) does: the kernel keeps what is blocked all the same.
 * SIGINT always is one, which shells ignore for what they start in the background. SIGXCPU comes once a second
 * from a limit of CPU time on, until the hard one is reached.
 */
#ifndef BASE_STOP_SIGNALS_H
#define BASE_STOP_SIGNALS_H

#include <signal.h>

void stop_signals(sigset_t *ret);

#endif
