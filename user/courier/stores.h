/* SPDX-License-Identifier: BSD-2-Clause */
/* The stores that profiles are sent to, a row each: where to, in which form, and what they answer. */
#ifndef COURIER_STORES_H
#define COURIER_STORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "courier/grpc.h"
#include "courier/retry.h"
#include "spool/labels.h"

#define STORE_SAID_SZ 512

/* A record of the spool. */
struct item {
	const void *file; /* pprof, gzip'd */
	size_t sz;
	struct labels labels;
	const char *node; /* this machine's name */
	uint64_t number;
};

struct body {
	void *data; /* to be freed */
	size_t sz;
};

/* What came back, of which no more than a few KiB are kept; texts end with a NUL. */
struct answer {
	int http;
	struct grpc_end grpc; /* among the headers */
	const char *body;
	size_t body_sz;
};

struct store {
	const char *name; /* as the configuration has it */
	enum store_kind kind;
	const char *path; /* behind the URL of the configuration, unless it ends with it */
	const char *content_type;
	bool gzip;						/* Content-Encoding */
	int (*body)(const struct item *item, struct body *ret); /* as store_body, but for gzip */
	int (*status)(
		const struct answer *a); /* of HTTP, that says best what happened; NULL: a->http */
	/* how gRPC's call has ended, where that says it; false: there is no word of it. NULL: it is no gRPC */
	bool (*grpc_end)(const struct answer *a, struct grpc_end *ret);
	/* of an answer that HTTP says all is well in, as store_rejected; NULL: there is none of the kind */
	bool (*rejected)(const struct answer *a, char ret[static STORE_SAID_SZ]);
	const char *not_found; /* what HTTP's 404 is due to, most likely; or NULL */
};

extern const struct store stores[];
extern const size_t stores_cnt;

/* NULL: there is none of that name. */
const struct store *store_find(const char *name);

/* Where the requests go. 0 or -ENAMETOOLONG. */
int store_url(const struct store *s, const char *url, char *ret, size_t ret_sz);

/* What is sent of a record. 0; -EBADMSG: it is no profile; -ENOMEM. After an error nothing is to be freed. */
int store_body(const struct store *s, const struct item *item, struct body *ret);

/* What the answer comes to, for retry_judge. */
int store_status(const struct store *s, const struct answer *a);

/* The same for people: "(HTTP 404): no such path", with the store's own words, or gRPC's status in place of
 * HTTP's: valid UTF-8 without control characters. */
void store_said(const struct store *s, const struct answer *a, char ret[static STORE_SAID_SZ]);

/* Has it taken the request, and says that it does not want some of it, or all? In words, as store_said. */
bool store_rejected(const struct store *s, const struct answer *a, char ret[static STORE_SAID_SZ]);

/* What the stores call the profiles of a kind ("cpu": "process_cpu"). */
const char *store_profile_name(const char *kind);

#endif
