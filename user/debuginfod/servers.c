// SPDX-License-Identifier: BSD-2-Clause
#include "debuginfod/servers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "courier/fetch_wire.h"

static const char blanks[] = " \t\n";

static bool is_url(const char *s, size_t sz)
{
	size_t scheme = !strncasecmp(s, "http://", 7) ? 7 : !strncasecmp(s, "https://", 8) ? 8 : 0;

	return scheme && sz > scheme && sz <= FETCH_MAX_URL;
}

int servers_parse(const char *value, char *ret, size_t ret_sz, char *text, size_t text_sz)
{
	size_t cnt = 0, len = 0, sz;

	for (const char *s = value ?: ""; *s; s += sz) {
		s += strspn(s, blanks);
		sz = strcspn(s, blanks);
		if (!sz || !strncmp(s, "ima:", 4))
			continue;
		if (!is_url(s, sz))
			return util_fail(
				-EINVAL, text, text_sz,
				"%s names '%.*s', which is no http:// or https:// URL of up to "
				"%d bytes",
				SERVERS_VARIABLE, (int)MIN(sz, 64U), s, FETCH_MAX_URL);
		if (cnt++ == FETCH_MAX_SERVERS || len + sz + 2 > ret_sz)
			return util_fail(-EINVAL, text, text_sz, "%s names more than %d servers",
					 SERVERS_VARIABLE, FETCH_MAX_SERVERS);
		len += (size_t)snprintf(ret + len, ret_sz - len, "%s%.*s", len ? " " : "", (int)sz,
					s);
	}
	if (!cnt)
		return util_fail(
			-EINVAL, text, text_sz,
			"%s names no server: set it to the URL of one (sudo takes it away, "
			"without -E)",
			SERVERS_VARIABLE);
	return 0;
}
