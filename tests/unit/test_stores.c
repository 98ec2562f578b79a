/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * courier/stores: where requests go, and what answers come to. That what is sent is right, another
 * decoder says: tests/e2e/test_push.
 */
#include "courier/stores.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "golden_profile.h"
#include "parca.pb-c.h"
#include "profile/gzip_writer.h"
#include "profile/pprof_read.h"
#include "written.h"

static void urls(void **state)
{
	static const char *const good[][3] = {
		{ "pyroscope", "http://x:4040", "http://x:4040/push.v1.PusherService/Push" },
		{ "pyroscope", "http://x:4040/", "http://x:4040/push.v1.PusherService/Push" },
		{ "pyroscope", "https://x/a/", "https://x/a/push.v1.PusherService/Push" },
		{ "otlp", "http://x/v1development/profiles", "http://x/v1development/profiles" },
		{ "otlp-1.9", "http://x//", "http://x/v1development/profiles" },
		{ "pprof", "http://x/v1/pprof", "http://x/v1/pprof" },
		{ "pprof", "http://x/", "http://x/" },
	};
	char url[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(store_url(store_find(good[i][0]), good[i][1], url, sizeof(url)),
				 0);
		assert_string_equal(url, good[i][2]);
	}
	assert_int_equal(store_url(store_find("pyroscope"), "http://x:4040", url, 30),
			 -ENAMETOOLONG);
	assert_null(store_find("influx"));
}

static int status(const char *store, int http, int grpc, const char *body, size_t sz)
{
	/* of just its size and a NUL, for the sanitizer */
	char *copy = calloc(1, sz + 1);
	struct answer a = { .http = http, .grpc = { .status = grpc }, .body = copy, .body_sz = sz };
	int ret;

	memcpy(copy, body, sz);
	ret = store_status(store_find(store), &a);
	free(copy);
	return ret;
}

#define TEXT(s) s, sizeof(s) - 1

static void connect_answers(void **state)
{
	(void)state;
	assert_int_equal(status("pyroscope", 200, -1, TEXT("{}")), 200);
	assert_int_equal(status("pyroscope", 400, -1, TEXT("{\"code\":\"invalid_argument\"}")),
			 400);
	/* the code says more */
	assert_int_equal(status("pyroscope", 500, -1, TEXT("{\"code\":\"resource_exhausted\"}")),
			 429);
	assert_int_equal(status("pyroscope", 408, -1, TEXT("{\"code\":\"canceled\"}")), 499);
	assert_int_equal(status("pyroscope", 500, -1, TEXT("{\"code\":\"")), 500);
	assert_int_equal(status("pyroscope", 500, -1, TEXT("{\"code\":\"new one\"}")), 500);
	assert_int_equal(status("pyroscope", 502, -1, TEXT("<html>")), 502);
	assert_int_equal(status("otlp", 500, -1, TEXT("{\"code\":\"resource_exhausted\"}")), 500);
}

static void grpc_web_answers(void **state)
{
	static const char good[] = "\0\0\0\0\0\x80\0\0\0\x0fgrpc-status: 0\n";

	(void)state;
	assert_int_equal(status("parca", 200, -1, TEXT(good)), 200);
	assert_int_equal(status("parca", 200, -1, TEXT("\x80\0\0\0\x10grpc-status: 14\n")), 503);
	assert_int_equal(status("parca", 200, -1, TEXT("\x80\0\0\0\x0fGrpc-Status:16\n ")), 401);
	/* all of the answer may stand among the headers */
	assert_int_equal(status("parca", 200, 3, TEXT("")), 400);
	assert_int_equal(status("parca", 200, 0, TEXT("")), 200);
	assert_int_equal(status("parca", 200, 99, TEXT("")), 500);
	assert_int_equal(status("parca", 415, -1, TEXT("")), 415);
	assert_int_equal(status("parca", 200, -1, TEXT("\x80\0\0\0\x05hello")), 500);
	/* cut anywhere, it does not say what became of it */
	for (size_t sz = 0; sz < sizeof(good) - 1; sz++)
		assert_int_equal(status("parca", 200, -1, good, sz), ANSWER_NONE_SENT);
	assert_int_equal(status("parca", 200, -1, TEXT("\x80\xff\xff\xff\xffgrpc-status: 0\n")),
			 ANSWER_NONE_SENT);
}

static bool rejected(const char *store, const char *body, size_t sz,
		     char said[static STORE_SAID_SZ])
{
	struct answer a = { .http = 200, .grpc = { .status = -1 }, .body = body, .body_sz = sz };

	return store_rejected(store_find(store), &a, said);
}

/* All is well, OTLP says, but for so many profiles. */
static void partial_answers(void **state)
{
	static const char some[] = "\x0a\x08\x08\x02\x12\x04no\x1b!";
	char said[STORE_SAID_SZ];

	(void)state;
	assert_true(rejected("otlp", TEXT(some), said));
	assert_string_equal(said, "2 of it rejected: no\xef\xbf\xbd!");
	assert_true(rejected("otlp-1.9", TEXT(some), said));
	/* a warning, nothing, what is none, what is cut, and another store's */
	assert_false(rejected("otlp", TEXT("\x0a\x04\x12\x02no"), said));
	assert_false(rejected("otlp", TEXT(""), said));
	assert_false(rejected("otlp", TEXT("\x0a\x00"), said));
	assert_false(rejected("otlp", TEXT("{}"), said));
	assert_false(rejected("otlp", some, sizeof(some) - 2, said));
	assert_false(rejected("pyroscope", TEXT(some), said));
}

/* An answer of gRPC-Web that is this trailer alone. */
static struct answer trailer(const char *lines, char body[static 1024])
{
	size_t sz = strlen(lines);

	assert_true(sz < 1000);
	body[0] = (char)0x80;
	body[1] = body[2] = 0;
	body[3] = (char)(sz >> 8);
	body[4] = (char)sz;
	memcpy(body + 5, lines, sz + 1);
	return (struct answer){
		.http = 200, .grpc = { .status = -1 }, .body = body, .body_sz = 5 + sz
	};
}

static void grpc_messages(void **state)
{
	static const struct {
		const char *lines, *said;
		int status;
	} rows[] = {
		{ "grpc-status: 3\r\ngrpc-message: no%20such label%21\r\n",
		  "(gRPC 3): no such label!", 400 },
		/* the last line may have no end */
		{ "Grpc-Message:expired\nGrpc-Status:16", "(gRPC 16): expired", 401 },
		/* what a message says is none of the status */
		{ "grpc-message: was grpc-status: 0\r\ngrpc-status: 14\r\n",
		  "(gRPC 14): was grpc-status: 0", 503 },
		{ "grpc-status: 5\r\n", "(gRPC 5)", 404 },
		{ "grpc-message: why\r\n", "(HTTP 200): why", 500 },
		/* nothing acts on a terminal, or ends a line; what is no byte stays as it is */
		{ "grpc-status: 3\r\ngrpc-message: a%0Ab%1b%00%zz%e4%2\r\n",
		  "(gRPC 3): a\xef\xbf\xbd"
		  "b\xef\xbf\xbd%00%zz\xef\xbf\xbd%2",
		  400 },
	};
	char body[1024], lines[600], message[401], said[STORE_SAID_SZ];
	const struct store *parca = store_find("parca");
	struct answer a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		a = trailer(rows[i].lines, body);
		assert_int_equal(store_status(parca, &a), rows[i].status);
		store_said(parca, &a, said);
		assert_string_equal(said, rows[i].said);
	}
	/* headers are sorted by their names where Go writes them: the status comes behind a message of any length */
	memset(message, 'x', sizeof(message) - 1);
	message[sizeof(message) - 1] = '\0';
	snprintf(lines, sizeof(lines), "grpc-message: %s\r\ngrpc-status: 3\r\n", message);
	a = trailer(lines, body);
	assert_int_equal(store_status(parca, &a), 400);
	store_said(parca, &a, said);
	assert_in_range(strlen(said), 100, 250);
	/* among the headers */
	a = (struct answer){ .http = 200,
			     .grpc = { .status = 7, .message = "not you" },
			     .body = "" };
	store_said(parca, &a, said);
	assert_string_equal(said, "(gRPC 7): not you");
	/* cut */
	a = (struct answer){ .http = 200, .grpc = { .status = -1 }, .body = "" };
	store_said(parca, &a, said);
	assert_string_equal(said, "(HTTP 200): it does not say how gRPC's call ended");
}

/* HTTP's errors with the store's words, and with what helps. */
static void words(void **state)
{
	struct answer a = { .http = 404, .grpc = { .status = -1 }, .body = "404 page not found\n" };
	char said[STORE_SAID_SZ];

	(void)state;
	store_said(store_find("pyroscope"), &a, said);
	assert_string_equal(said, "(HTTP 404): 404 page not found");
	store_said(store_find("parca"), &a, said);
	assert_string_equal(said, "(HTTP 404): 404 page not found");
	store_said(store_find("otlp"), &a, said);
	assert_string_equal(said,
			    "(HTTP 404): 404 page not found: start the Collector with the "
			    "feature gate service.profilesSupport, and give it a pipeline of "
			    "profiles");
	a.http = 503;
	a.body = "";
	store_said(store_find("otlp"), &a, said);
	assert_string_equal(said, "(HTTP 503)");
}

/* What is no profile is refused by those that look into it, and nothing is left. */
static void bodies(void **state)
{
	struct profile *p = golden_profile();
	struct bytes b = written(p);
	struct body body;

	(void)state;
	for (size_t i = 0; i < stores_cnt; i++) {
		struct item item = { .file = b.data, .sz = b.sz, .node = "n" };

		assert_int_equal(store_body(&stores[i], &item, &body), 0);
		assert_true(body.sz > 0);
		free(body.data);
		item.sz /= 2;
		assert_int_equal(store_body(&stores[i], &item, &body),
				 stores[i].kind == STORE_PPROF ? 0 : -EBADMSG);
		if (stores[i].kind == STORE_PPROF)
			free(body.data);
	}
	free(b.data);
	profile__free(p);
}

/* What of it has this value, and what should. */
static void same_value(const struct profile *part, size_t value, const struct profile *whole,
		       const char *name)
{
	for (size_t i = 0; i < whole->value_cnt; i++)
		if (!strcmp(whole->value_types[i].type, name)) {
			assert_string_equal(part->value_types[value].type, name);
			assert_true(profile__total(whole, i) != 0);
			assert_int_equal(profile__total(part, value), profile__total(whole, i));
			return;
		}
	fail_msg("no %s", name);
}

/* For Parca what is in use is a profile of its own, of no duration: with one it would be a difference. */
static void heap(void **state)
{
	static const char *const names[][2] = { { "alloc_objects", "alloc_space" },
						{ "inuse_objects", "inuse_space" } };
	struct profile *p = golden_heap_profile(), *part;
	struct bytes b = written(p);
	struct item item = { .file = b.data, .sz = b.sz, .node = "n" };
	Parca__WriteRawRequest *m;
	struct body body;

	(void)state;
	assert_true(p->duration_ns > 0);
	assert_int_equal(store_body(store_find("parca"), &item, &body), 0);
	m = parca__write_raw_request__unpack(NULL, body.sz - 5, (uint8_t *)body.data + 5);
	assert_non_null(m);
	assert_int_equal(m->n_series, 1);
	assert_int_equal(m->series[0]->n_samples, 2);
	for (size_t i = 0; i < 2; i++) {
		const ProtobufCBinaryData *raw = &m->series[0]->samples[i]->raw_profile;

		assert_int_equal(pprof_read(raw->data, raw->len, &part), 0);
		assert_int_equal(part->value_cnt, 2);
		assert_int_equal(part->duration_ns, i ? 0 : p->duration_ns);
		assert_int_equal(part->time_ns, p->time_ns);
		assert_int_equal(part->period, p->period);
		for (size_t k = 0; k < 2; k++)
			same_value(part, k, p, names[i][k]);
		/* no sample of nothing */
		for (size_t k = 0; k < part->sample_cnt; k++)
			assert_true(profile__values(part, &part->samples[k])[0] != 0);
		profile__free(part);
	}
	parca__write_raw_request__free_unpacked(m, NULL);
	free(body.data);
	free(b.data);
	profile__free(p);
}

static bool no_memory;

int __real_gzip_writer__init(struct gzip_writer *w, FILE *f, const void *extra, size_t extra_sz);
int __wrap_gzip_writer__init(struct gzip_writer *w, FILE *f, const void *extra, size_t extra_sz);
int __wrap_gzip_writer__init(struct gzip_writer *w, FILE *f, const void *extra, size_t extra_sz)
{
	return no_memory ? -ENOMEM : __real_gzip_writer__init(w, f, extra, extra_sz);
}

/* What cannot be compressed is no body that the caller would free once more. */
static void no_room(void **state)
{
	struct profile *p = golden_profile();
	struct bytes b = written(p);

	(void)state;
	for (size_t i = 0; i < stores_cnt; i++) {
		struct item item = { .file = b.data, .sz = b.sz, .node = "n" };
		struct body body = { 0 };

		if (stores[i].kind == STORE_PPROF)
			continue;
		no_memory = true;
		assert_int_equal(store_body(&stores[i], &item, &body), -ENOMEM);
		no_memory = false;
		assert_null(body.data);
		assert_int_equal(body.sz, 0);
	}
	free(b.data);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls),
		cmocka_unit_test(connect_answers),
		cmocka_unit_test(grpc_web_answers),
		cmocka_unit_test(grpc_messages),
		cmocka_unit_test(partial_answers),
		cmocka_unit_test(words),
		cmocka_unit_test(bodies),
		cmocka_unit_test(no_room),
		cmocka_unit_test(heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
