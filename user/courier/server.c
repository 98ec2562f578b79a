// SPDX-License-Identifier: BSD-2-Clause
#include "courier/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "courier/server_parts.h"
#include "helper/fd_message.h"

#define END_NS (5 * NSEC_PER_SEC) /* for all answers, when the collector is gone */
#define TURN_MS 500		  /* between two looks at who is late */

/* ---- what the collector says ---- */

/* 0 or -errno: there is no going on. */
static int listen_at(struct server *s, size_t text_sz, const int *fds, size_t cnt)
{
	int fd = cnt == 1 && !s->daemon && text_sz < sizeof(s->token) ?
			 fcntl(fds[0], F_DUPFD_CLOEXEC, 0) :
			 -1;

	if (fd < 0)
		return -EPROTO;
	memcpy(s->token, s->in.text, text_sz);
	s->served = s->in.pid;
	s->any_host = s->in.value & SERVE_ANY_HOST;
	s->daemon = server_listen(s, fd);
	if (s->daemon)
		return 0;
	close(fd);
	return -ENOMEM;
}

/* All that is there. -errno: there is no going on; -EPIPE: the collector is gone. */
static int take_messages(struct server *s)
{
	int fds[FD_MESSAGE_MAX], err = 0;
	size_t cnt, text_sz;
	ssize_t n;

	while (!err) {
		n = fd_message_receive(s->sock, &s->in, sizeof(s->in), fds, ARRAY_SIZE(fds), &cnt,
				       MSG_DONTWAIT);
		if (n == -EAGAIN)
			return 0;
		text_sz = n >= (ssize_t)SERVE_HEAD_SZ ? (size_t)n - SERVE_HEAD_SZ : 0;
		if (n <= 0)
			err = n ? (int)n : -EPIPE;
		else if (n < (ssize_t)SERVE_HEAD_SZ)
			err = -EPROTO;
		else if (s->in.what == SERVE_LISTEN)
			err = listen_at(s, text_sz, fds, cnt);
		else if (s->in.what == SERVE_ANSWER)
			server_answered(s, text_sz, cnt ? fds[0] : -1);
		while (cnt)
			close(fds[--cnt]);
	}
	return err;
}

/* ---- the loop ---- */

/* telling: what the collector is to be told waits for room in its socket. */
static int wait_for_more(struct server *s, bool telling)
{
	struct pollfd fds[] = { { .fd = s->sock, .events = POLLIN | (telling ? POLLOUT : 0) },
				{ .fd = s->gone_fd, .events = POLLIN },
				{ .fd = -1, .events = POLLIN } };
	MHD_UNSIGNED_LONG_LONG ms = TURN_MS, mhd_ms;

	if (s->daemon) {
		fds[2].fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
		if (MHD_get_timeout(s->daemon, &mhd_ms) == MHD_YES)
			ms = MIN(ms, mhd_ms);
	}
	if (!s->clients)
		ms = 60000;
	return poll(fds, ARRAY_SIZE(fds), (int)ms) < 0 && errno != EINTR ? -errno : 0;
}

/* The collector is gone: what it has answered still goes out. */
static void end(struct server *s)
{
	uint64_t until = util_monotonic_ns() + END_NS;
	bool any = true;

	server_drop_all(s);
	s->sock = -1;
	while (s->daemon && any && util_monotonic_ns() < until) {
		(void)MHD_run(s->daemon);
		any = false;
		for (const struct client *c = s->clients; c; c = c->next)
			any |= c->query != NULL;
		if (any && wait_for_more(s, false))
			return;
	}
}

int server_serve(int sock)
{
	static struct server s;
	bool telling = false;
	int err = 0;

	s = (struct server){ .sock = sock, .gone_fd = epoll_create1(EPOLL_CLOEXEC) };
	if (s.gone_fd < 0)
		return -errno;
	while (!err) {
		err = wait_for_more(&s, telling);
		if (!err)
			err = take_messages(&s);
		if (err)
			break;
		server_drop_gone(&s);
		server_sweep(&s);
		if (s.daemon)
			(void)MHD_run(s.daemon);
		telling = server_tell(&s);
	}
	if (err == -EPIPE)
		end(&s);
	/* the process ends, and with it what is connected */
	close(s.gone_fd);
	return err == -EPIPE ? 0 : err;
}
