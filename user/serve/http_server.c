// SPDX-License-Identifier: BSD-2-Clause
#include "serve/http_server.h"

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
#define SEND_MS 1000 /* a server that is alive makes room by then */

struct http_server {
	struct http_server_opts opts;
	char program[PATH_MAX];
	int sock; /* -1: there is no server */
	pid_t pid;
	uint64_t next_ns; /* when it is to be started again */
	uint64_t asked;	  /* the last number that it has asked under */
	struct serve_wire in, out;
};

static int start_server(struct http_server *h)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	h->pid = helper_start(SANDBOX_SERVER, h->program, NULL, pair[1], pair[1]);
	close(pair[1]);
	h->sock = pair[0];
	h->asked = 0;
	if (h->pid < 0)
		return h->pid;
	h->out = (struct serve_wire){ .what = SERVE_LISTEN,
				      .pid = h->opts.pid,
				      .value = h->opts.any_host ? SERVE_ANY_HOST : 0 };
	if (h->opts.token)
		memcpy(h->out.text, h->opts.token, strlen(h->opts.token));
	err = fd_message_send(h->sock, &h->out,
			      SERVE_HEAD_SZ + (h->opts.token ? strlen(h->opts.token) : 0),
			      &h->opts.listening, 1, MSG_DONTWAIT);
	explicit_bzero(h->out.text, SERVE_MAX_TOKEN);
	return err;
}

/* It has died, or lied, or could not be started. */
static void end_server(struct http_server *h)
{
	if (h->sock >= 0)
		close(h->sock);
	h->sock = -1;
	if (h->pid > 0) {
		kill(h->pid, SIGKILL);
		(void)waitpid(h->pid, NULL, 0);
	}
	h->pid = 0;
	h->next_ns = util_monotonic_ns() + AGAIN_NS;
}

int http_server__new(const struct http_server_opts *opts, struct http_server **ret, char *text,
		     size_t text_sz)
{
	struct http_server *h = calloc(1, sizeof(*h));
	int err;

	*ret = NULL;
	if (!h)
		return util_fail(-ENOMEM, text, text_sz, "cannot serve: out of memory");
	h->opts = *opts;
	h->sock = -1;
	if (!util_find_part(WIRE_PROGRAM, h->program, sizeof(h->program))) {
		free(h);
		return util_fail(-ENOENT, text, text_sz,
				 "cannot serve: %s is not installed beside this program",
				 WIRE_PROGRAM);
	}
	err = start_server(h);
	if (err) {
		http_server__free(h);
		return util_fail(err, text, text_sz, "cannot serve: %s", strerror(-err));
	}
	*ret = h;
	return 0;
}

void http_server__free(struct http_server *h)
{
	if (!h)
		return;
	end_server(h);
	free(h);
}

void http_server__finish(struct http_server *h)
{
	uint64_t until_ns = util_monotonic_ns() + FINISH_MS * UINT64_C(1000000);
	struct pollfd p = { .fd = h->sock, .events = POLLIN };
	size_t sz;

	if (h->sock < 0 || shutdown(h->sock, SHUT_WR))
		return;
	/* what it still asks is not answered any more */
	while (util_monotonic_ns() < until_ns && poll(&p, 1, FINISH_MS) > 0 &&
	       !(p.revents & (POLLHUP | POLLERR)))
		if (!http_server__receive(h, &sz))
			return;
}

int http_server__fd(const struct http_server *h)
{
	return h->sock;
}

bool http_server__tend(struct http_server *h, uint64_t now_ns)
{
	int err;

	if (h->sock >= 0 || now_ns < h->next_ns)
		return false;
	err = start_server(h);
	if (err) {
		log_error("cannot start the server (bpfprof-server): %s", strerror(-err));
		end_server(h);
	}
	return true;
}

uint64_t http_server__next_ns(const struct http_server *h)
{
	return h->sock >= 0 ? UINT64_MAX : h->next_ns;
}

/* The number of a question is higher than all before: what is kept for a question is found by its number. */
static bool well_formed(const struct http_server *h, size_t sz)
{
	return sz >= SERVE_HEAD_SZ && h->in.number &&
	       (h->in.what == SERVE_ASK ? h->in.number > h->asked : h->in.what == SERVE_GONE);
}

const struct serve_wire *http_server__receive(struct http_server *h, size_t *ret_sz)
{
	size_t cnt;
	ssize_t n;

	if (h->sock < 0)
		return NULL;
	n = fd_message_receive(h->sock, &h->in, sizeof(h->in), NULL, 0, &cnt, MSG_DONTWAIT);
	if (n == -EAGAIN)
		return NULL;
	if (n > 0 && well_formed(h, (size_t)n)) {
		if (h->in.what == SERVE_ASK)
			h->asked = h->in.number;
		*ret_sz = (size_t)n - SERVE_HEAD_SZ;
		return &h->in;
	}
	log_error("the server (bpfprof-server) has ended, and is started again");
	end_server(h);
	return NULL;
}

/* What stands in out, with text of a size. */
static void send_answer(struct http_server *h, size_t text_sz, int fd)
{
	/* one that does not read even then has ended, which is seen where it is read from */
	if (fd_message_send_within(h->sock, &h->out, SERVE_HEAD_SZ + text_sz, &fd, fd >= 0,
				   SEND_MS))
		(void)shutdown(h->sock, SHUT_RDWR);
}

void http_server__answer(struct http_server *h, uint64_t number, unsigned int status, int fd,
			 const char *text)
{
	size_t sz = text ? MIN(strlen(text), sizeof(h->out.text)) : 0;

	if (h->sock < 0)
		return;
	h->out = (struct serve_wire){ .what = SERVE_ANSWER, .number = number, .value = status };
	if (sz)
		memcpy(h->out.text, text, sz);
	send_answer(h, sz, fd);
}

void http_server__answer_index(struct http_server *h, uint64_t number, const uint64_t *counts,
			       const struct serve_custom *custom, size_t custom_cnt)
{
	size_t sz = MIN(custom_cnt, SERVE_MAX_CUSTOM) * sizeof(*custom);

	if (h->sock < 0)
		return;
	h->out = (struct serve_wire){ .what = SERVE_ANSWER, .number = number, .value = 200 };
	memcpy(h->out.counts, counts, sizeof(h->out.counts));
	if (sz)
		memcpy(h->out.text, custom, sz);
	send_answer(h, sz, -1);
}
