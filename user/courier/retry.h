/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a record after an attempt to deliver it, by what came back: a table. */
#ifndef COURIER_RETRY_H
#define COURIER_RETRY_H

#include <stdbool.h>

#include "courier/wire.h"

/* Whom it was sent to; bits, for the table. */
enum store_kind {
	STORE_PYROSCOPE = 1 << 0, /* push.v1 */
	STORE_PARCA = 1 << 1,	  /* WriteRaw as gRPC-Web */
	STORE_OTLP = 1 << 2,	  /* OTLP/HTTP */
	STORE_PPROF = 1 << 3,	  /* a plain POST of a profile */
};

enum verdict {
	VERDICT_DELIVERED,
	VERDICT_REFUSED, /* for good: it is given up */
	VERDICT_LATER,	 /* the store's trouble: it is tried again, unless it takes most others */
	VERDICT_SUSPECT, /* the store's trouble, or the record's: it is tried again a few times */
	VERDICT_UNKNOWN, /* it may have been stored: it is tried again, once where others are taken, and may be there
			  * twice then */
	VERDICT_RIGHTS, /* who we are is not believed: it is tried again, slowly */
};

/* HTTP has no such status: what was sent got no answer. */
enum {
	ANSWER_NONE = 0,      /* the connection failed before all was sent */
	ANSWER_NONE_SENT = 1, /* all was sent */
	ANSWER_NOT_BEGUN =
		2, /* nothing was: a file of the configuration cannot be read, or the like */
};

struct retry {
	enum verdict verdict;
	enum wire_reason reason;
	unsigned int tries; /* VERDICT_SUSPECT: so many that are held against the record */
};

/* status: of HTTP, or one of the above. */
struct retry retry_judge(enum store_kind store, int status);

/* One word or some, for people. */
const char *retry_word(enum wire_reason reason);

/* The status of HTTP that stands for one of gRPC (grpc/doc/statuscodes.md), or for a code of
 * Connect, such as "resource_exhausted" (connectrpc.com/docs/protocol, error codes); 0: not known. */
int retry_grpc_status(int grpc);
int retry_connect_status(const char *code);

#endif
