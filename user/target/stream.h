/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a stream socket, with a buffer for each direction: what is put arrives at the other
 * end once it is flushed. */
#ifndef TARGET_STREAM_H
#define TARGET_STREAM_H

#include <stddef.h>
#include <stdint.h>

#define STREAM_BUF (64U << 10)
#define STREAM_TICK_MS 5

/* How long to wait, all in all, and what to do meanwhile. */
struct stream_wait {
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: there is none, and nothing is done */
	/* called whenever there is to wait, and every STREAM_TICK_MS of it; 0: goes on, or -errno.
	 * NULL: nothing */
	int (*tick)(void *ctx);
	void *ctx;
};

struct stream {
	int fd;
	struct stream_wait wait;
	size_t in_pos, in_cnt, out_cnt;
	uint8_t in[STREAM_BUF], out[STREAM_BUF];
};

void stream__init(struct stream *s, int fd);

/* 0; -EPIPE if the other end is gone; -ETIMEDOUT; -errno. After a failure the stream is of no more
 * use. */
int stream__put(struct stream *s, const void *data, size_t sz);
int stream__flush(struct stream *s);
/* Exactly sz bytes. */
int stream__get(struct stream *s, void *data, size_t sz);

/*
 * Waits, however long, until there is something to get. 0; -ETIMEDOUT: there was nothing for as long as
 * the socket waits by itself (SO_RCVTIMEO), and the stream is as before; -errno as above.
 */
int stream__await(struct stream *s);

/* Waits until a socket can take (POLLOUT) or give (POLLIN) something. 0, -ETIMEDOUT or -errno. */
int stream_wait(int fd, short events, const struct stream_wait *w);

#endif
