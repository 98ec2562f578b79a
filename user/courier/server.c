// SPDX-License-Identifier: BSD-2-Clause
#include "courier/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "courier/index_page.h"
#include "courier/reply.h"
#include "courier/request.h"
#include "courier/serve_wire.h"
#include "helper/fd_message.h"

#define MAX_CLIENTS 1000U
#define MAX_HEAD 8192U		     /* bytes of a request without its body */
#define MAX_SENDING 64U		     /* files at a time */
#define MAX_FORM 65536U		     /* of the body */
#define IDLE_SECONDS 10U	     /* while nothing moves */
#define HEAD_NS (10 * NSEC_PER_SEC)  /* for a whole request to arrive */
#define BODY_NS (120 * NSEC_PER_SEC) /* for an answer to go out */
#define END_NS (5 * NSEC_PER_SEC)    /* for all answers, when the collector is gone */
#define SWEEP_NS (NSEC_PER_SEC / 2)  /* between two looks at who is late */

#define ROOT "/debug/pprof/"

/* One that is connected, and its request. */
struct client {
	struct server *server;
	struct client *next, *prev;
	struct MHD_Connection *connection; /* while it waits */
	int fd;
	uint64_t deadline_ns; /* for what it is at; UINT64_MAX: it waits for us */
	char *query;
	char *form;
	size_t form_sz;
	bool too_large; /* the body */
	struct request request;
	uint64_t number; /* 0: nothing is asked for it */
	bool answered, gone;
	bool sending; /* a file, which takes memory until it has gone out */
	unsigned int status;
	int body; /* a memfd, -1: text */
	char *text;
	uint64_t counts[ENDPOINTS_MAX];
};

struct server {
	int sock, gone_fd; /* gone_fd: an epoll that tells of clients that go while they wait */
	struct MHD_Daemon *daemon;
	struct client *clients;
	struct client *asked[SERVE_MAX_ASKED];
	uint64_t numbers, next_sweep_ns;
	uint32_t served;
	bool any_host;
	char token[SERVE_MAX_TOKEN + 1];
	struct serve_wire in, out;
};

/* ---- answers ---- */

static enum MHD_Result reply_index(struct MHD_Connection *c, const struct client *client)
{
	size_t sz;
	char *page = index_page(client->request.pid, !client->server->served, client->counts, &sz);
	enum MHD_Result res;

	if (!page)
		return MHD_NO;
	res = reply(c, MHD_HTTP_OK, REPLY_HTML, reply_text(page, sz), NULL, NULL);
	free(page);
	return res;
}

/* What the collector has answered. */
static enum MHD_Result reply_answer(struct MHD_Connection *c, struct client *client)
{
	const struct request *r = &client->request;
	const struct endpoint *e = r->endpoint;
	bool text = e->what == ENDPOINT_CMDLINE || e->what == ENDPOINT_SYMBOL || r->debug;
	char name[64];
	int fd = client->body;

	if (client->gone)
		return MHD_NO;
	if (client->status != MHD_HTTP_OK)
		return reply_error(c, client->status, client->text ?: "");
	if (e->what == ENDPOINT_INDEX)
		return reply_index(c, client);
	if (fd < 0)
		return reply_error(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "failed to collect profile");
	client->body = -1;
	client->sending = true;
	snprintf(name, sizeof(name), "attachment; filename=\"%s%s\"", e->name,
		 e->what == ENDPOINT_PROFILE && r->seconds ? "-delta" : "");
	return reply(c, MHD_HTTP_OK, text ? REPLY_TEXT : REPLY_BINARY, reply_file(fd),
		     text ? NULL : "Content-Disposition", name);
}

/* ---- what is asked for ---- */

static int watch_gone(struct server *s, struct client *client, int op)
{
	struct epoll_event ev = { .events = EPOLLRDHUP, .data.ptr = client };

	return epoll_ctl(s->gone_fd, op, client->fd, &ev) ? -errno : 0;
}

/* Its place among those that wait, NULL: there is none. */
static struct client **find_asked(struct server *s, uint64_t number)
{
	for (size_t i = 0; i < SERVE_MAX_ASKED; i++)
		if (s->asked[i] ? s->asked[i]->number == number : !number)
			return &s->asked[i];
	return NULL;
}

/* Memory is for as many files: the client that has been at its own for the longest loses it. */
static void make_room(struct server *s)
{
	struct client *oldest = NULL;
	size_t cnt = 0;

	for (struct client *c = s->clients; c; c = c->next) {
		if (!c->sending)
			continue;
		cnt++;
		if (!oldest || c->deadline_ns < oldest->deadline_ns)
			oldest = c;
	}
	if (cnt >= MAX_SENDING) {
		(void)shutdown(oldest->fd, SHUT_RDWR);
		/* it is closed later: until then the next one would choose it again */
		oldest->sending = false;
	}
}

/* Has the collector make the answer, while the connection waits. */
static enum MHD_Result ask(struct server *s, struct client *client, struct MHD_Connection *c)
{
	const struct request *r = &client->request;
	struct client **place = find_asked(s, 0);
	size_t sz = 0;

	if (!place || watch_gone(s, client, EPOLL_CTL_ADD))
		return reply_error(c, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "too many requests wait already");
	make_room(s);
	s->out = (struct serve_wire){ .what = SERVE_ASK,
				      .endpoint = (uint32_t)(r->endpoint - endpoints),
				      .pid = r->pid,
				      .hz = r->hz,
				      .seconds = r->seconds,
				      .debug = r->debug,
				      .number = ++s->numbers };
	if (r->endpoint->what == ENDPOINT_SYMBOL)
		sz = 8 * request_addresses(client->form		 ?:
						   client->query ?:
								   "",
					   (uint64_t *)s->out.text, SERVE_MAX_ADDRESSES);
	client->number = s->numbers;
	client->connection = c;
	client->deadline_ns = UINT64_MAX;
	*place = client;
	/* a collector that is gone is seen by the loop */
	(void)fd_message_send(s->sock, &s->out, SERVE_HEAD_SZ + sz, NULL, 0, 0);
	MHD_suspend_connection(c);
	return MHD_YES;
}

/* It waits no more: it is answered, or has gone. */
static void let_go(struct server *s, struct client **place)
{
	struct client *client = *place;

	*place = NULL;
	client->number = 0;
	client->answered = true;
	client->deadline_ns = util_monotonic_ns() + BODY_NS;
	(void)watch_gone(s, client, EPOLL_CTL_DEL);
	MHD_resume_connection(client->connection);
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* NULL: it may ask. */
static const char *refusal(const struct server *s, struct MHD_Connection *c, unsigned int *ret)
{
	const char *host = header(c, MHD_HTTP_HEADER_HOST);

	*ret = MHD_HTTP_UNAUTHORIZED;
	if (*s->token && !request_has_token(header(c, MHD_HTTP_HEADER_AUTHORIZATION), s->token))
		return "a token is needed: as a Bearer, or as the password in the address";
	*ret = MHD_HTTP_FORBIDDEN;
	if (!s->any_host && host && !request_host_is_local(host))
		return "the Host header names neither an address nor localhost";
	return NULL;
}

static const char *form_of(const struct client *client, struct MHD_Connection *c)
{
	static const char form[] = "application/x-www-form-urlencoded";
	const char *type = header(c, MHD_HTTP_HEADER_CONTENT_TYPE);

	return client->form && type && !strncasecmp(type, form, sizeof(form) - 1) ? client->form :
										    "";
}

static enum MHD_Result redirect(struct MHD_Connection *c, const char *query)
{
	char *to = NULL;
	enum MHD_Result res = MHD_NO;

	if (asprintf(&to, ROOT "%s%s", *query ? "?" : "", query) >= 0)
		res = reply(c, MHD_HTTP_MOVED_PERMANENTLY, REPLY_TEXT, reply_text("", 0),
			    MHD_HTTP_HEADER_LOCATION, to);
	free(to);
	return res;
}

static enum MHD_Result route(struct server *s, struct client *client, struct MHD_Connection *c,
			     const char *url)
{
	const char *query = client->query ?: "";
	unsigned int status;
	char text[256];
	const char *why = refusal(s, c, &status);

	if (why && status == MHD_HTTP_UNAUTHORIZED)
		return reply(c, status, REPLY_TEXT, reply_text(why, strlen(why)),
			     MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"bpfprof\"");
	if (why)
		return reply_error(c, status, why);
	if (client->too_large)
		return reply_error(c, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
	if (!strcmp(url, "/debug/pprof"))
		return redirect(c, query);
	if (strncmp(url, ROOT, sizeof(ROOT) - 1) != 0)
		return reply(c, MHD_HTTP_NOT_FOUND, REPLY_TEXT,
			     reply_text("404 page not found\n", 19), NULL, NULL);
	status = request_parse(url + sizeof(ROOT) - 1, query, form_of(client, c), s->served,
			       &client->request, text, sizeof(text));
	if (status != MHD_HTTP_OK)
		return reply_error(c, status, text);
	if (client->request.endpoint->what == ENDPOINT_INDEX && !client->request.pid)
		return reply_index(c, client);
	return ask(s, client, c);
}

/* ---- clients ---- */

/* What belongs to a request. */
static void forget_request(struct client *client)
{
	free(client->query);
	free(client->form);
	free(client->text);
	if (client->body >= 0)
		close(client->body);
	client->query = client->form = client->text = NULL;
	client->form_sz = 0;
	client->body = -1;
	client->too_large = client->answered = client->gone = client->sending = false;
	memset(client->counts, 0, sizeof(client->counts));
}

static void add_client(struct server *s, struct MHD_Connection *c, void **ret)
{
	struct client *client = calloc(1, sizeof(*client));

	*ret = client;
	if (!client)
		return;
	client->server = s;
	client->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	client->body = -1;
	client->deadline_ns = util_monotonic_ns() + HEAD_NS;
	client->next = s->clients;
	if (client->next)
		client->next->prev = client;
	s->clients = client;
}

static void remove_client(struct server *s, struct client *client)
{
	if (!client)
		return;
	if (client->prev)
		client->prev->next = client->next;
	else
		s->clients = client->next;
	if (client->next)
		client->next->prev = client->prev;
	forget_request(client);
	free(client);
}

static void on_connection(void *ctx, struct MHD_Connection *c, void **of_connection,
			  enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		add_client(ctx, c, of_connection);
	else
		remove_client(ctx, *of_connection);
}

static struct client *client_of(struct MHD_Connection *c)
{
	return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* A request begins: its line as it came, whose query is not decoded yet. */
static void *on_line(void *ctx, const char *line, struct MHD_Connection *c)
{
	struct client *client = client_of(c);
	const char *query = strchr(line, '?');

	(void)ctx;
	if (!client)
		return NULL;
	forget_request(client);
	client->query = strdup(query ? query + 1 : "");
	return NULL;
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **of_request,
			 enum MHD_RequestTerminationCode how)
{
	struct client *client = client_of(c);

	(void)ctx, (void)of_request, (void)how;
	if (!client)
		return;
	forget_request(client);
	client->deadline_ns = util_monotonic_ns() + HEAD_NS;
}

static void take_body(struct client *client, const char *data, size_t sz)
{
	char *form = client->form_sz + sz <= MAX_FORM ?
			     realloc(client->form, client->form_sz + sz + 1) :
			     NULL;

	client->too_large |= !form;
	if (!form)
		return;
	memcpy(form + client->form_sz, data, sz);
	client->form = form;
	client->form_sz += sz;
	form[client->form_sz] = '\0';
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *data_sz, void **of_request)
{
	struct client *client = client_of(c);

	(void)method, (void)version;
	if (!client)
		return MHD_NO;
	/* the head comes first, by itself */
	if (!*of_request) {
		*of_request = client;
		return MHD_YES;
	}
	if (*data_sz) {
		take_body(client, data, *data_sz);
		*data_sz = 0;
		return MHD_YES;
	}
	if (client->answered)
		return reply_answer(c, client);
	client->deadline_ns = util_monotonic_ns() + BODY_NS;
	return route(ctx, client, c, url);
}

/* Those that take too long lose their connection, which libmicrohttpd then sees. */
static void sweep(struct server *s)
{
	uint64_t now = util_monotonic_ns();

	if (now < s->next_sweep_ns)
		return;
	s->next_sweep_ns = now + SWEEP_NS;
	for (struct client *c = s->clients; c; c = c->next)
		if (now >= c->deadline_ns)
			(void)shutdown(c->fd, SHUT_RDWR);
}

/* Nobody waits for their answers any more. */
static void drop_gone(struct server *s)
{
	struct epoll_event ev[16];
	int n = epoll_wait(s->gone_fd, ev, ARRAY_SIZE(ev), 0);

	for (int i = 0; i < n; i++) {
		struct client *client = ev[i].data.ptr;
		struct client **place = find_asked(s, client->number);

		s->out = (struct serve_wire){ .what = SERVE_GONE, .number = client->number };
		(void)fd_message_send(s->sock, &s->out, SERVE_HEAD_SZ, NULL, 0, 0);
		client->gone = true;
		let_go(s, place);
	}
}

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
	s->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, s,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, MAX_CLIENTS,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)MAX_HEAD, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_URI_LOG_CALLBACK, on_line, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
		s, MHD_OPTION_END);
	if (s->daemon)
		return 0;
	close(fd);
	return -ENOMEM;
}

static int take_answer(struct server *s, size_t text_sz, const int *fds, size_t cnt)
{
	struct client **place = s->in.number ? find_asked(s, s->in.number) : NULL;
	struct client *client;

	if (!place)
		return 0;
	client = *place;
	client->status = (unsigned int)s->in.value;
	client->text = strndup(s->in.text, text_sz);
	memcpy(client->counts, s->in.counts, sizeof(client->counts));
	if (cnt)
		client->body = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	let_go(s, place);
	return 0;
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
			err = take_answer(s, text_sz, fds, cnt);
		while (cnt)
			close(fds[--cnt]);
	}
	return err;
}

/* ---- the loop ---- */

static int wait_for_more(struct server *s)
{
	struct pollfd fds[] = { { .fd = s->sock, .events = POLLIN },
				{ .fd = s->gone_fd, .events = POLLIN },
				{ .fd = -1, .events = POLLIN } };
	MHD_UNSIGNED_LONG_LONG ms = SWEEP_NS / 1000000, mhd_ms;

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

	for (size_t i = 0; i < SERVE_MAX_ASKED; i++) {
		if (!s->asked[i])
			continue;
		s->asked[i]->gone = true;
		let_go(s, &s->asked[i]);
	}
	s->sock = -1;
	while (s->daemon && any && util_monotonic_ns() < until) {
		(void)MHD_run(s->daemon);
		any = false;
		for (const struct client *c = s->clients; c; c = c->next)
			any |= c->query != NULL;
		if (any && wait_for_more(s))
			return;
	}
}

int server_serve(int sock)
{
	static struct server s;
	int err = 0;

	s = (struct server){ .sock = sock, .gone_fd = epoll_create1(EPOLL_CLOEXEC) };
	if (s.gone_fd < 0)
		return -errno;
	while (!err) {
		err = wait_for_more(&s);
		if (!err)
			err = take_messages(&s);
		if (err)
			break;
		drop_gone(&s);
		sweep(&s);
		if (s.daemon)
			(void)MHD_run(s.daemon);
	}
	if (err == -EPIPE)
		end(&s);
	/* the process ends, and with it what is connected */
	close(s.gone_fd);
	return err == -EPIPE ? 0 : err;
}
