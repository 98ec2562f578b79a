/* SPDX-License-Identifier: BSD-2-Clause */
#include "courier/grpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define MAX_STATUS 16 /* characters */

static void trim(const char **at, const char **end)
{
	while (*at < *end && strchr(" \t", **at))
		++*at;
	while (*at < *end && strchr(" \t\r\n", (*end)[-1]))
		--*end;
}

/* What is no byte in the form %XX stays as it is. */
static void decode(const char *at, const char *end, char ret[static GRPC_MESSAGE_SZ])
{
	size_t n = 0;

	for (; at < end && n < GRPC_MESSAGE_SZ - 1; at++) {
		int high = end - at > 2 && *at == '%' ? util_hex_digit(at[1]) : -1;
		int low = high >= 0 ? util_hex_digit(at[2]) : -1;

		ret[n++] = *at;
		if (low < 0 || !(high | low))
			continue;
		ret[n - 1] = (char)(high << 4 | low);
		at += 2;
	}
	ret[n] = '\0';
}

void grpc_end__take(struct grpc_end *e, const char *line, size_t sz)
{
	static const char status[] = "grpc-status", message[] = "grpc-message";
	const char *end = line + sz, *colon = memchr(line, ':', sz), *at;
	size_t key_sz = colon ? (size_t)(colon - line) : 0;
	char text[MAX_STATUS];

	if (!colon)
		return;
	at = colon + 1;
	trim(&at, &end);
	if (key_sz == strlen(status) && !strncasecmp(line, status, key_sz)) {
		snprintf(text, sizeof(text), "%.*s", (int)MIN(end - at, MAX_STATUS), at);
		e->status = atoi(text);
	} else if (key_sz == strlen(message) && !strncasecmp(line, message, key_sz)) {
		decode(at, end, e->message);
	}
}

void grpc_end__take_all(struct grpc_end *e, const char *text, size_t sz)
{
	const char *end = text + sz, *line_end;

	for (; text < end; text = line_end + 1) {
		line_end = memchr(text, '\n', (size_t)(end - text)) ?: end;
		grpc_end__take(e, text, (size_t)(line_end - text));
	}
}
