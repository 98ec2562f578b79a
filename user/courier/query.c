// SPDX-License-Identifier: BSD-2-Clause
#include "courier/query.h"

#include <string.h>

#include "base/util.h"

/* False: it cannot be decoded, or has no room. */
static bool decode(const char *s, size_t sz, char *ret, size_t ret_sz)
{
	size_t n = 0;

	for (size_t i = 0; i < sz; i++) {
		char c = s[i];

		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			int high = i + 2 < sz ? util_hex_digit(s[i + 1]) : -1;
			int low = i + 2 < sz ? util_hex_digit(s[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (!c || n + 1 >= ret_sz)
			return false;
		ret[n++] = c;
	}
	ret[n] = '\0';
	return true;
}

bool query_get(const char *query, const char *key, char *ret, size_t ret_sz)
{
	char name[64];

	while (*query) {
		size_t sz = strcspn(query, "&"), key_sz = strcspn(query, "=&");
		size_t value = key_sz < sz ? key_sz + 1 : sz;

		if (!memchr(query, ';', sz) && decode(query, key_sz, name, sizeof(name)) &&
		    !strcmp(name, key) && decode(query + value, sz - value, ret, ret_sz))
			return true;
		query += sz + (query[sz] == '&');
	}
	return false;
}

bool query_parse_int(const char *s, int64_t *ret)
{
	bool negative = *s == '-';
	int64_t n = 0;

	s += *s == '-' || *s == '+';
	if (!*s)
		return false;
	for (; *s; s++) {
		int digit = *s - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, negative ? -digit : digit, &n))
			return false;
	}
	*ret = n;
	return true;
}
