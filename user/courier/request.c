// SPDX-License-Identifier: BSD-2-Clause
#include "courier/request.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "courier/endpoints.h"
#include "courier/query.h"
#include "courier/serve_wire.h"

#define OK 200
#define BAD_REQUEST 400
#define NOT_FOUND 404
#define CPU_SECONDS 30
#define MAX_VALUE 64

/* What is given of a request. */
struct given {
	const char *query, *form;
};

static bool value(const struct given *g, const char *key, char ret[static MAX_VALUE])
{
	return query_get(g->form, key, ret, MAX_VALUE) || query_get(g->query, key, ret, MAX_VALUE);
}

static unsigned int wrong(unsigned int status, char *text, size_t text_sz, const char *sentence)
{
	snprintf(text, text_sz, "%s", sentence);
	return status;
}

static bool positive(const char *s, int64_t *ret)
{
	return query_parse_int(s, ret) && *ret > 0;
}

/* As Go's writers have it: from 2 on it is each thread by itself, and all else but 0 is text. */
static uint32_t debug_of(const struct given *g)
{
	char s[MAX_VALUE];
	int64_t n;

	if (!value(g, "debug", s) || !query_parse_int(s, &n) || !n)
		return 0;
	return n >= 2 ? 2 : 1;
}

/* Of a CPU profile: what is no number above 0 is 30. */
static unsigned int parse_cpu(const struct given *g, struct request *ret, char *text,
			      size_t text_sz)
{
	char s[MAX_VALUE];
	int64_t n;

	if (!value(g, "seconds", s) || !positive(s, &n))
		n = CPU_SECONDS;
	if (n > SERVE_MAX_SECONDS)
		return wrong(BAD_REQUEST, text, text_sz,
			     "profile duration exceeds server's WriteTimeout");
	ret->seconds = (uint32_t)n;
	return OK;
}

/* In the order in which Go looks at them. */
static unsigned int parse_profile(const struct given *g, struct request *ret, char *text,
				  size_t text_sz)
{
	char s[MAX_VALUE];
	int64_t n;

	ret->debug = debug_of(g);
	if (!value(g, "seconds", s) || !*s)
		return OK;
	if (!positive(s, &n))
		return wrong(BAD_REQUEST, text, text_sz,
			     "invalid value for \"seconds\" - must be a positive integer");
	if (n > SERVE_MAX_SECONDS)
		return wrong(BAD_REQUEST, text, text_sz,
			     "profile duration exceeds server's WriteTimeout");
	if (ret->debug)
		return wrong(BAD_REQUEST, text, text_sz,
			     "seconds and debug params are incompatible");
	ret->seconds = (uint32_t)n;
	return OK;
}

static unsigned int parse_pid(const struct given *g, uint32_t served, struct request *ret,
			      char *text, size_t text_sz)
{
	char s[MAX_VALUE];
	int64_t n;

	ret->pid = served;
	if (!value(g, "pid", s)) {
		if (served || ret->endpoint->what == ENDPOINT_INDEX)
			return OK;
		return wrong(BAD_REQUEST, text, text_sz,
			     "\"pid\" parameter is missing - no process was named at the start");
	}
	if (!positive(s, &n) || n > INT32_MAX)
		return wrong(BAD_REQUEST, text, text_sz,
			     "invalid value for \"pid\" - must be a positive integer");
	if (served && n != served) {
		snprintf(text, text_sz, "process %d is not served, but %u alone", (int)n, served);
		return NOT_FOUND;
	}
	ret->pid = (uint32_t)n;
	return OK;
}

static unsigned int parse_hz(const struct given *g, struct request *ret, char *text, size_t text_sz)
{
	char s[MAX_VALUE];
	int64_t n;

	if (!value(g, "hz", s))
		return OK;
	if (!positive(s, &n) || n > SERVE_MAX_HZ) {
		snprintf(text, text_sz,
			 "invalid value for \"hz\" - must be an integer from 1 to %u",
			 SERVE_MAX_HZ);
		return BAD_REQUEST;
	}
	ret->hz = (uint32_t)n;
	return OK;
}

/* What is behind the endpoint's own; which names there are the collector knows. False: it is none. */
static bool parse_name(const char *path, struct request *ret)
{
	const char *name = path + strlen(ret->endpoint->name);
	size_t sz = strlen(name);

	if (ret->endpoint->named)
		memcpy(ret->name, name, MIN(sz, sizeof(ret->name) - 1));
	return !ret->endpoint->named || (sz && sz < sizeof(ret->name));
}

unsigned int request_parse(const char *path, const char *query, const char *form, uint32_t served,
			   struct request *ret, char *text, size_t text_sz)
{
	const struct given g = { .query = query, .form = form };
	unsigned int status = OK;

	*ret = (struct request){ .endpoint = endpoint_find(path) };
	if (!ret->endpoint || !parse_name(path, ret))
		return wrong(NOT_FOUND, text, text_sz, "Unknown profile");
	if (ret->endpoint->what == ENDPOINT_CPU)
		status = parse_cpu(&g, ret, text, text_sz);
	else if (ret->endpoint->what == ENDPOINT_PROFILE)
		status = parse_profile(&g, ret, text, text_sz);
	if (status == OK)
		status = parse_pid(&g, served, ret, text, text_sz);
	if (status == OK && ret->endpoint->what == ENDPOINT_CPU)
		status = parse_hz(&g, ret, text, text_sz);
	return status;
}

size_t request_addresses(const char *text, uint64_t *ret, size_t max)
{
	size_t n = 0;

	while (*text && n < max) {
		size_t sz = strcspn(text, "+&");
		char *end;
		uint64_t address = isxdigit((unsigned char)*text) ? strtoull(text, &end, 0) : 0;

		if (address && end == text + sz)
			ret[n++] = address;
		text += sz + (text[sz] != '\0');
	}
	return n;
}

/* ---- who may ask ---- */

bool request_host_is_local(const char *host)
{
	const char *end = strrchr(host, ':');
	struct in6_addr address;
	char name[INET6_ADDRSTRLEN + 1];
	bool v6 = *host == '[';
	size_t sz;

	if (v6) {
		end = strchr(++host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
	}
	sz = end ? (size_t)(end - host) : strlen(host);
	if (!sz || sz >= sizeof(name))
		return false;
	memcpy(name, host, sz);
	name[sz] = '\0';
	if (v6)
		return inet_pton(AF_INET6, name, &address) == 1;
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &address) == 1;
}

bool request_is_token(const char *text, const char *token)
{
	size_t sz = strlen(text), token_sz = strlen(token);
	unsigned char differ = sz != token_sz;

	for (size_t i = 0; i < sz; i++)
		differ |= (unsigned char)(text[i] ^ token[token_sz ? i % token_sz : 0]);
	return !differ;
}
