// SPDX-License-Identifier: BSD-2-Clause
#include "courier/server_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define MAX_CLIENTS 1000U
#define MAX_SENDING 64U /* files at a time */
/* descriptors beside one for each client: files that are sent, and that have been answered; ours, and
 * libmicrohttpd's */
#define OTHER_FDS (MAX_SENDING + SERVE_MAX_ASKED + 16U)
#define MAX_HEAD 8192U		    /* bytes of a request without its body */
#define MAX_FORM 65536U		    /* of the body */
#define IDLE_SECONDS 10U	    /* while nothing moves */
#define HEAD_NS (10 * NSEC_PER_SEC) /* for a whole request to arrive */
#define SWEEP_NS (NSEC_PER_SEC / 2) /* between two looks at who is late */

void server_make_room(struct server *s)
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

/* libmicrohttpd sees that they have none. */
void server_sweep(struct server *s)
{
	uint64_t now = util_monotonic_ns();

	if (now < s->next_sweep_ns)
		return;
	s->next_sweep_ns = now + SWEEP_NS;
	for (struct client *c = s->clients; c; c = c->next)
		if (now >= c->deadline_ns)
			(void)shutdown(c->fd, SHUT_RDWR);
}

/* ---- one client ---- */

/* What belongs to a request. */
static void forget_request(struct client *client)
{
	free(client->query);
	free(client->form);
	free(client->text);
	if (client->body >= 0)
		close(client->body);
	client->query = client->form = client->text = NULL;
	client->form_sz = client->text_sz = 0;
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

/* ---- its requests ---- */

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
		return server_reply(ctx, client, c);
	client->deadline_ns = util_monotonic_ns() + SERVER_BODY_NS;
	return server_route(ctx, client, c, url);
}

/* How many may be connected: no more than there are descriptors for. */
static unsigned int max_clients(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= MAX_CLIENTS + OTHER_FDS)
		return MAX_CLIENTS;
	return l.rlim_cur > OTHER_FDS ? (unsigned int)l.rlim_cur - OTHER_FDS : 1;
}

struct MHD_Daemon *server_listen(struct server *s, int fd)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, s,
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				max_clients(), MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MAX_HEAD,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
				MHD_OPTION_URI_LOG_CALLBACK, on_line, s,
				MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_END);
}
