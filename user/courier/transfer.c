/* SPDX-License-Identifier: BSD-2-Clause */
#include "courier/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define MAX_ANSWER 16384
#define MAX_RECEIVED (1U << 20) /* bytes, with the headers: no store has so much to say */
#define CONNECT_SECONDS 10L
#define SECONDS 30L
/* a store that takes or gives a byte now and then */
#define SLOW_BYTES 100L
#define SLOW_SECONDS 15L
/* a name may lead elsewhere by then, and so it is looked up again (curl_easy_setopt(3)) */
#define CONNECTION_SECONDS 300L
#define NAME_SECONDS 10L
/* A folder that cannot be there. Not "": OpenSSL fails. Not NULL: newer libcurls take their default then. */
#define NO_FOLDER "/dev/null/none"

struct transfer {
	CURL *easy;
	struct curl_slist *headers;
	const char *body;
	size_t body_sz, given;
	struct grpc_end grpc;
	char answer[MAX_ANSWER + 1];
	size_t answer_sz, received;
	char error[CURL_ERROR_SIZE];
};

/* Counts it. What libcurl is to hear: less than there is ends the transfer. */
static size_t receive(struct transfer *t, size_t sz)
{
	t->received += sz;
	return t->received > MAX_RECEIVED ? 0 : sz;
}

static size_t take_answer(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	size_t room = MAX_ANSWER - t->answer_sz, sz = MIN(size * n, room);

	/* the rest is read and forgotten, so that the connection can be used again */
	memcpy(t->answer + t->answer_sz, data, sz);
	t->answer_sz += sz;
	return receive(t, size * n);
}

/* libcurl asks for the body piece by piece. It could hand all of it over at once, but then it would
 * send it again by itself when a connection that was used before ends without an answer, and nobody
 * would know: this way it cannot go back to the beginning. */
static size_t give_body(char *to, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	size_t sz = MIN(size * n, t->body_sz - t->given);

	memcpy(to, t->body + t->given, sz);
	t->given += sz;
	return sz;
}

static size_t take_header(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;

	grpc_end__take(&t->grpc, data, size * n);
	return receive(t, size * n);
}

struct transfer *transfer__new(void)
{
	struct transfer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->easy = curl_easy_init();
	if (!t->easy) {
		free(t);
		return NULL;
	}
	return t;
}

void transfer__free(struct transfer *t)
{
	if (!t)
		return;
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	free(t);
}

/* A line that nobody can make two of. */
static int add_header(struct transfer *t, const char *name, const char *value)
{
	char line[8192 + 64];
	struct curl_slist *more;

	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return -EINVAL;
	if (snprintf(line, sizeof(line), "%s: %s", name, value) >= (int)sizeof(line))
		return -EINVAL;
	more = curl_slist_append(t->headers, line);
	if (!more)
		return -ENOMEM;
	t->headers = more;
	return 0;
}

/* Files end with a newline that is not meant. */
static void trim(char *text)
{
	size_t len = strlen(text);

	while (len && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
}

static int set_headers(struct transfer *t, const struct transfer_request *r)
{
	char bearer[8192];
	int err = add_header(t, "Content-Type", r->content_type);

	/* libcurl would wait for leave to send a large body */
	if (!err)
		err = add_header(t, "Expect", "");
	if (!err && r->gzip)
		err = add_header(t, "Content-Encoding", "gzip");
	if (!err && r->tenant)
		err = add_header(t, "X-Scope-OrgID", r->tenant);
	if (err || !r->token.data)
		return err;
	trim(r->token.data);
	if (snprintf(bearer, sizeof(bearer), "Bearer %s", r->token.data) >= (int)sizeof(bearer))
		return -EINVAL;
	err = add_header(t, "Authorization", bearer);
	explicit_bzero(bearer, sizeof(bearer));
	return err;
}

static CURLcode set_blob(struct transfer *t, CURLoption option, const struct transfer_file *f)
{
	struct curl_blob blob = { .data = f->data, .len = f->sz, .flags = CURL_BLOB_COPY };

	return f->data ? curl_easy_setopt(t->easy, option, &blob) : CURLE_OK;
}

/* Whom to trust: ca and nobody else. */
static CURLcode set_authorities(struct transfer *t, const struct transfer_file *ca)
{
	CURLcode code = set_blob(t, CURLOPT_CAINFO_BLOB, ca);

	if (code != CURLE_OK || !ca->data)
		return code;
	/* the blob takes the place of the system's file alone: authorities in its folder would be trusted, too */
	code = curl_easy_setopt(t->easy, CURLOPT_CAPATH, NO_FOLDER);
	/* a TLS library that knows no folders */
	return code == CURLE_NOT_BUILT_IN ? CURLE_OK : code;
}

static CURLcode set_user(struct transfer *t, const struct transfer_request *r)
{
	CURLcode code = CURLE_OK;

	if (!r->user)
		return code;
	if (r->password.data)
		trim(r->password.data);
	code = curl_easy_setopt(t->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	if (code == CURLE_OK)
		code = curl_easy_setopt(t->easy, CURLOPT_USERNAME, r->user);
	if (code == CURLE_OK)
		code = curl_easy_setopt(t->easy, CURLOPT_PASSWORD, r->password.data ?: "");
	return code;
}

/* What libcurl would go on without: to any host that the system's authorities vouch for, or as nobody. 0; -EOPNOTSUPP:
 * this libcurl, or its TLS library, has it not; -ENOMEM. */
static int set_rights(struct transfer *t, const struct transfer_request *r)
{
	CURLcode code = curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");

	if (code == CURLE_OK)
		code = curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	if (code == CURLE_OK)
		code = set_authorities(t, &r->ca);
	if (code == CURLE_OK)
		code = set_blob(t, CURLOPT_SSLCERT_BLOB, &r->cert);
	/* one file may hold both */
	if (code == CURLE_OK)
		code = set_blob(t, CURLOPT_SSLKEY_BLOB, r->key.data ? &r->key : &r->cert);
	if (code == CURLE_OK)
		code = curl_easy_setopt(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (code == CURLE_OK)
		code = set_user(t, r);
	if (code == CURLE_OUT_OF_MEMORY)
		return -ENOMEM;
	return code == CURLE_OK ? 0 : -EOPNOTSUPP;
}

int transfer__begin(struct transfer *t, CURLM *multi, const struct transfer_request *r, void *data)
{
	int err;

	curl_easy_reset(t->easy);
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	t->grpc = (struct grpc_end){ .status = -1 };
	t->answer_sz = t->received = 0;
	t->error[0] = '\0';
	t->body = r->body;
	t->body_sz = r->body_sz;
	t->given = 0;
	err = set_headers(t, r);
	if (!err)
		err = set_rights(t, r);
	if (err)
		return err;
	curl_easy_setopt(t->easy, CURLOPT_URL, r->url);
	curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, give_body);
	curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_sz);
	curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "bpfprof/" BPFPROF_VERSION);
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(t->easy, CURLOPT_TIMEOUT, SECONDS);
	/* all else would wait for a name server that does not answer */
	curl_easy_setopt(t->easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
	curl_easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, SLOW_SECONDS);
	curl_easy_setopt(t->easy, CURLOPT_MAXLIFETIME_CONN, CONNECTION_SECONDS);
	curl_easy_setopt(t->easy, CURLOPT_DNS_CACHE_TIMEOUT, NAME_SECONDS);
	curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(t->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, data);
	return curl_multi_add_handle(multi, t->easy) == CURLM_OK ? 0 : -ENOMEM;
}

/* Those of a proxy that is none quote all of it: "Unsupported proxy syntax in 'http://user:pa/ss@proxy'". No name and
 * no address has these characters. */
static bool may_quote_proxy(CURLcode code, const char *said)
{
	return strchr(said, '@') || strstr(said, "://") ||
	       (code == CURLE_COULDNT_RESOLVE_PROXY && strchr(said, '\''));
}

const char *transfer_words(CURLcode code, const char *said)
{
	if (code == CURLE_OK)
		return "";
	return *said && !may_quote_proxy(code, said) ? said : curl_easy_strerror(code);
}

/* What the store has said of the request, 0: nothing. The status stands also where the answer is cut behind it; whether
 * more is needed, as the end of gRPC's call, the store's form knows. But who has not read all cannot have taken it, and
 * 1xx is not the last word. */
static int final_status(const struct transfer *t, CURLcode code, long http)
{
	if (code == CURLE_OK || http >= 300)
		return (int)http;
	return http >= 200 && t->given == t->body_sz ? (int)http : 0;
}

/* Of an answer, or 0. Where a proxy makes no connection to the store, it is as where there is none, and no status of its
 * is for the record; but that it does not know us is not over soon. */
static long http_status(const struct transfer *t)
{
	long http = 0, proxy = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &http);
	curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &proxy);
	return !http && proxy == 407 ? proxy : http;
}

void transfer__end(struct transfer *t, CURLM *multi, CURLcode code, struct transfer_result *ret)
{
	curl_off_t retry_after = 0;
	long http = http_status(t);

	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_after);
	curl_multi_remove_handle(multi, t->easy);
	t->answer[t->answer_sz] = '\0';
	*ret = (struct transfer_result){
		.http = final_status(t, code, http),
		/* libcurl has it: CURLINFO_SIZE_UPLOAD_T leaves out what went with the head */
		.sent = t->given == t->body_sz,
		.bytes = t->given,
		.grpc = t->grpc,
		.retry_after_ns = retry_after > 0 ? (uint64_t)retry_after * NSEC_PER_SEC : 0,
		.body = t->answer,
		.body_sz = t->answer_sz,
		/* the store's words say more than that they were cut */
		.error = http >= 300 ? "" : transfer_words(code, t->error),
	};
}
