/* SPDX-License-Identifier: BSD-2-Clause */
/* One POST after the other, by libcurl: what is sent, and what came back. */
#ifndef COURIER_TRANSFER_H
#define COURIER_TRANSFER_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "courier/grpc.h"

struct transfer;

/* A file that the collector has opened, read; NULL: there is none. Texts end with a NUL. */
struct transfer_file {
	char *data;
	size_t sz;
};

struct transfer_request {
	const char *url, *content_type;
	bool gzip;
	const void *body; /* stays where it is until the end */
	size_t body_sz;
	const char *tenant, *user; /* or NULL */
	struct transfer_file token, password, ca, cert, key;
};

struct transfer_result {
	int http;		 /* 0: no answer; its body may be cut */
	bool sent;		 /* all of the request */
	uint64_t bytes;		 /* of its body, that were sent */
	struct grpc_end grpc;	 /* among the headers */
	uint64_t retry_after_ns; /* 0: not said */
	const char *body;	 /* its beginning, with a NUL */
	size_t body_sz;
	const char *error; /* what libcurl says, without secrets; "": HTTP's status says it */
};

struct transfer *transfer__new(void);
void transfer__free(struct transfer *t);

/* data comes back as CURLOPT_PRIVATE. 0; -EINVAL: the token cannot stand in a header; -EOPNOTSUPP: this
 * libcurl cannot do what keeps the request safe; -ENOMEM. */
int transfer__begin(struct transfer *t, CURLM *multi, const struct transfer_request *r, void *data);

/* Once libcurl is done with it. *ret is valid until the next one begins. */
void transfer__end(struct transfer *t, CURLM *multi, CURLcode code, struct transfer_result *ret);

/* What went wrong, for people: what libcurl has written to CURLOPT_ERRORBUFFER, which says more than its code, such as
 * which name it cannot resolve; but not where it may hold the password of a proxy. */
const char *transfer_words(CURLcode code, const char *said);

#endif
