/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define BACKLOG 16

/* "[::1]:80" -> "::1", "80". False: it is none. */
static bool split(const char *address, char host[static 256], const char **ret_port)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? (size_t)(colon - address) : 0;
	uint64_t port;

	if (!len || len >= 256 || util_parse_u64(colon + 1, 0, 65535, &port))
		return false;
	if (address[0] == '[' && colon[-1] == ']') {
		address++;
		len -= 2;
	} else if (memchr(address, ':', len)) {
		return false;
	}
	snprintf(host, 256, "%.*s", (int)len, address);
	if (!strcmp(host, "localhost"))
		snprintf(host, 256, "127.0.0.1");
	*ret_port = colon + 1;
	return true;
}

static int listen_at(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, err;

	if (fd < 0)
		return -errno;
	/* one that has just ended does not keep the next one out */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int listen_open(const char *address, char *text, size_t text_sz)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				  .ai_socktype = SOCK_STREAM },
			*found;
	char host[256];
	const char *port;
	int fd;

	if (!split(address, host, &port) || getaddrinfo(host, port, &hints, &found))
		return util_fail(-EINVAL, text, text_sz,
				 "'%s' is no address to listen at, such as 127.0.0.1:6061",
				 address);
	fd = listen_at(found);
	freeaddrinfo(found);
	if (fd < 0)
		util_fail(fd, text, text_sz, "cannot listen at %s: %s", address, strerror(-fd));
	return fd;
}
