/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "spool/cursor.h"

#define HOUR_NS (3600 * NSEC_PER_SEC)
#define MAX_TEXT 256 /* of a user or a tenant */
#define QUOTED 200   /* bytes of a URL in a message */

/* Kinds, and what in a URL tells them: a part of the host's name, the port, the end of the path. */
static const struct {
	const char *kind, *host, *port, *path;
	uint64_t max_age_ns; /* 0: whatever there is */
	bool as_given;	     /* no path is put behind the URL */
} kinds[] = {
	/* which refuses what is older than an hour (reject-older-than) */
	{ "pyroscope", "pyroscope", "4040", "/push.v1.PusherService/Push", HOUR_NS, false },
	{ "parca", "parca", "7070", "ProfileStoreService/WriteRaw", 0, false },
	{ "otlp", "otel", "4318", "/v1development/profiles", 0, false },
	{ "otlp-1.9", NULL, NULL, NULL, 0, false },
	{ "pprof", NULL, NULL, "/v1/pprof", 0, true },
};

static const char *const file_keys[DESTINATION_NR_FILES] = {
	[DESTINATION_TOKEN] = "token-file", [DESTINATION_PASSWORD] = "password-file",
	[DESTINATION_CA] = "ca-file",	    [DESTINATION_CERT] = "cert-file",
	[DESTINATION_KEY] = "key-file",
};

const char *destination_file_key(enum destination_file file)
{
	return file_keys[file];
}

/* ---- the URL ---- */

struct url {
	char host[256];
	const char *port, *path; /* "" if there is none; each goes on to the end of the URL */
	size_t path_len;
};

/* RFC 3986, as far as it is needed here. */
static int split_url(const char *url, struct url *ret, char *text, size_t text_sz)
{
	const char *host = strstr(url, "://"), *end;
	size_t len;

	if (strlen(url) > DESTINATION_MAX_URL)
		return util_fail(-EINVAL, text, text_sz, "url: it is longer than %d bytes",
				 DESTINATION_MAX_URL);
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return util_fail(-EINVAL, text, text_sz,
					 "url: '%.*s' has a blank or worse in it", QUOTED, url);
	if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
		return util_fail(-EINVAL, text, text_sz,
				 "url: '%.*s' does not begin with http:// or https://", QUOTED,
				 url);
	if (strchr(url, '#'))
		return util_fail(-EINVAL, text, text_sz,
				 "url: no store is sent what is behind '#': leave it out");
	host += 3;
	end = host + strcspn(host, "/?");
	ret->path = end;
	ret->path_len = strcspn(end, "?");
	if (memchr(host, '@', (size_t)(end - host)))
		return util_fail(
			-EINVAL, text, text_sz,
			"url: give the user as user = and the password as password-file =");
	len = *host == '[' ? strcspn(host, "]/") : strcspn(host, ":/?");
	if (!len || len >= sizeof(ret->host) || *host == ']')
		return util_fail(-EINVAL, text, text_sz, "url: '%.*s' names no host", QUOTED, url);
	snprintf(ret->host, sizeof(ret->host), "%.*s", (int)len, host);
	host += len + (*host == '[');
	ret->port = host < end && *host == ':' ? host + 1 : "";
	return 0;
}

static bool has_port(const struct url *u, const char *port)
{
	size_t len = strlen(port);

	return !strncmp(u->port, port, len) && strchr("/?", u->port[len]);
}

static bool path_ends_with(const struct url *u, const char *end)
{
	size_t len = strlen(end);

	return u->path_len >= len && !memcmp(u->path + u->path_len - len, end, len);
}

static const char *guess_kind(const struct url *u)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].path && path_ends_with(u, kinds[i].path))
			return kinds[i].kind;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].host &&
		    (strcasestr(u->host, kinds[i].host) || has_port(u, kinds[i].port)))
			return kinds[i].kind;
	return NULL;
}

/* ---- all of it ---- */

int destination__open_file(const struct destination *d, enum destination_file file)
{
	int fd = d->files[file] ?
			 open(d->files[file], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) :
			 -1;
	struct stat st;

	if (!d->files[file])
		return -ENOENT;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static int check_files(const struct destination *d, char *text, size_t text_sz)
{
	for (int i = 0; i < DESTINATION_NR_FILES; i++) {
		int fd = d->files[i] ? destination__open_file(d, i) : -ENOENT;

		if (fd >= 0)
			close(fd);
		else if (d->files[i])
			return util_fail(-EINVAL, text, text_sz, "%s: cannot read '%s': %s",
					 file_keys[i], d->files[i],
					 fd == -EINVAL ? "it is no file" : strerror(-fd));
	}
	if (d->files[DESTINATION_TOKEN] && d->user)
		return util_fail(-EINVAL, text, text_sz,
				 "token-file and user exclude each other: give one");
	if (d->files[DESTINATION_PASSWORD] && !d->user)
		return util_fail(-EINVAL, text, text_sz, "password-file goes with user");
	if (d->files[DESTINATION_KEY] && !d->files[DESTINATION_CERT])
		return util_fail(-EINVAL, text, text_sz, "key-file goes with cert-file");
	return 0;
}

static int check_text(const char *key, const char *value, char *text, size_t text_sz)
{
	if (value && (!*value || strlen(value) > MAX_TEXT))
		return util_fail(-EINVAL, text, text_sz, "%s: it is empty, or longer than %d bytes",
				 key, MAX_TEXT);
	for (const char *c = value; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return util_fail(-EINVAL, text, text_sz, "%s: it has control characters",
					 key);
	return 0;
}

static int complete_kind(struct destination *d, const struct url *u, char *text, size_t text_sz)
{
	const char *kind = d->kind ? d->kind : guess_kind(u);
	size_t i;

	if (!kind)
		return util_fail(
			-EINVAL, text, text_sz,
			"its kind does not follow from the url: give kind = pyroscope, parca, "
			"otlp, otlp-1.9 or pprof");
	for (i = 0; i < ARRAY_SIZE(kinds) && strcmp(kinds[i].kind, kind) != 0; i++)
		;
	if (i == ARRAY_SIZE(kinds))
		return util_fail(
			-EINVAL, text, text_sz,
			"kind: there is no '%s': choose from pyroscope, parca, otlp, otlp-1.9, "
			"pprof",
			kind);
	if (u->path[u->path_len] && !kinds[i].as_given)
		return util_fail(
			-EINVAL, text, text_sz,
			"url: the path of %s goes behind it, and '?' with what follows would be "
			"in front: leave it out",
			kind);
	if (!d->max_age_ns)
		d->max_age_ns = kinds[i].max_age_ns;
	if (!d->kind)
		d->kind = strdup(kind);
	return d->kind ? 0 : -ENOMEM;
}

int destination__complete(struct destination *d, char *text, size_t text_sz)
{
	struct url u;
	int err;

	if (!cursor_is_name(d->name))
		return util_fail(
			-EINVAL, text, text_sz,
			"a name has 1 to %d letters, digits, '.', '_' and '-', and does not "
			"begin with '.'",
			CURSOR_NAME_SZ - 1);
	if (!d->url)
		return util_fail(-EINVAL, text, text_sz, "it has no url");
	err = split_url(d->url, &u, text, text_sz);
	if (!err)
		err = complete_kind(d, &u, text, text_sz);
	if (!err)
		err = check_text("user", d->user, text, text_sz);
	if (!err)
		err = check_text("tenant", d->tenant, text, text_sz);
	return err ? err : check_files(d, text, text_sz);
}

void destination__done(struct destination *d)
{
	free(d->name);
	free(d->url);
	free(d->kind);
	free(d->user);
	free(d->tenant);
	for (int i = 0; i < DESTINATION_NR_FILES; i++)
		free(d->files[i]);
	*d = (struct destination){ 0 };
}
