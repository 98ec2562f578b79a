/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with descriptors (unix(7), SCM_RIGHTS). */
#include "target/fd_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

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

ssize_t fd_message_receive(int sock, void *data, size_t sz, int fds[static FD_MESSAGE_MAX],
			   size_t *ret_cnt, int flags)
{
	struct iovec iov = { .iov_base = data, .iov_len = sz };
	union control control = {};
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *c;
	ssize_t n;

	*ret_cnt = 0;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno != ECONNRESET ? -errno : 0;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*ret_cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), *ret_cnt * sizeof(int));
	}
	return n;
}
