// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "serve/listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/listen.h"
#include "base/log.h"
#include "base/util.h"
#include "courier/serve_wire.h"
#include "options.h"

#define MIN_TOKEN 16

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* The file's first line. 0 or -errno, said. */
static int read_token(const char *path, char **ret)
{
	size_t sz;
	int err = util_read_file(path, SERVE_MAX_TOKEN, ret, &sz);

	if (err) {
		log_error("--token-file: cannot read '%s': %s", path, strerror(-err));
		return err;
	}
	(*ret)[strcspn(*ret, "\r\n")] = '\0';
	if (strlen(*ret) >= MIN_TOKEN)
		return 0;
	log_error("--token-file: the first line of '%s' is no token: it has less than %d bytes",
		  path, MIN_TOKEN);
	return -EINVAL;
}

static int describe(struct listening *l)
{
	union address a = { 0 };
	socklen_t sz = sizeof(a);
	char host[INET6_ADDRSTRLEN];

	if (getsockname(l->fd, &a.any, &sz))
		return -errno;
	if (a.any.sa_family == AF_INET6) {
		l->loopback = IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
		inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
		snprintf(l->address, sizeof(l->address), "[%s]:%u", host, ntohs(a.v6.sin6_port));
	} else {
		l->loopback = ntohl(a.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
		inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof(host));
		snprintf(l->address, sizeof(l->address), "%s:%u", host, ntohs(a.v4.sin_port));
	}
	return 0;
}

int listening_open(const struct options *opts, struct listening *ret)
{
	char text[512];
	int err;

	ret->fd = listen_open(opts->listen, text, sizeof(text));
	if (ret->fd < 0) {
		log_error("--listen: %s", text);
		return ret->fd;
	}
	err = describe(ret);
	if (err) {
		log_error("--listen: cannot listen at %s: %s", opts->listen, strerror(-err));
		return err;
	}
	if (!ret->loopback && (!opts->allow_remote || !opts->token_file)) {
		log_error(
			"--listen: %s can be reached by other machines: add --allow-remote and "
			"--token-file FILE",
			opts->listen);
		return -EINVAL;
	}
	return opts->token_file ? read_token(opts->token_file, &ret->token) : 0;
}

void listening_close(struct listening *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->token)
		explicit_bzero(l->token, strlen(l->token));
	free(l->token);
}
