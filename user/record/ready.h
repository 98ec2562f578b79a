/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells that everything is attached, to whom asked to be told: a script by --ready-fd, systemd by
 * its notify socket (sd_notify(3)). */
#ifndef READY_H
#define READY_H

#include <stdint.h>

/* Keeps fd (--ready-fd; -1: not given) from the programs that are started. 0, or -EBADF if it is
 * not open. To be called before anything is opened, which might get this number. */
int ready_check(int fd);

/* Writes "READY\n" to fd, closes it, and says READY=1 as below. A listener that is gone is no error.
 */
void ready_tell(int fd);

/* Says something to the socket that $NOTIFY_SOCKET names, if it does. */
void ready_say(const char *text);

/* How often this process has to say that it is alive (sd_watchdog_enabled(3)): ns; 0: nobody asks. */
uint64_t ready_watchdog_ns(void);
/* To be called at least once a second: says WATCHDOG=1, twice as often as it has to. */
void ready_alive(uint64_t watchdog_ns);

#endif
