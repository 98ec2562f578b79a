/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with descriptors (unix(7), SCM_RIGHTS). */
#include "helper/fd_message.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(FD_MESSAGE_MAX * sizeof(int))];
};

int fd_message_send(int sock, const void *data, size_t sz, const int *fds, size_t cnt, int flags)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = sz };
	union control control = {};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (cnt) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(cnt * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(cnt * sizeof(int));
		memcpy(CMSG_DATA(c), fds, cnt * sizeof(int));
	}
	if (sendmsg(sock, &msg, MSG_NOSIGNAL | flags) >= 0)
		return 0;
	return errno == ECONNRESET ? -EPIPE : -errno;
}

int fd_message_send_within(int sock, const void *data, size_t sz, const int *fds, size_t cnt,
			   int ms)
{
	uint64_t now_ns = util_monotonic_ns(), until_ns = now_ns + (uint64_t)ms * 1000000;
	struct pollfd p = { .fd = sock, .events = POLLOUT };
	int err;

	/* poll tells of room for some message, not for this one */
	while ((err = fd_message_send(sock, data, sz, fds, cnt, MSG_DONTWAIT)) == -EAGAIN &&
	       now_ns < until_ns) {
		(void)poll(&p, 1, (int)((until_ns - now_ns + 999999) / 1000000));
		now_ns = util_monotonic_ns();
	}
	return err;
}

/* False if there are more than there may be: the buffer has room for them, since CMSG_SPACE rounds
 * its size up. */
static bool take_descriptors(struct msghdr *msg, int *fds, size_t max, size_t *ret_cnt)
{
	bool fit = !(msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC));
	size_t cnt = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, (const char *)c + at, sizeof(fd));
			if (cnt < max) {
				fds[cnt++] = fd;
			} else {
				close(fd);
				fit = false;
			}
		}
	}
	*ret_cnt = cnt;
	return fit;
}

ssize_t fd_message_receive(int sock, void *data, size_t sz, int *fds, size_t max, size_t *ret_cnt,
			   int flags)
{
	struct iovec iov = { .iov_base = data, .iov_len = sz };
	union control control = {};
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = CMSG_SPACE(max * sizeof(int)) };
	ssize_t n;

	*ret_cnt = 0;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno != ECONNRESET ? -errno : 0;
	if (take_descriptors(&msg, fds, max, ret_cnt))
		return n;
	while (*ret_cnt)
		close(fds[--*ret_cnt]);
	return -EPROTO;
}
