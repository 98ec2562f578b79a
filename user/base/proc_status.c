// SPDX-License-Identifier: BSD-2-Clause
#include "base/proc_status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define MAX_STATUS 65536

int proc_status_read(const char *proc_dir, uint32_t id, char **ret)
{
	char path[4096];
	size_t sz;

	snprintf(path, sizeof(path), "%s/%" PRIu32 "/status", proc_dir, id);
	return util_read_file(path, MAX_STATUS, ret, &sz);
}

const char *proc_status_line(const char *text, const char *name)
{
	char key[32];
	const char *at;

	snprintf(key, sizeof(key), "\n%s:", name);
	at = strstr(text, key);
	return at ? at + strlen(key) : NULL;
}

uint64_t proc_status_number(const char *text, const char *name)
{
	const char *at = proc_status_line(text, name);

	return at ? strtoull(at, NULL, 10) : 0;
}
