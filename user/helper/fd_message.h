/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with descriptors through sockets of the kind SOCK_SEQPACKET. */
#ifndef HELPER_FD_MESSAGE_H
#define HELPER_FD_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

#define FD_MESSAGE_MAX 6 /* descriptors in one message */

/* flags: as of sendmsg. 0; -EPIPE if the other end is gone; -errno. */
int fd_message_send(int sock, const void *data, size_t sz, const int *fds, size_t cnt, int flags);

/* The same, without waiting longer than so many milliseconds for room: -EAGAIN then. */
int fd_message_send_within(int sock, const void *data, size_t sz, const int *fds, size_t cnt,
			   int ms);

/*
 * A message with its descriptors, which are the caller's; fds has room for max, FD_MESSAGE_MAX at
 * most. Returns its size, 0 at the end, or -errno; -EPROTO if it has more than sz bytes or max
 * descriptors: none of them is left open then.
 */
ssize_t fd_message_receive(int sock, void *data, size_t sz, int *fds, size_t max, size_t *ret_cnt,
			   int flags);

#endif
