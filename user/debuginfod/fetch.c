// SPDX-License-Identifier: BSD-2-Clause
#include "debuginfod/fetch.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "courier/fetch_wire.h"
#include "courier/wire.h"
#include "debuginfod/cache.h"
#include "helper/fd_message.h"
#include "helper/helper.h"

#define MAX_NAME 64 /* of what is missing, for people */
#define MAX_WHY 160

/* Proxies, as curl(1) has them. */
static const char *const environment[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
					   "ALL_PROXY",	 "no_proxy",	"NO_PROXY",    NULL };

enum state {
	WAITING, /* to be asked for */
	ASKED,
	ARRIVED, /* not looked into yet */
	GIVEN,	 /* to the caller, who looks into it */
	HERE,
	MISSING,
};

struct file {
	uint8_t id[FETCH_MAX_ID];
	size_t id_sz;
	char hex[2 * FETCH_MAX_ID + 1];
	char name[MAX_NAME];
	enum state state;
	bool cached;
	struct cache_part part; /* while it is not */
	char why[MAX_WHY];	/* it is missing; "": no server has it */
};

struct fetch {
	struct cache *cache;
	int sock; /* -1: there is no fetcher */
	pid_t pid;
	struct file files[FETCH_MAX_FILES];
	size_t file_cnt, asked_cnt; /* the latter: with the fetcher */
	size_t gone_cnt;	    /* servers that it has given up */
	struct fetch_stats stats;
	struct fetch_wire in, out;
};

/* ---- files ---- */

static void __attribute__((format(printf, 3, 4)))
miss(struct fetch *f, struct file *file, const char *fmt, ...)
{
	uint64_t ignored;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(file->why, sizeof(file->why), fmt, ap);
	va_end(ap);
	if (file->state == ASKED)
		f->asked_cnt--;
	if (file->part.fd >= 0)
		(void)cache__end(f->cache, &file->part, NULL, &ignored);
	file->state = MISSING;
	f->stats.missing++;
	log_debug("debuginfod: %s, build id %s, is not to be had%s%s", file->name, file->hex,
		  *file->why ? ": " : "", file->why);
}

/* ---- the fetcher ---- */

static void end_fetcher(struct fetch *f)
{
	if (f->sock >= 0)
		close(f->sock);
	f->sock = -1;
	if (f->pid > 0) {
		kill(f->pid, SIGKILL);
		(void)waitpid(f->pid, NULL, 0);
	}
	f->pid = 0;
}

/* It has died, or lied. */
static void lose_fetcher(struct fetch *f)
{
	end_fetcher(f);
	for (size_t i = 0; i < f->file_cnt; i++)
		if (f->files[i].state == WAITING || f->files[i].state == ASKED)
			miss(f, &f->files[i], "the fetcher (bpfprof-fetcher) has ended");
}

static int start_fetcher(struct fetch *f, const struct fetch_opts *opts)
{
	char program[PATH_MAX];
	int pair[2];
	size_t sz = strlen(opts->servers);

	if (!util_find_part(WIRE_PROGRAM, program, sizeof(program)))
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	f->pid = helper_start(SANDBOX_FETCHER, program, environment, pair[1], pair[1]);
	close(pair[1]);
	f->sock = pair[0];
	if (f->pid < 0)
		return f->pid;
	f->out = (struct fetch_wire){ .what = FETCH_SERVERS, .value = opts->patience };
	memcpy(f->out.text, opts->servers, sz);
	return fd_message_send(f->sock, &f->out, FETCH_HEAD_SZ + sz, NULL, 0, MSG_DONTWAIT);
}

/* Hands out as many as it may have. */
static void send_files(struct fetch *f)
{
	for (size_t i = 0; i < f->file_cnt && f->asked_cnt < FETCH_SLOTS && f->sock >= 0; i++) {
		struct file *file = &f->files[i];
		int err;

		if (file->state != WAITING)
			continue;
		err = cache__begin(f->cache, &file->part);
		if (err) {
			miss(f, file, "cannot be kept: %s", strerror(-err));
			continue;
		}
		f->out = (struct fetch_wire){ .what = FETCH_FILE, .number = i };
		strcpy(f->out.text, file->hex);
		if (fd_message_send(f->sock, &f->out, FETCH_HEAD_SZ + strlen(file->hex),
				    &file->part.fd, 1, MSG_DONTWAIT)) {
			lose_fetcher(f);
			return;
		}
		file->state = ASKED;
		f->asked_cnt++;
	}
}

/* Which server is given up, each once. False: that cannot be. */
static bool take_server(struct fetch *f)
{
	if (++f->gone_cnt > FETCH_MAX_SERVERS)
		return false;
	log_info("debuginfod: a server is not asked any more: %s", f->in.text);
	return true;
}

/* What became of a file. False: that cannot be. */
static bool take_ended(struct fetch *f)
{
	struct file *file = f->in.number < f->file_cnt ? &f->files[f->in.number] : NULL;

	if (!file || file->state != ASKED || f->in.value >= FETCH_NR_OUTCOMES)
		return false;
	if (f->in.value != FETCH_FETCHED) {
		miss(f, file, "%s", f->in.value == FETCH_NOT_FOUND ? "" : f->in.text);
		return true;
	}
	file->state = ARRIVED;
	f->asked_cnt--;
	return true;
}

int fetch__fd(const struct fetch *f)
{
	return f->sock;
}

void fetch__handle(struct fetch *f)
{
	while (f->sock >= 0) {
		size_t cnt;
		ssize_t n = fd_message_receive(f->sock, &f->in, sizeof(f->in) - 1, NULL, 0, &cnt,
					       MSG_DONTWAIT);

		if (n == -EAGAIN)
			break;
		if (n < (ssize_t)FETCH_HEAD_SZ) {
			lose_fetcher(f);
			break;
		}
		((char *)&f->in)[n] = '\0';
		if (!(f->in.what == FETCH_SERVER ? take_server(f) :
		      f->in.what == FETCH_ENDED	 ? take_ended(f) :
						   false))
			lose_fetcher(f);
	}
	send_files(f);
}

int fetch__new(const struct fetch_opts *opts, struct fetch **ret, char *text, size_t text_sz)
{
	struct fetch *f = calloc(1, sizeof(*f));
	int err;

	*ret = NULL;
	if (!f)
		return util_fail(-ENOMEM, text, text_sz, "out of memory");
	f->sock = -1;
	err = cache__open(opts->folder, FETCH_CACHE_SZ, &f->cache, text, text_sz);
	if (!err) {
		err = start_fetcher(f, opts);
		if (err)
			util_fail(err, text, text_sz, "cannot start what fetches: %s",
				  err == -ENOENT ? WIRE_PROGRAM
					  " is not installed beside this program" :
						   strerror(-err));
	}
	if (err)
		fetch__free(f);
	else
		*ret = f;
	return err;
}

void fetch__free(struct fetch *f)
{
	uint64_t ignored;

	if (!f)
		return;
	end_fetcher(f);
	for (size_t i = 0; i < f->file_cnt; i++)
		if (f->files[i].part.fd >= 0)
			(void)cache__end(f->cache, &f->files[i].part, NULL, &ignored);
	cache__close(f->cache);
	free(f);
}

/* ---- what is wanted ---- */

static bool is_known(const struct fetch *f, const uint8_t *id, size_t sz)
{
	for (size_t i = 0; i < f->file_cnt; i++)
		if (f->files[i].id_sz == sz && !memcmp(f->files[i].id, id, sz))
			return true;
	return false;
}

void fetch__ask(struct fetch *f, const uint8_t *id, size_t sz, const char *name)
{
	const char *base = strrchr(name, '/');
	struct file *file;
	int fd;

	if (sz < FETCH_MIN_ID || sz > FETCH_MAX_ID || is_known(f, id, sz))
		return;
	if (f->file_cnt == FETCH_MAX_FILES) {
		f->stats.refused++;
		return;
	}
	file = &f->files[f->file_cnt++];
	*file = (struct file){ .id_sz = sz, .state = WAITING, .part.fd = -1 };
	memcpy(file->id, id, sz);
	for (size_t i = 0; i < sz; i++)
		sprintf(file->hex + 2 * i, "%02x", id[i]);
	snprintf(file->name, sizeof(file->name), "%s", base ? base + 1 : name);
	f->stats.asked++;
	fd = cache__find(f->cache, file->hex);
	if (fd >= 0) {
		close(fd);
		file->cached = true;
		file->state = ARRIVED;
	} else if (f->sock < 0) {
		miss(f, file, "the fetcher (bpfprof-fetcher) has ended");
	} else {
		send_files(f);
	}
}

size_t fetch__pending(const struct fetch *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->file_cnt; i++)
		n += f->files[i].state == WAITING || f->files[i].state == ASKED ||
		     f->files[i].state == ARRIVED;
	return n;
}

bool fetch__next(struct fetch *f, struct fetch_arrived *ret)
{
	for (size_t i = 0; i < f->file_cnt; i++) {
		struct file *file = &f->files[i];

		if (file->state != ARRIVED)
			continue;
		*ret = (struct fetch_arrived){ .number = i, .id_sz = file->id_sz };
		memcpy(ret->id, file->id, file->id_sz);
		ret->fd = file->cached ? cache__find(f->cache, file->hex) :
					 cache__look(f->cache, &file->part);
		if (ret->fd >= 0) {
			file->state = GIVEN;
			return true;
		}
		miss(f, file, "cannot be opened: %s", strerror(-ret->fd));
	}
	return false;
}

void fetch__settle(struct fetch *f, size_t number, const char *why)
{
	struct file *file = &f->files[number];
	uint64_t bytes = 0;
	int err = 0;

	if (why) {
		if (file->cached)
			cache__remove(f->cache, file->hex);
		miss(f, file, "%s", why);
		return;
	}
	if (!file->cached)
		err = cache__end(f->cache, &file->part, file->hex, &bytes);
	/* it serves this run all the same */
	if (err)
		log_info("debuginfod: %s cannot be kept for other runs: %s", file->name,
			 strerror(-err));
	file->state = HERE;
	f->stats.cached += file->cached;
	f->stats.fetched += !file->cached;
	f->stats.bytes += bytes;
}

void fetch__forget(struct fetch *f, bool (*still_good)(void *ctx, const uint8_t *id, size_t sz),
		   void *ctx)
{
	for (size_t i = 0; i < f->file_cnt; i++) {
		struct file *file = &f->files[i];

		if (file->state == HERE && !still_good(ctx, file->id, file->id_sz))
			cache__remove(f->cache, file->hex);
	}
}

/* ---- for people ---- */

void fetch__stats(const struct fetch *f, struct fetch_stats *ret)
{
	*ret = f->stats;
	ret->late = fetch__pending(f);
}

void fetch__missing(const struct fetch *f, char *ret, size_t ret_sz)
{
	size_t len = 0;

	*ret = '\0';
	for (size_t i = 0; i < f->file_cnt; i++) {
		const struct file *file = &f->files[i];
		char one[MAX_NAME + MAX_WHY + 16];
		size_t sz;

		if (file->state == HERE)
			continue;
		sz = (size_t)snprintf(one, sizeof(one), "%s%s (%s)", len ? ", " : "", file->name,
				      file->state != MISSING ? "not in time" :
				      *file->why	     ? file->why :
							       "no server has it");
		if (len + sz + 5 > ret_sz) {
			snprintf(ret + len, ret_sz - len, ", …");
			return;
		}
		memcpy(ret + len, one, sz + 1);
		len += sz;
	}
}
