/* SPDX-License-Identifier: BSD-2-Clause */
#include "courier/stores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "courier/stores_parts.h"
#include "profile/gzip_writer.h"

#define MAX_SHOWN 200 /* bytes of what a store says */
/* Both are missing in a Collector as it is by default. */
#define NO_PROFILES                                                               \
	"start the Collector with the feature gate service.profilesSupport, and " \
	"give it a pipeline of profiles"

/* The record as it is. */
static int pprof_body(const struct item *item, struct body *ret)
{
	ret->data = malloc(item->sz + 1);
	if (!ret->data)
		return -ENOMEM;
	memcpy(ret->data, item->file, item->sz);
	ret->sz = item->sz;
	return 0;
}

/* Takes what it is given, and gives it back smaller. 0 or -errno. */
static int compress_body(struct body *b)
{
	struct gzip_writer w = { 0 };
	struct body packed = { 0 };
	char *data = NULL;
	FILE *f = open_memstream(&data, &packed.sz);
	int err;

	if (!f)
		return -ENOMEM;
	err = gzip_writer__init(&w, f, NULL, 0);
	if (!err)
		err = gzip_writer__put(&w, b->data, b->sz);
	if (!err)
		err = gzip_writer__finish(&w);
	gzip_writer__done(&w);
	if (fclose(f) && !err)
		err = -ENOMEM;
	packed.data = data;
	free(err ? packed.data : b->data);
	if (!err)
		*b = packed;
	return err;
}

const struct store stores[] = {
	{
		.name = "pyroscope",
		.kind = STORE_PYROSCOPE,
		.path = "/push.v1.PusherService/Push",
		.content_type = "application/proto",
		.body = series_pyroscope_body,
		.status = series_connect_status,
	},
	{
		.name = "parca",
		.kind = STORE_PARCA,
		.path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
		.content_type = "application/grpc-web+proto",
		.body = series_parca_body,
		.status = series_grpc_web_status,
		.grpc_end = series_grpc_web_end,
	},
	{
		.name = "otlp",
		.kind = STORE_OTLP,
		.path = "/v1development/profiles",
		.content_type = "application/x-protobuf",
		.gzip = true,
		.body = otlp_body,
		.rejected = otlp_rejected,
		.not_found = NO_PROFILES,
	},
	{
		.name = "otlp-1.9",
		.kind = STORE_OTLP,
		.path = "/v1development/profiles",
		.content_type = "application/x-protobuf",
		.gzip = true,
		.body = otlp_body_v9,
		.rejected = otlp_rejected,
		.not_found = NO_PROFILES,
	},
	{
		.name = "pprof",
		.kind = STORE_PPROF,
		.path = "",
		.content_type = "application/octet-stream",
		.body = pprof_body,
	},
};
const size_t stores_cnt = ARRAY_SIZE(stores);

const struct store *store_find(const char *name)
{
	for (size_t i = 0; i < stores_cnt; i++)
		if (!strcmp(stores[i].name, name))
			return &stores[i];
	return NULL;
}

int store_url(const struct store *s, const char *url, char *ret, size_t ret_sz)
{
	size_t len = strlen(url), path = strlen(s->path);
	bool has_path;

	while (path && len && url[len - 1] == '/')
		len--;
	has_path = len >= path && !memcmp(url + len - path, s->path, path);
	return snprintf(ret, ret_sz, "%.*s%s", (int)len, url, has_path ? "" : s->path) <
			       (int)ret_sz ?
		       0 :
		       -ENAMETOOLONG;
}

int store_body(const struct store *s, const struct item *item, struct body *ret)
{
	int err = s->body(item, ret);

	if (err || !s->gzip)
		return err;
	err = compress_body(ret);
	if (err) {
		free(ret->data);
		*ret = (struct body){ 0 };
	}
	return err;
}

int store_status(const struct store *s, const struct answer *a)
{
	return s->status ? s->status(a) : a->http;
}

bool store_rejected(const struct store *s, const struct answer *a, char ret[static STORE_SAID_SZ])
{
	return s->rejected && a->body_sz && s->rejected(a, ret);
}

/* In one line. */
static void show(const char *words, char ret[static MAX_SHOWN])
{
	char cut[MAX_SHOWN];
	size_t len = strnlen(words, sizeof(cut) - 1);

	while (len && strchr(" \t\r\n", words[len - 1]))
		len--;
	memcpy(cut, words, len);
	cut[len] = '\0';
	util_printable(ret, MAX_SHOWN, cut);
}

void store_said(const struct store *s, const struct answer *a, char ret[static STORE_SAID_SZ])
{
	bool is_grpc = s->grpc_end && a->http == 200;
	const char *words = a->body, *hint = a->http == 404 && s->not_found ? s->not_found : "";
	struct grpc_end end;
	char shown[MAX_SHOWN];

	if (is_grpc)
		words = s->grpc_end(a, &end) ? end.message :
					       "it does not say how gRPC's call ended";
	show(words, shown);
	snprintf(ret, STORE_SAID_SZ, "(%s %d)%s%s%s%s",
		 is_grpc && end.status >= 0 ? "gRPC" : "HTTP",
		 is_grpc && end.status >= 0 ? end.status : a->http, *shown ? ": " : "", shown,
		 *hint ? ": " : "", hint);
}

static const struct {
	const char *kind, *name;
} profile_names[] = {
	{ "cpu", "process_cpu" },
	{ "heap", "memory" },
	{ "offcpu", "off_cpu" },
};

const char *store_profile_name(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(profile_names); i++)
		if (!strcmp(profile_names[i].kind, kind))
			return profile_names[i].name;
	return kind;
}
