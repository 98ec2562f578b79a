/* SPDX-License-Identifier: BSD-2-Clause */
#include "courier/courier.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "courier/http.h"
#include "courier/queue.h"
#include "courier/retry.h"
#include "courier/stores.h"
#include "courier/transfer.h"
#include "courier/wire.h"
#include "helper/fd_message.h"
#include "profile/pprof.h"

#define MAX_RECORD (64U << 20)
#define MAX_FILE (4U << 20) /* of keys */
#define MAX_URL 2048
#define GATHER_US 4000 /* that answers may come in one after the other, and be taken in together */
#define QUIET_NS (60 * NSEC_PER_SEC) /* between two complaints of records that are given up */

/* A record under way. */
struct attempt {
	struct destination *d;
	int slot;
	struct transfer *transfer;
	struct body body;
	struct transfer_request request;
};

/* Of records, which is made now and then. */
struct complaint {
	uint64_t next_ns; /* not before */
	uint64_t cnt;	  /* records since it was made */
};

struct destination {
	bool there;
	uint32_t number, generation;
	char *config; /* what the labels point into */
	struct labels labels;
	const struct store *store;
	char url[MAX_URL];
	struct queue queue;
	struct attempt attempts[QUEUE_SLOTS];
	uint64_t failing_since; /* 0: it is not */
	struct complaint given_up, not_whole;
};

struct courier {
	int sock;
	CURLM *multi;
	struct http *http; /* NULL: nobody may ask */
	struct destination destinations[WIRE_MAX_DESTINATIONS];
	int running; /* transfers */
	struct wire in, out;
};

/* ---- what the collector hears ---- */

/* -errno: it is gone. */
static int tell(struct courier *c, size_t text_sz)
{
	return fd_message_send(c->sock, &c->out, WIRE_HEAD_SZ + text_sz, NULL, 0, 0);
}

static void begin_message(struct courier *c, const struct destination *d, enum wire_what what)
{
	wire_begin(&c->out, what);
	c->out.destination = d->number;
	c->out.generation = d->generation;
}

static int __attribute__((format(printf, 4, 5)))
say(struct courier *c, const struct destination *d, bool error, const char *fmt, ...)
{
	va_list ap;
	int n;

	begin_message(c, d, WIRE_SAID);
	c->out.value = error;
	va_start(ap, fmt);
	n = vsnprintf(c->out.text, sizeof(c->out.text), fmt, ap);
	va_end(ap);
	return tell(c, MIN((size_t)n + 1, sizeof(c->out.text)));
}

static int tell_end(struct courier *c, const struct destination *d, uint64_t number,
		    enum wire_outcome outcome, enum wire_reason reason, uint64_t bytes)
{
	begin_message(c, d, WIRE_ENDED);
	c->out.number = number;
	c->out.value = outcome;
	c->out.reason = reason;
	c->out.bytes = bytes;
	return tell(c, 0);
}

/* Asks for all that may be sent now. *ret_at_ns: when there may be more. */
static int ask(struct courier *c, struct destination *d, uint64_t now, uint64_t *ret_at_ns)
{
	uint64_t at;
	int slot, err = 0;

	while (!err && (slot = queue__ask(&d->queue, now, &at)) >= 0) {
		begin_message(c, d, WIRE_NEXT);
		c->out.slot = (uint32_t)slot;
		c->out.number = d->queue.slots[slot].number;
		err = tell(c, 0);
	}
	*ret_at_ns = err ? 0 : MIN(*ret_at_ns, at);
	return err;
}

/* ---- an attempt ---- */

static struct transfer_file *file_of(struct transfer_request *r, uint32_t bit)
{
	switch (bit) {
	case WIRE_TOKEN:
		return &r->token;
	case WIRE_PASSWORD:
		return &r->password;
	case WIRE_CA:
		return &r->ca;
	case WIRE_CERT:
		return &r->cert;
	default: /* WIRE_KEY */
		return &r->key;
	}
}

static void release(struct attempt *a)
{
	free(a->body.data);
	a->body = (struct body){ 0 };
	for (uint32_t i = 0; i < WIRE_NR_FILES; i++) {
		struct transfer_file *f = file_of(&a->request, 1U << i);

		if (f->data)
			explicit_bzero(f->data, f->sz);
		free(f->data);
	}
	a->request = (struct transfer_request){ 0 };
}

static struct answer as_answer(const struct transfer_result *r)
{
	return (struct answer){
		.http = r->http, .grpc = r->grpc, .body = r->body, .body_sz = r->body_sz
	};
}

/* What the store said, for people. */
static void describe(const struct store *s, const struct retry *r,
		     const struct transfer_result *result, char *ret, size_t ret_sz)
{
	struct answer answer = as_answer(result);
	char said[STORE_SAID_SZ];

	if (*result->error) {
		snprintf(ret, ret_sz, "%s", result->error);
		return;
	}
	store_said(s, &answer, said);
	snprintf(ret, ret_sz, "%s %s", retry_word(r->reason), said);
}

/* A store that fails is spoken of once, and once more when it is back. answered: it has said so itself. */
static int report_store(struct courier *c, struct destination *d, const struct retry *r,
			bool answered, const char *what, uint64_t now)
{
	uint64_t since = d->failing_since;
	uint32_t failures = d->queue.failures;
	bool about_record;

	if (r->verdict == VERDICT_DELIVERED && since && !failures) {
		d->failing_since = 0;
		return say(c, d, false, "delivers again, after %" PRIu64 " s",
			   (now - since) / NSEC_PER_SEC);
	}
	/* a first answer may be about the record. Missing rights are about us; where records were taken
	 * before, a token may just have been replaced */
	about_record = answered && (r->verdict != VERDICT_RIGHTS || d->queue.delivered);
	if (r->verdict == VERDICT_DELIVERED || r->verdict == VERDICT_REFUSED || since ||
	    (about_record && failures < 2))
		return 0;
	d->failing_since = now;
	return say(c, d, true, "%s: profiles are kept, and it is tried again", what);
}

/* Records that have come to this end are spoken of now and then. */
static int report_record(struct courier *c, const struct destination *d, struct complaint *of,
			 uint64_t number, const char *end, const char *what, uint64_t now)
{
	int err;

	of->cnt++;
	if (now < of->next_ns)
		return 0;
	err = say(c, d, true,
		  "profile %" PRIu64 " is %s, of %" PRIu64 " since this was last said: %s", number,
		  end, of->cnt, what);
	of->next_ns = now + QUIET_NS;
	of->cnt = 0;
	return err;
}

static int report_given_up(struct courier *c, struct destination *d, uint64_t number,
			   const char *what, uint64_t now)
{
	return report_record(c, d, &d->given_up, number, "given up", what, now);
}

static int end_attempt(struct courier *c, struct attempt *a, const struct transfer_result *result,
		       int status)
{
	struct retry r = retry_judge(a->d->store->kind, status);
	uint64_t number = a->d->queue.slots[a->slot].number, now = util_monotonic_ns();
	struct answer answer = as_answer(result);
	enum wire_outcome outcome;
	char what[STORE_SAID_SZ + 64], rejected[STORE_SAID_SZ];
	bool settled;
	int err;

	release(a);
	describe(a->d->store, &r, result, what, sizeof(what));
	settled = queue__end(&a->d->queue, a->slot, &r, result->retry_after_ns, now, &outcome);
	err = report_store(c, a->d, &r, result->http != 0, what, now);
	/* for good: what it has taken would be there twice */
	if (r.verdict == VERDICT_DELIVERED && store_rejected(a->d->store, &answer, rejected)) {
		outcome = WIRE_PARTIAL;
		r.reason = WIRE_REASON_rejected;
		if (!err)
			err = report_record(c, a->d, &a->d->not_whole, number, "not taken whole",
					    rejected, now);
	}
	if (!err)
		err = tell_end(c, a->d, number, settled ? outcome : WIRE_KEPT, r.reason,
			       result->bytes);
	if (!err && settled && r.verdict != VERDICT_DELIVERED)
		err = report_given_up(c, a->d, number, what, now);
	return err;
}

/* It could not begin: the record is kept, as if there were no store. */
static int fail_attempt(struct courier *c, struct attempt *a, const char *why)
{
	struct transfer_result none = { .body = "", .error = why };

	return end_attempt(c, a, &none, ANSWER_NOT_BEGUN);
}

static int finish_transfers(struct courier *c)
{
	struct transfer_result result;
	struct attempt *a;
	struct answer answer;
	CURLMsg *m;
	int left, status, err = 0;

	while (!err && (m = curl_multi_info_read(c->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&a);
		transfer__end(a->transfer, c->multi, m->data.result, &result);
		answer = as_answer(&result);
		status = result.http ? store_status(a->d->store, &answer) :
			 result.sent ? ANSWER_NONE_SENT :
				       ANSWER_NONE;
		err = end_attempt(c, a, &result, status);
	}
	return err;
}

/* ---- what the collector says ---- */

static void forget(struct courier *c, struct destination *d)
{
	struct transfer_result ignored;

	for (int i = 0; i < QUEUE_SLOTS; i++) {
		struct attempt *a = &d->attempts[i];

		if (a->body.data)
			transfer__end(a->transfer, c->multi, CURLE_ABORTED_BY_CALLBACK, &ignored);
		release(a);
		transfer__free(a->transfer);
	}
	free(d->config);
	*d = (struct destination){ .number = d->number };
}

/* 0; -EPROTO: it makes no sense; -ENOMEM. */
static int take_destination(struct courier *c, struct destination *d, size_t text_sz)
{
	uint64_t seed = 0;
	const char *url;

	forget(c, d);
	d->generation = c->in.generation;
	if (!text_sz)
		return 0;
	d->config = malloc(text_sz + 1);
	if (!d->config)
		return -ENOMEM;
	memcpy(d->config, c->in.text, text_sz);
	if (labels__decode(d->config, text_sz, &d->labels))
		return -EPROTO;
	url = labels__get(&d->labels, "url");
	d->store = store_find(labels__get(&d->labels, "kind") ?: "");
	if (!url || !d->store || store_url(d->store, url, d->url, sizeof(d->url)))
		return -EPROTO;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = util_monotonic_ns();
	queue__init(&d->queue, seed);
	for (int i = 0; i < QUEUE_SLOTS; i++) {
		d->attempts[i] = (struct attempt){ .d = d, .slot = i };
		d->attempts[i].transfer = transfer__new();
		if (!d->attempts[i].transfer)
			return -ENOMEM;
	}
	d->there = true;
	return 0;
}

/* The files behind the record. 0 or -errno. */
static int read_files(struct attempt *a, uint32_t files, const int *fds, size_t cnt)
{
	size_t n = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < WIRE_NR_FILES; i++) {
		struct transfer_file *f = file_of(&a->request, 1U << i);

		if (!(files & 1U << i))
			continue;
		err = n < cnt ? util_read_fd(fds[n++], MAX_FILE, &f->data, &f->sz) : -EPROTO;
	}
	return err;
}

/* What is to be sent of a file of the spool; *ret_sz: bytes of the file. 0; -EBADMSG: it cannot be sent at
 * all; -errno. */
static int read_record(struct attempt *a, uint64_t number, int fd, size_t *ret_sz)
{
	struct item item = { .node = labels__get(&a->d->labels, "node") ?: "", .number = number };
	const void *extra;
	size_t extra_sz;
	char *file;
	int err = util_read_fd(fd, MAX_RECORD, &file, &item.sz);

	if (err)
		return err == -ENOMEM ? err : -EBADMSG;
	item.file = file;
	*ret_sz = item.sz;
	if (pprof_extra(file, item.sz, &extra, &extra_sz) ||
	    labels__decode(extra, extra_sz, &item.labels))
		err = -EBADMSG;
	if (!err)
		err = store_body(a->d->store, &item, &a->body);
	free(file);
	return err;
}

/* transfer__begin has failed with err. */
static const char *why_not_begun(int err)
{
	if (err == -EOPNOTSUPP)
		return "this libcurl, or its TLS library, lacks an option that keeps requests "
		       "safe, such as "
		       "that of ca-file";
	return err == -EINVAL ? "the token cannot stand in a header" : strerror(-err);
}

static int begin_attempt(struct courier *c, struct destination *d, const int *fds, size_t cnt)
{
	struct attempt *a = &d->attempts[c->in.slot];
	uint64_t number = c->in.number;
	size_t sz = 0;
	int err = cnt ? read_record(a, number, fds[0], &sz) : -EPROTO;

	/* as what comes in is counted: a store's own form has fewer bytes, or more */
	queue__begin(&d->queue, a->slot, number, sz);
	if (err == -EBADMSG) {
		queue__give_up(&d->queue, a->slot);
		err = tell_end(c, d, number, WIRE_UNREADABLE, WIRE_NO_REASON, 0);
		return err ? err :
			     report_given_up(c, d, number, "it cannot be read",
					     util_monotonic_ns());
	}
	if (!err)
		err = read_files(a, c->in.files, fds + 1, cnt - 1);
	if (err)
		return fail_attempt(c, a, strerror(-err));
	/* without it another store might get what is secret, or this one refuse the record for good */
	if (c->in.missing)
		return fail_attempt(c, a, "a file that the configuration names cannot be read");
	a->request.url = d->url;
	a->request.content_type = d->store->content_type;
	a->request.gzip = d->store->gzip;
	a->request.body = a->body.data;
	a->request.body_sz = a->body.sz;
	a->request.tenant = labels__get(&d->labels, "tenant");
	a->request.user = labels__get(&d->labels, "user");
	err = transfer__begin(a->transfer, c->multi, &a->request, a);
	return err ? fail_attempt(c, a, why_not_begun(err)) : 0;
}

/* Are all files known ones, and none both there and missing? */
static bool are_files(const struct wire *w)
{
	return !((w->files | w->missing) >> WIRE_NR_FILES) && !(w->files & w->missing);
}

/* A copy of the socket, which the caller closes. 0 or -errno. */
static int take_listening(struct courier *c, const int *fds, size_t cnt)
{
	int fd = cnt == 1 && !c->http ? fcntl(fds[0], F_DUPFD_CLOEXEC, 0) : -1;

	if (fd < 0)
		return -EPROTO;
	c->http = http__new(fd);
	return c->http ? 0 : -ENOMEM;
}

static int take_status(struct courier *c, size_t text_sz)
{
	int err = c->http ? http__set_status(c->http, c->in.text, text_sz, util_monotonic_ns()) : 0;

	wire_begin(&c->out, WIRE_HEARD);
	return err ? err : tell(c, 0);
}

/* 0; -EPROTO, -ENOMEM: there is no going on; -EPIPE. */
static int take_message(struct courier *c, size_t sz, const int *fds, size_t cnt)
{
	struct destination *d;

	if (sz < WIRE_HEAD_SZ || c->in.destination >= WIRE_MAX_DESTINATIONS)
		return -EPROTO;
	d = &c->destinations[c->in.destination];
	if (c->in.what == WIRE_LISTEN)
		return take_listening(c, fds, cnt);
	if (c->in.what == WIRE_STATUS)
		return take_status(c, sz - WIRE_HEAD_SZ);
	if (c->in.what == WIRE_DESTINATION)
		return take_destination(c, d, sz - WIRE_HEAD_SZ);
	if (c->in.what == WIRE_NEWS) {
		for (size_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
			if (c->destinations[i].there)
				queue__news(&c->destinations[i].queue, c->in.value);
		return 0;
	}
	if (c->in.generation != d->generation)
		return 0;
	if (!d->there || c->in.slot >= QUEUE_SLOTS || !(d->queue.busy & 1U << c->in.slot) ||
	    d->attempts[c->in.slot].body.data)
		return -EPROTO;
	if (c->in.what == WIRE_NOTHING)
		queue__nothing(&d->queue, (int)c->in.slot, c->in.value);
	else if (c->in.what == WIRE_RECORD)
		return are_files(&c->in) ? begin_attempt(c, d, fds, cnt) : -EPROTO;
	return 0;
}

/* All that is there. -errno: there is no going on; -EPIPE: the collector is gone. */
static int take_messages(struct courier *c)
{
	int fds[FD_MESSAGE_MAX], err = 0;
	size_t cnt;
	ssize_t n;

	while (!err) {
		n = fd_message_receive(c->sock, &c->in, sizeof(c->in), fds, ARRAY_SIZE(fds), &cnt,
				       MSG_DONTWAIT);
		if (n == -EAGAIN)
			return 0;
		err = n > 0 ? take_message(c, (size_t)n, fds, cnt) : n ? (int)n : -EPIPE;
		while (cnt)
			close(fds[--cnt]);
	}
	return err;
}

/* ---- the loop ---- */

static int wait_for_more(struct courier *c, uint64_t until_ns)
{
	struct curl_waitfd fds[2] = { { .fd = c->sock, .events = CURL_WAIT_POLLIN } };
	unsigned int cnt = 1;
	uint64_t now = util_monotonic_ns(), ms;

	if (c->http)
		fds[cnt++] =
			(struct curl_waitfd){ .fd = http__fd(c->http), .events = CURL_WAIT_POLLIN };
	ms = until_ns > now ? MIN((until_ns - now) / 1000000 + 1, 60000) : 0;
	if (c->http)
		ms = MIN(ms, http__timeout_ms(c->http));
	return curl_multi_poll(c->multi, fds, cnt, (int)ms, NULL) == CURLM_OK ? 0 : -EIO;
}

static int turn(struct courier *c)
{
	uint64_t until = UINT64_MAX;
	int err = 0;

	for (size_t i = 0; !err && i < WIRE_MAX_DESTINATIONS; i++)
		if (c->destinations[i].there)
			err = ask(c, &c->destinations[i], util_monotonic_ns(), &until);
	if (!err)
		err = wait_for_more(c, until);
	/* what else is about to be answered is taken in with it: a turn for each costs more than they do */
	if (!err && c->running)
		usleep(GATHER_US);
	if (!err)
		err = take_messages(c);
	if (!err && c->http)
		http__run(c->http);
	if (!err && curl_multi_perform(c->multi, &c->running) != CURLM_OK)
		err = -EIO;
	return err ? err : finish_transfers(c);
}

int courier_serve(int sock)
{
	static struct courier c;
	int err = 0;

	c = (struct courier){ .sock = sock, .multi = curl_multi_init() };
	if (!c.multi)
		return -ENOMEM;
	/* else one is closed for each that ends beyond those that were open when the last one began */
	curl_multi_setopt(c.multi, CURLMOPT_MAXCONNECTS,
			  (long)(WIRE_MAX_DESTINATIONS * QUEUE_SLOTS));
	for (uint32_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
		c.destinations[i].number = i;
	while (!err)
		err = turn(&c);
	for (size_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
		forget(&c, &c.destinations[i]);
	http__free(c.http);
	curl_multi_cleanup(c.multi);
	return err == -EPIPE ? 0 : err;
}
