/* SPDX-License-Identifier: BSD-2-Clause */
#include "courier/retry.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"

#define ALL (STORE_PYROSCOPE | STORE_PARCA | STORE_OTLP | STORE_PPROF)

/*
 * The first row that fits counts. RFC 9110 section 15; OTLP specification 1.11, "OTLP/HTTP Response";
 * what the stores answer with beside that:
 *  - Pyroscope: 422 for a limit before 2.2; 500 for what it cannot parse, and while it starts.
 *  - Parca: 500 for what it cannot parse, since such errors have no code of their own.
 *  - gateways before them: 502, 503, 504; nginx 499 for a client that was too slow.
 */
static const struct {
	unsigned int stores;
	int from, to; /* statuses */
	struct retry then;
} rows[] = {
	{ ALL, ANSWER_NOT_BEGUN, ANSWER_NOT_BEGUN, { VERDICT_LATER, WIRE_REASON_not_begun, 0 } },
	{ ALL, ANSWER_NONE, ANSWER_NONE, { VERDICT_LATER, WIRE_REASON_no_connection, 0 } },
	{ ALL, ANSWER_NONE_SENT, ANSWER_NONE_SENT, { VERDICT_UNKNOWN, WIRE_REASON_no_answer, 0 } },
	{ ALL, 200, 299, { VERDICT_DELIVERED, WIRE_NO_REASON, 0 } },
	{ ALL, 300, 399, { VERDICT_REFUSED, WIRE_REASON_redirected, 0 } },
	{ ALL, 401, 401, { VERDICT_RIGHTS, WIRE_REASON_not_authorized, 0 } },
	{ ALL, 403, 403, { VERDICT_RIGHTS, WIRE_REASON_forbidden, 0 } },
	{ ALL, 404, 404, { VERDICT_REFUSED, WIRE_REASON_not_found, 0 } },
	{ ALL, 407, 407, { VERDICT_RIGHTS, WIRE_REASON_proxy, 0 } },
	{ ALL, 408, 408, { VERDICT_LATER, WIRE_REASON_timed_out, 0 } },
	{ ALL, 413, 413, { VERDICT_REFUSED, WIRE_REASON_too_large, 0 } },
	{ STORE_PYROSCOPE, 422, 422, { VERDICT_SUSPECT, WIRE_REASON_limit, 2 } },
	{ ALL, 425, 425, { VERDICT_LATER, WIRE_REASON_too_early, 0 } },
	{ ALL, 429, 429, { VERDICT_SUSPECT, WIRE_REASON_too_many_requests, 5 } },
	{ ALL, 499, 499, { VERDICT_LATER, WIRE_REASON_closed, 0 } },
	{ ALL, 400, 499, { VERDICT_REFUSED, WIRE_REASON_refused, 0 } },
	{ STORE_OTLP, 500, 500, { VERDICT_SUSPECT, WIRE_REASON_server_error, 3 } },
	{ ALL, 500, 500, { VERDICT_SUSPECT, WIRE_REASON_server_error, 5 } },
	{ ALL, 501, 501, { VERDICT_REFUSED, WIRE_REASON_not_implemented, 0 } },
	{ ALL, 502, 599, { VERDICT_LATER, WIRE_REASON_unavailable, 0 } },
};

struct retry retry_judge(enum store_kind store, int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].stores & store && status >= rows[i].from && status <= rows[i].to)
			return rows[i].then;
	return (struct retry){ VERDICT_REFUSED, WIRE_REASON_no_http, 0 };
}

#define WORD(name, text) [WIRE_REASON_##name] = (text),
static const char *const words[WIRE_NR_REASONS] = { WIRE_REASONS(WORD) };

const char *retry_word(enum wire_reason reason)
{
	return reason < WIRE_NR_REASONS ? words[reason] : "delivered";
}

static const struct {
	const char *code;
	int http;
} codes[] = {
	/* by their number in gRPC */
	{ "ok", 200 },
	{ "canceled", 499 },
	{ "unknown", 500 },
	{ "invalid_argument", 400 },
	{ "deadline_exceeded", 504 },
	{ "not_found", 404 },
	{ "already_exists", 409 },
	{ "permission_denied", 403 },
	{ "resource_exhausted", 429 },
	{ "failed_precondition", 400 },
	{ "aborted", 503 },
	{ "out_of_range", 400 },
	{ "unimplemented", 501 },
	{ "internal", 500 },
	{ "unavailable", 503 },
	{ "data_loss", 500 },
	{ "unauthenticated", 401 },
};

int retry_grpc_status(int grpc)
{
	return grpc >= 0 && (size_t)grpc < ARRAY_SIZE(codes) ? codes[grpc].http : 0;
}

int retry_connect_status(const char *code)
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (!strcmp(codes[i].code, code))
			return codes[i].http;
	return 0;
}
