/* SPDX-License-Identifier: BSD-2-Clause */
#include "courier/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define MAX_CONNECTIONS 32U
#define IDLE_SECONDS 10U
/* The collector says how it is every 10 s; what is so much older comes from one that hangs. */
#define STALE_NS (60 * NSEC_PER_SEC)
/* prometheus.io/docs/instrumenting/exposition_formats */
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define NOT_YET "not attached yet\n"

/* One that is connected. */
struct client {
	int fd;
	uint64_t turn; /* when its request began, counted; 0: there is none */
};

struct http {
	struct MHD_Daemon *daemon;
	struct client clients[MAX_CONNECTIONS];
	uint64_t turns;
	bool again; /* places are free, which libmicrohttpd sees when it is run next */
	char *status;
	size_t status_sz;
	uint64_t status_ns; /* when it came; 0: never */
};

static enum MHD_Result answer(struct MHD_Connection *c, unsigned int code, const char *type,
			      const void *text, size_t sz)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(sz, (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result res = MHD_NO;

	if (!r)
		return MHD_NO;
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
	    (code != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES))
		res = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return res;
}

static enum MHD_Result answer_text(struct MHD_Connection *c, unsigned int code, const char *text)
{
	return answer(c, code, "text/plain; charset=utf-8", text, strlen(text));
}

/* Neither says anything of stores: a fleet is not to be restarted because one of these is down. */
static enum MHD_Result answer_healthy(const struct http *h, struct MHD_Connection *c)
{
	bool stale = util_monotonic_ns() > h->status_ns + STALE_NS;

	return stale ? answer_text(c, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "the collector has not been heard of for a minute\n") :
		       answer_text(c, MHD_HTTP_OK, "healthy\n");
}

/* Nothing is no metrics, but would count as a scrape. */
static enum MHD_Result answer_metrics(const struct http *h, struct MHD_Connection *c)
{
	return h->status_ns ? answer(c, MHD_HTTP_OK, METRICS_TYPE, h->status, h->status_sz) :
			      answer_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, NOT_YET);
}

static enum MHD_Result answer_ready(const struct http *h, struct MHD_Connection *c)
{
	return h->status_ns ? answer_text(c, MHD_HTTP_OK, "ready\n") :
			      answer_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, NOT_YET);
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *data_sz, void **of_request)
{
	static int begun;
	const struct http *h = ctx;

	(void)version, (void)data;
	/* the head comes first, by itself */
	if (!*of_request) {
		*of_request = &begun;
		return MHD_YES;
	}
	*data_sz = 0;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return answer_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD alone\n");
	if (!strcmp(url, "/metrics"))
		return answer_metrics(h, c);
	if (!strcmp(url, "/-/healthy"))
		return answer_healthy(h, c);
	if (!strcmp(url, "/-/ready"))
		return answer_ready(h, c);
	return answer_text(c, MHD_HTTP_NOT_FOUND, "there are /metrics, /-/healthy and /-/ready\n");
}

/* ---- who is connected ---- */

/* One place is always for another one: whoever has taken the longest loses its own. It is closed later. */
static void make_room(struct http *h)
{
	struct client *oldest = &h->clients[0];

	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		if (!h->clients[i].turn)
			return;
		if (h->clients[i].turn < oldest->turn)
			oldest = &h->clients[i];
	}
	(void)shutdown(oldest->fd, SHUT_RDWR);
}

static void add_client(struct http *h, struct MHD_Connection *c, void **ret)
{
	struct client *client = h->clients;

	/* no more are let in */
	while (client->turn)
		client++;
	client->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	client->turn = ++h->turns;
	*ret = client;
	make_room(h);
}

static void on_connection(void *ctx, struct MHD_Connection *c, void **of_connection,
			  enum MHD_ConnectionNotificationCode what)
{
	struct http *h = ctx;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		add_client(h, c, of_connection);
		return;
	}
	((struct client *)*of_connection)->turn = 0;
	h->again = true;
}

/* A request is answered, and another one may begin. */
static void on_completed(void *ctx, struct MHD_Connection *c, void **of_request,
			 enum MHD_RequestTerminationCode how)
{
	struct http *h = ctx;
	struct client *client =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

	(void)of_request, (void)how;
	client->turn = ++h->turns;
}

struct http *http__new(int listening)
{
	struct http *h = calloc(1, sizeof(*h));

	if (h)
		h->daemon = MHD_start_daemon(
			MHD_USE_EPOLL, 0, NULL, NULL, handle, h, MHD_OPTION_LISTEN_SOCKET,
			listening, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
			MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_NOTIFY_CONNECTION,
			on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
			MHD_OPTION_END);
	if (!h || !h->daemon) {
		close(listening);
		free(h);
		return NULL;
	}
	return h;
}

void http__free(struct http *h)
{
	if (!h)
		return;
	MHD_stop_daemon(h->daemon);
	free(h->status);
	free(h);
}

int http__fd(const struct http *h)
{
	return MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

uint64_t http__timeout_ms(const struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (h->again)
		return 0;
	return MHD_get_timeout(h->daemon, &ms) == MHD_YES ? ms : UINT64_MAX;
}

void http__run(struct http *h)
{
	h->again = false;
	(void)MHD_run(h->daemon);
}

int http__set_status(struct http *h, const char *text, size_t sz, uint64_t now_ns)
{
	char *copy = malloc(sz + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, sz);
	free(h->status);
	h->status = copy;
	h->status_sz = sz;
	h->status_ns = now_ns;
	return 0;
}
