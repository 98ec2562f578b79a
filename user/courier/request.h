/* SPDX-License-Identifier: BSD-2-Clause */
/* What a request for /debug/pprof/ asks for, and what is wrong with it, as Go's net/http/pprof says it. */
#ifndef COURIER_REQUEST_H
#define COURIER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "courier/serve_wire.h"

struct request {
	const struct endpoint *endpoint;
	uint32_t pid;		  /* 0: of the index, which can do without */
	uint32_t hz;		  /* 0: as it is by default */
	uint32_t seconds;	  /* 0: not said */
	uint32_t debug;		  /* 0, 1, 2 */
	char name[SERVE_NAME_SZ]; /* of an endpoint that is named */
};

/*
 * path: what is behind /debug/pprof/. query, form: what is behind '?', and the body if it is a form, which
 * counts first. served: the process of --pid; 0: the request names it. The HTTP status: 200, or another
 * one with a sentence.
 */
unsigned int request_parse(const char *path, const char *query, const char *form, uint32_t served,
			   struct request *ret, char *text, size_t text_sz);

/* "0x1234+0x5678", hexadecimal or decimal: the addresses in it, max at most, passing over what is none.
 * Returns how many. */
size_t request_addresses(const char *text, uint64_t *ret, size_t max);

/*
 * Does a Host header name an address or localhost? A page of the web whose name leads to this machine
 * has its own name there (DNS rebinding).
 */
bool request_host_is_local(const char *host);

/* Is it the token? How long it takes to tell says nothing of where they differ. */
bool request_is_token(const char *text, const char *token);

#endif
