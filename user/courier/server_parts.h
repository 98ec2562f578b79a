/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of the server of /debug/pprof/: server.c has the loop, server_clients.c those who are
 * connected, server_replies.c what they are told, and server_questions.c what the collector is asked.
 */
#ifndef COURIER_SERVER_PARTS_H
#define COURIER_SERVER_PARTS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "courier/request.h"
#include "courier/serve_wire.h"

#define SERVER_BODY_NS UINT64_C(120000000000) /* for an answer to go out */

/* One that is connected, and its request. */
struct client {
	struct client *next, *prev;
	struct MHD_Connection *connection; /* while it waits */
	int fd;
	uint64_t deadline_ns; /* for what it is at; UINT64_MAX: it waits for us */
	char *query;
	char *form;
	size_t form_sz;
	bool too_large; /* the body */
	struct request request;
	bool answered, gone;
	bool sending; /* a file, which takes memory until it has gone out */
	unsigned int status;
	int body;   /* a memfd, -1: text */
	char *text; /* with a NUL behind it */
	size_t text_sz;
	uint64_t counts[ENDPOINTS_MAX];
};

/* What the collector is asked. */
struct question {
	uint64_t number; /* 0: none */
	struct client
		*client; /* who waits; NULL: nobody any more, which the collector is to be told */
	bool asked;	 /* the collector knows of it */
};

struct server {
	int sock;    /* -1: the collector is gone */
	int gone_fd; /* an epoll that tells of clients that go while they wait */
	struct MHD_Daemon *daemon;
	struct client *clients;
	struct question questions[SERVE_MAX_ASKED];
	uint64_t numbers, next_sweep_ns;
	uint32_t served;
	bool any_host;
	char token[SERVE_MAX_TOKEN + 1];
	struct serve_wire in, out;
};

/* ---- clients ---- */

/* Takes over fd, a socket that listens. NULL: it cannot. */
struct MHD_Daemon *server_listen(struct server *s, int fd);
/* Those that take too long lose their connection. */
void server_sweep(struct server *s);
/* Memory is for so many files at a time: for one more, whoever has been at its own for the longest loses
 * it. */
void server_make_room(struct server *s);

/* ---- replies ---- */

/* To a request that has arrived: asks the collector, or replies. */
enum MHD_Result server_route(struct server *s, struct client *client, struct MHD_Connection *c,
			     const char *url);
/* What the collector has answered. */
enum MHD_Result server_reply(const struct server *s, struct client *client,
			     struct MHD_Connection *c);

/* ---- questions ---- */

/* The connection waits until the collector has answered. False: too many do. */
bool server_ask(struct server *s, struct client *client, struct MHD_Connection *c);
/* An answer, which has come in s->in. fd: -1: text; stays the caller's. */
void server_answered(struct server *s, size_t text_sz, int fd);
/* Nobody waits for the answers of clients that are gone. */
void server_drop_gone(struct server *s);
/* Nobody is answered any more. */
void server_drop_all(struct server *s);
/* Tells the collector what it does not know yet, as far as its socket has room: it may be at work for a
 * while. True: there is more. */
bool server_tell(struct server *s);

#endif
