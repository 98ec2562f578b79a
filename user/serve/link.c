// SPDX-License-Identifier: BSD-2-Clause
#include "serve/link.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "courier/wire.h"
#include "helper/fd_message.h"
#include "helper/helper.h"

#define AGAIN_NS NSEC_PER_SEC
#define FINISH_MS 10000

struct link {
	struct link_opts opts;
	char program[PATH_MAX];
	int sock; /* -1: there is no server */
	pid_t pid;
	uint64_t next_ns; /* when it is to be started again */
	struct serve_wire in, out;
};

static int start_server(struct link *l)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	l->pid = helper_start(SANDBOX_SERVER, l->program, NULL, pair[1], pair[1]);
	close(pair[1]);
	l->sock = pair[0];
	if (l->pid < 0)
		return l->pid;
	l->out = (struct serve_wire){ .what = SERVE_LISTEN,
				      .pid = l->opts.pid,
				      .value = l->opts.any_host ? SERVE_ANY_HOST : 0 };
	if (l->opts.token)
		memcpy(l->out.text, l->opts.token, strlen(l->opts.token));
	err = fd_message_send(l->sock, &l->out,
			      SERVE_HEAD_SZ + (l->opts.token ? strlen(l->opts.token) : 0),
			      &l->opts.listening, 1, MSG_DONTWAIT);
	explicit_bzero(l->out.text, SERVE_MAX_TOKEN);
	return err;
}

/* It has died, or lied, or could not be started. */
static void end_server(struct link *l)
{
	if (l->sock >= 0)
		close(l->sock);
	l->sock = -1;
	if (l->pid > 0) {
		kill(l->pid, SIGKILL);
		(void)waitpid(l->pid, NULL, 0);
	}
	l->pid = 0;
	l->next_ns = util_monotonic_ns() + AGAIN_NS;
}

int link__new(const struct link_opts *opts, struct link **ret, char *text, size_t text_sz)
{
	struct link *l = calloc(1, sizeof(*l));
	int err;

	*ret = NULL;
	if (!l)
		return util_fail(-ENOMEM, text, text_sz, "cannot serve: out of memory");
	l->opts = *opts;
	l->sock = -1;
	if (!util_find_part(WIRE_PROGRAM, l->program, sizeof(l->program))) {
		free(l);
		return util_fail(-ENOENT, text, text_sz,
				 "cannot serve: %s is not installed beside this program",
				 WIRE_PROGRAM);
	}
	err = start_server(l);
	if (err) {
		link__free(l);
		return util_fail(err, text, text_sz, "cannot serve: %s", strerror(-err));
	}
	*ret = l;
	return 0;
}

void link__free(struct link *l)
{
	if (!l)
		return;
	end_server(l);
	free(l);
}

void link__finish(struct link *l)
{
	uint64_t until_ns = util_monotonic_ns() + FINISH_MS * UINT64_C(1000000);
	struct pollfd p = { .fd = l->sock, .events = POLLIN };
	size_t sz;

	if (l->sock < 0 || shutdown(l->sock, SHUT_WR))
		return;
	/* what it still asks is not answered any more */
	while (util_monotonic_ns() < until_ns && poll(&p, 1, FINISH_MS) > 0 &&
	       !(p.revents & (POLLHUP | POLLERR)))
		if (!link__receive(l, &sz))
			return;
}

int link__fd(const struct link *l)
{
	return l->sock;
}

bool link__tend(struct link *l, uint64_t now_ns)
{
	int err;

	if (l->sock >= 0 || now_ns < l->next_ns)
		return false;
	err = start_server(l);
	if (err) {
		log_error("cannot start the server (bpfprof-server): %s", strerror(-err));
		end_server(l);
	}
	return true;
}

uint64_t link__next_ns(const struct link *l)
{
	return l->sock >= 0 ? UINT64_MAX : l->next_ns;
}

const struct serve_wire *link__receive(struct link *l, size_t *ret_sz)
{
	size_t cnt;
	ssize_t n;

	if (l->sock < 0)
		return NULL;
	n = fd_message_receive(l->sock, &l->in, sizeof(l->in), NULL, 0, &cnt, MSG_DONTWAIT);
	if (n == -EAGAIN)
		return NULL;
	if (n >= (ssize_t)SERVE_HEAD_SZ && l->in.number &&
	    (l->in.what == SERVE_ASK || l->in.what == SERVE_GONE)) {
		*ret_sz = (size_t)n - SERVE_HEAD_SZ;
		return &l->in;
	}
	log_error("the server (bpfprof-server) has ended, and is started again");
	end_server(l);
	return NULL;
}

void link__answer(struct link *l, uint64_t number, unsigned int status, int fd, const char *text,
		  const uint64_t *counts)
{
	size_t sz = text ? MIN(strlen(text), sizeof(l->out.text)) : 0;

	if (l->sock < 0)
		return;
	l->out = (struct serve_wire){ .what = SERVE_ANSWER, .number = number, .value = status };
	if (sz)
		memcpy(l->out.text, text, sz);
	if (counts)
		memcpy(l->out.counts, counts, sizeof(l->out.counts));
	/* one that does not read has ended, which is seen where it is read from */
	if (fd_message_send(l->sock, &l->out, SERVE_HEAD_SZ + sz, &fd, fd >= 0, MSG_DONTWAIT))
		(void)shutdown(l->sock, SHUT_RDWR);
}
