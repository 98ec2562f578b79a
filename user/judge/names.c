// SPDX-License-Identifier: BSD-2-Clause
#include "judge/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define HEX "0123456789abcdefABCDEF"
#define RUST_HASH 16	 /* hex digits */
#define DISTANCE_MAX 128 /* bytes of a name that are compared */

/* ".123" at the end */
static bool cut_number(char *name, size_t *sz)
{
	size_t at = *sz;

	while (at && isdigit((unsigned char)name[at - 1]))
		at--;
	if (at == *sz || at < 2 || name[at - 1] != '.')
		return false;
	name[ *sz = at - 1] = '\0';
	return true;
}

static bool cut_suffix(char *name, size_t *sz, const char *suffix)
{
	size_t n = strlen(suffix);

	if (*sz <= n || strcmp(name + *sz - n, suffix) != 0)
		return false;
	name[ *sz -= n] = '\0';
	return true;
}

static bool cut_rust_hash(char *name, size_t *sz)
{
	char *at = *sz > RUST_HASH + 3 ? name + *sz - RUST_HASH - 3 : NULL;

	if (!at || strncmp(at, "::h", 3) != 0 || strspn(at + 3, "0123456789abcdef") != RUST_HASH)
		return false;
	*at = '\0';
	*sz -= RUST_HASH + 3;
	return true;
}

/* What tells clones apart, one of it. */
static bool cut_clone(char *name, size_t *sz)
{
	static const char *const suffixes[] = {
		".isra", ".part", ".constprop", ".cold", ".lto_priv", ".llvm", ".localalias",
	};
	char *open = strstr(name, " [clone ");

	if (open && open > name) {
		*open = '\0';
		*sz = (size_t)(open - name);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (cut_suffix(name, sz, suffixes[i]))
			return true;
	return cut_number(name, sz);
}

/* "{lambda#1}" -> "{lambda}", "main.func1" -> "main.func" */
static void drop_counters(char *name)
{
	char *to = name;

	for (const char *s = name; *s;) {
		bool func = s > name && s[-1] == '.' && !strncmp(s, "func", 4) &&
			    isdigit((unsigned char)s[4]);
		const char *end = s + 4;

		while (func && isdigit((unsigned char)*end))
			end++;
		if (func && (!*end || *end == '.')) {
			memmove(to, "func", 4);
			to += 4;
			s = end;
		} else if (*s == '#' && isdigit((unsigned char)s[1])) {
			for (s++; isdigit((unsigned char)*s); s++)
				;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

bool names_canonical(const char *name, char *ret, size_t ret_sz)
{
	size_t sz;
	char *at;

	snprintf(ret, ret_sz, "%s", name);
	if (!*ret || (ret[0] == '0' && ret[1] == 'x' && ret[2 + strspn(ret + 2, HEX)] == '\0'))
		return false;
	/* a version; operators of C++ and Objective-C have no '@' behind the first byte */
	at = strchr(ret + 1, '@');
	if (at && (at[1] == '@' || isupper((unsigned char)at[1])))
		*at = '\0';
	sz = strlen(ret);
	while (cut_rust_hash(ret, &sz) || cut_clone(ret, &sz))
		;
	drop_counters(ret);
	return true;
}

size_t names_nameless(const char *name)
{
	const char *plus = strrchr(name, '+');

	if (!plus || strncmp(plus, "+0x", 3) != 0 || !plus[3] ||
	    plus[3 + strspn(plus + 3, HEX)] != '\0')
		return 0;
	return (size_t)(plus - name);
}

const char *names_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

size_t names_scope(const char *name)
{
	size_t end = strcspn(name, "(<["), at = end;
	const char *slash;

	/* Go: "(*T).f"; the package ends at the first '.' behind the last '/' */
	slash = memrchr(name, '/', end);
	if (slash)
		return (size_t)(slash - name) + strcspn(slash, ".");
	while (at && name[at - 1] != '.' && name[at - 1] != ':')
		at--;
	while (at && (name[at - 1] == '.' || name[at - 1] == ':'))
		at--;
	return at;
}

double names_similarity(const char *a, const char *b)
{
	size_t n = strnlen(a, DISTANCE_MAX), m = strnlen(b, DISTANCE_MAX);
	size_t row[DISTANCE_MAX + 1];

	if (!MAX(n, m))
		return 1;
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			best = MIN(best, MIN(row[j], row[j - 1]) + 1);
			diagonal = row[j];
			row[j] = best;
		}
	}
	return 1 - (double)row[m] / (double)MAX(n, m);
}
