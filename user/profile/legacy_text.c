/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/legacy_text.h"

#include <string.h>

#define HEX_DIGITS 16 /* of an address */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

void legacy_skip_blanks(struct legacy_text *t)
{
	while (t->at < t->end && is_blank(*t->at))
		t->at++;
}

bool legacy_line(struct legacy_text *t, struct legacy_text *ret)
{
	const char *end;

	if (t->at == t->end)
		return false;
	end = memchr(t->at, '\n', legacy_left(t));
	*ret = (struct legacy_text){ t->at, end ? end : t->end };
	t->at = end ? end + 1 : t->end;
	legacy_skip_blanks(ret);
	while (ret->end > ret->at && is_blank(ret->end[-1]))
		ret->end--;
	return true;
}

bool legacy_is_comment(const struct legacy_text *line)
{
	return line->at == line->end || *line->at == '#';
}

bool legacy_take(struct legacy_text *t, const char *word)
{
	size_t len = strlen(word);

	if (legacy_left(t) < len || memcmp(t->at, word, len) != 0)
		return false;
	t->at += len;
	return true;
}

bool legacy_take_word(struct legacy_text *t, struct legacy_text *ret)
{
	ret->at = t->at;
	while (t->at < t->end && !is_blank(*t->at))
		t->at++;
	ret->end = t->at;
	return ret->at < ret->end;
}

bool legacy_take_number(struct legacy_text *t, int64_t *ret)
{
	struct legacy_text in = *t;
	const char *first;
	int64_t value = 0;

	legacy_skip_blanks(&in);
	for (first = in.at; in.at < in.end && *in.at >= '0' && *in.at <= '9'; in.at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *in.at - '0', &value))
			return false;
	if (in.at == first)
		return false;
	*t = in;
	*ret = value;
	return true;
}

bool legacy_take_signed(struct legacy_text *t, int64_t *ret)
{
	struct legacy_text in = *t;
	bool minus;

	legacy_skip_blanks(&in);
	minus = legacy_take(&in, "-");
	if ((minus && in.at < in.end && is_blank(*in.at)) || !legacy_take_number(&in, ret))
		return false;
	*t = in;
	*ret = minus ? -*ret : *ret;
	return true;
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

bool legacy_take_hex(struct legacy_text *t, uint64_t *ret)
{
	struct legacy_text in = *t;
	uint64_t value = 0;
	size_t digits = 0;

	legacy_take(&in, "0x");
	for (; in.at < in.end && digit_of(*in.at) >= 0; in.at++) {
		/* leading zeroes are none */
		digits += value || *in.at != '0';
		if (digits > HEX_DIGITS)
			return false;
		value = value << 4 | (unsigned int)digit_of(*in.at);
	}
	if (in.at == t->at || digit_of(in.at[-1]) < 0)
		return false;
	*t = in;
	*ret = value;
	return true;
}
