/* SPDX-License-Identifier: BSD-2-Clause */
/* Commas, quotes and numbers of base/json.h. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static bool acts_in_html(uint32_t c)
{
	return c == '<' || c == '>' || c == '&' || c == 0x2028 || c == 0x2029;
}

/* One character of a string: RFC 8259, section 7. */
static void put_char(const struct json *j, const char *s, size_t len, uint32_t codepoint)
{
	static const char special[] = "\"\\\b\f\n\r\t", name[] = "\"\\bfnrt";
	const char *at = memchr(special, *s, sizeof(special) - 1);
	FILE *f = j->f;

	if (!len)
		fputs("\xef\xbf\xbd", f); /* U+FFFD */
	else if (at)
		fprintf(f, "\\%c", name[at - special]);
	else if (codepoint < 0x20 || (j->in_html && acts_in_html(codepoint)))
		fprintf(f, "\\u%04x", codepoint);
	else
		fwrite(s, 1, len, f);
}

static void put_string(const struct json *j, const char *s)
{
	uint32_t codepoint = 0;
	size_t len;

	putc('"', j->f);
	for (; *s; s += len ? len : 1) {
		len = util_utf8(s, &codepoint);
		put_char(j, s, len, codepoint);
	}
	putc('"', j->f);
}

/* What comes before a value. */
static void begin(struct json *j, const char *key)
{
	if (j->comma)
		putc(',', j->f);
	j->comma = true;
	if (!key)
		return;
	put_string(j, key);
	putc(':', j->f);
}

static void open_with(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	putc(bracket, j->f);
	j->comma = false;
}

static void close_with(struct json *j, char bracket)
{
	putc(bracket, j->f);
	j->comma = true;
}

void json__begin_object(struct json *j, const char *key)
{
	open_with(j, key, '{');
}

void json__end_object(struct json *j)
{
	close_with(j, '}');
}

void json__begin_array(struct json *j, const char *key)
{
	open_with(j, key, '[');
}

void json__end_array(struct json *j)
{
	close_with(j, ']');
}

void json__string(struct json *j, const char *key, const char *s)
{
	begin(j, key);
	put_string(j, s);
}

void json__u64(struct json *j, const char *key, uint64_t v)
{
	begin(j, key);
	fprintf(j->f, "%" PRIu64, v);
}

void json__double(struct json *j, const char *key, double v)
{
	char text[32];

	begin(j, key);
	if (!isfinite(v)) {
		fputs("null", j->f);
		return;
	}
	/* 15 digits do for most, 17 for all */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	fputs(text, j->f);
}

void json__bool(struct json *j, const char *key, bool v)
{
	begin(j, key);
	fputs(v ? "true" : "false", j->f);
}
