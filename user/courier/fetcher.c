// SPDX-License-Identifier: BSD-2-Clause
#include "courier/fetcher.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <strings.h>
#include <unistd.h>

#include "base/util.h"
#include "courier/fetch_wire.h"
#include "courier/transfer.h"
#include "helper/fd_message.h"

#define MAX_ID 128 /* digits */
#define MAX_REDIRECTS 5L
#define MAX_SECONDS 600L /* of one file, however fast it comes */
#define SLOW_BYTES 1000L /* a second: less is as good as nothing */
#define MAX_SAID 256
#define MAX_PATIENCE 3L /* seconds, with a server that others are behind */

struct server {
	char url[FETCH_MAX_URL + 1]; /* without '/' at the end */
	bool gone, answered;
	unsigned int requests; /* under way */
};

/* A file that is wanted. */
struct wanted {
	bool there, under_way;
	uint64_t number;
	char id[MAX_ID + 1];
	int fd;
	size_t server; /* that is asked, or to be asked next */
	uint64_t bytes;
	int write_err; /* errno, of the file */
	CURL *easy;
	char error[CURL_ERROR_SIZE];
	char failed[MAX_SAID]; /* what went wrong so far, "": nothing */
};

struct fetcher {
	int sock;
	CURLM *multi;
	long patience; /* seconds: see struct fetch_opts */
	struct server servers[FETCH_MAX_SERVERS];
	size_t server_cnt;
	struct wanted wanted[FETCH_SLOTS];
	struct fetch_wire in, out;
};

/* ---- what the collector hears ---- */

/* -errno: it is gone. */
static int __attribute__((format(printf, 2, 3))) tell(struct fetcher *f, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(f->out.text, MAX_SAID, fmt, ap);
	va_end(ap);
	return fd_message_send(f->sock, &f->out, FETCH_HEAD_SZ + MIN((size_t)n + 1, MAX_SAID), NULL,
			       0, 0);
}

static int end_file(struct fetcher *f, struct wanted *w, enum fetch_outcome outcome)
{
	f->out = (struct fetch_wire){ .what = FETCH_ENDED, .number = w->number, .value = outcome };
	close(w->fd);
	w->there = false;
	return tell(f, "%s", w->failed);
}

/* The host of a URL, without the user and password that may stand there. */
static const char *host_of(const char *url, char *ret, size_t ret_sz)
{
	const char *host = strstr(url, "://"), *at;
	size_t sz;

	host = host ? host + 3 : url;
	sz = strcspn(host, "/?#");
	at = memrchr(host, '@', sz);
	if (at) {
		sz -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	snprintf(ret, ret_sz, "%.*s", (int)sz, host);
	return ret;
}

static int give_up_server(struct fetcher *f, struct server *s, const char *why)
{
	char host[FETCH_MAX_URL + 1];

	if (s->gone)
		return 0;
	s->gone = true;
	f->out = (struct fetch_wire){ .what = FETCH_SERVER };
	return tell(f, "%s: %s", host_of(s->url, host, sizeof(host)), why);
}

/* Seconds. Those behind a server that is silent are to be asked before the wait is over. */
static long patience_with(const struct fetcher *f, size_t server)
{
	for (size_t i = server + 1; i < f->server_cnt; i++)
		if (!f->servers[i].gone)
			return MIN((f->patience + 2) / 3, MAX_PATIENCE);
	return f->patience;
}

/* ---- a request ---- */

static size_t take_data(char *data, size_t size, size_t n, void *ctx)
{
	struct wanted *w = ctx;
	size_t sz = size * n, done = 0;

	if (w->bytes + sz > FETCH_MAX_FILE) {
		w->write_err = EFBIG;
		return 0;
	}
	while (done < sz) {
		ssize_t k = write(w->fd, data + done, sz - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			w->write_err = k ? errno : EIO;
			return 0;
		}
		done += (size_t)k;
	}
	w->bytes += sz;
	return sz;
}

static int begin_request(struct fetcher *f, struct wanted *w)
{
	struct server *s = &f->servers[w->server];
	char url[FETCH_MAX_URL + MAX_ID + 64];
	bool tls = !strncasecmp(s->url, "https:", 6);

	/* of a server that was asked before and gave a part of it */
	if (w->bytes && (ftruncate(w->fd, 0) || lseek(w->fd, 0, SEEK_SET)))
		return -errno;
	w->bytes = 0;
	snprintf(url, sizeof(url), "%s/buildid/%s/debuginfo", s->url, w->id);
	curl_easy_reset(w->easy);
	w->error[0] = '\0';
	curl_easy_setopt(w->easy, CURLOPT_URL, url);
	curl_easy_setopt(w->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(w->easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(w->easy, CURLOPT_MAXREDIRS, MAX_REDIRECTS);
	/* what was to be secret stays it */
	curl_easy_setopt(w->easy, CURLOPT_REDIR_PROTOCOLS_STR, tls ? "https" : "http,https");
	curl_easy_setopt(w->easy, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(w->easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)FETCH_MAX_FILE);
	curl_easy_setopt(w->easy, CURLOPT_USERAGENT, "bpfprof/" BPFPROF_VERSION);
	curl_easy_setopt(w->easy, CURLOPT_WRITEFUNCTION, take_data);
	curl_easy_setopt(w->easy, CURLOPT_WRITEDATA, w);
	curl_easy_setopt(w->easy, CURLOPT_ERRORBUFFER, w->error);
	curl_easy_setopt(w->easy, CURLOPT_CONNECTTIMEOUT, patience_with(f, w->server));
	/* the other files would wait for a name server that does not answer */
	curl_easy_setopt(w->easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(w->easy, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
	curl_easy_setopt(w->easy, CURLOPT_LOW_SPEED_TIME, patience_with(f, w->server));
	curl_easy_setopt(w->easy, CURLOPT_TIMEOUT, MAX_SECONDS);
	curl_easy_setopt(w->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(w->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(w->easy, CURLOPT_PRIVATE, w);
	if (curl_multi_add_handle(f->multi, w->easy) != CURLM_OK)
		return -ENOMEM;
	w->under_way = true;
	s->requests++;
	return 0;
}

/* Asks the next server that may have it, unless it has to be waited for. */
static int advance(struct fetcher *f, struct wanted *w)
{
	const struct server *s;
	int err;

	for (; w->server < f->server_cnt; w->server++) {
		s = &f->servers[w->server];
		if (s->gone)
			continue;
		if (!s->answered && s->requests)
			return 0;
		err = begin_request(f, w);
		if (!err)
			return 0;
		snprintf(w->failed, sizeof(w->failed), "%s", strerror(-err));
		return end_file(f, w, FETCH_FAILED);
	}
	return end_file(f, w, *w->failed ? FETCH_FAILED : FETCH_NOT_FOUND);
}

/* Is the file to blame, or how we were led to it, and not whoever was asked? */
static bool is_of_file(CURLcode code)
{
	return code == CURLE_WRITE_ERROR || code == CURLE_FILESIZE_EXCEEDED ||
	       code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_UNSUPPORTED_PROTOCOL ||
	       code == CURLE_URL_MALFORMAT;
}

static void say_why(struct wanted *w, CURLcode code, long http)
{
	if (code == CURLE_HTTP_RETURNED_ERROR)
		snprintf(w->failed, sizeof(w->failed), "HTTP %ld", http);
	else if (code == CURLE_FILESIZE_EXCEEDED || w->write_err == EFBIG)
		snprintf(w->failed, sizeof(w->failed), "it has more than %llu MiB",
			 FETCH_MAX_FILE >> 20);
	else if (w->write_err)
		snprintf(w->failed, sizeof(w->failed), "cannot be kept: %s",
			 strerror(w->write_err));
	else
		snprintf(w->failed, sizeof(w->failed), "%s", transfer_words(code, w->error));
}

static int end_request(struct fetcher *f, struct wanted *w, CURLcode code)
{
	struct server *s = &f->servers[w->server];
	long http = 0;
	int err = 0;

	curl_easy_getinfo(w->easy, CURLINFO_RESPONSE_CODE, &http);
	curl_multi_remove_handle(f->multi, w->easy);
	w->under_way = false;
	s->requests--;
	s->answered |= http > 0;
	if (code == CURLE_OK && w->bytes) {
		w->failed[0] = '\0';
		return end_file(f, w, FETCH_FETCHED);
	}
	if (code == CURLE_OK) {
		snprintf(w->failed, sizeof(w->failed), "it is empty");
	} else if (code != CURLE_HTTP_RETURNED_ERROR || http != 404) {
		say_why(w, code, http);
		if (code != CURLE_HTTP_RETURNED_ERROR && !is_of_file(code))
			err = give_up_server(f, s, w->failed);
	}
	w->server = w->write_err ? f->server_cnt : w->server + 1;
	return err;
}

static int finish_requests(struct fetcher *f)
{
	struct wanted *w;
	CURLMsg *m;
	int left, err = 0;

	while (!err && (m = curl_multi_info_read(f->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&w);
		err = end_request(f, w, m->data.result);
	}
	return err;
}

/* ---- what the collector says ---- */

static int take_servers(struct fetcher *f)
{
	char *save, *url;

	f->patience = MAX(f->in.value, 1U);
	f->server_cnt = 0;
	for (url = strtok_r(f->in.text, " ", &save); url; url = strtok_r(NULL, " ", &save)) {
		struct server *s = &f->servers[f->server_cnt];
		size_t len = strlen(url);

		if (f->server_cnt == FETCH_MAX_SERVERS || len > FETCH_MAX_URL)
			return -EPROTO;
		while (len && url[len - 1] == '/')
			len--;
		snprintf(s->url, sizeof(s->url), "%.*s", (int)len, url);
		f->server_cnt++;
	}
	return 0;
}

static int take_file(struct fetcher *f, int fd)
{
	struct wanted *w = f->wanted;

	while (w < f->wanted + FETCH_SLOTS && w->there)
		w++;
	if (fd < 0 || w == f->wanted + FETCH_SLOTS || strlen(f->in.text) > MAX_ID)
		return -EPROTO;
	if (!w->easy)
		w->easy = curl_easy_init();
	*w = (struct wanted){ .there = true, .number = f->in.number, .easy = w->easy };
	strcpy(w->id, f->in.text);
	w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return w->fd < 0 ? -errno : w->easy ? 0 : -ENOMEM;
}

/* All that is there. -errno: there is no going on; -EPIPE: the collector is gone. */
static int take_messages(struct fetcher *f)
{
	int fd, err = 0;
	size_t cnt;
	ssize_t n;

	while (!err) {
		n = fd_message_receive(f->sock, &f->in, sizeof(f->in) - 1, &fd, 1, &cnt,
				       MSG_DONTWAIT);
		if (n == -EAGAIN)
			return 0;
		if (n <= 0)
			return n ? (int)n : -EPIPE;
		if ((size_t)n < FETCH_HEAD_SZ)
			return -EPROTO;
		((char *)&f->in)[n] = '\0';
		err = f->in.what == FETCH_SERVERS ? take_servers(f) :
		      f->in.what == FETCH_FILE	  ? take_file(f, cnt ? fd : -1) :
						    -EPROTO;
		if (cnt)
			close(fd);
	}
	return err;
}

/* ---- the loop ---- */

static int turn(struct fetcher *f)
{
	struct curl_waitfd fd = { .fd = f->sock, .events = CURL_WAIT_POLLIN };
	int running, err = 0;

	for (size_t i = 0; !err && i < FETCH_SLOTS; i++)
		if (f->wanted[i].there && !f->wanted[i].under_way)
			err = advance(f, &f->wanted[i]);
	/* does not wait where a request has just begun, and none that has ended may be left lying here */
	if (!err && curl_multi_poll(f->multi, &fd, 1, 60000, NULL) != CURLM_OK)
		err = -EIO;
	if (!err)
		err = take_messages(f);
	if (!err && curl_multi_perform(f->multi, &running) != CURLM_OK)
		err = -EIO;
	return err ? err : finish_requests(f);
}

int fetcher_serve(int sock)
{
	static struct fetcher f;
	int err = 0;

	f = (struct fetcher){ .sock = sock, .multi = curl_multi_init() };
	if (!f.multi)
		return -ENOMEM;
	while (!err)
		err = turn(&f);
	for (size_t i = 0; i < FETCH_SLOTS; i++) {
		if (f.wanted[i].under_way)
			curl_multi_remove_handle(f.multi, f.wanted[i].easy);
		curl_easy_cleanup(f.wanted[i].easy);
	}
	curl_multi_cleanup(f.multi);
	return err == -EPIPE ? 0 : err;
}
