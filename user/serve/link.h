/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server, a process of its own that speaks HTTP and has no rights (courier/serve_wire.h). One that has
 * ended is replaced a second later.
 */
#ifndef SERVE_LINK_H
#define SERVE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "courier/serve_wire.h"

struct link;

struct link_opts {
	int listening;	   /* a socket, which the caller keeps open */
	uint32_t pid;	   /* the process served; 0: any */
	bool any_host;	   /* whatever the Host header says */
	const char *token; /* that who asks has to have; NULL: none */
};

/* Borrows the token. 0, or -errno with a sentence in text. */
int link__new(const struct link_opts *opts, struct link **ret, char *text, size_t text_sz);
void link__free(struct link *l);
/* Waits until what was answered has gone out, some seconds at most. To be called before link__free. */
void link__finish(struct link *l);

/* Readable when there is something to receive, -1: there is no server just now. Another one after
 * link__tend. */
int link__fd(const struct link *l);
/* Starts another server where that is due. True: all that was asked for before is forgotten. */
bool link__tend(struct link *l, uint64_t now_ns);
/* When that is to be called, CLOCK_MONOTONIC; UINT64_MAX: not. */
uint64_t link__next_ns(const struct link *l);

/* What it asks, NULL: nothing more for now. In force until the next call. *ret_sz: of its text. */
const struct serve_wire *link__receive(struct link *l, size_t *ret_sz);
/* Answers: with a descriptor, which stays the caller's, -1: with text. counts: of the index, or NULL. */
void link__answer(struct link *l, uint64_t number, unsigned int status, int fd, const char *text,
		  const uint64_t *counts);

#endif
