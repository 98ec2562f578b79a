// SPDX-License-Identifier: BSD-2-Clause
#include "target/said.h"

#include <string.h>

#include "base/util.h"

#define BLANKS " \t\r\n\v\f"

static const struct {
	const char *attribute;
	enum said_fact fact;
} attributes[] = {
	{ "service.name", SAID_SERVICE },
	{ "service.namespace", SAID_NAMESPACE },
	{ "service.version", SAID_VERSION },
	{ "deployment.environment.name", SAID_ENVIRONMENT },
	{ "deployment.environment", SAID_ENVIRONMENT },
};

enum said_fact said_fact_of(const char *attribute, size_t sz)
{
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		if (strlen(attributes[i].attribute) == sz &&
		    !memcmp(attributes[i].attribute, attribute, sz))
			return attributes[i].fact;
	return SAID_FACTS;
}

const char *said_label(enum said_fact fact)
{
	static const char *const labels[SAID_FACTS] = {
		[SAID_SERVICE] = "service_name",
		[SAID_NAMESPACE] = "service_namespace",
		[SAID_VERSION] = "service_version",
		[SAID_ENVIRONMENT] = "deployment_environment",
	};

	return labels[fact];
}

/* Resource SDK, "SDK-provided resource attributes" */
static bool is_unknown_service(const char *text)
{
	static const char unknown[] = "unknown_service";
	size_t len = sizeof(unknown) - 1;

	return !strncmp(text, unknown, len) && (!text[len] || text[len] == ':');
}

static bool is_blank(char c)
{
	return c && strchr(BLANKS, c);
}

/* Bytes of the text that lie before the first character that does not fit. */
static size_t cut(const char *text, size_t max)
{
	size_t at = 0, len;
	uint32_t cp;

	while (text[at]) {
		len = util_utf8(text + at, &cp);
		len = len ? len : 1;
		if (at + len > max)
			break;
		at += len;
	}
	return at;
}

void said__put(struct said *s, enum said_fact fact, const char *text, size_t sz)
{
	char copy[SAID_TEXT_SZ + 3] = "", *to = s->text[fact];

	if (*to)
		return;
	while (sz && is_blank(*text)) {
		text++;
		sz--;
	}
	while (sz && is_blank(text[sz - 1]))
		sz--;
	/* with the bytes of a character that is cut */
	memcpy(copy, text, MIN(sz, sizeof(copy) - 1));
	copy[cut(copy, SAID_TEXT_SZ - 1)] = '\0';
	if (fact == SAID_SERVICE && is_unknown_service(copy))
		return;
	util_printable(to, SAID_TEXT_SZ, copy);
}

bool said__is_clean(const struct said *s)
{
	for (size_t i = 0; i < SAID_FACTS; i++) {
		const char *text = s->text[i];
		char clean[SAID_TEXT_SZ];
		size_t len = strnlen(text, SAID_TEXT_SZ);

		for (size_t at = len; at < SAID_TEXT_SZ; at++)
			if (text[at])
				return false;
		if (len == SAID_TEXT_SZ || strcmp(util_printable(clean, sizeof(clean), text), text))
			return false;
	}
	return true;
}
