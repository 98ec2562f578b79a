/* SPDX-License-Identifier: BSD-2-Clause */
#include "spool/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void labels__add(struct labels *l, const char *key, const char *value)
{
	if (value && *value && l->cnt < LABELS_MAX)
		l->v[l->cnt++] = (struct label){ key, value };
}

const char *labels__get(const struct labels *l, const char *key)
{
	for (size_t i = 0; i < l->cnt; i++)
		if (!strcmp(l->v[i].key, key))
			return l->v[i].value;
	return NULL;
}

static char *put(char *to, const char *text)
{
	size_t sz = strlen(text) + 1;

	memcpy(to, text, sz);
	return to + sz;
}

int labels__encode(const struct labels *l, char **ret, size_t *ret_sz)
{
	char value[LABELS_MAX_VALUE], *to;
	size_t cap = 1;

	for (size_t i = 0; i < l->cnt; i++)
		cap += strlen(l->v[i].key) + 1 + sizeof(value);
	*ret = to = malloc(cap);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < l->cnt; i++) {
		to = put(to, l->v[i].key);
		to = put(to, util_printable(value, sizeof(value), l->v[i].value));
	}
	*ret_sz = (size_t)(to - *ret);
	return 0;
}

/* The text at *at, behind which it leads then. NULL: it does not end. */
static const char *take(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	*at = nul ? nul + 1 : end;
	return nul ? text : NULL;
}

int labels__decode(const void *data, size_t sz, struct labels *ret)
{
	const char *at = data, *end = at + sz, *key, *value;

	ret->cnt = 0;
	while (at < end) {
		key = take(&at, end);
		value = take(&at, end);
		if (!key || !value || !*key || ret->cnt == LABELS_MAX)
			return -EBADMSG;
		ret->v[ret->cnt++] = (struct label){ key, value };
	}
	return 0;
}
