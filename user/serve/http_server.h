/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server, a process of its own that speaks HTTP and has no rights (courier/serve_wire.h). One that has
 * ended is replaced a second later.
 */
#ifndef SERVE_HTTP_SERVER_H
#define SERVE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "courier/serve_wire.h"

struct http_server;

struct http_server_opts {
	int listening;	   /* a socket, which the caller keeps open */
	uint32_t pid;	   /* the process served; 0: any */
	bool any_host;	   /* whatever the Host header says */
	const char *token; /* that who asks has to have; NULL: none */
};

/* Borrows the token. 0, or -errno with a sentence in text. */
int http_server__new(const struct http_server_opts *opts, struct http_server **ret, char *text,
		     size_t text_sz);
void http_server__free(struct http_server *h);
/* Waits until what was answered has gone out, some seconds at most. To be called before http_server__free. */
void http_server__finish(struct http_server *h);

/* Readable when there is something to receive, -1: there is no server just now. Another one after
 * http_server__tend. */
int http_server__fd(const struct http_server *h);
/* Starts another server where that is due. True: all that was asked for before is forgotten. */
bool http_server__tend(struct http_server *h, uint64_t now_ns);
/* When that is to be called, CLOCK_MONOTONIC; UINT64_MAX: not. */
uint64_t http_server__next_ns(const struct http_server *h);

/* What it asks, NULL: nothing more for now. In force until the next call. *ret_sz: of its text. */
const struct serve_wire *http_server__receive(struct http_server *h, size_t *ret_sz);
/* Answers: with a descriptor, which stays the caller's, -1: with text. */
void http_server__answer(struct http_server *h, uint64_t number, unsigned int status, int fd,
			 const char *text);
/* Answers for the index: counts by endpoint, and custom profiles, SERVE_MAX_CUSTOM at most. */
void http_server__answer_index(struct http_server *h, uint64_t number, const uint64_t *counts,
			       const struct serve_custom *custom, size_t custom_cnt);

#endif
