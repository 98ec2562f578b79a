/* SPDX-License-Identifier: BSD-2-Clause */
/* courier/transfer: what is known of a request that was cut, and where: only one that the store may have taken
 * is "sent". */
#include "courier/transfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define LARGE (32U << 20) /* more than sockets hold */
#define SMALL 1000U
#define ENDLESS (64U << 20)
#define HEAD "HTTP/1.1 "

/* What a store does with one connection: reads so much, answers, and ends it. */
struct store_end {
	int listening;
	size_t reads; /* bytes, of head and body together; 0: all of it */
	const char *answer;
	const char *more; /* goes on with that, as long as it is read; NULL: it ends */
	size_t *ret_more; /* bytes of it that it got rid of */
};

/* Has all of a request come that was read so far? */
static bool is_whole(const char *data, size_t sz)
{
	const char *end = memmem(data, sz, "\r\n\r\n", 4);
	const char *length = memmem(data, sz, "Content-Length: ", 16);

	/* CONNECT has no body */
	return end &&
	       sz >= (size_t)(end + 4 - data) + (length ? strtoul(length + 16, NULL, 10) : 0);
}

static void *serve(void *ctx)
{
	const struct store_end *end = ctx;
	char *data = calloc(1, LARGE + 4096);
	int fd = accept(end->listening, NULL, NULL);
	size_t sz = 0, want = end->reads ? end->reads : LARGE + 4095;
	ssize_t n = 1;

	while (data && fd >= 0 && n > 0 && sz < want && (end->reads || !is_whole(data, sz))) {
		n = read(fd, data + sz, want - sz);
		sz += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0) {
		(void)send(fd, end->answer, strlen(end->answer), MSG_NOSIGNAL);
		while (end->more && *end->ret_more < ENDLESS &&
		       (n = send(fd, end->more, strlen(end->more), MSG_NOSIGNAL)) > 0)
			*end->ret_more += (size_t)n;
		close(fd);
	}
	free(data);
	return NULL;
}

static char error[CURL_ERROR_SIZE]; /* of the last attempt */

/* ret->body and ret->error are not to be looked at any more. */
static void send_request(struct transfer_request *r, struct transfer_result *ret)
{
	struct transfer *t = transfer__new();
	CURLM *multi = curl_multi_init();
	void *body = calloc(1, r->body_sz + 1);
	int running = 1, left;
	CURLMsg *m;

	assert_true(t && multi && body);
	r->content_type = "application/proto";
	r->body = body;
	assert_int_equal(transfer__begin(t, multi, r, NULL), 0);
	while (running) {
		assert_int_equal(curl_multi_poll(multi, NULL, 0, 1000, NULL), CURLM_OK);
		assert_int_equal(curl_multi_perform(multi, &running), CURLM_OK);
	}
	m = curl_multi_info_read(multi, &left);
	assert_true(m && m->msg == CURLMSG_DONE);
	transfer__end(t, multi, m->data.result, ret);
	snprintf(error, sizeof(error), "%s", ret->error);
	transfer__free(t);
	curl_multi_cleanup(multi);
	free(body);
}

/* Sends so many bytes to it, or through it to a store of HTTPS. */
static void send_by(struct store_end end, bool is_proxy, size_t body_sz,
		    struct transfer_result *ret)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t address_sz = sizeof(address);
	struct transfer_request r = { .body_sz = body_sz };
	pthread_t thread;
	char url[64];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	end.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(end.listening >= 0);
	assert_int_equal(bind(end.listening, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(end.listening, 1), 0);
	assert_int_equal(getsockname(end.listening, (struct sockaddr *)&address, &address_sz), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &end), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(address.sin_port));
	r.url = is_proxy ? "https://store.invalid/" : url;
	if (is_proxy)
		setenv("https_proxy", url, 1);
	send_request(&r, ret);
	unsetenv("https_proxy");
	pthread_join(thread, NULL);
	close(end.listening);
}

static void send_to(struct store_end end, size_t body_sz, struct transfer_result *ret)
{
	send_by(end, false, body_sz, ret);
}

#define OK HEAD "200 OK\r\nContent-Length: 2\r\n\r\n"

static void cuts(void **state)
{
	static const struct {
		struct store_end end;
		size_t body_sz;
		int http;
		bool sent;
	} rows[] = {
		/* in the upload: no store has all of it, however often it is tried */
		{ { .reads = 1 << 16, .answer = "" }, LARGE, 0, false },
		{ { .reads = 1 << 20, .answer = "" }, LARGE, 0, false },
		/* behind it, before the answer, and within */
		{ { .answer = "" }, LARGE, 0, true },
		{ { .answer = "" }, SMALL, 0, true },
		{ { .answer = HEAD }, SMALL, 0, true },
		{ { .answer = HEAD "100 Continue\r\n\r\n" }, SMALL, 0, true },
		/* the status stands, also if what is behind it is cut */
		{ { .answer = OK "x" }, SMALL, 200, true },
		{ { .answer = OK }, LARGE, 200, true },
		{ { .answer = HEAD "400 Bad\r\nContent-Length: 9\r\n\r\nno" }, SMALL, 400, true },
		/* behind the answer */
		{ { .answer = OK "{}" }, LARGE, 200, true },
		{ { .answer = OK "{}" }, SMALL, 200, true },
	};
	struct transfer_result result;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		send_to(rows[i].end, rows[i].body_sz, &result);
		if (result.http != rows[i].http || result.sent != rows[i].sent)
			fail_msg("row %zu: HTTP %d, sent %d", i, result.http, result.sent);
		assert_true(result.sent ? result.bytes == rows[i].body_sz :
					  result.bytes < rows[i].body_sz);
		assert_int_equal(result.grpc.status, -1);
		/* what the store has said is said, not that it was cut */
		assert_true(result.http < 300 || !*error);
	}
}

static void grpc(void **state)
{
	struct transfer_result result;

	(void)state;
	send_to((struct store_end){ .answer = HEAD
				    "200 OK\r\nGrpc-Status: 16\r\ngrpc-message:  a%20b \r\n"
				    "Content-Length: 0\r\n\r\n" },
		SMALL, &result);
	assert_int_equal(result.http, 200);
	assert_int_equal(result.grpc.status, 16);
	assert_string_equal(result.grpc.message, "a b");
}

/* What libcurl's TLS library may lack. In this program it stands before libcurl's own. */
static CURLoption refused;
static CURLcode refusal;

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	/* each value is a pointer or a number of the same size */
	CURLcode (*real)(CURL *, CURLoption, ...) = dlsym(RTLD_NEXT, "curl_easy_setopt");
	va_list ap;
	void *value;

	va_start(ap, option);
	value = va_arg(ap, void *);
	va_end(ap);
	return option == refused ? refusal : real(easy, option, value);
}

/* Nothing is sent without an option that says whom to trust, who we are, or where to go. */
static void no_option(void **state)
{
	static const struct {
		CURLoption option;
		CURLcode code;
		int err;
	} rows[] = {
		{ CURLOPT_CAINFO_BLOB, CURLE_NOT_BUILT_IN, -EOPNOTSUPP },
		{ CURLOPT_CAINFO_BLOB, CURLE_OUT_OF_MEMORY, -ENOMEM },
		/* there is no folder then */
		{ CURLOPT_CAPATH, CURLE_NOT_BUILT_IN, 0 },
		{ CURLOPT_CAPATH, CURLE_UNKNOWN_OPTION, -EOPNOTSUPP },
		{ CURLOPT_SSLCERT_BLOB, CURLE_NOT_BUILT_IN, -EOPNOTSUPP },
		{ CURLOPT_SSLKEY_BLOB, CURLE_NOT_BUILT_IN, -EOPNOTSUPP },
		{ CURLOPT_SSLVERSION, CURLE_NOT_BUILT_IN, -EOPNOTSUPP },
		{ CURLOPT_PROTOCOLS_STR, CURLE_UNKNOWN_OPTION, -EOPNOTSUPP },
		{ CURLOPT_HTTPHEADER, CURLE_OUT_OF_MEMORY, -ENOMEM },
		{ CURLOPT_HTTPAUTH, CURLE_NOT_BUILT_IN, -EOPNOTSUPP },
		{ CURLOPT_USERNAME, CURLE_OUT_OF_MEMORY, -ENOMEM },
		{ CURLOPT_PASSWORD, CURLE_OUT_OF_MEMORY, -ENOMEM },
		{ 0, CURLE_OK, 0 },
	};
	char ca[] = "authority", cert[] = "certificate", password[] = "password";
	struct transfer_request r = {
		.url = "https://127.0.0.1:1/",
		.content_type = "application/proto",
		.body = "",
		.user = "user",
		.password = { password, strlen(password) },
		.ca = { ca, strlen(ca) },
		.cert = { cert, strlen(cert) },
	};
	struct transfer *t = transfer__new();
	CURLM *multi = curl_multi_init();
	struct transfer_result result;

	(void)state;
	assert_true(t && multi);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int err;

		refused = rows[i].option;
		refusal = rows[i].code;
		err = transfer__begin(t, multi, &r, NULL);
		refused = 0;
		if (err != rows[i].err)
			fail_msg("row %zu: %d", i, err);
		if (!err)
			transfer__end(t, multi, CURLE_ABORTED_BY_CALLBACK, &result);
	}
	transfer__free(t);
	curl_multi_cleanup(multi);
}

/* A proxy that makes no connection: only that it does not know us is more than that there is none. */
static void no_tunnel(void **state)
{
	static const struct {
		const char *answer;
		int http;
	} rows[] = {
		{ HEAD "407 Who\r\nContent-Length: 0\r\n\r\n", 407 },
		{ HEAD "407 Who\r\nProxy-Authenticate: Basic\r\nContent-Length: 4\r\n\r\nwho?",
		  407 },
		{ HEAD "403 No\r\nContent-Length: 0\r\n\r\n", 0 },
		{ HEAD "502 Bad\r\nContent-Length: 0\r\n\r\n", 0 },
		{ HEAD "200 OK\r\n\r\n", 0 },
		{ "", 0 },
	};
	struct transfer_result result;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		send_by((struct store_end){ .answer = rows[i].answer }, true, SMALL, &result);
		if (result.http != rows[i].http || result.sent || result.bytes)
			fail_msg("row %zu: HTTP %d, sent %d", i, result.http, result.sent);
	}
}

/* What a proxy of the environment has of secrets stays out of messages; what helps is in them. */
static void secrets(void **state)
{
	static const struct {
		const char *proxy, *says; /* NULL: anything */
	} rows[] = {
		{ "http://user:pa/ss@proxy.invalid", NULL },
		{ "http://user:pa/ss", NULL },
		{ "user:pa/ss@proxy.invalid", NULL },
		{ "user:pa/ss", NULL },
		{ "pa/ss://user:pa/ss@proxy.invalid", NULL },
		{ "ftp://user:pa/ss@proxy.invalid", NULL },
		{ "http://user:pa%2fss@127.0.0.1:1", "127.0.0.1" },
		{ "", "127.0.0.1" },
	};
	struct transfer_request r = { .url = "http://127.0.0.1:1/" };
	struct transfer_result result;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		setenv("http_proxy", rows[i].proxy, 1);
		send_request(&r, &result);
		if (!*error || strstr(error, "user") || strstr(error, "pa/ss") ||
		    (rows[i].says && !strstr(error, rows[i].says)))
			fail_msg("row %zu: \"%s\"", i, error);
	}
	unsetenv("http_proxy");
}

/* An answer that does not end is not read for long, and its status stands. */
static void endless(void **state)
{
	static const struct {
		const char *answer, *more;
		int http;
	} rows[] = {
		{ HEAD "200 OK\r\n\r\n", "some more, and again ", 200 },
		{ HEAD "400 Bad\r\n\r\n", "some more, and again ", 400 },
		{ HEAD "200 OK\r\n", "X-More: some\r\n", 200 },
		{ "", HEAD "100 Continue\r\n\r\n", 0 },
	};
	struct transfer_result result;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t more = 0;

		send_to((struct store_end){ .answer = rows[i].answer,
					    .more = rows[i].more,
					    .ret_more = &more },
			SMALL, &result);
		if (result.http != rows[i].http || !result.sent || more >= ENDLESS)
			fail_msg("row %zu: HTTP %d, %zu bytes", i, result.http, more);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts),	     cmocka_unit_test(grpc),	  cmocka_unit_test(endless),
		cmocka_unit_test(no_option), cmocka_unit_test(no_tunnel), cmocka_unit_test(secrets),
	};
	static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
					       "all_proxy",  "ALL_PROXY",   "no_proxy",
					       "NO_PROXY" };

	for (size_t i = 0; i < ARRAY_SIZE(proxies); i++)
		unsetenv(proxies[i]);
	curl_global_init(CURL_GLOBAL_ALL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
