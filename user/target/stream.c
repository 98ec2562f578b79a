/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes through a stream socket, up to a deadline. */
#include "target/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

void stream__init(struct stream *s, int fd)
{
	s->fd = fd;
	s->wait = (struct stream_wait){};
	s->in_pos = s->in_cnt = s->out_cnt = 0;
}

int stream_wait(int fd, short events, const struct stream_wait *w)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n, err;

	do {
		if (util_monotonic_ns() >= w->deadline_ns)
			return -ETIMEDOUT;
		err = w->tick ? w->tick(w->ctx) : 0;
		if (err)
			return err;
		n = poll(&p, 1, STREAM_TICK_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
	} while (n <= 0);
	return 0;
}

static int send_all(struct stream *s, const uint8_t *data, size_t sz)
{
	int flags = MSG_NOSIGNAL | (s->wait.deadline_ns ? MSG_DONTWAIT : 0), err;

	while (sz) {
		ssize_t n = send(s->fd, data, sz, flags);

		if (n < 0 && errno == EAGAIN) {
			err = stream_wait(s->fd, POLLOUT, &s->wait);
			if (err)
				return err;
		} else if (n < 0 && errno != EINTR) {
			return errno == ECONNRESET ? -EPIPE : -errno;
		} else if (n > 0) {
			data += n;
			sz -= n;
		}
	}
	return 0;
}

int stream__flush(struct stream *s)
{
	size_t cnt = s->out_cnt;

	s->out_cnt = 0;
	return send_all(s, s->out, cnt);
}

int stream__put(struct stream *s, const void *data, size_t sz)
{
	int err = 0;

	if (sz > STREAM_BUF - s->out_cnt)
		err = stream__flush(s);
	if (!err && sz >= STREAM_BUF)
		return send_all(s, data, sz);
	if (!err && sz) {
		memcpy(s->out + s->out_cnt, data, sz);
		s->out_cnt += sz;
	}
	return err;
}

/* There was nothing to receive, as errno says. */
static int wait_again(struct stream *s)
{
	if (errno == EINTR)
		return 0;
	if (errno != EAGAIN)
		return errno == ECONNRESET ? -EPIPE : -errno;
	/* else the socket waits by itself, and on */
	return s->wait.deadline_ns ? stream_wait(s->fd, POLLIN, &s->wait) : 0;
}

/* Some bytes, at least one. */
static ssize_t receive(struct stream *s, void *data, size_t sz)
{
	for (;;) {
		ssize_t n = recv(s->fd, data, sz, s->wait.deadline_ns ? MSG_DONTWAIT : 0);
		int err;

		if (n > 0)
			return n;
		err = n ? wait_again(s) : -EPIPE;
		if (err)
			return err;
	}
}

int stream__await(struct stream *s)
{
	ssize_t n;

	if (s->in_pos < s->in_cnt)
		return 0;
	do
		n = recv(s->fd, s->in, STREAM_BUF, 0);
	while (n < 0 && errno == EINTR);
	if (!n || (n < 0 && errno == ECONNRESET))
		return -EPIPE;
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	s->in_pos = 0;
	s->in_cnt = (size_t)n;
	return 0;
}

int stream__get(struct stream *s, void *data, size_t sz)
{
	uint8_t *to = data;

	while (sz) {
		size_t n = MIN(sz, s->in_cnt - s->in_pos);
		ssize_t got;

		if (n) {
			memcpy(to, s->in + s->in_pos, n);
			s->in_pos += n;
			to += n;
			sz -= n;
			continue;
		}
		/* much of it needs no copy in between */
		got = receive(s, sz >= STREAM_BUF ? to : s->in, sz >= STREAM_BUF ? sz : STREAM_BUF);
		if (got < 0)
			return got;
		if (sz >= STREAM_BUF) {
			to += got;
			sz -= got;
		} else {
			s->in_pos = 0;
			s->in_cnt = got;
		}
	}
	return 0;
}
