// SPDX-License-Identifier: BSD-2-Clause
#include "courier/server_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/util.h"
#include "courier/endpoints.h"
#include "helper/fd_message.h"

static int watch_gone(struct server *s, struct client *client, int op)
{
	struct epoll_event ev = { .events = EPOLLRDHUP, .data.ptr = client };

	return epoll_ctl(s->gone_fd, op, client->fd, &ev) ? -errno : 0;
}

/* number: 0: one that is free. NULL: there is none. */
static struct question *find(struct server *s, uint64_t number)
{
	for (size_t i = 0; i < SERVE_MAX_ASKED; i++)
		if (s->questions[i].number == number)
			return &s->questions[i];
	return NULL;
}

bool server_ask(struct server *s, struct client *client, struct MHD_Connection *c)
{
	struct question *q = find(s, 0);

	if (!q || watch_gone(s, client, EPOLL_CTL_ADD))
		return false;
	server_make_room(s);
	*q = (struct question){ .number = ++s->numbers, .client = client };
	client->connection = c;
	client->deadline_ns = UINT64_MAX;
	MHD_suspend_connection(c);
	return true;
}

/* The client waits no more: it is answered, or has gone. */
static void let_go(struct server *s, struct question *q)
{
	struct client *client = q->client;

	q->client = NULL;
	client->answered = true;
	client->deadline_ns = util_monotonic_ns() + SERVER_BODY_NS;
	(void)watch_gone(s, client, EPOLL_CTL_DEL);
	MHD_resume_connection(client->connection);
}

static void drop(struct server *s, struct question *q)
{
	q->client->gone = true;
	let_go(s, q);
	/* the collector need not be told of what it has not been asked */
	if (!q->asked)
		*q = (struct question){ 0 };
}

void server_answered(struct server *s, size_t text_sz, int fd)
{
	struct question *q = s->in.number ? find(s, s->in.number) : NULL;
	struct client *client = q ? q->client : NULL;

	if (client) {
		client->status = (unsigned int)s->in.value;
		client->text = calloc(1, text_sz + 1);
		client->text_sz = client->text ? text_sz : 0;
		if (client->text)
			memcpy(client->text, s->in.text, text_sz);
		memcpy(client->counts, s->in.counts, sizeof(client->counts));
		if (fd >= 0)
			client->body = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		let_go(s, q);
	}
	if (q)
		*q = (struct question){ 0 };
}

void server_drop_gone(struct server *s)
{
	struct epoll_event ev[16];
	int n = epoll_wait(s->gone_fd, ev, ARRAY_SIZE(ev), 0);

	for (int i = 0; i < n; i++)
		for (size_t j = 0; j < SERVE_MAX_ASKED; j++)
			if (s->questions[j].client == ev[i].data.ptr)
				drop(s, &s->questions[j]);
}

void server_drop_all(struct server *s)
{
	for (size_t i = 0; i < SERVE_MAX_ASKED; i++)
		if (s->questions[i].client)
			drop(s, &s->questions[i]);
}

/* ---- to the collector ---- */

static size_t write_question(const struct question *q, struct serve_wire *ret)
{
	const struct client *client = q->client;
	const struct request *r = &client->request;
	const char *addresses = client->form ?: client->query;

	*ret = (struct serve_wire){ .what = SERVE_ASK,
				    .endpoint = (uint32_t)(r->endpoint - endpoints),
				    .pid = r->pid,
				    .hz = r->hz,
				    .seconds = r->seconds,
				    .debug = r->debug,
				    .number = q->number };
	if (r->endpoint->named)
		return (size_t)sprintf(ret->text, "%s", r->name);
	if (r->endpoint->what != ENDPOINT_SYMBOL || !addresses)
		return 0;
	return 8 * request_addresses(addresses, (uint64_t *)ret->text, SERVE_MAX_ADDRESSES);
}

/* The first one of which the collector does not know all, NULL: there is none. */
static struct question *next_untold(struct server *s)
{
	struct question *ret = NULL;

	for (size_t i = 0; i < SERVE_MAX_ASKED; i++) {
		struct question *q = &s->questions[i];

		if (q->number && q->asked == !q->client && (!ret || q->number < ret->number))
			ret = q;
	}
	return ret;
}

static int tell(struct server *s, struct question *q)
{
	size_t text_sz = 0;
	int err;

	if (q->client)
		text_sz = write_question(q, &s->out);
	else
		s->out = (struct serve_wire){ .what = SERVE_GONE, .number = q->number };
	err = fd_message_send(s->sock, &s->out, SERVE_HEAD_SZ + text_sz, NULL, 0, MSG_DONTWAIT);
	/* a collector that is gone is seen where it is read from */
	if (!err && q->client)
		q->asked = true;
	else if (!err)
		*q = (struct question){ 0 };
	return err;
}

bool server_tell(struct server *s)
{
	struct question *q;

	while (s->sock >= 0 && (q = next_untold(s)))
		if (tell(s, q))
			return true;
	return false;
}
