// SPDX-License-Identifier: BSD-2-Clause
#include "courier/server_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "courier/endpoints.h"
#include "courier/index_page.h"
#include "courier/reply.h"

#define ROOT "/debug/pprof/"

/* ---- answers ---- */

static enum MHD_Result reply_index(const struct server *s, const struct client *client,
				   struct MHD_Connection *c)
{
	const struct index_page page_of = {
		.pid = client->request.pid,
		.named = !s->served,
		.counts = client->counts,
		.custom = (const struct serve_custom *)client->text,
		.custom_cnt = client->text_sz / sizeof(struct serve_custom),
	};
	size_t sz;
	char *page = index_page(&page_of, &sz);
	enum MHD_Result res;

	if (!page)
		return MHD_NO;
	res = reply(c, MHD_HTTP_OK, REPLY_HTML, reply_text(page, sz), NULL, NULL);
	free(page);
	return res;
}

enum MHD_Result server_reply(const struct server *s, struct client *client,
			     struct MHD_Connection *c)
{
	const struct request *r = &client->request;
	const struct endpoint *e = r->endpoint;
	bool text = e->what == ENDPOINT_CMDLINE || e->what == ENDPOINT_SYMBOL || r->debug;
	char name[128];
	int fd = client->body;

	if (client->gone)
		return MHD_NO;
	if (client->status != MHD_HTTP_OK)
		return reply_error(c, client->status, client->text ?: "");
	if (e->what == ENDPOINT_INDEX)
		return reply_index(s, client, c);
	if (fd < 0)
		return reply_error(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "failed to collect profile");
	client->body = -1;
	client->sending = true;
	snprintf(name, sizeof(name), "attachment; filename=\"%s%s\"", e->named ? r->name : e->name,
		 e->what == ENDPOINT_PROFILE && r->seconds ? "-delta" : "");
	return reply(c, MHD_HTTP_OK, text ? REPLY_TEXT : REPLY_BINARY, reply_file(fd),
		     text ? NULL : "Content-Disposition", name);
}

/* ---- requests ---- */

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* As a Bearer, or as the password of any user. */
static bool has_token(const struct server *s, struct MHD_Connection *c)
{
	const char *authorization = header(c, MHD_HTTP_HEADER_AUTHORIZATION);
	char *password = NULL, *user;
	bool ret;

	if (authorization && !strncasecmp(authorization, "Bearer ", 7))
		return request_is_token(authorization + 7, s->token);
	user = MHD_basic_auth_get_username_password(c, &password);
	ret = password && request_is_token(password, s->token);
	MHD_free(password);
	MHD_free(user);
	return ret;
}

/* NULL: it may ask. */
static const char *refusal(const struct server *s, struct MHD_Connection *c, unsigned int *ret)
{
	const char *host = header(c, MHD_HTTP_HEADER_HOST);

	*ret = MHD_HTTP_UNAUTHORIZED;
	if (*s->token && !has_token(s, c))
		return "a token is needed: as a Bearer, or as the password in the address";
	*ret = MHD_HTTP_FORBIDDEN;
	if (!s->any_host && host && !request_host_is_local(host))
		return "the Host header names neither an address nor localhost";
	return NULL;
}

static const char *form_of(const struct client *client, struct MHD_Connection *c)
{
	static const char form[] = "application/x-www-form-urlencoded";
	const char *type = header(c, MHD_HTTP_HEADER_CONTENT_TYPE);

	return client->form && type && !strncasecmp(type, form, sizeof(form) - 1) ? client->form :
										    "";
}

static enum MHD_Result redirect(struct MHD_Connection *c, const char *query)
{
	char *to = NULL;
	enum MHD_Result res = MHD_NO;

	if (asprintf(&to, ROOT "%s%s", *query ? "?" : "", query) >= 0)
		res = reply(c, MHD_HTTP_MOVED_PERMANENTLY, REPLY_TEXT, reply_text("", 0),
			    MHD_HTTP_HEADER_LOCATION, to);
	free(to);
	return res;
}

enum MHD_Result server_route(struct server *s, struct client *client, struct MHD_Connection *c,
			     const char *url)
{
	const char *query = client->query ?: "";
	unsigned int status;
	char text[256];
	const char *why = refusal(s, c, &status);

	if (why && status == MHD_HTTP_UNAUTHORIZED)
		return reply(c, status, REPLY_TEXT, reply_text(why, strlen(why)),
			     MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"bpfprof\"");
	if (why)
		return reply_error(c, status, why);
	if (client->too_large)
		return reply_error(c, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
	if (!strcmp(url, "/debug/pprof"))
		return redirect(c, query);
	if (strncmp(url, ROOT, sizeof(ROOT) - 1) != 0)
		return reply(c, MHD_HTTP_NOT_FOUND, REPLY_TEXT,
			     reply_text("404 page not found\n", 19), NULL, NULL);
	status = request_parse(url + sizeof(ROOT) - 1, query, form_of(client, c), s->served,
			       &client->request, text, sizeof(text));
	if (status != MHD_HTTP_OK)
		return reply_error(c, status, text);
	if (client->request.endpoint->what == ENDPOINT_INDEX && !client->request.pid)
		return reply_index(s, client, c);
	if (!server_ask(s, client, c))
		return reply_error(c, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "too many requests wait already");
	return MHD_YES;
}
